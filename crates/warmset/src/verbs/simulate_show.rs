//! How `warmset simulate` shows what came of a run: a table for people, a JSON document for machines. Both are what
//! `warmset trace stats` says of a trace of the run, with how it ended before it.

use crate::options::Answered;
use model::table::Look;
use model::{Result, TaskSet};
use serde::Serialize;
use simulate::{Ending, Scenario, Summary};
use std::fmt::Write;

/// What is shown.
pub struct Shown<'a> {
    pub policy: String,
    pub platform: String,
    pub set: &'a TaskSet,
    pub summary: &'a Summary,
    pub added_up: trace::Summary,
    pub scenario: &'a Scenario,
}

#[derive(Serialize)]
struct Document<'a> {
    policy: &'a str,
    platform: &'a str,
    ended_by: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    first_miss: Option<FirstMiss>,
    #[serde(flatten)]
    added_up: &'a trace::Summary,
}

#[derive(Serialize)]
struct FirstMiss {
    task: String,
    /// From 1, as the papers count.
    job: u64,
    deadline_ns: u64,
}

impl Shown<'_> {
    /// Prints it, or writes it to a file.
    ///
    /// # Errors
    /// The output cannot be written.
    pub fn give(&self, answered: &Answered) -> Result<()> {
        answered.give(|look| self.table(look), &self.document())
    }

    fn document(&self) -> Document<'_> {
        Document {
            policy: &self.policy,
            platform: &self.platform,
            ended_by: match self.summary.ending {
                Ending::Horizon => "horizon",
                Ending::Miss => "miss",
                Ending::Interrupted => "interrupt",
            },
            first_miss: self.summary.first_miss.map(|miss| FirstMiss {
                task: self.set.name(miss.task),
                job: miss.job + 1,
                deadline_ns: miss.deadline.nanos(),
            }),
            added_up: &self.added_up,
        }
    }

    fn table(&self, look: Look) -> String {
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
                "the first deadline missed is that of job {} of {}, at {}",
                miss.job + 1,
                self.set.name(miss.task),
                miss.deadline
            ),
            None if self.scenario.stop_at_miss => {
                writeln!(text, "no deadline missed: brute force found no reason against it")
            }
            None => writeln!(text, "no deadline missed"),
        };
        text += &self.added_up.text(look);
        text
    }
}
