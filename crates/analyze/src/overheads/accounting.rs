//! The accounting of overheads under event-driven EDF: P-EDF, C-EDF, G-EDF.
//!
//! 002 §6.1: a job pays two scheduling decisions, two context switches, two cache delays (its own lack of affinity and that of the
//! job that it preempts) and, where it is released on another processor than the one that runs it, an IPI. Interrupts of ticks
//! and releases come at most ⌈w / T⌉ ≤ w / T + 1 times in w time units, so that a job that executes for c takes at most w with
//! w = c + Σ o (w / T + 1), hence w = (c + Σ o) / (1 − Σ o / T).

use super::Overheads;
use model::{Duration, Timing};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};

/// The tasks that share a processor or cluster.
#[derive(Clone, Copy, Debug)]
pub struct Residents<'a> {
    /// Their timing, without overheads.
    pub tasks: &'a [Timing],
    /// The delay of one preemption or migration of each, by its working set and by what the policy does to it.
    pub delays: &'a [Duration],
    /// How many processors they share; with more than one, releases send interrupts to other processors.
    pub processors: u32,
}

/// The tasks with WCETs that hold the overheads, in their order; rounded up to whole nanoseconds.
///
/// A WCET that no time suffices for, because interrupts take all of it, becomes [`Duration::MAX`]: not schedulable by any test.
pub fn inflate(residents: Residents<'_>, overheads: &Overheads) -> Vec<Timing> {
    let big = |d: Duration| BigRational::from_integer(BigInt::from(d.nanos()));
    // Σ o and Σ o / T over the tick and the releases of all residents: a task's own release is among them.
    let mut once = big(overheads.tick);
    let mut rate = big(overheads.tick) / big(overheads.tick_period.max(Duration::from_nanos(1)));
    if !overheads.release.is_zero() {
        once += big(overheads.release) * BigRational::from_integer(residents.tasks.len().into());
        rate += big(overheads.release) * releases_per_time(residents.tasks);
    }
    let left = BigRational::one() - rate;
    let own = [
        overheads.scheduling,
        overheads.scheduling,
        overheads.context_switch,
        overheads.context_switch,
        if residents.processors > 1 {
            overheads.ipi_latency
        } else {
            Duration::ZERO
        },
    ];
    residents
        .tasks
        .iter()
        .zip(residents.delays)
        .map(|(t, delay)| {
            let all = own.iter().chain([delay, delay]);
            let own = all.fold(t.wcet, |sum, o| sum.saturating_add(*o));
            let wcet = if left <= BigRational::zero() {
                Duration::MAX
            } else if once.is_zero() {
                own
            } else {
                let needed = ((big(own) + &once) / &left).ceil().to_integer();
                Duration::from_nanos(needed.to_u64().unwrap_or(u64::MAX))
            };
            Timing { wcet, ..*t }
        })
        .collect()
}

/// Σ 1 / p, rounded up to 2^-64 a task: exact enough to be safe, and cheap for any periods.
fn releases_per_time(tasks: &[Timing]) -> BigRational {
    let scaled = tasks
        .iter()
        .map(|t| (1u128 << 64).div_ceil(u128::from(t.period.nanos().max(1))))
        .sum::<u128>();
    BigRational::new(BigInt::from(scaled), BigInt::from(1u128 << 64))
}
