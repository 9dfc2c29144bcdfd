//! The engine where it is not compiled in.

use crate::outcome::{Outcome, Settings};
use crate::plan::Carried;
use crate::support;
use execute::Performer;
use model::watch::Watch;
use model::{Result, TaskSet};
use trace::Sink;

/// Runs nothing: this build has no engine in the kernel.
///
/// # Errors
/// Always; the remedy says how to build one that has it.
pub fn run<S: Sink + Send>(
    _: Carried,
    _: &TaskSet,
    _: Vec<impl Into<Performer>>,
    _: &Settings,
    _: &dyn Watch,
    _: &mut S,
    _: impl FnMut(&mut S) + Send,
) -> Result<Outcome> {
    Err(support::not_built())
}
