//! What a state consists of: jobs, tasks and processors, and the faults that are found in them.

use crate::event::Flags;
use model::Overhead;
use model::{CpuId, Duration, Instant, TaskId};
use std::collections::VecDeque;

/// A rule that is broken: its name, and what happened as a clause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The name of the rule, stable: `one-processor`.
    pub rule: &'static str,
    /// What happened.
    pub text: String,
}

/// A released job that is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its number, from 0.
    pub number: u64,
    /// When it was (nominally) released.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// The processor that handled the release.
    pub cpu: CpuId,
    /// When its miss of the deadline was reported, if it was.
    pub missed: Option<Instant>,
}

/// What the first pending job of a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// There is no pending job.
    Nothing,
    /// It is ready and has never run.
    Fresh,
    /// It runs.
    Running(CpuId),
    /// It is ready and last ran there.
    Preempted(CpuId),
    /// It is not ready and last ran there.
    Suspended(CpuId),
}

/// A task in the schedule.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// The number of the job that is released next.
    pub next: u64,
    /// Released jobs that are not done, in order; only the first may run.
    pub pending: VecDeque<Job>,
    /// What the first of them does.
    pub status: Status,
    /// How long the first of them has executed, overheads not counted, up to the last event of its
    /// processor.
    pub executed: Duration,
    /// The nominal release of the latest job.
    pub(super) last_release: Option<Instant>,
}

impl TaskState {
    /// The job that may run.
    pub fn head(&self) -> Option<&Job> {
        self.pending.front()
    }
    /// Is there a job that could run and does not?
    pub fn is_waiting(&self) -> bool {
        matches!(self.status, Status::Fresh | Status::Preempted(_))
    }
}

/// An overhead that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// Which.
    pub overhead: Overhead,
    /// The job that it serves, as its event says.
    pub job: Option<(TaskId, u64)>,
    /// Since when.
    pub since: Instant,
    /// So long overheads within it took.
    pub within: Duration,
}

/// A processor in the schedule.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// The task whose first pending job is on it.
    pub running: Option<TaskId>,
    /// When it was put there, or came back there from an overhead.
    pub(super) back: Instant,
    /// Declared idle, with the flags of the declaration.
    pub idle: Option<Flags>,
    /// The overheads that are open, innermost last, without interrupts under way.
    pub overheads: Vec<Open>,
    /// Interrupts under way to it, in the order in which they were sent.
    pub interrupts: VecDeque<Open>,
    /// The server that it serves.
    pub server: Option<u32>,
    /// May tasks run on it?
    pub(super) usable: bool,
    /// What it did is accounted for up to here.
    pub(super) accounted: Instant,
}

impl Processor {
    /// May tasks run on it?
    pub fn may_run(&self) -> bool {
        self.usable
    }
    /// Is anything under way that may end in another job on it?
    pub fn is_settling(&self) -> bool {
        !self.interrupts.is_empty() || self.overheads.iter().any(|o| o.overhead != Overhead::Cpmd)
    }
}
