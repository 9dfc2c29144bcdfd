//! When is a no proven? Most tests are sufficient and packings are heuristic: what they refuse may
//! hold.

use super::question::Question;
use crate::uniprocessor::{edf, fixed_priority};
use crate::verdict::Guarantee;
use model::{Ratio, Timing, exact};
use policy::catalog::Order;

/// Is it proven that the policy cannot give the guarantee, for some releases that the tasks permit?
///
/// The proofs are over the WCETs as given. Charged overheads are upper bounds, which prove nothing
/// when they make a set too large.
pub(super) fn is_refuted(question: &Question<'_>) -> bool {
    let tasks = question.set.timings();
    let hard = question.guarantee == Guarantee::Hard;
    // A task is on one processor at a time: under every policy such a job is late, or its jobs pile
    // up.
    if tasks
        .iter()
        .any(|t| t.wcet > t.period || (hard && t.wcet > t.deadline))
    {
        return true;
    }
    // More work than time: what is left undone grows without bound, and so does tardiness.
    let capacity = Ratio::whole(question.site.cpus.len() as u64);
    if exact::cmp_sum(tasks.iter().map(Timing::utilization), capacity).is_gt() {
        return true;
    }
    // On one processor there is nothing to place, and these tests are exact for tasks that may all
    // be released at once; phases can keep them from that.
    let set = question.set;
    let mut phases = set.ids().filter_map(|id| set.details(id)).map(|d| d.phase);
    if question.site.cpus.len() != 1 || !hard || phases.any(|phase| !phase.is_zero()) {
        return false;
    }
    match question.policy.order {
        _ if !question.policy.is_packed() => false,
        Order::Deadlines => edf::decide(tasks) == Ok(false),
        Order::Fixed(priority) => fixed_priority::decide(tasks, priority) == Ok(false),
        Order::Releases | Order::Own => false,
    }
}
