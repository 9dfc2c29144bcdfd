//! What else is to be known of a machine: kernel, preemption model, tick, governor, hypervisor,
//! clock.
//!
//! Each fact has its value, if the machine tells it, where that was seen, and, where it is missing
//! or may spoil measurements, what to do about it. Nothing is invented.

use crate::probe::Probes;
use crate::tree::Tree;
use flate2::read::GzDecoder;
use model::CpuSet;
use serde::Serialize;
use std::collections::BTreeMap;
use std::io::Read;

/// One fact.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Fact {
    /// What it is about: `kernel`, `tick rate`.
    pub name: &'static str,
    /// Its value; `None` where the machine does not tell.
    pub value: Option<String>,
    /// Where it was seen, or looked for.
    pub source: String,
    /// What to do about it, where something should be done.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub remedy: Option<String>,
}

impl Fact {
    fn of(name: &'static str, value: impl Into<String>, source: impl Into<String>) -> Self {
        Fact {
            name,
            value: Some(value.into()),
            source: source.into(),
            remedy: None,
        }
    }
    fn unknown(name: &'static str, source: impl Into<String>, remedy: impl Into<String>) -> Self {
        Fact {
            name,
            value: None,
            source: source.into(),
            remedy: Some(remedy.into()),
        }
    }
    fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = Some(remedy.into());
        self
    }
}

/// The options of the running kernel, where it tells them.
#[derive(Clone, Debug, Default)]
pub struct Config {
    options: BTreeMap<String, String>,
    source: String,
}

impl Config {
    /// From `/proc/config.gz`, else from `/boot/config-RELEASE`; `None` where neither is there.
    pub fn read(tree: &Tree, release: &str) -> Option<Config> {
        let packed = "/proc/config.gz";
        let boot = format!("/boot/config-{release}");
        let (text, source) = match tree.bytes(packed) {
            Some(bytes) => {
                let mut text = String::new();
                // Configurations have about 0.3 MiB; a damaged file must not fill the memory.
                GzDecoder::new(&bytes[..])
                    .take(16 << 20)
                    .read_to_string(&mut text)
                    .ok()?;
                (text, packed.to_owned())
            }
            None => (tree.text(&boot)?, boot),
        };
        let options = text
            .lines()
            .filter_map(|line| line.strip_prefix("CONFIG_")?.split_once('='))
            .map(|(name, value)| (name.to_owned(), value.trim_matches('"').to_owned()))
            .collect();
        Some(Config { options, source })
    }
    /// The value of an option, named without `CONFIG_`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.options.get(name).map(String::as_str)
    }
    /// Is it built in, or a module?
    pub fn has(&self, name: &str) -> bool {
        matches!(self.get(name), Some("y" | "m"))
    }
}

/// The facts of a machine, in the order in which they are shown.
pub fn facts(tree: &Tree, probes: &Probes, config: Option<&Config>) -> Vec<Fact> {
    let mut facts = vec![
        model_of(tree),
        kernel(tree),
        preemption(tree, config),
        tick_rate(tree, probes, config),
        governor(tree),
        hypervisor(tree, probes),
        clock_source(tree),
    ];
    facts.extend(isolated(tree));
    facts.extend(huge_pages(tree));
    facts
}

/// Value of a line `key : value` of `/proc/cpuinfo`.
fn cpuinfo(tree: &Tree, key: &str) -> Option<String> {
    tree.text("/proc/cpuinfo")?.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key && !value.trim().is_empty()).then(|| value.trim().to_owned())
    })
}

fn model_of(tree: &Tree) -> Fact {
    let name = "model";
    let board = "/sys/firmware/devicetree/base/model";
    if let Some(model) = cpuinfo(tree, "model name") {
        return Fact::of(name, model, "/proc/cpuinfo");
    }
    match tree.text(board).filter(|t| !t.is_empty()) {
        Some(model) => Fact::of(name, model, board),
        None => Fact::unknown(
            name,
            "/proc/cpuinfo and the device tree",
            "name the machine in the title of what you publish",
        ),
    }
}

fn kernel(tree: &Tree) -> Fact {
    let release = tree.text("/proc/sys/kernel/osrelease");
    let version = tree.text("/proc/sys/kernel/version");
    match release {
        Some(release) => Fact::of(
            "kernel",
            format!("{release} {}", version.unwrap_or_default()).trim(),
            "/proc/sys/kernel",
        ),
        None => Fact::unknown("kernel", "/proc/sys/kernel", "mount procfs on /proc"),
    }
}

fn preemption(tree: &Tree, config: Option<&Config>) -> Fact {
    let name = "preemption";
    let version = tree.text("/proc/sys/kernel/version").unwrap_or_default();
    let words: Vec<&str> = version
        .split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))
        .collect();
    let says = |word: &str| words.contains(&word);
    if tree.text("/sys/kernel/realtime").as_deref() == Some("1") {
        return Fact::of(name, "real-time (PREEMPT_RT)", "/sys/kernel/realtime");
    }
    if says("PREEMPT_RT") {
        return Fact::of(name, "real-time (PREEMPT_RT)", "kernel version");
    }
    // The kernel marks the one in force: `none voluntary (full) lazy`.
    let switch = "/sys/kernel/debug/sched/preempt";
    let in_force = tree.text(switch).and_then(|text| {
        let (_, rest) = text.split_once('(')?;
        Some(rest.split_once(')')?.0.to_owned())
    });
    if let Some(mode) = in_force {
        return Fact::of(name, format!("{mode} (PREEMPT_DYNAMIC)"), switch);
    }
    let default = config.and_then(|c| {
        [
            ("PREEMPT_NONE", "none"),
            ("PREEMPT_VOLUNTARY", "voluntary"),
            ("PREEMPT_LAZY", "lazy"),
            ("PREEMPT_RT", "real-time (PREEMPT_RT)"),
            ("PREEMPT", "full"),
        ]
        .into_iter()
        .find(|(option, _)| c.has(option))
        .map(|(_, mode)| (mode, c.source.clone()))
    });
    if says("PREEMPT_DYNAMIC") {
        let command = "/proc/cmdline";
        let line = tree.text(command).unwrap_or_default();
        if let Some(mode) = line
            .split_whitespace()
            .rev()
            .find_map(|w| w.strip_prefix("preempt="))
        {
            return Fact::of(name, format!("{mode} (PREEMPT_DYNAMIC)"), command);
        }
        return match default {
            // The switch can have been turned since the start: only debugfs tells.
            Some((mode, source)) => Fact::of(
                name,
                format!("{mode} at the start (PREEMPT_DYNAMIC)"),
                source,
            )
            .remedy("to see the mode in force: as root, `mount -t debugfs none /sys/kernel/debug`"),
            None => Fact::unknown(
                name,
                "PREEMPT_DYNAMIC in the kernel version",
                "to see the mode in force: as root, `mount -t debugfs none /sys/kernel/debug`",
            ),
        };
    }
    if says("PREEMPT") {
        return Fact::of(name, "full", "kernel version");
    }
    match default {
        Some((mode, source)) => Fact::of(name, mode, source),
        None if !version.is_empty() => {
            Fact::of(name, "none or voluntary", "kernel version names no PREEMPT")
        }
        None => Fact::unknown(name, "/proc/sys/kernel/version", "mount procfs on /proc"),
    }
}

fn tick_rate(tree: &Tree, probes: &Probes, config: Option<&Config>) -> Fact {
    let name = "tick rate";
    let mut fact = match (config.and_then(|c| Some((c.get("HZ")?, c))), probes.tick) {
        (Some((hz, config)), _) => Fact::of(name, format!("{hz} Hz"), config.source.clone()),
        (None, Some(tick)) if !tick.is_zero() => {
            // Rates such as 300 Hz do not divide a second in nanoseconds.
            let hz = (1_000_000_000 + tick.nanos() / 2) / tick.nanos();
            Fact::of(
                name,
                format!("{hz} Hz"),
                "resolution of CLOCK_MONOTONIC_COARSE",
            )
        }
        _ => Fact::unknown(
            name,
            "/proc/config.gz and /boot",
            "install the configuration of the running kernel in /boot",
        ),
    };
    if let Some(value) = &mut fact.value {
        let full = tree
            .cpus("/sys/devices/system/cpu/nohz_full")
            .filter(|c| !c.is_empty());
        match (full, config) {
            (Some(cpus), _) => {
                value.push_str(&format!(", none on {cpus} while one task runs (nohz_full)"))
            }
            (None, Some(c)) if c.has("NO_HZ_IDLE") || c.has("NO_HZ_FULL") => {
                value.push_str(", none while idle")
            }
            _ => {}
        }
    }
    fact
}

fn governor(tree: &Tree) -> Fact {
    let name = "governor";
    let base = "/sys/devices/system/cpu/cpufreq";
    let mut of: BTreeMap<String, CpuSet> = BTreeMap::new();
    for policy in tree.numbered(base, "policy") {
        let dir = format!("{base}/policy{policy}");
        if let Some(governor) = tree.text(&format!("{dir}/scaling_governor")) {
            let cpus = tree
                .text(&format!("{dir}/affected_cpus"))
                .unwrap_or_default();
            let cpus: CpuSet = cpus.replace(' ', ",").parse().unwrap_or_default();
            let known = of.entry(governor).or_default();
            *known = known.union(&cpus);
        }
    }
    let governors: Vec<String> = match of.len() {
        0 => {
            return Fact::unknown(
                name,
                base,
                "the frequency is not in this kernel's hands (a hypervisor's or the firmware's): repeat measurements, compare in pairs",
            );
        }
        1 => of.keys().cloned().collect(),
        _ => of
            .iter()
            .map(|(governor, cpus)| format!("{governor} on {cpus}"))
            .collect(),
    };
    let mut value = governors.join("; ");
    if let Some(driver) = tree.text(&format!("{base}/policy0/scaling_driver")) {
        value.push_str(&format!(" ({driver})"));
    }
    let fact = Fact::of(name, value, base);
    if of.keys().all(|g| g == "performance") {
        return fact;
    }
    fact.remedy("for steady measurements: as root, `cpupower frequency-set -g performance`")
}

fn hypervisor(tree: &Tree, probes: &Probes) -> Fact {
    let name = "hypervisor";
    let caution = "processors of a virtual machine move: repeat measurements, compare in pairs";
    if let Some(hypervisor) = &probes.hypervisor {
        return Fact::of(name, hypervisor, "CPUID").remedy(caution);
    }
    for file in [
        "/sys/hypervisor/type",
        "/sys/firmware/devicetree/base/hypervisor/compatible",
    ] {
        if let Some(kind) = tree.text(file).filter(|t| !t.is_empty()) {
            return Fact::of(name, kind, file).remedy(caution);
        }
    }
    let flags = cpuinfo(tree, "flags");
    match flags {
        Some(flags) if flags.split_whitespace().any(|f| f == "hypervisor") => {
            let vendor = tree.text("/sys/class/dmi/id/sys_vendor");
            let kind = vendor.map_or("yes".to_owned(), |v| format!("yes ({v})"));
            Fact::of(name, kind, "/proc/cpuinfo, flag hypervisor").remedy(caution)
        }
        Some(_) => Fact::of(name, "none", "/proc/cpuinfo, no flag hypervisor"),
        None => Fact::unknown(
            name,
            "/sys/hypervisor, the device tree, /proc/cpuinfo",
            "if this is a virtual machine, repeat measurements and compare in pairs",
        ),
    }
}

fn clock_source(tree: &Tree) -> Fact {
    let name = "clock source";
    let dir = "/sys/devices/system/clocksource/clocksource0";
    match tree.text(&format!("{dir}/current_clocksource")) {
        Some(current) => {
            let all = tree
                .text(&format!("{dir}/available_clocksource"))
                .unwrap_or_default();
            let others: Vec<&str> = all.split_whitespace().filter(|s| *s != current).collect();
            let value = match others.is_empty() {
                true => current.clone(),
                false => format!("{current} (also {})", others.join(", ")),
            };
            let fact = Fact::of(name, value, dir);
            if matches!(
                current.as_str(),
                "hpet" | "acpi_pm" | "jiffies" | "refined-jiffies"
            ) {
                return fact.remedy("reading this clock is slow or coarse: find out in the kernel's log why the TSC was given up");
            }
            fact
        }
        None => Fact::unknown(name, dir, "mount sysfs on /sys"),
    }
}

fn isolated(tree: &Tree) -> Option<Fact> {
    let file = "/sys/devices/system/cpu/isolated";
    let cpus = tree.cpus(file)?;
    let value = if cpus.is_empty() {
        "none".to_owned()
    } else {
        cpus.to_string()
    };
    Some(Fact::of("isolated processors", value, file))
}

fn huge_pages(tree: &Tree) -> Option<Fact> {
    let file = "/sys/kernel/mm/transparent_hugepage/enabled";
    let text = tree.text(file)?;
    let mode = text.split_once('[')?.1.split_once(']')?.0.to_owned();
    Some(Fact::of("transparent huge pages", mode, file))
}
