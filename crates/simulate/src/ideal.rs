//! The engine in virtual time without overheads: schedules as the theory draws them (DESIGN,
//! "Simulated schedules").
//!
//! From event to event: at each instant first completions, then timers, then releases; then every
//! domain that something happened in decides once. Compiled for each policy and observer on its
//! own, and for each [pace](crate::pace) of jobs.

use crate::course::{self, Dirty, Engine, Processor, Processors};
use crate::jobs::Jobs;
use crate::observe::Observer;
use crate::pace::{self, Pace};
use crate::scenario::Scenario;
use crate::show::Show;
use crate::summary::Summary;
use job::Reached;
use model::watch::Watch;
use model::{Enforcement, Error, Instant, Platform, Result, TaskId, TaskSet};
use policy::tournament::Tournament;
use policy::{
    Decisions, Domain, DomainId, Event, Job, Place, Plan, Policy, Profiler, Route, ServerId,
};

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
    plan.needs_no_counts()?;
    go(plan, set, platform, scenario, watch, observer, ())
}

/// As [`run`], with jobs that get on as `pace` says. The execution times of the scenario are not
/// used.
///
/// # Errors
/// A scenario out of range for the set, or one that enforces budgets; what `pace` could not do.
pub fn run_paced<P: Policy, O: Observer, G: Pace>(
    plan: Plan<P>,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    watch: &impl Watch,
    observer: O,
    pace: &mut G,
) -> Result<(Summary, O)> {
    if P::SLICES || scenario.enforcement != Enforcement::Off {
        return Err(Error::new(
            "budgets and slices end jobs by their execution times, which caches change",
        )
        .remedy("choose a policy that does not split jobs, and `--enforcement off`"));
    }
    let scenario = pace::endless(scenario, set);
    let out = go(plan, set, platform, &scenario, watch, observer, &mut *pace)?;
    match pace.error() {
        Some(error) => Err(error),
        None => Ok(out),
    }
}

fn go<P: Policy, O: Observer, G: Pace>(
    plan: Plan<P>,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    watch: &impl Watch,
    observer: O,
    pace: G,
) -> Result<(Summary, O)> {
    let Plan { mut domains, route } = plan;
    let core = Core::new(&domains, route, set, platform, scenario, (observer, pace))?;
    let mut driven = Driven {
        domains: &mut domains,
        core,
    };
    let (ending, end) = course::run(&mut driven, scenario, watch);
    let mut core = driven.core;
    core.show.advance(end);
    if O::EVENTS {
        core.jobs.show_unfinished(end, &mut core.show);
    }
    core.show.close();
    let mut summary = core.jobs.summary(ending, end, core.decisions);
    let profilers = domains.iter().filter_map(|d| d.policy.profiler());
    summary.profiled = profilers.flat_map(Profiler::estimates).collect();
    Ok((summary, core.show.observer))
}

/// The engine with the policies that it drives.
struct Driven<'r, 'a, P, O, G> {
    domains: &'r mut [Domain<P>],
    core: Core<'a, O, G>,
}

struct Core<'a, O, G> {
    jobs: Jobs<'a>,
    pace: G,
    route: Route,
    show: Show<O>,
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
    /// Where to.
    pushed: Vec<DomainId>,
    dirty: Dirty,
    decisions: u64,
}

/// A processor.
#[derive(Clone, Copy, Debug)]
struct Cpu {
    /// The task that runs there, or [`TaskId::NONE`].
    running: TaskId,
    /// Since when.
    since: u64,
}

impl<'a, O: Observer, G: Pace> Core<'a, O, G> {
    fn new<P: Policy>(
        domains: &[Domain<P>],
        route: Route,
        set: &TaskSet,
        platform: &Platform,
        scenario: &'a Scenario,
        (observer, mut pace): (O, G),
    ) -> Result<Self> {
        let processors = Processors::of(domains);
        pace.begin(&processors.ids)?;
        let (m, n) = (processors.ids.len(), set.len());
        let jobs = Jobs::new(set, scenario, platform, &processors.ids, P::SLICES)?;
        let last = scenario.horizon.nanos();
        let mut releases = Tournament::until(n, last);
        for (task, row) in jobs.rows.iter().enumerate() {
            releases.set(task, row.next_release);
        }
        let idle = Cpu {
            running: TaskId::NONE,
            since: 0,
        };
        Ok(Core {
            jobs,
            pace,
            route,
            show: Show::new(observer, &processors.ids, false),
            now: 0,
            cpus: vec![idle; m],
            ends: Tournament::until(m, last),
            releases,
            timers: Tournament::until(domains.len(), last),
            arrivals: Tournament::until(if P::SLICES { n } else { 1 }, last),
            pushed: vec![DomainId(0); n],
            dirty: Dirty::all(domains.len()),
            processors,
            decisions: 0,
        })
    }
}

impl<P: Policy, O: Observer, G: Pace> Engine for Driven<'_, '_, P, O, G> {
    // Between two instants thousands of accesses may be made.
    const WATCH_EVERY: u32 = if G::PACED { 1 << 6 } else { 1 << 16 };

    #[inline(always)]
    fn instant(&mut self, horizon: u64) {
        let now = self.core.now;
        while self.core.ends.key() == now {
            let cpu = Processor(self.core.ends.entry() as u32);
            self.reached(cpu);
        }
        if P::SLICES {
            while self.core.arrivals.key() == now {
                let task = TaskId(self.core.arrivals.entry() as u32);
                self.core.arrivals.set(task.index(), Tournament::NEVER);
                let job = self.core.jobs.job(task);
                self.ready(self.core.pushed[task.index()], job);
            }
        }
        while self.core.timers.key() == now {
            let domain = DomainId(self.core.timers.entry() as u32);
            self.core.timers.set(domain.index(), Tournament::NEVER);
            self.tell(domain, Event::Timer);
        }
        // At the horizon nothing starts any more.
        if now < horizon {
            while self.core.releases.key() == now {
                let task = TaskId(self.core.releases.entry() as u32);
                self.release(task);
            }
            self.decide();
        }
        if O::EVENTS {
            self.show_idle();
        }
    }

    #[inline(always)]
    fn next(&mut self, horizon: u64) -> u64 {
        let core = &mut self.core;
        let next = core
            .ends
            .key()
            .min(core.releases.key())
            .min(core.timers.key());
        if G::PACED {
            return core.get_on(next.min(horizon)).unwrap_or(next);
        }
        if P::SLICES {
            next.min(core.arrivals.key())
        } else {
            next
        }
    }

    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.core.now = now;
        self.core.show.advance(now);
    }

    #[inline(always)]
    fn has_missed(&self) -> bool {
        self.core.jobs.first_miss.is_some()
    }
}

impl<P: Policy, O: Observer, G: Pace> Driven<'_, '_, P, O, G> {
    #[inline(always)]
    fn tell(&mut self, domain: DomainId, event: Event) {
        let now = Instant::from_nanos(self.core.now);
        self.domains[domain.index()].policy.happen(event, now);
        self.core.dirty.mark(domain);
    }

    #[inline(always)]
    fn release(&mut self, task: TaskId) {
        let core = &mut self.core;
        let (number, job) = core.jobs.release(task, core.now);
        let row = &core.jobs.rows[task.index()];
        core.releases.set(task.index(), row.next_release);
        let home = core.route.home(task, number);
        core.show.release(task, number, || {
            let cpu = core.processors.releasing(home, row.life.last());
            (cpu, core.jobs.due(task, number, core.now))
        });
        if let Some(job) = job {
            self.ready(home, job);
        }
    }

    #[inline(always)]
    fn ready(&mut self, domain: DomainId, job: Job) {
        let (core, policy) = (&mut self.core, &self.domains[domain.index()].policy);
        let slice = if P::SLICES { policy.slice(&job) } else { None };
        core.jobs.rows[job.task.index()].life.ready(slice);
        if P::SLICES && (slice.is_some() || job.part > 0) {
            let cpu = core.processors.base[domain.index()];
            core.show.window(cpu, &job, || policy.window(&job));
        }
        self.tell(domain, Event::Ready(job));
    }

    /// The running job of a processor is complete, or has reached a limit.
    #[inline(always)]
    fn reached(&mut self, cpu: Processor) {
        let core = &mut self.core;
        let now = core.now;
        let here = &mut core.cpus[cpu.index()];
        let task = std::mem::replace(&mut here.running, TaskId::NONE);
        core.ends.set(cpu.index(), Tournament::NEVER);
        core.jobs.execute(task, now - here.since);
        core.show.emptied(cpu);
        let reached = match G::PACED {
            true => Reached::Complete,
            false => core.jobs.reached(task),
        };
        if let Reached::Slice = reached {
            return self.exhausted(cpu, task);
        }
        let cut = reached == Reached::Budget;
        let number = core.jobs.number(task);
        core.show.end(cpu, task, &core.jobs, cut);
        let (response, successor) = core.jobs.complete(task, now, cut);
        core.show.observer.completed(task, number, response);
        let domain = core.processors.domain_of[cpu.index()];
        if G::PACED
            && let Some(misses) = core.pace.misses(task)
        {
            self.domains[domain.index()].policy.counted(task, misses);
        }
        self.tell(domain, Event::Done(task));
        if let Some(job) = successor {
            let home = self.core.route.home(job.task, job.number);
            self.ready(home, job);
        }
    }

    /// Only a slice is used up: the policy pushes the job on.
    #[inline(never)]
    fn exhausted(&mut self, cpu: Processor, task: TaskId) {
        let core = &mut self.core;
        core.show.exhaustion(cpu, task, &core.jobs);
        core.jobs.exhaust(task, core.now);
        let domain = core.processors.domain_of[cpu.index()];
        self.tell(domain, Event::Exhausted(task));
    }

    #[inline(always)]
    fn decide(&mut self) {
        while let Some(domain) = self.core.dirty.pop() {
            self.core.decisions += 1;
            let now = Instant::from_nanos(self.core.now);
            let base = self.core.processors.base[domain.index()];
            let mut out = Out {
                core: &mut self.core,
                domain,
                base,
            };
            self.domains[domain.index()].policy.decide(now, &mut out);
        }
    }

    /// Shows which of the processors that lost their jobs at this instant have none after its
    /// decisions.
    fn show_idle(&mut self) {
        let core = &mut self.core;
        while let Some(cpu) = core.show.next_emptied() {
            if core.cpus[cpu.index()].running == TaskId::NONE {
                let domain = core.processors.domain_of[cpu.index()].index();
                let place = cpu.place_from(core.processors.base[domain]);
                let policy = &self.domains[domain].policy;
                core.show.idle(cpu, || policy.is_deliberately_idle(place));
            }
        }
    }
}

impl<O: Observer, G: Pace> Core<'_, O, G> {
    /// Nothing happens until then but that jobs get on. Returns when the first of them are complete,
    /// if any are.
    fn get_on(&mut self, until: u64) -> Option<u64> {
        let now = self.pace.advance(until)?;
        while let Some(cpu) = self.pace.finished() {
            self.ends.set(cpu, now);
        }
        Some(now)
    }

    /// Takes the running job off a processor, unfinished, if there is one.
    #[inline(always)]
    fn take_off(&mut self, cpu: Processor) -> bool {
        let here = &mut self.cpus[cpu.index()];
        let task = std::mem::replace(&mut here.running, TaskId::NONE);
        if task == TaskId::NONE {
            return false;
        }
        self.jobs.execute(task, self.now - here.since);
        if G::PACED {
            self.pace.stop(cpu.index(), self.now);
        }
        self.jobs.stop(task, self.now);
        self.show.preemption(cpu, task, &self.jobs);
        self.show.emptied(cpu);
        true
    }
}

/// Carries the decisions of one domain out.
struct Out<'c, 'a, O, G> {
    core: &'c mut Core<'a, O, G>,
    domain: DomainId,
    base: Processor,
}

impl<O: Observer, G: Pace> Decisions for Out<'_, '_, O, G> {
    #[inline(always)]
    fn run(&mut self, place: Place, task: TaskId) {
        let core = &mut *self.core;
        let cpu = self.base.of(place);
        core.take_off(cpu);
        let before = core.jobs.start(task, cpu, core.now);
        if G::PACED {
            let number = core.jobs.number(task);
            core.pace.start(cpu.index(), task, number, core.now);
        }
        let end = core.jobs.until(task, core.now);
        core.ends.set(cpu.index(), end);
        let here = &mut core.cpus[cpu.index()];
        here.running = task;
        here.since = core.now;
        core.show.start(cpu, task, &core.jobs, before);
    }

    #[inline]
    fn idle(&mut self, place: Place) {
        let cpu = self.base.of(place);
        if self.core.take_off(cpu) {
            self.core.ends.set(cpu.index(), Tournament::NEVER);
        } else {
            self.core.show.emptied(cpu);
        }
    }

    #[inline]
    fn wake(&mut self, at: Instant) {
        self.core.timers.set(self.domain.index(), at.nanos());
    }

    fn push(&mut self, task: TaskId, to: DomainId, at: Instant, part: u32) {
        let core = &mut *self.core;
        core.jobs.rows[task.index()].life.push(part);
        core.pushed[task.index()] = to;
        core.arrivals.set(task.index(), at.nanos().max(core.now));
    }

    #[inline]
    fn serve(&mut self, place: Place, server: Option<ServerId>) {
        self.core.show.server(self.base.of(place), server);
    }
}
