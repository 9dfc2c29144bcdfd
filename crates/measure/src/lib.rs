//! Cache delays and overheads of this machine, measured: what goes into a profile.

pub mod samples;
