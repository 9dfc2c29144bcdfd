//! Where sufficient tests refuse a small set: is there a schedule that misses?
//!
//! Asked about the tasks as they were given, without overheads: these are upper bounds, so that a
//! schedule with them need not occur. First the synchronous release of any set, then, for small
//! sets, every release on the half grid ([`super::states`]).

use super::format::{Number, Piece, Refusal};
use super::schedule::{self, Miss, Model};
use super::states::{self, Outcome};
use super::{Certifier, Here};
use crate::policies::PolicyVerdict;
use crate::verdict::Guarantee;
use model::{ClusterSpec, Duration, TaskSet};
use num_integer::Integer as _;
use num_rational::BigRational;
use policy::catalog::Order;
use serde::Serialize;

/// The jobs of the synchronous release that are looked at.
const JOBS: u64 = 1_000;
/// The most steps from one state to another.
const STEPS: usize = 300_000;
/// Times above are not scheduled, in ticks: sums of them stay far below 2^64.
const LONGEST: u64 = 1 << 48;

/// Does a policy miss a deadline, where no test shows that it does not?
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Found {
    /// There is a schedule that misses.
    DoesMiss,
    /// No schedule misses whose releases are on the grid.
    CannotMiss,
    /// The search ended without an answer.
    NotDecided,
}

/// What a search for a schedule that misses came to, for the tasks without overheads.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Searched {
    /// The answer.
    pub found: Found,
    /// The longest time that all times of the tasks are multiples of. Releases were tried at
    /// multiples of half of it.
    #[serde(rename = "unit_ns", serialize_with = "model::time::ns::serialize")]
    pub unit: Duration,
    /// How many states of the schedules were looked at; 0: the synchronous release decided, or the
    /// set is too large.
    pub states: usize,
    /// What the certificate shows.
    #[serde(skip)]
    pub(crate) miss: Option<Refusal>,
}

impl Certifier<'_> {
    /// Looks for a schedule that misses, where a verdict says neither yes nor no.
    pub(super) fn search(&self, verdict: &mut PolicyVerdict) {
        let hard = self.question.guarantee == Guarantee::Hard;
        let is_global = self.question.policy.clusters == ClusterSpec::Global
            && !matches!(self.question.policy.order, Order::Releases | Order::Own)
            && self.question.policy.is_packed();
        if verdict.schedulable || verdict.refuted || !hard || !is_global || has_phases(self) {
            return;
        }
        let tasks = self.question.set.timings().iter().copied().enumerate();
        let here = self.here(tasks.collect(), self.question.platform.usable());
        let (model, unit) = in_ticks(&here, self.is_fixed());
        let (outcome, states) = decide(&model, here.is_delayed());
        let task = |at: usize| {
            let mut ids = self.question.set.ids();
            let asked = ids.find(|id| self.original(id.index()) == here.ids[at]);
            asked.map_or_else(String::new, |id| self.question.set.name(id))
        };
        let time = |ticks: u64| shown(ticks, unit);
        let words = match &outcome {
            Ok(Some(miss)) => {
                let due = miss.released + model.tasks[miss.task].deadline;
                format!(
                    "it does miss: in a schedule that the certificate holds, `{}`, released at {}, is not complete at {}",
                    task(miss.task),
                    time(miss.released),
                    time(due),
                )
            }
            Ok(None) => {
                let free = self.question.bill.is_free();
                format!(
                    "{}; a search of all releases at multiples of {} finds no miss{}",
                    verdict.reason,
                    time(1),
                    match free {
                        true => ": it cannot miss by these, and the tests are too weak",
                        false => " without overheads",
                    }
                )
            }
            Err(why) => format!(
                "{}; whether it does miss is not decided: {why}",
                verdict.reason
            ),
        };
        verdict.reason = words;
        verdict.refuted = matches!(outcome, Ok(Some(_)));
        verdict.searched = Some(Searched {
            found: match outcome {
                Ok(Some(_)) => Found::DoesMiss,
                Ok(None) => Found::CannotMiss,
                Err(_) => Found::NotDecided,
            },
            unit: Duration::from_nanos(unit),
            states,
            miss: outcome
                .ok()
                .flatten()
                .map(|miss| refusal(&here, miss, unit)),
        });
    }
}

fn has_phases(certifier: &Certifier<'_>) -> bool {
    let set: &TaskSet = certifier.question.set;
    let mut all = set.ids().filter_map(|id| set.details(id));
    all.any(|details| !details.phase.is_zero())
}

/// A miss of one place by fixed priorities if all its tasks are released together, up to a time.
pub(super) fn together(here: &Here, horizon: Duration) -> Option<Refusal> {
    let (model, unit) = in_ticks(here, true);
    let miss = model.synchronous_miss_by((horizon.nanos() / unit).checked_mul(2)?)?;
    Some(refusal(here, model.shortened(miss), unit))
}

/// The tasks in ticks of half a unit, and the unit in nanoseconds.
fn in_ticks(here: &Here, is_fixed: bool) -> (Model, u64) {
    let times = here
        .tasks
        .iter()
        .flat_map(|t| [t.wcet, t.period, t.deadline]);
    let unit = times
        .fold(0_u64, |unit, time| unit.gcd(&time.nanos()))
        .max(1);
    let ticks = |time: Duration| (time.nanos() / unit).saturating_mul(2);
    let tasks = here.tasks.iter().map(|t| schedule::Task {
        wcet: ticks(t.wcet),
        period: ticks(t.period),
        deadline: ticks(t.deadline),
    });
    let model = Model {
        tasks: tasks.collect(),
        ranks: is_fixed.then(|| here.ranks.clone()),
        m: here.cpus.len(),
    };
    (model, unit)
}

/// A miss, or none; inside an error, why it is not known. Also: how many states were looked at.
fn decide(model: &Model, is_delayed: bool) -> (Result<Option<Miss>, &'static str>, usize) {
    let longest = model.tasks.iter().map(|t| t.period.max(t.deadline)).max();
    let longest = longest.unwrap_or(0);
    if longest > LONGEST {
        return (Err("its times are too long to be scheduled"), 0);
    }
    if let Some(miss) = model.synchronous_miss(JOBS) {
        return (Ok(Some(model.shortened(miss))), 0);
    }
    if model.tasks.len() > states::TASKS || longest > states::LONGEST {
        return (
            Err("the set has too many tasks, or times of too many units, for a search"),
            0,
        );
    }
    let (outcome, states) = states::search(model, STEPS);
    let decided = match outcome {
        Outcome::Miss(releases) => {
            let miss = model
                .first_miss(&releases)
                .map(|miss| model.shortened(miss));
            miss.map(Some)
                .ok_or("a miss that was found is none by its schedule")
        }
        // What is not found without them may come with them.
        Outcome::NoMiss if is_delayed => Err("blocking and jitter are not searched"),
        Outcome::NoMiss => Ok(None),
        Outcome::TooMany => Err("there are too many states for a search"),
    };
    (decided, states)
}

/// The miss as it stands in a certificate.
fn refusal(here: &Here, miss: Miss, unit: u64) -> Refusal {
    let time = |ticks: u64| {
        let twice = i128::from(ticks) * i128::from(unit);
        Number::from(BigRational::new(twice.into(), 2.into()))
    };
    let times = |times: &Vec<u64>| times.iter().map(|t| time(*t)).collect();
    let piece = |piece: &schedule::Piece| Piece {
        until_ns: time(piece.until),
        runs: piece.runs.iter().map(|at| here.ids[*at]).collect(),
    };
    Refusal::Miss {
        index: here.ids[miss.task],
        releases_ns: miss.releases.iter().map(times).collect(),
        schedule: miss.schedule.iter().map(piece).collect(),
    }
}

/// A time of so many ticks, as people read it.
fn shown(ticks: u64, unit: u64) -> String {
    let twice = u128::from(ticks) * u128::from(unit);
    match twice.is_multiple_of(2) {
        true => u64::try_from(twice / 2).map_or_else(
            |_| format!("{} ns", twice / 2),
            |ns| Duration::from_nanos(ns).to_string(),
        ),
        false => format!("{}.5ns", twice / 2),
    }
}
