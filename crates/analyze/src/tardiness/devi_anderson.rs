//! DA: the tardiness bound of Devi and Anderson for global EDF.
//!
//! Source: Devi, Anderson, "Tardiness bounds under global EDF scheduling on a multiprocessor",
//! Real-Time Systems 38 (2008), with the improvement Λ = ⌈U⌉ − 1 of Devi, dissertation (UNC 2006),
//! Corollary 4.11. Task k is never later than x + e_k with x = (the sum of the Λ largest e − the
//! least e) / (m − the sum of the Λ − 1 largest u), and nothing is tardy on one processor.
//!
//! Assumes: sporadic tasks, D = p, U ≤ m, u ≤ 1; full preemption.

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::tardiness::{is_bounded, whole_below_utilization};
use crate::verdict::{Decision, Exactness, Guarantee, NotApplicable, implicit_deadlines};
use model::{Duration, Ratio, Timing, exact};
use num_bigint::BigUint;
use num_integer::Integer;
use std::cmp::Reverse;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "DA",
    policy: "g-edf",
    guarantee: Guarantee::Soft,
    exactness: Exactness::Exact,
    source: "Devi, Anderson, Real-Time Systems 38 (2008); Devi, dissertation (UNC 2006), Corollary 4.11",
    preconditions: "D = p",
    about: "Tardiness under global EDF is bounded if and only if the total utilization is at most m and no task's is \
            above 1; the bound itself comes with it.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Blocking,
};

/// Is tardiness bounded?
///
/// # Errors
/// A deadline other than the period.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    implicit_deadlines(tasks)?;
    Ok(is_bounded(tasks, m))
}

/// A bound of the tardiness of every task, rounded up to a nanosecond; none if it is unbounded.
///
/// # Errors
/// A deadline other than the period.
pub fn tardiness_bounds(tasks: &[Timing], m: u32) -> Result<Option<Vec<Duration>>, NotApplicable> {
    implicit_deadlines(tasks)?;
    if !is_bounded(tasks, m) {
        return Ok(None);
    }
    if m <= 1 {
        return Ok(Some(vec![Duration::ZERO; tasks.len()]));
    }
    let x = Duration::from_nanos(common_bound(tasks, m));
    Ok(Some(
        tasks.iter().map(|t| t.wcet.saturating_add(x)).collect(),
    ))
}

/// x, rounded up to a nanosecond; at most 2^64 − 1.
fn common_bound(tasks: &[Timing], m: u32) -> u64 {
    let mut wcets: Vec<u64> = tasks.iter().map(|t| t.wcet.nanos()).collect();
    wcets.sort_unstable_by_key(|e| Reverse(*e));
    // At most m − 1, as U ≤ m.
    let lambda = whole_below_utilization(tasks) as usize;
    let least = wcets.last().copied().unwrap_or(0);
    let cost = wcets
        .iter()
        .take(lambda)
        .map(|e| u128::from(*e))
        .sum::<u128>();
    let cost = cost.saturating_sub(u128::from(least));
    if cost == 0 {
        return 0;
    }
    let mut utilizations: Vec<Ratio> = tasks.iter().map(Timing::utilization).collect();
    utilizations.sort_unstable_by(|a, b| b.cmp(a));
    utilizations.truncate(lambda.saturating_sub(1));
    let (num, den) = exact::sum_unreduced(utilizations);
    // At most m − 2 utilizations of at most 1: the capacity that is left is at least 2.
    let capacity = BigUint::from(m) * &den - num;
    (BigUint::from(cost) * den)
        .div_ceil(&capacity)
        .try_into()
        .unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(wcet: u64, period: u64) -> Timing {
        Timing::implicit(Duration::from_millis(wcet), Duration::from_millis(period))
    }

    #[test]
    fn a_full_system_has_a_bound_and_an_overfull_one_none() {
        // Λ = 1, x = (2 − 2)/2 = 0: each of three tasks of utilization 2/3 is at most its own WCET
        // late.
        let tasks = [task(2, 3); 3];
        assert_eq!(
            tardiness_bounds(&tasks, 2),
            Ok(Some(vec![Duration::from_millis(2); 3]))
        );
        assert_eq!(tardiness_bounds(&[task(2, 3); 4], 2), Ok(None));
        assert_eq!(is_schedulable(&[task(2, 3); 4], 2), Ok(false));
    }

    #[test]
    fn one_processor_is_never_late() {
        assert_eq!(
            tardiness_bounds(&[task(1, 2), task(1, 2)], 1),
            Ok(Some(vec![Duration::ZERO; 2]))
        );
    }
}
