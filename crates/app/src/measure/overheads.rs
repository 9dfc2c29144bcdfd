//! Measures what the scheduler itself costs on this machine, and draws it.

use super::charts;
use ::experiment::overheads::campaign::{self, Outcome};
use ::experiment::overheads::plan::{Options, Plan};
use ::measure::cpmd::PROFILE;
use ::measure::keep;
use model::watch::Watch;
use model::{Error, Result, document, files};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// All curves, as a document, within the directory of the results.
pub const RESULTS: &str = "overheads.json";

/// What was measured, and where it is. JSON: as `warmset measure overheads --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Overheads {
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The profile, with the cache delays that it had before.
    pub profile_path: PathBuf,
    /// All curves.
    pub results_path: PathBuf,
    /// The charts.
    pub figures: Vec<PathBuf>,
}

/// Measures the overheads of policies on this machine into a directory. A profile of this machine
/// that is there keeps its cache delays.
///
/// # Errors
/// Options that make no plan; a finished measurement, or another machine's profile, in the
/// directory; no right to run tasks in real time; files that cannot be written.
pub fn overheads(mut options: Options, watch: &dyn Watch) -> Result<Overheads> {
    let machine = machine::detect::this_machine()?;
    if options.about.is_empty() {
        options.about = machine.settings();
    }
    let plan = Plan::of(&options, &machine.platform)?;
    spare_finished(&plan)?;
    let profile_path = plan.out.join(PROFILE);
    let before = keep::there(&profile_path, &machine.platform)?;
    let (outcome, journal) = campaign::measure(&plan, &machine.platform, watch)?;
    let profile = outcome.profile(&machine.platform);
    let profile = match before {
        Some(before) => keep::cache_delays(profile, before),
        None => profile,
    };
    files::write(&profile_path, model::profilefile::to_toml(&profile))?;
    let results_path = plan.out.join(RESULTS);
    files::write(&results_path, document::pretty(&outcome)?)?;
    let mut figures = Vec::new();
    for (name, figure) in charts::figures(&outcome)? {
        let path = plan.out.join(name);
        files::write(&path, figure.to_svg())?;
        figures.push(path);
    }
    if outcome.interrupted.is_none() {
        journal.remove()?;
    }
    watch.finish();
    Ok(Overheads {
        outcome,
        profile_path,
        results_path,
        figures,
    })
}

/// Is a measurement into `dir` complete?
///
/// # Errors
/// The user stopped it: what was measured is kept.
pub fn complete(measured: &Overheads, dir: &Path) -> Result<()> {
    match measured.outcome.interrupted {
        None => Ok(()),
        Some((done, all)) => Err(Error::new(format!(
            "interrupted after {done} of {all} runs; what was measured is kept"
        ))
        .at(dir.display())
        .remedy("go on with the same command and `--resume`")),
    }
}

/// Refuses to measure over a measurement that is complete.
fn spare_finished(plan: &Plan) -> Result<()> {
    let there = |name: &str| plan.out.join(name).exists();
    if !plan.resume && there(RESULTS) && !there(campaign::JOURNAL) {
        return Err(
            Error::new("a finished measurement of overheads is in this directory")
                .at(plan.out.display())
                .remedy(format!(
                    "choose another directory, or remove its {RESULTS} to measure anew"
                )),
        );
    }
    Ok(())
}
