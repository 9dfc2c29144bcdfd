//! The engine in virtual time with overheads, charged where 002 §2.4 and Fig. 2.7 have them.
//!
//! A processor executes a job, services something in the kernel, or idles. Kernel work is not preempted: interrupts
//! (releases, timer transfers, the tick) queue up in the order in which they come and delay whoever runs; behind them comes
//! rescheduling. The course of events:
//!
//! - *A release* interrupts the processor on which the task last ran (in its domain; at first they are dealt out in turn).
//!   When the interrupt is serviced the policy learns of the job and decides.
//! - *A decision* about the deciding processor is taken up there at once; about another one, after the latency of an
//!   inter-processor interrupt. A processor reschedules by choosing (scheduling overhead), and, if another job is due than
//!   the one that is loaded, by switching (context-switch overhead). What it switches to is fixed when it starts to choose.
//! - *A completion* makes the processor reschedule. A job that resumes first reloads its working set (CPMD), by the way in
//!   which it resumes; a preemption in the midst of that makes it start over.
//! - *A job that is still loaded elsewhere* cannot be switched to: its old processor, having switched away, sends an
//!   inter-processor interrupt (002 §4.4.2).
//! - *The next job or slice of a migratory task* that is to be released elsewhere makes that processor program a timer.
//! - *The tick* interrupts every processor at multiples of the quantum. Timers of policies (slots, quanta) are local to
//!   each processor and cost what the tick and the rescheduling cost.
//! - *Under quantum-driven policies* a release is a part of the boundary: it costs the same, and the policy knows of the job
//!   when the quantum begins.

use crate::costs::Costs;
use crate::jobs::Jobs;
use crate::kernel::{Cpu, Op, Work};
use crate::observe::Observer;
use crate::scenario::Scenario;
use crate::summary::{Ending, Summary};
use model::watch::Watch;
use model::{CpuId, Duration, Instant, Platform, Result, TaskId, TaskSet};
use policy::tournament::Tournament;
use policy::{Decisions, Domain, Event, Job, NONE, Plan, Policy, Route};
use std::collections::VecDeque;
use trace::{Event as Record, Flags, Overhead};

/// Simulates a plan with overheads. Deterministic: same input, same events, same summary.
///
/// # Errors
/// A scenario or costs out of range for the set.
pub fn run<P: Policy, O: Observer>(
    plan: Plan<P>,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    costs: &Costs,
    watch: &impl Watch,
    observer: O,
) -> Result<(Summary, O)> {
    let Plan { mut domains, route } = plan;
    costs.check(set, platform)?;
    let mut core = Core::new(&domains, route, set, platform, scenario, costs, observer)?;
    let (ending, end) = core.run(&mut domains, watch);
    if O::EVENTS {
        core.jobs.misses_at(end, &mut core.observer);
        core.observer.event(Record::end(Instant::from_nanos(end)));
    }
    let mut summary = core.jobs.summary(ending, end, core.decisions);
    let of = |row: &[u64; Overhead::ALL.len()]| row.map(Duration::from_nanos);
    for (task, lost) in summary.tasks.iter_mut().zip(&core.lost) {
        task.lost = of(lost);
    }
    summary.lost = of(&core.lost[set.len()]);
    Ok((summary, core.observer))
}

/// How many instants pass between two looks at the watch.
const WATCH_EVERY: u32 = 1 << 16;

struct Core<'a, O> {
    jobs: Jobs<'a>,
    scenario: &'a Scenario,
    costs: &'a Costs,
    route: Route,
    observer: O,
    now: u64,
    /// Dense processors: those of the first domain, then of the second, …
    ids: Vec<CpuId>,
    cpus: Vec<Cpu>,
    base: Vec<u32>,
    domain_of: Vec<u32>,
    /// When a processor's kernel work ends, or its job has to be looked at.
    ends: Tournament,
    /// When an inter-processor interrupt reaches a processor.
    calls: Tournament,
    releases: Tournament,
    timers: Tournament,
    arrivals: Tournament,
    /// By pushed task: where to, as which part, and whether an inter-processor interrupt carries it.
    pushed: Vec<(u32, u32, bool)>,
    next_tick: u64,
    /// By task: the processor on which the policy wants its job, and the one that has it loaded, or [`NONE`].
    wanted_at: Vec<u32>,
    loaded_at: Vec<u32>,
    /// Domains in which something happened, with the processor that decides ([`NONE`]: each for itself).
    dirty: Vec<(u32, u32)>,
    is_dirty: Vec<bool>,
    /// Processors that may have something to do after the decisions.
    attend: Vec<u32>,
    /// Timers that completions of this instant ask for, by processor and task: served when all completions are taken in.
    transfers: Vec<(u32, u32)>,
    /// By task, then for no task: time lost.
    lost: Vec<[u64; Overhead::ALL.len()]>,
    decisions: u64,
}

impl<'a, O: Observer> Core<'a, O> {
    fn new<P: Policy>(
        domains: &[Domain<P>],
        route: Route,
        set: &TaskSet,
        platform: &Platform,
        scenario: &'a Scenario,
        costs: &'a Costs,
        observer: O,
    ) -> Result<Self> {
        let ids: Vec<CpuId> = domains.iter().flat_map(|d| d.cpus.iter().copied()).collect();
        let mut base = Vec::with_capacity(domains.len());
        let mut domain_of = Vec::with_capacity(ids.len());
        for (index, domain) in domains.iter().enumerate() {
            base.push(domain_of.len() as u32);
            domain_of.extend(domain.cpus.iter().map(|_| index as u32));
        }
        let (m, n) = (ids.len(), set.len());
        let jobs = Jobs::new(set, scenario, platform, &ids, P::SLICES)?;
        let mut releases = Tournament::new(n);
        for (task, row) in jobs.rows.iter().enumerate() {
            releases.set(task, row.next_release);
        }
        Ok(Core {
            jobs,
            scenario,
            costs,
            route,
            observer,
            now: 0,
            ids,
            cpus: (0..m)
                .map(|_| Cpu {
                    work: Work::Idle,
                    queue: VecDeque::with_capacity(4),
                    loaded: NONE,
                    wanted: NONE,
                    reschedule: false,
                    since: 0,
                    reload: 0,
                    called_at: 0,
                    // A processor counts as idle from the start.
                    shown_idle: Some(false),
                    serving: NONE,
                })
                .collect(),
            base,
            domain_of,
            ends: Tournament::new(m),
            calls: Tournament::new(m),
            releases,
            timers: Tournament::new(domains.len()),
            arrivals: Tournament::new(n),
            pushed: vec![(0, 0, false); n],
            next_tick: match costs.tick {
                0 => u64::MAX,
                _ => scenario.quantum.nanos(),
            },
            wanted_at: vec![NONE; n],
            loaded_at: vec![NONE; n],
            dirty: (0..domains.len() as u32).map(|d| (d, NONE)).collect(),
            is_dirty: vec![true; domains.len()],
            attend: (0..m as u32).collect(),
            transfers: Vec::with_capacity(m),
            lost: vec![[0; Overhead::ALL.len()]; n + 1],
            decisions: 0,
        })
    }

    fn run<P: Policy>(&mut self, domains: &mut [Domain<P>], watch: &impl Watch) -> (Ending, u64) {
        let horizon = self.scenario.horizon.nanos();
        let mut until_watch = WATCH_EVERY;
        let mut told = 0;
        watch.begin("simulating", horizon / 1_000_000);
        loop {
            self.instant(domains, horizon);
            if self.scenario.stop_at_miss && self.jobs.first_miss.is_some() {
                return (Ending::Miss, self.now);
            }
            let next = self.next();
            if next > horizon || self.now == horizon {
                return (Ending::Horizon, horizon);
            }
            self.now = next;
            until_watch -= 1;
            if until_watch == 0 {
                until_watch = WATCH_EVERY;
                watch.advance(self.now / 1_000_000 - told);
                told = self.now / 1_000_000;
                if watch.stopped() {
                    return (Ending::Interrupted, self.now);
                }
            }
        }
    }

    #[inline]
    fn next(&self) -> u64 {
        self.ends
            .key()
            .min(self.calls.key())
            .min(self.releases.key())
            .min(self.timers.key())
            .min(self.arrivals.key())
            .min(self.next_tick)
    }

    /// All that happens now, until nothing more does.
    #[inline]
    fn instant<P: Policy>(&mut self, domains: &mut [Domain<P>], horizon: u64) {
        loop {
            // Work without length ends within the instant: go around until all is taken in, then decide.
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
                if matches!(self.cpus[cpu as usize].work, Work::Idle) {
                    self.proceed(domains, cpu);
                }
            }
            if self.ends.key() != self.now && self.calls.key() != self.now && self.arrivals.key() != self.now
            {
                return;
            }
        }
    }

    #[inline]
    fn take_in<P: Policy>(&mut self, domains: &mut [Domain<P>], horizon: u64) {
        while self.ends.key() == self.now {
            let cpu = self.ends.entry() as u32;
            self.ends.set(cpu as usize, Tournament::NEVER);
            match self.cpus[cpu as usize].work {
                Work::Kernel(op) => self.serviced(domains, cpu, op),
                _ => self.reached(domains, cpu),
            }
        }
        while let Some((cpu, task)) = self.transfers.pop() {
            self.interrupt(cpu, Op::Transfer { task });
        }
        while self.calls.key() == self.now {
            let cpu = self.calls.entry() as u32;
            self.calls.set(cpu as usize, Tournament::NEVER);
            self.called(cpu);
        }
        if self.now >= horizon {
            return;
        }
        while self.arrivals.key() == self.now {
            let task = self.arrivals.entry() as u32;
            self.arrivals.set(task as usize, Tournament::NEVER);
            let (domain, _, by_call) = self.pushed[task as usize];
            let cpu = self.base[domain as usize];
            if by_call {
                self.lost[task as usize][Overhead::IpiLatency as usize] += self.costs.ipi_latency;
                if O::EVENTS {
                    self.show_call(cpu, false);
                }
            }
            self.interrupt(cpu, Op::Arrival { task });
        }
        while self.releases.key() == self.now {
            let task = self.releases.entry() as u32;
            self.release(domains, task);
        }
        if self.next_tick == self.now {
            self.next_tick += self.scenario.quantum.nanos();
            for cpu in 0..self.cpus.len() as u32 {
                self.interrupt(cpu, Op::Tick);
            }
        }
        while self.timers.key() == self.now {
            let domain = self.timers.entry() as u32;
            self.timers.set(domain as usize, Tournament::NEVER);
            self.tell(domains, domain, NONE, Event::Timer);
        }
    }

    /// The policy of a domain learns of an event; `cpu` is the processor that decides.
    #[inline]
    fn tell<P: Policy>(&mut self, domains: &mut [Domain<P>], domain: u32, cpu: u32, event: Event) {
        domains[domain as usize]
            .policy
            .happen(event, Instant::from_nanos(self.now));
        if !self.is_dirty[domain as usize] {
            self.is_dirty[domain as usize] = true;
            self.dirty.push((domain, cpu));
        }
    }

    #[inline]
    fn release<P: Policy>(&mut self, domains: &mut [Domain<P>], task: u32) {
        let number = self.jobs.arrive(task);
        let row = &self.jobs.rows[task as usize];
        self.releases.set(task as usize, row.next_release);
        let home = self.route.home(TaskId(task), number);
        let cpu = self.releasing(home, task, row.last);
        if O::EVENTS {
            let deadline = Instant::from_nanos(self.now + row.deadline);
            let (now, id) = (Instant::from_nanos(self.now), self.ids[cpu as usize]);
            self.observer
                .event(Record::release(now, id, TaskId(task), number, deadline));
        }
        if domains[home as usize].policy.is_quantum_driven() {
            self.interrupt(cpu, Op::Booked { task });
            if let Some(job) = self.jobs.admit(task, self.now) {
                self.ready(domains, NONE, job);
            }
        } else {
            self.interrupt(cpu, Op::Release { task });
        }
    }

    /// The processor whose timer releases a job: where the task last ran, if that is in the domain; else one in turn.
    fn releasing(&self, domain: u32, task: u32, last: u32) -> u32 {
        match self.domain_of.get(last as usize) {
            Some(d) if *d == domain => last,
            _ => {
                let base = self.base[domain as usize];
                let end = self.base.get(domain as usize + 1).copied();
                let size = end.unwrap_or(self.cpus.len() as u32) - base;
                base + task % size
            }
        }
    }

    /// A job, or a part of one, can run.
    #[inline]
    fn ready<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32, job: Job) {
        let domain = match job.part {
            0 => self.route.home(job.task, job.number),
            _ => self.pushed[job.task.index()].0,
        };
        if P::SLICES {
            let policy = &domains[domain as usize].policy;
            let slice = policy.slice(&job);
            self.jobs.rows[job.task.index()].slice_left = slice.map_or(u64::MAX, Duration::nanos);
            if O::EVENTS && (slice.is_some() || job.part > 0) {
                let id = self.ids[self.base[domain as usize] as usize];
                let (now, window) = (Instant::from_nanos(self.now), policy.window(&job));
                self.observer
                    .event(Record::window(now, id, job.task, job.number, window));
            }
        }
        let deciding = if cpu != NONE && self.domain_of[cpu as usize] == domain {
            cpu
        } else {
            NONE
        };
        self.tell(domains, domain, deciding, Event::Ready(job));
    }

    /// An interrupt reaches a processor.
    #[inline]
    fn interrupt(&mut self, cpu: u32, op: Op) {
        match self.cpus[cpu as usize].work {
            Work::Kernel(_) => self.cpus[cpu as usize].queue.push_back(op),
            _ => {
                self.pause(cpu);
                self.begin(cpu, op);
            }
        }
    }

    /// Stops the execution of the loaded job, if it executes, without taking it off.
    #[inline]
    fn pause(&mut self, cpu: u32) {
        let state = &mut self.cpus[cpu as usize];
        if !matches!(state.work, Work::Idle) {
            let time = self.now - state.since;
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

    /// The job that kernel work is done for, if any.
    fn served(&self, cpu: u32, op: Op) -> Option<(TaskId, u64)> {
        let task = match op {
            Op::Release { task } | Op::Booked { task } | Op::Arrival { task } | Op::Transfer { task } => task,
            Op::Tick => self.cpus[cpu as usize].loaded,
            Op::Choose { next } | Op::Switch { next } => next,
        };
        (task != NONE).then(|| {
            let row = &self.jobs.rows[task as usize];
            let number = match op {
                Op::Release { .. } => row.released,
                Op::Booked { .. } => row.arrived.saturating_sub(1),
                _ => row.number,
            };
            (TaskId(task), number)
        })
    }

    /// Begins kernel work on a processor that does none.
    #[inline]
    fn begin(&mut self, cpu: u32, op: Op) {
        let (kind, time) = self.cost(op);
        let slot = self
            .served(cpu, op)
            .map_or(self.lost.len() - 1, |(t, _)| t.index());
        let switching = match op {
            Op::Choose { next } if next != NONE && next != self.cpus[cpu as usize].loaded => {
                self.costs.context_switch
            }
            _ => 0,
        };
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

    #[inline]
    fn cost(&self, op: Op) -> (Overhead, u64) {
        match op {
            Op::Release { .. } | Op::Booked { .. } | Op::Arrival { .. } => {
                (Overhead::Release, self.costs.release)
            }
            Op::Transfer { .. } => (Overhead::TimerTransfer, self.costs.timer_transfer),
            Op::Tick => (Overhead::Tick, self.costs.tick),
            Op::Choose { .. } => (Overhead::Scheduling, self.costs.scheduling),
            Op::Switch { .. } => (Overhead::ContextSwitch, self.costs.context_switch),
        }
    }

    /// Kernel work is done.
    #[inline]
    fn serviced<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32, op: Op) {
        if O::EVENTS {
            let kind = self.cost(op).0;
            self.show_overhead(cpu, kind, op, false);
        }
        self.cpus[cpu as usize].work = Work::Idle;
        match op {
            Op::Release { task } => {
                if let Some(job) = self.jobs.admit(task, self.now) {
                    self.ready(domains, cpu, job);
                }
            }
            Op::Arrival { task } => {
                let job = self.jobs.job(task, self.pushed[task as usize].1);
                self.ready(domains, cpu, job);
            }
            Op::Booked { .. } | Op::Transfer { .. } | Op::Tick => {}
            Op::Choose { next } => {
                if next != NONE && next != self.cpus[cpu as usize].loaded {
                    if O::EVENTS {
                        self.begin(cpu, Op::Switch { next });
                        return;
                    }
                    self.load(cpu, next);
                }
            }
            Op::Switch { next } => self.load(cpu, next),
        }
        match self.cpus[cpu as usize].queue.pop_front() {
            Some(op) => self.begin(cpu, op),
            // What comes next depends on the decisions that this may lead to.
            None => self.attend.push(cpu),
        }
    }

    /// The switch is done: another job is loaded.
    fn load(&mut self, cpu: u32, next: u32) {
        self.unload(cpu);
        self.cpus[cpu as usize].loaded = next;
        self.loaded_at[next as usize] = cpu;
        let before = self.jobs.start(next, cpu, self.now);
        let reload = match (before, self.costs.cpmd.get(next as usize)) {
            (Some(from), Some(delays)) if from == cpu => delays[0],
            (Some(from), Some(delays)) => delays[1 + self.jobs.kind(from, cpu)],
            _ => 0,
        };
        self.cpus[cpu as usize].reload = reload;
        if O::EVENTS {
            self.cpus[cpu as usize].shown_idle = None;
            let number = self.jobs.rows[next as usize].number;
            let (now, to, task) = (
                Instant::from_nanos(self.now),
                self.ids[cpu as usize],
                TaskId(next),
            );
            self.observer.event(match before {
                None => Record::start(now, to, task, number),
                Some(from) => Record::resumption(now, self.ids[from as usize], to, task, number),
            });
            if reload > 0 {
                let begin = Record::overhead_begin(now, to, Overhead::Cpmd, Some((task, number)));
                self.observer.event(begin);
            }
        }
    }

    /// The job that was loaded no longer is; who waits for it is called.
    #[inline]
    fn unload(&mut self, cpu: u32) {
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
    fn call(&mut self, cpu: u32) {
        if self.calls.key_of(cpu as usize) != Tournament::NEVER {
            return;
        }
        self.calls.set(cpu as usize, self.now + self.costs.ipi_latency);
        self.cpus[cpu as usize].called_at = self.now;
        if O::EVENTS && self.costs.ipi_latency > 0 {
            self.show_call(cpu, true);
        }
    }

    /// An inter-processor interrupt arrives.
    #[inline]
    fn called(&mut self, cpu: u32) {
        let wanted = self.cpus[cpu as usize].wanted;
        let slot = if wanted == NONE {
            self.lost.len() - 1
        } else {
            wanted as usize
        };
        self.lost[slot][Overhead::IpiLatency as usize] += self.now - self.cpus[cpu as usize].called_at;
        if O::EVENTS && self.costs.ipi_latency > 0 {
            self.show_call(cpu, false);
        }
        self.cpus[cpu as usize].reschedule = true;
        if !matches!(self.cpus[cpu as usize].work, Work::Kernel(_)) {
            self.pause(cpu);
            self.attend.push(cpu);
        }
    }

    /// A processor that does nothing goes on: with interrupts that wait, with rescheduling, or with its job.
    #[inline]
    fn proceed<P: Policy>(&mut self, domains: &[Domain<P>], cpu: u32) {
        let state = &mut self.cpus[cpu as usize];
        if let Some(op) = state.queue.pop_front() {
            self.begin(cpu, op);
            return;
        }
        if std::mem::take(&mut state.reschedule) {
            let mut next = state.wanted;
            if next != NONE {
                let at = self.loaded_at[next as usize];
                if at != NONE && at != cpu {
                    // Still on another stack: its processor will call.
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
            if O::EVENTS && next == NONE {
                self.show_idle(domains, cpu);
            }
            self.begin(cpu, Op::Choose { next });
            return;
        }
        let state = &mut self.cpus[cpu as usize];
        if state.loaded == NONE {
            if O::EVENTS {
                self.show_idle(domains, cpu);
            }
            return;
        }
        state.since = self.now;
        if state.reload > 0 {
            state.work = Work::Reload;
            self.ends.set(cpu as usize, self.now + state.reload);
        } else {
            state.work = Work::Job;
            self.ends
                .set(cpu as usize, self.jobs.until(state.loaded, self.now));
        }
    }

    /// The loaded job, which does not execute at the moment, is preempted.
    fn take_off(&mut self, cpu: u32) {
        let task = self.cpus[cpu as usize].loaded;
        self.jobs.stop(task, self.now);
        if O::EVENTS {
            let number = self.jobs.rows[task as usize].number;
            let (now, id) = (Instant::from_nanos(self.now), self.ids[cpu as usize]);
            if self.cpus[cpu as usize].reload > 0 {
                let end = Record::overhead_end(now, id, Overhead::Cpmd, Some((TaskId(task), number)));
                self.observer.event(end);
            }
            self.observer
                .event(Record::preemption(now, id, TaskId(task), number));
        }
        self.cpus[cpu as usize].reload = 0;
    }

    /// The job of a processor has reloaded its working set, is complete, or has reached a limit.
    #[inline]
    fn reached<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32) {
        let reloading = matches!(self.cpus[cpu as usize].work, Work::Reload);
        self.pause(cpu);
        self.attend.push(cpu);
        let task = self.cpus[cpu as usize].loaded;
        let (now, id) = (Instant::from_nanos(self.now), self.ids[cpu as usize]);
        let row = &self.jobs.rows[task as usize];
        let number = row.number;
        if reloading {
            if O::EVENTS {
                let end = Record::overhead_end(now, id, Overhead::Cpmd, Some((TaskId(task), number)));
                self.observer.event(end);
            }
            return;
        }
        self.cpus[cpu as usize].reschedule = true;
        let domain = self.domain_of[cpu as usize];
        if row.remaining > 0 && row.budget_left > 0 {
            // Only a slice is used up: the policy pushes the job on.
            if O::EVENTS {
                let budget = Duration::from_nanos(row.executed);
                let (task, time) = (TaskId(task), now);
                self.observer
                    .event(Record::budget_exhausted(time, id, task, number, budget));
                self.observer.event(Record::preemption(now, id, task, number));
            }
            self.jobs.stop(task, self.now);
            self.dismiss(cpu, task);
            self.tell(domains, domain, cpu, Event::Exhausted(TaskId(task)));
            return;
        }
        let cut = row.remaining > 0;
        if O::EVENTS {
            self.show_end(cpu, task, cut);
        }
        let (response, successor) = self.jobs.complete(task, self.now, cut);
        self.observer.completed(task, number, response);
        self.dismiss(cpu, task);
        // The policy may have moved the job elsewhere in the meantime: its domain is that of the processor all the same.
        self.tell(domains, domain, cpu, Event::Done(TaskId(task)));
        if let Some(job) = successor {
            self.ready(domains, cpu, job);
        } else if let Route::Alternating(_) = self.route {
            let home = self.route.home(TaskId(task), number.saturating_add(1));
            if home != domain {
                self.transfers.push((self.base[home as usize], task));
            }
        }
    }

    /// The loaded job has left by itself; nobody wants it any more.
    fn dismiss(&mut self, cpu: u32, task: u32) {
        let wanted = std::mem::replace(&mut self.wanted_at[task as usize], NONE);
        if wanted != NONE {
            self.cpus[wanted as usize].wanted = NONE;
        }
        self.cpus[cpu as usize].loaded = NONE;
        self.loaded_at[task as usize] = NONE;
    }

    #[inline]
    fn decide<P: Policy>(&mut self, domains: &mut [Domain<P>]) {
        while let Some((domain, cpu)) = self.dirty.pop() {
            self.is_dirty[domain as usize] = false;
            self.decisions += 1;
            let mut out = Out {
                base: self.base[domain as usize],
                core: self,
                domain,
                deciding: cpu,
            };
            domains[domain as usize]
                .policy
                .decide(Instant::from_nanos(out.core.now), &mut out);
        }
    }

    /// What a processor is to run has changed: it has to reschedule.
    #[inline]
    fn rearrange(&mut self, cpu: u32, deciding: u32) {
        if deciding == NONE || deciding == cpu {
            self.cpus[cpu as usize].reschedule = true;
            if !matches!(self.cpus[cpu as usize].work, Work::Kernel(_)) {
                self.pause(cpu);
                self.attend.push(cpu);
            }
        } else {
            self.call(cpu);
        }
    }

    fn show_overhead(&mut self, cpu: u32, kind: Overhead, op: Op, begins: bool) {
        if self.cost(op).1 == 0 {
            return;
        }
        let job = self.served(cpu, op);
        let (now, id) = (Instant::from_nanos(self.now), self.ids[cpu as usize]);
        self.observer.event(match begins {
            true => Record::overhead_begin(now, id, kind, job),
            false => Record::overhead_end(now, id, kind, job),
        });
    }

    fn show_call(&mut self, cpu: u32, begins: bool) {
        let (now, id) = (Instant::from_nanos(self.now), self.ids[cpu as usize]);
        self.observer.event(match begins {
            true => Record::overhead_begin(now, id, Overhead::IpiLatency, None),
            false => Record::overhead_end(now, id, Overhead::IpiLatency, None),
        });
    }

    fn show_end(&mut self, cpu: u32, task: u32, cut: bool) {
        let row = &self.jobs.rows[task as usize];
        let (now, cpu) = (Instant::from_nanos(self.now), self.ids[cpu as usize]);
        let deadline = row.release + row.deadline;
        let (id, number) = (TaskId(task), row.number);
        if cut {
            let budget = Duration::from_nanos(row.wcet);
            self.observer
                .event(Record::budget_exhausted(now, cpu, id, number, budget));
        }
        if self.now > deadline {
            let deadline = Instant::from_nanos(deadline);
            self.observer
                .event(Record::deadline_miss(now, Some(cpu), id, number, deadline));
        }
        let done = Record::completion(now, cpu, id, number, Duration::from_nanos(row.executed));
        self.observer
            .event(if cut { done.flagged(Flags::CUT) } else { done });
    }

    /// Tells that a processor has no job, if that is news.
    fn show_idle<P: Policy>(&mut self, domains: &[Domain<P>], cpu: u32) {
        let domain = self.domain_of[cpu as usize];
        let place = cpu - self.base[domain as usize];
        let deliberate = domains[domain as usize].policy.is_deliberately_idle(place);
        if self.cpus[cpu as usize].shown_idle.replace(deliberate) == Some(deliberate) {
            return;
        }
        let event = Record::idle(Instant::from_nanos(self.now), self.ids[cpu as usize]);
        self.observer.event(if deliberate {
            event.flagged(Flags::DELIBERATE)
        } else {
            event
        });
    }
}

/// Carries the decisions of one domain out.
struct Out<'c, 'a, O> {
    core: &'c mut Core<'a, O>,
    domain: u32,
    base: u32,
    /// The processor that decides, or [`NONE`].
    deciding: u32,
}

impl<O: Observer> Decisions for Out<'_, '_, O> {
    #[inline]
    fn run(&mut self, place: u32, task: TaskId) {
        let core = &mut *self.core;
        let cpu = self.base + place;
        let replaced = std::mem::replace(&mut core.cpus[cpu as usize].wanted, task.0);
        if replaced == task.0 {
            return;
        }
        if replaced != NONE {
            core.wanted_at[replaced as usize] = NONE;
        }
        core.wanted_at[task.index()] = cpu;
        core.rearrange(cpu, self.deciding);
    }

    #[inline]
    fn idle(&mut self, place: u32) {
        let core = &mut *self.core;
        let cpu = self.base + place;
        let replaced = std::mem::replace(&mut core.cpus[cpu as usize].wanted, NONE);
        if replaced != NONE {
            core.wanted_at[replaced as usize] = NONE;
            core.rearrange(cpu, self.deciding);
        } else if O::EVENTS {
            core.attend.push(cpu);
        }
    }

    #[inline]
    fn wake(&mut self, at: Instant) {
        self.core.timers.set(self.domain as usize, at.nanos());
    }

    fn push(&mut self, task: TaskId, to: u32, at: Instant, part: u32) {
        let core = &mut *self.core;
        let cpu = core.base[to as usize];
        // In time, that processor programs a timer; too late for that, it is called.
        let by_call = at.nanos() <= core.now && core.costs.ipi_latency > 0;
        core.pushed[task.index()] = (to, part, by_call);
        if by_call {
            core.arrivals.set(task.index(), core.now + core.costs.ipi_latency);
            if O::EVENTS {
                core.show_call(cpu, true);
            }
        } else {
            core.arrivals.set(task.index(), at.nanos().max(core.now));
            core.interrupt(cpu, Op::Transfer { task: task.0 });
        }
    }

    fn serve(&mut self, place: u32, server: Option<u32>) {
        if O::EVENTS {
            let core = &mut *self.core;
            let cpu = (self.base + place) as usize;
            let (now, id) = (Instant::from_nanos(core.now), core.ids[cpu]);
            let before = std::mem::replace(&mut core.cpus[cpu].serving, server.unwrap_or(NONE));
            if before != NONE {
                core.observer.event(Record::server_end(now, id, before));
            }
            if let Some(server) = server {
                core.observer.event(Record::server_begin(now, id, server));
            }
        }
    }
}
