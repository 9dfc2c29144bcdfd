//! What the guest does: runs each case within its kernel, writes the traces to a port, and turns
//! itself off.

use crate::archive;
use crate::case::{self, Case};
use analyze::assign::{self, How};
use kernel::plan::Given;
use machine::Machine;
use model::watch::Silent;
use model::{Duration, Error, Provenance, Result, TaskSet};
use policy::Setup;
use rustix::mount::{MountFlags, mount};
use std::fs::{self, File};
use std::io::Write;
use std::path::Path;
use trace::{FileSink, Header, Origin, Stage};
use workload::{Until, Work};

/// Where traces go.
const PORT: &str = "/dev/vport0p1";
const CASES: &str = "/cases";

/// Mounts what is needed, runs the cases, and turns the machine off. For the first process.
pub fn main() {
    for (what, at) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev")] {
        if let Err(e) = mount(what, at, what, MountFlags::empty(), None::<&std::ffi::CStr>) {
            println!("guest: cannot mount {what}: {e}");
        }
    }
    match all() {
        Ok(()) => println!("guest: all cases are done"),
        Err(e) => println!("guest: error: {e}"),
    }
    let _ = std::io::stdout().flush();
    rustix::fs::sync();
    let off = rustix::system::reboot(rustix::system::RebootCommand::PowerOff);
    println!("guest: cannot turn off: {off:?}");
}

fn all() -> Result<()> {
    let text = fs::read_to_string(CASES).map_err(|e| Error::io(CASES, "read the cases", &e))?;
    let port = fs::OpenOptions::new().write(true).open(PORT);
    let mut port = port.map_err(|e| Error::io(PORT, "open the port", &e))?;
    let broken = |e: std::io::Error| Error::io(PORT, "write to the port", &e);
    for case in case::read(&text)? {
        let path = Path::new("/out").join(&case.name);
        let begun = std::time::Instant::now();
        match one(&case, &path) {
            Ok(lost) => println!(
                "guest: {}: {} in {:.1?}, {lost} events lost",
                case.name,
                case.policy,
                begun.elapsed()
            ),
            Err(e) => println!("guest: {}: error: {e}", case.name),
        }
        if let Ok(bytes) = fs::read(&path) {
            archive::write(&mut port, &format!("{}.wtrace", case.name), &bytes).map_err(broken)?;
        }
        let _ = fs::remove_file(&path);
    }
    archive::finish(&mut port).map_err(broken)
}

/// Runs a case. Returns how many events were lost.
fn one(case: &Case, path: &Path) -> Result<u64> {
    let machine = machine::this_machine()?;
    let platform = &machine.platform;
    let set = case.tasks(|name| {
        fs::read_to_string(name).map_err(|e| Error::io(name, "read the task set", &e))
    })?;
    let made = assign::assign(&case.policy, &set, platform, &How::default())?;
    let assignment = made.map_err(|_| Error::new("the set cannot be assigned"))?;
    let setup = Setup {
        set: &set,
        platform,
        assignment: assignment.as_ref(),
        quantum: Duration::from_millis(1),
    };
    let plan = case.policy.plan(&setup)?;
    let given = Given {
        set: &set,
        platform,
        enforcement: case.enforcement,
        horizon: case.horizon,
    };
    let plan = kernel::plan::of(&case.policy.to_string(), &plan, &given)?;
    let stage = Stage {
        policy: case.policy.to_string(),
        assignment,
        quantum: None,
    };
    let mut sink: FileSink<File> = FileSink::create(path, &header(case, &set, &machine, stage))?;
    let works = works(case, &set)?;
    let outcome = kernel::engine::run(&plan, &set, works, &Silent, &mut sink, |_| {})?;
    sink.finish()?;
    Ok(outcome.lost)
}

fn works(case: &Case, set: &TaskSet) -> Result<Vec<Box<dyn Work>>> {
    let one = |task: model::TaskId| {
        let (wcet, part) = (set.timings()[task.index()].wcet.nanos(), case.execution);
        let length = u128::from(wcet) * u128::from(part.num()) / u128::from(part.den());
        let length = Duration::from_nanos(u64::try_from(length).unwrap_or(u64::MAX));
        workload::make_in(set, task, length, Until::Clock, 1, None).map(|(work, _)| work)
    };
    set.ids().map(one).collect()
}

fn header(case: &Case, set: &TaskSet, machine: &Machine, stage: Stage) -> Header {
    let provenance = Provenance {
        source: "warmset, within a guest".to_owned(),
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..Provenance::default()
    };
    Header {
        origin: Origin::Real,
        enforcement: Some(case.enforcement),
        ..Header::simulated(set.clone(), machine.platform.clone(), stage, provenance)
    }
}
