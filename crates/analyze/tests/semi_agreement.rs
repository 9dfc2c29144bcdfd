//! The semi-partitioned algorithms against slow versions of themselves on random small sets.
//!
//!     WARMSET_RANDOM_SETS=1000000 \
//!         cargo test --release -p warmset-analyze --test all semi_agreement::
//!
//! tries a million sets.

use crate::reference::random::{Random, count, full_set, random_set};
use crate::reference::semi::{self, Place};
use crate::reference::{Q, Task, whole};
use analyze::partition::{Fit, Order};
use analyze::semi::{edf_fm, edf_wm, nps_f, processors};
use model::{CpuId, Duration, Timing};

/// A set of implicit deadlines in milliseconds, in nanoseconds.
fn set(seed: u64) -> (Vec<Task>, i128) {
    let (mut tasks, m) = match seed % 2 {
        0 => random_set(seed),
        _ => {
            let mut r = Random::new(seed);
            let m = 1 + r.below(4);
            let light = r.below(2) == 0;
            (full_set(&mut r, m, light), m)
        }
    };
    for t in &mut tasks {
        *t = Task {
            e: t.e * 1_000_000,
            p: t.p * 1_000_000,
            d: t.p * 1_000_000,
        };
    }
    (tasks, m)
}

fn timings(tasks: &[Task]) -> Vec<Timing> {
    tasks.iter().map(|t| t.timing(1)).collect()
}

#[test]
fn shares_and_bounds_of_edf_fm_agree_with_their_definition() {
    let (mut shared, mut refused) = (0, 0);
    for seed in 0..count(4_000) {
        let (tasks, m) = set(seed);
        let ours = edf_fm::assign(&timings(&tasks), &processors(m as u32), edf_fm::Fill::Full).ok();
        let expected = semi::edf_fm(&tasks, m as usize);
        assert_eq!(ours.is_some(), expected.is_some(), "{tasks:?} {m}");
        let (Some(ours), Some(expected)) = (ours, expected) else {
            refused += 1;
            continue;
        };
        for ((turn, place), t) in ours.tasks.iter().zip(&expected).zip(&tasks) {
            match place {
                Place::Fixed(cpu) => {
                    assert!(
                        !turn.is_migratory() && turn.first == CpuId(*cpu as u32),
                        "{tasks:?}"
                    );
                }
                Place::Migratory(first, time) => {
                    let part = Q::new(i128::from(turn.part), i128::from(turn.whole));
                    let cpus = (CpuId(*first as u32), CpuId(*first as u32 + 1));
                    assert_eq!(
                        ((turn.first, turn.second), part),
                        (cpus, Q::new(*time, t.e)),
                        "{tasks:?}"
                    );
                    shared += 1;
                }
            }
        }
        let bounds = edf_fm::tardiness_bounds(&timings(&tasks), &ours);
        for (bound, exact) in bounds.iter().zip(semi::edf_fm_tardiness(&tasks, &expected)) {
            assert_eq!(
                i128::from(bound.nanos()),
                exact.ceil().to_integer(),
                "{tasks:?} {m}"
            );
        }
    }
    assert!(shared > 100 && refused > 100, "{shared} {refused}");
}

#[test]
fn nps_f_accepts_what_its_inflated_servers_leave_room_for() {
    let (mut yes, mut no) = (0, 0);
    for seed in 0..count(4_000) {
        let (tasks, m) = set(seed);
        for delta in [1, 2, 3] {
            let settings = nps_f::Settings {
                delta: delta as u32,
                order: Order::Given,
                // The default leaves idle what is too short to be policed.
                shortest: Duration::from_nanos(1),
                turn: Duration::from_nanos(1),
            };
            let ours = nps_f::assign(&timings(&tasks), &[processors(m as u32)], &settings).is_ok();
            let needed = semi::nps_f(&tasks, delta, true);
            // Utilizations are rounded up, so that a server may not be seen to be full to the brim.
            if needed != semi::nps_f(&tasks, delta, false) {
                continue;
            }
            // Reserves are rounded up to nanoseconds: what lies within a millionth of m may go
            // either way, but down only.
            let fits = needed.is_some_and(|u| u <= whole(m));
            let fits_well = needed.is_some_and(|u| u <= whole(m) - Q::new(1, 1_000_000));
            assert!(!ours || fits, "{tasks:?} {m} {delta}");
            assert!(ours || !fits_well, "{tasks:?} {m} {delta}");
            yes += usize::from(ours);
            no += usize::from(!ours);
        }
    }
    assert!(yes > 500 && no > 500, "{yes} {no}");
}

#[test]
fn slices_of_edf_wm_add_up_and_every_processor_meets_its_demand() {
    let (mut split, mut whole_sets) = (0, 0);
    for seed in 0..count(4_000) / 16 {
        let (tasks, m) = set(seed);
        let cpus = processors(m as u32);
        for fit in Fit::ALL {
            let settings = edf_wm::Settings {
                fit,
                ..edf_wm::Settings::default()
            };
            let Ok(slices) = edf_wm::assign(&timings(&tasks), &cpus, &settings) else {
                continue;
            };
            for (t, slices) in tasks.iter().zip(&slices.tasks) {
                let of = |part: fn(&model::assignment::Slice) -> u64| {
                    slices.iter().map(|s| i128::from(part(s))).sum::<i128>()
                };
                assert_eq!(of(|s| s.budget.nanos()), t.e, "{tasks:?} {m}");
                assert!(of(|s| s.window.nanos()) <= t.d, "{tasks:?} {m}");
                split += usize::from(slices.len() > 1);
            }
            for cpu in &cpus {
                let pieces: Vec<Task> = tasks
                    .iter()
                    .zip(&slices.tasks)
                    .flat_map(|(t, slices)| slices.iter().map(move |s| (t, s)))
                    .filter(|(_, s)| s.cpu == *cpu)
                    .map(|(t, s)| Task {
                        e: i128::from(s.budget.nanos()),
                        p: t.p,
                        d: i128::from(s.window.nanos()),
                    })
                    .collect();
                assert!(semi::fits_by_demand(&pieces), "{tasks:?} {m} {slices:?}");
            }
            whole_sets += usize::from(slices.tasks.iter().all(|s| s.len() == 1));
        }
    }
    assert!(split > 5 && whole_sets > 50, "{split} {whole_sets}");
}
