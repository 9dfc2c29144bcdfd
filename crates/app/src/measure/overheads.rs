//! Measures what the scheduler itself costs on this machine, and draws it.

use super::charts;
use ::experiment::overheads::campaign::{self, Outcome};
use ::experiment::overheads::plan::{Engine, Options, Plan};
use ::measure::cpmd::PROFILE;
use ::measure::keep;
use ::measure::overheads::probe::{self, Probe};
use ::measure::overheads::raw;
use ::measure::overheads::results::{self, Found};
use model::watch::Watch;
use model::{Error, Result, document, files};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// All curves, as a document, within the directory of the results.
pub const RESULTS: &str = "overheads.json";

/// The raw samples within that directory.
pub const SAMPLES: &str = "overheads.parquet";

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
    /// The raw samples.
    pub samples_path: PathBuf,
    /// The charts.
    pub figures: Vec<PathBuf>,
}

/// Measures the overheads of policies on this machine into a directory. A profile of this machine
/// that is there keeps its cache delays.
///
/// # Errors
/// This machine has not what the engine needs; options that make no plan; a finished measurement,
/// or another machine's profile, in the directory; no right to run tasks in real time; files that
/// cannot be written.
pub fn overheads(mut options: Options, watch: &dyn Watch) -> Result<Overheads> {
    let machine = machine::detect::this_machine()?;
    if options.about.is_empty() {
        options.about = machine.settings();
    }
    options.emulated = machine.emulated().map(str::to_owned);
    if options.engine == Engine::Kernel {
        crate::run::engine::can(&machine)?;
    }
    let plan = Plan::of(&options, &machine.platform)?;
    spare_finished(&plan)?;
    let profile_path = plan.out.join(PROFILE);
    let before = keep::there(&profile_path, &machine.platform)?;
    let campaign::Measured {
        outcome,
        raw,
        journal,
    } = campaign::measure(&plan, &machine.platform, watch)?;
    let profile = outcome.profile(&machine.platform);
    let profile = match before {
        Some(before) => keep::cache_delays(profile, before),
        None => profile,
    };
    files::write(&profile_path, model::profilefile::to_toml(&profile))?;
    let results_path = plan.out.join(RESULTS);
    files::write(&results_path, document::pretty(&outcome)?)?;
    let samples_path = plan.out.join(SAMPLES);
    raw::write(&samples_path, &raw, &about(&outcome))?;
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
        samples_path,
        figures,
    })
}

/// What the file of samples says of where they come from.
fn about(outcome: &Outcome) -> Vec<(String, String)> {
    let from = &outcome.provenance;
    let seed = from.seed.map(|seed| seed.to_string()).unwrap_or_default();
    let named = [
        ("source", &from.source),
        ("command", &from.command),
        ("time", &from.time),
        ("machine", &from.machine),
        ("kernel", &from.kernel),
        ("seed", &seed),
    ];
    let settings = from.settings.iter().map(|(k, v)| (k.clone(), v.clone()));
    named
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value.clone()))
        .chain(settings)
        .collect()
}

/// What samples say that were kept. JSON: as `warmset measure overheads --samples FILE --format
/// json`.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Read {
    /// How many samples there are.
    pub samples: u64,
    /// How many more there were, which were counted alone.
    pub left_out: u64,
    /// How long an event takes that the kernel records, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(serialize_with = "probe::in_document")]
    pub probe: Option<Probe>,
    /// How many runs.
    pub runs: u64,
    /// Curves by policy, utilizations, overhead and code.
    pub curves: Vec<Found>,
}

/// Makes the curves again from the samples that a measurement kept.
///
/// # Errors
/// The file is not there, or holds no such samples.
pub fn of_samples(path: &Path) -> Result<Read> {
    let raw = raw::read(path)?;
    let runs: Vec<_> = raw.runs.iter().map(|r| (r.of.clone(), &r.record)).collect();
    let costs = raw.runs.iter().flat_map(|run| &run.record.costs);
    Ok(Read {
        samples: costs.map(|(_, taken)| taken.whole.len() as u64).sum(),
        left_out: raw.left_out(),
        probe: raw.probe,
        runs: raw.runs.len() as u64,
        curves: results::curves(&runs, raw.blind, raw.probe.as_ref()),
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
