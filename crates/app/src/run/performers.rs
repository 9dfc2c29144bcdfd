//! Who does the jobs of the tasks of a run: threads whose work is calibrated now, or programs.

use super::colors::Prepared;
use execute::{Effort, Efforts, JoinSocket, Launch, Manner, Performer, Rights};
use machine::user::User;
use model::watch::Watch;
use model::{Details, Duration, Error, Ratio, Result, TaskId, TaskSet, Timing, Workload, files};
use std::path::Path;
use std::sync::Arc;
use workload::{Calibrated, CountBy, Until};

/// The workload of each task, with its name.
pub type Workloads = Vec<(String, Calibrated)>;

/// One for each task, in their order. `part`: of the WCET, that built-in work takes, `until` when,
/// and by what the misses of its jobs are counted, if they are (`counted`); `programs_to`: the
/// directory that programs write into, one file a task, instead of standard error; `colored`: the
/// memory of working sets that have colors; `door`: where those come in that join from outside;
/// `rights`: of programs of which the set says nothing else.
///
/// # Errors
/// Programs where misses are counted; a workload that cannot be made, a file that cannot be
/// written, or the user does not want any more.
pub fn performers(
    set: &TaskSet,
    (part, until, counted): (Ratio, Until, Option<CountBy>),
    programs_to: Option<&Path>,
    colored: Option<&Prepared>,
    door: Option<&Arc<JoinSocket>>,
    rights: &Rights,
    watch: &dyn Watch,
) -> Result<(Vec<Performer>, Workloads)> {
    if let Some(dir) = programs_to {
        files::make_dir(dir).map_err(|e| e.remedy(OTHER_DIRECTORY))?;
    }
    watch.begin("calibrating workloads", set.len() as u64);
    let mut performers = Vec::with_capacity(set.len());
    let mut calibrated = Workloads::new();
    for task in set.ids() {
        if counted.is_some() && is_program(set, task) {
            return Err(Error::new(
                "how often a program misses the shared cache is not counted: only threads of this \
                 process are",
            )
            .at(format!("task {}", set.name(task)))
            .remedy(
                "give `wss` in the tasks and leave `wss=profiled` out (`warmset measure wss`)",
            ));
        }
        performers.push(match program(set, task, programs_to, rights)? {
            Some(launch) => Performer::Program(launch),
            None if is_outside(set, task) => match door {
                Some(door) => Performer::Outside(Arc::clone(door)),
                None => {
                    return Err(Error::new("it joins from outside, and there is no way in")
                        .at(format!("task {}", set.name(task)))
                        .remedy("give a path with `--socket`"));
                }
            },
            None => {
                let wcet = u128::from(set.timings()[task.index()].wcet.nanos());
                let ns = wcet * u128::from(part.num()) / u128::from(part.den());
                let length = Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX));
                let store = colored.and_then(|c| c.store(set, task));
                let seed = u64::from(task.0) + 1;
                let (work, how) = match counted {
                    None => workload::make_in(set, task, length, until, seed, store)?,
                    Some(by) => workload::make_counted(set, task, length, until, seed, store, by)?,
                };
                calibrated.push((set.name(task), how));
                work.into()
            }
        });
        watch.advance(1);
        if watch.stopped() {
            return Err(Error::new("stopped before the run began"));
        }
    }
    Ok((performers, calibrated))
}

/// What fills the time that tasks leave, and how many units of its workload a round of each is, 0
/// for a program. `rights`: of programs of which the set says nothing else.
///
/// # Errors
/// A workload that cannot be made.
pub fn best_effort(set: &TaskSet, rights: &Rights) -> Result<(Efforts, Vec<(String, u64)>)> {
    let (mut efforts, mut units) = (Vec::new(), Vec::new());
    for (index, work) in set.best_effort().iter().enumerate() {
        let (effort, count) = match &work.workload {
            Workload::Exec {
                command,
                rights: own,
                ..
            } => {
                let rights = rights_of(own, rights)
                    .map_err(|e| e.at(format!("best effort {}", work.name)))?;
                let command = command.clone();
                (Effort::Program { command, rights }, 0)
            }
            workload => {
                let details = Details {
                    wss: work.wss,
                    workload: Some(workload.clone()),
                    ..Details::named(&work.name)
                };
                let timing = Timing::implicit(ROUND, Duration::from_secs(1));
                let alone = TaskSet::new(vec![(timing, details)])?;
                let seed = u64::MAX - index as u64;
                let (made, calibrated) = workload::make(&alone, TaskId(0), ROUND, seed)?;
                (Effort::Work(made), calibrated.count)
            }
        };
        efforts.push((work.name.clone(), effort));
        units.push((work.name.clone(), count));
    }
    Ok((Efforts::new(efforts), units))
}

/// How long a round of best-effort work lasts.
const ROUND: Duration = Duration::from_millis(1);

/// What a task file says of the rights of a program, or what is said for all of them.
fn rights_of(own: &model::Rights, all: &Rights) -> Result<Rights> {
    Ok(match own {
        model::Rights::Unsaid => all.clone(),
        model::Rights::Drop => Rights::Dropped,
        model::Rights::Keep => Rights::Kept,
        model::Rights::User(name) => Rights::Of(User::find(name)?),
    })
}

/// Does a program do its jobs, whoever starts it?
fn is_program(set: &TaskSet, task: TaskId) -> bool {
    let workload = set.details(task).and_then(|d| d.workload.as_ref());
    matches!(
        workload,
        Some(Workload::Exec { .. } | Workload::Program { .. } | Workload::Join)
    )
}

fn is_outside(set: &TaskSet, task: TaskId) -> bool {
    set.details(task)
        .is_some_and(|d| d.workload == Some(Workload::Join))
}

/// The program of a task, if it has one.
fn program(
    set: &TaskSet,
    task: TaskId,
    programs_to: Option<&Path>,
    rights: &Rights,
) -> Result<Option<Launch>> {
    let workload = set.details(task).and_then(|d| d.workload.as_ref());
    let (command, manner, own) = match workload {
        Some(Workload::Exec {
            command,
            beyond_budget,
            rights,
        }) => (command, Manner::Unmodified(*beyond_budget), rights),
        Some(Workload::Program { command, rights }) => (command, Manner::Written, rights),
        _ => return Ok(None),
    };
    let output = programs_to.map(|dir| {
        // A name may hold what a file's may not.
        let name = set.name(task).replace(['/', '\0'], "_");
        let path = dir.join(format!("{name}.log"));
        files::begin(&path).map_err(|e| e.remedy(OTHER_DIRECTORY))
    });
    Ok(Some(Launch {
        command: command.clone(),
        manner,
        rights: rights_of(own, rights).map_err(|e| e.at(format!("task {}", set.name(task))))?,
        output: output.transpose()?,
    }))
}

const OTHER_DIRECTORY: &str = "give another directory to `--programs-to`";
