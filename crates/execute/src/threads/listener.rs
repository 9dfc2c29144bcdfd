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
use crate::trigger::{Came, Triggers};
use model::{Duration, Error, Result, TaskId};
use std::fs::File;
use std::io::Write;
use std::os::fd::{AsRawFd, FromRawFd};
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
        // SAFETY: a new descriptor that nobody else owns; where there is none, that is looked at
        // before.
        let bell = unsafe {
            match libc::eventfd(0, libc::EFD_CLOEXEC) {
                -1 => return Err(cannot(&std::io::Error::last_os_error())),
                fd => File::from_raw_fd(fd),
            }
        };
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
    let poll = |fd: i32| libc::pollfd {
        fd,
        events: libc::POLLIN,
        revents: 0,
    };
    let mut waiting: Vec<Waiting> = Vec::new();
    let mut polled = vec![poll(bell.as_raw_fd())];
    for (task, source) in triggers.sources() {
        let pause = periods[task.index()].nanos() / 2;
        waiting.push(Waiting { task, pause, from: 0 });
        polled.push(poll(source.number()));
    }
    let sources: Vec<_> = triggers.sources().map(|(_, source)| source).collect();
    team.host.listens.store(true, Ordering::Release);
    // Those that have come to their end.
    let mut ended = vec![false; sources.len()];
    loop {
        let now = kernel::monotonic();
        let mut until = None;
        for (at, w) in waiting.iter().enumerate() {
            // A negative number is passed over.
            polled[at + 1].fd = match ended[at] || w.from > now {
                true => -1,
                false => sources[at].number(),
            };
            if !ended[at] && w.from > now {
                until = Some(until.map_or(w.from, |u: u64| u.min(w.from)));
            }
        }
        kernel::poll(&mut polled, until.map(|u| u - now));
        if team.host.stop.load(Ordering::Acquire) || polled[0].revents != 0 {
            break;
        }
        for (at, w) in waiting.iter_mut().enumerate() {
            let seen = std::mem::take(&mut polled[at + 1].revents);
            if seen == 0 || polled[at + 1].fd < 0 {
                continue;
            }
            match sources[at].take() {
                Ok(Came::Events(0)) => {}
                Ok(Came::Events(count)) => {
                    let now = kernel::monotonic();
                    if now < w.from.saturating_add(w.pause) {
                        // It was looked at a moment ago: enough for now.
                        w.from = now + w.pause;
                    } else {
                        w.from = now;
                    }
                    team.trigger(w.task, count);
                }
                Ok(Came::End) => {
                    ended[at] = true;
                    team.trigger_ended(w.task);
                }
                Err(e) => {
                    let name = team.name(w.task);
                    team.fail(
                        Error::new(format!("what releases its jobs cannot be read: {e}"))
                            .at(format!("task {name}"))
                            .remedy("keep its descriptor open for as long as the run lasts"),
                    );
                    ended[at] = true;
                }
            }
        }
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}
