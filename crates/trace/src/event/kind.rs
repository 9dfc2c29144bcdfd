//! Kinds of events, and the flags of an event.

use std::fmt;

/// What happened. The numbers are those of the file format and never change their meaning.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
#[repr(u8)]
pub enum EventKind {
    /// A job is released; recorded at the nominal instant. Argument: its absolute deadline.
    Release = 1,
    /// A job runs for the first time.
    Start = 2,
    /// A running job leaves its processor unfinished and stays ready.
    Preemption = 3,
    /// A job runs again where it last ran.
    Resumption = 4,
    /// A job runs again, on another processor than before. Argument: the processor on which it last
    /// ran.
    Migration = 5,
    /// A running job is done and leaves its processor. Argument: how long it executed, without
    /// overheads; 0 if not known.
    Completion = 6,
    /// A job is known to have missed its deadline: recorded just before its completion, at the
    /// latest at the end of the trace. Argument: the absolute deadline.
    DeadlineMiss = 7,
    /// A job has used up its budget, or that of its slice or quantum. Argument: the budget.
    BudgetExhausted = 8,
    /// An overhead begins on a processor. Argument: which, see [`Overhead`]. The job is the one
    /// that it serves, if any.
    OverheadBegin = 9,
    /// That overhead ends. Same argument.
    OverheadEnd = 10,
    /// A processor has no job from now on. With [`Flags::DELIBERATE`]: although one is ready (003
    /// §3.1, phantom tasks).
    Idle = 11,
    /// A server begins to be served by a processor (002 §4.3). Argument: the number of the server,
    /// from 0.
    ServerBegin = 12,
    /// It ceases to be. Same argument.
    ServerEnd = 13,
    /// A slice of a split job becomes ready on its processor (002 §4.2). Argument: the absolute
    /// deadline of its window. The first slice has one too, just after the release.
    Window = 14,
    /// A running job gives up its processor by itself and is not ready until it wakes up (real
    /// programs only).
    Suspension = 15,
    /// A suspended job is ready again.
    WakeUp = 16,
    /// From here on another policy of the header rules. Argument: its place there, from 0.
    PolicySwitch = 17,
    /// Events of this processor were lost before this record. Argument: how many.
    Lost = 18,
    /// The trace ends here, complete. Its time is the horizon.
    End = 19,
    /// A quantum-driven policy decides now who runs in the quantum that is under way. Real runs
    /// only, which come late to the boundary; the processor is the first of the domain.
    Quantum = 20,
    /// The machine ran nothing on this processor for a while, not even the most urgent thread,
    /// which was due then: firmware or a hypervisor had it, or the kernel did not let go of it.
    /// Recorded when it ran again. Argument: for how long. Real runs only.
    Standstill = 21,
}

impl EventKind {
    /// Every kind, in the order of their numbers.
    pub const ALL: [EventKind; 21] = [
        EventKind::Release,
        EventKind::Start,
        EventKind::Preemption,
        EventKind::Resumption,
        EventKind::Migration,
        EventKind::Completion,
        EventKind::DeadlineMiss,
        EventKind::BudgetExhausted,
        EventKind::OverheadBegin,
        EventKind::OverheadEnd,
        EventKind::Idle,
        EventKind::ServerBegin,
        EventKind::ServerEnd,
        EventKind::Window,
        EventKind::Suspension,
        EventKind::WakeUp,
        EventKind::PolicySwitch,
        EventKind::Lost,
        EventKind::End,
        EventKind::Quantum,
        EventKind::Standstill,
    ];

    /// The kind of a number, if there is one.
    pub fn from_number(number: u8) -> Option<Self> {
        EventKind::ALL
            .get(usize::from(number).wrapping_sub(1))
            .copied()
    }

    /// Its name in CSV and pictures: `deadline-miss`.
    pub const fn name(self) -> &'static str {
        match self {
            EventKind::Release => "release",
            EventKind::Start => "start",
            EventKind::Preemption => "preemption",
            EventKind::Resumption => "resumption",
            EventKind::Migration => "migration",
            EventKind::Completion => "completion",
            EventKind::DeadlineMiss => "deadline-miss",
            EventKind::BudgetExhausted => "budget-exhausted",
            EventKind::OverheadBegin => "overhead-begin",
            EventKind::OverheadEnd => "overhead-end",
            EventKind::Idle => "idle",
            EventKind::ServerBegin => "server-begin",
            EventKind::ServerEnd => "server-end",
            EventKind::Window => "window",
            EventKind::Suspension => "suspension",
            EventKind::WakeUp => "wake-up",
            EventKind::PolicySwitch => "policy-switch",
            EventKind::Lost => "lost",
            EventKind::End => "end",
            EventKind::Quantum => "quantum",
            EventKind::Standstill => "standstill",
        }
    }

    /// Is it about one job of one task?
    pub const fn has_job(self) -> bool {
        matches!(
            self,
            EventKind::Release
                | EventKind::Start
                | EventKind::Preemption
                | EventKind::Resumption
                | EventKind::Migration
                | EventKind::Completion
                | EventKind::DeadlineMiss
                | EventKind::BudgetExhausted
                | EventKind::Window
                | EventKind::Suspension
                | EventKind::WakeUp
        )
    }

    /// Does it put a job on a processor?
    pub const fn puts_on(self) -> bool {
        matches!(
            self,
            EventKind::Start | EventKind::Resumption | EventKind::Migration
        )
    }

    /// Does it take a job off its processor?
    pub const fn takes_off(self) -> bool {
        matches!(
            self,
            EventKind::Preemption | EventKind::Completion | EventKind::Suspension
        )
    }
}

impl fmt::Display for EventKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What else is to be said of an event: bits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// Nothing.
    pub const NONE: Flags = Flags(0);
    /// Of a completion: the job was cut short because its budget was used up.
    pub const CUT: Flags = Flags(1);
    /// Of an idle processor: left idle on purpose, with a job ready.
    pub const DELIBERATE: Flags = Flags(2);
    /// Every bit that has a meaning.
    pub const KNOWN: Flags = Flags(3);

    /// Are all bits of `other` set?
    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
    /// The bits of both.
    #[must_use]
    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}
