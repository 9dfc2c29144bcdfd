//! One run of a set on the engine, whose jobs are those of Fig. 1 of 000.
//!
//! The engine tells each job of its preemptions on a control page (000 §3.3) and schedules as it
//! always does. Assumes that polluters, where there are some, run already.

use execute::{Control, Ending, Performer, Settings};
use machine::clock::Clock;
use measure::disturb;
use measure::plan::Block;
use measure::run::Taken;
use measure::scheduled::job::{Given, Jobs, Tools};
use measure::scheduled::rule::{News, Why};
use measure::walk::WorkingSet;
use model::watch::Watch;
use model::{CpuId, Duration, Error, Result, TaskSet};
use policy::AnyPlan;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, PoisonError};
use trace::{Event, Sink};

/// The part of its WCET that a job executes at most.
const PART: f64 = 0.9;

/// What came of a run.
#[derive(Debug, Default)]
pub(super) struct Seen {
    /// Jobs that went as in the figure, with why they do not count all the same.
    pub taken: Vec<(Taken, Option<measure::samples::Discard>)>,
    /// Why the others gave no sample.
    pub others: BTreeMap<Why, u64>,
}

/// Nothing of the run's events is needed.
struct Nowhere;
impl Sink for Nowhere {
    fn record(&mut self, _event: Event) {}
}

struct Job<C, P>(Jobs<C, P>);
impl<C: Clock, P: Fn() -> News + Send> workload::Work for Job<C, P> {
    fn job(&mut self, _number: u64, stop: &AtomicBool) {
        self.0.job(stop);
    }
}

/// Runs a set under a plan for so long.
///
/// # Errors
/// As [`execute::run`]; there is no memory; the user stopped it.
pub(super) fn run<C: Clock + 'static>(
    plan: AnyPlan,
    set: &TaskSet,
    block: &Block,
    tools: &Tools<C>,
    horizon: Duration,
    watch: &dyn Watch,
) -> Result<Seen> {
    let given = Given::default();
    let mut pages = Vec::new();
    let mut works = Vec::new();
    for timing in set.timings() {
        let page = Arc::new(Control::default());
        let limit = Duration::from_nanos((timing.wcet.nanos() as f64 * PART) as u64);
        let read = Arc::clone(&page);
        let news = move || {
            let told = read.read();
            News {
                preemptions: told.preemptions,
                migrations: told.migrations,
                length: told.preemption_length,
                processor: CpuId(told.processor),
            }
        };
        let jobs = Jobs::new(
            tools,
            block.wss,
            block.write_ratio,
            limit,
            news,
            Arc::clone(&given),
        )?;
        let work: Box<dyn workload::Work> = Box::new(Job(jobs));
        works.push(Performer::from(work));
        pages.push(page);
    }
    let settings = Settings {
        horizon,
        pages,
        ..Settings::default()
    };
    let outcome = execute::run(plan, set, works, &settings, &watch, &mut Nowhere, |_| {})?;
    if outcome.ending == Ending::Interrupted {
        return Err(Error::new("stopped before the run was done"));
    }
    let given = std::mem::take(&mut *given.lock().unwrap_or_else(PoisonError::into_inner));
    Ok(judged(given, block))
}

/// Samples that were disturbed do not count, by the rule of the synthetic method.
fn judged(given: Vec<Result<Taken, Why>>, block: &Block) -> Seen {
    let mut seen = Seen::default();
    let mut taken = Vec::new();
    for one in given {
        match one {
            Ok(sample) => taken.push(sample),
            Err(why) => *seen.others.entry(why).or_default() += 1,
        }
    }
    let evidence: Vec<_> = taken.iter().map(|t| t.evidence.clone()).collect();
    let causes = disturb::judge(&evidence, &WorkingSet::lines_of_blocks(block.wss));
    seen.taken = taken.into_iter().zip(causes).collect();
    seen
}
