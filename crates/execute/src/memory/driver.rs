//! Drives a run in memory: steps the domains that are called or have something due, and moves the
//! clock from one event to the next. It stands for dispatchers and supervisor.

use super::{Execution, Failure, Machine, MemoryBackend, Virtual};
use crate::ids::{InboxId, PostId};
use crate::stage::{Common, Domains, Site, Stage, Tally, open};
use crate::task_state::Parameters;
use crate::team::{self, Team};
use model::{CpuId, Duration, Enforcement, Instant, TaskId, TaskSet};
use policy::{AnyPlan, DomainId, Place, Plan, Policy, Visit};
use std::sync::Arc;
use trace::VecSink;
use trace::recorder::{self, Producer};

/// What is driven, besides policies and tasks.
pub(crate) struct Settings {
    pub horizon: Duration,
    /// How long a policy rules, where several take turns.
    pub turn: Option<Duration>,
    pub enforcement: Enforcement,
    pub quantum: Duration,
    pub failures: Vec<Failure>,
    /// Releases that triggers ask for: when, of which task, how many. Ascending by time.
    pub asked: Vec<(Instant, TaskId, u64)>,
}

impl Settings {
    /// For so long; nothing else.
    pub fn of(horizon: Duration) -> Self {
        Settings {
            horizon,
            turn: None,
            enforcement: Enforcement::Off,
            quantum: Duration::from_millis(1),
            failures: Vec::new(),
            asked: Vec::new(),
        }
    }
}

/// What came of a run in memory.
pub(crate) struct Ran {
    pub events: Vec<trace::Event>,
    pub tally: Tally,
    /// Why it could not go on.
    pub fault: Option<String>,
    /// What the backend must never have been told.
    pub breaches: Vec<String>,
    pub lost: u64,
    pub triggered: Vec<crate::Triggered>,
}

/// A stage that can be driven.
trait MemoryStage: Stage<Virtual> {
    /// A dispatcher looks at its domain. True: the domain has come to its end.
    fn step(&self, team: &Team<Virtual>, domain: DomainId, place: Place) -> bool;
    /// When a domain, by its index in the plan, has something due.
    fn next(&self, domain: DomainId) -> Instant;
    fn site(&self) -> Site;
}

impl<P: Policy + Send + 'static> MemoryStage for Domains<P, MemoryBackend> {
    fn step(&self, team: &Team<Virtual>, domain: DomainId, place: Place) -> bool {
        let mut domain = open(&self.domains[domain.index()]);
        if !domain.ended {
            domain.step(team, place);
        }
        domain.ended
    }

    fn next(&self, domain: DomainId) -> Instant {
        Instant::from_nanos(open(&self.domains[domain.index()]).next())
    }

    fn site(&self) -> Site {
        self.site
    }
}

struct Processors;
impl Visit for Processors {
    type Out = Vec<Vec<CpuId>>;
    fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out {
        plan.domains.into_iter().map(|domain| domain.cpus).collect()
    }
}

struct Make<'a>(&'a Common<Virtual>, Site, Vec<Producer>);
impl Visit for Make<'_> {
    type Out = Arc<dyn MemoryStage>;
    fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out {
        let domains: Domains<P, MemoryBackend> =
            Domains::new(plan, self.0, self.1, self.2.into_iter());
        Arc::new(domains)
    }
}

struct Driver<'a> {
    plans: &'a [AnyPlan],
    common: Common<Virtual>,
    settings: Settings,
    /// How many stages there are.
    turns: u32,
    /// Those made so far.
    stages: Vec<Arc<dyn MemoryStage>>,
    /// Posts of the stage that rules whose dispatchers have not come to its end.
    here: Vec<PostId>,
}

/// Runs plans of one set, in turn if they are several.
pub(crate) fn run(
    plans: &[AnyPlan],
    set: &TaskSet,
    execution: Execution,
    settings: Settings,
) -> Ran {
    let cpus: Vec<_> = plans.iter().map(|p| p.clone().visit(Processors)).collect();
    let turns = settings.turn.map_or(1, |turn| {
        settings.horizon.nanos().div_ceil(turn.nanos()) as u32
    });
    let (posts, inboxes) = team::lay_out(&cpus, turns, set.len());
    let asked = |task: TaskId| settings.asked.iter().any(|(_, of, _)| *of == task);
    let parameters: Arc<[Parameters]> = set
        .ids()
        .map(|task| {
            let phase = set.details(task).map_or(Duration::ZERO, |d| d.phase);
            Parameters {
                triggered: asked(task),
                ..Parameters::new(&set.timings()[task.index()], phase)
            }
        })
        .collect();
    let machine = Machine::new(set.len(), execution, settings.failures.clone());
    let names = set.ids().map(|task| set.name(task)).collect();
    let triggered: Vec<bool> = parameters.iter().map(|p| p.triggered).collect();
    let team = Arc::new(Team::new(
        Virtual::new(machine),
        names,
        posts,
        inboxes,
        triggered,
    ));
    let most = cpus.iter().map(Vec::len).max().unwrap_or(0);
    let writers = cpus[0].iter().flatten().copied().take(most);
    let (producers, mut collector) = recorder::rings(writers, 1 << 16);
    let mut driver = Driver {
        plans,
        common: Common {
            team: Arc::clone(&team),
            parameters,
            horizon: Instant::ZERO + settings.horizon,
            enforcement: settings.enforcement,
            quantum: settings.quantum,
            early: Duration::ZERO,
            limited: false,
        },
        settings,
        turns,
        stages: Vec::new(),
        here: Vec::new(),
    };
    let mut sink = VecSink::default();
    driver.add_stage(producers);
    driver.begin_stage();
    while driver.drive() {
        collector.collect(team.now(), &mut sink);
    }
    let mut tally = Tally::default();
    for stage in &driver.stages {
        tally.add(stage.tally(), 1 << 16);
    }
    if let Some(stage) = driver.stages.get(team.ruling() as usize) {
        stage.show_unfinished(&team, tally.end);
    }
    let lost = collector.finish(tally.end, &mut sink);
    let breaches = std::mem::take(&mut team.host.machine().breaches);
    Ran {
        events: sink.events,
        tally,
        fault: team.fault().map(ToString::to_string),
        breaches,
        lost,
        triggered: team.triggered(),
    }
}

impl Driver<'_> {
    fn team(&self) -> &Team<Virtual> {
        &self.common.team
    }

    /// Makes the next stage, as a supervisor does some time before it is to rule.
    fn add_stage(&mut self, producers: Vec<Producer>) {
        let number = self.stages.len() as u32;
        let posts: Vec<_> = self
            .team()
            .posts_of(number)
            .map(|(id, p)| (id, *p))
            .collect();
        for (_, post) in &posts {
            self.team().inboxes[post.domain.index()].clear();
        }
        let (first, of_first) = posts[0];
        let site = Site {
            stage: number,
            domain: of_first.domain,
            post: first,
        };
        let plan = self.plans[number as usize % self.plans.len()].clone();
        self.stages
            .push(plan.visit(Make(&self.common, site, producers)));
    }

    /// The latest stage rules from now on: all of its dispatchers look, and the next stage is made.
    fn begin_stage(&mut self) {
        let number = self.team().ruling();
        self.here = self.team().posts_of(number).map(|(id, _)| id).collect();
        for post in &self.here {
            self.team().host.machine().called.insert(*post);
        }
        if number + 1 >= self.turns {
            return;
        }
        let next = self.plans[(number as usize + 1) % self.plans.len()].clone();
        let (nobody, _) = recorder::rings(vec![CpuId(0); next.visit(Processors).len()], 2);
        self.add_stage(nobody);
        let [old, new] = [number, number + 1].map(|n| Arc::clone(&self.stages[n as usize]));
        let plan = (number + 1) % self.plans.len() as u32;
        let handover = move |team: &Team<Virtual>| {
            let carried = old.leave(team);
            new.take_over(team, carried, plan);
        };
        let turn = self.settings.turn.map_or(0, Duration::nanos);
        let end = Instant::from_nanos(turn * u64::from(number + 1));
        assert!(self.team().end_stage(end, Box::new(handover)));
    }

    fn stage(&self) -> &Arc<dyn MemoryStage> {
        &self.stages[self.team().ruling() as usize]
    }

    /// Of a post of the stage that rules: its domain's index in the plan, and its place.
    fn place_of(&self, post: PostId) -> (DomainId, Place) {
        let domain: InboxId = self.team().posts[post.index()].domain;
        let leader = self.team().inboxes[domain.index()].leader;
        (
            DomainId(domain.0 - self.stage().site().domain.0),
            Place(post.0 - leader.0),
        )
    }

    /// The next dispatcher that looks at its domain now: one that was called, or a leader for whom
    /// something is due.
    fn next_post(&self) -> Option<PostId> {
        let (now, team) = (self.team().now(), self.team());
        self.here.iter().copied().find(|post| {
            let (domain, place) = self.place_of(*post);
            let is_called = team.host.machine().called.contains(post);
            is_called || (place == Place(0) && self.stage().next(domain) <= now)
        })
    }

    /// Steps all domains that have something to do now, then moves the clock to the next event.
    /// False: the run is over.
    fn drive(&mut self) -> bool {
        while let Some(post) = self.next_post() {
            self.team().host.machine().called.remove(&post);
            let (domain, place) = self.place_of(post);
            let stage = self.team().ruling();
            if !self.stage().step(self.team(), domain, place) {
                continue;
            }
            // The others of its domain come to its end too, and the last dispatcher hands over.
            let of_domain = self.team().posts[post.index()].domain;
            for (other, _) in self
                .team()
                .posts_of(stage)
                .filter(|(_, p)| p.domain == of_domain)
            {
                self.team().host.machine().called.insert(other);
            }
            self.here.retain(|other| *other != post);
            self.team().leave_stage(stage);
            if self.team().ruling() != stage {
                self.begin_stage();
            }
        }
        if self.here.is_empty() {
            return false;
        }
        self.pass();
        true
    }

    /// Moves the clock to the next event, and tells who has finished and what was asked for.
    fn pass(&mut self) {
        let due = self
            .here
            .iter()
            .map(|post| self.stage().next(self.place_of(*post).0));
        let asked = self.settings.asked.first().map(|(at, ..)| *at);
        let done = self.team().host.machine().next_done();
        let Some(next) = due.chain(asked).chain(done).min() else {
            return;
        };
        let finished = self.team().host.machine().pass(next);
        for task in finished {
            self.common.team.tell_finished(task);
        }
        while let Some((at, task, count)) = self.settings.asked.first().copied()
            && at <= next
        {
            self.settings.asked.remove(0);
            self.common.team.trigger(task, count);
        }
    }
}
