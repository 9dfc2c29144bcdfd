//! What a processor does in the engine with overheads: kernel work, switching, executing, calling others.

use super::Core;
use crate::kernel::{Op, Work};
use crate::observe::Observer;
use model::{Instant, TaskId};
use policy::tournament::Tournament;
use policy::{Domain, NONE, Policy};
use trace::{Event as Record, Overhead};

impl<O: Observer> Core<'_, O> {
    /// An interrupt reaches a processor.
    #[inline]
    pub(super) fn interrupt(&mut self, cpu: u32, op: Op) {
        self.catch_up(cpu);
        let here = &self.cpus[cpu as usize];
        match here.work {
            Work::Kernel(_) => self.cpus[cpu as usize].queue.push_back(op),
            _ if !O::EVENTS && !here.queue.is_empty() => self.cpus[cpu as usize].queue.push_back(op),
            _ if !O::EVENTS && here.free_at > self.now => {
                self.rest(cpu);
                self.cpus[cpu as usize].queue.push_back(op);
            }
            _ if !O::EVENTS && op.has_no_consequence() && here.is_quiet(self.now) => {
                self.work_quietly(cpu, op)
            }
            _ => {
                self.pause(cpu);
                self.begin(cpu, op);
            }
        }
    }

    /// The tick interrupts every processor. Those that are at rest take note of it later ([`Core::catch_up`]).
    #[inline(always)]
    pub(super) fn tick(&mut self) {
        self.ticks += 1;
        let mut next = self.restless.lowest_from(0);
        while let Some(cpu) = next {
            self.cpus[cpu as usize].ticks = self.ticks;
            self.interrupt(cpu, Op::Tick);
            next = self.restless.lowest_from(cpu + 1);
        }
    }

    /// A processor at rest has been interrupted by ticks of which it took no note: its job has executed so much less.
    #[inline(always)]
    pub(super) fn catch_up(&mut self, cpu: u32) {
        let here = &mut self.cpus[cpu as usize];
        let missed = self.ticks - here.ticks;
        if missed == 0 {
            return;
        }
        here.ticks = self.ticks;
        let time = missed * self.costs.tick;
        here.since += time;
        here.free_at = self.next_tick - self.tick_period + self.costs.tick;
        here.quiet = Op::Tick;
        let slot = (here.loaded as usize).min(self.lost.len() - 1);
        self.lost[slot][Overhead::Tick as usize] += time;
    }

    /// A processor that executes, or has nothing to execute, is at rest if the next tick finds it so. Ticks need no event
    /// then: when its job ends with all that come until then is known now.
    #[inline(always)]
    fn settle(&mut self, cpu: u32) {
        let here = &self.cpus[cpu as usize];
        if self.rests && here.free_at <= self.next_tick {
            self.restless.remove(cpu);
        } else {
            self.restless.insert(cpu);
        }
        if matches!(here.work, Work::Job) {
            let mut end = self.jobs.until(here.loaded, here.since);
            // A job without budget that is back exactly at the end of a quantum: what interrupts its processor at that instant
            // comes before it is cut short, as it does where the end of kernel work is an event.
            if end == here.since && here.free_at > self.now {
                self.rest(cpu);
                return;
            }
            // A tick at the end comes after it.
            if self.rests && end > self.next_tick {
                let behind = end - self.next_tick.max(here.since);
                end += self.costs.tick * behind.div_ceil(self.tick_period - self.costs.tick);
            }
            self.ends.set(cpu as usize, end);
        }
    }

    /// Does kernel work on whose end nothing depends: the job, if one executes, goes on so much later.
    #[inline]
    fn work_quietly(&mut self, cpu: u32, op: Op) {
        self.charge_quietly(cpu, op);
        let now = self.now;
        let here = &mut self.cpus[cpu as usize];
        if matches!(here.work, Work::Job) {
            let executed = now - here.since;
            here.since = here.free_at;
            self.jobs.execute(here.loaded, executed);
        }
        self.settle(cpu);
    }

    /// Kernel work begins on whose end nothing depends.
    #[inline]
    fn charge_quietly(&mut self, cpu: u32, op: Op) {
        let (kind, time) = self.cost(op);
        let slot = self.account(cpu, op);
        self.lost[slot][kind as usize] += time;
        let here = &mut self.cpus[cpu as usize];
        here.free_at = self.now + time;
        here.quiet = op;
    }

    /// Makes an event of the end of the kernel work that a processor does without one.
    #[cold]
    fn rest(&mut self, cpu: u32) {
        let free_at = self.cpus[cpu as usize].free_at;
        self.pause_at(cpu, free_at);
        self.cpus[cpu as usize].work = Work::Kernel(Op::Rest);
        self.ends.set(cpu as usize, free_at);
    }

    /// A processor has something to do besides its job: it goes on to that, after the kernel work that it does.
    #[inline]
    pub(super) fn disturb(&mut self, cpu: u32) {
        self.catch_up(cpu);
        let here = &self.cpus[cpu as usize];
        if matches!(here.work, Work::Kernel(_)) {
            return;
        }
        if !O::EVENTS && here.free_at > self.now {
            self.rest(cpu);
        } else {
            self.pause(cpu);
            self.attend.push(cpu);
        }
    }

    /// Stops the execution of the loaded job, if it executes, without taking it off.
    #[inline]
    pub(super) fn pause(&mut self, cpu: u32) {
        self.catch_up(cpu);
        self.pause_at(cpu, self.now);
    }

    #[inline(always)]
    fn pause_at(&mut self, cpu: u32, when: u64) {
        let state = &mut self.cpus[cpu as usize];
        self.restless.insert(cpu);
        if !matches!(state.work, Work::Idle) {
            let time = when - state.since;
            match state.work {
                Work::Reload => {
                    state.reload -= time;
                    self.lost[state.loaded as usize][Overhead::Cpmd as usize] += time;
                }
                _ => self.jobs.execute(state.loaded, time),
            }
            state.work = Work::Idle;
            self.ends.set(cpu as usize, Tournament::NEVER);
        }
    }

    /// The task that kernel work is done for, or `NONE`.
    #[inline(always)]
    fn served_task(&self, cpu: u32, op: Op) -> u32 {
        match op {
            Op::Release { task, .. }
            | Op::Booked { task, .. }
            | Op::Arrival { task }
            | Op::Transfer { task } => task,
            Op::Tick => self.cpus[cpu as usize].loaded,
            Op::Rest => NONE,
            Op::Choose { next } | Op::Switch { next } => next,
        }
    }

    /// The job that kernel work is done for, if any.
    pub(super) fn served(&self, cpu: u32, op: Op) -> Option<(TaskId, u64)> {
        let task = self.served_task(cpu, op);
        (task != NONE).then(|| {
            let row = &self.jobs.rows[task as usize];
            let number = match op {
                Op::Release { number, .. } | Op::Booked { number, .. } => number,
                _ => row.number,
            };
            (TaskId(task), number)
        })
    }

    /// The row of the time lost to kernel work: that of the task that it is done for, or of nobody.
    #[inline(always)]
    fn account(&self, cpu: u32, op: Op) -> usize {
        (self.served_task(cpu, op) as usize).min(self.lost.len() - 1)
    }

    /// How long the switch takes that follows a choice.
    #[inline(always)]
    fn switching(&self, cpu: u32, op: Op) -> u64 {
        match op {
            Op::Choose { next } if next != NONE && next != self.cpus[cpu as usize].loaded => {
                self.costs.context_switch
            }
            _ => 0,
        }
    }

    /// Begins kernel work on a processor that does none.
    #[inline]
    pub(super) fn begin(&mut self, cpu: u32, op: Op) {
        let (kind, time) = self.cost(op);
        let slot = self.account(cpu, op);
        let switching = self.switching(cpu, op);
        if !matches!(op, Op::Switch { .. }) {
            self.lost[slot][kind as usize] += time;
            self.lost[slot][Overhead::ContextSwitch as usize] += switching;
        }
        if O::EVENTS {
            self.show_overhead(cpu, kind, op, true);
            self.ends.set(cpu as usize, self.now + time);
        } else {
            // Nobody sees where choosing ends and switching begins: both at once.
            self.ends.set(cpu as usize, self.now + time + switching);
        }
        self.cpus[cpu as usize].work = Work::Kernel(op);
    }

    /// The simulation ends in the midst of what processors do: what was charged for later is not lost any more, what was
    /// reloaded so far is.
    pub(super) fn stop_at(&mut self, end: u64) {
        self.now = end;
        for cpu in 0..self.cpus.len() as u32 {
            self.catch_up(cpu);
            let here = &self.cpus[cpu as usize];
            let (quiet, left) = (here.quiet, here.free_at.saturating_sub(end));
            if left > 0 {
                // Work that is no event; what it delays has not begun again.
                let slot = self.account(cpu, quiet);
                let of_switch = match quiet {
                    Op::Switch { .. } => left.min(self.costs.context_switch),
                    _ => 0,
                };
                let (kind, _) = match quiet {
                    // With the choice before it.
                    Op::Switch { next } => self.cost(Op::Choose { next }),
                    other => self.cost(other),
                };
                self.lost[slot][Overhead::ContextSwitch as usize] -= of_switch;
                self.lost[slot][kind as usize] -= left - of_switch;
                continue;
            }
            let Work::Kernel(op) = here.work else {
                self.pause(cpu);
                continue;
            };
            let (kind, _) = self.cost(op);
            let slot = self.account(cpu, op);
            let switching = self.switching(cpu, op);
            // The switch was charged with the choice; where events are shown it is still to begin.
            let later = if O::EVENTS { switching } else { 0 };
            let ahead = self.ends.key_of(cpu as usize).saturating_sub(end) + later;
            let of_switch = ahead.min(switching);
            self.lost[slot][Overhead::ContextSwitch as usize] -= of_switch;
            self.lost[slot][kind as usize] -= ahead - of_switch;
        }
    }

    #[inline]
    pub(super) fn cost(&self, op: Op) -> (Overhead, u64) {
        match op {
            Op::Release { .. } | Op::Booked { .. } | Op::Arrival { .. } => {
                (Overhead::Release, self.costs.release)
            }
            Op::Transfer { .. } => (Overhead::TimerTransfer, self.costs.timer_transfer),
            Op::Tick => (Overhead::Tick, self.costs.tick),
            Op::Rest => (Overhead::Tick, 0),
            Op::Choose { .. } => (Overhead::Scheduling, self.costs.scheduling),
            Op::Switch { .. } => (Overhead::ContextSwitch, self.costs.context_switch),
        }
    }

    /// Kernel work is done.
    #[inline]
    pub(super) fn serviced<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32, op: Op) {
        if O::EVENTS {
            let kind = self.cost(op).0;
            self.show_overhead(cpu, kind, op, false);
        }
        self.cpus[cpu as usize].work = Work::Idle;
        match op {
            Op::Release { task, .. } => {
                if let Some(job) = self.jobs.admit(task, self.now) {
                    self.ready(domains, cpu, job);
                }
            }
            Op::Arrival { task } => {
                let job = self.jobs.job(task, self.pushed[task as usize].1);
                self.ready(domains, cpu, job);
            }
            Op::Booked { .. } | Op::Transfer { .. } | Op::Tick | Op::Rest => {}
            Op::Choose { next } => {
                if next != NONE && next != self.cpus[cpu as usize].loaded {
                    if O::EVENTS {
                        self.begin(cpu, Op::Switch { next });
                        return;
                    }
                    self.load(cpu, next, self.now);
                }
            }
            Op::Switch { next } => self.load(cpu, next, self.now),
        }
        let queue = &mut self.cpus[cpu as usize].queue;
        match queue.front() {
            Some(next) if O::EVENTS || !next.has_no_consequence() => {
                let next = *next;
                queue.pop_front();
                self.begin(cpu, next);
            }
            // What comes next depends on the decisions that this may lead to.
            _ => self.attend.push(cpu),
        }
    }

    /// The switch is done, at `now`: another job is loaded.
    pub(super) fn load(&mut self, cpu: u32, next: u32, now: u64) {
        self.unload(cpu);
        self.cpus[cpu as usize].loaded = next;
        let before = self.jobs.start(next, cpu, now);
        let reload = match (before, self.costs.cpmd.get(next as usize)) {
            (Some(from), Some(delays)) => {
                let way = match from == cpu {
                    true => 0,
                    false => 1 + self.jobs.kind(from, cpu),
                };
                let reload = delays[way].max(self.reloads[next as usize]);
                self.reloads[next as usize] = reload;
                reload
            }
            _ => 0,
        };
        self.cpus[cpu as usize].reload = reload;
        if O::EVENTS {
            self.cpus[cpu as usize].shown_idle = None;
            let number = self.jobs.rows[next as usize].number;
            let (now, to, task) = (
                Instant::from_nanos(now),
                self.processors.ids[cpu as usize],
                TaskId(next),
            );
            self.observer.event(match before {
                None => Record::start(now, to, task, number),
                Some(from) => Record::resumption(now, self.processors.ids[from as usize], to, task, number),
            });
            if reload > 0 {
                let begin = Record::overhead_begin(now, to, Overhead::Cpmd, Some((task, number)));
                self.observer.event(begin);
            }
        }
    }

    /// The job that was loaded no longer is; who waits for it is called.
    #[inline]
    pub(super) fn unload(&mut self, cpu: u32) {
        let task = std::mem::replace(&mut self.cpus[cpu as usize].loaded, NONE);
        if task == NONE {
            return;
        }
        self.loaded_at[task as usize] = NONE;
        let waiting = self.wanted_at[task as usize];
        if waiting != NONE && waiting != cpu {
            self.call(waiting);
        }
    }

    /// Sends an inter-processor interrupt.
    #[inline]
    pub(super) fn call(&mut self, cpu: u32) {
        if self.calls.key_of(cpu as usize) != Tournament::NEVER {
            return;
        }
        self.calls.set(cpu as usize, self.now + self.costs.ipi_latency);
        self.cpus[cpu as usize].called_at = self.now;
        if O::EVENTS && self.costs.ipi_latency > 0 {
            // Whom it is for may change until it arrives.
            self.show_call(cpu, NONE, true);
        }
    }

    /// An inter-processor interrupt arrives.
    #[inline]
    pub(super) fn called(&mut self, cpu: u32) {
        let wanted = self.cpus[cpu as usize].wanted;
        let slot = if wanted == NONE {
            self.lost.len() - 1
        } else {
            wanted as usize
        };
        self.lost[slot][Overhead::IpiLatency as usize] += self.now - self.cpus[cpu as usize].called_at;
        if O::EVENTS && self.costs.ipi_latency > 0 {
            self.show_call(cpu, wanted, false);
        }
        self.cpus[cpu as usize].reschedule = true;
        self.disturb(cpu);
    }

    /// A processor that does nothing goes on: with interrupts that wait, with rescheduling, or with its job.
    #[inline]
    pub(super) fn proceed<P: Policy>(&mut self, domains: &[Domain<P>], cpu: u32) {
        let state = &mut self.cpus[cpu as usize];
        if let Some(op) = state.queue.pop_front() {
            if O::EVENTS || state.reschedule || !state.queue.is_empty() || !op.has_no_consequence() {
                self.begin(cpu, op);
                return;
            }
            // The job goes on behind it.
            self.charge_quietly(cpu, op);
        }
        let state = &mut self.cpus[cpu as usize];
        if std::mem::take(&mut state.reschedule) {
            let mut next = state.wanted;
            if next != NONE {
                let at = self.loaded_at[next as usize];
                if at != NONE && at != cpu {
                    // Still on another stack, or about to be: its processor will call.
                    next = NONE;
                }
            }
            let loaded = self.cpus[cpu as usize].loaded;
            if loaded != NONE && loaded != next {
                self.take_off(cpu);
                if next == NONE {
                    self.unload(cpu);
                }
            }
            if next != NONE {
                // From now on it is this processor's: another one that is to run it waits until it has let go.
                self.loaded_at[next as usize] = cpu;
            } else if O::EVENTS {
                self.show_idle(domains, cpu);
            }
            if O::EVENTS || !self.choose_quietly(cpu, next) {
                self.begin(cpu, Op::Choose { next });
                return;
            }
        }
        let state = &mut self.cpus[cpu as usize];
        if state.loaded == NONE {
            if O::EVENTS {
                self.show_idle(domains, cpu);
            }
            self.settle(cpu);
            return;
        }
        state.since = self.now.max(state.free_at);
        if state.reload > 0 {
            state.work = Work::Reload;
            self.ends.set(cpu as usize, state.since + state.reload);
        } else {
            state.work = Work::Job;
            self.settle(cpu);
        }
    }

    /// Chooses, and switches if need be, without an event at the end, where nothing depends on when that is: nobody waits for
    /// the job that was loaded; the task that is switched to releases no job in the meantime, which would go where this one
    /// runs; and its job is not cut short as soon as it is chosen, which comes after all choices of that instant. Says whether
    /// that is so.
    #[inline(always)]
    fn choose_quietly(&mut self, cpu: u32, next: u32) -> bool {
        let here = &self.cpus[cpu as usize];
        let mut end = self.now + self.costs.scheduling;
        let slot = (next as usize).min(self.lost.len() - 1);
        let switches = next != here.loaded;
        if switches {
            end += self.costs.context_switch;
        }
        if self.jobs.limited && next != NONE && self.jobs.until(next, end) == end {
            return false;
        }
        if switches {
            let overtaken = self.jobs.rows[slot].next_release <= end;
            if here.loaded != NONE || overtaken || self.scenario.stop_at_miss || end > self.horizon {
                return false;
            }
            self.lost[slot][Overhead::ContextSwitch as usize] += self.costs.context_switch;
            self.load(cpu, next, end);
        }
        self.lost[slot][Overhead::Scheduling as usize] += self.costs.scheduling;
        let here = &mut self.cpus[cpu as usize];
        here.free_at = end;
        here.quiet = match end - self.now > self.costs.scheduling {
            true => Op::Switch { next },
            false => Op::Choose { next },
        };
        true
    }

    /// The loaded job, which does not execute at the moment, is preempted.
    pub(super) fn take_off(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].loaded;
        self.jobs.stop(task, self.now);
        if O::EVENTS {
            let number = self.jobs.rows[task as usize].number;
            let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
            if self.cpus[cpu as usize].reload > 0 {
                let end = Record::overhead_end(now, id, Overhead::Cpmd, Some((TaskId(task), number)));
                self.observer.event(end);
            }
            self.observer
                .event(Record::preemption(now, id, TaskId(task), number));
        }
        if std::mem::take(&mut self.cpus[cpu as usize].reload) == 0 {
            self.has_reloaded(task);
        }
    }

    /// What the job had to reload when it was put on is there, or no longer needed.
    #[inline]
    pub(super) fn has_reloaded(&mut self, task: u32) {
        if let Some(reload) = self.reloads.get_mut(task as usize) {
            *reload = 0;
        }
    }
}
