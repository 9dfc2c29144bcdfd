//! The time of a run: nanoseconds since the moment at which all tasks were released.
//!
//! The source is behind one trait, [`Timestamps`]: the only thing in this room that may know a
//! processor architecture. It has to be the clock that the kernel's timers are set by, so that what
//! is due is known to be due.

use crate::kernel;
use model::Instant;

/// A clock that all processors read alike, in nanoseconds, never going back.
pub trait Timestamps: Copy + Send + Sync + 'static {
    /// What it is, for provenance.
    fn name(&self) -> &'static str;
    /// Its reading.
    fn read(&self) -> u64;
}

/// `CLOCK_MONOTONIC`, which most kernels let a program read without entering the kernel.
#[derive(Clone, Copy, Debug, Default)]
pub struct Monotonic;

impl Timestamps for Monotonic {
    fn name(&self) -> &'static str {
        "CLOCK_MONOTONIC"
    }
    #[inline]
    fn read(&self) -> u64 {
        kernel::monotonic()
    }
}

/// The time of a run.
#[derive(Clone, Copy, Debug)]
pub struct Timeline<T = Monotonic> {
    source: T,
    origin: u64,
}

impl<T: Timestamps> Timeline<T> {
    /// Time zero is at this reading of the source.
    pub fn new(source: T, origin: u64) -> Self {
        Timeline { source, origin }
    }
    /// The time; zero before time zero.
    #[inline]
    pub fn now(&self) -> Instant {
        Instant::from_nanos(self.source.read().saturating_sub(self.origin))
    }
    /// The time at a reading of the source; zero before time zero.
    pub fn time_of(&self, reading: u64) -> Instant {
        Instant::from_nanos(reading.saturating_sub(self.origin))
    }
    /// The reading of the source at a time, saturating.
    pub fn reading(&self, at: Instant) -> u64 {
        self.origin.saturating_add(at.nanos())
    }
}
