//! Who runs where: the one place where the assignment that a policy needs is made.
//!
//! A row of the catalog says what the policy has to be told ([`Needs`]); this makes it, with
//! overheads or with none (which is the same code, all of them zero). `check` looks for assignments
//! that hold, `simulate` and `run` take the first that is found.

use crate::overheads::{self, System};
use crate::partition::Fit;
use crate::partition::affinity::{self, Allowed};
use crate::semi::{SHORTEST_SLICE, edf_fm, edf_wm, nps_f};
use crate::uniprocessor::WORK_LIMIT;
use model::assignment::{Clustered, Quanta};
use model::{Assignment, ClusterSpec, CpuId, CpuSet, Duration, Platform, Result, TaskSet, Timing};
use policy::Spec;
use policy::catalog::Needs;

/// What may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct How {
    /// Which cluster takes a task that several could; for slices, which processor.
    pub fit: Fit,
    /// How far EDF-fm fills a processor before the next one.
    pub fill: edf_fm::Fill,
    /// The most evaluations of one task's demand that an assignment in slices may take.
    pub work: u64,
    /// No slice is shorter.
    pub shortest: Duration,
}

impl Default for How {
    fn default() -> Self {
        How {
            fit: Fit::default(),
            fill: edf_fm::Fill::default(),
            work: WORK_LIMIT,
            shortest: SHORTEST_SLICE,
        }
    }
}

/// Why there is no assignment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The tasks cannot be where they are kept to: a clause.
    KeptApart(String),
    /// This task fits on no processor or cluster that is left, in no turns, slices or server.
    Task(u32),
    /// The tasks that take turns on the processor at this place, from 0, ask for more than all of
    /// it.
    Migratory(usize),
    /// The servers need more than the processors have.
    Servers,
    /// The slot is shorter than the shortest reserve.
    Slot,
    /// Undecided within the limit of work.
    Limit,
}

/// The assignment that a policy needs for a set on the usable processors of a platform, without
/// overheads; inside, why there is none. `Ok(None)`: it needs none.
///
/// # Errors
/// A parameter without meaning; clusters that the platform does not have; a task that may run on no
/// usable processor.
pub fn assign(
    spec: &Spec,
    set: &TaskSet,
    platform: &Platform,
    how: &How,
) -> Result<std::result::Result<Option<Assignment>, Refusal>> {
    assign_with(spec, set, platform, how, &System::free(platform))
}

/// The same with overheads, which clusters leave to the tests.
///
/// # Errors
/// As [`assign`].
pub fn assign_with(
    spec: &Spec,
    set: &TaskSet,
    platform: &Platform,
    how: &How,
    system: &System<'_>,
) -> Result<std::result::Result<Option<Assignment>, Refusal>> {
    let needs = spec.needs()?;
    if !matches!(needs, Needs::Clusters(_))
        && let Some(why) = affinity::refusal(set, platform)?
    {
        let why = format!("`{spec}` cannot run this set: {why}");
        return Ok(Err(Refusal::KeptApart(why)));
    }
    let timings = set.timings();
    let site = |clusters: ClusterSpec| -> Result<Site> {
        Ok(Site::of(platform, platform.clusters(clusters)?))
    };
    let made = match needs {
        Needs::Nothing => return Ok(Ok(None)),
        Needs::Clusters(clusters) => {
            let site = site(clusters)?;
            match affinity::allowed(set, platform, &site.clusters)? {
                Ok(allowed) => into_clusters(timings, &site.clusters, how.fit, allowed.as_ref()),
                Err(why) => Err(Refusal::KeptApart(why)),
            }
        }
        Needs::Turns { spread } => {
            let fill = if spread {
                edf_fm::Fill::Spread
            } else {
                how.fill
            };
            let how = How { fill, ..*how };
            in_turns(timings, &site(ClusterSpec::Global)?, &how, system)
        }
        Needs::Slices { shortest } => {
            let shortest = shortest.unwrap_or(how.shortest);
            let how = How { shortest, ..*how };
            in_slices(timings, &site(ClusterSpec::Global)?, &how, system)
        }
        Needs::Slots { delta, clusters } => {
            let site = site(clusters.unwrap_or(ClusterSpec::Global))?;
            in_slots(timings, &site, delta, system)
        }
    };
    Ok(made.map(Some))
}

/// The processors that tasks are assigned to.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Site {
    /// The clusters of the policy.
    pub clusters: Vec<CpuSet>,
    /// All usable processors, neighbors in the caches next to each other.
    pub cpus: Vec<CpuId>,
}

impl Site {
    /// These clusters of a platform.
    pub fn of(platform: &Platform, clusters: Vec<CpuSet>) -> Self {
        Site {
            clusters,
            cpus: platform.in_cache_order(),
        }
    }

    /// The processors of each cluster, in cache order.
    pub(crate) fn in_order(&self) -> Vec<Vec<CpuId>> {
        let of = |c: &CpuSet| {
            let cpus = self.cpus.iter().copied();
            cpus.filter(|cpu| c.contains(*cpu)).collect()
        };
        self.clusters.iter().map(of).collect()
    }
}

/// Packs tasks into clusters by utilization, the largest first, each only where it may be.
///
/// # Errors
/// [`Refusal::Task`]: the first, in the order of placement, that no cluster takes.
pub fn into_clusters(
    tasks: &[Timing],
    clusters: &[CpuSet],
    fit: Fit,
    allowed: Option<&Allowed>,
) -> std::result::Result<Assignment, Refusal> {
    let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
    let cluster_of = affinity::pack_allowed(tasks, &sizes, fit, allowed).map_err(Refusal::Task)?;
    Ok(Assignment::Clustered(Clustered {
        clusters: clusters.to_vec(),
        cluster_of,
    }))
}

/// Jobs of some tasks take turns (EDF-fm, 002 §4.1).
///
/// # Errors
/// [`Refusal::Task`], [`Refusal::Migratory`].
pub fn in_turns(
    tasks: &[Timing],
    site: &Site,
    how: &How,
    system: &System<'_>,
) -> std::result::Result<Assignment, Refusal> {
    let (tasks, system) = system.books(tasks);
    match overheads::edf_fm::assign(&tasks, &site.cpus, how.fill, &system) {
        Ok(turns) => Ok(Assignment::Turns(turns)),
        Err(edf_fm::Refusal::Task(index)) => Err(Refusal::Task(index as u32)),
        Err(edf_fm::Refusal::Migratory(place)) => Err(Refusal::Migratory(place)),
    }
}

/// Jobs of some tasks go through several processors (EDF-WM, 002 §4.2).
///
/// # Errors
/// [`Refusal::Task`], [`Refusal::Limit`].
pub fn in_slices(
    tasks: &[Timing],
    site: &Site,
    how: &How,
    system: &System<'_>,
) -> std::result::Result<Assignment, Refusal> {
    let (tasks, system) = system.books(tasks);
    let settings = edf_wm::Settings {
        fit: how.fit,
        work: how.work,
        shortest: how.shortest,
        ..edf_wm::Settings::default()
    };
    match overheads::edf_wm::assign(&tasks, &site.cpus, &settings, &system) {
        Ok(slices) => Ok(Assignment::Slices(slices)),
        Err(edf_wm::Refusal::Task(index)) => Err(Refusal::Task(index)),
        Err(edf_wm::Refusal::Limit) => Err(Refusal::Limit),
    }
}

/// Tasks in servers, servers in slots (NPS-F; C-NPS-F where there are several clusters; 002 §4.3).
///
/// # Errors
/// [`Refusal::Task`], [`Refusal::Servers`], [`Refusal::Slot`].
pub fn in_slots(
    tasks: &[Timing],
    site: &Site,
    delta: u32,
    system: &System<'_>,
) -> std::result::Result<Assignment, Refusal> {
    let (tasks, system) = system.books(tasks);
    let settings = nps_f::Settings {
        delta,
        ..nps_f::Settings::default()
    };
    match overheads::nps_f::assign(&tasks, &site.in_order(), &settings, &system) {
        Ok(slots) => Ok(Assignment::Slots(slots)),
        Err(nps_f::Refusal::Task(index)) => Err(Refusal::Task(index)),
        Err(nps_f::Refusal::Servers) => Err(Refusal::Servers),
        Err(nps_f::Refusal::Slot) => Err(Refusal::Slot),
    }
}

/// Whole quanta on any processor for each task, with what every quantum loses: also its timings
/// with these overheads. Whether the reservations fit is for a test to say.
pub fn in_quanta(
    tasks: &[Timing],
    cpus: &CpuSet,
    quantum: Duration,
    system: &System<'_>,
) -> (Quanta, Vec<Timing>) {
    let inflated = overheads::quanta::account(tasks, cpus, quantum, system).inflated;
    let length = quantum.nanos().max(1);
    let whole =
        |t: &Timing| Duration::from_nanos(t.wcet.nanos().div_ceil(length).saturating_mul(length));
    let quanta = Quanta {
        cpus: cpus.clone(),
        quantum,
        reserved: inflated.iter().map(whole).collect(),
    };
    (quanta, inflated)
}
