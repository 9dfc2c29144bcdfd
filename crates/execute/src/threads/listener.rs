//! The listener: a thread that waits for what releases the jobs of sporadic tasks, and tells whose
//! duty that is.
//!
//! It sleeps until a descriptor is readable. It runs above all jobs and below the dispatchers, for
//! some microseconds each time. A descriptor that has more to say than a period permits is left
//! alone for half a period, so that nobody who writes too much takes the processor from jobs: the
//! kernel keeps what is written until then.

use crate::kernel::{self, Thread};
use crate::remedies::MORE_THREADS;
use crate::threads::host::ThreadTeam;
use crate::trigger::{Came, Source, Triggers};
use model::{Duration, Error, Result, TaskId};
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd};
use std::fs::File;
use std::io::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;

/// The listener of a run.
pub(crate) struct Listener {
    /// An `eventfd` that ends it.
    bell: File,
    pub thread: JoinHandle<()>,
}

/// What it waits for.
struct Waiting {
    task: TaskId,
    /// Half of a period, in nanoseconds.
    pause: u64,
    /// Not before this, in readings of the clock.
    from: u64,
}

impl Listener {
    /// Starts it, where there is something to listen to. `periods`: by task.
    ///
    /// # Errors
    /// No thread or no descriptor can be had.
    pub fn start(
        team: &Arc<ThreadTeam>,
        triggers: &Triggers,
        periods: Vec<Duration>,
    ) -> Result<Option<Self>> {
        if triggers.sources().next().is_none() {
            return Ok(None);
        }
        let bell = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| cannot(&e.into()))?;
        let bell = File::from(bell);
        let (team, triggers) = (Arc::clone(team), triggers.clone());
        let end = bell.try_clone().map_err(|e| cannot(&e))?;
        let thread = std::thread::Builder::new()
            .name("listener".to_owned())
            .stack_size(256 << 10)
            .spawn(move || listen(&team, &triggers, &periods, &end))
            .map_err(|e| cannot(&e).remedy(MORE_THREADS))?;
        Ok(Some(Listener { bell, thread }))
    }

    /// Lets it end.
    pub fn stop(&self) {
        // A counter that is full is readable all the same.
        let _ = (&self.bell).write_all(&1u64.to_ne_bytes());
    }
}

fn cannot(e: &std::io::Error) -> Error {
    Error::new(format!("cannot listen for triggers: {e}"))
}

fn listen(team: &ThreadTeam, triggers: &Triggers, periods: &[Duration], bell: &File) {
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread.raise(kernel::LISTENER) {
        team.fail(cannot(&e).remedy("run as root"));
        return;
    }
    kernel::without_timer_slack();
    let mut waiting: Vec<Waiting> = Vec::new();
    // What is waited for: the bell, and behind it the triggers with these places.
    let (mut polled, mut places) = (Vec::new(), Vec::new());
    for (task, _) in triggers.sources() {
        let pause = periods[task.index()].nanos() / 2;
        waiting.push(Waiting {
            task,
            pause,
            from: 0,
        });
    }
    let sources: Vec<_> = triggers.sources().map(|(_, source)| source).collect();
    team.host.listens.store(true, Ordering::Release);
    // Those that have come to their end.
    let mut ended = vec![false; sources.len()];
    loop {
        let now = kernel::monotonic();
        let mut until = None;
        polled.clear();
        places.clear();
        polled.push(PollFd::new(bell, PollFlags::IN));
        for (at, w) in waiting.iter().enumerate().filter(|(at, _)| !ended[*at]) {
            if w.from > now {
                until = Some(until.map_or(w.from, |u: u64| u.min(w.from)));
            } else if let Some(fd) = sources[at].descriptor() {
                polled.push(PollFd::from_borrowed_fd(fd, PollFlags::IN));
                places.push(at);
            }
        }
        kernel::poll(&mut polled, until.map(|u| u - now));
        if team.host.stop.load(Ordering::Acquire) || !polled[0].revents().is_empty() {
            break;
        }
        for (at, seen) in places
            .iter()
            .copied()
            .zip(polled[1..].iter().map(PollFd::revents))
        {
            if seen.is_empty() {
                continue;
            }
            ended[at] = take(team, sources[at], &mut waiting[at]);
        }
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

/// Takes what has come from a source. True: nothing comes from it any more.
fn take(team: &ThreadTeam, source: &Source, w: &mut Waiting) -> bool {
    match source.take() {
        Ok(Came::Events(0)) => false,
        Ok(Came::Events(count)) => {
            let now = kernel::monotonic();
            w.from = match now < w.from.saturating_add(w.pause) {
                // It was looked at a moment ago: enough for now.
                true => now + w.pause,
                false => now,
            };
            team.trigger(w.task, count);
            false
        }
        Ok(Came::End) => {
            team.trigger_ended(w.task);
            true
        }
        Err(e) => {
            let name = team.name(w.task);
            team.fail(
                Error::new(format!("what releases its jobs cannot be read: {e}"))
                    .at(format!("task {name}"))
                    .remedy("keep its descriptor open for as long as the run lasts"),
            );
            true
        }
    }
}
