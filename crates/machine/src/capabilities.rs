//! What the machine permits: each capability with its state, what was seen, and the remedy where it
//! lacks.
//!
//! The judgments rest on files (a [`Tree`]) and on what was tried ([`Probes`]); what nobody tried
//! is unknown. Sources: sched(7), capabilities(7), bpf(2), perf_event_open(2), the kernel's
//! `pagemap.rst`, `resctrl.rst`, `sched-ext.rst` and `sched-rt-group.rst`.

mod realtime;

use crate::facts::Config;
use crate::probe::{Outcome, Probes};
use crate::tree::Tree;
use realtime::{locking, realtime};
use serde::Serialize;
use std::fmt;

/// Is it there?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum State {
    /// Yes, in full.
    Yes,
    /// In part, or with a caution.
    Limited,
    /// No.
    No,
    /// Nobody tried.
    Unknown,
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            State::Yes => "yes",
            State::Limited => "limited",
            State::No => "no",
            State::Unknown => "unknown",
        })
    }
}

/// Something that later work needs.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Capability {
    /// What it is: `real-time priority`.
    pub name: &'static str,
    /// Is it there?
    pub state: State,
    /// What was seen.
    pub seen: String,
    /// What to do where it lacks; empty where nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Capability {
    fn new(
        name: &'static str,
        state: State,
        seen: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Capability {
            name,
            state,
            seen: seen.into(),
            remedy: remedy.into(),
        }
    }
}

/// The bits of capabilities(7) that matter here.
const CAP_IPC_LOCK: u32 = 14;
const CAP_SYS_ADMIN: u32 = 21;
const CAP_SYS_NICE: u32 = 23;
const CAP_PERFMON: u32 = 38;
const CAP_BPF: u32 = 39;

/// What a machine permits, in the order in which it is shown.
pub fn capabilities(
    tree: &Tree,
    probes: &Probes,
    config: Option<&Config>,
    virtual_machine: bool,
) -> Vec<Capability> {
    let rights = Rights::read(tree);
    vec![
        realtime(tree, probes, &rights),
        locking(tree, probes, &rights),
        tracefs(tree, &rights),
        bpf(tree, probes, &rights),
        counters(tree, probes, virtual_machine),
        pagemap(probes, virtual_machine),
        resctrl(tree),
        sched_ext(tree, config),
    ]
}

/// The capabilities and limits of this process.
struct Rights {
    effective: Option<u64>,
    limits: String,
}

impl Rights {
    fn read(tree: &Tree) -> Self {
        let status = tree.text("/proc/self/status").unwrap_or_default();
        let line = status.lines().find_map(|l| l.strip_prefix("CapEff:"));
        Rights {
            effective: line.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()),
            limits: tree.text("/proc/self/limits").unwrap_or_default(),
        }
    }
    fn has(&self, capability: u32) -> bool {
        self.effective
            .is_some_and(|bits| bits >> capability & 1 == 1)
    }
    /// The soft limit of a line of `/proc/self/limits`, `u64::MAX` where unlimited.
    fn limit(&self, name: &str) -> Option<u64> {
        let rest = self.limits.lines().find_map(|l| l.strip_prefix(name))?;
        match rest.split_whitespace().next()? {
            "unlimited" => Some(u64::MAX),
            number => number.parse().ok(),
        }
    }
}

/// The name of an error number, or the number.
fn errno(number: i32) -> String {
    match number {
        libc::EPERM => "EPERM".to_owned(),
        libc::EACCES => "EACCES".to_owned(),
        libc::ENOENT => "ENOENT".to_owned(),
        libc::ENOSYS => "ENOSYS".to_owned(),
        libc::EINVAL => "EINVAL".to_owned(),
        libc::ENODEV => "ENODEV".to_owned(),
        libc::EOPNOTSUPP => "EOPNOTSUPP".to_owned(),
        libc::ENOMEM => "ENOMEM".to_owned(),
        libc::EAGAIN => "EAGAIN".to_owned(),
        other => format!("error {other}"),
    }
}

/// Does the kernel know this kind of file system? `None` where it does not tell.
fn knows_filesystem(tree: &Tree, name: &str) -> Option<bool> {
    tree.text("/proc/filesystems").map(|text| {
        text.lines()
            .any(|l| l.split_whitespace().last() == Some(name))
    })
}

fn tracefs(tree: &Tree, rights: &Rights) -> Capability {
    let name = "tracefs";
    for dir in ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"] {
        if tree
            .names(&format!("{dir}/events"))
            .is_some_and(|n| !n.is_empty())
        {
            return match tree.exists(&format!("{dir}/events/sched/sched_switch")) {
                true => Capability::new(
                    name,
                    State::Yes,
                    format!("{dir} with the scheduler's events"),
                    "",
                ),
                false => Capability::new(
                    name,
                    State::Limited,
                    format!("{dir} without the scheduler's events"),
                    "build the kernel with CONFIG_EVENT_TRACING and CONFIG_CONTEXT_SWITCH_TRACER",
                ),
            };
        }
    }
    match knows_filesystem(tree, "tracefs") {
        Some(true) => {}
        Some(false) => {
            return Capability::new(
                name,
                State::No,
                "the kernel has no tracefs",
                "boot a kernel with CONFIG_FTRACE and CONFIG_EVENT_TRACING",
            );
        }
        None => return Capability::new(name, State::Unknown, "/proc/filesystems is missing", ""),
    }
    let mounted = tree
        .text("/proc/self/mountinfo")
        .is_some_and(|text| text.lines().any(|l| l.contains(" - tracefs ")));
    match mounted {
        true => Capability::new(
            name,
            State::No,
            "mounted, but not readable for this user",
            "run as root, or as root `chmod -R a+rX /sys/kernel/tracing`",
        ),
        false if rights.has(CAP_SYS_ADMIN) => Capability::new(
            name,
            State::Limited,
            "in the kernel, not mounted",
            "`mount -t tracefs tracefs /sys/kernel/tracing`",
        ),
        false => Capability::new(
            name,
            State::No,
            "in the kernel, not mounted",
            "as root, `mount -t tracefs tracefs /sys/kernel/tracing`",
        ),
    }
}

fn bpf(tree: &Tree, probes: &Probes, rights: &Rights) -> Capability {
    let name = "BPF";
    let types = tree.exists("/sys/kernel/btf/vmlinux");
    match probes.bpf {
        Outcome::Worked if types => Capability::new(
            name,
            State::Yes,
            "programs load; type information is there (/sys/kernel/btf/vmlinux)",
            "",
        ),
        Outcome::Worked => Capability::new(
            name,
            State::Limited,
            "programs load; no type information",
            "for typed tracepoints: boot a kernel with CONFIG_DEBUG_INFO_BTF",
        ),
        Outcome::Refused(number) => {
            let has = rights.has(CAP_SYS_ADMIN) || (rights.has(CAP_BPF) && rights.has(CAP_PERFMON));
            let remedy = match (number, has) {
                (libc::ENOSYS, _) => "boot a kernel with CONFIG_BPF_SYSCALL",
                (_, false) => "run as root, or give the program CAP_BPF and CAP_PERFMON",
                (_, true) => "look in the kernel's log: a lockdown or a security module forbids it",
            };
            Capability::new(
                name,
                State::No,
                format!("a program is refused ({})", errno(number)),
                remedy,
            )
        }
        Outcome::Untried => Capability::new(name, State::Unknown, "not tried", ""),
    }
}

fn counters(tree: &Tree, probes: &Probes, virtual_machine: bool) -> Capability {
    let name = "performance counters";
    let paranoid = match tree.text("/proc/sys/kernel/perf_event_paranoid") {
        Some(level) => format!("perf_event_paranoid {level}"),
        None => "no perf_event_paranoid".to_owned(),
    };
    let no_hardware = match virtual_machine {
        true => {
            "ask the hypervisor's owner for a virtual performance-monitoring unit, or measure on the bare machine"
        }
        false => {
            "the kernel found no performance-monitoring unit: see its log and the firmware's settings"
        }
    };
    match (&probes.hardware_counter, &probes.software_counter) {
        (Outcome::Worked, _) => Capability::new(
            name,
            State::Yes,
            format!("cycles are counted ({paranoid})"),
            "",
        ),
        (Outcome::Refused(libc::EACCES | libc::EPERM), _) => Capability::new(
            name,
            State::No,
            format!("counters are refused ({paranoid})"),
            "as root, `sysctl kernel.perf_event_paranoid=2`, or give the program CAP_PERFMON",
        ),
        (Outcome::Refused(number), Outcome::Worked) => Capability::new(
            name,
            State::Limited,
            format!(
                "software counters only; hardware: {} ({paranoid})",
                errno(*number)
            ),
            no_hardware,
        ),
        (Outcome::Refused(number), _) => Capability::new(
            name,
            State::No,
            format!("no counter opens ({})", errno(*number)),
            "boot a kernel with CONFIG_PERF_EVENTS",
        ),
        (Outcome::Untried, _) => {
            Capability::new(name, State::Unknown, format!("not tried ({paranoid})"), "")
        }
    }
}

fn pagemap(probes: &Probes, virtual_machine: bool) -> Capability {
    let name = "pagemap";
    match probes.frame_number {
        Some(true) if virtual_machine => Capability::new(
            name,
            State::Limited,
            "gives frame numbers, of the guest: they need not tell the color of a page",
            "colors that are found by timing do work",
        ),
        Some(true) => Capability::new(name, State::Yes, "gives frame numbers", ""),
        Some(false) => Capability::new(
            name,
            State::Limited,
            "says which pages are present, hides frame numbers",
            "run as root, or give the program CAP_SYS_ADMIN",
        ),
        None => Capability::new(
            name,
            State::Unknown,
            "not read",
            "a kernel with CONFIG_PROC_PAGE_MONITOR has it in /proc/self/pagemap",
        ),
    }
}

fn resctrl(tree: &Tree) -> Capability {
    let name = "resctrl";
    if tree.exists("/sys/fs/resctrl/schemata") {
        let what = tree
            .names("/sys/fs/resctrl/info")
            .unwrap_or_default()
            .join(", ");
        return Capability::new(name, State::Yes, format!("mounted ({what})"), "");
    }
    match knows_filesystem(tree, "resctrl") {
        Some(true) => {
            return Capability::new(
                name,
                State::Limited,
                "in the kernel, not mounted",
                "as root, `mount -t resctrl resctrl /sys/fs/resctrl`",
            );
        }
        Some(false) => {}
        None => return Capability::new(name, State::Unknown, "/proc/filesystems is missing", ""),
    }
    let flags = tree.text("/proc/cpuinfo").unwrap_or_default();
    let capable = flags
        .split_whitespace()
        .any(|f| matches!(f, "cat_l2" | "cat_l3" | "rdt_a" | "mba"));
    match capable {
        true => Capability::new(
            name,
            State::No,
            "the processor can partition its cache, the kernel does not",
            "boot a kernel with CONFIG_X86_CPU_RESCTRL (without `rdt=` on its command line)",
        ),
        false => Capability::new(
            name,
            State::No,
            "neither the kernel nor the processor offers cache ways",
            "partition the cache by page colors instead",
        ),
    }
}

fn sched_ext(tree: &Tree, config: Option<&Config>) -> Capability {
    let name = "sched_ext";
    if let Some(state) = tree.text("/sys/kernel/sched_ext/state") {
        return match tree.text("/sys/kernel/sched_ext/root/ops") {
            Some(ops) if state == "enabled" => Capability::new(
                name,
                State::Limited,
                format!("the scheduler `{ops}` is loaded"),
                "stop it first: one at a time",
            ),
            _ => Capability::new(name, State::Yes, format!("state {state}"), ""),
        };
    }
    let release = tree.text("/proc/sys/kernel/osrelease").unwrap_or_default();
    if config.is_none() && release.is_empty() {
        return Capability::new(
            name,
            State::Unknown,
            "neither sysfs nor the kernel's release tell",
            "",
        );
    }
    let seen = match config {
        Some(_) => "the kernel is built without CONFIG_SCHED_CLASS_EXT".to_owned(),
        None => format!("no /sys/kernel/sched_ext in kernel {release}"),
    };
    Capability::new(
        name,
        State::No,
        seen,
        "boot a kernel with CONFIG_SCHED_CLASS_EXT and CONFIG_DEBUG_INFO_BTF, such as that of Debian \
         13's backports or of Ubuntu 26.04",
    )
}
