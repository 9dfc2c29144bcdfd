//! Packing that accounts for overheads: a task that joins a bin makes the others there cost more.
//!
//! 002 §6.1, "Bin-packing issues": after each placement the overheads of all tasks of the bin are
//! accounted for anew; if that over-utilizes it, the placement is rolled back and the next bin is
//! tried.

use super::accounting::{Resident, inflate};
use super::{Accounted, System, account};
use crate::clustered::decide_cluster;
use crate::partition::accept::partition_with;
use crate::partition::affinity::{Allowed, partition_allowed};
use crate::partition::{Fit, Order};
use crate::verdict::Guarantee;
use model::assignment::Clustered;
use model::{Assignment, CpuSet, Ratio, Resumption, TaskId, Timing, exact};

/// A set packed with its overheads.
#[derive(Clone, PartialEq, Debug)]
pub struct Packed {
    /// Who is where.
    pub assignment: Clustered,
    /// What it costs.
    pub accounted: Accounted,
}

/// Packs a set so that every cluster passes EDF with the overheads of the tasks in it: by the test
/// for the guarantee of `system`.
///
/// # Errors
/// The index of the first task, in the order of placement, that no cluster takes.
pub fn pack(
    tasks: &[Timing],
    clusters: &[CpuSet],
    system: &System<'_>,
    order: Order,
    fit: Fit,
) -> Result<Packed, u32> {
    pack_with(tasks, clusters, system, order, fit, |inflated, size| {
        holds(inflated, size, system.guarantee)
    })
}

/// A way of packing.
#[derive(Clone, Copy, Debug)]
pub struct Way<'a> {
    /// In which order tasks are placed, where all may go everywhere.
    pub order: Order,
    /// Which of the bins that can take a task takes it.
    pub fit: Fit,
    /// Where tasks may go; `None`: everywhere.
    pub allowed: Option<&'a Allowed>,
}

/// Packs a set so that `accepts(its tasks with their overheads, how many processors it has)` is
/// true of every cluster, whatever the policy. Bins are tried by what executions leave of them, and
/// each placement accounts for its bin anew: with more than some thousand tasks in a bin this takes
/// long.
///
/// # Errors
/// The index of the first task, in the order of placement, that no cluster takes; where there is
/// only one cluster it is asked once, for all tasks, and the last one is named.
pub fn pack_with(
    tasks: &[Timing],
    clusters: &[CpuSet],
    system: &System<'_>,
    order: Order,
    fit: Fit,
    mut accepts: impl FnMut(&[Timing], u32) -> bool,
) -> Result<Packed, u32> {
    let way = Way {
        order,
        fit,
        allowed: None,
    };
    pack_where(tasks, clusters, system, way, |_, inflated, size| {
        accepts(inflated, size)
    })
}

/// [`pack_with`], each task only where it may be, with `accepts(its tasks, these with their
/// overheads, how many processors)`.
///
/// # Errors
/// As [`pack_with`].
pub fn pack_where(
    tasks: &[Timing],
    clusters: &[CpuSet],
    system: &System<'_>,
    way: Way<'_>,
    mut accepts: impl FnMut(&[u32], &[Timing], u32) -> bool,
) -> Result<Packed, u32> {
    let given = (tasks, system);
    let (tasks, system) = system.books(tasks);
    let (tasks, system) = (&*tasks, &system);
    let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
    let ways: Vec<_> = clusters.iter().map(|c| system.ways(c.iter())).collect();
    let mut takes = |cluster: usize, ids: &[u32]| {
        let inside = inflated_in(tasks, ids, &ways[cluster], sizes[cluster], system);
        accepts(ids, &inside, sizes[cluster])
    };
    let cluster_of = match sizes[..] {
        [_] => {
            let mut all = Vec::new();
            way.order.sort(tasks, &mut all);
            let last = all.last().copied().unwrap_or(0);
            all.sort_unstable();
            if !takes(0, &all) {
                return Err(last);
            }
            vec![0; tasks.len()]
        }
        _ if way.allowed.is_some() => {
            partition_allowed(tasks, &sizes, way.fit, way.allowed, takes)?
        }
        _ => partition_with(tasks, &sizes, way.order, way.fit, takes)?,
    };
    let assignment = Clustered {
        clusters: clusters.to_vec(),
        cluster_of,
    };
    let assigned = Assignment::Clustered(assignment.clone());
    let accounted = account(given.0, &assigned, given.1);
    Ok(Packed {
        assignment,
        accounted,
    })
}

/// The tasks `ids` with their overheads, where they are all that live in a cluster of `size`
/// processors with these ways to resume. By the rule of one delay: after [`System::books`].
pub(crate) fn inflated_in(
    tasks: &[Timing],
    ids: &[u32],
    ways: &[Resumption],
    size: u32,
    system: &System<'_>,
) -> Vec<Timing> {
    let resident = |id: &u32| {
        let delay = system.delays.longest(TaskId(*id), ways);
        Resident::whole(tasks[*id as usize], system.beginning(delay), delay)
    };
    let residents: Vec<Resident> = ids.iter().map(resident).collect();
    let inflated = inflate(&residents, size as usize, system);
    inflated.into_iter().map(|(timing, _)| timing).collect()
}

/// Does EDF hold these tasks, with their overheads, on one cluster?
pub(super) fn holds(tasks: &[Timing], size: u32, guarantee: Guarantee) -> bool {
    match guarantee {
        Guarantee::Hard => matches!(decide_cluster(tasks, size), Ok(Some(_))),
        Guarantee::Soft => {
            tasks.iter().all(|t| t.wcet <= t.period)
                && exact::cmp_sum(
                    tasks.iter().map(Timing::utilization),
                    Ratio::whole(u64::from(size)),
                )
                .is_le()
        }
    }
}
