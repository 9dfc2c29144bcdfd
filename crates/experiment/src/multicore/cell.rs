//! One run of a task set: so many jobs of each task, and what they took.
//!
//! As in 004, each task does a number of jobs and then nothing more, and the run is over when all
//! have done theirs. What a job took is the processor time of its thread, as the trace has it.

use execute::colored::Provider;
use execute::{Ending, Performer, Settings};
use model::watch::Watch;
use model::{Duration, Error, Instant, Result, TaskSet};
use policy::AnyPlan;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use trace::{Event, EventKind, Sink};
use workload::Units as _;
use workload::walk::Walk;

/// What one task did.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize, Deserialize)]
pub struct Task {
    /// Jobs that were done.
    pub jobs: u64,
    /// The longest one.
    #[serde(rename = "worst_ns", with = "model::time::ns")]
    pub worst: Duration,
    /// All together.
    #[serde(rename = "sum_ns", with = "model::time::ns")]
    pub sum: Duration,
    /// Jobs that missed their deadlines.
    #[serde(rename = "misses")]
    pub missed: u64,
}

impl Task {
    /// What a job took on average, in nanoseconds; 0 where none was done.
    pub fn average_ns(&self) -> f64 {
        self.sum.nanos() as f64 / self.jobs.max(1) as f64
    }
}

/// What came of a run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Seen {
    /// Task by task.
    pub tasks: Vec<Task>,
    /// When the last of the jobs was done (004, Fig. 12).
    #[serde(rename = "total_ns", with = "model::time::ns")]
    pub total: Duration,
    /// Were all of them done by then? Otherwise the run was given up, as tasks fell behind further
    /// and further.
    pub finished: bool,
}

/// What the tasks do.
pub struct Work<'a> {
    /// Task by task.
    pub walks: Vec<Walk>,
    /// Accesses of a job, likewise.
    pub accesses: &'a [u64],
    /// Jobs of each task.
    pub jobs: u64,
}

/// A run that takes so many times as long as it should is given up.
const PATIENCE: u64 = 4;

/// So many jobs, and then none that does anything.
struct Limited {
    walk: Walk,
    accesses: u64,
    jobs: u64,
    /// Tasks that have not done theirs.
    left: Arc<AtomicUsize>,
}

impl workload::Work for Limited {
    fn job(&mut self, number: u64, stop: &AtomicBool) {
        if number < self.jobs {
            self.walk.units(self.accesses, stop);
        } else if number == self.jobs {
            // Told with the next job, so that the end of the last one is in the trace by then.
            self.left.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// Stops the run when all tasks have done their jobs.
struct Until<'a> {
    watch: &'a dyn Watch,
    left: Arc<AtomicUsize>,
}

impl Watch for Until<'_> {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, text: &str) {
        self.watch.note(text);
    }
    fn stopped(&self) -> bool {
        self.left.load(Ordering::Relaxed) == 0 || self.watch.stopped()
    }
}

/// Counts what jobs took.
struct Tally {
    jobs: u64,
    tasks: Vec<Task>,
    last: Instant,
}

impl Sink for Tally {
    fn record(&mut self, event: Event) {
        let Some(task) = self.tasks.get_mut(event.task.index()) else {
            return;
        };
        if event.job >= self.jobs {
            return;
        }
        match event.kind {
            EventKind::Completion => {
                let took = Duration::from_nanos(event.argument);
                task.jobs += 1;
                task.worst = task.worst.max(took);
                task.sum = Duration::from_nanos(task.sum.nanos() + took.nanos());
                self.last = self.last.max(event.time);
            }
            EventKind::DeadlineMiss => task.missed += 1,
            _ => {}
        }
    }
}

/// Runs a set.
///
/// # Errors
/// As [`execute::run`]; events were lost; the user stopped it.
pub fn run(
    plan: AnyPlan,
    set: &TaskSet,
    work: Work<'_>,
    provider: Arc<dyn Provider>,
    early: Duration,
    watch: &dyn Watch,
) -> Result<Seen> {
    let jobs = work.jobs;
    let left = Arc::new(AtomicUsize::new(set.len()));
    let works: Vec<Performer> = work
        .walks
        .into_iter()
        .zip(work.accesses)
        .map(|(walk, accesses)| {
            let work: Box<dyn workload::Work> = Box::new(Limited {
                walk,
                accesses: *accesses,
                jobs,
                left: Arc::clone(&left),
            });
            work.into()
        })
        .collect();
    let longest = set
        .timings()
        .iter()
        .map(|t| t.period.nanos())
        .max()
        .unwrap_or(0);
    let settings = Settings {
        // One more for the job that tells that all are done.
        horizon: Duration::from_nanos(longest * (jobs + 1) * PATIENCE),
        provider: Some(provider),
        early,
        ..Settings::default()
    };
    let until = Until {
        watch,
        left: Arc::clone(&left),
    };
    let mut tally = Tally {
        jobs,
        tasks: vec![Task::default(); set.len()],
        last: Instant::ZERO,
    };
    let outcome = execute::run(plan, set, works, &settings, &until, &mut tally, |_| {})?;
    let all = tally.tasks.iter().all(|t| t.jobs == jobs);
    if outcome.ending == Ending::Interrupted && watch.stopped() && !all {
        return Err(Error::new("stopped before the run was done"));
    }
    if outcome.lost > 0 {
        return Err(
            Error::new(format!("{} events of a run were lost", outcome.lost))
                .remedy("run it again when the machine is idle"),
        );
    }
    Ok(Seen {
        tasks: tally.tasks,
        total: tally.last.since(Instant::ZERO),
        finished: all,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, CpuId, Pattern, TaskId};
    use workload::Work as _;

    #[test]
    fn jobs_are_counted_and_those_beyond_are_not() {
        let at = |ms: u64| Instant::from_nanos(ms * 1_000_000);
        let ms = Duration::from_millis;
        let mut tally = Tally {
            jobs: 2,
            tasks: vec![Task::default(); 2],
            last: Instant::ZERO,
        };
        let (cpu, a, b) = (CpuId(0), TaskId(0), TaskId(1));
        for event in [
            Event::completion(at(3), cpu, a, 0, ms(3)),
            Event::deadline_miss(at(5), Some(cpu), a, 1, at(5)),
            Event::completion(at(9), cpu, a, 1, ms(5)),
            Event::completion(at(7), cpu, b, 0, ms(1)),
            Event::completion(at(90), cpu, a, 2, ms(50)),
            Event::deadline_miss(at(95), Some(cpu), a, 3, at(95)),
            Event::idle(at(99), cpu),
        ] {
            tally.record(event);
        }
        let first = tally.tasks[0];
        assert_eq!(
            (first.jobs, first.worst, first.sum, first.missed),
            (2, ms(5), ms(8), 1)
        );
        assert_eq!(first.average_ns(), 4e6);
        assert_eq!(tally.tasks[1].jobs, 1);
        assert_eq!(tally.last, at(9));
    }

    #[test]
    fn a_task_tells_that_it_is_done_with_the_job_after_its_last() {
        let left = Arc::new(AtomicUsize::new(2));
        let mut work = Limited {
            walk: Walk::new(Bytes::from_kib(4), 0.2, Pattern::Random, 1),
            accesses: 100,
            jobs: 3,
            left: Arc::clone(&left),
        };
        let stop = AtomicBool::new(false);
        let mut seen = Vec::new();
        for number in 0..6 {
            work.job(number, &stop);
            seen.push(left.load(Ordering::Relaxed));
        }
        assert_eq!(seen, [2, 2, 2, 1, 1, 1]);
    }
}
