//! The books of a domain: its processors, its tasks, what is known of them, and the backend that
//! carries decisions out. What is done with them is in the modules beside.

use super::enforcement::{NEARLY, SHORTEST};
use super::samples::Samples;
use crate::backend::{Backend, Choice};
use crate::ids::InboxId;
use crate::task_state::{Parameters, TaskState};
use crate::team::Team;
use job::Limits;
use model::{CpuId, Duration, Enforcement, Instant, Result, TaskId};
use policy::tournament::Tournament;
use policy::{Place, ServerId};
use std::sync::Arc;
use trace::recorder::Producer;

/// What the trace shows of a processor on which no job runs, or that one does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Busy,
    Idle,
    /// Idle although a job is ready: the policy wants it so.
    Deliberate,
}

/// The books of a domain. Whoever changes them holds the domain's lock.
pub(crate) struct Books<B: Backend> {
    pub team: Arc<Team<B::Host>>,
    pub backend: B,
    pub domain: InboxId,
    /// The first domain of its policy among those of the run: policies count from there.
    pub first_domain: InboxId,
    /// By place.
    pub cpus: Vec<CpuId>,
    /// By task.
    pub parameters: Arc<[Parameters]>,
    /// By task; of those of other domains, nothing that counts.
    pub tasks: Vec<TaskState>,
    /// The moment of the present step: when it began, then how far it has come.
    pub now: Instant,
    /// When the present step began.
    pub(super) began: Instant,
    /// Decisions before it.
    pub(super) decided: u64,
    /// The place of the dispatcher whose step it is.
    pub(super) here: Place,
    /// Jobs that are put on their places when everybody has left who has to.
    pub(super) coming: Vec<(Place, TaskId)>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    /// How budgets and slices are kept. Execution time is kept where there are any.
    pub(super) limits: Limits,
    /// By place: the task that runs there.
    pub running: Vec<Option<TaskId>>,
    pub(super) shown: Vec<Shown>,
    /// By place: the server that it serves.
    pub(super) serving: Vec<Option<ServerId>>,
    /// By place: when to look at what its job has executed.
    pub looks: Tournament,
    /// By task: when a pushed job becomes ready here.
    pub arrivals: Tournament,
    /// When the policy wants to be woken, in nanoseconds; `u64::MAX`: never.
    pub timer: u64,
    /// How long before something is due its leader is up, where no job runs on its processor, in
    /// nanoseconds.
    pub early: u64,
    pub producer: Producer,
    /// Tasks that had finished when they were to be preempted: shown, and the policy not yet told.
    pub late: Vec<TaskId>,
    pub decisions: u64,
    /// How long steps took in which something was decided.
    pub steps: Samples,
    /// How long it took of them to take note and decide.
    pub thoughts: Samples,
    /// From telling a worker on another processor to begin to its first instruction.
    pub calls: Samples,
    /// From release to the first instruction, of jobs that were chosen at once.
    pub latencies: Samples,
}

/// What the books of a domain are made of.
pub(crate) struct Parts<B: Backend> {
    pub team: Arc<Team<B::Host>>,
    pub backend: B,
    pub domain: InboxId,
    pub first_domain: InboxId,
    pub cpus: Vec<CpuId>,
    pub parameters: Arc<[Parameters]>,
    pub tasks: Vec<TaskState>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    /// Is execution time to be kept whatever the enforcement is?
    pub limited: bool,
    pub early: Duration,
    pub producer: Producer,
}

impl<B: Backend> Books<B> {
    /// Sets all memory aside that steps will need.
    pub fn new(parts: Parts<B>) -> Self {
        let (places, tasks) = (parts.cpus.len(), parts.tasks.len());
        Books {
            team: parts.team,
            backend: parts.backend,
            domain: parts.domain,
            first_domain: parts.first_domain,
            cpus: parts.cpus,
            parameters: parts.parameters,
            tasks: parts.tasks,
            now: Instant::ZERO,
            began: Instant::ZERO,
            decided: 0,
            here: Place(0),
            coming: Vec::with_capacity(places),
            horizon: parts.horizon,
            enforcement: parts.enforcement,
            limits: Limits::new(
                parts.limited,
                parts.enforcement,
                parts.quantum.max(Duration::from_nanos(1)),
            )
            .timers(SHORTEST, NEARLY),
            running: vec![None; places],
            shown: vec![Shown::Busy; places],
            serving: vec![None; places],
            looks: Tournament::new(places),
            arrivals: Tournament::new(tasks),
            timer: u64::MAX,
            early: parts.early.nanos().min(10_000_000),
            producer: parts.producer,
            late: Vec::with_capacity(tasks),
            decisions: 0,
            steps: Samples::new(),
            thoughts: Samples::new(),
            calls: Samples::new(),
            latencies: Samples::new(),
        }
    }

    /// A step begins, of the dispatcher at this place. Returns when.
    pub fn begin(&mut self, here: Place) -> Instant {
        self.backend.begin_step(here);
        self.here = here;
        self.decided = self.decisions;
        self.began = self.pass();
        self.began
    }

    /// The processor of the dispatcher whose step it is.
    pub fn cpu_here(&self) -> CpuId {
        self.cpus[self.here.index()]
    }

    /// Looks at the clock: the step has come so far.
    pub fn pass(&mut self) -> Instant {
        self.now = self.backend.now().max(self.now);
        self.now
    }

    /// Ends the run if the backend could not do what it was told.
    pub fn check(&self, done: Result<()>) {
        if let Err(e) = done {
            self.team.fail(e);
        }
    }

    /// Reads what the release of a task will need.
    pub fn foresee(&self, task: TaskId) {
        let at = task.index();
        self.backend.foresee(task);
        std::hint::black_box((
            self.parameters[at],
            self.tasks[at].clone(),
            self.producer.foresee(),
        ));
    }

    /// The nominal release of a job; of a triggered one, once it was released.
    pub fn release_of(&self, task: TaskId, number: u64) -> Instant {
        if let Some(releaser) = &self.team.releasers[task.index()] {
            return releaser.release_of(number);
        }
        let parameters = &self.parameters[task.index()];
        let since = number.saturating_mul(parameters.period.nanos());
        Instant::from_nanos(since.saturating_add(parameters.phase.nanos()))
    }

    /// The absolute deadline of a job.
    pub fn deadline_of(&self, task: TaskId, number: u64) -> Instant {
        let release = self.release_of(task, number).nanos();
        Instant::from_nanos(release.saturating_add(self.parameters[task.index()].deadline.nanos()))
    }

    /// The choice of the current job of a task, as its program may read it.
    pub fn choice(&self, task: TaskId) -> Choice {
        let state = &self.tasks[task.index()];
        let life = &state.life;
        Choice {
            number: life.number(),
            release: life.release(),
            deadline: life.deadline(),
            now: self.now,
            before: state.last().filter(|_| life.has_started()),
        }
    }
}
