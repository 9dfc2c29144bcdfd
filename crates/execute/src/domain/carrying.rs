//! Carrying decisions out: who leaves its place, who comes, in which order.

use super::actions::{Action, Actions};
use super::books::Books;
use crate::backend::{Backend, Then};
use crate::ids::InboxId;
use crate::team::Mail;
use model::{Instant, TaskId};
use policy::tournament::Tournament;
use policy::{DomainId, Place};
use trace::{Event as Record, Overhead};

impl<B: Backend> Books<B> {
    /// Does what was decided: first everybody leaves who has to, then others come, those on other
    /// processors first. What a dispatcher does for others takes its own processor, too.
    pub(super) fn carry_out(&mut self, actions: &mut Actions) {
        let here = self.here;
        let chosen = actions.list.iter().rev().find_map(|action| match action {
            Action::Run { place, task } if *place == here => {
                Some((*task, self.tasks[task.index()].life.number()))
            }
            _ => None,
        });
        let cpu = self.cpu_here();
        let begun = self.now;
        self.producer.push(Record::overhead_begin(
            begun,
            cpu,
            Overhead::Scheduling,
            chosen,
        ));
        let decided = self.pass();
        if self.decisions == self.decided + 1 {
            self.thoughts.record(decided.since(self.began).nanos());
        }
        if let Some(at) = actions.wake.take() {
            self.timer = at.nanos();
        }
        for index in 0..actions.list.len() {
            match actions.list[index] {
                Action::Run { place, task } => {
                    self.take_off(place, actions);
                    self.coming.push((place, task));
                }
                Action::Idle { place } => self.take_off(place, actions),
                Action::Push { task, to, at, part } => self.push(task, to, at, part),
                Action::Serve { place, server } => self.show_server(place, server),
            }
        }
        actions.list.clear();
        for index in 0..self.coming.len() {
            if self.coming[index].0 != here {
                self.bring(index);
            }
        }
        let now = self.now;
        self.producer
            .push(Record::overhead_end(now, cpu, Overhead::Scheduling, chosen));
        for index in 0..self.coming.len() {
            if self.coming[index].0 == here {
                self.bring(index);
            }
        }
        self.coming.clear();
    }

    /// Puts a job on its place, which is free, unless it has finished meanwhile.
    fn bring(&mut self, index: usize) {
        let (place, task) = self.coming[index];
        // The policy learns of those that have finished when it has decided, and decides again.
        if self.late.contains(&task) {
            return;
        }
        let job = Some((task, self.tasks[task.index()].life.number()));
        let (cpu, now) = (self.cpus[place.index()], self.now);
        self.producer.push(Record::overhead_begin(
            now,
            cpu,
            Overhead::ContextSwitch,
            job,
        ));
        self.put_on(place, task);
        let now = self.pass();
        self.producer
            .push(Record::overhead_end(now, cpu, Overhead::ContextSwitch, job));
        self.show_start(place, task);
    }

    /// Lets the job of a task run at this place, where no other job runs.
    fn put_on(&mut self, place: Place, task: TaskId) {
        self.team.report_to(task, self.domain, place);
        let choice = self.choice(task);
        let done = self.backend.run(task, place, &choice);
        self.check(done);
        if self.limits.any() {
            self.tasks[task.index()].accounted = self.backend.executed(task);
        }
        self.tasks[task.index()].place = Some(place);
        self.backend.begin_work(task, place);
        self.running[place.index()] = Some(task);
        if self.limits.any() {
            self.set_limit(place, task);
        }
    }

    /// A part of a job becomes ready in another domain of the same policy.
    fn push(&mut self, task: TaskId, to: DomainId, at: Instant, part: u32) {
        let to = self.first_domain.of(to);
        self.tasks[task.index()].life.push(part);
        if to == self.domain {
            self.arrivals.set(task.index(), at.max(self.now).nanos());
        } else {
            self.hand_over(task, to, at);
        }
    }

    /// Gives the task to another domain, where its job or part becomes ready at `at`.
    pub(super) fn hand_over(&mut self, task: TaskId, domain: InboxId, at: Instant) {
        let state = self.tasks[task.index()].hand_over();
        let known = self.backend.give(task);
        let letter = Mail::Task {
            task,
            state,
            known,
            at,
        };
        self.team.send(domain, letter);
    }

    fn take_off(&mut self, place: Place, actions: &Actions) {
        let Some(task) = self.running[place.index()] else {
            return;
        };
        let then = match actions.moves(task, place) {
            true => Then::Moves,
            false => Then::Waits,
        };
        if self.preempt(task, place, then) {
            self.tasks[task.index()].life.stop(self.now);
            let number = self.tasks[task.index()].life.number();
            let event = Record::preemption(self.now, self.cpus[place.index()], task, number);
            self.producer.push(event);
        }
    }

    /// Takes the job of a task, which runs at this place, off it. False where it had finished
    /// before that: then it is shown to be complete and added to the late ones. True: the
    /// caller says what that is in the life of the job.
    pub(super) fn preempt(&mut self, task: TaskId, place: Place, then: Then) -> bool {
        let done = self.backend.preempt(task, place, then, self.now);
        self.check(done);
        if self.tasks[task.index()].life.behind() > 0 {
            // If it has done what was left over from an earlier job, it is told to go on when it is
            // chosen again.
            self.tasks[task.index()].place = None;
        }
        if self.backend.has_done(task)
            && let Some(executed) = self.take_work_done(task)
        {
            // It has finished since this step began.
            self.pass();
            self.show_completion(task, executed, false);
            self.late.push(task);
            return false;
        }
        if self.limits.any() {
            self.account(task);
        }
        // What it has had so far it had before it is shown to leave.
        self.pass();
        self.tasks[task.index()].place = None;
        self.running[place.index()] = None;
        self.looks.set(place.index(), Tournament::NEVER);
        if then == Then::Stops {
            let stopped = self.backend.stop(task);
            self.check(stopped);
        }
        true
    }

    /// Takes everybody off, and serves no server any more: another stage follows.
    pub(super) fn clear(&mut self) {
        for place in Place::all(self.cpus.len()) {
            self.take_off(place, &Actions::new(0, 0));
            self.show_server(place, None);
        }
    }

    /// After a decision: stops all jobs that would go on where no job runs, and shows which places
    /// are idle.
    pub(super) fn settle(&mut self, is_deliberate: impl Fn(Place) -> bool) {
        for place in Place::all(self.cpus.len()) {
            if self.running[place.index()].is_none() {
                let stopped = self.backend.leave_idle(place);
                self.check(stopped);
                self.show_idle(place, is_deliberate(place));
            }
        }
    }
}
