//! A task set written as a project of Cheddar.

use crate::cpus::CpuId;
use crate::error::{Error, Result};
use crate::imported::left_out;
use crate::task::{TaskId, TaskSet};
use crate::time::Duration;
use crate::xml::escaped;
use std::collections::BTreeMap;
use std::fmt::Write;

/// The longest power of ten of a nanosecond, up to a second, of which every time of the set is a
/// whole number.
pub fn unit_of(set: &TaskSet) -> Duration {
    let mut unit = 1_000_000_000;
    for id in set.ids() {
        for (_, time) in times(set, id) {
            while time.nanos() % unit != 0 {
                unit /= 10;
            }
        }
    }
    Duration::from_nanos(unit)
}

/// The times of a task that a project has, with the names of their elements.
fn times(set: &TaskSet, id: TaskId) -> [(&'static str, Duration); 6] {
    let timing = set.timings()[id.index()];
    let details = set.details(id);
    let extras = details.map(|d| d.extras).unwrap_or_default();
    [
        ("capacity", timing.wcet),
        ("period", timing.period),
        ("deadline", timing.deadline),
        ("start_time", details.map_or(Duration::ZERO, |d| d.phase)),
        ("blocking_time", extras.blocking),
        ("jitter", extras.jitter),
    ]
}

/// Processors of a project, each with its cores, and where each task is.
struct Homes {
    /// Name and number of cores.
    processors: Vec<(String, u32)>,
    /// By task, the place of its processor.
    of: Vec<usize>,
    /// Whether `cpus` of tasks are kept.
    kept: bool,
}

fn homes(set: &TaskSet, processors: u32) -> Homes {
    let single = |id: TaskId| -> Option<CpuId> {
        let cpus = set.cpus(id).filter(|cpus| cpus.len() == 1)?;
        cpus.lowest()
    };
    let pinned: Option<Vec<CpuId>> = set.ids().map(single).collect();
    let Some(pinned) = pinned else {
        return Homes {
            processors: vec![("processor".to_owned(), processors)],
            of: vec![0; set.len()],
            kept: false,
        };
    };
    // A processor for each one up to the last that has a task, so that they keep their numbers.
    let last = pinned.iter().map(|cpu| cpu.0 + 1).max().unwrap_or(1);
    Homes {
        processors: (0..last)
            .map(|cpu| (format!("processor{cpu}"), 1))
            .collect(),
        of: pinned.iter().map(|cpu| cpu.index()).collect(),
        kept: true,
    }
}

/// Writes a project of Cheddar, its times as numbers of `unit`: the tasks on one processor with
/// `processors` cores under EDF (under fixed priorities, where they have them); or, where each task
/// is kept to one processor, on processors of one core. What has no place there is named in the
/// notes.
///
/// # Errors
/// A time that is no whole number of `unit`.
pub fn to_cheddar(set: &TaskSet, unit: Duration, processors: u32) -> Result<(String, Vec<String>)> {
    let mut notes = Vec::new();
    let homes = homes(set, processors);
    let scheduler = match set.has_priorities() {
        true => "POSIX_1003_HIGHEST_PRIORITY_FIRST_PROTOCOL",
        false => "EARLIEST_DEADLINE_FIRST_PROTOCOL",
    };
    let mut file = File {
        out: "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<cheddar>\n".to_owned(),
        id: 0,
    };
    file.processors(&homes, scheduler);
    file.line(1, "<tasks>");
    for id in set.ids() {
        file.task(set, id, unit, &homes)?;
        let kept: &[&str] = match homes.kept {
            true => &["priority", "cpus", "blocking", "jitter"],
            false => &["priority", "blocking", "jitter"],
        };
        notes.extend(set.details(id).and_then(|d| left_out(d, "Cheddar", kept)));
    }
    file.line(1, "</tasks>");
    file.out.push_str("</cheddar>\n");
    if !set.best_effort().is_empty() {
        notes.push("best-effort work is left out: it has no times".to_owned());
    }
    Ok((file.out, notes))
}

struct File {
    out: String,
    /// The number of the latest object.
    id: u32,
}

impl File {
    fn line(&mut self, depth: usize, text: &str) {
        // Writing into a string cannot fail.
        let _ = writeln!(self.out, "{:depth$}{text}", "");
    }

    fn element(&mut self, depth: usize, name: &str, text: &str) {
        self.line(depth, &format!("<{name}>{}</{name}>", escaped(text)));
    }

    fn begin(&mut self, depth: usize, name: &str, object: &str) -> u32 {
        self.id += 1;
        let id = self.id;
        self.line(depth, &format!("<{name} id=\"id_{id}\">"));
        self.element(depth + 1, "object_type", object);
        id
    }

    fn scheduling(&mut self, scheduler: &str) {
        self.line(3, "<scheduling>");
        self.line(4, "<scheduling_parameters>");
        for (name, text) in [
            ("scheduler_type", scheduler),
            ("quantum", "0"),
            ("preemptive_type", "PREEMPTIVE"),
            ("capacity", "0"),
            ("period", "0"),
            ("priority", "0"),
            ("start_time", "0"),
        ] {
            self.element(5, name, text);
        }
        self.line(4, "</scheduling_parameters>");
        self.line(3, "</scheduling>");
    }

    fn processors(&mut self, homes: &Homes, scheduler: &str) {
        let mut cores: BTreeMap<usize, Vec<u32>> = BTreeMap::new();
        self.line(1, "<core_units>");
        for (place, (name, count)) in homes.processors.iter().enumerate() {
            for core in 0..*count {
                let id = self.begin(2, "core_unit", "CORE_OBJECT_TYPE");
                self.element(3, "name", &format!("{name}_core{core}"));
                self.scheduling(scheduler);
                self.element(3, "speed", "1.00000");
                self.line(2, "</core_unit>");
                cores.entry(place).or_default().push(id);
            }
        }
        self.line(1, "</core_units>");
        self.line(1, "<processors>");
        for (place, (name, count)) in homes.processors.iter().enumerate() {
            let refs = cores.remove(&place).unwrap_or_default();
            let (element, kind, migration) = match count {
                1 => ("mono_core_processor", "MONOCORE_TYPE", "NO_MIGRATION_TYPE"),
                _ => (
                    "multi_cores_processor",
                    "IDENTICAL_MULTICORES_TYPE",
                    "JOB_LEVEL_MIGRATION_TYPE",
                ),
            };
            self.begin(2, element, "PROCESSOR_OBJECT_TYPE");
            self.element(3, "name", name);
            self.element(3, "processor_type", kind);
            self.element(3, "migration_type", migration);
            match refs[..] {
                [core] => self.line(3, &format!("<core ref=\"id_{core}\"/>")),
                _ => {
                    self.line(3, "<cores>");
                    for core in refs {
                        self.line(4, &format!("<core ref=\"id_{core}\"/>"));
                    }
                    self.line(3, "</cores>");
                }
            }
            self.line(2, &format!("</{element}>"));
        }
        self.line(1, "</processors>");
        self.line(1, "<address_spaces>");
        for (name, _) in &homes.processors {
            self.begin(2, "address_space", "ADDRESS_SPACE_OBJECT_TYPE");
            self.element(3, "name", &format!("{name}_memory"));
            self.element(3, "cpu_name", name);
            for memory in ["text", "stack", "data", "heap"] {
                self.element(3, &format!("{memory}_memory_size"), "0");
            }
            self.scheduling("NO_SCHEDULING_PROTOCOL");
            self.line(2, "</address_space>");
        }
        self.line(1, "</address_spaces>");
    }

    fn task(&mut self, set: &TaskSet, id: TaskId, unit: Duration, homes: &Homes) -> Result<()> {
        let (home, _) = &homes.processors[homes.of[id.index()]];
        self.begin(2, "periodic_task", "TASK_OBJECT_TYPE");
        self.element(3, "name", &set.name(id));
        self.element(3, "task_type", "PERIODIC_TYPE");
        self.element(3, "cpu_name", home);
        self.element(3, "address_space_name", &format!("{home}_memory"));
        for (name, time) in times(set, id) {
            if time.nanos() % unit.nanos() != 0 {
                return Err(Error::new(format!(
                    "its `{name}` {time} is no whole number of {unit}"
                ))
                .at(format!("task {}", set.name(id)))
                .remedy("give a shorter `--unit`, or none"));
            }
            self.element(3, name, &(time.nanos() / unit.nanos()).to_string());
        }
        // Where tasks have none, all have the same.
        let priority = match set.has_priorities() {
            true => set.details(id).and_then(|d| d.priority).unwrap_or(0),
            false => 1,
        };
        self.element(3, "priority", &priority.to_string());
        for (name, text) in [
            ("policy", "SCHED_FIFO"),
            ("text_memory_size", "0"),
            ("stack_memory_size", "0"),
            ("criticality", "0"),
            ("context_switch_overhead", "0"),
            ("every", "0"),
        ] {
            self.element(3, name, text);
        }
        self.line(2, "</periodic_task>");
        Ok(())
    }
}
