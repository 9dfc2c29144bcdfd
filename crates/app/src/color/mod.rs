//! Partitions caches by page colors: finds them, proves that they act, gives memory out by color.

pub mod find;
