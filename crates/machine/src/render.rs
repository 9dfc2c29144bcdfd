//! A machine and a platform as text for people: the tree, the notes, the facts, what is permitted.

use crate::capabilities::Capability;
use crate::detect::Machine;
use crate::facts::Fact;
use model::hierarchy::Hierarchy;
use model::{Bytes, CpuSet, Platform};
use std::collections::BTreeSet;
use std::fmt::Write;

/// The platform: what it is, its counts, the tree, its notes.
pub fn platform_text(platform: &Platform) -> String {
    let mut out = format!("{}: {}\n{}\n", platform.name, platform.description, counts(platform));
    out.push_str(&Hierarchy::of(platform).to_text());
    for note in &platform.notes {
        // Writing to a String cannot fail.
        let _ = writeln!(out, "note: {note}");
    }
    out
}

/// The machine: its platform, then facts and capabilities with their remedies.
pub fn machine_text(machine: &Machine) -> String {
    let mut out = platform_text(&machine.platform);
    out.push('\n');
    let width = |names: &mut dyn Iterator<Item = &'static str>| names.map(str::len).max().unwrap_or(0);
    let names = width(&mut machine.facts.iter().map(|f| f.name));
    for fact in &machine.facts {
        push_fact(&mut out, fact, names);
    }
    out.push('\n');
    let names = width(&mut machine.capabilities.iter().map(|c| c.name));
    for capability in &machine.capabilities {
        push_capability(&mut out, capability, names);
    }
    out
}

fn push_fact(out: &mut String, fact: &Fact, width: usize) {
    let value = match &fact.value {
        Some(value) => value.clone(),
        None => format!("unknown (looked in {})", fact.source),
    };
    let _ = writeln!(out, "{:width$}  {value}", fact.name);
    if let Some(remedy) = &fact.remedy {
        let _ = writeln!(out, "{:width$}  → {remedy}", "");
    }
}

fn push_capability(out: &mut String, capability: &Capability, width: usize) {
    let _ = writeln!(
        out,
        "{:width$}  {:<7}  {}",
        capability.name, capability.state, capability.seen
    );
    if !capability.remedy.is_empty() {
        let _ = writeln!(out, "{:width$}  {:<7}  → {}", "", "", capability.remedy);
    }
}

/// `24 processors on 24 cores in 4 sockets; cache lines of 64 B; pages of 4KiB, 2MiB`.
fn counts(platform: &Platform) -> String {
    let online: Vec<_> = platform.processors.iter().filter(|p| p.online).collect();
    let distinct = |key: &dyn Fn(&model::Processor) -> (u32, u32)| -> usize {
        online.iter().map(|p| key(p)).collect::<BTreeSet<_>>().len()
    };
    let (cores, sockets) = (distinct(&|p| (p.socket, p.core)), distinct(&|p| (p.socket, 0)));
    let nodes = distinct(&|p| (p.node, 0));
    let mut parts = vec![format!(
        "{} on {} in {}",
        counted(online.len(), "processor"),
        counted(cores, "core"),
        counted(sockets, "socket")
    )];
    parts.push(counted(nodes, "NUMA node"));
    let offline: CpuSet = platform
        .processors
        .iter()
        .filter(|p| !p.online)
        .map(|p| p.id)
        .collect();
    if !offline.is_empty() {
        parts.push(format!("{} offline", offline.len()));
    }
    let usable = platform.usable();
    if usable.len() < online.len() {
        parts.push(match usable.is_empty() {
            true => "none of them for this process".to_owned(),
            false => format!("for this process: {usable}"),
        });
    }
    let lines: BTreeSet<u32> = platform.caches.iter().filter_map(|c| c.line).collect();
    if !lines.is_empty() {
        let lines: Vec<String> = lines.iter().map(u32::to_string).collect();
        parts.push(format!("cache lines of {} B", lines.join(" or ")));
    }
    if !platform.page_sizes.is_empty() {
        let sizes: Vec<String> = platform.page_sizes.iter().map(Bytes::to_string).collect();
        parts.push(format!("pages of {}", sizes.join(", ")));
    }
    parts.join("; ")
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
