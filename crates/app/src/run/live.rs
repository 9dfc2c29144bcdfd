//! A run as it is seen while it runs: how busy each processor is, how close each task came to its
//! deadlines.

use ::trace::state::{Doing, Job, Observer, Span, State};
use ::trace::{Event, EventKind, Header, Sink};
use model::{CpuId, Duration, Instant, TaskId, TaskSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Over how long the share of a processor is taken.
const WINDOW: Duration = Duration::from_millis(1000);

/// What a task has done so far.
#[derive(Clone, Default)]
struct TaskTally {
    jobs: u64,
    worst: Duration,
    misses: u64,
    preemptions: u64,
}

/// What a processor has done so far.
#[derive(Clone, Copy, Default)]
struct CpuTally {
    executed: u64,
    /// What it had executed when the window began.
    before: u64,
    /// Its share in the latest full window.
    share: f64,
}

#[derive(Default)]
struct Tally {
    tasks: Vec<TaskTally>,
    cpus: Vec<CpuTally>,
}

impl Observer for Tally {
    fn span(&mut self, span: Span) {
        if span.doing == Doing::Executing {
            self.cpus[span.cpu.index()].executed += span.to.since(span.from).nanos();
        }
    }
    fn done(&mut self, task: TaskId, job: &Job, completion: Instant, _: Duration) {
        let tally = &mut self.tasks[task.index()];
        tally.jobs += 1;
        tally.worst = tally.worst.max(completion.since(job.release));
    }
}

/// The schedule as far as it is known.
struct Seen {
    set: TaskSet,
    state: State,
    tally: Tally,
    /// When the window of shares began.
    window: Instant,
}

impl Seen {
    fn record(&mut self, event: Event) {
        // What makes no sense is for the checker to tell.
        if self.state.apply(&event, &mut self.tally).is_err() {
            return;
        }
        match event.kind {
            EventKind::Preemption => self.tally.tasks[event.task.index()].preemptions += 1,
            EventKind::DeadlineMiss => self.tally.tasks[event.task.index()].misses += 1,
            _ => {}
        }
        let length = self.state.now.since(self.window);
        if length >= WINDOW {
            for cpu in &mut self.tally.cpus {
                // A job that was on the processor all the time is accounted for when it leaves.
                cpu.share = ((cpu.executed - cpu.before) as f64 / length.nanos() as f64).min(1.0);
                cpu.before = cpu.executed;
            }
            self.window = self.state.now;
        }
    }

    fn snapshot(&self) -> Snapshot {
        let processors = self.state.processors.iter().enumerate();
        let processors = processors.filter(|(_, processor)| processor.may_run());
        Snapshot {
            processors: processors
                .map(|(cpu, processor)| Processor {
                    cpu: CpuId(cpu as u32),
                    share: self.tally.cpus[cpu].share,
                    running: processor.running.map(|task| self.set.name(task)),
                })
                .collect(),
            tasks: self.set.ids().map(|id| self.task(id)).collect(),
        }
    }

    fn task(&self, id: TaskId) -> Task {
        let tally = &self.tally.tasks[id.index()];
        Task {
            name: self.set.name(id),
            jobs: tally.jobs,
            worst: tally.worst,
            deadline: self.set.timings()[id.index()].deadline,
            misses: tally.misses,
            preemptions: tally.preemptions,
        }
    }
}

/// A run at a moment.
#[derive(Clone, Debug)]
pub struct Snapshot {
    /// The processors that it uses.
    pub processors: Vec<Processor>,
    /// Its tasks, in their order.
    pub tasks: Vec<Task>,
}

/// A processor at a moment.
#[derive(Clone, Debug)]
pub struct Processor {
    /// Its number.
    pub cpu: CpuId,
    /// The part of the latest full second in which it executed jobs.
    pub share: f64,
    /// The task whose job has it.
    pub running: Option<String>,
}

/// A task so far.
#[derive(Clone, Debug)]
pub struct Task {
    /// Its name.
    pub name: String,
    /// How many jobs are done.
    pub jobs: u64,
    /// The longest time from release to completion.
    pub worst: Duration,
    /// Its relative deadline.
    pub deadline: Duration,
    /// Deadlines that were missed.
    pub misses: u64,
    /// How often a job was preempted.
    pub preemptions: u64,
}

impl Snapshot {
    /// Jobs that are done.
    pub fn jobs(&self) -> u64 {
        self.tasks.iter().map(|t| t.jobs).sum()
    }

    /// Deadlines that were missed.
    pub fn misses(&self) -> u64 {
        self.tasks.iter().map(|t| t.misses).sum()
    }
}

/// A run as it is seen: a sink of its events.
#[derive(Clone)]
pub struct Live(Arc<Mutex<Seen>>);

impl Live {
    /// Nothing has happened yet.
    pub fn new(header: &Header) -> Self {
        // How late a real machine may be is for the checker to say.
        let state = State::new(header, Duration::MAX);
        Live(Arc::new(Mutex::new(Seen {
            set: header.tasks.clone(),
            tally: Tally {
                tasks: vec![TaskTally::default(); header.tasks.len()],
                cpus: vec![CpuTally::default(); state.processors.len()],
            },
            state,
            window: Instant::ZERO,
        })))
    }

    /// The run as it is known now.
    pub fn snapshot(&self) -> Snapshot {
        self.seen().snapshot()
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Sink for Live {
    fn record(&mut self, event: Event) {
        self.seen().record(event);
    }
}
