//! BAK: busy intervals extended downwards, for global EDF.
//!
//! Source: Baker, "Multiprocessor EDF and deadline monotonic schedulability analysis", RTSS 2003,
//! in the form of Bertogna, Cirinei, Lipari, ECRTS 2005, Theorem 5. With λ_k = e_k/D_k, every task
//! k must have Σ_i min(1, β_i) ≤ m·(1 − λ_k) + λ_k, where β_i = u_i·(1 + (p_i − D_i)/D_k) if u_i ≤
//! λ_k, and (e_i − λ_k·p_i)/D_k more otherwise.
//!
//! Multiplied by D_k, as here: Σ_i min(D_k, u_i·(D_k + p_i − D_i) + max(0, e_i − λ_k·p_i)) ≤ m·D_k
//! − (m − 1)·e_k.
//!
//! Assumes: sporadic tasks, D ≤ p. A total utilization above m breaks the condition by itself, as
//! β_i ≥ u_i.

use crate::carries::Carries;
use crate::columns::{Budget, Columns, LANES, max, min};
use crate::info::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, tasks_are_feasible,
};
use model::Timing;
use model::exact::ExactSum;

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BAK",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Baker, RTSS 2003; in the form of Bertogna, Cirinei, Lipari, ECRTS 2005, Theorem 5",
    preconditions: "D ≤ p",
    about: "A missed deadline needs a long enough interval in which all processors are loaded; bounds the load that \
            each task can bring into the longest such interval. Quadratic.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Deadlines,
};

/// Σ_i min(1, β_i) ≤ m·(1 − λ_k) + λ_k for every task k.
///
/// # Errors
/// A deadline beyond its period; too many pairs of tasks.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || tasks.is_empty() || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    Columns::<f64>::with(tasks, 1, |columns| fails(tasks, m, columns)).map(|k| k.is_none())
}

/// A task k with Σ_i min(1, β_i) > m·(1 − λ_k) + λ_k; `None`: there is none.
///
/// # Errors
/// As [`is_schedulable`].
pub fn failing(tasks: &[Timing], m: u32) -> Result<Option<usize>, NotApplicable> {
    constrained_deadlines(tasks)?;
    Columns::<f64>::with(tasks, 1, |columns| fails(tasks, m, columns))
}

fn fails(tasks: &[Timing], m: u32, columns: &mut Columns) -> Result<Option<usize>, NotApplicable> {
    let mut budget = Budget::new(tasks.len());
    let (mut utilization, mut work) = (0.0, 0.0);
    for i in 0..columns.n {
        utilization += columns.wcet[i] * columns.inverse_period[i];
        work += columns.wcet[i];
    }
    // u_i·(p_i − D_i)
    for i in 0..columns.wcet.len() {
        let u = columns.wcet[i] * columns.inverse_period[i];
        columns
            .extra
            .push(u * (columns.period[i] - columns.deadline[i]));
    }
    let shortest = (0..columns.n)
        .min_by(|a, b| columns.deadline[*a].total_cmp(&columns.deadline[*b]))
        .unwrap_or(0);
    for k in std::iter::once(shortest).chain((0..columns.n).filter(|k| *k != shortest)) {
        budget.spend(columns.n as u64)?;
        let (wcet, deadline) = (columns.wcet[k], columns.deadline[k]);
        let load = load(columns, deadline, wcet / deadline);
        let bound = f64::from(m) * deadline - f64::from(m - 1) * wcet;
        // Each term errs by a few units in the last place of u_i·D_k and e_i (where λ_k·p_i is much
        // larger than e_i the maximum is zero whatever the rounding), the sum by one such unit of
        // itself a term.
        let terms = 16.0 * (utilization * deadline + 8.0 * work) + (columns.n as f64 + 8.0) * load;
        let error = (terms + 8.0 * f64::from(m) * deadline) * f64::EPSILON;
        let holds = if load + error < bound {
            true
        } else if load - error > bound {
            false
        } else {
            holds_exactly(tasks, m, k)
        };
        if !holds {
            return Ok(Some(k));
        }
    }
    Ok(None)
}

/// D_k · Σ_i min(1, β_i).
#[inline]
fn load(columns: &Columns, window: f64, lambda: f64) -> f64 {
    let mut sums = [0.0; LANES];
    let rows = columns
        .wcet
        .chunks_exact(LANES)
        .zip(columns.period.chunks_exact(LANES));
    let more = columns
        .extra
        .chunks_exact(LANES)
        .zip(columns.inverse_period.chunks_exact(LANES));
    for ((wcet, period), (carried, inverse)) in rows.zip(more) {
        for lane in 0..LANES {
            let share = wcet[lane] * inverse[lane] * window + carried[lane];
            let term = share + max(0.0, wcet[lane] - lambda * period[lane]);
            sums[lane] += min(term, window);
        }
    }
    sums.iter().sum()
}

/// The condition for one task in exact arithmetic.
#[cold]
fn holds_exactly(tasks: &[Timing], m: u32, k: usize) -> bool {
    let (wcet_k, window) = (tasks[k].wcet.nanos(), tasks[k].deadline.nanos());
    let lambda = tasks[k].density();
    let mut load = ExactSum::new();
    for t in tasks {
        let (wcet, period, deadline) = (t.wcet.nanos(), t.period.nanos(), t.deadline.nanos());
        let mut term = ExactSum::new();
        // u·(D_k + p − D) = e + e·(D_k − D)/p
        term.add_whole(i128::from(wcet));
        let product = u128::from(wcet) * u128::from(window.abs_diff(deadline));
        if window >= deadline {
            term.add(product, period);
        } else {
            term.subtract(product, period);
        }
        if t.utilization() > lambda {
            // e − λ_k·p
            term.add_whole(i128::from(wcet));
            term.subtract(u128::from(wcet_k) * u128::from(period), window);
        }
        if term.cmp_whole(i128::from(window)).is_ge() {
            load.add_whole(i128::from(window));
        } else {
            load.add_sum(&term);
        }
    }
    let bound = i128::from(m) * i128::from(window) - i128::from(m - 1) * i128::from(wcet_k);
    load.cmp_whole(bound).is_le()
}
