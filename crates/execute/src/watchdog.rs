//! The watchdog: a process above all others that ends a run which has lost its way.
//!
//! It is a process of its own, so that nothing that happens in the engine's takes it along. Engine
//! and watchdog share a [`Board`]: dispatchers and the supervisor leave heartbeats there, threads
//! at real-time priority their numbers. When a heartbeat stops, or the engine's process is gone,
//! the watchdog lowers every such thread; an engine that does not come to its end soon after that
//! is killed. It changes nothing else and needs nothing but its own memory: after the fork it calls
//! the kernel and nobody else.
//!
//! Who watches the watchdog: the supervisor, which ends the run when it has gone
//! ([`Watchdog::has_died`]); and the heir, which ends what is left where both are killed together
//! ([`crate::watchdog::heir`]).

mod board;
pub(crate) mod heir;
mod looks;
mod removal;

pub use board::{Board, BoardRef, Entry};
pub(crate) use removal::{patiently, remove};

use crate::kernel::{self, Thread};
use crate::watchdog::heir::Heir;
use board::{Shared, Text};
use looks::Looks;
pub(crate) use looks::TELL;
use machine::group::Group;
use machine::realtime;
use model::{Duration, Error, Result};
use rustix::mm::MlockAllFlags;
use rustix::process::{Pid, WaitId, WaitIdOptions};
use std::fmt::Write;
use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How patient a watchdog is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Patience {
    /// How long a dispatcher may give no sign of life.
    pub dispatcher: Duration,
    /// How long ordinary threads may be kept from running, or a decision be overdue.
    pub ordinary: Duration,
    /// How long an engine that was told to end may take for it.
    pub end: Duration,
    /// How long after its horizon a run may go on: then its supervisor ends it, and after twice as
    /// long the watchdog.
    pub late: Duration,
}

impl Default for Patience {
    /// Half a second, two seconds, three seconds, one second.
    fn default() -> Self {
        Patience {
            dispatcher: Duration::from_millis(500),
            ordinary: Duration::from_secs(2),
            end: Duration::from_secs(3),
            late: Duration::from_secs(1),
        }
    }
}

/// Why a watchdog ended a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trip {
    /// The dispatcher of this place in the order of processors stood still.
    Dispatcher(u32),
    /// Something was due at this place, and nobody decided.
    Overdue(u32),
    /// Ordinary threads did not get to run.
    Ordinary,
    /// Real-time work wanted every processor all the time: ordinary threads ran in what the kernel
    /// keeps for them alone.
    Slackless,
    /// The run, or its end, was not over when it had to be.
    Late,
}

impl Trip {
    /// As a word that is not zero.
    fn code(self) -> u32 {
        match self {
            Trip::Ordinary => 1 << 16,
            Trip::Slackless => 2 << 16,
            Trip::Late => 3 << 16,
            Trip::Dispatcher(place) => 4 << 16 | place,
            Trip::Overdue(place) => 5 << 16 | place,
        }
    }

    fn of(code: u32) -> Option<Self> {
        let place = code & 0xffff;
        match code >> 16 {
            1 => Some(Trip::Ordinary),
            2 => Some(Trip::Slackless),
            3 => Some(Trip::Late),
            4 => Some(Trip::Dispatcher(place)),
            5 => Some(Trip::Overdue(place)),
            _ => None,
        }
    }
}

/// A running watchdog. Dropping it ends it; before that nothing of the run may be left at real-time
/// priority.
pub struct Watchdog {
    board: BoardRef,
    child: libc::pid_t,
    heir: Option<Heir>,
}

impl Watchdog {
    /// Starts it. Call this before any thread is raised and, best, before any is started.
    ///
    /// # Errors
    /// No right to the highest priority, or no process to be had.
    pub fn start(patience: Patience) -> Result<Self> {
        Self::start_with(patience, None)
    }

    /// As [`Watchdog::start`], for a run whose programs are put into a control group.
    ///
    /// # Errors
    /// As [`Watchdog::start`].
    pub fn start_with(patience: Patience, group: Option<Group>) -> Result<Self> {
        let failed = |e: io::Error| {
            Error::new(format!("cannot start the watchdog: {e}"))
                .remedy(crate::remedies::MORE_THREADS)
        };
        let shared = Arc::new(Shared::map().map_err(failed)?);
        let board = BoardRef(shared, group.map(Arc::new));
        // No two runs of a machine have the same.
        board.run.store(kernel::monotonic(), Ordering::Release);
        let parent = std::process::id() as i32;
        // SAFETY: the child does nothing but `watch`, which makes system calls on its own memory
        // only: no lock that another thread may hold at this moment is touched.
        match unsafe { sys::process::fork() }.map_err(failed)? {
            None => {
                watch(&board, parent, patience);
                sys::process::exit(0)
            }
            Some(child) => {
                let mut watchdog = Watchdog {
                    board,
                    child,
                    heir: None,
                };
                watchdog.board.number.store(child as u32, Ordering::Release);
                let ready = &watchdog.board.ready;
                // It answers at once; a machine that keeps it from answering for so long is not fit
                // for more.
                for _ in 0..5_000 {
                    match ready.load(Ordering::Acquire) {
                        0 => std::thread::sleep(std::time::Duration::from_millis(1)),
                        1 => {
                            let heir = Heir::start(&watchdog.board, child, watchdog.board.group())?;
                            watchdog.heir = Some(heir);
                            return Ok(watchdog);
                        }
                        error => {
                            let e = io::Error::from_raw_os_error((error - 2) as i32);
                            return Err(Error::new(format!(
                                "the watchdog has no right to its priority: {e}"
                            ))
                            .remedy(
                                "run as root, or `sudo setcap cap_sys_nice+ep` on the program",
                            ));
                        }
                    }
                }
                Err(Error::new("the watchdog did not answer")
                    .remedy("try again on a machine with less to do"))
            }
        }
    }

    /// The board that it reads.
    pub fn board(&self) -> BoardRef {
        self.board.clone()
    }

    /// Its process.
    pub fn process(&self) -> i32 {
        self.child
    }

    /// Has somebody killed it or its heir, or stopped one of them, which leaves the run without
    /// protection as well?
    pub fn has_died(&self) -> bool {
        let heir = self.heir.as_ref().map(Heir::process);
        std::iter::once(self.child).chain(heir).any(has_ended)
    }
}

/// Is a child not running any more? It stays to be waited for.
fn has_ended(child: i32) -> bool {
    let Some(child) = Pid::from_raw(child) else {
        return true;
    };
    let options = WaitIdOptions::EXITED
        | WaitIdOptions::STOPPED
        | WaitIdOptions::NOHANG
        | WaitIdOptions::NOWAIT;
    // That it cannot be waited for says that it has gone.
    rustix::process::waitid(WaitId::Pid(child), options).map_or(true, |status| status.is_some())
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.board.over.store(1, Ordering::Release);
        // Our own child, waited for here only; it looks at `over` every few milliseconds, and the
        // signal speeds it up.
        kernel::kill(self.child, libc::SIGKILL);
        kernel::wait_for(self.child);
        // Threads that do not come back may keep the board for longer.
        if let Some(group) = self.board.group() {
            group.remove();
        }
    }
}

/// The name of the watchdog's process, by which other runs know it.
pub(crate) const NAME: &str = "warmset-dog";
const C_NAME: &std::ffi::CStr = c"warmset-dog";

/// How often it looks.
const STEP: u64 = 20_000_000;

/// What the watchdog's process does until the run is over. Makes system calls only.
fn watch(board: &Board, parent: i32, patience: Patience) {
    // Signals that end programs are for the engine, which ends the watchdog when it has come to its
    // own end.
    sys::signal::block_all();
    // A group of its own: who kills the engine's group does not kill it.
    let _ = rustix::process::setpgid(None, None);
    let _ = rustix::thread::set_name(C_NAME);
    // Of what the engine has open nothing is held but standard error: whoever reads from it, or
    // takes it away, is not kept waiting by this process.
    // SAFETY: the process uses none of them until it ends, and ends without running destructors.
    unsafe {
        sys::process::close_range(0, 1);
        sys::process::close_range(3, u32::MAX);
    }
    if let Err(e) = Thread::current().raise(realtime::WATCHDOG.get()) {
        let errno = e.raw_os_error().unwrap_or(libc::EPERM);
        board.ready.store(2 + errno as u32, Ordering::Release);
        return;
    }
    // Without it the first look may wait for memory.
    let _ = rustix::mm::mlockall(MlockAllFlags::CURRENT);
    board.ready.store(1, Ordering::Release);
    let mut looks = Looks::new();
    let (mut tripped_at, mut next) = (None, kernel::monotonic());
    while board.over.load(Ordering::Acquire) == 0 {
        next += STEP;
        kernel::sleep_until(next);
        if kernel::parent() != parent {
            // The engine has gone, and all of its threads with it; not what its programs have
            // started.
            for _ in 0..3 {
                // Who was born to a raised thread meanwhile is found the next time.
                board.lower_programs();
                kernel::sleep_until(kernel::monotonic() + 1_000_000);
            }
            board.kill_all_programs();
            take_away(board);
            return;
        }
        let now = kernel::monotonic();
        // What was late itself must not blame others: a machine that stood still starts afresh.
        if now > next + 4 * STEP {
            next = now;
            looks.start_afresh();
        }
        if let Some(at) = tripped_at {
            if now > at + patience.end.nanos() {
                last_words(board.tripped(), patience);
                // The parent is alive, or the loop would have ended.
                kernel::kill(parent, libc::SIGKILL);
                board.kill_all_programs();
                take_away(board);
                return;
            }
            board.lower_all();
            board.kill_programs(Some(parent));
            continue;
        }
        if let Some(trip) = looks.look(board, patience, now) {
            board.lower_all();
            // Before programs end, so that nobody takes their end for their own doing.
            board.tripped.store(trip.code(), Ordering::Release);
            board.kill_programs(Some(parent));
            tripped_at = Some(now);
        }
    }
}

/// Takes away what the run has made, as an ordinary process: nothing of it is left that could keep
/// one from running, and the kernel waits for others in a loop where they drop the same files.
fn take_away(board: &Board) {
    // Where it fails it has no real-time priority.
    let _ = Thread::current().lower();
    board.take_away();
}

/// Says on standard error why the engine is killed, which has no time left to say it.
fn last_words(trip: Option<Trip>, patience: Patience) {
    let mut text = Text::EMPTY;
    // What has no room is left out.
    let _ = text.write_str("the watchdog kills the run: ");
    let _ = match trip {
        Some(Trip::Dispatcher(place)) => write!(
            text,
            "dispatcher {place} gave no sign of life for {}",
            patience.dispatcher
        ),
        Some(Trip::Overdue(place)) => write!(
            text,
            "dispatcher {place} did not decide what was due for {}",
            patience.ordinary
        ),
        Some(Trip::Slackless) => text.write_str("its jobs left ordinary programs no time"),
        Some(Trip::Late) => text.write_str("it was not over when it had to be"),
        Some(Trip::Ordinary) | None => write!(
            text,
            "ordinary programs did not get to run for {}",
            patience.ordinary
        ),
    };
    let _ = writeln!(
        text,
        ", and {} after it was told to end it has not; its trace is whole up to then",
        patience.end
    );
    // Nobody can be told that it failed.
    let _ = rustix::io::write(io::stderr(), text.bytes());
}
