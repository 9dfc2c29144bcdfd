//! The tests of P-EDF: partition in decreasing utilization, then exact uniprocessor EDF per
//! processor.
//!
//! 002 §2.2.3 and §6.3; 000 §5. Packing is by utilization, so that the assignment is the one of the
//! heuristic and not of the test; packing with the test per placement is [`super::partition`]. A
//! rejected set may be schedulable with another partition.

use super::{Fit, Order, Scratch};
use crate::carries::Carries;
use crate::clustered::decide_assigned;
use crate::info::TestInfo;
use crate::uniprocessor::{Work, delayed};
use crate::verdict::{Decision, Exactness, Guarantee};
use crate::{clustered::Failure, uniprocessor};
use model::{Extras, Timing};

const fn info(
    name: &'static str,
    about: &'static str,
    run: fn(&[Timing], u32) -> Decision,
    carries: Carries,
) -> TestInfo {
    TestInfo {
        name,
        policy: "p-edf",
        guarantee: Guarantee::Hard,
        exactness: Exactness::Sufficient,
        source: "002 §2.2.3 and §6.3; Zhang, Burns 2009 per processor",
        preconditions: "none: arbitrary deadlines",
        about,
        run,
        run_inflated: None,
        on_grid: None,
        carries,
    }
}

/// Worst fit.
pub const WFD: TestInfo = info(
    "PEDF-WFD",
    "Worst fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::Worst),
    Carries::Own(|tasks, extras, m| decide_with(tasks, extras, m, Fit::Worst)),
);
/// First fit.
pub const FFD: TestInfo = info(
    "PEDF-FFD",
    "First fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::First),
    Carries::Own(|tasks, extras, m| decide_with(tasks, extras, m, Fit::First)),
);
/// Best fit.
pub const BFD: TestInfo = info(
    "PEDF-BFD",
    "Best fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::Best),
    Carries::Own(|tasks, extras, m| decide_with(tasks, extras, m, Fit::Best)),
);
/// Next fit.
pub const NFD: TestInfo = info(
    "PEDF-NFD",
    "Next fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::Next),
    Carries::Own(|tasks, extras, m| decide_with(tasks, extras, m, Fit::Next)),
);

/// The same packing, then the analysis of [`delayed`] on every processor.
fn decide_with(tasks: &[Timing], extras: &[Extras], m: u32, fit: Fit) -> Decision {
    let mut scratch = Scratch::new();
    let sizes = vec![1; m as usize];
    let Ok(processor_of) = scratch.pack(tasks, &sizes, Order::DecreasingUtilization, fit) else {
        return Ok(false);
    };
    let mut work = Work::new();
    for processor in 0..m {
        let here = |i: &usize| processor_of[*i] == processor;
        let inside: Vec<usize> = (0..tasks.len()).filter(here).collect();
        let timings: Vec<Timing> = inside.iter().map(|i| tasks[*i]).collect();
        let extras: Vec<Extras> = inside.iter().map(|i| extras[*i]).collect();
        if !delayed::decide_edf(&timings, &extras, &mut work)? {
            return Ok(false);
        }
    }
    Ok(true)
}

fn decide(tasks: &[Timing], m: u32, fit: Fit) -> Decision {
    let sizes = vec![1; m as usize];
    let mut scratch = Scratch::new();
    let Ok(processor_of) = scratch.pack(tasks, &sizes, Order::DecreasingUtilization, fit) else {
        return Ok(false);
    };
    match decide_assigned(tasks, &sizes, processor_of, Guarantee::Hard).failure {
        None => Ok(true),
        Some(Failure::Limit(_)) => Err(uniprocessor::LIMIT),
        Some(_) => Ok(false),
    }
}
