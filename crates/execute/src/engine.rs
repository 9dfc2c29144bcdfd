//! A run from its beginning to its end: builds domains and threads, releases all tasks at one moment, watches, cleans up.
//!
//! On every way out the threads are ordinary ones again before anything else happens, and the events up to that moment are
//! in the sink.

use crate::clock::{Monotonic, Timeline, Timestamps};
use crate::colored::{self, Provider};
use crate::domain::{self, Core, Enforcement, Fixed, Ground, Row};
use crate::keeper::Keeper;
use crate::program::{Performer, ProgramEnd};
use crate::team::{Inbox, Post, Team};
use crate::watchdog::{Patience, Trip, Watchdog};
use crate::worker::{self, Worker};
use crate::{dispatcher, kernel, sentinel};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Result, TaskId, TaskSet};
use policy::{AnyPlan, Plan, Policy, Visit};
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use trace::recorder::{self, Collector};
use trace::{Event as Record, Sink};

/// Everything about a run but the policy and the work.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long: jobs are released before this instant.
    pub horizon: Duration,
    /// What happens to overruns.
    pub enforcement: Enforcement,
    /// The quantum of [`Enforcement::PerQuantum`].
    pub quantum: Duration,
    /// How many events each domain may be ahead of whoever collects them.
    pub events: usize,
    /// How patient the watchdog is.
    pub patience: Patience,
    /// Where threads get memory of page colors, if they shall have some.
    pub provider: Option<Arc<dyn Provider>>,
    /// A dispatcher whose processor has no job is up so long before something is due, and waits for it without sleeping:
    /// releases are prompt, at the cost of what ordinary programs would do there. Less than 10 ms.
    pub early: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            horizon: Duration::from_secs(10),
            enforcement: Enforcement::default(),
            quantum: Duration::from_millis(1),
            events: 1 << 16,
            patience: Patience::default(),
            provider: None,
            early: Duration::ZERO,
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ending {
    /// The horizon was reached.
    Horizon,
    /// The user asked for it.
    Interrupted,
    /// All tasks were programs, and all of them have come to their end.
    ProgramsEnded,
}

/// What came of a run besides its trace. Times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// Why it ended.
    pub ending: Ending,
    /// When.
    pub end: Instant,
    /// What `CLOCK_MONOTONIC` was at time zero, in nanoseconds.
    pub origin: u64,
    /// Events that were lost.
    pub lost: u64,
    /// Decisions asked of the policy.
    pub decisions: u64,
    /// How long dispatchers took to take note, decide and carry out, sorted; the latest 65536 of each domain.
    pub steps: Vec<u32>,
    /// How long it took of that to take note and decide: the bookkeeping of the engine and the policy's state machine, the
    /// clock and the trace included, system calls not; likewise.
    pub thoughts: Vec<u32>,
    /// From telling a worker on another processor to begin to its first instruction there: interrupt and switch; likewise.
    pub calls: Vec<u32>,
    /// From release to first instruction, of jobs that were chosen at their release, sorted; likewise.
    pub latencies: Vec<u32>,
    /// By how much a dispatcher woke up too late at most.
    pub latest: Duration,
    /// How often one was late by more than 5 ms: something else, such as a hypervisor, had the processor.
    pub gaps: u64,
    /// Tasks whose work did not come back when it was told to end. Their threads are stopped for good.
    pub stuck: Vec<TaskId>,
    /// What became of the programs among the tasks, in the order of the tasks.
    pub programs: Vec<ProgramEnd>,
}

/// Runs a plan of any policy. `works`: who does the jobs of each task. `flush` is called every second, so that what the sink
/// keeps can be made safe.
///
/// # Errors
/// No right to real-time priorities; a job that panicked; a run that the watchdog had to end. The sink has the events up to
/// that moment.
pub fn run<S: Sink>(
    plan: AnyPlan,
    set: &TaskSet,
    works: Vec<impl Into<Performer>>,
    settings: &Settings,
    watch: &impl Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    struct Run<'a, W, S, F> {
        set: &'a TaskSet,
        works: Vec<Performer>,
        settings: &'a Settings,
        watch: &'a W,
        sink: &'a mut S,
        flush: F,
    }
    impl<W: Watch, S: Sink, F: FnMut(&mut S)> Visit for Run<'_, W, S, F> {
        type Out = Result<Outcome>;
        fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out {
            run_plan(
                plan,
                self.set,
                self.works,
                self.settings,
                self.watch,
                self.sink,
                self.flush,
            )
        }
    }
    plan.visit(Run {
        set,
        works: works.into_iter().map(Into::into).collect(),
        settings,
        watch,
        sink,
        flush,
    })
}

/// As [`run`], for a policy known by its type.
///
/// # Errors
/// As [`run`].
pub fn run_plan<P: Policy + Send + 'static, S: Sink>(
    plan: Plan<P>,
    set: &TaskSet,
    works: Vec<impl Into<Performer>>,
    settings: &Settings,
    watch: &impl Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    let works: Vec<Performer> = works.into_iter().map(Into::into).collect();
    if works.len() != set.len() {
        return Err(
            Error::new(format!("{} works for {} tasks", works.len(), set.len())).remedy("give one each"),
        );
    }
    if settings.horizon.is_zero() {
        return Err(Error::new("the run lasts no time").remedy("give a positive time"));
    }
    domain::prepare()?;
    // Before any thread is started, and before anything is raised.
    let watchdog = Watchdog::start(settings.patience)?;
    let mut engine = Engine::build(plan, set, works, settings, &watchdog)?;
    let memory = machine::realtime::lock_memory();
    if let Err(e) = &memory {
        watch.note(&format!("{e}: jobs may wait for memory"));
    }
    let ended = engine.supervise(settings, &watchdog, watch, sink, flush);
    let outcome = engine.end(ended, sink);
    watchdog.board().unsupervised();
    outcome
}

/// All threads of a run and what they work on.
struct Engine<P> {
    team: Arc<Team>,
    cores: Vec<Arc<Mutex<Core<P>>>>,
    dispatchers: Vec<JoinHandle<()>>,
    /// One a processor, where there are programs.
    sentinels: Vec<JoinHandle<()>>,
    /// By task; none where a program does its jobs.
    workers: Vec<Option<JoinHandle<()>>>,
    keeper: Keeper,
    collector: Option<Collector>,
}

/// How often the supervisor looks.
const LOOK: std::time::Duration = std::time::Duration::from_millis(20);
/// Producers have pushed what they have to say of the time so long ago.
const BEHIND: Duration = Duration::from_millis(200);
/// How long threads have to come back.
const GRACE: std::time::Duration = std::time::Duration::from_millis(1500);

impl<P: Policy + Send + 'static> Engine<P> {
    fn build(
        plan: Plan<P>,
        set: &TaskSet,
        works: Vec<Performer>,
        settings: &Settings,
        watchdog: &Watchdog,
    ) -> Result<Self> {
        let is_program = |id: TaskId| matches!(works[id.index()], Performer::Program(_));
        let fixed: Arc<[Fixed]> = set
            .ids()
            .map(|id| {
                let phase = set.details(id).map_or(Duration::ZERO, |d| d.phase);
                Fixed::new(&set.timings()[id.index()], phase, is_program(id))
            })
            .collect();
        let (mut posts, mut inboxes) = (Vec::new(), Vec::new());
        for (index, domain) in plan.domains.iter().enumerate() {
            inboxes.push(Inbox::new(posts.len() as u32, 2 * set.len()));
            posts.extend(domain.cpus.iter().map(|cpu| Post::new(*cpu, index as u32)));
        }
        let workers = set.ids().map(|id| Worker::new(set.name(id))).collect();
        let team = Arc::new(Team::new(workers, posts, inboxes, watchdog.board()));
        let firsts: Vec<CpuId> = plan.domains.iter().map(|d| d.cpus[0]).collect();
        let (producers, collector) = recorder::rings(firsts, settings.events);
        let route = Arc::new(plan.route);
        let mut first_post = 0;
        let mut cores = Vec::new();
        for ((index, domain), producer) in plan.domains.into_iter().enumerate().zip(producers) {
            let rows = set
                .ids()
                .map(|id| Row::new(route.home(id, 0) == index as u32, is_program(id)))
                .collect();
            let places = domain.cpus.len() as u32;
            let ground = Ground::new(domain::Parts {
                team: Arc::clone(&team),
                domain: index as u32,
                cpus: domain.cpus,
                first_post,
                fixed: Arc::clone(&fixed),
                rows,
                horizon: Instant::ZERO + settings.horizon,
                enforcement: settings.enforcement,
                quantum: settings.quantum,
                slices: P::SLICES,
                programs: set.ids().any(is_program),
                early: settings.early,
                producer,
            });
            first_post += places;
            let core = Core::new(domain.policy, ground, Arc::clone(&route));
            cores.push(Arc::new(Mutex::new(core)));
        }
        let mut engine = Engine {
            team,
            cores,
            dispatchers: Vec::new(),
            sentinels: Vec::new(),
            workers: Vec::new(),
            keeper: Keeper::new(match set.ids().any(is_program) {
                true => watchdog.board().mark(),
                false => String::new(),
            }),
            collector: Some(collector),
        };
        match engine.start(works, settings.provider.as_ref()) {
            Ok(()) => Ok(engine),
            Err(e) => {
                engine.dismiss();
                Err(e)
            }
        }
    }

    fn start(&mut self, works: Vec<Performer>, provider: Option<&Arc<dyn Provider>>) -> Result<()> {
        for (task, work) in works.into_iter().enumerate() {
            let task = task as u32;
            self.workers.push(match work {
                Performer::Work(work) => Some(worker::start(&self.team, task, work, provider.cloned())?),
                Performer::Program(launch) => {
                    self.keeper.launch(&self.team, task, launch)?;
                    None
                }
            });
        }
        let guarded = self.workers.iter().any(Option::is_none);
        if guarded {
            for place in 0..self.team.posts.len() {
                self.sentinels.push(sentinel::start(&self.team, place as u32)?);
            }
        }
        for (place, post) in self.team.posts.iter().enumerate() {
            let core = &self.cores[post.domain as usize];
            self.dispatchers.push(dispatcher::start(
                &self.team,
                core,
                place as u32,
                provider.cloned(),
            )?);
        }
        // Everybody is at his place before anything begins.
        let ready = |team: &Team| {
            let at_post =
                |p: &Post| p.taken.load(Ordering::Acquire) && (!guarded || p.guarded.load(Ordering::Acquire));
            team.workers.iter().all(Worker::is_ready) && team.posts.iter().all(at_post)
        };
        while !ready(&self.team) {
            if let Some(e) = self.team.fault() {
                return Err(e.clone());
            }
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        match provider {
            Some(provider) => provider.ready(&colored::numbers(self.team.workers.iter().map(Worker::thread))),
            None => Ok(()),
        }
    }

    /// Lets the run begin and watches it to its end.
    fn supervise<S: Sink>(
        &mut self,
        settings: &Settings,
        watchdog: &Watchdog,
        watch: &impl Watch,
        sink: &mut S,
        mut flush: impl FnMut(&mut S),
    ) -> Result<Ending> {
        let total = settings.horizon.nanos().div_ceil(1_000_000);
        watch.begin("running", total);
        let source = Monotonic;
        // Time enough for every dispatcher to see it.
        let timeline = Timeline::new(source, source.read() + 30_000_000);
        self.team.begin(timeline);
        for post in &self.team.posts {
            post.call();
        }
        let board = watchdog.board();
        let (mut told, mut flushed) = (0, Instant::ZERO);
        loop {
            board.ordinary();
            std::thread::sleep(LOOK);
            let now = timeline.now();
            self.collect(now, sink);
            self.keeper.look(&self.team);
            if now.since(flushed) >= Duration::from_secs(1) {
                flushed = now;
                flush(sink);
            }
            let at = (now.nanos() / 1_000_000).min(total);
            watch.advance(at - told);
            told = at;
            if let Some(e) = self.team.fault() {
                return Err(e.clone());
            }
            if let Some(trip) = board.tripped() {
                return Err(self.tripped(trip));
            }
            if watchdog.has_died() {
                return Err(Error::new(
                    "the watchdog was killed or stopped: the run ended without its protection",
                )
                .remedy("leave the process `warmset-dog` alone"));
            }
            if watch.stopped() {
                return Ok(Ending::Interrupted);
            }
            if self.keeper.ended() == self.team.workers.len() {
                return Ok(Ending::ProgramsEnded);
            }
            if self.dispatchers.iter().all(JoinHandle::is_finished) {
                return Ok(Ending::Horizon);
            }
        }
    }

    fn tripped(&self, trip: Trip) -> Error {
        match trip {
            Trip::Dispatcher(place) => {
                let cpu = self.team.posts.get(place as usize).map_or(CpuId(0), |p| p.cpu);
                Error::new(format!(
                    "the watchdog ended the run: the dispatcher of processor {cpu} stood still"
                ))
                .remedy("look for other work at real-time priority 97 or above, or for a virtual machine that was stopped")
            }
            Trip::Ordinary => Error::new("the watchdog ended the run: ordinary programs did not get to run")
                .remedy("give the tasks less than 90 % of every processor"),
        }
    }

    fn collect<S: Sink>(&mut self, now: Instant, sink: &mut S) {
        if let Some(collector) = &mut self.collector {
            let until = Instant::from_nanos(now.nanos().saturating_sub(BEHIND.nanos()));
            collector.collect(until, sink);
        }
    }

    /// Lets all threads end, and puts those away that do not.
    fn dismiss(&mut self) -> (Vec<TaskId>, Vec<ProgramEnd>) {
        let board = self.team.board.clone();
        self.team.end();
        wait_for(&self.dispatchers);
        // Nobody decides any more, or the watchdog has lowered who does.
        board.lower_all();
        self.team.stop.store(true, Ordering::Release);
        wait_for(&self.sentinels);
        for worker in self.team.workers.iter().filter(|w| w.program().is_none()) {
            worker.open();
            worker.wake();
        }
        wait_for(self.workers.iter().flatten());
        let mut stuck = Vec::new();
        for (task, thread) in self.workers.iter().enumerate() {
            if thread.as_ref().is_some_and(|t| !t.is_finished()) {
                // It fails where the thread ends after all.
                let _ = self.team.workers[task].close();
                stuck.push(TaskId(task as u32));
            }
        }
        let programs = self.keeper.end(&self.team);
        (stuck, programs)
    }

    /// After everything: threads put away, the rest of the events handed on.
    fn end<S: Sink>(mut self, ended: Result<Ending>, sink: &mut S) -> Result<Outcome> {
        let now = self.team.now();
        let (stuck, programs) = self.dismiss();
        let Some(mut collector) = self.collector.take() else {
            return Err(Error::new("the run has ended before"));
        };
        if !self.dispatchers.iter().all(JoinHandle::is_finished) {
            // Somebody is still in a domain: what it has written so far is all there is.
            collector.collect(now, sink);
            return ended.and(Err(Error::new("a dispatcher did not come back")));
        }
        let (mut decisions, mut steps, mut latencies) = (0, Vec::new(), Vec::new());
        let (mut thoughts, mut calls) = (Vec::new(), Vec::new());
        let (mut end, mut unfinished) = (Instant::ZERO, Vec::new());
        let mut arrived = vec![0u64; self.team.workers.len()];
        for core in &self.cores {
            let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
            decisions += core.ground.decisions;
            steps.extend_from_slice(core.ground.steps.all());
            latencies.extend_from_slice(core.ground.latencies.all());
            thoughts.extend_from_slice(core.ground.thoughts.all());
            calls.extend_from_slice(core.ground.calls.all());
            end = end.max(core.ground.now);
            unfinished.extend(core.unfinished());
            for (most, here) in arrived.iter_mut().zip(core.arrived()) {
                *most = (*most).max(*here);
            }
        }
        if let Some(core) = self.cores.first() {
            let mut core = core.lock().unwrap_or_else(PoisonError::into_inner);
            for (task, first) in unfinished {
                for number in first..arrived[task as usize] {
                    let deadline = core.ground.deadline_of(task, number);
                    if deadline < end {
                        let event = Record::deadline_miss(end, None, TaskId(task), number, deadline);
                        core.ground.producer.push(event);
                    }
                }
            }
        }
        let lost = collector.finish(end, sink);
        let lateness = self.team.posts.iter().map(|p| p.lateness());
        for samples in [&mut steps, &mut latencies, &mut thoughts, &mut calls] {
            samples.sort_unstable();
        }
        ended.map(|ending| Outcome {
            ending,
            end,
            origin: self.team.timeline().map_or(0, |t| t.reading(Instant::ZERO)),
            lost,
            decisions,
            steps,
            thoughts,
            calls,
            latencies,
            latest: Duration::from_nanos(lateness.clone().map(|l| l.0).max().unwrap_or(0)),
            gaps: lateness.map(|l| l.1).sum(),
            stuck,
            programs,
        })
    }
}

fn wait_for<'a>(threads: impl IntoIterator<Item = &'a JoinHandle<()>> + Clone) {
    let until = std::time::Instant::now() + GRACE;
    while !threads.clone().into_iter().all(JoinHandle::is_finished) && std::time::Instant::now() < until {
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

/// Keeps the priority levels in one place for those who show them.
pub fn levels() -> [(&'static str, i32); 5] {
    [
        ("watchdog", machine::realtime::WATCHDOG.get()),
        ("dispatchers", kernel::DISPATCHER.get()),
        ("chosen jobs", kernel::RUN),
        ("sentinels", kernel::SENTINEL),
        ("preempted jobs", kernel::WAIT),
    ]
}
