//! EDF on one processor, exactly: utilization, and the demand bound by quick processor-demand
//! analysis (QPA).
//!
//! 002 §2.2.1 (U ≤ 1 decides where no deadline is shorter than its period: Liu and Layland 1973);
//! otherwise the demand bound h(t) ≤ t for all t (Baruah, Rosier, Howell 1990), checked backwards
//! from a bound on the first violation (Zhang, Burns 2009: Theorems 2–5). Preemptive, sporadic or
//! synchronous periodic, independent tasks; arbitrary deadlines.
//!
//! All in integers. The bound L on the first violation only has to be an upper bound, so it is
//! computed in 64-bit fixed point, rounded up; where U is too near 1 for that, L is the hyperperiod
//! or the synchronous busy period.

use super::delayed::released_within;
use super::demand::Columns;
use super::{LIMIT, Work, div};
use crate::verdict::Decision;
use model::{Ratio, Timing, exact};
use num_integer::Integer;
use std::cmp::Ordering;

/// Does EDF meet every deadline of these tasks on one processor of their own? Exact; see [`LIMIT`].
///
/// No tasks need no time: yes.
pub fn decide(tasks: &[Timing]) -> Decision {
    decide_within(tasks, &mut Work::new())
}

/// [`decide`] with a limit of work of one's own.
pub fn decide_within(tasks: &[Timing], work: &mut Work) -> Decision {
    if tasks.iter().any(|t| t.wcet > t.deadline) {
        return Ok(false);
    }
    if exact::cmp_sum(tasks.iter().map(Timing::utilization), Ratio::ONE) == Ordering::Greater {
        return Ok(false);
    }
    decide_by_demand_within(tasks, work)
}

/// [`decide`] for a set that is known to have U ≤ 1 and no WCET above its deadline.
pub fn decide_by_demand(tasks: &[Timing]) -> Decision {
    decide_by_demand_within(tasks, &mut Work::new())
}

/// [`decide_by_demand`] with a limit of work of one's own.
pub fn decide_by_demand_within(tasks: &[Timing], work: &mut Work) -> Decision {
    if tasks.iter().all(|t| t.deadline >= t.period) {
        return Ok(true);
    }
    let longest = tasks.iter().map(|t| t.deadline.nanos()).max().unwrap_or(0);
    let longest = u128::from(longest);
    let bound = match violation_bound(tasks) {
        Some(bound) if bound <= FAR * longest => return search(tasks, bound, work),
        Some(bound) => Some(hyperperiod(tasks).map_or(bound, |repeats| repeats.min(bound))),
        None => hyperperiod(tasks),
    };
    // Where there is far to go, most overloads show before the longest deadline.
    if search(tasks, longest, work) == Ok(false) {
        return Ok(false);
    }
    match bound.or_else(|| busy_period(tasks, work)) {
        Some(bound) => search(tasks, bound, work),
        None => Err(LIMIT),
    }
}

/// From so many times the longest deadline on the hyperperiod is asked whether it is shorter than
/// the bound.
const FAR: u128 = 16;

/// A time after which no deadline is missed if none is before, U ≤ 1: the least common multiple H of
/// all periods, after the longest D − p.
///
/// From the longest D − p on, h(t + H) = h(t) + U H, so that h(t + H) − (t + H) ≤ h(t) − t. `None`:
/// beyond 2^100.
pub(super) fn hyperperiod(tasks: &[Timing]) -> Option<u128> {
    let mut common: u128 = 1;
    let mut longest = 0;
    for t in tasks {
        let period = t.period.nanos().max(1);
        let rest = u64::try_from(common % u128::from(period)).unwrap_or(0);
        common = common.checked_mul(u128::from(period / rest.gcd(&period)))?;
        if common >> 100 != 0 {
            return None;
        }
        longest = longest.max(t.deadline.nanos().saturating_sub(period));
    }
    Some(common + u128::from(longest))
}

/// QPA: is h(t) ≤ t for all t ≤ `bound`? Downwards; between h(t) and t there is no violation,
/// because h is monotone.
fn search(tasks: &[Timing], bound: u128, work: &mut Work) -> Decision {
    let first_deadline = tasks
        .iter()
        .map(|t| u128::from(t.deadline.nanos()))
        .min()
        .unwrap_or(0);
    let Some(mut t) = last_deadline_before(tasks, bound + 1) else {
        return Ok(true);
    };
    let columns = Columns::of(tasks);
    loop {
        let cost = if t >> 64 == 0 { 1 } else { 8 };
        if !work.spend(cost * tasks.len() as u64) {
            return Err(LIMIT);
        }
        let h = columns.demand(tasks, t);
        if h > t {
            return Ok(false);
        }
        if h <= first_deadline {
            return Ok(true);
        }
        t = if h < t {
            h
        } else {
            match last_deadline_before(tasks, t) {
                Some(earlier) => earlier,
                None => return Ok(true),
            }
        };
    }
}

/// h(t): the execution of all jobs with release and deadline in [0, t], synchronously released.
pub fn demand(tasks: &[Timing], t: u128) -> u128 {
    tasks
        .iter()
        .filter_map(|task| {
            let beyond = t.checked_sub(u128::from(task.deadline.nanos()))?;
            let jobs = div(beyond, task.period.nanos()) + 1;
            // At most U (t + max period), far below 2^128: t itself is below 2^101.
            Some(jobs * u128::from(task.wcet.nanos()))
        })
        .sum()
}

/// The latest absolute deadline before `t`.
pub(super) fn last_deadline_before(tasks: &[Timing], t: u128) -> Option<u128> {
    tasks
        .iter()
        .filter_map(|task| {
            let (d, p) = (u128::from(task.deadline.nanos()), task.period.nanos());
            let beyond = t.checked_sub(1)?.checked_sub(d)?;
            Some(d + div(beyond, p) * u128::from(p))
        })
        .max()
}

/// An upper bound on the first t with h(t) > t: max(max(Dᵢ − pᵢ), Σ (pᵢ − Dᵢ) uᵢ / (1 − U)); `None`
/// where 1 − U is below the resolution of the fixed point, or the bound beyond 2^100.
pub(super) fn violation_bound(tasks: &[Timing]) -> Option<u128> {
    violation_bound_from(tasks, 0)
}

/// The same for h(t) + `blocking` > t.
pub(super) fn violation_bound_from(tasks: &[Timing], blocking: u128) -> Option<u128> {
    const ONE: u128 = 1 << 64;
    let mut utilization: u128 = 0; // scaled by 2^64, rounded up
    let mut slack: u128 = blocking; // and Σ (pᵢ − Dᵢ) uᵢ in nanoseconds, rounded up
    let mut longest: u128 = 0;
    for t in tasks {
        let (e, p, d) = (
            u128::from(t.wcet.nanos()),
            u128::from(t.period.nanos().max(1)),
            u128::from(t.deadline.nanos()),
        );
        utilization += (e << 64).div_ceil(p);
        if d < p {
            slack += ((p - d) * e).div_ceil(p);
        } else {
            longest = longest.max(d - p);
        }
    }
    let idle = ONE.checked_sub(utilization).filter(|idle| *idle > 0)?;
    // slack · 2^64 / idle without overflow: in two steps of 32 bits, each rounded up.
    let quotient = slack / idle;
    let rest = slack % idle;
    let high = rest << 32;
    let (q1, r1) = (high / idle, high % idle);
    let q0 = (r1 << 32).div_ceil(idle);
    let fraction = (q1 << 32) + q0;
    let bound = quotient
        .checked_mul(ONE)?
        .checked_add(fraction)?
        .max(longest);
    (bound >> 100 == 0).then_some(bound)
}

/// The length of the synchronous busy period, the least w > 0 with w = Σ ⌈w / pᵢ⌉ eᵢ; `None` past
/// the limit of work.
pub(super) fn busy_period(tasks: &[Timing], work: &mut Work) -> Option<u128> {
    busy_period_from(tasks, &[], 0, work)
}

/// The same with release jitter (by task; empty: none) and blocking: the least w > 0 with w = B + Σ
/// ⌈(w + Jᵢ) / pᵢ⌉ eᵢ.
pub(super) fn busy_period_from(
    tasks: &[Timing],
    jitters: &[u64],
    blocking: u128,
    work: &mut Work,
) -> Option<u128> {
    let mut w: u128 = blocking
        + tasks
            .iter()
            .map(|t| u128::from(t.wcet.nanos()))
            .sum::<u128>();
    loop {
        let cost = if w >> 64 == 0 { 1 } else { 8 };
        if w >> 100 != 0 || !work.spend(cost * tasks.len() as u64) {
            return None;
        }
        let jobs = |at: usize, t: &Timing| {
            let jitter = jitters.get(at).copied().unwrap_or(0);
            released_within(w, t.period.nanos(), jitter) * u128::from(t.wcet.nanos())
        };
        let released: u128 = tasks.iter().enumerate().map(|(at, t)| jobs(at, t)).sum();
        let next = blocking + released;
        if next == w {
            return Some(w);
        }
        w = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::sets::task_ns as task;

    /// 002 §2.2.1, Fig. 2.2: T1 = (1, 3), T2 = (2, 5), T3 = (2, 8) are schedulable under EDF.
    #[test]
    fn fig_2_2_is_schedulable_under_edf() {
        assert_eq!(
            decide(&[task(1, 3, 3), task(2, 5, 5), task(2, 8, 8)]),
            Ok(true)
        );
    }

    #[test]
    fn utilization_of_exactly_one_is_schedulable_and_one_nanosecond_more_is_not() {
        let p = (1 << 60) - 93;
        assert_eq!(
            decide(&[task(p / 2, p, p), task(p - p / 2, p, p)]),
            Ok(true)
        );
        assert_eq!(
            decide(&[task(p / 2, p, p), task(p - p / 2 + 1, p, p)]),
            Ok(false)
        );
    }

    #[test]
    fn a_deadline_one_nanosecond_short_is_seen() {
        // Two jobs of 5 in 10: the second needs a deadline of 10.
        assert_eq!(decide(&[task(5, 100, 5), task(5, 100, 10)]), Ok(true));
        assert_eq!(decide(&[task(5, 100, 5), task(5, 100, 9)]), Ok(false));
        // U = 1 with a constrained deadline: the busy period bounds the search.
        assert_eq!(decide(&[task(1, 2, 1), task(2, 4, 4)]), Ok(true));
        assert_eq!(decide(&[task(1, 2, 2), task(2, 4, 2)]), Ok(false));
    }

    #[test]
    fn hostile_sets_end_with_an_answer_or_the_limit() {
        let primes = [(1u64 << 60) - 93, (1 << 60) - 107, (1 << 60) - 173];
        let set: Vec<_> = primes.iter().map(|p| task(p / 3, *p, p - 1)).collect();
        assert_eq!(decide(&set), Ok(true));
        // U within 2^-60 of 1, coprime periods: the first violation, if any, may lie beyond 2^120.
        let near: Vec<_> = primes.iter().map(|p| task(p / 3, *p, p / 2)).collect();
        assert_eq!(decide(&near), Ok(false));
        let exactly_one = [task(1, 2, 1), task(primes[0] / 2, primes[0], primes[0] - 1)];
        assert_ne!(decide(&exactly_one), Ok(false));
        assert_eq!(decide(&[task(u64::MAX, u64::MAX, u64::MAX)]), Ok(true));
        assert_eq!(
            decide(&[
                task(u64::MAX, u64::MAX, u64::MAX),
                task(1, u64::MAX, u64::MAX)
            ]),
            Ok(false)
        );
    }
}
