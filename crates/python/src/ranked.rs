//! A policy written in Python: a rank a job, by which a cluster of processors is scheduled.

use crate::check::on;
use crate::error::raise;
use crate::profile::Platform;
use crate::tasks::Tasks;
use crate::work::{Asked, work};
use app::Choice;
use app::scheduling::{Scheduling, assignment_for};
use app::simulate::{Options, Simulated};
use model::files::Aside;
use model::watch::Watch;
use model::{Duration, Error, Result, document};
use policy::cluster::{Cluster, Rank};
use policy::{Job, Plan, queue};
use pyo3::prelude::*;
use simulate::{Distributions, Traced, ideal};
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use trace::{FileSink, Header, Releases};

/// The ranks that a function of Python gives.
#[derive(Clone)]
struct Ranks {
    asked: Arc<Mutex<Called>>,
}

struct Called {
    rank: Py<PyAny>,
    /// By task, the number and the rank of its job that was ranked last: a job has one rank.
    known: HashMap<u32, (u64, u64)>,
    /// The first error that the function raised. The simulation ends then.
    raised: Option<PyErr>,
}

impl Ranks {
    fn called<T>(&self, with: impl FnOnce(&mut Called) -> T) -> T {
        with(&mut self.asked.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Rank for Ranks {
    fn key(&self, job: &Job) -> u128 {
        let rank = self.called(|called| match called.known.get(&job.task.0) {
            Some((number, rank)) if *number == job.number => *rank,
            _ if called.raised.is_some() => 0,
            _ => {
                let (release, deadline) = (job.release.nanos(), job.deadline.nanos());
                let arguments = (job.task.0, job.number, release, deadline);
                let answer = Python::attach(|py| {
                    let rank = called.rank.call1(py, arguments)?;
                    rank.extract::<u64>(py)
                });
                let rank = answer.unwrap_or_else(|e| {
                    called.raised = Some(e);
                    0
                });
                called.known.insert(job.task.0, (job.number, rank));
                rank
            }
        });
        queue::key(rank, job.task.0, job.task)
    }
}

/// Ends the simulation when the function has raised an error.
struct Until<'a> {
    watch: &'a Asked,
    ranks: &'a Ranks,
}

impl Watch for Until<'_> {
    fn begin(&self, what: &str, total: u64) {
        self.watch.begin(what, total);
    }
    fn advance(&self, steps: u64) {
        self.watch.advance(steps);
    }
    fn note(&self, text: &str) {
        self.watch.note(text);
    }
    fn stopped(&self) -> bool {
        self.watch.stopped() || self.ranks.called(|called| called.raised.is_some())
    }
}

/// Simulates a task set under a policy that ranks jobs by a function `rank(task, number, release_ns,
/// deadline_ns)`, on all processors or on those that bin packing gives each task: the document of
/// `warmset simulate --format json`, and whether a deadline that counts was missed. The trace names
/// the policy `like`, where that is given, so that the checker holds it against the rules of that.
#[pyfunction]
#[pyo3(signature = (
    tasks, rank, name, partitioned=false, like=None, platform=None, horizon_ns=None,
    releases=None, execution=None, seed=1, brute_force=false, fit=None, trace=None, progress=None
))]
#[allow(clippy::too_many_arguments, reason = "options by name, in Python")]
pub(crate) fn simulate_ranked(
    py: Python<'_>,
    tasks: &Tasks,
    rank: Py<PyAny>,
    name: String,
    partitioned: bool,
    like: Option<String>,
    platform: Option<&Platform>,
    horizon_ns: Option<u64>,
    releases: Option<String>,
    execution: Option<String>,
    seed: u64,
    brute_force: bool,
    fit: Option<&str>,
    trace: Option<PathBuf>,
    progress: Option<Py<PyAny>>,
) -> PyResult<(String, bool)> {
    let options = || -> Result<Options> {
        let base = match partitioned {
            true => "p-edf",
            false => "g-edf",
        };
        let mut scheduling = Scheduling::of(base)?;
        if let Some(fit) = fit {
            scheduling.fit = fit.parse()?;
        }
        let mut options = Options {
            scheduling,
            on: on(platform),
            horizon: horizon_ns.map(Duration::from_nanos),
            seed,
            brute_force,
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
    let called = called_as(&name, like).map_err(raise)?;
    let ranks = Ranks {
        asked: Arc::new(Mutex::new(Called {
            rank,
            known: HashMap::new(),
            raised: None,
        })),
    };
    let simulated = work(py, progress, |watch| {
        let until = Until {
            watch,
            ranks: &ranks,
        };
        let policy = (&name[..], &called[..], partitioned);
        simulated(tasks, &options, policy, &ranks, trace.as_deref(), &until)
    });
    match ranks.called(|called| called.raised.take()) {
        Some(raised) => Err(raised),
        None => simulated,
    }
}

/// What traces call the policy.
///
/// # Errors
/// A name that no policy can have, or that of a built-in one; `like` is no policy.
fn called_as(name: &str, like: Option<String>) -> Result<String> {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
    if name.is_empty() || !name.chars().all(is_word) {
        return Err(Error::new(format!("`{name}` cannot name a policy"))
            .at("name")
            .remedy("write lower-case letters, digits and `-`"));
    }
    if policy::catalog::find(name).is_some() {
        return Err(Error::new(format!("`{name}` is a built-in policy"))
            .at("name")
            .remedy("name it otherwise, and say what it is to be the same as by `like`"));
    }
    match like {
        Some(like) => Ok(like
            .parse::<policy::Spec>()
            .map_err(|e| e.at("like"))?
            .to_string()),
        None => Ok(name.to_owned()),
    }
}

fn simulated(
    tasks: &Tasks,
    options: &Options,
    (name, called, partitioned): (&str, &str, bool),
    ranks: &Ranks,
    trace: Option<&Path>,
    watch: &Until<'_>,
) -> Result<(String, bool)> {
    let (set, how) = (&tasks.tasks.set, &options.scheduling);
    let platform = options.on.platform()?;
    let scenario = options.scenario_of(set, &platform)?;
    let assignment = match assignment_for(how.policy(), set, &platform, how.fit)? {
        Ok(assignment) => assignment,
        Err(why) => {
            return Err(Error::new(why)
                .at(&tasks.tasks.place)
                .remedy("choose another `fit`, more processors, or a global policy"));
        }
    };
    let setup = how.setup(set, &platform, assignment.as_ref());
    let plan: Plan<Cluster<Ranks>> = match partitioned {
        true => setup.clustered(setup.clusters_given(name, true)?, ranks, None)?,
        false => setup.global(ranks, None)?,
    };
    let mut stage = how.stage(how.policy(), assignment.clone())?;
    stage.policy = called.to_owned();
    let sink = match trace {
        None => None,
        Some(file) => {
            let provenance = model::Provenance {
                seed: Some(options.seed),
                ..app::provenance("warmset.simulate")
            };
            let header = Header {
                releases: match scenario.releases {
                    simulate::Releases::Periodic => Releases::Periodic,
                    simulate::Releases::Sporadic(_) | simulate::Releases::SporadicBy(_) => {
                        Releases::Sporadic
                    }
                    simulate::Releases::Given(_) => Releases::Given,
                },
                ..Header::simulated(set.clone(), platform.clone(), stage, provenance)
            };
            Some(FileSink::new(Aside::create(file)?, file, &header)?)
        }
    };
    let (summary, observed) = match sink {
        None => {
            let distributions = Distributions::new(set);
            let (summary, distributions) =
                ideal::run(plan, set, &platform, &scenario, watch, distributions)?;
            (summary, (distributions, None))
        }
        Some(sink) => {
            let observer = (Distributions::new(set), Traced(sink));
            let (summary, (distributions, Traced(sink))) =
                ideal::run(plan, set, &platform, &scenario, watch, observer)?;
            (summary, (distributions, Some(sink)))
        }
    };
    let (distributions, sink) = observed;
    if let Some(sink) = sink {
        sink.finish()?.finish()?;
    }
    let simulated = Simulated::of(name.to_owned(), set, &platform, &summary, &distributions);
    Ok((document::compact(&simulated)?, simulated.missed))
}
