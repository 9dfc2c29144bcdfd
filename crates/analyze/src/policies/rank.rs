//! Which policy comes first for a set, and why, in a sentence.
//!
//! Those that hold the set come before those that do not; among them those for which one delay a job covers all that they do to caches
//! before those for which it does not (their spare delay says less); among them the one with most cache delay to spare a job (what it bears less
//! what it is charged), then the one that loses less utilization, then the one that migrates less.

use super::{NOT_JUDGED, PolicyVerdict};
use model::{Duration, TaskId};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// Sorts the best to the front. Stable: policies that count as equal keep the order in which they were asked for.
pub(super) fn sort(verdicts: &mut [PolicyVerdict]) {
    let widths: BTreeMap<String, usize> = verdicts.iter().map(|v| (v.policy.clone(), widest(v))).collect();
    verdicts.sort_by(|a, b| {
        let key = |v: &PolicyVerdict| {
            (
                Reverse(v.schedulable),
                v.decided_by == NOT_JUDGED,
                !v.cpmd_covered,
                Reverse(spare(v)),
            )
        };
        key(a)
            .cmp(&key(b))
            .then(a.inflated_utilization.total_cmp(&b.inflated_utilization))
            .then(widths.get(&a.policy).cmp(&widths.get(&b.policy)))
    });
}

/// What a policy bears less what it is charged, in nanoseconds; below all others where it fails without any delay.
fn spare(v: &PolicyVerdict) -> i128 {
    match v.largest_cpmd {
        Some(m) => i128::from(m.cpmd.nanos()) - i128::from(v.charged.nanos()),
        None => i128::MIN,
    }
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

fn spare_text(v: &PolicyVerdict) -> String {
    let spare = spare(v).clamp(0, i128::from(u64::MAX));
    Duration::from_nanos(u64::try_from(spare).unwrap_or(u64::MAX)).rounded()
}

/// Which policy comes first, and why. The verdicts are sorted.
pub(super) fn advise(verdicts: &[PolicyVerdict]) -> String {
    let Some(best) = verdicts.first() else {
        return "no policy was asked for".to_owned();
    };
    let holding = verdicts.iter().filter(|v| v.schedulable).count();
    match (holding, verdicts) {
        (0, [only]) => format!("{} is not shown to hold this set: {}", only.policy, only.reason),
        (0, _) => match best.largest_cpmd {
            Some(m) => format!(
                "no policy is shown to hold this set; {} comes nearest and would pass with a cache delay of at most {}, but is charged {}",
                best.policy,
                m.cpmd.rounded(),
                best.charged.rounded()
            ),
            None => format!(
                "no policy is shown to hold this set, not even without cache delay; under {} {}",
                best.policy, best.reason
            ),
        },
        (1, [only]) => format!(
            "{} holds this set, with {} of cache delay a job to spare",
            only.policy,
            spare_text(only)
        ),
        (1, _) => format!(
            "{} is the only one of these policies shown to hold this set",
            best.policy
        ),
        _ => {
            let second = &verdicts[1];
            if best.cpmd_covered && !second.cpmd_covered {
                format!(
                    "{} comes first: one cache delay a job, of which it leaves {} to spare, covers all that it does to a job, and that is not so for {}",
                    best.policy,
                    spare_text(best),
                    second.policy
                )
            } else if spare(second) < spare(best) {
                format!(
                    "{} comes first: it leaves {} of cache delay a job to spare, {} leaves {}",
                    best.policy,
                    spare_text(best),
                    second.policy,
                    spare_text(second)
                )
            } else if best.inflated_utilization < second.inflated_utilization {
                format!(
                    "{} comes first: it holds the set like {} and loses less to cache delay",
                    best.policy, second.policy
                )
            } else if widest(second) <= widest(best) {
                format!(
                    "{} and {} hold this set alike, with {} of cache delay a job to spare",
                    best.policy,
                    second.policy,
                    spare_text(best)
                )
            } else {
                format!(
                    "{} comes first: it leaves as much to spare as {}, {} of cache delay a job, and keeps tasks on fewer processors",
                    best.policy,
                    second.policy,
                    spare_text(best)
                )
            }
        }
    }
}
