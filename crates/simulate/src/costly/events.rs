//! What happens at an instant in the engine with overheads: events are taken in, policies told and
//! asked.

use super::core::Core;
use super::decisions;
use super::path::Path;
use crate::course::Processor;
use crate::kernel::{Op, Work};
use crate::observe::Observer;
use job::Reached;
use model::{Instant, TaskId};
use policy::tournament::Tournament;
use policy::{Domain, DomainId, Event, Job, Place, Policy, Route};
use trace::Overhead;

impl<O: Observer, F: Path> Core<'_, O, F> {
    /// When something happens next but for ticks.
    #[inline(always)]
    pub(super) fn next_event<P: Policy>(&self) -> u64 {
        let next = self.ends.key().min(self.calls.key());
        let next = next.min(self.releases.key()).min(self.timers.key());
        match P::SLICES {
            true => next.min(self.arrivals.key()),
            false => next,
        }
    }

    /// All that happens now, until nothing more does.
    #[inline]
    pub(super) fn instant<P: Policy>(&mut self, domains: &mut [Domain<P>], horizon: u64) {
        loop {
            // Work without length ends within the instant: go around until all is taken in, then
            // decide.
            loop {
                self.take_in(domains, horizon);
                let more = self.ends.key() == self.now || self.calls.key() == self.now;
                if !more {
                    break;
                }
            }
            if self.now >= horizon {
                return;
            }
            self.decide(domains);
            while let Some(cpu) = self.attend.pop() {
                if matches!(self.cpus[cpu.index()].work, Work::Idle) {
                    self.proceed(domains, cpu);
                }
            }
            let arrives = P::SLICES && self.arrivals.key() == self.now;
            if !arrives && self.ends.key() != self.now && self.calls.key() != self.now {
                return;
            }
        }
    }

    #[inline]
    fn take_in<P: Policy>(&mut self, domains: &mut [Domain<P>], horizon: u64) {
        while self.ends.key() == self.now {
            let cpu = Processor(self.ends.entry() as u32);
            match self.cpus[cpu.index()].work {
                Work::Kernel(op) => {
                    self.ends.set(cpu.index(), Tournament::NEVER);
                    self.serviced(domains, cpu, op);
                }
                _ => self.reached(domains, cpu),
            }
        }
        while let Some((cpu, task)) = self.transfers.pop() {
            self.interrupt(cpu, Op::Transfer { task });
        }
        while self.calls.key() == self.now {
            let cpu = Processor(self.calls.entry() as u32);
            self.calls.set(cpu.index(), Tournament::NEVER);
            self.called(cpu);
        }
        if self.now >= horizon {
            return;
        }
        while P::SLICES && self.arrivals.key() == self.now {
            let task = TaskId(self.arrivals.entry() as u32);
            self.arrivals.set(task.index(), Tournament::NEVER);
            let (domain, by_call) = self.pushed[task.index()];
            let cpu = self.processors.base[domain.index()];
            if by_call {
                self.lost[task.index()][Overhead::IpiLatency as usize] += self.costs.ipi_latency;
                self.show_call(cpu, task, false);
            }
            self.interrupt(cpu, Op::Arrival { task });
        }
        while self.releases.key() == self.now {
            let task = TaskId(self.releases.entry() as u32);
            self.release(domains, task);
        }
        if self.next_tick == self.now {
            self.next_tick += self.tick_period;
            F::tick(self);
        }
        while self.timers.key() == self.now {
            let domain = DomainId(self.timers.entry() as u32);
            self.timers.set(domain.index(), Tournament::NEVER);
            self.tell(domains, domain, Processor::NONE, Event::Timer);
        }
    }

    /// The policy of a domain learns of an event; `cpu` is the processor that decides.
    #[inline(always)]
    pub(super) fn tell<P: Policy>(
        &mut self,
        domains: &mut [Domain<P>],
        domain: DomainId,
        cpu: Processor,
        event: Event,
    ) {
        domains[domain.index()]
            .policy
            .happen(event, Instant::from_nanos(self.now));
        if self.dirty.mark(domain) {
            self.deciding[domain.index()] = cpu;
        }
    }

    #[inline]
    fn release<P: Policy>(&mut self, domains: &mut [Domain<P>], task: TaskId) {
        let number = self.jobs.arrive(task);
        let row = &self.jobs.rows[task.index()];
        self.releases.set(task.index(), row.next_release);
        let home = self.route.home(task, number);
        let cpu = self.releasing(home, task, row.life.last());
        let deadline = || self.jobs.due(task, number, self.now);
        self.show.release(task, number, || (cpu, deadline()));
        if domains[home.index()].policy.is_quantum_driven() {
            self.interrupt(cpu, Op::Booked { task, number });
            if let Some(job) = self.jobs.admit(task, self.now) {
                self.ready(domains, Processor::NONE, job);
            }
        } else {
            self.interrupt(cpu, Op::Release { task, number });
        }
    }

    /// The processor whose timer releases a job: where the task last ran, if that is in the domain;
    /// else one in turn.
    #[inline]
    fn releasing(&self, domain: DomainId, task: TaskId, last: Option<Processor>) -> Processor {
        if let Some(at) = self
            .released_on
            .get(task.index())
            .filter(|at| **at != Processor::NONE)
        {
            *at
        } else if let Some(last) = last.filter(|last| self.processors.is_in(*last, domain)) {
            last
        } else {
            let place = Place(task.0 % self.processors.size(domain));
            self.processors.base[domain.index()].of(place)
        }
    }

    /// A job, or a part of one, can run.
    #[inline]
    pub(super) fn ready<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: Processor, job: Job) {
        let domain = match job.part {
            0 => self.route.home(job.task, job.number),
            _ => self.pushed[job.task.index()].0,
        };
        let policy = &domains[domain.index()].policy;
        let slice = if P::SLICES { policy.slice(&job) } else { None };
        self.jobs.rows[job.task.index()].life.ready(slice);
        if P::SLICES && (slice.is_some() || job.part > 0) {
            let first = self.processors.base[domain.index()];
            self.show.window(first, &job, || policy.window(&job));
        }
        let by_call = self.released_on.get(job.task.index()) == Some(&cpu);
        let deciding = if cpu != Processor::NONE
            && (by_call || self.processors.domain_of[cpu.index()] == domain)
        {
            cpu
        } else {
            Processor::NONE
        };
        self.tell(domains, domain, deciding, Event::Ready(job));
    }

    /// The job of a processor has reloaded its working set, is complete, or has reached a limit.
    #[inline]
    fn reached<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: Processor) {
        let reloading = matches!(self.cpus[cpu.index()].work, Work::Reload);
        F::pause(self, cpu);
        self.attend.push(cpu);
        let task = self.cpus[cpu.index()].loaded;
        let number = self.jobs.number(task);
        if reloading {
            let job = Some((task, number));
            self.show.overhead(cpu, Overhead::Cpmd, false, || job);
            return;
        }
        self.cpus[cpu.index()].reschedule = true;
        let domain = self.processors.domain_of[cpu.index()];
        let reached = self.jobs.reached(task);
        if let Reached::Slice = reached {
            // The policy pushes the job on.
            self.show.exhaustion(cpu, task, &self.jobs);
            self.jobs.exhaust(task, self.now);
            self.dismiss(cpu, task);
            self.tell(domains, domain, cpu, Event::Exhausted(task));
            return;
        }
        let cut = reached == Reached::Budget;
        self.show.end(cpu, task, &self.jobs, cut);
        let (response, successor) = self.jobs.complete(task, self.now, cut);
        self.show.observer.completed(task, number, response);
        self.dismiss(cpu, task);
        // The policy may have moved the job elsewhere in the meantime: its domain is that of the
        // processor all the same.
        self.tell(domains, domain, cpu, Event::Done(task));
        if let Some(job) = successor {
            self.ready(domains, cpu, job);
        } else if let Route::Alternating(_) = self.route {
            let home = self.route.home(task, number.saturating_add(1));
            if home != domain {
                self.transfers
                    .push((self.processors.base[home.index()], task));
            }
        }
    }

    /// The loaded job has left by itself; nobody wants it any more.
    fn dismiss(&mut self, cpu: Processor, task: TaskId) {
        self.end_reload(task);
        let wanted = std::mem::replace(&mut self.wanted_at[task.index()], Processor::NONE);
        if wanted != Processor::NONE {
            self.cpus[wanted.index()].wanted = TaskId::NONE;
        }
        self.cpus[cpu.index()].loaded = TaskId::NONE;
        self.loaded_at[task.index()] = Processor::NONE;
    }

    /// A processor is not to run a task any more, which may be wanted on another one already.
    #[inline]
    pub(super) fn unwant(&mut self, task: TaskId, cpu: Processor) {
        if let Some(at) = self.wanted_at.get_mut(task.index())
            && *at == cpu
        {
            *at = Processor::NONE;
        }
    }

    #[inline]
    fn decide<P: Policy>(&mut self, domains: &mut [Domain<P>]) {
        while let Some(domain) = self.dirty.pop() {
            let cpu = self.deciding[domain.index()];
            self.decisions += 1;
            let mut out = decisions::Out {
                base: self.processors.base[domain.index()],
                core: self,
                domain,
                deciding: cpu,
            };
            domains[domain.index()]
                .policy
                .decide(Instant::from_nanos(out.core.now), &mut out);
        }
    }

    /// What a processor is to run has changed: it has to reschedule.
    #[inline]
    pub(super) fn rearrange(&mut self, cpu: Processor, deciding: Processor) {
        if deciding == Processor::NONE || deciding == cpu {
            // If it has to already, it is about to.
            if !std::mem::replace(&mut self.cpus[cpu.index()].reschedule, true) {
                F::disturb(self, cpu);
            }
        } else {
            self.call(cpu);
        }
    }
}
