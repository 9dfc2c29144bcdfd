//! The state of a schedule, event by event: who is ready, who runs where, what is open on each processor.
//!
//! The one place that knows what an event does to a schedule. The checker, the statistics and the pictures all replay a trace
//! through it. It holds what 002 §2.2 asks of every valid schedule: (i) a processor has one job at a time, (ii) a job is on
//! one processor at a time, (iii) none runs before its release, (iv) the jobs of a task run in order; and that every event is
//! well formed, says what the schedule did, and misses are reported exactly.
//!
//! Memory grows with tasks, processors and pending jobs, not with events.

mod form;
mod interrupts;
mod jobs;
mod observer;
mod stood;

use crate::event::{Event, EventKind, Flags};
use crate::header::{Header, Origin, Releases};
use crate::overhead::Overhead;
use model::{CpuId, CpuSet, Duration, Enforcement, Instant, TaskId, Timing};
pub use observer::{Doing, Nobody, Observer, Span};
use std::collections::VecDeque;
use stood::Stood;

/// A rule that is broken: its name, and what happened as a clause.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The name of the rule, stable: `one-processor`.
    pub rule: &'static str,
    /// What happened.
    pub text: String,
}

/// A released job that is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// Its number, from 0.
    pub number: u64,
    /// When it was (nominally) released.
    pub release: Instant,
    /// Its absolute deadline.
    pub deadline: Instant,
    /// The processor that handled the release.
    pub cpu: CpuId,
    /// When its miss of the deadline was reported, if it was.
    pub missed: Option<Instant>,
}

/// What the first pending job of a task does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Status {
    /// There is no pending job.
    Nothing,
    /// It is ready and has never run.
    Fresh,
    /// It runs.
    Running(CpuId),
    /// It is ready and last ran there.
    Preempted(CpuId),
    /// It is not ready and last ran there.
    Suspended(CpuId),
}

/// A task in the schedule.
#[derive(Clone, Debug)]
pub struct TaskState {
    /// The number of the job that is released next.
    pub next: u64,
    /// Released jobs that are not done, in order; only the first may run.
    pub pending: VecDeque<Job>,
    /// What the first of them does.
    pub status: Status,
    /// How long the first of them has executed, overheads not counted, up to the last event of its processor.
    pub executed: Duration,
    /// The nominal release of the latest job.
    last_release: Option<Instant>,
}

impl TaskState {
    /// The job that may run.
    pub fn head(&self) -> Option<&Job> {
        self.pending.front()
    }
    /// Is there a job that could run and does not?
    pub fn is_waiting(&self) -> bool {
        matches!(self.status, Status::Fresh | Status::Preempted(_))
    }
}

/// An overhead that has begun.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Open {
    /// Which.
    pub overhead: Overhead,
    /// The job that it serves, as its event says.
    pub job: Option<(TaskId, u64)>,
    /// Since when.
    pub since: Instant,
}

/// A processor in the schedule.
#[derive(Clone, Debug, Default)]
pub struct Processor {
    /// The task whose first pending job is on it.
    pub running: Option<TaskId>,
    /// When it was put there, or came back there from an overhead.
    back: Instant,
    /// Declared idle, with the flags of the declaration.
    pub idle: Option<Flags>,
    /// The overheads that are open, innermost last, without interrupts under way.
    pub overheads: Vec<Open>,
    /// Interrupts under way to it, in the order in which they were sent.
    pub interrupts: VecDeque<Open>,
    /// The server that it serves.
    pub server: Option<u32>,
    /// May tasks run on it?
    usable: bool,
    /// What it did is accounted for up to here.
    accounted: Instant,
}

impl Processor {
    /// May tasks run on it?
    pub fn may_run(&self) -> bool {
        self.usable
    }
    /// Is anything under way that may end in another job on it?
    pub fn is_settling(&self) -> bool {
        !self.interrupts.is_empty() || self.overheads.iter().any(|o| o.overhead != Overhead::Cpmd)
    }
}

/// The state of a schedule.
#[derive(Clone, Debug)]
pub struct State {
    timings: Vec<Timing>,
    phases: Vec<Duration>,
    /// By task, the longest time from the arrival of a job to its release; in simulations only.
    jitters: Vec<Duration>,
    /// By task: are its jobs released by something else than the time, a period apart at least?
    sporadic: Vec<bool>,
    origin: Origin,
    releases: Releases,
    enforcement: Option<Enforcement>,
    stages: u64,
    release_on: Vec<Option<CpuId>>,
    tolerance: Duration,
    /// Every task, by its place in the set.
    pub tasks: Vec<TaskState>,
    /// Every processor, by its number.
    pub processors: Vec<Processor>,
    /// The time of the latest event.
    pub now: Instant,
    /// Has the trace ended?
    pub ended: bool,
    /// Are budgets those of slices, which the policy's own rule knows?
    pub has_slices: bool,
    /// May processors begin to serve servers? Only some policies have any.
    pub has_servers: bool,
    /// May slices have windows? Only some policies cut jobs into slices.
    pub has_windows: bool,
    /// How many events were lost so far.
    pub lost: u64,
    /// When processors stood still, as far as it is known yet.
    pub(crate) stood: Stood,
    /// Processors that decide without waiting for those of other sets; a processor of no set waits for all.
    pub(crate) alone: Vec<CpuSet>,
    /// When a job was last released.
    last_release: Option<Instant>,
    /// Processors whose job has left at this instant, and which have not said what they do instead.
    vacated: Vec<CpuId>,
}

impl State {
    /// The state before the first event: no job, all processors idle. `tolerance` is what real clocks may be off by.
    pub fn new(header: &Header, tolerance: Duration) -> Self {
        let usable = header.processors();
        let count = usable.iter().next_back().map_or(0, |cpu| cpu.index() + 1);
        let processors = (0..count as u32)
            .map(|cpu| Processor {
                usable: usable.contains(CpuId(cpu)),
                ..Processor::default()
            })
            .collect();
        let set = &header.tasks;
        State {
            timings: set.timings().to_vec(),
            phases: set
                .ids()
                .map(|t| set.details(t).map_or(Duration::ZERO, |d| d.phase))
                .collect(),
            jitters: set
                .ids()
                .map(|t| set.details(t).map_or(Duration::ZERO, |d| d.extras.jitter))
                .collect(),
            sporadic: set
                .ids()
                .map(|t| header.origin == Origin::Real && set.details(t).is_some_and(|d| d.trigger.is_some()))
                .collect(),
            origin: header.origin,
            releases: header.releases,
            enforcement: header.enforcement,
            stages: header.stages.len() as u64,
            release_on: header.release_on.clone(),
            tolerance,
            tasks: vec![
                TaskState {
                    next: 0,
                    pending: VecDeque::new(),
                    status: Status::Nothing,
                    executed: Duration::ZERO,
                    last_release: None,
                };
                set.len()
            ],
            processors,
            now: Instant::ZERO,
            ended: false,
            has_slices: false,
            has_servers: true,
            has_windows: true,
            lost: 0,
            stood: Stood::new(count),
            alone: Vec::new(),
            last_release: None,
            vacated: Vec::new(),
        }
    }

    /// For how long, of the time from `from` to `to`, all processors were there that a decision on `cpu` may wait for; `None`: all
    /// that there are.
    pub fn awake(&self, from: Instant, to: Instant, cpu: Option<CpuId>) -> Duration {
        let needed = cpu.and_then(|cpu| self.alone.iter().find(|set| set.contains(cpu)));
        to.since(from).saturating_sub(self.stood.within(from, to, needed))
    }
    /// The timing of a task.
    pub fn timing(&self, task: TaskId) -> &Timing {
        &self.timings[task.index()]
    }
    /// Does this processor release the jobs of a task, although they run elsewhere?
    pub fn is_released_on(&self, task: TaskId, cpu: CpuId) -> bool {
        self.release_on.get(task.index()) == Some(&Some(cpu))
    }
    /// Is the trace of a simulation?
    pub fn is_simulated(&self) -> bool {
        self.origin == Origin::Simulated
    }

    /// Takes an event. What is wrong with it comes back; the state follows it as far as it makes sense, and not at all if it
    /// is not well formed.
    ///
    /// # Errors
    /// The first rule that the event breaks.
    pub fn apply(&mut self, event: &Event, observer: &mut impl Observer) -> Result<(), Fault> {
        self.check_form(event)?;
        self.take(event, observer)
    }

    /// Takes an event that is well formed.
    pub(crate) fn take(&mut self, event: &Event, observer: &mut impl Observer) -> Result<(), Fault> {
        self.now = event.time;
        let (task, cpu) = (event.task, event.cpu().unwrap_or_default());
        match event.kind {
            EventKind::Release => self.release(event, cpu),
            EventKind::Start | EventKind::Resumption | EventKind::Migration => {
                self.account(cpu, event.time, observer);
                self.put_on(event, task, cpu)
            }
            EventKind::Preemption | EventKind::Suspension => {
                self.account(cpu, event.time, observer);
                self.on_processor(event, cpu)?;
                self.tasks[task.index()].status = if event.kind == EventKind::Preemption {
                    Status::Preempted(cpu)
                } else {
                    Status::Suspended(cpu)
                };
                self.vacate(cpu);
                Ok(())
            }
            EventKind::Completion => {
                self.account(cpu, event.time, observer);
                self.complete(event, cpu, observer)
            }
            EventKind::DeadlineMiss => self.miss(event),
            EventKind::BudgetExhausted => {
                self.account(cpu, event.time, observer);
                self.on_processor(event, cpu)?;
                self.exhaust(event)
            }
            EventKind::OverheadBegin | EventKind::OverheadEnd => {
                self.account(cpu, event.time, observer);
                self.overhead(event, cpu, observer)
            }
            EventKind::Idle => {
                self.account(cpu, event.time, observer);
                let processor = &mut self.processors[cpu.index()];
                if let Some(task) = processor.running {
                    return Err(fault(
                        "idle",
                        format!("{cpu:?} is called idle while task {} is on it", task.0 + 1),
                    ));
                }
                let before = processor.idle.replace(event.flags);
                if before == Some(event.flags) {
                    return Err(fault("idle", format!("{cpu:?} is called idle twice")));
                }
                Ok(())
            }
            EventKind::ServerBegin if !self.has_servers => Err(fault(
                "server",
                "the policy has no servers that could be served".to_owned(),
            )),
            EventKind::Window if !self.has_windows => Err(fault(
                "window",
                "the policy has no slices that could have a window".to_owned(),
            )),
            EventKind::ServerBegin => {
                let server = u32::try_from(event.argument).unwrap_or(u32::MAX);
                match self.processors[cpu.index()].server.replace(server) {
                    None => Ok(()),
                    Some(old) => Err(fault(
                        "server",
                        format!("{cpu:?} begins N{} before it ended N{}", server + 1, old + 1),
                    )),
                }
            }
            EventKind::ServerEnd => {
                let served = self.processors[cpu.index()].server.take();
                if served.map(u64::from) == Some(event.argument) {
                    Ok(())
                } else {
                    Err(fault(
                        "server",
                        format!("{cpu:?} ends a server that it does not serve"),
                    ))
                }
            }
            EventKind::WakeUp => {
                let state = &mut self.tasks[task.index()];
                match state.status {
                    Status::Suspended(cpu) if state.head().is_some_and(|j| j.number == event.job) => {
                        state.status = Status::Preempted(cpu);
                        Ok(())
                    }
                    _ => Err(fault(
                        "suspension",
                        "a job wakes up that is not suspended".to_owned(),
                    )),
                }
            }
            EventKind::Standstill if self.is_simulated() => Err(fault(
                "standstill",
                "processors of a simulation never stand still".to_owned(),
            )),
            EventKind::Quantum if self.is_simulated() => Err(fault(
                "quantum",
                "a simulation decides at the boundary itself, which needs no event".to_owned(),
            )),
            EventKind::Window | EventKind::PolicySwitch | EventKind::Quantum | EventKind::Standstill => {
                Ok(())
            }
            EventKind::Lost => {
                self.lost = self.lost.saturating_add(event.argument);
                Ok(())
            }
            EventKind::End => self.end(observer),
        }
    }

    /// What has to be said by the end of an instant: a processor whose job has left has another one, is busy with an
    /// overhead, or has been declared idle.
    ///
    /// # Errors
    /// The first processor of which nothing was said.
    pub fn settle(&mut self) -> Result<(), Fault> {
        let mut silent = None;
        let processors = &self.processors;
        self.vacated.retain(|cpu| {
            let p = &processors[cpu.index()];
            if p.running.is_some() || p.idle.is_some() {
                return false;
            }
            if p.overheads.is_empty() && p.interrupts.is_empty() {
                silent = Some(*cpu);
                return false;
            }
            true
        });
        match silent {
            Some(cpu) if self.is_simulated() => Err(fault(
                "idle",
                format!("{cpu:?} has no job, and was not called idle"),
            )),
            _ => Ok(()),
        }
    }

    /// What `cpu` did since it was last accounted for.
    #[inline]
    fn account(&mut self, cpu: CpuId, until: Instant, observer: &mut impl Observer) {
        let processor = &mut self.processors[cpu.index()];
        let from = std::mem::replace(&mut processor.accounted, until);
        if from >= until {
            return;
        }
        let job = match processor.running {
            Some(task) => {
                let state = &mut self.tasks[task.index()];
                if processor.overheads.is_empty() {
                    state.executed = state.executed.saturating_add(until.since(from));
                }
                state.pending.front().map(|job| (task, job.number))
            }
            None => None,
        };
        let (doing, serves) = match processor.overheads.last() {
            Some(open) => (Doing::Overhead(open.overhead), open.job),
            None if job.is_some() => (Doing::Executing, job),
            None => return,
        };
        observer.span(Span {
            cpu,
            doing,
            job: job.or(serves),
            serves,
            from,
            to: until,
        });
    }

    /// Accounts for what every processor did up to `until`.
    pub fn account_all(&mut self, until: Instant, observer: &mut impl Observer) {
        for cpu in 0..self.processors.len() as u32 {
            self.account(CpuId(cpu), until, observer);
        }
    }

    fn put_on(&mut self, event: &Event, task: TaskId, cpu: CpuId) -> Result<(), Fault> {
        let state = &mut self.tasks[task.index()];
        let Some(head) = state.pending.front() else {
            return Err(if event.job < state.next {
                fault("past-completion", "it runs after its completion".to_owned())
            } else {
                fault("before-release", "it runs before its release".to_owned())
            });
        };
        if event.job != head.number {
            return Err(if event.job < head.number {
                fault("past-completion", "it runs after its completion".to_owned())
            } else if event.job >= state.next {
                fault("before-release", "it runs before its release".to_owned())
            } else {
                fault(
                    "job-order",
                    format!("it runs before job {} of its task is done", nth(head.number)),
                )
            });
        }
        let old = state.status;
        if let Status::Running(elsewhere) = old {
            return Err(fault(
                "one-processor",
                format!("it runs on {elsewhere:?} already"),
            ));
        }
        let processor = &mut self.processors[cpu.index()];
        let displaced = processor.running.replace(task);
        processor.back = event.time;
        processor.idle = None;
        state.status = Status::Running(cpu);
        if let Some(other) = displaced {
            // The one that was there has to be somewhere: as if it had been preempted.
            self.tasks[other.index()].status = Status::Preempted(cpu);
            return Err(fault(
                "one-job",
                format!("{cpu:?} still has a job of task {}", other.0 + 1),
            ));
        }
        match (event.kind, old) {
            (EventKind::Start, Status::Fresh) => Ok(()),
            (EventKind::Resumption, Status::Preempted(last)) if last == cpu => Ok(()),
            (EventKind::Migration, Status::Preempted(last))
                if last != cpu && u64::from(last.0) == event.argument =>
            {
                Ok(())
            }
            (_, Status::Suspended(_)) => Err(fault("suspension", "it runs while suspended".to_owned())),
            (EventKind::Start, _) => Err(fault("well-formed", "it starts a second time".to_owned())),
            (_, Status::Fresh) => Err(fault(
                "well-formed",
                "it goes on without having started".to_owned(),
            )),
            (_, Status::Preempted(last)) => Err(fault("well-formed", format!("it last ran on {last:?}"))),
            _ => Ok(()),
        }
    }

    /// Is the job of the event on its processor?
    fn on_processor(&self, event: &Event, cpu: CpuId) -> Result<(), Fault> {
        let head = self.tasks[event.task.index()].head();
        if self.processors[cpu.index()].running == Some(event.task)
            && head.is_some_and(|j| j.number == event.job)
        {
            return Ok(());
        }
        Err(fault("not-running", format!("it is not on {cpu:?}")))
    }

    fn vacate(&mut self, cpu: CpuId) {
        self.processors[cpu.index()].running = None;
        if !self.vacated.contains(&cpu) {
            self.vacated.push(cpu);
        }
    }

    fn overhead(&mut self, event: &Event, cpu: CpuId, observer: &mut impl Observer) -> Result<(), Fault> {
        let Some(overhead) = event.overhead_kind() else {
            return Ok(());
        };
        let begins = event.kind == EventKind::OverheadBegin;
        let processor = &mut self.processors[cpu.index()];
        let opened = Open {
            overhead,
            job: (event.task != Event::NO_TASK).then_some((event.task, event.job)),
            since: event.time,
        };
        if !overhead.occupies_processor() {
            if begins {
                processor.interrupts.push_back(opened);
                return Ok(());
            }
            let Some(sent) = interrupts::arrived(&mut processor.interrupts, opened.job) else {
                return Err(fault(
                    "overhead",
                    "an interrupt arrives that was not sent".to_owned(),
                ));
            };
            // Whom it serves may be known only when it arrives.
            let job = sent.job.or(opened.job);
            observer.span(Span {
                cpu,
                doing: Doing::Overhead(overhead),
                job,
                serves: job,
                from: sent.since,
                to: event.time,
            });
            if sent.job.is_some() && sent.job != opened.job {
                return Err(fault(
                    "overhead",
                    "the interrupt that arrives served another job when it was sent".to_owned(),
                ));
            }
            return Ok(());
        }
        if begins {
            if processor.overheads.len() >= MAX_NESTED {
                return Err(fault(
                    "overhead",
                    format!("{MAX_NESTED} overheads are open on {cpu:?}"),
                ));
            }
            processor.overheads.push(opened);
            return Ok(());
        }
        let last = processor.overheads.last().copied();
        let open = last.map(|open| open.overhead);
        if let Some(last) = last.filter(|last| last.overhead == overhead) {
            processor.overheads.pop();
            processor.back = event.time;
            if last.job != opened.job {
                return Err(fault(
                    "overhead",
                    "it ends for another job than it began for".to_owned(),
                ));
            }
            return Ok(());
        }
        // Close it anyway if it is open further out, so that one lost end does not spoil the rest.
        if let Some(at) = processor.overheads.iter().rposition(|o| o.overhead == overhead) {
            processor.overheads.truncate(at);
        }
        Err(fault(
            "overhead",
            match open {
                Some(open) => format!("it ends while {open} is open within"),
                None => "it ends without having begun".to_owned(),
            },
        ))
    }
}

/// More overheads within one another than any machine shows.
const MAX_NESTED: usize = 64;

/// The number of a job as people count, from 1.
pub(crate) fn nth(job: u64) -> u128 {
    u128::from(job) + 1
}

#[cold]
fn fault(rule: &'static str, text: String) -> Fault {
    Fault { rule, text }
}
