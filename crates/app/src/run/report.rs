//! What came of a run.

use super::colors::Statement;
use super::engine::Carrier;
use super::performers::Workloads;
use crate::simulate::Profiled;
use execute::preflight::Finding;
use execute::witness::Testimony;
use execute::{Ending, Outcome};
use model::{CpuId, Duration, Error, Result, TaskSet};
use serde::Serialize;
use trace::{Summary, Verdict};
use workload::CountBy;

/// Percentiles of times, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Times {
    /// How many there are.
    pub count: usize,
    /// The median.
    #[serde(rename = "median_ns")]
    pub p50_ns: u32,
    /// All but one in a hundred are shorter.
    pub p99_ns: u32,
    /// All but one in a thousand are shorter.
    pub p999_ns: u32,
    /// The longest.
    pub max_ns: u32,
}

impl Times {
    /// Of sorted times.
    fn of(sorted: &[u32]) -> Self {
        let at = |part: f64| {
            let rank = (part * sorted.len() as f64).ceil() as usize;
            sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
        };
        Times {
            count: sorted.len(),
            p50_ns: at(0.5),
            p99_ns: at(0.99),
            p999_ns: at(0.999),
            max_ns: at(1.0),
        }
    }
}

/// The calibrated workload of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Workload {
    /// The name of the task.
    pub task: String,
    /// How many units of work a job is.
    pub units_per_job: u64,
    /// How long a unit takes, in picoseconds: the median of the calibration.
    pub unit_median_ps: u64,
    /// The lower end of its 95 % interval.
    pub unit_low_ps: u64,
    /// The upper end of its 95 % interval.
    pub unit_high_ps: u64,
    /// How long a job is meant to last.
    #[serde(rename = "job_ns", serialize_with = "model::time::ns::serialize")]
    pub job: Duration,
    /// How far the ends of the interval are from the median at most, as a part of it.
    #[serde(skip)]
    pub uncertainty: f64,
}

/// What became of the program of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Program {
    /// The name of the task.
    pub task: String,
    /// How it ended, in words.
    pub outcome: String,
    /// When, after the release of all.
    #[serde(rename = "at_ns", serialize_with = "model::time::ns::serialize")]
    pub at: Duration,
}

/// What came of the trigger of a task.
#[derive(Clone, Debug, Serialize)]
pub struct Trigger {
    /// The name of the task.
    pub task: String,
    /// Releases that were asked for.
    pub events: u64,
    /// Those that came earlier than a period after the release before.
    pub deferred: u64,
    /// Those that still waited at the end.
    pub left: u64,
    /// Whether it was closed before the end.
    pub ended: bool,
}

/// What was done in the time that jobs left.
#[derive(Clone, Debug, Serialize)]
pub struct BestEffort {
    /// The name of the work.
    pub name: String,
    /// Processor time within the run.
    pub executed_ns: u64,
    /// Of all of its processors' time.
    pub share: f64,
    /// Units of its workload that were done; none of a program.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<u64>,
    /// How a program ended before the run did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
}

/// A run, checked and added up. JSON: as `warmset run --format json`.
#[derive(Debug, Serialize)]
pub struct Ran {
    /// The policies, separated by commas where several took turns.
    pub policy: String,
    /// Who carried it out.
    pub engine: Carrier,
    /// The name of the platform.
    pub platform: String,
    /// Why it ended: `horizon`, `programs` or `interrupt`.
    pub ended_by: &'static str,
    /// When all tasks were released, by the clock on the wall.
    pub released_at: String,
    /// The same by `CLOCK_MONOTONIC`.
    pub released_at_ns: u64,
    /// How long it ran.
    #[serde(rename = "ran_ns", serialize_with = "model::time::ns::serialize")]
    pub ran: Duration,
    /// What was seen before it.
    pub preflight: Vec<Finding>,
    /// Workloads that were calibrated.
    pub workloads: Vec<Workload>,
    /// What became of programs.
    pub programs: Vec<Program>,
    /// What came of triggers.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub triggers: Vec<Trigger>,
    /// What was done in the time that jobs left.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub best_effort: Vec<BestEffort>,
    /// The same fields as in the answers of `simulate` and `trace::stats`.
    #[serde(flatten)]
    pub summary: Summary,
    /// Decisions asked of the policy.
    pub decisions: u64,
    /// Dispatchers: to take note and decide.
    pub thoughts: Times,
    /// Dispatchers: to take note, decide and carry out.
    pub steps: Times,
    /// From there to a job's first instruction on another processor.
    pub calls: Times,
    /// Release to first instruction, of jobs that were chosen at their release.
    pub latency: Times,
    /// By how much a dispatcher woke up too late at most.
    #[serde(
        rename = "longest_gap_ns",
        serialize_with = "model::time::ns::serialize"
    )]
    pub longest_gap: Duration,
    /// How often one was late by more than 5 ms.
    pub gaps_over_5ms: u64,
    /// The colors that were given out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub colors: Option<Statement>,
    /// Under `ca-edf:wss=profiled`: what the policy found of the working set of each multithreaded
    /// task.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub profiled: Vec<Profiled>,
    /// By what it found it: `counters` of the processor, or `pages` that jobs touched.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub profiled_by: Option<&'static str>,
    /// What the kernel's scheduler says, if it was asked.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub witness: Option<Testimony>,
    /// Whether the trace keeps all rules.
    pub clean: bool,
    /// What the checker says.
    pub verdict: Verdict,
    /// Why it ended.
    #[serde(skip)]
    pub ending: Ending,
    /// The processors that it ran on.
    #[serde(skip)]
    pub cpus: Vec<CpuId>,
    /// The names of all tasks, in their order.
    #[serde(skip)]
    pub names: Vec<String>,
    /// Numbers of tasks whose job did not come back when it was told to end, from 1.
    #[serde(skip)]
    pub stuck: Vec<u32>,
    /// Whether a task that is not soft missed a deadline.
    #[serde(skip)]
    pub missed: bool,
    /// Events that were lost.
    #[serde(skip)]
    pub lost: u64,
    /// Its threads, as the kernel numbers them.
    #[serde(skip)]
    pub threads: Threads,
}

/// The threads of a run, as the kernel numbers them.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// By task; 0 where a program does its jobs.
    pub tasks: Vec<i32>,
    /// The dispatcher of each processor.
    pub dispatchers: Vec<(CpuId, i32)>,
    /// The watch for standstills of each processor.
    pub watches: Vec<(CpuId, i32)>,
}

impl Ran {
    /// Did everything hold: no hard deadline missed, no rule broken, no event lost, the witness
    /// agrees?
    pub fn holds(&self) -> bool {
        let denied = self.witness.as_ref().is_some_and(|t| t.disagreements > 0);
        !(self.missed || denied || !self.clean || self.lost > 0)
    }

    /// Is the run complete?
    ///
    /// # Errors
    /// The user stopped it: what it says is true up to then.
    pub fn complete(&self) -> Result<()> {
        match self.ending {
            Ending::Interrupted => Err(Error::new(format!(
                "the run was interrupted after {}",
                self.ran.rounded()
            ))
            .remedy("what is shown is true up to then; run it again for the rest")),
            Ending::Horizon | Ending::ProgramsEnded => Ok(()),
        }
    }
}

/// Everything that a report is made of.
pub(super) struct Parts<'a> {
    pub engine: Carrier,
    pub policy: String,
    pub platform: String,
    pub set: &'a TaskSet,
    pub cpus: Vec<CpuId>,
    pub findings: Vec<Finding>,
    pub workloads: Workloads,
    pub units: Vec<(String, u64)>,
    pub summary: Summary,
    pub verdict: Verdict,
    pub outcome: Outcome,
    pub released_at: String,
    pub colors: Option<Statement>,
    pub counted: Option<CountBy>,
    pub testimony: Option<Testimony>,
}

impl Parts<'_> {
    pub fn report(self) -> Ran {
        let missed = self.set.ids().any(|id| {
            let hard = !self.set.details(id).is_some_and(|d| d.soft);
            hard && self.summary.tasks[id.index()].misses > 0
        });
        let programs = self.programs();
        let triggers = self.triggers();
        let best_effort = self.best_effort();
        let Outcome {
            ending,
            end,
            origin,
            ..
        } = self.outcome;
        let mut summary = self.summary;
        if let Some(recorded) = &mut summary.recorded {
            // The engine also counts what was lost after the last event that it could record.
            recorded.lost_events = recorded.lost_events.max(self.outcome.lost);
        }
        Ran {
            policy: self.policy,
            engine: self.engine,
            platform: self.platform,
            ended_by: match ending {
                Ending::Horizon => "horizon",
                Ending::Interrupted => "interrupt",
                Ending::ProgramsEnded => "programs",
            },
            released_at: self.released_at,
            released_at_ns: origin,
            ran: Duration::from_nanos(end.nanos()),
            preflight: self.findings,
            workloads: workloads(self.workloads),
            programs,
            triggers,
            best_effort,
            summary,
            decisions: self.outcome.decisions,
            thoughts: Times::of(&self.outcome.thoughts),
            steps: Times::of(&self.outcome.steps),
            calls: Times::of(&self.outcome.calls),
            latency: Times::of(&self.outcome.latencies),
            longest_gap: self.outcome.latest,
            gaps_over_5ms: self.outcome.gaps,
            colors: self.colors,
            profiled: Profiled::all(self.set, &self.outcome.profiled),
            profiled_by: self.counted.map(|by| match by {
                CountBy::Counter(_) => "counters",
                CountBy::Pages { .. } => "pages",
            }),
            witness: self.testimony,
            clean: self.verdict.is_clean(),
            verdict: self.verdict,
            ending,
            cpus: self.cpus,
            names: self.set.ids().map(|id| self.set.name(id)).collect(),
            stuck: self.outcome.stuck.iter().map(|task| task.0 + 1).collect(),
            missed,
            lost: self.outcome.lost,
            threads: Threads {
                tasks: self.outcome.threads,
                dispatchers: self.outcome.dispatchers,
                watches: self.outcome.watches,
            },
        }
    }

    fn programs(&self) -> Vec<Program> {
        let programs = self.outcome.programs.iter().map(|end| Program {
            task: self.set.name(end.task),
            outcome: end.how.to_string(),
            at: Duration::from_nanos(end.at.nanos()),
        });
        programs.collect()
    }

    fn triggers(&self) -> Vec<Trigger> {
        let triggers = self.outcome.triggers.iter().map(|t| Trigger {
            task: self.set.name(t.task),
            events: t.events,
            deferred: t.deferred,
            left: t.left,
            ended: t.ended,
        });
        triggers.collect()
    }

    fn best_effort(&self) -> Vec<BestEffort> {
        let whole = self.outcome.end.nanos() as f64 * self.cpus.len() as f64;
        let of = |done: &execute::Done| {
            let known = self.units.iter().find(|(name, _)| *name == done.name)?;
            Some(BestEffort {
                name: known.0.clone(),
                executed_ns: done.executed.nanos(),
                share: done.executed.nanos() as f64 / whole.max(1.0),
                units: (known.1 > 0).then(|| known.1.saturating_mul(done.rounds)),
                outcome: done.ended.map(|how| how.to_string()),
            })
        };
        self.outcome.best_effort.iter().filter_map(of).collect()
    }
}

fn workloads(calibrated: Workloads) -> Vec<Workload> {
    let workload = |(task, c): (String, workload::Calibrated)| Workload {
        task,
        units_per_job: c.count,
        unit_median_ps: c.unit.median_ps,
        unit_low_ps: c.unit.low_ps,
        unit_high_ps: c.unit.high_ps,
        job: c.length,
        uncertainty: c.unit.uncertainty(),
    };
    calibrated.into_iter().map(workload).collect()
}
