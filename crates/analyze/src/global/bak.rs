//! BAK: busy intervals extended downwards, for global EDF.
//!
//! Source: Baker, "Multiprocessor EDF and deadline monotonic schedulability analysis", RTSS 2003, Theorem 12. With
//! λ_k = e_k/D_k, every task k must have Σ_i min(1, β_i) ≤ m·(1 − λ_k) + λ_k, where
//! β_i = u_i·(1 + (p_i − D_i)/D_k) if u_i ≤ λ_k, and (e_i − λ_k·p_i)/D_k more otherwise.
//!
//! Multiplied by D_k, as here: Σ_i min(D_k, u_i·(D_k + p_i − D_i) + max(0, e_i − λ_k·p_i)) ≤ m·D_k − (m − 1)·e_k.
//!
//! Assumes: sporadic tasks, D ≤ p. A total utilization above m breaks the condition by itself, as β_i ≥ u_i.

use crate::columns::{Budget, Columns, LANES, max, min};
use crate::registry::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee, constrained_deadlines, tasks_are_feasible};
use model::{Ratio, Timing, exact};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "BAK",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Baker, RTSS 2003, Theorem 12",
    preconditions: "D ≤ p",
    about: "A missed deadline needs a long enough interval in which all processors are loaded; bounds the load that \
            each task can bring into the longest such interval. Quadratic.",
    run: is_schedulable,
    run_inflated: None,
};

/// Σ_i min(1, β_i) ≤ m·(1 − λ_k) + λ_k for every task k.
///
/// # Errors
/// A deadline beyond its period; too many pairs of tasks.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    constrained_deadlines(tasks)?;
    if m == 0 || !tasks_are_feasible(tasks) {
        return Ok(tasks.is_empty());
    }
    Columns::with(tasks, 1, |columns| decide(tasks, m, columns))
}

fn decide(tasks: &[Timing], m: u32, columns: &mut Columns) -> Decision {
    let mut budget = Budget::new();
    let (mut utilization, mut work) = (0.0, 0.0);
    for i in 0..columns.n {
        utilization += columns.wcet[i] * columns.inverse_period[i];
        work += columns.wcet[i];
    }
    // u_i·(p_i − D_i)
    for i in 0..columns.wcet.len() {
        let u = columns.wcet[i] * columns.inverse_period[i];
        columns.extra.push(u * (columns.period[i] - columns.deadline[i]));
    }
    let shortest = (0..columns.n)
        .min_by(|a, b| columns.deadline[*a].total_cmp(&columns.deadline[*b]))
        .unwrap_or(0);
    for k in std::iter::once(shortest).chain((0..columns.n).filter(|k| *k != shortest)) {
        budget.spend(columns.n as u64)?;
        let (wcet, deadline) = (columns.wcet[k], columns.deadline[k]);
        let load = load(columns, deadline, wcet / deadline);
        let bound = f64::from(m) * deadline - f64::from(m - 1) * wcet;
        // Each term errs by a few units in the last place of u_i·D_k and e_i (where λ_k·p_i is much larger than e_i the
        // maximum is zero whatever the rounding), the sum by one such unit of itself a term.
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
            return Ok(false);
        }
    }
    Ok(true)
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

/// The condition for one task: whole nanoseconds are added as integers, what remains as proper fractions.
#[cold]
fn holds_exactly(tasks: &[Timing], m: u32, k: usize) -> bool {
    let (wcet_k, window) = (
        i128::from(tasks[k].wcet.nanos()),
        i128::from(tasks[k].deadline.nanos()),
    );
    let lambda = tasks[k].density();
    let mut left = i128::from(m) * window - i128::from(m - 1) * wcet_k;
    let mut fractions = Vec::new();
    for t in tasks {
        let (wcet, period) = (i128::from(t.wcet.nanos()), i128::from(t.period.nanos()));
        // u·(D_k + p − D) = e + e·(D_k − D)/p
        let gap = window - i128::from(t.deadline.nanos());
        let (mut quotient, mut rest) = floor_of_product(wcet, gap.abs(), period);
        if gap < 0 {
            (quotient, rest) = negated(quotient, rest);
        }
        let mut whole = wcet + quotient;
        let mut parts = [rest, Ratio::ZERO];
        if t.utilization() > lambda {
            // e − e_k·p/D_k
            let (quotient, rest) = floor_of_product(wcet_k, period, window);
            let (quotient, rest) = negated(quotient, rest);
            whole += wcet + quotient;
            parts[1] = rest;
        }
        if exact::cmp_sum_exactly(parts.iter().copied(), Ratio::whole(clamped(window - whole))).is_ge() {
            left -= window;
        } else {
            left -= whole;
            fractions.extend(parts.into_iter().filter(|p| p.num() != 0));
        }
    }
    left >= 0 && exact::cmp_sum_exactly(fractions.iter().copied(), Ratio::whole(clamped(left))).is_le()
}

/// ⌊a·b/c⌋ and the proper fraction that remains, for times below 2^64.
fn floor_of_product(a: i128, b: i128, c: i128) -> (i128, Ratio) {
    let (product, divisor) = (a.unsigned_abs() * b.unsigned_abs(), c.unsigned_abs().max(1));
    // The remainder and the divisor are below 2^64 as all times are; the quotient too, as one of a, b is within c.
    let rest = Ratio::new((product % divisor) as u64, divisor as u64).unwrap_or(Ratio::ZERO);
    (i128::try_from(product / divisor).unwrap_or(i128::MAX / 4), rest)
}

/// The negative of a whole number and a proper fraction, again as such.
fn negated(whole: i128, fraction: Ratio) -> (i128, Ratio) {
    if fraction.num() == 0 {
        return (-whole, Ratio::ZERO);
    }
    let rest = Ratio::new(fraction.den() - fraction.num(), fraction.den()).unwrap_or(Ratio::ZERO);
    (-whole - 1, rest)
}

/// What a sum of at most 2^63 proper fractions can reach.
fn clamped(x: i128) -> u64 {
    u64::try_from(x.max(0)).unwrap_or(u64::MAX)
}
