//! The life of a job, from its release to its completion, for every engine.
//!
//! A [`Life`] holds what an engine books about one task and its current job: the state, what the
//! job has executed, what it may still execute. An engine makes the transitions when time, a worker
//! or a policy asks for them. Nothing here has a clock, a lock, a thread or an allocation, so that
//! an engine in virtual time makes the same transitions as one in real time.
//!
//! ```text
//!            begin          ready          start
//!   Waiting --------> Held --------> Ready <------> Running
//!      ^               ^               |    stop       |
//!      |               +---------------|---------------+  exhaust, then push
//!      +-------------------------------+---------------+  complete, cut
//!
//!   Waiting, Held, Ready -- hand_over --> Away -- receive --> the same state elsewhere
//! ```
//!
//! **Arrival order.** A task has one current job at most. An engine counts the jobs that are
//! released, and asks [`Life::awaits`] whether the next job can begin. A tardy job so defers its
//! successor, and a backlog is a count that takes no memory.
//!
//! **Limits.** A job is complete when it has executed for its demand, if that is known. It is cut
//! short when it has executed for its budget, and its part leaves the domain when it has executed
//! for its slice. [`Life::look_at`] says when the first of these can happen, [`Life::reached`] what
//! has happened. Both take a job that is looked at too late: budgets and slices are then used up
//! by more than they were.
//!
//! **Hand-over.** A task belongs to one domain at a time. [`Life::hand_over`] leaves
//! [`State::Away`] behind and gives plain data ([`Handed`]) that can travel in a letter from the
//! lock of one domain to that of another. It cannot be copied, so that a task is never in two
//! domains.
//!
//! # In an engine in real time
//!
//! Only the worker knows the demand of a job there: [`Begin::demand`] is `None`, and a job is
//! complete when its worker has said so ([`Life::work_done`]). A job that is cut short leaves its
//! work behind ([`Life::behind`]), which later jobs do first. [`Limits::timers`] says how exact a
//! timer is. The duty to release the next job travels apart from the task, so every engine counts
//! released jobs beside the life.
//!
//! What is not of the job but of its thread stays with the engine, and so does what is measured. A
//! life names processors as the engine does, in one way for all domains; an engine may know a place
//! in the domain besides.

#![forbid(unsafe_code)]

mod life;
mod limits;

pub use life::{Begin, Handed, Life, Start, State};
pub use limits::{LONGEST, Limits, Reached};
