//! What of the machine must be as before: settings, who has real-time priority, a bystander.

use crate::family::{Process, urgent_threads};
use crate::room;
use crate::system;
use rustix::process::Pid;
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Settings that a run, a measurement or colors could change.
const SETTINGS: [&str; 12] = [
    "/proc/sys/vm/compact_unevictable_allowed",
    "/proc/sys/vm/nr_hugepages",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/sched_rt_runtime_us",
    "/proc/sys/kernel/sched_rt_period_us",
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/perf_event_paranoid",
    "/sys/kernel/mm/transparent_hugepage/enabled",
    "/sys/kernel/tracing/tracing_on",
    "/sys/kernel/tracing/trace_clock",
    "/sys/kernel/tracing/current_tracer",
    "/sys/fs/resctrl/schemata",
];

/// A process that has nothing to do with any run: nothing may happen to it.
#[derive(Debug)]
pub struct Bystander {
    child: Child,
    began: u64,
    /// Settings as they were when it began.
    settings: BTreeMap<String, String>,
}

/// Whoever else uses this machine changes settings as well, and puts them back.
const SOON: Duration = Duration::from_secs(10);

/// Settings as they are now.
fn settings() -> BTreeMap<String, String> {
    let governors = (0..4096)
        .map(|cpu| format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
        .take_while(|path| Path::new(path).exists());
    let paths = SETTINGS.map(str::to_owned).into_iter().chain(governors);
    let read = |path: String| std::fs::read_to_string(&path).ok().map(|text| (path, text));
    paths.filter_map(read).collect()
}

impl Bystander {
    /// It sleeps until this process ends.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(helper: &Path) -> std::io::Result<Self> {
        let mut command = Command::new(helper);
        command.arg("stand-by").env_clear();
        command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        system::prepare(&mut command, std::sync::Arc::default());
        let child = command.spawn()?;
        let began = Process::find(child.id() as i32).map_or(0, |p| p.began);
        Ok(Bystander {
            child,
            began,
            settings: settings(),
        })
    }

    /// Is a setting soon as it was before, or as it was in the beginning?
    fn sees_again(&self, path: &str, before: &str) -> bool {
        let until = Instant::now() + SOON;
        loop {
            let now = std::fs::read_to_string(path).ok();
            if now.as_deref() == Some(before) || now.as_ref() == self.settings.get(path) {
                return true;
            }
            if Instant::now() > until {
                return false;
            }
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Was somebody there before it, who began at this tick?
    fn is_younger_than(&self, began: u64) -> bool {
        began < self.began
    }

    /// Its number.
    pub fn pid(&self) -> i32 {
        self.child.id() as i32
    }
}

impl Drop for Bystander {
    fn drop(&mut self) {
        // It may have been killed by what is tried, which was told.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How the machine is at a moment.
#[derive(Debug)]
pub struct Machine {
    settings: BTreeMap<String, String>,
    urgent: BTreeMap<(i32, u64), String>,
    ordinary: BTreeSet<(i32, u64)>,
    ours: Vec<(i32, Scheduling)>,
    files: BTreeMap<String, char>,
}

type Scheduling = (Option<(i32, i32)>, Vec<usize>);

/// Class, priority and processors of a process.
fn scheduling(pid: i32) -> Scheduling {
    let may = Pid::from_raw(pid).and_then(|pid| rustix::thread::sched_getaffinity(Some(pid)).ok());
    let cpus = may.map_or(Vec::new(), |set| {
        (0..rustix::thread::CpuSet::MAX_CPU)
            .filter(|cpu| set.is_set(*cpu))
            .collect()
    });
    (system::class_of(pid), cpus)
}

/// Something that is not as it was: the kind, and what exactly.
pub type Change = (&'static str, String);

impl Machine {
    /// As it is now.
    pub fn now(room: &room::Room, bystander: &Bystander) -> Self {
        let this = std::process::id() as i32;
        let urgent = urgent_threads(&[&room.warmset, &room.helper]);
        let everybody = crate::family::everybody();
        Machine {
            settings: settings(),
            ordinary: everybody
                .iter()
                .map(|p| (p.pid, p.began))
                .filter(|it| !urgent.contains_key(it))
                .collect(),
            urgent,
            ours: [this, bystander.pid()]
                .map(|pid| (pid, scheduling(pid)))
                .into(),
            files: room.files(),
        }
    }

    /// What was as `before` and is not any more. Files that stay within `may_stay` are left out.
    pub fn changes(
        &self,
        before: &Machine,
        bystander: &Bystander,
        may_stay: impl Fn(&str, char) -> bool,
    ) -> Vec<Change> {
        let mut all: Vec<Change> = Vec::new();
        for (path, text) in &before.settings {
            if self.settings.get(path) != Some(text) && !bystander.sees_again(path, text) {
                let now = self.settings.get(path).map_or("", |t| t.trim());
                let text = format!("{path} was {}, is {now}", text.trim());
                all.push(("setting left", text));
                // What cannot be put back is told again.
                let _ = std::fs::write(path, before.settings[path].as_bytes());
            }
        }
        for (thread, name) in &self.urgent {
            // Who began since then may be of somebody else's run, and have its own reasons.
            if before.ordinary.contains(thread) && bystander.is_younger_than(thread.1) {
                let text = format!("thread {} ({name}) has real-time priority", thread.0);
                all.push(("priority left", text));
            }
        }
        for ((pid, was), (_, is)) in before.ours.iter().zip(&self.ours) {
            if was != is {
                let text = format!("process {pid} was {was:?}, is {is:?}");
                all.push(("bystander changed", text));
            }
        }
        if let Some((pid, _)) = self.ours.last() {
            let stopped = Process::find(*pid).is_none_or(|p| "TtZX".contains(p.state));
            if stopped {
                all.push((
                    "bystander changed",
                    format!("process {pid} does not run any more"),
                ));
            }
        }
        for (path, kind) in &self.files {
            if !before.files.contains_key(path) && !may_stay(path, *kind) {
                all.push(("file left", format!("{path} ({kind})")));
            }
        }
        for path in before.files.keys() {
            if !self.files.contains_key(path) {
                all.push(("file gone", path.clone()));
            }
        }
        all
    }
}
