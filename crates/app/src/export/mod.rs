//! A plan for systems that schedule by themselves: `chrt` and `taskset` lines, units of systemd,
//! SCHED_DEADLINE, and workloads of rt-app.
//!
//! Linux then makes the decisions, so only policies that one of its classes follows can be
//! exported: fixed priorities by SCHED_FIFO, and EDF within processors or clusters by
//! SCHED_DEADLINE. For all others an error says in one sentence what Linux lacks.

mod carried;
mod chrt;
mod deadline;
mod shell;
mod systemd;
#[cfg(test)]
mod tests;

use crate::Tasks;
use crate::planned::PlanFile;
use carried::{Carried, Class};
use model::{Details, Duration, Error, Result, TaskSet, files, rtapp};
use policy::Spec;
use std::path::{Path, PathBuf};
use std::str::FromStr;

/// What a plan becomes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Format {
    /// A shell script with `taskset` and `chrt` lines: SCHED_FIFO.
    Chrt,
    /// Units of systemd: SCHED_FIFO.
    Systemd,
    /// A shell script with the parameters of SCHED_DEADLINE and its cpusets.
    SchedDeadline,
    /// A workload of rt-app: SCHED_FIFO, or SCHED_DEADLINE on all processors.
    RtApp,
}

impl Format {
    /// All of them.
    pub const ALL: [Format; 4] = [
        Format::Chrt,
        Format::Systemd,
        Format::SchedDeadline,
        Format::RtApp,
    ];

    /// As it is written.
    pub const fn name(self) -> &'static str {
        match self {
            Format::Chrt => "chrt",
            Format::Systemd => "systemd",
            Format::SchedDeadline => "sched-deadline",
            Format::RtApp => "rt-app",
        }
    }

    /// What it is, in a line of help.
    pub const fn meaning(self) -> &'static str {
        match self {
            Format::Chrt => "a script with taskset and chrt lines: fixed priorities",
            Format::Systemd => "units of systemd, in a directory: fixed priorities",
            Format::SchedDeadline => "a script with SCHED_DEADLINE and cpusets: EDF",
            Format::RtApp => "a workload of rt-app: fixed priorities, or global EDF",
        }
    }
}

impl FromStr for Format {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let found = Format::ALL.into_iter().find(|f| f.name() == text);
        found.ok_or_else(|| {
            Error::new(format!("`{text}` is no format")).remedy(format!(
                "choose among {}",
                Format::ALL.map(Format::name).join(", ")
            ))
        })
    }
}

/// How a plan is exported.
#[derive(Clone, Debug)]
pub struct Options {
    /// Into what.
    pub to: Format,
    /// The plan, as `advise -o` writes it.
    pub plan: PathBuf,
    /// Of SCHED_DEADLINE: so many percent of its WCET a job has as budget on top of it.
    pub reserve: u32,
    /// For rt-app: how long it shall run.
    pub duration: Duration,
}

/// A file of an export.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct File {
    /// Its name, with directories below that of the export.
    pub name: String,
    /// What is in it.
    pub text: String,
}

/// A plan in another form.
#[derive(Clone, Debug)]
pub struct Exported {
    /// The files: one, but for systemd.
    pub files: Vec<File>,
    /// What the other form does not say, and what it takes for granted.
    pub notes: Vec<String>,
}

/// Writes a plan in another form.
///
/// # Errors
/// The file is no plan of these tasks; its policy, or a task, is none that Linux can schedule so.
pub fn export(tasks: &Tasks, options: &Options) -> Result<Exported> {
    let plan = PlanFile::read(&options.plan)?;
    let tasks = plan.tasks(tasks.clone())?;
    let policy: Spec = plan.policy()?.parse()?;
    let assignment = plan.assignment(&tasks.set)?;
    let carried = carried::carried(&tasks.set, &policy, &assignment);
    let carried = carried.map_err(|e| e.at(options.plan.display()))?;
    let mut exported = match (options.to, carried.class) {
        (Format::Chrt, Class::Fixed) => chrt::script(&carried),
        (Format::Systemd, Class::Fixed) => systemd::units(&carried)?,
        (Format::SchedDeadline, Class::Deadline) => deadline::script(&carried, options.reserve)?,
        (Format::RtApp, _) => rt_app(&carried, options.duration)?,
        (Format::Chrt | Format::Systemd, Class::Deadline) => {
            return Err(Error::new(format!(
                "fixed priorities do not have the order of {policy}, which is by deadlines"
            ))
            .at("--to")
            .remedy("`--to sched-deadline` has it; or plan with `warmset advise --policy p-rm`"));
        }
        (Format::SchedDeadline, Class::Fixed) => {
            return Err(Error::new(format!(
                "SCHED_DEADLINE orders jobs by deadlines, and {policy} has fixed priorities"
            ))
            .at("--to")
            .remedy("use `--to chrt` or `--to systemd`"));
        }
    };
    let colored = tasks.set.ids().any(|id| {
        let details = tasks.set.details(id);
        details.is_some_and(|d| d.colors.is_some() && d.wcets.is_some())
    });
    if colored {
        exported.notes.push(
            "the WCETs are those with the colors of the plan, which are no part of this: start the \
             programs in them (`warmset color exec --colors`)"
                .to_owned(),
        );
    }
    exported.notes.insert(
        0,
        "Linux makes the decisions then: the verdict holds as far as these cost no more than what \
         the plan was charged"
            .to_owned(),
    );
    Ok(exported)
}

/// Writes the files of an export: one to this path, several into a directory of this name.
///
/// # Errors
/// They cannot be written.
pub fn write(exported: &Exported, to: Format, path: &Path) -> Result<()> {
    match (to, exported.files.as_slice()) {
        (Format::Systemd, many) => {
            for file in many {
                let path = path.join(&file.name);
                if let Some(dir) = path.parent() {
                    files::make_dir(dir)?;
                }
                files::write(&path, &file.text)?;
            }
            Ok(())
        }
        (_, all) => all
            .iter()
            .try_for_each(|file| files::write(path, &file.text)),
    }
}

/// The tasks as threads of rt-app.
fn rt_app(carried: &Carried<'_>, duration: Duration) -> Result<Exported> {
    if carried.class == Class::Deadline && carried.places.len() > 1 {
        return Err(Error::new(
            "rt-app makes no cpusets, and the kernel refuses SCHED_DEADLINE to threads that are \
             kept to some processors without one",
        )
        .at("--to")
        .remedy("use `--to sched-deadline`"));
    }
    let set = carried.set;
    let details = set.ids().map(|id| {
        let task = &carried.tasks[id.index()];
        let given = set.details(id).cloned();
        let given = given.unwrap_or_else(|| Details::named(set.name(id)));
        Details {
            priority: task.priority,
            cpus: (carried.class == Class::Fixed).then(|| task.cpus.clone()),
            ..given
        }
    });
    let placed = TaskSet::to_judge(set.timings().to_vec())?.with_details(details.collect())?;
    let (text, notes) = rtapp::to_rt_app(&placed, duration)?;
    Ok(Exported {
        files: vec![File {
            name: "workload.json".to_owned(),
            text,
        }],
        notes,
    })
}
