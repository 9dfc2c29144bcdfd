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
//!   which it resumes; a preemption in the midst of that makes it start over. What it had to load from
//!   afar is still there then: the longer of the two delays counts.
//! - *A job that is still loaded elsewhere*, or that another processor has begun to choose, cannot be switched to: the old
//!   processor, having switched away, sends an inter-processor interrupt (002 §4.4.2).
//! - *The next job or slice of a migratory task* that is to be released elsewhere makes that processor program a timer.
//! - *The tick* interrupts every processor at multiples of its period, which is the quantum unless
//!   the costs have another. Timers of policies (slots, quanta) are local to each processor and
//!   cost what the tick and the rescheduling cost.
//! - *Under quantum-driven policies* a release is a part of the boundary: it costs the same, and the policy knows of the job
//!   when the quantum begins.
//!
//! Kernel work on whose end nothing depends is no event where nobody looks at events: the job is moved back by its length. What
//! reaches the processor in the meantime turns it into an event again ([`Core::disturb`]). Ticks above all: when the job of a
//! processor at rest ends is known with all ticks that come until then, and it takes note of them when something else comes
//! ([`Core::catch_up`]).

mod decisions;
mod processor;
mod show;

use crate::costs::Costs;
use crate::course::{self, Dirty, Engine, Processors};
use crate::jobs::Jobs;
use crate::kernel::{Cpu, Op, Work};
use crate::observe::{self, Observer};
use crate::scenario::Scenario;
use crate::summary::Summary;
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Platform, Result, TaskId, TaskSet};
use policy::place::Places;
use policy::tournament::Tournament;
use policy::{Domain, Event, Job, NONE, Plan, Policy, Route};
use trace::{Event as Record, Overhead};

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
    let core = Core::new(&domains, route, set, platform, scenario, costs, observer)?;
    let mut driven = Driven {
        domains: &mut domains,
        core,
    };
    let (ending, end) = course::run(&mut driven, scenario, watch);
    let mut core = driven.core;
    core.stop_at(end);
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

/// The engine with the policies that it drives.
struct Driven<'r, 'a, P, O> {
    domains: &'r mut [Domain<P>],
    core: Core<'a, O>,
}

impl<P: Policy, O: Observer> Engine for Driven<'_, '_, P, O> {
    #[inline(always)]
    fn instant(&mut self, horizon: u64) {
        self.core.instant(self.domains, horizon);
    }

    #[inline(always)]
    fn next(&mut self, horizon: u64) -> u64 {
        let core = &mut self.core;
        loop {
            let next = core
                .ends
                .key()
                .min(core.calls.key())
                .min(core.releases.key())
                .min(core.timers.key());
            let next = if P::SLICES {
                next.min(core.arrivals.key())
            } else {
                next
            };
            if O::EVENTS || core.next_tick >= next.min(horizon) {
                return next.min(core.next_tick);
            }
            // Nothing else happens at this instant: a tick alone changes no decision.
            core.now = core.next_tick;
            core.next_tick += core.tick_period;
            core.tick();
        }
    }

    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.core.now = now;
    }

    #[inline(always)]
    fn has_missed(&self) -> bool {
        self.core.jobs.first_miss.is_some()
    }
}

/// By task, the processor that the scenario has release its jobs.
///
/// # Errors
/// A processor that no task runs on; a migratory task of EDF-fm, whose jobs are released where they run (002 §4.1).
fn released_on(
    set: &TaskSet,
    wanted: &[Option<CpuId>],
    processors: &Processors,
    route: &Route,
) -> Result<Vec<u32>> {
    let place = |(task, wanted): (usize, &Option<CpuId>)| {
        let Some(cpu) = wanted else { return Ok(NONE) };
        let name = set.name(TaskId(task as u32));
        let refuse = |cause: String| Err(Error::new(cause).remedy("name another processor, or none"));
        if let Route::Alternating(turns) = route
            && turns[task].first != turns[task].second
        {
            return refuse(format!(
                "jobs of {name} take turns on two processors, and are released there"
            ));
        }
        match processors.ids.iter().position(|id| id == cpu) {
            Some(place) => Ok(place as u32),
            None => refuse(format!(
                "the policy does not use processor {cpu}, which is to release jobs of {name}"
            )),
        }
    };
    wanted.iter().enumerate().map(place).collect()
}

struct Core<'a, O> {
    jobs: Jobs<'a>,
    scenario: &'a Scenario,
    costs: &'a Costs,
    route: Route,
    observer: O,
    now: u64,
    horizon: u64,
    processors: Processors,
    /// By dense processor.
    cpus: Vec<Cpu>,
    /// When a processor's kernel work ends, or its job has to be looked at.
    ends: Tournament,
    /// When an inter-processor interrupt reaches a processor.
    calls: Tournament,
    releases: Tournament,
    timers: Tournament,
    arrivals: Tournament,
    /// By pushed task: where to, as which part, and whether an inter-processor interrupt carries it.
    pushed: Vec<(u32, u32, bool)>,
    /// By task, the processor whose timer releases its jobs, where the scenario says so; else [`NONE`]. Empty: nowhere.
    released_on: Vec<u32>,
    next_tick: u64,
    tick_period: u64,
    /// How many ticks there were.
    ticks: u64,
    /// Can processors be at rest, so that ticks are no events there?
    rests: bool,
    /// The others: those that the next tick may find at something else than a job that executes, or nothing.
    restless: Places,
    /// By task: the processor on which the policy wants its job, and the one that has it loaded or has begun to choose it,
    /// or [`NONE`].
    wanted_at: Vec<u32>,
    loaded_at: Vec<u32>,
    /// By task, how long the reload takes in whole that its job has begun, unless it was finished.
    reloads: Vec<u64>,
    dirty: Dirty,
    /// By domain in which something happened: the processor that decides, or [`NONE`]: each for itself.
    deciding: Vec<u32>,
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
        let processors = Processors::of(domains);
        let (m, n) = (processors.ids.len(), set.len());
        let released_on = released_on(set, &scenario.release_on, &processors, &route)?;
        let jobs = Jobs::new(set, scenario, platform, &processors.ids, P::SLICES)?;
        let last = scenario.horizon.nanos();
        let tick_period = costs.ticks_apart(scenario.quantum);
        let mut releases = Tournament::until(n, last);
        for (task, row) in jobs.rows.iter().enumerate() {
            releases.set(task, row.next_release);
        }
        Ok(Core {
            scenario,
            costs,
            route,
            observer,
            now: 0,
            horizon: scenario.horizon.nanos(),
            processors,
            cpus: vec![Cpu::idle(); m],
            // Of kernel work that begins before the horizon the end is asked for.
            ends: Tournament::until(m, last.saturating_add(costs.longest())),
            calls: Tournament::until(m, last),
            releases,
            timers: Tournament::until(domains.len(), last),
            arrivals: Tournament::until(if P::SLICES { n } else { 1 }, last),
            pushed: vec![(0, 0, false); n],
            released_on,
            next_tick: match costs.tick {
                0 => u64::MAX,
                _ => tick_period,
            },
            tick_period,
            ticks: 0,
            // Limits of jobs may depend on when ticks come.
            rests: !O::EVENTS && !jobs.limited && costs.tick < tick_period,
            restless: Places::all(m),
            wanted_at: vec![NONE; n],
            loaded_at: vec![NONE; n],
            reloads: vec![0; costs.cpmd.len()],
            dirty: Dirty::all(domains.len()),
            deciding: vec![NONE; domains.len()],
            attend: (0..m as u32).collect(),
            transfers: Vec::with_capacity(m),
            lost: vec![[0; Overhead::ALL.len()]; n + 1],
            jobs,
            decisions: 0,
        })
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
            let arrives = P::SLICES && self.arrivals.key() == self.now;
            if !arrives && self.ends.key() != self.now && self.calls.key() != self.now {
                return;
            }
        }
    }

    #[inline]
    fn take_in<P: Policy>(&mut self, domains: &mut [Domain<P>], horizon: u64) {
        while self.ends.key() == self.now {
            let cpu = self.ends.entry() as u32;
            match self.cpus[cpu as usize].work {
                Work::Kernel(op) => {
                    self.ends.set(cpu as usize, Tournament::NEVER);
                    self.serviced(domains, cpu, op);
                }
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
        while P::SLICES && self.arrivals.key() == self.now {
            let task = self.arrivals.entry() as u32;
            self.arrivals.set(task as usize, Tournament::NEVER);
            let (domain, _, by_call) = self.pushed[task as usize];
            let cpu = self.processors.base[domain as usize];
            if by_call {
                self.lost[task as usize][Overhead::IpiLatency as usize] += self.costs.ipi_latency;
                if O::EVENTS {
                    self.show_call(cpu, task, false);
                }
            }
            self.interrupt(cpu, Op::Arrival { task });
        }
        while self.releases.key() == self.now {
            let task = self.releases.entry() as u32;
            self.release(domains, task);
        }
        if self.next_tick == self.now {
            self.next_tick += self.tick_period;
            self.tick();
        }
        while self.timers.key() == self.now {
            let domain = self.timers.entry() as u32;
            self.timers.set(domain as usize, Tournament::NEVER);
            self.tell(domains, domain, NONE, Event::Timer);
        }
    }

    /// The policy of a domain learns of an event; `cpu` is the processor that decides.
    #[inline(always)]
    fn tell<P: Policy>(&mut self, domains: &mut [Domain<P>], domain: u32, cpu: u32, event: Event) {
        domains[domain as usize]
            .policy
            .happen(event, Instant::from_nanos(self.now));
        if self.dirty.mark(domain) {
            self.deciding[domain as usize] = cpu;
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
            let deadline = Instant::from_nanos(self.jobs.due(task, number, self.now));
            let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
            self.observer
                .event(Record::release(now, id, TaskId(task), number, deadline));
        }
        if domains[home as usize].policy.is_quantum_driven() {
            self.interrupt(cpu, Op::Booked { task, number });
            if let Some(job) = self.jobs.admit(task, self.now) {
                self.ready(domains, NONE, job);
            }
        } else {
            self.interrupt(cpu, Op::Release { task, number });
        }
    }

    /// The processor whose timer releases a job: where the task last ran, if that is in the domain; else one in turn.
    #[inline]
    fn releasing(&self, domain: u32, task: u32, last: u32) -> u32 {
        if let Some(at) = self.released_on.get(task as usize).filter(|at| **at != NONE) {
            *at
        } else if self.processors.is_in(last, domain) {
            last
        } else {
            self.processors.base[domain as usize] + task % self.processors.size(domain)
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
                let id = self.processors.ids[self.processors.base[domain as usize] as usize];
                let (now, window) = (Instant::from_nanos(self.now), policy.window(&job));
                self.observer
                    .event(Record::window(now, id, job.task, job.number, window));
            }
        }
        let by_call = self.released_on.get(job.task.index()) == Some(&cpu);
        let deciding = if cpu != NONE && (by_call || self.processors.domain_of[cpu as usize] == domain) {
            cpu
        } else {
            NONE
        };
        self.tell(domains, domain, deciding, Event::Ready(job));
    }

    /// The job of a processor has reloaded its working set, is complete, or has reached a limit.
    #[inline]
    fn reached<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32) {
        let reloading = matches!(self.cpus[cpu as usize].work, Work::Reload);
        self.pause(cpu);
        self.attend.push(cpu);
        let task = self.cpus[cpu as usize].loaded;
        let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
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
        let domain = self.processors.domain_of[cpu as usize];
        if self.jobs.has_slice_only(task) {
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
            observe::show_end(&mut self.observer, row, TaskId(task), self.now, id, cut);
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
                self.transfers.push((self.processors.base[home as usize], task));
            }
        }
    }

    /// The loaded job has left by itself; nobody wants it any more.
    fn dismiss(&mut self, cpu: u32, task: u32) {
        self.has_reloaded(task);
        let wanted = std::mem::replace(&mut self.wanted_at[task as usize], NONE);
        if wanted != NONE {
            self.cpus[wanted as usize].wanted = NONE;
        }
        self.cpus[cpu as usize].loaded = NONE;
        self.loaded_at[task as usize] = NONE;
    }

    /// A processor is not to run a task any more, which may be wanted on another one already.
    #[inline]
    fn unwant(&mut self, task: u32, cpu: u32) {
        if let Some(at) = self.wanted_at.get_mut(task as usize)
            && *at == cpu
        {
            *at = NONE;
        }
    }

    #[inline]
    fn decide<P: Policy>(&mut self, domains: &mut [Domain<P>]) {
        while let Some(domain) = self.dirty.pop() {
            let cpu = self.deciding[domain as usize];
            self.decisions += 1;
            let mut out = decisions::Out {
                base: self.processors.base[domain as usize],
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
            // If it has to already, it is about to.
            if !std::mem::replace(&mut self.cpus[cpu as usize].reschedule, true) {
                self.disturb(cpu);
            }
        } else {
            self.call(cpu);
        }
    }
}
