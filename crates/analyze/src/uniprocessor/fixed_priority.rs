//! Fixed priorities on one processor: exact response times, and the bounds of Liu–Layland and of
//! Bini et al.
//!
//! 002 §2.2.1. Response times for arbitrary deadlines: Lehoczky 1990 (every job of the level-i busy
//! period); the iteration of Joseph and Pandya 1986. Bounds: Liu, Layland 1973, U ≤ n (2^(1/n) −
//! 1); Bini, Buttazzo, Buttazzo 2003, Π (uᵢ + 1) ≤ 2. Preemptive, sporadic or synchronous periodic,
//! independent tasks. The bounds assume rate-monotonic priorities and deadlines not shorter than
//! periods.

use super::{LIMIT, Work, div};
use crate::verdict::Decision;
use model::{Duration, Ratio, Timing, exact};
use num_rational::BigRational;
use num_traits::One;
use std::cmp::Ordering;

pub use policy::catalog::Priority;

/// The worst-case response time of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug, serde::Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Response {
    /// It is this, and within the deadline.
    Within(Duration),
    /// Some job misses its deadline.
    Late,
    /// Not decided within the limit of work.
    Limit,
}

/// The worst-case response time of `task` below the tasks in `higher`, exactly.
pub fn response_time(task: &Timing, higher: &[Timing]) -> Response {
    respond(task, higher, &mut Work::new())
}

fn respond(task: &Timing, higher: &[Timing], work: &mut Work) -> Response {
    let (e, p, d) = (
        u128::from(task.wcet.nanos()),
        u128::from(task.period.nanos()),
        u128::from(task.deadline.nanos()),
    );
    let mut worst = 0;
    let mut finish = 0;
    // Job q of the level-i busy period is released at q p and finishes at the least w with w = (q +
    // 1) e + interference.
    for q in 0u128.. {
        let mut w = (finish + e).max((q + 1) * e);
        loop {
            if w > q * p + d {
                return Response::Late;
            }
            if !work.spend(1 + higher.len() as u64) {
                return Response::Limit;
            }
            let next = (q + 1) * e
                + higher
                    .iter()
                    .map(|h| {
                        div(w + u128::from(h.period.nanos()) - 1, h.period.nanos())
                            * u128::from(h.wcet.nanos())
                    })
                    .sum::<u128>();
            if next <= w {
                break;
            }
            w = next;
        }
        finish = w;
        worst = worst.max(w - q * p);
        if w <= (q + 1) * p {
            break;
        }
    }
    // At most the deadline, which is a duration.
    Response::Within(Duration::from_nanos(
        u64::try_from(worst).unwrap_or(u64::MAX),
    ))
}

/// The worst-case response time of every task, in the order of `tasks`. Exact.
pub fn response_times(tasks: &[Timing], priority: Priority) -> Vec<Response> {
    let order = priority.order(tasks);
    let mut times = vec![Response::Limit; tasks.len()];
    let mut higher: Vec<Timing> = Vec::with_capacity(tasks.len());
    let mut work = Work::new();
    for index in order {
        times[index] = respond(&tasks[index], &higher, &mut work);
        higher.push(tasks[index]);
    }
    times
}

/// Do fixed priorities meet every deadline? Exact; see [`LIMIT`].
pub fn decide(tasks: &[Timing], priority: Priority) -> Decision {
    decide_within(tasks, priority, &mut Work::new())
}

/// [`decide`] with a limit of work of one's own.
pub fn decide_within(tasks: &[Timing], priority: Priority, work: &mut Work) -> Decision {
    if exact::cmp_sum(tasks.iter().map(Timing::utilization), Ratio::ONE) == Ordering::Greater {
        return Ok(false);
    }
    let mut higher: Vec<Timing> = Vec::with_capacity(tasks.len());
    for index in priority.order(tasks) {
        match respond(&tasks[index], &higher, work) {
            Response::Within(_) => higher.push(tasks[index]),
            Response::Late => return Ok(false),
            Response::Limit => return Err(LIMIT),
        }
    }
    Ok(true)
}

/// The most tasks for which a product within rounding of its bound is multiplied out exactly.
pub const EXACT_PRODUCT_TASKS: usize = 200;

/// Is U ≤ n (2^(1/n) − 1)? A no says nothing about the set. Asks for deadlines not shorter than
/// periods.
pub fn liu_layland(tasks: &[Timing]) -> Decision {
    if tasks.iter().any(|t| t.deadline < t.period) {
        return Ok(false);
    }
    let n = tasks.len();
    if n == 0 {
        return Ok(true);
    }
    // (1 + U / n)^n ≤ 2.
    let total: f64 = tasks.iter().map(|t| t.utilization().to_f64()).sum();
    let bound = n as f64 * ((std::f64::consts::LN_2 / n as f64).exp_m1());
    let error = (total + 1.0) * (n as f64 + 16.0) * 4.0 * f64::EPSILON;
    if total + error < bound {
        return Ok(true);
    }
    if total - error > bound {
        return Ok(false);
    }
    if n > EXACT_PRODUCT_TASKS {
        return Err(LIMIT);
    }
    let n_big = BigRational::from_integer(n.into());
    let factor = exact::sum(tasks.iter().map(Timing::utilization)) / n_big + BigRational::one();
    Ok(num_traits::pow(factor, n) <= BigRational::from_integer(2.into()))
}

/// Is Π (uᵢ + 1) ≤ 2? A no says nothing about the set. Asks for deadlines not shorter than periods.
pub fn hyperbolic(tasks: &[Timing]) -> Decision {
    if tasks.iter().any(|t| t.deadline < t.period) {
        return Ok(false);
    }
    let product: f64 = tasks
        .iter()
        .map(|t| 1.0 + t.utilization().to_f64())
        .product();
    let error = product * (tasks.len() as f64 + 8.0) * 4.0 * f64::EPSILON;
    if product + error < 2.0 {
        return Ok(true);
    }
    if product - error > 2.0 || product.is_infinite() {
        return Ok(false);
    }
    if tasks.len() > EXACT_PRODUCT_TASKS {
        return Err(LIMIT);
    }
    let product = tasks.iter().fold(BigRational::one(), |product, t| {
        product * (t.utilization().to_big() + BigRational::one())
    });
    Ok(product <= BigRational::from_integer(2.into()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::sets::task_ns as task;

    /// 002 Fig. 2.2 (b): T3 misses its deadline at 8 under RM.
    #[test]
    fn fig_2_2_misses_under_rate_monotonic() {
        let set = [task(1, 3, 3), task(2, 5, 5), task(2, 8, 8)];
        let times = response_times(&set, Priority::RateMonotonic);
        assert_eq!(times[0], Response::Within(Duration::from_nanos(1)));
        assert_eq!(times[1], Response::Within(Duration::from_nanos(3)));
        assert_eq!(times[2], Response::Late);
        assert_eq!(decide(&set, Priority::RateMonotonic), Ok(false));
    }

    /// Lehoczky 1990, the example of arbitrary deadlines: T1 = (26, 70), T2 = (62, 100), D2 = 118:
    /// the first job of T2 responds in 114, the longest response, 118, is the fifth job's.
    #[test]
    fn arbitrary_deadlines_look_at_every_job_of_the_busy_period() {
        let set = [task(26, 70, 70), task(62, 100, 118)];
        assert_eq!(
            response_times(&set, Priority::RateMonotonic)[1],
            Response::Within(Duration::from_nanos(118))
        );
        let short = [task(26, 70, 70), task(62, 100, 117)];
        assert_eq!(decide(&short, Priority::RateMonotonic), Ok(false));
    }

    #[test]
    fn bounds_are_exact_at_their_edge() {
        // Two tasks of 1/2 and 1/3: (3/2)(4/3) = 2 exactly.
        assert_eq!(hyperbolic(&[task(1, 2, 2), task(1, 3, 3)]), Ok(true));
        let p = 3_000_000_000_000_000;
        assert_eq!(
            hyperbolic(&[task(1, 2, 2), task(p / 3 + 1, p, p)]),
            Ok(false)
        );
        assert_eq!(liu_layland(&[task(7, 7, 7)]), Ok(true));
        // n = 2: 2 (√2 − 1) = 0.828427124746190…
        assert_eq!(
            liu_layland(
                &[task(
                    414_213_562_373_095,
                    1_000_000_000_000_000,
                    1_000_000_000_000_000
                ); 2]
            ),
            Ok(true)
        );
        assert_eq!(
            liu_layland(
                &[task(
                    414_213_562_373_096,
                    1_000_000_000_000_000,
                    1_000_000_000_000_000
                ); 2]
            ),
            Ok(false)
        );
    }

    #[test]
    fn deadline_monotonic_beats_rate_monotonic_where_a_deadline_is_short() {
        let set = [task(2, 10, 10), task(2, 12, 2)];
        assert_eq!(decide(&set, Priority::RateMonotonic), Ok(false));
        assert_eq!(decide(&set, Priority::DeadlineMonotonic), Ok(true));
        assert_eq!(decide(&set, Priority::Given), Ok(false));
    }
}
