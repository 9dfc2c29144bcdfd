//! A judgment for people: a table of policies, and the assignment of the first one as a picture.

use analyze::Guarantee;
use analyze::policies::{Cluster, Judgment, NOT_JUDGED, PolicyVerdict};
use model::{Assignment, CpuSet, Profile};
use std::fmt::Write;

/// The most clusters and tasks of a cluster that are drawn; JSON has all.
const MOST_CLUSTERS: usize = 32;
const MOST_NAMES: usize = 8;
/// Tasks of a cluster beyond which letters tell nothing any more.
const LETTERS: usize = 26;
/// Characters of a processor's bar.
const BAR: usize = 40;

/// The judgment of the set in `file` as text.
pub fn text(file: &str, judgment: &Judgment, profile: Option<&Profile>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "{file}: {} with utilization {:.3}, on {} ({})",
        count(judgment.tasks, "task"),
        judgment.utilization,
        judgment.platform,
        count(judgment.processors, "processor"),
    );
    let _ = writeln!(
        out,
        "asked: {}",
        match judgment.guarantee {
            Guarantee::Hard => "hard real time, no deadline may be missed",
            Guarantee::Soft => "soft real time, tardiness must be bounded",
        }
    );
    let _ = writeln!(out, "charged: {}", judgment.costs);
    if let Some(profile) = profile.filter(|p| p.platform != judgment.platform) {
        let _ = writeln!(
            out,
            "note: the delays were measured on {}, not on {}",
            profile.platform, judgment.platform
        );
    }
    let _ = writeln!(out, "\n{}.\n", judgment.advice);
    table(&mut out, &judgment.policies);
    for verdict in &judgment.policies {
        let _ = writeln!(out, "  {}: {}", verdict.policy, verdict.reason);
        for note in &verdict.notes {
            let _ = writeln!(out, "    {note}");
        }
    }
    if let Some(best) = judgment.policies.iter().find(|v| !v.clusters.is_empty()) {
        picture(&mut out, best);
    }
    out
}

fn count(n: usize, noun: &str) -> String {
    if n == 1 {
        format!("1 {noun}")
    } else {
        format!("{n} {noun}s")
    }
}

fn table(out: &mut String, verdicts: &[PolicyVerdict]) {
    let mut rows = vec![
        [
            "policy",
            "holds",
            "decided by",
            "U",
            "U with delay",
            "charged",
            "largest CPMD",
        ]
        .map(str::to_owned),
    ];
    for v in verdicts {
        let by = match &v.heuristic {
            Some(heuristic) if v.schedulable => format!("{}, {heuristic}", v.decided_by),
            _ => v.decided_by.to_owned(),
        };
        rows.push([
            v.policy.clone(),
            match v.schedulable {
                true => "yes",
                false if v.decided_by == NOT_JUDGED => "-",
                false => "no",
            }
            .to_owned(),
            by,
            format!("{:.3}", v.utilization),
            format!("{:.3}", v.inflated_utilization),
            format!(
                "{}{}",
                v.charged.rounded(),
                if v.notes.is_empty() { "" } else { " (!)" }
            ),
            match v.largest_cpmd {
                Some(m) if m.exact => m.cpmd.rounded(),
                Some(m) => format!("at least {}", m.cpmd.rounded()),
                None if v.decided_by == NOT_JUDGED => "-".to_owned(),
                None => "fails without".to_owned(),
            },
        ]);
    }
    let widths: Vec<usize> = (0..rows[0].len())
        .map(|c| rows.iter().map(|r| r[c].chars().count()).max().unwrap_or(0))
        .collect();
    for row in &rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(&widths).enumerate() {
            // Words to the left, numbers to the right.
            let _ = if at < 3 {
                write!(line, "{cell:<width$}  ")
            } else {
                write!(line, "{cell:>width$}  ")
            };
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
    out.push('\n');
}

/// One bar a cluster: letters for tasks (`#` for very many), `+` for what cache delay adds, dots for what is left.
fn picture(out: &mut String, verdict: &PolicyVerdict) {
    let _ = writeln!(
        out,
        "\nWho runs where under {}{} (a letter for each task, + {}, . idle):",
        verdict.policy,
        match &verdict.heuristic {
            Some(heuristic) => format!(", by {heuristic}"),
            None => String::new(),
        },
        match (verdict.decided_by, &verdict.assignment) {
            ("PD2", _) => "cache delay and rounding to quanta",
            (_, Some(Assignment::Slots(_))) => "cache delay and what servers reserve beyond",
            _ => "cache delay",
        }
    );
    let label = |c: &Cluster| format!("P{}", c.processors);
    let (busy, idle): (Vec<&Cluster>, Vec<&Cluster>) =
        verdict.clusters.iter().partition(|c| !c.tasks.is_empty());
    let shown = &busy[..busy.len().min(MOST_CLUSTERS)];
    let width = shown.iter().map(|c| label(c).chars().count()).max().unwrap_or(0);
    for cluster in shown {
        let (load, overhead) = cluster.tasks.iter().fold((0.0, 0.0), |(load, overhead), t| {
            (load + t.utilization, overhead + t.overhead)
        });
        let _ = write!(
            out,
            "  {:<width$} [{}] {load:.3} + {overhead:.3} of {}",
            label(cluster),
            bar(cluster),
            cluster.processors.len(),
        );
        let all = cluster.tasks.len();
        let crowded = all > LETTERS;
        let mut names: Vec<String> = cluster
            .tasks
            .iter()
            .zip(letters())
            .take(if all > MOST_NAMES {
                MOST_NAMES - 1
            } else {
                MOST_NAMES
            })
            .map(|(t, letter)| {
                if crowded {
                    t.name.clone()
                } else {
                    format!("{letter}={}", t.name)
                }
            })
            .collect();
        if all > names.len() {
            names.push(format!("and {} more", all - names.len()));
        }
        let _ = writeln!(
            out,
            "{}{}",
            if names.is_empty() { "" } else { "  " },
            names.join(" ")
        );
    }
    if busy.len() > shown.len() {
        let _ = writeln!(
            out,
            "  … and {} more; `--format json` has all",
            busy.len() - shown.len()
        );
    }
    if !idle.is_empty() {
        let cpus = idle.iter().flat_map(|c| c.processors.iter()).collect::<CpuSet>();
        let _ = writeln!(out, "  nothing to do: P{cpus}");
    }
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
