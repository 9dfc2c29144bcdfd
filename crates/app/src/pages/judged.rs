//! The section of a page on task sets: which policies keep them, why, and who runs where.

use crate::check::guarantee_of as guarantee;
use crate::examples;
use analyze::Guarantee;
use analyze::policies::{self, Answer, Costs, Growth, Judgment, PolicyVerdict};
use model::watch::Watch;
use model::{Delay, Load, Overhead, Platform, Profile, Result, TaskSet};
use report::assignment::{self, Bar, Share};
use report::findings::{self, Verdict};
use report::page::{self, Judged, Shown};
use report::{Figure, words};

/// A task set of the directory.
pub struct Tasks {
    /// The name of its file without the ending.
    pub name: String,
    /// The tasks.
    pub set: TaskSet,
}

/// The delays to judge by: those under load, as 000 §4.2 advises; idle ones if there are no others.
fn load(profile: &Profile) -> Load {
    match profile
        .cpmd
        .iter()
        .any(|c| c.load == Load::Load && !c.points.is_empty())
    {
        true => Load::Load,
        false => Load::Idle,
    }
}

/// Judges a set under every policy that the platform suggests.
///
/// # Errors
/// The profile lacks a delay, a task its working set size.
pub fn judge(
    tasks: &Tasks,
    platform: &Platform,
    profile: &Profile,
    watch: &dyn Watch,
) -> Result<Judgment> {
    let costs = Costs {
        profile: Some(profile),
        load: load(profile),
        ..Costs::NONE
    };
    let guarantee = guarantee(&tasks.set);
    let all = policies::suggested(platform, guarantee)?;
    policies::judge(&tasks.set, platform, &all, guarantee, &costs, watch)
        .map_err(|e| e.at(format!("task set `{}`", tasks.name)))
}

/// `C-EDF-L2` for `c-edf:l2`.
pub fn label(policy: &str) -> String {
    match policy.split_once(":size=") {
        Some((name, size)) => format!("{} by {size}", name.to_uppercase()),
        None => policy.to_uppercase().replace(':', "-"),
    }
}

/// What the tasks of a set need, in a few words.
pub fn need(set: &TaskSet) -> &'static str {
    match guarantee(set) {
        Guarantee::Hard => "no deadline may be missed",
        Guarantee::Soft => "lateness must be bounded",
    }
}

/// What was found, in sentences; the last one says which policy comes first.
pub fn sentences(judgment: &Judgment) -> Vec<String> {
    let promise = match judgment.guarantee {
        Guarantee::Hard => "no deadline is missed",
        Guarantee::Soft => "no job is late by more than a bounded time",
    };
    let verdicts: Vec<Verdict> = judgment.policies.iter().map(verdict).collect();
    let mut said = findings::verdicts(
        &verdicts,
        judgment.utilization,
        judgment.processors as u32,
        promise,
    );
    said.push(words::capital(&labeled(&judgment.advice, judgment)) + ".");
    said
}

/// A sentence that names policies as the page does.
fn labeled(sentence: &str, judgment: &Judgment) -> String {
    let word = |word: &str| {
        let name = word.trim_end_matches([',', ';', '.']);
        match judgment.policies.iter().any(|v| v.policy == name) {
            true => label(name) + &word[name.len()..],
            false => word.to_owned(),
        }
    };
    sentence.split(' ').map(word).collect::<Vec<_>>().join(" ")
}

/// `+12.3 %`, with a mark where more may be possible.
fn growth(growth: Growth) -> String {
    let (sign, by) = match growth.thousandths.checked_sub(1_000) {
        Some(by) => ("+", by),
        None => ("−", 1_000 - growth.thousandths),
    };
    let least = if growth.exact { "" } else { "at least " };
    format!("{least}{sign}{}.{} %", by / 10, by % 10)
}

/// What each test or packing says, those together that say the same; empty where there is one and
/// it has no remark, since the verdict says it then.
fn asked(v: &PolicyVerdict) -> String {
    let mut groups: Vec<(Answer, &str, Vec<&str>)> = Vec::new();
    for t in &v.tests {
        let remark = t.detail.as_deref().unwrap_or_default();
        match groups.iter_mut().find(|g| (g.0, g.1) == (t.says, remark)) {
            Some(group) => group.2.push(&t.test),
            None => groups.push((t.says, remark, vec![&t.test])),
        }
    }
    if v.tests.len() < 2 && groups.iter().all(|g| g.1.is_empty()) {
        return String::new();
    }
    let told = groups.iter().map(|(says, remark, tests)| {
        let says = match says {
            Answer::Yes => "yes",
            Answer::No => "no",
            Answer::NotApplicable => "does not apply",
        };
        let remark = match *remark {
            "" => String::new(),
            remark => format!(" ({remark})"),
        };
        // Names have commas in them.
        words::capital(&format!("{says}: {}{remark}.", tests.join("; ")))
    });
    told.collect::<Vec<_>>().join(" ")
}

/// The tasks of a set, and when their jobs are done under each policy that has bounds.
fn task_table(set: &TaskSet, judgment: &Judgment) -> page::Tasks {
    let bounded: Vec<&PolicyVerdict> = judgment
        .policies
        .iter()
        .filter(|v| !v.tasks.is_empty())
        .collect();
    let by = |v: &&PolicyVerdict| {
        let mut by: Vec<&str> = v.tasks.iter().map(|t| t.by).collect();
        by.dedup();
        (label(&v.policy), by.join(", "))
    };
    let rows = set.ids().map(|t| {
        let (timing, name) = (&set.timings()[t.index()], set.name(t));
        let mut row = vec![
            name.clone(),
            words::duration(timing.wcet),
            words::duration(timing.period),
            words::duration(timing.deadline),
            set.wss(t).map_or_else(|| "–".to_owned(), words::size),
            words::three(timing.utilization().to_f64()),
        ];
        let done = |v: &&PolicyVerdict| {
            let Some(bound) = v.tasks.iter().find(|b| b.name == name) else {
                return "–".to_owned();
            };
            let least = if bound.exact { "" } else { "≤ " };
            let mut text = format!("{least}{}", words::time(Delay::from(bound.response)));
            if !bound.tardiness.is_zero() {
                text += &format!(", {} late", words::time(Delay::from(bound.tardiness)));
            }
            text
        };
        row.extend(bounded.iter().map(done));
        row
    });
    page::Tasks {
        facts: [
            "task",
            "WCET",
            "period",
            "deadline",
            "working set",
            "utilization",
        ]
        .map(str::to_owned)
        .to_vec(),
        policies: bounded.iter().map(by).collect(),
        rows: rows.collect(),
    }
}

fn verdict(v: &PolicyVerdict) -> Verdict {
    Verdict {
        policy: label(&v.policy),
        passes: (v.decided_by != policies::NOT_JUDGED).then_some(v.schedulable),
        refuted: v.refuted,
        test: match &v.heuristic {
            Some(heuristic) => format!("{}, {heuristic}", v.decided_by),
            None => v.decided_by.to_owned(),
        },
        reason: v.reason.clone(),
        inflated: v.inflated_utilization,
        largest_delay: v.largest_cpmd.map(|m| m.cpmd),
        growth: v.growth.map(growth),
        lost: v
            .lost
            .iter()
            .filter(|l| l.utilization > 0.0)
            .map(|l| (l.to.to_owned(), l.utilization))
            .collect(),
        asked: asked(v),
    }
}

/// The section of one set of the directory `dir`; its figures go to `figures` too.
///
/// # Errors
/// As [`judge`]; a figure cannot be drawn.
pub fn section(
    tasks: &Tasks,
    dir: &str,
    platform: &Platform,
    profile: &Profile,
    watch: &dyn Watch,
    figures: &mut Vec<Figure>,
) -> Result<Judged> {
    let judgment = judge(tasks, platform, profile, watch)?;
    let mut shown = Vec::new();
    for v in &judgment.policies {
        if v.clusters.iter().all(|c| c.tasks.is_empty()) {
            continue;
        }
        let bars: Vec<Bar> = v.clusters.iter().map(bar).collect();
        let id = format!(
            "assignment-{}-{}",
            tasks.name,
            v.policy.replace([':', '='], "-")
        );
        let title = format!("{} under {}", tasks.name, label(&v.policy));
        shown.push(assignment::figure(&id, &title, &bars)?);
    }
    figures.extend(shown.iter().cloned());
    let mut said = sentences(&judgment);
    let answer = said.pop().unwrap_or_default();
    let mut notes: Vec<&String> = judgment.policies.iter().flat_map(|v| &v.notes).collect();
    notes.sort_unstable();
    notes.dedup();
    said.extend(notes.into_iter().map(|n| words::capital(n) + "."));
    let charged = judgment
        .policies
        .iter()
        .map(|v| v.charged)
        .max()
        .unwrap_or_default();
    said.push(format!(
        "By the rule of {}. Charged are {}; a cache delay is at most {}.",
        judgment.rule.words(),
        judgment.costs,
        words::time(Delay::from(charged))
    ));
    Ok(Judged {
        title: words::capital(&tasks.name),
        about: examples::about(&tasks.name)
            .map_or_else(|| format!("The task set `{}`.", tasks.name), str::to_owned),
        answer,
        findings: said,
        tasks: task_table(&tasks.set, &judgment),
        verdicts: judgment.policies.iter().map(verdict).collect(),
        figures: vec![Shown {
            figures: shown,
            command: String::new(),
        }],
        command: format!(
            "warmset check {dir}/tasks/{}.toml --platform {dir}/platform.toml --profile {dir}/profile.toml",
            tasks.name
        ),
    })
}

pub(super) fn bar(cluster: &policies::Cluster) -> Bar {
    Bar {
        processors: cluster.processors.to_string(),
        capacity: cluster.processors.len() as u32,
        shares: cluster
            .tasks
            .iter()
            .map(|t| Share {
                name: t.name.clone(),
                utilization: t.utilization,
                overhead: t.overhead,
                parts: parts(t),
            })
            .collect(),
    }
}

/// What part of what a job executes there is for which overhead, as `check --explain` tells.
fn parts(task: &policies::Placed) -> Vec<(Overhead, f64)> {
    let Some(inflated) = task.inflated else {
        return Vec::new();
    };
    let part = |kind: Overhead| {
        let charged = *task.charged_ns.get(kind.name())?;
        Some((kind, charged as f64 / inflated.nanos().max(1) as f64))
    };
    Overhead::ALL.into_iter().filter_map(part).collect()
}
