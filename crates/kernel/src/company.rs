//! The programs among the tasks of a run: taken in, looked after, let go.
//!
//! Their threads are of the class of the jobs, and the program in the kernel has them in custody
//! between their jobs; so nobody stops them, and nobody has to know how many there are. What is
//! done so that none survives is the engine's in user space ([`execute::Programs`]).

use crate::class;
use crate::engine::refused;
use crate::outcome::Settings;
use crate::plan::Carried;
use crate::worker::Shared;
use execute::{
    Alongside, Asking, Beside, Cast, Done, Efforts, Kept, Manner, Performer, ProgramEnd, Programs,
};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Result, TaskId, TaskSet};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use workload::Work;

/// How often they are looked after.
const EVERY: std::time::Duration = std::time::Duration::from_millis(20);

/// The programs of a run, and its best-effort work; none where no task has one.
#[derive(Debug)]
pub(crate) struct Company {
    /// `None`: there are none, or the keeper has them.
    programs: Option<Programs>,
    keeper: Option<JoinHandle<Programs>>,
    state: Arc<State>,
    /// Are all tasks programs?
    are_all: bool,
    /// What fills the time that jobs leave, and what tells it that the run is over.
    efforts: Option<(Alongside, Arc<Shared>)>,
}

/// What the thread that looks after them shares with the run.
#[derive(Debug, Default)]
struct State {
    over: AtomicBool,
    failed: OnceLock<Error>,
    /// All of them have ended.
    ended: AtomicBool,
}

/// What threads of this process do, by task.
pub(crate) type Works = Vec<(TaskId, Box<dyn Work>)>;

/// Tells threads of this process from programs.
pub(crate) fn split(performers: Vec<Performer>, set: &TaskSet, efforts: &Efforts) -> (Works, Cast) {
    let mut works = Vec::new();
    let mut cast = Cast {
        efforts: efforts.clone(),
        ..Cast::default()
    };
    for (task, performer) in set.ids().zip(performers) {
        match performer {
            Performer::Work(work) => works.push((task, work)),
            Performer::Program(launch) => cast.launches.push((task, launch)),
            Performer::Outside(socket) => cast.outside.push((task, socket)),
        }
    }
    (works, cast)
}

/// Says in a plan which tasks have programs, and what kind of them.
///
/// # Errors
/// One asks for its jobs, and the policy decides at quanta.
pub(crate) fn give(cast: &Cast, carried: &mut Carried, set: &TaskSet) -> Result<()> {
    for (task, launch) in &cast.launches {
        match launch.manner {
            Manner::Unmodified(beyond) => carried.give_program(*task, set, beyond),
            Manner::Written => carried.give_asking_program(*task, set)?,
        }
    }
    for (task, _) in &cast.outside {
        carried.give_asking_program(*task, set)?;
    }
    Ok(())
}

impl Company {
    /// Starts programs; those that know nothing of jobs are held before their first instructions.
    /// The calling thread has to stay.
    ///
    /// # Errors
    /// One of them cannot be started.
    pub fn start(set: &TaskSet, cast: Cast, horizon: Duration, watch: &dyn Watch) -> Result<Self> {
        let are_all = cast.tasks() == set.len();
        // They have a watchdog, which others have no need of.
        let programs = match cast.is_empty() {
            true => None,
            false => Some(Programs::start(set, cast, horizon, watch)?),
        };
        Ok(Company {
            programs,
            keeper: None,
            state: Arc::default(),
            are_all,
            efforts: None,
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

    /// Waits until programs that ask for their jobs have asked for the first one.
    ///
    /// # Errors
    /// One of them does not; the user does not want to wait any more.
    pub fn gather(&mut self, watch: &dyn Watch) -> Result<()> {
        self.programs.as_mut().map_or(Ok(()), |p| p.gather(watch))
    }

    /// Those that ask for their jobs.
    pub fn asking(&self) -> Option<Asking> {
        self.programs.as_ref().map(Programs::asking)
    }

    /// Their threads, as they are now.
    pub fn threads(&self) -> impl Iterator<Item = (TaskId, i32)> + '_ {
        self.programs.iter().flat_map(Programs::threads)
    }

    /// Notes their first processes.
    pub fn enter(&self, shared: &Shared) {
        for (task, process) in self.programs.iter().flat_map(Programs::first_processes) {
            shared.threads[task.index()].store(process, Ordering::Release);
        }
    }

    /// Starts best-effort work, which waits for the first release. It is of the class of the jobs,
    /// and behind all of them.
    ///
    /// # Errors
    /// No thread can be had, or a program cannot be started.
    pub fn start_efforts(
        &mut self,
        shared: &Arc<Shared>,
        efforts: &Efforts,
        cpus: &[u32],
    ) -> Result<()> {
        let beside: Arc<dyn Beside> = shared.clone();
        let cpus: Vec<CpuId> = cpus.iter().copied().map(CpuId).collect();
        let programs = self.programs.as_ref();
        let started = Alongside::start(&beside, efforts, &cpus, class::come_in, programs)?;
        self.efforts = Some((started, Arc::clone(shared)));
        Ok(())
    }

    /// They come into the class of the jobs, and are held by the program in the kernel alone. `know`
    /// tells it whose task a thread is; what a thread starts is of the same task.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn come_in(&self, mut know: impl FnMut(TaskId, i32) -> Result<()>) -> Result<()> {
        for (task, thread) in self.threads() {
            // It may have been born since all others were made known.
            know(task, thread)?;
            match class::take_in(thread) {
                // It may have come to its end meanwhile.
                Err(e) if e.raw_os_error() != Some(rustix::io::Errno::SRCH.raw_os_error()) => {
                    return Err(refused());
                }
                _ => {}
            }
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
            let _ = class::come_in();
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

    /// Ends best-effort work, after the run. What came of it, by name.
    ///
    /// # Errors
    /// Of the first that failed.
    pub fn end_efforts(&mut self) -> Result<Vec<Done>> {
        let Some((efforts, shared)) = self.efforts.take() else {
            return Ok(Vec::new());
        };
        shared.stop.store(true, Ordering::Release);
        efforts.end()
    }

    /// Ends programs, after the run.
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
        // The run has failed, and says why.
        let _ = self.end_efforts();
        self.end();
    }
}
