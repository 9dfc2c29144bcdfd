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
use model::{Assignment, Bytes, Called, CpuId, CpuSet, Duration, Error, Ratio, Result, Timing};

/// The rule of one policy, written from its definition: this crate does not know the policy's code.
struct Known {
    name: &'static str,
    /// What events the policy has that others do not.
    has: Has,
    make: fn(&Asked<'_>) -> Result<Box<dyn Rule>>,
}

/// Events that only some policies have.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Has {
    /// None.
    Nothing,
    /// Slices of jobs, each with a window and a budget of its own.
    Slices,
    /// Servers that processors serve.
    Servers,
}

/// Every rule: to add one, add its line.
const RULES: &[Known] = &[
    known("p-edf", by_deadline),
    known("g-edf", by_deadline),
    known("c-edf", by_deadline),
    known("p-rm", by_period),
    known("p-fp", by_priority),
    known("g-fp", by_priority),
    known("edf-fm", in_turns),
    Known {
        has: Has::Slices,
        ..known("edf-wm", in_slices)
    },
    Known {
        has: Has::Servers,
        ..known("nps-f", in_slots)
    },
    Known {
        has: Has::Servers,
        ..known("c-nps-f", in_slots)
    },
    known("pd2", fair),
    known("ca-edf", cache_aware),
    known("g-fifo", by_release),
];

const fn known(name: &'static str, make: fn(&Asked<'_>) -> Result<Box<dyn Rule>>) -> Known {
    Known {
        name,
        has: Has::Nothing,
        make,
    }
}

fn find(policy: &str) -> Option<&'static Known> {
    let called = policy.parse::<Called>().ok()?;
    RULES.iter().find(|rule| rule.name == called.name())
}

/// Has the checker a rule for the policy of this name, besides those of every schedule?
pub fn has_rule(policy: &str) -> bool {
    find(policy).is_some()
}

/// Does the policy cut jobs into slices with budgets of their own?
pub fn has_slices(policy: &str) -> bool {
    find(policy).is_some_and(|rule| rule.has == Has::Slices)
}

/// Does the policy serve servers? Of one that is not known here that may be.
pub fn has_servers(policy: &str) -> bool {
    find(policy).is_none_or(|rule| rule.has == Has::Servers)
}

/// Does the policy give windows to slices? Of one that is not known here that may be.
pub fn has_windows(policy: &str) -> bool {
    find(policy).is_none_or(|rule| rule.has == Has::Slices)
}

/// A stage of a trace whose rule is asked for.
struct Asked<'a> {
    header: &'a Header,
    stage: &'a Stage,
    state: &'a State,
    tolerance: Duration,
    spec: Called,
    /// As the stage says, else as the parameters do.
    quantum: Option<Duration>,
}

impl Asked<'_> {
    fn missing(&self, what: &str) -> Error {
        Error::new(format!(
            "the trace does not say {what} `{}`",
            self.stage.policy
        ))
        .remedy("make it again with this version")
    }

    fn timings(&self) -> &[Timing] {
        self.header.tasks.timings()
    }

    /// The tasks by a key, the least first. Of equal ones the first of the set goes first: sorting
    /// is stable.
    fn by(&self, key: impl Fn(usize) -> Duration) -> Order {
        let mut tasks: Vec<usize> = (0..self.timings().len()).collect();
        tasks.sort_by_key(|t| key(*t));
        let mut rank = vec![0; tasks.len()];
        for (place, task) in tasks.into_iter().enumerate() {
            rank[task] = place as u64;
        }
        Order::Fixed(rank)
    }

    /// The rule of a policy that differs from others in the order of jobs only, in the clusters of
    /// the assignment. Where there is none, a policy named `g-…` has all processors together.
    fn ordered(&self, order: Order) -> Result<Box<dyn Rule>> {
        let clustered = match &self.stage.assignment {
            Some(Assignment::Clustered(clustered)) => clustered.clone(),
            None if self.stage.policy.starts_with("g-") => Clustered {
                clusters: vec![self.header.processors()],
                cluster_of: vec![0; self.timings().len()],
            },
            _ => {
                return Err(Error::new(format!(
                    "the trace does not say on which processors `{}` keeps the tasks",
                    self.stage.policy
                ))
                .remedy("make it again with this version"));
            }
        };
        let (clusters, cluster_of) = checked(self.header, &clustered)?;
        let domains = Domains::new(clusters, self.state, self.tolerance, self.quantum);
        Ok(Box::new(Priority::new(
            domains,
            order,
            Place::Task(cluster_of),
        )))
    }

    /// How long a quantum is, and the tasks with what is reserved for them as WCETs.
    fn in_quanta(&self) -> Result<(Duration, Vec<Timing>)> {
        let quantum = self
            .quantum
            .ok_or_else(|| self.missing("how long a quantum is under"))?;
        Ok((quantum, reserved(self.header, self.stage, quantum)?))
    }
}

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
    let spec: Called = stage.policy.parse()?;
    let quantum = match stage.quantum {
        Some(quantum) => Some(quantum),
        None => spec.value("quantum").map(str::parse).transpose()?,
    };
    let Some(known) = RULES.iter().find(|rule| rule.name == spec.name()) else {
        return Ok(None);
    };
    // Traces do not have the misses by which working sets were found, and so who runs when.
    if spec.value("wss") == Some("profiled") {
        return Ok(None);
    }
    (known.make)(&Asked {
        header,
        stage,
        state,
        tolerance,
        spec,
        quantum,
    })
    .map(Some)
}

/// The earlier deadline first.
fn by_deadline(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    asked.ordered(match asked.spec.value("ties") {
        Some("index") => Order::Plain,
        _ => Order::Deadline,
    })
}

/// The earlier release first.
fn by_release(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    asked.ordered(Order::Release)
}

/// The shorter period first.
fn by_period(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    asked.ordered(asked.by(|t| asked.timings()[t].period))
}

/// By the priorities of the tasks, the larger number first and tasks without one last; or as the
/// parameters say.
fn by_priority(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    let timings = asked.timings();
    if asked.spec.has("rm") {
        return by_period(asked);
    }
    if asked.spec.has("dm") {
        return asked.ordered(asked.by(|t| timings[t].deadline));
    }
    asked.ordered(asked.by(|t| {
        let own = asked.header.tasks.details(model::TaskId(t as u32));
        let own = own.and_then(|d| d.priority);
        own.map_or(Duration::MAX, |p| {
            Duration::from_nanos(u64::from(u32::MAX - p))
        })
    }))
}

fn in_turns(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    match &asked.stage.assignment {
        Some(Assignment::Turns(turns)) => {
            turns_rule(asked.header, turns, asked.state, asked.tolerance)
        }
        _ => Err(asked.missing("how tasks are split under")),
    }
}

fn in_slices(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    match &asked.stage.assignment {
        Some(Assignment::Slices(slices)) => {
            slices_rule(asked.header, slices, asked.state, asked.tolerance)
        }
        _ => Err(asked.missing("how tasks are split under")),
    }
}

fn in_slots(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    match &asked.stage.assignment {
        Some(Assignment::Slots(slots)) => {
            slots_rule(asked.header, slots, asked.state, asked.tolerance)
        }
        _ => Err(asked.missing("how tasks are split under")),
    }
}

fn fair(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    let (quantum, timings) = asked.in_quanta()?;
    let law = Fair::new(&timings, quantum, asked.header.processors().len());
    Ok(Box::new(Quanta::new(
        law,
        quantum,
        asked.tolerance,
        timings.len(),
    )))
}

fn cache_aware(asked: &Asked<'_>) -> Result<Box<dyn Rule>> {
    let (quantum, timings) = asked.in_quanta()?;
    let cache = match asked.spec.value("cache") {
        Some(size) => size.parse::<Bytes>()?,
        None => (asked.header.platform.shared_cache())
            .and_then(|cache| cache.size)
            .ok_or_else(|| asked.missing("how large the shared cache is under"))?,
    };
    let reserve = match asked.spec.value("reserve") {
        Some(part) => part.parse::<Ratio>()?,
        None => Ratio::ZERO,
    };
    let processors = asked.header.processors().len();
    let law = CacheAware::new(
        &asked.header.tasks,
        &timings,
        cache.get(),
        quantum,
        processors,
        reserve,
    );
    Ok(Box::new(Quanta::new(
        law,
        quantum,
        asked.tolerance,
        timings.len(),
    )))
}

/// The tasks of a stage in quanta, with what is reserved for them as WCETs where the assignment
/// says so.
fn reserved(header: &Header, stage: &Stage, quantum: Duration) -> Result<Vec<Timing>> {
    let Some(Assignment::Quanta(quanta)) = &stage.assignment else {
        return Ok(header.tasks.timings().to_vec());
    };
    if quanta.quantum != quantum || quanta.cpus != header.processors() {
        return Err(misfit());
    }
    quanta.timings(&header.tasks).map_err(|_| misfit())
}

/// Processors that decide together, where those of different clusters never wait for each other:
/// nobody pushes jobs between them.
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
            Error::new("the assignment of the trace does not fit its tasks")
                .remedy("make the trace again"),
        );
    }
    let clusters = clustered
        .clusters
        .iter()
        .map(|c| c.iter().collect())
        .collect();
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
    if entries == header.tasks.len() && cpus.iter().all(|c| usable.contains(*c) && seen.insert(*c))
    {
        Ok(())
    } else {
        Err(misfit())
    }
}

fn turns_rule(
    header: &Header,
    turns: &Turns,
    state: &State,
    tolerance: Duration,
) -> Result<Box<dyn Rule>> {
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
    let classes = turns
        .tasks
        .iter()
        .map(|t| u64::from(!t.is_migratory()))
        .collect();
    let domains = Domains::new(one_each(&turns.cpus), state, tolerance, None);
    let place = Place::Turns(tasks, vec![Dealt::default(); turns.tasks.len()]);
    Ok(Box::new(Priority::new(
        domains,
        Order::Classes(classes),
        place,
    )))
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
    Ok(Box::new(Windows::new(
        domains,
        slices.tasks.clone(),
        tolerance,
    )))
}

fn slots_rule(
    header: &Header,
    slots: &Slots,
    state: &State,
    tolerance: Duration,
) -> Result<Box<dyn Rule>> {
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
            && table
                .turns
                .iter()
                .all(|t| t.start < t.end && t.end <= slots.slot)
    });
    if slots.slot.is_zero() || !ordered || servers > model::TaskSet::MAX_TASKS {
        return Err(misfit());
    }
    let domains = Domains::new(vec![Vec::new(); servers], state, tolerance, None);
    Ok(Box::new(Servers::new(domains, slots, servers, tolerance)))
}
