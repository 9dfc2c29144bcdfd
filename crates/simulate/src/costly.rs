//! The engine in virtual time with overheads, charged where 002 §2.4 and Fig. 2.7 have them.
//!
//! A processor executes a job, services something in the kernel, or idles. Kernel work is not
//! preempted: interrupts (releases, timer transfers, the tick) queue up in the order in which they
//! come and delay whoever runs; behind them comes rescheduling. The course of events:
//!
//! - *A release* interrupts the processor on which the task last ran (in its domain; at first they
//!   are dealt out in turn). When the interrupt is serviced the policy learns of the job and
//!   decides.
//! - *A decision* about the deciding processor is taken up there at once; about another one, after
//!   the latency of an inter-processor interrupt. A processor reschedules by choosing (scheduling
//!   overhead), and, if another job is due than the one that is loaded, by switching
//!   (context-switch overhead). What it switches to is fixed when it starts to choose.
//! - *A completion* makes the processor reschedule. A job that resumes first reloads its working
//!   set (CPMD), by the way in which it resumes; a preemption in the midst of that makes it start
//!   over. What it had to load from afar is still there then: the longer of the two delays counts.
//! - *A job that is still loaded elsewhere*, or that another processor has begun to choose, cannot
//!   be switched to: the old processor, having switched away, sends an inter-processor interrupt
//!   (002 §4.4.2).
//! - *The next job or slice of a migratory task* that is to be released elsewhere makes that
//!   processor program a timer.
//! - *The tick* interrupts every processor at multiples of its period, which is the quantum unless
//!   the costs have another. Timers of policies (slots, quanta) are local to each processor and
//!   cost what the tick and the rescheduling cost.
//! - *Under quantum-driven policies* a release is a part of the boundary: it costs the same, and
//!   the policy knows of the job when the quantum begins.
//!
//! There is one course of events, whoever watches: each piece of kernel work ends with an event
//! (`path::Plain`). Where nobody looks at events, a quick path leaves out those of which nothing
//! depends (`quick`); it comes to the same, and a test holds one against the other.

mod core;
mod decisions;
mod events;
mod path;
mod processor;
mod quick;

use self::core::Core;
use self::path::{Path, Plain};
use self::quick::Quick;
use crate::costs::Costs;
use crate::course::{self, Engine};
use crate::observe::Observer;
use crate::scenario::Scenario;
use crate::summary::Summary;
use model::watch::Watch;
use model::{Duration, Platform, Result, TaskSet};
use policy::{Domain, Plan, Policy};
use trace::Overhead;

/// Simulates a plan with overheads. Deterministic: same input, same events, same summary.
///
/// For an observer that looks at no events it takes the quick path.
///
/// # Errors
/// A scenario or costs out of range for the set.
pub fn run<P: Policy, O: Observer>(
    plan: Plan<P>,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    costs: &Costs,
    watch: &impl Watch,
    observer: O,
) -> Result<(Summary, O)> {
    plan.needs_no_counts()?;
    let with = (set, platform, scenario, costs);
    if O::EVENTS {
        run_on::<P, O, Plain>(plan, with, watch, observer)
    } else {
        run_on::<P, O, Quick>(plan, with, watch, observer)
    }
}

/// As [`run`], on the plain path whoever watches: what the quick path is compared with.
///
/// # Errors
/// A scenario or costs out of range for the set.
pub fn run_plainly<P: Policy, O: Observer>(
    plan: Plan<P>,
    set: &TaskSet,
    platform: &Platform,
    scenario: &Scenario,
    costs: &Costs,
    watch: &impl Watch,
    observer: O,
) -> Result<(Summary, O)> {
    run_on::<P, O, Plain>(plan, (set, platform, scenario, costs), watch, observer)
}

/// What a plan is simulated with.
type With<'a> = (&'a TaskSet, &'a Platform, &'a Scenario, &'a Costs);

fn run_on<P: Policy, O: Observer, F: Path>(
    plan: Plan<P>,
    with: With<'_>,
    watch: &impl Watch,
    observer: O,
) -> Result<(Summary, O)> {
    let Plan { mut domains, route } = plan;
    let (set, platform, scenario, costs) = with;
    costs.check(set, platform)?;
    let core: Core<'_, O, F> = Core::new(&domains, route, with, observer)?;
    let mut driven = Driven {
        domains: &mut domains,
        core,
    };
    let (ending, end) = course::run(&mut driven, scenario, watch);
    let mut core = driven.core;
    core.stop_at(end);
    if O::EVENTS {
        core.jobs.show_unfinished(end, &mut core.show);
    }
    core.show.close();
    let mut summary = core.jobs.summary(ending, end, core.decisions);
    let of = |row: &[u64; Overhead::ALL.len()]| row.map(Duration::from_nanos);
    for (task, lost) in summary.tasks.iter_mut().zip(&core.lost) {
        task.lost = of(lost);
    }
    summary.lost = of(&core.lost[set.len()]);
    Ok((summary, core.show.observer))
}

/// The engine with the policies that it drives.
struct Driven<'r, 'a, P, O, F: Path> {
    domains: &'r mut [Domain<P>],
    core: Core<'a, O, F>,
}

impl<P: Policy, O: Observer, F: Path> Engine for Driven<'_, '_, P, O, F> {
    #[inline(always)]
    fn instant(&mut self, horizon: u64) {
        self.core.instant(self.domains, horizon);
    }

    #[inline(always)]
    fn next(&mut self, _horizon: u64) -> u64 {
        F::next::<P, O>(&mut self.core)
    }

    #[inline(always)]
    fn advance(&mut self, now: u64) {
        self.core.now = now;
        self.core.show.advance(now);
    }

    #[inline(always)]
    fn has_missed(&self) -> bool {
        self.core.jobs.first_miss.is_some()
    }
}
