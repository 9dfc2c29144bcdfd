//! Which clusters each task may be in: tasks that are kept to some processors (`cpus` in task
//! files).
//!
//! A cluster takes a task only if the task may run on all of it: schedulers move tasks freely
//! within a cluster, and what its tests promise rests on that. Tasks that may go to fewer clusters
//! are placed first, so that others do not take their place.

use super::accept::partition_placed;
use super::{Fit, Order, Scratch};
use model::{CpuSet, Error, Platform, Result, TaskId, TaskSet, Timing};

/// The clusters of every task, where some task may not go everywhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Allowed {
    /// By task, then by cluster.
    rows: Vec<Vec<bool>>,
}

/// The clusters of every task; `Ok(None)`: every task may go everywhere. Inside: why the tasks
/// cannot be placed so.
///
/// # Errors
/// A task may run on none of the processors that can be used.
pub fn allowed(
    set: &TaskSet,
    platform: &Platform,
    clusters: &[CpuSet],
) -> Result<std::result::Result<Option<Allowed>, String>> {
    if !set.has_affinities() {
        return Ok(Ok(None));
    }
    let usable = platform.usable();
    let mut rows = Vec::with_capacity(set.len());
    for id in set.ids() {
        let Some(cpus) = set.cpus(id) else {
            rows.push(vec![true; clusters.len()]);
            continue;
        };
        if cpus.intersection(&usable).is_empty() {
            return Err(Error::new(format!(
                "`{}` may run on {cpus} alone, and none of them can be used",
                set.name(id)
            ))
            .at("`cpus`")
            .remedy(format!("choose among {usable}, or give another platform")));
        }
        let row: Vec<bool> = clusters.iter().map(|c| c.is_subset(cpus)).collect();
        if !row.contains(&true) {
            return Ok(Err(format!(
                "`{}` may run on {cpus} alone, which is not all of any cluster of this policy, and tasks that are kept to a part \
                 of a cluster are not analyzed",
                set.name(id)
            )));
        }
        rows.push(row);
    }
    let everywhere = rows.iter().flatten().all(|may| *may);
    Ok(Ok((!everywhere).then_some(Allowed { rows })))
}

/// Why a policy that moves tasks over all processors by itself cannot take the set, if so.
///
/// # Errors
/// As [`allowed`].
pub fn refusal(set: &TaskSet, platform: &Platform) -> Result<Option<String>> {
    let usable = platform.usable();
    Ok(allowed(set, platform, std::slice::from_ref(&usable))?
        .err()
        .map(|_| {
            let kept = |id: &TaskId| set.cpus(*id).is_some_and(|cpus| !usable.is_subset(cpus));
            let name = set.ids().find(kept).map(|id| set.name(id)).unwrap_or_default();
            format!(
                "it moves tasks over processors {usable} as it needs, and `{name}` is kept to some of them"
            )
        }))
}

impl Allowed {
    /// Tests whether a task may go to a cluster.
    pub fn may(&self, task: u32, cluster: usize) -> bool {
        self.rows[task as usize][cluster]
    }

    /// The tasks in the order of placement: those with fewer clusters first, then by decreasing
    /// utilization.
    pub(crate) fn placement(&self, tasks: &[Timing]) -> Vec<u32> {
        let mut placement = Vec::new();
        Order::DecreasingUtilization.sort(tasks, &mut placement);
        placement.sort_by_key(|i| self.rows[*i as usize].iter().filter(|may| **may).count());
        placement
    }
}

/// The bin of every task: as [`super::accept::partition_with`] in decreasing utilization, each task
/// only where it may be.
///
/// # Errors
/// The index of the first task, in the order of placement, that no bin takes.
pub fn partition_allowed(
    tasks: &[Timing],
    sizes: &[u32],
    fit: Fit,
    allowed: Option<&Allowed>,
    mut accepts: impl FnMut(usize, &[u32]) -> bool,
) -> std::result::Result<Vec<u32>, u32> {
    match allowed {
        None => {
            super::accept::partition_with(tasks, sizes, Order::DecreasingUtilization, fit, accepts)
        }
        Some(allowed) => partition_placed(
            tasks,
            sizes,
            allowed.placement(tasks),
            fit,
            |bin, ids, new| allowed.may(new, bin) && accepts(bin, ids),
        ),
    }
}

/// The bin of every task by utilization alone, in decreasing utilization, each task only where it
/// may be.
///
/// # Errors
/// As [`partition_allowed`].
pub fn pack_allowed(
    tasks: &[Timing],
    sizes: &[u32],
    fit: Fit,
    allowed: Option<&Allowed>,
) -> std::result::Result<Vec<u32>, u32> {
    match allowed {
        None => Scratch::new()
            .pack(tasks, sizes, Order::DecreasingUtilization, fit)
            .map(<[u32]>::to_vec),
        Some(_) => partition_allowed(tasks, sizes, fit, allowed, |_, _| true),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Details, Duration};

    fn set(tasks: &[(u64, &str)]) -> TaskSet {
        let task = |(index, (percent, cpus)): (usize, &(u64, &str))| {
            let timing =
                Timing::implicit(Duration::from_millis(*percent), Duration::from_millis(100));
            let details = Details {
                cpus: (!cpus.is_empty()).then(|| cpus.parse().unwrap()),
                ..Details::named(format!("t{index}"))
            };
            (timing, details)
        };
        TaskSet::new(tasks.iter().enumerate().map(task).collect()).unwrap()
    }

    fn packed(tasks: &[(u64, &str)], m: u32, fit: Fit) -> std::result::Result<Vec<u32>, u32> {
        let set = set(tasks);
        let clusters: Vec<CpuSet> = (0..m)
            .map(|c| [model::CpuId(c)].into_iter().collect())
            .collect();
        let allowed = allowed(&set, &Platform::symmetric(m), &clusters)
            .unwrap()
            .unwrap();
        pack_allowed(set.timings(), &vec![1; m as usize], fit, allowed.as_ref())
    }

    #[test]
    fn tasks_go_only_where_they_may() {
        for fit in Fit::ALL {
            // The large ones would fill processor 1 before the small one that is kept to it.
            let tasks = [(80, ""), (70, "0-1"), (40, "1"), (20, "")];
            let bins = packed(&tasks, 3, fit);
            if let Ok(bins) = &bins {
                assert_eq!(bins[2], 1, "{fit}");
                assert!(bins[1] < 2, "{fit}");
            }
            assert!(bins.is_ok() || fit == Fit::Next, "{fit}: {bins:?}");
        }
        assert_eq!(packed(&[(60, "1"), (60, "1")], 2, Fit::Worst), Err(1));
        assert_eq!(packed(&[(60, ""), (50, "")], 2, Fit::First), Ok(vec![0, 1]));
    }

    #[test]
    fn a_part_of_a_cluster_is_no_place_and_no_processor_an_error() {
        let platform = Platform::symmetric(4);
        let pairs: Vec<CpuSet> = vec!["0-1".parse().unwrap(), "2-3".parse().unwrap()];
        let why = allowed(&set(&[(10, "1-2")]), &platform, &pairs)
            .unwrap()
            .unwrap_err();
        assert!(
            why.starts_with("`t0` may run on 1-2 alone, which is not all of any cluster"),
            "{why}"
        );
        let in_second = allowed(&set(&[(10, "1-3")]), &platform, &pairs)
            .unwrap()
            .unwrap()
            .unwrap();
        assert!(!in_second.may(0, 0) && in_second.may(0, 1));
        assert_eq!(
            allowed(&set(&[(10, "0-9")]), &platform, &pairs),
            Ok(Ok(None))
        );
        let e = allowed(&set(&[(10, "7")]), &platform, &pairs)
            .unwrap_err()
            .to_string();
        assert_eq!(
            e,
            "`cpus`: `t0` may run on 7 alone, and none of them can be used; choose among 0-3, or give another platform"
        );
        let why = refusal(&set(&[(10, ""), (10, "2")]), &platform)
            .unwrap()
            .unwrap();
        assert_eq!(
            why,
            "it moves tasks over processors 0-3 as it needs, and `t1` is kept to some of them"
        );
        assert_eq!(refusal(&set(&[(10, "0-3")]), &platform), Ok(None));
    }
}
