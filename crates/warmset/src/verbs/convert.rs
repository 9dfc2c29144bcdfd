//! `warmset convert`: task sets from and for other tools' files.

use crate::Answer;
use crate::console::{give, note};
use crate::options::new_file;
use app::convert::convert;
use model::{Duration, Result};
use std::path::PathBuf;

const EXAMPLES: &str = "\
Examples:
  warmset convert workload.json -o tasks.toml    the periodic threads of a file of rt-app
  warmset convert tasks.toml -o workload.json    for rt-app, each task a thread of SCHED_DEADLINE

What has no place in the other format is told on standard error, with the reason.";

/// Options of `warmset convert`.
#[derive(clap::Args, Debug)]
#[command(after_help = EXAMPLES)]
pub struct Args {
    /// A task set in TOML, which becomes a file of rt-app; or a file of rt-app (JSON), which
    /// becomes a task set
    file: PathBuf,
    /// How long rt-app shall run, rounded up to seconds
    #[arg(long = "for", value_name = "TIME", default_value = "10s")]
    duration: Duration,
    /// Write to this file instead of to standard output
    #[arg(short, long, value_name = "FILE", value_parser = new_file)]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    let converted = convert(&args.file, args.duration)?;
    for text in &converted.notes {
        note(text);
    }
    give(&converted.text, args.output.as_deref())?;
    Ok(Answer::Yes)
}
