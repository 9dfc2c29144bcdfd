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
use std::collections::HashMap;
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

/// The names of threads that a recording has seen, those that have ended too, as far as the kernel
/// keeps them; none without tracefs.
pub fn names() -> HashMap<i32, String> {
    let text = std::fs::read_to_string(Path::new(TRACEFS).join("saved_cmdlines"));
    named(&text.unwrap_or_default())
}

/// A line a thread: its number and its name, which may have blanks.
fn named(text: &str) -> HashMap<i32, String> {
    let named = text.lines().filter_map(|line| {
        let (thread, name) = line.trim_start().split_once(' ')?;
        Some((thread.parse().ok()?, name.to_owned()))
    });
    named.collect()
}

#[cfg(test)]
mod tests {
    use super::named;

    #[test]
    fn threads_have_the_names_that_the_kernel_keeps() {
        let names = named("17 ksoftirqd/1\n812 standstill 0\nnonsense\n<...> x\n");
        assert_eq!(names.len(), 2);
        assert_eq!(names[&812], "standstill 0");
    }
}
