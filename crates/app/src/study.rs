//! Compares policies over many task sets, and draws what it found.

use crate::dask::Dask;
use crate::inputs::platform_named;
use crate::{Charged, On, own, workers};
use analyze::policies::Accounting;
use model::watch::Watch;
use model::{Error, Load, Overheads, Profile, Result, files};
use report::schedulability::{self, Crossing, Curve, Swept, Unit};
use serde::Serialize;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use study::{
    Candidate, Executor, Factor, Quantity, Results, Share, Study, Threads, families, file, presets,
};

/// A built-in study.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Where it comes from.
    pub source: String,
}

/// Studies that one command runs: every scenario of a section.
#[derive(Clone, Debug, Serialize)]
pub struct FamilyRow {
    /// Its name.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Where it comes from.
    pub source: String,
    /// The names of its studies.
    pub studies: Vec<String>,
}

/// The built-in studies. JSON: as `warmset study list --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct List {
    /// Single ones, in the order of the papers.
    pub studies: Vec<Row>,
    /// Those in families.
    pub families: Vec<FamilyRow>,
}

/// Lists the built-in studies.
pub fn list() -> List {
    let studies = presets::list()
        .into_iter()
        .map(|(name, title, source)| Row {
            name,
            title,
            source,
        });
    let families = families::families().into_iter().map(|family| FamilyRow {
        name: family.name.to_owned(),
        title: family.title.to_owned(),
        source: family.source,
        studies: family.studies,
    });
    List {
        studies: studies.collect(),
        families: families.collect(),
    }
}

/// What is changed of a study before it is run. By default nothing, and nothing is kept.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Another platform; this machine stands for the study's own.
    pub on: On,
    /// How many task sets for each cap.
    pub sets: Option<u32>,
    /// Add task sets to each cap until the 95 % interval of every share is at most so wide.
    pub until_ci: Option<f64>,
    /// Seed of all random choices.
    pub seed: Option<u64>,
    /// Other costs: the scheduler's, by the number of tasks of each set.
    pub charged: Charged,
    /// Charge the profile in use on this machine ([`own`](crate::own)), where the study is about it
    /// and neither it nor `charged` has another.
    pub charge_own: bool,
    /// How overheads are charged; `None`: as the study says, else as the costs suggest.
    pub accounting: Option<Accounting>,
    /// Another factor on overheads.
    pub overhead_factor: Option<Factor>,
    /// Which overheads the factor is on; `None`: as the study says, all by default.
    pub factor_on: Option<Overheads>,
    /// Other policies and tests by their names, separated by commas.
    pub policies: Option<String>,
    /// Keep results in this directory: counts as they come, then JSON and CSV.
    pub output: Option<PathBuf>,
    /// How many threads; `None`: one a processor.
    pub threads: Option<NonZeroUsize>,
    /// Have the workers of this scheduler of Dask judge, such as `tcp://10.0.0.1:8786`, instead of
    /// threads.
    pub dask: Option<String>,
    /// Only this share of the parts of the study, for `output`.
    pub share: Option<Share>,
}

/// Runs a study by name or of a file, or goes on with one that was stopped in the same directory.
/// Caps that are left out on a smaller platform are a remark to `watch`.
///
/// # Errors
/// As [`run_share`]; a share was asked for, and with it the study is not complete.
pub fn run(name: &str, options: &Options, watch: &dyn Watch) -> Result<Results> {
    run_share(name, options, watch)?.ok_or_else(|| {
        Error::new("a share of a study has no results by itself")
            .at("--shard")
            .remedy("put the shares together with `warmset study merge`")
    })
}

/// As [`run`]; where a share was asked for: the results if with it every part of the study is
/// there.
///
/// # Errors
/// There is no such study or platform; no sets; the directory holds another study, or another
/// command works in it; a share without a directory; no scheduler of Dask, or no Python package to
/// ask it; the user stopped it.
pub fn run_share(name: &str, options: &Options, watch: &dyn Watch) -> Result<Option<Results>> {
    let study = chosen(name, options, watch)?;
    run_chosen(&*executor(options, watch)?, &study, options, watch)
}

/// As [`run_share`], by an executor, whatever the options say of one.
///
/// # Errors
/// As [`run_share`]; those of the executor.
pub fn run_share_by(
    executor: &dyn Executor,
    name: &str,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Option<Results>> {
    run_chosen(executor, &chosen(name, options, watch)?, options, watch)
}

/// What judges the parts of studies, by the options.
pub(crate) fn executor(options: &Options, watch: &dyn Watch) -> Result<Box<dyn Executor>> {
    if let Some(address) = &options.dask {
        let dask = Dask::connect(address, watch).map_err(|e| e.at("--dask"))?;
        return Ok(Box::new(dask));
    }
    if options.threads.is_none() {
        workers()?;
    }
    Ok(Box::new(Threads {
        count: options.threads,
    }))
}

fn run_chosen(
    executor: &dyn Executor,
    study: &Study,
    options: &Options,
    watch: &dyn Watch,
) -> Result<Option<Results>> {
    let share = options.share.unwrap_or(Share::WHOLE);
    let results = match &options.output {
        Some(dir) => study::run_share_in(dir, study, executor, share, watch)?,
        None if options.share.is_some() => {
            return Err(Error::new("a share of a study is kept nowhere")
                .at("--shard")
                .remedy("add `-o DIR`, and merge the directories when all shares are done"));
        }
        None => Some(study::run_by(executor, study, watch)?),
    };
    watch.finish();
    Ok(results)
}

/// The study with what the options change.
fn chosen(name: &str, options: &Options, watch: &dyn Watch) -> Result<Study> {
    let mut study = find(name)?;
    if let Some(platform) = options.on.given()? {
        let before = study.caps.clone();
        study = study.on(platform)?;
        let processors = study.platform.usable().len();
        if study.caps.last() < before.last() {
            watch.note(&format!(
                "caps above {processors} are left out: no task set above that can be scheduled"
            ));
        } else if study.caps != before {
            watch.note(&format!("caps go on to all {processors} processors"));
        }
    }
    if let Some(names) = &options.policies {
        study.policies = Candidate::list(names).map_err(|e| e.at("--policy"))?;
    }
    let given = options.charged.profile.is_some() || options.charged.load != Load::Load;
    let charged = study::Charged {
        load: match given {
            true => options.charged.load,
            false => study.charged.load,
        },
        caches: study.charged.caches,
        judging: study.charged.judging,
        profile: match options.charged.profile()?.or(study.charged.profile.take()) {
            None if options.charge_own && study.platform.name == own::NAME => own::in_use()?,
            profile => profile,
        },
        statistic: options.charged.statistic.or(study.charged.statistic),
        accounting: options.accounting.or(study.charged.accounting),
    };
    let mut study = study.charging(charged);
    if let Some(width) = options.until_ci {
        study.until_ci = Some(width);
        study.sets = study::enough_for(width).map_err(|e| e.at("--until-ci"))?;
    }
    study.overhead_factor = options.overhead_factor.unwrap_or(study.overhead_factor);
    study.factor_on = options.factor_on.unwrap_or(study.factor_on);
    study.sets = options.sets.unwrap_or(study.sets);
    study.seed = options.seed.unwrap_or(study.seed);
    Ok(study)
}

/// A study by name, or from a file such as `study.toml`, whose name it has where it gives no other.
///
/// # Errors
/// There is none of this name; the file is none.
pub fn find(name: &str) -> Result<Study> {
    if name.contains('/') || name.ends_with(".toml") {
        let text = files::read_text(Path::new(name))?;
        let read = file::from_toml(&text, platform_named, Profile::find);
        let mut study = read.map_err(|e| e.at(name))?;
        let stem = Path::new(name).file_stem().and_then(|stem| stem.to_str());
        if let Some(stem) = stem.filter(|_| study.name == file::UNNAMED) {
            study.name = stem.to_owned();
        }
        return Ok(study);
    }
    presets::find(name)
}

/// What is swept, as `report` draws it.
pub fn swept(results: &Results) -> Swept {
    let quantity = results.axis.quantity;
    Swept {
        symbol: quantity.symbol().to_owned(),
        title: results.axis.title(),
        unit: match quantity {
            Quantity::Delay => Unit::Nanoseconds,
            Quantity::WorkingSet => Unit::Bytes,
            Quantity::OverheadFactor | Quantity::Processors => Unit::Number,
        },
    }
}

/// W, or S(U) at the point of the axis of this place, as `report` draws it.
pub fn curves(results: &Results, weighted: bool, point: usize) -> Vec<Curve> {
    let curves = if weighted {
        results.weighted()
    } else {
        results.by_utilization(point)
    };
    curves
        .into_iter()
        .map(|c| Curve {
            policy: c.policy,
            points: c.points,
            band: c.band,
        })
        .collect()
}

/// Where each policy falls below what P-EDF reaches at the first point, for a delay usually without
/// any (000 §5); below the first policy if there is no P-EDF. Policies under idle caches and under
/// load are compared with those under the same. The number of processors has none: it is no cost.
pub fn crossings(results: &Results) -> Vec<Crossing> {
    if results.axis.quantity == Quantity::Processors {
        return Vec::new();
    }
    let curves = curves(results, true, 0);
    let load = |policy: &str| {
        let mut loads = [" idle", " load"].into_iter();
        loads.find(|load| policy.ends_with(load)).unwrap_or("")
    };
    let reference = |policy: &str| {
        let load = load(policy);
        let named = results.policy(&format!("P-EDF{load}"));
        let like = |other: &Curve| other.policy.ends_with(load);
        named.or_else(|| curves.iter().position(like))
    };
    let fall = |(at, curve): (usize, &Curve)| {
        let reference = reference(&curve.policy).filter(|reference| *reference != at)?;
        schedulability::crossing(curve, curves.get(reference)?)
    };
    curves.iter().enumerate().filter_map(fall).collect()
}
