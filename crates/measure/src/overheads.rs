//! What the engine's overheads cost on this machine (002 §5.1).
//!
//! Random task sets of growing size run under a policy, and the trace tells how long each overhead
//! took. [`outliers`] and [`curve`] make of such samples what a profile has: the largest and the
//! mean by number of tasks, monotone, or a constant where [`trend`] finds no rise. [`results`] puts
//! together what many runs say, and [`statements`] holds what the papers say against it.

pub mod by_processor;
pub mod curve;
pub mod in_kernel;
pub mod marks;
pub mod outliers;
pub mod probe;
pub mod raw;
pub mod results;
pub mod statements;
pub mod tiles;
pub mod trend;
