//! Studies: which policies keep which of many task sets.

use crate::check::{charged, on};
use crate::columns::{Columns, integers, numbers, words};
use crate::elsewhere::Dispatched;
use crate::error::raise;
use crate::profile::{Platform, Profile};
use crate::work::work;
use app::study::{self as verb, Options};
use model::{Error, Ratio, Result, document};
use pyo3::prelude::*;
use report::schedulability::{self, Form, Utilization, Words};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use study::{Factor, Results as Counted, wilson};

/// What a study found.
#[pyclass(frozen, module = "warmset._native")]
pub(crate) struct Results {
    results: Counted,
}

/// The built-in studies: the document of `warmset study list --format json`.
#[pyfunction]
pub(crate) fn study_list() -> PyResult<String> {
    document::compact(&verb::list()).map_err(raise)
}

/// Runs a study by name or of a file, or goes on with one in a directory. `None`: a share was asked
/// for, and other shares are missing. `dispatch` has parts judged elsewhere: called with the study as
/// text and its `Parts`, it returns an iterator of pairs of text, lines of counts and a remark.
#[pyfunction]
#[pyo3(signature = (
    name, platform=None, sets=None, until_ci=None, seed=None, profile=None, load=None,
    statistic=None, accounting=None, overhead_factor=None, factor_on=None, policies=None, output=None,
    threads=None, share=None, dispatch=None, progress=None
))]
#[allow(clippy::too_many_arguments, reason = "options by name, in Python")]
pub(crate) fn study_run(
    py: Python<'_>,
    name: String,
    platform: Option<&Platform>,
    sets: Option<u32>,
    until_ci: Option<f64>,
    seed: Option<u64>,
    profile: Option<&Profile>,
    load: Option<&str>,
    statistic: Option<&str>,
    accounting: Option<&str>,
    overhead_factor: Option<&str>,
    factor_on: Option<&str>,
    policies: Option<String>,
    output: Option<PathBuf>,
    threads: Option<NonZeroUsize>,
    share: Option<&str>,
    dispatch: Option<Py<PyAny>>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Option<Results>> {
    let options = || -> Result<Options> {
        Ok(Options {
            on: on(platform),
            sets,
            until_ci,
            seed,
            charged: charged(profile, load, statistic)?,
            charge_own: false,
            accounting: accounting.map(str::parse).transpose()?,
            overhead_factor: overhead_factor.map(factor).transpose()?,
            factor_on: factor_on.map(str::parse).transpose()?,
            policies,
            output,
            threads,
            dask: None,
            share: share.map(str::parse).transpose()?,
        })
    };
    let options = options().map_err(raise)?;
    let results = match dispatch.map(Dispatched::new) {
        None => work(py, progress, |watch| {
            verb::run_share(&name, &options, watch)
        }),
        Some(elsewhere) => {
            let done = work(py, progress, |watch| {
                verb::run_share_by(&elsewhere, &name, &options, watch)
            });
            done.map_err(|e| elsewhere.raised().unwrap_or(e))
        }
    };
    Ok(results?.map(|results| Results { results }))
}

fn factor(text: &str) -> Result<Factor> {
    Factor::try_from(text.parse::<Ratio>()?)
}

/// Puts the shares of a study in several directories together in another one; `None`: some are
/// missing.
#[pyfunction]
pub(crate) fn study_merge(
    py: Python<'_>,
    directories: Vec<PathBuf>,
    into: PathBuf,
) -> PyResult<Option<Results>> {
    let results = work(py, None, |_| study::merge(&directories, &into))?;
    Ok(results.map(|results| Results { results }))
}

#[pymethods]
impl Results {
    /// The document `results.json`.
    fn json(&self) -> PyResult<String> {
        self.results.to_json().map_err(raise)
    }

    /// The table `results.csv`.
    fn csv(&self) -> String {
        self.results.to_csv()
    }

    /// The shares of schedulable sets: a row for each policy, cap and point of the axis.
    fn columns(&self) -> PyResult<Columns> {
        let results = &self.results;
        let mut rows = Vec::new();
        for (policy, label) in results.policies.iter().enumerate() {
            for shard in &results.shards {
                for (point, accepted) in shard.accepted[policy].iter().enumerate() {
                    rows.push((label, shard, results.axis.value(point), *accepted));
                }
            }
        }
        let rows = rows.iter();
        let interval = |accepted, sets| wilson(accepted, sets);
        Columns::new(vec![
            ("policy", words(rows.clone().map(|r| r.0.as_str()))),
            ("cap", numbers(rows.clone().map(|r| r.1.cap.to_f64()))),
            (self.axis_name(), numbers(rows.clone().map(|r| r.2))),
            ("sets", integers(rows.clone().map(|r| r.1.sets.into()))),
            ("accepted", integers(rows.clone().map(|r| r.3.into()))),
            (
                "schedulability",
                numbers(
                    rows.clone()
                        .map(|r| f64::from(r.3) / f64::from(r.1.sets.max(1))),
                ),
            ),
            (
                "low",
                numbers(rows.clone().map(|r| interval(r.3, r.1.sets).0)),
            ),
            ("high", numbers(rows.map(|r| interval(r.3, r.1.sets).1))),
        ])
        .map_err(raise)
    }

    /// Weighted schedulability: a row for each policy and point of the axis.
    fn weighted(&self) -> PyResult<Columns> {
        let curves = self.results.weighted();
        let rows: Vec<_> = curves
            .iter()
            .flat_map(|c| {
                let points = c.points.iter().zip(&c.band);
                points.map(move |(p, b)| (c.policy.as_str(), p.0, p.1, b.1, b.2))
            })
            .collect();
        let rows = rows.iter();
        Columns::new(vec![
            ("policy", words(rows.clone().map(|r| r.0))),
            (self.axis_name(), numbers(rows.clone().map(|r| r.1))),
            ("weighted", numbers(rows.clone().map(|r| r.2))),
            ("low", numbers(rows.clone().map(|r| r.3))),
            ("high", numbers(rows.map(|r| r.4))),
        ])
        .map_err(raise)
    }

    /// Weighted schedulability as a chart, as SVG.
    fn weighted_svg(&self) -> PyResult<String> {
        let results = &self.results;
        let curves = verb::curves(results, true, 0);
        let crossings = verb::crossings(results);
        let first = match &crossings[..] {
            [one] => Some(one),
            _ => None,
        };
        let drawn = schedulability::weighted_as(
            &Form::default(),
            "weighted",
            &results.title,
            &verb::swept(results),
            &curves,
            first,
            Words {
                caption: &results.sets_in_words(),
                charges: &results.charges,
            },
        );
        drawn.map(|figure| figure.to_svg()).map_err(raise)
    }

    /// The shares of schedulable sets by utilization at a point of the axis, by its place from 0,
    /// as a chart, as SVG.
    #[pyo3(signature = (point=0))]
    fn svg(&self, point: usize) -> PyResult<String> {
        let results = &self.results;
        if point >= results.axis.len() {
            let cause = format!("the axis has no point {point}");
            let remedy = format!("give a place below {}", results.axis.len());
            return Err(raise(Error::new(cause).at("point").remedy(remedy)));
        }
        let utilization = match results.caps_are_shares() {
            true => Utilization::Share,
            false => Utilization::Of(results.processors),
        };
        let drawn = schedulability::by_utilization_as(
            &Form::default(),
            "schedulability",
            &results.title,
            &utilization,
            &verb::curves(results, false, point),
            Words {
                caption: &results.sets_in_words(),
                charges: &results.charges,
            },
        );
        drawn.map(|figure| figure.to_svg()).map_err(raise)
    }
}

impl Results {
    /// What is swept, with its unit.
    fn axis_name(&self) -> &'static str {
        match self.results.axis.quantity {
            study::Quantity::Delay => "delay_ns",
            study::Quantity::WorkingSet => "working_set_bytes",
            study::Quantity::OverheadFactor => "overhead_factor",
            study::Quantity::Processors => "processors",
        }
    }
}
