//! A worker, from outside: the thread or program that does the jobs of one task. Its own side is in
//! [`super::job_loop`].
//!
//! It never learns whether it runs or waits: that is done to it by its priority, its affinity and
//! its gate.
//!
//! A program in the place of a thread has all of that done to each of its threads, and SIGSTOP for
//! a gate.

use crate::kernel::{self, Thread};
use crate::programs::pages::{Choice, Notice, Pages};
use crate::programs::program::Program;
use crate::threads::gate::Gate;
use model::CpuId;
use std::io;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering};

/// What a worker and its dispatchers know of each other. On lines of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Worker {
    pub(super) tid: AtomicI32,
    /// How many pieces of work it was told to do.
    pub(super) told: AtomicU32,
    /// How many it has done.
    pub(super) done: AtomicU32,
    pub(super) gate: Gate,
    /// The program that does the jobs in its place.
    program: OnceLock<Program>,
    /// The control page that its thread reads, if it has one.
    notice: OnceLock<Notice>,
    /// When it began what it does, in nanoseconds of the run.
    pub began: AtomicU64,
    /// Processor time that the latest finished piece of work took, in nanoseconds.
    pub used: AtomicU64,
    /// How often that missed the shared cache; [`UNKNOWN`]: nobody counts it.
    pub misses: AtomicU64,
}

/// Stands for misses that are not known.
pub(crate) const UNKNOWN: u64 = u64::MAX;

impl Worker {
    pub fn new() -> Self {
        Worker {
            tid: AtomicI32::new(0),
            told: AtomicU32::new(0),
            done: AtomicU32::new(0),
            gate: Gate::default(),
            program: OnceLock::new(),
            notice: OnceLock::new(),
            began: AtomicU64::new(0),
            used: AtomicU64::new(0),
            misses: AtomicU64::new(UNKNOWN),
        }
    }

    /// Its thread; number 0 before it has started.
    pub fn thread(&self) -> Thread {
        Thread(self.tid.load(Ordering::Acquire))
    }

    /// From now on a program does the jobs.
    pub fn perform(&self, program: Program) {
        // Set once, by the one who starts everybody.
        let _ = self.program.set(program);
    }

    /// The program that does the jobs, if one does.
    pub fn program(&self) -> Option<&Program> {
        self.program.get()
    }

    /// The pages of its program, if it was written for them.
    pub fn pages(&self) -> Option<&Pages> {
        self.program().and_then(Program::pages)
    }

    /// From now on its thread is told of choices on this page.
    pub fn tell_on(&self, notice: Notice) {
        // Set once, by the one who starts everybody.
        let _ = self.notice.set(notice);
    }

    /// Has whoever does the jobs a page that says which processor a job is chosen for?
    pub fn has_page(&self) -> bool {
        self.notice.get().is_some() || self.pages().is_some()
    }

    /// Its job is being chosen: who reads its page waits for [`Worker::choose`].
    pub fn begin_choice(&self) {
        if let Some(notice) = self.notice.get() {
            notice.begin();
        } else if let Some(pages) = self.pages() {
            pages.begin();
        }
    }

    /// Its job was chosen for a processor: its page says so.
    pub fn choose(&self, choice: &Choice) {
        if let Some(notice) = self.notice.get() {
            notice.choose(choice);
        } else if let Some(pages) = self.pages() {
            pages.choose(choice);
        }
    }

    /// Its job was taken off its processor, at this reading of the clock.
    pub fn leave(&self, now: u64) {
        if let Some(notice) = self.notice.get() {
            notice.leave(now);
        } else if let Some(pages) = self.pages() {
            pages.leave(now);
        }
    }

    /// Is whoever does the jobs there?
    pub fn is_ready(&self) -> bool {
        self.program().is_some() || self.thread().0 != 0
    }

    /// Lets it run on one processor only. It has left every other one when this returns.
    ///
    /// # Errors
    /// No such thread or processor.
    pub fn pin(&self, cpu: CpuId) -> io::Result<()> {
        match self.program() {
            None => self.thread().pin(cpu),
            Some(program) => program.pin(cpu),
        }
    }

    /// Gives it a priority.
    ///
    /// # Errors
    /// No right, or no such thread.
    pub fn raise(&self, priority: i32) -> io::Result<()> {
        match self.program() {
            None => self.thread().raise(priority),
            Some(program) => program.raise(priority),
        }
    }

    /// The processor time that it has used, in nanoseconds.
    pub fn time(&self) -> u64 {
        match self.program() {
            None => self.thread().time().nanos(),
            Some(program) => program.time(),
        }
    }

    /// Stops it in the middle of its work.
    ///
    /// # Errors
    /// No such thread.
    pub fn close(&self) -> io::Result<()> {
        match self.program() {
            None => self.gate.close(self.thread()),
            Some(program) => {
                program.hold();
                Ok(())
            }
        }
    }

    /// Lets it go on.
    pub fn open(&self) {
        match self.program() {
            None => self.gate.open(),
            Some(program) => program.release(),
        }
    }

    /// Whoever watches a program: does nothing of its job remain, now that no thread of it wants
    /// its processor?
    pub fn is_over(&self) -> bool {
        self.program().is_some_and(Program::is_over)
    }

    /// Counts a piece of work that somebody else saw done, behind the `seen` ones: once, whoever
    /// else saw it too.
    pub fn count_done_behind(&self, seen: u32) {
        let next = seen.wrapping_add(1);
        // Where it fails, it is counted already.
        let _ = self
            .done
            .compare_exchange(seen, next, Ordering::AcqRel, Ordering::Relaxed);
    }

    /// How many pieces of work it has done; wraps.
    pub fn done(&self) -> u32 {
        self.done.load(Ordering::Acquire)
    }

    /// Tells it to do one more piece of work.
    pub fn tell(&self) {
        if let Some(pages) = self.pages() {
            pages.tell();
            return;
        }
        self.told.fetch_add(1, Ordering::Release);
        kernel::futex_wake(&self.told);
    }

    /// Wakes it, so that it sees that the run is over.
    pub fn wake(&self) {
        kernel::futex_wake(&self.told);
    }
}
