//! A task set written as a configuration of rt-app.

use crate::error::{Error, Result};
use crate::imported::left_out;
use crate::task::TaskSet;
use crate::time::Duration;
use serde::{Serialize, Serializer};
use serde_json::{Value, json};

/// Where lines begin.
pub(super) struct Places<'t> {
    text: &'t str,
    lines: Vec<usize>,
}

impl<'t> Places<'t> {
    pub(super) fn of(text: &'t str) -> Self {
        let ends = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n');
        let lines = std::iter::once(0)
            .chain(ends.map(|(at, _)| at + 1))
            .collect();
        Places { text, lines }
    }

    /// Line and column of a byte, as people count.
    pub(super) fn name(&self, at: usize) -> String {
        let line = self.lines.partition_point(|begin| *begin <= at);
        let begin = self.lines[line - 1];
        let column = self.text[begin..at].chars().count() + 1;
        format!("line {line}, column {column}")
    }
}

/// Writes a file for rt-app: each task a thread of `SCHED_DEADLINE`, which alone has a place for
/// deadlines, or of `SCHED_FIFO` where it has a priority.
///
/// Its budget is the WCET, rounded up to microseconds, of which a job runs for nine tenths:
/// rt-app's calibration is about so exact, and the kernel makes a job wait for the next period when
/// its budget is used up. Releases do not shift when a job is late (an absolute timer of its own
/// for each). What has no place there (working sets, groups, workloads) is named in the notes.
///
/// # Errors
/// A period, deadline or phase that is no whole number of microseconds.
pub fn to_rt_app(set: &TaskSet, duration: Duration) -> Result<(String, Vec<String>)> {
    let (mut threads, mut notes) = (Vec::new(), Vec::new());
    for id in set.ids() {
        let (timing, name) = (set.timings()[id.index()], set.name(id));
        let whole = |what: &str, time: Duration| match time.nanos() % 1000 {
            0 => Ok(time.nanos() / 1000),
            _ => Err(Error::new(format!(
                "its {what} {time} is no whole number of microseconds"
            ))
            .at(format!("task {name}"))
            .remedy("rt-app knows no shorter time: round it")),
        };
        let wcet = timing.wcet.nanos().div_ceil(1000);
        let mut thread = json!({
            "policy": "SCHED_DEADLINE",
            "dl-runtime": wcet,
            "dl-period": whole("period", timing.period)?,
            "dl-deadline": whole("deadline", timing.deadline)?,
            "loop": -1,
            "run": (u128::from(wcet) * 9).div_ceil(10) as u64,
            "timer": { "ref": "unique", "period": whole("period", timing.period)?, "mode": "absolute" },
        });
        let details = set.details(id);
        let priority = details.and_then(|d| d.priority);
        let cpus = details.and_then(|d| d.cpus.as_ref());
        match priority {
            Some(priority @ 1..=99) => {
                thread["policy"] = "SCHED_FIFO".into();
                thread["priority"] = priority.into();
                if timing.deadline != timing.period {
                    notes.push(format!(
                        "task {name}: SCHED_FIFO knows no deadline; `dl-deadline` stands there for readers of the file"
                    ));
                }
            }
            Some(priority) => notes.push(format!(
                "task {name}: its priority {priority} is left out: those of SCHED_FIFO are 1 to 99"
            )),
            None => {}
        }
        if let Some(cpus) = cpus {
            thread["cpus"] = cpus.iter().map(|c| c.0).collect::<Vec<u32>>().into();
            if thread["policy"] == "SCHED_DEADLINE" {
                notes.push(format!(
                    "task {name}: the kernel refuses SCHED_DEADLINE to threads that are kept to some processors; give it a priority"
                ));
            }
        }
        if priority.is_none() && timing.deadline > timing.period {
            notes.push(format!(
                "task {name}: SCHED_DEADLINE refuses a deadline after the period; rt-app will say so"
            ));
        }
        if let Some(details) = set.details(id) {
            if !details.phase.is_zero() {
                thread["delay"] = whole("phase", details.phase)?.into();
            }
            let note = left_out(details, "rt-app", &["priority", "cpus"]);
            notes.extend(note.map(|note| format!("{note}; it runs a loop of rt-app's own")));
        }
        threads.push((name, thread));
    }
    if !set.best_effort().is_empty() {
        notes.push("best-effort work is left out: it has no times".to_owned());
    }
    let file = File {
        global: json!({
            "duration": duration.nanos().div_ceil(1_000_000_000),
            "calibration": "CPU0",
            "default_policy": "SCHED_OTHER",
            "log_basename": "rt-app",
        }),
        tasks: InOrder(threads),
    };
    let text = serde_json::to_string_pretty(&file)
        .map_err(|e| Error::new(format!("the set cannot be written as JSON: {e}")))?;
    Ok((crate::document::plain(&text) + "\n", notes))
}

/// A file as it is written.
#[derive(Serialize)]
struct File {
    global: Value,
    tasks: InOrder,
}

/// An object whose keys stay in their order: tasks keep their places, by which ties are broken.
struct InOrder(Vec<(String, Value)>);

impl Serialize for InOrder {
    fn serialize<S: Serializer>(&self, serializer: S) -> std::result::Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(key, value)| (key, value)))
    }
}
