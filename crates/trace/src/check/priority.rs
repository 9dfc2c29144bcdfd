//! Policies with one priority a job: EDF and fixed priorities, partitioned, global and clustered (002 §2.2), and EDF-fm.
//!
//! EDF-fm (002 §4.1): a job of a migratory task stays on the processor of its release, above all fixed tasks; among the first
//! k jobs of the task, those on a processor differ by less than one from k times its share there.

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
    /// By rank of the task, the least first.
    Fixed(Vec<u64>),
    /// Tasks of the lower class first, within a class the earlier deadline.
    Classes(Vec<u64>),
}

/// Where a job waits and runs.
#[derive(Clone, Debug)]
pub enum Place {
    /// In the domain of its task.
    Task(Vec<u32>),
    /// In the domain of the processor that handled its release; and per task, how many jobs went to the first processor.
    Turns(Vec<Turn>, Vec<u64>),
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
            Place::Turns(turns, _) => {
                let turn = turns[task.index()];
                self.domains.domain_of(match turn.is_migratory() {
                    true => state.tasks[task.index()].head()?.cpu,
                    false => turn.first,
                })
            }
        }
    }

    /// Is this a processor for the job that is released?
    fn may_release(&mut self, event: &Event, cpu: CpuId, state: &State) -> bool {
        if state.is_released_on(event.task, cpu) {
            return match &self.place {
                Place::Task(_) => true,
                Place::Turns(turns, _) => !turns[event.task.index()].is_migratory(),
            };
        }
        match &mut self.place {
            Place::Task(domain) => domain.get(event.task.index()).copied() == self.domains.domain_of(cpu),
            Place::Turns(turns, counts) => {
                let (turn, count) = (&turns[event.task.index()], &mut counts[event.task.index()]);
                if cpu != turn.first && cpu != turn.second {
                    return false;
                }
                *count += u64::from(cpu == turn.first);
                // |count − k · part / whole| < 1.
                let jobs = u128::from(event.job) + 1;
                let due = jobs * u128::from(turn.part);
                let got = u128::from(*count) * u128::from(turn.whole);
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
                // On a real machine any processor may handle the release, unless that is what deals the jobs out.
                let deals = matches!(self.place, Place::Turns(..));
                if !self.may_release(event, cpu, state) && (deals || state.is_simulated()) {
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
                if self.domain(task, state) != self.domains.domain_of(cpu) {
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
        self.domains.hold(from, to, state, &mut found.faults, &mut |d| {
            lengths.push(d);
        });
    }
}
