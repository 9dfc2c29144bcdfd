//! Packing that accounts for overheads: a task that joins a bin makes the others there cost more.
//!
//! 002 §6.1, "Bin-packing issues": after each placement the overheads of all tasks of the bin are accounted for anew; if that
//! over-utilizes it, the placement is rolled back and the next bin is tried.

use super::{Overheads, Residents, inflate};
use crate::clustered::decide_cluster;
use crate::partition::accept::partition_with;
use crate::partition::{Fit, Order};
use crate::verdict::Guarantee;
use model::{Duration, Ratio, Timing, exact};

/// The bins and what they cost.
#[derive(Clone, Copy, Debug)]
pub struct Platform<'a> {
    /// How many processors each cluster has.
    pub sizes: &'a [u32],
    /// The overheads at the number of tasks of the whole set.
    pub overheads: &'a Overheads,
    /// The cache delay of every task within its cluster, in the order of the set.
    pub delays: &'a [Duration],
}

/// A set packed with its overheads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Packed {
    /// The cluster of every task, in the order of the set.
    pub cluster_of: Vec<u32>,
    /// Every task with its overheads in its cluster, in the order of the set.
    pub inflated: Vec<Timing>,
}

/// Packs a set so that every cluster passes with the overheads of the tasks in it.
///
/// # Errors
/// The index of the first task, in the order of placement, that no cluster takes.
pub fn pack(
    tasks: &[Timing],
    platform: &Platform<'_>,
    order: Order,
    fit: Fit,
    guarantee: Guarantee,
) -> Result<Packed, u32> {
    let with_overheads = |cluster: usize, ids: &[u32]| {
        let inside: Vec<Timing> = ids.iter().map(|i| tasks[*i as usize]).collect();
        let delays: Vec<Duration> = ids.iter().map(|i| platform.delays[*i as usize]).collect();
        let residents = Residents {
            tasks: &inside,
            delays: &delays,
            processors: platform.sizes[cluster],
        };
        inflate(residents, platform.overheads)
    };
    let cluster_of = partition_with(tasks, platform.sizes, order, fit, |cluster, ids| {
        holds(&with_overheads(cluster, ids), platform.sizes[cluster], guarantee)
    })?;
    let mut inflated = tasks.to_vec();
    for cluster in 0..platform.sizes.len() {
        let ids: Vec<u32> = (0..tasks.len() as u32)
            .filter(|i| cluster_of[*i as usize] as usize == cluster)
            .collect();
        for (id, with) in ids.iter().zip(with_overheads(cluster, &ids)) {
            inflated[*id as usize] = with;
        }
    }
    Ok(Packed { cluster_of, inflated })
}

fn holds(tasks: &[Timing], size: u32, guarantee: Guarantee) -> bool {
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
