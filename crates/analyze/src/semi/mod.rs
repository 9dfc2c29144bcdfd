//! Semi-partitioned EDF: most tasks stay on a processor, a few migrate as planned (002 chapter 4).
//!
//! EDF-fm migrates between jobs ([`edf_fm`]), EDF-WM within jobs at fixed times ([`edf_wm`]), NPS-F moves servers of tasks
//! within a repeating slot ([`nps_f`]). Each gives its assignment as plain data of the model, in whole nanoseconds.

pub mod edf_fm;
pub mod edf_wm;
pub mod nps_f;

use model::{CpuId, Duration};

/// The shortest slice or reserve that is enforced: 50 µs (002 §4.4.1: shorter intervals cannot be policed).
pub const SHORTEST: Duration = Duration::from_micros(50);

/// Processors 0 to m − 1.
pub fn processors(m: u32) -> Vec<CpuId> {
    (0..m).map(CpuId).collect()
}
