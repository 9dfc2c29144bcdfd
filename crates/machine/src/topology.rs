//! Processors, caches, nodes and page sizes as sysfs describes them.
//!
//! Source: the kernel's ABI documents `sysfs-devices-system-cpu` and `cputopology`. What a file
//! does not say is left out of the platform and stands in its notes; nothing is invented.

use crate::cgroup;
use crate::probe::Probes;
use crate::tree::Tree;
use model::strategy::{Strategy, Writing};
use model::{Bytes, Cache, CpuId, CpuSet, Error, Platform, Processor, Result};
use std::collections::{BTreeMap, BTreeSet};

const CPU: &str = "/sys/devices/system/cpu";
const NODE: &str = "/sys/devices/system/node";

/// The platform that the tree describes, as far as it does.
///
/// # Errors
/// No processor is described at all.
pub fn platform(tree: &Tree, probes: &Probes) -> Result<Platform> {
    let mut notes = Vec::new();
    let (all, online) = processors_of(tree, &mut notes)?;
    let usable = usable_of(tree, probes, &online, &mut notes);
    let nodes = nodes_of(tree, &mut notes);
    let places = places_of(tree, &online, &mut notes);
    let processors = all
        .iter()
        .map(|id| {
            let (socket, core) = places.get(&id).copied().unwrap_or_default();
            Processor {
                id,
                core,
                socket,
                node: nodes
                    .iter()
                    .find(|(_, cpus)| cpus.contains(id))
                    .map_or(0, |(node, _)| *node),
                online: online.contains(id),
                usable: usable.contains(id),
                capacity: tree.value(&format!("{CPU}/cpu{id}/cpu_capacity")),
            }
        })
        .collect();
    note_kinds_of_cores(tree, &mut notes);
    let platform = Platform {
        name: "this-machine".to_owned(),
        description: String::new(),
        processors,
        caches: caches_of(tree, &online, &mut notes),
        // Linux tells nothing of them.
        tlb: None,
        page_sizes: page_sizes_of(tree, probes, &mut notes),
        notes,
    }
    .in_order();
    platform.check()?;
    Ok(platform)
}

/// All processors, and those that are online.
fn processors_of(tree: &Tree, notes: &mut Vec<String>) -> Result<(CpuSet, CpuSet)> {
    let mut all: CpuSet = tree.numbered(CPU, "cpu").into_iter().map(CpuId).collect();
    // Not `possible` and `offline`: they count every slot that could ever be filled.
    for file in ["present", "online"] {
        all = all.union(&tree.cpus(&format!("{CPU}/{file}")).unwrap_or_default());
    }
    if all.is_empty() {
        all = tree
            .text("/proc/cpuinfo")
            .unwrap_or_default()
            .lines()
            .filter_map(|line| {
                line.strip_prefix("processor")?
                    .trim_start()
                    .strip_prefix(':')?
                    .trim()
                    .parse()
                    .ok()
            })
            .map(CpuId)
            .collect();
        if all.is_empty() {
            return Err(Error::new("no processor is described").at(CPU).remedy(
                "mount sysfs on /sys, or describe the machine in a file (`--platform board.toml`)",
            ));
        }
        notes.push(format!(
            "{CPU} names no processor: they are from /proc/cpuinfo"
        ));
        return Ok((all.clone(), all));
    }
    let online = match tree.cpus(&format!("{CPU}/online")) {
        Some(online) => online,
        None => {
            notes.push(format!(
                "{CPU}/online is missing: each processor's own file was asked"
            ));
            // The first processor often has no such file: it cannot be switched off.
            all.iter()
                .filter(|cpu| tree.text(&format!("{CPU}/cpu{cpu}/online")).as_deref() != Some("0"))
                .collect()
        }
    };
    Ok((all, online))
}

/// The processors that this process may use: online, in its affinity mask, in its cpuset.
fn usable_of(tree: &Tree, probes: &Probes, online: &CpuSet, notes: &mut Vec<String>) -> CpuSet {
    let mut usable = online.clone();
    let affinity = probes
        .affinity
        .clone()
        .or_else(|| allowed_by_status(&tree.text("/proc/self/status")?));
    match affinity {
        Some(mask) => {
            let barred = listed(online, |cpu| !mask.contains(cpu));
            if !barred.is_empty() {
                notes.push(format!(
                    "the affinity mask of this process leaves out {barred}"
                ));
            }
            usable = usable.intersection(&mask);
        }
        None => notes.push(
            "the affinity mask of this process is unknown: every online processor counts".into(),
        ),
    }
    if let Some((path, cpus)) = cgroup::cpuset(tree) {
        let barred = listed(online, |cpu| !cpus.contains(cpu));
        if !barred.is_empty() {
            notes.push(format!("the cpuset {path} leaves out {barred}"));
        }
        usable = usable.intersection(&cpus);
    }
    usable
}

fn listed(cpus: &CpuSet, keep: impl Fn(CpuId) -> bool) -> CpuSet {
    cpus.iter().filter(|cpu| keep(*cpu)).collect()
}

fn allowed_by_status(status: &str) -> Option<CpuSet> {
    let line = status
        .lines()
        .find_map(|l| l.strip_prefix("Cpus_allowed_list:"))?;
    line.parse().ok()
}

/// The nodes that have processors.
fn nodes_of(tree: &Tree, notes: &mut Vec<String>) -> Vec<(u32, CpuSet)> {
    let mut nodes = Vec::new();
    for node in tree.numbered(NODE, "node") {
        match tree.cpus(&format!("{NODE}/node{node}/cpulist")) {
            Some(cpus) if cpus.is_empty() => {
                notes.push(format!("node {node} has memory but no processors"))
            }
            Some(cpus) => nodes.push((node, cpus)),
            None => notes.push(format!("the processors of node {node} are unknown")),
        }
    }
    if nodes.is_empty() {
        notes.push(format!("{NODE} describes no node: one is assumed"));
    }
    nodes
}

/// Socket and core of every online processor.
///
/// Cores are told apart by their siblings: on Arm boards the numbers of cores repeat from cluster
/// to cluster.
fn places_of(tree: &Tree, online: &CpuSet, notes: &mut Vec<String>) -> BTreeMap<CpuId, (u32, u32)> {
    let number = |cpu: CpuId, file: &str| -> Option<i64> {
        tree.value(&format!("{CPU}/cpu{cpu}/topology/{file}"))
    };
    let (mut no_socket, mut no_core) = (CpuSet::new(), CpuSet::new());
    let mut found: Vec<(CpuId, u32, Option<u32>, CpuSet)> = Vec::new();
    for cpu in online.iter() {
        let socket = number(cpu, "physical_package_id").and_then(|n| u32::try_from(n).ok());
        if socket.is_none() {
            no_socket.insert(cpu);
        }
        let core = number(cpu, "core_id").and_then(|n| u32::try_from(n).ok());
        let siblings = ["core_cpus_list", "thread_siblings_list"]
            .iter()
            .find_map(|file| tree.cpus(&format!("{CPU}/cpu{cpu}/topology/{file}")))
            // Kernels before 2.6.26 write masks only.
            .or_else(|| from_map(&tree.text(&format!("{CPU}/cpu{cpu}/topology/thread_siblings"))?));
        if core.is_none() && siblings.is_none() {
            no_core.insert(cpu);
        }
        let siblings = siblings
            .map(|s| s.intersection(online))
            .filter(|s| s.contains(cpu))
            .unwrap_or_else(|| CpuSet::from_iter([cpu]));
        found.push((cpu, socket.unwrap_or(0), core, siblings));
    }
    if !no_socket.is_empty() {
        notes.push(format!(
            "the socket of processors {no_socket} is unknown: taken as 0"
        ));
    }
    if !no_core.is_empty() {
        notes.push(format!(
            "the core of processors {no_core} is unknown: each counts as one of its own"
        ));
    }
    // The numbers of the kernel are kept where they tell cores apart.
    let mut of_core: BTreeMap<(u32, Option<u32>), BTreeSet<&CpuSet>> = BTreeMap::new();
    for (_, socket, core, siblings) in &found {
        of_core
            .entry((*socket, *core))
            .or_default()
            .insert(siblings);
    }
    let distinct = of_core
        .iter()
        .all(|((_, core), sets)| core.is_some() && sets.len() == 1);
    if !distinct && no_core.is_empty() {
        notes.push(
            "the kernel's core numbers repeat within a socket: cores are numbered by their lowest processor"
                .into(),
        );
    }
    found
        .iter()
        .map(|(cpu, socket, core, siblings)| {
            let lowest = siblings.lowest().unwrap_or(*cpu).0;
            let core = core.filter(|_| distinct).unwrap_or(lowest);
            (*cpu, (*socket, core))
        })
        .collect()
}

/// Hybrid processors name their two kinds of cores apart.
fn note_kinds_of_cores(tree: &Tree, notes: &mut Vec<String>) {
    for (file, name) in [("cpu_core", "performance"), ("cpu_atom", "efficiency")] {
        if let Some(cpus) = tree.cpus(&format!("/sys/devices/{file}/cpus")) {
            notes.push(format!("{name} cores: processors {cpus}"));
        }
    }
}

/// Every cache that an online processor describes, once.
fn caches_of(tree: &Tree, online: &CpuSet, notes: &mut Vec<String>) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    let mut silent = CpuSet::new();
    let mut unshared: BTreeSet<String> = BTreeSet::new();
    for cpu in online.iter() {
        let dir = format!("{CPU}/cpu{cpu}/cache");
        let indices = tree.numbered(&dir, "index");
        if indices.is_empty() {
            silent.insert(cpu);
        }
        for index in indices {
            let path = format!("{dir}/index{index}");
            let Some(mut cache) = cache_of(tree, &path) else {
                notes.push(format!("{path} does not say its level and type: left out"));
                continue;
            };
            cache.shared_by = cache.shared_by.intersection(online);
            if !cache.shared_by.contains(cpu) {
                unshared.insert(format!("{} of processor {cpu}", cache.label()));
                continue;
            }
            add(&mut caches, cache, notes);
        }
    }
    if !silent.is_empty() {
        notes.push(format!(
            "no caches are described for processors {silent}: what they share is unknown, describe it in a file (`--platform board.toml`)"
        ));
    }
    if !unshared.is_empty() {
        let list: Vec<String> = unshared.into_iter().collect();
        notes.push(format!(
            "who shares the {} is unknown: left out",
            list.join(", ")
        ));
    }
    let mut unknown: BTreeMap<String, CpuSet> = BTreeMap::new();
    for cache in caches.iter().filter(|c| c.size.is_none()) {
        let known = unknown.entry(cache.label()).or_default();
        *known = known.union(&cache.shared_by);
    }
    if !unknown.is_empty() {
        let list: Vec<String> = unknown
            .iter()
            .map(|(label, cpus)| format!("{label} of {cpus}"))
            .collect();
        notes.push(format!("no size is given for {}", list.join(", ")));
    }
    caches
}

/// Adds a cache unless it is there; processors that disagree on who shares it are believed
/// together.
fn add(caches: &mut Vec<Cache>, cache: Cache, notes: &mut Vec<String>) {
    let same = caches.iter_mut().find(|c| {
        (c.level, c.kind) == (cache.level, cache.kind)
            && !c.shared_by.intersection(&cache.shared_by).is_empty()
    });
    match same {
        None => caches.push(cache),
        Some(known) if known.shared_by == cache.shared_by => {}
        Some(known) => {
            let union = known.shared_by.union(&cache.shared_by);
            notes.push(format!(
                "processors disagree on who shares an {}: {} or {}; taken as {union}",
                cache.label(),
                known.shared_by,
                cache.shared_by
            ));
            known.shared_by = union;
        }
    }
}

fn cache_of(tree: &Tree, path: &str) -> Option<Cache> {
    let number = |file: &str| -> Option<u32> { tree.value(&format!("{path}/{file}")) };
    let size = tree
        .text(&format!("{path}/size"))
        .and_then(|t| t.parse::<Bytes>().ok());
    let (line, sets) = (number("coherency_line_size"), number("number_of_sets"));
    let line = line.filter(|n| *n > 0);
    let ways = match number("ways_of_associativity") {
        // Zero stands for full associativity; with more than one set it means nothing.
        Some(0) if sets == Some(1) => size
            .zip(line)
            .and_then(|(size, line)| u32::try_from(size.get() / u64::from(line)).ok()),
        Some(0) => None,
        ways => ways,
    };
    Some(Cache {
        level: number("level")
            .and_then(|n| u8::try_from(n).ok())
            .filter(|n| *n > 0)?,
        // The kernel writes them with a capital.
        kind: (tree.text(&format!("{path}/type"))?.to_lowercase())
            .parse()
            .ok()?,
        size: size.filter(|s| s.get() > 0),
        ways,
        line,
        sets: sets.filter(|n| *n > 0),
        shared_by: tree
            .cpus(&format!("{path}/shared_cpu_list"))
            .or_else(|| from_map(&tree.text(&format!("{path}/shared_cpu_map"))?))
            .unwrap_or_default(),
        strategy: strategy(tree, path),
    })
}

/// What the kernel tells of how a cache acts: most machines say nothing.
fn strategy(tree: &Tree, path: &str) -> Strategy {
    let said = |name: &str| tree.text(&format!("{path}/{name}"));
    Strategy {
        write: said("write_policy").and_then(|policy| match policy.trim() {
            "WriteBack" => Some(Writing::Back),
            "WriteThrough" => Some(Writing::Through),
            _ => None,
        }),
        allocate: said("allocation_policy").and_then(|policy| match policy.trim() {
            "ReadAllocate" => Some(false),
            "WriteAllocate" | "ReadWriteAllocate" => Some(true),
            _ => None,
        }),
        ..Strategy::default()
    }
}

/// A mask such as `00000000,000000ff`: comma-separated words of 32 bits, the highest first.
fn from_map(map: &str) -> Option<CpuSet> {
    let mut cpus = CpuSet::new();
    for (index, word) in map.rsplit(',').enumerate() {
        let bits = u32::from_str_radix(word.trim(), 16).ok()?;
        let base = 32 * u32::try_from(index).ok()?;
        for bit in (0..32).filter(|bit| bits >> bit & 1 == 1) {
            cpus.insert(CpuId(base + bit));
        }
    }
    Some(cpus)
}

fn page_sizes_of(tree: &Tree, probes: &Probes, notes: &mut Vec<String>) -> Vec<Bytes> {
    let mut sizes: Vec<Bytes> = tree
        .names("/sys/kernel/mm/hugepages")
        .unwrap_or_default()
        .iter()
        .filter_map(|name| {
            name.strip_prefix("hugepages-")?
                .strip_suffix("kB")?
                .parse()
                .ok()
        })
        .map(Bytes::from_kib)
        .collect();
    match probes.page_size {
        Some(size) => sizes.push(size),
        None => notes.push("the base page size was not asked for".into()),
    }
    sizes.sort_unstable();
    sizes.dedup();
    sizes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_are_read_from_the_lowest_word() {
        let list = |map: &str| from_map(map).map(|cpus| cpus.to_string());
        assert_eq!(list("3").as_deref(), Some("0-1"));
        assert_eq!(list("00000001,80000000").as_deref(), Some("31-32"));
        assert_eq!(list("x"), None);
    }
}
