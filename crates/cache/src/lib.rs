//! A cache hierarchy in software: what a machine that is not at hand would do with a program's
//! accesses to memory (001 §2–5, 003, 004 §IV).
//!
//! [`Shape`] completes the caches of a platform; [`Hierarchy`] is those caches at work, with the
//! rules of this model; [`Cachegrind`] and [`Pycachesim`] have the rules of those tools, so that
//! their counts come out. [`Simulation`] is any of them, with what is told of a whole trace: misses
//! by time and by color, TLBs, prices. [`Waits`] is what an access costs, by the prices of the
//! platform; [`Timed`] a processor that pays them. [`trace`] reads traces of other tools, [`pages`]
//! places pages in memory, in plain and in free coloring.
//!
//! No system calls and no clocks; random choices come from a seed.

#![deny(unsafe_code)]

pub mod access;
mod array;
pub mod cachegrind;
pub mod counts;
pub mod hierarchy;
pub mod pages;
pub mod pycachesim;
pub mod shape;
pub mod simulation;
pub mod timed;
pub mod tlb;
pub mod trace;
pub mod waits;
pub mod windows;

pub use access::{Access, Kind};
pub use cachegrind::Cachegrind;
pub use counts::{Counts, MemoryCounts};
pub use hierarchy::{Hierarchy, Outcome, Port};
pub use pages::{Coloring, Memory, Pages};
pub use pycachesim::Pycachesim;
pub use shape::{Shape, page_of};
pub use simulation::{Rules, Simulation};
pub use timed::{Case, Timed};
pub use waits::Waits;
