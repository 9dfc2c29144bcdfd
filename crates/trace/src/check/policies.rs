//! Which rules a policy has: by its name and its assignment.

use crate::check::Rule;
use crate::check::domains::Domains;
use crate::check::priority::{Order, Priority};
use crate::header::Header;
use crate::state::State;
use model::assignment::Clustered;
use model::{Assignment, CpuId, Duration, Error, Result};

/// A policy as it is written: a name, and behind a colon words and `key=value`, separated by commas.
struct Spec<'a> {
    name: &'a str,
    parameters: &'a str,
}

impl<'a> Spec<'a> {
    fn of(policy: &'a str) -> Self {
        let (name, parameters) = policy.split_once(':').unwrap_or((policy, ""));
        Spec { name, parameters }
    }
    fn has(&self, word: &str) -> bool {
        self.parameters.split(',').any(|p| p.trim() == word)
    }
    fn value(&self, key: &str) -> Option<&'a str> {
        let mut pairs = self.parameters.split(',').filter_map(|p| p.split_once('='));
        pairs.find(|(k, _)| k.trim() == key).map(|(_, v)| v.trim())
    }
}

/// Does the policy cut jobs into slices with budgets of their own?
pub fn has_slices(policy: &str) -> bool {
    Spec::of(policy).name == "edf-wm"
}

/// The rule of a stage; `None` for a policy that is not known here.
///
/// # Errors
/// The assignment is missing, is of the wrong kind, or does not fit the tasks or the platform.
pub fn rule(
    header: &Header,
    stage: usize,
    state: &State,
    tolerance: Duration,
) -> Result<Option<Box<dyn Rule>>> {
    let stage = &header.stages[stage];
    let set = &header.tasks;
    let spec = Spec::of(&stage.policy);
    let by = |key: &dyn Fn(usize) -> Duration| {
        let mut tasks: Vec<usize> = (0..set.len()).collect();
        tasks.sort_by_key(|t| key(*t));
        let mut rank = vec![0; set.len()];
        for (place, task) in tasks.into_iter().enumerate() {
            rank[task] = place as u64;
        }
        Order::Fixed(rank)
    };
    let timings = set.timings();
    let order = match spec.name {
        "p-edf" | "g-edf" | "c-edf" => Order::Deadline,
        "p-rm" => by(&|t| timings[t].period),
        "p-fp" | "g-fp" if spec.has("rm") => by(&|t| timings[t].period),
        "p-fp" | "g-fp" if spec.has("dm") => by(&|t| timings[t].deadline),
        "p-fp" | "g-fp" => by(&|_| Duration::ZERO),
        _ => return Ok(None),
    };
    let quantum = match stage.quantum {
        Some(quantum) => Some(quantum),
        None => spec.value("quantum").map(str::parse).transpose()?,
    };
    let clustered = match &stage.assignment {
        Some(Assignment::Clustered(clustered)) => clustered.clone(),
        None if stage.policy.starts_with("g-") => Clustered {
            clusters: vec![header.processors()],
            cluster_of: vec![0; set.len()],
        },
        _ => {
            return Err(Error::new(format!(
                "the trace does not say on which processors `{}` keeps the tasks",
                stage.policy
            ))
            .remedy("make it again with this version"));
        }
    };
    let (clusters, cluster_of) = checked(header, &clustered)?;
    let domains = Domains::new(clusters, state, tolerance, quantum);
    Ok(Some(Box::new(Priority::new(domains, order, cluster_of))))
}

/// Clusters that are disjoint, of usable processors, with a place for every task.
fn checked(header: &Header, clustered: &Clustered) -> Result<(Vec<Vec<CpuId>>, Vec<u32>)> {
    let usable = header.processors();
    let mut seen = model::CpuSet::new();
    for cluster in &clustered.clusters {
        for cpu in cluster.iter() {
            if !usable.contains(cpu) || !seen.insert(cpu) {
                return Err(Error::new(format!(
                    "the assignment of the trace names processor {cpu}, which is not usable or in another cluster"
                ))
                .remedy("make the trace again"));
            }
        }
    }
    let count = clustered.clusters.len();
    if clustered.cluster_of.len() != header.tasks.len()
        || clustered.cluster_of.iter().any(|c| *c as usize >= count)
    {
        return Err(
            Error::new("the assignment of the trace does not fit its tasks").remedy("make the trace again")
        );
    }
    let clusters = clustered.clusters.iter().map(|c| c.iter().collect()).collect();
    Ok((clusters, clustered.cluster_of.clone()))
}
