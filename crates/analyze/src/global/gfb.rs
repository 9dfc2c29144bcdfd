//! GFB: the density bound for global EDF.
//!
//! Source: Goossens, Funk, Baruah, "Priority-driven scheduling of periodic task systems on
//! multiprocessors", Real-Time Systems 25 (2003), Theorem 5: with implicit deadlines, U ≤ m − (m −
//! 1)·u_max. For constrained deadlines the densities δ = e/D take the place of the utilizations
//! (Bertogna, Cirinei, Lipari, ECRTS 2005).
//!
//! Assumes: sporadic tasks, D ≤ p. A density above 1 and a total utilization above m break the
//! condition by themselves.

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, constrained_deadlines};
use model::{Ratio, Timing, exact};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "GFB",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Goossens, Funk, Baruah, Real-Time Systems 25 (2003), Theorem 5; with densities: Bertogna, Cirinei, \
             Lipari, ECRTS 2005",
    preconditions: "D ≤ p",
    about: "The total density is at most m − (m − 1) times the largest density. Linear in the number of tasks; strong \
            when all tasks are light, useless when one is heavy (the effect of Dhall and Liu).",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Deadlines,
};

/// Σ δ_i + (m − 1)·δ_max ≤ m.
///
/// # Errors
/// A deadline beyond its period.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    let (mut sum, mut max, mut constrained) = (0.0_f64, 0.0_f64, true);
    for t in tasks {
        let density = t.wcet.nanos() as f64 / t.deadline.nanos() as f64;
        sum += density;
        // Not `f64::max`: that one looks for NaN, which the comparison below handles.
        max = if density > max { density } else { max };
        constrained &= t.deadline <= t.period;
    }
    if !constrained {
        constrained_deadlines(tasks)?;
    }
    let total = sum + f64::from(m.saturating_sub(1)) * max;
    // A density is off by at most 3 u (two conversions, one division), each of the additions by one
    // u; u = 2^-53.
    let error = total * (tasks.len() as f64 + 16.0) * f64::EPSILON;
    Ok(if total + error < f64::from(m) {
        true
    } else if total - error > f64::from(m) {
        false
    } else {
        holds_exactly(tasks, m)
    })
}

/// The condition in exact arithmetic, for totals that floating point cannot tell from m.
#[cold]
fn holds_exactly(tasks: &[Timing], m: u32) -> bool {
    let densities = tasks.iter().map(Timing::density);
    let Some(max) = densities.clone().max() else {
        return true;
    };
    let again = std::iter::repeat_n(max, m.saturating_sub(1) as usize);
    exact::cmp_sum_exactly(densities.chain(again), Ratio::whole(u64::from(m))).is_le()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verdict::NotApplicable;
    use model::Duration;

    fn task(wcet: u64, period: u64, deadline: u64) -> Timing {
        Timing {
            wcet: Duration::from_nanos(wcet),
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
        }
    }

    #[test]
    fn the_bound_is_met_with_equality_and_missed_by_a_nanosecond() {
        // 3·(1/3) + 1/2 + 1·(1/2) = 2.
        let third = task(1_000_000_007, 3_000_000_021, 3_000_000_021);
        let mut tasks = vec![third, third, third, task(1 << 40, 1 << 41, 1 << 41)];
        assert_eq!(is_schedulable(&tasks, 2), Ok(true));
        tasks[0] = task(1_000_000_008, 3_000_000_021, 3_000_000_021);
        assert_eq!(is_schedulable(&tasks, 2), Ok(false));
    }

    #[test]
    fn a_heavy_task_among_light_ones_is_rejected_as_dhall_and_liu_showed() {
        let mut tasks = vec![task(2, 1_000, 1_000); 4];
        tasks.push(task(1_000, 1_001, 1_001));
        assert_eq!(is_schedulable(&tasks, 4), Ok(false));
    }

    #[test]
    fn deadlines_beyond_periods_are_refused_by_task() {
        let tasks = [task(1, 5, 5), task(1, 5, 6)];
        assert_eq!(
            is_schedulable(&tasks, 2),
            Err(NotApplicable::ConstrainedDeadlines(1))
        );
    }

    #[test]
    fn inflated_and_extreme_sets_are_decided() {
        let huge = u64::MAX;
        assert_eq!(is_schedulable(&[task(6, 9, 5)], 4), Ok(false));
        assert_eq!(is_schedulable(&[task(huge, huge, huge)], 1), Ok(true));
        assert_eq!(is_schedulable(&[task(huge, huge, huge); 3], 3), Ok(false));
        assert_eq!(is_schedulable(&[task(1, 1, 1)], 0), Ok(false));
    }
}
