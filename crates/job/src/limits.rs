//! What a job may execute: budgets against overruns, slices of jobs that are split over domains.

use model::{Duration, Enforcement, Instant};

/// No job may need more than this, 73 years: sums of two times still fit with room to spare.
pub const LONGEST: Duration = Duration::from_nanos(1 << 61);

/// How the limits of jobs are kept in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Whether there are budgets or slices at all.
    pub(crate) any: bool,
    /// The quantum at whose multiples budgets are looked at, in nanoseconds; 1: at any time.
    pub(crate) quantum: u64,
    /// The shortest time for which a timer is set, in nanoseconds.
    shortest: u64,
    /// A slice of which no more than this is left is used up, in nanoseconds.
    pub(crate) nearly: u64,
}

impl Limits {
    /// `limited`: whether there are slices or budgets, which may be without `enforcement` where
    /// jobs have budgets of their own. Only [`Enforcement::PerQuantum`] reads the quantum, which is
    /// not zero.
    pub const fn new(limited: bool, enforcement: Enforcement, quantum: Duration) -> Self {
        let quantum = match enforcement {
            Enforcement::PerQuantum => quantum.nanos(),
            Enforcement::Off | Enforcement::Exact => 1,
        };
        Limits {
            any: limited || !matches!(enforcement, Enforcement::Off),
            quantum,
            shortest: 0,
            nearly: 0,
        }
    }

    /// The same with timers of a real machine: none is set for less than `shortest`, and a slice of
    /// which no more than `nearly` is left is used up.
    pub const fn timers(mut self, shortest: Duration, nearly: Duration) -> Self {
        self.shortest = shortest.nanos();
        self.nearly = nearly.nanos();
        self
    }

    /// Whether there are budgets or slices to keep.
    #[inline(always)]
    pub const fn any(&self) -> bool {
        self.any
    }

    /// When a limit of which `left` is left comes to be looked at from `now` on, in nanoseconds;
    /// `u64::MAX` is no limit.
    #[inline(always)]
    fn at(&self, now: u64, left: u64) -> u64 {
        match left {
            u64::MAX => u64::MAX,
            left => now.saturating_add(left.max(self.shortest)),
        }
    }

    /// When a job that has so much left of its slice and its budget comes to be looked at.
    #[inline(always)]
    pub(crate) fn reach(&self, now: Instant, slice: u64, budget: u64) -> u64 {
        let mut budget = self.at(now.nanos(), budget);
        if self.quantum != 1 {
            budget = budget.div_ceil(self.quantum).saturating_mul(self.quantum);
        }
        budget.min(self.at(now.nanos(), slice))
    }
}

/// What a job that is looked at has come to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Reached {
    /// It has executed for its demand.
    Complete,
    /// Its budget is used up: it is to be cut short.
    Budget,
    /// Its slice is used up: its next part is to be pushed.
    Slice,
    /// None of these: it did not have the processor all the time.
    Nothing,
}
