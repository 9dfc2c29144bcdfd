//! A processor in the engine with overheads: what it does, what waits for it, which job is loaded.

use model::TaskId;
use std::collections::VecDeque;

/// Work in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Servicing a release; the policy learns of the job at its end.
    Release { task: TaskId, number: u64 },
    /// Servicing a release of which the policy knows already.
    Booked { task: TaskId, number: u64 },
    /// Servicing the release of the next slice of a job.
    Arrival { task: TaskId },
    /// Programming the timer that will release the next job or slice here.
    Transfer { task: TaskId },
    /// The periodic tick.
    Tick,
    /// What is left of work on whose end nothing depended until now.
    Rest,
    /// Choosing what to run; [`TaskId::NONE`]: nobody.
    Choose { next: TaskId },
    /// Switching to it.
    Switch { next: TaskId },
}

impl Op {
    /// Does nothing but take time?
    #[inline(always)]
    pub const fn has_no_consequence(self) -> bool {
        matches!(self, Op::Booked { .. } | Op::Transfer { .. } | Op::Tick)
    }
}

/// What a processor does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Work {
    /// Nothing, or nothing decided yet.
    Idle,
    /// Kernel work.
    Kernel(Op),
    /// The loaded job reloads its working set.
    Reload,
    /// The loaded job executes.
    Job,
}

/// A processor.
#[derive(Clone, Debug)]
pub(crate) struct Cpu<L> {
    pub work: Work,
    /// Interrupts that wait for their service.
    pub queue: VecDeque<Op>,
    /// The task whose job is on this processor's stack, or [`TaskId::NONE`].
    pub loaded: TaskId,
    /// The task whose job the policy wants here, or [`TaskId::NONE`].
    pub wanted: TaskId,
    /// Does it have to reschedule?
    pub reschedule: bool,
    /// Since when the job reloads or executes, moved back by the kernel work that came in between
    /// and was no event.
    pub since: u64,
    /// What the [path](crate::costly) through kernel work keeps of it.
    pub local: L,
    /// How much of the working set is still to be reloaded, in time.
    pub reload: u64,
    /// When the inter-processor interrupt that is under way was sent.
    pub called_at: u64,
}

impl<L: Default> Cpu<L> {
    /// A processor that has never done anything.
    pub fn idle() -> Self {
        Cpu {
            work: Work::Idle,
            queue: VecDeque::with_capacity(4),
            loaded: TaskId::NONE,
            wanted: TaskId::NONE,
            reschedule: false,
            since: 0,
            local: L::default(),
            reload: 0,
            called_at: 0,
        }
    }
}
