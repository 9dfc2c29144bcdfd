//! The threads that tell programs of their jobs, and the program in the kernel of what they have
//! done.
//!
//! A program that asks for its jobs sleeps until it has one, and only a thread can wake it: the
//! program in the kernel calls that thread when a job has begun. When the program goes to sleep,
//! the program in the kernel reads whether it has done its job; so its processor is given on at
//! once. What it cannot read there (another process of the program went to sleep last) a second
//! thread hears, to which the program rings. Both threads are above all jobs.

use crate::above;
use crate::intf::{
    PAGE_CHOSEN, PAGE_DEADLINE, PAGE_DONE, PAGE_GIVEN, PAGE_MIGRATIONS, PAGE_NUMBER,
    PAGE_PREEMPTIONS, PAGE_RELEASE,
};
use crate::loaded::{Finishing, Loaded};
use crate::worker::Shared;
use execute::{Asking, Told};
use libbpf_rs::RingBufferBuilder;
use model::{Error, Result, TaskId};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often the thread that is called looks whether the run is over.
const EVERY: std::time::Duration = std::time::Duration::from_millis(20);
/// The control page names the processor of a job, which is not chosen when the program is told.
const NOT_CHOSEN: u32 = u32::MAX;

struct Teller<'a> {
    asking: Asking,
    finishing: Finishing<'a>,
    shared: &'a Shared,
    /// By place in `asking`, how many jobs are known to be done.
    done: Mutex<Vec<u64>>,
    /// How many of both threads listen, or have failed.
    listening: AtomicU32,
    over: AtomicBool,
    failed: Mutex<Option<Error>>,
}

/// Does `course` while programs are told of their jobs, if some ask for them.
///
/// # Errors
/// No thread can be had; the program in the kernel cannot be asked; as `course`.
pub(crate) fn while_telling<T>(
    loaded: &Loaded<'_>,
    shared: &Shared,
    asking: Option<Asking>,
    course: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let Some(asking) = asking.filter(|asking| !asking.tasks().is_empty()) else {
        return course();
    };
    let cannot = |e: io::Error| Error::new(format!("cannot tell programs of their jobs: {e}"));
    let teller = Teller {
        done: Mutex::new(vec![0; asking.tasks().len()]),
        asking,
        finishing: loaded.finishing(),
        shared,
        listening: AtomicU32::new(0),
        over: AtomicBool::new(false),
        failed: Mutex::new(None),
    };
    let thread = |name: &str| {
        std::thread::Builder::new()
            .name(name.to_owned())
            .stack_size(256 << 10)
    };
    let came = std::thread::scope(|scope| {
        let ends = EndsTelling(&teller);
        let called = || teller.note(teller.on_calls(loaded));
        let first = thread("teller")
            .spawn_scoped(scope, called)
            .map_err(cannot)?;
        let rung = || teller.note(teller.on_rings());
        let second = thread("ear").spawn_scoped(scope, rung).map_err(cannot)?;
        // The first jobs are released when both are there; one that panics is told of behind.
        let are_there = || teller.listening.load(Ordering::Acquire) == 2;
        while !(are_there() || first.is_finished() || second.is_finished()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        let came = course();
        drop(ends);
        came
    })?;
    let failed = teller.failed.into_inner();
    failed
        .unwrap_or_else(PoisonError::into_inner)
        .map_or(Ok(came), Err)
}

/// Its end ends the threads, on every way out.
struct EndsTelling<'a>(&'a Teller<'a>);

impl Drop for EndsTelling<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, Ordering::Release);
        self.0.asking.wake();
    }
}

impl Teller<'_> {
    /// A run in which nobody is told of jobs any more does not go on.
    fn note(&self, came: Result<()>) {
        if let Err(e) = came {
            let mut failed = self.failed.lock().unwrap_or_else(PoisonError::into_inner);
            // The first one is told.
            failed.get_or_insert(e);
            self.shared.failed.store(true, Ordering::Release);
            self.listening.fetch_add(1, Ordering::AcqRel);
        }
    }

    fn is_over(&self) -> bool {
        self.over.load(Ordering::Acquire)
    }

    /// Comes when the program in the kernel calls.
    fn on_calls(&self, loaded: &Loaded<'_>) -> Result<()> {
        above::listens();
        let unreadable = |e: libbpf_rs::Error| {
            Error::new(format!("cannot read the calls of the program: {e}")).at("--engine kernel")
        };
        let mut ring = RingBufferBuilder::new();
        // Which task it is about does not matter: all are looked at.
        ring.add(loaded.calls(), |_| 0).map_err(unreadable)?;
        let ring = ring.build().map_err(unreadable)?;
        self.listening.fetch_add(1, Ordering::AcqRel);
        while !self.is_over() {
            // Interrupted by a signal it is called again.
            match ring.poll(EVERY) {
                Err(e) if e.kind() != libbpf_rs::ErrorKind::Interrupted => {
                    return Err(unreadable(e));
                }
                _ => self.look()?,
            }
        }
        Ok(())
    }

    /// Comes when a program rings.
    fn on_rings(&self) -> Result<()> {
        above::listens();
        self.listening.fetch_add(1, Ordering::AcqRel);
        while !self.is_over() {
            let rung = self.asking.rung();
            self.look()?;
            if !self.is_over() {
                self.asking.wait(rung);
            }
        }
        Ok(())
    }

    /// Says what programs have done, and tells each of its next job that has done all before.
    fn look(&self) -> Result<()> {
        let mut all = self.done.lock().unwrap_or_else(PoisonError::into_inner);
        for (task, known) in self.asking.tasks().iter().zip(all.iter_mut()) {
            self.look_at(*task, known)?;
        }
        Ok(())
    }

    fn look_at(&self, task: TaskId, known: &mut u64) -> Result<()> {
        let word = |at| self.shared.word(task, at).load(Ordering::Acquire);
        let (given, (told, replied)) = (word(PAGE_GIVEN), self.asking.counts(task));
        // The program in the kernel knows of an end at once; that somebody from outside has left is
        // found by who looks after programs.
        let has_gone = word(PAGE_CHOSEN) == u64::MAX || self.asking.has_gone(task);
        // It wraps.
        let more = (replied.wrapping_sub(*known as u32) as i32).max(0);
        let mut done = *known + more as u64;
        if has_gone {
            // Its further jobs have nothing to do.
            done = done.max(given);
        }
        if done > *known {
            *known = done;
            let counted = self.shared.word(task, PAGE_DONE);
            counted.fetch_max(done, Ordering::AcqRel);
            self.finishing.finished(task)?;
        }
        if !has_gone && told == replied && given > done {
            let origin = self.shared.origin.load(Ordering::Acquire);
            self.asking.tell(
                task,
                &Told {
                    number: word(PAGE_NUMBER) + 1,
                    release: origin + word(PAGE_RELEASE),
                    deadline: origin + word(PAGE_DEADLINE),
                    preemptions: word(PAGE_PREEMPTIONS),
                    migrations: word(PAGE_MIGRATIONS),
                    preemption_length: 0,
                    processor: NOT_CHOSEN,
                },
            );
        }
        Ok(())
    }
}
