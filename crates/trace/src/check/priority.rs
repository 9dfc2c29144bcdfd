//! Policies with one priority a job: EDF and fixed priorities, partitioned, global and clustered
//! (002 §2.2), and EDF-fm.
//!
//! EDF-fm (002 §4.1): a job of a migratory task stays on the processor of its release, above all
//! fixed tasks; among the first k jobs of the task since the policy rules, those on a processor
//! differ by less than one from k times its share there.

use crate::check::domains::{Domains, Key};
use crate::check::{Found, Rule};
use crate::event::{Event, EventKind};
use crate::state::{Fault, State, nth};
use model::assignment::Turn;
use model::{CpuId, Instant, TaskId};

/// What makes the priority of a job.
#[derive(Clone, Debug)]
pub enum Order {
    /// The earlier deadline first; of equal ones, the earlier release.
    Deadline,
    /// The earlier deadline first; of equal ones, the lower task.
    Plain,
    /// The earlier release first; of equal ones, the lower task.
    Release,
    /// By rank of the task, the least first.
    Fixed(Vec<u64>),
    /// Tasks of the lower class first, within a class the earlier deadline.
    Classes(Vec<u64>),
}

/// The jobs of a migratory task since the policy rules.
#[derive(Clone, Copy, Default, Debug)]
pub struct Dealt {
    /// The number of the earliest.
    from: Option<u64>,
    /// How many went to the first processor.
    first: u64,
}

/// Where a job waits and runs.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the domain of its task.
    Task(Vec<u32>),
    /// In the domain of the processor that handled its release; and per task, what its processors
    /// got.
    Turns(Vec<Turn>, Vec<Dealt>),
}

/// The rule of such a policy.
pub struct Priority {
    domains: Domains,
    order: Order,
    place: Place,
}

impl Priority {
    /// A rule over these domains.
    pub fn new(domains: Domains, order: Order, place: Place) -> Self {
        Priority {
            domains,
            order,
            place,
        }
    }

    fn key(&self, task: TaskId, state: &State) -> Option<Key> {
        let job = state.tasks[task.index()].head()?;
        let (class, deadline) = match &self.order {
            Order::Deadline | Order::Plain => (0, job.deadline),
            Order::Release => (0, Instant::ZERO),
            Order::Classes(class) => (class[task.index()], job.deadline),
            Order::Fixed(rank) => (rank[task.index()], Instant::ZERO),
        };
        Some(Key {
            class,
            deadline,
            release: match self.order {
                Order::Plain => Instant::ZERO,
                _ => job.release,
            },
            task,
        })
    }

    fn domain(&self, task: TaskId, state: &State) -> Option<u32> {
        match &self.place {
            Place::Task(domain) => domain.get(task.index()).copied(),
            Place::Turns(turns, _) if turns[task.index()].is_migratory() => {
                let cpu = state.tasks[task.index()].head()?.cpu;
                self.domains
                    .domain_of(cpu)
                    .filter(|_| !self.is_carried_over(task, state))
            }
            Place::Turns(turns, _) => self.domains.domain_of(turns[task.index()].first),
        }
    }

    /// Was the job of a migratory task released under the policy that ruled before? Then its
    /// release does not say where it is to be.
    fn is_carried_over(&self, task: TaskId, state: &State) -> bool {
        let Place::Turns(turns, dealt) = &self.place else {
            return false;
        };
        let job = state.tasks[task.index()].head().map(|job| job.number);
        turns[task.index()].is_migratory()
            && dealt[task.index()].from.is_none_or(|from| job < Some(from))
    }

    fn may_run(&self, task: TaskId, cpu: CpuId, state: &State) -> bool {
        match &self.place {
            Place::Turns(turns, _) if self.is_carried_over(task, state) => {
                let turn = turns[task.index()];
                cpu == turn.first || cpu == turn.second
            }
            _ => self.domain(task, state) == self.domains.domain_of(cpu),
        }
    }

    /// Returns whether this is a processor for the job that is released. Of jobs that take turns it
    /// counts those released on the first processor.
    fn take_release(&mut self, event: &Event, cpu: CpuId, state: &State) -> bool {
        if state.is_released_on(event.task, cpu) {
            return match &self.place {
                Place::Task(_) => true,
                Place::Turns(turns, _) => !turns[event.task.index()].is_migratory(),
            };
        }
        match &mut self.place {
            Place::Task(domain) => {
                domain.get(event.task.index()).copied() == self.domains.domain_of(cpu)
            }
            Place::Turns(turns, dealt) => {
                let (turn, dealt) = (&turns[event.task.index()], &mut dealt[event.task.index()]);
                if cpu != turn.first && cpu != turn.second {
                    return false;
                }
                let from = *dealt.from.get_or_insert(event.job);
                dealt.first += u64::from(cpu == turn.first);
                // |first − k · part / whole| < 1 over the k jobs since the policy rules.
                let jobs = u128::from(event.job.saturating_sub(from)) + 1;
                let due = jobs * u128::from(turn.part);
                let got = u128::from(dealt.first) * u128::from(turn.whole);
                got.abs_diff(due) < u128::from(turn.whole)
            }
        }
    }

    fn wait(&mut self, task: TaskId, state: &State) {
        if let (Some(domain), Some(key)) = (self.domain(task, state), self.key(task, state)) {
            self.domains.wait(domain, key);
        }
    }

    fn stop(&mut self, cpu: CpuId) {
        self.domains.stop(cpu);
    }
}

impl Rule for Priority {
    fn begin(&mut self, state: &State) {
        for (task, t) in state.tasks.iter().enumerate() {
            if t.is_waiting() {
                self.wait(TaskId(task as u32), state);
            }
        }
        for (cpu, processor) in state.processors.iter().enumerate() {
            if let Some(key) = processor.running.and_then(|task| self.key(task, state)) {
                self.domains.run(CpuId(cpu as u32), key);
            }
        }
    }

    fn event(&mut self, event: &Event, state: &State, found: &mut Found) {
        let task = event.task;
        let Some(cpu) = event.cpu() else { return };
        match event.kind {
            EventKind::Release => {
                // On a real machine any processor may handle the release, unless that is what deals
                // the jobs out.
                let deals = matches!(self.place, Place::Turns(..));
                if !self.take_release(event, cpu, state) && (deals || state.is_simulated()) {
                    found.faults.push(Fault {
                        rule: "place",
                        text: format!(
                            "job {} of task {} is released on {cpu:?}, where it has no share left",
                            nth(event.job),
                            task.0 + 1
                        ),
                    });
                }
                let t = &state.tasks[task.index()];
                if t.pending.len() == 1 && t.is_waiting() {
                    self.wait(task, state);
                }
            }
            EventKind::Start | EventKind::Resumption | EventKind::Migration => {
                if let Some(key) = self.key(task, state) {
                    self.domains.run(cpu, key);
                }
                if !self.may_run(task, cpu, state) {
                    found.faults.push(Fault {
                        rule: "place",
                        text: format!("task {} may not run on {cpu:?}", task.0 + 1),
                    });
                }
            }
            EventKind::Preemption => {
                self.stop(cpu);
                self.wait(task, state);
            }
            EventKind::Completion => {
                self.stop(cpu);
                if state.tasks[task.index()].is_waiting() {
                    self.wait(task, state);
                }
            }
            EventKind::Suspension => self.stop(cpu),
            EventKind::WakeUp => self.wait(task, state),
            EventKind::OverheadBegin | EventKind::OverheadEnd => self.domains.touch_cpu(cpu),
            _ => {}
        }
    }

    fn hold(&mut self, from: Instant, to: Instant, state: &State, found: &mut Found) {
        let lengths = &mut found.lengths;
        self.domains
            .hold(from, to, state, &mut found.faults, &mut |d| {
                lengths.push(d);
            });
    }
}
