//! Cache delays and overheads of this machine, measured: what goes into a profile.

pub mod agree;
mod columns;
pub mod cpmd;
pub mod destinations;
pub mod disturb;
pub mod interval;
pub mod journal;
pub mod keep;
pub mod kernel;
pub mod line;
pub mod overheads;
pub mod placement;
pub mod plan;
pub mod pollute;
pub mod ratio;
pub mod results;
pub mod run;
pub mod samples;
pub mod scheduled;
pub mod statistics;
pub mod summary;
pub mod system;
pub mod task;
pub mod walk;
pub mod wss;

pub use machine::memory;
