//! Worst-case response times under EDF on one processor, exactly.
//!
//! Spuri 1996, "Analysis of deadline scheduled real-time systems" (INRIA RR-2772), §3; 002 §2.2.1
//! on EDF. The worst response of a task is found in a deadline busy period: all other tasks are
//! released together, one job of the task itself `a` later. Its length L(a) is the least t with
//!
//! ```text
//! t = (1 + ⌊a/p_i⌋) e_i + Σ_{j≠i, D_j ≤ a + D_i} min(⌈t/p_j⌉, 1 + ⌊(a + D_i − D_j)/p_j⌋) e_j
//! ```
//!
//! and the response is the largest L(a) − a over all a ≥ 0 within the longest busy period for which
//! a + D_i is some job's deadline. Preemptive, sporadic or synchronous periodic, independent tasks;
//! arbitrary deadlines; U ≤ 1. Equal deadlines count against the task.

use super::{Work, div};
use model::{Duration, Ratio, Timing, exact};

/// The worst-case response time of every task, in the order of `tasks`; none if it is unbounded,
/// for U > 1, or the work that is allowed does not suffice.
pub fn response_times(tasks: &[Timing], work: &mut Work) -> Option<Vec<Duration>> {
    if exact::cmp_sum(tasks.iter().map(Timing::utilization), Ratio::ONE).is_gt() {
        return None;
    }
    let busy = super::edf::busy_period(tasks, work)?;
    (0..tasks.len())
        .map(|task| response_time(tasks, task, busy, work))
        .collect()
}

fn response_time(tasks: &[Timing], task: usize, busy: u128, work: &mut Work) -> Option<Duration> {
    let own = tasks.get(task)?;
    let deadline = u128::from(own.deadline.nanos());
    let mut worst = u128::from(own.wcet.nanos());
    // What is beyond the deadline of every job in the busy period cannot delay a job released in
    // it.
    for other in tasks {
        let period = u128::from(other.period.nanos().max(1));
        let first = u128::from(other.deadline.nanos());
        let skipped = deadline.saturating_sub(first).div_ceil(period);
        let mut due = first + skipped * period;
        while due - deadline < busy {
            let a = due - deadline;
            worst = worst.max(finish(tasks, task, a, work)?.saturating_sub(a));
            due += period;
        }
    }
    Some(Duration::from_nanos(
        u64::try_from(worst).unwrap_or(u64::MAX),
    ))
}

/// L(a): when the job of `task` released at `a` finishes in its deadline busy period.
fn finish(tasks: &[Timing], task: usize, a: u128, work: &mut Work) -> Option<u128> {
    let own = &tasks[task];
    let due = a + u128::from(own.deadline.nanos());
    let jobs = div(a, own.period.nanos().max(1)) + 1;
    let own_time = jobs * u128::from(own.wcet.nanos());
    let mut t = own_time;
    loop {
        if !work.spend(tasks.len() as u64) {
            return None;
        }
        let mut next = own_time;
        for (index, other) in tasks.iter().enumerate() {
            let Some(beyond) = due.checked_sub(u128::from(other.deadline.nanos())) else {
                continue;
            };
            if index == task {
                continue;
            }
            let period = other.period.nanos().max(1);
            let released = div(t + u128::from(period) - 1, period);
            let due_in_time = div(beyond, period) + 1;
            next += released.min(due_in_time) * u128::from(other.wcet.nanos());
        }
        if next == t {
            return Some(t);
        }
        t = next;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn task(e: u64, p: u64, d: u64) -> Timing {
        Timing {
            wcet: Duration::from_nanos(e),
            period: Duration::from_nanos(p),
            deadline: Duration::from_nanos(d),
        }
    }
    fn times(tasks: &[Timing]) -> Option<Vec<u64>> {
        let times = response_times(tasks, &mut Work::new())?;
        Some(times.into_iter().map(Duration::nanos).collect())
    }

    #[test]
    fn a_task_alone_responds_in_its_execution_time() {
        assert_eq!(times(&[task(3, 7, 5)]), Some(vec![3]));
        assert_eq!(times(&[]), Some(Vec::new()));
        assert_eq!(times(&[task(2, 2, 2), task(1, 9, 9)]), None);
    }

    /// Two tasks of U = 1: each may be the last of its busy period, up to its deadline.
    #[test]
    fn a_full_processor_responds_at_the_deadline() {
        assert_eq!(times(&[task(1, 2, 2), task(2, 4, 4)]), Some(vec![2, 4]));
        // With a late deadline of the second the first is never delayed.
        assert_eq!(times(&[task(1, 4, 2), task(2, 8, 8)]), Some(vec![1, 3]));
    }

    #[test]
    fn work_is_counted() {
        let set = [task(1_000_003, 3_000_017, 3_000_017); 3];
        assert!(response_times(&set[..2], &mut Work::of(10)).is_none());
    }
}
