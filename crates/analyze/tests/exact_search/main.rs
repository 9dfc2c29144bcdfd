//! No yes of a test is disproved by any release pattern on the half grid: exact search over small
//! sets.
//!
//! Times of a set are whole units; releases may fall on half units. What is true is found by
//! [`search`], which shares nothing with the tests. Each set is asked in microseconds and in
//! nanoseconds. The exact tests have to be right both ways, and bounds of response times hold.
//!
//! `make exact` searches a million sets and prints how many of each test's are accepted, of how
//! many that are schedulable. `make test` searches 20,000.

#[path = "../reference/mod.rs"]
mod reference;

mod search;
mod sets;

use analyze::global::{gfp_rta, rta};
use analyze::partition::{self, Acceptance, Fit, Order};
use analyze::tardiness::{compliant_vector, devi_anderson};
use analyze::uniprocessor::fixed_priority::{self, Priority, Response};
use analyze::uniprocessor::{Work, edf, edf_response};
use analyze::{Guarantee, TestInfo, clustered, registry, semi};
use model::{CpuId, Duration, Timing};
use search::{Rule, Search, Task, Truth};
use sets::Set;
use std::collections::BTreeMap;

mod certified;
mod placed;
use placed::{partitioned, quanta, slots, windows};

/// More states are not looked at: such a set is counted as left out.
const LIMIT: usize = 3_000_000;
/// The units in which each set is asked, in nanoseconds.
const UNITS: [u64; 2] = [1_000, 1];

/// How often a test was right.
#[derive(Default)]
struct Count {
    accepted: u64,
    /// Of the sets of which the truth is known whatever the test says.
    schedulable: u64,
    accepted_of_these: u64,
}

#[derive(Default)]
struct Tally {
    search: Search,
    tests: BTreeMap<String, Count>,
    disproved: Vec<String>,
    left_out: u64,
    bounds: u64,
    /// Of the sets that a test accepts for releases on whole units only: those that miss a deadline
    /// by another release.
    late_between: BTreeMap<&'static str, u64>,
}

impl Tally {
    /// The truth about `tasks` (whole units) with releases on halves of them.
    fn truth(&mut self, tasks: &[Task], processors: u32, rule: Rule) -> Option<Truth> {
        self.truth_in(tasks, processors, rule, 2)
    }

    fn truth_in(
        &mut self,
        tasks: &[Task],
        processors: u32,
        rule: Rule,
        ticks: u8,
    ) -> Option<Truth> {
        let found = self.search.explore(
            &in_ticks(tasks, ticks),
            &[processors as u8],
            rule,
            true,
            LIMIT,
        );
        self.left_out += u64::from(found.is_none());
        found
    }

    /// Notes what a test says of a set of which the truth is known. `sampled`: it would be known
    /// also if no test accepted.
    fn note(&mut self, name: &str, accepts: bool, truth: &Truth, sampled: bool, set: &Set) {
        let count = self.tests.entry(name.to_owned()).or_default();
        count.accepted += u64::from(accepts);
        if sampled && !truth.late {
            count.schedulable += 1;
            count.accepted_of_these += u64::from(accepts);
        }
        if accepts && truth.late {
            self.disproved.push(format!("{name} accepts {set:?}"));
        }
    }

    /// Holds bounds of response times against the longest ones that were found.
    fn hold(
        &mut self,
        name: &str,
        bounds: &[Duration],
        unit: u64,
        exact: bool,
        found: &[u8],
        set: &Set,
    ) {
        for (bound, worst) in bounds.iter().zip(found) {
            self.bounds += 1;
            let (twice, worst) = (2 * bound.nanos(), u64::from(*worst) * unit);
            if worst > twice || exact && worst < twice {
                self.disproved.push(format!(
                    "{name} in {unit} ns says {bounds:?}, found {found:?} halves: {set:?}"
                ));
            }
        }
    }
}

fn in_ticks(tasks: &[Task], ticks: u8) -> Vec<Task> {
    let times = |t: &Task| Task {
        wcet: t.wcet * ticks,
        period: t.period * ticks,
        deadline: t.deadline * ticks,
    };
    tasks.iter().map(times).collect()
}

/// Global EDF on all processors.
fn global_edf(tally: &mut Tally, set: &Set, sampled: bool) {
    let m = set.processors;
    let tests = registry::ALL
        .iter()
        .filter(|t| t.policy == "g-edf" && t.guarantee == Guarantee::Hard);
    let says: Vec<(&str, bool)> = tests
        .map(|t| {
            let yes = UNITS.map(|unit| (t.run)(&set.timings(unit), m) == Ok(true));
            (t.name, yes.contains(&true))
        })
        .collect();
    if says.iter().any(|(_, yes)| *yes) || sampled {
        let Some(truth) = tally.truth(&set.tasks, m, Rule::Edf) else {
            return;
        };
        for (name, yes) in says {
            tally.note(name, yes, &truth, sampled, set);
        }
        if !truth.late {
            for unit in UNITS {
                if let Ok(Some(bounds)) = rta::response_bounds(&set.timings(unit), m) {
                    tally.hold("RTA", &bounds, unit, false, &truth.worst, set);
                }
            }
        }
    }
    on_the_grid(tally, set);
}

/// The tests in integer time, where they accept what they do not accept for releases at any time:
/// right for releases on whole units, and wrong now and then for others, or the search would be
/// blind to what it is for.
fn on_the_grid(tally: &mut Tally, set: &Set) {
    let (tasks, m, grid) = (set.timings(1_000), set.processors, Duration::from_micros(1));
    let tests = registry::ALL.iter().filter(|t| t.on_grid.is_some());
    let only_here: Vec<&str> = tests
        .filter(|t| t.decide_on_grid(&tasks, m, grid) == Ok(true) && (t.run)(&tasks, m) != Ok(true))
        .map(|t| t.name)
        .collect();
    if only_here.is_empty() {
        return;
    }
    let Some(here) = tally.truth_in(&set.tasks, m, Rule::Edf, 1) else {
        return;
    };
    let Some(between) = tally.truth(&set.tasks, m, Rule::Edf) else {
        return;
    };
    for name in only_here {
        tally.note(&format!("{name} with --grid only"), true, &here, false, set);
        *tally.late_between.entry(name).or_default() += u64::from(between.late);
    }
}

/// The tasks in the order of their priorities.
fn by_priority(tasks: &[Task], priority: Priority) -> Vec<Task> {
    let mut sorted = tasks.to_vec();
    match priority {
        Priority::RateMonotonic => sorted.sort_by_key(|t| t.period),
        Priority::DeadlineMonotonic => sorted.sort_by_key(|t| t.deadline),
        Priority::Given => {}
    }
    sorted
}

/// Global fixed priorities on all processors.
fn global_fixed(tally: &mut Tally, set: &Set, sampled: bool) {
    for (policy, priority) in [
        ("g-fp", Priority::Given),
        ("g-fp:dm", Priority::DeadlineMonotonic),
    ] {
        let sorted = Set {
            processors: set.processors,
            tasks: by_priority(&set.tasks, priority),
        };
        let tests = registry::ALL.iter().filter(|t| t.policy == policy);
        let says: Vec<(&str, bool)> = tests
            .map(|t| {
                let yes =
                    UNITS.map(|unit| (t.run)(&sorted.timings(unit), set.processors) == Ok(true));
                (t.name, yes.contains(&true))
            })
            .collect();
        if !says.iter().any(|(_, yes)| *yes) && !sampled {
            continue;
        }
        let Some(truth) = tally.truth(&sorted.tasks, set.processors, Rule::FixedPriority) else {
            continue;
        };
        for (name, yes) in says {
            tally.note(name, yes, &truth, sampled, &sorted);
        }
        if !truth.late {
            for unit in UNITS {
                let bounds = gfp_rta::response_bounds(
                    &sorted.timings(unit),
                    set.processors,
                    Priority::Given,
                );
                if let Ok(Some(bounds)) = bounds {
                    tally.hold("GFP-RTA", &bounds, unit, false, &truth.worst, &sorted);
                }
            }
        }
    }
}

/// One processor: exact tests and exact response times.
fn one_processor(tally: &mut Tally, set: &Set) {
    let overloaded = set
        .tasks
        .iter()
        .map(|t| f64::from(t.wcet) / f64::from(t.period))
        .sum::<f64>()
        > 1.0 + 1e-9;
    if set.processors != 1 || overloaded {
        return;
    }
    let unit = 1_000;
    let tasks: Vec<Timing> = set.timings(unit);
    if let Some(truth) = tally.truth(&set.tasks, 1, Rule::Edf) {
        let says = edf::decide(&tasks);
        assert_eq!(says, Ok(!truth.late), "exact EDF, {set:?}");
        tally.note("exact EDF", says == Ok(true), &truth, true, set);
        if !truth.late {
            let bounds = edf_response::response_times(&tasks, &mut Work::new()).unwrap();
            tally.hold("EDF response times", &bounds, unit, true, &truth.worst, set);
        }
    }
    for priority in [
        Priority::RateMonotonic,
        Priority::DeadlineMonotonic,
        Priority::Given,
    ] {
        let sorted = Set {
            processors: 1,
            tasks: by_priority(&set.tasks, priority),
        };
        let Some(truth) = tally.truth(&sorted.tasks, 1, Rule::FixedPriority) else {
            continue;
        };
        let times = fixed_priority::response_times(&sorted.timings(unit), Priority::Given);
        let within = |r: &Response| match r {
            Response::Within(time) => Some(*time),
            _ => None,
        };
        let bounds: Option<Vec<Duration>> = times.iter().map(within).collect();
        assert_eq!(
            bounds.is_none(),
            truth.late,
            "exact response times, {sorted:?}"
        );
        tally.note(
            "exact fixed priorities",
            bounds.is_some(),
            &truth,
            true,
            &sorted,
        );
        if let Some(bounds) = bounds {
            tally.hold("response times", &bounds, unit, true, &truth.worst, &sorted);
        }
    }
}

/// Bounds of tardiness under global EDF on two processors, for sets that miss deadlines.
fn soft(tally: &mut Tally, set: &Set) {
    let ticks = in_ticks(&set.tasks, 2);
    let Some(truth) = tally.search.explore(&ticks, &[2], Rule::Edf, false, LIMIT) else {
        tally.left_out += 1;
        return;
    };
    let tasks = set.timings(1_000);
    let late = devi_anderson::tardiness_bounds(&tasks, 2).unwrap().unwrap();
    let done: Vec<Duration> = tasks
        .iter()
        .zip(late)
        .map(|(t, late)| t.deadline + late)
        .collect();
    tally.hold("DA", &done, 1_000, false, &truth.worst, set);
    let vector = compliant_vector::response_bounds(&tasks, 2)
        .unwrap()
        .unwrap();
    tally.hold("compliant vector", &vector, 1_000, false, &truth.worst, set);
    let count = tally
        .tests
        .entry("bounded tardiness, of these late".to_owned())
        .or_default();
    count.accepted += 1;
    count.schedulable += 1;
    count.accepted_of_these += u64::from(truth.late);
}

#[test]
fn no_yes_is_disproved_by_any_release_pattern_on_the_half_grid() {
    let sets = std::env::var("WARMSET_EXACT_SETS").map_or(20_000, |n| {
        n.parse().expect("WARMSET_EXACT_SETS is a number of sets")
    });
    let mut tally = Tally::default();
    for seed in 0..sets {
        let set = sets::at_the_edge(seed);
        // The truth about every eighth set is found whether a test accepts it or not.
        let sampled = seed % 8 == 0;
        global_edf(&mut tally, &set, sampled);
        global_fixed(&mut tally, &set, sampled);
        partitioned(&mut tally, &set);
        windows(&mut tally, &set);
        slots(&mut tally, &set);
        quanta(&mut tally, &sets::in_quanta(seed));
        one_processor(&mut tally, &set);
        if seed % 100 == 0 {
            soft(&mut tally, &sets::nearly_full(seed));
        }
    }
    println!(
        "{sets} sets, {} states; {} bounds held; {} searches left out as too large",
        tally.search.states, tally.bounds, tally.left_out
    );
    println!(
        "{:<40} {:>9} {:>28}",
        "test", "accepted", "of the schedulable in the sample"
    );
    for (name, count) in &tally.tests {
        let share = 100.0 * count.accepted_of_these as f64 / count.schedulable.max(1) as f64;
        println!(
            "{name:<40} {:>9} {:>9} of {:>9} ({share:.1} %)",
            count.accepted, count.accepted_of_these, count.schedulable
        );
    }
    println!(
        "accepted with --grid only, and late by a release on a half: {:?}",
        tally.late_between
    );
    let disproved = &tally.disproved;
    assert!(
        disproved.is_empty(),
        "{} disproved:\n{}",
        disproved.len(),
        disproved[..disproved.len().min(20)].join("\n")
    );
    assert!(tally.left_out * 1_000 < sets, "{} left out", tally.left_out);
    for name in [
        "NPS-F",
        "C-NPS-F on 2 + 1",
        "PD2",
        "EDF-WM with slices",
        "C-EDF on 2 + 1",
        "GFP-RTA",
        "GDM-RTA",
        "GDM-DENSITY",
    ] {
        let accepted = tally.tests.get(name).map_or(0, |c| c.accepted);
        assert!(accepted > sets / 500, "{name} accepts {accepted}");
    }
    // Nothing is shown by tests that accept nothing, nor by a search that does not see what happens
    // between units.
    let hard = |t: &&TestInfo| t.policy == "g-edf" && t.guarantee == Guarantee::Hard;
    for test in registry::ALL.iter().filter(hard) {
        let accepted = tally.tests.get(test.name).map_or(0, |c| c.accepted);
        assert!(accepted > sets / 200, "{} accepts {accepted}", test.name);
    }
    for name in ["BCLI", "RTA", "GEDF_ANY"] {
        let found = tally.late_between.get(name).copied().unwrap_or(0);
        assert!(found > sets / 2_000, "{name}: {:?}", tally.late_between);
    }
}

/// The published tests accept this set. No release on whole units leads to a miss, one between
/// does.
#[test]
fn a_release_between_two_units_is_found() {
    let task = |wcet, deadline, period| Task {
        wcet,
        period,
        deadline,
    };
    let tasks = [task(1, 5, 5), task(1, 2, 6), task(1, 5, 6), task(4, 5, 5)];
    let mut tally = Tally::default();
    assert!(!tally.truth_in(&tasks, 2, Rule::Edf, 1).unwrap().late);
    assert!(tally.truth_in(&tasks, 2, Rule::Edf, 2).unwrap().late);
    let set = Set {
        processors: 2,
        tasks: tasks.to_vec(),
    };
    for name in ["RTA", "GEDF_ANY"] {
        let test = registry::find(name).unwrap();
        for unit in UNITS {
            let grid = Duration::from_nanos(unit);
            assert_eq!((test.run)(&set.timings(unit), 2), Ok(false), "{name}");
            assert_eq!(
                test.decide_on_grid(&set.timings(unit), 2, grid),
                Ok(true),
                "{name}"
            );
        }
    }
}

/// The search itself, by schedules that can be drawn by hand.
#[test]
fn the_search_finds_what_is_known() {
    let task = |wcet, period, deadline| Task {
        wcet,
        period,
        deadline,
    };
    let mut search = Search::default();
    let mut explore =
        |tasks: &[Task], m, rule| search.explore(tasks, &[m], rule, true, LIMIT).unwrap();
    // Dhall and Liu: two light tasks keep the heavy one from both processors.
    let dhall = [task(1, 5, 5), task(1, 5, 5), task(6, 6, 6)];
    assert!(explore(&dhall, 2, Rule::Edf).late);
    assert!(!explore(&[dhall[2], dhall[0], dhall[1]], 2, Rule::FixedPriority).late);
    // Lehoczky's effect: the response of the second job is the longest, with deadlines beyond
    // periods.
    let two = [task(13, 35, 35), task(31, 50, 100)];
    let times = explore(&two, 1, Rule::FixedPriority);
    let known = fixed_priority::response_times(
        &Set {
            processors: 1,
            tasks: two.to_vec(),
        }
        .timings(1),
        Priority::Given,
    );
    assert!(!times.late);
    assert_eq!(
        known[1],
        Response::Within(Duration::from_nanos(times.worst[1].into()))
    );
    // A whole processor, and a tick more.
    assert!(!explore(&[task(1, 2, 2), task(2, 4, 4)], 1, Rule::Edf).late);
    assert!(explore(&[task(1, 2, 2), task(2, 4, 2)], 1, Rule::Edf).late);
}
