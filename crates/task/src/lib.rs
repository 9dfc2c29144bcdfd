//! For programs that run as tasks of Warmset: join, wait for the next job, read the control page.
//!
//! The control page is the one of 000 §3.3: one page of memory that the engine writes and the task
//! reads, without a system call. It says which job this is, until when, and how often and for how
//! long it was preempted, and where it runs.
//!
//! ```no_run
//! let mut task = warmset_task::Task::join()?;
//! while let Some(job) = task.wait() {
//!     println!("job {} until {}", job.number, job.deadline);
//! }
//! # Ok::<(), std::io::Error>(())
//! ```
//!
//! Assumes Linux. In C: `include/warmset.h`. A task is a process; its jobs are done by one thread,
//! which may have helpers.

pub mod c;
pub mod page;
pub mod shared;

use page::{Bells, Control, Reply};
use shared::Shared;
use std::io::{self, Write};
use std::os::fd::{FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};

/// The environment variable by which a program that is started by `warmset run` finds its pages:
/// three descriptors.
pub const DESCRIPTORS: &str = "WARMSET_PAGES";

/// How often a process that came from outside looks whether the engine is there.
const LOOK: std::time::Duration = std::time::Duration::from_secs(1);

/// A job, as the control page has it. Times are those of `CLOCK_MONOTONIC`, in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
#[repr(C)]
pub struct Job {
    /// Its number, from 1.
    pub number: u64,
    /// When it was released.
    pub release: u64,
    /// Until when it has to be done.
    pub deadline: u64,
    /// How often this task was preempted and went on where it was, since the run began.
    pub preemptions: u64,
    /// How often it was preempted and went on on another processor.
    pub migrations: u64,
    /// How long it was off its processor the last time.
    pub preemption_length: u64,
    /// The processor that it was chosen for; `u32::MAX`: not known, as it is told before.
    pub processor: u32,
}

/// This process, as a task of a run.
#[derive(Debug)]
pub struct Task {
    control: Shared<Control>,
    reply: Shared<Reply>,
    bells: Shared<Bells>,
    /// How many jobs it has done.
    done: u32,
    /// By it the engine learns that this process has gone, and this process that the engine has.
    door: Option<UnixStream>,
}

impl Task {
    /// Joins the run that started this program (`workload = { program = […] }`).
    ///
    /// # Errors
    /// It was not started by a run, has joined it before, or another version's library is used.
    pub fn join() -> io::Result<Self> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let unfit = |what: &str| io::Error::new(io::ErrorKind::NotFound, what.to_owned());
        let text = std::env::var(DESCRIPTORS)
            .map_err(|_| unfit("this program was not started as a task by `warmset run`"))?;
        let numbers = text.split(',').filter_map(|n| n.parse().ok());
        let numbers: Vec<RawFd> = numbers.filter(|n| *n >= 0).collect();
        let [control, reply, bells] = numbers[..] else {
            return Err(unfit("the environment variable WARMSET_PAGES was changed"));
        };
        // They are closed behind the first call, and their numbers may be somebody else's by then.
        if TAKEN.swap(true, Ordering::Relaxed) {
            return Err(unfit("this program has joined its run before"));
        }
        // SAFETY: the engine left these descriptors open for this library alone, which takes them
        // once.
        let [control, reply, bells] =
            [control, reply, bells].map(|fd| unsafe { OwnedFd::from_raw_fd(fd) });
        Self::of(&control, &reply, &bells, None)
    }

    /// Joins a run from outside (`workload = { kind = "join" }`), as the task of this name, through
    /// the socket that `warmset run --socket` made.
    ///
    /// # Errors
    /// Nobody listens there, or no task of that name is wanted.
    pub fn join_at(path: impl AsRef<Path>, name: &str) -> io::Result<Self> {
        let mut door = UnixStream::connect(path)?;
        door.write_all(format!("{name}\n").as_bytes())?;
        let pages = shared::receive(&door)?;
        let [control, reply, bells] = &pages[..] else {
            let why = format!("no task `{name}` is waited for");
            return Err(io::Error::new(io::ErrorKind::NotFound, why));
        };
        Self::of(control, reply, bells, Some(door))
    }

    fn of(
        control: &OwnedFd,
        reply: &OwnedFd,
        bells: &OwnedFd,
        door: Option<UnixStream>,
    ) -> io::Result<Self> {
        let control = Shared::<Control>::map(control, false)?;
        if control.version.load(Ordering::Acquire) != page::VERSION {
            let why = "this library and `warmset` are of different versions";
            return Err(io::Error::new(io::ErrorKind::InvalidData, why));
        }
        let reply = Shared::<Reply>::map(reply, true)?;
        let place = std::ptr::from_ref::<Reply>(&reply).addr() as u64;
        reply.place.store(place, Ordering::Release);
        Ok(Task {
            control,
            reply,
            bells: Shared::map(bells, true)?,
            done: 0,
            door,
        })
    }

    /// The job before is done; sleeps until the next one. `None`: the run is over.
    ///
    /// The first call says that the program is ready: a run begins when all are.
    pub fn wait(&mut self) -> Option<Job> {
        let told = self.control.told.load(Ordering::Acquire);
        if self.reply.waiting.swap(1, Ordering::AcqRel) == 0 || told == self.done {
            // The first one: nothing was done before.
        } else {
            self.done = self.done.wrapping_add(1);
            self.reply.done.store(self.done, Ordering::Release);
            self.bells.ring(self.control.bell.load(Ordering::Acquire));
        }
        loop {
            if self.control.over.load(Ordering::Acquire) != 0 {
                return None;
            }
            if self.control.told.load(Ordering::Acquire) != self.done {
                let now = shared::monotonic();
                self.reply.began.store(now, Ordering::Release);
                return Some(self.look());
            }
            match &self.door {
                None => shared::futex_wait(&self.control.told, self.done),
                Some(door) => {
                    // An engine that was killed says nothing more.
                    shared::futex_wait_for(&self.control.told, self.done, LOOK);
                    if shared::is_closed(door) {
                        return None;
                    }
                }
            }
        }
    }

    /// What the control page says now: without a system call, and never a mixture of two states.
    pub fn look(&self) -> Job {
        self.control.read()
    }
}
