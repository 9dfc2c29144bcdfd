//! Makes a trace of what Linux itself scheduled, so that it is checked, added up and drawn as any
//! other.

use crate::scheduling::Scheduling;
use crate::{On, Tasks, provenance};
use ::trace::ftrace::{self, Named, Schedule};
use ::trace::{FileSink, Header, Origin, Releases, Sink};
use model::{CpuId, Enforcement, Error, Platform, Result, TaskSet, files};
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// When the jobs of a recorded system are released.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Released {
    /// When their threads are woken up, whenever that is.
    #[default]
    WakeUps,
    /// At multiples of their periods, of which wake-ups are late by a while.
    Periodic,
}

/// What is made a trace of.
#[derive(Clone, Debug)]
pub struct Options {
    /// The text: of `/sys/kernel/tracing/trace`, `trace-cmd report` or `perf script`.
    pub file: PathBuf,
    /// The processors.
    pub on: On,
    /// The policy whose rules the threads should have kept; the assignment, where one is given.
    pub scheduling: Scheduling,
    /// Which thread a task is, `TASK=COMM` or `TASK=PID`, where it has not the name of the task.
    pub threads: Vec<String>,
    /// When jobs are released.
    pub released: Released,
    /// The trace that is written.
    pub output: PathBuf,
    /// The command line, for the head of the trace.
    pub command: String,
}

/// A task of a recorded system.
#[derive(Clone, Debug, Serialize)]
pub struct Seen {
    /// Its name.
    pub task: String,
    /// How many jobs were released.
    pub jobs: u64,
}

/// What came of it. JSON: as `warmset trace import --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Imported {
    /// The text.
    pub file: String,
    /// The trace.
    pub trace: String,
    /// The policy whose rules it will be held to.
    pub policy: String,
    /// The name of the platform.
    pub platform: String,
    /// How many events the trace has.
    pub events: u64,
    /// How many events the text says are missing.
    pub lost_events: u64,
    /// The tasks.
    pub tasks: Vec<Seen>,
    /// What to know of it.
    pub notes: Vec<String>,
}

/// Reads the text, finds the threads of the tasks, and writes the trace.
///
/// # Errors
/// The text or the trace cannot be read or written; several policies; a thread that is not there,
/// or is of several; a processor that the platform has not; a set that cannot be assigned.
pub fn import(tasks: &Tasks, options: &Options) -> Result<Imported> {
    options.scheduling.only_one()?;
    let platform = options.on.platform()?;
    let names = names(&tasks.set, &options.threads)?;
    let text = files::read_text(&options.file)?;
    let place = |e: Error| e.at(options.file.display());
    let records = ftrace::read(&text).map_err(place)?;
    let periodic = options.released == Released::Periodic;
    let schedule = Schedule::of(&records, &tasks.set, &names, periodic).map_err(place)?;
    check_processors(&schedule, &platform).map_err(place)?;
    let header = header(tasks, options, &schedule, platform)?;
    let mut sink = FileSink::create(&options.output, &header)?;
    for event in &schedule.events {
        sink.record(*event);
    }
    sink.finish()?;
    Ok(Imported {
        file: options.file.display().to_string(),
        trace: options.output.display().to_string(),
        policy: super::policies_of(&header),
        platform: header.platform.name.clone(),
        events: schedule.events.len() as u64,
        lost_events: schedule.lost,
        tasks: tasks
            .set
            .ids()
            .zip(&schedule.jobs)
            .map(|(id, jobs)| Seen {
                task: tasks.set.name(id),
                jobs: *jobs,
            })
            .collect(),
        notes: schedule.notes,
    })
}

/// What tells the thread of each task from others.
fn names(set: &TaskSet, given: &[String]) -> Result<Vec<Named>> {
    let mut by_task: BTreeMap<&str, Named> = BTreeMap::new();
    for item in given {
        let at = |e: Error| e.at("--thread");
        let (task, thread) = item.split_once('=').ok_or_else(|| {
            at(Error::new(format!("`{item}` is not TASK=COMM or TASK=PID"))
                .remedy("write such as `camera=cam-thread` or `camera=4711`"))
        })?;
        if !set.ids().any(|id| set.name(id) == task) {
            return Err(at(
                Error::new(format!("the set has no task `{task}`")).remedy("name one of its tasks")
            ));
        }
        let named = match thread.parse() {
            Ok(pid) => Named::Pid(pid),
            Err(_) => Named::comm(thread),
        };
        if by_task.insert(task, named).is_some() {
            return Err(at(Error::new(format!("task `{task}` is given twice"))
                .remedy("give one thread for each task")));
        }
    }
    let names: Vec<Named> = set
        .ids()
        .map(|id| {
            let name = set.name(id);
            by_task
                .remove(name.as_str())
                .unwrap_or_else(|| Named::comm(&name))
        })
        .collect();
    for (index, name) in names.iter().enumerate() {
        if let Some(first) = names[..index].iter().position(|n| n == name) {
            let of = |place: usize| set.name(model::TaskId(place as u32));
            return Err(Error::new(format!(
                "tasks `{}` and `{}` would be the same thread",
                of(first),
                of(index)
            ))
            .at("--thread")
            .remedy("say which threads they are: the kernel keeps 15 bytes of a name"));
        }
    }
    Ok(names)
}

fn check_processors(schedule: &Schedule, platform: &Platform) -> Result<()> {
    let usable = platform.usable();
    let tasks_on = schedule.events.iter().filter_map(::trace::Event::cpu);
    match tasks_on.filter(|cpu| !usable.contains(*cpu)).min() {
        None => Ok(()),
        Some(CpuId(cpu)) => Err(Error::new(format!(
            "there are events of processor {cpu}, and the platform `{}` can use {usable}",
            platform.name
        ))
        .remedy("say on which machine it was recorded: `-m` or `--platform`")),
    }
}

fn header(
    tasks: &Tasks,
    options: &Options,
    schedule: &Schedule,
    platform: Platform,
) -> Result<Header> {
    let scheduling = &options.scheduling;
    let policy = scheduling.policy();
    let set = &schedule.set;
    let assignment = scheduling.assignment(0, policy, set, &platform, &tasks.place)?;
    let mut provenance = provenance(&options.command);
    let source = options.file.display().to_string();
    provenance
        .settings
        .insert("imported from".to_owned(), source);
    Ok(Header {
        origin: Origin::Real,
        stages: vec![scheduling.stage(policy, assignment)?],
        releases: match options.released {
            Released::WakeUps => Releases::Given,
            Released::Periodic => Releases::Periodic,
        },
        enforcement: Some(Enforcement::Off),
        charges: None,
        release_on: Vec::new(),
        tasks: set.clone(),
        platform,
        provenance,
    })
}

impl Imported {
    /// The same for people.
    pub fn text(&self) -> String {
        let tasks: Vec<String> = self
            .tasks
            .iter()
            .map(|seen| format!("{} {}", seen.task, seen.jobs))
            .collect();
        let mut text = format!(
            "{} events in {}; jobs: {}\n",
            self.events,
            self.trace,
            tasks.join(", ")
        );
        if self.lost_events > 0 {
            text.push_str(&format!(
                "{} events were lost when it was recorded: what follows them cannot be checked\n",
                self.lost_events
            ));
        }
        for note in &self.notes {
            text.push_str(&format!("note: {note}\n"));
        }
        text
    }
}
