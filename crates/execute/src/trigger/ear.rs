//! Waits for what releases the jobs of sporadic tasks, and tells the engine how many releases are
//! asked for: each engine has a thread that does so, and carries the releases out in its own way.
//!
//! The thread sleeps until a descriptor is readable. A descriptor that has more to say than a
//! period permits is left alone for half a period, so that a program that writes too much takes no
//! processor from jobs: the kernel keeps what is written until then.

use super::{Came, Source, Triggers};
use crate::kernel;
use model::{Duration, Error, TaskId};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::fs::File;
use std::io::{self, Write};

/// An engine that is told what triggers ask for.
pub trait Hears {
    /// So many releases of a task are asked for now.
    fn asks(&self, task: TaskId, count: u64);
    /// Nothing asks for releases of a task any more.
    fn ended(&self, task: TaskId);
    /// What releases the jobs of a task cannot be read.
    fn fails(&self, task: TaskId, error: &io::Error);
    /// Is the run over?
    fn is_over(&self) -> bool;
}

/// Ends the thread that listens. Clones ring the same one.
#[derive(Debug)]
pub struct Bell(File);

impl Bell {
    /// # Errors
    /// No descriptor can be had.
    pub fn new() -> io::Result<Self> {
        Ok(Bell(File::from(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }

    /// # Errors
    /// No descriptor can be had.
    pub fn try_clone(&self) -> io::Result<Self> {
        self.0.try_clone().map(Bell)
    }

    /// Ends the thread.
    pub fn ring(&self) {
        // A counter that is full is readable all the same.
        let _ = (&self.0).write_all(&1u64.to_ne_bytes());
    }
}

/// What is waited for.
struct Waiting<'a> {
    task: TaskId,
    source: &'a Source,
    /// Half of a period, in nanoseconds.
    pause: u64,
    /// Not before this, in readings of the clock.
    from: u64,
    /// Nothing comes from it any more.
    ended: bool,
}

impl Triggers {
    /// Has no task a trigger?
    pub fn is_empty(&self) -> bool {
        self.sources().next().is_none()
    }

    /// Waits for events, and tells `hears` of them, until the bell rings or the run is over.
    /// `periods`: by task.
    pub fn listen(&self, periods: &[Duration], bell: &Bell, hears: &impl Hears) {
        let waiting = |(task, source): (TaskId, _)| Waiting {
            task,
            source,
            pause: periods[task.index()].nanos() / 2,
            from: 0,
            ended: false,
        };
        let mut waiting: Vec<Waiting<'_>> = self.sources().map(waiting).collect();
        // The bell, and behind it the triggers with these places.
        let (mut polled, mut places) = (Vec::new(), Vec::new());
        loop {
            let now = kernel::monotonic();
            let mut until: Option<u64> = None;
            polled.clear();
            places.clear();
            polled.push(PollFd::new(&bell.0, PollFlags::IN));
            for (at, w) in waiting.iter().enumerate().filter(|(_, w)| !w.ended) {
                if w.from > now {
                    until = Some(until.map_or(w.from, |u| u.min(w.from)));
                } else if let Some(fd) = w.source.descriptor() {
                    polled.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
                    places.push(at);
                }
            }
            kernel::poll(&mut polled, until.map(|u| u - now));
            if hears.is_over() || !polled[0].revents().is_empty() {
                return;
            }
            let readable = polled[1..]
                .iter()
                .map(|polled| !polled.revents().is_empty());
            for (at, _) in places.iter().zip(readable).filter(|(_, is)| *is) {
                take(&mut waiting[*at], hears);
            }
        }
    }
}

/// Takes what has come from a source.
fn take(w: &mut Waiting<'_>, hears: &impl Hears) {
    match w.source.take() {
        Ok(Came::Events(0)) => {}
        Ok(Came::Events(count)) => {
            let now = kernel::monotonic();
            w.from = match now < w.from.saturating_add(w.pause) {
                // It was looked at a moment ago: enough for now.
                true => now + w.pause,
                false => now,
            };
            hears.asks(w.task, count);
        }
        Ok(Came::End) => {
            w.ended = true;
            hears.ended(w.task);
        }
        Err(e) => {
            w.ended = true;
            hears.fails(w.task, &e);
        }
    }
}

/// What is said of a task whose source cannot be read.
pub fn unreadable(name: &str, error: &io::Error) -> Error {
    Error::new(format!("what releases its jobs cannot be read: {error}"))
        .at(format!("task {name}"))
        .remedy("keep its descriptor open for as long as the run lasts")
}

/// What is said of a task that has released too many jobs.
pub fn too_far_behind(name: &str) -> Error {
    Error::new("thousands of its jobs are released and not begun")
        .at(format!("task {name}"))
        .remedy("give it a longer period, or more of a processor")
}
