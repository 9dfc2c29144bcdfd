//! `warmset check`: not built yet.

use crate::Answer;
use model::{Error, Result};

/// Options of `warmset check`.
#[derive(clap::Args, Debug)]
pub struct Args {}

/// Runs the verb.
pub fn run(_args: Args) -> Result<Answer> {
    Err(Error::new("`warmset check` is not built yet"))
}
