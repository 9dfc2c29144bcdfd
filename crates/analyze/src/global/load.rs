//! LOAD: the demand-based load of a set against what global EDF can carry.
//!
//! Source: Baker, Baruah, "An analysis of global EDF schedulability for arbitrary-deadline sporadic
//! task systems", Real-Time Systems 43 (2009), Corollary 2: with μ = m − (m − 1)·δ_max, LOAD ≤
//! max{μ − (⌈μ⌉ − 1)·δ_max, (⌈μ⌉ − 1) − (⌈μ⌉ − 2)·δ_max}. LOAD = sup_t Σ DBF_i(t)/t from above, to
//! within ε = 1/10, by Fisher, Baker, Baruah, RTCSA 2006: U itself if no density exceeds its
//! utilization; else the largest of U + ε and the approximate demand Σ_i A_i(t)/t at t = D_i +
//! j·p_i for j ≤ k_i = ⌈n·u_i/ε − D_i/p_i⌉, where A_i is DBF_i before D_i + k_i·p_i and the line
//! e_i + u_i·(t − D_i) from there on.
//!
//! Assumes: sporadic tasks, deadlines of any length; the density is e/min(D, p).

use crate::carries::Carries;
use crate::columns::Budget;
use crate::global::max_density;
use crate::info::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, tasks_are_feasible};
use model::exact::ExactSum;
use model::{Ratio, Timing};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "LOAD",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Baker, Baruah, Real-Time Systems 43 (2009), Corollary 2; Fisher, Baker, Baruah, RTCSA 2006, for the load",
    preconditions: "none",
    about: "The largest demand per time of the set, approximated from above to within ε = 1/10, is within a bound that \
            depends on the largest density. One of the few tests for deadlines beyond periods.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Deadlines,
};

/// 1/ε.
const PER_EPSILON: u64 = 10;

/// LOAD ≤ max{μ − (⌈μ⌉ − 1)·δ_max, (⌈μ⌉ − 1) − (⌈μ⌉ − 2)·δ_max}.
///
/// # Errors
/// Too many points of the demand to look at.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    if m == 0 || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    let Some(max) = max_density(tasks) else {
        return Ok(true);
    };
    let bounds = Bound::both(max, m);
    if tasks.iter().all(|t| t.deadline >= t.period) {
        return Ok(bounds.iter().any(|b| b.carries_utilization(tasks, 0)));
    }
    for bound in bounds {
        if bound.carries_utilization(tasks, 1) && bound.carries_demand(tasks)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// A bound of the load, `whole − times·δ_max`; `times` may be −1.
#[derive(Clone, Copy)]
struct Bound {
    whole: i64,
    times: i64,
    max: Ratio,
}

impl Bound {
    fn both(max: Ratio, m: u32) -> [Bound; 2] {
        let m = i64::from(m);
        // ⌈μ⌉ = m − ⌊(m − 1)·δ_max⌋
        let floor = (m - 1).unsigned_abs() as u128 * u128::from(max.num()) / u128::from(max.den());
        let ceil = m - i64::try_from(floor).unwrap_or(m);
        [
            Bound {
                whole: m,
                times: m - 1 + ceil - 1,
                max,
            },
            Bound {
                whole: ceil - 1,
                times: ceil - 2,
                max,
            },
        ]
    }

    fn to_f64(self) -> f64 {
        self.whole as f64 - self.times as f64 * self.max.to_f64()
    }

    /// `−bound·t`.
    fn negated(self, t: u128) -> ExactSum {
        let mut sum = ExactSum::new();
        // Times are below 2^85: a deadline and at most 2^21 periods.
        sum.add_whole(-i128::from(self.whole) * i128::try_from(t).unwrap_or(i128::MAX >> 32));
        let times = t.saturating_mul(u128::from(self.times.unsigned_abs()));
        if self.times >= 0 {
            sum.add_scaled(times, self.max);
        } else {
            sum.subtract_scaled(times, self.max);
        }
        sum
    }

    /// U + epsilons·ε ≤ bound.
    fn carries_utilization(self, tasks: &[Timing], epsilons: u64) -> bool {
        let mut total = epsilons as f64 / PER_EPSILON as f64;
        for t in tasks {
            total += t.wcet.nanos() as f64 / t.period.nanos() as f64;
        }
        let bound = self.to_f64();
        let size = total + (self.whole.abs() + self.times.abs()) as f64 + 1.0;
        let error = size * (tasks.len() as f64 + 16.0) * f64::EPSILON;
        if total + error < bound {
            return true;
        }
        if total - error > bound {
            return false;
        }
        let mut sum = self.negated(1);
        for t in tasks {
            sum.add(u128::from(t.wcet.nanos()), t.period.nanos());
        }
        sum.add(u128::from(epsilons), PER_EPSILON);
        sum.sign().is_le()
    }

    /// Σ A_i(t) ≤ bound·t at every point t, given U + ε ≤ bound.
    fn carries_demand(self, tasks: &[Timing]) -> Decision {
        let mut budget = Budget::new(tasks.len());
        let steps: Vec<u64> = tasks
            .iter()
            .map(|t| steps_before_line(t, tasks.len()))
            .collect();
        // A_i(t) ≤ e_i + u_i·(t − D_i), so that from Σ(e_i − u_i·D_i)/(bound − U) on nothing is
        // beyond the bound.
        let (mut utilization, mut ahead) = (0.0, 0.0);
        for t in tasks {
            let (wcet, u) = (t.wcet.nanos() as f64, t.utilization().to_f64());
            utilization += u;
            ahead += (wcet - u * t.deadline.nanos() as f64).max(0.0);
        }
        let margin = (self.to_f64() - utilization).max(1.0 / PER_EPSILON as f64);
        let last = ahead * 1.001 / margin + 1.0;
        for (task, most) in tasks.iter().zip(&steps) {
            for j in 0..=*most {
                let t = u128::from(task.deadline.nanos())
                    + u128::from(j) * u128::from(task.period.nanos());
                if t as f64 > last {
                    break;
                }
                budget.spend(16 * tasks.len() as u64)?;
                let mut sum = self.negated(t);
                for (other, steps) in tasks.iter().zip(&steps) {
                    add_approximate_demand(&mut sum, other, *steps, t);
                }
                if sum.sign().is_gt() {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}

/// k_i = max(0, ⌈n·u_i/ε − D_i/p_i⌉), exactly.
fn steps_before_line(t: &Timing, tasks: usize) -> u64 {
    let scaled = u128::from(t.wcet.nanos()) * (tasks as u128) * u128::from(PER_EPSILON);
    let above = scaled.saturating_sub(u128::from(t.deadline.nanos()));
    // At most 10 n, as u ≤ 1.
    u64::try_from(above.div_ceil(u128::from(t.period.nanos().max(1)))).unwrap_or(u64::MAX)
}

/// A_i(t).
fn add_approximate_demand(sum: &mut ExactSum, task: &Timing, steps: u64, t: u128) {
    let (wcet, period) = (task.wcet.nanos(), u128::from(task.period.nanos()));
    let Some(since) = t.checked_sub(u128::from(task.deadline.nanos())) else {
        return;
    };
    sum.add_whole(i128::from(wcet));
    if since < u128::from(steps) * period {
        let jobs = match u64::try_from(since) {
            Ok(since) => u128::from(since / task.period.nanos()),
            Err(_) => since / period,
        };
        sum.add_whole(i128::try_from(jobs * u128::from(wcet)).unwrap_or(i128::MAX));
    } else {
        sum.add_scaled(since, task.utilization());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    #[test]
    fn a_deadline_beyond_its_period_is_judged() {
        let late = |wcet, period, deadline| Timing {
            wcet: Duration::from_millis(wcet),
            period: Duration::from_millis(period),
            deadline: Duration::from_millis(deadline),
        };
        // U = 1.6 ≤ m − (m − 1)·δ_max = 3 − 2·0.4, although one density by D alone would be 0.1.
        let tasks = [
            late(4, 10, 40),
            late(4, 10, 10),
            late(4, 10, 20),
            late(4, 10, 10),
        ];
        assert_eq!(is_schedulable(&tasks, 3), Ok(true));
        assert_eq!(is_schedulable(&tasks, 2), Ok(false));
    }
}
