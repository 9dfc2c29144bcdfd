//! Cache delays and overheads of this machine, measured: what goes into a profile.

pub mod destinations;
pub mod disturb;
pub mod line;
pub mod memory;
pub mod plan;
pub mod pollute;
pub mod ratio;
pub mod samples;
pub mod statistics;
pub mod walk;
