//! The engine in virtual time without overheads: schedules as the theory draws them (DESIGN, "Simulated schedules").
//!
//! From event to event: at each instant first completions, then timers, then releases; then every domain that something
//! happened in decides once. Compiled for each policy and observer on its own.

use crate::course::{self, Dirty, Engine, Processors};
use crate::jobs::Jobs;
use crate::observe::{self, Observer};
use crate::scenario::Scenario;
use crate::summary::Summary;
use model::watch::Watch;
use model::{CpuId, Duration, Instant, Platform, Result, TaskId, TaskSet};
use policy::tournament::Tournament;
use policy::{Decisions, Domain, Event, Job, NONE, Plan, Policy, Route};
use trace::Event as Record;

/// Simulates a plan. Deterministic: same input, same events, same summary.
///
/// # Errors
/// A scenario out of range for the set.
pub fn run<P: Policy, O: Observer>(
    plan: Plan<P>,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    watch: &impl Watch,
    observer: O,
) -> Result<(Summary, O)> {
    let Plan { mut domains, route } = plan;
    let core = Core::new(&domains, route, set, platform, scenario, observer)?;
    let mut driven = Driven {
        domains: &mut domains,
        core,
    };
    let (ending, end) = course::run(&mut driven, scenario, watch);
    let mut core = driven.core;
    if O::EVENTS {
        core.jobs.misses_at(end, &mut core.observer);
        core.observer.event(Record::end(Instant::from_nanos(end)));
    }
    let summary = core.jobs.summary(ending, end, core.decisions);
    Ok((summary, core.observer))
}

/// The engine with the policies that it drives.
struct Driven<'r, 'a, P, O> {
    domains: &'r mut [Domain<P>],
    core: Core<'a, O>,
}

struct Core<'a, O> {
    jobs: Jobs<'a>,
    route: Route,
    observer: O,
    now: u64,
    processors: Processors,
    /// By dense processor.
    cpus: Vec<Cpu>,
    /// When the job of a processor has to be looked at.
    ends: Tournament,
    /// The next release of each task.
    releases: Tournament,
    /// The timer of each domain.
    timers: Tournament,
    /// Pushed jobs by task: when they become ready.
    arrivals: Tournament,
    /// Where to, and as which part.
    pushed: Vec<(u32, u32)>,
    dirty: Dirty,
    /// Processors that lost their job at this instant; kept for observers of events only.
    emptied: Vec<u32>,
    decisions: u64,
}

/// A processor.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// The task that runs there, or [`NONE`].
    running: u32,
    /// The server that it serves, or [`NONE`]; kept for observers of events only.
    serving: u32,
    /// Since when.
    since: u64,
    /// Whether observers of events were told that it has no job, and if so, whether that is deliberate.
    shown_idle: Option<bool>,
}

impl<'a, O: Observer> Core<'a, O> {
    fn new<P: Policy>(
        domains: &[Domain<P>],
        route: Route,
        set: &TaskSet,
        platform: &Platform,
        scenario: &'a Scenario,
        observer: O,
    ) -> Result<Self> {
        let processors = Processors::of(domains);
        let (m, n) = (processors.ids.len(), set.len());
        let jobs = Jobs::new(set, scenario, platform, &processors.ids, P::SLICES)?;
        let last = scenario.horizon.nanos();
        let mut releases = Tournament::until(n, last);
        for (task, row) in jobs.rows.iter().enumerate() {
            releases.set(task, row.next_release);
        }
        let idle = Cpu {
            running: NONE,
            serving: NONE,
            since: 0,
            shown_idle: None,
        };
        Ok(Core {
            jobs,
            route,
            observer,
            now: 0,
            cpus: vec![idle; m],
            ends: Tournament::until(m, last),
            releases,
            timers: Tournament::until(domains.len(), last),
            arrivals: Tournament::until(if P::SLICES { n } else { 1 }, last),
            pushed: vec![(0, 0); n],
            dirty: Dirty::all(domains.len()),
            emptied: (0..m as u32).collect(),
            processors,
            decisions: 0,
        })
    }
}

impl<P: Policy, O: Observer> Engine for Driven<'_, '_, P, O> {
    #[inline(always)]
    fn instant(&mut self, horizon: u64) {
        let now = self.core.now;
        while self.core.ends.key() == now {
            let cpu = self.core.ends.entry() as u32;
            self.reached(cpu);
        }
        if P::SLICES {
            while self.core.arrivals.key() == now {
                let task = self.core.arrivals.entry() as u32;
                self.core.arrivals.set(task as usize, Tournament::NEVER);
                let (domain, part) = self.core.pushed[task as usize];
                let job = self.core.jobs.job(task, part);
                self.ready(domain, job);
            }
        }
        while self.core.timers.key() == now {
            let domain = self.core.timers.entry() as u32;
            self.core.timers.set(domain as usize, Tournament::NEVER);
            self.tell(domain, Event::Timer);
        }
        // At the horizon nothing starts any more.
        if now < horizon {
            while self.core.releases.key() == now {
                let task = self.core.releases.entry() as u32;
                self.release(task);
            }
            self.decide();
        }
        if O::EVENTS {
            self.show_idle();
        }
    }

    #[inline(always)]
    fn next(&mut self, _horizon: u64) -> u64 {
        let core = &self.core;
        let next = core.ends.key().min(core.releases.key()).min(core.timers.key());
        if P::SLICES {
            next.min(core.arrivals.key())
        } else {
            next
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

impl<P: Policy, O: Observer> Driven<'_, '_, P, O> {
    #[inline(always)]
    fn tell(&mut self, domain: u32, event: Event) {
        let now = Instant::from_nanos(self.core.now);
        self.domains[domain as usize].policy.happen(event, now);
        self.core.dirty.mark(domain);
    }

    #[inline(always)]
    fn release(&mut self, task: u32) {
        let core = &mut self.core;
        let (number, job) = core.jobs.release(task, core.now);
        let row = &core.jobs.rows[task as usize];
        core.releases.set(task as usize, row.next_release);
        let home = core.route.home(TaskId(task), number);
        if O::EVENTS {
            let deadline = Instant::from_nanos(core.jobs.due(task, number, core.now));
            let cpu = core.releasing(home, row.last);
            let event = Record::release(Instant::from_nanos(core.now), cpu, TaskId(task), number, deadline);
            core.observer.event(event);
        }
        if let Some(job) = job {
            self.ready(home, job);
        }
    }

    #[inline(always)]
    fn ready(&mut self, domain: u32, job: Job) {
        if P::SLICES {
            let core = &mut self.core;
            let policy = &self.domains[domain as usize].policy;
            let slice = policy.slice(&job);
            core.jobs.rows[job.task.index()].slice_left = slice.map_or(u64::MAX, Duration::nanos);
            if O::EVENTS && (slice.is_some() || job.part > 0) {
                let cpu = core.processors.ids[core.processors.base[domain as usize] as usize];
                let (now, window) = (Instant::from_nanos(core.now), policy.window(&job));
                core.observer
                    .event(Record::window(now, cpu, job.task, job.number, window));
            }
        }
        self.tell(domain, Event::Ready(job));
    }

    /// The running job of a processor is complete, or has reached a limit.
    #[inline(always)]
    fn reached(&mut self, cpu: u32) {
        let core = &mut self.core;
        let now = core.now;
        let here = &mut core.cpus[cpu as usize];
        let task = std::mem::replace(&mut here.running, NONE);
        core.ends.set(cpu as usize, Tournament::NEVER);
        core.jobs.execute(task, now - here.since);
        if O::EVENTS {
            core.emptied.push(cpu);
        }
        if core.jobs.limited && core.jobs.has_slice_only(task) {
            return self.exhausted(cpu, task);
        }
        let row = &core.jobs.rows[task as usize];
        let (cut, number) = (row.remaining > 0, row.number);
        if O::EVENTS {
            let id = core.processors.ids[cpu as usize];
            observe::show_end(&mut core.observer, row, TaskId(task), now, id, cut);
        }
        let (response, successor) = core.jobs.complete(task, now, cut);
        core.observer.completed(task, number, response);
        let domain = core.processors.domain_of[cpu as usize];
        self.tell(domain, Event::Done(TaskId(task)));
        if let Some(job) = successor {
            let home = self.core.route.home(job.task, job.number);
            self.ready(home, job);
        }
    }

    /// Only a slice is used up: the policy pushes the job on.
    #[inline(never)]
    fn exhausted(&mut self, cpu: u32, task: u32) {
        let core = &mut self.core;
        if O::EVENTS {
            let row = &core.jobs.rows[task as usize];
            let (now, id) = (Instant::from_nanos(core.now), core.processors.ids[cpu as usize]);
            let (task, number, executed) = (TaskId(task), row.number, Duration::from_nanos(row.executed));
            core.observer
                .event(Record::budget_exhausted(now, id, task, number, executed));
            core.observer.event(Record::preemption(now, id, task, number));
        }
        core.jobs.stop(task, core.now);
        let domain = core.processors.domain_of[cpu as usize];
        self.tell(domain, Event::Exhausted(TaskId(task)));
    }

    #[inline(always)]
    fn decide(&mut self) {
        while let Some(domain) = self.core.dirty.pop() {
            self.core.decisions += 1;
            let now = Instant::from_nanos(self.core.now);
            let base = self.core.processors.base[domain as usize];
            let mut out = Out {
                core: &mut self.core,
                domain,
                base,
            };
            self.domains[domain as usize].policy.decide(now, &mut out);
        }
    }

    /// Tells of the processors that have no job after this instant's decisions.
    fn show_idle(&mut self) {
        let core = &mut self.core;
        for cpu in core.emptied.drain(..) {
            if core.cpus[cpu as usize].running != NONE {
                continue;
            }
            let domain = core.processors.domain_of[cpu as usize] as usize;
            let place = cpu - core.processors.base[domain];
            let deliberate = self.domains[domain].policy.is_deliberately_idle(place);
            let (now, id) = (Instant::from_nanos(core.now), core.processors.ids[cpu as usize]);
            let shown = &mut core.cpus[cpu as usize].shown_idle;
            observe::show_idle(&mut core.observer, shown, now, id, deliberate);
        }
    }
}

impl<O: Observer> Core<'_, O> {
    /// The processor that handles a release: where the task last ran, if that is in the domain, else the domain's first.
    fn releasing(&self, domain: u32, last: u32) -> CpuId {
        let cpu = match self.processors.is_in(last, domain) {
            true => last,
            false => self.processors.base[domain as usize],
        };
        self.processors.ids[cpu as usize]
    }

    /// Takes the running job off a processor, unfinished, if there is one.
    #[inline(always)]
    fn take_off(&mut self, cpu: u32) -> bool {
        let here = &mut self.cpus[cpu as usize];
        let task = std::mem::replace(&mut here.running, NONE);
        if task == NONE {
            return false;
        }
        self.jobs.execute(task, self.now - here.since);
        self.jobs.stop(task, self.now);
        if O::EVENTS {
            let number = self.jobs.rows[task as usize].number;
            let (now, id) = (Instant::from_nanos(self.now), self.processors.ids[cpu as usize]);
            self.observer
                .event(Record::preemption(now, id, TaskId(task), number));
            self.emptied.push(cpu);
        }
        true
    }
}

/// Carries the decisions of one domain out.
struct Out<'c, 'a, O> {
    core: &'c mut Core<'a, O>,
    domain: u32,
    base: u32,
}

impl<O: Observer> Decisions for Out<'_, '_, O> {
    #[inline(always)]
    fn run(&mut self, place: u32, task: TaskId) {
        let core = &mut *self.core;
        let cpu = self.base + place;
        core.take_off(cpu);
        let before = core.jobs.start(task.0, cpu, core.now);
        let end = core.jobs.until(task.0, core.now);
        core.ends.set(cpu as usize, end);
        let here = &mut core.cpus[cpu as usize];
        here.running = task.0;
        here.since = core.now;
        if O::EVENTS {
            here.shown_idle = None;
            let number = core.jobs.rows[task.index()].number;
            let (now, to) = (Instant::from_nanos(core.now), core.processors.ids[cpu as usize]);
            let event = match before {
                None => Record::start(now, to, task, number),
                Some(from) => Record::resumption(now, core.processors.ids[from as usize], to, task, number),
            };
            core.observer.event(event);
        }
    }

    #[inline]
    fn idle(&mut self, place: u32) {
        let cpu = self.base + place;
        if self.core.take_off(cpu) {
            self.core.ends.set(cpu as usize, Tournament::NEVER);
        } else if O::EVENTS {
            self.core.emptied.push(cpu);
        }
    }

    #[inline]
    fn wake(&mut self, at: Instant) {
        self.core.timers.set(self.domain as usize, at.nanos());
    }

    fn push(&mut self, task: TaskId, to: u32, at: Instant, part: u32) {
        let core = &mut *self.core;
        core.pushed[task.index()] = (to, part);
        core.arrivals.set(task.index(), at.nanos().max(core.now));
    }

    #[inline]
    fn serve(&mut self, place: u32, server: Option<u32>) {
        if O::EVENTS {
            let core = &mut *self.core;
            let cpu = (self.base + place) as usize;
            let (now, id) = (Instant::from_nanos(core.now), core.processors.ids[cpu]);
            observe::show_server(&mut core.observer, &mut core.cpus[cpu].serving, now, id, server);
        }
    }
}
