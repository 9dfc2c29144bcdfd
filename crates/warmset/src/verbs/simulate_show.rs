//! A simulation for people: how it ended, and what `warmset trace stats` says of a trace of it.

use app::simulate::{Profiled, Simulated};
use model::Duration;
use model::table::{Look, Table};
use simulate::Ending;
use std::fmt::Write;

/// The table. `brute_force`: the simulation was to stop at the first miss.
pub fn table(s: &Simulated, brute_force: bool, look: Look) -> String {
    let mut text = format!("{} on {}: ", s.policy, s.platform);
    // Writing to a string cannot fail.
    let _ = match s.ending {
        Ending::Horizon => writeln!(text, "{} simulated", s.end),
        Ending::Miss => writeln!(text, "stopped at the first miss, after {}", s.end),
        Ending::Interrupted => writeln!(text, "interrupted after {}", s.end),
    };
    let _ = match &s.first_miss {
        Some(miss) => writeln!(
            text,
            "the first deadline missed is that of job {} of {}, at {}",
            miss.job, miss.task, miss.deadline
        ),
        None if brute_force => {
            writeln!(
                text,
                "no deadline missed: brute force found no reason against it"
            )
        }
        None => writeln!(text, "no deadline missed"),
    };
    text += &s.added_up.text(look);
    text += &caches(s, look);
    text += &profiled(&s.profiled, look);
    text
}

/// What the caches did, where they were simulated.
fn caches(s: &Simulated, look: Look) -> String {
    if s.caches.is_empty() {
        return String::new();
    }
    let mut table = Table::new(1, 0);
    table.row([
        "in the caches",
        "longest job",
        "accesses",
        "references",
        "misses",
        "missed",
        "worst job",
    ]);
    let percent = |rate: Option<f64>| match rate {
        Some(rate) => format!("{:.1} %", 100.0 * rate),
        None => "–".to_owned(),
    };
    for task in &s.caches {
        table.row([
            task.task.clone(),
            Duration::from_nanos(task.max_ns).rounded().to_string(),
            task.accesses.to_string(),
            task.references.to_string(),
            task.misses.to_string(),
            percent(task.miss_rate),
            percent(task.worst_miss_rate),
        ]);
    }
    format!("\n{}", table.text(look))
}

/// What the policy found of working sets, where it was to find them.
pub(super) fn profiled(all: &[Profiled], look: Look) -> String {
    if all.is_empty() {
        return String::new();
    }
    let mut table = Table::new(1, 0);
    table.row([
        "working set of",
        "estimate",
        "converged",
        "jobs",
        "discarded",
    ]);
    for found in all {
        table.row([
            found.tasks.join(", "),
            found.wss.to_string(),
            if found.converged { "yes" } else { "no" }.to_owned(),
            found.profiled.to_string(),
            found.discarded.to_string(),
        ]);
    }
    format!("\n{}", table.text(look))
}
