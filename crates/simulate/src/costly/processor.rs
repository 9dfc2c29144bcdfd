//! What a processor does in the engine with overheads: kernel work, switching, executing, calling
//! others.

use super::core::Core;
use super::path::Path;
use crate::jobs::Jobs;
use crate::kernel::{Op, Work};
use crate::observe::Observer;
use model::TaskId;
use policy::tournament::Tournament;
use policy::{Domain, NONE, Place, Policy};
use trace::Overhead;

impl<O: Observer, F: Path> Core<'_, O, F> {
    /// An interrupt reaches a processor.
    #[inline(always)]
    pub(super) fn interrupt(&mut self, cpu: u32, op: Op) {
        F::interrupt(self, cpu, op);
    }

    /// Stops the execution of the loaded job at `when`, if it executes, without taking it off.
    #[inline(always)]
    pub(super) fn pause_at(&mut self, cpu: u32, when: u64) {
        let here = &mut self.cpus[cpu as usize];
        let time = match here.work {
            Work::Idle => return,
            _ => when - here.since,
        };
        if let Work::Reload = here.work {
            here.reload -= time;
            self.lost[here.loaded as usize][Overhead::Cpmd as usize] += time;
        } else {
            self.jobs.execute(here.loaded, time);
        }
        here.work = Work::Idle;
        self.ends.set(cpu as usize, Tournament::NEVER);
    }

    /// The row of the time lost to kernel work: that of the task that it is done for, or of nobody.
    #[inline(always)]
    pub(super) fn account(&self, cpu: u32, op: Op) -> usize {
        let served = served_task(self.cpus[cpu as usize].loaded, op);
        (served as usize).min(self.lost.len() - 1)
    }

    /// Begins kernel work on a processor that does none.
    #[inline]
    pub(super) fn begin(&mut self, cpu: u32, op: Op) {
        let (kind, time) = self.cost(op);
        let slot = self.account(cpu, op);
        let switching = F::switch_within(self, cpu, op);
        self.lost[slot][kind as usize] += time;
        self.lost[slot][Overhead::ContextSwitch as usize] += switching;
        self.show_overhead(cpu, op, true);
        self.ends.set(cpu as usize, self.now + time + switching);
        self.cpus[cpu as usize].work = Work::Kernel(op);
    }

    /// The simulation ends in the midst of what processors do: what was charged for later is not
    /// lost any more, what was reloaded so far is.
    pub(super) fn stop_at(&mut self, end: u64) {
        self.now = end;
        self.show.advance(end);
        for cpu in 0..self.cpus.len() as u32 {
            if F::give_back(self, cpu) {
                continue;
            }
            let Work::Kernel(op) = self.cpus[cpu as usize].work else {
                F::pause(self, cpu);
                continue;
            };
            let (kind, _) = self.cost(op);
            let slot = self.account(cpu, op);
            let ahead = self.ends.key_of(cpu as usize).saturating_sub(end);
            let of_switch = ahead.min(F::switch_within(self, cpu, op));
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
        self.show_overhead(cpu, op, false);
        self.cpus[cpu as usize].work = Work::Idle;
        match op {
            Op::Release { task, .. } => {
                if let Some(job) = self.jobs.admit(task, self.now) {
                    self.ready(domains, cpu, job);
                }
            }
            Op::Arrival { task } => {
                let job = self.jobs.job(task);
                self.ready(domains, cpu, job);
            }
            Op::Booked { .. } | Op::Transfer { .. } | Op::Tick | Op::Rest => {}
            Op::Choose { next } => {
                let is_new = next != NONE && next != self.cpus[cpu as usize].loaded;
                if is_new && F::switch(self, cpu, next) {
                    return;
                }
            }
            Op::Switch { next } => self.load(cpu, next, self.now),
        }
        let queue = &mut self.cpus[cpu as usize].queue;
        match queue.front() {
            Some(next) if F::comes_first(*next) => {
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
        self.show.start(cpu, next, &self.jobs, before);
        if reload > 0 {
            let job = || Some((TaskId(next), self.jobs.number(next)));
            self.show.overhead(cpu, Overhead::Cpmd, true, job);
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
        self.calls
            .set(cpu as usize, self.now + self.costs.ipi_latency);
        self.cpus[cpu as usize].called_at = self.now;
        // The job that it is for may change until it arrives.
        self.show_call(cpu, NONE, true);
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
        self.lost[slot][Overhead::IpiLatency as usize] +=
            self.now - self.cpus[cpu as usize].called_at;
        self.show_call(cpu, wanted, false);
        self.cpus[cpu as usize].reschedule = true;
        F::disturb(self, cpu);
    }

    /// A processor that does nothing goes on: with interrupts that wait, with rescheduling, or with
    /// its job.
    #[inline]
    pub(super) fn proceed<P: Policy>(&mut self, domains: &[Domain<P>], cpu: u32) {
        if let Some(op) = self.cpus[cpu as usize].queue.pop_front()
            && F::serve(self, cpu, op)
        {
            return;
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
                // From now on it is this processor's: another one that is to run it waits until it
                // has let go.
                self.loaded_at[next as usize] = cpu;
            } else {
                self.show_idle(domains, cpu);
            }
            if F::choose(self, cpu, next) {
                return;
            }
        }
        if self.cpus[cpu as usize].loaded == NONE {
            self.show_idle(domains, cpu);
            F::settle(self, cpu);
            return;
        }
        let since = F::free_at(self, cpu);
        let state = &mut self.cpus[cpu as usize];
        state.since = since;
        if state.reload > 0 {
            state.work = Work::Reload;
            self.ends.set(cpu as usize, since + state.reload);
        } else {
            state.work = Work::Job;
            F::settle(self, cpu);
        }
    }

    /// The loaded job, which does not execute at the moment, is preempted.
    pub(super) fn take_off(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].loaded;
        self.jobs.stop(task, self.now);
        if self.cpus[cpu as usize].reload > 0 {
            let job = || Some((TaskId(task), self.jobs.number(task)));
            self.show.overhead(cpu, Overhead::Cpmd, false, job);
        }
        self.show.preemption(cpu, task, &self.jobs);
        if std::mem::take(&mut self.cpus[cpu as usize].reload) == 0 {
            self.end_reload(task);
        }
    }

    /// Notes that what the job had to reload when it was put on is there, or no longer needed.
    #[inline]
    pub(super) fn end_reload(&mut self, task: u32) {
        if let Some(reload) = self.reloads.get_mut(task as usize) {
            *reload = 0;
        }
    }

    /// Shows that kernel work begins or ends, if it takes time.
    #[inline(always)]
    fn show_overhead(&mut self, cpu: u32, op: Op, begins: bool) {
        let (kind, time) = self.cost(op);
        if time > 0 {
            self.show.overhead(cpu, kind, begins, || {
                served(&self.jobs, self.cpus[cpu as usize].loaded, op)
            });
        }
    }

    /// Shows that an inter-processor interrupt is sent or arrives, if it takes time; on behalf of a
    /// task if one is known then.
    #[inline(always)]
    pub(super) fn show_call(&mut self, cpu: u32, task: u32, begins: bool) {
        if self.costs.ipi_latency > 0 {
            self.show.overhead(cpu, Overhead::IpiLatency, begins, || {
                (task != NONE).then(|| (TaskId(task), self.jobs.number(task)))
            });
        }
    }

    /// Shows that a processor has no job.
    #[inline(always)]
    fn show_idle<P: Policy>(&mut self, domains: &[Domain<P>], cpu: u32) {
        self.show.idle(cpu, || {
            let domain = self.processors.domain_of[cpu as usize].index();
            let place = Place(cpu - self.processors.base[domain]);
            domains[domain].policy.is_deliberately_idle(place)
        });
    }
}

/// The task that kernel work is done for on a processor on which the job of `loaded` is; or
/// [`NONE`].
#[inline(always)]
const fn served_task(loaded: u32, op: Op) -> u32 {
    match op {
        Op::Release { task, .. }
        | Op::Booked { task, .. }
        | Op::Arrival { task }
        | Op::Transfer { task } => task,
        Op::Tick => loaded,
        Op::Rest => NONE,
        Op::Choose { next } | Op::Switch { next } => next,
    }
}

/// The job that kernel work is done for, if any.
fn served(jobs: &Jobs<'_>, loaded: u32, op: Op) -> Option<(TaskId, u64)> {
    let task = served_task(loaded, op);
    (task != NONE).then(|| match op {
        Op::Release { number, .. } | Op::Booked { number, .. } => (TaskId(task), number),
        _ => (TaskId(task), jobs.number(task)),
    })
}
