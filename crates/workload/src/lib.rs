//! What a job does: compute ([`spin`]), walk a working set ([`walk`]), or what the tasks of 001 §5
//! compute ([`computation`]); calibrated on the spot ([`calibrate`]). The latter are [`filter`],
//! [`cosine`], [`fourier`], [`matrix`], each in memory that the caller gives, or over a recorder that tells what it touches
//! ([`memory`]).
//!
//! A workload is made of equal units. Calibration finds how long a unit takes here and now, so that
//! a job of so many units lasts as long as its task says.

#![forbid(unsafe_code)]

pub mod calibrate;
pub mod computation;
pub mod cosine;
pub mod counted;
pub mod filter;
pub mod fourier;
pub mod matrix;
pub mod memory;
pub mod spin;
pub mod walk;

pub use calibrate::Calibration;
pub use counted::{CountBy, Source};

use machine::counter::Counter;
use machine::touched::{Apart, OwnPages};
use model::{Bytes, Duration, Error, Result, TaskId, TaskSet, Workload};
use std::sync::atomic::{AtomicBool, Ordering};

/// An access of a workload to its memory: what a model of caches is told of it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Touch {
    /// Bytes from the beginning of the memory.
    pub offset: u64,
    /// How many bytes.
    pub bytes: u32,
    /// Does it write?
    pub write: bool,
}

/// What the jobs of one task do, one after the other.
pub trait Work: Send {
    /// Does the work of job `number` (from 0). Comes back early, the work undone, soon after `stop`
    /// was set.
    fn job(&mut self, number: u64, stop: &AtomicBool);

    /// Are misses of its jobs counted?
    fn counts_misses(&self) -> bool {
        false
    }

    /// How often its latest job missed the shared cache; `None`: that is not known.
    fn misses(&self) -> Option<u64> {
        None
    }
}

/// Work that is made of equal units.
pub trait Units: Send {
    /// Does so many units, or fewer where `stop` is set.
    fn units(&mut self, count: u64, stop: &AtomicBool);
}

/// A job of a fixed number of units.
pub struct Repeated<U> {
    units: U,
    count: u64,
}

impl<U> Repeated<U> {
    /// Jobs of so many units each.
    pub fn new(units: U, count: u64) -> Self {
        Repeated { units, count }
    }
}

impl<U: Units> Work for Repeated<U> {
    fn job(&mut self, _number: u64, stop: &AtomicBool) {
        self.units.units(self.count, stop);
    }
}

/// When a job of a calibrated workload ends.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Until {
    /// When it has done as much work as takes its length alone: what it loses to caches comes on
    /// top.
    #[default]
    Work,
    /// When its thread has executed for its length, by the thread's own clock: no job executes for
    /// longer, whatever it loses.
    Clock,
}

/// A job that ends when its thread has executed for so long.
pub struct Clocked<U> {
    units: U,
    /// So many units are done between two looks at the clock.
    step: u64,
    length: Duration,
}

/// About how long a step takes.
const STEP: Duration = Duration::from_micros(5);

impl<U: Units> Clocked<U> {
    /// Jobs of this length; `unit`: how long a unit takes.
    pub fn new(units: U, unit: &Calibration, length: Duration) -> Self {
        Clocked::looking_every(STEP, units, unit, length)
    }

    /// The same, with so much work between two looks at the clock: where a look is a good part of
    /// [`Clocked::new`]'s.
    pub fn looking_every(step: Duration, units: U, unit: &Calibration, length: Duration) -> Self {
        Clocked {
            units,
            step: unit.units_within(step),
            // The last step ends in time, and what the thread does around its job counts as well.
            length: length.saturating_sub(step).saturating_sub(step),
        }
    }
}

impl<U: Units> Work for Clocked<U> {
    fn job(&mut self, _number: u64, stop: &AtomicBool) {
        let end = machine::clock::thread_time().saturating_add(self.length);
        while machine::clock::thread_time() < end && !stop.load(Ordering::Relaxed) {
            self.units.units(self.step, stop);
        }
    }
}

/// What came of calibrating the workload of a task.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Calibrated {
    /// How long a unit takes.
    pub unit: Calibration,
    /// How many units a job has.
    pub count: u64,
    /// How long a job is meant to last.
    pub length: Duration,
}

/// Makes the work of a task and calibrates it to last for `length` a job. Takes about 30 ms of
/// processor time.
///
/// # Errors
/// The workload is none that is built in (a program), or needs a working set size that is not
/// given.
pub fn make(
    set: &TaskSet,
    task: TaskId,
    length: Duration,
    seed: u64,
) -> Result<(Box<dyn Work>, Calibrated)> {
    make_in(set, task, length, Until::Work, seed, None)
}

/// As [`make`], with another end of jobs, and with the working set of a walk in `store` where there is one: such as memory of the
/// task's colors.
///
/// # Errors
/// As [`make`]; the store is not as large as the working set.
pub fn make_in(
    set: &TaskSet,
    task: TaskId,
    length: Duration,
    until: Until,
    seed: u64,
    store: Option<Box<dyn walk::Store>>,
) -> Result<(Box<dyn Work>, Calibrated)> {
    let details = set.details(task);
    let workload = details
        .and_then(|d| d.workload.as_ref())
        .unwrap_or(&Workload::Spin);
    let refuse = |cause: &str, remedy: &str| {
        Err(Error::new(cause)
            .at(format!("task {}", set.name(task)))
            .remedy(remedy))
    };
    match workload {
        Workload::Spin => Ok(calibrated(spin::Spin::new(seed), length, until)),
        Workload::Walk {
            write_ratio,
            pattern,
        } => match (set.wss(task), store) {
            (Some(size), None) => Ok(calibrated(
                walk::Walk::new(size, *write_ratio, *pattern, seed),
                length,
                until,
            )),
            (Some(size), Some(mut store)) => match store.lines().len() as u64 {
                lines if lines == size.get().div_ceil(walk::LINE).max(1) => Ok(calibrated(
                    walk::Walk::over(store, *write_ratio, *pattern, seed),
                    length,
                    until,
                )),
                lines => refuse(
                    &format!("its working set of {size} is given memory of {lines} lines"),
                    "give it as much memory as its working set",
                ),
            },
            (None, _) => refuse(
                "a walk needs the size of its working set",
                "add `wss = \"256KiB\"`",
            ),
        },
        Workload::Compute(what) => computing(computation::Computing::new(*what)?, length, until)
            .map_err(|e| e.at(format!("task {}", set.name(task)))),
        Workload::Exec { .. } | Workload::Program { .. } | Workload::Join => refuse(
            "programs cannot be run as a workload within this process",
            "use `kind = \"spin\"` or `kind = \"walk\"`",
        ),
    }
}

/// Makes the work of a task as [`make_in`] does, whose jobs are counted. Where that is by the pages
/// that they touch, its memory lies in pages in which nothing else is.
///
/// # Errors
/// As [`make_in`]; colored memory whose touched pages are asked for; no such counter.
pub fn make_counted(
    set: &TaskSet,
    task: TaskId,
    length: Duration,
    until: Until,
    seed: u64,
    store: Option<Box<dyn walk::Store>>,
    by: CountBy,
) -> Result<(Box<dyn Work>, Calibrated)> {
    let counted = |(work, calibrated), source| {
        let work: Box<dyn Work> = Box::new(counted::Counted::new(work, source));
        (work, calibrated)
    };
    let place = || format!("task {}", set.name(task));
    let line = match by {
        CountBy::Counter(event) => {
            // Its thread opens one of its own; what cannot be is said now.
            Counter::start(event).map_err(|e| e.at(place()))?;
            let made = make_in(set, task, length, until, seed, store)?;
            return Ok(counted(made, Source::Counter(event)));
        }
        CountBy::Pages { line } => line,
    };
    if store.is_some() {
        return Err(Error::new(
            "which pages a job touches is not known of memory in colors, which the memory server \
             has, too",
        )
        .at(place())
        .remedy("leave the colors out, or run it where the processor counts misses"));
    }
    let no_memory =
        |e: std::io::Error| Error::new(format!("its working set cannot be had: {e}")).at(place());
    let workload = set.details(task).and_then(|d| d.workload.as_ref());
    match (workload, set.wss(task)) {
        (Some(Workload::Walk { .. }), Some(size)) => {
            let lines = size.get().div_ceil(walk::LINE).max(1);
            let lines = usize::try_from(lines).unwrap_or(usize::MAX);
            let memory = Apart::new(lines, walk::Line::default()).map_err(no_memory)?;
            let pages = OwnPages::new(memory.addresses());
            let made = make_in(set, task, length, until, seed, Some(Box::new(memory)))?;
            Ok(counted(made, Source::Pages { pages, line }))
        }
        (Some(Workload::Compute(what)), _) => {
            let memory = Apart::new(computation::doubles(*what), 1.0).map_err(no_memory)?;
            let pages = OwnPages::new(memory.addresses());
            let units = computation::Computing::over(*what, memory)?;
            let made = computing(units, length, until).map_err(|e| e.at(place()))?;
            Ok(counted(made, Source::Pages { pages, line }))
        }
        _ => {
            let made = make_in(set, task, length, until, seed, None)?;
            Ok(counted(made, Source::Nothing))
        }
    }
}

/// Work that computes.
fn computing<U: Units + 'static>(
    units: U,
    length: Duration,
    until: Until,
) -> Result<(Box<dyn Work>, Calibrated)> {
    let (work, calibrated) = calibrated(units, length, until);
    let unit = Duration::from_nanos(calibrated.unit.median_ps / 1000);
    match unit > length {
        false => Ok((work, calibrated)),
        true => Err(Error::new(format!(
            "one step of what it computes takes {unit}, and a job {length}"
        ))
        .remedy("give it a longer WCET, or fewer coefficients or points")),
    }
}

fn calibrated<U: Units + 'static>(
    mut units: U,
    length: Duration,
    until: Until,
) -> (Box<dyn Work>, Calibrated) {
    let unit = calibrate::calibrate(&mut units);
    let count = unit.units_within(length);
    let calibrated = Calibrated {
        unit,
        count,
        length,
    };
    let work: Box<dyn Work> = match until {
        Until::Work => Box::new(Repeated::new(units, count)),
        Until::Clock => Box::new(Clocked::new(units, &unit, length)),
    };
    (work, calibrated)
}

/// The first `words` of the memory that somebody gave.
fn room<'a, W>(memory: &'a mut [W], words: usize, who: &str) -> Result<&'a mut [W]> {
    let bytes = |words: usize| Bytes::new((words * size_of::<W>()) as u64);
    let given = memory.len();
    memory.get_mut(..words).ok_or_else(|| {
        Error::new(format!(
            "{who} needs {} of memory and is given {}",
            bytes(words),
            bytes(given)
        ))
        .remedy("make it smaller, or give it more")
    })
}

/// Transforms halve their points until one is left.
fn power_of_two(points: usize, who: &str) -> Result<()> {
    match points.is_power_of_two() {
        true => Ok(()),
        false => Err(Error::new(format!("{who} of {points} points")).remedy("give a power of two")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::taskfile;

    #[test]
    fn every_built_in_workload_is_made_and_the_others_are_refused() {
        let set = taskfile::from_toml(
            r#"
            [[task]]
            name = "a"
            wcet = "2ms"
            period = "10ms"
            [[task]]
            name = "b"
            wcet = "1ms"
            period = "10ms"
            wss = "64KiB"
            workload = { kind = "walk", write_ratio = 0.25, pattern = "chase" }
            [[task]]
            name = "c"
            wcet = "1ms"
            period = "10ms"
            workload = { kind = "walk" }
            [[task]]
            name = "d"
            wcet = "1ms"
            period = "10ms"
            workload = { exec = ["/bin/true"] }
            [[task]]
            name = "e"
            wcet = "1ms"
            period = "10ms"
            workload = { kind = "filter", coefficients = 64 }
            [[task]]
            name = "f"
            wcet = "1ms"
            period = "10ms"
            workload = { kind = "fourier", points = 65536 }
            "#,
        )
        .unwrap();
        let length = Duration::from_micros(100);
        for task in [TaskId(0), TaskId(1), TaskId(4)] {
            let (mut work, calibrated) = make(&set, task, length, 1).unwrap();
            assert!(calibrated.count > 0 && calibrated.unit.low_ps <= calibrated.unit.high_ps);
            work.job(0, &AtomicBool::new(false));
        }
        let store =
            |lines| Some(Box::new(vec![walk::Line::default(); lines]) as Box<dyn walk::Store>);
        let (mut work, _) = make_in(&set, TaskId(1), length, Until::Work, 1, store(1024)).unwrap();
        work.job(0, &AtomicBool::new(false));
        let e = make_in(&set, TaskId(1), length, Until::Work, 1, store(1000))
            .err()
            .unwrap()
            .to_string();
        assert!(
            e.contains("working set of 64KiB is given memory of 1000 lines"),
            "{e}"
        );
        for (task, cause) in [
            (TaskId(2), "needs the size"),
            (TaskId(3), "programs"),
            // No processor does 65536 points, of half a million butterflies, in so short a time.
            (TaskId(5), "one step of what it computes takes"),
        ] {
            let e = make(&set, task, length, 1).err().unwrap().to_string();
            assert!(e.contains(cause) && e.contains("task"), "{e}");
        }
    }
    #[test]
    fn a_job_by_the_clock_ends_when_its_thread_has_executed_for_so_long() {
        let set = TaskSet::from_timings(vec![model::Timing::implicit(
            Duration::from_millis(2),
            Duration::from_millis(10),
        )])
        .unwrap();
        let length = Duration::from_millis(2);
        let (mut work, _) = make_in(&set, TaskId(0), length, Until::Clock, 1, None).unwrap();
        let before = machine::clock::thread_time();
        work.job(0, &AtomicBool::new(false));
        let executed = machine::clock::thread_time().saturating_sub(before);
        // By the thread's own clock, which does not go on while others have the processor.
        assert!(
            executed >= length.saturating_sub(STEP.saturating_add(STEP)),
            "{executed}"
        );
        work.job(1, &AtomicBool::new(true));
    }
}
