//! What may disturb a run: shared cores, changing frequencies, sleep, a hypervisor.

use super::{Finding, Intent};
use machine::Machine;
use model::CpuId;

pub(super) fn siblings(intent: &Intent<'_>) -> Finding {
    let name = "hardware threads";
    let used = |p: &&model::platform::Processor| intent.cpus.contains(&p.id);
    let mut cores: Vec<(u32, u32)> = intent
        .machine
        .platform
        .processors
        .iter()
        .filter(used)
        .map(|p| (p.socket, p.core))
        .collect();
    let count = cores.len();
    cores.sort_unstable();
    cores.dedup();
    match count - cores.len() {
        0 => Finding::fine(
            name,
            "each processor is a core of its own, as far as the machine tells",
        ),
        shared => Finding::warn(
            name,
            format!("{shared} processors share a core with another: jobs slow each other down"),
            "use one processor a core (`--cpus`), or as root `echo off > /sys/devices/system/cpu/smt/control`",
        ),
    }
}

pub(super) fn frequency(machine: &Machine) -> Finding {
    let name = "governor";
    match machine.facts.iter().find(|f| f.name == name) {
        Some(fact) => match (&fact.value, &fact.remedy) {
            (Some(value), None) => Finding::fine(name, value.clone()),
            (value, remedy) => Finding::warn(
                name,
                value
                    .clone()
                    .unwrap_or_else(|| "the machine does not tell".to_owned()),
                remedy.clone().unwrap_or_default(),
            ),
        },
        None => Finding::warn(
            name,
            "the machine does not tell",
            "repeat runs, and compare in pairs",
        ),
    }
}

/// Where the kernel's files about idle states of a processor are.
const CPUS: &str = "/sys/devices/system/cpu";
/// Leaving a state that takes no longer than this disturbs nothing, in microseconds.
const SHALLOW: u64 = 2;

/// The state of these processors that takes longest to leave, of those that are not switched off: its name and microseconds.
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
        false => "boot with `cpuidle.off=1`; this kernel has no /dev/cpu_dma_latency to keep them awake with",
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
            format!("an idle processor may sleep as deeply as {state}, which takes {latency} us to leave"),
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
        Some("none") => Finding::fine(name, "none"),
        Some(kind) => Finding::warn(
            name,
            format!("{kind}: it may stop a processor at any time, which no priority can prevent"),
            "look at the gaps that the run reports",
        ),
        None => Finding::warn(
            name,
            "the machine does not tell",
            "look at the gaps that the run reports",
        ),
    }
}
