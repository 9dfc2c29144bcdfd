//! Which policy comes first for a set, and why, in a sentence.
//!
//! Those that hold the set come before those that do not; among them those of which all is charged
//! that they do to a job, however it is assigned, before those of which it is not (their margins
//! say less); among them the one under which WCETs may grow most, with what the policy costs; then
//! the one that loses less to overheads; then the one that keeps tasks on fewer processors. Of
//! those that do not hold it, the one that needs the smallest cut comes first.

use super::{Growth, NOT_JUDGED, PolicyVerdict};
use model::TaskId;
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sorts the best to the front. Stable: policies that count as equal keep the order in which they
/// were asked for.
pub(super) fn sort(verdicts: &mut [PolicyVerdict]) {
    let widths: BTreeMap<String, usize> = verdicts
        .iter()
        .map(|v| (v.policy.clone(), widest(v)))
        .collect();
    verdicts.sort_by(|a, b| {
        let key = |v: &PolicyVerdict| {
            (
                Reverse(v.schedulable),
                v.decided_by == NOT_JUDGED,
                !v.margins_covered,
                Reverse(thousandths(v)),
            )
        };
        key(a)
            .cmp(&key(b))
            .then(lost(a).total_cmp(&lost(b)))
            .then(widths.get(&a.policy).cmp(&widths.get(&b.policy)))
    });
}

fn thousandths(v: &PolicyVerdict) -> u64 {
    v.growth.map_or(0, |g| g.thousandths)
}

/// What overheads take, in processors; rounded so that sums in another order stay equal.
fn lost(v: &PolicyVerdict) -> f64 {
    let with = v.inflated_utilization.unwrap_or(f64::INFINITY);
    ((with - v.utilization) * 1e9).round() / 1e9
}

/// On how many processors a task may run, at most.
fn widest(v: &PolicyVerdict) -> usize {
    let mut homes: BTreeMap<TaskId, usize> = BTreeMap::new();
    for cluster in &v.clusters {
        for placed in &cluster.tasks {
            *homes.entry(placed.task).or_default() += cluster.processors.len();
        }
    }
    homes.into_values().max().unwrap_or(0)
}

/// `3.4 %`, or `at least 3.4 %`.
fn percent(growth: Growth) -> String {
    let tenths = growth.thousandths.saturating_sub(1_000);
    let least = if growth.exact { "" } else { "at least " };
    format!("{least}{}.{} %", tenths / 10, tenths % 10)
}

/// How much WCETs could grow, as a clause.
fn room(v: &PolicyVerdict) -> String {
    match v.growth {
        Some(g) if g.thousandths > 1_000 => format!("WCETs could grow by {}", percent(g)),
        _ => "WCETs could not grow by a thousandth".to_owned(),
    }
}

/// Which policy comes first, and why. The verdicts are sorted.
pub(super) fn advise(verdicts: &[PolicyVerdict]) -> String {
    let Some(best) = verdicts.first() else {
        return "no policy was asked for".to_owned();
    };
    let holding = verdicts.iter().filter(|v| v.schedulable).count();
    let name = &best.policy;
    match (holding, verdicts) {
        (0, [only]) => format!("{name} is not shown to hold this set: {}", only.reason),
        (0, _) => match best.growth {
            Some(g) => format!(
                "no policy is shown to hold this set; {name} comes nearest and would with WCETs of {}.{} % of these",
                g.thousandths / 10,
                g.thousandths % 10
            ),
            None => format!(
                "no policy is shown to hold this set, not even with far shorter WCETs; under {name} {}",
                best.reason
            ),
        },
        (1, [_]) => format!("{name} holds this set; {}", room(best)),
        (1, _) => format!(
            "{name} is the only one of these policies shown to hold this set; {}",
            room(best)
        ),
        _ => {
            let second = &verdicts[1];
            let other = &second.policy;
            if best.margins_covered && !second.margins_covered {
                format!(
                    "{name} comes first: {}, and one cache delay a job covers all that it does to a job, which is not so for {other}",
                    room(best)
                )
            } else if thousandths(second) < thousandths(best) {
                match second.growth {
                    Some(g) if g.thousandths > 1_000 => format!(
                        "{name} comes first: {} before it fails, under {other} by {}",
                        room(best),
                        percent(g)
                    ),
                    _ => format!(
                        "{name} comes first: {} before it fails, and not at all under {other}",
                        room(best)
                    ),
                }
            } else if lost(best) < lost(second) {
                format!(
                    "{name} comes first: it holds the set like {other} and loses less to overheads; {}",
                    room(best)
                )
            } else if widest(best) < widest(second) {
                format!(
                    "{name} comes first: it leaves as much to spare as {other}, and keeps tasks on fewer processors; {}",
                    room(best)
                )
            } else {
                format!("{name} and {other} hold this set alike; {}", room(best))
            }
        }
    }
}
