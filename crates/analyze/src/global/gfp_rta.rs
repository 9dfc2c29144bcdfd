//! GFP-RTA and GDM-RTA: response times by bounded interference under global fixed priorities, with
//! limited carry-in.
//!
//! Source: Bertogna, Cirinei, "Response-time analysis for globally scheduled symmetric
//! multiprocessor platforms", RTSS 2007, the analysis for fixed priorities; Guan, Stigge, Yi, Yu,
//! "New response time bounds for fixed priority multiprocessor scheduling", RTSS 2009, Equations
//! 5–9 and 12, which lets at most m − 1 tasks carry work into the interval that is looked at. Of a
//! higher task i, an interval of length R holds at most NC_i = ⌊R/p_i⌋·e_i + min(e_i, R mod p_i) if
//! no work is carried in, else CI_i = ⌊y/p_i⌋·e_i + e_i + min(e_i, max(0, y mod p_i − (p_i −
//! R_i))), y = max(0, R − e_i). Ω(R, z) is the sum of all min(NC_i, z) and of the m − 1 largest
//! min(CI_i, z) − min(NC_i, z). In the order of priority, the response time of task k is at most
//! R_k = e_k + x for the least whole x ≥ 0 with Ω(R_k, z) < m·z for all z just above x.
//!
//! The papers have integer time: e_i − 1 in CI_i, and R = e_k + ⌊Ω(R, R − e_k + 1)/m⌋. Here
//! releases may fall anywhere:
//! - Suppose that a job of task k, released at r, is not done at r + R_k. Let t be the least time
//!   up to which, going back from r, all processors execute higher tasks. Right before t at most m
//!   − 1 of these have work, so at most as many carry work in. In [t, t + R_k) the job executes for
//!   less than e_k, so that all processors execute higher tasks for a time I > x = R_k − e_k, and
//!   Ω(R_k, z) ≥ m·z for every z ≤ I (proven as for [RTA](super::rta)). As all times are whole,
//!   Ω(R_k, z) < m·z just above x if Ω(R_k, x) ≤ m·x and Ω(R_k, x + 1/2) < m·(x + 1/2).
//! - A task that carries in, its job released a before t, brings min(e_i, max(0, R_i − a)) and what
//!   its releases from p_i − a on bring. The second grows no faster than the first falls, so that
//!   the most is at a = R_i − e_i: e_i and NC_i for R − e_i − (p_i − R_i), which is CI_i. The job
//!   has executed before t, for any time above zero: no tick can be taken off.
//!
//! It is never worse than the analysis of 2007, which lets every task carry in.
//!
//! Assumes: sporadic tasks, D ≤ p. Bounds are whole nanoseconds.

use crate::carries::{self, Carries};
use crate::columns::Budget;
use crate::info::TestInfo;
use crate::uniprocessor::fixed_priority::Priority;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, tasks_are_feasible,
};
use model::{Duration, Timing};

const fn info(
    name: &'static str,
    policy: &'static str,
    about: &'static str,
    run: fn(&[Timing], u32) -> Decision,
    carries: Carries,
) -> TestInfo {
    TestInfo {
        name,
        policy,
        guarantee: Guarantee::Hard,
        exactness: Exactness::Sufficient,
        source: "Bertogna, Cirinei, RTSS 2007; Guan, Stigge, Yi, Yu, RTSS 2009, Equations 5–9 and 12",
        preconditions: "D ≤ p",
        about,
        run,
        run_inflated: None,
        on_grid: None,
        carries,
    }
}

/// The entry of the registry for priorities in the order of the set.
pub const GIVEN: TestInfo = info(
    "GFP-RTA",
    "g-fp",
    "A bound of the response time of every task under global fixed priorities in the order of the set, the first task \
     highest; at most m − 1 tasks carry work in. Pseudo-polynomial; bounds in whole nanoseconds.",
    |tasks, m| is_schedulable(tasks, m, Priority::Given),
    Carries::Sporadic,
);

/// The entry of the registry for deadline-monotonic priorities.
pub const DEADLINE_MONOTONIC: TestInfo = info(
    "GDM-RTA",
    "g-fp:dm",
    "As GFP-RTA, with deadline-monotonic priorities: the shorter the deadline, the higher; ties by the order of the set.",
    |tasks, m| is_schedulable(tasks, m, Priority::DeadlineMonotonic),
    Carries::Own(|tasks, extras, m| {
        let Some((order, reduced)) = carries::by_deadline(tasks, extras)? else {
            return Ok(false);
        };
        let sorted: Vec<Timing> = order.iter().map(|i| reduced[*i]).collect();
        is_schedulable(&sorted, m, Priority::Given)
    }),
);

/// Has every task a response time within its deadline?
///
/// # Errors
/// A deadline beyond its period; too many steps.
pub fn is_schedulable(tasks: &[Timing], m: u32, priority: Priority) -> Decision {
    response_bounds(tasks, m, priority).map(|bounds| bounds.is_some())
}

/// A bound of the response time of every task, in the order of `tasks`, if the set is schedulable
/// by this test.
///
/// # Errors
/// As [`is_schedulable`].
pub fn response_bounds(
    tasks: &[Timing],
    m: u32,
    priority: Priority,
) -> Result<Option<Vec<Duration>>, NotApplicable> {
    constrained_deadlines(tasks)?;
    if !tasks_are_feasible(tasks) || (m == 0 && !tasks.is_empty()) {
        return Ok(None);
    }
    let mut budget = Budget::new(tasks.len());
    let mut bounds = vec![Duration::ZERO; tasks.len()];
    let mut higher = Vec::with_capacity(tasks.len());
    let mut work = Work::default();
    for index in priority.order(tasks) {
        let Some(response) = respond(&tasks[index], &higher, m, &mut work, &mut budget)? else {
            return Ok(None);
        };
        bounds[index] = Duration::from_nanos(response);
        higher.push(Higher::new(&tasks[index], response));
    }
    Ok(Some(bounds))
}

/// A task of higher priority: e, p, and p − R.
struct Higher {
    wcet: u64,
    period: u64,
    spare: u64,
}

impl Higher {
    fn new(task: &Timing, response: u64) -> Self {
        Higher {
            wcet: task.wcet.nanos(),
            period: task.period.nanos(),
            spare: task.period.nanos().saturating_sub(response),
        }
    }

    /// What an interval of length `x` holds at most, with nothing carried in: never more than `x`.
    fn without_carry_in(&self, x: u64) -> u64 {
        (x / self.period) * self.wcet + self.wcet.min(x % self.period)
    }

    /// The same if work is carried in; 2^64 − 1 for more than that.
    fn with_carry_in(&self, x: u64) -> u64 {
        let y = x.saturating_sub(self.wcet);
        let carried = (y % self.period).saturating_sub(self.spare).min(self.wcet);
        ((y / self.period) * self.wcet)
            .saturating_add(self.wcet)
            .saturating_add(carried)
    }
}

/// The least bound for a task below `higher`, if it is within its deadline.
fn respond(
    task: &Timing,
    higher: &[Higher],
    m: u32,
    work: &mut Work,
    budget: &mut Budget,
) -> Result<Option<u64>, NotApplicable> {
    let wcet = task.wcet.nanos();
    let most = task.deadline.nanos() - wcet;
    // Wide divisions and a selection: about eight times a comparison.
    let cost = 8 * (1 + higher.len() as u64);
    let mut interference = 0;
    loop {
        budget.spend(cost)?;
        work.fill(higher, wcet + interference);
        let Some(least) = work.exceeds(interference, m) else {
            return Ok(Some(wcet + interference));
        };
        // Work does not fall as the interval grows, so that no solution is below the least one for
        // the work of this interval. All below that one are none: Ω(R, z) − m·z is zero at zero
        // and, for each choice of tasks, concave.
        let (mut low, mut high) = (interference, least);
        if high <= most && work.exceeds(high, m).is_some() {
            budget.spend(cost)?;
            (low, high) = (high, most + 1);
            while high - low > 1 {
                budget.spend(cost)?;
                let middle = low + (high - low) / 2;
                match work.exceeds(middle, m) {
                    Some(_) => low = middle,
                    None => high = middle,
                }
            }
        }
        debug_assert!(low < high);
        if high > most {
            return Ok(None);
        }
        interference = high;
    }
}

/// NC and CI of all higher tasks for one interval.
#[derive(Default)]
struct Work {
    without: Vec<u64>,
    with: Vec<u64>,
    differences: Vec<u128>,
}

impl Work {
    fn fill(&mut self, higher: &[Higher], interval: u64) {
        self.without.clear();
        self.with.clear();
        self.without
            .extend(higher.iter().map(|t| t.without_carry_in(interval)));
        self.with
            .extend(higher.iter().map(|t| t.with_carry_in(interval)));
    }

    /// If Ω(R, z) ≥ m·z for some z just above `x`: what any larger x must be at least.
    fn exceeds(&mut self, x: u64, m: u32) -> Option<u64> {
        let (twice, m) = (2 * u128::from(x), u128::from(m));
        let at = self.sum(twice, m);
        if at > m * twice {
            return Some(u64::try_from(at.div_ceil(2 * m)).unwrap_or(u64::MAX));
        }
        (at == m * twice && self.sum(twice + 1, m) >= m * (twice + 1)).then(|| x.saturating_add(1))
    }

    /// 2·Ω(R, z) for the interval that was filled in, from `most` = 2·z.
    fn sum(&mut self, most: u128, m: u128) -> u128 {
        self.differences.clear();
        let mut sum = 0;
        for (without, with) in self.without.iter().zip(&self.with) {
            let without = (2 * u128::from(*without)).min(most);
            let with = (2 * u128::from(*with)).min(most);
            sum += without;
            // Never negative: what is carried in comes on top.
            self.differences.push(with.saturating_sub(without));
        }
        let carrying = m as usize - 1;
        if carrying < self.differences.len() {
            if carrying == 0 {
                return sum;
            }
            self.differences
                .select_nth_unstable_by(carrying, |a, b| b.cmp(a));
            self.differences.truncate(carrying);
        }
        sum + self.differences.iter().sum::<u128>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(wcet: u64, period: u64, deadline: u64) -> Timing {
        Timing {
            wcet: Duration::from_nanos(wcet),
            period: Duration::from_nanos(period),
            deadline: Duration::from_nanos(deadline),
        }
    }

    #[test]
    fn as_many_tasks_as_processors_do_not_disturb_each_other() {
        let tasks = [task(9, 10, 9), task(99, 100, 99), task(5, 5, 5)];
        let bounds = response_bounds(&tasks, 3, Priority::DeadlineMonotonic).unwrap();
        assert_eq!(
            bounds,
            Some(tasks.iter().map(|t| t.wcet).collect::<Vec<Duration>>())
        );
    }

    #[test]
    fn one_processor_without_carry_in_is_the_classical_analysis() {
        // With m = 1 nothing is carried in.
        let tasks = [task(1, 4, 4), task(2, 6, 6), task(3, 12, 12)];
        let bounds = response_bounds(&tasks, 1, Priority::Given)
            .unwrap()
            .unwrap();
        assert_eq!(
            bounds.iter().map(|b| b.nanos()).collect::<Vec<_>>(),
            [1, 3, 10]
        );
    }

    /// The interference of both is the same up to 8 ms: a step of a nanosecond a time would end at
    /// the limit of work.
    #[test]
    fn as_many_heavy_tasks_as_processors_are_passed_in_few_steps() {
        let ms = 1_000_000;
        let tasks =
            [task(8 * ms, 90 * ms, 90 * ms); 2]
                .into_iter()
                .chain([task(3 * ms, 90 * ms, 90 * ms)]);
        let bounds = response_bounds(&tasks.collect::<Vec<_>>(), 2, Priority::Given).unwrap();
        let nanos: Vec<u64> = bounds.unwrap().iter().map(|b| b.nanos()).collect();
        assert_eq!(nanos, [8 * ms, 8 * ms, 11 * ms]);
    }

    #[test]
    fn the_effect_of_dhall_and_liu_is_rejected() {
        let mut tasks = vec![task(2, 1_000, 1_000); 4];
        tasks.push(task(1_000, 1_001, 1_001));
        assert_eq!(is_schedulable(&tasks, 4, Priority::Given), Ok(false));
        // The heavy task first: one light task shares the three other processors with its like.
        tasks.rotate_right(1);
        assert_eq!(is_schedulable(&tasks, 4, Priority::Given), Ok(true));
    }

    #[test]
    fn deadlines_beyond_periods_are_refused() {
        assert_eq!(
            is_schedulable(&[task(1, 2, 3)], 1, Priority::Given),
            Err(NotApplicable::ConstrainedDeadlines(0))
        );
    }
}
