//! Clustered EDF and its two ends, P-EDF (clusters of one) and G-EDF (one cluster): pack, then test
//! each cluster.
//!
//! 000 §2 and §5; 002 §2.2.3 and §6.3. Clusters are packed by utilization. Hard: a cluster of one
//! processor is decided exactly ([`crate::uniprocessor::edf`]); a larger one is accepted by any
//! sufficient test for G-EDF of the registry. Soft: tardiness is bounded iff every task's
//! utilization is at most one and each cluster's at most its processors (Devi and Anderson 2005;
//! 002 §2.2.3), which packing establishes.
//!
//! Sporadic tasks with arbitrary deadlines; WCETs may be inflated by overheads, also beyond
//! deadlines (not schedulable then).

use crate::info::TestInfo;
use crate::partition::{Fit, Order, Scratch as PackScratch};
use crate::policies::Limits;
use crate::registry;
use crate::uniprocessor::{Work, delayed, edf};
use crate::verdict::{Guarantee, NotApplicable};
use model::{Extras, Timing};
use serde::Serialize;

/// Why a set is not schedulable by this packing and these tests.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Failure {
    /// The task of this index needs more than one processor (u > 1), or fits in no cluster any
    /// more.
    Task(u32),
    /// No test accepts the cluster of this index.
    Cluster(u32),
    /// The exact test of this cluster hit its limit of work.
    Limit(u32),
}

/// The answer of [`clustered_edf`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct ClusteredVerdict {
    /// Is the guarantee shown?
    pub schedulable: bool,
    /// For every task the index of its cluster; `None` if a task fits in none.
    pub cluster_of: Option<Vec<u32>>,
    /// The test that decided: of the accepting ones the last resort among the clusters, of the
    /// failing ones the failing one.
    pub decided_by: &'static str,
    /// The accepting test of each cluster; empty if a task fits in none.
    pub accepted_by: Vec<Option<&'static str>>,
    /// What fails, if not schedulable.
    pub failure: Option<Failure>,
}

/// Packing by utilization decided.
pub const BY_PACKING: &str = "utilization";
/// The exact uniprocessor test decided.
pub const BY_EXACT_EDF: &str = "exact EDF";
/// The test of one processor with blocking and jitter decided.
pub const BY_DELAYED_EDF: &str = "EDF demand with blocking and jitter";
/// Every sufficient test for G-EDF refused.
pub const BY_SUFFICIENT: &str = "every G-EDF test";

/// The hard tests for G-EDF that may accept a cluster, cheapest first as registered.
pub fn global_tests() -> impl Iterator<Item = &'static TestInfo> {
    registry::ALL
        .iter()
        .filter(|t| t.policy == "g-edf" && t.guarantee == Guarantee::Hard && t.name != "GEDF_ANY")
}

/// A larger cluster is tested by GFB alone: the other tests look at pairs of tasks.
pub const THOROUGH_TASKS: usize = 2_000;
/// A larger cluster is not tested by RTA, which looks at all pairs many times and mostly ends at
/// its limit there.
pub const ITERATED_TASKS: usize = 500;

/// Is this test for G-EDF asked about a cluster of so many tasks?
pub(crate) fn is_asked(test: &TestInfo, tasks: usize) -> bool {
    match test.name {
        "GFB" => true,
        "RTA" => tasks <= ITERATED_TASKS,
        _ => tasks <= THOROUGH_TASKS,
    }
}

/// Decides one cluster of `size` processors, hard. `Ok` names the accepting test.
///
/// # Errors
/// `Ok(None)`: refused. An error: the exact test hit its limit.
pub fn decide_cluster(tasks: &[Timing], size: u32) -> Result<Option<&'static str>, NotApplicable> {
    decide_cluster_within(tasks, size, &mut Work::new())
}

/// [`decide_cluster`] with blocking and jitter: one entry a task, or none at all.
///
/// # Errors
/// As [`decide_cluster`].
pub fn decide_cluster_with(
    tasks: &[Timing],
    extras: &[Extras],
    size: u32,
) -> Result<Option<&'static str>, NotApplicable> {
    decide_cluster_by(tasks, extras, size, Limits::default())
}

/// [`decide_cluster_with`] by some of the tests only.
///
/// # Errors
/// As [`decide_cluster`].
pub(crate) fn decide_cluster_by(
    tasks: &[Timing],
    extras: &[Extras],
    size: u32,
    limits: Limits,
) -> Result<Option<&'static str>, NotApplicable> {
    if extras.iter().all(Extras::is_none) {
        return decide_plain(tasks, size, limits, &mut Work::new());
    }
    if size == 1 {
        let decided = delayed::decide_edf(tasks, extras, &mut Work::new());
        return decided.map(|yes| yes.then_some(BY_DELAYED_EDF));
    }
    Ok(global_tests()
        .filter(|t| limits.ask(t) && is_asked(t, tasks.len()))
        .find(|t| t.decide_with(tasks, extras, size) == Ok(true))
        .map(|t| t.name))
}

/// [`decide_cluster`] with a limit of work for exact tests that many clusters share.
fn decide_cluster_within(
    tasks: &[Timing],
    size: u32,
    work: &mut Work,
) -> Result<Option<&'static str>, NotApplicable> {
    decide_plain(tasks, size, Limits::default(), work)
}

/// [`decide_cluster_by`] without blocking and jitter.
fn decide_plain(
    tasks: &[Timing],
    size: u32,
    limits: Limits,
    work: &mut Work,
) -> Result<Option<&'static str>, NotApplicable> {
    if size == 1 {
        return edf::decide_within(tasks, work).map(|yes| yes.then_some(BY_EXACT_EDF));
    }
    if tasks.is_empty() {
        return Ok(Some(BY_PACKING));
    }
    Ok(global_tests()
        .filter(|t| limits.ask(t) && is_asked(t, tasks.len()))
        .find(|t| t.decide_inflated(tasks, size) == Ok(true))
        .map(|t| t.name))
}

/// Tasks by cluster, packed one after the other.
#[derive(Clone, Debug, Default)]
struct Buckets {
    starts: Vec<usize>,
    tasks: Vec<Timing>,
}

impl Buckets {
    fn fill(&mut self, tasks: &[Timing], cluster_of: &[u32], clusters: usize) {
        self.starts.clear();
        self.starts.resize(clusters + 1, 0);
        for c in cluster_of {
            self.starts[*c as usize + 1] += 1;
        }
        for c in 0..clusters {
            self.starts[c + 1] += self.starts[c];
        }
        self.tasks.clear();
        if let Some(first) = tasks.first() {
            self.tasks.resize(tasks.len(), *first);
        }
        for (task, c) in tasks.iter().zip(cluster_of) {
            let at = &mut self.starts[*c as usize];
            self.tasks[*at] = *task;
            *at += 1;
        }
        // Each start has moved to its end; shift back.
        for c in (0..clusters).rev() {
            self.starts[c + 1] = self.starts[c];
        }
        self.starts[0] = 0;
    }
    fn cluster(&self, c: usize) -> &[Timing] {
        &self.tasks[self.starts[c]..self.starts[c + 1]]
    }
}

/// What deciding needs besides its input: keep one for millions of sets.
#[derive(Clone, Debug, Default)]
pub struct Scratch {
    pack: PackScratch,
    buckets: Buckets,
}

impl Scratch {
    /// A scratch for any number of calls.
    pub fn new() -> Self {
        Self::default()
    }

    /// Is the guarantee shown? The answer of [`clustered_edf`] without its reasons, and without
    /// allocations to speak of.
    pub fn is_schedulable(
        &mut self,
        tasks: &[Timing],
        sizes: &[u32],
        order: Order,
        fit: Fit,
        guarantee: Guarantee,
    ) -> bool {
        if guarantee == Guarantee::Hard && tasks.iter().any(|t| t.wcet > t.deadline) {
            return false;
        }
        let Ok(cluster_of) = self.pack.pack(tasks, sizes, order, fit) else {
            return false;
        };
        if guarantee == Guarantee::Soft {
            return true;
        }
        if sizes.iter().all(|s| *s == 1) && tasks.iter().all(|t| t.deadline >= t.period) {
            return true; // U ≤ 1 on each processor is what packing made.
        }
        self.buckets.fill(tasks, cluster_of, sizes.len());
        let mut work = Work::new();
        (0..sizes.len()).all(|c| {
            let decided = decide_cluster_within(self.buckets.cluster(c), sizes[c], &mut work);
            matches!(decided, Ok(Some(_)))
        })
    }
}

/// Decides a set under clustered EDF on clusters of `sizes` processors each.
///
/// One size of m is G-EDF, m sizes of 1 are P-EDF.
pub fn clustered_edf(
    tasks: &[Timing],
    sizes: &[u32],
    order: Order,
    fit: Fit,
    guarantee: Guarantee,
) -> ClusteredVerdict {
    let mut scratch = Scratch::new();
    let cluster_of = match scratch.pack.pack(tasks, sizes, order, fit) {
        Ok(cluster_of) => cluster_of.to_vec(),
        Err(task) => {
            return ClusteredVerdict {
                schedulable: false,
                cluster_of: None,
                decided_by: BY_PACKING,
                accepted_by: Vec::new(),
                failure: Some(Failure::Task(task)),
            };
        }
    };
    let verdict = decide_assigned(tasks, sizes, &cluster_of, guarantee);
    ClusteredVerdict {
        cluster_of: Some(cluster_of),
        ..verdict
    }
}

/// Decides a set whose tasks have their clusters already. `cluster_of` holds an index into `sizes`
/// for every task.
pub fn decide_assigned(
    tasks: &[Timing],
    sizes: &[u32],
    cluster_of: &[u32],
    guarantee: Guarantee,
) -> ClusteredVerdict {
    let mut buckets = Buckets::default();
    buckets.fill(tasks, cluster_of, sizes.len());
    let mut accepted_by = Vec::with_capacity(sizes.len());
    let mut failure = None;
    let mut work = Work::new();
    for (c, size) in sizes.iter().enumerate() {
        let tasks = buckets.cluster(c);
        let by = match guarantee {
            Guarantee::Soft => Ok(is_not_overutilized(tasks, *size).then_some(BY_PACKING)),
            Guarantee::Hard => decide_cluster_within(tasks, *size, &mut work),
        };
        if failure.is_none() {
            failure = match by {
                Ok(Some(_)) => None,
                Ok(None) => Some(Failure::Cluster(c as u32)),
                Err(_) => Some(Failure::Limit(c as u32)),
            };
        }
        accepted_by.push(by.ok().flatten());
    }
    let decided_by = match (&failure, guarantee) {
        (_, Guarantee::Soft) => BY_PACKING,
        (Some(Failure::Cluster(c) | Failure::Limit(c)), Guarantee::Hard) => {
            if sizes[*c as usize] == 1 {
                BY_EXACT_EDF
            } else {
                BY_SUFFICIENT
            }
        }
        _ => last_resort(&accepted_by),
    };
    ClusteredVerdict {
        schedulable: failure.is_none(),
        cluster_of: Some(cluster_of.to_vec()),
        decided_by,
        accepted_by,
        failure,
    }
}

/// Every u ≤ 1 and U ≤ m, exactly.
fn is_not_overutilized(tasks: &[Timing], size: u32) -> bool {
    tasks.iter().all(|t| t.wcet <= t.period)
        && model::exact::cmp_sum(
            tasks.iter().map(Timing::utilization),
            model::Ratio::whole(u64::from(size)),
        )
        .is_le()
}

/// The accepting test that comes last in the registry: the hardest cluster needed it.
pub(crate) fn last_resort(accepted_by: &[Option<&'static str>]) -> &'static str {
    let rank = |name: &str| {
        registry::ALL
            .iter()
            .position(|t| t.name == name)
            .map_or(0, |at| at + 2)
            + usize::from(name == BY_EXACT_EDF || name == BY_DELAYED_EDF)
    };
    accepted_by
        .iter()
        .flatten()
        .copied()
        .max_by_key(|name| rank(name))
        .unwrap_or(BY_PACKING)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    fn task(e: u64, p: u64) -> Timing {
        Timing::implicit(Duration::from_millis(e), Duration::from_millis(p))
    }
    const FIG_2_6: [(u64, u64); 4] = [(2, 3), (3, 8), (1, 7), (5, 7)];

    fn judge(set: &[Timing], sizes: &[u32], guarantee: Guarantee) -> ClusteredVerdict {
        let verdict = clustered_edf(
            set,
            sizes,
            Order::DecreasingUtilization,
            Fit::Worst,
            guarantee,
        );
        assert_eq!(
            Scratch::new().is_schedulable(
                set,
                sizes,
                Order::DecreasingUtilization,
                Fit::Worst,
                guarantee
            ),
            verdict.schedulable
        );
        verdict
    }

    /// 002 Fig. 2.6: not schedulable under P-EDF on two processors, with bounded tardiness under
    /// G-EDF.
    #[test]
    fn fig_2_6_is_soft_schedulable_globally_and_not_partitioned() {
        let set: Vec<_> = FIG_2_6.iter().map(|(e, p)| task(*e, *p)).collect();
        let partitioned = judge(&set, &[1, 1], Guarantee::Soft);
        assert!(!partitioned.schedulable);
        assert_eq!(partitioned.decided_by, BY_PACKING);
        let global = judge(&set, &[2], Guarantee::Soft);
        assert!(global.schedulable);
        assert_eq!(global.cluster_of, Some(vec![0; 4]));
        assert!(judge(&set, &[1, 1, 1], Guarantee::Hard).schedulable);
    }

    #[test]
    fn clusters_in_between_hold_what_processors_of_one_cannot() {
        // Six of 2/3: no two share a processor, three share a cluster of two.
        let set = [task(2, 3); 6];
        assert!(!judge(&set, &[1; 4], Guarantee::Soft).schedulable);
        let clustered = judge(&set, &[2, 2], Guarantee::Soft);
        assert!(clustered.schedulable);
        assert_eq!(clustered.cluster_of, Some(vec![0, 1, 0, 1, 0, 1]));
        assert!(judge(&set, &[4], Guarantee::Soft).schedulable);
    }

    #[test]
    fn the_failing_task_or_cluster_is_named() {
        let set = [task(2, 3), task(5, 4)];
        assert_eq!(
            judge(&set, &[1, 1], Guarantee::Hard).failure,
            Some(Failure::Task(1))
        );
        let tight = Timing {
            deadline: Duration::from_millis(2),
            ..task(2, 30)
        };
        let verdict = judge(&[task(1, 30), tight, tight], &[1, 1], Guarantee::Hard);
        assert!(verdict.schedulable || verdict.failure.is_some());
        let verdict = judge(&[tight, tight], &[1], Guarantee::Hard);
        assert_eq!(verdict.failure, Some(Failure::Cluster(0)));
        assert_eq!(verdict.decided_by, BY_EXACT_EDF);
        assert!(judge(&[tight, tight], &[1], Guarantee::Soft).schedulable);
    }
}
