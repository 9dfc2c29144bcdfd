//! Periodic tasks with colored working sets under G-EDF and P-EDF, for real (004 §IV, Figs. 10 to
//! 12).
//!
//! [`sets`] are the paper's task sets, [`cell`] is one of them under one scheduler in one scenario,
//! [`judge`] makes scaling factors, misses and total times of them. A [`Group`] is what belongs
//! together: one set with one size of working sets, in all scenarios. It is measured in one go, and
//! is what an interrupted experiment goes on after.
//!
//! There are as many super colors as tasks, the best-effort one among them, one of memory without
//! color and one of the dispatchers.
//!
//! A job has as many accesses in every scenario: as many as last for a part of its WCET alone in
//! colors of its own.

pub mod cell;
pub mod judge;
pub mod sets;

use crate::multicore::sets::{Drawn, Scheduler};
use execute::colored::Provider;
use model::watch::Watch;
use model::{Bytes, Duration, Error, Pattern, Result, TaskId, TaskSet};
use partition::plan::{SUPERS_BESIDES, Scheme};
use policy::AnyPlan;
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use workload::walk::{Store, Walk};

/// Where the tasks' memory comes from (004 §IV-B).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Scenario {
    /// Each task has a super color of its own, dispatchers have another one.
    S1,
    /// Each task has a super color of its own, dispatchers have any.
    S2,
    /// All tasks have one super color, dispatchers have another one.
    S3,
    /// S1 a second time: what differs from the first is not due to colors.
    Again,
}

impl Scenario {
    /// All, in the order in which they are run and shown.
    pub const ALL: [Scenario; 4] = [Scenario::S1, Scenario::S2, Scenario::S3, Scenario::Again];

    /// How colors are given out.
    pub fn scheme(self) -> Scheme {
        match self {
            Scenario::S1 | Scenario::Again => Scheme::S1,
            Scenario::S2 => Scheme::S2,
            Scenario::S3 => Scheme::S3,
        }
    }

    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            Scenario::S1 => "S1",
            Scenario::S2 => "S2",
            Scenario::S3 => "S3",
            Scenario::Again => "S1 again",
        }
    }
}

/// Are sizes of working sets those of the paper?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sizes {
    /// To the byte.
    Paper,
    /// As large a part of what a processor has of a super color as in the paper.
    Scaled,
}

impl Sizes {
    /// Both.
    pub const ALL: [Sizes; 2] = [Sizes::Paper, Sizes::Scaled];
}

/// The working set sizes of 004 §IV-A.
pub const SIZES: [Bytes; 4] = [
    Bytes::from_kib(32),
    Bytes::from_kib(64),
    Bytes::from_kib(128),
    Bytes::from_kib(256),
];
/// The array of the best-effort task.
pub const BEST_EFFORT: Bytes = Bytes::from_kib(512);
/// The part of accesses that write: one after four that read.
pub const WRITES: f64 = 0.2;

/// What a scenario gives to the tasks of a run, and to its threads.
pub trait Colored {
    /// The memory of a task's working set.
    fn store(&self, set: &TaskSet, task: TaskId) -> Option<Box<dyn Store>>;
    /// What threads run in.
    fn provider(&self) -> Arc<dyn Provider>;
}

/// What an experiment gets from where it runs.
pub trait Bench {
    /// Memory for a set by a scheme; it comes back when it is dropped.
    ///
    /// # Errors
    /// There are not as many colors, or not as much memory.
    fn give(&mut self, set: &TaskSet, scheme: Scheme) -> Result<Box<dyn Colored>>;
    /// The schedule of a set.
    ///
    /// # Errors
    /// The set cannot be assigned.
    fn plan(&self, scheduler: Scheduler, set: &TaskSet) -> Result<AnyPlan>;
    /// The cache whose colors they are, and how many processors share it.
    fn cache(&self) -> (Bytes, u32);
}

/// What is run.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Setup {
    /// Processors.
    pub processors: u32,
    /// Of the task sets.
    pub seed: u64,
    /// Jobs of each task in a run (004: 200).
    pub jobs: u64,
    /// How often a set is run in a scenario (004: 50).
    pub repetitions: usize,
    /// By how much periods and WCETs are divided (004: 1).
    pub hasten: u64,
    /// The part of its WCET that a job takes alone, in thousandths.
    pub part: u64,
}

/// A task as it is in a group.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Task {
    /// Its period, which is its deadline.
    #[serde(rename = "period_ns", with = "model::time::ns")]
    pub period: Duration,
    /// Its WCET.
    #[serde(rename = "wcet_ns", with = "model::time::ns")]
    pub wcet: Duration,
    /// Its working set.
    pub wss: Bytes,
    /// Is it the best-effort task?
    pub best_effort: bool,
    /// Accesses of a job.
    pub accesses: u64,
}

/// One run of a set in a scenario.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Run {
    /// The scenario.
    pub scenario: Scenario,
    /// Which repetition, from 0.
    pub repetition: usize,
    /// What came of it.
    pub seen: cell::Seen,
}

/// One set with one size of working sets, in all scenarios.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Group {
    /// The scheduler.
    pub scheduler: Scheduler,
    /// The set, by its number among those that are drawn.
    pub set: u64,
    /// Are sizes the paper's?
    pub sizes: Sizes,
    /// The size in the paper.
    pub wss: Bytes,
    /// Its tasks.
    pub tasks: Vec<Task>,
    /// Its runs.
    pub runs: Vec<Run>,
}

impl Group {
    /// What tells it from others.
    pub fn key(&self) -> (Scheduler, u64, Sizes, Bytes) {
        (self.scheduler, self.set, self.sizes, self.wss)
    }
}

/// Runs one group.
///
/// # Errors
/// No memory in such colors, no right to real-time priorities, a run that the watchdog had to end;
/// the user stopped it.
pub fn group(
    setup: &Setup,
    drawn: &Drawn,
    sizes: Sizes,
    wss: Bytes,
    bench: &mut dyn Bench,
    early: Duration,
    watch: &dyn Watch,
) -> Result<Group> {
    let (cache, sharers) = bench.cache();
    // The best-effort task is one of them.
    let supers = (drawn.timings.len() + SUPERS_BESIDES) as u64;
    let here = |bytes: Bytes| match sizes {
        Sizes::Paper => bytes,
        Sizes::Scaled => sets::scaled(bytes, cache, sharers, supers),
    };
    let (own, most) = (here(wss), here(BEST_EFFORT));
    let set = drawn.with_working_sets(own, most)?;
    let accesses = {
        let colored = bench.give(&set, Scheme::S1)?;
        set.ids()
            .map(|task| {
                let length = set.timings()[task.index()].wcet.nanos() / 1000 * setup.part;
                let mut walk = walk(&set, drawn, task, colored.as_ref())?;
                let unit = workload::calibrate::calibrate(&mut walk);
                Ok(unit.units_within(Duration::from_nanos(length)))
            })
            .collect::<Result<Vec<u64>>>()?
    };
    let mut group = Group {
        scheduler: drawn.scheduler,
        set: drawn.number,
        sizes,
        wss,
        tasks: set
            .ids()
            .zip(set.timings())
            .map(|(id, timing)| Task {
                period: timing.period,
                wcet: timing.wcet,
                wss: set.wss(id).unwrap_or(own),
                best_effort: id == drawn.best_effort,
                accesses: accesses[id.index()],
            })
            .collect(),
        runs: Vec::new(),
    };
    for repetition in 0..setup.repetitions {
        // In turn, so that what the machine does otherwise meets all alike.
        for scenario in Scenario::ALL {
            let colored = bench.give(&set, scenario.scheme())?;
            let walks = set
                .ids()
                .map(|task| walk(&set, drawn, task, colored.as_ref()))
                .collect::<Result<Vec<Walk>>>()?;
            let work = cell::Work {
                walks,
                accesses: &accesses,
                jobs: setup.jobs,
            };
            let plan = bench.plan(drawn.scheduler, &set)?;
            let seen = cell::run(plan, &set, work, colored.provider(), early, watch)?;
            group.runs.push(Run {
                scenario,
                repetition,
                seen,
            });
            watch.advance(1);
        }
    }
    Ok(group)
}

/// The walk of a task: at random, the best-effort one line after line (004 §IV-A).
fn walk(set: &TaskSet, drawn: &Drawn, task: TaskId, colored: &dyn Colored) -> Result<Walk> {
    let store = colored.store(set, task).ok_or_else(|| {
        Error::new("a task got no memory: a defect of this program")
            .at(format!("task {}", set.name(task)))
    })?;
    let pattern = match task == drawn.best_effort {
        true => Pattern::Sequential,
        false => Pattern::Random,
    };
    Ok(Walk::over(store, WRITES, pattern, u64::from(task.0) + 1))
}
