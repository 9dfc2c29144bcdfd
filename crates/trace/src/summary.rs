//! A schedule added up: plain data for JSON, and as tables for people. The same for a simulation
//! that counted as it went and for a trace that is read.

use crate::thrashing::Thrashed;
use model::Overhead;
use model::table::{Cell, Look, Table, Tone};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt;
use std::fmt::Write as _;

/// Mean, percentiles and maximum, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Spread {
    /// Mean, rounded down.
    pub mean_ns: u64,
    /// Median.
    #[serde(rename = "median_ns")]
    pub p50_ns: u64,
    /// 90th percentile.
    pub p90_ns: u64,
    /// 99th percentile.
    pub p99_ns: u64,
    /// 99.9th percentile.
    pub p999_ns: u64,
    /// Maximum.
    pub max_ns: u64,
}

/// A task, added up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct TaskSummary {
    /// Its name.
    pub task: String,
    /// May it miss deadlines?
    pub soft: bool,
    /// Jobs released.
    pub released: u64,
    /// Jobs finished.
    pub jobs: u64,
    /// Jobs released and not finished.
    pub unfinished: u64,
    /// Deadlines missed.
    pub misses: u64,
    /// Jobs that were cut short.
    pub cut: u64,
    /// Response times of finished jobs.
    pub response: Spread,
    /// Tardiness of finished jobs.
    pub tardiness: Spread,
    /// How often a job was taken off its processor unfinished, but for moves to another one in the
    /// same instant.
    pub preemptions: u64,
    /// How often a job went on elsewhere than it last ran, by what of its cache it kept: every kind
    /// that the platform has.
    pub migrations: BTreeMap<String, u64>,
    /// Time lost to each overhead on behalf of the task.
    pub lost_ns: BTreeMap<&'static str, u64>,
    /// What only a trace tells.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<TaskRecord>,
}

/// What only a trace tells of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct TaskRecord {
    /// Time executed, without overheads.
    pub executed_ns: u64,
    /// How often a budget, or that of a slice, was used up.
    pub budget_exhausted: u64,
}

/// A processor, added up. What is left to the horizon it was idle.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ProcessorSummary {
    /// Its number.
    pub cpu: u32,
    /// Time that jobs executed on it.
    pub executed_ns: u64,
    /// Time that overheads took on it.
    pub overheads_ns: u64,
}

/// An overhead, as it was measured or simulated, one by one.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct OverheadSummary {
    /// Its name.
    pub overhead: &'static str,
    /// How often it was seen from beginning to end.
    pub samples: u64,
    /// How often the machine stood still meanwhile: these are not among the samples.
    pub stood_still: u64,
    /// How long it took, without other overheads within it.
    pub took: Spread,
}

/// A schedule, added up.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Summary {
    /// The time of the last event.
    pub horizon_ns: u64,
    /// Jobs finished.
    pub jobs: u64,
    /// Deadlines missed.
    pub misses: u64,
    /// Preemptions of all tasks.
    pub preemptions: u64,
    /// Migrations of all tasks.
    pub migrations: u64,
    /// Time lost to overheads on behalf of no task.
    pub lost_to_no_task_ns: BTreeMap<&'static str, u64>,
    /// How long the shared cache thrashed, where it and all working sets are known.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub thrashed: Option<Thrashed>,
    /// Task by task, in the order of the set.
    pub tasks: Vec<TaskSummary>,
    /// What only a trace tells.
    #[serde(flatten, skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Recorded>,
}

/// What only a trace tells of a schedule.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Recorded {
    /// How often the policy changed.
    pub policy_switches: u64,
    /// Events that were lost: all numbers are too low then.
    pub lost_events: u64,
    /// Events that no schedule can have: the trace is wrong, `warmset trace check` says where.
    pub senseless_events: u64,
    /// Processor by processor.
    pub processors: Vec<ProcessorSummary>,
    /// Overhead by overhead, those that were seen.
    pub overheads: Vec<OverheadSummary>,
}

/// The overheads that took any time, by name.
pub fn by_overhead(lost: impl IntoIterator<Item = u64>) -> BTreeMap<&'static str, u64> {
    let named = Overhead::ALL.iter().map(|o| o.name()).zip(lost);
    named.filter(|(_, ns)| *ns > 0).collect()
}

/// A time for people: three significant digits.
fn short(ns: u64) -> String {
    let (value, unit) = match ns {
        0 => return "0".to_owned(),
        _ if ns >= 1_000_000_000 => (ns as f64 / 1e9, "s"),
        _ if ns >= 1_000_000 => (ns as f64 / 1e6, "ms"),
        _ if ns >= 1_000 => (ns as f64 / 1e3, "us"),
        _ => (ns as f64, "ns"),
    };
    let decimals = if value >= 100.0 || unit == "ns" {
        0
    } else if value >= 10.0 {
        1
    } else {
        2
    };
    let text = format!("{value:.decimals$}");
    let text = if decimals > 0 {
        text.trim_end_matches('0').trim_end_matches('.')
    } else {
        &text
    };
    format!("{text}{unit}")
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

impl Summary {
    fn task_table(&self, look: Look) -> String {
        let mut kinds: Vec<&str> = self
            .tasks
            .iter()
            .flat_map(|t| t.migrations.keys().map(String::as_str))
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let head = [
            "task",
            "jobs",
            "missed",
            "mean",
            "median",
            "99 %",
            "max response",
            "max tardiness",
            "preempted",
        ];
        let mut table = Table::new(1, 0);
        table.row(head.iter().chain(&kinds).copied());
        for t in &self.tasks {
            let time = |ns| {
                if t.jobs == 0 {
                    "-".to_owned()
                } else {
                    short(ns)
                }
            };
            let missed = match t.misses {
                0 => Tone::Plain,
                _ => Tone::Bad,
            };
            let mut row: Vec<Cell> = vec![
                format!("{}{}", t.task, if t.soft { " (soft)" } else { "" }).into(),
                match t.unfinished {
                    0 => t.jobs.to_string().into(),
                    more => format!("{}+{more}", t.jobs).into(),
                },
                Cell {
                    text: t.misses.to_string(),
                    tone: missed,
                },
                time(t.response.mean_ns).into(),
                time(t.response.p50_ns).into(),
                time(t.response.p99_ns).into(),
                time(t.response.max_ns).into(),
                time(t.tardiness.max_ns).into(),
                t.preemptions.to_string().into(),
            ];
            row.extend(kinds.iter().map(|k| {
                t.migrations
                    .get(*k)
                    .copied()
                    .unwrap_or(0)
                    .to_string()
                    .into()
            }));
            table.row(row);
        }
        table.text(look)
    }

    /// Who lost how much time to which overhead; nothing if nobody did.
    fn lost_table(&self, look: Look) -> Option<String> {
        let lost = || {
            let tasks = self.tasks.iter().map(|t| (t.task.as_str(), &t.lost_ns));
            tasks.chain([("no task", &self.lost_to_no_task_ns)])
        };
        let overheads: Vec<&str> = Overhead::ALL
            .iter()
            .map(|o| o.name())
            .filter(|o| lost().any(|(_, lost)| lost.contains_key(o)))
            .collect();
        if overheads.is_empty() {
            return None;
        }
        let mut table = Table::new(1, 0);
        table.row(["time lost"].iter().chain(&overheads).copied());
        for (name, lost) in lost() {
            let mut row = vec![name.to_owned()];
            let of = |o: &&str| short(lost.get(*o).copied().unwrap_or(0));
            row.extend(overheads.iter().map(of));
            table.row(row);
        }
        Some(table.text(look))
    }

    fn processor_table(&self, processors: &[ProcessorSummary], look: Look) -> String {
        let part = |ns: u64| {
            let percent = 100.0 * ns as f64 / self.horizon_ns.max(1) as f64;
            format!("{percent:.1} %")
        };
        let mut table = Table::new(1, 0);
        table.row(["processor", "executed", "overheads", "idle"]);
        for p in processors {
            let idle = self
                .horizon_ns
                .saturating_sub(p.executed_ns)
                .saturating_sub(p.overheads_ns);
            table.row([
                format!("P{}", p.cpu),
                part(p.executed_ns),
                part(p.overheads_ns),
                part(idle),
            ]);
        }
        table.text(look)
    }

    /// How long each overhead took; nothing if none was seen.
    fn overhead_table(overheads: &[OverheadSummary], look: Look) -> Option<String> {
        if overheads.is_empty() {
            return None;
        }
        let has_stood_still = overheads.iter().any(|o| o.stood_still > 0);
        let mut table = Table::new(1, 0);
        let head = ["overhead", "times", "mean", "median", "99 %", "max"];
        let discarded = has_stood_still.then_some("discarded: stood still");
        table.row(head.into_iter().chain(discarded));
        for o in overheads {
            let mut row = vec![o.overhead.to_owned(), o.samples.to_string()];
            let times = [o.took.mean_ns, o.took.p50_ns, o.took.p99_ns, o.took.max_ns];
            row.extend(times.map(short));
            row.extend(has_stood_still.then(|| o.stood_still.to_string()));
            table.row(row);
        }
        Some(table.text(look))
    }

    /// The sums as text for people.
    pub fn text(&self, look: Look) -> String {
        let mut text = format!(
            "{} in {}: {} missed, {}, {}\n",
            count(self.jobs, "job"),
            short(self.horizon_ns),
            count(self.misses, "deadline"),
            count(self.preemptions, "preemption"),
            count(self.migrations, "migration")
        );
        if let Some(thrashed) = &self.thrashed {
            text += &thrashed.text(self.horizon_ns);
        }
        if let Some(recorded) = &self.recorded {
            // Writing to a string cannot fail.
            if recorded.lost_events > 0 {
                let _ = writeln!(
                    text,
                    "{} events were lost: every number is too low",
                    recorded.lost_events
                );
            }
            if recorded.senseless_events > 0 {
                let _ = writeln!(
                    text,
                    "{} events make no sense: see `warmset trace check`",
                    recorded.senseless_events
                );
            }
        }
        text += "\n";
        text += &self.task_table(look);
        if let Some(table) = self.lost_table(look) {
            text += "\n";
            text += &table;
        }
        if let Some(recorded) = &self.recorded {
            text += "\n";
            text += &self.processor_table(&recorded.processors, look);
            if let Some(table) = Self::overhead_table(&recorded.overheads, look) {
                text += "\n";
                text += &table;
            }
        }
        text
    }
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(Look::PLAIN))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_three_digits_for_people() {
        let texts = [0, 7, 1_500, 33_000_000, 1_234_567, 60_000_000_000].map(short);
        assert_eq!(texts, ["0", "7ns", "1.5us", "33ms", "1.23ms", "60s"]);
    }
}
