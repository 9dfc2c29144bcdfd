//! How `warmset simulate` shows what came of a run: a table for people, a JSON document for machines.

use crate::console::{Format, print, print_json};
use model::{Duration, Error, Result, Resumption, TaskSet, files};
use serde::Serialize;
use simulate::{Distribution, Ending, Scenario, Summary};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::Path;
use trace::Overhead;

/// What is shown.
pub struct Shown<'a> {
    pub policy: String,
    pub platform: String,
    pub set: &'a TaskSet,
    pub summary: &'a Summary,
    pub distribution: &'a Distribution,
    pub scenario: &'a Scenario,
}

#[derive(Serialize)]
struct Document {
    policy: String,
    platform: String,
    ended_by: &'static str,
    simulated: Duration,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_miss: Option<FirstMiss>,
    misses: u64,
    preemptions: u64,
    migrations: u64,
    tasks: Vec<Task>,
    lost_to_no_task: BTreeMap<&'static str, Duration>,
}

#[derive(Serialize)]
struct FirstMiss {
    task: String,
    /// From 1, as the papers count.
    job: u64,
    deadline: Duration,
}

#[derive(Serialize)]
struct Task {
    name: String,
    soft: bool,
    released: u64,
    completed: u64,
    cut: u64,
    response_max: Duration,
    response_mean: Option<Duration>,
    /// From above, to one part in 64.
    response_percentiles: BTreeMap<&'static str, Duration>,
    tardiness_max: Duration,
    misses: u64,
    preemptions: u64,
    migrations: BTreeMap<String, u64>,
    lost: BTreeMap<&'static str, Duration>,
}

const PERCENTILES: [(&str, f64); 4] = [("p50", 50.0), ("p90", 90.0), ("p99", 99.0), ("p99.9", 99.9)];

impl Shown<'_> {
    /// Prints it, or writes it to a file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn print(&self, format: Format, output: Option<&Path>) -> Result<()> {
        let text = match (format, output) {
            (Format::Table, _) => self.table(),
            (Format::Json, None) => return print_json(&self.document()),
            (Format::Json, Some(_)) => serde_json::to_string_pretty(&self.document())
                .map(|text| text + "\n")
                .map_err(|e| Error::new(format!("the result cannot be written as JSON: {e}")))?,
        };
        match output {
            Some(path) => files::write(path, text),
            None => print(&text),
        }
    }

    fn document(&self) -> Document {
        let s = self.summary;
        let tasks = self.set.ids().map(|id| {
            let t = &s.tasks[id.index()];
            let percentile = |(name, percent): (&'static str, f64)| {
                let ns = self.distribution.percentile(id.index(), percent)?;
                Some((name, Duration::from_nanos(ns).min(t.response_max)))
            };
            Task {
                name: self.set.name(id),
                soft: self.set.details(id).is_some_and(|d| d.soft),
                released: t.released,
                completed: t.completed,
                cut: t.cut,
                response_max: t.response_max,
                response_mean: t.response_mean(),
                response_percentiles: PERCENTILES.into_iter().filter_map(percentile).collect(),
                tardiness_max: t.tardiness_max,
                misses: t.misses,
                preemptions: t.preemptions,
                migrations: s
                    .kinds
                    .iter()
                    .map(Resumption::to_string)
                    .zip(t.migrations.iter().copied())
                    .collect(),
                lost: lost(&t.lost),
            }
        });
        Document {
            policy: self.policy.clone(),
            platform: self.platform.clone(),
            ended_by: match s.ending {
                Ending::Horizon => "horizon",
                Ending::Miss => "miss",
                Ending::Interrupted => "interrupt",
            },
            simulated: Duration::from_nanos(s.end.nanos()),
            first_miss: s.first_miss.map(|miss| FirstMiss {
                task: self.set.name(miss.task),
                job: miss.job + 1,
                deadline: Duration::from_nanos(miss.deadline.nanos()),
            }),
            misses: s.misses(),
            preemptions: s.preemptions(),
            migrations: s.migrations(),
            tasks: tasks.collect(),
            lost_to_no_task: lost(&s.lost),
        }
    }

    fn table(&self) -> String {
        let s = self.summary;
        let mut text = format!("{} on {}: ", self.policy, self.platform);
        // Writing to a string cannot fail.
        let _ = match s.ending {
            Ending::Horizon => writeln!(text, "{} simulated", s.end),
            Ending::Miss => writeln!(text, "stopped at the first miss, after {}", s.end),
            Ending::Interrupted => writeln!(text, "interrupted after {}", s.end),
        };
        let _ = match s.first_miss {
            Some(miss) => writeln!(
                text,
                "{} missed; the first is job {} of {}, due at {}",
                count(s.misses().max(1), "deadline"),
                miss.job + 1,
                self.set.name(miss.task),
                miss.deadline
            ),
            None => writeln!(
                text,
                "no deadline missed{}",
                if self.scenario.stop_at_miss {
                    ": brute force found no reason against it"
                } else {
                    ""
                }
            ),
        };
        let mut columns = vec![
            "task",
            "jobs",
            "response max",
            "mean",
            "p99",
            "tardiness",
            "misses",
            "preempted",
        ]
        .into_iter()
        .map(str::to_owned)
        .collect::<Vec<_>>();
        columns.extend(s.kinds.iter().map(|kind| match kind {
            Resumption::Migration(level) => format!("L{level} migr."),
            _ => "memory migr.".to_owned(),
        }));
        let mut rows = vec![columns];
        for id in self.set.ids() {
            let t = &s.tasks[id.index()];
            let p99 = self.distribution.percentile(id.index(), 99.0);
            let p99 = p99.map(|ns| Duration::from_nanos(ns).min(t.response_max));
            let time = |d: Option<Duration>| d.map_or("-".to_owned(), |d| d.to_string());
            let soft = self.set.details(id).is_some_and(|d| d.soft);
            let mut row = vec![
                self.set.name(id) + if soft { " (soft)" } else { "" },
                t.completed.to_string(),
                time((t.completed > 0).then_some(t.response_max)),
                time(t.response_mean()),
                time(p99),
                t.tardiness_max.to_string(),
                t.misses.to_string(),
                t.preemptions.to_string(),
            ];
            row.extend(t.migrations.iter().map(u64::to_string));
            rows.push(row);
        }
        text.push('\n');
        text.push_str(&aligned(&rows));
        self.lost_table(&mut text);
        text
    }

    /// Who lost how much time to which overhead; nothing if nobody did.
    fn lost_table(&self, text: &mut String) {
        let s = self.summary;
        let any = |overhead: &Overhead| {
            let at = *overhead as usize;
            !s.lost[at].is_zero() || s.tasks.iter().any(|t| !t.lost[at].is_zero())
        };
        let kinds: Vec<Overhead> = Overhead::ALL.into_iter().filter(any).collect();
        if kinds.is_empty() {
            return;
        }
        let mut rows = vec![vec!["time lost".to_owned()]];
        rows[0].extend(kinds.iter().map(|k| k.name().to_owned()));
        let named = self
            .set
            .ids()
            .map(|id| (self.set.name(id), &s.tasks[id.index()].lost));
        for (name, lost) in named.chain([("no task".to_owned(), &s.lost)]) {
            let mut row = vec![name];
            row.extend(kinds.iter().map(|k| lost[*k as usize].to_string()));
            rows.push(row);
        }
        text.push('\n');
        text.push_str(&aligned(&rows));
    }
}

fn lost(of: &[Duration]) -> BTreeMap<&'static str, Duration> {
    Overhead::ALL
        .iter()
        .zip(of)
        .filter(|(_, d)| !d.is_zero())
        .map(|(kind, d)| (kind.name(), *d))
        .collect()
}

fn count(n: u64, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

/// The first column to the left, the others to the right.
fn aligned(rows: &[Vec<String>]) -> String {
    let columns = rows.first().map_or(0, Vec::len);
    let width = |column: usize| rows.iter().map(|r| r[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut text = String::new();
    for row in rows {
        let mut line = format!("{:<1$}", row[0], widths[0]);
        for (cell, width) in row.iter().zip(&widths).skip(1) {
            // Writing to a string cannot fail.
            let _ = write!(line, "  {cell:>width$}");
        }
        text.push_str(line.trim_end());
        text.push('\n');
    }
    text
}
