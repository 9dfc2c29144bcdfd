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
mod planning;
mod recorders;
mod report;
mod reserve;

pub use engine::{Carrier, ENGINE, Engine};
pub use known::RESERVES;
pub use looked::Preflight;
pub use moment::{Clocks, Moment};
pub use planning::plan;
pub use report::{BestEffort, Program, Ran, Threads, Times, Trigger, Workload};

use crate::Choice;
use crate::scheduling::Scheduling;
use ::trace::{Header, Sink};
use colors::{Coloring, Prepared};
use execute::preflight::Level;
use execute::witness::{self, Testimony, Told};
use execute::{Efforts, JoinSocket, Outcome, Performer, Rights, Settings, Triggers};
use in_kernel::Colored;
use looked::disturbances;
use machine::Machine;
use machine::settings::Settings as Changed;
use model::watch::Watch;
use model::{CpuSet, Duration, Enforcement, Profile, Ratio, Result, TaskSet};
use performers::{Workloads, best_effort, performers};
use policy::AnyPlan;
use recorders::Recorders;
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

/// The jobs of all tasks, and the time that they leave, as a run needs them.
struct Cast {
    performers: Vec<Performer>,
    workloads: Workloads,
    best_effort: Efforts,
    /// By name of best-effort work, how many units of its workload a round is.
    units: Vec<(String, u64)>,
}

impl Planned<'_> {
    /// Runs it; every event goes to `observer`, too. Remarks on what may disturb the run go to
    /// `watch`.
    ///
    /// # Errors
    /// The preflight forbids it; colors, workloads, programs or files that cannot be had; the
    /// watchdog ended the run.
    pub fn run(self, watch: &dyn Watch, observer: impl Sink + Send) -> Result<Ran> {
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
