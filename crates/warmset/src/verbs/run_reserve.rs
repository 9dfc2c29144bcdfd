//! What `warmset run` reserves: assignments and quanta with room for what a boundary costs on this machine.
//!
//! The same accounting as that of `warmset check` with a profile (002 §6.1), with one overhead: what the engine loses where one
//! job makes way for another, as measured just before ([`execute::boundary`]).

use super::scheduling::Scheduling;
use analyze::overheads::{CacheDelays, Overheads, System, edf_wm, nps_f, quanta};
use analyze::{Guarantee, semi};
use execute::boundary::Boundary;
use execute::preflight::Finding;
use model::{Assignment, ClusterSpec, CpuId, CpuSet, Platform, Result, TaskSet, Timing};
use policy::registry::Needs;
use std::path::Path;

/// What is run.
pub struct Reserved {
    /// The tasks with what their policy has to reserve for them.
    pub set: TaskSet,
    /// Who runs where.
    pub assignment: Option<Assignment>,
    /// What was done, where boundaries matter.
    pub finding: Option<Finding>,
}

/// Does it matter to a policy what a boundary costs?
///
/// # Errors
/// Parameters of the policy that make no sense.
pub fn has_boundaries(how: &Scheduling) -> Result<bool> {
    let needs = (how.policy().info().needs)(how.policy())?;
    let split = matches!(needs, Needs::Slices | Needs::Slots { .. });
    Ok(split || how.policy().quantum(how.quantum)?.is_some())
}

/// Reserves for a set of the file `path`.
///
/// # Errors
/// No assignment, with boundaries or without.
pub fn reserve(
    how: &Scheduling,
    set: &TaskSet,
    platform: &Platform,
    path: &Path,
    boundary: Option<&Boundary>,
) -> Result<Reserved> {
    let plain = || -> Result<Reserved> {
        Ok(Reserved {
            set: set.clone(),
            assignment: how.assignment(set, platform, path)?,
            finding: None,
        })
    };
    let Some(boundary) = boundary else { return plain() };
    let name = "boundaries";
    let cost = format!(
        "a change of jobs at the end of a slot, slice or quantum costs {} at the median and {} at 99 %",
        boundary.median.rounded(),
        boundary.p99.rounded()
    );
    let reserved = match how.is_given() {
        true => None,
        false => with(how, set, platform, boundary)?,
    };
    Ok(match reserved {
        Some((set, assignment)) => Reserved {
            set,
            assignment,
            finding: Some(Finding::fine(
                name,
                format!("{cost}; what is reserved has room for it"),
            )),
        },
        None => Reserved {
            finding: Some(Finding::warn(
                name,
                format!("{cost}; what is reserved has no room for it: deadlines may be missed"),
                "give longer periods or quanta, fewer tasks, or another policy",
            )),
            ..plain()?
        },
    })
}

/// The set and its assignment with room for what boundaries cost; `None`: they do not fit with it.
fn with(
    how: &Scheduling,
    set: &TaskSet,
    platform: &Platform,
    boundary: &Boundary,
) -> Result<Option<(TaskSet, Option<Assignment>)>> {
    let timings = set.timings();
    let overheads = Overheads {
        context_switch: boundary.p99,
        ..Overheads::NONE
    };
    let delays = CacheDelays::none(set.len());
    let system = System {
        platform,
        overheads: &overheads,
        delays: &delays,
        // What was measured is all that a boundary costs, whatever the kernel was in the midst of.
        guarantee: Guarantee::Soft,
    };
    let cpus = platform.in_cache_order();
    let split = |assignment: Assignment| Some((set.clone(), Some(assignment)));
    Ok(match (how.policy().info().needs)(how.policy())? {
        Needs::Slices => {
            let settings = semi::edf_wm::Settings {
                fit: how.fit,
                ..semi::edf_wm::Settings::default()
            };
            let slices = edf_wm::assign(timings, &cpus, &settings, &system).ok();
            slices.and_then(|s| split(Assignment::Slices(s)))
        }
        Needs::Slots { delta, clusters } => {
            let clusters = platform.clusters(clusters.unwrap_or(ClusterSpec::Global))?;
            let of = |cluster: &CpuSet| cpus.iter().copied().filter(|c| cluster.contains(*c)).collect();
            let clusters: Vec<Vec<CpuId>> = clusters.iter().map(of).collect();
            let settings = semi::nps_f::Settings {
                delta,
                ..semi::nps_f::Settings::default()
            };
            let slots = nps_f::assign(timings, &clusters, &settings, &system).ok();
            slots.and_then(|s| split(Assignment::Slots(s)))
        }
        _ => match how.policy().quantum(how.quantum)? {
            Some(quantum) => {
                let usable = cpus.iter().copied().collect::<CpuSet>();
                let inflated = quanta::account(timings, &usable, quantum, &system).inflated;
                in_quanta(set, &inflated, quantum, &cpus)
                    .map(|set| -> Result<_> {
                        let assignment = how.assignment(&set, platform, Path::new("tasks"))?;
                        Ok((set, assignment))
                    })
                    .transpose()?
            }
            None => None,
        },
    })
}

/// The set with these WCETs in whole quanta, if that fits on the processors.
fn in_quanta(
    set: &TaskSet,
    inflated: &[Timing],
    quantum: model::Duration,
    cpus: &[CpuId],
) -> Option<TaskSet> {
    let q = quantum.nanos().max(1);
    let mut tasks = Vec::with_capacity(set.len());
    for (id, timing) in set.ids().zip(inflated) {
        let wcet = timing.wcet.nanos().div_ceil(q).checked_mul(q)?;
        if wcet > timing.period.nanos().min(timing.deadline.nanos()) {
            return None;
        }
        let timing = Timing {
            wcet: model::Duration::from_nanos(wcet),
            ..*timing
        };
        let details = set.details(id).cloned();
        tasks.push((
            timing,
            details.unwrap_or_else(|| model::Details::named(set.name(id))),
        ));
    }
    let reserved = TaskSet::new(tasks).ok()?;
    let whole = model::Ratio::whole(cpus.len() as u64);
    reserved.cmp_utilization(whole).is_le().then_some(reserved)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Duration;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn how(policy: &str) -> Scheduling {
        Scheduling::of(policy.parse().unwrap())
    }

    fn boundary(us: u64) -> Boundary {
        Boundary {
            median: Duration::from_micros(us / 2),
            p99: Duration::from_micros(us),
            longest: Duration::from_micros(2 * us),
            count: 100,
        }
    }

    fn set(tasks: &[(u64, u64)]) -> TaskSet {
        let timings = tasks.iter().map(|(e, p)| Timing::implicit(ms(*e), ms(*p)));
        TaskSet::from_timings(timings.collect()).unwrap()
    }

    #[test]
    fn a_turn_of_a_server_is_longer_by_what_its_beginning_costs() {
        let (set, platform) = (set(&[(3, 10), (3, 10), (6, 20)]), Platform::symmetric(2));
        let reserved = |us: u64| {
            let b = boundary(us);
            let r = reserve(&how("nps-f"), &set, &platform, Path::new("t"), Some(&b)).unwrap();
            let Some(Assignment::Slots(slots)) = r.assignment else {
                panic!("no slots")
            };
            let turns = slots.timetables.iter().flat_map(|t| &t.turns);
            turns.map(|t| t.end.nanos() - t.start.nanos()).sum::<u64>()
        };
        assert!(reserved(50) > reserved(0), "{} {}", reserved(50), reserved(0));
    }

    #[test]
    fn quanta_are_as_many_as_their_usable_part_asks_for() {
        let platform = Platform::symmetric(2);
        let wcets = |tasks: &[(u64, u64)], us: u64| {
            let b = boundary(us);
            let r = reserve(&how("pd2"), &set(tasks), &platform, Path::new("t"), Some(&b)).unwrap();
            let level = r.finding.map(|f| f.level);
            let wcets: Vec<Duration> = r.set.timings().iter().map(|t| t.wcet).collect();
            (wcets, level.unwrap() == execute::preflight::Level::Fine)
        };
        // Of every millisecond 0.9 are left: 10 ms need 12 of them, 1 ms needs 2.
        assert_eq!(wcets(&[(10, 20), (1, 10)], 100), (vec![ms(12), ms(2)], true));
        // Where that does not fit, nothing is changed, and it is said.
        assert_eq!(wcets(&[(19, 20), (19, 20)], 100), (vec![ms(19), ms(19)], false));
    }
}
