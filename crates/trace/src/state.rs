//! The state of a schedule, event by event: who is ready, who runs where, what is open on each
//! processor.
//!
//! The one place that knows what an event does to a schedule. The checker, the statistics and the
//! pictures all replay a trace through it. It holds what 002 §2.2 asks of every valid schedule: (i)
//! a processor has one job at a time, (ii) a job is on one processor at a time, (iii) none runs
//! before its release, (iv) the jobs of a task run in order; and that every event is well formed,
//! says what the schedule did, and misses are reported exactly.
//!
//! Memory grows with tasks, processors and pending jobs, not with events.

mod form;
mod interrupts;
mod jobs;
mod observer;
mod stood;

use crate::event::{Event, EventKind};
use crate::header::{Header, Origin, Releases};
use model::{CpuId, CpuSet, Duration, Enforcement, Instant, TaskId, Timing};
pub use observer::{Doing, Nobody, Observer, Span, Took};
use std::collections::VecDeque;
use stood::Stood;

mod parts;
pub use parts::{Fault, Job, Open, Processor, Status, TaskState};

mod occupancy;

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
    /// Processors that decide without waiting for those of other sets; a processor of no set waits
    /// for all.
    pub(crate) alone: Vec<CpuSet>,
    /// When a job was last released.
    last_release: Option<Instant>,
    /// Processors whose job has left at this instant, and which have not said what they do instead.
    vacated: Vec<CpuId>,
}

impl State {
    /// The state before the first event: no job, all processors idle. `tolerance` is what real
    /// clocks may be off by.
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
                .map(|t| {
                    header.origin == Origin::Real
                        && set.details(t).is_some_and(|d| d.trigger.is_some())
                })
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

    /// For how long, of the time from `from` to `to`, all processors were there that a decision on
    /// `cpu` may wait for; `None`: all that there are.
    pub fn awake(&self, from: Instant, to: Instant, cpu: Option<CpuId>) -> Duration {
        let needed = cpu.and_then(|cpu| self.alone.iter().find(|set| set.contains(cpu)));
        to.since(from)
            .saturating_sub(self.stood.within(from, to, needed))
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

    /// Takes an event. What is wrong with it comes back; the state follows it as far as it makes
    /// sense, and not at all if it is not well formed.
    ///
    /// # Errors
    /// The first rule that the event breaks.
    pub fn apply(&mut self, event: &Event, observer: &mut impl Observer) -> Result<(), Fault> {
        self.check_form(event)?;
        self.take(event, observer)
    }

    /// Takes an event that is well formed.
    pub(crate) fn take(
        &mut self,
        event: &Event,
        observer: &mut impl Observer,
    ) -> Result<(), Fault> {
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
                self.leave(event, cpu)
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
                self.idle(event, cpu)
            }
            EventKind::ServerBegin if !self.has_servers => Err(fault(
                "server",
                "the policy has no servers that could be served".to_owned(),
            )),
            EventKind::Window if !self.has_windows => Err(fault(
                "window",
                "the policy has no slices that could have a window".to_owned(),
            )),
            EventKind::ServerBegin => self.begin_server(event, cpu),
            EventKind::ServerEnd => self.end_server(event, cpu),
            EventKind::WakeUp => self.wake_up(event),
            EventKind::Standstill if self.is_simulated() => Err(fault(
                "standstill",
                "processors of a simulation never stand still".to_owned(),
            )),
            EventKind::Quantum if self.is_simulated() => Err(fault(
                "quantum",
                "a simulation decides at the boundary itself, which needs no event".to_owned(),
            )),
            EventKind::Window
            | EventKind::PolicySwitch
            | EventKind::Quantum
            | EventKind::Standstill => Ok(()),
            EventKind::Lost => {
                self.lost = self.lost.saturating_add(event.argument);
                Ok(())
            }
            EventKind::End => self.end(observer),
        }
    }

    /// What has to be said by the end of an instant: a processor whose job has left has another
    /// one, is busy with an overhead, or has been declared idle.
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
