//! GFP-RTA and GDM-RTA: response times by bounded interference under global fixed priorities, with limited carry-in.
//!
//! Source: Bertogna, Cirinei, "Response-time analysis for globally scheduled symmetric multiprocessor platforms", RTSS
//! 2007, the analysis for fixed priorities; Guan, Stigge, Yi, Yu, "New response time bounds for fixed priority
//! multiprocessor scheduling", RTSS 2009, Equations 5–9 and 12, which lets at most m − 1 tasks carry work into the interval
//! that is looked at. In the order of priority, the response time of task k is the least R ≥ e_k with
//! R = e_k + ⌊Ω(R)/m⌋. Of a higher task i, an interval of length x holds at most
//! NC_i = ⌊x/p_i⌋·e_i + min(e_i, x mod p_i) if no work is carried in, else
//! CI_i = ⌊y/p_i⌋·e_i + e_i + min(e_i − 1, max(0, y mod p_i − (p_i − R_i))), y = max(0, x − e_i);
//! both count up to x − e_k + 1 only. Ω is the sum of all NC_i and of the m − 1 largest differences CI_i − NC_i.
//!
//! It is never worse than the analysis of 2007, which lets every task carry in.
//!
//! Assumes: sporadic tasks, D ≤ p; releases and times in whole nanoseconds, which is all that this crate can say.

use crate::carries::{self, Carries};
use crate::columns::Budget;
use crate::registry::TestInfo;
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
        carries,
    }
}

/// The entry of the registry for priorities in the order of the set.
pub const GIVEN: TestInfo = info(
    "GFP-RTA",
    "g-fp",
    "A bound of the response time of every task under global fixed priorities in the order of the set, the first task \
     highest; at most m − 1 tasks carry work in. Pseudo-polynomial; integer time, in nanoseconds.",
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

/// A bound of the response time of every task, in the order of `tasks`, if the set is schedulable by this test.
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
    let mut differences = Vec::with_capacity(tasks.len());
    for index in priority.order(tasks) {
        let Some(response) = respond(&tasks[index], &higher, m, &mut differences, &mut budget)? else {
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
        let carried = (y % self.period)
            .saturating_sub(self.spare)
            .min(self.wcet.saturating_sub(1));
        ((y / self.period) * self.wcet)
            .saturating_add(self.wcet)
            .saturating_add(carried)
    }
}

/// The least solution for a task below `higher`, if it is within its deadline.
fn respond(
    task: &Timing,
    higher: &[Higher],
    m: u32,
    differences: &mut Vec<u64>,
    budget: &mut Budget,
) -> Result<Option<u64>, NotApplicable> {
    let (wcet, deadline) = (task.wcet.nanos(), task.deadline.nanos());
    let mut response = wcet;
    loop {
        // Wide divisions and a selection: about eight times a comparison.
        budget.spend(8 * (1 + higher.len() as u64))?;
        let interference = interference(response, wcet, higher, m, differences) / u128::from(m);
        let next = u128::from(wcet) + interference;
        if next > u128::from(deadline) {
            return Ok(None);
        }
        if next <= u128::from(response) {
            return Ok(Some(response));
        }
        // Within the deadline.
        response = u64::try_from(next).unwrap_or(deadline);
    }
}

/// Ω for an interval of length `x` of a task with this WCET.
fn interference(x: u64, wcet: u64, higher: &[Higher], m: u32, differences: &mut Vec<u64>) -> u128 {
    let most = (x - wcet).saturating_add(1);
    differences.clear();
    let mut sum = 0_u128;
    for task in higher {
        let without = task.without_carry_in(x).min(most);
        let with = task.with_carry_in(x).min(most);
        sum += u128::from(without);
        // Never negative: what is carried in comes on top.
        differences.push(with.saturating_sub(without));
    }
    let carrying = m as usize - 1;
    if carrying < differences.len() {
        if carrying == 0 {
            return sum;
        }
        differences.select_nth_unstable_by(carrying, |a, b| b.cmp(a));
        differences.truncate(carrying);
    }
    sum + differences.iter().map(|d| u128::from(*d)).sum::<u128>()
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
        // With m = 1 nothing is carried in; the least R = e_k + Σ min(NC_i, R − e_k + 1).
        let tasks = [task(1, 4, 4), task(2, 6, 6), task(3, 12, 12)];
        let bounds = response_bounds(&tasks, 1, Priority::Given).unwrap().unwrap();
        assert_eq!(bounds.iter().map(|b| b.nanos()).collect::<Vec<_>>(), [1, 3, 10]);
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
