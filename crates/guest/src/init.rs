//! What the guest does: runs each case within its kernel, writes the traces to a port, and turns
//! itself off.

use crate::archive;
use crate::case::{self, Case};
use crate::commands;
use crate::latency;
use crate::maps::{self, Maps};
use crate::ordinary::{self, Look};
use crate::outside;
use crate::pinned;
use crate::programs::{self, Company};
use crate::rounds;
use crate::triggers::{Counting, Events};
use analyze::assign::{self, How};
use execute::{Efforts, Triggers};
use kernel::plan::Given;
use kernel::quanta::Machines;
use machine::Machine;
use model::watch::Silent;
use model::{CpuSet, Duration, Error, Provenance, Result, TaskId, TaskSet};
use policy::{AnyPlan, Setup};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::mount::{MountFlags, mount};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Instant;
use trace::{EventKind, FileSink, Header, NullSink, Origin, Reader, Stage, VecSink};
use workload::calibrate::calibrate;
use workload::spin::Spin;
use workload::{Clocked, Work};

/// What a run says of errors.
pub(crate) const SAID: &str = "/out/said";
/// What it says when a real-time thread has lent a thread of the first task its priority.
const HAS_LEFT: &str = "task T1: its thread has left the scheduling class";
/// Where traces go.
const PORT: &str = "/dev/vport0p1";
const CASES: &str = "/cases";
const TRACER: &str = "/sys/kernel/tracing";
/// Of policies that decide at quanta.
const QUANTUM: Duration = Duration::from_millis(1);
/// How often a job looks at its thread's clock. The call takes some thousand instructions, for
/// which an emulated machine needs longer than for those of a job.
const LOOK: Duration = Duration::from_micros(50);
/// How long a run waits for jobs that were told to end: a few of their lengths. One that never does
/// is among the faults.
const TO_END: Duration = Duration::from_millis(500);
/// How long the threads of a run take to come into the class, at the most.
const COME_IN: Duration = Duration::from_millis(40);
/// So long before a release dispatchers of idle processors are up, where they are.
const EARLY: Duration = Duration::from_micros(100);
/// How long before each case nothing happens. What the program of the case before had, the kernel
/// gives back a while later, in threads that go before jobs.
pub(crate) const BEFORE: std::time::Duration = std::time::Duration::from_secs(1);
/// How long a process may take to come to its end, besides its horizon.
const PATIENCE: Duration = Duration::from_secs(20);

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
    let port = fs::OpenOptions::new().write(true).open(PORT);
    let mut port = port.map_err(|e| Error::io(PORT, "open the port", &e))?;
    let broken = |e: std::io::Error| Error::io(PORT, "write to the port", &e);
    let look = Look::first()?;
    for case in cases()? {
        std::thread::sleep(BEFORE);
        let begun = Instant::now();
        let said = watched(&case, &look);
        let (what, file) = match &said {
            Ok(()) => ("well".to_owned(), "well".to_owned()),
            Err(e) => (format!("error: {e}"), e.to_string()),
        };
        println!(
            "guest: {}: {} in {:.1?}: {what}",
            case.name,
            case.policy,
            begun.elapsed()
        );
        archive::write(&mut port, &format!("{}.result", case.name), file.as_bytes())
            .map_err(broken)?;
        let path = trace_of(&case);
        if let Ok(bytes) = fs::read(&path) {
            archive::write(&mut port, &format!("{}.wtrace", case.name), &bytes).map_err(broken)?;
        }
        let _ = fs::remove_file(&path);
        if let Some(seen) = seen_by_kernel() {
            archive::write(&mut port, &format!("{}.ftrace", case.name), &seen).map_err(broken)?;
        }
    }
    commands::all(&look, &mut port)?;
    rounds::all(&look, &mut port)?;
    archive::finish(&mut port).map_err(broken)
}

/// What the kernel's own tracer has seen since it was asked last, where it was started with the
/// kernel (`TRACE` of boot.sh): who had which processor when a decision was late.
pub(crate) fn seen_by_kernel() -> Option<Vec<u8>> {
    let asked = fs::read_to_string("/proc/cmdline").is_ok_and(|line| line.contains("trace_event="));
    if !asked {
        return None;
    }
    mount_tracefs().ok()?;
    let path = Path::new(TRACER).join("trace");
    let seen = fs::read(&path).ok()?;
    // Writing to it empties it.
    fs::write(&path, "").ok()?;
    Some(seen)
}

/// Mounts what the kernel's tracer is asked by, if it is not there yet.
///
/// # Errors
/// This kernel has none.
pub(crate) fn mount_tracefs() -> Result<()> {
    if Path::new(TRACER).join("trace").exists() {
        return Ok(());
    }
    let none = None::<&std::ffi::CStr>;
    mount("tracefs", TRACER, "tracefs", MountFlags::empty(), none)
        .map_err(|e| Error::new(format!("cannot mount tracefs: {e}")))
}

fn cases() -> Result<Vec<Case>> {
    let text = fs::read_to_string(CASES).map_err(|e| Error::io(CASES, "read the cases", &e))?;
    case::read(&text)
}

fn trace_of(case: &Case) -> PathBuf {
    Path::new("/out").join(&case.name)
}

/// Runs a case in a process of its own, and looks whether the kernel is as it was before.
fn watched(case: &Case, look: &Look) -> Result<()> {
    let failed = |what: String| Err(Error::new(what).at(&case.name));
    let said = match case.lent {
        Some(_) => File::create(SAID)
            .map_err(|e| Error::io(SAID, "make it", &e))?
            .into(),
        None => Stdio::inherit(),
    };
    let mut child = start_saying(&["run", &case.name], said)?;
    if let Some(after) = case.kill {
        // It is to be killed while the program is there, and not on the way.
        if !rounds::loaded(&mut child) || ended(&mut child, after).is_some() {
            return failed("it ended before it could be killed".to_owned());
        }
        let _ = child.kill();
    }
    // Its threads have come into the class a moment later.
    let begins = (case.waits.is_some() || case.pinned.is_some())
        && rounds::loaded(&mut child)
        && ended(&mut child, COME_IN).is_none();
    let waits = (case.waits.filter(|_| begins)).map(|most| (most, ordinary::waits(look)));
    let pinned = (case.pinned.as_ref().filter(|_| begins))
        .map(|(places, most)| (*most, pinned::waits(places)));
    if let Some(after) = case.lent {
        if !rounds::loaded(&mut child) || ended(&mut child, after).is_some() {
            return failed("it ended before it could be asked".to_owned());
        }
        programs::ask_for_lock(case)?;
    }
    let patience = PATIENCE
        .saturating_add(case.horizon)
        .saturating_add(case.later.unwrap_or(Duration::ZERO));
    let status = match case.change {
        Some(every) => outside::change_all(&mut child, every, patience),
        None => ended(&mut child, patience),
    };
    let Some(status) = status else {
        end_stuck(&mut child);
        return failed(format!("it does not come to its end within {patience}"));
    };
    if case.lent.is_some() {
        let said = fs::read_to_string(SAID).map_err(|e| Error::io(SAID, "read it", &e))?;
        if status.code() != Some(2) || !said.contains(HAS_LEFT) {
            return failed(format!(
                "it ended with {status}, and says `{}`",
                said.trim()
            ));
        }
    } else if !status.success() && case.kill.is_none() {
        return failed(format!("it ended with {status}"));
    }
    if !begins && (case.waits.is_some() || case.pinned.is_some()) {
        return failed("it ended before anybody could wait".to_owned());
    }
    if let Some((most, waits)) = waits {
        let (longest, cpu) = waits.longest()?;
        waited(case, "an ordinary thread", longest, &cpu.to_string(), most)?;
    }
    if let Some((most, pinned)) = pinned {
        let (longest, cpus) = pinned.longest()?;
        waited(
            case,
            "a thread behind jobs",
            longest,
            &cpus.to_string(),
            most,
        )?;
    }
    programs::none_left()?;
    look.again()
}

/// Says for how long somebody was kept from processors.
///
/// # Errors
/// For longer than may be.
fn waited(
    case: &Case,
    who: &str,
    longest: std::time::Duration,
    cpus: &str,
    most: Duration,
) -> Result<()> {
    println!(
        "guest: {}: {who} waited for {longest:.1?} at most",
        case.name
    );
    if longest.as_nanos() <= u128::from(most.nanos()) {
        return Ok(());
    }
    let what = format!("{who} was kept from processor {cpus} for {longest:.1?}, {most} may be");
    Err(Error::new(what).at(&case.name))
}

/// Starts this program with these words, and what it says of errors goes there.
///
/// # Errors
/// It cannot be started.
pub(crate) fn start_saying(words: &[&str], said: Stdio) -> Result<Child> {
    let child = Command::new("/init").args(words).stderr(said).spawn();
    child.map_err(|e| Error::io("/init", "start it", &e))
}

/// Ends a process that does not come to its end by itself, and says where its threads are.
pub(crate) fn end_stuck(child: &mut Child) {
    for thread in outside::threads(child.id())
        .into_iter()
        .chain([child.id() as i32])
    {
        let said = |of: &str| {
            let said = fs::read_to_string(format!("/proc/{thread}/{of}")).unwrap_or_default();
            said.trim().replace('\n', "; ")
        };
        println!("guest: left: {}, in {}", said("stat"), said("stack"));
    }
    // With TRACE=sched_ext:sched_ext_dump of boot.sh it is brought out which thread is where.
    let _ = fs::write("/proc/sysrq-trigger", "D");
    let _ = child.kill();
    let _ = child.wait();
}

/// Waits for the end of a process, and no longer than this.
pub(crate) fn ended(child: &mut Child, limit: Duration) -> Option<ExitStatus> {
    // Not by looking again and again: jobs would wait for that.
    if let Ok(None) = child.try_wait() {
        let process = pidfd_open(Pid::from_child(child), PidfdFlags::empty()).ok()?;
        let wait = Timespec::try_from(std::time::Duration::from_nanos(limit.nanos())).ok()?;
        let _ = poll(&mut [PollFd::new(&process, PollFlags::IN)], Some(&wait));
    }
    child.try_wait().ok().flatten()
}

/// Runs the case of this name, in this process.
///
/// # Errors
/// No such case; it failed, or lost events.
pub fn run(name: &str) -> Result<()> {
    let cases = cases()?;
    let Some(case) = cases.iter().find(|case| case.name == name) else {
        return Err(Error::new(format!("there is no case `{name}`")));
    };
    let path = trace_of(case);
    let change = |task: usize, work: Box<dyn Work>| match case.stuck == Some(task) {
        true => rounds::never_ends(work),
        false => work,
    };
    let watchdog = case.watchdog.unwrap_or(Harm::default().watchdog);
    let harm = Harm {
        work: &change,
        watchdog,
        patience: Duration::from_nanos(watchdog.nanos() / 3),
        ..Harm::default()
    };
    let lost = one(case, &path, &harm)?.lost;
    if case.waits.is_some() {
        // Where ordinary threads have all processors, no decision is carried out in time.
        let _ = fs::remove_file(&path);
    }
    match (lost, case.ring) {
        (0, None) => Ok(()),
        (0, Some(ring)) => Err(Error::new(format!("no event is lost in a ring of {ring}"))),
        (lost, None) => Err(Error::new(format!("{lost} events are lost"))),
        (lost, Some(_)) => {
            let mut all = VecSink::default();
            Reader::open(&path)?.replay(&mut all)?;
            let losses = all.events.iter().filter(|e| e.kind == EventKind::Lost);
            let told: u64 = losses.map(|e| e.argument).sum();
            // It is no trace to be judged: what follows from lost events is no matter of this test.
            let _ = fs::remove_file(&path);
            match told == lost {
                true => Ok(()),
                false => Err(Error::new(format!(
                    "the trace tells of {told} lost events, and the run of {lost}"
                ))),
            }
        }
    }
}

/// What is wrong with a run from within.
pub(crate) struct Harm<'a> {
    /// May put another work in the place of a task's, by its place in the set.
    pub work: &'a dyn Fn(usize, Box<dyn Work>) -> Box<dyn Work>,
    /// The same of the state machines of a policy that decides at quanta.
    pub machines: &'a dyn Fn(Box<dyn Machines>) -> Box<dyn Machines>,
    /// How long the kernel lets a thread wait, and the program does.
    pub watchdog: Duration,
    pub patience: Duration,
}

impl Default for Harm<'_> {
    /// Nothing is.
    fn default() -> Self {
        Harm {
            work: &|_, work| work,
            machines: &|machines| machines,
            watchdog: kernel::Settings::default().watchdog,
            patience: kernel::Settings::default().patience,
        }
    }
}

/// Runs a case.
pub(crate) fn one(case: &Case, path: &Path, harm: &Harm<'_>) -> Result<kernel::Outcome> {
    let mut machine = machine::this_machine()?;
    for processor in &mut machine.platform.processors {
        let is_used = |cpus: &CpuSet| cpus.contains(processor.id);
        processor.usable &= case.cpus.as_ref().is_none_or(is_used);
    }
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
        quantum: QUANTUM,
    };
    let policy = case.policy.plan(&setup)?;
    let given = Given {
        set: &set,
        platform,
        enforcement: case.enforcement,
        horizon: case.horizon,
    };
    let mut plan = kernel::plan::of(&case.policy.to_string(), &policy, &given)?;
    plan.machines = plan.machines.map(harm.machines);
    let stage = Stage {
        policy: case.policy.to_string(),
        assignment,
        quantum: case.policy.quantum(QUANTUM)?,
    };
    let file: FileSink<File> = FileSink::create(path, &header(case, &set, &machine, stage))?;
    let mut sink = Counting::new(file, &set);
    let events = Events::begin(case, &set)?;
    let works = works(case, &set).into_iter().enumerate();
    let company = Company::begin(case, &set)?;
    let performers = works.map(|(task, work)| {
        company.performer(case, &set, TaskId(task as u32), (harm.work)(task, work))
    });
    let performers = performers.collect::<Vec<_>>();
    let settings = kernel::Settings {
        release_at: case.later.map(|later| monotonic() + later.nanos()),
        to_end: TO_END,
        triggers: Triggers::open(&set)?,
        watchdog: harm.watchdog,
        patience: harm.patience,
        ring: (case.ring).map_or(kernel::Settings::default().ring, |ring| ring.get() as u32),
        waiting: case.waiting.unwrap_or(kernel::Settings::default().waiting),
        surroundings: None,
        best_effort: Efforts::default(),
    };
    let outcome = kernel::run(
        plan,
        &set,
        performers,
        &settings,
        &Silent,
        &mut sink,
        |_| work_for(case.slow.unwrap_or_default()),
    )?;
    let end = outcome.origin + outcome.end.nanos();
    company.end()?;
    let since = Duration::from_nanos(monotonic().saturating_sub(end));
    sink.file.finish()?;
    events.end(&outcome.triggers, &sink.releases)?;
    programs::agree(
        case,
        &set,
        (&sink.executed, &sink.least),
        since,
        platform.usable().len() as u64,
    )?;
    if case.peers {
        beside(case, &set, &policy, &outcome)?;
    }
    println!("guest: {}: time zero is {} ns", case.name, outcome.origin);
    Ok(outcome)
}

/// Needs a processor for so long.
fn work_for(time: Duration) {
    let used = || rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    let nanos = |at: rustix::time::Timespec| at.tv_sec as u64 * 1_000_000_000 + at.tv_nsec as u64;
    let until = nanos(used()) + time.nanos();
    while nanos(used()) < until {}
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
fn monotonic() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Tells how long releases took in a run of the kernel, and how long they take from user space and
/// by cyclictest.
///
/// # Errors
/// One of them cannot be run.
fn beside(case: &Case, set: &TaskSet, policy: &AnyPlan, outcome: &kernel::Outcome) -> Result<()> {
    latency::tell(&case.name, "by the kernel", &outcome.latencies);
    for (by, early) in [
        ("from user space, up early", EARLY),
        ("from user space, not up early", Duration::ZERO),
    ] {
        let settings = execute::Settings {
            horizon: case.horizon,
            early,
            ..execute::Settings::default()
        };
        let (plan, works, sink) = (policy.clone(), works(case, set), &mut NullSink);
        let ran = execute::run(plan, set, works, &settings, &Silent, sink, |_| {})?;
        latency::tell(&case.name, by, &ran.latencies);
    }
    latency::cyclictest(&case.name)
}

/// Jobs that spin until their thread has executed for so long. All are alike, and what a unit takes
/// is measured once: 30 ms a task would be seconds of an emulated machine.
fn works(case: &Case, set: &TaskSet) -> Vec<Box<dyn Work>> {
    let unit = match case.maps {
        true => calibrate(&mut Maps),
        false => calibrate(&mut Spin::new(1)),
    };
    let one = |task: model::TaskId| -> Box<dyn Work> {
        let (wcet, part) = (set.timings()[task.index()].wcet.nanos(), case.execution);
        let length = u128::from(wcet) * u128::from(part.num()) / u128::from(part.den());
        let length = Duration::from_nanos(u64::try_from(length).unwrap_or(u64::MAX));
        match case.maps {
            true => Box::new(Clocked::looking_every(maps::LOOK, Maps, &unit, length)),
            false => Box::new(Clocked::looking_every(LOOK, Spin::new(1), &unit, length)),
        }
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
