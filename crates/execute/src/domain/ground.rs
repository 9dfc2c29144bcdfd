//! The ground of a domain: its processors, its tasks and what is known of them.

use super::Enforcement;
use super::samples::Samples;
use crate::clock::{Monotonic, Timeline};
use crate::team::Team;
use crate::threads::gate;
use model::{CpuId, Duration, Instant, TaskId, Timing};
use policy::tournament::Tournament;
use policy::{Job, NONE};
use std::sync::Arc;
use trace::recorder::Producer;

/// What never changes about a task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fixed {
    /// Is it a program that knows nothing of jobs, so that its WCET is its budget?
    pub budgeted: bool,
    /// Are its jobs released by something else than the time?
    pub triggered: bool,
    pub phase: Duration,
    pub period: Duration,
    pub deadline: Duration,
    pub wcet: Duration,
}

impl Fixed {
    pub fn new(timing: &Timing, phase: Duration, budgeted: bool, triggered: bool) -> Self {
        Fixed {
            budgeted,
            triggered,
            phase,
            period: timing.period,
            deadline: timing.deadline,
            wcet: timing.wcet,
        }
    }
}

/// A task, its current or next job and its thread. Belongs to one domain at a time and moves with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Row {
    /// Is the task this domain's? The other fields mean nothing otherwise.
    pub owned: bool,
    /// The number of its current job, or of its next one if none is current.
    pub number: u64,
    /// Has the task a current job?
    pub current: bool,
    /// Was that job shown to have started?
    pub started: bool,
    /// Its nominal release.
    pub release: Instant,
    /// Which part of it, where it is split.
    pub part: u32,
    /// What it has executed, what it may still execute in this part and altogether, in nanoseconds; kept only where there
    /// are slices or budgets.
    pub executed: u64,
    pub slice_left: u64,
    pub budget_left: u64,
    /// Processor time of its thread up to which that is accounted for.
    pub accounted: u64,
    /// Where it runs (a place of the domain), or [`NONE`].
    pub place: u32,
    /// The processor on which its thread last ran, or [`NONE`]: for traces.
    pub last: u32,
    /// The processor that its thread may run on, or [`NONE`] at first.
    pub affinity: u32,
    /// Has its thread the priority of a chosen job?
    pub raised: bool,
    /// The place that it was told to leave while it may have been running there, or [`NONE`].
    pub left: u32,
    /// Is its gate closed?
    pub gated: bool,
    /// Is its thread within a piece of work?
    pub working: bool,
    /// How many pieces of work of its worker are known to be done; wraps.
    pub done: u32,
    /// How many of its jobs were cut short whose work is not done.
    pub behind: u32,
    /// Was it put on a processor as soon as it was released?
    pub prompt: bool,
    /// When it was told to begin on another processor than the one on which that was decided, in nanoseconds; 0: it was not.
    pub called: u64,
}

impl Row {
    /// `held`: a program, which is started and held.
    pub fn new(owned: bool, held: bool) -> Self {
        Row {
            owned,
            number: 0,
            current: false,
            started: false,
            release: Instant::ZERO,
            part: 0,
            executed: 0,
            slice_left: u64::MAX,
            budget_left: u64::MAX,
            accounted: 0,
            place: NONE,
            last: NONE,
            affinity: NONE,
            raised: false,
            left: NONE,
            gated: held,
            working: false,
            done: 0,
            behind: 0,
            prompt: false,
            called: 0,
        }
    }
}

/// What a place shows in the trace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Shown {
    Busy,
    Idle,
    Deliberate,
}

/// What becomes of a job that leaves its processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Leave {
    /// It waits there, below whoever comes.
    Waits,
    /// It is led to its gate.
    Stops,
    /// It runs on another processor by the same decision.
    Moves,
}

/// Processors, threads and what is known of them.
pub(crate) struct Ground {
    pub team: Arc<Team>,
    pub domain: u32,
    /// The first domain of its policy among those of the run: policies count from there.
    pub first_domain: u32,
    /// By place.
    pub cpus: Vec<CpuId>,
    /// The dispatcher of the first place.
    pub first_post: u32,
    pub fixed: Arc<[Fixed]>,
    pub rows: Vec<Row>,
    /// The moment of the present step: when it began, then how far it has come.
    pub now: Instant,
    /// When the present step began.
    pub(super) began: Instant,
    /// Decisions before it.
    pub(super) decided: u64,
    pub(super) timeline: Timeline,
    /// The place of the dispatcher whose step it is.
    pub(super) here: u32,
    /// Put on their places when everybody has left: place and task.
    pub(super) coming: Vec<(u32, u32)>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    /// Is execution time to be kept?
    pub(super) limited: bool,
    /// Are there programs among the tasks?
    pub(super) programs: bool,
    /// By place: who runs there, or [`NONE`].
    pub running: Vec<u32>,
    /// By place: whose threads wait there within a piece of work, at the priority to wait, their gates open.
    pub(super) waiting: Vec<Vec<u32>>,
    pub(super) shown: Vec<Shown>,
    /// By place: the server that it serves, or [`NONE`].
    pub(super) serving: Vec<u32>,
    /// By place: when to look at what its job has executed.
    pub limits: Tournament,
    /// By task: when a pushed job becomes ready here.
    pub arrivals: Tournament,
    /// When the policy wants to be woken.
    pub timer: u64,
    /// How long before something is due its leader is up, where no job runs on its processor, in nanoseconds.
    pub early: u64,
    pub producer: Producer,
    /// Tasks that had finished when they were to be preempted; shown, not yet told.
    pub late: Vec<u32>,
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

/// What a ground is made of.
pub(crate) struct Parts {
    pub team: Arc<Team>,
    pub domain: u32,
    pub first_domain: u32,
    pub cpus: Vec<CpuId>,
    pub first_post: u32,
    pub fixed: Arc<[Fixed]>,
    pub rows: Vec<Row>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    pub slices: bool,
    /// Are there programs among the tasks?
    pub programs: bool,
    pub early: Duration,
    pub producer: Producer,
}

impl Ground {
    pub fn new(parts: Parts) -> Self {
        let (places, tasks) = (parts.cpus.len(), parts.rows.len());
        Ground {
            team: parts.team,
            domain: parts.domain,
            first_domain: parts.first_domain,
            cpus: parts.cpus,
            first_post: parts.first_post,
            fixed: parts.fixed,
            rows: parts.rows,
            now: Instant::ZERO,
            began: Instant::ZERO,
            decided: 0,
            timeline: Timeline::new(Monotonic, 0),
            here: 0,
            coming: Vec::with_capacity(places),
            horizon: parts.horizon,
            enforcement: parts.enforcement,
            quantum: parts.quantum,
            limited: parts.slices || parts.programs || parts.enforcement != Enforcement::Off,
            programs: parts.programs,
            running: vec![NONE; places],
            waiting: (0..places).map(|_| Vec::with_capacity(tasks)).collect(),
            shown: vec![Shown::Busy; places],
            serving: vec![NONE; places],
            limits: Tournament::new(places),
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
    pub fn begin(&mut self, timeline: &Timeline, here: u32) -> Instant {
        (self.timeline, self.here) = (*timeline, here);
        self.decided = self.decisions;
        self.began = self.pass();
        self.began
    }

    /// The place of the dispatcher whose step it is.
    pub fn here(&self) -> usize {
        self.here as usize
    }

    /// Looks at the clock: the step has come so far.
    pub fn pass(&mut self) -> Instant {
        self.now = self.timeline.now().max(self.now);
        self.now
    }

    /// Reads what the release of a task will need.
    pub fn foresee(&self, task: u32) {
        let worker = &self.team.workers[task as usize];
        std::hint::black_box((
            self.fixed[task as usize],
            self.rows[task as usize],
            worker.thread(),
            worker.done(),
            self.producer.foresee(),
        ));
    }

    /// The nominal release of a job; of one that something else than the time releases, once it is.
    pub fn release_of(&self, task: u32, number: u64) -> Instant {
        if let Some(releaser) = &self.team.releasers[task as usize] {
            return releaser.release_of(number);
        }
        let fixed = &self.fixed[task as usize];
        let since = number.saturating_mul(fixed.period.nanos());
        Instant::from_nanos(since.saturating_add(fixed.phase.nanos()))
    }

    /// The absolute deadline of a job.
    pub fn deadline_of(&self, task: u32, number: u64) -> Instant {
        let release = self.release_of(task, number).nanos();
        Instant::from_nanos(release.saturating_add(self.fixed[task as usize].deadline.nanos()))
    }

    /// The current job of a task as it is told to policies.
    pub fn job(&self, task: u32) -> Job {
        let row = &self.rows[task as usize];
        Job {
            task: TaskId(task),
            number: row.number,
            release: row.release,
            deadline: self.deadline_of(task, row.number),
            part: row.part,
        }
    }
}

/// What has to be ready before any ground is used.
pub(crate) fn prepare() -> model::Result<()> {
    gate::install()
}
