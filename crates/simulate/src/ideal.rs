//! The engine in virtual time without overheads: schedules as the theory draws them (DESIGN, "Simulated schedules").
//!
//! From event to event: at each instant first completions, then timers, then releases; then every domain that something
//! happened in decides once. Compiled for each policy and observer on its own.

use crate::jobs::Jobs;
use crate::observe::Observer;
use crate::scenario::Scenario;
use crate::summary::{Ending, Summary};
use model::watch::Watch;
use model::{CpuId, Duration, Instant, Platform, Result, TaskId, TaskSet};
use policy::tournament::Tournament;
use policy::{Decisions, Domain, Event, Job, NONE, Plan, Policy, Route};
use trace::{Event as Record, Flags};

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
    let mut core = Core::new(&domains, route, set, platform, scenario, observer)?;
    let (ending, end) = core.run(&mut domains, watch);
    if O::EVENTS {
        core.jobs.misses_at(end, &mut core.observer);
        core.observer.event(Record::end(Instant::from_nanos(end)));
    }
    let summary = core.jobs.summary(ending, end, core.decisions);
    Ok((summary, core.observer))
}

/// How many instants pass between two looks at the watch.
const WATCH_EVERY: u32 = 1 << 16;

struct Core<'a, O> {
    jobs: Jobs<'a>,
    scenario: &'a Scenario,
    route: Route,
    observer: O,
    now: u64,
    /// Dense processors: those of the first domain, then of the second, …
    cpus: Vec<CpuId>,
    /// By domain, its first dense processor.
    base: Vec<u32>,
    /// By dense processor, its domain.
    domain_of: Vec<u32>,
    /// By dense processor: the task that runs there, or [`NONE`].
    running: Vec<u32>,
    /// Since when.
    since: Vec<u64>,
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
    /// Domains in which something happened at this instant.
    dirty: Vec<u32>,
    is_dirty: Vec<bool>,
    /// Processors that lost their job at this instant; kept for observers of events only.
    emptied: Vec<u32>,
    /// What observers were last told of a processor without a job.
    shown_idle: Vec<Shown>,
    /// By dense processor, the server that it serves, or [`NONE`]; kept for observers of events only.
    serving: Vec<u32>,
    decisions: u64,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Shown {
    Busy,
    Idle,
    Deliberate,
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
        let cpus: Vec<CpuId> = domains.iter().flat_map(|d| d.cpus.iter().copied()).collect();
        let mut base = Vec::with_capacity(domains.len());
        let mut domain_of = Vec::with_capacity(cpus.len());
        for (index, domain) in domains.iter().enumerate() {
            base.push(domain_of.len() as u32);
            domain_of.extend(domain.cpus.iter().map(|_| index as u32));
        }
        let (m, n) = (cpus.len(), set.len());
        let jobs = Jobs::new(set, scenario, platform, &cpus, P::SLICES)?;
        let mut releases = Tournament::new(n);
        for (task, row) in jobs.rows.iter().enumerate() {
            releases.set(task, row.next_release);
        }
        Ok(Core {
            jobs,
            scenario,
            route,
            observer,
            now: 0,
            base,
            domain_of,
            running: vec![NONE; m],
            since: vec![0; m],
            ends: Tournament::new(m),
            releases,
            timers: Tournament::new(domains.len()),
            arrivals: Tournament::new(n),
            pushed: vec![(0, 0); n],
            // At the very start every domain is asked once.
            dirty: (0..domains.len() as u32).collect(),
            is_dirty: vec![true; domains.len()],
            emptied: (0..m as u32).collect(),
            shown_idle: vec![Shown::Busy; m],
            serving: vec![NONE; m],
            cpus,
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
            let next = self
                .ends
                .key()
                .min(self.releases.key())
                .min(self.timers.key())
                .min(if P::SLICES { self.arrivals.key() } else { u64::MAX });
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

    /// All that happens now.
    #[inline]
    fn instant<P: Policy>(&mut self, domains: &mut [Domain<P>], horizon: u64) {
        while self.ends.key() == self.now {
            let cpu = self.ends.entry() as u32;
            self.reached(domains, cpu);
        }
        if P::SLICES {
            while self.arrivals.key() == self.now {
                let task = self.arrivals.entry() as u32;
                self.arrivals.set(task as usize, Tournament::NEVER);
                let (domain, part) = self.pushed[task as usize];
                let job = self.jobs.job(task, part);
                self.ready(domains, domain, job);
            }
        }
        while self.timers.key() == self.now {
            let domain = self.timers.entry() as u32;
            self.timers.set(domain as usize, Tournament::NEVER);
            self.tell(domains, domain, Event::Timer);
        }
        if self.now < horizon {
            while self.releases.key() == self.now {
                let task = self.releases.entry() as u32;
                self.release(domains, task);
            }
        }
        // At the horizon nothing starts any more.
        if self.now < horizon {
            self.decide(domains);
        }
        if O::EVENTS {
            self.show_idle(domains);
        }
    }

    #[inline]
    fn tell<P: Policy>(&mut self, domains: &mut [Domain<P>], domain: u32, event: Event) {
        domains[domain as usize]
            .policy
            .happen(event, Instant::from_nanos(self.now));
        if !self.is_dirty[domain as usize] {
            self.is_dirty[domain as usize] = true;
            self.dirty.push(domain);
        }
    }

    #[inline]
    fn release<P: Policy>(&mut self, domains: &mut [Domain<P>], task: u32) {
        let number = self.jobs.arrive(task);
        let job = self.jobs.admit(task, self.now);
        let row = &self.jobs.rows[task as usize];
        self.releases.set(task as usize, row.next_release);
        if O::EVENTS {
            let deadline = Instant::from_nanos(self.now + row.deadline);
            let home = self.route.home(TaskId(task), number);
            let cpu = self.releasing(home, row.last);
            let event = Record::release(Instant::from_nanos(self.now), cpu, TaskId(task), number, deadline);
            self.observer.event(event);
        }
        if let Some(job) = job {
            let home = self.route.home(job.task, job.number);
            self.ready(domains, home, job);
        }
    }

    /// The processor that handles a release: where the task last ran, if that is in the domain, else the domain's first.
    fn releasing(&self, domain: u32, last: u32) -> CpuId {
        let cpu = match self.domain_of.get(last as usize) {
            Some(d) if *d == domain => last,
            _ => self.base[domain as usize],
        };
        self.cpus[cpu as usize]
    }

    #[inline]
    fn ready<P: Policy>(&mut self, domains: &mut [Domain<P>], domain: u32, job: Job) {
        if P::SLICES {
            let policy = &domains[domain as usize].policy;
            let slice = policy.slice(&job);
            self.jobs.rows[job.task.index()].slice_left = slice.map_or(u64::MAX, Duration::nanos);
            if O::EVENTS && (slice.is_some() || job.part > 0) {
                let cpu = self.cpus[self.base[domain as usize] as usize];
                let (now, window) = (Instant::from_nanos(self.now), policy.window(&job));
                self.observer
                    .event(Record::window(now, cpu, job.task, job.number, window));
            }
        }
        self.tell(domains, domain, Event::Ready(job));
    }

    /// The running job of a processor is complete, or has reached a limit.
    #[inline]
    fn reached<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32) {
        let task = self.running[cpu as usize];
        let domain = self.domain_of[cpu as usize];
        self.jobs.execute(task, self.now - self.since[cpu as usize]);
        self.ends.set(cpu as usize, Tournament::NEVER);
        self.running[cpu as usize] = NONE;
        if O::EVENTS {
            self.emptied.push(cpu);
        }
        let row = &self.jobs.rows[task as usize];
        if row.remaining > 0 && row.budget_left > 0 {
            // Only a slice is used up: the policy pushes the job on.
            let event = Record::budget_exhausted(
                Instant::from_nanos(self.now),
                self.cpus[cpu as usize],
                TaskId(task),
                row.number,
                Duration::from_nanos(row.executed),
            );
            if O::EVENTS {
                self.observer.event(event);
                self.observer.event(Record::preemption(
                    event.time,
                    self.cpus[cpu as usize],
                    TaskId(task),
                    row.number,
                ));
            }
            self.jobs.stop(task, self.now);
            self.tell(domains, domain, Event::Exhausted(TaskId(task)));
            return;
        }
        self.complete(domains, cpu, task, domain);
    }

    #[inline]
    fn complete<P: Policy>(&mut self, domains: &mut [Domain<P>], cpu: u32, task: u32, domain: u32) {
        let row = &self.jobs.rows[task as usize];
        let cut = row.remaining > 0;
        let number = row.number;
        if O::EVENTS {
            self.show_end(cpu, task, cut);
        }
        let (response, successor) = self.jobs.complete(task, self.now, cut);
        self.observer.completed(task, number, response);
        self.tell(domains, domain, Event::Done(TaskId(task)));
        if let Some(job) = successor {
            let home = self.route.home(job.task, job.number);
            self.ready(domains, home, job);
        }
    }

    fn show_end(&mut self, cpu: u32, task: u32, cut: bool) {
        let row = &self.jobs.rows[task as usize];
        let (now, cpu) = (Instant::from_nanos(self.now), self.cpus[cpu as usize]);
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

    #[inline]
    fn decide<P: Policy>(&mut self, domains: &mut [Domain<P>]) {
        while let Some(domain) = self.dirty.pop() {
            self.is_dirty[domain as usize] = false;
            self.decisions += 1;
            let base = self.base[domain as usize];
            let mut out = Out {
                core: self,
                domain,
                base,
            };
            domains[domain as usize]
                .policy
                .decide(Instant::from_nanos(out.core.now), &mut out);
        }
    }

    /// Tells of the processors that have no job after this instant's decisions.
    fn show_idle<P: Policy>(&mut self, domains: &[Domain<P>]) {
        let mut emptied = std::mem::take(&mut self.emptied);
        for cpu in emptied.drain(..) {
            if self.running[cpu as usize] != NONE {
                continue;
            }
            let domain = self.domain_of[cpu as usize];
            let place = cpu - self.base[domain as usize];
            let deliberate = domains[domain as usize].policy.is_deliberately_idle(place);
            let shown = if deliberate {
                Shown::Deliberate
            } else {
                Shown::Idle
            };
            if self.shown_idle[cpu as usize] == shown {
                continue;
            }
            self.shown_idle[cpu as usize] = shown;
            let event = Record::idle(Instant::from_nanos(self.now), self.cpus[cpu as usize]);
            self.observer.event(if deliberate {
                event.flagged(Flags::DELIBERATE)
            } else {
                event
            });
        }
        self.emptied = emptied;
    }

    fn show_server(&mut self, cpu: u32, server: Option<u32>) {
        let (now, id) = (Instant::from_nanos(self.now), self.cpus[cpu as usize]);
        let before = std::mem::replace(&mut self.serving[cpu as usize], server.unwrap_or(NONE));
        if before != NONE {
            self.observer.event(Record::server_end(now, id, before));
        }
        if let Some(server) = server {
            self.observer.event(Record::server_begin(now, id, server));
        }
    }

    /// Takes the running job off a processor, unfinished.
    #[inline]
    fn take_off(&mut self, cpu: u32) {
        let task = self.running[cpu as usize];
        if task == NONE {
            return;
        }
        self.jobs.execute(task, self.now - self.since[cpu as usize]);
        self.jobs.stop(task, self.now);
        self.running[cpu as usize] = NONE;
        if O::EVENTS {
            let number = self.jobs.rows[task as usize].number;
            let event = Record::preemption(
                Instant::from_nanos(self.now),
                self.cpus[cpu as usize],
                TaskId(task),
                number,
            );
            self.observer.event(event);
            self.emptied.push(cpu);
        }
    }
}

/// Carries the decisions of one domain out.
struct Out<'c, 'a, O> {
    core: &'c mut Core<'a, O>,
    domain: u32,
    base: u32,
}

impl<O: Observer> Decisions for Out<'_, '_, O> {
    #[inline]
    fn run(&mut self, place: u32, task: TaskId) {
        let core = &mut *self.core;
        let cpu = self.base + place;
        core.take_off(cpu);
        let before = core.jobs.start(task.0, cpu, core.now);
        core.running[cpu as usize] = task.0;
        core.since[cpu as usize] = core.now;
        core.ends.set(cpu as usize, core.jobs.until(task.0, core.now));
        if O::EVENTS {
            core.shown_idle[cpu as usize] = Shown::Busy;
            let number = core.jobs.rows[task.index()].number;
            let (now, to) = (Instant::from_nanos(core.now), core.cpus[cpu as usize]);
            let event = match before {
                None => Record::start(now, to, task, number),
                Some(from) => Record::resumption(now, core.cpus[from as usize], to, task, number),
            };
            core.observer.event(event);
        }
    }

    #[inline]
    fn idle(&mut self, place: u32) {
        let cpu = self.base + place;
        if self.core.running[cpu as usize] != NONE {
            self.core.take_off(cpu);
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
            self.core.show_server(self.base + place, server);
        }
    }
}
