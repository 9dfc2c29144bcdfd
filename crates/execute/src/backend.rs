//! The seam between what is decided and what carries it out.
//!
//! A domain ([`crate::domain`]) decides and keeps the books; it makes no system call and reads no
//! clock but by way of these two traits. A [`Backend`] carries out the decisions of one domain,
//! under that domain's lock. A [`Host`] is what the backends of all domains of a run share.
//!
//! Implementations: threads of this process, and programs in their place, by priority and affinity
//! ([`crate::threads`]); memory with a virtual clock, for tests (`crate::memory`).
//!
//! **Work and jobs.** A task's thread does pieces of work, one at a time, and counts them. A job is
//! one piece of work, but a job that was cut short leaves its piece unfinished; the thread finishes
//! it in the time of later jobs. The domain keeps that account; a backend knows pieces of work
//! only.
//!
//! **Errors.** A backend that cannot do what it is told returns why, and does as much as it can of
//! the rest. The caller ends the run with the first such error.

use crate::ids::PostId;
use model::{CpuId, Duration, Instant, Result, TaskId};
use policy::Place;

/// What the backends of all domains of a run share.
pub(crate) trait Host: Send + Sync + 'static {
    /// What a backend knows of one task. It moves with the task from domain to domain, so that the
    /// task's owner alone changes it.
    type Task: Copy + Send + 'static;

    /// The time of the run; zero before it has begun.
    fn now(&self) -> Instant;

    /// Waits until the clock reads later than `before`, and returns its reading.
    fn now_after(&self, before: Instant) -> Instant;

    /// Makes the dispatcher of a post look at its domain soon. Anybody calls this, at any priority,
    /// with or without a domain's lock.
    fn call(&self, post: PostId);

    /// A stage is about to rule: `leaders` decide for its domains, and no other post has anything
    /// to decide. Called when no dispatcher is in a domain.
    fn expect_decisions(&self, leaders: impl Iterator<Item = PostId>);

    /// Wakes every thread that waits for something other than a call of its post: the stage or the
    /// run has changed.
    fn wake_all(&self);
}

/// What the backend knows of a task, by backend.
pub(crate) type TaskOf<B> = <<B as Backend>::Host as Host>::Task;

/// Carries out the decisions of one domain. The caller holds the domain's lock in every call.
pub(crate) trait Backend: Send + 'static {
    type Host: Host;

    /// The dispatcher of this place begins a step: it notes what happened, decides, and carries
    /// out.
    fn begin_step(&mut self, here: Place);

    /// When is it? In the time of the run, never before an earlier answer on the same processor.
    fn now(&self) -> Instant;

    /// Once in every step, before anything is decided: looks after tasks that changed by
    /// themselves. A domain whose tasks cannot has nothing to do here.
    ///
    /// # Errors
    /// The system refuses it.
    fn tend(&mut self) -> Result<()> {
        Ok(())
    }

    /// From now on the job of this task, which runs nowhere, runs at this place, where no other job
    /// runs. Moves it there if it was elsewhere, and lets it go on if it was stopped. `choice` says
    /// the same to a program that reads its page.
    ///
    /// # Errors
    /// It could not be moved, raised or let go on.
    fn run(&mut self, task: TaskId, place: Place, choice: &Choice) -> Result<()>;

    /// Lets the task, which runs at this place, begin its next piece of work, if it is not within
    /// one.
    fn begin_work(&mut self, task: TaskId, place: Place);

    /// From now on the job of this task does not run at this place. It may be done before that
    /// takes effect: the caller asks [`Backend::has_done`] next. `now`: the moment of the step.
    ///
    /// # Errors
    /// The system refuses it.
    fn preempt(&mut self, task: TaskId, place: Place, then: Then, now: Instant) -> Result<()>;

    /// Stops a task that was preempted, within its work: it does not go on before it is run again,
    /// even where no job takes its processor.
    ///
    /// # Errors
    /// The system refuses it.
    fn stop(&mut self, task: TaskId) -> Result<()>;

    /// After a decision no job runs at this place: stops every preempted job that would go on
    /// there.
    ///
    /// # Errors
    /// The system refuses it.
    fn leave_idle(&mut self, place: Place) -> Result<()>;

    /// The processor time that the task has used since it was started, in nanoseconds.
    fn executed(&mut self, task: TaskId) -> u64;

    /// Has the task done a piece of work that [`Backend::take_done`] has not told of?
    fn has_done(&self, task: TaskId) -> bool;

    /// Tells of one piece of work that the task has done. Called only if [`Backend::has_done`].
    /// `now`: the latest moment at which it was done; it has had no time after that.
    fn take_done(&mut self, task: TaskId, now: Instant) -> Done;

    /// How often the piece of work that the task has done last missed the shared cache; `None`:
    /// nobody counts that.
    fn misses(&self, _task: TaskId) -> Option<u64> {
        None
    }

    /// The job of this task is over, by itself or cut short, and was preempted if it still ran. A
    /// task that would go on by itself is kept from it until its next job runs.
    ///
    /// # Errors
    /// The system refuses it.
    fn retire(&mut self, task: TaskId) -> Result<()> {
        let _ = task;
        Ok(())
    }

    /// The task, which runs nowhere, is another domain's from now on.
    fn give(&mut self, task: TaskId) -> TaskOf<Self>;

    /// The task is this domain's from now on, and runs nowhere.
    ///
    /// # Errors
    /// It would go on by itself, and could not be stopped.
    fn take(&mut self, task: TaskId, known: TaskOf<Self>) -> Result<()>;

    /// Reads what running this task will need, while there is time. Changes nothing.
    fn foresee(&self, _task: TaskId) {}
}

/// What becomes of a job that leaves its processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Then {
    /// It stays there, below any job that comes.
    Waits,
    /// The caller stops it, or retires it, right afterwards.
    Stops,
    /// It runs at another place of the domain by the same decision.
    Moves,
}

/// A choice of a job for a processor, for a program that reads its page.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Choice {
    /// The job's number, from 0.
    pub number: u64,
    pub release: Instant,
    pub deadline: Instant,
    pub now: Instant,
    /// The processor that the job was on before, if it was on one.
    pub before: Option<CpuId>,
}

/// What is known of a finished piece of work.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Done {
    /// When it began, where that is known.
    pub began: Option<Instant>,
    /// When the task was told to begin it, if that was done from another processor.
    pub called: Option<Instant>,
    /// The processor time that it took, where the task has measured that itself.
    pub used: Option<Duration>,
}
