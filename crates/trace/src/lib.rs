//! What happened, event by event: one format for simulated and real runs.
//!
//! [`Event`] is the record, [`Sink`] takes it. No system calls but plain file access, no `unsafe`.

#![forbid(unsafe_code)]

pub mod event;
pub mod sink;

pub use event::{Event, EventKind, Flags, Overhead};
pub use sink::{NullSink, Sink, VecSink};
