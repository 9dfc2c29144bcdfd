//! Programs that ask for their jobs, in a run that another engine carries out: that engine knows
//! when a job begins, and this tells the program; the program says when it has done it, and this
//! tells the engine.

use crate::programs::elsewhere::Elsewhere;
use crate::programs::pages::Pages;
use crate::programs::program::Program;
use crate::programs::run::Run;
use model::TaskId;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use warmset_task::Job;
use warmset_task::shared::futex_wait;

/// The bell that all of them ring.
const BELL: u32 = 0;

/// The programs of a run that ask for their jobs. Clones are of the same ones.
#[derive(Clone)]
pub struct Asking {
    run: Arc<Elsewhere>,
    tasks: Vec<TaskId>,
}

impl Asking {
    pub(crate) fn new(run: Arc<Elsewhere>, tasks: Vec<TaskId>) -> Self {
        Asking { run, tasks }
    }

    /// Their tasks.
    pub fn tasks(&self) -> &[TaskId] {
        &self.tasks
    }

    fn program(&self, task: TaskId) -> Option<&Program> {
        self.run.program(task)
    }

    fn pages(&self, task: TaskId) -> Option<&Pages> {
        self.program(task).and_then(Program::pages)
    }

    /// Where the program of a task has the word (`u32`) that says how many jobs it has done, in the
    /// memory of its first process; 0: nowhere.
    pub fn place(&self, task: TaskId) -> u64 {
        self.pages(task).map_or(0, Pages::place)
    }

    /// How many jobs the program of a task was told to do, and how many it has done; both wrap.
    pub fn counts(&self, task: TaskId) -> (u32, u32) {
        self.pages(task).map_or((0, 0), Pages::counts)
    }

    /// Has its first process ended, or left the run?
    pub fn has_gone(&self, task: TaskId) -> bool {
        self.program(task)
            .is_none_or(|program| program.gone.load(Ordering::Acquire))
    }

    /// Tells a program of its next job, for which it wakes up.
    pub fn tell(&self, task: TaskId, job: &Job) {
        if let Some(pages) = self.pages(task) {
            pages.say(job);
            pages.tell();
        }
    }

    /// How often one of them has said that it has done a job; wraps.
    pub fn rung(&self) -> u32 {
        let bell = self.run.bells().page.bell(BELL);
        bell.map_or(0, |bell| bell.load(Ordering::Acquire))
    }

    /// Sleeps until they have done so more often than `rung`, or somebody wakes it.
    pub fn wait(&self, rung: u32) {
        if let Some(bell) = self.run.bells().page.bell(BELL) {
            futex_wait(bell, rung);
        }
    }

    /// Wakes who waits.
    pub fn wake(&self) {
        self.run.bells().page.ring(BELL);
    }
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.tasks).finish()
    }
}
