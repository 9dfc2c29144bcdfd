//! The tests of partitioned fixed priorities: first fit, with exact response times per placement.
//!
//! 002 §2.2.1 and §2.2.2. Utilization alone says little under fixed priorities, so that a processor
//! takes a task only if the response times of all its tasks with that one stay within their
//! deadlines. A rejected set may be schedulable with another partition.

use super::{Acceptance, EXACT_PLACEMENTS, Fit, Order, TOO_MANY_PLACEMENTS, decide_partition};
use crate::carries::Carries;
use crate::info::TestInfo;
use crate::partition::accept::partition_with;
use crate::uniprocessor::fixed_priority::Priority;
use crate::uniprocessor::{LIMIT, Work, delayed};
use crate::verdict::{Decision, Exactness, Guarantee};
use model::{Extras, Timing};

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
        source: "002 §2.2.2; Lehoczky 1990 per processor",
        preconditions: "at most 5000 tasks; arbitrary deadlines",
        about,
        run,
        run_inflated: None,
        on_grid: None,
        carries,
    }
}

/// Rate-monotonic.
pub const RM: TestInfo = info(
    "PRM-FFD",
    "p-rm",
    "First fit in decreasing utilization, rate-monotonic priorities, exact response times on every processor.",
    |tasks, m| decide(tasks, m, Priority::RateMonotonic),
    Carries::Own(|tasks, extras, m| decide_with(tasks, extras, m, Priority::RateMonotonic)),
);
/// Deadline-monotonic.
pub const DM: TestInfo = info(
    "PDM-FFD",
    "p-fp",
    "First fit in decreasing utilization, deadline-monotonic priorities, exact response times on every processor.",
    |tasks, m| decide(tasks, m, Priority::DeadlineMonotonic),
    Carries::Own(|tasks, extras, m| decide_with(tasks, extras, m, Priority::DeadlineMonotonic)),
);

/// First fit, with the analysis of [`delayed`] per placement.
fn decide_with(tasks: &[Timing], extras: &[Extras], m: u32, priority: Priority) -> Decision {
    if tasks.len() > EXACT_PLACEMENTS {
        return Err(TOO_MANY_PLACEMENTS);
    }
    let mut work = Work::new();
    let ranks = priority.order(tasks);
    let sizes = vec![1; m as usize];
    let order = Order::DecreasingUtilization;
    let packed = partition_with(tasks, &sizes, order, Fit::First, |_, ids| {
        let inside = || ranks.iter().filter(|i| ids.contains(&(**i as u32)));
        let timings: Vec<Timing> = inside().map(|i| tasks[*i]).collect();
        let extras: Vec<Extras> = inside().map(|i| extras[*i]).collect();
        delayed::decide_fixed(&timings, &extras, &mut work) == Ok(true)
    });
    match packed {
        Ok(_) => Ok(true),
        Err(_) if work.left() == 0 => Err(LIMIT),
        Err(_) => Ok(false),
    }
}

fn decide(tasks: &[Timing], m: u32, priority: Priority) -> Decision {
    if tasks.len() > EXACT_PLACEMENTS {
        return Err(TOO_MANY_PLACEMENTS);
    }
    let acceptance = Acceptance::FixedPriority(priority);
    decide_partition(
        tasks,
        m,
        Order::DecreasingUtilization,
        Fit::First,
        acceptance,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    /// 002 Fig. 2.2: one processor misses under RM, two hold the set.
    #[test]
    fn fig_2_2_needs_two_processors() {
        let set = [(1, 3), (2, 5), (2, 8)]
            .map(|(e, p)| Timing::implicit(Duration::from_millis(e), Duration::from_millis(p)));
        assert_eq!((RM.run)(&set, 1), Ok(false));
        assert_eq!((RM.run)(&set, 2), Ok(true));
        assert_eq!((DM.run)(&set, 0), Ok(false));
    }

    /// A deadline below the longest period but of the rarest task: only deadline-monotonic
    /// priorities hold it.
    #[test]
    fn short_deadlines_go_first_under_deadline_monotonic_priorities() {
        let ms = Duration::from_millis;
        let urgent = Timing {
            deadline: ms(2),
            ..Timing::implicit(ms(2), ms(12))
        };
        let set = [Timing::implicit(ms(2), ms(10)), urgent];
        assert_eq!((RM.run)(&set, 1), Ok(false));
        assert_eq!((DM.run)(&set, 1), Ok(true));
    }
}
