//! `warmset check`: decides whether a task set meets its deadlines, under which policies, and with what to spare.

use super::{check_batch, check_table};
use crate::Answer;
use crate::console::Console;
use crate::options::{Answered, Charged, On};
use analyze::Guarantee;
use analyze::policies::{self, Costs, Policy, PolicyVerdict};
use model::assignmentfile::AssignmentFile;
use model::{Assignment, Duration, Error, Result, Statistic, TaskSet, files, taskfile};
use std::path::{Path, PathBuf};

/// Options of `warmset check`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = help())]
pub struct Args {
    /// The task set, in TOML
    tasks: Option<PathBuf>,
    #[command(flatten)]
    on: On,
    #[command(flatten)]
    charged: Charged,
    /// The cache delay of one preemption or migration, the same for every task; with --profile: for tasks without `wss`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    cpmd: Option<Duration>,
    /// No deadline may be missed [default, unless every task says `soft = true`]
    #[arg(long, conflicts_with = "soft")]
    hard: bool,
    /// Deadlines may be missed by a bounded time
    #[arg(long)]
    soft: bool,
    /// Policies to judge: p-edf, g-edf, c-edf:l2, c-edf:size=2, p-rm, p-fp (by `priority`, or the order of the set), p-fp:dm, g-fp:dm, edf-fm, edf-wm,
    /// nps-f, nps-f:delta=2, c-nps-f:l3, pd2, ca-edf (soft only) [default: all that the platform's caches and the guarantee suggest]
    #[arg(long, value_name = "NAMES")]
    policy: Option<String>,
    /// Judge who runs where in this file, as it is, under the one policy that --policy names: an answer of `check --format json`, or
    /// what `simulate --assignment` takes
    #[arg(long, value_name = "FILE", conflicts_with = "batch", requires = "policy")]
    assignment: Option<PathBuf>,
    /// Show the tests, the bounds of each task and the assignment of every policy, not of the first only
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    batch: check_batch::BatchArgs,
    #[command(flatten)]
    answered: Answered,
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
    cpus = \"0-1\"          # it runs there only; default: everywhere
    priority = 80         # for p-fp and g-fp: the larger, the more urgent
    blocking = \"40us\"     # the longest lock or non-preemptible section of less urgent jobs that holds it up
    jitter = \"100us\"      # from its arrival to its release, at most; deadlines count from the arrival

    warmset check tasks.toml
    warmset check tasks.toml --platform xeon-l7455 --profile xeon-l7455 --policy p-edf,c-edf:l2,g-edf
    warmset check tasks.toml --cpmd 500us --soft --format json

The status is 0 if at least one of the policies is shown to hold the set, 1 if none is. The policy under which WCETs may grow most \
comes first. The largest CPMD is the longest cache delay of a job, the same for every task, up to which the set passes.

With a profile that has overheads all seven are charged (002 §6.1). With a profile of cache delays alone a job is charged for \
the longest delay that it can cause another job, and for its own migrations and quanta. With --cpmd alone it is one delay a \
job (000 §2). \
The answer says which.

The answer in JSON has an assignment for each policy that holds: who runs where, budgets, slots, reserved quanta. `warmset simulate` \
and `warmset run` take it by `--assignment`, so that what runs is what was judged.

{}",
        check_batch::HELP
    )
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match (&args.batch.batch, &args.tasks) {
        (Some(batch), _) => {
            args.answered.printed.lines_only()?;
            check_batch::run(batch, &args.batch, args.answered.output.as_deref())
        }
        (None, _) if args.batch.tests.is_some() => Err(Error::new(
            "tests are chosen for a batch alone: one task set is judged by all that apply",
        )
        .at("--tests")
        .remedy("give a batch file with `--batch`, or choose policies with `--policy`")),
        (None, _) if args.batch.grid.is_some() => Err(Error::new(
            "without --batch the answer is for a machine, which releases jobs at any time",
        )
        .at("--grid")
        .remedy("leave it out, or judge a batch file with --batch")),
        (None, Some(path)) => judge(path, &args),
        (None, None) => {
            Err(Error::new("no task set is given").remedy("name a TOML file, or a batch file with --batch"))
        }
    }
}

fn judge(path: &Path, args: &Args) -> Result<Answer> {
    let set = read(path)?;
    let platform = args.on.or_this_machine()?;
    let profile = args.charged.profile()?;
    let costs = Costs {
        cpmd: args.cpmd,
        profile: profile.as_ref(),
        load: args.charged.load(),
        statistic: args.charged.statistic(),
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
    let judgment = match &args.assignment {
        None => policies::judge(&set, &platform, &policies, guarantee, &costs, &console)?,
        Some(file) => {
            let policy = only_one(&policies)?;
            let assignment = AssignmentFile::read(file)?.assignment(&policy.to_string(), &set)?;
            policies::judge_assigned(&set, &platform, policy, &assignment, guarantee, &costs, &console)
                .map_err(|e| e.at(file.display()))?
        }
    };
    console.finish();
    let table = |look| {
        let file = path.display().to_string();
        let mut text = check_table::text(&file, &judgment, profile.as_ref(), args.explain, look);
        if let Some(best) = judgment.policies.iter().find(|v| v.schedulable) {
            text.push_str(&to_run(&file, args, guarantee, best));
        }
        text
    };
    args.answered.give(table, &judgment)?;
    Ok(if judgment.is_schedulable() {
        Answer::Yes
    } else {
        Answer::No
    })
}

/// The policy that an assignment is for.
fn only_one(policies: &[Policy]) -> Result<Policy> {
    match policies {
        [policy] => Ok(*policy),
        _ => Err(
            Error::new("an assignment is for one policy, and several are named")
                .at("--policy")
                .remedy("name the policy that the assignment was made for"),
        ),
    }
}

/// The commands that run the verdict that comes first as it was judged: with the assignment of the
/// answer, or with the one that was given.
fn to_run(file: &str, args: &Args, guarantee: Guarantee, verdict: &PolicyVerdict) -> String {
    match &verdict.assignment {
        None => return String::new(),
        // Everything may run everywhere: there is nothing to hand over.
        Some(Assignment::Clustered(c)) if c.clusters.len() == 1 => return String::new(),
        Some(_) => {}
    }
    let on = args.on.words() + &args.charged.words();
    // What `simulate` takes by itself is the maximum.
    let charged = match (args.charged.is_given(), args.charged.statistic(), guarantee) {
        (true, Some(Statistic::Average), _) | (true, None, Guarantee::Soft) => " --statistic average",
        _ => "",
    };
    let policy = &verdict.policy;
    let commands = |answer: &str| {
        format!(
            "    warmset simulate {file}{on}{charged} --policy {policy} --assignment {answer}\n\
             \x20   warmset run {file} --policy {policy} --assignment {answer}\n"
        )
    };
    if let Some(given) = &args.assignment {
        let given = given.display().to_string();
        return format!("\nTo run {policy} as it was judged:\n{}", commands(&given));
    }
    let mut judged = match args.charged.statistic() {
        Some(statistic) => format!(" --statistic {statistic}"),
        None => String::new(),
    };
    if let Some(cpmd) = args.cpmd {
        judged += &format!(" --cpmd {cpmd}");
    }
    judged += match guarantee {
        Guarantee::Hard => " --hard",
        Guarantee::Soft => " --soft",
    };
    format!(
        "\nTo run {policy} as it was judged, keep the answer and hand it over:\n\
         \x20   warmset check {file}{on}{judged} --policy {policy} --format json -o answer.json\n{}",
        commands("answer.json")
    )
}

/// Reads a task file; errors name it.
fn read(path: &Path) -> Result<TaskSet> {
    taskfile::from_toml(&files::read_text(path)?).map_err(|e| e.at(path.display()))
}
