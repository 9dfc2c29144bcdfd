//! What each policy's test accepts with overheads, and what the policy needs to run it.

use super::Case;
use analyze::clustered::{decide_cluster, global_tests};
use analyze::global::{gdm_density, gfp_rta};
use analyze::overheads::{self, System, account, pack, pack_with, quanta};
use analyze::partition::{Fit, Order};
use analyze::pd2;
use analyze::semi::{edf_fm, edf_wm, nps_f};
use analyze::tardiness::{cache_aware, devi_anderson};
use analyze::uniprocessor::fixed_priority::{self, Priority};
use model::assignment::Clustered;
use model::{Assignment, ClusterSpec, CpuId, CpuSet, Duration, Timing};

/// What a policy needs to run an accepted set.
pub struct Accepted {
    /// What the policy is built for: the set itself, but with quanta to reserve under PD².
    pub planned: Vec<Timing>,
    pub assignment: Option<Assignment>,
    /// How late each task may be.
    pub tardiness: Vec<Duration>,
}

pub type Accept = fn(&Case, &[Timing], &System<'_>) -> Option<Accepted>;

fn in_time(tasks: &[Timing], assignment: Option<Assignment>) -> Option<Accepted> {
    Some(Accepted {
        planned: tasks.to_vec(),
        assignment,
        tardiness: vec![Duration::ZERO; tasks.len()],
    })
}

fn in_clusters(
    case: &Case,
    tasks: &[Timing],
    system: &System<'_>,
    spec: ClusterSpec,
    accepts: impl FnMut(&[Timing], u32) -> bool,
) -> Option<Accepted> {
    let clusters = case.platform.clusters(spec).ok()?;
    let packed = pack_with(
        tasks,
        &clusters,
        system,
        Order::DecreasingUtilization,
        Fit::First,
        accepts,
    )
    .ok()?;
    in_time(tasks, Some(Assignment::Clustered(packed.assignment)))
}

/// By the tests that are quick where a set is only just accepted.
fn by_edf(tasks: &[Timing], size: u32) -> bool {
    if size == 1 {
        return matches!(decide_cluster(tasks, size), Ok(Some(_)));
    }
    let quick = ["GFB", "BAK", "BCL", "BCLI", "LOAD"];
    let mut tests = global_tests().filter(|t| quick.contains(&t.name));
    tests.any(|t| t.decide_inflated(tasks, size) == Ok(true))
}

fn p_edf(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    let clusters = case.platform.clusters(ClusterSpec::Partitioned).ok()?;
    let packed = pack(
        tasks,
        &clusters,
        system,
        Order::DecreasingUtilization,
        Fit::Worst,
    )
    .ok()?;
    in_time(tasks, Some(Assignment::Clustered(packed.assignment)))
}
fn c_edf(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_clusters(case, tasks, system, ClusterSpec::Size(2), by_edf)
}
fn g_edf(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_clusters(case, tasks, system, ClusterSpec::Global, by_edf)
}
/// Soft: not over-utilized; tardiness by Devi and Anderson with the inflated WCETs.
fn g_edf_soft(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    let m = case.platform.usable().len() as u32;
    let everywhere = Assignment::Clustered(Clustered {
        clusters: vec![case.platform.usable()],
        cluster_of: vec![0; tasks.len()],
    });
    let inflated = account(tasks, &everywhere, system).inflated;
    let tardiness = devi_anderson::tardiness_bounds(&inflated, m).ok()??;
    let accepted = in_time(tasks, Some(everywhere))?;
    Some(Accepted {
        tardiness,
        ..accepted
    })
}
fn p_rm(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_clusters(
        case,
        tasks,
        system,
        ClusterSpec::Partitioned,
        |inside, _| fixed_priority::decide(inside, Priority::RateMonotonic) == Ok(true),
    )
}
fn g_fp(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_clusters(case, tasks, system, ClusterSpec::Global, |inside, m| {
        gfp_rta::is_schedulable(inside, m, Priority::Given) == Ok(true)
    })
}
fn g_dm(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_clusters(case, tasks, system, ClusterSpec::Global, |inside, m| {
        (gdm_density::INFO.run)(inside, m) == Ok(true)
            || gfp_rta::is_schedulable(inside, m, Priority::DeadlineMonotonic) == Ok(true)
    })
}
fn edf_fm(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    let cpus = case.platform.in_cache_order();
    let turns = overheads::edf_fm::assign(tasks, &cpus, edf_fm::Fill::Full, system).ok()?;
    let tardiness = overheads::edf_fm::tardiness_bounds(tasks, &turns, system);
    let accepted = in_time(tasks, Some(Assignment::Turns(turns)))?;
    Some(Accepted {
        tardiness,
        ..accepted
    })
}
fn edf_wm(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    let cpus = case.platform.in_cache_order();
    let slices =
        overheads::edf_wm::assign(tasks, &cpus, &edf_wm::Settings::default(), system).ok()?;
    in_time(tasks, Some(Assignment::Slices(slices)))
}
fn in_slots(
    case: &Case,
    tasks: &[Timing],
    system: &System<'_>,
    spec: ClusterSpec,
) -> Option<Accepted> {
    let cpus = case.platform.in_cache_order();
    let of = |cluster: &CpuSet| {
        cpus.iter()
            .copied()
            .filter(|c| cluster.contains(*c))
            .collect()
    };
    let clusters: Vec<Vec<CpuId>> = case.platform.clusters(spec).ok()?.iter().map(of).collect();
    let settings = nps_f::Settings {
        delta: case.delta,
        ..nps_f::Settings::default()
    };
    let slots = overheads::nps_f::assign(tasks, &clusters, &settings, system).ok()?;
    in_time(tasks, Some(Assignment::Slots(slots)))
}
fn nps_f(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_slots(case, tasks, system, ClusterSpec::Global)
}
fn c_nps_f(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    in_slots(case, tasks, system, ClusterSpec::Size(2))
}
fn in_whole_quanta(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    if tasks.iter().any(|t| t.period.nanos() % 1_000_000 != 0) {
        return None;
    }
    let m = case.platform.usable().len() as u32;
    let planned = quanta::account(tasks, &case.platform.usable(), pd2::QUANTUM, system).inflated;
    if pd2::is_schedulable(&planned, m) != Ok(true) {
        return None;
    }
    Some(Accepted {
        planned,
        ..in_time(tasks, None)?
    })
}

/// Soft, in quanta: as many are reserved as with PD², tardiness as with those.
fn cache_aware_soft(case: &Case, tasks: &[Timing], system: &System<'_>) -> Option<Accepted> {
    let m = case.platform.usable().len() as u32;
    let planned = quanta::account(tasks, &case.platform.usable(), pd2::QUANTUM, system).inflated;
    if tasks.iter().any(|t| t.period.nanos() % 1_000_000 != 0)
        || planned.iter().any(|t| t.wcet > t.period)
    {
        return None;
    }
    let tardiness = cache_aware::tardiness_bounds(&planned, m, pd2::QUANTUM).ok()??;
    Some(Accepted {
        planned,
        tardiness,
        ..in_time(tasks, None)?
    })
}

/// Policy, test, and whether deadlines may be shorter than periods.
pub const POLICIES: [(&str, Accept, bool); 13] = [
    ("p-edf", p_edf, true),
    ("c-edf:size=2", c_edf, true),
    ("g-edf", g_edf, true),
    ("p-rm", p_rm, true),
    ("g-fp", g_fp, true),
    ("g-fp:dm", g_dm, true),
    ("edf-fm", edf_fm, false),
    ("edf-wm", edf_wm, true),
    ("nps-f", nps_f, false),
    ("c-nps-f:size=2", c_nps_f, false),
    ("pd2", in_whole_quanta, false),
    ("g-edf", g_edf_soft, false),
    ("ca-edf:cache=1GiB", cache_aware_soft, false),
];
