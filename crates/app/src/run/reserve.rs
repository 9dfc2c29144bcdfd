//! What a real run reserves: assignments and quanta with room for what a boundary costs on this
//! machine.
//!
//! The same accounting as that of `check` with a profile (002 §6.1). What boundaries cost, a
//! profile of this machine says ([`Known::Profile`]), or it is measured just before the run
//! ([`execute::boundary`]): what the engine loses where one job makes way for another, as one
//! overhead.
//!
//! Where policies take turns, each has an assignment of its own. What is reserved in quanta stands
//! in the assignment ([`model::assignment::Quanta`]); the tasks stay as they were given. What a
//! file assigns is taken as it is.

use super::known::Known;
use crate::scheduling::Scheduling;
use analyze::assign::{self, How};
use analyze::overheads::{self, System};
use execute::preflight::Finding;
use model::{Assignment, Details, Platform, Ratio, Result, TaskSet, Timing, exact};
use policy::Spec;
use policy::catalog::Needs;
use trace::Stage;

/// What is run.
pub struct Reserved {
    /// The policies in turn, each with who runs where.
    pub stages: Vec<Stage>,
    /// What was done, for each policy to which boundaries matter.
    pub findings: Vec<Finding>,
}

/// What the findings about boundaries are called.
pub(super) const NAME: &str = "boundaries";

/// Does it matter to one of the policies what a boundary costs?
pub(super) fn any_has_boundaries(how: &Scheduling) -> Result<bool> {
    for policy in how.all() {
        if has_boundaries(how, policy)? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Does it matter to a policy what a boundary costs?
pub(super) fn has_boundaries(how: &Scheduling, policy: &Spec) -> Result<bool> {
    let needs = policy.needs()?;
    let split = matches!(needs, Needs::Slices { .. } | Needs::Slots { .. });
    Ok(split || policy.quantum(how.quantum)?.is_some())
}

/// Reserves for a set that errors call `name`, for each policy.
///
/// # Errors
/// No assignment, with boundaries or without.
pub fn reserve(
    how: &Scheduling,
    set: &TaskSet,
    platform: &Platform,
    name: &str,
    known: &Known,
) -> Result<Reserved> {
    let (mut stages, mut findings) = (Vec::new(), Vec::new());
    for (place, policy) in how.all().enumerate() {
        let given = how.given(place, policy, set)?;
        let room = match given {
            Some(_) => None,
            None => room(how, policy, set, platform, known)?,
        };
        if let (Some(cost), true) = (known.told(policy, set.len()), has_boundaries(how, policy)?) {
            let under = match how.then() {
                [] => String::new(),
                _ => format!(" under `{policy}`"),
            };
            let has_room = match &given {
                Some(given) => has_room(given, policy, set, platform, known),
                None => room.is_some(),
            };
            findings.push(finding(&cost, &under, has_room));
        }
        let assignment = match (given, room) {
            (Some(given), _) => Some(given),
            (None, Some(assignment)) => assignment,
            (None, None) => how.assignment(place, policy, set, platform, name)?,
        };
        stages.push(how.stage(policy, assignment)?);
    }
    Ok(Reserved { stages, findings })
}

/// Has an assignment that a file gives room for what boundaries cost here?
fn has_room(
    given: &Assignment,
    policy: &Spec,
    set: &TaskSet,
    platform: &Platform,
    known: &Known,
) -> bool {
    match given {
        // They say nothing of budgets.
        Assignment::Clustered(_) | Assignment::Turns(_) => false,
        Assignment::Slices(_) | Assignment::Slots(_) | Assignment::Quanta(_) => known
            .costs(policy, set.len())
            .iter()
            .any(|costs| overheads::holds(set.timings(), given, &costs.system(platform))),
    }
}

/// What is said of a policy, `cost` being what a change costs: is there room for boundaries in what
/// is reserved?
fn finding(cost: &str, under: &str, reserved: bool) -> Finding {
    let cost = format!("a change of jobs at the end of a slot, slice or quantum costs {cost}");
    match reserved {
        true => Finding::fine(
            NAME,
            format!("{cost}; what is reserved{under} has room for it"),
        ),
        false => Finding::warn(
            NAME,
            format!("{cost}; what is reserved{under} has no room for it: deadlines may be missed"),
            "give longer periods or quanta, fewer tasks, or another policy",
        ),
    }
}

/// The assignment with room for what boundaries cost, which global policies do not need; `None`:
/// there is no room, or boundaries do not matter.
fn room(
    how: &Scheduling,
    policy: &Spec,
    set: &TaskSet,
    platform: &Platform,
    known: &Known,
) -> Result<Option<Option<Assignment>>> {
    for costs in known.costs(policy, set.len()) {
        let found = room_for(how, policy, set, platform, &costs.system(platform))?;
        if found.is_some() {
            return Ok(found);
        }
    }
    Ok(None)
}

fn room_for(
    how: &Scheduling,
    policy: &Spec,
    set: &TaskSet,
    platform: &Platform,
    system: &System<'_>,
) -> Result<Option<Option<Assignment>>> {
    let timings = set.timings();
    let how_assigned = How {
        fit: how.fit,
        ..How::default()
    };
    if matches!(policy.needs()?, Needs::Slices { .. } | Needs::Slots { .. }) {
        let made = assign::assign_with(policy, set, platform, &how_assigned, system)?;
        return Ok(made.ok());
    }
    let Some(quantum) = policy.quantum(how.quantum)? else {
        return Ok(None);
    };
    let usable = platform.usable();
    let (quanta, _) = assign::in_quanta(timings, &usable, quantum, system);
    let with = |(t, wcet): (&Timing, &_)| Timing { wcet: *wcet, ..*t };
    let reserved: Vec<Timing> = timings.iter().zip(&quanta.reserved).map(with).collect();
    if !fits(&reserved, usable.len()) {
        return Ok(None);
    }
    if policy.info().quantum_driven {
        // It takes what is reserved, and no assignment besides.
        return Ok(Some(Some(Assignment::Quanta(quanta))));
    }
    // The others look at no WCET while they schedule: only their assignment has to have room.
    match with_timings(set, &reserved) {
        Some(set) => Ok(assign::assign(policy, &set, platform, &how_assigned)?.ok()),
        None => Ok(None),
    }
}

/// Is every reservation within period and deadline, and all of them within so many processors?
fn fits(reserved: &[Timing], processors: usize) -> bool {
    let utilizations = reserved.iter().map(Timing::utilization);
    reserved.iter().all(|t| t.wcet <= t.period.min(t.deadline))
        && exact::cmp_sum(utilizations, Ratio::whole(processors as u64)).is_le()
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
    use execute::boundary::Boundary;
    use execute::preflight::Level;
    use model::Duration;
    use testing::sets::set_ms as set;
    use testing::times::ms;

    fn boundary(us: u64) -> Known {
        Known::Measured(Boundary {
            median: Duration::from_micros(us / 2),
            p99: Duration::from_micros(us),
            longest: Duration::from_micros(2 * us),
            count: 100,
        })
    }

    /// For tasks of so many milliseconds, on so many processors, where a boundary costs so many
    /// microseconds.
    fn reserved(policies: &str, tasks: &[(u64, u64)], m: u32, us: u64) -> Reserved {
        let (how, platform) = (Scheduling::of(policies).unwrap(), Platform::symmetric(m));
        reserve(&how, &set(tasks), &platform, "t", &boundary(us)).unwrap()
    }

    /// What is reserved for each task under the policy at this place.
    fn quanta(reserved: &Reserved, place: usize) -> Vec<Duration> {
        match &reserved.stages[place].assignment {
            Some(Assignment::Quanta(quanta)) => quanta.reserved.clone(),
            _ => Vec::new(),
        }
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
        assert_eq!(
            (quanta(&r, 0), is_fine(&r)),
            (vec![ms(12), ms(2)], vec![true])
        );
        // Where that does not fit, nothing is changed, and it is said.
        let r = reserved("pd2", &[(19, 20), (19, 20)], 2, 100);
        assert_eq!((quanta(&r, 0), is_fine(&r)), (vec![], vec![false]));
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
            let found = any_has_boundaries(&Scheduling::of(policies).unwrap()).unwrap();
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
    }

    #[test]
    fn each_policy_has_quanta_of_its_own() {
        // 10 ms are 12 quanta of a millisecond: a processor has no room for two of that, but for
        // two of 10 ms.
        let tasks = [(10, 20); 3];
        let r = reserved("p-edf,pd2", &tasks, 2, 100);
        assert!(matches!(
            r.stages[0].assignment,
            Some(Assignment::Clustered(_))
        ));
        assert_eq!((quanta(&r, 1), is_fine(&r)), (vec![ms(12); 3], vec![true]));
        // Where P-EDF has quanta, too, it has no room; PD² keeps its own.
        let r = reserved("pd2,p-edf:quantum=1ms", &tasks, 2, 100);
        assert_eq!(
            (quanta(&r, 0), is_fine(&r)),
            (vec![ms(12); 3], vec![true, false])
        );
        assert!(matches!(
            r.stages[1].assignment,
            Some(Assignment::Clustered(_))
        ));
        // In quanta of 5 ms: 10 ms need three, 1 ms needs one.
        let r = reserved("pd2,pd2:quantum=5ms", &[(10, 20), (1, 10)], 2, 100);
        assert_eq!(quanta(&r, 0), [ms(12), ms(2)]);
        assert_eq!(quanta(&r, 1), [ms(15), ms(5)]);
        assert_eq!(is_fine(&r), [true, true]);
    }

    /// The quanta of a file are kept; the run says whether they have room for what a boundary costs
    /// here.
    #[test]
    fn what_a_file_reserves_is_kept_and_looked_at() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("who.json");
        std::fs::write(
            &file,
            r#"{"kind": "quanta", "cpus": "0-1", "quantum_ns": 1000000, "reserved_ns": [12000000, 2000000]}"#,
        )
        .unwrap();
        let mut how = Scheduling::of("pd2").unwrap();
        how.assignment = Some(file);
        let platform = Platform::symmetric(2);
        for (us, has_room) in [(100, true), (300, false)] {
            let set = set(&[(10, 20), (1, 10)]);
            let r = reserve(&how, &set, &platform, "t", &boundary(us)).unwrap();
            assert_eq!(quanta(&r, 0), [ms(12), ms(2)]);
            assert_eq!(is_fine(&r), [has_room]);
        }
    }
}
