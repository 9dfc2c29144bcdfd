//! The engine in real time: drives any policy on stock Linux, from user space.
//!
//! [`engine`] is a run from beginning to end; [`domain`] does to threads what a policy decides; [`watchdog`] sees to it that
//! the machine lives. How it works, and why so: the section on real time in ARCHITECTURE.md.

pub mod boundary;
pub mod clock;
pub mod colored;
mod dispatcher;
pub mod domain;
mod door;
mod effort;
pub mod engine;
mod family;
pub mod gate;
mod heir;
mod keeper;
pub mod kernel;
mod leftovers;
mod listener;
mod made;
mod pages;
mod panics;
pub mod preflight;
mod procfs;
mod program;
mod rights;
mod room;
mod sentinel;
mod slack;
mod stage;
mod standstill;
mod team;
mod trigger;
pub mod watchdog;
pub mod witness;
mod worker;

pub use domain::{Enforcement, POLICED};
pub use door::Door;
pub use effort::{Done, Effort, Efforts};
pub use engine::{Ending, Outcome, Settings, levels, run, run_in_turn, run_plan};
pub use program::{How, Launch, Manner, Performer, ProgramEnd};
pub use rights::Rights;
pub use trigger::{Triggered, Triggers};
