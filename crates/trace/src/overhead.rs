//! The seven overheads of 002 §2.4, as events name them.

use model::profile::OverheadKind;
use std::fmt;

/// The seven overheads of 002 §2.4.
///
/// On one processor they nest: one that begins while another is open suspends it, and ends before
/// it. The exception is the latency of an inter-processor interrupt, which is under way while the
/// processor goes on with what it did.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum Overhead {
    /// Servicing the interrupt that releases jobs.
    Release = 0,
    /// Choosing the next job.
    Scheduling = 1,
    /// Switching stacks and registers.
    ContextSwitch = 2,
    /// From sending an inter-processor interrupt until this processor, the addressed one, serves
    /// it.
    IpiLatency = 3,
    /// Programming a timer on behalf of another processor.
    TimerTransfer = 4,
    /// Servicing the periodic tick.
    Tick = 5,
    /// Reloading the working set after a preemption or a migration.
    Cpmd = 6,
}

impl Overhead {
    /// All seven, in the order of their numbers.
    pub const ALL: [Overhead; 7] = [
        Overhead::Release,
        Overhead::Scheduling,
        Overhead::ContextSwitch,
        Overhead::IpiLatency,
        Overhead::TimerTransfer,
        Overhead::Tick,
        Overhead::Cpmd,
    ];

    /// The overhead of a number, if there is one.
    pub fn from_number(number: u64) -> Option<Self> {
        usize::try_from(number)
            .ok()
            .and_then(|n| Overhead::ALL.get(n))
            .copied()
    }

    /// Its name: `context-switch`.
    pub const fn name(self) -> &'static str {
        match self {
            Overhead::Release => "release",
            Overhead::Scheduling => "scheduling",
            Overhead::ContextSwitch => "context-switch",
            Overhead::IpiLatency => "ipi-latency",
            Overhead::TimerTransfer => "timer-transfer",
            Overhead::Tick => "tick",
            Overhead::Cpmd => "cpmd",
        }
    }

    /// Does it keep the processor from executing the job? All do but the latency of an interrupt
    /// that is still on its way.
    pub const fn occupies_processor(self) -> bool {
        !matches!(self, Overhead::IpiLatency)
    }
}

impl From<OverheadKind> for Overhead {
    fn from(kind: OverheadKind) -> Self {
        match kind {
            OverheadKind::Release => Overhead::Release,
            OverheadKind::Scheduling => Overhead::Scheduling,
            OverheadKind::ContextSwitch => Overhead::ContextSwitch,
            OverheadKind::IpiLatency => Overhead::IpiLatency,
            OverheadKind::TimerTransfer => Overhead::TimerTransfer,
            OverheadKind::Tick => Overhead::Tick,
        }
    }
}

impl fmt::Display for Overhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
