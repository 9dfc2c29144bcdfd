//! The engine in real time: drives any policy on stock Linux, from user space.
//!
//! [`engine`] is a run from beginning to end; [`domain`] decides and keeps the books; `threads` and
//! `programs` carry decisions out, behind the traits of `backend`; [`watchdog`] sees to it that the
//! machine lives. How it works, and why so: docs/engine.md.

mod backend;
pub mod boundary;
pub mod clock;
pub mod colored;
pub mod domain;
mod effort;
pub mod engine;
mod ids;
pub mod kernel;
mod made;
#[cfg(test)]
mod memory;
pub mod preflight;
mod programs;
mod remedies;
mod stage;
mod task_state;
mod team;
mod threads;
pub mod trigger;
pub mod watchdog;
pub mod witness;

pub use domain::POLICED;
pub use effort::{Alongside, Beside, Done, Effort, Efforts};
pub use engine::{Ending, Outcome, Settings, WATCH_EVERY, levels, run, run_in_turn, run_plan};
pub use programs::asking::Asking;
pub use programs::elsewhere::{Cast, Programs};
pub use programs::ends::{How, ProgramEnd};
pub use programs::joining::JoinSocket;
pub use programs::launch::{Launch, Manner, Performer};
pub use programs::rights::Rights;
pub use threads::gate;
pub use trigger::{Kept, Triggered, Triggers};
pub use warmset_task::{Job as Told, page::Control};
