//! What a domain writes into the trace: when it happened in the eyes of the domain, under its lock.

use super::books::{Books, Shown};
use crate::backend::Backend;
use model::{Duration, Instant, TaskId};
use policy::tournament::Tournament;
use policy::{Place, ServerId};
use trace::{Event as Record, Flags, Overhead};

impl<B: Backend> Books<B> {
    pub(super) fn show_release(&mut self, task: TaskId, number: u64, nominal: Instant) {
        let deadline = nominal + self.parameters[task.index()].deadline;
        // Where the task last ran, if that is in the domain, else at the domain's first processor.
        let last = self.tasks[task.index()].last();
        let cpu = last
            .filter(|cpu| self.cpus.contains(cpu))
            .unwrap_or(self.cpus[0]);
        let event = Record::release(self.now, cpu, task, number, deadline);
        self.producer.push(event);
    }

    /// The dispatcher's processor begins to be busy for a job.
    pub(super) fn show_overhead(&mut self, overhead: Overhead, task: TaskId, number: u64) {
        let (cpu, job) = (self.cpu_here(), Some((task, number)));
        self.producer
            .push(Record::overhead_begin(self.now, cpu, overhead, job));
    }

    /// It is done with that.
    pub(super) fn end_overhead(&mut self, overhead: Overhead, task: TaskId, number: u64) {
        let (cpu, job) = (self.cpu_here(), Some((task, number)));
        let now = self.pass();
        self.producer
            .push(Record::overhead_end(now, cpu, overhead, job));
    }

    pub(super) fn show_start(&mut self, place: Place, task: TaskId) {
        let cpu = self.cpus[place.index()];
        self.shown[place.index()] = Shown::Busy;
        let life = &mut self.tasks[task.index()].life;
        let start = life.start(cpu, self.now);
        let event = match start.before {
            Some(from) => Record::resumption(self.now, from, cpu, task, life.number()),
            None => Record::start(self.now, cpu, task, life.number()),
        };
        self.producer.push(event);
    }

    /// The job of a task is complete. It leaves its place; one that was being preempted meanwhile
    /// gets it back for no time.
    pub(super) fn show_completion(&mut self, task: TaskId, executed: Duration, cut: bool) {
        let state = &self.tasks[task.index()];
        let (number, now) = (state.life.number(), self.now);
        let is_off = state.place.is_none();
        let place = state.place.unwrap_or_else(|| self.last_place(task));
        let cpu = self.cpus[place.index()];
        let displaced = self.running[place.index()].filter(|_| is_off);
        if let Some(other) = displaced {
            let other_number = self.tasks[other.index()].life.number();
            self.producer
                .push(Record::preemption(now, cpu, other, other_number));
        }
        if is_off {
            let state = &self.tasks[task.index()];
            let event = match state.last().filter(|_| state.life.has_started()) {
                Some(last) => Record::resumption(now, last, cpu, task, number),
                None => Record::start(now, cpu, task, number),
            };
            self.producer.push(event);
        }
        let deadline = self.deadline_of(task, number);
        if now > deadline {
            self.producer.push(Record::deadline_miss(
                now,
                Some(cpu),
                task,
                number,
                deadline,
            ));
        }
        let event = Record::completion(now, cpu, task, number, executed);
        self.producer.push(if cut {
            event.flagged(Flags::CUT)
        } else {
            event
        });
        if let Some(other) = displaced {
            let other_number = self.tasks[other.index()].life.number();
            self.producer
                .push(Record::resumption(now, cpu, cpu, other, other_number));
        } else {
            self.running[place.index()] = None;
            self.looks.set(place.index(), Tournament::NEVER);
            // Another job, or none: shown when it is decided.
            self.shown[place.index()] = Shown::Busy;
        }
        self.tasks[task.index()].place = None;
    }

    /// The place of the domain where a task last ran, or the first one if that was in another
    /// domain.
    fn last_place(&self, task: TaskId) -> Place {
        let last = self.tasks[task.index()].last();
        let at = self.cpus.iter().position(|cpu| Some(*cpu) == last);
        Place(at.unwrap_or(0) as u32)
    }

    /// A slice is used up; its job has just left this place.
    pub(super) fn show_exhaustion(&mut self, task: TaskId, place: Place) {
        let (life, cpu) = (&self.tasks[task.index()].life, self.cpus[place.index()]);
        let (number, executed) = (life.number(), life.executed());
        let now = self.now;
        self.producer
            .push(Record::budget_exhausted(now, cpu, task, number, executed));
        self.producer
            .push(Record::preemption(now, cpu, task, number));
        self.shown[place.index()] = Shown::Busy;
    }

    /// A budget is used up; its job has just left this place.
    pub(super) fn show_cut(&mut self, task: TaskId, place: Place) {
        let state = &mut self.tasks[task.index()];
        // It is shown to leave only now.
        state.place = Some(place);
        let (number, executed) = (state.life.number(), state.life.executed());
        let (cpu, wcet) = (self.cpus[place.index()], self.parameters[task.index()].wcet);
        self.producer
            .push(Record::budget_exhausted(self.now, cpu, task, number, wcet));
        self.show_completion(task, executed, true);
    }

    pub(super) fn show_idle(&mut self, place: Place, deliberate: bool) {
        let shown = match deliberate {
            true => Shown::Deliberate,
            false => Shown::Idle,
        };
        if std::mem::replace(&mut self.shown[place.index()], shown) == shown {
            return;
        }
        let event = Record::idle(self.now, self.cpus[place.index()]);
        self.producer.push(match deliberate {
            true => event.flagged(Flags::DELIBERATE),
            false => event,
        });
    }

    pub(super) fn show_server(&mut self, place: Place, server: Option<ServerId>) {
        let cpu = self.cpus[place.index()];
        if let Some(before) = std::mem::replace(&mut self.serving[place.index()], server) {
            self.producer
                .push(Record::server_end(self.now, cpu, before.0));
        }
        if let Some(server) = server {
            self.producer
                .push(Record::server_begin(self.now, cpu, server.0));
        }
    }
}
