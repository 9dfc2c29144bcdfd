//! Partitions caches by page colors: finds them, proves that they act, gives memory out by color.

pub mod alone;
pub mod exec;
pub mod experiment;
pub mod find;
pub mod serve;
