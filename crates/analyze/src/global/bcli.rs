//! BCLI: bounded interference by deadline with slack, iterated, for global EDF.
//!
//! Source: Bertogna, Cirinei, Lipari, "Schedulability analysis of global scheduling algorithms on
//! multiprocessor platforms", IEEE TPDS 20 (2009), the iterative test for EDF. From slacks s_i = 0
//! on, every task k gets W_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)) and a new slack
//! by Σ_{i≠k} min(W_i, S_k) with S_k = D_k − e_k, until every task has a slack or none changes.
//! Slacks only grow, so the order of the updates does not matter.
//!
//! The paper has integer time: s_k = S_k − ⌊Σ min(W_i, S_k + 1)/m⌋ if that is not negative. This
//! proves nothing for a release between two ticks. Here releases may fall anywhere. Suppose that a
//! schedule exceeds some bound R_k = D_k − s_k, take the first time t at which it does, by a job of
//! task k released at r = t − R_k. Until t no job runs beyond its bound, so task i executes at most
//! W_i of higher priority in [r, t). The job waits for longer than R_k − e_k in [r, t), for a time
//! I, with all m processors busy. A task interferes at most for I, and no two jobs of it at once,
//! so that for every y ≤ I: Σ min(W_i, y) ≥ m·y.
//! - Σ min(W_i, S_k) < m·S_k: with s_k = S_k − Σ min(W_i, S_k)/m some y in (S_k − s_k, S_k] is
//!   within I, and Σ min(W_i, S_k) ≥ Σ min(W_i, y) ≥ m·y > m·(S_k − s_k) is a contradiction.
//! - Σ min(W_i, S_k) = m·S_k: s_k = 0 and I > S_k. For y just above S_k the sum has grown by y −
//!   S_k for each W_i > S_k, so that fewer than m of these are a contradiction. m of them are none.
//! - Otherwise task k has no slack.
//!
//! A slack is rounded down to whole nanoseconds, which is safe: the proof needs a lower bound only.
//! `is_schedulable_on_grid` is the paper's test.
//!
//! Assumes: sporadic tasks, D ≤ p.

use crate::carries::Carries;
use crate::columns::{self, Budget, Columns, Float, Width, max, min, round, sum};
use crate::info::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, on_grid,
    tasks_are_feasible,
};
use model::{Duration, Timing};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BCLI",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Bertogna, Cirinei, Lipari, IEEE TPDS 20 (2009)",
    preconditions: "D ≤ p",
    about: "As BCL, but a task that always completes early interferes less: its slack is taken off the work that it can \
            carry into the window, and the slacks are improved until all tasks pass or nothing changes. With S_k = \
            D_k − e_k and W_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)), task k has the slack \
            s_k = S_k − ⌈Σ min(W_i, S_k)/m⌉ (in nanoseconds) if Σ min(W_i, S_k) is below m·S_k; no slack, but passes, \
            where both are equal and fewer than m tasks have W_i > S_k.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: Some(is_schedulable_on_grid),
    carries: Carries::Deadlines,
};

/// Has every task a slack, whenever jobs are released?
///
/// # Errors
/// A deadline beyond its period; too many pairs of tasks.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    let sorted = long_deadlines_first(tasks);
    // Slacks in whole microseconds, rounded down and up, mostly decide, in narrower numbers.
    let coarse = columns::unit(tasks);
    if coarse > 1
        && let Some(decision) = decide_in(
            Width::of(tasks, coarse),
            &sorted,
            m,
            coarse,
            Sought::Bracket,
        )?
    {
        return Ok(decision);
    }
    Ok(decide_in(Width::of(tasks, 1), &sorted, m, 1, Sought::Least)? == Some(true))
}

/// The test as published: all releases and times are multiples of `grid`.
///
/// # Errors
/// As [`is_schedulable`]; a time that is no multiple of `grid`.
pub fn is_schedulable_on_grid(tasks: &[Timing], m: u32, grid: Duration) -> Decision {
    constrained_deadlines(tasks)?;
    on_grid(tasks, grid)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    let (sorted, unit) = (long_deadlines_first(tasks), grid.nanos());
    Ok(decide_in(Width::of(tasks, unit), &sorted, m, unit, Sought::OnGrid)? == Some(true))
}

/// The slacks of long deadlines come first and let the short ones pass.
fn long_deadlines_first(tasks: &[Timing]) -> Vec<Timing> {
    let mut sorted = tasks.to_vec();
    sorted.sort_unstable_by_key(|t| std::cmp::Reverse(t.deadline));
    sorted
}

fn decide_in(
    width: Width,
    sorted: &[Timing],
    m: u32,
    unit: u64,
    sought: Sought,
) -> Result<Option<bool>, NotApplicable> {
    match width {
        Width::Single => {
            Columns::<f32>::with(sorted, unit, |c| search(&mut Fast::new(c, m), sought))
        }
        Width::Double => {
            Columns::<f64>::with(sorted, unit, |c| search(&mut Fast::new(c, m), sought))
        }
        Width::Wide => search(
            &mut Wide {
                tasks: sorted,
                m,
                unit,
            },
            sought,
        ),
    }
}

/// What the search over slacks is to find out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sought {
    /// The verdict by slacks in whole units.
    Least,
    /// The verdict by slacks in any finer unit, as far as bounds in whole units tell.
    Bracket,
    /// The verdict for releases on whole units.
    OnGrid,
}

/// How a slack becomes a whole number of units.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Rounding {
    /// The slack of the proof, rounded down.
    Down,
    /// The slack of the proof, rounded up: at least the slack in any finer unit.
    Up,
    /// The formula for releases on whole units.
    OnGrid,
}

/// How the slacks of all tasks give that of one: once in floating point that is exact, once in wide
/// integers.
trait Slacks {
    type Time: Copy + Default + PartialOrd;
    /// What one call of [`Slacks::of`] costs.
    fn cost(&self) -> u64;
    /// D_k − e_k for every task, and as many zeros as the columns are padded with.
    fn largest(&self) -> Vec<Self::Time>;
    /// How many tasks.
    fn len(&self) -> usize;
    /// The slack of task k by those of the others, if it has one.
    fn of(&mut self, k: usize, slacks: &[Self::Time], rounding: Rounding) -> Option<Self::Time>;
}

fn search<S: Slacks>(slacks: &mut S, sought: Sought) -> Result<Option<bool>, NotApplicable> {
    match sought {
        Sought::OnGrid => iterate(slacks, Rounding::OnGrid, Rounding::OnGrid).map(Some),
        Sought::Least => iterate(slacks, Rounding::Up, Rounding::Down).map(Some),
        Sought::Bracket => {
            if iterate(slacks, Rounding::Up, Rounding::Down)? {
                return Ok(Some(true));
            }
            let may_pass = iterate(slacks, Rounding::Up, Rounding::Up)?;
            Ok((!may_pass).then_some(false))
        }
    }
}

/// How many sweeps from above come before the first from below.
const SWEEPS_FROM_ABOVE: usize = 3;

/// Closes in on the least fixed point of the slacks from below, as published, and from above: a
/// task that has no slack even by slacks that are too large will never have one. Most sets are
/// rejected so in little more than one sweep, where from below it takes ten.
fn iterate<S: Slacks>(slacks: &mut S, from_above: Rounding, from_below: Rounding) -> Decision {
    let mut budget = Budget::new(slacks.len());
    let n = slacks.len();
    let mut above = slacks.largest();
    let mut below = vec![S::Time::default(); above.len()];
    let mut is_settled = false;
    for sweep in 0.. {
        if !is_settled {
            is_settled = true;
            for step in 0..n {
                // Down and up again: the short deadlines, which fail most easily, come next to each
                // other.
                let k = if sweep % 2 == 0 { step } else { n - 1 - step };
                budget.spend(slacks.cost())?;
                match slacks.of(k, &above, from_above) {
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
            match slacks.of(k, &below, from_below) {
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

    /// Are at most m − 1 of the other W_i above S_k?
    #[cold]
    fn few_are_clipped(&mut self, k: usize, slacks: &[F], largest: F) -> bool {
        let c = self.columns;
        interference(c, slacks, c.deadline[k], largest + F::ONE, &mut self.term);
        let clipped = |i: &usize| *i != k && self.term[*i] > largest;
        ((0..c.n).filter(clipped).count() as f64) < self.m
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
        let mut slacks: Vec<F> = c
            .deadline
            .iter()
            .zip(&c.wcet)
            .map(|(d, e)| *d - *e)
            .collect();
        // The padding has no slack to lose, and never executes.
        slacks[c.n..].fill(F::default());
        slacks
    }
    fn of(&mut self, k: usize, slacks: &[F], rounding: Rounding) -> Option<F> {
        let c = self.columns;
        let largest = c.deadline[k] - c.wcet[k];
        let most = match rounding {
            Rounding::OnGrid => largest + F::ONE,
            Rounding::Down | Rounding::Up => largest,
        };
        interference(c, slacks, c.deadline[k], most, &mut self.term);
        // Task k itself came along with e_k, as its slack is at most D_k − e_k.
        let others = sum(&self.term) - min(c.wcet[k], most).into();
        let bound = self.m * largest.into();
        if rounding != Rounding::OnGrid
            && (others > bound || others == bound && !self.few_are_clipped(k, slacks, largest))
        {
            return None;
        }
        // Both are below 2^53: a quotient that is not whole stays between two whole numbers.
        let share = others / self.m;
        let share = if rounding == Rounding::Down {
            share.ceil()
        } else {
            share
        };
        let slack = largest - F::of(share as u64);
        (slack >= F::default()).then_some(slack)
    }
}

/// min(W_i, most) of every task.
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
    fn of(&mut self, k: usize, slacks: &[u64], rounding: Rounding) -> Option<u64> {
        let window = self.tasks[k].deadline.nanos() / self.unit;
        let largest = window - self.tasks[k].wcet.nanos() / self.unit;
        let most = u128::from(largest) + u128::from(rounding == Rounding::OnGrid);
        let (mut others, mut clipped) = (0_u128, 0);
        for (i, t) in self.tasks.iter().enumerate() {
            if i != k {
                let (wcet, period) = (t.wcet.nanos() / self.unit, t.period.nanos() / self.unit);
                let rest = (window % period).saturating_sub(slacks[i]);
                let work =
                    u128::from(window / period) * u128::from(wcet) + u128::from(wcet.min(rest));
                others += work.min(most);
                clipped += u32::from(work > most);
            }
        }
        let m = u128::from(self.m);
        let bound = m * u128::from(largest);
        if rounding != Rounding::OnGrid && (others > bound || others == bound && clipped >= self.m)
        {
            return None;
        }
        let share = match rounding {
            Rounding::Down => others.div_ceil(m),
            Rounding::Up | Rounding::OnGrid => others / m,
        };
        u64::try_from(share)
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
            for sought in [Sought::Least, Sought::Bracket, Sought::OnGrid] {
                let widths = [Width::Single, Width::Double, Width::Wide];
                let [single, double, wide] =
                    widths.map(|width| decide_in(width, &tasks, m, 1, sought));
                assert_eq!(single, double, "{tasks:?} on {m}");
                // Wide numbers come to the limit earlier.
                if wide.is_ok() {
                    assert_eq!(single, wide, "{tasks:?} on {m}");
                }
                verdicts[usize::from(wide == Ok(Some(true)))] += 1;
            }
        }
        assert!(verdicts.iter().all(|count| *count > 60), "{verdicts:?}");
    }
}
