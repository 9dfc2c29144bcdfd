//! GDM-DENSITY: the density bound for global deadline-monotonic priorities.
//!
//! Source: Bertogna, Cirinei, Lipari, "New schedulability tests for real-time task sets scheduled
//! by deadline monotonic on multiprocessors", OPODIS 2005, Theorem 5: Σ δ_i ≤ m/2·(1 − δ_max) +
//! δ_max with δ = e/D. With deadlines equal to periods it is their utilization bound for
//! rate-monotonic priorities.
//!
//! Multiplied by two, as here: 2·Σ δ_i + (m − 2)·δ_max ≤ m.
//!
//! Assumes: sporadic tasks, D ≤ p, m ≥ 2. A density above 1 breaks the condition by itself.

use crate::carries::{self, Carries};
use crate::global::max_density;
use crate::info::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, processors,
};
use model::exact::ExactSum;
use model::{Extras, Timing};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "GDM-DENSITY",
    policy: "g-fp:dm",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Bertogna, Cirinei, Lipari, OPODIS 2005, Theorem 5",
    preconditions: "D ≤ p, m ≥ 2",
    about: "The total density is at most half of m·(1 − δ) plus δ, where δ is the largest density; deadline-monotonic \
            priorities. Linear in the number of tasks.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Own(is_schedulable_with),
};

/// The bound for deadlines less jitter, which it takes for the order of priorities.
fn is_schedulable_with(tasks: &[Timing], extras: &[Extras], m: u32) -> Decision {
    let Some((order, reduced)) = carries::by_deadline(tasks, extras)? else {
        return Ok(false);
    };
    if !order.is_sorted_by_key(|i| reduced[*i].deadline) {
        return Err(NotApplicable::Precondition(
            "deadlines less jitter stand in the order of the deadlines",
        ));
    }
    is_schedulable(&reduced, m)
}

/// 2·Σ δ_i + (m − 2)·δ_max ≤ m.
///
/// # Errors
/// A deadline beyond its period; fewer than two processors.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    constrained_deadlines(tasks)?;
    processors(2, m)?;
    let twice: f64 = tasks.iter().map(|t| 2.0 * t.density().to_f64()).sum();
    let Some(max) = max_density(tasks) else {
        return Ok(true);
    };
    let heavy = u128::from(m - 2);
    let total = twice + heavy as f64 * max.to_f64();
    // A density is off by at most three units of the last place, each addition by one.
    let error = total * (tasks.len() as f64 + 16.0) * f64::EPSILON;
    if total + error < f64::from(m) {
        return Ok(true);
    }
    if total - error > f64::from(m) {
        return Ok(false);
    }
    let mut exact = ExactSum::new();
    for t in tasks {
        exact.add_scaled(2, t.density());
    }
    exact.add_scaled(heavy, max);
    Ok(exact.cmp_whole(i128::from(m)).is_le())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::NotApplicable;
    use model::Duration;

    fn task(wcet: u64, deadline: u64) -> Timing {
        Timing::implicit(Duration::from_nanos(wcet), Duration::from_nanos(deadline))
    }

    #[test]
    fn the_bound_is_met_with_equality_and_missed_by_a_nanosecond() {
        // m = 4: 2·(1/2 + 1/3 + 1/3 + 1/3) + 2·(1/2) = 4.
        let third = task(1_000_000_007, 3_000_000_021);
        let mut tasks = vec![task(1 << 40, 1 << 41), third, third, third];
        assert_eq!(is_schedulable(&tasks, 4), Ok(true));
        tasks[3] = task(1_000_000_008, 3_000_000_021);
        assert_eq!(is_schedulable(&tasks, 4), Ok(false));
    }

    #[test]
    fn two_processors_hold_a_total_density_of_one() {
        assert_eq!(is_schedulable(&[task(9, 10), task(1, 10)], 2), Ok(true));
        assert_eq!(is_schedulable(&[task(9, 10), task(2, 10)], 2), Ok(false));
        assert_eq!(
            is_schedulable(&[task(1, 10)], 1),
            Err(NotApplicable::TooFewProcessors {
                needed: 2,
                given: 1
            })
        );
    }

    #[test]
    fn a_density_above_one_is_rejected() {
        assert_eq!(is_schedulable(&[task(11, 10)], 2), Ok(false));
        assert_eq!(is_schedulable(&[task(11, 10)], 64), Ok(false));
        assert_eq!(
            is_schedulable(&[task(u64::MAX, u64::MAX)], u32::MAX),
            Ok(true)
        );
    }
}
