//! What is looked at before a run, each with its remedy; nothing is changed here.
//!
//! A finding that refuses keeps the run from beginning: it could not be what the user asked for. A
//! warning is told, and the run goes on. [`kernel`]: what this process may do; [`load`]: what the
//! tasks ask for; [`takes`]: what the engine takes itself; [`processors`] and [`others`]: what may
//! disturb them. Where policies take turns, each is looked at.

mod kernel;
mod load;
mod others;
mod processors;
mod shares;
mod takes;

use machine::{Machine, State, Tree};
use model::{CpuId, Duration, Enforcement, Error, Ratio, Result, TaskSet};
use serde::Serialize;
use trace::Stage;

pub use load::MOST_PERCENT;
pub use others::OTHER_RUNS;
pub use takes::Takes;

/// How grave a finding is.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Level {
    /// As it should be.
    Fine,
    /// The run may be disturbed by it.
    Warn,
    /// The run cannot be.
    Refuse,
}

/// What was seen of one thing.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Finding {
    /// How grave it is.
    pub level: Level,
    /// What was looked at.
    pub name: &'static str,
    /// What was seen.
    pub seen: String,
    /// What to do about it; empty where nothing is to be done.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub remedy: String,
}

impl Finding {
    /// As it should be.
    pub fn fine(name: &'static str, seen: impl Into<String>) -> Self {
        Finding {
            level: Level::Fine,
            name,
            seen: seen.into(),
            remedy: String::new(),
        }
    }
    /// The run may be disturbed by it.
    pub fn warn(name: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding {
            level: Level::Warn,
            remedy: remedy.into(),
            ..Self::fine(name, seen)
        }
    }
    /// The run cannot be.
    pub fn refuse(name: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding {
            level: Level::Refuse,
            ..Self::warn(name, seen, remedy)
        }
    }
}

/// What is lost where one job makes way for another at a moment that is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Lost {
    /// Usually: the median, or the average of a profile.
    pub usual: Duration,
    /// At most but for outliers: at 99 %, or the maximum of a profile.
    pub most: Duration,
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// The machine that it is run on.
    pub machine: &'a Machine,
    /// Its files.
    pub tree: &'a Tree,
    /// The processors that it is run on, of that machine's.
    pub cpus: &'a [CpuId],
    /// The tasks.
    pub set: &'a TaskSet,
    /// The policy, or the policies that take turns, each with its assignment and its quantum. There
    /// is one at least.
    pub stages: &'a [Stage],
    /// The part of its WCET that a job executes.
    pub part: Ratio,
    /// What happens to overruns.
    pub enforcement: Enforcement,
    /// The quantum of [`Enforcement::PerQuantum`].
    pub quantum: Duration,
    /// Are the processors kept out of sleep states?
    pub awake: bool,
    /// What a boundary costs, where it matters and is known.
    pub boundary: Option<Lost>,
    /// What the engine takes under each of `stages`, in their order; empty where no profile says
    /// it.
    pub takes: &'a [Takes],
}

impl Intent<'_> {
    /// Which policy something is said of, where there are several.
    fn under(&self, stage: &Stage) -> String {
        match self.stages {
            [_] => String::new(),
            _ => format!(" under `{}`", stage.policy),
        }
    }
}

/// Looks at everything.
pub fn look(intent: &Intent<'_>) -> Vec<Finding> {
    let mut found = vec![kernel::rights(intent.machine)];
    found.extend(kernel::throttling(intent));
    found.push(kernel::preemption(intent));
    found.extend(kernel::control_groups(intent));
    found.extend(kernel::memory(intent));
    found.extend(others::programs(intent));
    found.extend(load::utilization(intent));
    found.extend(load::shortest(intent));
    found.extend(processors::siblings(intent));
    found.extend([
        processors::frequency(intent.machine),
        processors::sleep(intent),
        processors::host(intent.machine),
    ]);
    found
}

/// Looks at what matters where the kernel's scheduler carries out the run: nothing has real-time
/// priorities, nothing polices intervals from user space.
pub fn look_in_kernel(intent: &Intent<'_>) -> Vec<Finding> {
    let mut found = vec![
        capability(intent.machine, "sched_ext", Level::Refuse),
        kernel::preemption(intent),
        kernel::cpuset(intent),
        kernel::own_threads(intent),
    ];
    found.extend(kernel::memory(intent));
    found.extend(others::programs(intent));
    found.extend(load::beyond(intent));
    found.extend(processors::siblings(intent));
    found.extend([
        processors::frequency(intent.machine),
        processors::sleep(intent),
        processors::host(intent.machine),
    ]);
    found
}

/// How long before a release a dispatcher whose processor is idle is to be up: longer than most
/// wake-ups where there is time for it, what the tasks and ordinary programs need left aside; else
/// not at all. How long an idle processor takes to wake up is in no profile; what the engine takes
/// is.
pub fn early(intent: &Intent<'_>) -> Duration {
    let early = Duration::from_micros(100);
    let timings = intent.set.timings();
    let busy: f64 = timings.iter().map(|t| t.utilization().to_f64()).sum();
    let releases: f64 = timings.iter().map(|t| 1e9 / t.period.nanos() as f64).sum();
    // All releases on one processor, at worst; what the tasks need on the busiest one is at least
    // their mean.
    let waits = releases * early.nanos() as f64 / 1e9;
    let cpus = intent.cpus.len();
    let share = busy * intent.part.to_f64() / cpus.max(1) as f64;
    let takes = intent.takes.iter().map(|takes| takes.of_all(timings, cpus));
    let engine = takes.fold(0.0, f64::max);
    match 100.0 * (share + waits + engine) <= MOST_PERCENT - 10.0 {
        true => early,
        false => Duration::ZERO,
    }
}

/// Is it known that this process has no right to real-time priorities? Then nothing can be
/// measured, and [`look`] refuses.
pub fn lacks_rights(machine: &Machine) -> bool {
    kernel::rights(machine).level == Level::Refuse
}

/// The first finding that refuses, as an error.
///
/// # Errors
/// There is one.
pub fn permit(findings: &[Finding]) -> Result<()> {
    match findings.iter().find(|f| f.level == Level::Refuse) {
        Some(f) => Err(Error::new(f.seen.clone())
            .at(f.name)
            .remedy(f.remedy.clone())),
        None => Ok(()),
    }
}

fn capability(machine: &Machine, name: &'static str, grave: Level) -> Finding {
    let Some(c) = machine.capability(name) else {
        return Finding::warn(
            name,
            "the machine does not tell whether it permits this",
            "try it",
        );
    };
    let remedy = match c.remedy.as_str() {
        "" => "see `warmset platform`",
        remedy => remedy,
    };
    match c.state {
        State::Yes => Finding::fine(name, c.seen.clone()),
        State::No => Finding {
            level: grave,
            ..Finding::warn(name, c.seen.clone(), remedy)
        },
        _ => Finding::warn(name, c.seen.clone(), remedy),
    }
}

#[cfg(test)]
mod tests;
