//! A stage of a run: the domains of one policy, from the moment at which it begins to rule to the
//! one at which another takes over.
//!
//! Workers stay as they are; dispatchers, posts and inboxes are each stage's own. When all
//! dispatchers of a stage have come to its end, the last of them carries everything over: who runs
//! is preempted, each task with its released jobs, what they have executed and its next release
//! goes to its domain in the next stage, and the dispatchers there begin. No job is lost, and none
//! is anywhere twice (002 §3.3: plugins that are activated at run time; here tasks run meanwhile).

use crate::backend::{Backend, Host, TaskOf};
use crate::domain::books::{Books, Parts};
use crate::domain::{Carried, Domain};
use crate::ids::{InboxId, PostId};
use crate::task_state::{Parameters, TaskState};
use crate::team::Team;
use model::{CpuId, Duration, Enforcement, Instant, TaskId};
use policy::profiler::Estimate;
use policy::{DomainId, Plan, Policy, Route};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use trace::Event as Record;
use trace::recorder::Producer;

/// Which stage of a run it is, and the first of its domains and posts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub stage: u32,
    pub domain: InboxId,
    pub post: PostId,
}

/// What came of a stage, or of several.
#[derive(Default)]
pub(crate) struct Tally {
    pub decisions: u64,
    pub steps: Vec<u32>,
    pub thoughts: Vec<u32>,
    pub calls: Vec<u32>,
    pub latencies: Vec<u32>,
    pub end: Instant,
    /// By task its multithreaded task, and what the policy found of its working set; empty: it
    /// looked for none.
    pub profiled: Vec<(u32, Estimate)>,
}

impl Tally {
    /// Adds what came of a later stage; of samples of each kind the latest `kept` stay.
    pub fn add(&mut self, later: Tally, kept: usize) {
        self.decisions += later.decisions;
        self.end = self.end.max(later.end);
        if !later.profiled.is_empty() {
            self.profiled = later.profiled;
        }
        for (samples, more) in [
            (&mut self.steps, later.steps),
            (&mut self.thoughts, later.thoughts),
            (&mut self.calls, later.calls),
            (&mut self.latencies, later.latencies),
        ] {
            samples.extend(more);
            samples.drain(..samples.len().saturating_sub(kept));
        }
    }
}

/// A stage, whatever policy rules it.
pub(crate) trait Stage<H: Host>: Send + Sync {
    /// Ends it: nobody runs any more. All of its dispatchers have come to its end.
    fn leave(&self, team: &Team<H>) -> Carried<H::Task>;
    /// Begins it where another one ended, as stage `number` of the head of the trace.
    fn take_over(&self, team: &Team<H>, carried: Carried<H::Task>, number: u32);
    /// What came of it.
    fn tally(&self) -> Tally;
    /// Says which jobs have missed their deadlines unfinished, when all is over at `end`.
    fn show_unfinished(&self, team: &Team<H>, end: Instant);
}

/// The domains of a plan.
pub(crate) struct Domains<P, B: Backend> {
    /// By index in the plan.
    pub domains: Vec<Arc<Mutex<Domain<P, B>>>>,
    pub site: Site,
    route: Arc<Route>,
}

/// What the stages of a run have in common.
pub(crate) struct Common<H: Host> {
    pub team: Arc<Team<H>>,
    /// By task.
    pub parameters: Arc<[Parameters]>,
    pub horizon: Instant,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    /// How long before something is due leaders of idle processors are up.
    pub early: Duration,
    /// Is execution time to be kept whatever policy and enforcement are?
    pub limited: bool,
}

impl<H: Host> Clone for Common<H> {
    fn clone(&self) -> Self {
        Common {
            team: Arc::clone(&self.team),
            parameters: Arc::clone(&self.parameters),
            ..*self
        }
    }
}

/// A domain as its backend has to know it.
pub(crate) struct DomainSite<'a, H: Host> {
    pub team: &'a Arc<Team<H>>,
    /// By place.
    pub cpus: &'a [CpuId],
    /// The post of its first place.
    pub first_post: PostId,
    /// By task: does the domain own it at first?
    pub owned: &'a dyn Fn(TaskId) -> bool,
    /// See [`Common::early`].
    pub early: Duration,
}

/// A backend that can be made for a domain.
pub(crate) trait ForDomain: Backend {
    /// For a domain of a stage that is being made.
    fn for_domain(site: &DomainSite<'_, Self::Host>) -> Self;
}

impl<P: Policy + Send + 'static, B: ForDomain> Domains<P, B> {
    /// From a plan; `producers` write the trace of its domains.
    pub fn new(
        plan: Plan<P>,
        common: &Common<B::Host>,
        site: Site,
        mut producers: impl Iterator<Item = Producer>,
    ) -> Self {
        let route = Arc::new(plan.route);
        let tasks = common.parameters.len() as u32;
        let mut first_post = site.post;
        let mut domains = Vec::new();
        let planned = (0..).map(DomainId).zip(plan.domains);
        for ((index, planned), producer) in planned.zip(producers.by_ref()) {
            // Later stages own nothing before they take over.
            let owned = |task: TaskId| site.stage == 0 && route.home(task, 0) == index;
            let places = planned.cpus.len() as u32;
            let backend = B::for_domain(&DomainSite {
                team: &common.team,
                cpus: &planned.cpus,
                first_post,
                owned: &owned,
                early: common.early,
            });
            let books = Books::new(Parts {
                team: Arc::clone(&common.team),
                backend,
                domain: site.domain.of(index),
                first_domain: site.domain,
                cpus: planned.cpus,
                parameters: Arc::clone(&common.parameters),
                tasks: (0..tasks)
                    .map(|t| TaskState::new(owned(TaskId(t))))
                    .collect(),
                horizon: common.horizon,
                enforcement: common.enforcement,
                quantum: common.quantum,
                limited: common.limited || P::SLICES,
                early: common.early,
                producer,
            });
            first_post = PostId(first_post.0 + places);
            let domain = Domain::new(planned.policy, books, Arc::clone(&route), site.stage == 0);
            domains.push(Arc::new(Mutex::new(domain)));
        }
        if let Some(domain) = domains.first() {
            open(domain).spare.extend(producers);
        }
        Domains {
            domains,
            site,
            route,
        }
    }
}

/// Locks a domain. One whose policy panicked is opened all the same: its run ends.
pub(crate) fn open<T>(domain: &Mutex<T>) -> MutexGuard<'_, T> {
    domain.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Policy + Send + 'static, B: Backend> Stage<B::Host> for Domains<P, B> {
    fn leave(&self, team: &Team<B::Host>) -> Carried<TaskOf<B>> {
        let mut carried = Carried::new(team.reports.len());
        for domain in &self.domains {
            open(domain).leave(team);
        }
        // What was on its way has arrived: every task has one owner, every release one domain.
        let mut mail = true;
        while mail {
            mail = false;
            for domain in &self.domains {
                mail |= open(domain).take_last_mail(team);
            }
        }
        for domain in &self.domains {
            open(domain).give(&mut carried);
        }
        carried
    }

    fn take_over(&self, team: &Team<B::Host>, mut carried: Carried<TaskOf<B>>, number: u32) {
        // Later than all that the stage before has written.
        let now = team.host.now_after(team.now());
        let event = Record::policy_switch(now, number);
        if let Some(first) = carried.producers.first_mut() {
            first.push(event);
        }
        team.host.now_after(now);
        let mut producers = std::mem::take(&mut carried.producers).into_iter();
        for (index, domain) in (0..).map(DomainId).zip(&self.domains) {
            let mut domain = open(domain);
            if let Some(producer) = producers.next() {
                domain.books.producer = producer;
            }
            domain.take_over(team, &self.route, &mut carried, index);
        }
        // Those that this stage has no domain for are kept for the next one.
        if let Some(domain) = self.domains.first() {
            open(domain).spare.extend(producers);
        }
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for domain in &self.domains {
            let domain = open(domain);
            if let Some(profiler) = domain.policy.profiler() {
                tally.profiled = profiler.estimates().collect();
            }
            let books = &domain.books;
            tally.decisions += books.decisions;
            tally.steps.extend_from_slice(books.steps.all());
            tally.thoughts.extend_from_slice(books.thoughts.all());
            tally.calls.extend_from_slice(books.calls.all());
            tally.latencies.extend_from_slice(books.latencies.all());
            tally.end = tally.end.max(books.now);
        }
        tally
    }

    fn show_unfinished(&self, team: &Team<B::Host>, end: Instant) {
        let (mut unfinished, mut arrived) = (Vec::new(), Vec::new());
        for domain in &self.domains {
            let mut domain = open(domain);
            unfinished.extend(domain.unfinished(team));
            arrived.resize(domain.arrived().len(), 0);
            for (most, here) in arrived.iter_mut().zip(domain.arrived()) {
                *most = (*most).max(*here);
            }
        }
        let Some(domain) = self.domains.first() else {
            return;
        };
        let mut domain = open(domain);
        for (task, first) in unfinished {
            for number in first..arrived[task.index()] {
                let deadline = domain.books.deadline_of(task, number);
                if deadline <= end {
                    let event = Record::deadline_miss(end, None, task, number, deadline);
                    domain.books.producer.push(event);
                }
            }
        }
    }
}
