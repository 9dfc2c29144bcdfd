//! What the engine itself takes of processors, where a profile of this machine says it (002 §5.1).
//!
//! Averages count: what is left of a second is the sum of thousands of them.

use model::{Duration, Timing};

/// What the engine takes under a policy.
#[derive(Clone, Copy, PartialEq, Debug, Default)]
pub struct Takes {
    /// For each job where it runs: its release, and the decisions and switches with which it comes
    /// and goes.
    pub job: Duration,
    /// For each change between two servers: a decision and a switch.
    pub change: Duration,
    /// Of each processor whatever it does, as a part of it: ticks, and the watch for standstills.
    pub always: f64,
}

impl Takes {
    /// For the jobs of a task of this period, in processors.
    pub(super) fn of_jobs(&self, period: Duration) -> f64 {
        self.job.nanos() as f64 / period.nanos().max(1) as f64
    }

    /// For a change in each slot of this length, in processors.
    pub(super) fn of_changes(&self, slot: Duration) -> f64 {
        self.change.nanos() as f64 / slot.nanos().max(1) as f64
    }

    /// For all of these tasks, as a part of so many processors.
    pub(super) fn of_all(&self, timings: &[Timing], cpus: usize) -> f64 {
        let jobs: f64 = timings.iter().map(|t| self.of_jobs(t.period)).sum();
        jobs / cpus.max(1) as f64 + self.always
    }
}
