//! BCLI: bounded interference by deadline with slack, iterated, for global EDF.
//!
//! Source: Bertogna, Cirinei, Lipari, "Schedulability analysis of global scheduling algorithms on multiprocessor
//! platforms", IEEE TPDS 20 (2009), Theorem 7 and the iteration of Fig. 5; Bertogna, Cirinei, RTSS 2007, equation (8).
//! From slacks s_i = 0 on, every task k gets W_i = ⌊D_k/p_i⌋·e_i + min(e_i, max(0, D_k mod p_i − s_i)) and
//! s_k = D_k − e_k − ⌊Σ_{i≠k} min(W_i, D_k − e_k + 1)/m⌋ if that is not negative, until every task has a slack or none
//! changes. Slacks only grow, so the order of the updates does not matter.
//!
//! Assumes: sporadic tasks, D ≤ p; integer time, in the unit of the set (`columns::unit`).

use crate::columns::{self, Budget, Columns, LANES, max, min, round};
use crate::registry::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, constrained_deadlines, tasks_are_feasible};
use model::Timing;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BCLI",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Bertogna, Cirinei, Lipari, IEEE TPDS 20 (2009), Theorem 7 and Fig. 5",
    preconditions: "D ≤ p",
    about: "As BCL, but a task that always completes early interferes less: its slack is taken off the work that it can \
            carry into the window, and the slacks are improved until all tasks pass or nothing changes. Integer time.",
    run: is_schedulable,
    run_inflated: Some(is_schedulable_in_nanoseconds),
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
    if m == 0 || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    Columns::with(tasks, unit, |columns| {
        if columns.are_exact {
            iterate(&mut Fast {
                m: f64::from(m),
                columns,
            })
        } else {
            let slack = vec![0; tasks.len()];
            iterate(&mut Wide {
                tasks,
                m,
                unit,
                slack,
            })
        }
    })
}

/// The slacks of a set and how to improve them: once in floating point that is exact, once in wide integers.
trait Slacks {
    type Time: Copy + PartialOrd;
    /// What one improvement costs.
    fn cost(&self) -> u64;
    fn len(&self) -> usize;
    fn set(&mut self, k: usize, slack: Self::Time);
    fn get(&self, k: usize) -> Self::Time;
    fn zero(&self) -> Self::Time;
    /// D − e.
    fn largest(&self, k: usize) -> Self::Time;
    /// The slack that the others' slacks give to task k.
    fn improved(&self, k: usize) -> Option<Self::Time>;
}

fn iterate<S: Slacks>(slacks: &mut S) -> Decision {
    let mut budget = Budget::new();
    let n = slacks.len();
    for k in 0..n {
        slacks.set(k, slacks.zero());
    }
    // Most accepted sets need no slack at all.
    let mut without: Vec<usize> = Vec::new();
    for k in 0..n {
        budget.spend(slacks.cost())?;
        if slacks.improved(k).is_none() {
            without.push(k);
        }
    }
    if without.is_empty() {
        return Ok(true);
    }
    // Most rejected sets would be rejected with any slack.
    for k in 0..n {
        slacks.set(k, slacks.largest(k));
    }
    for k in &without {
        budget.spend(slacks.cost())?;
        if slacks.improved(*k).is_none() {
            return Ok(false);
        }
    }
    for k in 0..n {
        slacks.set(k, slacks.zero());
    }
    loop {
        let mut changed = false;
        for k in 0..n {
            budget.spend(slacks.cost())?;
            if let Some(slack) = slacks.improved(k)
                && slack > slacks.get(k)
            {
                slacks.set(k, slack);
                changed = true;
            }
        }
        let mut left = Vec::new();
        for k in without {
            budget.spend(slacks.cost())?;
            if slacks.improved(k).is_none() {
                left.push(k);
            }
        }
        without = left;
        if without.is_empty() {
            return Ok(true);
        }
        if !changed {
            return Ok(false);
        }
    }
}

/// Slacks in the column `extra`.
struct Fast<'c> {
    m: f64,
    columns: &'c mut Columns,
}

impl Slacks for Fast<'_> {
    type Time = f64;

    fn cost(&self) -> u64 {
        self.columns.n as u64
    }
    fn len(&self) -> usize {
        self.columns.n
    }
    fn set(&mut self, k: usize, slack: f64) {
        if self.columns.extra.is_empty() {
            self.columns.extra.resize(self.columns.wcet.len(), 0.0);
        }
        self.columns.extra[k] = slack;
    }
    fn get(&self, k: usize) -> f64 {
        self.columns.extra[k]
    }
    fn zero(&self) -> f64 {
        0.0
    }
    fn largest(&self, k: usize) -> f64 {
        self.columns.deadline[k] - self.columns.wcet[k]
    }
    fn improved(&self, k: usize) -> Option<f64> {
        let c = &*self.columns;
        let (window, wcet) = (c.deadline[k], c.wcet[k]);
        let most = window - wcet + 1.0;
        let mut sums = [0.0; LANES];
        let rows = c.wcet.chunks_exact(LANES).zip(c.period.chunks_exact(LANES));
        let more = c
            .extra
            .chunks_exact(LANES)
            .zip(c.inverse_period.chunks_exact(LANES));
        for ((wcet, period), (slack, inverse)) in rows.zip(more) {
            for lane in 0..LANES {
                let jobs = round(window * inverse[lane] - 0.5);
                let rest = max(0.0, window - slack[lane] - jobs * period[lane]);
                let work = jobs * wcet[lane] + min(wcet[lane], rest);
                sums[lane] += min(work, most);
            }
        }
        // Task k itself came along with e_k, as its slack is at most D_k − e_k.
        let others = sums.iter().sum::<f64>() - min(wcet, most);
        let slack = window - wcet - (others / self.m).floor();
        (slack >= 0.0).then_some(slack)
    }
}

/// The same for times and sums beyond 2^53.
struct Wide<'t> {
    tasks: &'t [Timing],
    m: u32,
    unit: u64,
    slack: Vec<u64>,
}

impl Slacks for Wide<'_> {
    type Time = u64;

    fn cost(&self) -> u64 {
        16 * self.tasks.len() as u64
    }
    fn len(&self) -> usize {
        self.tasks.len()
    }
    fn set(&mut self, k: usize, slack: u64) {
        self.slack[k] = slack;
    }
    fn get(&self, k: usize) -> u64 {
        self.slack[k]
    }
    fn zero(&self) -> u64 {
        0
    }
    fn largest(&self, k: usize) -> u64 {
        (self.tasks[k].deadline.nanos() - self.tasks[k].wcet.nanos()) / self.unit
    }
    fn improved(&self, k: usize) -> Option<u64> {
        let window = self.tasks[k].deadline.nanos() / self.unit;
        let largest = self.largest(k);
        let most = u128::from(largest) + 1;
        let mut others = 0_u128;
        for (i, t) in self.tasks.iter().enumerate() {
            if i != k {
                let (wcet, period) = (t.wcet.nanos() / self.unit, t.period.nanos() / self.unit);
                let rest = (window % period).saturating_sub(self.slack[i]);
                let work = u128::from(window / period) * u128::from(wcet) + u128::from(wcet.min(rest));
                others += work.min(most);
            }
        }
        let interference = others / u128::from(self.m);
        u64::try_from(interference)
            .ok()
            .and_then(|i| largest.checked_sub(i))
    }
}
