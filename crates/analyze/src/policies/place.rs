//! Placing a set: every way of packing that is tried, in its order, and the first that holds.
//!
//! Worst, first, best and next fit in decreasing utilization (002 §6.3); by utilization alone, and
//! then, where deadlines are shorter than periods, with the test of the policy at every placement.
//! Where overheads are accounted for by assignment every placement is tested with the overheads of
//! all tasks there (002 §6.1).

use super::charged::Case;
use super::costs::Rule;
use super::question::Question;
use crate::overheads::{self, Piece, Way};
use crate::partition::affinity;
use crate::partition::{EXACT_PLACEMENTS, Fit, Order};
use crate::uniprocessor::Work;
use crate::verdict::Guarantee;
use model::assignment::Clustered;
use model::{Assignment, CpuSet, Ratio, TaskId, Timing, exact};
use std::fmt;

/// The most for a whole packing; past it no place accepts anything.
const PACKING_WORK: u64 = 1 << 26;
/// The most tasks of which clusters of several processors take each by their tests, which look at
/// pairs of tasks.
const TESTED_IN_CLUSTERS: usize = 60;

/// A way of packing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Packing {
    fit: Fit,
    /// Is the whole place tested when a task joins it, or does utilization decide?
    tested: bool,
}

impl fmt::Display for Packing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.fit)?;
        if self.tested {
            f.write_str(", tested at each placement")?;
        }
        Ok(())
    }
}

/// All ways that are tried, in order.
pub(super) fn packings(question: &Question<'_>) -> Vec<Packing> {
    let fits = question.limits.fits();
    let with = |tested: bool| fits.iter().map(move |fit| Packing { fit: *fit, tested });
    let tasks = question.set.timings();
    if question.site.clusters.len() == 1 {
        return with(false).take(1).collect();
    }
    let alone = question.site.clusters.iter().all(|c| c.len() == 1);
    let may_test = match question.guarantee {
        Guarantee::Hard if !alone => tasks.len() <= TESTED_IN_CLUSTERS,
        _ => tasks.len() <= EXACT_PLACEMENTS,
    };
    // Without costs the same is found whatever the accounting.
    let rule = match question.bill.rule {
        Rule::AllOverheads | Rule::Paper if question.bill.is_free() => Rule::ByPiece,
        rule => rule,
    };
    if question.policy.priority().is_some() || (rule.has_interrupts() && may_test) {
        return with(true).collect();
    }
    if rule == Rule::ByPiece && may_test {
        // By utilization first: without any delay what is found is what is found without a profile.
        return with(false).chain(with(true)).collect();
    }
    let late = question.set.extras().is_empty() && tasks.iter().all(|t| t.deadline >= t.period);
    let utilization_suffices = question.guarantee == Guarantee::Soft || (alone && late);
    if utilization_suffices || !may_test {
        return with(false).collect();
    }
    with(false).chain(with(true)).collect()
}

/// The cluster of every task, packed in one way; not yet known to hold.
///
/// # Errors
/// The first task, in the order of placement, that no cluster takes.
pub(super) fn pack(
    question: &Question<'_>,
    case: &Case,
    packing: Packing,
) -> Result<Vec<u32>, u32> {
    if question.site.clusters.len() == 1 {
        return Ok(vec![0; case.tasks.len()]);
    }
    let sizes: Vec<u32> = question
        .site
        .clusters
        .iter()
        .map(|c| c.len() as u32)
        .collect();
    let mut work = Work::of(PACKING_WORK);
    let allowed = question.allowed.as_ref();
    let (tasks, system) = question.books(case);
    if !packing.tested {
        return affinity::pack_allowed(&tasks, &sizes, packing.fit, allowed);
    }
    let way = Way {
        order: Order::DecreasingUtilization,
        fit: packing.fit,
        allowed,
    };
    let packed = overheads::pack_where(
        &tasks,
        &question.site.clusters,
        &system,
        way,
        |ids, inside, size| question.accepts(ids, inside, size, &mut work),
    );
    packed.map(|packed| packed.assignment.cluster_of)
}

/// The first packing that holds.
pub(super) fn find(question: &Question<'_>, case: &Case) -> Option<(Assignment, Packing)> {
    if is_hopeless(question, &question.inflated(case)) {
        return None;
    }
    packings(question).into_iter().find_map(|packing| {
        let cluster_of = pack(question, case, packing).ok()?;
        let assignment = clustered(question, cluster_of);
        question
            .places_hold(case, &assignment)
            .then_some((assignment, packing))
    })
}

/// An assignment to the clusters of the policy.
pub(super) fn clustered(question: &Question<'_>, cluster_of: Vec<u32>) -> Assignment {
    Assignment::Clustered(Clustered {
        clusters: question.site.clusters.clone(),
        cluster_of,
    })
}

/// Is a job longer than its deadline or period, whoever it shares with?
fn is_hopeless(question: &Question<'_>, tasks: &[Timing]) -> bool {
    question.guarantee == Guarantee::Hard && tasks.iter().any(|t| t.wcet > t.deadline)
        || tasks.iter().any(|t| t.wcet > t.period)
}

/// Why no packing was found, in a clause.
pub(super) fn refusal(question: &Question<'_>, case: &Case) -> String {
    let inflated = question.inflated(case);
    if let Some(reason) = refusal_by_demand(question, &inflated) {
        return reason;
    }
    // The first way that failed is told of.
    let Some(first) = packings(question).first().copied() else {
        return String::new();
    };
    let packed = match question.given {
        Some(Assignment::Clustered(c)) => Ok(c.cluster_of.clone()),
        _ => pack(question, case, first),
    };
    match packed {
        Err(task) => refusal_of_task(question, task, &inflated[task as usize], first),
        Ok(cluster_of) => {
            let pieces = question.pieces(case, &clustered(question, cluster_of));
            let inside = pieces.by_place();
            let failing = inside.iter().zip(&pieces.places).find(|(here, cpus)| {
                !question.place_holds(&question.members_of(here), cpus.len() as u32)
            });
            failing.map_or_else(String::new, |(here, cpus)| {
                refusal_of_place(question, here, cpus)
            })
        }
    }
}

/// Why no packing can hold, if a task alone or all tasks together ask for more than there is.
fn refusal_by_demand(question: &Question<'_>, inflated: &[Timing]) -> Option<String> {
    let set = question.set;
    let name = |index: usize| set.name(TaskId(index as u32));
    if let Some(heavy) = inflated.iter().position(|t| t.wcet > t.period) {
        let t = &inflated[heavy];
        return Some(format!(
            "`{}` needs {} every {}: more than one processor",
            name(heavy),
            t.wcet.rounded(),
            t.period.rounded()
        ));
    }
    if question.guarantee == Guarantee::Hard
        && let Some(late) = inflated.iter().position(|t| t.wcet > t.deadline)
    {
        let t = &inflated[late];
        return Some(format!(
            "`{}` needs {} within {}: more than there is time for",
            name(late),
            t.wcet.rounded(),
            t.deadline.rounded()
        ));
    }
    let m = question.site.cpus.len();
    if exact::cmp_sum(
        inflated.iter().map(Timing::utilization),
        Ratio::whole(m as u64),
    )
    .is_gt()
    {
        let u: f64 = inflated.iter().map(|t| t.utilization().to_f64()).sum();
        return Some(format!("the set asks for {u:.3} of {m} processors"));
    }
    None
}

/// Why a packing failed: no place takes this task.
fn refusal_of_task(
    question: &Question<'_>,
    task: u32,
    inflated: &Timing,
    packing: Packing,
) -> String {
    let overheads = match question.bill.rule {
        Rule::OneDelay => "",
        Rule::ByPiece => ", with the cache delays that the tasks there cause",
        Rule::AllOverheads | Rule::Paper => ", with the overheads of all who live there",
    };
    let name = question.set.name(TaskId(task));
    let u = inflated.utilization().to_f64();
    if !packing.tested {
        format!(
            "`{name}` needs {u:.3} of a processor, and none has as much left by any of the heuristics; another packing may"
        )
    } else {
        format!(
            "`{name}`, which needs {} within {}, finds no place that passes{overheads}, by any of the heuristics; another \
             packing may hold",
            inflated.wcet.rounded(),
            inflated.deadline.min(inflated.period).rounded()
        )
    }
}

/// Why the tasks of one place do not hold there.
fn refusal_of_place(question: &Question<'_>, here: &[&Piece], cpus: &CpuSet) -> String {
    let several = question.site.clusters.len() > 1;
    let load: f64 = here.iter().map(|p| p.timing.utilization().to_f64()).sum();
    let another = match question.given {
        None if several => "; another packing may hold",
        _ => "",
    };
    if load > cpus.len() as f64 {
        return match several {
            true => format!(
                "processors {cpus} are asked for {load:.3} of {}{another}",
                cpus.len()
            ),
            false => format!(
                "the set asks for {load:.3} of {} processors{}",
                cpus.len(),
                match question.bill.rule {
                    Rule::OneDelay => "",
                    Rule::ByPiece => " with cache delays",
                    Rule::AllOverheads | Rule::Paper => " with overheads",
                }
            ),
        };
    }
    match (cpus.len(), question.policy.is_edf()) {
        (1, true) => format!("on processor {cpus} a deadline is missed{another}"),
        (1, _) => format!("on processor {cpus} a response time is too long{another}"),
        _ => format!(
            "no test shows that processors {cpus} meet every deadline; they may or may not{another}"
        ),
    }
}
