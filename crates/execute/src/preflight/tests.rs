//! What is found on machines that are made up: files below a directory, and tasks.

use super::*;
use machine::{Probes, detect};
use model::{Assignment, Timing};

mod kernel;
mod load;
mod others;
mod processors;

/// A machine of two processors that tells little else but these files.
struct Made {
    dir: tempfile::TempDir,
    cpus: Vec<CpuId>,
    stages: Vec<Stage>,
    part: u64,
    enforcement: Enforcement,
    quantum: Duration,
    awake: bool,
    boundary: Option<Lost>,
    takes: Vec<Takes>,
}

impl Made {
    fn of(files: &[(&str, &str)]) -> Self {
        let made = Made {
            dir: tempfile::tempdir().unwrap(),
            cpus: vec![CpuId(0), CpuId(1)],
            stages: vec![stage("g-edf", None)],
            part: 100,
            enforcement: Enforcement::Off,
            quantum: Duration::from_millis(1),
            awake: false,
            boundary: None,
            takes: Vec::new(),
        };
        for cpu in 0..2 {
            let topology = format!("sys/devices/system/cpu/cpu{cpu}/topology");
            made.write(&format!("{topology}/core_id"), "0");
            made.write(&format!("{topology}/physical_package_id"), "0");
            made.write(&format!("{topology}/core_cpus_list"), "0-1");
        }
        for list in ["online", "possible", "present"] {
            made.write(&format!("sys/devices/system/cpu/{list}"), "0-1");
        }
        for (path, text) in files {
            made.write(path, text);
        }
        made
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, format!("{text}\n")).unwrap();
    }

    /// What is found for tasks of utilization 0.6 and 0.3 on it.
    fn look(&self) -> Vec<Finding> {
        self.look_by(look)
    }

    fn look_by(&self, look: impl Fn(&Intent<'_>) -> Vec<Finding>) -> Vec<Finding> {
        let timings = vec![
            Timing::implicit(Duration::from_millis(6), Duration::from_millis(10)),
            Timing::implicit(Duration::from_micros(150), Duration::from_micros(500)),
        ];
        let probes = Probes {
            realtime: machine::Outcome::Worked,
            ..Probes::default()
        };
        look(&Intent {
            machine: &detect(self.dir.path(), &probes).unwrap(),
            tree: &Tree::new(self.dir.path()),
            cpus: &self.cpus,
            set: &TaskSet::from_timings(timings).unwrap(),
            stages: &self.stages,
            part: Ratio::new(self.part, 100).unwrap(),
            enforcement: self.enforcement,
            quantum: self.quantum,
            awake: self.awake,
            boundary: self.boundary,
            takes: &self.takes,
        })
    }
}

/// A policy that decides at events.
fn stage(policy: &str, assignment: Option<Assignment>) -> Stage {
    Stage {
        policy: policy.to_owned(),
        assignment,
        quantum: None,
    }
}

fn findings(part: u64, assignment: Option<&Assignment>, enforcement: Enforcement) -> Vec<Finding> {
    Made {
        stages: vec![stage("p-edf", assignment.cloned())],
        part,
        enforcement,
        awake: true,
        ..Made::of(&[])
    }
    .look()
}

/// The only finding of a name, with its remedy.
fn only(files: &[(&str, &str)], name: &str) -> (Level, String, String) {
    let found = Made::of(files).look();
    let mut named = found.iter().filter(|f| f.name == name);
    let finding = named.next().unwrap();
    assert!(named.next().is_none(), "{name} is told twice");
    (finding.level, finding.seen.clone(), finding.remedy.clone())
}

fn of<'a>(findings: &'a [Finding], name: &str) -> Vec<(Level, &'a str)> {
    let named = findings.iter().filter(|f| f.name == name);
    named.map(|f| (f.level, f.seen.as_str())).collect()
}
