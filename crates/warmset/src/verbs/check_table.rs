//! A judgment for people: a table of policies, and of the first one (or of all) what each test
//! says, how late each task can be, who runs where, and what overheads take.

use analyze::Guarantee;
use analyze::policies::{Answer, Cluster, Growth, Judgment, NOT_JUDGED, PolicyVerdict};
use model::table::{self, Cell, Look, Table, Tone};
use model::{Assignment, CpuSet, Overhead, Profile};
use std::fmt::Write;

/// The most clusters, tasks and tasks of a cluster that are shown; JSON has all.
const MOST_CLUSTERS: usize = 32;
const MOST_TASKS: usize = 24;
const MOST_NAMES: usize = 12;
/// Tasks of a cluster beyond which letters tell nothing any more.
const LETTERS: usize = 26;
/// Characters of a processor's bar.
const BAR: usize = 40;
/// Lines are broken there where there is no terminal.
const WIDTH: usize = 80;
/// Longer lines are hard to read, however wide the terminal is.
const WIDEST: usize = 110;

/// The judgment of the set in `file` as text; `explain`: with the details of every policy.
pub fn text(
    file: &str,
    judgment: &Judgment,
    profile: Option<&Profile>,
    explain: bool,
    look: Look,
) -> String {
    let mut out = Text {
        text: String::new(),
        look,
    };
    let mut say = |text: &str| out.paragraph(text, 0);
    say(&format!(
        "{file}: {} with utilization {:.3}, on {} ({})",
        count(judgment.task_count, "task"),
        judgment.utilization,
        judgment.platform,
        count(judgment.processors, "processor"),
    ));
    say(&format!(
        "asked: {}",
        match judgment.guarantee {
            Guarantee::Hard => "hard real time, no deadline may be missed",
            Guarantee::Soft => "soft real time, tardiness must be bounded",
        }
    ));
    say(&format!("charged: {}", judgment.costs));
    say(&format!(
        "rule: {}: {}",
        judgment.accounting,
        judgment.rule.words()
    ));
    if let Some(profile) = profile.filter(|p| p.platform != judgment.platform) {
        say(&format!(
            "note: the delays were measured on {}, not on {}",
            profile.platform, judgment.platform
        ));
    }
    out.push('\n');
    out.paragraph(&format!("{}.", judgment.advice), 0);
    out.push('\n');
    verdicts(&mut out, &judgment.policies);
    for verdict in &judgment.policies {
        out.paragraph(&format!("  {}: {}", verdict.policy, verdict.reason), 4);
        for note in &verdict.notes {
            out.paragraph(&format!("    (!) {note}"), 8);
        }
    }
    let best = judgment.policies.iter().find(|v| v.schedulable);
    if explain {
        judgment.policies.iter().for_each(|v| details(&mut out, v));
    } else if let Some(best) = best {
        details(&mut out, best);
        if judgment.policies.len() > 1 {
            out.push_str(
                "\n`--explain` shows the same for every policy, `--format json` all there is.\n",
            );
        }
    }
    out.text
}

/// What is written, and how it is to look.
pub(super) struct Text {
    pub text: String,
    pub look: Look,
}

impl Text {
    pub fn push_str(&mut self, text: &str) {
        self.text.push_str(text);
    }
    pub fn push(&mut self, letter: char) {
        self.text.push(letter);
    }

    /// Writes a paragraph, broken between words; lines after the first are indented by `indent`.
    pub fn paragraph(&mut self, text: &str, indent: usize) {
        let width = self.look.width.unwrap_or(WIDTH).min(WIDEST);
        let lead = text.len() - text.trim_start().len();
        let mut line = " ".repeat(lead);
        let mut is_empty = true;
        for word in text.split_whitespace() {
            if !is_empty && line.chars().count() + 1 + word.chars().count() > width {
                self.text.push_str(&line);
                self.text.push('\n');
                line = " ".repeat(indent);
                is_empty = true;
            }
            if !is_empty {
                line.push(' ');
            }
            line.push_str(word);
            is_empty = false;
        }
        self.text.push_str(&line);
        self.text.push('\n');
    }
}

impl Write for Text {
    fn write_str(&mut self, text: &str) -> std::fmt::Result {
        self.text.push_str(text);
        Ok(())
    }
}

pub(super) fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// `+12.3 %`, `-7.0 %`, with a mark where more may be possible.
pub(super) fn growth(growth: Option<Growth>) -> String {
    let Some(g) = growth else {
        return "never".to_owned();
    };
    let (sign, by) = match g.thousandths.checked_sub(1_000) {
        Some(by) => ("+", by),
        None => ("-", 1_000 - g.thousandths),
    };
    let least = if g.exact { "" } else { ">= " };
    format!("{least}{sign}{}.{} %", by / 10, by % 10)
}

fn verdicts(out: &mut Text, verdicts: &[PolicyVerdict]) {
    let header = [
        "policy",
        "holds",
        "decided by",
        "growth",
        "U + lost",
        "largest CPMD",
    ];
    let mut rows = Table::new(3, 0);
    rows.row(header);
    for v in verdicts {
        let judged = v.decided_by != NOT_JUDGED;
        let dash = || "-".to_owned();
        let (holds, tone) = match (v.schedulable, v.refuted) {
            (true, _) => ("yes", Tone::Good),
            (false, _) if !judged => ("-", Tone::Plain),
            (false, true) => ("no", Tone::Bad),
            (false, false) => ("not shown", Tone::Bad),
        };
        let cells: [Cell; 6] = [
            v.policy.clone().into(),
            Cell {
                text: holds.to_owned(),
                tone,
            },
            v.decided_by.into(),
            if judged { growth(v.growth) } else { dash() }.into(),
            v.inflated_utilization
                .map_or_else(dash, |u| format!("{u:.3}"))
                .into(),
            match v.largest_cpmd {
                Some(m) if m.exact => m.cpmd.rounded(),
                Some(m) => format!(">= {}", m.cpmd.rounded()),
                None if !judged => dash(),
                None => "none".to_owned(),
            }
            .into(),
        ];
        rows.row(cells);
    }
    out.push_str(&rows.text(out.look));
    out.push('\n');
    let legend = "holds: `no` is proven; `not shown`: a test refused that may also refuse a set that holds. \
                  growth: by how much all WCETs may grow until that turns, or have to shrink. U + lost: utilization with \
                  overheads. largest CPMD: the longest cache delay a job, with which it holds.";
    out.paragraph(legend, 0);
    out.push('\n');
}

/// All that there is to say of one policy.
pub(super) fn details(out: &mut Text, verdict: &PolicyVerdict) {
    if !verdict.tests.is_empty() {
        tests(out, verdict);
    }
    if !verdict.tasks.is_empty() {
        bounds(out, verdict);
    }
    if !verdict.clusters.is_empty() {
        picture(out, verdict);
        losses(out, verdict);
        charges(out, verdict);
    }
}

fn tests(out: &mut Text, verdict: &PolicyVerdict) {
    let _ = writeln!(
        out,
        "\nWhat each test and packing says of {}:",
        verdict.policy
    );
    for (answer, says) in [
        (Answer::Yes, "yes"),
        (Answer::No, "not shown"),
        (Answer::NotApplicable, "does not apply"),
    ] {
        let these = verdict.tests.iter().filter(|t| t.says == answer);
        let named: Vec<String> = these
            .map(|t| match &t.detail {
                Some(detail) => format!("{} ({detail})", t.test),
                None => t.test.clone(),
            })
            .collect();
        if !named.is_empty() {
            out.paragraph(&format!("  {says}: {}", named.join("; ")), 6);
        }
    }
}

fn bounds(out: &mut Text, verdict: &PolicyVerdict) {
    let _ = writeln!(out, "\nHow late jobs can finish under {}:", verdict.policy);
    let mut rows = Table::new(2, 2);
    rows.row(["task", "by", "deadline", "done after", "late by"]);
    for t in verdict.tasks.iter().take(MOST_TASKS) {
        rows.row([
            t.name.clone(),
            t.by.to_owned(),
            t.deadline.rounded(),
            format!(
                "{}{}",
                if t.exact { "" } else { "<= " },
                t.response.rounded()
            ),
            t.tardiness.rounded(),
        ]);
    }
    out.push_str(&rows.text(out.look));
    if verdict.tasks.len() > MOST_TASKS {
        let more = verdict.tasks.len() - MOST_TASKS;
        let _ = writeln!(out, "  … and {more} more; `--format json` has all");
    }
}

fn losses(out: &mut Text, verdict: &PolicyVerdict) {
    let lost: Vec<String> = verdict
        .lost
        .iter()
        .filter(|l| l.utilization > 0.0)
        .map(|l| match l.utilization {
            u if u < 0.0005 => format!("{} below 0.001", l.to),
            u => format!("{} {u:.3}", l.to),
        })
        .collect();
    let text = match lost.is_empty() {
        true => "Lost to overheads: nothing.".to_owned(),
        false => format!("Lost to overheads, in processors: {}.", lost.join(", ")),
    };
    out.paragraph(&text, 2);
}

/// What part of what a job executes, overheads included, is for which overhead.
fn charges(out: &mut Text, verdict: &PolicyVerdict) {
    let placed = || {
        verdict
            .clusters
            .iter()
            .flat_map(|c| c.tasks.iter().map(move |t| (c, t)))
    };
    let kinds: Vec<&str> = Overhead::ALL
        .into_iter()
        .map(Overhead::name)
        .filter(|kind| placed().any(|(_, task)| task.charged_ns.contains_key(kind)))
        .collect();
    if kinds.is_empty() {
        return;
    }
    let _ = writeln!(
        out,
        "\nWhat a job is charged, in parts of its inflated WCET:"
    );
    let mut rows = Table::new(1, 2);
    let head = ["task", "on", "inflated"]
        .into_iter()
        .chain(kinds.iter().copied());
    rows.row(head);
    for (cluster, task) in placed().take(MOST_TASKS) {
        let Some(inflated) = task.inflated else {
            continue;
        };
        let share = |kind: &&str| match task.charged_ns.get(kind) {
            Some(ns) => format!(
                "{:.1} %",
                *ns as f64 / inflated.nanos().max(1) as f64 * 100.0
            ),
            None => "–".to_owned(),
        };
        let first = [
            task.name.clone(),
            cluster.processors.to_string(),
            inflated.rounded(),
        ];
        rows.row(first.into_iter().chain(kinds.iter().map(share)));
    }
    out.push_str(&rows.text(out.look));
}

/// One bar a cluster: letters for tasks (`#` for very many), `+` for what overheads add, dots for
/// what is left.
fn picture(out: &mut Text, verdict: &PolicyVerdict) {
    let by = verdict
        .heuristic
        .as_ref()
        .map_or(String::new(), |h| format!(", by {h}"));
    let plus = match &verdict.assignment {
        Some(Assignment::Slots(_)) => "overheads and what servers reserve beyond",
        _ if matches!(verdict.policy.as_str(), "pd2" | "ca-edf") => {
            "overheads and rounding to quanta"
        }
        _ => "overheads",
    };
    let title = format!(
        "Who runs where under {}{by} (a letter for each task, + {plus}, . idle):",
        verdict.policy
    );
    out.push('\n');
    out.paragraph(&title, 2);
    let label = |c: &Cluster| format!("P{}", c.processors);
    let (busy, idle): (Vec<&Cluster>, Vec<&Cluster>) =
        verdict.clusters.iter().partition(|c| !c.tasks.is_empty());
    let shown = &busy[..busy.len().min(MOST_CLUSTERS)];
    let width = shown
        .iter()
        .map(|c| label(c).chars().count())
        .max()
        .unwrap_or(0);
    for cluster in shown {
        let (load, overhead) = cluster
            .tasks
            .iter()
            .fold((0.0, 0.0), |(load, overhead), t| {
                (load + t.utilization, overhead + t.overhead)
            });
        let _ = writeln!(
            out,
            "  {:<width$} [{}] {load:.3} + {overhead:.3} of {}",
            label(cluster),
            bar(cluster),
            cluster.processors.len(),
        );
        let indent = width + 4;
        // A letter and its sign stand before a name.
        let longest = out
            .look
            .width
            .map_or(usize::MAX, |w| w.saturating_sub(indent + 2).max(8));
        let names = names(cluster, longest);
        out.paragraph(&format!("{}{names}", " ".repeat(indent)), indent);
    }
    if busy.len() > shown.len() {
        let more = busy.len() - shown.len();
        let _ = writeln!(out, "  … and {more} more; `--format json` has all");
    }
    if !idle.is_empty() {
        let cpus = idle
            .iter()
            .flat_map(|c| c.processors.iter())
            .collect::<CpuSet>();
        let _ = writeln!(out, "  nothing to do: P{cpus}");
    }
}

/// The names of its tasks, each of `longest` characters at most.
fn names(cluster: &Cluster, longest: usize) -> String {
    let all = cluster.tasks.len();
    let crowded = all > LETTERS;
    let most = if all > MOST_NAMES {
        MOST_NAMES - 1
    } else {
        MOST_NAMES
    };
    let name = |(t, letter): (&analyze::policies::Placed, char)| match crowded {
        true => table::shortened(&t.name, longest),
        false => format!("{letter}={}", table::shortened(&t.name, longest)),
    };
    let mut names: Vec<String> = cluster
        .tasks
        .iter()
        .zip(letters())
        .take(most)
        .map(name)
        .collect();
    if all > names.len() {
        names.push(format!("and {} more", all - names.len()));
    }
    names.join(" ")
}

fn letters() -> impl Iterator<Item = char> {
    ('a'..='z').cycle()
}

fn bar(cluster: &Cluster) -> String {
    let scale = BAR as f64 / cluster.processors.len().max(1) as f64;
    let mut cells = String::with_capacity(BAR);
    // Ends are rounded, not lengths, so that the bar as a whole is right to half a character.
    let mut end = 0.0;
    let crowded = cluster.tasks.len() > LETTERS;
    for (task, letter) in cluster.tasks.iter().zip(letters()) {
        let own = if crowded { '#' } else { letter };
        for (length, mark) in [(task.utilization, own), (task.overhead, '+')] {
            end += length * scale;
            while cells.len() < (end.round() as usize).min(BAR) {
                cells.push(mark);
            }
        }
    }
    while cells.len() < BAR {
        cells.push('.');
    }
    cells
}
