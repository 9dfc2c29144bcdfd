//! What a domain writes into the trace: when it happened in the eyes of the domain, under its lock.

use super::ground::{Ground, Shown};
use crate::programs::pages::Choice;
use crate::programs::program::Program;
use model::{Duration, Instant, TaskId};
use policy::NONE;
use std::sync::atomic::Ordering;
use trace::{Event as Record, Flags, Overhead};

impl Ground {
    pub(super) fn show_release(&mut self, task: u32, number: u64, nominal: Instant) {
        let deadline = nominal + self.fixed[task as usize].deadline;
        // Where the task last ran, if that is in the domain, else at the domain's first processor.
        let last = self.rows[task as usize].last;
        let cpu = self.cpus.iter().find(|c| c.0 == last).unwrap_or(&self.cpus[0]);
        let event = Record::release(self.now, *cpu, TaskId(task), number, deadline);
        self.producer.push(event);
    }

    /// The dispatcher's processor begins to be busy for a job.
    pub(super) fn show_overhead(&mut self, overhead: Overhead, task: u32, number: u64) {
        let (cpu, job) = (self.cpus[self.here()], Some((TaskId(task), number)));
        self.producer
            .push(Record::overhead_begin(self.now, cpu, overhead, job));
    }

    /// It is done with that.
    pub(super) fn end_overhead(&mut self, overhead: Overhead, task: u32, number: u64) {
        let (cpu, job) = (self.cpus[self.here()], Some((TaskId(task), number)));
        let now = self.pass();
        self.producer.push(Record::overhead_end(now, cpu, overhead, job));
    }

    pub(super) fn show_start(&mut self, place: u32, task: u32) {
        let cpu = self.cpus[place as usize];
        self.shown[place as usize] = Shown::Busy;
        let row = &mut self.rows[task as usize];
        let last = std::mem::replace(&mut row.last, cpu.0);
        let event = match std::mem::replace(&mut row.started, true) {
            false => Record::start(self.now, cpu, TaskId(task), row.number),
            true => Record::resumption(self.now, model::CpuId(last), cpu, TaskId(task), row.number),
        };
        self.producer.push(event);
    }

    /// A program that has a control page is about to be moved: until that says where to, who reads it waits.
    pub(super) fn begin_choice(&self, task: u32) {
        let program = self.team.workers[task as usize].program();
        if let Some(pages) = program.and_then(Program::pages) {
            pages.begin();
        }
    }

    /// On the control page of a program that has one: its job was chosen for this place (000 §3.3).
    pub(super) fn show_choice(&self, place: u32, task: u32) {
        let program = self.team.workers[task as usize].program();
        let Some(pages) = program.and_then(Program::pages) else {
            return;
        };
        let row = &self.rows[task as usize];
        let reading = |at: Instant| self.team.timeline().map_or(0, |t| t.reading(at));
        pages.choose(&Choice {
            number: row.number,
            release: reading(row.release),
            deadline: reading(self.deadline_of(task, row.number)),
            processor: self.cpus[place as usize].0,
            bell: self.team.posts[(self.first_post + place) as usize].beat,
            now: reading(self.now),
            before: row.started.then_some(row.last),
        });
    }

    /// Its job was taken off its processor.
    pub(super) fn show_leaving(&self, task: u32) {
        let program = self.team.workers[task as usize].program();
        if let (Some(pages), Some(t)) = (program.and_then(Program::pages), self.team.timeline()) {
            pages.leave(t.reading(self.now));
        }
    }

    /// The job of a task is complete. It leaves its place; one that was being preempted meanwhile gets it back for no time.
    pub(super) fn show_completion(&mut self, task: u32, cut: bool) {
        let row = self.rows[task as usize];
        let (id, number, now) = (TaskId(task), row.number, self.now);
        let place = match row.place {
            NONE => self.cpus.iter().position(|c| c.0 == row.last).unwrap_or(0),
            place => place as usize,
        };
        let cpu = self.cpus[place];
        let other = self.running[place];
        let displaced = row.place == NONE && other != NONE;
        if displaced {
            let other_number = self.rows[other as usize].number;
            self.producer
                .push(Record::preemption(now, cpu, TaskId(other), other_number));
        }
        if row.place == NONE {
            let last = model::CpuId(row.last);
            let event = match row.started {
                false => Record::start(now, cpu, id, number),
                true => Record::resumption(now, last, cpu, id, number),
            };
            self.producer.push(event);
        }
        let deadline = self.deadline_of(task, number);
        if now > deadline {
            self.producer
                .push(Record::deadline_miss(now, Some(cpu), id, number, deadline));
        }
        let worker = &self.team.workers[task as usize];
        let used = match cut || worker.program().is_some() {
            true => row.executed,
            false => worker.used.load(Ordering::Relaxed),
        };
        let event = Record::completion(now, cpu, id, number, Duration::from_nanos(used));
        self.producer
            .push(if cut { event.flagged(Flags::CUT) } else { event });
        if displaced {
            let other_number = self.rows[other as usize].number;
            let event = Record::resumption(now, cpu, cpu, TaskId(other), other_number);
            self.producer.push(event);
        } else {
            self.running[place] = NONE;
            self.limits.set(place, policy::tournament::Tournament::NEVER);
            // Somebody else, or nobody: shown when it is decided.
            self.shown[place] = Shown::Busy;
        }
        self.rows[task as usize].place = NONE;
    }

    /// A slice is used up; its job has just left this place.
    pub(super) fn show_exhaustion(&mut self, task: u32, place: u32) {
        let (row, cpu) = (self.rows[task as usize], self.cpus[place as usize]);
        let executed = Duration::from_nanos(row.executed);
        let (id, now) = (TaskId(task), self.now);
        self.producer
            .push(Record::budget_exhausted(now, cpu, id, row.number, executed));
        self.producer.push(Record::preemption(now, cpu, id, row.number));
        self.shown[place as usize] = Shown::Busy;
    }

    /// A budget is used up; its job has just left this place.
    pub(super) fn show_cut(&mut self, task: u32, place: u32) {
        let row = &mut self.rows[task as usize];
        // It is shown to leave only now.
        row.place = place;
        let number = row.number;
        let event = Record::budget_exhausted(
            self.now,
            self.cpus[place as usize],
            TaskId(task),
            number,
            self.fixed[task as usize].wcet,
        );
        self.producer.push(event);
        self.show_completion(task, true);
    }

    pub(super) fn show_idle(&mut self, place: u32, deliberate: bool) {
        let shown = if deliberate {
            Shown::Deliberate
        } else {
            Shown::Idle
        };
        if std::mem::replace(&mut self.shown[place as usize], shown) == shown {
            return;
        }
        let event = Record::idle(self.now, self.cpus[place as usize]);
        self.producer.push(if deliberate {
            event.flagged(Flags::DELIBERATE)
        } else {
            event
        });
    }

    pub(super) fn show_server(&mut self, place: u32, server: Option<u32>) {
        let cpu = self.cpus[place as usize];
        let before = std::mem::replace(&mut self.serving[place as usize], server.unwrap_or(NONE));
        if before != NONE {
            self.producer.push(Record::server_end(self.now, cpu, before));
        }
        if let Some(server) = server {
            self.producer.push(Record::server_begin(self.now, cpu, server));
        }
    }
}
