//! PD2: the optimal Pfair algorithm, with WCETs and periods in whole quanta.
//!
//! Source: Anderson, Srinivasan, "Mixed Pfair/ERfair scheduling of asynchronous periodic tasks",
//! Journal of Computer and System Sciences 68 (2004): no deadline is missed if and only if the
//! weights ⌈e/Q⌉/⌊p/Q⌋ sum to at most m and none is above 1. WCETs are rounded up and periods down
//! to quanta.
//!
//! Assumes: sporadic tasks, D = p, released at the start of a quantum.

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, implicit_deadlines};
use model::{Duration, Ratio, Timing, exact};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "PD2",
    policy: "pd2",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Anderson, Srinivasan, Journal of Computer and System Sciences 68 (2004)",
    preconditions: "D = p",
    about: "The weights, with WCETs rounded up and periods down to quanta of a millisecond, sum to at most m. Exact but \
            for the rounding; releases wait for the start of a quantum.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Nothing,
};

/// The quantum of the registered test: the tick of a kernel with 1000 Hz.
pub const QUANTUM: Duration = Duration::from_millis(1);

/// Σ ⌈e/Q⌉/⌊p/Q⌋ ≤ m with quanta of a millisecond.
///
/// # Errors
/// A deadline other than the period.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    is_schedulable_with(tasks, m, QUANTUM)
}

/// ⌈e/Q⌉/⌊p/Q⌋; `None` for a period shorter than the quantum. A quantum of zero counts as a
/// nanosecond.
pub fn weight(task: &Timing, quantum: Duration) -> Option<Ratio> {
    let quantum = quantum.nanos().max(1);
    Ratio::new(
        task.wcet.nanos().div_ceil(quantum),
        task.period.nanos() / quantum,
    )
}

/// Σ ⌈e/Q⌉/⌊p/Q⌋ ≤ m and no weight above 1. A quantum of zero counts as a nanosecond.
///
/// # Errors
/// A deadline other than the period.
pub fn is_schedulable_with(tasks: &[Timing], m: u32, quantum: Duration) -> Decision {
    implicit_deadlines(tasks)?;
    let quantum = quantum.nanos().max(1);
    let weight = |t: &Timing| weight(t, Duration::from_nanos(quantum));
    let fits = |w: Option<Ratio>| w.is_some_and(|w| w <= Ratio::ONE);
    if !tasks.iter().map(weight).all(fits) {
        return Ok(false);
    }
    let weights = tasks.iter().filter_map(weight);
    Ok(exact::cmp_sum(weights, Ratio::whole(u64::from(m))).is_le())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(wcet_us: u64, period_us: u64) -> Timing {
        Timing::implicit(
            Duration::from_micros(wcet_us),
            Duration::from_micros(period_us),
        )
    }

    #[test]
    fn a_full_system_in_whole_quanta_is_schedulable() {
        let tasks = [task(2_000, 3_000); 3];
        assert_eq!(is_schedulable(&tasks, 2), Ok(true));
        assert_eq!(
            is_schedulable(&[task(2_001, 3_000), tasks[0], tasks[0]], 2),
            Ok(false)
        );
    }

    #[test]
    fn rounding_costs_what_it_must() {
        // 1.1 ms of 3.9 ms is 2 of 3 quanta.
        assert_eq!(is_schedulable(&[task(1_100, 3_900); 3], 2), Ok(true));
        assert_eq!(is_schedulable(&[task(1_100, 3_900); 4], 2), Ok(false));
        assert_eq!(
            is_schedulable_with(&[task(1_100, 3_900); 4], 2, Duration::from_micros(100)),
            Ok(true)
        );
        // Shorter than a quantum.
        assert_eq!(is_schedulable(&[task(100, 900)], 2), Ok(false));
    }
}
