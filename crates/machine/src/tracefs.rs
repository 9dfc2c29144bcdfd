//! The kernel's own record of what happens, through tracefs: its tracepoints, in nanoseconds.
//!
//! Recorded in buffers of their own that nobody else writes to (an instance), gone when the
//! recording ends: nothing of the machine's tracing is changed. The buffers are read as they are in
//! memory (`trace_pipe_raw`): the kernel's text has microseconds only. Source: the kernel's
//! `Documentation/trace/{ftrace,events}.rst`.

mod format;
mod recording;
mod ring;
mod switches;

use crate::process::Process;
pub use recording::{MOST_FIELDS, Record, Recorded, Recording, Tracepoint};
use std::path::{Path, PathBuf};
pub use switches::{SWITCHES, Switch, Switches};

/// Where it is mounted.
pub const TRACEFS: &str = "/sys/kernel/tracing";
/// Where buffers of one's own are made, a directory each.
const INSTANCES: &str = "instances";

/// How the names of buffers begin; the process follows.
const PREFIX: &str = "warmset-";

/// The directory of the buffers of this process's recording, which is taken away at its end.
pub fn instance() -> Option<PathBuf> {
    let name = format!("{PREFIX}{}", Process::this()?);
    Some(Path::new(TRACEFS).join(INSTANCES).join(name))
}

/// Takes away the buffers of recordings whose process was killed.
pub fn take_away_what_is_left() {
    let Ok(instances) = std::fs::read_dir(Path::new(TRACEFS).join(INSTANCES)) else {
        return;
    };
    for instance in instances.flatten() {
        let name = instance.file_name();
        let process = name.to_str().and_then(|n| n.strip_prefix(PREFIX));
        let process = process.and_then(|p| p.parse::<Process>().ok());
        if process.is_some_and(Process::has_ended) {
            // Somebody else may be faster.
            let _ = std::fs::remove_dir(instance.path());
        }
    }
}
