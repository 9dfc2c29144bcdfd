//! A stage of a run: the domains of one policy, from the moment at which it begins to rule to the one at which another takes over.
//!
//! Workers stay as they are; dispatchers, posts and inboxes are each stage's own. When all dispatchers of a stage have come to its end,
//! the last of them carries everything over: who runs is preempted, each task with its released jobs, what they have
//! executed and its next release goes to its domain in the next stage, and the dispatchers there begin. No job is lost, and
//! none is anywhere twice (002 §3.3: plugins that are activated at run time; here tasks run meanwhile).

use crate::clock::Timeline;
use crate::colored::Provider;
use crate::domain::{Core, Fixed, Ground, Parts, Row, Shown};
use crate::engine::Settings;
use crate::team::Team;
use crate::threads::dispatcher;
use model::{CpuId, Instant, Result, TaskId};
use policy::{Plan, Policy, Route};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use trace::Event as Record;
use trace::recorder::Producer;

/// What goes from one stage to the next.
pub(crate) struct Carried {
    /// By task.
    pub rows: Vec<Row>,
    /// By task: how many of its jobs were released.
    pub arrived: Vec<u64>,
    /// What processors show in the trace.
    pub shown: Vec<(CpuId, Shown)>,
    /// Who writes the trace, by domain.
    pub producers: Vec<Producer>,
}

/// Which stage of a run it is, and the first of its domains and posts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Site {
    pub stage: u32,
    pub domain: u32,
    pub post: u32,
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
}

impl Tally {
    /// Adds what came of a later stage; of samples of each kind the latest `kept` stay.
    pub fn add(&mut self, later: Tally, kept: usize) {
        self.decisions += later.decisions;
        self.end = self.end.max(later.end);
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
pub(crate) trait Stage: Send + Sync {
    /// Starts its dispatchers, which wait for the stage to begin.
    fn start(&self, team: &Arc<Team>) -> Result<Vec<JoinHandle<()>>>;
    /// Ends it: nobody runs any more. All of its dispatchers have come to its end.
    fn leave(&self, team: &Team, timeline: &Timeline) -> Carried;
    /// Begins it where another one ended, as stage `number` of the head of the trace.
    fn take_over(&self, timeline: &Timeline, carried: Carried, number: u32);
    /// What came of it.
    fn tally(&self) -> Tally;
    /// Says which jobs have missed their deadlines unfinished, when all is over at `end`.
    fn show_unfinished(&self, end: Instant);
}

/// The domains of a plan.
pub(crate) struct Cores<P> {
    cores: Vec<Arc<Mutex<Core<P>>>>,
    site: Site,
    route: Arc<Route>,
    provider: Option<Arc<dyn Provider>>,
}

/// What the stages of a run have in common.
#[derive(Clone)]
pub(crate) struct Common {
    pub team: Arc<Team>,
    pub fixed: Arc<[Fixed]>,
    pub settings: Settings,
}

impl<P: Policy + Send + 'static> Cores<P> {
    /// From a plan; `producers` write the trace of its domains.
    pub fn new(
        plan: Plan<P>,
        common: &Common,
        site: Site,
        mut producers: impl Iterator<Item = Producer>,
    ) -> Self {
        let Common {
            team,
            fixed,
            settings,
        } = common;
        let route = Arc::new(plan.route);
        let mut post = site.post;
        let mut cores = Vec::new();
        for ((index, domain), producer) in plan.domains.into_iter().enumerate().zip(producers.by_ref()) {
            let row = |task: usize| {
                let is_here = route.home(TaskId(task as u32), 0) == index as u32;
                Row::new(is_here, fixed[task].budgeted)
            };
            let places = domain.cpus.len() as u32;
            let ground = Ground::new(Parts {
                team: Arc::clone(team),
                domain: site.domain + index as u32,
                first_domain: site.domain,
                cpus: domain.cpus,
                first_post: post,
                fixed: Arc::clone(fixed),
                rows: (0..fixed.len()).map(row).collect(),
                horizon: Instant::ZERO + settings.horizon,
                enforcement: settings.enforcement,
                quantum: settings.quantum,
                slices: P::SLICES,
                programs: team.workers.iter().any(|w| w.program().is_some()),
                early: settings.early,
                producer,
            });
            post += places;
            let core = Core::new(domain.policy, ground, Arc::clone(&route), site.stage == 0);
            cores.push(Arc::new(Mutex::new(core)));
        }
        if let Some(core) = cores.first() {
            open(core).spare.extend(producers);
        }
        Cores {
            cores,
            site,
            route,
            provider: settings.provider.clone(),
        }
    }
}

fn open<T>(core: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    core.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<P: Policy + Send + 'static> Stage for Cores<P> {
    fn start(&self, team: &Arc<Team>) -> Result<Vec<JoinHandle<()>>> {
        let places = self.cores.iter().map(|core| open(core).ground.cpus.len());
        let of_post: Vec<usize> = places
            .enumerate()
            .flat_map(|(domain, places)| std::iter::repeat_n(domain, places))
            .collect();
        let start = |(at, domain): (usize, usize)| {
            dispatcher::start(
                team,
                &self.cores[domain],
                (self.site.stage, self.site.post + at as u32),
                self.provider.clone(),
            )
        };
        of_post.into_iter().enumerate().map(start).collect()
    }

    fn leave(&self, team: &Team, timeline: &Timeline) -> Carried {
        let tasks = team.workers.len();
        let mut carried = Carried {
            rows: vec![Row::new(false, false); tasks],
            arrived: vec![0; tasks],
            shown: Vec::with_capacity(team.posts.len()),
            producers: Vec::with_capacity(self.cores.len()),
        };
        for core in &self.cores {
            open(core).leave(team, timeline);
        }
        // What was on its way has arrived: every task has one owner, every release one domain.
        let mut mail = true;
        while mail {
            mail = false;
            for core in &self.cores {
                mail |= open(core).take_last_mail(team);
            }
        }
        for core in &self.cores {
            open(core).give(&mut carried);
        }
        carried
    }

    fn take_over(&self, timeline: &Timeline, mut carried: Carried, number: u32) {
        // Later than all that the stage before has written.
        let before = timeline.now();
        let mut now = before;
        while now <= before {
            now = timeline.now();
        }
        let event = Record::policy_switch(now, number);
        if let Some(first) = carried.producers.first_mut() {
            first.push(event);
        }
        while timeline.now() <= now {}
        let mut producers = std::mem::take(&mut carried.producers).into_iter();
        for (index, core) in self.cores.iter().enumerate() {
            let mut core = open(core);
            if let Some(producer) = producers.next() {
                core.ground.producer = producer;
            }
            core.take_over(&self.route, timeline, &carried, index as u32);
        }
        // Those that this stage has no domain for are kept for the next one.
        if let Some(core) = self.cores.first() {
            open(core).spare.extend(producers);
        }
    }

    fn tally(&self) -> Tally {
        let mut tally = Tally::default();
        for core in &self.cores {
            let ground = &open(core).ground;
            tally.decisions += ground.decisions;
            tally.steps.extend_from_slice(ground.steps.all());
            tally.thoughts.extend_from_slice(ground.thoughts.all());
            tally.calls.extend_from_slice(ground.calls.all());
            tally.latencies.extend_from_slice(ground.latencies.all());
            tally.end = tally.end.max(ground.now);
        }
        tally
    }

    fn show_unfinished(&self, end: Instant) {
        let (mut unfinished, mut arrived) = (Vec::new(), Vec::new());
        for core in &self.cores {
            let mut core = open(core);
            unfinished.extend(core.unfinished());
            arrived.resize(core.arrived().len(), 0);
            for (most, here) in arrived.iter_mut().zip(core.arrived()) {
                *most = (*most).max(*here);
            }
        }
        let Some(core) = self.cores.first() else { return };
        let mut core = open(core);
        for (task, first) in unfinished {
            for number in first..arrived[task as usize] {
                let deadline = core.ground.deadline_of(task, number);
                if deadline <= end {
                    let event = Record::deadline_miss(end, None, TaskId(task), number, deadline);
                    core.ground.producer.push(event);
                }
            }
        }
    }
}

/// Is it time for the stage to end?
pub(crate) fn is_over(team: &Team, now: Instant) -> bool {
    now.nanos() >= team.stage_end.load(Ordering::Acquire)
}
