//! Task sets of Cheddar: its projects (XML), in and out.
//!
//! Format: what Cheddar 3 reads and writes: `periodic_task` elements under `tasks`, with their times
//! as whole numbers of a unit that the file does not name, on processors that have cores. Resources,
//! dependencies, buffers and messages are no part of a sporadic task set and are named.

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::imported::Imported;
use crate::task::{Details, Extras, TaskSet, Timing, check_timing};
use crate::time::Duration;
use crate::xml;
use roxmltree::Node;
use std::collections::{BTreeMap, BTreeSet};

mod written;
pub use written::{to_cheddar, unit_of};

/// The element that a project has all others in.
pub const ROOT: &str = "cheddar";

/// Elements of a project that a sporadic task set has no place for, and what they are.
const ELSEWHERE: [(&str, &str); 6] = [
    ("resources", "resources"),
    ("dependencies", "dependencies"),
    ("buffers", "buffers"),
    ("messages", "messages"),
    ("event_analyzers", "event analyzers"),
    ("networks", "networks"),
];

/// Reads a project of Cheddar, whose times are numbers of `unit`.
///
/// # Errors
/// No such file; a task whose times are none, with its line; no task that has a period.
pub fn from_cheddar(text: &str, unit: Duration) -> Result<Imported> {
    let document = xml::parse(text, "Cheddar")?;
    let root = document.root_element();
    if !root.has_tag_name(ROOT) {
        return Err(Error::new(format!(
            "the outermost element is `{}`",
            root.tag_name().name()
        ))
        .remedy("projects of Cheddar begin with `cheddar`"));
    }
    let tasks = xml::child(root, "tasks").ok_or_else(|| {
        Error::new("there is no element `tasks`").remedy("give a project of Cheddar")
    })?;
    let mut notes = Vec::new();
    let homes = homes(root)?;
    let mut set = Vec::new();
    for node in tasks.children().filter(Node::is_element) {
        let name = match xml::text_in(node, "name") {
            None | Some("") => format!("T{}", set.len() + 1),
            Some(name) => name.to_owned(),
        };
        let kind = node.tag_name().name();
        if !matches!(kind, "periodic_task" | "sporadic_task") {
            notes.push(format!(
                "{}: task `{name}` is left out: a `{kind}` has no period",
                xml::place(node)
            ));
            continue;
        }
        let read = task(node, &name, unit, &homes, &mut notes);
        set.push(read.map_err(|e| e.at(format!("{}, task `{name}`", xml::place(node))))?);
    }
    if set.is_empty() {
        let why = match notes.is_empty() {
            true => "there are no tasks".to_owned(),
            false => notes.join("; "),
        };
        return Err(Error::new(format!("no task has a period: {why}"))
            .remedy("give a project with elements `periodic_task` or `sporadic_task`"));
    }
    let mut all = Vec::new();
    surroundings(root, &mut all);
    all.append(&mut notes);
    // Writers that know no priorities give all tasks the same one.
    let priorities: BTreeSet<_> = set.iter().map(|(_, d)| d.priority).collect();
    if priorities.len() == 1 {
        for (_, details) in &mut set {
            details.priority = None;
        }
    }
    Ok(Imported {
        set: TaskSet::new(set)?,
        notes: all,
    })
}

/// Names what a project says besides tasks.
fn surroundings(root: Node<'_, '_>, notes: &mut Vec<String>) {
    for (element, what) in ELSEWHERE {
        let Some(node) = xml::child(root, element) else {
            continue;
        };
        let count = node.children().filter(Node::is_element).count();
        if count > 0 {
            notes.push(format!(
                "{}: {count} {what} are not modeled and are left out",
                xml::place(node)
            ));
        }
    }
    let cores = xml::child(root, "core_units");
    let schedulers: BTreeSet<&str> = cores
        .into_iter()
        .flat_map(|node| node.descendants())
        .filter(|node| node.has_tag_name("scheduler_type"))
        .filter_map(|node| node.text())
        .map(str::trim)
        .collect();
    if let (Some(node), false) = (cores, schedulers.is_empty()) {
        let names: Vec<&str> = schedulers.into_iter().collect();
        notes.push(format!(
            "{}: how cores schedule ({}) is no part of a task set: say it by `--policy`",
            xml::place(node),
            names.join(", ")
        ));
    }
}

/// The processors of this machine that stand for each of the project's, by their names; none where
/// there is only one.
///
/// # Errors
/// More cores than Linux numbers.
fn homes<'a>(root: Node<'a, '_>) -> Result<BTreeMap<&'a str, CpuSet>> {
    let mut homes = BTreeMap::new();
    let mut next: u32 = 0;
    let processors: Vec<Node<'_, '_>> = xml::child(root, "processors")
        .into_iter()
        .flat_map(|node| node.children().filter(Node::is_element))
        .collect();
    for node in &processors {
        let cores = node.descendants().filter(|n| n.has_tag_name("core"));
        let cores = u32::try_from(cores.count()).unwrap_or(u32::MAX).max(1);
        let end = next.saturating_add(cores);
        if end > CpuSet::MAX_CPU + 1 {
            return Err(
                Error::new("the processors have more cores than Linux numbers")
                    .at(xml::place(*node))
                    .remedy(format!("give at most {} in all", CpuSet::MAX_CPU + 1)),
            );
        }
        let cpus = (next..end).map(CpuId).collect();
        next = end;
        homes.insert(xml::text_in(*node, "name").unwrap_or_default(), cpus);
    }
    Ok(match processors.len() {
        0 | 1 => BTreeMap::new(),
        _ => homes,
    })
}

/// A task of a project.
fn task(
    node: Node<'_, '_>,
    name: &str,
    unit: Duration,
    homes: &BTreeMap<&str, CpuSet>,
    notes: &mut Vec<String>,
) -> Result<(Timing, Details)> {
    let time = |key: &str| time_in(node, key, unit).map_err(|e| e.at(format!("`{key}`")));
    let need = |key: &str| {
        time(key)?.ok_or_else(|| {
            Error::new(format!("`{key}` is missing")).remedy("give it as a whole number")
        })
    };
    let period = need("period")?;
    let timing = Timing {
        wcet: need("capacity")?,
        period,
        deadline: time("deadline")?
            .filter(|deadline| !deadline.is_zero())
            .unwrap_or(period),
    };
    check_timing(&timing)?;
    let mut note = |text: String| {
        notes.push(format!("{}: task `{name}` {text}", xml::place(node)));
    };
    if let Some(cost) = time("context_switch_overhead")?.filter(|cost| !cost.is_zero()) {
        note(format!(
            "has a context switch overhead of {cost}, which is left out: costs stand in profiles here"
        ));
    }
    if xml::child(node, "offsets").is_some_and(|o| o.children().any(|n| n.is_element())) {
        note("has offsets of single jobs, which are left out".to_owned());
    }
    let priority = match xml::text_in(node, "priority") {
        None | Some("") => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Error::new(format!("`{text}` is no priority"))
                .at("`priority`")
                .remedy(format!("give a whole number from 0 to {}", u32::MAX))
        })?),
    };
    let home = xml::text_in(node, "cpu_name").unwrap_or_default();
    if !homes.is_empty() && !homes.contains_key(home) {
        return Err(Error::new(format!("there is no processor `{home}`"))
            .at("`cpu_name`")
            .remedy("name one of the processors of the project"));
    }
    let details = Details {
        phase: time("start_time")?.unwrap_or_default(),
        cpus: homes.get(home).cloned(),
        priority,
        extras: Extras {
            blocking: time("blocking_time")?.unwrap_or_default(),
            jitter: time("jitter")?.unwrap_or_default(),
        },
        ..Details::named(name)
    };
    Ok((timing, details))
}

/// The time in an element below a node, if there is one.
fn time_in(node: Node<'_, '_>, key: &str, unit: Duration) -> Result<Option<Duration>> {
    let Some(text) = xml::text_in(node, key).filter(|text| !text.is_empty()) else {
        return Ok(None);
    };
    let bad = |why: &str| {
        Error::new(format!("`{text}` {why}")).remedy("give a whole number of at least zero")
    };
    let count: u64 = text.parse().map_err(|_| bad("is no whole number"))?;
    match count.checked_mul(unit.nanos()) {
        Some(ns) => Ok(Some(Duration::from_nanos(ns))),
        None => Err(bad("is too long")),
    }
}

#[cfg(test)]
mod tests;
