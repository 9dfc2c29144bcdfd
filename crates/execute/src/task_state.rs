//! What the engine knows of a task: its parameters, and how far its jobs have come. Pure data.

use crate::ids::Place;
use model::{CpuId, Duration, Instant, Timing};

/// The parameters of a task, which never change within a run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Parameters {
    /// Is it a program that knows nothing of jobs, so that its WCET is its budget?
    pub budgeted: bool,
    /// Is it stopped when its budget is used up? A program may go on as best-effort work instead.
    pub stops_beyond_budget: bool,
    /// Are its jobs released by something other than the time?
    pub triggered: bool,
    pub phase: Duration,
    pub period: Duration,
    pub deadline: Duration,
    pub wcet: Duration,
}

impl Parameters {
    /// Of a task that is a thread of this process, released by time.
    pub fn new(timing: &Timing, phase: Duration) -> Self {
        Parameters {
            budgeted: false,
            stops_beyond_budget: true,
            triggered: false,
            phase,
            period: timing.period,
            deadline: timing.deadline,
            wcet: timing.wcet,
        }
    }
}

/// How far the jobs of a task have come. One domain owns it at a time; it moves with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TaskState {
    /// Does this domain own the task? The other fields mean nothing otherwise.
    pub owned: bool,
    /// The number of its current job, or of its next one if none is current.
    pub number: u64,
    /// Has the task a current job?
    pub current: bool,
    /// Was that job shown to have started?
    pub started: bool,
    /// Its nominal release.
    pub release: Instant,
    /// Which part of it, where it is split.
    pub part: u32,
    /// Processor time of the current job, in nanoseconds. Kept only where there are slices
    /// or budgets.
    pub executed: u64,
    /// What the current job may still execute in this part, in nanoseconds; `u64::MAX`: no limit.
    pub slice_left: u64,
    /// What it may still execute altogether, likewise.
    pub budget_left: u64,
    /// The processor time of the task up to which the three above are accounted for.
    pub accounted: u64,
    /// Where it runs.
    pub place: Option<Place>,
    /// The processor on which it last ran, for traces.
    pub last: Option<CpuId>,
    /// How many of its jobs were cut short whose pieces of work are not done.
    pub behind: u32,
    /// Was the current job put on a processor in the step that released it?
    pub prompt: bool,
}

impl TaskState {
    /// Of a task none of whose jobs was released.
    pub fn new(owned: bool) -> Self {
        TaskState {
            owned,
            number: 0,
            current: false,
            started: false,
            release: Instant::ZERO,
            part: 0,
            executed: 0,
            slice_left: u64::MAX,
            budget_left: u64::MAX,
            accounted: 0,
            place: None,
            last: None,
            behind: 0,
            prompt: false,
        }
    }
}
