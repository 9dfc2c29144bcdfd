//! Best-effort work: ordinary threads and programs on the processors of a run, in the time that
//! jobs leave.
//!
//! It is there before the first release, begins with it, and ends with the run. How much it got
//! done is measured: its processor time, and how often a thread did its work. Nothing is decided
//! about it: the kernel shares what is left among all that is ordinary.

mod alongside;
mod program;
pub use alongside::Alongside;

use crate::clock::Timestamps;
use crate::kernel::Thread;
use crate::programs::ends::How;
use crate::programs::rights::Rights;
use crate::remedies;
use crate::threads::host::ThreadTeam;
use model::{CpuId, Duration, Error, Instant, Result};
use program::Employment;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::JoinHandle;
use workload::Work;

/// What is done.
pub enum Effort {
    /// Again and again, by a thread; a job is to last for a millisecond or so, so that its end is
    /// not missed.
    Work(Box<dyn Work>),
    /// A program, which runs until it ends or the run does.
    Program {
        /// The program and its arguments.
        command: Vec<String>,
        /// With which rights it runs.
        rights: Rights,
    },
}

/// Best-effort work of a run, with names. Clones share it; it is done once.
#[derive(Clone, Default)]
pub struct Efforts(Arc<Mutex<Vec<(String, Effort)>>>);

impl std::fmt::Debug for Efforts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        f.debug_list()
            .entries(all.iter().map(|(name, _)| name))
            .finish()
    }
}

impl Efforts {
    fn take(&self) -> Vec<(String, Effort)> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Are there programs among them?
    pub fn has_programs(&self) -> bool {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.iter()
            .any(|(_, effort)| matches!(effort, Effort::Program { .. }))
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    /// These.
    pub fn new(all: Vec<(String, Effort)>) -> Self {
        Efforts(Arc::new(Mutex::new(all)))
    }
}

/// The run beside which best-effort work goes on.
pub trait Beside: Send + Sync {
    /// Are the first jobs released?
    fn has_begun(&self) -> bool;
    /// Is it over, or about to be?
    fn is_over(&self) -> bool;
    /// Set when work has to come back.
    fn stop(&self) -> &AtomicBool;
}

struct InTeam<'a> {
    team: &'a ThreadTeam,
    horizon: Instant,
}

impl Beside for InTeam<'_> {
    fn has_begun(&self) -> bool {
        (self.team.timeline()).is_some_and(|timeline| {
            timeline.reading(Instant::ZERO) <= crate::clock::Monotonic.read()
        })
    }
    fn is_over(&self) -> bool {
        self.team.host.stop.load(Ordering::Acquire)
            || self.team.ending.load(Ordering::Acquire)
            || self.team.now() >= self.horizon
    }
    fn stop(&self) -> &AtomicBool {
        &self.team.host.stop
    }
}

/// What came of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Done {
    /// Whose.
    pub name: String,
    /// Processor time within the run; of a program that of all that it has waited for, too.
    pub executed: Duration,
    /// How often a thread did its work.
    pub rounds: u64,
    /// How a program ended before the run did.
    pub ended: Option<How>,
}

/// Those that are at work.
#[derive(Default)]
pub(crate) struct RunningEfforts {
    threads: Vec<JoinHandle<()>>,
    done: Arc<Mutex<Vec<Done>>>,
}

impl RunningEfforts {
    /// Starts all of them, and waits until programs are there and held: what is done begins with
    /// the first release. `mark`: what programs carry in their environment.
    ///
    /// # Errors
    /// No thread can be had, or a program cannot be started. Those that are there end with the run.
    pub fn start(
        &mut self,
        team: &Arc<ThreadTeam>,
        efforts: &Efforts,
        cpus: &[CpuId],
        horizon: Instant,
        mark: &str,
    ) -> Result<()> {
        let (there, awaited) = mpsc::channel();
        for (index, (name, effort)) in efforts.take().into_iter().enumerate() {
            // Each by its own: what is left of one that has ended is killed, the others are not.
            let (team, cpus, mark) = (Arc::clone(team), cpus.to_vec(), format!("{mark}-{index}"));
            let (done, there) = (Arc::clone(&self.done), there.clone());
            let thread = std::thread::Builder::new()
                .name(name.chars().take(15).collect())
                .stack_size(256 << 10)
                .spawn(move || {
                    let beside = InTeam {
                        team: &team,
                        horizon,
                    };
                    let employment = Employment {
                        run: &*team,
                        beside: &beside,
                        number: (team.host.workers.len() + index) as u32,
                        mark: &mark,
                        cpus: &cpus,
                    };
                    let there = There(name, there);
                    match effort.carry_out(there, &beside, &cpus, Some(&employment)) {
                        Ok(came) => done
                            .lock()
                            .unwrap_or_else(PoisonError::into_inner)
                            .push(came),
                        Err(e) => team.fail(e),
                    }
                });
            self.threads.push(thread.map_err(no_thread)?);
        }
        drop(there);
        all_are_there(&awaited)
    }

    /// Its threads.
    pub fn threads(&self) -> &[JoinHandle<()>] {
        &self.threads
    }

    /// What came of all of them that have ended, by name.
    pub fn done(&self) -> Vec<Done> {
        let mut done = self
            .done
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        done.sort_by(|a, b| a.name.cmp(&b.name));
        done
    }
}

/// Best-effort work of this name, and where it tells that it waits for the first release, by
/// dropping that, or why it cannot be started.
struct There(String, mpsc::Sender<Error>);

impl There {
    /// Tells an error, and says whose it is.
    fn tell(&self, e: Error) -> Error {
        let e = e.at(format!("best effort {}", self.0));
        // Where nobody hears it, the run is over already.
        let _ = self.1.send(e.clone());
        e
    }

    /// It waits.
    fn arrive(self) -> String {
        self.0
    }
}

/// Waits until all are there.
///
/// # Errors
/// Of the first that cannot be started.
fn all_are_there(awaited: &mpsc::Receiver<Error>) -> Result<()> {
    awaited.recv().map_or(Ok(()), Err)
}

fn no_thread(e: std::io::Error) -> Error {
    Error::new(format!("cannot start a thread for best-effort work: {e}"))
        .remedy(remedies::MORE_THREADS)
}

impl Effort {
    /// Does it, in the calling thread, from the first release to the end of the run. `employment`:
    /// that of a program.
    ///
    /// # Errors
    /// It cannot be started, of which is told there, too; the work panicked.
    fn carry_out(
        self,
        there: There,
        beside: &dyn Beside,
        cpus: &[CpuId],
        employment: Option<&Employment<'_>>,
    ) -> Result<Done> {
        match self {
            Effort::Work(work) => {
                Thread::current().confine(cpus).map_err(|e| {
                    there.tell(Error::new(format!("cannot be kept on its processors: {e}")))
                })?;
                let name = there.arrive();
                match work_on(beside, work) {
                    Some((executed, rounds)) => Ok(Done {
                        name,
                        executed,
                        rounds,
                        ended: None,
                    }),
                    None => Err(Error::new("its work panicked")
                        .at(format!("best effort {name}"))
                        .remedy("correct it")),
                }
            }
            Effort::Program { command, rights } => {
                let hired = employment
                    .ok_or_else(|| Error::new("nobody looks after programs"))
                    .and_then(|by| Ok((by, by.hire(&command, &rights)?)));
                let (by, process) = hired.map_err(|e| there.tell(e))?;
                let name = there.arrive();
                let (executed, ended) = by.see_to(process);
                Ok(Done {
                    name,
                    executed,
                    rounds: 0,
                    ended,
                })
            }
        }
    }
}

/// Waits for the first release. False: the run is over before.
fn await_release(beside: &dyn Beside) -> bool {
    let pause = std::time::Duration::from_millis(1);
    while !beside.is_over() {
        if beside.has_begun() {
            return true;
        }
        std::thread::sleep(pause);
    }
    false
}

/// Does work again and again within a run: its processor time, and how often it was done; `None`:
/// it panicked.
fn work_on(beside: &dyn Beside, mut work: Box<dyn Work>) -> Option<(Duration, u64)> {
    let all = AssertUnwindSafe(|| {
        let has_begun = await_release(beside);
        let before = machine::clock::thread_time();
        let mut rounds = 0;
        while has_begun && !beside.is_over() {
            work.job(rounds, beside.stop());
            rounds += 1;
        }
        (machine::clock::thread_time().saturating_sub(before), rounds)
    });
    // What it says of itself went to standard error.
    catch_unwind(all).ok()
}
