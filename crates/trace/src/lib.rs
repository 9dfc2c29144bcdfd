//! What happened, event by event: one format for simulated and real runs.
//!
//! [`Event`] is the record, [`Sink`] takes it. No system calls but plain file access, no `unsafe`.

#![forbid(unsafe_code)]

pub mod check;
pub mod csv;
pub mod distribution;
pub mod event;
pub mod file;
pub mod ftrace;
pub mod header;
pub mod overheads;
pub mod perfetto;
pub mod queue;
pub mod recorder;
pub mod sink;
pub mod state;
pub mod stats;
pub mod summary;
pub mod thrashing;
pub mod view;

pub use check::{Checker, Verdict};
pub use event::{Event, EventKind, Flags};
pub use file::{Condition, FileSink, Reader};
pub use header::{Charges, Header, Origin, Releases, Stage};
pub use model::Overhead;
pub use sink::{NullSink, Sink, VecSink};
pub use stats::Statistics;
pub use summary::Summary;
pub use thrashing::Thrashing;
pub use view::{View, Viewer};
