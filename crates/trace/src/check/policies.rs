//! Which rules a policy has: by its name and its assignment.

use crate::check::Rule;
use crate::check::cache_aware::CacheAware;
use crate::check::domains::Domains;
use crate::check::fair::Fair;
use crate::check::priority::{Dealt, Order, Place, Priority};
use crate::check::quanta::Quanta;
use crate::check::servers::Servers;
use crate::check::windows::{Windows, one_each};
use crate::header::{Header, Stage};
use crate::state::State;
use model::assignment::{Clustered, Slices, Slots, Turns};
use model::{Assignment, Bytes, CacheKind, Called, CpuId, CpuSet, Duration, Error, Result, Timing};

/// Does the policy cut jobs into slices with budgets of their own?
pub fn has_slices(policy: &str) -> bool {
    policy.parse::<Called>().is_ok_and(|p| p.name() == "edf-wm")
}

/// Does the policy serve servers? Of one that is not known here that may be.
pub fn has_servers(policy: &str) -> bool {
    may_have(policy, &["nps-f", "c-nps-f"])
}

/// Does the policy give windows to slices? Of one that is not known here that may be.
pub fn has_windows(policy: &str) -> bool {
    may_have(policy, &["edf-wm"])
}

fn may_have(policy: &str, names: &[&str]) -> bool {
    let Ok(called) = policy.parse::<Called>() else {
        return true;
    };
    names.contains(&called.name()) || !KNOWN.contains(&called.name())
}

/// The policies whose rules are known here.
const KNOWN: &[&str] = &[
    "p-edf", "g-edf", "c-edf", "p-rm", "p-fp", "g-fp", "edf-fm", "edf-wm", "nps-f", "c-nps-f", "pd2",
    "ca-edf",
];

/// The rule of a stage; `None` for a policy that is not known here.
///
/// # Errors
/// The assignment is missing, is of the wrong kind, or does not fit the tasks or the platform.
pub(super) fn rule(
    header: &Header,
    stage: usize,
    state: &State,
    tolerance: Duration,
) -> Result<Option<Box<dyn Rule>>> {
    let stage = &header.stages[stage];
    let set = &header.tasks;
    let spec: Called = stage.policy.parse()?;
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
    let quantum = match stage.quantum {
        Some(quantum) => Some(quantum),
        None => spec.value("quantum").map(str::parse).transpose()?,
    };
    let needs = |what: &str| {
        Error::new(format!("the trace does not say {what} `{}`", stage.policy))
            .remedy("make it again with this version")
    };
    let order = match (spec.name(), &stage.assignment) {
        ("p-edf" | "g-edf" | "c-edf", _) if spec.value("ties") == Some("index") => Order::Plain,
        ("p-edf" | "g-edf" | "c-edf", _) => Order::Deadline,
        ("p-rm", _) => by(&|t| timings[t].period),
        ("p-fp" | "g-fp", _) if spec.has("rm") => by(&|t| timings[t].period),
        ("p-fp" | "g-fp", _) if spec.has("dm") => by(&|t| timings[t].deadline),
        // The larger number first, tasks without one last; sorting is stable.
        ("p-fp" | "g-fp", _) => by(&|t| {
            let own = set.details(model::TaskId(t as u32)).and_then(|d| d.priority);
            own.map_or(Duration::MAX, |p| Duration::from_nanos(u64::from(u32::MAX - p)))
        }),
        ("edf-fm", Some(Assignment::Turns(turns))) => {
            return turns_rule(header, turns, state, tolerance).map(Some);
        }
        ("edf-wm", Some(Assignment::Slices(slices))) => {
            return slices_rule(header, slices, state, tolerance).map(Some);
        }
        ("nps-f" | "c-nps-f", Some(Assignment::Slots(slots))) => {
            return slots_rule(header, slots, state, tolerance).map(Some);
        }
        ("edf-fm" | "edf-wm" | "nps-f" | "c-nps-f", _) => return Err(needs("how tasks are split under")),
        ("pd2" | "ca-edf", _) => {
            let quantum = quantum.ok_or_else(|| needs("how long a quantum is under"))?;
            let processors = header.processors().len();
            let timings = reserved(header, stage, quantum)?;
            if spec.name() == "pd2" {
                let law = Fair::new(&timings, quantum, processors);
                return Ok(Some(Box::new(Quanta::new(law, quantum, tolerance, set.len()))));
            }
            let cache = match spec.value("cache") {
                Some(size) => size.parse::<Bytes>()?,
                None => shared_cache(header).ok_or_else(|| needs("how large the shared cache is under"))?,
            };
            let law = CacheAware::new(set, &timings, cache.get(), quantum, processors);
            return Ok(Some(Box::new(Quanta::new(law, quantum, tolerance, set.len()))));
        }
        _ => return Ok(None),
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
    Ok(Some(Box::new(Priority::new(
        domains,
        order,
        Place::Task(cluster_of),
    ))))
}

/// The tasks of a stage in quanta, with what is reserved for them as WCETs where the assignment says so.
fn reserved(header: &Header, stage: &Stage, quantum: Duration) -> Result<Vec<Timing>> {
    let Some(Assignment::Quanta(quanta)) = &stage.assignment else {
        return Ok(header.tasks.timings().to_vec());
    };
    if quanta.quantum != quantum || quanta.cpus != header.processors() {
        return Err(misfit());
    }
    quanta.timings(&header.tasks).map_err(|_| misfit())
}

/// Processors that decide together, where those of different clusters never wait for each other: nobody pushes jobs between them.
pub fn alone(stage: &Stage) -> Vec<CpuSet> {
    match &stage.assignment {
        Some(Assignment::Clustered(clustered)) => clustered.clusters.clone(),
        _ => Vec::new(),
    }
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

/// An assignment that does not fit what stands next to it.
fn misfit() -> Error {
    Error::new("the assignment of the trace does not fit its tasks or its platform")
        .remedy("make the trace again")
}

/// Are these processors usable, each named once, and is there an entry for every task?
fn fits(header: &Header, cpus: &[CpuId], entries: usize) -> Result<()> {
    let usable = header.processors();
    let mut seen = model::CpuSet::new();
    if entries == header.tasks.len() && cpus.iter().all(|c| usable.contains(*c) && seen.insert(*c)) {
        Ok(())
    } else {
        Err(misfit())
    }
}

fn turns_rule(header: &Header, turns: &Turns, state: &State, tolerance: Duration) -> Result<Box<dyn Rule>> {
    fits(header, &turns.cpus, turns.tasks.len())?;
    let known = |cpu: CpuId| turns.cpus.contains(&cpu);
    if !turns
        .tasks
        .iter()
        .all(|t| known(t.first) && known(t.second) && t.whole > 0 && t.part <= t.whole)
    {
        return Err(misfit());
    }
    // A fixed task has all its jobs on one processor.
    let tasks = turns
        .tasks
        .iter()
        .map(|t| {
            if t.is_migratory() {
                *t
            } else {
                model::assignment::Turn::fixed(t.first)
            }
        })
        .collect();
    let classes = turns.tasks.iter().map(|t| u64::from(!t.is_migratory())).collect();
    let domains = Domains::new(one_each(&turns.cpus), state, tolerance, None);
    let place = Place::Turns(tasks, vec![Dealt::default(); turns.tasks.len()]);
    Ok(Box::new(Priority::new(domains, Order::Classes(classes), place)))
}

fn slices_rule(
    header: &Header,
    slices: &Slices,
    state: &State,
    tolerance: Duration,
) -> Result<Box<dyn Rule>> {
    fits(header, &slices.cpus, slices.tasks.len())?;
    let known = |cpu: CpuId| slices.cpus.contains(&cpu);
    if !slices
        .tasks
        .iter()
        .all(|t| !t.is_empty() && t.iter().all(|s| known(s.cpu)))
    {
        return Err(misfit());
    }
    let domains = Domains::new(one_each(&slices.cpus), state, tolerance, None);
    Ok(Box::new(Windows::new(domains, slices.tasks.clone(), tolerance)))
}

fn slots_rule(header: &Header, slots: &Slots, state: &State, tolerance: Duration) -> Result<Box<dyn Rule>> {
    let cpus: Vec<CpuId> = slots.timetables.iter().map(|t| t.cpu).collect();
    fits(header, &cpus, slots.server_of.len())?;
    let turns = slots
        .timetables
        .iter()
        .flat_map(|t| t.turns.iter().map(|turn| turn.server));
    let servers = turns
        .chain(slots.server_of.iter().copied())
        .max()
        .map_or(0, |s| s as usize + 1);
    let ordered = slots.timetables.iter().all(|table| {
        let ends = table.turns.iter().map(|t| t.end);
        let starts = table.turns.iter().skip(1).map(|t| t.start);
        ends.zip(starts).all(|(end, start)| end <= start)
            && table.turns.iter().all(|t| t.start < t.end && t.end <= slots.slot)
    });
    if slots.slot.is_zero() || !ordered || servers > model::TaskSet::MAX_TASKS {
        return Err(misfit());
    }
    let domains = Domains::new(vec![Vec::new(); servers], state, tolerance, None);
    Ok(Box::new(Servers::new(domains, slots, servers, tolerance)))
}

/// The smallest cache that all usable processors share.
fn shared_cache(header: &Header) -> Option<Bytes> {
    let usable = header.processors();
    let caches = header.platform.caches.iter();
    caches
        .filter(|c| c.kind != CacheKind::Instruction && usable.is_subset(&c.shared_by))
        .filter_map(|c| c.size)
        .min()
}
