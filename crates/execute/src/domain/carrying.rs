//! Carrying decisions out, and carrying tasks over: from place to place, to other domains, from one stage to the next.

use super::actions::{Action, Actions};
use super::ground::{Ground, Leave, Row, Shown};
use crate::stage::Carried;
use crate::team::Mail;
use model::{CpuId, Instant, TaskId};
use policy::NONE;
use std::sync::atomic::{Ordering, fence};
use trace::recorder;
use trace::{Event as Record, Overhead};

impl Ground {
    /// Takes everybody off, and serves no server any more: another stage follows.
    pub fn leave(&mut self) {
        for place in 0..self.cpus.len() as u32 {
            self.take_off(place, &Actions::new(0, 0));
            self.show_server(place, None);
        }
    }

    /// What the next stage has to know of the processors, and who writes the trace.
    pub fn give(&mut self, carried: &mut Carried) {
        carried
            .shown
            .extend(self.cpus.iter().copied().zip(self.shown.iter().copied()));
        let (mut nobody, _) = recorder::rings([CpuId(0)], 2);
        if let Some(nobody) = nobody.pop() {
            carried
                .producers
                .push(std::mem::replace(&mut self.producer, nobody));
        }
    }

    /// Goes on where another stage has left its processors.
    pub fn take_over(&mut self, carried: &Carried) {
        for (place, cpu) in self.cpus.iter().enumerate() {
            let known = carried.shown.iter().find(|(c, _)| c == cpu);
            self.shown[place] = known.map_or(Shown::Busy, |(_, shown)| *shown);
        }
    }

    /// A task of another stage is this domain's from now on; its job, if it has one, runs nowhere.
    pub fn own(&mut self, task: u32, row: &Row) {
        self.rows[task as usize] = Row {
            owned: true,
            place: NONE,
            left: NONE,
            part: 0,
            slice_left: u64::MAX,
            called: 0,
            prompt: false,
            ..*row
        };
        let worker = &self.team.workers[task as usize];
        worker.domain.store(self.domain, Ordering::Relaxed);
        worker.post.store(self.first_post, Ordering::Relaxed);
        // Whoever finishes from here on says so here; what was finished before is seen by whoever looks now.
        fence(Ordering::SeqCst);
        let row = &self.rows[task as usize];
        if row.working && !row.gated {
            match self.cpus.iter().position(|c| c.0 == row.affinity) {
                Some(place) => self.waiting[place].push(task),
                // Elsewhere nobody knows that it waits.
                None => self.close(task),
            }
        }
    }

    /// Gives the task to another domain, where its job or part becomes ready at `at`.
    pub fn hand_over(&mut self, task: u32, domain: u32, at: Instant) {
        let row = &mut self.rows[task as usize];
        row.owned = false;
        let row = Row { place: NONE, ..*row };
        self.team.send(domain, Mail::Task { task, row, at });
    }

    /// Does what was decided: first everybody leaves who has to, then others come, those on other processors first. What a
    /// dispatcher does for others takes its own processor, too.
    pub(super) fn carry_out(&mut self, actions: &mut Actions) {
        let here = self.here;
        let chosen = actions.list.iter().rev().find_map(|action| match action {
            Action::Run { place, task } if *place == here => {
                Some((TaskId(*task), self.rows[*task as usize].number))
            }
            _ => None,
        });
        let cpu = self.cpus[here as usize];
        let begun = self.now;
        self.producer
            .push(Record::overhead_begin(begun, cpu, Overhead::Scheduling, chosen));
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

    /// Puts somebody on a place that is free.
    fn bring(&mut self, index: usize) {
        let (place, task) = self.coming[index];
        // The policy learns of those that have finished when it has decided, and decides again.
        if self.late.contains(&task) {
            return;
        }
        let job = Some((TaskId(task), self.rows[task as usize].number));
        let (cpu, now) = (self.cpus[place as usize], self.now);
        self.producer
            .push(Record::overhead_begin(now, cpu, Overhead::ContextSwitch, job));
        self.put_on(place, task);
        let now = self.pass();
        self.producer
            .push(Record::overhead_end(now, cpu, Overhead::ContextSwitch, job));
        self.show_start(place, task);
    }

    /// A part of a job becomes ready in another domain of the same policy.
    fn push(&mut self, task: u32, to: u32, at: Instant, part: u32) {
        let to = self.first_domain + to;
        self.rows[task as usize].part = part;
        if to == self.domain {
            self.arrivals.set(task as usize, at.max(self.now).nanos());
        } else {
            self.hand_over(task, to, at);
        }
    }

    fn take_off(&mut self, place: u32, actions: &Actions) {
        let task = self.running[place as usize];
        let then = match actions.moves(task, place) {
            true => Leave::Moves,
            false => Leave::Waits,
        };
        if task != NONE && self.vacate(place, then) {
            self.pass();
            let number = self.rows[task as usize].number;
            let event = Record::preemption(self.now, self.cpus[place as usize], TaskId(task), number);
            self.producer.push(event);
        }
    }
}
