//! A processor in the engine with overheads: what it does, what waits for it, which job is loaded.

use std::collections::VecDeque;

/// Work in the kernel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Op {
    /// Servicing a release; the policy learns of the job at its end.
    Release { task: u32 },
    /// Servicing a release of which the policy knows already.
    Booked { task: u32 },
    /// Servicing the release of the next slice of a job.
    Arrival { task: u32 },
    /// Programming the timer that will release the next job or slice here.
    Transfer { task: u32 },
    /// The periodic tick.
    Tick,
    /// Choosing what to run; `NONE`: nobody.
    Choose { next: u32 },
    /// Switching to it.
    Switch { next: u32 },
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
pub(crate) struct Cpu {
    pub work: Work,
    /// Interrupts that wait for their service.
    pub queue: VecDeque<Op>,
    /// The task whose job is on this processor's stack, or `NONE`.
    pub loaded: u32,
    /// The task whose job the policy wants here, or `NONE`.
    pub wanted: u32,
    /// Does it have to reschedule?
    pub reschedule: bool,
    /// Since when the job reloads or executes.
    pub since: u64,
    /// How much of the working set is still to be reloaded, in time.
    pub reload: u64,
    /// When the inter-processor interrupt that is under way was sent.
    pub called_at: u64,
    /// Was it shown without a job, and was that deliberate? For observers of events.
    pub shown_idle: Option<bool>,
    /// The server that it serves, or `NONE`. For observers of events.
    pub serving: u32,
}
