//! Task sets of SimSo: its simulation files (XML), in and out.
//!
//! Format: what SimSo 0.8 reads and writes (`simso/configuration/parser.py`,
//! `GenerateConfiguration.py`). Times of tasks are decimal numbers of milliseconds; `duration` is in
//! cycles, of which `cycles_per_ms` make a millisecond. A `Periodic` or `Sporadic` task becomes a
//! task; an `APeriodic` one has no period and is named. What belongs to a simulation and not to a
//! task set (scheduler, processors, overheads, caches, distributions of execution times) is named,
//! too.

use crate::error::{Error, Result};
use crate::imported::{Imported, left_out};
use crate::task::{Details, TaskSet, Timing, check_timing};
use crate::time::Duration;
use crate::xml::{self, escaped};
use roxmltree::Node;
use std::fmt::Write;

/// The element that a file of SimSo has all others in.
pub const ROOT: &str = "simulation";

/// SimSo's schedulers that are policies here.
const SCHEDULERS: [(&str, &str); 7] = [
    ("simso.schedulers.EDF", "g-edf"),
    ("simso.schedulers.EDF_mono", "g-edf"),
    ("simso.schedulers.FP", "g-fp"),
    ("simso.schedulers.RM", "g-fp:rm"),
    ("simso.schedulers.P_EDF", "p-edf"),
    ("simso.schedulers.P_RM", "p-rm"),
    ("simso.schedulers.PD2", "pd2"),
];

/// Reads a simulation file of SimSo.
///
/// # Errors
/// No such file; a task whose times are none, with its line; no task that has a period.
pub fn from_simso(text: &str) -> Result<Imported> {
    let document = xml::parse(text, "SimSo")?;
    let root = document.root_element();
    if !root.has_tag_name(ROOT) {
        return Err(Error::new(format!(
            "the outermost element is `{}`",
            root.tag_name().name()
        ))
        .remedy("files of SimSo begin with `simulation`"));
    }
    let tasks = xml::child(root, "tasks").ok_or_else(|| {
        Error::new("there is no element `tasks`").remedy("give a simulation file of SimSo")
    })?;
    let (mut set, mut notes) = (Vec::new(), Vec::new());
    for node in xml::children(tasks, "task") {
        let name = node.attribute("name").unwrap_or_default();
        let number = set.len() + 1;
        let name = match name {
            "" => format!("T{number}"),
            name => name.to_owned(),
        };
        if let Some(task) = task(node, &name, &mut notes)
            .map_err(|e| e.at(format!("{}, task `{name}`", xml::place(node))))?
        {
            set.push(task);
        }
    }
    if set.is_empty() {
        let why = match notes.is_empty() {
            true => "there are no tasks".to_owned(),
            false => notes.join("; "),
        };
        return Err(Error::new(format!("no task has a period: {why}"))
            .remedy("give a file with tasks of type `Periodic` or `Sporadic`"));
    }
    let mut all = Vec::new();
    surroundings(root, &mut all);
    all.append(&mut notes);
    Ok(Imported {
        set: TaskSet::new(set)?,
        notes: all,
    })
}

/// Names what a file says besides tasks.
fn surroundings(root: Node<'_, '_>, notes: &mut Vec<String>) {
    let mut note = |node: Node<'_, '_>, text: String| {
        notes.push(format!("{}: {text}", xml::place(node)));
    };
    let processors = xml::child(root, "processors");
    let count = processors.map_or(0, |p| xml::children(p, "processor").count());
    if let Some(sched) = xml::child(root, "sched") {
        let class = sched.attribute("class").unwrap_or_default();
        let class = match class {
            "" => sched.attribute("className").unwrap_or_default(),
            class => class,
        };
        let known = SCHEDULERS.iter().find(|(name, _)| *name == class);
        note(
            sched,
            match known {
                Some((_, policy)) => format!(
                    "the scheduler `{class}` on {count} processors is no part of a task set: say `--policy {policy} -m {count}`"
                ),
                None => {
                    format!("the scheduler `{class}` is no part of a task set, and no policy here")
                }
            },
        );
        costs(
            sched,
            &["overhead", "overhead_activate", "overhead_terminate"],
            &mut note,
        );
    }
    if let Some(etm) = root.attribute("etm").filter(|etm| *etm != "wcet") {
        note(
            root,
            format!("jobs execute by the model `{etm}` there; here for their WCET"),
        );
    }
    for processor in processors
        .into_iter()
        .flat_map(|p| xml::children(p, "processor"))
    {
        costs(processor, &["cs_overhead", "cl_overhead"], &mut note);
        if processor
            .attribute("speed")
            .is_some_and(|speed| speed.parse() != Ok(1.0))
        {
            note(
                processor,
                "a processor with a speed of its own is not modeled: WCETs are taken as they are"
                    .to_owned(),
            );
        }
    }
    if let Some(processors) = processors {
        costs(processors, &["migration_overhead"], &mut note);
    }
}

/// Names the attributes that charge something.
fn costs(node: Node<'_, '_>, keys: &[&str], note: &mut impl FnMut(Node<'_, '_>, String)) {
    for key in keys {
        let value = node.attribute(*key).unwrap_or("0");
        if value.parse() != Ok(0.0) {
            note(
                node,
                format!("`{key}` of {value} cycles is left out: costs stand in profiles here"),
            );
        }
    }
}

/// A task of the file; none: it has no period.
fn task(
    node: Node<'_, '_>,
    name: &str,
    notes: &mut Vec<String>,
) -> Result<Option<(Timing, Details)>> {
    let mut note = |text: String| {
        notes.push(format!("{}: task `{name}` {text}", xml::place(node)));
    };
    let periodic = match (node.attribute("task_type"), node.attribute("periodic")) {
        (Some("Periodic"), _) => true,
        (Some("Sporadic"), _) => false,
        (Some("APeriodic"), _) | (None, Some("no")) => {
            note("is left out: it has no period".to_owned());
            return Ok(None);
        }
        (None, _) => true,
        (Some(other), _) => {
            return Err(Error::new(format!("`{other}` is no type of tasks"))
                .at("`task_type`")
                .remedy("SimSo knows `Periodic`, `APeriodic` and `Sporadic`"));
        }
    };
    let wcet = need(node, "WCET")?;
    let (period, deadline) = (need(node, "period")?, need(node, "deadline")?);
    let phase = match node.attribute("activationDate") {
        Some(text) if periodic => millis(text).map_err(|e| e.at("`activationDate`"))?,
        _ => Millis::default(),
    };
    if [wcet, period, deadline, phase].iter().any(|time| time.cut) {
        note("has times finer than a nanosecond: its WCET is rounded up, all else down".to_owned());
    }
    let timing = Timing {
        wcet: wcet.up(),
        period: period.down,
        deadline: deadline.down,
    };
    check_timing(&timing)?;
    let is_given = |key: &str| node.attribute(key).is_some_and(|value| !value.is_empty());
    if is_given("list_activation_dates") {
        note("is released at given dates there, which are left out".to_owned());
    }
    if node.attribute("abort_on_miss") != Some("no") {
        note("loses a job at its deadline there (`abort_on_miss`); here it goes on".to_owned());
    }
    if is_given("followed_by") {
        note("is followed by another one there, which is not modeled".to_owned());
    }
    let priority = match node.attribute("priority") {
        None => None,
        Some(text) => Some(text.parse().map_err(|_| {
            Error::new(format!("`{text}` is no priority"))
                .at("`priority`")
                .remedy(format!("give a whole number from 0 to {}", u32::MAX))
        })?),
    };
    let details = Details {
        phase: phase.down,
        priority,
        ..Details::named(name)
    };
    Ok(Some((timing, details)))
}

/// Milliseconds of an attribute that has to be there.
fn need(node: Node<'_, '_>, key: &str) -> Result<Millis> {
    let text = node.attribute(key).ok_or_else(|| {
        Error::new(format!("`{key}` is missing")).remedy("give it in milliseconds")
    })?;
    millis(text).map_err(|e| e.at(format!("`{key}`")))
}

/// Decimal milliseconds as whole nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Millis {
    down: Duration,
    /// Whether something was cut off.
    cut: bool,
}

impl Millis {
    fn up(self) -> Duration {
        match self.cut {
            true => self.down.saturating_add(Duration::from_nanos(1)),
            false => self.down,
        }
    }
}

/// Reads a decimal number of milliseconds exactly, with or without an exponent, as Python writes
/// floating-point numbers.
fn millis(text: &str) -> Result<Millis> {
    let bad = || {
        Error::new(format!("`{text}` is no number of milliseconds"))
            .remedy("give a decimal number of at least zero, such as `2.5`")
    };
    let text = text.trim();
    let (number, exponent) = match text.split_once(['e', 'E']) {
        Some((number, exponent)) => (number, exponent.parse::<i32>().map_err(|_| bad())?),
        None => (text, 0),
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, ""));
    let digits = format!("{whole}{fraction}");
    if digits.is_empty() || digits.len() > 400 || !digits.bytes().all(|b| b.is_ascii_digit()) {
        return Err(bad());
    }
    // A millisecond has 10^6 nanoseconds. Beyond some hundred places there is nothing to be exact of.
    let shift = exponent.clamp(-1000, 1000) + 6 - fraction.len() as i32;
    let digits = digits.trim_start_matches('0');
    let (kept, lost) = match shift {
        0.. => (digits.to_owned(), ""),
        _ => {
            let keep = digits.len().saturating_sub(shift.unsigned_abs() as usize);
            (digits[..keep].to_owned(), &digits[keep..])
        }
    };
    let kept = match (kept.is_empty(), shift) {
        (false, 0..=20) => kept + &"0".repeat(shift as usize),
        (false, 21..) => return Err(bad()),
        _ => kept,
    };
    let ns = match kept.is_empty() {
        true => 0,
        false => kept.parse().map_err(|_| bad())?,
    };
    Ok(Millis {
        down: Duration::from_nanos(ns),
        cut: lost.bytes().any(|b| b != b'0'),
    })
}

/// Nanoseconds as a decimal number of milliseconds, exactly.
fn in_millis(time: Duration) -> String {
    let (whole, rest) = (time.nanos() / 1_000_000, time.nanos() % 1_000_000);
    let text = format!("{whole}.{rest:06}");
    let text = text.trim_end_matches('0');
    match text.ends_with('.') {
        true => format!("{text}0"),
        false => text.to_owned(),
    }
}

/// The names that SimSo accepts (`Configuration.check_tasks`).
fn is_name(name: &str) -> bool {
    name.starts_with(|c: char| c.is_ascii_alphabetic())
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '-'))
}

/// Writes a simulation file of SimSo: the tasks under EDF (under FP, where they have priorities) on
/// `processors` identical processors for `duration`, without overheads. What has no place there is
/// named in the notes.
///
/// # Errors
/// A name that SimSo refuses.
pub fn to_simso(
    set: &TaskSet,
    duration: Duration,
    processors: u32,
) -> Result<(String, Vec<String>)> {
    let (mut tasks, mut notes) = (String::new(), Vec::new());
    for id in set.ids() {
        let (timing, name) = (set.timings()[id.index()], set.name(id));
        if !is_name(&name) {
            return Err(Error::new(format!("SimSo refuses the name `{name}`"))
                .at(format!("task {}", id.0 + 1))
                .remedy("rename it: a letter, then letters, digits, spaces, `_` and `-`"));
        }
        let details = set.details(id);
        let phase = details.map_or(Duration::ZERO, |d| d.phase);
        let priority = match set.has_priorities() {
            // Tasks without a priority come last.
            true => format!(
                " priority=\"{}\"",
                details.and_then(|d| d.priority).unwrap_or(0)
            ),
            false => String::new(),
        };
        // Writing into a string cannot fail.
        let _ = writeln!(
            tasks,
            "    <task name=\"{}\" id=\"{}\" task_type=\"Periodic\" abort_on_miss=\"no\" period=\"{}\" activationDate=\"{}\" list_activation_dates=\"\" deadline=\"{}\" base_cpi=\"1.0\" instructions=\"0\" mix=\"0.5\" WCET=\"{}\" ACET=\"0\" preemption_cost=\"0\" et_stddev=\"0\"{priority}/>",
            escaped(&name),
            id.0 + 1,
            in_millis(timing.period),
            in_millis(phase),
            in_millis(timing.deadline),
            in_millis(timing.wcet),
        );
        notes.extend(details.and_then(|d| left_out(d, "SimSo", &["priority"])));
    }
    if !set.best_effort().is_empty() {
        notes.push("best-effort work is left out: it has no times".to_owned());
    }
    let (class, field) = match set.has_priorities() {
        true => (
            "simso.schedulers.FP",
            "    <field name=\"priority\" type=\"int\"/>\n",
        ),
        false => ("simso.schedulers.EDF", ""),
    };
    let cpus: String = (1..=processors)
        .map(|cpu| {
            format!(
                "    <processor name=\"CPU {cpu}\" id=\"{cpu}\" cl_overhead=\"0\" cs_overhead=\"0\" speed=\"1.0\"/>\n"
            )
        })
        .collect();
    let text = format!(
        "<?xml version=\"1.0\" ?>\n<simulation duration=\"{}\" cycles_per_ms=\"1000000\" etm=\"wcet\">\n  <sched overhead=\"0\" overhead_activate=\"0\" overhead_terminate=\"0\" class=\"{class}\"/>\n  <caches memory_access_time=\"100\"/>\n  <processors>\n{cpus}  </processors>\n  <tasks>\n{field}{tasks}  </tasks>\n</simulation>\n",
        duration.nanos(),
    );
    Ok((text, notes))
}

#[cfg(test)]
mod tests;
