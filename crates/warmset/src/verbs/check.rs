//! `warmset check`: decides whether task sets meet their deadlines.

use super::check_batch;
use crate::Answer;
use model::{Error, Result};
use std::path::PathBuf;

/// Options of `warmset check`.
#[derive(clap::Args, Debug)]
#[command(after_long_help = check_batch::HELP)]
pub struct Args {
    /// The task set, in TOML
    tasks: Option<PathBuf>,
    #[command(flatten)]
    batch: check_batch::BatchArgs,
    /// Write the answers to a file
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the verb.
pub fn run(args: Args) -> Result<Answer> {
    match &args.batch.batch {
        Some(batch) => check_batch::run(batch, args.batch.tests.as_deref(), args.output.as_deref()),
        None => Err(Error::new("`warmset check` of one task set is not built yet").remedy("use --batch")),
    }
}
