//! Programs as tasks: started, held, moved and raised from outside, and taken off the machine at
//! the end.
//!
//! A program that knows nothing of jobs gets what LITMUS^RT gives to `rt_launch` (002 §3.3): a
//! budget, its WCET, in every period. It is a polling server: its job ends when the budget is used
//! up or when none of its threads wants the processor ([`crate::programs::sentinel`]), and its next
//! job begins with the next release. What wakes up in between waits.
//!
//! **Held** it is by SIGSTOP to all of its processes. Freezing a control group would be the other
//! way; it takes a group that one may write to, and interrupts the same calls with `EINTR` when it
//! ends (signal(7) names them: `epoll_wait` above all).
//!
//! **Nothing survives.** A program is a process group of its own, dies with the thread that started
//! it (`PR_SET_PDEATHSIG`), and carries the run's mark as all of its descendants do, in its
//! environment and in its limits ([`crate::programs::rights`]), by which the engine and, when that
//! is gone, the watchdog and the heir find them. Where there is a control group for them the kernel
//! knows them all. Orphans come to the engine, which is their subreaper for as long as the run
//! lasts.

use crate::kernel::{Processors, RUN, Thread, WAIT};
use crate::programs::family::Family;
use crate::programs::marks;
use crate::programs::pages::Pages;
use crate::programs::procfs::{self, Identity};
use crate::programs::rights::Owner;
use model::{Beyond, CpuId, Error, Result};
use std::io;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug)]
pub(crate) enum Kind {
    Unmodified(Beyond),
    Written(Pages),
}

/// What dispatchers do to a program.
#[derive(Debug)]
pub(crate) struct Program {
    kind: Kind,
    /// Whoever has the lock of the task's domain has this one too: nobody waits for it.
    family: Mutex<Family>,
    /// Has its first process ended?
    pub gone: AtomicBool,
    /// Somebody was born who may have missed a change.
    pub stale: AtomicBool,
    /// Processes to adopt.
    adopted: Mutex<Vec<i32>>,
    /// How many threads the dispatchers know.
    known: AtomicU32,
    /// Where it might run before it came from outside.
    home: Option<Processors>,
    /// Has it been let go, and goes on as if it had never come?
    pub free: AtomicBool,
}

impl Program {
    /// Of a process that is there, held or not.
    ///
    /// # Errors
    /// It has gone.
    pub fn new(process: i32, kind: Kind) -> Result<Self> {
        let family = Family::of(process)?;
        Ok(Program {
            kind,
            known: AtomicU32::new(family.len() as u32),
            family: Mutex::new(family),
            gone: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            adopted: Mutex::new(Vec::with_capacity(64)),
            home: None,
            free: AtomicBool::new(false),
        })
    }

    fn family(&self) -> MutexGuard<'_, Family> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Family) -> T) -> T {
        let mut family = self.family();
        let done = change(&mut family);
        self.known.store(family.len() as u32, Ordering::Relaxed);
        done
    }

    /// Lets it run on this processor only.
    pub fn pin(&self, cpu: CpuId) -> io::Result<()> {
        self.change(|family| family.pin(cpu))
    }

    /// Gives all of its threads a priority.
    pub fn raise(&self, priority: i32) -> io::Result<()> {
        self.change(|family| family.raise(priority))
    }

    /// The processor time of all of them, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.family().time()
    }

    /// For a dispatcher: takes in processes of this program that have lost their parents, as
    /// children of this process have. The supervisor looks for them too, but is an ordinary thread
    /// and may wait for the very processor that they keep. `own`: what the limits of this program's
    /// processes say.
    pub fn take_orphans_in(&self, own: Owner) {
        let mut family = self.family();
        let this = std::process::id() as i32;
        procfs::threads(this, |thread| {
            procfs::children(this, thread, |child| {
                if marks::owner(child) == Some(own) {
                    family.adopt(child);
                }
            });
        });
    }

    /// Stops it where it is.
    pub fn hold(&self) {
        self.change(|family| family.signal(libc::SIGSTOP));
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.change(|family| family.signal(libc::SIGCONT));
    }

    /// A process that has come from outside, with its pages.
    ///
    /// # Errors
    /// It has gone.
    pub fn guest(process: i32, pages: Pages) -> Result<Self> {
        let home = Thread(process)
            .processors()
            .map_err(|e| Error::new(format!("process {process} has gone: {e}")))?;
        Ok(Program {
            home: Some(home),
            ..Self::new(process, Kind::Written(pages))?
        })
    }

    /// Where a process from outside might run before it came.
    pub fn home(&self) -> Option<&Processors> {
        self.home.as_ref()
    }

    /// Lets a process from outside go on as it was before it came.
    fn let_go(&self) -> io::Result<()> {
        if let Some(home) = &self.home {
            self.change(|family| family.let_go(home))?;
            self.free.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Its pages, if it was written for them.
    pub fn pages(&self) -> Option<&Pages> {
        match &self.kind {
            Kind::Written(pages) => Some(pages),
            Kind::Unmodified(_) => None,
        }
    }

    /// Where none of its threads wants its processor: has it done its job?
    pub fn is_over(&self) -> bool {
        self.gone.load(Ordering::Acquire) || self.pages().is_none_or(Pages::is_done)
    }

    /// Its job has ended, and it is held already or not. True: it is held now.
    pub fn park(&self, held: bool) -> io::Result<bool> {
        match self.kind {
            Kind::Unmodified(Beyond::Hold) => {
                self.raise(WAIT)?;
                if !held {
                    self.hold();
                }
                Ok(true)
            }
            // It sleeps; a helper that wakes up is an ordinary thread.
            Kind::Written(_) | Kind::Unmodified(Beyond::BestEffort) => {
                self.change(Family::lower)?;
                if held {
                    self.release();
                }
                Ok(false)
            }
        }
    }

    /// Somebody was found who may have missed a change: does it again, to all. `held`: it stands
    /// still.
    pub fn tidy(&self, chosen: bool, held: bool, within_job: bool) -> io::Result<()> {
        if self.home.is_some() && self.gone.load(Ordering::Acquire) {
            // It has left, whatever it is about to do.
            return self.let_go();
        }
        let priority = match (chosen, within_job, &self.kind) {
            (true, ..) => Some(RUN),
            (false, true, _) | (.., Kind::Unmodified(Beyond::Hold)) => Some(WAIT),
            _ => None,
        };
        self.change(|family| {
            // The supervisor has it for a moment only; if it has it now, there will be another
            // look.
            if let Ok(mut adopted) = self.adopted.try_lock() {
                for process in adopted.drain(..) {
                    family.adopt(process);
                }
            }
            family.repeat(priority)?;
            family.signal(if held { libc::SIGSTOP } else { libc::SIGCONT });
            Ok(())
        })
    }
}

impl Program {
    /// For the supervisor: finds all processes that are alive of those that are known and their
    /// descendants, counts their threads on its own, and says so where the dispatchers know others.
    pub(crate) fn look(&self, processes: &mut Vec<Identity>) -> bool {
        let (mut count, mut at) = (0, 0);
        let mut threads = Vec::new();
        while at < processes.len() {
            let known = processes[at];
            if !known.exists() {
                processes.swap_remove(at);
                continue;
            }
            at += 1;
            threads.clear();
            procfs::threads(known.process, |tid| threads.push(tid));
            count += threads.len();
            for tid in &threads {
                procfs::children(known.process, *tid, |child| {
                    if !processes.iter().any(|p| p.process == child) {
                        processes.extend(Identity::of(child));
                    }
                });
            }
        }
        let differs = count != self.known.load(Ordering::Relaxed) as usize;
        if differs {
            self.stale.store(true, Ordering::Release);
        }
        differs
    }

    /// For the supervisor: takes in a process that has lost its parents.
    pub(crate) fn adopt(&self, process: i32) {
        self.adopted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(process);
        self.stale.store(true, Ordering::Release);
    }

    /// After the run: makes it an ordinary program that goes on, and sends it a signal.
    pub(crate) fn dismiss(&self, signal: i32) {
        let mut family = self.family();
        // It fails only where the kernel has lost the thread.
        let _ = family.lower();
        match self.pages() {
            // It is told by the library.
            Some(pages) => pages.end(),
            None => family.signal(signal),
        }
        family.signal(libc::SIGCONT);
        drop(family);
        // Likewise.
        let _ = self.let_go();
    }
}
