//! A task set judged under policies on a platform, with what the platform costs: verdicts, assignments, what is left to spare.
//!
//! 000 §2: a set is schedulable with cache delay if it passes a test with every WCET longer by the delay of one preemption or migration,
//! e′ = e + D; which D depends on what the policy can do to a job: P-EDF only preempts, C-EDF also migrates within the
//! cluster, G-EDF everywhere. Hard guarantees take the maximum, soft ones the average (002 §6.3).
//!
//! Packing is heuristic: the heuristics are tried in a fixed order (worst, first, best, next fit, in decreasing utilization) and the first
//! that passes is shown.

mod costs;
mod margin;
mod rank;

pub use costs::{Charge, Costs};
pub use margin::Margin;

use crate::clustered::{self, ClusteredVerdict, Failure};
use crate::partition::{Fit, Order};
use crate::verdict::Guarantee;
use model::assignment::Clustered;
use model::error::nearest;
use model::{Assignment, ClusterSpec, CpuSet, Duration, Error, Platform, Result, TaskId, TaskSet, Timing};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// A policy to judge.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Policy {
    /// How its clusters are made: partitioned, global, by cache level, by size.
    pub clusters: ClusterSpec,
}

impl Policy {
    /// Every processor by itself.
    pub const P_EDF: Policy = Policy {
        clusters: ClusterSpec::Partitioned,
    };
    /// All processors together.
    pub const G_EDF: Policy = Policy {
        clusters: ClusterSpec::Global,
    };

    /// P-EDF, C-EDF around every shared cache level that lies in between, and G-EDF, each way of clustering once.
    ///
    /// # Errors
    /// The platform has no usable processor.
    pub fn all_on(platform: &Platform) -> Result<Vec<Policy>> {
        let mut made: Vec<Vec<CpuSet>> = vec![
            platform.clusters(ClusterSpec::Partitioned)?,
            platform.clusters(ClusterSpec::Global)?,
        ];
        let mut policies = vec![Policy::P_EDF];
        for level in platform.data_levels() {
            // A level that some processor lacks makes no clusters; the others do.
            let Ok(clusters) = platform.clusters(ClusterSpec::Level(level)) else {
                continue;
            };
            let mut same = clusters.clone();
            same.sort();
            let is_new = made.iter().all(|other| {
                let mut other = other.clone();
                other.sort();
                other != same
            });
            if is_new {
                made.push(clusters);
                policies.push(Policy {
                    clusters: ClusterSpec::Level(level),
                });
            }
        }
        if made[0].len() > 1 {
            policies.push(Policy::G_EDF);
        }
        Ok(policies)
    }

    /// Reads a list such as `p-edf,g-edf,c-edf:l2`, each policy once.
    ///
    /// # Errors
    /// An unknown policy, or none at all.
    pub fn list(text: &str) -> Result<Vec<Policy>> {
        let mut policies = Vec::new();
        for name in text.split(',').map(str::trim).filter(|n| !n.is_empty()) {
            let policy: Policy = name.parse()?;
            if !policies.contains(&policy) {
                policies.push(policy);
            }
        }
        if policies.is_empty() {
            return Err(Error::new("no policy is named").remedy("give at least one, such as `p-edf`"));
        }
        Ok(policies)
    }
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.clusters {
            ClusterSpec::Partitioned => f.pad("p-edf"),
            ClusterSpec::Global => f.pad("g-edf"),
            other => f.pad(&format!("c-edf:{other}")),
        }
    }
}

impl FromStr for Policy {
    type Err = Error;
    /// Reads `p-edf`, `g-edf`, `c-edf:l2`, `c-edf:size=4`.
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim().to_lowercase();
        let (name, parameter) = match text.split_once(':') {
            Some((name, parameter)) => (name, Some(parameter)),
            None => (text.as_str(), None),
        };
        let clusters = match (name, parameter) {
            ("p-edf", None) => ClusterSpec::Partitioned,
            ("g-edf", None) => ClusterSpec::Global,
            ("c-edf", Some(p)) => {
                let level = p
                    .strip_prefix('l')
                    .and_then(|l| l.parse().ok())
                    .map(ClusterSpec::Level);
                let size = p
                    .strip_prefix("size=")
                    .and_then(|s| s.parse().ok())
                    .map(ClusterSpec::Size);
                level.or(size).ok_or_else(|| {
                    Error::new(format!("`{p}` makes no clusters"))
                        .at(format!("policy `{text}`"))
                        .remedy("write `c-edf:l2` for the level of a shared cache or `c-edf:size=4` for a number of processors")
                })?
            }
            ("c-edf", None) => {
                return Err(Error::new("c-edf needs to know its clusters")
                    .remedy("write `c-edf:l2` for the level of a shared cache or `c-edf:size=4` for a number of processors"));
            }
            ("p-edf" | "g-edf", Some(p)) => {
                return Err(Error::new(format!("{name} takes no parameter, and `{p}` is one"))
                    .remedy(format!("write `{name}`")));
            }
            _ => {
                let known = ["p-edf", "g-edf", "c-edf"];
                let remedy = match nearest(name, known) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => "policies are p-edf, g-edf, c-edf:l2 (any level), c-edf:size=4".to_owned(),
                };
                return Err(Error::new(format!("unknown policy `{name}`")).remedy(remedy));
            }
        };
        Ok(Policy { clusters })
    }
}

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
        .map(|policy| judge_one(set, platform, *policy, guarantee, costs))
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

fn judge_one(
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
    let utilization = |tasks: &[Timing]| tasks.iter().map(|t| t.utilization().to_f64()).sum::<f64>();
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
        notes: charge.notes,
        clusters: placed,
        assignment: verdict
            .cluster_of
            .map(|cluster_of| Assignment::Clustered(Clustered { clusters, cluster_of })),
    })
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
    let mut placed: Vec<Cluster> = clusters
        .iter()
        .enumerate()
        .map(|(c, processors)| Cluster {
            processors: processors.clone(),
            accepted_by: verdict.accepted_by.get(c).copied().flatten(),
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
