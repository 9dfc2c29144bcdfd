//! Measures cache delays by the schedule-sensitive method (000 §3.1) into a directory, and draws
//! them by number of tasks (Fig. 4).
//!
//! A profile of this machine that is there keeps all else; delays of the synthetic method in it are
//! compared with those found. Assumes the right to real-time priorities.

use ::experiment::scheduled::campaign::{self, Measured, Outcome};
use ::experiment::scheduled::plan::{Options, Plan};
use ::measure::cpmd::PROFILE;
use ::measure::scheduled::file;
use ::measure::{keep, samples};
use model::watch::Watch;
use model::{Bytes, Error, Load, Profile, Result, Resumption, document, files};
use report::Figure;
use report::lines::{self, Curves};
use serde::Serialize;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// All that was found, as a document, within the directory of the results.
pub const RESULTS: &str = "scheduled.json";
/// The raw samples.
pub const SAMPLES: &str = "scheduled.parquet";
/// Numbers of tasks, and the largest delays: Fig. 4 of 000.
pub const FIGURE: &str = "scheduled.svg";
/// A chart has curves of so many working set sizes at most, the largest, as in Fig. 4.
const SIZES: usize = 3;

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
    let plan = Plan::of(&options, platform)?;
    spare_finished(&plan)?;
    let profile_path = plan.out.join(PROFILE);
    let before = keep::there(&profile_path, platform)?;
    let synthetic = match plan.out.join(super::pages::SAMPLES) {
        path if path.exists() => samples::read(&path)?,
        _ => Vec::new(),
    };
    let measured = campaign::measure(&plan, platform, (before.as_ref(), &synthetic), watch)?;
    let Measured {
        outcome,
        samples,
        journal,
    } = measured;
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
    let note = format!("{}, {}, `{}`", told.source, told.time, told.command);
    let settings = &mut profile.provenance.settings;
    settings.insert("schedule-sensitive delays".to_owned(), note);
    files::write(&profile_path, model::profilefile::to_toml(&profile))?;
    let results_path = plan.out.join(RESULTS);
    files::write(&results_path, document::pretty(&outcome)?)?;
    let mut figures = Vec::new();
    if let Some(figure) = figure(&outcome)? {
        let path = plan.out.join(FIGURE);
        files::write(&path, figure.to_svg())?;
        figures.push(path);
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

/// The largest delays by number of tasks, a panel for each policy and load.
fn figure(outcome: &Outcome) -> Result<Option<Figure>> {
    let ratio = Profile::DEFAULT_WRITE_RATIO;
    let of_ratio = |r: f64| {
        outcome
            .curves
            .iter()
            .filter(move |c| c.curve.write_ratio == r)
    };
    let shown = match of_ratio(ratio).next() {
        Some(_) => ratio,
        None => outcome
            .curves
            .first()
            .map_or(ratio, |c| c.curve.write_ratio),
    };
    let points = of_ratio(shown).flat_map(|c| &c.curve.points);
    let sizes: BTreeSet<Bytes> = points.map(|p| p.wss).collect();
    let sizes: Vec<Bytes> = sizes.into_iter().rev().take(SIZES).collect();
    let ways: BTreeSet<Resumption> = of_ratio(shown).map(|c| c.curve.resumption).collect();
    let legend: Vec<(Bytes, Resumption)> = sizes
        .iter()
        .flat_map(|wss| ways.iter().map(|way| (*wss, *way)))
        .collect();
    let mut panels = Vec::new();
    for policy in &outcome.policies {
        for load in [Load::Idle, Load::Load] {
            let curves: Vec<(usize, Vec<(f64, f64)>)> = legend
                .iter()
                .enumerate()
                .map(|(place, (wss, way))| {
                    let of = of_ratio(shown).filter(|c| {
                        c.policy == *policy && (c.curve.load, c.curve.resumption) == (load, *way)
                    });
                    let points = of.filter_map(|c| {
                        let point = c.curve.points.iter().find(|p| p.wss == *wss)?;
                        Some((f64::from(c.tasks), point.maximum?.as_micros_f64()))
                    });
                    (place, points.collect())
                })
                .collect();
            let all: BTreeSet<u64> = curves
                .iter()
                .flat_map(|c| &c.1)
                .map(|p| p.0 as u64)
                .collect();
            panels.push(Curves {
                title: format!("{policy}, {load}"),
                description: format!("Largest delays of {} numbers of tasks.", all.len()),
                x: "tasks".to_owned(),
                y: "µs".to_owned(),
                logarithmic: false,
                ticks: all.iter().map(|n| (*n as f64, n.to_string())).collect(),
                level: None,
                least: 0.0,
                most: None,
                curves,
            });
        }
    }
    let names: Vec<String> = legend
        .iter()
        .map(|(wss, way)| format!("{wss} {way}"))
        .collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    lines::figure(
        "scheduled",
        "Largest cache delay by number of tasks, schedule-sensitive method",
        &format!(
            "Write ratio {shown}; equally many samples for each number of tasks within a curve. As \
             Fig. 4 of 000."
        ),
        &names,
        &panels,
    )
}
