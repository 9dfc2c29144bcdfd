//! Partitioned, global and clustered policies with one priority a job: EDF and fixed priorities (002 §2.2).

use crate::check::domains::{Domains, Key};
use crate::check::{Found, Rule};
use crate::event::{Event, EventKind};
use crate::state::{Fault, State};
use model::{CpuId, Instant, TaskId};

/// What makes the priority of a job.
#[derive(Clone, Debug)]
pub enum Order {
    /// The earlier deadline first.
    Deadline,
    /// By rank of the task, the least first.
    Fixed(Vec<u64>),
}

/// The rule of such a policy.
pub struct Priority {
    domains: Domains,
    order: Order,
    /// Per task, the domain in which its jobs wait and run.
    place: Vec<u32>,
}

impl Priority {
    /// A rule over these domains.
    pub fn new(domains: Domains, order: Order, place: Vec<u32>) -> Self {
        Priority {
            domains,
            order,
            place,
        }
    }

    fn key(&self, task: TaskId, state: &State) -> Option<Key> {
        let job = state.tasks[task.index()].head()?;
        let (class, deadline) = match &self.order {
            Order::Deadline => (0, job.deadline),
            Order::Fixed(rank) => (rank[task.index()], Instant::ZERO),
        };
        Some(Key {
            class,
            deadline,
            release: job.release,
            task,
        })
    }

    fn domain(&self, task: TaskId) -> Option<u32> {
        self.place.get(task.index()).copied()
    }

    fn wait(&mut self, task: TaskId, state: &State) {
        if let (Some(domain), Some(key)) = (self.domain(task), self.key(task, state)) {
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
                if state.is_simulated() && self.domain(task) != self.domains.domain_of(cpu) {
                    found.faults.push(Fault {
                        rule: "place",
                        text: format!("a job of task {} is released on {cpu:?}", task.0 + 1),
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
                if self.domain(task) != self.domains.domain_of(cpu) {
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
