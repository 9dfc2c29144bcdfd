//! A task set in virtual time.

use crate::check::{charged, on};
use crate::error::raise;
use crate::profile::{Platform, Profile};
use crate::tasks::Tasks;
use crate::work::work;
use app::Choice;
use app::scheduling::Scheduling;
use app::simulate::{Jitter, Options};
use model::{Duration, Error, Result, document};
use pyo3::prelude::*;
use std::path::PathBuf;

fn jitter(text: &str) -> Result<Jitter> {
    match text {
        "random" => Ok(Jitter::Random),
        "first" => Ok(Jitter::First),
        "none" => Ok(Jitter::None),
        other => Err(Error::new(format!("unknown kind of jitter `{other}`"))
            .at("jitter")
            .remedy("write `random`, `first` or `none`")),
    }
}

/// Simulates a task set: the document of `warmset simulate --format json`, and whether a deadline
/// that counts was missed.
#[pyfunction]
#[pyo3(signature = (
    tasks, policy="g-edf", platform=None, horizon_ns=None, releases=None, execution=None,
    jitter="random", seed=1, brute_force=false, profile=None, load=None, statistic=None,
    fit=None, enforcement=None, quantum_ns=None, assignment=None, trace=None, command="",
    progress=None
))]
#[allow(clippy::too_many_arguments, reason = "options by name, in Python")]
pub(crate) fn simulate(
    py: Python<'_>,
    tasks: &Tasks,
    policy: &str,
    platform: Option<&Platform>,
    horizon_ns: Option<u64>,
    releases: Option<String>,
    execution: Option<String>,
    jitter: &str,
    seed: u64,
    brute_force: bool,
    profile: Option<&Profile>,
    load: Option<&str>,
    statistic: Option<&str>,
    fit: Option<&str>,
    enforcement: Option<&str>,
    quantum_ns: Option<u64>,
    assignment: Option<PathBuf>,
    trace: Option<PathBuf>,
    command: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, bool)> {
    let options = || -> Result<Options> {
        let mut scheduling = Scheduling::of(policy)?;
        scheduling.assignment = assignment;
        if let Some(fit) = fit {
            scheduling.fit = fit.parse()?;
        }
        if let Some(enforcement) = enforcement {
            scheduling.enforcement = enforcement.parse()?;
        }
        if let Some(quantum) = quantum_ns {
            scheduling.quantum = Duration::from_nanos(quantum);
        }
        let mut options = Options {
            scheduling,
            on: on(platform),
            charged: charged(profile, load, statistic)?,
            horizon: horizon_ns.map(Duration::from_nanos),
            jitter: self::jitter(jitter)?,
            seed,
            brute_force,
            trace,
            command: command.to_owned(),
            ..Options::default()
        };
        if let Some(releases) = releases {
            options.releases = Choice::Named(releases);
        }
        if let Some(execution) = execution {
            options.execution = Choice::Named(execution);
        }
        Ok(options)
    };
    let options = options().map_err(raise)?;
    work(py, progress, |watch| {
        let simulated = app::simulate::simulate(&tasks.tasks, &options, watch)?;
        Ok((document::compact(&simulated)?, simulated.missed))
    })
}
