//! The observations of 002, chapter 6, held against studies that were run; and, where it is asked
//! for, the same studies with overheads times other factors, so that an observation is answered
//! by the overhead from which on it holds.

use crate::families::directories;
use crate::workers;
use model::watch::Watch;
use model::{Error, Overheads, Result};
use serde::Serialize;
use std::path::{Path, PathBuf};
use study::observe::{Answers, Observed, observe};
use study::{Factor, Quantity, Share, Study, Threads};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Directories of studies, or of families of them.
    pub dirs: Vec<PathBuf>,
    /// Factors on overheads with which each study is run, too, into a directory within its own.
    pub factors: Vec<Factor>,
    /// Which overheads these factors are on; `None`: all.
    pub factor_on: Option<Overheads>,
}

/// What was found. JSON: as `warmset study observe --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Observations {
    /// Curves that differ by no more count as equal.
    pub slack: f64,
    /// The confidence of each answer, and of each interval that is shown.
    pub confidence: f64,
    /// The answers, for each platform and way to charge.
    pub settings: Vec<Answers>,
    /// Studies that are not complete and were left out.
    pub left_out: Vec<PathBuf>,
}

/// Answers every observation and principle.
///
/// # Errors
/// A directory has no study; none is complete; a factor is asked for where no overhead is charged;
/// stopped.
pub fn observations(options: &Options, watch: &dyn Watch) -> Result<Observations> {
    let found = directories(&options.dirs)?;
    if found.complete.is_empty() {
        return Err(Error::new("no study in it is complete")
            .at(options.dirs[0].display())
            .remedy("run `warmset study run` on it again"));
    }
    let mut observed = Vec::new();
    for dir in &found.complete {
        let one = read(dir)?;
        if !options.factors.is_empty() && takes_factors(&one.study) {
            with_factors(&one.study, dir, options, watch)?;
        }
        observed.push(one);
    }
    if !options.factors.is_empty() {
        let known: Vec<PathBuf> = found.complete.clone();
        let now = directories(&options.dirs)?.complete;
        for dir in now.iter().filter(|dir| !known.contains(dir)) {
            observed.push(read(dir)?);
        }
    }
    Ok(Observations {
        slack: study::observe::SLACK,
        confidence: 0.95,
        settings: observe(&observed),
        left_out: found.unfinished,
    })
}

fn read(dir: &Path) -> Result<Observed> {
    let (study, results) = study::load_whole(dir)?;
    Ok(Observed {
        study,
        results,
        directory: dir.display().to_string(),
    })
}

/// Is it a study as it was charged, along a cost? One with a factor is itself an answer to the
/// question.
fn takes_factors(study: &Study) -> bool {
    let along_costs = matches!(
        study.axis.quantity(),
        Quantity::Delay | Quantity::WorkingSet
    );
    along_costs && study.overhead_factor == Factor::ONE
}

/// Runs a study with other factors, each into a directory within that of the study, or goes on with
/// what was stopped there.
fn with_factors(study: &Study, dir: &Path, options: &Options, watch: &dyn Watch) -> Result<()> {
    workers()?;
    let factor_on = options.factor_on.unwrap_or(Overheads::ALL);
    let (on, named) = match factor_on {
        Overheads::ALL => ("all overheads".to_owned(), "overheads".to_owned()),
        some => (some.to_string(), some.to_string().replace(',', "+")),
    };
    let factors = options.factors.iter();
    for factor in factors.filter(|factor| **factor != study.overhead_factor) {
        let scaled = Study {
            overhead_factor: *factor,
            factor_on,
            ..study.clone()
        };
        let into = dir.join(format!("{named}-times-{factor}"));
        watch.note(&format!("{}: {on} times {factor}", study.name));
        let threads = Threads::default();
        study::run_share_in(&into, &scaled, &threads, Share::WHOLE, watch)
            .map_err(|e| e.at(dir.display()))?;
    }
    watch.finish();
    Ok(())
}
