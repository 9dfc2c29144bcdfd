//! A run from its beginning to its end: builds domains and threads, releases all tasks at one
//! moment, watches, cleans up.
//!
//! On every way out the threads are ordinary ones again before anything else happens, and the
//! events up to that moment are in the sink.

mod course;
mod protection;

pub(crate) use protection::{AFTER, Protection};

use crate::colored::Provider;
use crate::effort::{Done, Efforts};
use crate::kernel;
use crate::made::Made;
use crate::programs::ends::ProgramEnd;
use crate::programs::launch::Performer;
use crate::stage::{Common, Domains, Site};
use crate::threads::backend::ThreadBackend;
use crate::threads::dispatcher::ThreadStage;
use crate::threads::gate;
use crate::threads::host::Threads;
use crate::threads::room;
use crate::threads::slack;
use crate::trigger::{Triggered, Triggers};
use crate::watchdog::Patience;
use course::Engine;
use machine::tracefs::{self, Recording, SWITCHES, Switches};
use model::watch::Watch;
use model::{CpuId, Duration, Enforcement, Error, Instant, Result, TaskId, TaskSet};
use policy::profiler::Estimate;
use policy::{AnyPlan, Plan, Policy, Visit};
use std::sync::Arc;
use trace::Sink;
use trace::recorder::Producer;
use warmset_task::page::Control;

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
    /// A dispatcher whose processor has no job is up so long before something is due, and waits for
    /// it without sleeping: releases are prompt, at the cost of what ordinary programs would do
    /// there. Less than 10 ms.
    pub early: Duration,
    /// When all tasks are released, as a reading of `CLOCK_MONOTONIC` in nanoseconds; else as soon
    /// as everything is ready.
    pub release_at: Option<u64>,
    /// What releases the jobs of tasks that have a trigger, open.
    pub triggers: Triggers,
    /// What is done in the time that jobs leave.
    pub best_effort: Efforts,
    /// Is it noted when a processor stands still, by a thread that looks again and again?
    pub standstills: bool,
    /// How often it looks: see [`WATCH_EVERY`].
    pub watch_every: Duration,
    /// Are the kernel's switches recorded?
    pub witness: bool,
    /// By task, the control page that its thread reads (000 §3.3), as the page that programs have;
    /// empty: no thread has one. Programs get pages of their own.
    pub pages: Vec<Arc<Control>>,
}

/// How often it is looked whether a processor stands still. Each look costs jobs what a profile
/// says under `watch`; that is why there are no more of them. A standstill between two looks, which
/// is over before the second, is not noticed.
pub const WATCH_EVERY: Duration = Duration::from_millis(2);

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
            release_at: None,
            triggers: Triggers::default(),
            best_effort: Efforts::default(),
            standstills: false,
            watch_every: WATCH_EVERY,
            witness: false,
            pages: Vec::new(),
        }
    }
}

/// Why a run ended.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum Ending {
    /// The horizon was reached.
    #[default]
    Horizon,
    /// The user asked for it.
    Interrupted,
    /// All tasks were programs, and all of them have come to their end.
    ProgramsEnded,
}

/// What came of a run besides its trace. Times in nanoseconds.
#[derive(Clone, PartialEq, Eq, Default, Debug)]
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
    /// How long dispatchers took to take note, decide and carry out, sorted; of several turns
    /// together the latest 65536 for each domain.
    pub steps: Vec<u32>,
    /// How long it took of that to take note and decide: the bookkeeping of the engine and the
    /// policy's state machine, the clock and the trace included, system calls not; likewise.
    pub thoughts: Vec<u32>,
    /// From telling a worker on another processor to begin to its first instruction there:
    /// interrupt and switch; likewise.
    pub calls: Vec<u32>,
    /// From release to first instruction, of jobs that were chosen at their release, sorted;
    /// likewise.
    pub latencies: Vec<u32>,
    /// By how much a dispatcher woke up too late at most.
    pub latest: Duration,
    /// How often one was late by more than 5 ms: something else, such as a hypervisor, had the
    /// processor.
    pub gaps: u64,
    /// Tasks whose work did not come back when it was told to end. Their threads are stopped for
    /// good.
    pub stuck: Vec<TaskId>,
    /// What became of the programs among the tasks, in the order of the tasks.
    pub programs: Vec<ProgramEnd>,
    /// What came of the triggers of tasks that have one, in the order of the tasks.
    pub triggers: Vec<Triggered>,
    /// The kernel's switches, where they were recorded.
    pub switches: Option<Switches>,
    /// By task, the number of its thread; 0 where a program does its jobs.
    pub threads: Vec<i32>,
    /// The dispatcher of each processor, by the number of its thread; of several turns the last
    /// one.
    pub dispatchers: Vec<(CpuId, i32)>,
    /// The thread that watches each processor for standstills, where one does.
    pub watches: Vec<(CpuId, i32)>,
    /// What was done in the time that jobs left, by name.
    pub best_effort: Vec<Done>,
    /// By task its multithreaded task, and what the policy found of its working set; empty: it
    /// looked for none.
    pub profiled: Vec<(u32, Estimate)>,
}

/// Runs a plan of any policy. `works`: who does the jobs of each task. `flush` is called every
/// second, so that what the sink keeps can be made safe.
///
/// # Errors
/// No right to real-time priorities; a job that panicked; a run that the watchdog had to end. The
/// sink has the events up to that moment.
pub fn run<S: Sink>(
    plan: AnyPlan,
    set: &TaskSet,
    works: Vec<impl Into<Performer>>,
    settings: &Settings,
    watch: &impl Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    run_in_turn(&[plan], None, set, works, settings, watch, sink, flush)
}

/// Runs several plans of one set in turn, each for `turn`; which one rules from when is in the
/// trace, by its place among them.
///
/// # Errors
/// As [`run`]; plans for different processors; more than [`TURNS`] turns.
#[allow(
    clippy::too_many_arguments,
    reason = "what a run takes, and the plans' turn"
)]
pub fn run_in_turn<S: Sink>(
    plans: &[AnyPlan],
    turn: Option<Duration>,
    set: &TaskSet,
    works: Vec<impl Into<Performer>>,
    settings: &Settings,
    watch: &impl Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    let works: Vec<Performer> = works.into_iter().map(Into::into).collect();
    if !works.iter().all(Performer::counts_misses) {
        for plan in plans {
            plan.needs_no_counts()?;
        }
    }
    let make = |index: usize, common: &Common<Threads>, site: Site, producers: Vec<Producer>| {
        make(plans[index].clone(), common, site, producers)
    };
    let cpus = plans
        .iter()
        .map(|plan| plan.clone().visit(Processors))
        .collect();
    run_stages(cpus, make, turn, set, works, settings, watch, sink, flush)
}

/// As [`run`], for a policy known by its type.
///
/// # Errors
/// As [`run`].
pub fn run_plan<P: Policy + Clone + Send + 'static, S: Sink>(
    plan: Plan<P>,
    set: &TaskSet,
    works: Vec<impl Into<Performer>>,
    settings: &Settings,
    watch: &impl Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    let works: Vec<Performer> = works.into_iter().map(Into::into).collect();
    if !works.iter().all(Performer::counts_misses) {
        plan.needs_no_counts()?;
    }
    let cpus = vec![Processors.visit(plan.clone())];
    let make = |_: usize, common: &Common<Threads>, site: Site, producers: Vec<Producer>| {
        Arc::new(ThreadDomains::new(
            plan.clone(),
            common,
            site,
            producers.into_iter(),
        )) as Arc<dyn ThreadStage>
    };
    run_stages(cpus, make, None, set, works, settings, watch, sink, flush)
}

/// The most turns of policies in one run.
pub const TURNS: u64 = 10_000;
/// The shortest turn of a policy.
pub const SHORTEST_TURN: Duration = Duration::from_millis(500);

/// The processors of a plan's domains.
struct Processors;
impl Visit for Processors {
    type Out = Vec<Vec<CpuId>>;
    fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out {
        plan.domains.into_iter().map(|domain| domain.cpus).collect()
    }
}

type ThreadDomains<P> = Domains<P, ThreadBackend>;

/// Makes a stage of a plan.
fn make(
    plan: AnyPlan,
    common: &Common<Threads>,
    site: Site,
    producers: Vec<Producer>,
) -> Arc<dyn ThreadStage> {
    struct Make<'a>(&'a Common<Threads>, Site, Vec<Producer>);
    impl Visit for Make<'_> {
        type Out = Arc<dyn ThreadStage>;
        fn visit<P: Policy + Send + 'static>(self, plan: Plan<P>) -> Self::Out {
            Arc::new(ThreadDomains::new(plan, self.0, self.1, self.2.into_iter()))
        }
    }
    plan.visit(Make(common, site, producers))
}

/// Makes the stage of a plan, by its place among them, at a site.
trait Maker: FnMut(usize, &Common<Threads>, Site, Vec<Producer>) -> Arc<dyn ThreadStage> {}
impl<F: FnMut(usize, &Common<Threads>, Site, Vec<Producer>) -> Arc<dyn ThreadStage>> Maker for F {}

#[allow(
    clippy::too_many_arguments,
    reason = "what a run takes, and how its stages are made"
)]
fn run_stages<S: Sink>(
    cpus: Vec<Vec<Vec<CpuId>>>,
    make: impl Maker,
    turn: Option<Duration>,
    set: &TaskSet,
    works: Vec<Performer>,
    settings: &Settings,
    watch: &impl Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    if works.len() != set.len() {
        return Err(
            Error::new(format!("{} works for {} tasks", works.len(), set.len()))
                .remedy("give one each"),
        );
    }
    if !settings.pages.is_empty() && settings.pages.len() != set.len() {
        let (pages, tasks) = (settings.pages.len(), set.len());
        return Err(
            Error::new(format!("{pages} control pages for {tasks} tasks"))
                .remedy("give one each, or none"),
        );
    }
    if settings.horizon.is_zero() {
        return Err(Error::new("the run lasts no time").remedy("give a positive time"));
    }
    settings.triggers.fit(set)?;
    let turns = turns(&cpus, turn, settings.horizon)?;
    gate::install()?;
    let places = cpus.iter().flatten().map(Vec::len).sum::<usize>();
    // A task's own; a dispatcher, a sentinel, slack and standstills on each processor; the
    // listener, and best-effort work.
    let threads = works.len() + 4 * places + 2 + settings.best_effort.len();
    let events = settings.events.saturating_mul(size_of::<trace::Event>());
    room::look(threads, events.saturating_mul(2 * places))?;
    // Before any thread is started, and before anything is raised.
    let has_programs =
        works.iter().any(Performer::is_program) || settings.best_effort.has_programs();
    let protection = Protection::begin(settings.patience, has_programs, watch)?;
    let Protection {
        ref watchdog,
        ref made,
        ..
    } = protection;
    settings.triggers.make(made, set)?;
    for socket in works.iter().filter_map(Performer::join_socket) {
        socket.make(made)?;
    }
    let recording = record(settings, made)?;
    protection.tell_missing(watch);
    let stopped = || watch.stopped();
    let mut engine = Engine::build(cpus, make, turns, set, works, settings, watchdog, &stopped)?;
    let memory = machine::realtime::lock_memory();
    if let Err(e) = &memory {
        watch.note(&format!("{e}: jobs may wait for memory"));
    }
    let ended = engine.supervise(settings, watchdog, watch, sink, flush);
    let mut outcome = engine.end(ended, sink)?;
    outcome.switches = recording
        .map(Recording::end)
        .transpose()?
        .map(Switches::from);
    Ok(outcome)
}

/// Begins to record the kernel's switches, if that is asked for.
fn record(settings: &Settings, made: &Made) -> Result<Option<Recording>> {
    if !settings.witness {
        return Ok(None);
    }
    if let Some(instance) = tracefs::instance() {
        made.will_make(&instance).map_err(|e| {
            Error::new(format!(
                "the kernel's record of switches cannot be noted: {e}"
            ))
        })?;
    }
    Recording::begin(&[SWITCHES]).map(Some)
}

/// How many turns a run has, and how long one is.
fn turns(
    cpus: &[Vec<Vec<CpuId>>],
    turn: Option<Duration>,
    horizon: Duration,
) -> Result<(u32, Duration)> {
    let of = |domains: &Vec<Vec<CpuId>>| {
        let mut all: Vec<CpuId> = domains.iter().flatten().copied().collect();
        all.sort_unstable();
        all
    };
    let Some(first) = cpus.first().map(of) else {
        return Err(Error::new("no policy is given").remedy("give one"));
    };
    if cpus.iter().any(|domains| of(domains) != first) {
        return Err(
            Error::new("the policies do not schedule the same processors")
                .remedy("give policies that use all of them"),
        );
    }
    match turn {
        None => Ok((1, horizon)),
        Some(turn) if turn < SHORTEST_TURN => Err(Error::new(format!(
            "policies that rule for {turn} at a time cannot be made ready in time"
        ))
        .remedy(format!("let each rule for {SHORTEST_TURN} at least"))),
        Some(turn) => match horizon.nanos().div_ceil(turn.nanos()) {
            count if count > TURNS => Err(Error::new(format!("the policies take {count} turns"))
                .remedy(format!("give longer ones: at most {TURNS}"))),
            count => Ok((count as u32, turn)),
        },
    }
}
/// Keeps the priority levels in one place for those who show them.
pub fn levels() -> [(&'static str, i32); 8] {
    [
        ("watchdog", machine::realtime::WATCHDOG.get()),
        ("standstills", machine::realtime::WATCHDOG.get()),
        ("dispatchers", kernel::DISPATCHER.get()),
        ("listener", kernel::LISTENER),
        ("chosen jobs", kernel::RUN),
        ("sentinels", kernel::SENTINEL),
        ("preempted jobs", kernel::WAIT),
        ("slack", slack::PRIORITY),
    ]
}
