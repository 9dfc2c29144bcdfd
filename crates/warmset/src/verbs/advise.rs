//! `warmset advise`: looks for a plan that keeps a set's deadlines, and says how far it can be
//! stretched, or what would have to change.

use super::advise_table;
use crate::console::{self, Console};
use crate::options::{Accounted, Charged, On, Printed};
use crate::{Answer, command};
use analyze::Guarantee;
use app::advise::{self, Dossier, Options};
use model::{Duration, Result, Statistic, document};
use std::path::PathBuf;

/// Options of `warmset advise`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = HELP)]
pub struct Args {
    /// The task set, in TOML
    tasks: PathBuf,
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
    /// Look for a plan under these policies only [default: all that are judged]
    #[arg(long, value_name = "NAMES")]
    policy: Option<String>,
    /// So many page colors are there for tasks whose `wcet` depends on them; each plan gives them out
    #[arg(long, value_name = "N")]
    colors: Option<u16>,
    /// End the search after this time, with the best until then
    #[arg(
        long,
        value_name = "TIME",
        allow_hyphen_values = true,
        default_value = "60s"
    )]
    budget: Duration,
    /// Write the plan to this file, which `check`, `simulate`, `run` and `validate` take by --plan
    #[arg(short, long, value_name = "FILE", value_parser = crate::options::new_file)]
    output: Option<PathBuf>,
    /// Write a page with pictures to this file: the plan, its margins, the alternatives
    #[arg(long, value_name = "FILE", value_parser = crate::options::new_file)]
    html: Option<PathBuf>,
    /// Write all evidence for the plan into this directory: set, costs with where they come from,
    /// plan, certificate, what `warmset-verify` says of it, and a page in words
    #[arg(long, value_name = "DIR", value_parser = crate::options::directory)]
    dossier: Option<PathBuf>,
    #[command(flatten)]
    printed: Printed,
}

const HELP: &str = "\
    warmset advise tasks.toml -m 2 -o plan.json
    warmset check tasks.toml -m 2 --plan plan.json
    warmset simulate tasks.toml -m 2 --plan plan.json
    warmset run tasks.toml --plan plan.json

    warmset advise tasks.toml --platform xeon-l7455 --profile xeon-l7455 --budget 10s --format json
    warmset advise tasks.toml --profile out/profile.toml --html advice.html
    warmset advise tasks.toml --profile out/profile.toml --policy p-edf,p-rm --dossier evidence

Each verdict is the one that `check` gives. The status is 0 if a plan was found, 1 if none was; Ctrl-C shows the \
best until then and ends with 130. Where the budget suffices the answer is the same on every machine. What was not \
tried is said at the end, with counts.";

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let tasks = app::Tasks::read(&args.tasks)?;
    let options = Options {
        on: args.on.choice(),
        charged: args.charged.choice(&args.on.choice())?,
        cpmd: args.cpmd,
        accounting: args.accounted.accounting,
        guarantee: match (args.hard, args.soft) {
            (_, true) => Some(Guarantee::Soft),
            (true, false) => Some(Guarantee::Hard),
            (false, false) => None,
        },
        policies: args.policy.clone(),
        colors: args.colors,
        budget: Some(args.budget),
        plan: args.output.clone(),
        page: args.html.clone(),
        dossier: args.dossier.clone().map(|dir| Dossier {
            dir,
            verifier: advise::verifier(),
        }),
        command: command::whole(),
    };
    let console = Console::new()?;
    let advised = advise::advise(&tasks, &options, &console)?;
    let text = match args.printed.format() {
        console::Format::Table => {
            let look = console::look();
            let mut text = advise_table::text(&tasks.place, &advised, look);
            if advised.is_found() {
                text += &to_run(&tasks.place, &args);
            }
            console::for_people(&text)
        }
        console::Format::Json => document::pretty(&advised)?,
    };
    console::give(&text, None)?;
    advised.complete()?;
    Ok(match advised.is_found() {
        true => Answer::Yes,
        false => Answer::No,
    })
}

/// The commands that judge and run the plan.
fn to_run(file: &str, args: &Args) -> String {
    let on = args.on.words();
    let mut charged = args.charged.words();
    if let Some(statistic) = args.charged.statistic() {
        charged += &format!(" --statistic {statistic}");
    }
    let mut judged = String::new();
    if let Some(cpmd) = args.cpmd {
        judged += &format!(" --cpmd {cpmd}");
    }
    if let Some(accounting) = args.accounted.accounting {
        judged += &format!(" --accounting {accounting}");
    }
    if args.soft {
        judged += " --soft";
    }
    let Some(plan) = &args.output else {
        return format!(
            "\nTo keep the plan, and to judge and run it:\n\
             \x20   warmset advise {file}{on}{charged}{judged} -o plan.json\n\
             \x20   warmset check {file}{on}{charged}{judged} --plan plan.json\n\
             \x20   warmset run {file} --plan plan.json\n"
        );
    };
    let plan = plan.display();
    format!(
        "\nThe plan is in {plan}. To judge, simulate and run it:\n\
         \x20   warmset check {file}{on}{charged}{judged} --plan {plan}\n\
         \x20   warmset simulate {file}{on}{} --plan {plan}\n\
         \x20   warmset run {file} --plan {plan}\n",
        simulated(args, &charged)
    )
}

/// What `simulate` is to charge. What it takes by itself is the maximum.
fn simulated(args: &Args, charged: &str) -> String {
    match (args.charged.is_given(), args.charged.statistic(), args.soft) {
        (true, None, true) => format!("{charged} --statistic {}", Statistic::Average),
        _ => charged.to_owned(),
    }
}
