//! The tests of P-EDF: partition in decreasing utilization, then exact uniprocessor EDF per processor.
//!
//! 002 §2.2.3 and §6.3; 000 §5. Packing is by utilization, so that the assignment is the one of the heuristic and not of the test;
//! packing with the test per placement is [`super::partition`]. A rejected set may be schedulable with another partition.

use super::{Fit, Order, Scratch};
use crate::clustered::decide_assigned;
use crate::registry::TestInfo;
use crate::verdict::{Decision, Exactness, Guarantee};
use crate::{clustered::Failure, uniprocessor};
use model::Timing;

const fn info(name: &'static str, about: &'static str, run: fn(&[Timing], u32) -> Decision) -> TestInfo {
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
    }
}

/// Worst fit.
pub const WFD: TestInfo = info(
    "PEDF-WFD",
    "Worst fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::Worst),
);
/// First fit.
pub const FFD: TestInfo = info(
    "PEDF-FFD",
    "First fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::First),
);
/// Best fit.
pub const BFD: TestInfo = info(
    "PEDF-BFD",
    "Best fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::Best),
);
/// Next fit.
pub const NFD: TestInfo = info(
    "PEDF-NFD",
    "Next fit in decreasing utilization, then exact EDF on every processor.",
    |tasks, m| decide(tasks, m, Fit::Next),
);

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
