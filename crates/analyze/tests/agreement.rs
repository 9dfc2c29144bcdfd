//! The tests against slow versions of themselves, and against a simulation, on random small sets.
//!
//!     WARMSET_RANDOM_SETS=1000000 \
//!         cargo test --release -p warmset-analyze --test all agreement::
//!
//! tries a million sets.

use crate::reference::random::{count, random_set};
use crate::reference::{self, Task, edf, is_constrained, is_feasible, simulator, soft};
use analyze::tardiness::{compliant_vector, devi_anderson};
use analyze::{Guarantee, NotApplicable, registry};
use model::Duration;

const HARD: [&str; 8] = ["GFB", "BAK", "BCL", "BCLI", "BAR", "LOAD", "FFDBF", "RTA"];

#[test]
fn every_hard_test_agrees_with_its_formula() {
    let mut yes = [0; HARD.len()];
    let mut no = [0; HARD.len()];
    for seed in 0..count(3_000) {
        let (tasks, m) = random_set(seed);
        // Whole microseconds, a nanosecond each, and a unit with which the times pass 2^53.
        for unit in [1_000, 1, (1 << 54) + 1] {
            let timings: Vec<_> = tasks.iter().map(|t| t.timing(unit)).collect();
            for (index, name) in HARD.iter().enumerate() {
                let test = registry::find(name).unwrap();
                // These round to whole nanoseconds or microseconds: another unit is another test.
                let rounds = test.on_grid.is_some() || test.run_inflated.is_some();
                if rounds && unit > 1 && (unit > 1_000 || *name != "BAR") {
                    continue;
                }
                let expected = edf::decide(name, &tasks, m);
                let answer = (test.run)(&timings, m as u32);
                assert_eq!(
                    answer.clone().ok(),
                    expected,
                    "{name}, m = {m}, {tasks:?}, unit {unit}: {answer:?}"
                );
                match expected {
                    Some(true) => yes[index] += 1,
                    Some(false) => no[index] += 1,
                    None => {}
                }
            }
        }
    }
    // The sample is worth something only if every test says both.
    assert!(
        yes.iter().chain(&no).all(|n| *n > 50),
        "{HARD:?} {yes:?} {no:?}"
    );
}

/// Bounds are whole nanoseconds also where all times are whole microseconds and a coarser search
/// decides most sets.
#[test]
fn sets_in_microseconds_are_decided_to_the_nanosecond() {
    let (mut verdicts, mut only_finer) = ([0; 2], 0);
    for seed in 0..count(3_000) / 3 {
        let (tasks, m) = random_set(seed);
        let fine = scaled(&tasks, 1_000);
        let timings: Vec<_> = fine.iter().map(|t| t.timing(1)).collect();
        for name in ["BCLI", "RTA"] {
            let expected = edf::decide(name, &fine, m);
            let ours = (registry::find(name).unwrap().run)(&timings, m as u32);
            assert_eq!(ours.ok(), expected, "{name}, {m}, {tasks:?}");
            if let Some(says) = expected {
                verdicts[usize::from(says)] += 1;
                only_finer += usize::from(says && edf::decide(name, &tasks, m) == Some(false));
            }
        }
    }
    assert!(
        verdicts.iter().all(|n| *n > 100) && only_finer > 0,
        "{verdicts:?} {only_finer}"
    );
}

#[test]
fn releases_on_a_grid_agree_with_the_published_formulas() {
    let (mut verdicts, mut only_on_grid) = ([0; 2], 0);
    for seed in 0..count(3_000) {
        let (tasks, m) = random_set(seed);
        for unit in [1, 7, 1_000, (1 << 54) + 1] {
            let timings: Vec<_> = tasks.iter().map(|t| t.timing(unit)).collect();
            for name in ["BCLI", "RTA"] {
                let test = registry::find(name).unwrap();
                let expected = edf::decide(&format!("{name} on a grid"), &tasks, m);
                let grid = Duration::from_nanos(unit);
                let ours = test.decide_on_grid(&timings, m as u32, grid);
                assert_eq!(ours.ok(), expected, "{name}, {m}, {tasks:?}, unit {unit}");
                if let Some(says) = expected {
                    verdicts[usize::from(says)] += 1;
                    let anywhere = edf::decide(name, &tasks, m);
                    only_on_grid += usize::from(says && anywhere == Some(false));
                    // What holds for releases at any time holds for those on a grid.
                    assert!(
                        says || anywhere != Some(true) || name == "BCLI",
                        "{name}, {m}, {tasks:?}"
                    );
                }
            }
        }
    }
    assert!(
        verdicts.iter().all(|n| *n > 500) && only_on_grid > 20,
        "{verdicts:?} {only_on_grid}"
    );
}

#[test]
fn a_grid_that_does_not_divide_the_times_is_refused() {
    let timings = [Task { e: 2, p: 9, d: 8 }.timing(1_000)];
    for name in ["BCLI", "RTA"] {
        let test = registry::find(name).unwrap();
        for grid in [0, 2_000, 3_000] {
            let says = test.decide_on_grid(&timings, 2, Duration::from_nanos(grid));
            assert!(
                matches!(says, Err(NotApplicable::Precondition(_))),
                "{name} {grid} {says:?}"
            );
        }
    }
}

fn scaled(tasks: &[Task], scale: i128) -> Vec<Task> {
    let times = |t: &Task| Task {
        e: t.e * scale,
        p: t.p * scale,
        d: t.d * scale,
    };
    tasks.iter().map(times).collect()
}

#[test]
fn times_beyond_2_to_53_agree_with_the_formulas() {
    for seed in 0..count(3_000) / 10 {
        let (tasks, m) = random_set(seed);
        if !is_constrained(&tasks) {
            continue;
        }
        // In steps of about 2^50 the slacks converge as fast as in units, but for the last few
        // nanoseconds.
        let large = scaled(&tasks, (1 << 50) + 3);
        let timings: Vec<_> = large.iter().map(|t| t.timing(1)).collect();
        let small: Vec<_> = tasks.iter().map(|t| t.timing(1)).collect();
        let bcli = registry::find("BCLI").unwrap();
        let (fine, coarse) = ((bcli.run)(&timings, m as u32), (bcli.run)(&small, m as u32));
        assert_eq!(
            fine.clone().ok(),
            edf::decide("BCLI", &large, m),
            "{tasks:?} {m}"
        );
        // A coarser unit accepts less.
        assert!(coarse != Ok(true) || fine == Ok(true), "{tasks:?} {m}");
        // Windows of every length are decided, one bend after the other: there are too many to try
        // them all.
        let bar = (registry::find("BAR").unwrap().run)(&timings, m as u32);
        assert_eq!(
            bar.is_ok(),
            edf::decide("BAR", &tasks, m).is_some(),
            "{tasks:?} {m}"
        );
    }
}

#[test]
fn no_accepted_set_misses_and_no_bound_is_exceeded() {
    let (mut accepted, mut late) = (0, 0);
    for seed in 0..count(2_000) {
        let (tasks, m) = random_set(seed);
        let timings: Vec<_> = tasks.iter().map(|t| t.timing(1)).collect();
        let bounded =
            is_feasible(&tasks) && reference::total(&tasks, Task::u) <= reference::whole(m);
        if !bounded {
            continue;
        }
        let worst = simulator::g_edf(&tasks, m as usize, 360);
        for test in registry::ALL {
            if test.policy == "g-edf"
                && test.guarantee == Guarantee::Hard
                && (test.run)(&timings, m as u32) == Ok(true)
            {
                accepted += 1;
                assert!(
                    !simulator::misses(&tasks, &worst),
                    "{} {tasks:?} {m}: {worst:?}",
                    test.name
                );
            }
        }
        let responses = analyze::global::rta::response_bounds(&timings, m as u32)
            .ok()
            .flatten();
        let vectors = compliant_vector::response_bounds(&timings, m as u32).unwrap();
        let tardiness = devi_anderson::tardiness_bounds(&timings, m as u32)
            .ok()
            .flatten();
        let tardiness = tardiness.map(|bounds| {
            timings
                .iter()
                .zip(bounds)
                .map(|(t, b)| t.deadline + b)
                .collect::<Vec<_>>()
        });
        for (bounds, name) in [
            (responses, "RTA"),
            (vectors, "compliant"),
            (tardiness, "DA"),
        ] {
            for (bound, response) in bounds.iter().flatten().zip(&worst) {
                assert!(
                    *response <= i128::from(bound.nanos()),
                    "{name} {tasks:?} {m}: {worst:?} {bounds:?}"
                );
            }
        }
        late += usize::from(simulator::misses(&tasks, &worst));
    }
    assert!(accepted > 1_000 && late > 50, "{accepted} {late}");
}

#[test]
fn soft_bounds_agree_with_their_formulas() {
    let mut compared = 0;
    for seed in 0..count(3_000) {
        let (tasks, m) = random_set(seed);
        let timings: Vec<_> = tasks.iter().map(|t| t.timing(1)).collect();
        let is_implicit = tasks.iter().all(|t| t.d == t.p);
        let bounded = tasks.iter().all(|t| t.e <= t.p)
            && reference::total(&tasks, Task::u) <= reference::whole(m);
        if is_implicit {
            let ours = devi_anderson::tardiness_bounds(&timings, m as u32).unwrap();
            assert_eq!(ours.is_some(), bounded);
            if !bounded {
                continue;
            }
            for (ours, exact) in ours.iter().flatten().zip(soft::devi_anderson(&tasks, m)) {
                assert_eq!(
                    i128::from(ours.nanos()),
                    exact.ceil().to_integer(),
                    "{tasks:?} {m}"
                );
                compared += 1;
            }
        }
        let ours = compliant_vector::response_bounds(&timings, m as u32).unwrap();
        assert_eq!(ours.is_some(), bounded);
        if bounded && (m > 1 || !is_implicit) {
            for (ours, exact) in ours.iter().flatten().zip(soft::compliant_vector(&tasks, m)) {
                assert_eq!(
                    i128::from(ours.nanos()),
                    exact.ceil().to_integer(),
                    "{tasks:?} {m}"
                );
                compared += 1;
            }
        }
    }
    assert!(compared > 5_000, "{compared}");
}
