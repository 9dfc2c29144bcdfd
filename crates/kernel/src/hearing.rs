//! The thread that hears what releases the jobs of sporadic tasks ([`execute::trigger::ear`]), and
//! asks the program in the kernel to release them. It runs above all jobs.

use crate::above;
use crate::intf::{ASKED_DEFERRED, ASKED_EVENTS, ASKED_PENDING};
use crate::loaded::{Asking, Loaded};
use crate::outcome::Settings;
use crate::worker::Shared;
use execute::Triggered;
use execute::trigger::ear::{self, Bell, Hears};
use model::{Duration, Error, Result, TaskId, TaskSet};
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// What the thread that listens and the one that takes the events share.
pub(crate) struct Hearing<'a> {
    asking: Asking<'a>,
    shared: &'a Shared,
    set: &'a TaskSet,
    /// By task: nothing asks for its releases any more.
    ended: Vec<AtomicBool>,
    failed: OnceLock<Error>,
}

/// Does `course` while a thread hears the triggers of a run, if it has some. Returns what came of
/// them, too.
///
/// # Errors
/// No thread or no descriptor can be had; as `course`.
pub(crate) fn while_hearing<T>(
    loaded: &Loaded<'_>,
    set: &TaskSet,
    settings: &Settings,
    shared: &Shared,
    course: impl FnOnce(Option<&Hearing<'_>>) -> Result<T>,
) -> Result<(T, Vec<Triggered>)> {
    let triggers = &settings.triggers;
    if triggers.is_empty() {
        return Ok((course(None)?, Vec::new()));
    }
    let cannot = |e: io::Error| Error::new(format!("cannot listen for triggers: {e}"));
    let hearing = Hearing {
        asking: loaded.asking()?,
        shared,
        set,
        ended: set.ids().map(|_| AtomicBool::new(false)).collect(),
        failed: OnceLock::new(),
    };
    let periods: Vec<Duration> = set.timings().iter().map(|timing| timing.period).collect();
    let bell = Bell::new().map_err(cannot)?;
    let done = std::thread::scope(|scope| {
        let listen = || {
            above::listens();
            triggers.listen(&periods, &bell, &hearing);
        };
        let thread = std::thread::Builder::new()
            .name("listener".to_owned())
            .stack_size(256 << 10);
        thread.spawn_scoped(scope, listen).map_err(cannot)?;
        let done = course(Some(&hearing));
        bell.ring();
        done
    })?;
    Ok((done, hearing.triggered()))
}

impl Hearing<'_> {
    fn triggered_tasks(&self) -> impl Iterator<Item = TaskId> + '_ {
        let is = |task: &TaskId| self.set.details(*task).is_some_and(|d| d.trigger.is_some());
        self.set.ids().filter(is)
    }

    /// Why the run cannot go on, if so.
    pub fn failure(&self) -> Option<Error> {
        let behind = |task: &TaskId| self.asking.is_overrun(*task);
        let behind = self.triggered_tasks().find(behind);
        let behind = behind.map(|task| ear::too_far_behind(&self.set.name(task)));
        self.failed.get().cloned().or(behind)
    }

    fn triggered(&self) -> Vec<Triggered> {
        let of = |task: TaskId| Triggered {
            task,
            events: self.asking.word(task, ASKED_EVENTS),
            deferred: self.asking.word(task, ASKED_DEFERRED),
            left: self.asking.word(task, ASKED_PENDING),
            ended: self.ended[task.index()].load(Ordering::Relaxed),
        };
        self.triggered_tasks().map(of).collect()
    }
}

impl Hears for Hearing<'_> {
    fn asks(&self, task: TaskId, count: u64) {
        if let Err(e) = self.asking.ask(task, count) {
            let _ = self.failed.set(e);
        }
    }

    fn ended(&self, task: TaskId) {
        self.ended[task.index()].store(true, Ordering::Relaxed);
    }

    fn fails(&self, task: TaskId, error: &io::Error) {
        let _ = self
            .failed
            .set(ear::unreadable(&self.set.name(task), error));
    }

    fn is_over(&self) -> bool {
        self.shared.stop.load(Ordering::Acquire)
    }
}
