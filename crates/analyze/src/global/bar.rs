//! BAR: few tasks carry work into a busy interval, for global EDF.
//!
//! Source: Baruah, "Techniques for multiprocessor global schedulability analysis", RTSS 2007, Theorem 2,
//! Equation 8. For every task k and every A ≥ 0, with the window L = A + D_k: Σ_i I1_i + the m − 1 largest of I2_i − I1_i is at most
//! m·(L − e_k), where I1_i = min(DBF_i(L), L − e_k + 1) and I1_k = min(DBF_k(L) − e_k, A) without, and I2 the same with
//! DBF'_i(L) = ⌊L/p_i⌋·e_i + min(e_i, L mod p_i) in place of DBF_i, for tasks that carry work in. Only
//! L ≤ (Σ of the m − 1 largest e + Σ u_i·(p_i − D_i) + m·e_k)/(m − U) matter.
//!
//! The paper says that only those A matter at which some DBF_i(L) steps. That misses some: in between, the left side may
//! grow by more than m where several tasks are clipped. Here every A is decided ([`Windows::fits_until`]).
//!
//! Without the clipping at L − e_k + 1 the condition is DBF(L) + (the m − 1 largest DBF'_i − DBF_i) ≤ m·L − (m − 1)·e_k,
//! whose left side does not depend on k, and which holds up to the next step if it holds at one. It is decided once for
//! all tasks with D_k ≤ L, by the largest e_k among them, and only the tasks that fail it are looked at one by one.
//!
//! Assumes: sporadic tasks, D ≤ p, U < m; integer time, in the unit of the set (`columns::unit`).

use crate::columns::{self, Budget};
use crate::registry::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, tasks_are_feasible,
};
use model::{Duration, Ratio, Timing, exact};
use num_traits::PrimInt;
use std::cmp::Ordering;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BAR",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Baruah, RTSS 2007, Theorem 2, Equation 8",
    preconditions: "D ≤ p, U < m",
    about: "At the start of the interval that leads to a miss, at most m − 1 tasks have work left over. \
            Pseudo-polynomial: looks at every deadline up to a bound that grows as U comes close to m. Integer time.",
    run: is_schedulable,
    run_inflated: Some(is_schedulable_inflated),
};

/// Σ I1 + the m − 1 largest I2 − I1 within m·(L − e_k), for every task and window, in the time unit of the set.
///
/// # Errors
/// A deadline beyond its period; a total utilization of exactly m; too many windows.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    decide(tasks, m, columns::unit(tasks))
}

/// As [`is_schedulable`] in whole microseconds, WCETs rounded up and periods and deadlines down.
///
/// Here a coarser unit accepts less, unlike in the other tests of integer time: a set in microseconds must not gain by an
/// overhead that makes it one in nanoseconds.
///
/// # Errors
/// As [`is_schedulable`].
pub fn is_schedulable_inflated(tasks: &[Timing], m: u32) -> Decision {
    let micros = |ns: u64| Duration::from_micros(ns / 1_000);
    let rounded: Vec<Timing> = tasks
        .iter()
        .map(|t| Timing {
            wcet: micros(t.wcet.nanos().saturating_add(999)),
            period: micros(t.period.nanos()),
            deadline: micros(t.deadline.nanos()),
        })
        .collect();
    constrained_deadlines(tasks)?;
    decide(&rounded, m, 1_000)
}

fn decide(tasks: &[Timing], m: u32, unit: u64) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    let utilizations = tasks.iter().map(Timing::utilization);
    match exact::cmp_sum(utilizations, Ratio::whole(u64::from(m))) {
        Ordering::Greater => return Ok(false),
        Ordering::Equal => {
            return Err(NotApplicable::Precondition("the total utilization is below m"));
        }
        Ordering::Less => {}
    }
    let last = last_window(tasks, m, unit);
    // All that is computed stays within m times the last window and a demand a task, but for the next windows.
    let longest = tasks.iter().map(|t| t.period.nanos() / unit).max().unwrap_or(0) as f64;
    let largest = (last + 1.0) * (f64::from(m) + tasks.len() as f64 + 4.0) + 2.0 * longest;
    if largest < 2.0_f64.powi(62) {
        Windows::<i64>::new(tasks, m, unit).all_fit(last)
    } else {
        Windows::<i128>::new(tasks, m, unit).all_fit(last)
    }
}

/// An upper bound of the windows that matter; more than needed by a rounding error.
fn last_window(tasks: &[Timing], m: u32, unit: u64) -> f64 {
    let unit = unit as f64;
    let mut wcets: Vec<f64> = Vec::with_capacity(tasks.len());
    let (mut utilization, mut early) = (0.0, 0.0);
    for t in tasks {
        let wcet = t.wcet.nanos() as f64 / unit;
        let u = t.wcet.nanos() as f64 / t.period.nanos() as f64;
        utilization += u;
        if !t.has_implicit_deadline() {
            early += u * (t.period.nanos() as f64 - t.deadline.nanos() as f64).max(0.0) / unit;
        }
        wcets.push(wcet);
    }
    let m = f64::from(m);
    let error = utilization * (tasks.len() as f64 + 8.0) * f64::EPSILON;
    let spare = (m - utilization - error).max(f64::MIN_POSITIVE);
    let longest = wcets.iter().copied().fold(0.0, f64::max);
    let carried = largest_sum(&mut wcets, m as usize - 1, |a, b| b.total_cmp(a));
    let last = (carried + early + m * longest) * (1.0 + 1e-9) / spare;
    // Beyond any time there is; the budget ends it before.
    last.min(2.0_f64.powi(100))
}

/// The sum of the `count` first in an order.
fn largest_sum<T: Copy + std::iter::Sum>(
    values: &mut [T],
    count: usize,
    order: impl Fn(&T, &T) -> Ordering,
) -> T {
    if count == 0 {
        return values[..0].iter().copied().sum();
    }
    if count < values.len() {
        values.select_nth_unstable_by(count - 1, order);
    }
    values[..count.min(values.len())].iter().copied().sum()
}

/// The set in integers wide enough for it.
struct Windows<T> {
    m: T,
    carriers: usize,
    wcet: Vec<T>,
    period: Vec<T>,
    deadline: Vec<T>,
}

impl<T: PrimInt + std::iter::Sum + TryFrom<u64>> Windows<T> {
    fn new(tasks: &[Timing], m: u32, unit: u64) -> Self {
        // Times fit, as the caller chose the width by them.
        let column = |time: fn(&Timing) -> u64| -> Vec<T> {
            tasks
                .iter()
                .map(|t| T::try_from(time(t) / unit).unwrap_or_else(|_| T::max_value()))
                .collect()
        };
        Windows {
            m: T::try_from(u64::from(m)).unwrap_or_else(|_| T::max_value()),
            carriers: m as usize - 1,
            wcet: column(|t| t.wcet.nanos()),
            period: column(|t| t.period.nanos()),
            deadline: column(|t| t.deadline.nanos()),
        }
    }

    /// Looks at every window up to the last one, the short ones first, as these fail most easily.
    fn all_fit(&self, last: f64) -> Decision {
        let n = self.wcet.len();
        let mut budget = Budget::new(n);
        let mut scratch = Scratch::new(n);
        let mut next = self.deadline.clone();
        let carried = largest_sum(&mut self.wcet.clone(), self.carriers, |a, b| b.cmp(a));
        let (mut demand, mut longest) = (T::zero(), T::zero());
        loop {
            budget.spend(n as u64)?;
            let window = next.iter().copied().fold(T::max_value(), T::min);
            if window.to_f64().is_none_or(|w| w > last) {
                return Ok(true);
            }
            for ((next, wcet), period) in next.iter_mut().zip(&self.wcet).zip(&self.period) {
                if *next == window {
                    demand = demand + *wcet;
                    *next = window + *period;
                    longest = longest.max(*wcet);
                }
            }
            let room = self.m * window - (self.m - T::one()) * longest;
            if demand + carried <= room {
                continue;
            }
            budget.spend(8 * n as u64)?;
            scratch.fill(self, window);
            let carried = scratch.carried(self.carriers);
            if demand + carried <= room {
                continue;
            }
            let following = next.iter().copied().fold(T::max_value(), T::min);
            for k in 0..n {
                let fits = demand + carried <= self.m * window - (self.m - T::one()) * self.wcet[k];
                if self.deadline[k] <= window
                    && !fits
                    && !self.fits_until(k, window, following, &mut scratch, &mut budget)?
                {
                    return Ok(false);
                }
            }
        }
    }

    /// The condition for one task and every window from `first` on and before `following`, between which no DBF steps.
    ///
    /// Two things tell how far the next window is that could fail. The left side grows at most by one for each task whose
    /// DBF is clipped (the clipping moves with the window) and each of the m − 1 that carry work in, the right side by m.
    /// And the left side is convex up to the next window at which a minimum bends ([`Windows::next_bend`]), so that it is
    /// largest there. `scratch` holds the demands at `first`, and again on return.
    fn fits_until(
        &self,
        k: usize,
        first: T,
        following: T,
        scratch: &mut Scratch<T>,
        budget: &mut Budget,
    ) -> Decision {
        let last = following - T::one();
        let mut window = first;
        loop {
            budget.spend(8 * self.wcet.len() as u64)?;
            let (left, clipped) = self.left_over(k, window, scratch);
            if left < T::zero() {
                return Ok(false);
            }
            let growth = T::from(clipped.saturating_sub(1)).unwrap_or_else(T::max_value);
            if growth.is_zero() || left / growth >= last - window {
                if window > first {
                    scratch.fill(self, first);
                }
                return Ok(true);
            }
            let far = window + left / growth + T::one();
            window = far.max(self.next_bend(k, window, scratch)).min(last);
            scratch.fill(self, window);
        }
    }

    /// The next window at which a task has carried in its last WCET, or at which a clipping ends.
    fn next_bend(&self, k: usize, window: T, scratch: &Scratch<T>) -> T {
        let mut bend = T::max_value();
        let mut consider = |at: T| {
            if at > window {
                bend = bend.min(at);
            }
        };
        for i in 0..self.wcet.len() {
            let (wcet, rest) = (self.wcet[i], scratch.rest[i]);
            let start = window - rest;
            consider(start + wcet);
            consider(start + self.period[i] + wcet);
            let clip = if i == k {
                self.deadline[k] - wcet
            } else {
                self.wcet[k] - T::one()
            };
            consider(scratch.demand[i] + clip);
            if rest >= wcet {
                consider(scratch.demand_carried[i] + clip);
            }
        }
        bend
    }

    /// m·(L − e_k) less the left side, and how many tasks have a DBF that is clipped.
    fn left_over(&self, k: usize, window: T, scratch: &mut Scratch<T>) -> (T, usize) {
        let wcet = self.wcet[k];
        let mut sum = T::zero();
        let mut clipped = 0;
        for i in 0..self.wcet.len() {
            let (mut without, mut with) = (scratch.demand[i], scratch.demand_carried[i]);
            let mut most = window - wcet + T::one();
            if i == k {
                without = without - wcet;
                with = with - wcet;
                most = window - self.deadline[k];
            }
            clipped += usize::from(without > most);
            sum = sum + without.min(most);
            scratch.difference[i] = with.min(most) - without.min(most);
        }
        sum = sum + scratch.largest(self.carriers);
        (self.m * (window - wcet) - sum, clipped)
    }
}

/// What one window needs of every task.
struct Scratch<T> {
    demand: Vec<T>,
    demand_carried: Vec<T>,
    /// L mod p.
    rest: Vec<T>,
    difference: Vec<T>,
}

impl<T: PrimInt + std::iter::Sum> Scratch<T> {
    fn new(n: usize) -> Self {
        Scratch {
            demand: vec![T::zero(); n],
            demand_carried: vec![T::zero(); n],
            rest: vec![T::zero(); n],
            difference: vec![T::zero(); n],
        }
    }

    /// DBF and DBF'.
    fn fill(&mut self, set: &Windows<T>, window: T) {
        for i in 0..set.wcet.len() {
            let (wcet, period) = (set.wcet[i], set.period[i]);
            let jobs = window / period;
            let rest = window - jobs * period;
            self.rest[i] = rest;
            self.demand_carried[i] = jobs * wcet + wcet.min(rest);
            // D ≤ p: one job more than whole periods, if the rest reaches its deadline.
            self.demand[i] = if rest >= set.deadline[i] {
                (jobs + T::one()) * wcet
            } else {
                jobs * wcet
            };
        }
    }

    /// The largest differences, unclipped.
    fn carried(&mut self, count: usize) -> T {
        for i in 0..self.demand.len() {
            self.difference[i] = self.demand_carried[i] - self.demand[i];
        }
        self.largest(count)
    }

    fn largest(&mut self, count: usize) -> T {
        largest_sum(&mut self.difference, count, |a, b| b.cmp(a))
    }
}
