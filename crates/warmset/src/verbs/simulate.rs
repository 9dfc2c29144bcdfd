//! `warmset simulate`: runs a task set in virtual time under a policy and says what came of its jobs.

use super::scheduling::{self, Scheduling};
use super::{simulate_batch, simulate_inputs, simulate_show};
use crate::Answer;
use crate::console::Console;
use crate::options::{Answered, Charged, On, Seed, new_file};
use model::files::Aside;
use model::watch::Watch;
use model::{Duration, Error, Platform, Provenance, Result, Statistic, TaskSet, files, taskfile};
use policy::Spec;
use policy::registry::Needs;
use simulate::{
    Costs, Distributions, Ending, Enforcement, Execution, Lateness, Releases, Scenario, Summary, Traced,
};
use std::path::PathBuf;
use trace::{FileSink, Header, Stage};

/// Options of `warmset simulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLE, after_long_help = LONG_HELP.as_str())]
pub struct Args {
    /// The task set, in TOML
    #[arg(required_unless_present = "batch")]
    tasks: Option<PathBuf>,
    #[command(flatten)]
    scheduling: Scheduling,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    charged: Charged,
    /// How long to simulate [default: one hyperperiod, at most 60 s]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    horizon: Option<Duration>,
    /// `periodic`, `sporadic:PART` (gaps up to that part of a period), `sporadic:DISTRIBUTION`, or a file with release times
    #[arg(long, value_name = "HOW", default_value = "periodic")]
    releases: String,
    /// How long after their arrivals jobs of tasks with `jitter` are released
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    jitter: JitterArg,
    /// Whose timer releases jobs, where that is another processor: `0` for all tasks, `camera=0,radar=1` for some
    #[arg(long, value_name = "WHERE")]
    release_on: Option<String>,
    /// A part of the WCET (`0.8`), a range of parts (`0.5..1.2`), a distribution of parts (`normal:0.7,0.1`), or a file
    #[arg(long, value_name = "HOW", default_value = "1")]
    execution: String,
    #[command(flatten)]
    seed: Seed,
    /// Stop at the first deadline miss, at the latest after 60 simulated seconds, and answer whether there was one
    #[arg(long)]
    brute_force: bool,
    /// Write every event to a trace
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    trace: Option<PathBuf>,
    /// Simulate every task set of a batch file, one JSON line each; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tasks", "platform", "processors", "assignment", "profile", "release_on", "trace"
    ])]
    batch: Option<String>,
    #[command(flatten)]
    answered: Answered,
}

/// [`Lateness`] on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum JitterArg {
    /// After a random part of their jitter
    #[default]
    Random,
    /// The first job of each task after all of it, the others at once
    First,
    /// At once
    None,
}

const EXAMPLE: &str = "\
Example: two processors, ten seconds, all events kept
    warmset simulate tasks.toml --policy g-edf -m 2 --for 10s --trace run.wtrace";

static LONG_HELP: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
    let policies = scheduling::policies();
    format!(
        "{EXAMPLE}\n\n{policies}\n{}\n\nExit status 1: a task that is not `soft` missed a deadline.\n\n{}",
        simulate_inputs::HELP,
        simulate_batch::HELP
    )
});

/// How long brute force looks for a miss (002 §6.3), and the longest default.
const LONGEST_DEFAULT: Duration = Duration::from_secs(60);

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let how = &args.scheduling;
    how.only_one()?;
    let mut scenario = Scenario {
        execution: Execution::default(),
        enforcement: how.enforcement.into(),
        quantum: how.quantum,
        stop_at_miss: args.brute_force,
        seed: args.seed.seed,
        ..Scenario::default()
    };
    if let Some(batch) = &args.batch {
        args.answered.printed.lines_only()?;
        scenario.releases = simulate_inputs::releases(&args.releases, None)?;
        scenario.execution = simulate_inputs::execution(&args.execution, None)?;
        return simulate_batch::run(
            batch,
            how,
            args.jitter,
            args.horizon,
            &scenario,
            args.answered.output.as_deref(),
        );
    }
    let Some(path) = &args.tasks else {
        return Err(Error::new("no task set is given").remedy("name a TOML file, or use --batch"));
    };
    let set = taskfile::from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))?;
    let platform = args.on.or_this_machine()?;
    scenario.releases = simulate_inputs::releases(&args.releases, Some(&set))?;
    if let Some(text) = &args.release_on {
        scenario.release_on = simulate_inputs::release_on(text, &set, &platform)?;
    }
    scenario.execution = simulate_inputs::execution(&args.execution, Some(&set))?;
    scenario.horizon = args.horizon.unwrap_or_else(|| match args.brute_force {
        true => LONGEST_DEFAULT,
        false => default_horizon(&set),
    });
    scenario.lateness = lateness(how.policy(), args.jitter, &set, &scenario.releases)?;
    scenario.check(&set)?;
    let costs = costs(&args, &set, &platform)?;
    let assignment = how.assignment(0, how.policy(), &set, &platform, path)?;
    let plan = how
        .policy()
        .plan(&how.setup(&set, &platform, assignment.as_ref()))?;
    let console = Console::new()?;
    let costs = costs.as_ref();
    if !set.best_effort().is_empty() {
        console.note("best-effort work takes no time from tasks, and is left out");
    }
    if set.extras().iter().any(|x| !x.blocking.is_zero()) {
        console.note("blocking is not simulated: no job here holds another one up but by its priority");
    }
    let triggered = |id: &model::TaskId| set.details(*id).is_some_and(|d| d.trigger.is_some());
    if let (Some(task), Releases::Periodic) = (set.ids().find(triggered), &scenario.releases) {
        console.note(&format!(
            "task {} is released by a trigger: it is simulated as densely as its period permits; for random gaps give `--releases sporadic:PART`",
            set.name(task)
        ));
    }
    for missing in costs.iter().flat_map(|c| &c.missing) {
        console.note(missing);
    }
    let distributions = Distributions::new(&set);
    let (summary, distributions) = match &args.trace {
        None => simulate::simulate(plan, &set, &platform, &scenario, costs, &console, distributions)?,
        Some(file) => {
            let stage = how.stage(how.policy(), assignment.clone())?;
            let header = Header {
                charges: costs.as_ref().map(|c| c.charges(how.quantum)),
                ..header(&args, &set, &platform, stage, &scenario)
            };
            // Aside: a trace of before stays until this one is whole.
            let sink = FileSink::new(Aside::create(file)?, file, &header)?;
            let observer = (distributions, Traced(sink));
            let (summary, (distributions, Traced(sink))) =
                simulate::simulate(plan, &set, &platform, &scenario, costs, &console, observer)?;
            sink.finish()?.finish()?;
            (summary, distributions)
        }
    };
    console.finish();
    let shown = simulate_show::Shown {
        policy: how.policy().to_string(),
        platform: platform.name.clone(),
        set: &set,
        summary: &summary,
        added_up: summary.added_up(&set, &distributions),
        scenario: &scenario,
    };
    shown.give(&args.answered)?;
    if summary.ending == Ending::Interrupted {
        return Err(Error::new(format!(
            "the simulation was interrupted after {}",
            Duration::from_nanos(summary.end.nanos()).rounded()
        ))
        .remedy("what is shown is true up to then; run it again for the rest"));
    }
    Ok(answer(&set, &summary, args.brute_force))
}

/// How long after their arrivals jobs are released.
///
/// # Errors
/// A policy whose slices, turns, slots or quanta count from the release.
pub fn lateness(policy: &Spec, how: JitterArg, set: &TaskSet, releases: &Releases) -> Result<Lateness> {
    let has_jitter = |id: &model::TaskId| set.extras().get(id.index()).is_some_and(|x| !x.jitter.is_zero());
    let Some(task) = set.ids().find(has_jitter) else {
        return Ok(Lateness::None);
    };
    if how == JitterArg::None || matches!(releases, Releases::Given(_)) {
        return Ok(Lateness::None);
    }
    let needs = (policy.info().needs)(policy)?;
    if policy.info().quantum_driven || !matches!(needs, Needs::Nothing | Needs::Clusters(_)) {
        return Err(Error::new(format!(
            "`{policy}` does not take release jitter, and `{}` has some",
            set.name(task)
        ))
        .remedy("choose another policy, or `--jitter none` to release jobs when they arrive"));
    }
    Ok(match how {
        JitterArg::First => Lateness::First(Lateness::most(set)),
        _ => Lateness::Random(Lateness::most(set)),
    })
}

/// No, if a hard task missed a deadline; under brute force, if any did.
fn answer(set: &TaskSet, summary: &Summary, any: bool) -> Answer {
    let missed = set.ids().any(|id| {
        let hard = !set.details(id).is_some_and(|d| d.soft);
        (hard || any) && summary.tasks[id.index()].misses > 0
    });
    let first = summary
        .first_miss
        .is_some_and(|miss| any || !set.details(miss.task).is_some_and(|d| d.soft));
    if missed || first { Answer::No } else { Answer::Yes }
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
fn costs(args: &Args, set: &TaskSet, platform: &Platform) -> Result<Option<Costs>> {
    let Some(profile) = args.charged.profile()? else {
        return Ok(None);
    };
    Costs::from_profile(
        &profile,
        args.scheduling.policy().info().name,
        set,
        platform,
        args.charged.load(),
        args.charged.statistic().unwrap_or(Statistic::Maximum),
    )
    .map(Some)
    .map_err(|e| e.at("--profile"))
}

fn header(args: &Args, set: &TaskSet, platform: &Platform, stage: Stage, scenario: &Scenario) -> Header {
    let provenance = Provenance {
        seed: Some(args.seed.seed),
        ..scheduling::provenance()
    };
    Header {
        release_on: scenario.release_on.clone(),
        releases: match scenario.releases {
            Releases::Periodic => trace::Releases::Periodic,
            Releases::Sporadic(_) | Releases::SporadicBy(_) => trace::Releases::Sporadic,
            Releases::Given(_) => trace::Releases::Given,
        },
        enforcement: match scenario.enforcement {
            Enforcement::Off if scenario.may_overrun() => trace::Enforcement::Off,
            Enforcement::Off => trace::Enforcement::None,
            Enforcement::PerQuantum => trace::Enforcement::Quantum,
            Enforcement::Exact => trace::Enforcement::Exact,
        },
        ..Header::simulated(set.clone(), platform.clone(), stage, provenance)
    }
}
