//! Runs a task set in virtual time under a policy, and says what came of its jobs.

pub mod batch;
pub mod caches;
mod inputs;
mod watched;

pub use caches::{Caches, Profiled, TaskCaches};
pub use inputs::part_of;

use crate::scheduling::Scheduling;
use crate::{Charged, Choice, On, Tasks, provenance};
use model::files::Aside;
use model::watch::Watch;
use model::{
    Duration, Enforcement, Error, Instant, Platform, Provenance, Result, Statistic, TaskSet,
};
use policy::Spec;
use policy::catalog::Needs;
use serde::Serialize;
use simulate::{Costs, Distributions, Ending, Execution, Lateness, Releases, Scenario, Summary};
use std::path::PathBuf;
use trace::{FileSink, Header, Stage, Thrashing};
use watched::Watched;

/// How a task set is simulated. By default under `g-edf` on this machine, for one hyperperiod of
/// at most 60 s, released periodically, each job for its WCET, at no cost.
#[derive(Clone, Debug)]
pub struct Options {
    /// The policy, and who runs where.
    pub scheduling: Scheduling,
    /// The platform.
    pub on: On,
    /// What preemptions, migrations and the scheduler cost.
    pub charged: Charged,
    /// How long; `None`: one hyperperiod after the last phase, at most 60 s.
    pub horizon: Option<Duration>,
    /// When jobs are released.
    pub releases: Choice<Releases>,
    /// How long after their arrivals jobs of tasks with jitter are released.
    pub jitter: Jitter,
    /// Whose timer releases jobs, where that is another processor: `0` for all tasks,
    /// `camera=0,radar=1` for some.
    pub release_on: Option<String>,
    /// How long jobs execute, in parts of their WCET.
    pub execution: Choice<Execution>,
    /// Seed of all random choices. Default: 1.
    pub seed: u64,
    /// Stop at the first deadline miss, at the latest after 60 simulated seconds.
    pub brute_force: bool,
    /// Let jobs get on as the platform's caches serve their accesses, instead of by their execution
    /// times.
    pub caches: Option<Caches>,
    /// Write every event to this trace.
    pub trace: Option<PathBuf>,
    /// The command that simulates the same again, for the head of the trace.
    pub command: String,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            scheduling: Scheduling::default(),
            on: On::default(),
            charged: Charged::default(),
            horizon: None,
            releases: Choice::Value(Releases::Periodic),
            jitter: Jitter::default(),
            release_on: None,
            execution: Choice::Value(Execution::default()),
            seed: 1,
            brute_force: false,
            caches: None,
            trace: None,
            command: String::new(),
        }
    }
}

impl Options {
    /// The scenario as far as it depends on no set.
    fn scenario(&self) -> Scenario {
        Scenario {
            execution: Execution::default(),
            enforcement: self.scheduling.enforcement,
            quantum: self.scheduling.quantum,
            stop_at_miss: self.brute_force,
            seed: self.seed,
            ..Scenario::default()
        }
    }

    /// Does nothing else say how long jobs take, where caches do?
    fn fit_caches(&self) -> Result<()> {
        let given = match (&self.charged.profile, &self.execution) {
            (Some(_), _) => "--profile",
            (None, Choice::Value(execution)) if *execution == Execution::default() => return Ok(()),
            (None, Choice::Named(text)) if text == "1" => return Ok(()),
            (None, _) => "--execution",
        };
        Err(
            Error::new("the caches decide how long jobs take, and something else is to do so, too")
                .at(given)
                .remedy("leave it out, or simulate without `--cache`"),
        )
    }

    /// The scenario of a set.
    ///
    /// # Errors
    /// Words for releases or execution times that are none; what is out of range for the set.
    pub fn scenario_of(&self, set: &TaskSet, platform: &Platform) -> Result<Scenario> {
        let mut scenario = Scenario {
            releases: inputs::releases_of(&self.releases, Some(set))?,
            ..self.scenario()
        };
        if let Some(text) = &self.release_on {
            scenario.release_on = inputs::release_on(text, set, platform)?;
        }
        scenario.execution = inputs::execution_of(&self.execution, Some(set))?;
        scenario.horizon = self.horizon.unwrap_or_else(|| match self.brute_force {
            true => LONGEST_DEFAULT,
            false => default_horizon(set),
        });
        scenario.lateness = lateness(
            self.scheduling.policy(),
            self.jitter,
            set,
            &scenario.releases,
        )?;
        scenario.check(set)?;
        Ok(scenario)
    }
}

/// How long after their arrivals jobs of tasks with jitter are released.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Jitter {
    /// After a random part of their jitter.
    #[default]
    Random,
    /// The first job of each task after all of it, the others at once.
    First,
    /// At once.
    None,
}

/// What came of it. JSON: as `warmset simulate --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Simulated {
    /// The policy.
    pub policy: String,
    /// The platform.
    pub platform: String,
    /// Why it ended: `horizon`, `miss` or `interrupt`.
    pub ended_by: &'static str,
    /// The miss that became known first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub first_miss: Option<FirstMiss>,
    /// The statistics, as of a trace of the run.
    #[serde(flatten)]
    pub added_up: trace::Summary,
    /// What the caches did, by task, where they were simulated.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub caches: Vec<TaskCaches>,
    /// What the policy found of working sets, where it was to find them.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiled: Vec<Profiled>,
    /// Why it ended.
    #[serde(skip)]
    pub ending: Ending,
    /// When it ended, in virtual time.
    #[serde(skip)]
    pub end: Instant,
    /// Whether a deadline was missed that counts: of a task that is not soft, under brute force of
    /// any task.
    #[serde(skip)]
    pub missed: bool,
}

/// A deadline that was missed.
#[derive(Clone, Debug, Serialize)]
pub struct FirstMiss {
    /// The name of the task.
    pub task: String,
    /// The number of the job, from 1, as the papers count.
    pub job: u64,
    /// The deadline, in nanoseconds since the begin.
    #[serde(rename = "deadline_ns", serialize_with = "as_nanos")]
    pub deadline: Instant,
}

fn as_nanos<S: serde::Serializer>(time: &Instant, to: S) -> std::result::Result<S::Ok, S::Error> {
    to.serialize_u64(time.nanos())
}

impl Simulated {
    /// What the sums of an engine say of a set, where no events were watched.
    pub fn of(
        policy: String,
        set: &TaskSet,
        platform: &Platform,
        summary: &Summary,
        distributions: &Distributions,
    ) -> Self {
        Simulated {
            policy,
            platform: platform.name.clone(),
            ended_by: match summary.ending {
                Ending::Horizon => "horizon",
                Ending::Miss => "miss",
                Ending::Interrupted => "interrupt",
            },
            first_miss: summary.first_miss.map(|miss| FirstMiss {
                task: set.name(miss.task),
                job: miss.job + 1,
                deadline: miss.deadline,
            }),
            added_up: summary.added_up(set, distributions),
            caches: Vec::new(),
            profiled: Vec::new(),
            ending: summary.ending,
            end: summary.end,
            missed: missed(set, summary, summary.ending == Ending::Miss),
        }
    }

    /// Is the simulation complete?
    ///
    /// # Errors
    /// The user stopped it: what it says is true up to then.
    pub fn complete(&self) -> Result<()> {
        match self.ending {
            Ending::Interrupted => Err(Error::new(format!(
                "the simulation was interrupted after {}",
                Duration::from_nanos(self.end.nanos()).rounded()
            ))
            .remedy("what is shown is true up to then; run it again for the rest")),
            Ending::Horizon | Ending::Miss => Ok(()),
        }
    }
}

/// How long brute force looks for a miss (002 §6.3), and the longest default.
const LONGEST_DEFAULT: Duration = Duration::from_secs(60);

/// Simulates a task set. Remarks on what is not simulated go to `watch`.
///
/// # Errors
/// Several policies; a platform, profile or assignment that does not exist or does not fit; words
/// for releases or execution times that are none; a trace that cannot be written.
pub fn simulate(tasks: &Tasks, options: &Options, watch: &dyn Watch) -> Result<Simulated> {
    let (how, set) = (&options.scheduling, &tasks.set);
    how.only_one()?;
    let platform = options.on.platform()?;
    let scenario = options.scenario_of(set, &platform)?;
    let costs = costs(options, set, &platform)?;
    let mut cached = match options.caches {
        None => None,
        Some(how) => {
            options.fit_caches()?;
            Some(caches::cached(set, &platform, how, options.seed)?)
        }
    };
    let assignment = how.assignment(0, how.policy(), set, &platform, &tasks.place)?;
    let plan = how
        .policy()
        .plan(&how.setup(set, &platform, assignment.as_ref()))?;
    let costs = costs.as_ref();
    remarks(set, &scenario, costs, watch);
    let sink = match &options.trace {
        None => None,
        Some(file) => {
            let stage = how.stage(how.policy(), assignment)?;
            let header = Header {
                charges: costs.map(|c| c.charges(how.quantum)),
                ..header(options, set, &platform, stage, &scenario)
            };
            // Aside: a trace of before stays until this one is whole.
            Some(FileSink::new(Aside::create(file)?, file, &header)?)
        }
    };
    let policy = how.policy().to_string();
    let thrashing = Thrashing::of(set, &platform, [policy.as_str()]);
    let mut watched = Watched {
        distributions: Distributions::new(set),
        events: (sink, thrashing),
    };
    let run = simulate::Run {
        set,
        platform: &platform,
        scenario: &scenario,
        costs,
        watch,
    };
    let summary = watched.simulate(run, plan, cached.as_mut())?;
    let (sink, thrashing) = watched.events;
    if let Some(sink) = sink {
        sink.finish()?.finish()?;
    }
    watch.finish();
    if let Some(cached) = cached.as_ref().filter(|cached| cached.writes()) {
        crate::note_free(cached.shape(), watch);
    }
    if options.caches.is_some_and(|how| !how.fresh) && !summary.profiled.is_empty() {
        watch.note(
            "working sets are found by misses, and jobs use memory that those before have left in \
             the cache; with `--fresh` jobs of each number have memory of their own, as 003 assumes",
        );
    }
    let thrashed = thrashing.map(|t| t.told());
    let caches = cached.map_or_else(Vec::new, |c| TaskCaches::all(set, &c));
    let simulated = Simulated::of(policy, set, &platform, &summary, &watched.distributions);
    Ok(Simulated {
        added_up: trace::Summary {
            thrashed,
            ..simulated.added_up
        },
        caches,
        profiled: Profiled::all(set, &summary.profiled),
        missed: missed(set, &summary, options.brute_force),
        ..simulated
    })
}

/// Says what of the set is not simulated, or not as one might think.
fn remarks(set: &TaskSet, scenario: &Scenario, costs: Option<&Costs>, watch: &dyn Watch) {
    if !set.best_effort().is_empty() {
        watch.note("best-effort work takes no time from tasks, and is left out");
    }
    if set.extras().iter().any(|x| !x.blocking.is_zero()) {
        watch.note(
            "blocking is not simulated: no job here holds another one up but by its priority",
        );
    }
    let triggered = |id: &model::TaskId| set.details(*id).is_some_and(|d| d.trigger.is_some());
    if let (Some(task), Releases::Periodic) = (set.ids().find(triggered), &scenario.releases) {
        watch.note(&format!(
            "task {} is released by a trigger: it is simulated as densely as its period permits; for random gaps give `--releases sporadic:PART`",
            set.name(task)
        ));
    }
    for missing in costs.iter().flat_map(|c| &c.missing) {
        watch.note(missing);
    }
}

/// How long after their arrivals jobs are released.
///
/// # Errors
/// A policy whose slices, turns, slots or quanta count from the release.
pub fn lateness(
    policy: &Spec,
    how: Jitter,
    set: &TaskSet,
    releases: &Releases,
) -> Result<Lateness> {
    let has_jitter = |id: &model::TaskId| {
        set.extras()
            .get(id.index())
            .is_some_and(|x| !x.jitter.is_zero())
    };
    let Some(task) = set.ids().find(has_jitter) else {
        return Ok(Lateness::None);
    };
    if how == Jitter::None || matches!(releases, Releases::Given(_)) {
        return Ok(Lateness::None);
    }
    let needs = policy.needs()?;
    if policy.info().quantum_driven || !matches!(needs, Needs::Nothing | Needs::Clusters(_)) {
        return Err(Error::new(format!(
            "`{policy}` does not take release jitter, and `{}` has some",
            set.name(task)
        ))
        .remedy("choose another policy, or `--jitter none` to release jobs when they arrive"));
    }
    Ok(match how {
        Jitter::First => Lateness::First(Lateness::most(set)),
        _ => Lateness::Random(Lateness::most(set)),
    })
}

/// Whether a hard task missed a deadline; with `any`, whether any task did.
fn missed(set: &TaskSet, summary: &Summary, any: bool) -> bool {
    let missed = set.ids().any(|id| {
        let hard = !set.details(id).is_some_and(|d| d.soft);
        (hard || any) && summary.tasks[id.index()].misses > 0
    });
    let first = summary
        .first_miss
        .is_some_and(|miss| any || !set.details(miss.task).is_some_and(|d| d.soft));
    missed || first
}

/// One hyperperiod after the last phase, at most 60 s.
pub fn default_horizon(set: &TaskSet) -> Duration {
    let most = u128::from(LONGEST_DEFAULT.nanos());
    let mut hyperperiod: u128 = 1;
    for t in set.timings() {
        let period = u128::from(t.period.nanos());
        let (mut a, mut b) = (hyperperiod, period);
        while b > 0 {
            (a, b) = (b, a % b);
        }
        hyperperiod = hyperperiod / a * period;
        if hyperperiod >= most {
            return LONGEST_DEFAULT;
        }
    }
    let phase = set
        .ids()
        .filter_map(|id| set.details(id).map(|d| d.phase))
        .max()
        .unwrap_or_default();
    // Below 60 s, checked in the loop.
    Duration::from_nanos(hyperperiod as u64)
        .saturating_add(phase)
        .min(LONGEST_DEFAULT)
}

/// What the run is charged for, if a profile is given.
fn costs(options: &Options, set: &TaskSet, platform: &Platform) -> Result<Option<Costs>> {
    let Some(profile) = options.charged.profile()? else {
        return Ok(None);
    };
    Costs::from_profile(
        &profile,
        options.scheduling.policy().info().name,
        set,
        platform,
        options.charged.load,
        options.charged.statistic.unwrap_or(Statistic::Maximum),
    )
    .map(Some)
    .map_err(|e| e.at("--profile"))
}

fn header(
    options: &Options,
    set: &TaskSet,
    platform: &Platform,
    stage: Stage,
    scenario: &Scenario,
) -> Header {
    let provenance = Provenance {
        seed: Some(options.seed),
        ..provenance(&options.command)
    };
    Header {
        release_on: scenario.release_on.clone(),
        releases: match scenario.releases {
            Releases::Periodic => trace::Releases::Periodic,
            Releases::Sporadic(_) | Releases::SporadicBy(_) => trace::Releases::Sporadic,
            Releases::Given(_) => trace::Releases::Given,
        },
        enforcement: match scenario.enforcement {
            Enforcement::Off if !scenario.may_overrun() => None,
            how => Some(how),
        },
        ..Header::simulated(set.clone(), platform.clone(), stage, provenance)
    }
}
