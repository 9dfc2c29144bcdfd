//! A judgment for people: a table of policies, and of the first one (or of all) what each test says, how late each task can be, who
//! runs where, and what overheads take.

use analyze::Guarantee;
use analyze::policies::{Answer, Cluster, Growth, Judgment, NOT_JUDGED, PolicyVerdict};
use model::{Assignment, CpuSet, Profile};
use std::fmt::Write;

/// The most clusters, tasks and tasks of a cluster that are shown; JSON has all.
const MOST_CLUSTERS: usize = 32;
const MOST_TASKS: usize = 24;
const MOST_NAMES: usize = 12;
/// Tasks of a cluster beyond which letters tell nothing any more.
const LETTERS: usize = 26;
/// Characters of a processor's bar.
const BAR: usize = 40;
/// Lines are broken there, so that they fit the narrowest of terminals.
const WIDTH: usize = 80;

/// The judgment of the set in `file` as text; `explain`: with the details of every policy.
pub fn text(file: &str, judgment: &Judgment, profile: Option<&Profile>, explain: bool) -> String {
    let mut out = String::new();
    let mut say = |text: &str| paragraph(&mut out, text, 0);
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
    say(&format!("rule: {}", judgment.rule.words()));
    if let Some(profile) = profile.filter(|p| p.platform != judgment.platform) {
        say(&format!(
            "note: the delays were measured on {}, not on {}",
            profile.platform, judgment.platform
        ));
    }
    out.push('\n');
    paragraph(&mut out, &format!("{}.", judgment.advice), 0);
    out.push('\n');
    table(&mut out, &judgment.policies);
    for verdict in &judgment.policies {
        paragraph(&mut out, &format!("  {}: {}", verdict.policy, verdict.reason), 4);
        for note in &verdict.notes {
            paragraph(&mut out, &format!("    (!) {note}"), 8);
        }
    }
    let best = judgment.policies.iter().find(|v| v.schedulable);
    if explain {
        judgment.policies.iter().for_each(|v| details(&mut out, v));
    } else if let Some(best) = best {
        details(&mut out, best);
        if judgment.policies.len() > 1 {
            out.push_str("\n`--explain` shows the same for every policy, `--format json` all there is.\n");
        }
    }
    out
}

/// Writes a paragraph, broken between words; lines after the first are indented by `indent`.
fn paragraph(out: &mut String, text: &str, indent: usize) {
    let lead = text.len() - text.trim_start().len();
    let mut line = " ".repeat(lead);
    let mut is_empty = true;
    for word in text.split_whitespace() {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > WIDTH {
            out.push_str(&line);
            out.push('\n');
            line = " ".repeat(indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

/// `+12.3 %`, `-7.0 %`, with a mark where more may be possible.
fn growth(growth: Option<Growth>) -> String {
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

/// Columns of words to the left, of numbers to the right.
fn aligned(out: &mut String, rows: &[Vec<String>], words: usize, indent: usize) {
    let columns = rows.first().map_or(0, Vec::len);
    let widths: Vec<usize> = (0..columns)
        .map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0))
        .collect();
    for row in rows {
        let mut line = " ".repeat(indent);
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Writing to a String cannot fail.
            let _ = if at < words {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

fn table(out: &mut String, verdicts: &[PolicyVerdict]) {
    let header = [
        "policy",
        "holds",
        "decided by",
        "growth",
        "U + lost",
        "largest CPMD",
    ];
    let mut rows = vec![header.map(str::to_owned).to_vec()];
    for v in verdicts {
        let judged = v.decided_by != NOT_JUDGED;
        let dash = || "-".to_owned();
        rows.push(vec![
            v.policy.clone(),
            match v.schedulable {
                true => "yes",
                false if !judged => "-",
                false => "no",
            }
            .to_owned(),
            v.decided_by.to_owned(),
            if judged { growth(v.growth) } else { dash() },
            v.inflated_utilization.map_or_else(dash, |u| format!("{u:.3}")),
            match v.largest_cpmd {
                Some(m) if m.exact => m.cpmd.rounded(),
                Some(m) => format!(">= {}", m.cpmd.rounded()),
                None if !judged => dash(),
                None => "none".to_owned(),
            },
        ]);
    }
    aligned(out, &rows, 3, 0);
    out.push('\n');
    let legend = "growth: by how much all WCETs may grow until that turns, or have to shrink. U + lost: utilization with \
                  overheads. largest CPMD: the longest cache delay a job, with which it holds.";
    paragraph(out, legend, 0);
    out.push('\n');
}

/// All that there is to say of one policy.
fn details(out: &mut String, verdict: &PolicyVerdict) {
    if !verdict.tests.is_empty() {
        tests(out, verdict);
    }
    if !verdict.tasks.is_empty() {
        bounds(out, verdict);
    }
    if !verdict.clusters.is_empty() {
        picture(out, verdict);
        losses(out, verdict);
    }
}

fn tests(out: &mut String, verdict: &PolicyVerdict) {
    let _ = writeln!(out, "\nWhat each test and packing says of {}:", verdict.policy);
    for (answer, says) in [
        (Answer::Yes, "yes"),
        (Answer::No, "no"),
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
            paragraph(out, &format!("  {says}: {}", named.join("; ")), 6);
        }
    }
}

fn bounds(out: &mut String, verdict: &PolicyVerdict) {
    let _ = writeln!(out, "\nHow late jobs can finish under {}:", verdict.policy);
    let mut rows = vec![
        ["task", "by", "deadline", "done after", "late by"]
            .map(str::to_owned)
            .to_vec(),
    ];
    for t in verdict.tasks.iter().take(MOST_TASKS) {
        rows.push(vec![
            t.name.clone(),
            t.by.to_owned(),
            t.deadline.rounded(),
            format!("{}{}", if t.exact { "" } else { "<= " }, t.response.rounded()),
            t.tardiness.rounded(),
        ]);
    }
    aligned(out, &rows, 2, 2);
    if verdict.tasks.len() > MOST_TASKS {
        let more = verdict.tasks.len() - MOST_TASKS;
        let _ = writeln!(out, "  … and {more} more; `--format json` has all");
    }
}

fn losses(out: &mut String, verdict: &PolicyVerdict) {
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
    paragraph(out, &text, 2);
}

/// One bar a cluster: letters for tasks (`#` for very many), `+` for what overheads add, dots for what is left.
fn picture(out: &mut String, verdict: &PolicyVerdict) {
    let by = verdict
        .heuristic
        .as_ref()
        .map_or(String::new(), |h| format!(", by {h}"));
    let plus = match &verdict.assignment {
        Some(Assignment::Slots(_)) => "overheads and what servers reserve beyond",
        _ if matches!(verdict.policy.as_str(), "pd2" | "ca-edf") => "overheads and rounding to quanta",
        _ => "overheads",
    };
    let title = format!(
        "Who runs where under {}{by} (a letter for each task, + {plus}, . idle):",
        verdict.policy
    );
    out.push('\n');
    paragraph(out, &title, 2);
    let label = |c: &Cluster| format!("P{}", c.processors);
    let (busy, idle): (Vec<&Cluster>, Vec<&Cluster>) =
        verdict.clusters.iter().partition(|c| !c.tasks.is_empty());
    let shown = &busy[..busy.len().min(MOST_CLUSTERS)];
    let width = shown.iter().map(|c| label(c).chars().count()).max().unwrap_or(0);
    for cluster in shown {
        let (load, overhead) = cluster.tasks.iter().fold((0.0, 0.0), |(load, overhead), t| {
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
        paragraph(out, &format!("{}{}", " ".repeat(indent), names(cluster)), indent);
    }
    if busy.len() > shown.len() {
        let more = busy.len() - shown.len();
        let _ = writeln!(out, "  … and {more} more; `--format json` has all");
    }
    if !idle.is_empty() {
        let cpus = idle.iter().flat_map(|c| c.processors.iter()).collect::<CpuSet>();
        let _ = writeln!(out, "  nothing to do: P{cpus}");
    }
}

fn names(cluster: &Cluster) -> String {
    let all = cluster.tasks.len();
    let crowded = all > LETTERS;
    let most = if all > MOST_NAMES {
        MOST_NAMES - 1
    } else {
        MOST_NAMES
    };
    let name = |(t, letter): (&analyze::policies::Placed, char)| match crowded {
        true => t.name.clone(),
        false => format!("{letter}={}", t.name),
    };
    let mut names: Vec<String> = cluster.tasks.iter().zip(letters()).take(most).map(name).collect();
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
