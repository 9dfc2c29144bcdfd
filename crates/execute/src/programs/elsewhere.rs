//! The programs of a run that another engine carries out: started and held before their first
//! instruction, looked after, and ended, as those of the engine in user space are. Who of them runs
//! when is that engine's matter.

use crate::clock::{Monotonic, Timestamps};
use crate::effort::Efforts;
use crate::engine::{self, Protection};
use crate::programs::asking::Asking;
use crate::programs::ends::ProgramEnd;
use crate::programs::joining::JoinSocket;
use crate::programs::keeper::Keeper;
use crate::programs::launch::{Launch, Manner};
use crate::programs::pages::SentinelBells;
use crate::programs::program::Program;
use crate::programs::run::Run;
use crate::trigger::Triggers;
use crate::watchdog::{BoardRef, Patience};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Result, TaskId, TaskSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};

/// The programs of a run, before they are started.
#[derive(Debug, Default)]
pub struct Cast {
    /// Those that the run starts, by task.
    pub launches: Vec<(TaskId, Launch)>,
    /// Those that somebody else starts, by task, and where they join.
    pub outside: Vec<(TaskId, Arc<JoinSocket>)>,
    /// Best-effort work, of which it is told that there may be programs ([`crate::Alongside`]
    /// starts them).
    pub efforts: Efforts,
}

impl Cast {
    /// Are there no programs at all?
    pub fn is_empty(&self) -> bool {
        self.tasks() == 0 && !self.efforts.has_programs()
    }

    /// How many tasks have programs.
    pub fn tasks(&self) -> usize {
        self.launches.len() + self.outside.len()
    }
}

/// Programs that are tasks of a run. When this value goes, they are ended; when its process is
/// killed, a watchdog ends them, and where that is killed as well its heir.
pub struct Programs {
    keeper: Keeper,
    run: Arc<Elsewhere>,
    tasks: Vec<TaskId>,
    /// Those of them that ask for their jobs.
    asking: Vec<TaskId>,
    outside: Vec<(TaskId, Arc<JoinSocket>)>,
    is_over: bool,
    /// Whoever sees to it that nothing survives; goes last.
    protection: Protection,
}

/// The run, as the keeper knows it.
pub(crate) struct Elsewhere {
    board: BoardRef,
    bells: SentinelBells,
    hired: Mutex<Vec<i32>>,
    names: Vec<String>,
    programs: Vec<OnceLock<Program>>,
    /// What `CLOCK_MONOTONIC` reads at time zero; 0: not known yet.
    origin: AtomicU64,
    fault: OnceLock<Error>,
}

impl Elsewhere {
    /// How many tasks there are.
    pub fn tasks(&self) -> u32 {
        self.names.len() as u32
    }
}

impl Run for Elsewhere {
    fn board(&self) -> &BoardRef {
        &self.board
    }
    fn bells(&self) -> &SentinelBells {
        &self.bells
    }
    fn ring_all(&self) {}
    fn hired(&self) -> &Mutex<Vec<i32>> {
        &self.hired
    }
    fn name(&self, task: TaskId) -> &str {
        &self.names[task.index()]
    }
    fn program(&self, task: TaskId) -> Option<&Program> {
        self.programs[task.index()].get()
    }
    fn perform(&self, task: TaskId, program: Program) {
        // Set once, by `Programs::start`.
        let _ = self.programs[task.index()].set(program);
    }
    fn first_cpu(&self) -> Option<CpuId> {
        None
    }
    fn now(&self) -> Instant {
        match self.origin.load(Ordering::Acquire) {
            0 => Instant::ZERO,
            origin => Instant::from_nanos(Monotonic.read().saturating_sub(origin)),
        }
    }
    /// Its class and its task are inherited within the kernel.
    fn tidy(&self, _: TaskId) {}
    fn fail(&self, error: Error) {
        // The first one is told.
        let _ = self.fault.set(error);
    }
    fn fault(&self) -> Option<&Error> {
        self.fault.get()
    }
}

impl Programs {
    /// Starts the programs of these tasks and holds before their first instructions those that know
    /// nothing of jobs. The calling thread has to stay for as long as this value: they end with it.
    /// `longest`: how long the run may last.
    ///
    /// # Errors
    /// One of them cannot be started or held; no right to a watchdog's priority.
    pub fn start(set: &TaskSet, cast: Cast, longest: Duration, watch: &dyn Watch) -> Result<Self> {
        let Cast {
            launches,
            outside,
            efforts,
        } = cast;
        let protection = Protection::begin(Patience::default(), true, watch)?;
        let board = protection.board();
        let asks = |(task, launch): &(TaskId, Launch)| {
            matches!(launch.manner, Manner::Written).then_some(*task)
        };
        let joining = || outside.iter().map(|(task, _)| *task);
        let launched = launches.iter().map(|(task, _)| *task);
        let mut programs = Programs {
            keeper: Keeper::new(board.mark()),
            tasks: launched.chain(joining()).collect(),
            asking: launches.iter().filter_map(asks).chain(joining()).collect(),
            outside,
            is_over: false,
            run: Arc::new(Elsewhere {
                board,
                bells: SentinelBells::new()?,
                hired: Mutex::default(),
                names: set.ids().map(|task| set.name(task)).collect(),
                programs: set.ids().map(|_| OnceLock::new()).collect(),
                origin: AtomicU64::new(0),
                fault: OnceLock::new(),
            }),
            protection,
        };
        if efforts.has_programs() || !programs.outside.is_empty() {
            programs.keeper.take_orphans();
        }
        let longest = longest.saturating_add(engine::AFTER);
        for (task, launch) in launches {
            programs
                .keeper
                .launch(&*programs.run, task, launch, longest)?;
        }
        Ok(programs)
    }

    /// The run that others work for, too.
    pub(crate) fn run(&self) -> Arc<Elsewhere> {
        Arc::clone(&self.run)
    }

    /// Makes what releases jobs of tasks that have a trigger, and sockets by which programs join,
    /// to be taken away with this value.
    ///
    /// # Errors
    /// Something is there already, or nothing can be.
    pub fn make(&self, triggers: &Triggers, set: &TaskSet, watch: &dyn Watch) -> Result<()> {
        triggers.make(&self.protection.made, set)?;
        for (_, socket) in &self.outside {
            socket.make(&self.protection.made)?;
        }
        self.protection.tell_missing(watch);
        Ok(())
    }

    /// Waits until all that ask for their jobs have come, and have asked for the first one.
    ///
    /// # Errors
    /// One of them ended before, or did not ask within ten seconds; the user does not want to wait
    /// any more.
    pub fn gather(&mut self, watch: &dyn Watch) -> Result<()> {
        self.keeper
            .gather(&*self.run, &self.outside, &|| watch.stopped())
    }

    /// Those that ask for their jobs, for whoever tells them of those.
    pub fn asking(&self) -> Asking {
        Asking::new(self.run(), self.asking.clone())
    }

    /// Their tasks and first processes.
    pub fn first_processes(&self) -> impl Iterator<Item = (TaskId, i32)> + '_ {
        self.tasks.iter().filter_map(|task| {
            let process = self.keeper.first_process(*task)?;
            Some((*task, process))
        })
    }

    /// Their threads, as they are now, each with its task.
    pub fn threads(&self) -> impl Iterator<Item = (TaskId, i32)> + '_ {
        let of = |task: &TaskId| {
            let task = *task;
            self.keeper
                .threads(task)
                .into_iter()
                .map(move |t| (task, t))
        };
        self.tasks.iter().flat_map(of)
    }

    /// Holds them no more.
    pub fn go_on(&self) {
        for task in self.tasks.iter().filter(|task| !self.asking.contains(task)) {
            if let Some(program) = self.run.program(*task) {
                program.release();
            }
        }
    }

    /// The first jobs are released at this reading of `CLOCK_MONOTONIC`, in nanoseconds.
    pub fn begins(&self, origin: u64) {
        self.run.origin.store(origin, Ordering::Release);
    }

    /// Looks once who has ended, who was born and who has lost its parents; to be called some fifty
    /// times a second.
    ///
    /// # Errors
    /// A program failed.
    pub fn look(&mut self) -> Result<()> {
        self.keeper.look(&*self.run);
        self.run.fault().map_or(Ok(()), |e| Err(e.clone()))
    }

    /// Have all of them ended?
    pub fn have_ended(&self) -> bool {
        self.keeper.ended() == self.tasks.len()
    }

    /// Ends all of them, whatever they do. What became of them, in the order of the tasks.
    pub fn end(&mut self) -> Vec<ProgramEnd> {
        let ends = self.keeper.end(&*self.run);
        self.run.board.unsupervised();
        self.is_over = true;
        ends
    }
}

impl Drop for Programs {
    fn drop(&mut self) {
        if !self.is_over {
            self.end();
        }
    }
}

impl std::fmt::Debug for Programs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.tasks).finish()
    }
}
