//! `warmset study`: not built yet.

use crate::Answer;
use model::{Error, Result};

/// Options of `warmset study`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> Result<Answer> {
    Err(Error::new("`warmset study` is not built yet"))
}
