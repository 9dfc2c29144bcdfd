//! What a real run knows of the engine's own costs: the profile of this machine says them, or what
//! a boundary costs is measured right before the run, and constants stand for the rest.
//!
//! A profile says them where its overheads are of engine and kernel together (002 §5.1). What a
//! profile has of the engine alone is less than what jobs lose, and is not taken.

use super::reserve::{NAME, any_has_boundaries, has_boundaries};
use crate::scheduling::Scheduling;
use analyze::Guarantee;
use analyze::overheads::{Overheads, System};
use execute::boundary::Boundary;
use execute::preflight::{self, Finding, Lost, Takes};
use machine::Machine;
use model::{Duration, Error, OverheadKind, Platform, Profile, Result, Statistic, TaskSet};
use policy::Spec;

/// What the finding is called that says where all reserves come from.
pub const RESERVES: &str = "reserves";
/// What a change of jobs consists of.
const OF_A_CHANGE: [OverheadKind; 3] = [
    OverheadKind::Release,
    OverheadKind::Scheduling,
    OverheadKind::ContextSwitch,
];

/// What is known of the engine's own costs.
#[derive(Clone, Debug)]
pub enum Known {
    /// Nothing: no boundary matters, or its cost could not be measured.
    Nothing,
    /// What a boundary costs, measured right before the run.
    Measured(Boundary),
    /// All of it.
    Profile(Box<Profile>),
}

/// What is charged for boundaries, and how it is counted.
pub struct Costs {
    overheads: Overheads,
    guarantee: Guarantee,
}

impl Costs {
    /// What accounting has to know.
    pub fn system<'a>(&'a self, platform: &'a Platform) -> System<'a> {
        System {
            overheads: &self.overheads,
            guarantee: self.guarantee,
            ..System::free(platform)
        }
    }
}

/// What is known, and what is said of that.
pub struct Found {
    /// What is known.
    pub known: Known,
    /// Where it comes from; why it is not known.
    pub findings: Vec<Finding>,
}

/// Reads the costs from a profile of this machine, where there is one that has them; else measures
/// what a boundary costs, where that matters to one of the policies.
///
/// # Errors
/// Parameters of a policy that make no sense; a profile of another machine.
pub fn find(
    how: &Scheduling,
    set: &TaskSet,
    machine: &Machine,
    profile: Option<&Profile>,
) -> Result<Found> {
    let lacking = match profile {
        None => "no profile of this machine is in use".to_owned(),
        Some(profile) => {
            ::measure::keep::fits(profile, &machine.platform).map_err(|e| e.at("--profile"))?;
            match lacking(how, set, profile) {
                None => return Ok(of_profile(profile)),
                Some(why) => why,
            }
        }
    };
    // Without the right to it the preflight refuses the run, and tells why.
    let matters = any_has_boundaries(how)? && !preflight::lacks_rights(machine);
    let (known, unmeasured) = match matters.then(|| execute::boundary::measure(&machine.platform)) {
        None => (Known::Nothing, None),
        Some(Ok(boundary)) => (Known::Measured(boundary), None),
        Some(Err(why)) => (Known::Nothing, Some(unmeasured(&why))),
    };
    let measured = match known {
        Known::Measured(_) => "; what a change of jobs costs was measured right before the run",
        _ => "",
    };
    let source = Finding::fine(
        RESERVES,
        format!("{lacking}: 1 % of each processor is kept for dispatchers{measured}"),
    );
    let findings = std::iter::once(source).chain(unmeasured).collect();
    Ok(Found { known, findings })
}

/// Why the profile does not say what is asked of it, as a clause; `None`: it does.
fn lacking(how: &Scheduling, set: &TaskSet, profile: &Profile) -> Option<String> {
    how.all().find_map(|policy| {
        let (_, gaps) = read(profile, policy, set.len(), Statistic::Maximum);
        if OF_A_CHANGE.iter().any(|kind| gaps.missing.contains(kind)) {
            return Some(format!(
                "the profile has no overheads of `{policy}` (`warmset measure overheads` finds them)"
            ));
        }
        let own = OF_A_CHANGE.iter().any(|kind| gaps.own_only.contains(kind));
        own.then(|| {
            "the overheads of the profile are the engine's own part alone, which is not all that \
             jobs lose"
                .to_owned()
        })
    })
}

fn read(
    profile: &Profile,
    policy: &Spec,
    tasks: usize,
    statistic: Statistic,
) -> (Overheads, analyze::overheads::Gaps) {
    let tasks = u32::try_from(tasks).unwrap_or(u32::MAX);
    Overheads::read(profile, policy.info().name, tasks, statistic)
}

fn of_profile(profile: &Profile) -> Found {
    let when = match profile.provenance.time.as_str() {
        "" => String::new(),
        time => format!(" of {time}"),
    };
    let source = Finding::fine(
        RESERVES,
        format!("what the engine takes itself is read from the profile{when} of this machine"),
    );
    Found {
        known: Known::Profile(Box::new(profile.clone())),
        findings: vec![source],
    }
}

impl Known {
    /// What is charged for boundaries under a policy with so many tasks: what is tried first comes
    /// first.
    ///
    /// A profile is charged as `check` charges hard sets; where that does not fit, as often as 002
    /// §6.1 counts. What was measured right before is all that a boundary costs, whatever the
    /// kernel was in the midst of.
    pub fn costs(&self, policy: &Spec, tasks: usize) -> Vec<Costs> {
        match self {
            Known::Nothing => Vec::new(),
            Known::Measured(boundary) => vec![Costs {
                overheads: Overheads {
                    context_switch: boundary.p99,
                    ..Overheads::NONE
                },
                guarantee: Guarantee::Soft,
            }],
            Known::Profile(profile) => [Guarantee::Hard, Guarantee::Soft]
                .map(|guarantee| Costs {
                    overheads: read(profile, policy, tasks, Statistic::Maximum).0,
                    guarantee,
                })
                .into(),
        }
    }

    /// What a change of jobs costs under a policy, as the end of a sentence; `None`: it is not
    /// known.
    pub fn told(&self, policy: &Spec, tasks: usize) -> Option<String> {
        match self {
            Known::Nothing => None,
            Known::Measured(boundary) => Some(format!(
                "{} at the median and {} at 99 %",
                boundary.median.rounded(),
                boundary.p99.rounded()
            )),
            Known::Profile(profile) => {
                let of = |statistic| change(&read(profile, policy, tasks, statistic).0);
                Some(format!(
                    "{} on average and {} at most but for outliers, as the profile says",
                    of(Statistic::Average).rounded(),
                    of(Statistic::Maximum).rounded()
                ))
            }
        }
    }

    /// What a boundary costs under those of the policies that have some, the largest: below twice
    /// what it usually is nothing can be policed.
    ///
    /// # Errors
    /// Parameters of a policy that make no sense.
    pub fn boundary(&self, how: &Scheduling, tasks: usize) -> Result<Option<Lost>> {
        let profile = match self {
            Known::Nothing => return Ok(None),
            Known::Measured(boundary) => {
                return Ok(Some(Lost {
                    usual: boundary.median,
                    most: boundary.p99,
                }));
            }
            Known::Profile(profile) => profile,
        };
        let mut largest: Option<Lost> = None;
        for policy in how.all() {
            if has_boundaries(how, policy)? {
                let of = |statistic| change(&read(profile, policy, tasks, statistic).0);
                let so_far = largest.unwrap_or(Lost {
                    usual: Duration::ZERO,
                    most: Duration::ZERO,
                });
                largest = Some(Lost {
                    usual: so_far.usual.max(of(Statistic::Average)),
                    most: so_far.most.max(of(Statistic::Maximum)),
                });
            }
        }
        Ok(largest)
    }

    /// What the engine takes under each policy; empty where no profile says it.
    pub fn takes(&self, how: &Scheduling, tasks: usize) -> Vec<Takes> {
        let Known::Profile(profile) = self else {
            return Vec::new();
        };
        let takes = |policy| takes(&read(profile, policy, tasks, Statistic::Average).0);
        how.all().map(takes).collect()
    }
}

/// The turn of another job, which may come from another processor: a decision, a switch, and the
/// interrupt by which that processor is called (002 §6.1).
fn change(overheads: &Overheads) -> Duration {
    let here = overheads
        .scheduling
        .saturating_add(overheads.context_switch);
    here.saturating_add(overheads.ipi_latency)
}

/// A job is released once, chosen and switched to when it comes, and again for the next one when it
/// goes (002 §6.1). The interrupt between processors takes no processor's time.
fn takes(overheads: &Overheads) -> Takes {
    let change = overheads
        .scheduling
        .saturating_add(overheads.context_switch);
    let (tick, period) = (overheads.tick.nanos(), overheads.tick_period.nanos());
    Takes {
        job: overheads
            .release
            .saturating_add(change)
            .saturating_add(change),
        change,
        always: tick as f64 / period.max(1) as f64,
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use execute::preflight::Level;
    use model::profile::{Intervals, OverheadCurve, OverheadPoint};
    use model::{Assignment, Code, Provenance};
    use testing::sets::set_ms;

    /// A profile in which everything that a change consists of costs so many microseconds at most,
    /// and half of it on average.
    fn profile(us: u64, code: Code, kinds: &[OverheadKind]) -> Profile {
        let mut profile = Profile::new("here", Provenance::default());
        profile.tick_period = Some(Duration::from_millis(4));
        profile.overheads = kinds
            .iter()
            .map(|kind| OverheadCurve {
                kind: *kind,
                policy: String::new(),
                code: Some(code),
                points: vec![OverheadPoint {
                    tasks: 4,
                    samples: 100,
                    average: Some(Duration::from_micros(us / 2)),
                    maximum: Some(Duration::from_micros(us)),
                    untrimmed: None,
                    intervals: Intervals::default(),
                }],
            })
            .collect();
        profile
    }

    fn known(us: u64) -> Known {
        Known::Profile(Box::new(profile(us, Code::Both, &OverheadKind::ALL)))
    }

    fn length_of_turns(known: &Known) -> u64 {
        let (how, platform) = (Scheduling::of("nps-f").unwrap(), Platform::symmetric(2));
        let set = set_ms(&[(3, 10), (3, 10), (6, 20)]);
        let reserved = super::super::reserve::reserve(&how, &set, &platform, "t", known).unwrap();
        let Some(Assignment::Slots(slots)) = &reserved.stages[0].assignment else {
            panic!("no slots")
        };
        let turns = slots.timetables.iter().flat_map(|t| &t.turns);
        turns.map(|t| t.end.nanos() - t.start.nanos()).sum()
    }

    #[test]
    fn turns_have_room_for_what_the_profile_says() {
        let lengths = [0, 2, 20].map(|us| length_of_turns(&known(us)));
        assert!(
            lengths.is_sorted() && lengths[0] < lengths[2],
            "{lengths:?}"
        );
    }

    #[test]
    fn what_the_engine_takes_is_what_002_counts() {
        let how = Scheduling::of("p-edf,nps-f").unwrap();
        let takes = known(8).takes(&how, 4);
        let us = Duration::from_micros;
        assert_eq!(takes.len(), 2);
        assert_eq!((takes[0].job, takes[0].change), (us(20), us(8)));
        // A tick of 4 us each 4 ms.
        assert!((takes[0].always - 1e-3).abs() < 1e-12);
        // A decision, a switch and a call of 8 us each at most.
        let lost = Lost {
            usual: us(12),
            most: us(24),
        };
        assert_eq!(known(8).boundary(&how, 4).unwrap(), Some(lost));
        let global = Scheduling::of("g-edf").unwrap();
        assert_eq!(known(8).boundary(&global, 4).unwrap(), None);
        assert!(Known::Nothing.takes(&how, 4).is_empty());
    }

    #[test]
    fn a_profile_that_does_not_say_all_is_told_and_not_taken() {
        let (how, set) = (Scheduling::of("p-edf").unwrap(), set_ms(&[(3, 10)]));
        let of = |code, kinds: &[OverheadKind]| lacking(&how, &set, &profile(8, code, kinds));
        assert_eq!(of(Code::Both, &OverheadKind::ALL), None);
        let alone = of(Code::Own, &OverheadKind::ALL).unwrap();
        assert!(alone.contains("own part alone"), "{alone}");
        let none = of(Code::Both, &OF_A_CHANGE[..2]).unwrap();
        assert!(none.contains("no overheads of `p-edf`"), "{none}");
    }

    #[test]
    fn what_cannot_be_measured_is_told_with_its_cause() {
        let why = Error::new("no change of jobs was seen").remedy("do less");
        let told = unmeasured(&why);
        assert_eq!((told.level, told.name), (Level::Warn, "boundaries"));
        assert!(
            told.seen.contains("(no change of jobs was seen)"),
            "{told:?}"
        );
        assert_eq!(told.remedy, "do less");
        let told = unmeasured(&Error::new("it ended").at("watchdog"));
        assert!(told.seen.contains("(watchdog: it ended)"), "{told:?}");
        assert!(!told.remedy.is_empty());
    }
}
