//! WC: the tardiness bound of the cache-aware scheduler (`ca-edf`), whose priorities are
//! window-constrained.
//!
//! Source: 003 §2 and §3.1: a job may be promoted at any time from its release on, which moves its
//! priority point to the current time; once tardy, it is scheduled by its deadline, before all jobs
//! that are not tardy. So points stay between release and deadline (φ = ψ = 0 in the words of
//! Leontyev and Anderson), and tardiness is bounded for any set of utilization at most m. The bound
//! is derived in `docs/tardiness.md`: Λ = m − 1 and A_k = Σ_{i≠k} e_i − e_k + σ, plus m·Q if the
//! period of k is no whole number of quanta Q; from there on as in `lag`, plus Q for releases
//! within a quantum. σ is what phantom tasks may take at once beyond their share: half of the
//! longest period, or nothing if the set leaves nothing to them.
//!
//! Assumes: sporadic tasks, D = p; WCETs count in whole quanta, rounded up, and periods rounded
//! down, as a processor that falls idle within a quantum stays so until its end. Phantom tasks as
//! `ca-edf` makes them: on top of a set in whole quanta at most the capacity that is left, one of
//! them with a period of the set.

use super::lag;
use crate::carries::Carries;
use crate::info::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, NotApplicable, implicit_deadlines};
use model::{Duration, Ratio, Timing, exact};
use std::cmp::Ordering;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "WC",
    policy: "ca-edf",
    guarantee: Guarantee::Soft,
    exactness: Exactness::Sufficient,
    source: "003 §2, §3.1; Leontyev, Anderson, Real-Time Systems 44 (2010); derived in docs/tardiness.md",
    preconditions: "D = p",
    about: "Tardiness under the cache-aware scheduler is bounded if the set, with WCETs rounded up and periods down to \
            quanta of a millisecond, is not over-utilized: a job may be promoted from its release on, but goes by its \
            deadline once it is tardy, so that its priority stays within its window. The bound itself comes with it.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Nothing,
};

/// The quantum of the registered test.
pub const QUANTUM: Duration = Duration::from_millis(1);

/// Is tardiness bounded with quanta of a millisecond?
///
/// # Errors
/// A deadline other than the period.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    implicit_deadlines(tasks)?;
    Ok(utilization(tasks, m, QUANTUM).is_some_and(Ordering::is_le))
}

/// e and p in quanta.
fn in_quanta(task: &Timing, quantum: Duration) -> (u64, u64) {
    let quantum = quantum.nanos().max(1);
    (
        task.wcet.nanos().div_ceil(quantum),
        task.period.nanos() / quantum,
    )
}

/// U in quanta compared with m; none if a task needs more than a processor.
fn utilization(tasks: &[Timing], m: u32, quantum: Duration) -> Option<Ordering> {
    let quanta = || tasks.iter().map(|t| in_quanta(t, quantum));
    if quanta().any(|(e, p)| e > p || p == 0) {
        return None;
    }
    let shares = quanta().filter_map(|(e, p)| Ratio::new(e, p));
    Some(exact::cmp_sum(shares, Ratio::whole(u64::from(m))))
}

/// A bound of the tardiness of every task with quanta of this length; none if there is no bound. A
/// quantum of zero counts as a nanosecond.
///
/// # Errors
/// A deadline other than the period.
pub fn tardiness_bounds(
    tasks: &[Timing],
    m: u32,
    quantum: Duration,
) -> Result<Option<Vec<Duration>>, NotApplicable> {
    implicit_deadlines(tasks)?;
    let spare = match utilization(tasks, m, quantum) {
        Some(Ordering::Less) => true,
        Some(Ordering::Equal) => false,
        _ => return Ok(None),
    };
    let quantum = Duration::from_nanos(quantum.nanos().max(1));
    let quanta: Vec<(u64, u64)> = tasks.iter().map(|t| in_quanta(t, quantum)).collect();
    let longest = quanta.iter().map(|(_, p)| *p).max().unwrap_or(0);
    let phantoms = if spare { longest.div_ceil(2) } else { 0 };
    let all: i128 = quanta.iter().map(|(e, _)| i128::from(*e)).sum();
    let allowances: Vec<i128> = tasks
        .iter()
        .zip(&quanta)
        .map(|(t, (e, _))| {
            let is_whole = t.period.nanos().is_multiple_of(quantum.nanos());
            let late_start = if is_whole { 0 } else { i128::from(m) };
            all - 2 * i128::from(*e) + i128::from(phantoms) + late_start
        })
        .collect();
    let lambda = m.saturating_sub(1) as usize;
    let bounds = lag::tardiness_bounds(&quanta, m, lambda, &allowances);
    let in_time = |quanta: u64| {
        let late = u128::from(quanta.saturating_add(1)) * u128::from(quantum.nanos());
        Duration::from_nanos(u64::try_from(late).unwrap_or(u64::MAX))
    };
    Ok(Some(bounds.into_iter().map(in_time).collect()))
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
    fn a_full_system_in_whole_quanta_is_bounded() {
        // Λ = 1, A = 6 − 4, x = (2 + 2)/(2 − 2/3) = 3, (2 + 2 + 2)/2 + 2 quanta and one.
        let tasks = [task(2_000, 3_000); 3];
        assert_eq!(is_schedulable(&tasks, 2), Ok(true));
        assert_eq!(
            tardiness_bounds(&tasks, 2, QUANTUM),
            Ok(Some(vec![Duration::from_millis(6); 3]))
        );
        assert_eq!(
            is_schedulable(&[task(2_001, 3_000), tasks[0], tasks[0]], 2),
            Ok(false)
        );
    }

    #[test]
    fn what_phantoms_take_at_once_counts_where_there_are_any() {
        // 003, Fig. 2: U = 3/2 on two processors; 4 of 8 quanta. Λ = 1, A = 7 − 2·e + 4, x = (2 +
        // 9)/(2 − 1/2) = 22/3, E + V·x = 2 + 11/3: for e = 1, ⌈(17/3 + 9)/2⌉ + 1 + 1, for e = 2,
        // ⌈(17/3 + 7)/2⌉ + 2 + 1.
        let set = [(1, 2), (1, 4), (1, 4), (2, 8), (2, 8)].map(|(e, p)| task(e * 1_000, p * 1_000));
        let bounds = tardiness_bounds(&set, 2, QUANTUM).unwrap().unwrap();
        assert_eq!(bounds, [10, 10, 10, 10, 10].map(Duration::from_millis));
    }

    #[test]
    fn a_period_below_the_quantum_is_refused_by_a_no() {
        assert_eq!(is_schedulable(&[task(100, 900)], 4), Ok(false));
        assert_eq!(tardiness_bounds(&[task(100, 900)], 4, QUANTUM), Ok(None));
        // One quantum in nine: x = (1 + 4)/(4 − 1/9) = 9/7, ⌈(1 + 1/7 + 4)/4⌉ + 1 + 1.
        assert_eq!(
            tardiness_bounds(&[task(100, 900)], 4, Duration::from_micros(100)),
            Ok(Some(vec![Duration::from_micros(400)]))
        );
    }
}
