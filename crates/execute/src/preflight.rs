//! What is looked at before a run, each with its remedy; nothing is changed here.
//!
//! A finding that refuses keeps the run from beginning: it could not be what the user asked for. A warning is told, and the run
//! goes on.

use crate::domain::{Enforcement, POLICED};
use machine::{Machine, State};
use model::{Assignment, CpuId, Duration, Error, Ratio, Result, TaskId, TaskSet, Workload};
use serde::Serialize;

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
    fn fine(name: &'static str, seen: impl Into<String>) -> Self {
        Finding {
            level: Level::Fine,
            name,
            seen: seen.into(),
            remedy: String::new(),
        }
    }
    fn warn(name: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding {
            level: Level::Warn,
            remedy: remedy.into(),
            ..Self::fine(name, seen)
        }
    }
    fn refuse(name: &'static str, seen: impl Into<String>, remedy: impl Into<String>) -> Self {
        Finding {
            level: Level::Refuse,
            ..Self::warn(name, seen, remedy)
        }
    }
}

/// What is to be run.
#[derive(Clone, Copy, Debug)]
pub struct Intent<'a> {
    /// The machine that it is run on.
    pub machine: &'a Machine,
    /// The processors that it is run on, of that machine's.
    pub cpus: &'a [CpuId],
    /// The tasks.
    pub set: &'a TaskSet,
    /// Who runs where, if the policy was told.
    pub assignment: Option<&'a Assignment>,
    /// The part of its WCET that a job executes.
    pub part: Ratio,
    /// What happens to overruns.
    pub enforcement: Enforcement,
    /// The quantum, where the policy decides at quanta only.
    pub quantum: Option<Duration>,
    /// Are the processors kept out of sleep states?
    pub awake: bool,
}

/// The part of a processor, in percent, that the tasks may take.
///
/// The kernel keeps 5 % of every processor for ordinary programs: by throttling (`sched_rt_runtime_us`), from Linux 6.12 on by
/// its fair server. One more for dispatchers and the collector.
pub const MOST_PERCENT: u64 = 94;

/// Looks at everything.
pub fn look(intent: &Intent<'_>) -> Vec<Finding> {
    let mut found = vec![rights(intent.machine), memory(intent.machine), throttling()];
    found.extend(utilization(intent));
    found.extend(shortest(intent));
    found.extend([
        siblings(intent),
        frequency(intent.machine),
        sleep(intent),
        host(intent.machine),
    ]);
    found
}

/// The first finding that refuses, as an error.
///
/// # Errors
/// There is one.
pub fn permit(findings: &[Finding]) -> Result<()> {
    match findings.iter().find(|f| f.level == Level::Refuse) {
        Some(f) => Err(Error::new(f.seen.clone()).at(f.name).remedy(f.remedy.clone())),
        None => Ok(()),
    }
}

fn capability(machine: &Machine, name: &'static str, grave: Level) -> Finding {
    let Some(c) = machine.capability(name) else {
        return Finding::warn(name, "the machine does not tell", "try it");
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

/// Includes what control groups grant: it is tried.
fn rights(machine: &Machine) -> Finding {
    capability(machine, "real-time priority", Level::Refuse)
}

fn memory(machine: &Machine) -> Finding {
    capability(machine, "memory locking", Level::Warn)
}

fn throttling() -> Finding {
    let name = "throttling";
    match machine::realtime::throttle() {
        Some((runtime, period)) if runtime < period => Finding::fine(
            name,
            format!(
                "real-time threads have at most {runtime} of every {period}: nothing can lock the machine up"
            ),
        ),
        Some((runtime, period)) => Finding::warn(
            name,
            format!(
                "real-time threads may take all time ({runtime} of every {period}): only the watchdog guards the machine"
            ),
            "as root, `sysctl kernel.sched_rt_runtime_us=950000`",
        ),
        None => Finding::warn(
            name,
            "no limit for real-time threads: only the watchdog guards the machine",
            "as root, `sysctl kernel.sched_rt_runtime_us=950000`",
        ),
    }
}

/// What the tasks need of the processors that they may run on.
fn utilization(intent: &Intent<'_>) -> Vec<Finding> {
    let name = "utilization";
    let all = |cpus: usize| (cpus, intent.set.ids().collect::<Vec<TaskId>>());
    let shares: Vec<(usize, Vec<TaskId>)> = match intent.assignment {
        Some(Assignment::Clustered(c)) => (0..c.clusters.len())
            .map(|i| (c.clusters[i].len(), c.tasks_of(i).collect()))
            .collect(),
        _ => vec![all(intent.cpus.len())],
    };
    let mut found = Vec::new();
    for (cpus, tasks) in shares {
        let used: f64 = tasks
            .iter()
            .map(|t| {
                // A program has all of its budget.
                let part = if is_budget(intent.set, *t) {
                    Ratio::ONE
                } else {
                    intent.part
                };
                intent.set.timings()[t.index()].utilization().to_f64() * part.to_f64()
            })
            .sum();
        let percent = 100.0 * used / cpus.max(1) as f64;
        let seen = format!(
            "jobs take {percent:.1} % of {cpus} processor{}",
            if cpus == 1 { "" } else { "s" }
        );
        found.push(if percent > MOST_PERCENT as f64 {
            Finding::refuse(
                name,
                format!("{seen}; the kernel keeps 5 % for ordinary programs"),
                format!("stay below {MOST_PERCENT} %: give fewer tasks, or `--execution` a smaller part"),
            )
        } else {
            Finding::fine(name, seen)
        });
    }
    found
}

/// Is the WCET of a task the budget of a program that knows nothing of jobs?
fn is_budget(set: &TaskSet, task: TaskId) -> bool {
    let workload = set.details(task).and_then(|d| d.workload.as_ref());
    matches!(workload, Some(Workload::Exec { .. }))
}

/// Slots and budgets that are too short to be policed.
fn shortest(intent: &Intent<'_>) -> Vec<Finding> {
    let name = "shortest interval";
    let mut shortest: Option<(Duration, String)> = None;
    let mut consider = |time: Duration, what: &dyn Fn() -> String| {
        if shortest.as_ref().is_none_or(|(s, _)| time < *s) {
            shortest = Some((time, what()));
        }
    };
    match intent.assignment {
        Some(Assignment::Slices(slices)) => {
            for (task, slices) in slices.tasks.iter().enumerate().filter(|(_, s)| s.len() > 1) {
                for slice in slices {
                    consider(slice.budget, &|| {
                        format!("a slice of {}", intent.set.name(TaskId(task as u32)))
                    });
                }
            }
        }
        Some(Assignment::Slots(slots)) => {
            for turn in slots.timetables.iter().flat_map(|t| &t.turns) {
                let length = turn.end.saturating_sub(turn.start);
                consider(length, &|| format!("a turn of server N{}", turn.server + 1));
            }
        }
        _ => {}
    }
    if let Some(quantum) = intent.quantum {
        consider(quantum, &|| "a quantum".to_owned());
    }
    for task in intent.set.ids() {
        if intent.enforcement != Enforcement::Off || is_budget(intent.set, task) {
            let wcet = intent.set.timings()[task.index()].wcet;
            consider(wcet, &|| format!("the budget of {}", intent.set.name(task)));
        }
    }
    shortest
        .map(|(time, what)| match time < POLICED {
            true => Finding::refuse(
                name,
                format!("{what} lasts {time}; less than {POLICED} cannot be policed from user space"),
                "give longer ones, or another assignment",
            ),
            false => Finding::fine(name, format!("{what}, {time}")),
        })
        .into_iter()
        .collect()
}

fn siblings(intent: &Intent<'_>) -> Finding {
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

fn frequency(machine: &Machine) -> Finding {
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

fn sleep(intent: &Intent<'_>) -> Finding {
    let name = "idle states";
    match intent.awake {
        true => Finding::fine(
            name,
            "processors are kept awake during the run (/dev/cpu_dma_latency is held at 0)",
        ),
        false => Finding::warn(
            name,
            "an idle processor may sleep, and take its time to wake up",
            "`--awake` keeps them awake during the run",
        ),
    }
}

fn host(machine: &Machine) -> Finding {
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

#[cfg(test)]
mod tests {
    use super::*;
    use machine::{Probes, detect};
    use model::assignment::{Clustered, Slice, Slices};
    use model::{CpuSet, Timing};

    /// A machine of two processors that tells little else.
    fn machine(dir: &std::path::Path) -> Machine {
        for cpu in 0..2 {
            let topology = dir.join(format!("sys/devices/system/cpu/cpu{cpu}/topology"));
            std::fs::create_dir_all(&topology).unwrap();
            std::fs::write(topology.join("core_id"), "0\n").unwrap();
            std::fs::write(topology.join("physical_package_id"), "0\n").unwrap();
            std::fs::write(topology.join("core_cpus_list"), "0-1\n").unwrap();
        }
        let cpus = dir.join("sys/devices/system/cpu");
        for list in ["online", "possible", "present"] {
            std::fs::write(cpus.join(list), "0-1\n").unwrap();
        }
        detect(dir, &Probes::default()).unwrap()
    }

    fn findings(part: u64, assignment: Option<&Assignment>, enforcement: Enforcement) -> Vec<Finding> {
        let dir = tempfile::tempdir().unwrap();
        let timings = vec![
            Timing::implicit(Duration::from_millis(6), Duration::from_millis(10)),
            Timing::implicit(Duration::from_micros(150), Duration::from_micros(500)),
        ];
        let set = TaskSet::from_timings(timings).unwrap();
        look(&Intent {
            machine: &machine(dir.path()),
            cpus: &[CpuId(0), CpuId(1)],
            set: &set,
            assignment,
            part: Ratio::new(part, 100).unwrap(),
            enforcement,
            quantum: None,
            awake: true,
        })
    }

    fn of<'a>(findings: &'a [Finding], name: &str) -> Vec<(Level, &'a str)> {
        let named = findings.iter().filter(|f| f.name == name);
        named.map(|f| (f.level, f.seen.as_str())).collect()
    }

    #[test]
    fn what_does_not_fit_below_the_fair_server_is_refused_where_it_runs() {
        let fine = findings(100, None, Enforcement::Off);
        assert_eq!(
            of(&fine, "utilization"),
            [(Level::Fine, "jobs take 45.0 % of 2 processors")]
        );
        let one: CpuSet = [CpuId(0)].into_iter().collect();
        let other: CpuSet = [CpuId(1)].into_iter().collect();
        let clustered = |cluster_of: Vec<u32>| {
            Assignment::Clustered(Clustered {
                clusters: vec![one.clone(), other.clone()],
                cluster_of,
            })
        };
        // 60 % and 30 % on one processor.
        let both = findings(100, Some(&clustered(vec![0, 0])), Enforcement::Off);
        assert_eq!(of(&both, "utilization")[0].0, Level::Fine);
        let more = findings(110, Some(&clustered(vec![0, 0])), Enforcement::Off);
        assert_eq!(of(&more, "utilization")[0].0, Level::Refuse);
        assert!(
            permit(&more[3..4])
                .unwrap_err()
                .to_string()
                .contains("99.0 % of 1 processor")
        );
        let apart = findings(110, Some(&clustered(vec![0, 1])), Enforcement::Off);
        assert!(
            of(&apart, "utilization")
                .iter()
                .all(|(level, _)| *level == Level::Fine)
        );
    }

    #[test]
    fn what_is_too_short_to_be_policed_is_refused_with_the_number() {
        assert_eq!(of(&findings(50, None, Enforcement::Off), "shortest interval"), []);
        let budgets = findings(50, None, Enforcement::Exact);
        let (level, seen) = of(&budgets, "shortest interval")[0];
        assert!(
            level == Level::Refuse && seen.contains("the budget of T2 lasts 150us"),
            "{seen}"
        );
        let slice = |us: u64| Slice {
            cpu: CpuId(0),
            budget: Duration::from_micros(us),
            window: Duration::from_millis(5),
        };
        let slices = Assignment::Slices(Slices {
            cpus: vec![CpuId(0), CpuId(1)],
            tasks: vec![vec![slice(1000), slice(70)], vec![slice(150)]],
        });
        let slices = findings(50, Some(&slices), Enforcement::Off);
        let (level, seen) = of(&slices, "shortest interval")[0];
        assert!(
            level == Level::Refuse && seen.contains("a slice of T1 lasts 70us"),
            "{seen}"
        );
    }

    #[test]
    fn processors_of_one_core_are_warned_of() {
        let found = findings(50, None, Enforcement::Off);
        assert_eq!(of(&found, "hardware threads")[0].0, Level::Warn);
        assert_eq!(of(&found, "idle states")[0].0, Level::Fine);
        assert!(
            found
                .iter()
                .all(|f| f.level == Level::Fine || !f.remedy.is_empty()),
            "{found:#?}"
        );
    }
}
