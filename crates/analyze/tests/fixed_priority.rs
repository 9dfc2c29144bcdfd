//! The tests for global fixed priorities against slow versions of themselves, and against a
//! simulation, on random small sets.
//!
//!     WARMSET_RANDOM_SETS=1000000 \
//!         cargo test --release -p warmset-analyze --test all fixed_priority::
//!
//! tries a million sets.

use crate::reference::random::{count, random_set};
use crate::reference::{Task, fixed_priority, simulator};
use analyze::global::{gdm_density, gfp_rta};
use analyze::uniprocessor::fixed_priority::Priority;
use model::Duration;

/// The set in the order of its deadlines.
fn by_deadline(tasks: &[Task]) -> Vec<Task> {
    let mut sorted = tasks.to_vec();
    sorted.sort_by_key(|t| t.d);
    sorted
}

fn nanos(bounds: Option<Vec<Duration>>) -> Option<Vec<i128>> {
    bounds.map(|bounds| bounds.iter().map(|b| i128::from(b.nanos())).collect())
}

#[test]
fn response_bounds_agree_with_their_formula() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..count(3_000) {
        let (tasks, m) = random_set(seed);
        let sorted = by_deadline(&tasks);
        for (tasks, priority) in [
            (&tasks, Priority::Given),
            (&sorted, Priority::Given),
            (&sorted, Priority::DeadlineMonotonic),
        ] {
            let timings: Vec<_> = tasks.iter().map(|t| t.timing(1)).collect();
            let ours = gfp_rta::response_bounds(&timings, m as u32, priority);
            let expected = fixed_priority::response_bounds(tasks, m);
            assert_eq!(ours.ok().map(nanos), expected, "{tasks:?} {m}");
            yes += usize::from(matches!(expected, Some(Some(_))));
            no += usize::from(expected == Some(None));
        }
    }
    assert!(yes > 500 && no > 500, "{yes} {no}");
}

#[test]
fn priorities_follow_deadlines_wherever_a_task_stands_in_the_set() {
    for seed in 0..count(3_000) / 3 {
        let (tasks, m) = random_set(seed);
        let of = |tasks: &[Task]| {
            let timings: Vec<_> = tasks.iter().map(|t| t.timing(1_000)).collect();
            gfp_rta::is_schedulable(&timings, m as u32, Priority::DeadlineMonotonic)
        };
        let mut reversed = tasks.clone();
        reversed.reverse();
        // Ties of deadlines go by the order of the set, which may decide.
        if by_deadline(&tasks).windows(2).all(|w| w[0].d < w[1].d) {
            assert_eq!(
                of(&tasks).is_ok_and(|yes| yes),
                of(&reversed).is_ok_and(|yes| yes)
            );
        }
    }
}

#[test]
fn the_density_bound_agrees_with_its_formula() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..count(3_000) {
        let (tasks, m) = random_set(seed);
        let expected = fixed_priority::density(&tasks, m);
        for unit in [1, (1 << 54) + 1] {
            let timings: Vec<_> = tasks.iter().map(|t| t.timing(unit)).collect();
            assert_eq!(
                gdm_density::is_schedulable(&timings, m as u32).ok(),
                expected,
                "{tasks:?} {m}"
            );
        }
        yes += usize::from(expected == Some(true));
        no += usize::from(expected == Some(false));
    }
    assert!(yes > 100 && no > 500, "{yes} {no}");
}

#[test]
fn no_accepted_set_misses_and_no_bound_is_exceeded() {
    let (mut accepted, mut by_density) = (0, 0);
    for seed in 0..count(3_000) {
        let (tasks, m) = random_set(seed);
        let tasks = by_deadline(&tasks);
        let timings: Vec<_> = tasks.iter().map(|t| t.timing(1)).collect();
        let bounds = gfp_rta::response_bounds(&timings, m as u32, Priority::DeadlineMonotonic);
        let density = gdm_density::is_schedulable(&timings, m as u32) == Ok(true);
        if !density && !matches!(bounds, Ok(Some(_))) {
            continue;
        }
        // Sets with a task that needs a whole processor would never be done.
        let worst = simulator::g_fp(&tasks, m as usize, 240);
        assert!(
            !simulator::misses(&tasks, &worst),
            "{tasks:?} {m} {worst:?}"
        );
        by_density += usize::from(density);
        if let Ok(Some(bounds)) = bounds {
            accepted += 1;
            for (bound, response) in bounds.iter().zip(&worst) {
                assert!(
                    *response <= i128::from(bound.nanos()),
                    "{tasks:?} {m} {worst:?}"
                );
            }
        }
    }
    assert!(
        accepted > 500 && by_density > 100,
        "{accepted} {by_density}"
    );
}
