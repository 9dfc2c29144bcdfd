//! Semi-partitioned EDF: most tasks stay on a processor, a few migrate as planned (002 chapter 4).
//!
//! EDF-fm migrates between jobs ([`edf_fm`]), EDF-WM within jobs at fixed times ([`edf_wm`]), NPS-F
//! moves servers of tasks within a repeating slot ([`nps_f`]). Each gives its assignment as plain
//! data of the model, in whole nanoseconds.

pub mod edf_fm;
pub mod edf_wm;
pub(crate) mod next_fit;
pub mod nps_f;

use model::{CpuId, Duration};

/// The shortest slice of EDF-WM: 50 µs, the minimum sub-task execution cost of 002 §5.1.2. Shorter
/// intervals cannot be policed (002 §4.4.1, which gives no number). The turns of a server that two
/// processors share are held to it as well.
pub const SHORTEST_SLICE: Duration = Duration::from_micros(50);

/// The shortest reserve of NPS-F and C-NPS-F: 150 µs, the minimum server size of 002 §5.1.2, "to
/// allow some room for tasks to execute within their servers".
pub const SHORTEST_RESERVE: Duration = Duration::from_micros(150);

/// Processors 0 to m − 1.
pub fn processors(m: u32) -> Vec<CpuId> {
    (0..m).map(CpuId).collect()
}
