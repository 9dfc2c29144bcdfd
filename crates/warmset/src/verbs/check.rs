//! `warmset check`: decides whether a task set meets its deadlines, under which policies, and with what to spare.

use super::{check_batch, check_table};
use crate::Answer;
use crate::console::{self, Console, Format};
use analyze::Guarantee;
use analyze::policies::{self, Costs, Policy};
use model::{
    Duration, Error, Load, Platform, Profile, Result, Statistic, TaskSet, document, files, taskfile,
};
use std::path::{Path, PathBuf};

/// Options of `warmset check`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = help())]
pub struct Args {
    /// The task set, in TOML
    tasks: Option<PathBuf>,
    /// A built-in platform such as `xeon-l7455` or `symmetric:m=8`, or a file [default: this machine]
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    platform: Option<String>,
    /// What preemptions and migrations cost: a built-in profile such as `xeon-l7455`, or a file [default: nothing]
    #[arg(long, value_name = "NAME", conflicts_with = "batch")]
    profile: Option<String>,
    /// The cache delay of one preemption or migration, the same for every task; with --profile: for tasks without `wss`
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        conflicts_with = "batch"
    )]
    cpmd: Option<Duration>,
    /// With --profile: the delays of a machine that is idle, or under load
    #[arg(long, value_enum, default_value = "load", requires = "profile")]
    load: LoadArg,
    /// With --profile: which number of a delay [default: maximum for hard, average for soft]
    #[arg(long, value_enum, requires = "profile")]
    statistic: Option<StatisticArg>,
    /// No deadline may be missed [default, unless every task says `soft = true`]
    #[arg(long, conflicts_with_all = ["soft", "batch"])]
    hard: bool,
    /// Deadlines may be missed by a bounded time
    #[arg(long, conflicts_with = "batch")]
    soft: bool,
    /// Policies to judge: p-edf, g-edf, c-edf:l2, c-edf:size=2, p-rm, p-fp (order of the set), p-fp:dm, g-fp:dm, edf-fm, edf-wm,
    /// nps-f, nps-f:delta=2, c-nps-f:l3, pd2, ca-edf (soft only) [default: all that the platform's caches and the guarantee suggest]
    #[arg(long, value_name = "NAMES", conflicts_with = "batch")]
    policy: Option<String>,
    /// Show the tests, the bounds of each task and the assignment of every policy, not of the first only
    #[arg(long, conflicts_with = "batch")]
    explain: bool,
    /// How to print it
    #[arg(long, value_enum, default_value_t, conflicts_with = "batch")]
    format: Format,
    #[command(flatten)]
    batch: check_batch::BatchArgs,
    /// Write the answer to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum LoadArg {
    /// Nothing else runs
    Idle,
    /// Every processor's caches are thrashed
    Load,
}

#[derive(Clone, Copy, Debug, clap::ValueEnum)]
enum StatisticArg {
    /// Mean of the samples
    Average,
    /// Largest sample
    Maximum,
}

fn help() -> String {
    format!(
        "\
A task set is a TOML file with a table a task:
    [[task]]
    name = \"camera\"
    wcet = \"4ms\"
    period = \"33ms\"
    deadline = \"33ms\"     # default: the period
    wss = \"256KiB\"        # working set of a job: what its cache delay is read by

    warmset check tasks.toml
    warmset check tasks.toml --platform xeon-l7455 --profile xeon-l7455 --policy p-edf,c-edf:l2,g-edf
    warmset check tasks.toml --cpmd 500us --soft --format json

The status is 0 if at least one of the policies is shown to hold the set, 1 if none is. The policy under which WCETs may grow most
comes first. The largest CPMD is the longest cache delay of a job, the same for every task, up to which the set passes.

With a profile that has overheads all seven are charged (002 §6.1); with cache delays alone, or --cpmd, one delay a job (000 §2).
The answer says which.

{}",
        check_batch::HELP
    )
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match (&args.batch.batch, &args.tasks) {
        (Some(batch), _) => check_batch::run(batch, args.batch.tests.as_deref(), args.output.as_deref()),
        (None, Some(path)) => judge(path, &args),
        (None, None) => {
            Err(Error::new("no task set is given").remedy("name a TOML file, or a batch file with --batch"))
        }
    }
}

fn judge(path: &Path, args: &Args) -> Result<Answer> {
    let set = read(path)?;
    let platform = match &args.platform {
        Some(name) => Platform::find(name)?,
        None => machine::this_machine()?.platform,
    };
    let profile = args.profile.as_deref().map(Profile::find).transpose()?;
    let costs = Costs {
        cpmd: args.cpmd,
        profile: profile.as_ref(),
        load: match args.load {
            LoadArg::Idle => Load::Idle,
            LoadArg::Load => Load::Load,
        },
        statistic: args.statistic.map(|s| match s {
            StatisticArg::Average => Statistic::Average,
            StatisticArg::Maximum => Statistic::Maximum,
        }),
    };
    let all_soft = set.ids().all(|t| set.details(t).is_some_and(|d| d.soft));
    let guarantee = if args.soft || (all_soft && !args.hard) {
        Guarantee::Soft
    } else {
        Guarantee::Hard
    };
    let policies = match &args.policy {
        Some(names) => Policy::list(names).map_err(|e| e.at("--policy"))?,
        None => Policy::all_for(&platform, guarantee)?,
    };
    let console = Console::new()?;
    let judgment = policies::judge(&set, &platform, &policies, guarantee, &costs, &console)?;
    console.finish();
    let text = match args.format {
        Format::Json => document::pretty(&judgment)?,
        Format::Table => check_table::text(
            &path.display().to_string(),
            &judgment,
            profile.as_ref(),
            args.explain,
        ),
    };
    console::give(&text, args.output.as_deref())?;
    Ok(if judgment.is_schedulable() {
        Answer::Yes
    } else {
        Answer::No
    })
}

/// Reads a task file; errors name it.
fn read(path: &Path) -> Result<TaskSet> {
    taskfile::from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))
}
