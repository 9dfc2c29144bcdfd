//! What a processor does in the engine with overheads: kernel work, switching, executing, calling
//! others.

use super::core::Core;
use super::path::Path;
use crate::course::Processor;
use crate::jobs::Jobs;
use crate::kernel::{Op, Work};
use crate::observe::Observer;
use model::TaskId;
use policy::tournament::Tournament;
use policy::{Domain, Policy};
use trace::Overhead;

impl<O: Observer, F: Path> Core<'_, O, F> {
    /// An interrupt reaches a processor.
    #[inline(always)]
    pub(super) fn interrupt(&mut self, cpu: Processor, op: Op) {
        F::interrupt(self, cpu, op);
    }

    /// Stops the execution of the loaded job at `when`, if it executes, without taking it off.
    #[inline(always)]
    pub(super) fn pause_at(&mut self, cpu: Processor, when: u64) {
        let here = &mut self.cpus[cpu.index()];
        let time = match here.work {
            Work::Idle => return,
            _ => when - here.since,
        };
        if let Work::Reload = here.work {
            here.reload -= time;
            self.lost[here.loaded.index()][Overhead::Cpmd as usize] += time;
        } else {
            self.jobs.execute(here.loaded, time);
        }
        here.work = Work::Idle;
        self.ends.set(cpu.index(), Tournament::NEVER);
    }

    /// The row of the time lost to kernel work: that of the task that it is done for, or of nobody.
    #[inline(always)]
    pub(super) fn account(&self, cpu: Processor, op: Op) -> usize {
        let served = served_task(self.cpus[cpu.index()].loaded, op);
        (served.index()).min(self.lost.len() - 1)
    }

    /// Begins kernel work on a processor that does none.
    #[inline]
    pub(super) fn begin(&mut self, cpu: Processor, op: Op) {
        let (kind, time) = self.cost(op);
        let slot = self.account(cpu, op);
        let switching = F::switch_within(self, cpu, op);
        self.lost[slot][kind as usize] += time;
        self.lost[slot][Overhead::ContextSwitch as usize] += switching;
        self.show_overhead(cpu, op, true);
        self.ends.set(cpu.index(), self.now + time + switching);
        self.cpus[cpu.index()].work = Work::Kernel(op);
    }

    /// The simulation ends in the midst of what processors do: what was charged for later is not
    /// lost any more, what was reloaded so far is.
    pub(super) fn stop_at(&mut self, end: u64) {
        self.now = end;
        self.show.advance(end);
        for cpu in Processor::all(self.cpus.len()) {
            if F::give_back(self, cpu) {
                continue;
            }
            let Work::Kernel(op) = self.cpus[cpu.index()].work else {
                F::pause(self, cpu);
                continue;
            };
            let (kind, _) = self.cost(op);
            let slot = self.account(cpu, op);
            let ahead = self.ends.key_of(cpu.index()).saturating_sub(end);
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
    pub(super) fn serviced<P: Policy>(
        &mut self,
        domains: &mut [Domain<P>],
        cpu: Processor,
        op: Op,
    ) {
        self.show_overhead(cpu, op, false);
        self.cpus[cpu.index()].work = Work::Idle;
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
                let is_new = next != TaskId::NONE && next != self.cpus[cpu.index()].loaded;
                if is_new && F::switch(self, cpu, next) {
                    return;
                }
            }
            Op::Switch { next } => self.load(cpu, next, self.now),
        }
        let queue = &mut self.cpus[cpu.index()].queue;
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
    pub(super) fn load(&mut self, cpu: Processor, next: TaskId, now: u64) {
        self.unload(cpu);
        self.cpus[cpu.index()].loaded = next;
        let before = self.jobs.start(next, cpu, now);
        let reload = match (before, self.costs.cpmd.get(next.index())) {
            (Some(from), Some(delays)) => {
                let way = match from == cpu {
                    true => 0,
                    false => 1 + self.jobs.kind(from, cpu),
                };
                let reload = delays[way].max(self.reloads[next.index()]);
                self.reloads[next.index()] = reload;
                reload
            }
            _ => 0,
        };
        self.cpus[cpu.index()].reload = reload;
        self.show.start(cpu, next, &self.jobs, before);
        if reload > 0 {
            let job = || Some((next, self.jobs.number(next)));
            self.show.overhead(cpu, Overhead::Cpmd, true, job);
        }
    }

    /// The job that was loaded no longer is; who waits for it is called.
    #[inline]
    pub(super) fn unload(&mut self, cpu: Processor) {
        let task = std::mem::replace(&mut self.cpus[cpu.index()].loaded, TaskId::NONE);
        if task == TaskId::NONE {
            return;
        }
        self.loaded_at[task.index()] = Processor::NONE;
        let waiting = self.wanted_at[task.index()];
        if waiting != Processor::NONE && waiting != cpu {
            self.call(waiting);
        }
    }

    /// Sends an inter-processor interrupt.
    #[inline]
    pub(super) fn call(&mut self, cpu: Processor) {
        if self.calls.key_of(cpu.index()) != Tournament::NEVER {
            return;
        }
        self.calls
            .set(cpu.index(), self.now + self.costs.ipi_latency);
        self.cpus[cpu.index()].called_at = self.now;
        // The job that it is for may change until it arrives.
        self.show_call(cpu, TaskId::NONE, true);
    }

    /// An inter-processor interrupt arrives.
    #[inline]
    pub(super) fn called(&mut self, cpu: Processor) {
        let wanted = self.cpus[cpu.index()].wanted;
        let slot = if wanted == TaskId::NONE {
            self.lost.len() - 1
        } else {
            wanted.index()
        };
        self.lost[slot][Overhead::IpiLatency as usize] +=
            self.now - self.cpus[cpu.index()].called_at;
        self.show_call(cpu, wanted, false);
        self.cpus[cpu.index()].reschedule = true;
        F::disturb(self, cpu);
    }

    /// A processor that does nothing goes on: with interrupts that wait, with rescheduling, or with
    /// its job.
    #[inline]
    pub(super) fn proceed<P: Policy>(&mut self, domains: &[Domain<P>], cpu: Processor) {
        if let Some(op) = self.cpus[cpu.index()].queue.pop_front()
            && F::serve(self, cpu, op)
        {
            return;
        }
        let state = &mut self.cpus[cpu.index()];
        if std::mem::take(&mut state.reschedule) {
            let mut next = state.wanted;
            if next != TaskId::NONE {
                let at = self.loaded_at[next.index()];
                if at != Processor::NONE && at != cpu {
                    // Still on another stack, or about to be: its processor will call.
                    next = TaskId::NONE;
                }
            }
            let loaded = self.cpus[cpu.index()].loaded;
            if loaded != TaskId::NONE && loaded != next {
                self.take_off(cpu);
                if next == TaskId::NONE {
                    self.unload(cpu);
                }
            }
            if next != TaskId::NONE {
                // From now on it is this processor's: another one that is to run it waits until it
                // has let go.
                self.loaded_at[next.index()] = cpu;
            } else {
                self.show_idle(domains, cpu);
            }
            if F::choose(self, cpu, next) {
                return;
            }
        }
        if self.cpus[cpu.index()].loaded == TaskId::NONE {
            self.show_idle(domains, cpu);
            F::settle(self, cpu);
            return;
        }
        let since = F::free_at(self, cpu);
        let state = &mut self.cpus[cpu.index()];
        state.since = since;
        if state.reload > 0 {
            state.work = Work::Reload;
            self.ends.set(cpu.index(), since + state.reload);
        } else {
            state.work = Work::Job;
            F::settle(self, cpu);
        }
    }

    /// The loaded job, which does not execute at the moment, is preempted.
    pub(super) fn take_off(&mut self, cpu: Processor) {
        let task = self.cpus[cpu.index()].loaded;
        self.jobs.stop(task, self.now);
        if self.cpus[cpu.index()].reload > 0 {
            let job = || Some((task, self.jobs.number(task)));
            self.show.overhead(cpu, Overhead::Cpmd, false, job);
        }
        self.show.preemption(cpu, task, &self.jobs);
        if std::mem::take(&mut self.cpus[cpu.index()].reload) == 0 {
            self.end_reload(task);
        }
    }

    /// Notes that what the job had to reload when it was put on is there, or no longer needed.
    #[inline]
    pub(super) fn end_reload(&mut self, task: TaskId) {
        if let Some(reload) = self.reloads.get_mut(task.index()) {
            *reload = 0;
        }
    }

    /// Shows that kernel work begins or ends, if it takes time.
    #[inline(always)]
    fn show_overhead(&mut self, cpu: Processor, op: Op, begins: bool) {
        let (kind, time) = self.cost(op);
        if time > 0 {
            self.show.overhead(cpu, kind, begins, || {
                served(&self.jobs, self.cpus[cpu.index()].loaded, op)
            });
        }
    }

    /// Shows that an inter-processor interrupt is sent or arrives, if it takes time; on behalf of a
    /// task if one is known then.
    #[inline(always)]
    pub(super) fn show_call(&mut self, cpu: Processor, task: TaskId, begins: bool) {
        if self.costs.ipi_latency > 0 {
            self.show.overhead(cpu, Overhead::IpiLatency, begins, || {
                (task != TaskId::NONE).then(|| (task, self.jobs.number(task)))
            });
        }
    }

    /// Shows that a processor has no job.
    #[inline(always)]
    fn show_idle<P: Policy>(&mut self, domains: &[Domain<P>], cpu: Processor) {
        self.show.idle(cpu, || {
            let domain = self.processors.domain_of[cpu.index()].index();
            let place = cpu.place_from(self.processors.base[domain]);
            domains[domain].policy.is_deliberately_idle(place)
        });
    }
}

/// The task that kernel work is done for on a processor on which the job of `loaded` is; or
/// [`TaskId::NONE`].
#[inline(always)]
const fn served_task(loaded: TaskId, op: Op) -> TaskId {
    match op {
        Op::Release { task, .. }
        | Op::Booked { task, .. }
        | Op::Arrival { task }
        | Op::Transfer { task } => task,
        Op::Tick => loaded,
        Op::Rest => TaskId::NONE,
        Op::Choose { next } | Op::Switch { next } => next,
    }
}

/// The job that kernel work is done for, if any.
fn served(jobs: &Jobs<'_>, loaded: TaskId, op: Op) -> Option<(TaskId, u64)> {
    let task = served_task(loaded, op);
    (task != TaskId::NONE).then(|| match op {
        Op::Release { number, .. } | Op::Booked { number, .. } => (task, number),
        _ => (task, jobs.number(task)),
    })
}
