//! Verdicts on one task set.

use crate::error::raise;
use crate::profile::{Platform, Profile};
use crate::tasks::Tasks;
use crate::work::work;
use analyze::Guarantee;
use app::check::Options;
use app::{Charged, Choice, On};
use model::{Duration, Error, Result, document};
use pyo3::prelude::*;
use std::path::PathBuf;

/// The platform of a call: an object, or this machine.
pub(crate) fn on(platform: Option<&Platform>) -> On {
    match platform {
        Some(platform) => On::Platform(Choice::Value(platform.platform.clone())),
        None => On::ThisMachine,
    }
}

/// The costs of a call.
///
/// # Errors
/// There is no such load or statistic.
pub(crate) fn charged(
    profile: Option<&Profile>,
    load: Option<&str>,
    statistic: Option<&str>,
) -> Result<Charged> {
    let mut charged = Charged {
        profile: profile.map(|p| Choice::Value(p.profile.clone())),
        ..Charged::default()
    };
    if let Some(load) = load {
        charged.load = load.parse()?;
    }
    charged.statistic = statistic.map(str::parse).transpose()?;
    Ok(charged)
}

fn guarantee(text: &str) -> Result<Guarantee> {
    match text {
        "hard" => Ok(Guarantee::Hard),
        "soft" => Ok(Guarantee::Soft),
        other => Err(Error::new(format!("unknown guarantee `{other}`"))
            .at("guarantee")
            .remedy("write `hard` or `soft`")),
    }
}

/// Judges a task set: the document of `warmset check --format json`.
#[pyfunction]
#[pyo3(signature = (
    tasks, platform=None, policies=None, guarantee=None, profile=None, load=None, statistic=None,
    cpmd_ns=None, accounting=None, assignment=None, certificate=None, progress=None
))]
#[allow(clippy::too_many_arguments, reason = "options by name, in Python")]
pub(crate) fn check(
    py: Python<'_>,
    tasks: &Tasks,
    platform: Option<&Platform>,
    policies: Option<String>,
    guarantee: Option<&str>,
    profile: Option<&Profile>,
    load: Option<&str>,
    statistic: Option<&str>,
    cpmd_ns: Option<u64>,
    accounting: Option<&str>,
    assignment: Option<PathBuf>,
    certificate: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = Options {
        on: on(platform),
        charged: charged(profile, load, statistic).map_err(raise)?,
        cpmd: cpmd_ns.map(Duration::from_nanos),
        accounting: accounting.map(str::parse).transpose().map_err(raise)?,
        guarantee: guarantee.map(self::guarantee).transpose().map_err(raise)?,
        policies,
        assignment,
        certificate,
    };
    work(py, progress, |watch| {
        document::compact(&app::check::check(&tasks.tasks, &options, watch)?)
    })
}
