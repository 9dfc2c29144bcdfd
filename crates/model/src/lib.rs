//! Warmset's nouns: time, tasks, processors, platforms, profiles, assignments, and their file
//! formats.
//!
//! No system calls but plain file access, and no randomness: what is here is tested on any machine.

#![forbid(unsafe_code)]

pub mod assignment;
pub mod assignmentfile;
pub mod builtin;
pub mod called;
pub mod cheddar;
pub mod colors;
pub mod cpus;
pub mod document;
pub mod enforcement;
pub mod error;
pub mod exact;
pub mod files;
pub mod hierarchy;
pub mod imported;
pub mod input;
pub mod latency;
pub mod overheads;
pub mod platform;
pub mod platformfile;
pub mod profile;
pub mod profilefile;
pub mod provenance;
pub mod rtapp;
mod scaled;
pub mod schedcat;
pub mod shown;
pub mod simso;
pub mod size;
pub mod strategy;
pub mod table;
pub mod task;
pub mod taskfile;
pub mod time;
pub mod watch;
pub mod wcets;
pub mod words;
pub mod workload;
mod xml;

pub use assignment::Assignment;
pub use called::Called;
pub use colors::{Color, Colors};
pub use cpus::{CpuId, CpuSet};
pub use enforcement::Enforcement;
pub use error::{Error, Result};
pub use exact::Ratio;
pub use overheads::Overheads;
pub use platform::{Cache, CacheKind, ClusterSpec, Platform, Processor, Resumption};
pub use profile::{CpmdCurve, CpmdPoint, Profile, ScheduledCurve};
pub use provenance::Provenance;
pub use size::Bytes;
pub use strategy::Strategy;
pub use task::{BestEffort, Details, Extras, TaskId, TaskSet, Timing};
pub use time::{Delay, Duration, Instant};
pub use wcets::Wcets;
pub use words::{Code, Load, Overhead, OverheadKind, Statistic};
pub use workload::{Beyond, Computation, Pattern, Rights, Trigger, Workload};
