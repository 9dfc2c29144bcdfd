//! A worker: the thread that does the jobs of one task.
//!
//! Between jobs it sleeps on a word that counts what it was told to do. When it has done as much, it says so to its domain. It
//! never learns whether it runs or waits: that is done to it from outside, by its priority, its affinity and its gate.
//!
//! A program in the place of a thread has all of that done to each of its threads, and SIGSTOP for a gate.

use crate::colored::{self, Provider, Who};
use crate::kernel::{self, Thread};
use crate::programs::pages::Pages;
use crate::programs::program::Program;
use crate::threads::gate::Gate;
use crate::threads::host::{MORE_THREADS, ThreadTeam};
use crate::threads::panics;
use model::{CpuId, Error, TaskId};
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicI32, AtomicU32, AtomicU64, Ordering, fence};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use workload::Work;

/// What a worker and its dispatchers know of each other. On lines of its own.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct Worker {
    tid: AtomicI32,
    /// How many pieces of work it was told to do.
    told: AtomicU32,
    /// How many it has done.
    done: AtomicU32,
    gate: Gate,
    /// The program that does the jobs in its place.
    program: OnceLock<Program>,
    /// When it began what it does, in nanoseconds of the run.
    pub began: AtomicU64,
    /// Processor time that the latest finished piece of work took, in nanoseconds.
    pub used: AtomicU64,
}

impl Worker {
    pub fn new() -> Self {
        Worker {
            tid: AtomicI32::new(0),
            told: AtomicU32::new(0),
            done: AtomicU32::new(0),
            gate: Gate::default(),
            program: OnceLock::new(),
            began: AtomicU64::new(0),
            used: AtomicU64::new(0),
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

    /// Whoever watches a program: does nothing of its job remain, now that no thread of it wants its processor?
    pub fn is_over(&self) -> bool {
        self.program().is_some_and(Program::is_over)
    }

    /// Counts a piece of work that somebody else saw done, behind the `seen` ones: once, whoever else saw it too.
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

/// Starts the worker of a task. It is an ordinary thread at first.
pub(crate) fn start(
    team: &Arc<ThreadTeam>,
    task: TaskId,
    work: Box<dyn Work>,
    provider: Option<Arc<dyn Provider>>,
) -> Result<JoinHandle<()>, Error> {
    let team = Arc::clone(team);
    let name = team.name(task).to_owned();
    let place = format!("task {name}");
    std::thread::Builder::new()
        .name(name.chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || {
            let who = Who::Worker(task);
            colored::on_its_stack(provider.as_ref(), who, || live(&team, task, work));
        })
        .map_err(|e| {
            Error::new(format!("cannot start a thread: {e}"))
                .at(place)
                .remedy(MORE_THREADS)
        })
}

fn live(team: &Arc<ThreadTeam>, task: TaskId, mut work: Box<dyn Work>) {
    panics::lower_on_panic(team, panics::Who::Worker(task));
    let worker = &team.host.worker(task);
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let _gate = worker.gate.attach();
    let thread = Thread::current();
    worker.tid.store(thread.0, Ordering::Release);
    let mut done = 0u32;
    loop {
        while worker.told.load(Ordering::Acquire) == done {
            if team.host.stop.load(Ordering::Acquire) {
                return;
            }
            kernel::futex_wait(&worker.told, done, None);
        }
        worker.began.store(team.now().nanos(), Ordering::Relaxed);
        let number = u64::from(done);
        // What it takes to say that a job is done, and to be told of the next one, is no part of either.
        let before = machine::clock::thread_time();
        if catch_unwind(AssertUnwindSafe(|| work.job(number, &team.host.stop))).is_err() {
            // What it says of itself went to standard error; its memory may be in any state, so it does no more.
            team.fail(panics::of_job(team, task));
            return;
        }
        if team.host.stop.load(Ordering::Acquire) {
            return;
        }
        let after = machine::clock::thread_time();
        worker
            .used
            .store(after.saturating_sub(before).nanos(), Ordering::Relaxed);
        done = done.wrapping_add(1);
        worker.done.store(done, Ordering::Release);
        // Whose domain it is may be changing: either that sees what is done, or this sees whom to tell.
        fence(Ordering::SeqCst);
        team.tell_finished(task);
    }
}
