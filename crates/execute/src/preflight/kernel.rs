//! What this process may do: priorities, its share of the time, its control groups, its memory.

use super::{Finding, Intent, Level, capability};
use machine::throttle::{FAIR_SERVERS, Throttle, fair_servers, has_fair_servers, throttle};
use machine::{Machine, cgroup};
use model::{Bytes, Duration};

/// Includes what control groups grant: it is tried.
pub(super) fn rights(machine: &Machine) -> Finding {
    capability(machine, "real-time priority", Level::Refuse)
}

fn percent(part: Duration, whole: Duration) -> f64 {
    100.0 * part.nanos() as f64 / whole.nanos().max(1) as f64
}

/// What real-time threads are left of every processor that is used, in percent, as far as the
/// kernel tells.
pub(super) fn left_percent(intent: &Intent<'_>) -> f64 {
    let mut left: f64 = match throttle(intent.tree) {
        Throttle::Limited { runtime, period } => percent(runtime, period),
        Throttle::Unlimited | Throttle::Unknown => 100.0,
    };
    for server in fair_servers(intent.tree) {
        if intent.cpus.contains(&server.cpu) {
            left = left.min(100.0 - percent(server.runtime, server.period));
        }
    }
    if let Some((_, runtime, period)) = cgroup::realtime_share(intent.tree) {
        left = left.min(percent(runtime, period));
    }
    left
}

/// The kernel's own guards against runaway threads.
pub(super) fn throttling(intent: &Intent<'_>) -> [Finding; 2] {
    let limited = "as root, `sysctl kernel.sched_rt_runtime_us=950000`";
    let name = "throttling";
    let throttling = match throttle(intent.tree) {
        Throttle::Limited { runtime, period } => Finding::fine(
            name,
            format!(
                "real-time threads have at most {runtime} of every {period}: nothing can lock the machine up"
            ),
        ),
        Throttle::Unlimited => Finding::warn(
            name,
            "real-time threads may take all time: only the watchdog guards the machine",
            limited,
        ),
        Throttle::Unknown => Finding::warn(
            name,
            "no limit for real-time threads is told: only the watchdog guards the machine",
            limited,
        ),
    };
    [throttling, fair_server(intent)]
}

fn fair_server(intent: &Intent<'_>) -> Finding {
    let name = "fair server";
    let servers = fair_servers(intent.tree);
    let mut ours = servers.iter().filter(|s| intent.cpus.contains(&s.cpu));
    if let Some(off) = ours.clone().find(|s| s.runtime.is_zero()) {
        return Finding::warn(
            name,
            format!(
                "processor {} has none: ordinary threads may starve there",
                off.cpu
            ),
            format!(
                "as root, `echo 50000000 > {FAIR_SERVERS}/cpu{}/runtime`",
                off.cpu.0
            ),
        );
    }
    let most = ours.clone().max_by_key(|s| s.runtime);
    if let Some(server) = most.or(ours.next()) {
        return Finding::fine(
            name,
            format!(
                "ordinary threads get {} of every {} where real-time threads would take all",
                server.runtime, server.period
            ),
        );
    }
    let release = intent.machine.fact("kernel").unwrap_or_default();
    match has_fair_servers(release) {
        Some(false) => Finding::fine(name, "none in this kernel: throttling does its work"),
        _ => Finding::fine(
            name,
            "its settings are not shown (debugfs is not mounted, or locked); 50 ms of every second by default",
        ),
    }
}

/// Where a kernel that can choose shows what it chose, the choice in parentheses: `none voluntary
/// (full) lazy`.
const CHOICE: &str = "/sys/kernel/debug/sched/preempt";

/// May a real-time thread interrupt what the kernel does for other programs? Where it may not, it
/// waits for the end of their system calls and page faults, and no priority helps.
pub(super) fn preemption(intent: &Intent<'_>) -> Finding {
    let name = "kernel preemption";
    let waits = "real-time threads wait while the kernel works for other programs";
    let version = intent
        .tree
        .text("/proc/sys/kernel/version")
        .unwrap_or_default();
    let is = |word: &str| version.split_whitespace().any(|w| w == word);
    if is("PREEMPT_RT") || is("PREEMPT") {
        return Finding::fine(name, format!("the kernel can be preempted ({version})"));
    }
    if !is("PREEMPT_DYNAMIC") {
        return Finding::warn(
            name,
            format!("this kernel cannot be preempted: {waits}"),
            "keep other work off these processors, or boot a kernel built with PREEMPT_DYNAMIC or PREEMPT_RT",
        );
    }
    let shown = intent.tree.text(CHOICE).unwrap_or_default();
    let booted = intent.tree.text("/proc/cmdline").unwrap_or_default();
    let choice = shown
        .split_whitespace()
        .find_map(|word| word.strip_prefix('(')?.strip_suffix(')'))
        .or_else(|| {
            booted
                .split_whitespace()
                .rev()
                .find_map(|w| w.strip_prefix("preempt="))
        });
    match choice {
        Some(full @ ("full" | "lazy")) => Finding::fine(
            name,
            format!("the kernel can be preempted (preempt={full})"),
        ),
        Some(other) => Finding::warn(
            name,
            format!("the kernel is told not to be preempted (preempt={other}): {waits}"),
            format!("as root, `echo full > {CHOICE}`, or boot with `preempt=full`"),
        ),
        None => Finding::warn(
            name,
            format!("the kernel does not tell whether it can be preempted; if not, {waits}"),
            format!(
                "boot with `preempt=full`, or as root mount debugfs and `echo full > {CHOICE}`"
            ),
        ),
    }
}

/// What control groups of either version say of processors and of time.
pub(super) fn control_groups(intent: &Intent<'_>) -> Vec<Finding> {
    let mut found = vec![cpuset(intent)];
    let name = "control group";
    if let Some((file, runtime, period)) = cgroup::realtime_share(intent.tree) {
        found.push(match runtime.is_zero() {
            true => Finding::refuse(
                name,
                format!("it grants no time to real-time threads ({file} is 0)"),
                format!("as root, `echo 400000 > {file}`, or move to the root group"),
            ),
            false => Finding::fine(
                name,
                format!("real-time threads get {runtime} of every {period} ({file})"),
            ),
        });
    }
    let name = "time of ordinary threads";
    match cgroup::bandwidth(intent.tree) {
        // The supervisor takes events out of the recorder's rings five times a second, and needs
        // little for it.
        Some((file, quota, period)) if percent(quota, period) < 10.0 => found.push(Finding::warn(
            name,
            format!("its control group has {quota} of every {period} ({file}): events may be lost, and the watchdog may end the run"),
            format!("as root, raise {file}, or move to the root group"),
        )),
        Some((file, quota, period)) => {
            found.push(Finding::fine(name, format!("{quota} of every {period} ({file})")));
        }
        None => {}
    }
    found
}

/// Threads of the kernel that are ordinary ones, so that they go before jobs of SCHED_EXT, and work
/// for milliseconds on end.
pub(super) fn own_threads(intent: &Intent<'_>) -> Finding {
    let name = "the kernel's own threads";
    let works = |file: &str, word: &str| {
        let text = intent.tree.text(file);
        text.is_some_and(|text| text.contains(word))
    };
    let (mut who, mut remedies) = (Vec::new(), Vec::new());
    for (thread, what, file, word, off) in [
        (
            "khugepaged",
            "makes large pages of small ones",
            "/sys/kernel/mm/transparent_hugepage/enabled",
            "[always]",
            "madvise",
        ),
        (
            "kdamond",
            "watches who uses memory",
            "/sys/module/damon_stat/parameters/enabled",
            "Y",
            "N",
        ),
    ] {
        if works(file, word) {
            who.push(format!("{thread} {what}"));
            remedies.push(format!("`echo {off} > {file}`"));
        }
    }
    match who.is_empty() {
        true => Finding::fine(name, "none is known that works for long"),
        false => Finding::warn(
            name,
            format!(
                "{}: ordinary threads go before jobs, and these work for milliseconds on end",
                who.join(", ")
            ),
            format!("as root {}", remedies.join(", ")),
        ),
    }
}

pub(super) fn cpuset(intent: &Intent<'_>) -> Finding {
    let name = "cpuset";
    match cgroup::cpuset(intent.tree) {
        Some((path, cpus)) => match intent.cpus.iter().find(|cpu| !cpus.contains(**cpu)) {
            Some(cpu) => Finding::refuse(
                name,
                format!("processor {cpu} is not in it ({path} has {cpus})"),
                format!("choose others with `--cpus`, or as root widen {path}"),
            ),
            None => Finding::fine(name, format!("{path} has processors {cpus}")),
        },
        None => Finding::fine(name, "no cpuset limits this process"),
    }
}

/// Locking, and whether there is room for the working sets.
pub(super) fn memory(intent: &Intent<'_>) -> Vec<Finding> {
    let mut found = vec![capability(intent.machine, "memory locking", Level::Warn)];
    if let Some((file, limit)) = cgroup::memory_limit(intent.tree) {
        let name = "memory limit";
        let sizes = intent.set.ids().filter_map(|task| intent.set.wss(task));
        let sum = sizes.fold(0u64, |sum, size| sum.saturating_add(size.get()));
        // What the engine itself needs: stacks, rings and tables.
        let need = Bytes::new(sum.saturating_add(64 << 20));
        found.push(match need > limit {
            true => Finding::refuse(
                name,
                format!("working sets and engine need about {need}, the control group has {limit} ({file})"),
                format!("as root, raise {file}, or give smaller working sets"),
            ),
            false => Finding::fine(
                name,
                format!("{limit} ({file}), of which about {need} are needed"),
            ),
        });
    }
    found
}
