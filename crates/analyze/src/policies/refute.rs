//! When is a no proven? Most tests are sufficient and packings are heuristic: what they refuse may hold.

use super::Family;
use super::question::Question;
use crate::uniprocessor::{edf, fixed_priority};
use crate::verdict::Guarantee;
use model::{Ratio, Timing, exact};

/// Is it proven that the policy cannot give the guarantee, for some releases that the tasks permit?
///
/// The proofs are over the WCETs as given. Charged overheads are upper bounds, which prove nothing when
/// they make a set too large.
pub(super) fn is_refuted(question: &Question<'_>) -> bool {
    let tasks = question.set.timings();
    // A task is on one processor at a time: under every policy its jobs pile up. A WCET above its
    // deadline is no task of a set.
    if tasks.iter().any(|t| t.wcet > t.period) {
        return true;
    }
    // More work than time: what is left undone grows without bound, and so does tardiness.
    let capacity = Ratio::whole(question.cpus.len() as u64);
    if exact::cmp_sum(tasks.iter().map(Timing::utilization), capacity).is_gt() {
        return true;
    }
    // On one processor there is nothing to place, and these tests are exact for sporadic tasks.
    if question.cpus.len() != 1 || question.guarantee != Guarantee::Hard {
        return false;
    }
    match question.policy.family {
        Family::Edf => edf::decide(tasks) == Ok(false),
        Family::FixedPriority(priority) => fixed_priority::decide(tasks, priority) == Ok(false),
        _ => false,
    }
}
