//! What came of a simulation, counted while it ran.

use crate::observe::Distributions;
use model::{Duration, Instant, Resumption, TaskId, TaskSet};
use trace::Overhead;
use trace::summary::by_overhead;

/// What came of the jobs of one task.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TaskSummary {
    /// Jobs released before the horizon.
    pub released: u64,
    /// Jobs completed by the horizon, cut ones included.
    pub completed: u64,
    /// Jobs cut short because their budget was used up.
    pub cut: u64,
    /// Longest time from release to completion.
    pub response_max: Duration,
    /// Sum of those times, in nanoseconds.
    pub response_sum: u128,
    /// Longest time from deadline to completion, of completed jobs.
    pub tardiness_max: Duration,
    /// Jobs that completed after their deadline or were incomplete at the horizon with their
    /// deadline reached.
    pub misses: u64,
    /// How often a job was taken off its processor unfinished, but for moves to another processor
    /// in the same instant.
    pub preemptions: u64,
    /// How often a job resumed on another processor than it last ran on, by the kinds of
    /// [`Summary::kinds`].
    pub migrations: Vec<u64>,
    /// Time lost to each overhead on behalf of this task, in the order of [`Overhead::ALL`].
    pub lost: [Duration; Overhead::ALL.len()],
}

impl TaskSummary {
    /// Mean time from release to completion; `None` if no job completed.
    pub fn response_mean(&self) -> Option<Duration> {
        let mean = self.response_sum.checked_div(u128::from(self.completed))?;
        Some(Duration::from_nanos(
            u64::try_from(mean).unwrap_or(u64::MAX),
        ))
    }
}

/// Why a simulation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The horizon was reached.
    Horizon,
    /// A deadline miss was known and the scenario asked to stop there.
    Miss,
    /// The user asked for it.
    Interrupted,
}

/// A job that missed its deadline.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Miss {
    /// Whose job.
    pub task: TaskId,
    /// Which, from 0.
    pub job: u64,
    /// Its absolute deadline.
    pub deadline: Instant,
}

/// What came of a simulation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Summary {
    /// Why it ended.
    pub ending: Ending,
    /// When, in virtual time.
    pub end: Instant,
    /// The miss that became known first.
    pub first_miss: Option<Miss>,
    /// The kinds of migration that the platform has, nearest first; the columns of
    /// [`TaskSummary::migrations`].
    pub kinds: Vec<Resumption>,
    /// By task.
    pub tasks: Vec<TaskSummary>,
    /// Time lost to overheads on behalf of no task, in the order of [`Overhead::ALL`].
    pub lost: [Duration; Overhead::ALL.len()],
    /// Decisions asked of the policy.
    pub decisions: u64,
    /// What the policy has found of working sets: by task, the number of its multithreaded task and
    /// what is known of that; empty where it is given them.
    pub profiled: Vec<(u32, policy::profiler::Estimate)>,
}

impl Summary {
    /// What the statistics of a trace of the same run would say, in the same form.
    pub fn added_up(&self, set: &TaskSet, distributions: &Distributions) -> trace::Summary {
        let tasks = set.ids().zip(&self.tasks).map(|(id, t)| {
            let (response, tardiness) = distributions.spreads(id.index());
            let kinds = self.kinds.iter().map(Resumption::to_string);
            trace::summary::TaskSummary {
                task: set.name(id),
                soft: set.details(id).is_some_and(|d| d.soft),
                released: t.released,
                jobs: t.completed,
                unfinished: t.released - t.completed,
                misses: t.misses,
                cut: t.cut,
                response,
                tardiness,
                preemptions: t.preemptions,
                migrations: kinds.zip(t.migrations.iter().copied()).collect(),
                lost_ns: by_overhead(t.lost.map(Duration::nanos)),
                recorded: None,
            }
        });
        trace::Summary {
            horizon_ns: self.end.nanos(),
            jobs: self.completed(),
            misses: self.misses(),
            preemptions: self.preemptions(),
            migrations: self.migrations(),
            lost_to_no_task_ns: by_overhead(self.lost.map(Duration::nanos)),
            // Events tell that: see [`trace::Thrashing`].
            thrashed: None,
            tasks: tasks.collect(),
            recorded: None,
        }
    }

    /// Jobs completed, of all tasks.
    pub fn completed(&self) -> u64 {
        self.tasks.iter().map(|t| t.completed).sum()
    }
    /// Deadline misses of all tasks.
    pub fn misses(&self) -> u64 {
        self.tasks.iter().map(|t| t.misses).sum()
    }
    /// Preemptions of all tasks.
    pub fn preemptions(&self) -> u64 {
        self.tasks.iter().map(|t| t.preemptions).sum()
    }
    /// Migrations of all tasks and kinds.
    pub fn migrations(&self) -> u64 {
        self.tasks.iter().flat_map(|t| &t.migrations).sum()
    }
}
