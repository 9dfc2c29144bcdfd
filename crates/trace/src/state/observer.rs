//! What is learned of a schedule while it is replayed.

use super::Job;
use model::Overhead;
use model::{CpuId, Duration, Instant, TaskId};

/// What a processor did for a while.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Doing {
    /// It executed the job.
    Executing,
    /// It was busy with an overhead. The latency of an interrupt is told too, although the
    /// processor does something else then.
    Overhead(Overhead),
}

/// A stretch of time on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// Where.
    pub cpu: CpuId,
    /// What it did.
    pub doing: Doing,
    /// The job that was on it or, if there was none, the one that the overhead served.
    pub job: Option<(TaskId, u64)>,
    /// The job on whose behalf it was: the one that executed, or that the overhead served, if any.
    pub serves: Option<(TaskId, u64)>,
    /// From when.
    pub from: Instant,
    /// Until when.
    pub to: Instant,
}

/// An overhead, from its beginning to its end on one processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Took {
    /// Which.
    pub overhead: Overhead,
    /// Where.
    pub cpu: CpuId,
    /// When it began.
    pub begun: Instant,
    /// When it ended.
    pub ended: Instant,
    /// Its length without other overheads within it.
    pub length: Duration,
}

/// Learns what a schedule adds up to while it is replayed.
pub trait Observer {
    /// A processor did one thing for a while.
    fn span(&mut self, _span: Span) {}
    /// An overhead has ended.
    fn took(&mut self, _took: Took) {}
    /// A job is done; `executed` without overheads.
    fn done(&mut self, _task: TaskId, _job: &Job, _completion: Instant, _executed: Duration) {}
}

/// Learns nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nobody;
impl Observer for Nobody {}
