//! What is done to the threads of tasks: raised and lowered, moved, told to work, stopped, accounted for.

use super::ground::{Ground, Leave};
use super::{Enforcement, SHORTEST, trouble};
use crate::kernel;
use crate::programs::program::Program;
use crate::team::Post;
use policy::NONE;
use policy::tournament::Tournament;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// How often it is looked whether a thread has left its processor, before it is moved all the same.
const LOOKS: usize = 50;

impl Ground {
    /// Lets the thread of a task run on this place, above all others.
    pub(super) fn put_on(&mut self, place: u32, task: u32) {
        self.begin_choice(task);
        let cpu = self.cpus[place as usize];
        let affinity = self.rows[task as usize].affinity;
        if affinity != NONE
            && let Some(before) = self.cpus.iter().position(|c| c.0 == affinity)
        {
            forget(&mut self.waiting[before], task);
        }
        if affinity != cpu.0 {
            self.await_leaving(task);
        }
        let team = &self.team;
        let worker = &team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        worker.domain.store(self.domain, Ordering::Release);
        worker.post.store(self.first_post + place, Ordering::Relaxed);
        if place != self.here && self.early > 0 {
            // Whoever waits there without sleeping makes room.
            self.team.posts[(self.first_post + place) as usize].nudge();
        }
        row.left = NONE;
        // First where, then how high: a queued thread is moved at little cost, a running one is not.
        if row.affinity != cpu.0 {
            row.affinity = cpu.0;
            if let Err(e) = worker.pin(cpu) {
                trouble(team, task, "move", &e);
            }
        }
        // It is where its page says from here on.
        self.show_choice(place, task);
        let team = &self.team;
        let worker = &team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        let (gated, is_program) = (std::mem::take(&mut row.gated), worker.program().is_some());
        if gated && is_program {
            // Its threads wake up in an order that is always the same; they are raised in turn.
            worker.open();
        }
        if !row.raised {
            row.raised = true;
            if let Err(e) = worker.raise(kernel::RUN) {
                trouble(team, task, "raise", &e);
            }
        }
        if gated && !is_program {
            worker.open();
        }
        if self.limited {
            row.accounted = worker.time();
        }
        row.place = place;
        self.tell(place, task);
        self.running[place as usize] = task;
        if self.limited {
            self.set_limit(place, task);
        }
    }

    /// Tells whoever does the jobs of a task, and is on this place, to do its next piece of work if it is not within one.
    fn tell(&mut self, place: u32, task: u32) {
        let worker = &self.team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        if !std::mem::replace(&mut row.working, true) {
            if place != self.here {
                row.called = self.timeline.now().nanos();
            }
            worker.tell();
        }
        if worker.program().is_some() {
            let post = self.post(place);
            post.watched.watch(task);
            self.team.belfry.bells.ring(post.beat);
        }
    }

    /// Takes the thread of a place from its priority and then, as asked, leads it to its gate. False where it had finished
    /// before that: then it is shown to be complete and added to the late ones.
    pub fn vacate(&mut self, place: u32, then: Leave) -> bool {
        let task = self.running[place as usize];
        if task == NONE {
            return true;
        }
        let team = Arc::clone(&self.team);
        let worker = &team.workers[task as usize];
        // Before it leaves: its sentinel, which then runs, must not take it for one that sleeps.
        let was_over = worker.program().is_some() && self.post(place).watched.forget();
        let row = &mut self.rows[task as usize];
        if place == self.here && then == Leave::Moves && worker.program().is_none() {
            // It does not run while its dispatcher does, and is not there any more when that ends.
        } else {
            row.raised = false;
            if let Err(e) = worker.raise(kernel::WAIT) {
                trouble(&team, task, "lower", &e);
            }
            row.left = match place == self.here {
                true => NONE,
                false => place,
            };
        }
        if worker.program().is_some() {
            if was_over {
                // Its sentinel has found that, and may have been kept from saying so.
                worker.has_finished(self.rows[task as usize].done);
            }
            self.show_leaving(task);
        }
        if self.rows[task as usize].behind > 0 {
            // If it has done what was left over from an earlier job, it is told to go on when it is chosen again.
            self.rows[task as usize].place = NONE;
        }
        if worker.done() != self.rows[task as usize].done && self.work_done(task) {
            // It has finished since this step began.
            self.pass();
            self.show_completion(task, false);
            self.late.push(task);
            return false;
        }
        if self.limited {
            self.account(task);
        }
        let row = &mut self.rows[task as usize];
        row.place = NONE;
        self.running[place as usize] = NONE;
        self.limits.set(place as usize, Tournament::NEVER);
        match then {
            Leave::Stops => self.close(task),
            Leave::Waits => self.waiting[place as usize].push(task),
            Leave::Moves if self.rows[task as usize].raised => {}
            Leave::Moves => self.waiting[place as usize].push(task),
        }
        true
    }

    /// Waits until a thread is off the processor that it was told to leave: the kernel answers at once, the interrupt takes
    /// some time. Moving it before that would stop that processor, and this dispatcher, for much longer (002 §4.4.2).
    fn await_leaving(&mut self, task: u32) {
        let left = std::mem::replace(&mut self.rows[task as usize].left, NONE);
        if left == NONE {
            return;
        }
        if self.running[left as usize] == NONE {
            // Nobody has come in its place: its dispatcher interrupts it.
            self.team.posts[(self.first_post + left) as usize].call();
        }
        let worker = &self.team.workers[task as usize];
        let mut before = worker.time();
        for _ in 0..LOOKS {
            let look = kernel::monotonic() + 500;
            while kernel::monotonic() < look {
                std::hint::spin_loop();
            }
            // Who executes grows older.
            let time = worker.time();
            if std::mem::replace(&mut before, time) == time {
                return;
            }
        }
    }

    /// Where a program waits for something within its job, those who wait for its processor are led to their gates: it is not theirs.
    pub fn keep_still(&mut self) {
        if !self.programs {
            return;
        }
        for place in 0..self.cpus.len() {
            if self.post(place as u32).watched.is_still() {
                while let Some(task) = self.waiting[place].pop() {
                    self.close(task);
                }
            }
        }
    }

    fn post(&self, place: u32) -> &Post {
        &self.team.posts[(self.first_post + place) as usize]
    }

    pub(super) fn close(&mut self, task: u32) {
        let worker = &self.team.workers[task as usize];
        self.rows[task as usize].gated = true;
        if let Err(e) = worker.close() {
            trouble(&self.team, task, "stop", &e);
        }
    }

    /// The worker of a task has done a piece of work. Is its job complete with that?
    pub fn work_done(&mut self, task: u32) -> bool {
        let worker = &self.team.workers[task as usize];
        let row = &mut self.rows[task as usize];
        row.done = row.done.wrapping_add(1);
        row.working = false;
        if row.affinity != NONE
            && let Some(place) = self.cpus.iter().position(|c| c.0 == row.affinity)
        {
            forget(&mut self.waiting[place], task);
        }
        if row.behind > 0 {
            // That was left over from a job that was cut short: on with the next one's.
            row.behind -= 1;
            let place = row.place;
            if place != NONE {
                self.tell(place, task);
            }
            return false;
        }
        if let Some(program) = worker.program() {
            let prompt = std::mem::take(&mut row.prompt);
            if let (true, Some(pages), Some(t)) = (prompt, program.pages(), self.team.timeline()) {
                let latency = pages.began().saturating_sub(t.reading(row.release));
                self.latencies.record(latency);
            }
            self.account(task);
            self.park(task);
            return self.rows[task as usize].current;
        }
        let began = worker.began.load(Ordering::Relaxed);
        let called = std::mem::take(&mut row.called);
        if called > 0 {
            self.calls.record(began.saturating_sub(called));
        }
        if std::mem::take(&mut row.prompt) {
            self.latencies.record(began.saturating_sub(row.release.nanos()));
        }
        row.current
    }

    /// The job of a program is over: until its next one it is held, or goes on as an ordinary program.
    fn park(&mut self, task: u32) {
        let worker = &self.team.workers[task as usize];
        let Some(program) = worker.program() else { return };
        let row = &mut self.rows[task as usize];
        row.raised = false;
        if let Some(place) = self.cpus.iter().position(|c| c.0 == row.affinity) {
            forget(&mut self.waiting[place], task);
        }
        match program.park(row.gated) {
            Ok(held) => row.gated = held,
            Err(e) => trouble(&self.team, task, "park", &e),
        }
    }

    /// Is a task, once its budget is used up, to be stopped?
    pub fn stops_beyond_budget(&self, task: u32) -> bool {
        let program = self.team.workers[task as usize].program();
        program.is_none_or(Program::stops_beyond_budget)
    }

    /// Looks after programs into which somebody was born who may have missed a change.
    pub fn tidy(&mut self) {
        for (task, row) in self.rows.iter().enumerate().filter(|(_, row)| row.owned) {
            if let Some(program) = self.team.workers[task].program()
                && program.stale.swap(false, Ordering::AcqRel)
                && let Err(e) = program.tidy(row.place != NONE, row.gated, row.working)
            {
                trouble(&self.team, task as u32, "look after", &e);
            }
        }
    }

    /// If the job of a task was put on a processor in this step, in which it was released, its latency will count.
    pub fn note_prompt(&mut self, task: u32) {
        let row = &mut self.rows[task as usize];
        row.prompt = row.place != NONE && row.behind == 0;
    }

    /// The job of a place, which is off its processor, is over although its work is not done.
    pub fn cut(&mut self, task: u32, place: u32) {
        let row = &mut self.rows[task as usize];
        if self.fixed[task as usize].budgeted {
            // What it does goes on, and knows nothing of jobs.
            row.working = false;
            self.park(task);
        } else {
            row.behind += 1;
        }
        self.show_cut(task, place);
    }

    /// Adds up what the thread of a task has executed.
    pub fn account(&mut self, task: u32) {
        let now = self.team.workers[task as usize].time();
        let row = &mut self.rows[task as usize];
        let time = now.saturating_sub(std::mem::replace(&mut row.accounted, now));
        row.executed += time;
        if row.slice_left != u64::MAX {
            row.slice_left = row.slice_left.saturating_sub(time);
        }
        if row.budget_left != u64::MAX {
            row.budget_left = row.budget_left.saturating_sub(time);
        }
    }

    /// When to look next at what the job of a place has executed.
    pub fn set_limit(&mut self, place: u32, task: u32) {
        let row = &self.rows[task as usize];
        let now = self.now.nanos();
        let at = |left: u64| match left {
            u64::MAX => u64::MAX,
            left => now.saturating_add(left.max(SHORTEST)),
        };
        let mut budget = at(row.budget_left);
        if self.enforcement == Enforcement::PerQuantum && budget != u64::MAX {
            let quantum = self.quantum.nanos().max(1);
            budget = budget.div_ceil(quantum).saturating_mul(quantum);
        }
        self.limits.set(place as usize, at(row.slice_left).min(budget));
    }

    /// After a decision: leads to their gates all who wait where nobody runs, and shows which places are idle.
    pub fn settle(&mut self, is_deliberate: impl Fn(u32) -> bool) {
        for place in 0..self.cpus.len() {
            if self.running[place] != NONE {
                continue;
            }
            while let Some(task) = self.waiting[place].pop() {
                self.close(task);
            }
            self.show_idle(place as u32, is_deliberate(place as u32));
        }
    }
}

fn forget(list: &mut Vec<u32>, task: u32) {
    if let Some(at) = list.iter().position(|t| *t == task) {
        list.swap_remove(at);
    }
}
