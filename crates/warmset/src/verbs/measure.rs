//! `warmset measure`: not built yet.

use crate::Answer;
use model::{Error, Result};

/// Options of `warmset measure`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> Result<Answer> {
    Err(Error::new("`warmset measure` is not built yet"))
}
