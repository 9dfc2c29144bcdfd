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
//! What each transition is there, in `execute::domain` as it stands. The duty to release the next
//! job travels apart from the task, so every engine counts released jobs beside the life.
//!
//! - [`Life::new`], [`Life::away`] – `TaskState::new`.
//! - [`Life::awaits`] – the conditions before each `begin` in `Domain::release`, `arrive`, `finish`
//!   and `take_over`, with `arrived` as the count.
//! - [`Life::begin`] – `Domain::begin`. The demand is `None`; the budget is as `Books::enforcement`
//!   and `Parameters::budgeted` say.
//! - [`Life::job`] – `Books::job`.
//! - [`Life::ready`] – `slice_left` in `Domain::ready`.
//! - [`Life::start`] – `place` in `Books::put_on`; `started` and `last` in `show_start`.
//! - [`Life::stop`] – `place = NONE` in `Books::preempt`, where the job had not finished.
//! - [`Life::execute`] – `Books::account`, with what the thread's clock says.
//! - [`Life::look_at`] – `Books::set_limit`. [`Limits::timers`] has `SHORTEST` and `NEARLY`.
//! - [`Life::reached`] – the conditions in `Domain::take_limits`.
//! - [`Life::exhaust`], [`Life::push`] – `Event::Exhausted` in `Domain::take_limits`; `part` in
//!   `Books::push`.
//! - [`Life::work_done`] – `behind` in `Books::take_work_done`.
//! - [`Life::complete`] – `current` and `number` in `Domain::finish`. For a program that knows
//!   nothing of jobs also where its budget is used up: it leaves nothing to its next job.
//! - [`Life::cut`] – `behind` in `Books::cut`, then `Domain::finish`.
//! - [`Life::hand_over`], [`Life::receive`] – `Books::hand_over`; `Mail::Task` in
//!   `Domain::take_mail`.
//! - [`Life::receive_anew`] – `Domain::give` and `Books::own`, from one stage of a run to the next.
//!
//! What is not of the job but of its thread stays with the engine: `accounted`, `affinity`,
//! `raised`, `left`, `gated`, `working`, `done`; and what is measured: `prompt`, `called`. A life
//! names processors by one number for all domains; `execute` has its place in the domain besides.

#![forbid(unsafe_code)]

mod life;
mod limits;

pub use life::{Begin, Handed, Life, Start, State};
pub use limits::{LONGEST, Limits, Reached};
