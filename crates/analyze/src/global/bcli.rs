//! BCLI: bounded interference by deadline with slack, iterated, for global EDF.
//!
//! Source: Bertogna, Cirinei, Lipari, "Schedulability analysis of global scheduling algorithms on multiprocessor
//! platforms", IEEE TPDS 20 (2009), the iterative test for EDF.
//! From slacks s_i = 0 on, every task k gets W_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)) and
//! s_k = D_k − e_k − ⌊Σ_{i≠k} min(W_i, D_k − e_k + 1)/m⌋ if that is not negative, until every task has a slack or none
//! changes. Slacks only grow, so the order of the updates does not matter.
//!
//! Assumes: sporadic tasks, D ≤ p; integer time, in the unit of the set (`columns::unit`).

use crate::carries::Carries;
use crate::columns::{self, Budget, Columns, Float, Width, max, min, round, sum};
use crate::registry::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, constrained_deadlines, tasks_are_feasible};
use model::Timing;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BCLI",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Bertogna, Cirinei, Lipari, IEEE TPDS 20 (2009)",
    preconditions: "D ≤ p",
    about: "As BCL, but a task that always completes early interferes less: its slack is taken off the work that it can \
            carry into the window, and the slacks are improved until all tasks pass or nothing changes. Integer time.",
    run: is_schedulable,
    run_inflated: Some(is_schedulable_in_nanoseconds),
    carries: Carries::Deadlines,
};

/// Has every task a slack, in the time unit of the set?
///
/// # Errors
/// A deadline beyond its period; too many pairs of tasks.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    decide(tasks, m, columns::unit(tasks))
}

/// As [`is_schedulable`] with a unit of one nanosecond.
///
/// # Errors
/// As [`is_schedulable`].
pub fn is_schedulable_in_nanoseconds(tasks: &[Timing], m: u32) -> Decision {
    decide(tasks, m, 1)
}

fn decide(tasks: &[Timing], m: u32, unit: u64) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    // Long deadlines first: their slacks come first and let the short ones pass.
    let mut sorted = tasks.to_vec();
    sorted.sort_unstable_by_key(|t| std::cmp::Reverse(t.deadline));
    decide_in(Width::of(tasks, unit), &sorted, m, unit)
}

fn decide_in(width: Width, sorted: &[Timing], m: u32, unit: u64) -> Decision {
    match width {
        Width::Single => Columns::<f32>::with(sorted, unit, |c| iterate(&mut Fast::new(c, m))),
        Width::Double => Columns::<f64>::with(sorted, unit, |c| iterate(&mut Fast::new(c, m))),
        Width::Wide => iterate(&mut Wide {
            tasks: sorted,
            m,
            unit,
        }),
    }
}

/// How the slacks of all tasks give that of one: once in floating point that is exact, once in wide integers.
trait Slacks {
    type Time: Copy + Default + PartialOrd;
    /// What one call of [`Slacks::of`] costs.
    fn cost(&self) -> u64;
    /// D_k − e_k for every task, and as many zeros as the columns are padded with.
    fn largest(&self) -> Vec<Self::Time>;
    /// How many tasks.
    fn len(&self) -> usize;
    /// The slack of task k by those of the others, if it has one.
    fn of(&mut self, k: usize, slacks: &[Self::Time]) -> Option<Self::Time>;
}

/// How many sweeps from above come before the first from below.
const SWEEPS_FROM_ABOVE: usize = 3;

/// Closes in on the least fixed point of the slacks from below, as published, and from above: a task that has no slack
/// even by slacks that are too large will never have one. Most sets are rejected so in little more than one sweep,
/// where from below it takes ten.
fn iterate<S: Slacks>(slacks: &mut S) -> Decision {
    let mut budget = Budget::new(slacks.len());
    let n = slacks.len();
    let mut above = slacks.largest();
    let mut below = vec![S::Time::default(); above.len()];
    let mut is_settled = false;
    for sweep in 0.. {
        if !is_settled {
            is_settled = true;
            for step in 0..n {
                // Down and up again: the short deadlines, which fail most easily, come next to each other.
                let k = if sweep % 2 == 0 { step } else { n - 1 - step };
                budget.spend(slacks.cost())?;
                match slacks.of(k, &above) {
                    None => return Ok(false),
                    Some(slack) if slack < above[k] => {
                        above[k] = slack;
                        is_settled = false;
                    }
                    Some(_) => {}
                }
            }
        }
        if !is_settled && sweep < SWEEPS_FROM_ABOVE {
            continue;
        }
        let (mut all, mut changed) = (true, false);
        for k in 0..n {
            budget.spend(slacks.cost())?;
            match slacks.of(k, &below) {
                None => all = false,
                Some(slack) if slack > below[k] => {
                    below[k] = slack;
                    changed = true;
                }
                Some(_) => {}
            }
        }
        if all || !changed {
            return Ok(all);
        }
    }
    Ok(false)
}

struct Fast<'c, F> {
    m: f64,
    columns: &'c Columns<F>,
    /// What is to be summed.
    term: Vec<F>,
}

impl<'c, F: Float> Fast<'c, F> {
    fn new(columns: &'c Columns<F>, m: u32) -> Self {
        Fast {
            m: f64::from(m),
            columns,
            term: vec![F::default(); columns.wcet.len()],
        }
    }
}

impl<F: Float> Slacks for Fast<'_, F> {
    type Time = F;

    fn cost(&self) -> u64 {
        self.columns.n as u64
    }
    fn len(&self) -> usize {
        self.columns.n
    }
    fn largest(&self) -> Vec<F> {
        let c = self.columns;
        let mut slacks: Vec<F> = c.deadline.iter().zip(&c.wcet).map(|(d, e)| *d - *e).collect();
        // The padding has no slack to lose, and never executes.
        slacks[c.n..].fill(F::default());
        slacks
    }
    fn of(&mut self, k: usize, slacks: &[F]) -> Option<F> {
        let c = self.columns;
        let largest = c.deadline[k] - c.wcet[k];
        let most = largest + F::ONE;
        interference(c, slacks, c.deadline[k], most, &mut self.term);
        // Task k itself came along with e_k, as its slack is at most D_k − e_k.
        let others = sum(&self.term) - min(c.wcet[k], most).into();
        // Both are below 2^53: a quotient that is not whole stays below the next whole number.
        let slack = largest - F::of((others / self.m) as u64);
        (slack >= F::default()).then_some(slack)
    }
}

/// min(W_i, D_k − e_k + 1) of every task.
fn interference<F: Float>(columns: &Columns<F>, slack: &[F], window: F, most: F, term: &mut [F]) {
    // All of one length, so that the loop becomes vector instructions.
    let wcet = columns.wcet.as_slice();
    let n = wcet.len();
    let (period, inverse) = (&columns.period[..n], &columns.inverse_period[..n]);
    let (slack, term) = (&slack[..n], &mut term[..n]);
    for i in 0..n {
        let jobs = round(window * inverse[i] - F::HALF);
        let rest = max(F::default(), window - slack[i] - jobs * period[i]);
        term[i] = min(jobs * wcet[i] + min(wcet[i], rest), most);
    }
}

struct Wide<'t> {
    tasks: &'t [Timing],
    m: u32,
    unit: u64,
}

impl Slacks for Wide<'_> {
    type Time = u64;

    fn cost(&self) -> u64 {
        16 * self.tasks.len() as u64
    }
    fn len(&self) -> usize {
        self.tasks.len()
    }
    fn largest(&self) -> Vec<u64> {
        let slack = |t: &Timing| (t.deadline.nanos() - t.wcet.nanos()) / self.unit;
        self.tasks.iter().map(slack).collect()
    }
    fn of(&mut self, k: usize, slacks: &[u64]) -> Option<u64> {
        let window = self.tasks[k].deadline.nanos() / self.unit;
        let largest = window - self.tasks[k].wcet.nanos() / self.unit;
        let most = u128::from(largest) + 1;
        let mut others = 0_u128;
        for (i, t) in self.tasks.iter().enumerate() {
            if i != k {
                let (wcet, period) = (t.wcet.nanos() / self.unit, t.period.nanos() / self.unit);
                let rest = (window % period).saturating_sub(slacks[i]);
                let work = u128::from(window / period) * u128::from(wcet) + u128::from(wcet.min(rest));
                others += work.min(most);
            }
        }
        u64::try_from(others / u128::from(self.m))
            .ok()
            .and_then(|interference| largest.checked_sub(interference))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrow_and_wide_numbers_give_the_same_verdicts() {
        let mut verdicts = [0; 2];
        for seed in 0..200 {
            // Up to the longest times that single precision takes.
            let (tasks, m) = columns::tests::random_set(seed);
            assert_eq!(Width::of(&tasks, 1), Width::Single);
            let widths = [Width::Single, Width::Double, Width::Wide];
            let [single, double, wide] = widths.map(|width| decide_in(width, &tasks, m, 1));
            assert_eq!(single, double, "{tasks:?} on {m}");
            // Wide numbers come to the limit earlier.
            if wide.is_ok() {
                assert_eq!(single, wide, "{tasks:?} on {m}");
            }
            verdicts[usize::from(wide == Ok(true))] += 1;
        }
        assert!(verdicts.iter().all(|count| *count > 20), "{verdicts:?}");
    }
}
