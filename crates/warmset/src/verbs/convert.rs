//! `warmset convert`: task sets from and for other tools' files.

use crate::Answer;
use crate::console::{give, note};
use crate::options::new_file;
use app::convert::{Format, Options, convert};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use model::{Duration, Result};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  warmset convert workload.json -o tasks.toml    the periodic threads of a file of rt-app
  warmset convert workload.json --sleep-as-period -o tasks.toml
  warmset convert simulation.xml -o tasks.toml   a file of SimSo
  warmset convert project.xmlv3 --unit 1ms       a project of Cheddar, whose times have no unit
  warmset convert tasks.toml -o workload.json    for rt-app, each task a thread of SCHED_DEADLINE
  warmset convert tasks.toml --to simso -m 2 -o simulation.xml

What has no place in the other format is told on standard error, with the reason.";

/// Options of `warmset convert`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A task set: a task file in TOML, a file of rt-app (JSON), a simulation file of SimSo or a
    /// project of Cheddar (XML)
    file: PathBuf,
    /// The format to write [default: of a task file rt-app, of all others toml]
    #[arg(long, value_name = "FORMAT", value_parser = formats())]
    to: Option<Format>,
    /// Of rt-app: take threads that sleep instead of waiting for a timer, with run and sleep as
    /// their period
    #[arg(long)]
    sleep_as_period: bool,
    /// Of Cheddar: how long a unit of its times is [default for writing: the longest one that holds
    /// all times]
    #[arg(long, value_name = "TIME")]
    unit: Option<Duration>,
    /// For SimSo and Cheddar: how many processors there are
    #[arg(short = 'm', long, value_name = "M", default_value_t = 1)]
    processors: u32,
    /// How long the other tool shall run the tasks; for rt-app rounded up to seconds
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    duration: Duration,
    /// Write to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

/// The words of `--to`.
fn formats() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|word| word.parse::<Format>())
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let options = Options {
        to: args.to,
        duration: args.duration,
        sleep_as_period: args.sleep_as_period,
        unit: args.unit,
        processors: args.processors,
    };
    let converted = convert(&args.file, &options)?;
    for text in &converted.notes {
        note(text);
    }
    give(&converted.text, args.output.as_deref())?;
    Ok(Answer::Yes)
}
