//! The experiments of the papers on this machine: on cache partitions (001 §5, 004 §IV), and on
//! what scheduling costs (002 §5.1).
//!
//! [`short`] are short tasks that are activated after a flood of the cache, [`slices`] a long one
//! that is interrupted, [`combined`] both at once; [`modeled`] has all three in a model of 001's
//! machines; [`task`] names the short ones for both. [`prepared`] is what they stand on: colors and
//! memory of them; [`flood`] is the flooder. [`multicore`] are periodic tasks on all processors, on
//! the engine in real time. [`overheads`] is what scheduling costs there.

#![forbid(unsafe_code)]

pub mod combined;
pub mod flood;
pub mod modeled;
pub mod multicore;
pub mod overheads;
pub mod prepared;
pub mod scheduled;
pub mod short;
pub mod slices;
pub mod task;
mod whole;
