//! BAR: few tasks carry work into a busy interval, for global EDF.
//!
//! Source: Baruah, "Techniques for multiprocessor global schedulability analysis", RTSS 2007,
//! Theorem 2, Equation 8. For every task k and every A ≥ 0, with the window L = A + D_k: Σ_i I1_i +
//! the m − 1 largest of I2_i − I1_i is at most m·(L − e_k), where I1_i = min(DBF_i(L), L − e_k + 1)
//! and I1_k = min(DBF_k(L) − e_k, A) without, and I2 the same with DBF'_i(L) = ⌊L/p_i⌋·e_i +
//! min(e_i, L mod p_i) in place of DBF_i, for tasks that carry work in. Only L ≤ (Σ of the m − 1
//! largest e + Σ u_i·(p_i − D_i) + m·e_k)/(m − U) matter.
//!
//! The paper says that only those A matter at which some DBF_i(L) steps. That misses some: in
//! between, the left side may grow by more than m where several tasks are clipped. Here every A is
//! decided ([`Windows::fits_until`]).
//!
//! Without the clipping at L − e_k + 1 the condition is DBF(L) + (the m − 1 largest DBF'_i − DBF_i)
//! ≤ m·L − (m − 1)·e_k, whose left side does not depend on k, and which holds up to the next step
//! if it holds at one. It is decided once for all tasks with D_k ≤ L, by the largest e_k among
//! them, and only the tasks that fail it are looked at one by one.
//!
//! The paper has integer time, but the condition holds for releases at any time. A job that misses
//! in a window of length L waits for a time I > L − e_k, so that the left side, clipped at any y in
//! (L − e_k, I] in place of L − e_k + 1, reaches m·y. Let L = ℓ + d with ℓ whole and 0 ≤ d < 1, and
//! y below ℓ − e_k + 1. From ℓ to L no DBF steps, and the left side of the condition grows by at
//! most d for each of the m − 1 tasks that carry work in and for task k, which is clipped at A, if
//! it is none of them. It was at most m·(ℓ − e_k) with a later clipping, so that it is at most m·(L
//! − e_k) < m·y.
//!
//! Assumes: sporadic tasks, D ≤ p, U < m. Windows are whole numbers of the unit of the set
//! (`columns::unit`); a coarser one accepts less.

use crate::carries::Carries;
use crate::columns::{self, Budget, max};
use crate::info::TestInfo;
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
            Pseudo-polynomial: looks at every deadline up to a bound that grows as U comes close to m.",
    run: is_schedulable,
    run_inflated: Some(is_schedulable_inflated),
    on_grid: None,
    carries: Carries::Deadlines,
};

/// Σ I1 + the m − 1 largest I2 − I1 within m·(L − e_k), for every task and window, in the time unit
/// of the set.
///
/// # Errors
/// A deadline beyond its period; a total utilization of exactly m; too many windows.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    decide(tasks, m, columns::unit(tasks))
}

/// As [`is_schedulable`] in whole microseconds, WCETs rounded up and periods and deadlines down.
///
/// A coarser unit accepts less: a set in microseconds must not gain by an overhead that makes it
/// one in nanoseconds.
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
    let sums = Sums::of(tasks, m, unit);
    if sums.spare <= 0.0 {
        let utilizations = tasks.iter().map(Timing::utilization);
        match exact::cmp_sum(utilizations, Ratio::whole(u64::from(m))) {
            Ordering::Greater => return Ok(false),
            Ordering::Equal => {
                return Err(NotApplicable::Precondition(
                    "the total utilization is below m",
                ));
            }
            Ordering::Less => {}
        }
    }
    let largest = sums.largest_number(tasks.len());
    if largest < NARROW {
        Windows::<i32>::new(tasks, m, unit).all_fit(&sums)
    } else if largest < 2.0_f64.powi(62) {
        Windows::<i64>::new(tasks, m, unit).all_fit(&sums)
    } else {
        Windows::<i128>::new(tasks, m, unit).all_fit(&sums)
    }
}

/// Below, 32 bits are wide enough, of which four numbers fit into any vector register.
const NARROW: f64 = (1_u32 << 30) as f64;

/// What bounds the windows that matter, in floating point.
#[derive(Default)]
struct Sums {
    m: f64,
    /// m − U, or less by the rounding error.
    spare: f64,
    /// Σ u_i·(p_i − D_i).
    early: f64,
    /// Σ e_i.
    all: f64,
    /// The longest WCET.
    longest: f64,
    longest_period: f64,
}

impl Sums {
    fn of(tasks: &[Timing], m: u32, unit: u64) -> Self {
        let mut sums = Sums {
            m: f64::from(m),
            ..Sums::default()
        };
        let mut utilization = 0.0;
        for t in tasks {
            let (wcet, period) = (t.wcet.nanos() as f64, t.period.nanos() as f64);
            let u = wcet / period;
            utilization += u;
            if !t.has_implicit_deadline() {
                sums.early += u * (period - t.deadline.nanos() as f64).max(0.0);
            }
            sums.all += wcet;
            sums.longest = max(sums.longest, wcet);
            sums.longest_period = max(sums.longest_period, period);
        }
        for sum in [
            &mut sums.early,
            &mut sums.all,
            &mut sums.longest,
            &mut sums.longest_period,
        ] {
            *sum /= unit as f64;
        }
        sums.spare = sums.m - utilization - utilization * (tasks.len() as f64 + 8.0) * f64::EPSILON;
        sums
    }

    /// An upper bound of the windows that matter, more than needed by a rounding error, if the m −
    /// 1 largest WCETs sum to `carried`.
    fn last_window(&self, carried: f64) -> f64 {
        let last = (carried + self.early + self.m * self.longest) * (1.0 + 1e-9);
        // Beyond any time there is; the budget ends it before.
        (last / self.spare.max(f64::MIN_POSITIVE)).min(2.0_f64.powi(100))
    }

    /// A bound of all that is computed: it stays within m times the last window and a demand a
    /// task, but for the next windows.
    fn largest_number(&self, tasks: usize) -> f64 {
        let last = self.last_window(self.all.min((self.m - 1.0) * self.longest));
        (last + 1.0) * (self.m + tasks as f64 + 4.0) + 2.0 * self.longest_period
    }
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
    fn all_fit(&self, sums: &Sums) -> Decision {
        let n = self.wcet.len();
        let mut budget = Budget::new(n);
        let mut scratch = Scratch::new(n);
        let mut next = self.deadline.clone();
        let all_carried = scratch.largest_wcets(self);
        let last = sums.last_window(all_carried.to_f64().unwrap_or(f64::INFINITY));
        let (mut demand, mut longest) = (T::zero(), T::zero());
        let mut following = next.iter().copied().fold(T::max_value(), T::min);
        loop {
            budget.spend(n as u64)?;
            let window = following;
            if window.to_f64().is_none_or(|w| w > last) {
                return Ok(true);
            }
            following = T::max_value();
            for ((next, wcet), period) in next.iter_mut().zip(&self.wcet).zip(&self.period) {
                if *next == window {
                    demand = demand + *wcet;
                    *next = window + *period;
                    longest = longest.max(*wcet);
                }
                following = following.min(*next);
            }
            let room = self.m * window - (self.m - T::one()) * longest;
            if demand + all_carried <= room {
                continue;
            }
            budget.spend(8 * n as u64)?;
            scratch.fill(self, window);
            let carried = scratch.carried_at_most(self.carriers);
            if demand + carried <= room {
                continue;
            }
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

    /// The condition for one task and every window from `first` on and before `following`, between
    /// which no DBF steps.
    ///
    /// Two things tell how far the next window is that could fail. The left side grows at most by
    /// one for each task whose DBF is clipped (the clipping moves with the window) and each of the
    /// m − 1 that carry work in, the right side by m. And the left side is convex up to the next
    /// window at which a minimum bends ([`Windows::next_bend`]), so that it is largest there.
    /// `scratch` holds the demands at `first`, and again on return.
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
            let (without, clipped) = self.spread(k, window, scratch);
            let growth = T::from(clipped.saturating_sub(1)).unwrap_or_else(T::max_value);
            let fits =
                |left: T| left >= T::zero() && (growth.is_zero() || left / growth >= last - window);
            let room = self.m * (window - self.wcet[k]) - without;
            let mut left = room - scratch.largest_at_most(self.carriers);
            if !fits(left) {
                left = room - scratch.largest(self.carriers);
            }
            if left < T::zero() {
                return Ok(false);
            }
            if fits(left) {
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

    /// Σ I1_i, and how many tasks have a DBF that is clipped; leaves I2_i − I1_i in `scratch`.
    fn spread(&self, k: usize, window: T, scratch: &mut Scratch<T>) -> (T, usize) {
        let n = self.wcet.len();
        let (demand, carried) = (&scratch.demand[..n], &scratch.demand_carried[..n]);
        let difference = &mut scratch.difference[..n];
        let most = window - self.wcet[k] + T::one();
        let (mut sum, mut clipped) = (T::zero(), T::zero());
        for i in 0..n {
            let without = demand[i].min(most);
            clipped = clipped
                + if demand[i] > most {
                    T::one()
                } else {
                    T::zero()
                };
            sum = sum + without;
            difference[i] = carried[i].min(most) - without;
        }
        // Task k itself is counted otherwise.
        sum = sum - demand[k].min(most);
        let is_clipped = demand[k] > most;
        let most = window - self.deadline[k];
        let without = (demand[k] - self.wcet[k]).min(most);
        difference[k] = (carried[k] - self.wcet[k]).min(most) - without;
        let clipped = clipped.to_usize().unwrap_or(n) - usize::from(is_clipped);
        (
            sum + without,
            clipped + usize::from(demand[k] - self.wcet[k] > most),
        )
    }
}

/// What one window needs of every task.
struct Scratch<T> {
    demand: Vec<T>,
    demand_carried: Vec<T>,
    /// L mod p.
    rest: Vec<T>,
    difference: Vec<T>,
    /// The last of the largest differences, when they were last selected: never negative.
    least: T,
}

impl<T: PrimInt + std::iter::Sum> Scratch<T> {
    fn new(n: usize) -> Self {
        Scratch {
            demand: vec![T::zero(); n],
            demand_carried: vec![T::zero(); n],
            rest: vec![T::zero(); n],
            difference: vec![T::zero(); n],
            least: T::zero(),
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

    /// The m − 1 largest WCETs.
    fn largest_wcets(&mut self, set: &Windows<T>) -> T {
        self.difference.copy_from_slice(&set.wcet);
        self.largest(set.carriers)
    }

    /// At least the sum of the largest differences, unclipped.
    fn carried_at_most(&mut self, count: usize) -> T {
        for i in 0..self.demand.len() {
            self.difference[i] = self.demand_carried[i] - self.demand[i];
        }
        self.largest_at_most(count)
    }

    /// At least the sum of the `count` largest differences, and no more if `least` is the last of
    /// them: each is at most that and what it is above.
    fn largest_at_most(&self, count: usize) -> T {
        let above = self
            .difference
            .iter()
            .map(|d| (*d - self.least).max(T::zero()));
        above.sum::<T>() + self.least * T::from(count).unwrap_or_else(T::max_value)
    }

    /// The sum of the `count` largest differences.
    fn largest(&mut self, count: usize) -> T {
        let values = &mut self.difference;
        self.least = T::zero();
        if count == 0 {
            return T::zero();
        }
        if count < values.len() {
            let (_, least, _) = values.select_nth_unstable_by(count - 1, |a, b| b.cmp(a));
            self.least = (*least).max(T::zero());
        }
        values[..count.min(values.len())].iter().copied().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_integers_give_the_same_verdicts() {
        let mut verdicts = [0; 2];
        for seed in 0..300 {
            let (tasks, m) = columns::tests::random_set(seed);
            let sums = Sums::of(&tasks, m, 1);
            if sums.largest_number(tasks.len()) >= NARROW {
                continue;
            }
            let narrow = Windows::<i32>::new(&tasks, m, 1).all_fit(&sums);
            let wide = Windows::<i64>::new(&tasks, m, 1).all_fit(&sums);
            let widest = Windows::<i128>::new(&tasks, m, 1).all_fit(&sums);
            assert_eq!([&narrow, &wide], [&widest, &widest], "{tasks:?} on {m}");
            verdicts[usize::from(wide == Ok(true))] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 40), "{verdicts:?}");
    }
}
