//! Threads of this process that carry decisions out, by priority and affinity.

pub(crate) mod backend;
pub(crate) mod dispatcher;
pub mod gate;
pub(crate) mod host;
pub(crate) mod job_loop;
pub(crate) mod listener;
pub(crate) mod panics;
pub(crate) mod post;
pub(crate) mod room;
pub(crate) mod slack;
pub(crate) mod standstill;
pub(crate) mod task;
pub(crate) mod worker;
