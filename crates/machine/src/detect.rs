//! This machine as far as it can be known: platform, facts and what it permits.

use crate::capabilities::{Capability, capabilities};
use crate::facts::{Config, Fact, facts};
use crate::probe::{EMULATION, Probes};
use crate::topology;
use crate::tree::Tree;
use model::{Platform, Result};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A machine.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Machine {
    /// Processors and caches.
    pub platform: Platform,
    /// Kernel, preemption model, tick, governor, hypervisor, clock.
    pub facts: Vec<Fact>,
    /// What it permits.
    pub capabilities: Vec<Capability>,
}

impl Machine {
    /// The value of a fact by its name, if the machine told it.
    pub fn fact(&self, name: &str) -> Option<&str> {
        let fact = self.facts.iter().find(|f| f.name == name)?;
        fact.value.as_deref()
    }

    /// What emulates its processors, if it is known to be no hardware.
    pub fn emulated(&self) -> Option<&str> {
        self.fact("hypervisor").filter(|name| *name == EMULATION)
    }

    /// A capability by its name.
    pub fn capability(&self, name: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|c| c.name == name)
    }

    /// The facts that have a value, by name: what a profile keeps of the machine it was measured
    /// on.
    pub fn settings(&self) -> BTreeMap<String, String> {
        self.facts
            .iter()
            .filter_map(|f| Some((f.name.to_owned(), f.value.clone()?)))
            .collect()
    }
}

/// The machine below a root: `/` with [`Probes::ask`] is this one; a saved tree is another.
///
/// # Errors
/// No processor is described.
pub fn detect(root: &Path, probes: &Probes) -> Result<Machine> {
    let tree = Tree::new(root);
    let release = tree.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    let config = Config::read(&tree, &release);
    let mut platform = topology::platform(&tree, probes)?;
    let facts = facts(&tree, probes, config.as_ref());
    let hypervisor = facts.iter().find(|f| f.name == "hypervisor");
    let virtual_machine =
        hypervisor.is_some_and(|f| f.value.as_deref().is_some_and(|v| v != "none"));
    let model = facts
        .iter()
        .find(|f| f.name == "model")
        .and_then(|f| f.value.clone());
    platform.description =
        model.unwrap_or_else(|| "a machine that does not tell its model".to_owned());
    Ok(Machine {
        capabilities: capabilities(&tree, probes, config.as_ref(), virtual_machine),
        platform,
        facts,
    })
}

/// The machine that this runs on.
///
/// # Errors
/// No processor is described: sysfs and procfs are both missing.
pub fn this_machine() -> Result<Machine> {
    detect(Path::new("/"), &Probes::ask())
}
