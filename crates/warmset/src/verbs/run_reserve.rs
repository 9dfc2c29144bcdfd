//! What `warmset run` reserves: assignments and quanta with room for what a boundary costs on this machine.
//!
//! The same accounting as that of `warmset check` with a profile (002 §6.1), with one overhead: what the engine loses where one
//! job makes way for another, as measured just before ([`execute::boundary`]).
//!
//! Where policies take turns, each has an assignment of its own. WCETs in whole quanta belong to the set, and a trace has one
//! set: it has for each task the longest WCET that one of the policies with quanta asks for, if each of them holds all of these in
//! its own quanta. The others are assigned the set as it was given: while they schedule, they look at no WCET.

use super::scheduling::{Scheduling, assignment_for};
use analyze::overheads::{CacheDelays, Overheads, System, edf_wm, nps_f, quanta};
use analyze::{Guarantee, semi};
use execute::boundary::Boundary;
use execute::preflight::{self, Finding};
use machine::Machine;
use model::{
    Assignment, ClusterSpec, CpuId, CpuSet, Details, Duration, Error, Platform, Ratio, Result, TaskSet,
    Timing,
};
use policy::Spec;
use policy::registry::Needs;
use std::path::Path;
use trace::Stage;

/// What is run.
pub struct Reserved {
    /// The tasks with what the policies have to reserve for them.
    pub set: TaskSet,
    /// The policies in turn, each with who runs where.
    pub stages: Vec<Stage>,
    /// What was done, for each policy to which boundaries matter.
    pub findings: Vec<Finding>,
}

/// What the findings about boundaries are called.
const NAME: &str = "boundaries";

/// Measures what a boundary costs on this machine, if that matters to one of the policies; says why where it cannot be.
///
/// # Errors
/// Parameters of a policy that make no sense.
pub fn measure(how: &Scheduling, machine: &Machine) -> Result<(Option<Boundary>, Option<Finding>)> {
    // Without the right to it the preflight refuses the run, and tells why.
    if !any_has_boundaries(how)? || preflight::lacks_rights(machine) {
        return Ok((None, None));
    }
    Ok(match execute::boundary::measure(&machine.platform) {
        Ok(boundary) => (Some(boundary), None),
        Err(why) => (None, Some(unmeasured(&why))),
    })
}

/// What is said where it could not be measured.
fn unmeasured(why: &Error) -> Finding {
    let place = match why.place() {
        "" => String::new(),
        place => format!("{place}: "),
    };
    let remedy = match why.advice() {
        "" => "try again when the machine has less to do",
        advice => advice,
    };
    Finding::warn(
        NAME,
        format!(
            "what a change of jobs at the end of a slot, slice or quantum costs could not be measured \
             ({place}{}): nothing is reserved for it, and deadlines may be missed",
            why.cause()
        ),
        remedy,
    )
}

/// Does it matter to one of the policies what a boundary costs?
fn any_has_boundaries(how: &Scheduling) -> Result<bool> {
    for policy in how.all() {
        if has_boundaries(how, policy)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Does it matter to a policy what a boundary costs?
fn has_boundaries(how: &Scheduling, policy: &Spec) -> Result<bool> {
    let needs = (policy.info().needs)(policy)?;
    let split = matches!(needs, Needs::Slices | Needs::Slots { .. });
    Ok(split || policy.quantum(how.quantum)?.is_some())
}

/// What a policy has where there is room for what boundaries cost.
struct Room {
    /// The tasks with WCETs in whole quanta, where it decides at quanta only.
    set: Option<TaskSet>,
    assignment: Option<Assignment>,
}

/// Reserves for a set of the file `path`, for each policy.
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
    let mut rooms = Vec::new();
    for (place, policy) in how.all().enumerate() {
        // A file says who runs where under the first one.
        let is_given = place == 0 && how.is_given();
        rooms.push(match boundary {
            Some(boundary) if !is_given => room(how, policy, set, platform, boundary)?,
            _ => None,
        });
    }
    let shared = shared(how, set, &rooms, &platform.in_cache_order())?;
    let (mut stages, mut findings) = (Vec::new(), Vec::new());
    for (place, (policy, room)) in how.all().zip(rooms).enumerate() {
        let alone = room.is_some();
        let room = room.filter(|r| r.set.is_none() || shared.is_some());
        if let Some(boundary) = boundary
            && has_boundaries(how, policy)?
        {
            let under = match how.then() {
                [] => String::new(),
                _ => format!(" under `{policy}`"),
            };
            findings.push(finding(boundary, &under, alone, room.is_some()));
        }
        let assignment = match room {
            Some(room) => room.assignment,
            None if place == 0 => how.assignment(set, platform, path)?,
            None => how.assignment_under(policy, set, platform, path)?,
        };
        stages.push(how.stage(policy, assignment)?);
    }
    Ok(Reserved {
        set: shared.unwrap_or_else(|| set.clone()),
        stages,
        findings,
    })
}

/// What is said of a policy: is there room for boundaries if it rules alone, and is there in this run?
fn finding(boundary: &Boundary, under: &str, alone: bool, reserved: bool) -> Finding {
    let cost = format!(
        "a change of jobs at the end of a slot, slice or quantum costs {} at the median and {} at 99 %",
        boundary.median.rounded(),
        boundary.p99.rounded()
    );
    match (reserved, alone) {
        (true, _) => Finding::fine(NAME, format!("{cost}; what is reserved{under} has room for it")),
        (false, true) => Finding::warn(
            NAME,
            format!(
                "{cost}; what is reserved{under} has no room for it, as policies with quanta share their WCETs, \
                 and not all of them have: deadlines may be missed"
            ),
            "give these policies one quantum that is long enough, or each a run of its own",
        ),
        (false, false) => Finding::warn(
            NAME,
            format!("{cost}; what is reserved{under} has no room for it: deadlines may be missed"),
            "give longer periods or quanta, fewer tasks, or another policy",
        ),
    }
}

/// What a policy has with room for what boundaries cost; `None`: they do not fit with it, or do not matter.
fn room(
    how: &Scheduling,
    policy: &Spec,
    set: &TaskSet,
    platform: &Platform,
    boundary: &Boundary,
) -> Result<Option<Room>> {
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
    let split = |assignment: Assignment| Room {
        set: None,
        assignment: Some(assignment),
    };
    Ok(match (policy.info().needs)(policy)? {
        Needs::Slices => {
            let settings = semi::edf_wm::Settings {
                fit: how.fit,
                ..semi::edf_wm::Settings::default()
            };
            let slices = edf_wm::assign(timings, &cpus, &settings, &system).ok();
            slices.map(|s| split(Assignment::Slices(s)))
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
            slots.map(|s| split(Assignment::Slots(s)))
        }
        _ => {
            let Some(quantum) = policy.quantum(how.quantum)? else {
                return Ok(None);
            };
            let usable = cpus.iter().copied().collect::<CpuSet>();
            let inflated = quanta::account(timings, &usable, quantum, &system).inflated;
            let Some(set) = in_quanta(set, &inflated, quantum, &cpus) else {
                return Ok(None);
            };
            let assignment = assignment_for(policy, &set, platform, how.fit)?.ok();
            assignment.map(|assignment| Room {
                set: Some(set),
                assignment,
            })
        }
    })
}

/// The set that every policy is given: for each task the longest WCET that one with quanta asks for. `None`: not each of these
/// policies has room, or holds that.
fn shared(
    how: &Scheduling,
    set: &TaskSet,
    rooms: &[Option<Room>],
    cpus: &[CpuId],
) -> Result<Option<TaskSet>> {
    let mut longest = set.timings().to_vec();
    let mut quanta = Vec::new();
    for (policy, room) in how.all().zip(rooms) {
        let Some(quantum) = policy.quantum(how.quantum)? else {
            continue;
        };
        let Some(own) = room.as_ref().and_then(|r| r.set.as_ref()) else {
            return Ok(None);
        };
        for (timing, own) in longest.iter_mut().zip(own.timings()) {
            timing.wcet = timing.wcet.max(own.wcet);
        }
        quanta.push(quantum);
    }
    let holds = |quantum: &Duration| in_quanta(set, &longest, *quantum, cpus).is_some();
    Ok(match quanta.iter().all(holds) {
        true => with_timings(set, &longest),
        false => None,
    })
}

/// The set with these WCETs in whole quanta, if that fits on the processors.
fn in_quanta(set: &TaskSet, wcets: &[Timing], quantum: Duration, cpus: &[CpuId]) -> Option<TaskSet> {
    let q = quantum.nanos().max(1);
    let mut timings = Vec::with_capacity(set.len());
    for timing in wcets {
        let wcet = timing.wcet.nanos().div_ceil(q).checked_mul(q)?;
        if wcet > timing.period.nanos().min(timing.deadline.nanos()) {
            return None;
        }
        timings.push(Timing {
            wcet: Duration::from_nanos(wcet),
            ..*timing
        });
    }
    let reserved = with_timings(set, &timings)?;
    let whole = Ratio::whole(cpus.len() as u64);
    reserved.cmp_utilization(whole).is_le().then_some(reserved)
}

/// The set with these timings, and all else as it was.
fn with_timings(set: &TaskSet, timings: &[Timing]) -> Option<TaskSet> {
    let details = |id| {
        let known = set.details(id).cloned();
        known.unwrap_or_else(|| Details::named(set.name(id)))
    };
    let tasks = timings.iter().copied().zip(set.ids().map(details));
    let reserved = TaskSet::new(tasks.collect()).ok()?;
    reserved.with_best_effort(set.best_effort().to_vec()).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use execute::preflight::Level;

    fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
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

    /// For tasks of so many milliseconds, on so many processors, where a boundary costs so many microseconds.
    fn reserved(policies: &str, tasks: &[(u64, u64)], m: u32, us: u64) -> Reserved {
        let (how, platform) = (Scheduling::of(policies), Platform::symmetric(m));
        reserve(&how, &set(tasks), &platform, Path::new("t"), Some(&boundary(us))).unwrap()
    }

    fn wcets(reserved: &Reserved) -> Vec<Duration> {
        reserved.set.timings().iter().map(|t| t.wcet).collect()
    }

    /// Is there room, by policy to which boundaries matter?
    fn is_fine(reserved: &Reserved) -> Vec<bool> {
        let findings = reserved.findings.iter();
        findings.map(|f| f.level == Level::Fine).collect()
    }

    #[test]
    fn a_turn_of_a_server_is_longer_by_what_its_beginning_costs() {
        let length = |us: u64| {
            let r = reserved("nps-f", &[(3, 10), (3, 10), (6, 20)], 2, us);
            let Some(Assignment::Slots(slots)) = &r.stages[0].assignment else {
                panic!("no slots")
            };
            let turns = slots.timetables.iter().flat_map(|t| &t.turns);
            turns.map(|t| t.end.nanos() - t.start.nanos()).sum::<u64>()
        };
        assert!(length(50) > length(0), "{} {}", length(50), length(0));
    }

    #[test]
    fn quanta_are_as_many_as_their_usable_part_asks_for() {
        // Of every millisecond 0.9 are left: 10 ms need 12 of them, 1 ms needs 2.
        let r = reserved("pd2", &[(10, 20), (1, 10)], 2, 100);
        assert_eq!((wcets(&r), is_fine(&r)), (vec![ms(12), ms(2)], vec![true]));
        // Where that does not fit, nothing is changed, and it is said.
        let r = reserved("pd2", &[(19, 20), (19, 20)], 2, 100);
        assert_eq!((wcets(&r), is_fine(&r)), (vec![ms(19), ms(19)], vec![false]));
    }

    #[test]
    fn boundaries_matter_if_they_do_to_one_of_the_policies() {
        for (policies, matter) in [
            ("g-edf", false),
            ("g-edf,p-edf", false),
            ("g-edf,nps-f", true),
            ("edf-wm,g-edf", true),
            ("p-edf,g-edf:quantum=2ms", true),
            ("p-edf,pd2", true),
        ] {
            let found = any_has_boundaries(&Scheduling::of(policies)).unwrap();
            assert_eq!(found, matter, "{policies}");
        }
    }

    #[test]
    fn policies_that_take_over_have_room_as_well() {
        let tasks = [(3, 10), (3, 10), (6, 20)];
        let (alone, later) = (
            reserved("nps-f", &tasks, 2, 50),
            reserved("g-edf,nps-f", &tasks, 2, 50),
        );
        assert_eq!(later.stages.len(), 2);
        assert_eq!(later.stages[0].assignment, None);
        assert_eq!(later.stages[1], alone.stages[0]);
        assert_eq!(is_fine(&later), [true]);
        let told = &later.findings[0].seen;
        assert!(
            told.ends_with("what is reserved under `nps-f` has room for it"),
            "{told}"
        );
        // WCETs are as they were.
        assert_eq!(wcets(&later), [ms(3), ms(3), ms(6)]);
    }

    #[test]
    fn only_policies_with_quanta_ask_for_longer_wcets() {
        // 10 ms are 12 quanta of a millisecond: a processor has no room for two of that, but for two of 10 ms.
        let tasks = [(10, 20); 3];
        let r = reserved("p-edf,pd2", &tasks, 2, 100);
        assert_eq!((wcets(&r), is_fine(&r)), (vec![ms(12); 3], vec![true]));
        assert!(matches!(r.stages[0].assignment, Some(Assignment::Clustered(_))));
        // Where P-EDF has quanta, too, it has no room, and PD² shares its WCETs.
        let r = reserved("pd2,p-edf:quantum=1ms", &tasks, 2, 100);
        assert_eq!((wcets(&r), is_fine(&r)), (vec![ms(10); 3], vec![false, false]));
        assert!(matches!(r.stages[1].assignment, Some(Assignment::Clustered(_))));
        let told = &r.findings[0];
        assert!(told.seen.contains("under `pd2`"), "{told:?}");
        assert!(told.remedy.contains("a run of its own"), "{told:?}");
    }

    #[test]
    fn policies_with_quanta_share_the_longest_wcets() {
        // In quanta of 5 ms: 10 ms need three, 1 ms needs one.
        let r = reserved("pd2,pd2:quantum=5ms", &[(10, 20), (1, 10)], 2, 100);
        assert_eq!(wcets(&r), [ms(15), ms(5)]);
        assert_eq!(is_fine(&r), [true, true]);
        // 2 of 6 and 6 of 12 in quanta of 2 ms, 3 of 6 and 6 of 12 in those of 3 ms. Of 2 ms, 3 ms take two: too much.
        let tasks = [(1, 6), (5, 12)];
        for (policies, first) in [("pd2:quantum=2ms", 2), ("pd2:quantum=3ms", 3)] {
            let r = reserved(policies, &tasks, 1, 100);
            assert_eq!((wcets(&r), is_fine(&r)), (vec![ms(first), ms(6)], vec![true]));
        }
        let r = reserved("pd2:quantum=2ms,pd2:quantum=3ms", &tasks, 1, 100);
        assert_eq!(wcets(&r), [ms(1), ms(5)]);
        assert_eq!(is_fine(&r), [false, false]);
    }

    #[test]
    fn what_cannot_be_measured_is_told_with_its_cause() {
        let why = Error::new("no change of jobs was seen").remedy("do less");
        let told = unmeasured(&why);
        assert_eq!((told.level, told.name), (Level::Warn, "boundaries"));
        assert!(told.seen.contains("(no change of jobs was seen)"), "{told:?}");
        assert_eq!(told.remedy, "do less");
        let told = unmeasured(&Error::new("it ended").at("watchdog"));
        assert!(told.seen.contains("(watchdog: it ended)"), "{told:?}");
        assert!(!told.remedy.is_empty());
    }
}
