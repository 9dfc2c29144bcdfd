//! Hard real-time tests for global EDF and global fixed priorities: one file a test.

pub mod any;
pub mod bak;
pub mod bar;
pub mod bcl;
pub mod bcli;
pub mod ffdbf;
pub mod gdm_density;
pub mod gfb;
pub mod gfp_rta;
pub mod load;
pub mod rta;

use model::{Ratio, Timing};

/// The largest density: found in floating point, exactly among those that are close.
pub(crate) fn max_density(tasks: &[Timing]) -> Option<Ratio> {
    let approximate = |t: &Timing| t.wcet.nanos() as f64 / t.deadline.min(t.period).nanos() as f64;
    let largest = tasks.iter().map(approximate).fold(0.0, f64::max);
    tasks
        .iter()
        .filter(|t| approximate(t) >= largest * (1.0 - 1e-12))
        .map(Timing::density)
        .max()
}
