//! What is written for tests again and again: times, task sets, random numbers, platforms, watches,
//! calls of the command, a view of tracefs, whether this machine has page colors, and how a test
//! says that this machine cannot run it.

#![forbid(unsafe_code)]

pub mod colors;
pub mod command;
mod outcome;
pub mod platforms;
pub mod random;
pub mod schemas;
pub mod sets;
pub mod times;
pub mod tracefs;
pub mod watching;

pub use outcome::{NotRun, Outcome, Report, run, run_alone, trial};
