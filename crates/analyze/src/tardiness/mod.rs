//! Tardiness bounds for global EDF and its kin: bounded for every set that is not over-utilized.

pub mod cache_aware;
pub mod compliant_vector;
pub mod devi_anderson;
mod lag;
pub mod window_constrained;

use model::{Ratio, Timing, exact};

/// Is tardiness bounded under global EDF? U ≤ m and no utilization above 1 (Devi, Anderson 2008;
/// 002 §2.2.3).
pub fn is_bounded(tasks: &[Timing], m: u32) -> bool {
    tasks
        .iter()
        .all(|t| t.wcet <= t.period && !t.period.is_zero())
        && exact::cmp_sum(
            tasks.iter().map(Timing::utilization),
            Ratio::whole(u64::from(m)),
        )
        .is_le()
}

/// Λ = ⌈U⌉ − 1, at least 0: the largest whole number below U.
fn whole_below_utilization(tasks: &[Timing]) -> u64 {
    let utilizations = || tasks.iter().map(Timing::utilization);
    // Floating point is within one of the answer: a million terms err by far less.
    let near = utilizations().map(Ratio::to_f64).sum::<f64>() as u64;
    (near.saturating_sub(1)..=near + 1)
        .rev()
        .find(|n| exact::cmp_sum(utilizations(), Ratio::whole(*n)).is_gt())
        .unwrap_or(0)
}
