//! The programs among the tasks of a run: taken in, looked after, let go.
//!
//! Their threads are of the class of the jobs, and the program in the kernel has them in custody
//! between their jobs; so nobody stops them, and nobody has to know how many there are. What is
//! done so that none survives is the engine's in user space ([`execute::Programs`]).

use crate::outcome::Settings;
use crate::surroundings::SCHED_EXT;
use crate::worker::Shared;
use execute::{Kept, Launch, Manner, Performer, ProgramEnd, Programs};
use model::watch::Watch;
use model::{Beyond, Duration, Error, Result, TaskId, TaskSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use workload::Work;

/// Who does the jobs of which task.
type Given<T> = Vec<(TaskId, T)>;
/// Threads of this process, and programs.
type Split = (Given<Box<dyn Work>>, Given<Launch>);

/// How often they are looked after.
const EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// The programs of a run; none where no task has one.
#[derive(Debug)]
pub(crate) struct Company {
    /// `None`: there are none, or the keeper has them.
    programs: Option<Programs>,
    keeper: Option<JoinHandle<Programs>>,
    state: Arc<State>,
    /// Are all tasks programs?
    are_all: bool,
}

/// What the thread that looks after them shares with the run.
#[derive(Debug, Default)]
struct State {
    over: AtomicBool,
    failed: OnceLock<Error>,
    /// All of them have ended.
    ended: AtomicBool,
}

/// Tells threads of this process from programs.
///
/// # Errors
/// A program asks for its jobs, or is to go on beyond its budget.
pub(crate) fn split(performers: Vec<Performer>, set: &TaskSet) -> Result<Split> {
    let (mut works, mut launches) = (Vec::new(), Vec::new());
    for (task, performer) in set.ids().zip(performers) {
        let refuse = |cause: &str, remedy: &str| {
            Err(Error::new(format!("the engine in the kernel {cause}"))
                .at(format!("task {}", set.name(task)))
                .remedy(remedy))
        };
        match performer {
            Performer::Work(work) => works.push((task, work)),
            Performer::Program(launch) => match launch.manner {
                Manner::Unmodified(Beyond::Hold) => launches.push((task, launch)),
                Manner::Unmodified(Beyond::BestEffort) => {
                    return refuse(
                        "holds a program whose budget is used up",
                        "leave `beyond_budget` out, or run the set from user space",
                    );
                }
                Manner::Written => return refuse(NO_ASKING, AS_IT_IS),
            },
            Performer::Outside(_) => return refuse(NO_ASKING, AS_IT_IS),
        }
    }
    Ok((works, launches))
}

const NO_ASKING: &str = "does not know programs that ask for their jobs";
const AS_IT_IS: &str = "run the program as it is (`exec`), or the set from user space";

impl Company {
    /// Starts programs, which are held before their first instructions. The calling thread has to
    /// stay.
    ///
    /// # Errors
    /// One of them cannot be started.
    pub fn start(
        set: &TaskSet,
        launches: Given<Launch>,
        horizon: Duration,
        watch: &dyn Watch,
    ) -> Result<Self> {
        let are_all = launches.len() == set.len();
        // They have a watchdog, which others have no need of.
        let programs = match launches.is_empty() {
            true => None,
            false => Some(Programs::start(set, launches, horizon, watch)?),
        };
        Ok(Company {
            programs,
            keeper: None,
            state: Arc::default(),
            are_all,
        })
    }

    /// Makes the FIFOs and sockets of triggers. What goes with them is to be kept.
    ///
    /// # Errors
    /// Something is there already.
    pub fn make(
        &self,
        settings: &Settings,
        set: &TaskSet,
        watch: &dyn Watch,
    ) -> Result<Option<Kept>> {
        if let Some(programs) = &self.programs {
            let made = programs.make(&settings.triggers, set, watch);
            return made.map(|()| None);
        }
        let (kept, missing) = settings.triggers.make_without_watchdog(set)?;
        if let Some(e) = missing {
            watch.note(&format!(
                "{e}: if this run is killed, its FIFOs and sockets stay"
            ));
        }
        Ok(Some(kept))
    }

    fn first_processes(&self) -> impl Iterator<Item = (TaskId, i32)> + '_ {
        self.programs.iter().flat_map(Programs::first_processes)
    }

    /// Notes their first threads.
    pub fn enter(&self, shared: &Shared) {
        for (task, process) in self.first_processes() {
            shared.threads[task.index()].store(process, Ordering::Release);
        }
    }

    /// They come into the class of the jobs, and are held by the program in the kernel alone.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn come_in(&self) -> std::io::Result<()> {
        for (_, process) in self.first_processes() {
            sys::scheduling::set(process, SCHED_EXT, 0)?;
        }
        self.programs.iter().for_each(Programs::go_on);
        Ok(())
    }

    /// The first jobs are released then, as `CLOCK_MONOTONIC` reads.
    pub fn begins(&self, origin: u64) {
        if let Some(programs) = &self.programs {
            programs.begins(origin);
        }
    }

    /// From now on a thread looks after them. It is of the class of the jobs, and behind all of
    /// them: whatever it does, no job waits for it. Where jobs take all time, it is noticed late
    /// that one has ended.
    ///
    /// # Errors
    /// No thread can be had.
    pub fn look_after(&mut self) -> Result<()> {
        let Some(mut programs) = self.programs.take() else {
            return Ok(());
        };
        let state = Arc::clone(&self.state);
        let look = move || {
            // As an ordinary one it would go before jobs, and do the same.
            let _ = sys::scheduling::set(0, SCHED_EXT, 0);
            while !state.over.load(Ordering::Acquire) {
                if let Err(e) = programs.look() {
                    // The first one is told.
                    let _ = state.failed.set(e);
                }
                state.ended.store(programs.have_ended(), Ordering::Release);
                std::thread::park_timeout(EVERY);
            }
            programs
        };
        let thread = std::thread::Builder::new()
            .name("keeper".to_owned())
            .stack_size(256 << 10)
            .spawn(look)
            .map_err(|e| Error::new(format!("cannot start a thread for programs: {e}")))?;
        self.keeper = Some(thread);
        Ok(())
    }

    /// Why the run cannot go on, if so: one of them failed.
    pub fn failure(&self) -> Option<Error> {
        self.state.failed.get().cloned()
    }

    /// Are all tasks programs, and all of them at their ends?
    pub fn has_ended(&self) -> bool {
        self.are_all && self.state.ended.load(Ordering::Acquire)
    }

    /// Ends them, after the run.
    pub fn end(&mut self) -> Vec<ProgramEnd> {
        self.state.over.store(true, Ordering::Release);
        if let Some(keeper) = self.keeper.take() {
            keeper.thread().unpark();
            // What it panicked with went to standard error; its programs went with it.
            self.programs = keeper.join().ok();
        }
        let ends = self.programs.as_mut().map(Programs::end);
        ends.unwrap_or_default()
    }
}

impl Drop for Company {
    fn drop(&mut self) {
        self.end();
    }
}
