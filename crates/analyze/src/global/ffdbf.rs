//! FFDBF: the forced-forward demand bound function against slower processors, for global EDF.
//!
//! Source: Baruah, Bonifaci, Marchetti-Spaccamela, Stiller, "Improved multiprocessor global
//! schedulability analysis", Real-Time Systems 46 (2010). For a speed σ, task i demands in an
//! interval of length t with q = ⌊t/p_i⌋, r = t mod p_i: FF_i(t, σ) = q·e_i, and e_i more if r ≥
//! D_i, or e_i − (D_i − r)·σ more if D_i > r ≥ D_i − e_i/σ. A set is schedulable if some σ ≥ δ_max
//! has Σ FF_i(t, σ) ≤ (m − (m − 1)·σ)·t for all t.
//!
//! The speeds tried are δ_max and the multiples of 1/50 above it, up to (m − U)/(m − 1) − ε with ε
//! = 1/10 and at most 1. The sum grows with a slope of a sum of σ up to each t = D_i + j·p_i and is
//! flat behind, so only these t matter; and as FF_i(t, σ) ≤ e_i + u_i·(t − D_i), only those before
//! Σ(e_i − u_i·D_i)/(m − (m − 1)·σ − U): none for implicit deadlines.
//!
//! Assumes: sporadic tasks, D ≤ p, at least two processors.

use crate::carries::Carries;
use crate::columns::Budget;
use crate::global::max_density;
use crate::info::TestInfo;
use crate::verdict::{
    Decision, Exactness, Guarantee, NotApplicable, constrained_deadlines, processors,
    tasks_are_feasible,
};
use model::exact::ExactSum;
use model::{Ratio, Timing};

/// The entry of the registry.
pub const INFO: TestInfo = TestInfo {
    name: "FFDBF",
    policy: "g-edf",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "Baruah, Bonifaci, Marchetti-Spaccamela, Stiller, Real-Time Systems 46 (2010)",
    preconditions: "D ≤ p, m ≥ 2",
    about: "For some processor speed σ, the demand that must execute in any interval even on processors of that speed \
            fits what is left. Tries σ in steps of 1/50 and keeps ε = 1/10 away from full load, so GFB may accept what \
            this does not.",
    run: is_schedulable,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Deadlines,
};

/// 1/ε.
const PER_EPSILON: u64 = 10;
/// One over the step of σ.
const PER_STEP: u64 = 50;

/// Is there a σ with Σ FF_i(t, σ) ≤ (m − (m − 1)·σ)·t for all t?
///
/// # Errors
/// A deadline beyond its period; one processor; too many points to look at.
pub fn is_schedulable(tasks: &[Timing], m: u32) -> Decision {
    speed(tasks, m).map(|sigma| sigma.is_some())
}

/// The first σ of those tried that has Σ FF_i(t, σ) ≤ (m − (m − 1)·σ)·t for all t; 1 for no tasks.
///
/// # Errors
/// As [`is_schedulable`].
pub fn speed(tasks: &[Timing], m: u32) -> Result<Option<Ratio>, NotApplicable> {
    processors(2, m)?;
    constrained_deadlines(tasks)?;
    if !tasks_are_feasible(tasks) {
        return Ok(None);
    }
    let Some(max) = max_density(tasks) else {
        return Ok(Some(Ratio::ONE));
    };
    let mut budget = Budget::new(tasks.len());
    let mut sigma = max;
    // σ ≤ 1 for all that follow, and δ_max ≤ 1 as the tasks are feasible.
    let first_step =
        u64::try_from(u128::from(max.num()) * u128::from(PER_STEP) / u128::from(max.den()))
            .unwrap_or(PER_STEP)
            + 1;
    for step in first_step..=PER_STEP + 1 {
        if !leaves_epsilon(tasks, m, sigma) {
            return Ok(None);
        }
        if fits(tasks, m, sigma, &mut budget)? {
            return Ok(Some(sigma));
        }
        if step > PER_STEP {
            break;
        }
        sigma = Ratio::new(step, PER_STEP).unwrap_or(Ratio::ONE);
    }
    Ok(None)
}

/// σ ≤ (m − U)/(m − 1) − ε, as U + (m − 1)·(σ + ε) ≤ m.
fn leaves_epsilon(tasks: &[Timing], m: u32, sigma: Ratio) -> bool {
    let others = f64::from(m - 1);
    let mut total = others * (sigma.to_f64() + 1.0 / PER_EPSILON as f64);
    for t in tasks {
        total += t.wcet.nanos() as f64 / t.period.nanos() as f64;
    }
    let error = (total + 1.0) * (tasks.len() as f64 + 16.0) * f64::EPSILON;
    if total + error < f64::from(m) {
        return true;
    }
    if total - error > f64::from(m) {
        return false;
    }
    let mut sum = ExactSum::new();
    for t in tasks {
        sum.add(u128::from(t.wcet.nanos()), t.period.nanos());
    }
    sum.add_scaled(u128::from(m - 1), sigma);
    sum.add(u128::from(m - 1), PER_EPSILON);
    sum.cmp_whole(i128::from(m)).is_le()
}

/// Σ FF_i(t, σ) ≤ (m − (m − 1)·σ)·t for all t, given that the right side grows faster than U by ε
/// at least.
fn fits(tasks: &[Timing], m: u32, sigma: Ratio, budget: &mut Budget) -> Decision {
    let (mut utilization, mut ahead) = (0.0, 0.0);
    for t in tasks {
        let (wcet, u) = (t.wcet.nanos() as f64, t.utilization().to_f64());
        utilization += u;
        if !t.has_implicit_deadline() {
            ahead += wcet - u * t.deadline.nanos() as f64;
        }
    }
    if ahead <= 0.0 {
        return Ok(true);
    }
    let speed = f64::from(m) - f64::from(m - 1) * sigma.to_f64();
    // The margin is at least (m − 1)·ε.
    let last = ahead * 1.001 / (speed - utilization).max(0.99 / PER_EPSILON as f64) + 1.0;
    for task in tasks {
        let mut t = u128::from(task.deadline.nanos());
        while t as f64 <= last {
            budget.spend(16 * tasks.len() as u64)?;
            if !fits_at(tasks, m, sigma, t) {
                return Ok(false);
            }
            t += u128::from(task.period.nanos());
        }
    }
    Ok(true)
}

/// Σ FF_i(t, σ) ≤ (m − (m − 1)·σ)·t.
fn fits_at(tasks: &[Timing], m: u32, sigma: Ratio, t: u128) -> bool {
    let (mut whole, mut short) = (0_u128, 0_u128);
    for task in tasks {
        let (wcet, period) = (
            u128::from(task.wcet.nanos()),
            u128::from(task.period.nanos()),
        );
        let deadline = u128::from(task.deadline.nanos());
        let (jobs, rest) = match u64::try_from(t) {
            Ok(t) => (
                u128::from(t / task.period.nanos()),
                u128::from(t % task.period.nanos()),
            ),
            Err(_) => (t / period, t % period),
        };
        whole += jobs * wcet;
        let missing = deadline.saturating_sub(rest);
        // e − missing·σ, where that is positive
        if missing * u128::from(sigma.num()) <= wcet * u128::from(sigma.den()) {
            whole += wcet;
            short += missing;
        }
    }
    // Σ FF = whole − short·σ ≤ m·t − (m − 1)·σ·t
    let mut sum = ExactSum::new();
    sum.add_whole(i128::try_from(whole).unwrap_or(i128::MAX));
    sum.subtract_scaled(short, sigma);
    sum.add_scaled(t * u128::from(m - 1), sigma);
    sum.cmp_whole(i128::try_from(t * u128::from(m)).unwrap_or(i128::MAX))
        .is_le()
}
