//! The largest cache delay with which a set still passes.
//!
//! Definition: the largest D such that for every D′ ≤ D some assignment that the heuristics find on the way there passes with all WCETs
//! longer by D′. Packing is not monotone in D, so it is not searched: an assignment found at one delay is kept and its own largest delay
//! found by bisection, which its tests allow (all are monotone in the WCETs; and where a sufficient test were not, EDF is
//! predictable, so that what is guaranteed at D is guaranteed at every smaller one). One nanosecond beyond it the set is packed again,
//! until that fails.

use super::pack_and_decide;
use crate::clustered::decide_assigned;
use crate::verdict::Guarantee;
use model::{Duration, Timing};
use serde::Serialize;

/// The largest cache delay a set bears.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Margin {
    /// With this delay a job, the same for every task, the set still passes.
    pub cpmd: Duration,
    /// Does it fail one nanosecond beyond? If not, [`PACKINGS`] packings did not find out.
    pub exact: bool,
}

/// How many different packings are followed.
const PACKINGS: usize = 64;

/// The largest delay, or `None` where the set fails without any.
pub(super) fn largest_cpmd(tasks: &[Timing], sizes: &[u32], guarantee: Guarantee) -> Option<Margin> {
    // Beyond this a single job is too long, whoever it shares with.
    let ceiling = tasks
        .iter()
        .map(|t| match guarantee {
            Guarantee::Hard => t.deadline.min(t.period).saturating_sub(t.wcet),
            Guarantee::Soft => t.period.saturating_sub(t.wcet),
        })
        .min()?;
    let mut inflated = Vec::with_capacity(tasks.len());
    let mut passed: Option<Duration> = None;
    for _ in 0..PACKINGS {
        let next = match passed {
            None => Duration::ZERO,
            Some(d) if d >= ceiling => return Some(Margin { cpmd: d, exact: true }),
            Some(d) => d.saturating_add(Duration::from_nanos(1)),
        };
        inflate(tasks, next, &mut inflated);
        let (verdict, _) = pack_and_decide(&inflated, sizes, guarantee);
        let Some(cluster_of) = verdict.cluster_of.filter(|_| verdict.schedulable) else {
            return passed.map(|cpmd| Margin { cpmd, exact: true });
        };
        let holds = |d: u64, inflated: &mut Vec<Timing>| {
            inflate(tasks, Duration::from_nanos(d), inflated);
            decide_assigned(inflated, sizes, &cluster_of, guarantee).schedulable
        };
        let (mut low, mut high) = (next.nanos(), ceiling.nanos().max(next.nanos()));
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            if holds(middle, &mut inflated) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        passed = Some(Duration::from_nanos(low));
    }
    passed.map(|cpmd| Margin { cpmd, exact: false })
}

/// The largest delay at which `assigns` finds an assignment, by bisection; `None` where it finds none without any.
///
/// What is assigned for a delay bears every shorter one: budgets, shares, reserves and weights are upper bounds. Where finding is not
/// monotone, this is a delay at which it succeeds and beyond which, by one nanosecond, it does not. `coarse` tries six delays only,
/// in steps of a 64th of the longest that is worth a try: for assignments that may take long.
pub(super) fn largest_assigned(
    tasks: &[Timing],
    coarse: bool,
    mut assigns: impl FnMut(&[Timing]) -> bool,
) -> Option<Margin> {
    let ceiling = tasks
        .iter()
        .map(|t| t.deadline.min(t.period).saturating_sub(t.wcet).nanos())
        .min()?;
    let mut inflated = Vec::with_capacity(tasks.len());
    let mut passes = |d: u64| {
        inflate(tasks, Duration::from_nanos(d), &mut inflated);
        assigns(&inflated)
    };
    if !passes(0) {
        return None;
    }
    let step = if coarse { (ceiling / 64).max(1) } else { 1 };
    let (mut low, mut high) = (0, ceiling / step);
    while low < high {
        let middle = low + (high - low).div_ceil(2);
        if passes(middle * step) {
            low = middle;
        } else {
            high = middle - 1;
        }
    }
    Some(Margin {
        cpmd: Duration::from_nanos(low * step),
        exact: step == 1,
    })
}

fn inflate(tasks: &[Timing], by: Duration, into: &mut Vec<Timing>) {
    into.clear();
    into.extend(tasks.iter().map(|t| t.inflated(by)));
}
