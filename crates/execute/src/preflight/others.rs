//! Other real-time programs on the same processors: they take time from jobs, or keep dispatchers waiting.

use super::{Finding, Intent};
use crate::kernel;
use machine::others::{Class, Other, others};
use std::collections::BTreeMap;

/// So many are named.
const MOST: usize = 8;

/// One finding a program that has threads at or above the priorities of this engine, on processors that the run has.
pub(super) fn programs(intent: &Intent<'_>) -> Vec<Finding> {
    let name = "other real-time programs";
    // At that of preempted jobs and above.
    let lowest = u32::try_from(kernel::WAIT).unwrap_or(0);
    let near = |other: &Other| {
        let meets = |cpus: &model::CpuSet| intent.cpus.iter().any(|cpu| cpus.contains(*cpu));
        other.class.disturbs(lowest) && other.cpus.as_ref().is_none_or(meets)
    };
    let mut programs: BTreeMap<u32, Vec<Other>> = BTreeMap::new();
    for other in others(intent.tree, std::process::id()).into_iter().filter(near) {
        programs.entry(other.process).or_default().push(other);
    }
    if programs.is_empty() {
        return vec![Finding::fine(name, format!("none at priority {lowest} or above"))];
    }
    let more = programs.len().saturating_sub(MOST);
    let mut found: Vec<Finding> = programs
        .values()
        .take(MOST)
        .map(|threads| finding(name, threads))
        .collect();
    if more > 0 {
        found.push(Finding::warn(
            name,
            format!("and {more} more"),
            "see `ps -eLo pid,tid,cls,rtprio,comm`",
        ));
    }
    found
}

fn finding(name: &'static str, threads: &[Other]) -> Finding {
    let highest = threads.iter().max_by_key(|t| match t.class {
        Class::Fifo(priority) | Class::RoundRobin(priority) => priority,
        Class::Deadline => u32::MAX,
    });
    let Some(t) = highest else {
        return Finding::fine(name, "none");
    };
    let dispatchers = u32::try_from(kernel::DISPATCHER.get()).unwrap_or(u32::MAX);
    let what = match t.class.disturbs(dispatchers) {
        true => "it may keep dispatchers waiting, and the watchdog may end the run",
        false => "it may take time from jobs",
    };
    let also = match threads.len() {
        1 => String::new(),
        n => format!(", the highest of {n} threads"),
    };
    Finding::warn(
        name,
        format!(
            "process {} has `{}` (thread {}) as {}{also}: {what}",
            t.process, t.name, t.thread, t.class
        ),
        format!(
            "end it (`kill {}`), make it an ordinary one (`chrt -o -p 0 {}`) or keep it elsewhere (`taskset -acp LIST {}`)",
            t.process, t.thread, t.process
        ),
    )
}
