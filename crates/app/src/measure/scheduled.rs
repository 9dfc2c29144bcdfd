//! Measures cache delays by the schedule-sensitive method (000 §3.1) into a directory, and draws
//! them by number of tasks (Fig. 4).
//!
//! A profile of this machine that is there keeps all else; delays of the synthetic method in it are
//! compared with those found. Assumes the right to real-time priorities.

use super::prefetchers::Held;
use crate::pages::schedules;
use ::experiment::scheduled::campaign::{self, Measured, Outcome};
use ::experiment::scheduled::plan::{Options, Plan};
use ::measure::cpmd::PROFILE;
use ::measure::scheduled::file;
use ::measure::{keep, samples};
use model::watch::Watch;
use model::{Error, Profile, Result, document, files};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// All that was found, as a document, within the directory of the results.
pub const RESULTS: &str = "scheduled.json";
/// The raw samples.
pub const SAMPLES: &str = "scheduled.parquet";
/// Numbers of tasks, and the largest delays: Fig. 4 of 000.
pub const FIGURE: &str = "scheduled.svg";
/// What makes a sample: Fig. 1 of 000.
pub const SAMPLE: &str = "scheduled-sample.svg";

/// What was measured, and where it is. JSON: as `warmset measure cpmd --method schedule-sensitive
/// --format json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Scheduled {
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
    /// The profile, with what was in it before.
    pub profile_path: PathBuf,
    /// The raw samples.
    pub samples_path: PathBuf,
    /// All that was found.
    pub results_path: PathBuf,
    /// The charts.
    pub figures: Vec<PathBuf>,
}

/// Measures cache delays in schedules into a directory.
///
/// # Errors
/// Options that make no plan; a finished measurement, or another machine's profile, in the
/// directory; no right to run tasks in real time; files that cannot be written.
pub fn scheduled(mut options: Options, watch: &dyn Watch) -> Result<Scheduled> {
    let machine = machine::detect::this_machine()?;
    if options.about.is_empty() {
        options.about = machine.settings();
    }
    let platform = &machine.platform;
    let mut plan = Plan::of(&options, platform)?;
    spare_finished(&plan)?;
    let profile_path = plan.out.join(PROFILE);
    let before = keep::there(&profile_path, platform)?;
    let synthetic = match plan.out.join(super::pages::SAMPLES) {
        path if path.exists() => samples::read(&path)?,
        _ => Vec::new(),
    };
    let prefetchers = Held::over(options.prefetchers_off, &platform.usable())?;
    plan.prefetchers = prefetchers.state();
    let measured = campaign::measure(&plan, platform, (before.as_ref(), &synthetic), watch)?;
    let Measured {
        outcome,
        samples,
        journal,
    } = measured;
    drop(prefetchers);
    let samples_path = plan.out.join(SAMPLES);
    let about = [
        ("command".to_owned(), outcome.provenance.command.clone()),
        ("time".to_owned(), outcome.provenance.time.clone()),
    ];
    file::write(&samples_path, &samples, &about)?;
    let mut profile = match before {
        Some(before) => before,
        None => Profile::new(platform.name.clone(), outcome.provenance.clone()),
    };
    profile.cpmd_scheduled.clone_from(&outcome.curves);
    let told = &outcome.provenance;
    let note = format!(
        "{}, {}, `{}`, prefetchers {}",
        told.source,
        told.time,
        told.command,
        plan.prefetchers.name()
    );
    let settings = &mut profile.provenance.settings;
    settings.insert("schedule-sensitive delays".to_owned(), note);
    files::write(&profile_path, model::profilefile::to_toml(&profile))?;
    let results_path = plan.out.join(RESULTS);
    files::write(&results_path, document::pretty(&outcome)?)?;
    let mut figures = Vec::new();
    let sketch = schedules::by_tasks("scheduled", &outcome.curves);
    let by_tasks = sketch.map(|sketch| sketch.draw()).transpose()?;
    let sample = outcome.example.as_ref();
    let sample = sample.map(|example| schedules::sampled("scheduled-sample", example));
    let sample = sample.transpose()?;
    for (name, figure) in [(FIGURE, by_tasks), (SAMPLE, sample)] {
        if let Some(figure) = figure {
            let path = plan.out.join(name);
            files::write(&path, figure.to_svg())?;
            figures.push(path);
        }
    }
    if outcome.interrupted.is_none() {
        journal.remove()?;
    }
    watch.finish();
    Ok(Scheduled {
        outcome,
        profile_path,
        samples_path,
        results_path,
        figures,
    })
}

/// Is a measurement into `dir` complete?
///
/// # Errors
/// The user stopped it: what was measured is kept.
pub fn complete(measured: &Scheduled, dir: &Path) -> Result<()> {
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
        return Err(Error::new(
            "a finished measurement of delays in schedules is in this directory",
        )
        .at(plan.out.display())
        .remedy(format!(
            "choose another directory, or remove its {RESULTS} to measure anew"
        )));
    }
    Ok(())
}
