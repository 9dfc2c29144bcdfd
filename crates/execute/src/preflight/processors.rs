//! What may disturb a run: shared cores, changing frequencies, sleep, a hypervisor.

use super::{Finding, Intent};
use machine::Machine;
use model::{CpuId, CpuSet, Processor};

/// Where the kernel's files about processors are.
const CPUS: &str = "/sys/devices/system/cpu";

/// The core of a processor.
fn core_of(processor: &Processor) -> (u32, u32) {
    (processor.socket, processor.core)
}

/// Processors of the run that share a core, with each other or with one outside of the run, where
/// anybody's work may run.
pub(super) fn siblings(intent: &Intent<'_>) -> Vec<Finding> {
    let name = "hardware threads";
    let online = || {
        intent
            .machine
            .platform
            .processors
            .iter()
            .filter(|p| p.online)
    };
    let is_ours = |p: &Processor| intent.cpus.contains(&p.id);
    let mut cores: Vec<(u32, u32)> = online().filter(|p| is_ours(p)).map(core_of).collect();
    let count = cores.len();
    cores.sort_unstable();
    cores.dedup();
    let mut found = Vec::new();
    if count > cores.len() {
        found.push(Finding::warn(
            name,
            format!(
                "{} processors share a core with another: jobs slow each other down",
                count - cores.len()
            ),
            format!(
                "use one processor a core (`--cpus`), or as root `echo off > {CPUS}/smt/control`"
            ),
        ));
    }
    let outside: CpuSet = online()
        .filter(|p| !is_ours(p) && cores.contains(&core_of(p)))
        .map(|p| p.id)
        .collect();
    if let Some(first) = outside.lowest() {
        let (which, share, likewise) = match outside.len() {
            1 => ("processor", "shares", ""),
            _ => ("processors", "share", " (the others likewise)"),
        };
        found.push(Finding::warn(
            name,
            format!(
                "{which} {outside} {share} a core with the run: other work there slows jobs down"
            ),
            format!("keep all work off, or as root `echo 0 > {CPUS}/cpu{first}/online`{likewise}"),
        ));
    }
    if found.is_empty() {
        found.push(Finding::fine(
            name,
            "each processor is a core of its own, as far as the machine tells",
        ));
    }
    found
}

/// What is said where no governor is told.
const UNTOLD: &str = "the machine does not tell what governs the frequency of its processors";

pub(super) fn frequency(machine: &Machine) -> Finding {
    let name = "governor";
    match machine.facts.iter().find(|f| f.name == name) {
        Some(fact) => match (&fact.value, &fact.remedy) {
            (Some(value), None) => Finding::fine(name, value.clone()),
            (value, remedy) => Finding::warn(
                name,
                value.clone().unwrap_or_else(|| UNTOLD.to_owned()),
                remedy.clone().unwrap_or_default(),
            ),
        },
        None => Finding::warn(name, UNTOLD, "repeat runs, and compare in pairs"),
    }
}

/// Leaving a state that takes no longer than this disturbs nothing, in microseconds.
const SHALLOW: u64 = 2;

/// The state of these processors that takes longest to leave, of those that are not switched off:
/// its name and microseconds.
fn deepest(intent: &Intent<'_>) -> Option<(String, u64)> {
    let states = |cpu: &CpuId| {
        let dir = format!("{CPUS}/cpu{}/cpuidle", cpu.0);
        let numbers = intent.tree.numbered(&dir, "state");
        numbers.into_iter().map(move |n| format!("{dir}/state{n}"))
    };
    let state = |dir: String| {
        let is_off = intent
            .tree
            .text(&format!("{dir}/disable"))
            .is_some_and(|t| t != "0");
        let latency: u64 = intent.tree.value(&format!("{dir}/latency"))?;
        let name = intent.tree.text(&format!("{dir}/name")).unwrap_or_default();
        (!is_off).then_some((name, latency))
    };
    let all = intent.cpus.iter().flat_map(states).filter_map(state);
    all.max_by_key(|(_, latency)| *latency)
}

pub(super) fn sleep(intent: &Intent<'_>) -> Finding {
    let name = "idle states";
    let remedy = match intent.tree.exists("/dev/cpu_dma_latency") {
        true => {
            "`--awake` keeps them awake during the run (needs the right to write to /dev/cpu_dma_latency)"
        }
        false => {
            "boot with `cpuidle.off=1`; this kernel has no /dev/cpu_dma_latency to keep them awake with"
        }
    };
    match (intent.awake, deepest(intent)) {
        (true, _) => Finding::fine(
            name,
            "processors are kept awake during the run (/dev/cpu_dma_latency is held at 0)",
        ),
        (false, Some((state, latency))) if latency <= SHALLOW => Finding::fine(
            name,
            format!("the deepest state, {state}, takes {latency} us to leave"),
        ),
        (false, Some((state, latency))) => Finding::warn(
            name,
            format!(
                "an idle processor may sleep as deeply as {state}, which takes {latency} us to leave"
            ),
            remedy,
        ),
        (false, None) => Finding::warn(
            name,
            "the machine does not tell: an idle processor may sleep, and take its time to wake up",
            remedy,
        ),
    }
}

pub(super) fn host(machine: &Machine) -> Finding {
    let name = "hypervisor";
    match machine.fact(name) {
        Some("none") => Finding::fine(name, "there is none"),
        Some(kind) => Finding::warn(
            name,
            format!(
                "this is a virtual machine ({kind}): its host may stop a processor at any time, which no priority can prevent"
            ),
            "look at the gaps that the run reports",
        ),
        None => Finding::warn(
            name,
            "the machine does not tell whether it is a virtual one",
            "look at the gaps that the run reports",
        ),
    }
}
