//! Runs a task set for real, under a policy, and checks what happened.
//!
//! [`plan`] looks whether the run could be and what would disturb it, [`Planned::run`] runs it.

pub mod colors;
pub(crate) mod engine;
mod in_kernel;
mod known;
pub mod live;
mod looked;
mod moment;
mod performers;
mod report;
mod reserve;

pub use engine::{Carrier, ENGINE, Engine};
pub use known::RESERVES;
pub use looked::Preflight;
pub use moment::{Clocks, Moment};
pub use report::{BestEffort, Program, Ran, Threads, Times, Trigger, Workload};

use crate::scheduling::Scheduling;
use crate::simulate::part_of;
use crate::{Choice, Tasks, provenance};
use ::trace::check::Options as Checks;
use ::trace::{Checker, Event, FileSink, Header, Origin, Sink, Stage, Statistics};
use colors::{Coloring, Prepared};
use engine::{Chosen, InKernel};
use execute::preflight::{self, Finding, Intent, Level};
use execute::witness::{self, Testimony, Told};
use execute::{Efforts, JoinSocket, Outcome, Performer, Rights, Settings, Triggers};
use in_kernel::Colored;
use looked::disturbances;
use machine::settings::Settings as Changed;
use machine::user::User;
use machine::{Machine, Tree};
use model::watch::Watch;
use model::{CpuSet, Duration, Enforcement, Error, Profile, Provenance, Ratio, Result, TaskSet};
use performers::{Workloads, best_effort, performers};
use policy::AnyPlan;
use std::fs::File;
use std::path::PathBuf;
use std::sync::Arc;
use workload::CountBy;
pub use workload::Until;

/// How a task set is run. By default under `g-edf` for 10 s, on all processors that this process
/// may use, each job for nine tenths of its WCET.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policies, and who runs where.
    pub scheduling: Scheduling,
    /// Who carries it out. Default: threads from user space.
    pub engine: Engine,
    /// How long. Default: 10 s.
    pub horizon: Duration,
    /// On these processors only; `None`: on all that this process may use.
    pub cpus: Option<CpuSet>,
    /// The part of its WCET that a job is calibrated to execute. Default: `0.9`.
    pub execution: Choice<Ratio>,
    /// When a job has executed for that part: after the work that takes so long alone, or by the
    /// clock of its thread. Default: after the work.
    pub until: Until,
    /// How long a decision may be overdue before it counts as a violation. Default: 1 ms.
    pub tolerance: Duration,
    /// Where tasks with `kind = "join"` come in: a socket, made at the start and gone at the end.
    pub socket: Option<PathBuf>,
    /// Programs write into files of this directory, one a task; `None`: to standard error.
    pub programs_to: Option<PathBuf>,
    /// The rights of programs of which the set says nothing else. Default: none.
    pub rights: model::Rights,
    /// Keep idle processors awake during the run.
    pub awake: bool,
    /// How long each of several policies rules before the next one takes over.
    pub switch_every: Option<Duration>,
    /// Release all tasks at this moment; `None`: when everything is ready.
    pub release_at: Option<Moment>,
    /// Both clocks at the moment from which `release_at` counts; `None`: when [`plan`] is called.
    pub begun: Option<Clocks>,
    /// Dispatchers of idle processors are up so long before a release; `None`: 100 us where there
    /// is time for it.
    pub early: Option<Duration>,
    /// Look again and again whether the machine stands still. Default: yes.
    pub standstills: bool,
    /// Compare the trace with what the kernel's scheduler says of its switches.
    pub witness: bool,
    /// Write every event to this trace.
    pub trace: Option<PathBuf>,
    /// How colors are given out.
    pub coloring: Coloring,
    /// What the engine itself costs here; `None`: what a boundary costs is measured right before the
    /// run where it matters, and 1 % of each processor is kept for dispatchers.
    pub profile: Option<Choice<Profile>>,
    /// The command that runs the same again, for the head of the trace.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            scheduling: Scheduling::default(),
            engine: Engine::default(),
            horizon: Duration::from_secs(10),
            cpus: None,
            execution: Choice::Named("0.9".to_owned()),
            until: Until::Work,
            tolerance: Duration::from_millis(1),
            socket: None,
            programs_to: None,
            rights: model::Rights::Unsaid,
            awake: false,
            switch_every: None,
            release_at: None,
            begun: None,
            early: None,
            standstills: true,
            witness: false,
            trace: None,
            coloring: Coloring::default(),
            profile: None,
            command: String::new(),
        }
    }
}

/// A run that could be.
pub struct Planned<'a> {
    set: &'a TaskSet,
    options: &'a Options,
    begun: Clocks,
    /// A reading of `CLOCK_MONOTONIC`.
    release_at: Option<u64>,
    triggers: Triggers,
    machine: Machine,
    /// The part of its WCET that a job executes.
    part: Ratio,
    /// Those of programs of which the set says nothing else.
    rights: Rights,
    carried: Carried,
    enforcement: Enforcement,
    early: Duration,
    /// What its trace opens with.
    pub header: Header,
    /// What was seen of machine and set.
    pub preflight: Preflight,
}

/// What is carried out, and so by whom.
enum Carried {
    /// By threads from user space.
    User(Vec<AnyPlan>),
    /// By the kernel's scheduler.
    Kernel(Box<kernel::Carried>),
}

impl Carried {
    fn by(&self) -> Carrier {
        match self {
            Carried::User(_) => Carrier::User,
            Carried::Kernel(_) => Carrier::Kernel,
        }
    }

    /// How many threads carry decisions out on so many processors.
    fn dispatchers(&self, cpus: usize) -> usize {
        match self {
            Carried::User(_) => cpus,
            Carried::Kernel(_) => 0,
        }
    }
}

/// Looks whether a run could be. Where boundaries between jobs matter to a policy, and no profile
/// says what one costs, this measures it. Nothing on the machine is changed.
///
/// # Errors
/// Options that contradict each other or the set; processors that cannot be used; an assignment
/// that cannot be made or does not fit.
pub fn plan<'a>(tasks: &'a Tasks, options: &'a Options) -> Result<Planned<'a>> {
    let (how, set) = (&options.scheduling, &tasks.set);
    let begun = options.begun.unwrap_or_else(Clocks::read);
    let release_at = options.release_at.map(|m| m.reading(&begun)).transpose()?;
    let triggers = triggers(how, set).map_err(|e| e.at(&tasks.place))?;
    let machine = on(machine::this_machine()?, options.cpus.as_ref())?;
    turns(how, options.switch_every)?;
    let part = match &options.execution {
        Choice::Named(text) => part_of(text).map_err(|e| e.at("--execution"))?,
        Choice::Value(part) => *part,
    };
    let rights = rights(&options.rights)?;
    let enforcement = how.enforcement;
    let Chosen { in_kernel, finding } = engine::choose(options, set, &machine, &tasks.place)?;
    let seen = match in_kernel {
        Some(taken) => look_in_kernel(options, set, &machine, part, taken),
        None => look_from_user_space(options, tasks, &machine, part)?,
    };
    let mut findings = seen.findings;
    let of_machine = findings.len();
    findings.extend(finding);
    findings.extend(seen.of_set);
    Ok(Planned {
        header: header(set, &machine, seen.stages, enforcement, &options.command),
        set,
        options,
        begun,
        release_at,
        triggers,
        part,
        rights,
        carried: seen.carried,
        enforcement,
        early: seen.early,
        preflight: Preflight {
            findings,
            of_machine,
        },
        machine,
    })
}

/// What was seen before a run, and what it carries out.
struct Seen {
    stages: Vec<Stage>,
    carried: Carried,
    findings: Vec<Finding>,
    of_set: Vec<Finding>,
    early: Duration,
}

/// Looks at a machine and a set for the engine in user space.
///
/// # Errors
/// As [`plan`].
fn look_from_user_space(
    options: &Options,
    tasks: &Tasks,
    machine: &Machine,
    part: Ratio,
) -> Result<Seen> {
    let (how, set, platform) = (&options.scheduling, &tasks.set, &machine.platform);
    let profile = options.profile.as_ref().map(Choice::profile).transpose()?;
    let found = known::find(how, set, machine, profile.as_ref())?;
    let known = &found.known;
    let reserved = reserve::reserve(how, set, platform, &tasks.place, known)?;
    let mut plans = Vec::new();
    for (policy, stage) in how.all().zip(&reserved.stages) {
        plans.push(policy.plan(&how.setup(set, platform, stage.assignment.as_ref()))?);
    }
    let takes = known.takes(how, set.len());
    let intent = Intent {
        machine,
        tree: &Tree::new("/".as_ref()),
        cpus: &platform.in_cache_order(),
        set,
        stages: &reserved.stages,
        part,
        enforcement: how.enforcement,
        quantum: how.quantum,
        awake: options.awake,
        boundary: known.boundary(how, set.len())?,
        takes: &takes,
    };
    let findings = preflight::look(&intent);
    let early = options.early.unwrap_or_else(|| preflight::early(&intent));
    let of_set = found
        .findings
        .into_iter()
        .chain(reserved.findings)
        .collect();
    Ok(Seen {
        carried: Carried::User(plans),
        findings,
        of_set,
        early,
        stages: reserved.stages,
    })
}

/// Looks at a machine and a set for the engine in the kernel.
fn look_in_kernel(
    options: &Options,
    set: &TaskSet,
    machine: &Machine,
    part: Ratio,
    taken: InKernel,
) -> Seen {
    let how = &options.scheduling;
    let intent = Intent {
        machine,
        tree: &Tree::new("/".as_ref()),
        cpus: &machine.platform.in_cache_order(),
        set,
        stages: &taken.stages,
        part,
        enforcement: how.enforcement,
        quantum: how.quantum,
        awake: options.awake,
        boundary: None,
        takes: &[],
    };
    Seen {
        findings: preflight::look_in_kernel(&intent),
        of_set: taken.findings,
        early: Duration::ZERO,
        carried: Carried::Kernel(Box::new(taken.carried)),
        stages: taken.stages,
    }
}

/// The jobs of all tasks, and the time that they leave, as a run needs them.
struct Cast {
    performers: Vec<Performer>,
    workloads: Workloads,
    best_effort: Efforts,
    /// By name of best-effort work, how many units of its workload a round is.
    units: Vec<(String, u64)>,
}

/// Everything that takes the events of a run.
struct Recorders<S> {
    file: Option<FileSink<File>>,
    /// The caller's.
    observer: S,
    checker: Checker,
    statistics: Statistics,
    /// For the witness.
    told: Option<Told>,
}

impl<S: Sink> Sink for Recorders<S> {
    fn record(&mut self, event: Event) {
        if let Some(file) = &mut self.file {
            file.record(event);
        }
        self.observer.record(event);
        self.checker.record(event);
        self.statistics.record(event);
        if let Some(told) = &mut self.told {
            told.record(event);
        }
    }
}

impl<S> Recorders<S> {
    fn flush(&mut self) {
        if let Some(file) = &mut self.file {
            file.flush();
        }
    }
}

impl Planned<'_> {
    /// Runs it; every event goes to `observer`, too. Remarks on what may disturb the run go to
    /// `watch`.
    ///
    /// # Errors
    /// The preflight forbids it; colors, workloads, programs or files that cannot be had; the
    /// watchdog ended the run.
    pub fn run(self, watch: &dyn Watch, observer: impl Sink) -> Result<Ran> {
        self.remarks(watch);
        self.preflight.permit()?;
        let platform = &self.machine.platform;
        let cpus = platform.in_cache_order();
        let coloring = &self.options.coloring;
        let dispatchers = self.carried.dispatchers(cpus.len());
        let colored = colors::prepare(coloring, self.set, platform, dispatchers, watch)?;
        let counted = self.counted_by();
        let cast = self.cast(colored.as_ref(), watch)?;
        let mut recorders = self.recorders(observer)?;
        let changed = self.change(watch)?;
        let carrier = self.carried.by();
        let outcome = match self.carried {
            Carried::User(plans) => {
                let settings = Settings {
                    horizon: self.options.horizon,
                    enforcement: self.enforcement,
                    quantum: self.options.scheduling.quantum,
                    provider: colored.as_ref().map(Prepared::provider),
                    early: self.early,
                    release_at: self.release_at,
                    triggers: self.triggers.clone(),
                    best_effort: cast.best_effort,
                    standstills: self.options.standstills,
                    witness: self.options.witness,
                    ..Settings::default()
                };
                execute::run_in_turn(
                    &plans,
                    self.options.switch_every,
                    self.set,
                    cast.performers,
                    &settings,
                    &watch,
                    &mut recorders,
                    Recorders::flush,
                )
            }
            Carried::Kernel(carried) => {
                let provider = colored.as_ref().map(Prepared::provider);
                let colored = |p| Arc::new(Colored(p)) as Arc<dyn kernel::Surroundings>;
                let settings = kernel::Settings {
                    release_at: self.release_at,
                    triggers: self.triggers.clone(),
                    surroundings: provider.map(colored),
                    best_effort: cast.best_effort,
                    ..kernel::Settings::default()
                };
                let (set, flush) = (self.set, Recorders::flush);
                let (performers, recorders) = (cast.performers, &mut recorders);
                kernel::run(
                    *carried, set, performers, &settings, &watch, recorders, flush,
                )
                .map(in_kernel::outcome)
            }
        };
        drop(changed);
        if let Some(file) = recorders.file {
            file.finish()?;
        }
        watch.finish();
        let outcome = outcome?;
        let testimony = testimony(&outcome, recorders.told.as_ref(), self.options.tolerance);
        let colors = colored
            .as_ref()
            .map(|c| c.statement(self.set, watch))
            .transpose()?;
        Ok(report::Parts {
            engine: carrier,
            policy: self.options.scheduling.written(),
            platform: platform.name.clone(),
            set: self.set,
            cpus,
            findings: self.preflight.findings,
            workloads: cast.workloads,
            units: cast.units,
            summary: recorders.statistics.summary(),
            verdict: recorders.checker.finish(),
            released_at: self.begun.wall_at(outcome.origin).to_string(),
            outcome,
            colors,
            counted,
            testimony,
        }
        .report())
    }

    /// Says what may disturb the run, and what of the set it does not heed.
    fn remarks(&self, watch: &dyn Watch) {
        if let Some(engine) = self.preflight.findings.iter().find(|f| f.name == ENGINE) {
            let remedy = match engine.remedy.as_str() {
                "" => String::new(),
                remedy => format!("; {remedy}"),
            };
            watch.note(&format!("{ENGINE}: {}{remedy}", engine.seen));
        }
        if let Some(line) = disturbances(self.preflight.machine()) {
            watch.note(&line);
        }
        // What is said of this set is no matter of the machine, and concerns its deadlines.
        for finding in self
            .preflight
            .set()
            .iter()
            .filter(|f| f.level == Level::Warn)
        {
            watch.note(&format!(
                "{}: {}; {}",
                finding.name, finding.seen, finding.remedy
            ));
        }
        let extras = |what: fn(&model::Extras) -> bool| self.set.extras().iter().any(what);
        let ignored = match (
            extras(|x| !x.jitter.is_zero()),
            extras(|x| !x.blocking.is_zero()),
        ) {
            (true, true) => "`jitter` and `blocking` are",
            (true, false) => "`jitter` is",
            (false, true) => "`blocking` is",
            (false, false) => return,
        };
        watch.note(&format!(
            "{ignored} for `check` alone: this run releases every job when it arrives, and adds no blocking"
        ));
    }

    /// By what the misses of jobs are counted, where the policy finds working sets by them.
    fn counted_by(&self) -> Option<CountBy> {
        let line = match &self.carried {
            Carried::User(plans) => plans.iter().find_map(AnyPlan::profiler)?.line(),
            Carried::Kernel(carried) => carried.line?,
        };
        Some(CountBy::here(line))
    }

    /// Makes what does the jobs: calibrated work, or programs with their rights.
    fn cast(&self, colored: Option<&Prepared>, watch: &dyn Watch) -> Result<Cast> {
        let options = self.options;
        let door = match &options.socket {
            Some(path) => Some(Arc::new(JoinSocket::at(path, self.rights.user())?)),
            None => None,
        };
        let (performers, workloads) = performers(
            self.set,
            (self.part, options.until, self.counted_by()),
            options.programs_to.as_deref(),
            colored,
            door.as_ref(),
            &self.rights,
            watch,
        )?;
        let (best_effort, units) = best_effort(self.set, &self.rights)?;
        Ok(Cast {
            performers,
            workloads,
            best_effort,
            units,
        })
    }

    fn recorders<S: Sink>(&self, observer: S) -> Result<Recorders<S>> {
        let checks = Checks {
            tolerance: self.options.tolerance,
            ..Checks::for_trace(&self.header)
        };
        let file = match &self.options.trace {
            Some(path) => Some(FileSink::create(path, &self.header)?),
            None => None,
        };
        Ok(Recorders {
            file,
            observer,
            checker: Checker::new(self.header.clone(), checks)?,
            statistics: Statistics::new(&self.header, false),
            told: self.options.witness.then(|| Told::new(self.set.len())),
        })
    }

    /// Changes settings for the run only: the kernel restores them, whatever happens to this
    /// process.
    fn change(&self, watch: &dyn Watch) -> Result<Changed> {
        let mut changed = Changed::new();
        if self.options.awake {
            changed.keep_processors_awake()?;
            watch.note("processors are kept awake until the end of the run");
        }
        if let Some(at) = self.release_at {
            watch.note(&format!(
                "all tasks are released at {}",
                self.begun.wall_at(at)
            ));
        }
        Ok(changed)
    }
}

/// What the kernel's record of switches says of the trace, where both are there.
fn testimony(outcome: &Outcome, told: Option<&Told>, tolerance: Duration) -> Option<Testimony> {
    let run = witness::Run {
        threads: &outcome.threads,
        origin: outcome.origin,
        end: outcome.end,
        // What kept a dispatcher from waking up keeps its decision from coming true, too.
        allowed: tolerance
            .saturating_add(outcome.latest)
            .saturating_add(outcome.latest),
    };
    Some(witness::compare(outcome.switches.as_ref()?, told?, &run))
}

/// # Errors
/// No such user.
fn rights(asked: &model::Rights) -> Result<Rights> {
    Ok(match asked {
        model::Rights::User(name) => Rights::Of(User::find(name).map_err(|e| e.at("--user"))?),
        model::Rights::Keep => Rights::Kept,
        model::Rights::Unsaid | model::Rights::Drop => Rights::Dropped,
    })
}

/// # Errors
/// Several policies without a time for each, or a time for one alone.
fn turns(how: &Scheduling, switch_every: Option<Duration>) -> Result<()> {
    match (how.then().is_empty(), switch_every) {
        (false, None) => Err(Error::new(
            "several policies are given, and not how long each of them rules",
        )
        .at("--policy")
        .remedy("add such as `--switch-every 5s`, or give one policy")),
        (true, Some(_)) => Err(Error::new("there is only one policy, nothing to switch to")
            .at("--switch-every")
            .remedy("give several, such as `--policy g-edf,p-edf`")),
        _ => Ok(()),
    }
}

/// What releases the tasks that have a trigger; what is not there yet is made by the run.
fn triggers(how: &Scheduling, set: &TaskSet) -> Result<Triggers> {
    let triggered = set
        .ids()
        .find(|id| set.details(*id).is_some_and(|d| d.trigger.is_some()));
    let by_quanta = |spec: &&policy::Spec| spec.info().quantum_driven;
    if let (Some(task), Some(spec)) = (triggered, how.all().find(by_quanta)) {
        return Err(Error::new(format!(
            "`{spec}` takes releases at multiples of the quantum alone, and a trigger may come at any time"
        ))
        .at(format!("task {}", set.name(task)))
        .remedy("choose another policy, or leave the trigger out"));
    }
    Triggers::open(set)
}

/// The machine with only these processors to use.
fn on(mut machine: Machine, cpus: Option<&CpuSet>) -> Result<Machine> {
    if let Some(cpus) = cpus {
        let usable = machine.platform.usable();
        if cpus.is_empty() || !cpus.is_subset(&usable) {
            return Err(
                Error::new(format!("not all of the processors `{cpus}` can be used"))
                    .at("--cpus")
                    .remedy(format!("choose among {usable}")),
            );
        }
        for processor in &mut machine.platform.processors {
            processor.usable &= cpus.contains(processor.id);
        }
    }
    Ok(machine)
}

fn header(
    set: &TaskSet,
    machine: &Machine,
    stages: Vec<Stage>,
    enforcement: Enforcement,
    command: &str,
) -> Header {
    let provenance = Provenance {
        machine: machine.fact("model").unwrap_or_default().to_owned(),
        kernel: machine.fact("kernel").unwrap_or_default().to_owned(),
        settings: machine.settings(),
        ..provenance(command)
    };
    Header {
        origin: Origin::Real,
        enforcement: Some(enforcement),
        stages: stages.clone(),
        ..Header::simulated(
            set.clone(),
            machine.platform.clone(),
            stages[0].clone(),
            provenance,
        )
    }
}
