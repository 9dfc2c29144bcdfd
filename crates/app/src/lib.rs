//! Everything that a verb of the command line does, callable from Rust: inputs and options are
//! plain types, results are plain types that serialize as `--format json` prints them, long work
//! reports to a [`Watch`](model::watch::Watch), errors are [`model::Error`], and nothing is
//! printed.
//!
//! A verb is a module: a struct of options, a function that does the work, and the type of its
//! result. The binary (`crates/warmset`) parses arguments into the options and shows the result.
//! `examples/judge_and_run.rs` checks, simulates and runs a task set.
//!
//! | module | answers |
//! |---|---|
//! | [`platform`] | what are processors and caches, and what does this machine permit? |
//! | [`generate`], [`convert`] | task sets: random ones, and those of other tools |
//! | [`check`] | does a task set meet its deadlines, and under which policies? |
//! | [`advise`] | what to run, how far it can be stretched, what would have to change? |
//! | [`planned`], [`export`] | plans in files, and as Linux schedules them |
//! | [`simulate`] | what comes of its jobs in virtual time? |
//! | [`run`] | what comes of its jobs on this machine? |
//! | [`trace`] | did a schedule keep the rules, and what was its sum? |
//! | [`measure`], [`profile`] | what do preemptions, migrations and the scheduler cost? |
//! | [`own`] | which of that is charged on this machine? |
//! | [`validate`] | do sets keep here what analysis says of them? |
//! | [`study`] | which policies keep which of many task sets? |
//! | [`families`] | the same for every scenario of a section of 002 |
//! | [`charts`], [`explore`] | its charts as files, and one page of many studies |
//! | [`cache`] | what do a platform's caches do with a recorded trace? |
//! | [`observe`], [`range`] | do the observations of 002 hold? up to where does a policy keep up? |
//! | [`color`] | which page colors have the caches, and what are they worth? |
//! | [`report`], [`tour`] | pages and figures of all that |
//! | [`schemas`] | what is in the documents? |
//!
//! Many task sets share a pool of threads, one a processor: [`workers`] starts it.

#![forbid(unsafe_code)]

pub mod advise;
pub mod batch;
pub mod cache;
pub mod charts;
pub mod check;
pub mod color;
pub mod convert;
mod dask;
pub mod examples;
pub mod explore;
pub mod export;
pub mod families;
pub mod generate;
mod inputs;
pub mod measure;
pub mod observe;
pub mod output;
pub mod own;
pub mod pages;
pub mod planned;
pub mod platform;
pub mod profile;
pub mod range;
pub mod report;
pub mod run;
pub mod scheduling;
pub mod schemas;
pub mod simulate;
pub mod study;
pub mod tour;
pub mod trace;
pub mod validate;

pub use inputs::{Charged, Choice, On, Tasks};

use ::cache::{Shape, Waits};
use model::watch::Watch;
use model::{Error, Provenance, Result};
use std::sync::OnceLock;

/// The program and its version, as results name where they come from.
pub const PROGRAM: &str = concat!("warmset ", env!("CARGO_PKG_VERSION"));

/// What every result says of its origin. `command`: the command that makes it again, or nothing.
pub fn provenance(command: &str) -> Provenance {
    Provenance {
        source: PROGRAM.to_owned(),
        command: command.to_owned(),
        ..Provenance::default()
    }
}

/// Says what has no price in these caches, and so costs nothing in the model.
fn note_free(shape: &Shape, watch: &dyn Watch) {
    let free = Waits::unpriced(shape);
    if !free.is_empty() {
        let what = free.join(", ");
        watch.note(&format!(
            "without a price, so that it costs nothing here: {what}"
        ));
    }
}

/// Restores settings of this machine that a process has changed and left changed, as one that was
/// killed does. Returns what was restored, or could not be, in lines. A program that measures, runs
/// or colors calls this first, so that it finds the machine as it was.
pub fn restore_settings() -> Vec<String> {
    machine::settings::restore_left().unwrap_or_else(|e| vec![e.to_string()])
}

/// Starts the threads that share work, one a processor. Work that uses them calls this first:
/// `rayon` on its own would panic where there are none to be had.
///
/// # Errors
/// The system has no more threads, or no memory for their stacks.
pub fn workers() -> Result<()> {
    static STARTED: OnceLock<Result<()>> = OnceLock::new();
    let start = || {
        let wanted = std::env::var("RAYON_NUM_THREADS").ok();
        let threads = wanted
            .and_then(|n| n.parse().ok())
            .filter(|&n: &usize| n > 0)
            .or_else(|| std::thread::available_parallelism().ok().map(Into::into))
            .unwrap_or(1);
        has_room_for(threads)?;
        rayon::ThreadPoolBuilder::new()
            .num_threads(threads)
            .build_global()
            .map_err(|e| no_threads(&e))
    };
    STARTED.get_or_init(start).clone()
}

/// Asks before so many threads are started whether there is memory for them.
fn has_room_for(threads: usize) -> Result<()> {
    if machine::allocator::has_room_for(threads) {
        return Ok(());
    }
    Err(no_threads(&"there is no memory left for their stacks"))
}

fn no_threads(why: &dyn std::fmt::Display) -> Error {
    Error::new(format!("cannot start threads for the work: {why}"))
        .remedy("raise the limit on memory (`ulimit -v`) or on processes (`ulimit -u`)")
}
