//! A task set judged under policies on a platform, with what the platform costs: verdicts, assignments, what is left to spare.
//!
//! 000 §2: a set is schedulable with cache delay if it passes a test with every WCET longer by the delay of one preemption or migration,
//! e′ = e + D; which D depends on what the policy can do to a job: P-EDF only preempts, C-EDF also migrates within the
//! cluster, G-EDF everywhere. Hard guarantees take the maximum, soft ones the average (002 §6.3).
//!
//! Packing is heuristic: the heuristics are tried in a fixed order (worst, first, best, next fit, in decreasing utilization) and the first
//! that passes is shown. The semi-partitioned policies and PD2 come with assignments of their own (`assigned`).

mod assigned;
mod costs;
mod margin;
mod name;
mod rank;

pub use costs::{Charge, Costs};
pub use margin::Margin;
pub use name::{Family, Policy};

use crate::clustered::{self, ClusteredVerdict, Failure};
use crate::partition::{Fit, Order};
use crate::verdict::Guarantee;
use model::assignment::Clustered;
use model::{Assignment, CpuSet, Duration, Platform, Result, TaskId, TaskSet, Timing};
use serde::Serialize;

/// What stands for the test of a policy that was not judged: a precondition fails or a limit is exceeded.
pub const NOT_JUDGED: &str = "not judged";

/// A task in its cluster.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Placed {
    /// Its number in the set, from 0.
    pub task: TaskId,
    /// Its name.
    pub name: String,
    /// Its own utilization.
    pub utilization: f64,
    /// What cache delay adds to it.
    pub overhead: f64,
}

/// A cluster and its tasks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Cluster {
    /// Its processors.
    pub processors: CpuSet,
    /// The test that accepts it, if one does.
    pub accepted_by: Option<&'static str>,
    /// Its tasks, in the order of the set.
    pub tasks: Vec<Placed>,
}

/// What a policy does for the set.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct PolicyVerdict {
    /// Its name, as on the command line.
    pub policy: String,
    /// Is the guarantee shown?
    pub schedulable: bool,
    /// The test that decided.
    pub decided_by: &'static str,
    /// The packing heuristic that is shown; `None` where there is one cluster only.
    pub heuristic: Option<String>,
    /// In a plain sentence: why, or why not.
    pub reason: String,
    /// Total utilization with the WCETs as given.
    pub utilization: f64,
    /// Total utilization with WCETs inflated by cache delay.
    pub inflated_utilization: f64,
    /// The longest cache delay charged to a job.
    pub charged: Duration,
    /// How much cache delay a job of every task may have for the set still to pass; `None`: it fails without any.
    pub largest_cpmd: Option<Margin>,
    /// Does one delay a job cover all that the policy does to caches? Not where jobs are cut into slices, slots or quanta.
    pub cpmd_covered: bool,
    /// What one must know to trust this verdict: readings beyond what was measured.
    pub notes: Vec<String>,
    /// Who runs where, if every task found a place.
    pub clusters: Vec<Cluster>,
    /// The same for engines.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub assignment: Option<Assignment>,
}

/// A task set judged under several policies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Judgment {
    /// Hard or soft.
    pub guarantee: Guarantee,
    /// Name of the platform.
    pub platform: String,
    /// How many processors it has for this.
    pub processors: usize,
    /// How many tasks the set has.
    pub tasks: usize,
    /// Their total utilization.
    pub utilization: f64,
    /// What was charged, in words.
    pub costs: String,
    /// In a plain sentence: which policy comes first, and why.
    pub advice: String,
    /// One verdict a policy, the best first.
    pub policies: Vec<PolicyVerdict>,
}

impl Judgment {
    /// Is the guarantee shown under at least one of the policies?
    pub fn is_schedulable(&self) -> bool {
        self.policies.iter().any(|p| p.schedulable)
    }
}

/// Judges a set under policies on the usable processors of a platform.
///
/// # Errors
/// A policy that the platform has no clusters for; a delay that the profile does not have or a task's missing working set size;
/// names what would help.
pub fn judge(
    set: &TaskSet,
    platform: &Platform,
    policies: &[Policy],
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> Result<Judgment> {
    let mut verdicts = policies
        .iter()
        .map(|policy| match policy.family {
            Family::Edf => judge_edf(set, platform, *policy, guarantee, costs),
            _ => assigned::judge(set, platform, *policy, guarantee, costs),
        })
        .collect::<Result<Vec<_>>>()?;
    rank::sort(&mut verdicts);
    Ok(Judgment {
        guarantee,
        platform: platform.name.clone(),
        processors: platform.usable().len(),
        tasks: set.len(),
        utilization: set.utilization_f64(),
        costs: costs.describe(guarantee),
        advice: rank::advise(&verdicts),
        policies: verdicts,
    })
}

fn judge_edf(
    set: &TaskSet,
    platform: &Platform,
    policy: Policy,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> Result<PolicyVerdict> {
    let clusters = platform
        .clusters(policy.clusters)
        .map_err(|e| e.at(format!("policy `{policy}`")))?;
    let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
    let charge = costs.charge(set, platform, &clusters, guarantee)?;
    let inflated: Vec<Timing> = set
        .timings()
        .iter()
        .zip(&charge.delays)
        .map(|(t, d)| t.inflated(*d))
        .collect();
    let (verdict, fit) = pack_and_decide(&inflated, &sizes, guarantee);
    let largest_cpmd = margin::largest_cpmd(set.timings(), &sizes, guarantee);
    let placed = place(set, &clusters, &verdict, &charge);
    Ok(PolicyVerdict {
        policy: policy.to_string(),
        schedulable: verdict.schedulable,
        decided_by: verdict.decided_by,
        heuristic: (sizes.len() > 1).then(|| fit.to_string()),
        reason: explain(set, &inflated, &clusters, &verdict, guarantee),
        utilization: utilization(set.timings()),
        inflated_utilization: utilization(&inflated),
        charged: charge.delays.iter().copied().max().unwrap_or_default(),
        largest_cpmd,
        cpmd_covered: true,
        notes: charge.notes,
        clusters: placed,
        assignment: verdict
            .cluster_of
            .map(|cluster_of| Assignment::Clustered(Clustered { clusters, cluster_of })),
    })
}

fn utilization(tasks: &[Timing]) -> f64 {
    tasks.iter().map(|t| t.utilization().to_f64()).sum()
}

/// The first heuristic that passes; if none does, the first one.
fn pack_and_decide(tasks: &[Timing], sizes: &[u32], guarantee: Guarantee) -> (ClusteredVerdict, Fit) {
    let decide = |fit| clustered::clustered_edf(tasks, sizes, Order::DecreasingUtilization, fit, guarantee);
    let first = decide(Fit::Worst);
    if first.schedulable || sizes.len() == 1 {
        return (first, Fit::Worst);
    }
    Fit::ALL[1..]
        .iter()
        .map(|fit| (decide(*fit), *fit))
        .find(|(verdict, _)| verdict.schedulable)
        .unwrap_or((first, Fit::Worst))
}

fn place(set: &TaskSet, clusters: &[CpuSet], verdict: &ClusteredVerdict, charge: &Charge) -> Vec<Cluster> {
    let Some(cluster_of) = &verdict.cluster_of else {
        return Vec::new();
    };
    place_by(set, clusters, cluster_of, &verdict.accepted_by, charge)
}

fn place_by(
    set: &TaskSet,
    clusters: &[CpuSet],
    cluster_of: &[u32],
    accepted_by: &[Option<&'static str>],
    charge: &Charge,
) -> Vec<Cluster> {
    let mut placed: Vec<Cluster> = clusters
        .iter()
        .enumerate()
        .map(|(c, processors)| Cluster {
            processors: processors.clone(),
            accepted_by: accepted_by.get(c).copied().flatten(),
            tasks: Vec::new(),
        })
        .collect();
    for ((task, c), timing) in set.ids().zip(cluster_of).zip(set.timings()) {
        let delay = charge.delays[task.index()].nanos() as f64;
        placed[*c as usize].tasks.push(Placed {
            task,
            name: set.name(task),
            utilization: timing.utilization().to_f64(),
            overhead: delay / timing.period.nanos() as f64,
        });
    }
    placed
}

/// Why, or why not, in a sentence.
fn explain(
    set: &TaskSet,
    inflated: &[Timing],
    clusters: &[CpuSet],
    verdict: &ClusteredVerdict,
    guarantee: Guarantee,
) -> String {
    let where_ = |c: u32| {
        let cpus = &clusters[c as usize];
        match cpus.len() {
            1 => format!("processor {cpus}"),
            _ => format!("processors {cpus}"),
        }
    };
    match (&verdict.failure, guarantee) {
        (None, Guarantee::Hard) if clusters.iter().all(|c| c.len() == 1) => {
            "every deadline is met: EDF on each processor is decided exactly".to_owned()
        }
        (None, Guarantee::Hard) => format!("every deadline is met: shown by {}", verdict.decided_by),
        (None, Guarantee::Soft) => {
            "tardiness is bounded: no processor or cluster is asked for more than it has".to_owned()
        }
        (Some(Failure::Task(task)), _) => {
            let t = &inflated[*task as usize];
            let name = set.name(TaskId(*task));
            if t.wcet > t.period {
                format!(
                    "`{name}` needs {} every {}: more than one processor",
                    t.wcet, t.period
                )
            } else {
                let u = t.utilization().to_f64();
                match clusters {
                    [_] => format!(
                        "there is no room for `{name}`, which needs {u:.3} of a processor: the set asks for more than there is"
                    ),
                    _ => format!(
                        "`{name}` needs {u:.3} of a processor, and none has as much left by any of the heuristics"
                    ),
                }
            }
        }
        (Some(Failure::Cluster(c)), _) => {
            if let Some(late) = inflated.iter().position(|t| t.wcet > t.deadline) {
                let t = &inflated[late];
                format!(
                    "`{}` needs {} within {}: more than there is time for",
                    set.name(TaskId(late as u32)),
                    t.wcet.rounded(),
                    t.deadline.rounded()
                )
            } else if clusters[*c as usize].len() == 1 {
                format!("on {} a deadline is missed", where_(*c))
            } else {
                format!(
                    "no test shows that {} meet every deadline; they may or may not",
                    where_(*c)
                )
            }
        }
        (Some(Failure::Limit(c)), _) => {
            format!("{} is undecided: {}", where_(*c), crate::uniprocessor::LIMIT)
        }
    }
}
