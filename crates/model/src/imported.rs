//! Files of other tools: what came of reading one, and what one has no place for.

use crate::task::{Details, TaskSet};

/// A task set that was read from another tool's file.
#[derive(Clone, PartialEq, Debug)]
pub struct Imported {
    /// The tasks.
    pub set: TaskSet,
    /// What was left out or is different here, a sentence each, with its place in the file and the
    /// name of the task.
    pub notes: Vec<String>,
}

/// Says which keys of a task a file of `tool` has no place for, if any. `kept`: those it has one
/// for, besides the times and the phase.
pub(crate) fn left_out(details: &Details, tool: &str, kept: &[&str]) -> Option<String> {
    let extras = details.extras;
    let lost: Vec<&str> = [
        ("wss", details.wss.is_some()),
        ("group", details.group.is_some()),
        ("soft", details.soft),
        ("workload", details.workload.is_some()),
        ("colors", details.colors.is_some()),
        ("wcet by colors", details.wcets.is_some()),
        ("trigger", details.trigger.is_some()),
        ("priority", details.priority.is_some()),
        ("cpus", details.cpus.is_some()),
        ("blocking", !extras.blocking.is_zero()),
        ("jitter", !extras.jitter.is_zero()),
    ]
    .into_iter()
    .filter_map(|(key, has)| (has && !kept.contains(&key)).then_some(key))
    .collect();
    let (keys, it) = match lost[..] {
        [] => return None,
        [one] => (format!("`{one}` is"), "it"),
        _ => (format!("`{}` are", lost.join("`, `")), "them"),
    };
    Some(format!(
        "task {}: {keys} left out, as {tool} has no place for {it}",
        details.name
    ))
}
