//! Events of each kind, made from what they say.

use super::Event;
use super::kind::{EventKind, Flags};
use model::Overhead;
use model::{CpuId, Duration, Instant, TaskId};

impl Event {
    pub(super) const fn new(
        kind: EventKind,
        time: Instant,
        cpu: Option<CpuId>,
        task: TaskId,
        job: u64,
        argument: u64,
    ) -> Self {
        Event {
            time,
            job,
            argument,
            task,
            processor: match cpu {
                // Linux numbers at most 8192 processors (`CpuSet::MAX_CPU`).
                Some(cpu) => cpu.0 as u16,
                None => Self::NO_PROCESSOR,
            },
            kind,
            flags: Flags::NONE,
        }
    }

    /// Job `job` of `task` is released, `cpu` handles the release; `deadline` is absolute.
    pub const fn release(
        time: Instant,
        cpu: CpuId,
        task: TaskId,
        job: u64,
        deadline: Instant,
    ) -> Self {
        Self::new(
            EventKind::Release,
            time,
            Some(cpu),
            task,
            job,
            deadline.nanos(),
        )
    }

    /// The job runs for the first time.
    pub const fn start(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::Start, time, Some(cpu), task, job, 0)
    }

    /// The job leaves its processor unfinished and stays ready.
    pub const fn preemption(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::Preemption, time, Some(cpu), task, job, 0)
    }

    /// The job runs again; a migration when it last ran elsewhere.
    pub const fn resumption(time: Instant, from: CpuId, to: CpuId, task: TaskId, job: u64) -> Self {
        if from.0 == to.0 {
            Self::new(EventKind::Resumption, time, Some(to), task, job, 0)
        } else {
            Self::new(
                EventKind::Migration,
                time,
                Some(to),
                task,
                job,
                from.0 as u64,
            )
        }
    }

    /// The job is done, having executed for `executed` without overheads (zero: not known).
    pub const fn completion(
        time: Instant,
        cpu: CpuId,
        task: TaskId,
        job: u64,
        executed: Duration,
    ) -> Self {
        Self::new(
            EventKind::Completion,
            time,
            Some(cpu),
            task,
            job,
            executed.nanos(),
        )
    }

    /// The job has missed its absolute `deadline`. `cpu`: where it runs, if anywhere.
    pub const fn deadline_miss(
        time: Instant,
        cpu: Option<CpuId>,
        task: TaskId,
        job: u64,
        deadline: Instant,
    ) -> Self {
        Self::new(
            EventKind::DeadlineMiss,
            time,
            cpu,
            task,
            job,
            deadline.nanos(),
        )
    }

    /// The job has used up `budget`.
    pub const fn budget_exhausted(
        time: Instant,
        cpu: CpuId,
        task: TaskId,
        job: u64,
        budget: Duration,
    ) -> Self {
        Self::new(
            EventKind::BudgetExhausted,
            time,
            Some(cpu),
            task,
            job,
            budget.nanos(),
        )
    }

    /// An overhead begins on `cpu`, on behalf of a job if there is one.
    pub const fn overhead_begin(
        time: Instant,
        cpu: CpuId,
        overhead: Overhead,
        job: Option<(TaskId, u64)>,
    ) -> Self {
        Self::overhead(EventKind::OverheadBegin, time, cpu, overhead, job)
    }

    /// The overhead ends.
    pub const fn overhead_end(
        time: Instant,
        cpu: CpuId,
        overhead: Overhead,
        job: Option<(TaskId, u64)>,
    ) -> Self {
        Self::overhead(EventKind::OverheadEnd, time, cpu, overhead, job)
    }

    pub(super) const fn overhead(
        kind: EventKind,
        time: Instant,
        cpu: CpuId,
        overhead: Overhead,
        job: Option<(TaskId, u64)>,
    ) -> Self {
        let (task, job) = match job {
            Some(job) => job,
            None => (Self::NO_TASK, 0),
        };
        Self::new(kind, time, Some(cpu), task, job, overhead as u64)
    }

    /// `cpu` has no job from now on.
    pub const fn idle(time: Instant, cpu: CpuId) -> Self {
        Self::new(EventKind::Idle, time, Some(cpu), Self::NO_TASK, 0, 0)
    }

    /// A server begins to be served by `cpu`.
    pub const fn server_begin(time: Instant, cpu: CpuId, server: u32) -> Self {
        Self::new(
            EventKind::ServerBegin,
            time,
            Some(cpu),
            Self::NO_TASK,
            0,
            server as u64,
        )
    }

    /// A server ceases to be served by `cpu`.
    pub const fn server_end(time: Instant, cpu: CpuId, server: u32) -> Self {
        Self::new(
            EventKind::ServerEnd,
            time,
            Some(cpu),
            Self::NO_TASK,
            0,
            server as u64,
        )
    }

    /// A slice of a split job becomes ready on `cpu`, to be done by the absolute `deadline` of its
    /// window.
    pub const fn window(
        time: Instant,
        cpu: CpuId,
        task: TaskId,
        job: u64,
        deadline: Instant,
    ) -> Self {
        Self::new(
            EventKind::Window,
            time,
            Some(cpu),
            task,
            job,
            deadline.nanos(),
        )
    }

    /// The job gives up its processor by itself.
    pub const fn suspension(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::Suspension, time, Some(cpu), task, job, 0)
    }

    /// The job is ready again.
    pub const fn wake_up(time: Instant, cpu: CpuId, task: TaskId, job: u64) -> Self {
        Self::new(EventKind::WakeUp, time, Some(cpu), task, job, 0)
    }

    /// The policy at this place of the header rules from now on.
    pub const fn policy_switch(time: Instant, place: u32) -> Self {
        Self::new(
            EventKind::PolicySwitch,
            time,
            None,
            Self::NO_TASK,
            0,
            place as u64,
        )
    }

    /// `count` events of `cpu` were lost before this one.
    pub const fn lost(time: Instant, cpu: CpuId, count: u64) -> Self {
        Self::new(EventKind::Lost, time, Some(cpu), Self::NO_TASK, 0, count)
    }

    /// Up to `count` events of all processors were lost before this one: a part of the file is
    /// damaged.
    pub const fn lost_anywhere(time: Instant, count: u64) -> Self {
        Self::new(EventKind::Lost, time, None, Self::NO_TASK, 0, count)
    }

    /// The trace ends.
    pub const fn end(time: Instant) -> Self {
        Self::new(EventKind::End, time, None, Self::NO_TASK, 0, 0)
    }

    /// `cpu` ran nothing for `length`, until now.
    pub const fn standstill(time: Instant, cpu: CpuId, length: Duration) -> Self {
        Self::new(
            EventKind::Standstill,
            time,
            Some(cpu),
            Self::NO_TASK,
            0,
            length.nanos(),
        )
    }

    /// A quantum-driven policy decides who runs in this quantum; `cpu` is the first processor of
    /// its domain.
    pub const fn quantum(time: Instant, cpu: CpuId) -> Self {
        Self::new(EventKind::Quantum, time, Some(cpu), Self::NO_TASK, 0, 0)
    }

    /// The same event with more flags.
    #[must_use]
    pub const fn flagged(mut self, flags: Flags) -> Self {
        self.flags = self.flags.with(flags);
        self
    }
}
