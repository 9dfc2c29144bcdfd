//! A machine and a platform as text for people: the tree, the notes, the facts, what is permitted.

use crate::capabilities::Capability;
use crate::detect::Machine;
use crate::facts::Fact;
use model::Platform;
use model::hierarchy::Hierarchy;
use std::fmt::Write;

/// The platform: what it is, its counts, the tree, its notes.
pub fn platform_text(platform: &Platform) -> String {
    let mut out = format!(
        "{}: {}\n{}\n",
        platform.name,
        platform.description,
        platform.summary()
    );
    out.push_str(&Hierarchy::of(platform).to_text());
    if let Some(tlb) = &platform.tlb {
        let _ = writeln!(
            out,
            "TLBs: {} pages of data and {} of instructions for each processor, {}-way",
            tlb.entries, tlb.entries, tlb.ways
        );
    }
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
    let width =
        |names: &mut dyn Iterator<Item = &'static str>| names.map(str::len).max().unwrap_or(0);
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
