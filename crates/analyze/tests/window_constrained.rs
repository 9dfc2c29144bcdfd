//! Tardiness under priorities that move within windows: the bounds against their formulas, and
//! against adversaries that do all that windows allow.
//!
//!     WARMSET_RANDOM_SETS=1000000 \
//!         cargo test --release -p warmset-analyze --test all window_constrained::
//!
//! tries a million sets.

use crate::reference::random::{Random, count, full_set, random_set};
use crate::reference::windows::{self, Adversary, World};
use crate::reference::{Task, is_feasible, total, whole};
use analyze::tardiness::{cache_aware, window_constrained};
use model::{Duration, Timing};
use window_constrained::Window;

fn timings(tasks: &[Task]) -> Vec<Timing> {
    tasks.iter().map(|t| t.timing(1)).collect()
}

fn nanos(n: i128) -> Duration {
    Duration::from_nanos(u64::try_from(n).unwrap())
}

fn bounds_of(tasks: &[Task], m: i128, windows: &[(i128, i128)]) -> Option<Vec<i128>> {
    let windows: Vec<Window> = windows
        .iter()
        .map(|(before, after)| Window {
            before: nanos(*before),
            after: nanos(*after),
        })
        .collect();
    let bounds = window_constrained::tardiness_bounds(&timings(tasks), m as u32, &windows).unwrap();
    bounds.map(|bounds| bounds.iter().map(|b| i128::from(b.nanos())).collect())
}

fn random_windows(r: &mut Random, tasks: &[Task]) -> Vec<(i128, i128)> {
    let (kind, widest) = (r.below(4), 1 + r.below(14) as u64);
    tasks
        .iter()
        .map(|_| match kind {
            0 => (0, 0),
            1 => (r.below(widest), 0),
            2 => (0, r.below(widest)),
            _ => (r.below(widest), r.below(widest)),
        })
        .collect()
}

#[test]
fn bounds_agree_with_their_formula() {
    let mut compared = 0;
    for seed in 0..count(3_000) {
        let (mut tasks, m) = random_set(seed);
        for t in &mut tasks {
            t.d = t.p;
        }
        let windows = random_windows(&mut Random::new(seed), &tasks);
        let ours = bounds_of(&tasks, m, &windows);
        let bounded = is_feasible(&tasks) && total(&tasks, Task::u) <= whole(m);
        assert_eq!(ours.is_some(), bounded);
        if let Some(ours) = ours {
            let exact: Vec<i128> = windows::bounds(&tasks, m, &windows)
                .iter()
                .map(|b| b.ceil().to_integer())
                .collect();
            assert_eq!(ours, exact, "{tasks:?} {m} {windows:?}");
            compared += 1;
        }
    }
    assert!(compared > 300, "{compared}");
}

#[test]
fn no_adversary_exceeds_the_bound_for_windows() {
    let mut closest = 0.0_f64;
    for seed in 0..count(2_000) {
        let mut r = Random::new(seed);
        let m = 1 + r.below(4);
        let light = r.below(4) == 0;
        let tasks = full_set(&mut r, m, light);
        let windows = random_windows(&mut r, &tasks);
        let Some(bounds) = bounds_of(&tasks, m, &windows) else {
            panic!("not over-utilized: {tasks:?} {m}");
        };
        let victim = r.below(tasks.len() as u64) as usize;
        let patience = r.below(6);
        for adversary in [
            Adversary::Anywhere,
            Adversary::Against(victim),
            Adversary::TakingSides,
            Adversary::Lurking(victim, patience),
        ] {
            let world = World {
                tasks: &tasks,
                m: m as usize,
                windows: &windows,
                edf_once_tardy: false,
                adversary,
                gaps: [0, 0, 1, 5][r.below(4) as usize],
            };
            let worst = world.tardiness(&mut r, 96);
            for (worst, bound) in worst.iter().zip(&bounds) {
                assert!(
                    worst <= bound,
                    "{tasks:?} {m} {windows:?} {adversary:?}: {worst} {bound}"
                );
                closest = closest.max(*worst as f64 / (*bound).max(1) as f64);
            }
        }
    }
    // Adversaries that come nowhere near would show nothing.
    assert!(closest > 0.3, "{closest}");
}

/// The cache-aware scheduler on sets in whole quanta, without phantom tasks, but with any choice
/// among the jobs that are not tardy.
#[test]
fn no_choice_of_promotions_exceeds_the_bound_of_the_cache_aware_scheduler() {
    let mut closest = 0.0_f64;
    for seed in 0..count(2_000) {
        let mut r = Random::new(seed ^ 0x5eed);
        let m = 1 + r.below(4);
        let light = r.below(4) == 0;
        let tasks = full_set(&mut r, m, light);
        let bounds = cache_aware::tardiness_bounds(&timings(&tasks), m as u32, nanos(1))
            .unwrap()
            .unwrap();
        let victim = r.below(tasks.len() as u64) as usize;
        for adversary in [
            Adversary::Anywhere,
            Adversary::Against(victim),
            Adversary::TakingSides,
            Adversary::Edf,
        ] {
            let world = World {
                tasks: &tasks,
                m: m as usize,
                windows: &vec![(0, 0); tasks.len()],
                edf_once_tardy: true,
                adversary,
                gaps: [0, 0, 1, 5][r.below(4) as usize],
            };
            let worst = world.tardiness(&mut r, 96);
            for (worst, bound) in worst.iter().zip(&bounds) {
                // One quantum of the bound is for releases within a quantum, of which there are
                // none here.
                let bound = i128::from(bound.nanos()) - 1;
                assert!(
                    *worst <= bound,
                    "{tasks:?} {m} {adversary:?}: {worst} {bound}"
                );
                closest = closest.max(*worst as f64 / bound.max(1) as f64);
            }
        }
    }
    assert!(closest > 0.3, "{closest}");
}
