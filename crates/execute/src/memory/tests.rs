//! The whole engine in memory, under every policy: what it decides, what it writes, what it does
//! where a backend fails.

mod decisions;
mod failures;
mod handovers;
mod limits;

use super::driver::{self, Ran, Settings};
use super::{Execution, Failure, Operation};
use analyze::assign::{How, assign};
use model::{
    Assignment, Details, Duration, Instant, Platform, Provenance, TaskId, TaskSet, Timing,
};
use policy::{AnyPlan, Setup, Spec};
use std::sync::Arc;
use trace::check::Options;
use trace::{Checker, Event, EventKind, Header, Origin, Sink, Stage, Statistics, Verdict};

/// Every word by which the suites try a policy; quantum-driven ones with quanta that these sets
/// suit.
fn policies() -> impl Iterator<Item = String> {
    let quantum = |word: &str| match word.contains(':') {
        true => format!("{word},quantum=1ms"),
        false => format!("{word}:quantum=1ms"),
    };
    let words = policy::catalog::all().iter().flat_map(move |info| {
        let tried = info.tried.iter().filter(|word| !word.contains("quantum"));
        tried.map(move |word| match info.quantum_driven {
            true => quantum(word),
            false => (*word).to_owned(),
        })
    });
    words.chain(["nps-f:delta=2".to_owned()])
}

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

fn at(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}

/// Four processors.
fn platform() -> Platform {
    Platform::builtin("core-i7").unwrap()
}

/// A set of (WCET, period, phase) in nanoseconds.
fn set_of(tasks: &[(u64, u64, u64)]) -> TaskSet {
    let tasks = (1..).zip(tasks).map(|(number, (wcet, period, phase))| {
        let ns = Duration::from_nanos;
        let details = Details {
            phase: ns(*phase),
            wss: Some(model::Bytes::from_kib(64)),
            ..Details::named(format!("T{number}"))
        };
        (Timing::implicit(ns(*wcet), ns(*period)), details)
    });
    TaskSet::new(tasks.collect()).unwrap()
}

/// A set of (WCET, period, phase) in milliseconds.
fn set_of_ms(tasks: &[(u64, u64, u64)]) -> TaskSet {
    let ns = |(c, t, p): &(u64, u64, u64)| (c * 1_000_000, t * 1_000_000, p * 1_000_000);
    set_of(&tasks.iter().map(ns).collect::<Vec<_>>())
}

/// A policy, with the assignment that it needs for a set.
struct Case {
    policy: String,
    platform: Platform,
    set: TaskSet,
    assignment: Option<Assignment>,
}

impl Case {
    /// An error says why the policy cannot have the set.
    fn new(policy: &str, set: TaskSet) -> Result<Self, String> {
        let (platform, spec) = (platform(), policy.parse::<Spec>().unwrap());
        let assignment = assign(&spec, &set, &platform, &How::default())
            .unwrap()
            .map_err(|why| format!("{why:?}"))?;
        Ok(Case {
            policy: policy.to_owned(),
            platform,
            set,
            assignment,
        })
    }

    fn plan(&self) -> AnyPlan {
        let setup = Setup {
            set: &self.set,
            platform: &self.platform,
            assignment: self.assignment.as_ref(),
            quantum: ms(1),
        };
        self.policy.parse::<Spec>().unwrap().plan(&setup).unwrap()
    }

    fn stage(&self) -> Stage {
        let spec: Spec = self.policy.parse().unwrap();
        Stage {
            policy: self.policy.clone(),
            assignment: self.assignment.clone(),
            quantum: spec.quantum(ms(1)).unwrap(),
        }
    }

    /// Runs it in memory.
    fn run(&self, execution: Execution, settings: Settings) -> Ran {
        driver::run(&[self.plan()], &self.set, execution, settings)
    }

    /// What the checker says of what a run in memory wrote, where no decision may be late at all.
    fn check(&self, ran: &Ran) -> Verdict {
        check(&[self.stage()], self, ran, Duration::ZERO)
    }
}

/// The verdict over a run under several policies in turn, and nothing in it that makes no sense.
fn check(stages: &[Stage], case: &Case, ran: &Ran, tolerance: Duration) -> Verdict {
    let (set, platform) = (case.set.clone(), case.platform.clone());
    let header = Header {
        origin: Origin::Real,
        stages: stages.to_vec(),
        ..Header::simulated(set, platform, stages[0].clone(), Provenance::default())
    };
    let options = Options {
        tolerance,
        ..Options::for_trace(&header)
    };
    let mut checker = Checker::new(header.clone(), options).unwrap();
    let mut statistics = Statistics::new(&header, false);
    for event in &ran.events {
        checker.record(*event);
        statistics.record(*event);
    }
    let summary = statistics.summary();
    assert_eq!(summary.recorded.map(|r| r.senseless_events), Some(0));
    checker.finish()
}

/// Nothing failed, no contract was broken, nothing was lost.
fn is_sound(ran: &Ran) {
    assert_eq!(ran.breaches, [""; 0]);
    assert_eq!((ran.fault.as_deref(), ran.lost), (None, 0));
}

fn is_clean(verdict: &Verdict) {
    let broken: Vec<_> = verdict
        .first
        .iter()
        .map(|v| (v.rule, v.time_ns, &v.text))
        .collect();
    assert!(verdict.is_clean(), "{broken:#?}");
}

/// Jobs take these times in nanoseconds, for each task, job by job, and from the beginning again.
fn given(times: Vec<Vec<u64>>) -> Execution {
    let times = Arc::new(times);
    Box::new(move |task, number| {
        let of_task = &times[task.index()];
        Duration::from_nanos(of_task[number as usize % of_task.len()])
    })
}

/// Every job takes its WCET.
fn at_wcet(set: &TaskSet) -> Execution {
    given(set.timings().iter().map(|t| vec![t.wcet.nanos()]).collect())
}

/// The completions of a task, with their jobs.
fn completions(ran: &Ran, task: u32) -> Vec<u64> {
    let of_task = |e: &&Event| e.kind == EventKind::Completion && e.task == TaskId(task);
    ran.events.iter().filter(of_task).map(|e| e.job).collect()
}
