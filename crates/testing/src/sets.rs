//! Tasks and task sets from plain numbers.

use crate::times::{ms, ns, us};
use model::{Duration, TaskSet, Timing};

const fn timing(wcet: Duration, period: Duration, deadline: Duration) -> Timing {
    Timing {
        wcet,
        period,
        deadline,
    }
}

/// A task in nanoseconds.
pub const fn task_ns(wcet: u64, period: u64, deadline: u64) -> Timing {
    timing(ns(wcet), ns(period), ns(deadline))
}

/// A task in milliseconds.
pub const fn task_ms(wcet: u64, period: u64, deadline: u64) -> Timing {
    timing(ms(wcet), ms(period), ms(deadline))
}

/// A task in nanoseconds whose deadline is its period.
pub const fn implicit_ns(wcet: u64, period: u64) -> Timing {
    Timing::implicit(ns(wcet), ns(period))
}

/// A task in microseconds whose deadline is its period.
pub const fn implicit_us(wcet: u64, period: u64) -> Timing {
    Timing::implicit(us(wcet), us(period))
}

/// A task in milliseconds whose deadline is its period.
pub const fn implicit_ms(wcet: u64, period: u64) -> Timing {
    Timing::implicit(ms(wcet), ms(period))
}

/// A set of tasks whose deadlines are their periods, as (WCET, period) in milliseconds.
///
/// # Panics
/// If no set can have such tasks.
pub fn set_ms(tasks: &[(u64, u64)]) -> TaskSet {
    let timings = tasks
        .iter()
        .map(|(wcet, period)| implicit_ms(*wcet, *period));
    TaskSet::from_timings(timings.collect()).expect("tasks that a set can have")
}
