//! The experiments of the papers on cache partitions, on this machine: 001 §5.
//!
//! [`short`] are short tasks that are activated after a flood of the cache, [`slices`] a long one that is interrupted,
//! [`combined`] both at once. [`ground`] is what they stand on: colors, memory of them, the flooder.

#![forbid(unsafe_code)]

pub mod combined;
pub mod ground;
pub mod short;
pub mod slices;
