//! `warmset simulate`: runs a task set in virtual time under a policy and says what came of its
//! jobs.

use super::simulate_show;
use crate::console::{Console, Screened};
use crate::options::{Answered, Charged, On, Seed, new_file};
use crate::scheduling_options::{SchedulingArgs, policies};
use crate::{Answer, command};
use app::output::Output;
use app::simulate::{Caches, Jitter, Options, batch};
use app::{Choice, Tasks};
use model::{Duration, Error, Result};
use std::path::PathBuf;

/// Options of `warmset simulate`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLE, after_long_help = LONG_HELP.as_str())]
pub struct Args {
    /// The task set, in TOML
    #[arg(required_unless_present = "batch")]
    tasks: Option<PathBuf>,
    #[command(flatten)]
    scheduling: SchedulingArgs,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    charged: Charged,
    /// How long to simulate [default: one hyperperiod, at most 60 s]
    #[arg(long = "for", value_name = "TIME", allow_hyphen_values = true)]
    horizon: Option<Duration>,
    /// `periodic`, `sporadic:PART` (gaps up to that part of a period), `sporadic:DISTRIBUTION`, or
    /// a file with release times
    #[arg(long, value_name = "HOW", default_value = "periodic")]
    releases: String,
    /// How long after their arrivals jobs of tasks with `jitter` are released
    #[arg(long, value_name = "HOW", value_enum, default_value_t)]
    jitter: JitterArg,
    /// Whose timer releases jobs, where that is another processor: `0` for all tasks,
    /// `camera=0,radar=1` for some
    #[arg(long, value_name = "WHERE")]
    release_on: Option<String>,
    /// A part of the WCET (`0.8`), a range of parts (`0.5..1.2`), a distribution of parts
    /// (`normal:0.7,0.1`), or a file
    #[arg(long, value_name = "HOW", default_value = "1")]
    execution: String,
    /// Let jobs get on as the platform's caches serve their accesses: walks of the working set of
    /// each task (see docs/cache.md)
    #[arg(long)]
    cache: bool,
    /// How often a job walks its working set
    #[arg(long, value_name = "N", requires = "cache", default_value_t = 3)]
    passes: u32,
    /// Jobs of one number have data of their own, as successive frames of a video have
    #[arg(long, requires = "cache")]
    fresh: bool,
    /// What a job computes for each access, beside what it waits for caches: a few cycles; jobs
    /// then take less or more than their WCET [default: what is left of the WCET where all miss]
    #[arg(long, value_name = "TIME", requires = "cache")]
    access: Option<Duration>,
    #[command(flatten)]
    seed: Seed,
    /// Stop at the first deadline miss, at the latest after 60 simulated seconds, and answer
    /// whether there was one
    #[arg(long)]
    brute_force: bool,
    /// Write every event to a trace
    #[arg(long, value_name = "FILE", value_parser = new_file)]
    trace: Option<PathBuf>,
    /// Simulate every task set of a batch file, one JSON line each; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tasks", "platform", "processors", "assignment", "profile", "release_on", "trace", "cache"
    ])]
    batch: Option<String>,
    #[command(flatten)]
    answered: Answered,
}

/// [`Jitter`] on the command line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
enum JitterArg {
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
    let policies = policies();
    format!(
        "{EXAMPLE}\n\n{policies}\n{}\n\nExit status 1: a task that is not `soft` missed a deadline.\n\n{}",
        INPUTS, BATCH
    )
});

/// What `--help` says about releases and execution times.
const INPUTS: &str = "\
Releases (--releases):
    periodic                      one period apart
    sporadic:PART                 one period and a gap apart, uniform up to that part of the period
    sporadic:DISTRIBUTION         the same, the gap drawn as a part of the period: sporadic:exponential:0.5
    FILE                          a line for each task with the release times: 0ms 12ms 30ms
Execution times (--execution), in parts of the WCET; above one a job overruns it:
    PART, LOW..HIGH               always the same; uniform
    DISTRIBUTION                  see below
    discrete:PART=WEIGHT,…        one of these parts: discrete:0.5=90,1=9,1.5=1
    FILE                          a line for each task with times, used job by job and then from the beginning again
    sample:FILE                   a line for each task with times as measured: each job takes one at random; 12ms*30 is 30 of them
Distributions, cut off at 0 and 1 (gaps: at 0 and 1000), or at what stands behind an `@`:
    uniform:LOW-HIGH  normal:MEAN,DEVIATION  exponential:MEAN  weibull:SHAPE,SCALE  gumbel:LOCATION,SCALE
    such as normal:0.7,0.1@0.4-1";

/// What `--help` says about the batch mode.
const BATCH: &str = "\
Batch mode: each line of the file is a task set with all times in integer microseconds,
    {\"id\": 7, \"m\": 4, \"tasks\": [{\"wcet\": 4000, \"period\": 33000, \"deadline\": 33000}]}
and each is answered in order by a line, here cut in two, such as
    {\"schema_version\":1,\"id\":7,\"response_ns\":[[4000000,4000000]],
     \"misses\":0,\"preemptions\":0,\"migrations\":0}
with the response time of every job from its arrival in nanoseconds, null for one unfinished at the horizon. A line's \"horizon_us\" wins over --for; \
for p-edf, p-rm and p-fp its \"assign\" fixes the processor of every task. A set that cannot be partitioned answers null.

    warmset simulate --batch sets.jsonl --policy g-edf";

impl From<JitterArg> for Jitter {
    fn from(how: JitterArg) -> Self {
        match how {
            JitterArg::Random => Jitter::Random,
            JitterArg::First => Jitter::First,
            JitterArg::None => Jitter::None,
        }
    }
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    if args.batch.is_some() && args.scheduling.has_plan() {
        return Err(
            Error::new("a plan is for one task set, and a batch has many")
                .at("--plan")
                .remedy("name a TOML file, or leave the plan out"),
        );
    }
    let (scheduling, tasks) = match &args.tasks {
        Some(path) if args.batch.is_none() => {
            let (scheduling, tasks) = args.scheduling.planned(Tasks::read(path)?)?;
            (scheduling, Some(tasks))
        }
        _ => (args.scheduling.scheduling(), None),
    };
    let options = Options {
        scheduling,
        on: args.on.choice(),
        charged: args.charged.choice(&args.on.choice())?,
        horizon: args.horizon,
        releases: Choice::Named(args.releases),
        jitter: args.jitter.into(),
        release_on: args.release_on,
        execution: Choice::Named(args.execution),
        seed: args.seed.seed,
        brute_force: args.brute_force,
        caches: args.cache.then_some(Caches {
            passes: args.passes,
            fresh: args.fresh,
            access: args.access,
        }),
        trace: args.trace,
        command: command::without_outputs(),
    };
    options.scheduling.only_one()?;
    if let Some(batch) = &args.batch {
        args.answered.printed.lines_only()?;
        let console = Console::new()?;
        let mut screen = Screened;
        let output = Output::open(args.answered.output.as_deref(), &mut screen)?;
        return batch::run(batch, &options, output, &console).map(|_| Answer::Yes);
    }
    let Some(tasks) = tasks else {
        return Err(Error::new("no task set is given").remedy("name a TOML file, or use --batch"));
    };
    let console = Console::new()?;
    let simulated = app::simulate::simulate(&tasks, &options, &console)?;
    let table = |look| simulate_show::table(&simulated, options.brute_force, look);
    args.answered.give(table, &simulated)?;
    simulated.complete()?;
    Ok(match simulated.missed {
        true => Answer::No,
        false => Answer::Yes,
    })
}
