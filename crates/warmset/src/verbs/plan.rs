//! `warmset plan export`: a plan of `advise` for systems that schedule by themselves.

use crate::Answer;
use crate::console::{give, note};
use app::export::{self, Format, Options};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use model::{Duration, Error, Result, files};
use std::path::PathBuf;

/// Options of `warmset plan`.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example: warmset plan export tasks.toml plan.json --to chrt")]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand, Debug)]
enum What {
    /// Write a plan as chrt and taskset lines, units of systemd, SCHED_DEADLINE or for rt-app
    Export(Export),
}

const HELP: &str = "\
    warmset advise tasks.toml --policy p-rm -o plan.json
    warmset plan export tasks.toml plan.json --to chrt -o plan.sh
    sh plan.sh camera=1234 control=1235

    warmset plan export tasks.toml plan.json --to systemd -o units
    warmset plan export tasks.toml plan.json --to sched-deadline --reserve 5 -o plan.sh
    warmset plan export tasks.toml plan.json --to rt-app -o workload.json

SCHED_FIFO carries plans under p-rm, p-fp and g-fp; SCHED_DEADLINE those under g-edf, and with cpusets p-edf and c-edf. For \
others an error says what Linux lacks. What the other form does not say is told on standard error.";

/// Options of `warmset plan export`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = HELP, after_help = "Example: warmset plan export tasks.toml plan.json --to chrt")]
struct Export {
    /// The task set, in TOML
    tasks: PathBuf,
    /// The plan for it, as `warmset advise -o` writes it
    plan: PathBuf,
    /// What the plan becomes
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Format,
    /// Of SCHED_DEADLINE: so many percent of its WCET a job has as budget on top of it
    #[arg(long, value_name = "PERCENT", default_value_t = 0, value_parser = clap::value_parser!(u32).range(0..=1000))]
    reserve: u32,
    /// For rt-app: how long it runs the tasks, rounded up to seconds
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    duration: Duration,
    /// Write to this file instead of to standard output; units of systemd: into this directory
    #[arg(short, long, value_name = "PATH")]
    output: Option<PathBuf>,
}

/// The words of `--to`.
fn formats() -> impl TypedValueParser<Value = Format> {
    let words = Format::ALL.map(|f| PossibleValue::new(f.name()).help(f.meaning()));
    PossibleValuesParser::new(words).try_map(|word| word.parse::<Format>())
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let What::Export(args) = args.what;
    match (&args.output, args.to) {
        (None, Format::Systemd) => {
            return Err(Error::new("units of systemd are several files")
                .at("--to")
                .remedy("name a directory for them with `-o`"));
        }
        (Some(dir), Format::Systemd) if dir.exists() && !dir.is_dir() => {
            return Err(Error::new(format!("`{}` is a file", dir.display()))
                .at("--output")
                .remedy("name a directory for the units"));
        }
        (Some(file), to) if to != Format::Systemd => {
            files::can_be_written(file).map_err(|e| e.at("--output"))?;
        }
        _ => {}
    }
    let tasks = app::Tasks::read(&args.tasks)?;
    let options = Options {
        to: args.to,
        plan: args.plan,
        reserve: args.reserve,
        duration: args.duration,
    };
    let exported = export::export(&tasks, &options)?;
    for text in &exported.notes {
        note(text);
    }
    match &args.output {
        Some(path) => export::write(&exported, args.to, path)?,
        None => {
            for file in &exported.files {
                give(&file.text, None)?;
            }
        }
    }
    Ok(Answer::Yes)
}
