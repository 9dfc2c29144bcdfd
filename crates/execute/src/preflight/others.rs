//! Other real-time programs on the same processors: they take time from jobs, or keep dispatchers
//! waiting. Among them are other runs of this engine.

use super::{Finding, Intent};
use crate::threads::dispatcher;
use crate::{kernel, watchdog};
use machine::others::{Class, Other, others};
use model::CpuSet;
use std::collections::BTreeMap;

/// The name of the findings about other runs of this engine.
pub const OTHER_RUNS: &str = "other Warmset runs";

/// So many are named.
const MOST: usize = 8;

/// One finding a program that has threads at or above the priorities of this engine, on processors
/// that the run has.
pub(super) fn programs(intent: &Intent<'_>) -> Vec<Finding> {
    let name = "other real-time programs";
    // At that of preempted jobs and above.
    let lowest = u32::try_from(kernel::WAIT).unwrap_or(0);
    let near = |other: &Other| {
        let meets = |cpus: &model::CpuSet| intent.cpus.iter().any(|cpu| cpus.contains(*cpu));
        other.class.disturbs(lowest) && other.cpus.as_ref().is_none_or(meets)
    };
    let all = others(intent.tree, std::process::id());
    let runs = runs(&all);
    let of_a_run =
        |other: &Other| runs.contains_key(&other.process) || runs.contains_key(&other.parent);
    let mut programs: BTreeMap<u32, Vec<Other>> = BTreeMap::new();
    for other in all.iter().filter(|other| near(other) && !of_a_run(other)) {
        programs
            .entry(other.process)
            .or_default()
            .push(other.clone());
    }
    let mut found: Vec<Finding> = runs.iter().map(|(pid, on)| run(*pid, on, intent)).collect();
    if programs.is_empty() {
        found.push(Finding::fine(
            name,
            format!("no other program has real-time threads at priority {lowest} or above"),
        ));
    }
    let more = programs.len().saturating_sub(MOST);
    found.extend(
        programs
            .values()
            .take(MOST)
            .map(|threads| finding(name, threads)),
    );
    if more > 0 {
        found.push(Finding::warn(
            name,
            format!("and {more} more"),
            "see `ps -eLo pid,tid,cls,rtprio,comm`",
        ));
    }
    found
}

/// The other runs of this engine: their processes, and the processors of their dispatchers as far
/// as these are known. What such a process has started, its watchdog among it, belongs to the run.
fn runs(all: &[Other]) -> BTreeMap<u32, Option<CpuSet>> {
    let priority = u32::try_from(kernel::DISPATCHER.get()).unwrap_or(u32::MAX);
    let mut runs: BTreeMap<u32, Option<CpuSet>> = BTreeMap::new();
    for other in all {
        if other.class == Class::Fifo(priority) && dispatcher::is_name(&other.name) {
            let cpus = runs
                .entry(other.process)
                .or_insert_with(|| Some(CpuSet::default()));
            *cpus = match (cpus.take(), &other.cpus) {
                (Some(known), Some(more)) => Some(known.iter().chain(more.iter()).collect()),
                _ => None,
            };
        }
        // Its run may have no dispatcher yet, or none any more.
        if other.name == watchdog::NAME {
            runs.entry(other.parent).or_insert(None);
        }
    }
    runs
}

fn run(process: u32, on: &Option<CpuSet>, intent: &Intent<'_>) -> Finding {
    let name = OTHER_RUNS;
    let meets = |cpus: &CpuSet| intent.cpus.iter().any(|cpu| cpus.contains(*cpu));
    match on {
        Some(cpus) if !meets(cpus) => Finding::fine(
            name,
            format!(
                "process {process} runs tasks on processors {cpus}, which this run does not use"
            ),
        ),
        _ => Finding::warn(
            name,
            format!(
                "process {process} is another Warmset run{}: the dispatchers and jobs of both have the same \
                 priorities, each run delays the other, and neither result is worth much",
                on.as_ref()
                    .map_or(String::new(), |cpus| format!(" on processors {cpus}"))
            ),
            "wait for its end, or give each run processors of its own (`--cpus`)",
        ),
    }
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
