//! `warmset check`: decides whether a task set meets its deadlines, under which policies, and with
//! what to spare.

use super::check_table;
use crate::Answer;
use crate::console::{Console, Screened};
use crate::options::{Accounted, Answered, Charged, On};
use crate::scheduling_options;
use analyze::Guarantee;
use analyze::policies::PolicyVerdict;
use app::check::{self, batch};
use app::output::Output;
use app::planned::PlanFile;
use model::{Assignment, Duration, Error, Result, Statistic};
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
    /// The cache delay of one preemption or migration, the same for every task; with --profile: for
    /// tasks without `wss`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    cpmd: Option<Duration>,
    #[command(flatten)]
    accounted: Accounted,
    /// No deadline may be missed [default, unless every task says `soft = true`]
    #[arg(long, conflicts_with = "soft")]
    hard: bool,
    /// Deadlines may be missed by a bounded time
    #[arg(long)]
    soft: bool,
    /// Policies to judge, as listed at the end
    /// [default: all that the platform's caches and the guarantee suggest]
    #[arg(long, value_name = "NAMES")]
    policy: Option<String>,
    /// Judge who runs where in this file, as it is, under the one policy that --policy names: an
    /// answer of `check --format json`, or what `simulate --assignment` takes
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with = "batch",
        requires = "policy"
    )]
    assignment: Option<PathBuf>,
    /// Judge this plan of `warmset advise -o`, as it is: its policy, who runs where, priorities
    #[arg(long, value_name = "FILE", conflicts_with_all = ["batch", "policy", "assignment"])]
    plan: Option<PathBuf>,
    /// Write what is needed to verify the answer without this program to FILE; `warmset-verify
    /// FILE` does
    #[arg(long, value_name = "FILE", conflicts_with = "batch")]
    certificate: Option<PathBuf>,
    /// Show the tests, the bounds of each task and the assignment of every policy, not of the first
    /// only
    #[arg(long)]
    explain: bool,
    #[command(flatten)]
    batch: BatchArgs,
    #[command(flatten)]
    answered: Answered,
}

/// Options of the batch mode.
#[derive(clap::Args, Debug)]
struct BatchArgs {
    /// Judge every task set of a batch file, one JSON line each; `-` reads standard input
    #[arg(long, value_name = "FILE", conflicts_with_all = [
        "tasks", "platform", "processors", "profile", "cpmd", "accounting", "hard", "soft", "policy", "explain"
    ])]
    batch: Option<String>,
    /// With --batch: the tests to run, such as `GFB,BAK,BCL` [default: all]
    #[arg(long, value_name = "NAMES")]
    tests: Option<String>,
    /// With --batch: take for granted that jobs are released at multiples of this time only, such
    /// as `1us`
    #[arg(long, value_name = "TIME", allow_hyphen_values = true)]
    grid: Option<Duration>,
}

/// What `--help` says about the batch mode.
const BATCH_HELP: &str = "\
Batch mode: each line of the file is a task set with all times in integer microseconds,
    {\"id\": 7, \"m\": 4, \"tasks\": [{\"wcet\": 4000, \"period\": 33000, \"deadline\": 33000}]}
and each is answered in order by a line, here cut in two, such as
    {\"schema_version\":1,\"id\":7,
     \"verdicts\":{\"GFB\":true,\"BAK\":false}}
`true`: the test shows that the guarantee holds; `false`: it does not show it, which refutes the set only where \
the test is exact (docs/tests.md). A test that does not apply to the set answers null. A bad line ends the run with status 2 and its number; the answers \
of the lines before it are already printed. With -o the file appears only if every line was answered.

A yes holds for jobs that are released at any time. With --grid it holds for releases at multiples of \
that time, and every time of the sets must be one: BCLI, RTA and GEDF_ANY then accept more. The answers say so:
    {\"schema_version\":1,\"id\":7,
     \"grid_ns\":1000,\"verdicts\":{\"RTA\":true}}

    warmset check --batch sets.jsonl --tests GFB,BAK,BCL
    warmset check --batch sets.jsonl --tests BCLI,RTA --grid 1us";

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

{}
{}",
        scheduling_options::judged(),
        BATCH_HELP
    )
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match (&args.batch.batch, &args.tasks) {
        (Some(batch), _) => {
            args.answered.printed.lines_only()?;
            let options = batch::Options {
                tests: args.batch.tests,
                grid: args.batch.grid,
            };
            let console = Console::new()?;
            let mut screen = Screened;
            let output = Output::open(args.answered.output.as_deref(), &mut screen)?;
            batch::run(batch, &options, output, &console).map(|_| Answer::Yes)
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
        (None, None) => Err(Error::new("no task set is given")
            .remedy("name a TOML file, or a batch file with --batch")),
    }
}

fn judge(path: &Path, args: &Args) -> Result<Answer> {
    let mut tasks = app::Tasks::read(path)?;
    let mut policies = args.policy.clone();
    let mut assignment = args.assignment.clone();
    if let Some(path) = &args.plan {
        let plan = PlanFile::read(path)?;
        policies = Some(plan.policy()?.to_owned());
        assignment = Some(path.clone());
        tasks = plan.tasks(tasks)?;
    }
    let options = check::Options {
        on: args.on.choice(),
        charged: args.charged.choice(&args.on.choice())?,
        cpmd: args.cpmd,
        accounting: args.accounted.accounting,
        guarantee: match (args.hard, args.soft) {
            (_, true) => Some(Guarantee::Soft),
            (true, false) => Some(Guarantee::Hard),
            (false, false) => None,
        },
        policies,
        assignment,
        certificate: args.certificate.clone(),
    };
    let console = Console::new()?;
    let checked = check::check(&tasks, &options, &console)?;
    let judgment = &checked.judgment;
    let table = |look| {
        let file = &tasks.place;
        let mut text =
            check_table::text(file, judgment, checked.profile.as_ref(), args.explain, look);
        if let Some(best) = judgment.policies.iter().find(|v| v.schedulable) {
            text.push_str(&to_run(file, args, judgment.guarantee, best));
        }
        text
    };
    args.answered.give(table, &checked)?;
    Ok(match judgment.is_schedulable() {
        true => Answer::Yes,
        false => Answer::No,
    })
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
        (true, Some(Statistic::Average), _) | (true, None, Guarantee::Soft) => {
            " --statistic average"
        }
        (true, Some(Statistic::Untrimmed), _) => " --statistic untrimmed",
        _ => "",
    };
    let policy = &verdict.policy;
    if let Some(plan) = &args.plan {
        let plan = plan.display();
        return format!(
            "\nTo run this plan:\n\
             \x20   warmset simulate {file}{on}{charged} --plan {plan}\n\
             \x20   warmset run {file} --plan {plan}\n"
        );
    }
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
    if let Some(accounting) = args.accounted.accounting {
        judged += &format!(" --accounting {accounting}");
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
