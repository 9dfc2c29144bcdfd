//! Hostile sets: an exact answer or a named limit, and never a panic, an overflow or an endless
//! loop.

use analyze::semi::{edf_fm, processors};
use analyze::tardiness::{cache_aware, compliant_vector, devi_anderson, window_constrained};
use analyze::{NotApplicable, registry, uniprocessor};
use model::{Duration, Timing};
use proptest::prelude::*;
use testing::sets::task_ns as task;

/// Asks every test; none may panic.
fn ask_all(tasks: &[Timing], m: u32) -> Vec<(&'static str, Result<bool, NotApplicable>)> {
    registry::ALL
        .iter()
        .map(|t| {
            let answer = (t.run)(tasks, m);
            let inflated = t.decide_inflated(tasks, m);
            assert!(
                inflated != Ok(true) || answer != Ok(false),
                "{}: {tasks:?}",
                t.name
            );
            (t.name, answer)
        })
        .collect()
}

fn answer(name: &str, tasks: &[Timing], m: u32) -> Result<bool, NotApplicable> {
    (registry::find(name).unwrap().run)(tasks, m)
}

/// Primes near 2^60, so that no two periods share a factor.
const PRIMES: [u64; 6] = [
    1_152_921_504_606_846_883,
    1_152_921_504_606_846_869,
    1_152_921_504_606_846_803,
    1_152_921_504_606_846_797,
    1_152_921_504_606_846_719,
    1_152_921_504_606_846_697,
];

#[test]
fn coprime_periods_near_two_to_sixty_are_decided_to_the_nanosecond() {
    // Half of each of the first four, within a nanosecond: U is 2 less or more than 2·10^-18.
    for extra in [0, 1] {
        let tasks: Vec<Timing> = PRIMES[..4]
            .iter()
            .map(|p| task(p / 2 + extra, *p, *p))
            .collect();
        // U ≤ m − (m − 1)·u_max at m = 3 is 2 against 3 − 2·(1/2) = 2.
        assert_eq!(answer("GFB", &tasks, 3), Ok(extra == 0));
        assert_eq!(answer("BAK", &tasks, 3), Ok(extra == 0));
        assert_eq!(answer("DA", &tasks, 2), Ok(extra == 0));
        ask_all(&tasks, 2);
        ask_all(&tasks, 3);
    }
}

#[test]
fn a_full_system_is_decided_and_one_nanosecond_more_refused() {
    let full = vec![task(1_000_000, 1_000_000, 1_000_000); 4];
    assert_eq!(answer("DA", &full, 4), Ok(true));
    assert_eq!(
        answer("BAR", &full, 4),
        Err(NotApplicable::Precondition(
            "the total utilization is below m"
        ))
    );
    let mut over = full.clone();
    over.push(task(1, u64::MAX, u64::MAX));
    assert_eq!(answer("DA", &over, 4), Ok(false));
    for (name, decision) in ask_all(&over, 4) {
        assert_ne!(decision, Ok(true), "{name}");
    }
    // As many tasks as processors, each with one of its own.
    assert_eq!(answer("BCL", &full, 4), Ok(false));
    assert_eq!(answer("BCLI", &full, 4), Ok(true));
    assert_eq!(answer("RTA", &full, 4), Ok(true));
}

#[test]
fn no_tasks_miss_no_deadline() {
    for test in registry::ALL {
        let answer = (test.run)(&[], 4);
        if test.policy == "g-edf" {
            assert_ne!(answer, Ok(false), "{}", test.name);
        }
    }
}

#[test]
fn a_million_tasks_and_a_thousand_processors_are_decided_or_named() {
    let light: Vec<Timing> = (0..1_000_000_u64)
        .map(|i| {
            let period = 1_000_000_000 + 2 * i + 1;
            task(period / 2_000, period, period)
        })
        .collect();
    for name in ["GFB", "LOAD", "FFDBF", "DA"] {
        assert_eq!(answer(name, &light, 1_024), Ok(true), "{name}");
    }
    let mut alike = light;
    for t in &mut alike {
        *t = task(1_024, 1_000_000, 1_000_000);
    }
    // Exactly 1024.
    assert_eq!(answer("DA", &alike, 1_024), Ok(true));
    alike[999_999] = task(1_025, 1_000_000, 1_000_000);
    assert_eq!(answer("DA", &alike, 1_024), Ok(false));
}

/// Every answer is exact or names its limit: a precondition of this set would be named by another
/// error.
#[test]
fn every_test_decides_a_million_different_tasks_or_names_its_limit() {
    let light: Vec<Timing> = (0..1_000_000_u64)
        .map(|i| {
            let period = 1_000_000_000 + 2 * i + 1;
            task(period / 2_000, period, period)
        })
        .collect();
    for test in registry::ALL {
        match (test.run)(&light, 1_024) {
            // U is below 500, and no test for m processors is that weak.
            Ok(true) | Err(NotApplicable::Limit(_)) => {}
            other => panic!("{}: {other:?}", test.name),
        }
    }
    assert_eq!(answer("EDF-FM", &light, 1_024), Ok(true));
    let wcs = cache_aware::tardiness_bounds(&light, 1_024, Duration::from_micros(100));
    assert_eq!(
        wcs.map(|bounds| bounds.map(|b| b.len())),
        Ok(Some(1_000_000))
    );
    let windows = window_constrained::tardiness_bounds(&light, 1_024, &[]);
    assert_eq!(
        windows.map(|bounds| bounds.map(|b| b.len())),
        Ok(Some(1_000_000))
    );
}

/// The exact tests of one processor share one limit of work among all processors.
#[test]
fn short_deadlines_on_a_thousand_full_processors_are_decided_within_the_limit_of_work() {
    let tasks: Vec<Timing> = (0..200_000_u64)
        .map(|i| {
            let period = 1_000_000_000 + 2 * i + 1;
            task(period / 200, period, period / 2)
        })
        .collect();
    for name in ["PEDF-WFD", "PEDF-FFD", "PEDF-BFD", "PEDF-NFD"] {
        let decision = answer(name, &tasks, 1_024);
        assert!(
            decision.is_ok() || decision == Err(uniprocessor::LIMIT),
            "{name}: {decision:?}"
        );
    }
}

#[test]
fn bounds_of_two_thousand_coprime_periods_are_computed_exactly() {
    let tasks: Vec<Timing> = (0..2_000_u64)
        .map(|i| {
            let period = (1 << 60) - 1 - 2 * i * i;
            task(period / 16, period, period)
        })
        .collect();
    assert!(
        compliant_vector::response_bounds(&tasks, 128)
            .unwrap()
            .is_some()
    );
    assert!(
        devi_anderson::tardiness_bounds(&tasks, 128)
            .unwrap()
            .is_some()
    );
    assert!(
        window_constrained::tardiness_bounds(&tasks, 128, &[])
            .unwrap()
            .is_some()
    );
    let turns = edf_fm::assign(&tasks, &processors(128), edf_fm::Fill::Full).unwrap();
    assert_eq!(edf_fm::tardiness_bounds(&tasks, &turns).len(), 2_000);
}

/// Full processors, and a nanosecond more than there is, for all tests at once.
#[test]
fn utilizations_of_exactly_one_and_m_are_told_from_one_nanosecond_more() {
    let full = [
        task(1, 2, 2),
        task(1_000_000_007, 3_000_000_021, 3_000_000_021),
        task(1, 6, 6),
    ];
    let mut over = full;
    over[2] = task((1 << 60) + 1, 6 << 60, 6 << 60);
    for m in [1, 2] {
        // The set once for each processor: U = m exactly.
        let tasks: Vec<Timing> = (0..m).flat_map(|_| full).collect();
        let more: Vec<Timing> = (0..m).flat_map(|_| over).collect();
        ask_all(&tasks, m);
        for (name, decision) in ask_all(&more, m) {
            assert_ne!(decision, Ok(true), "{name} {m}");
        }
        for name in ["DA", "PEDF-FFD", "PEDF-WFD", "EDF-WM", "EDF-FM"] {
            assert_eq!(answer(name, &tasks, m), Ok(true), "{name} {m}");
        }
    }
    // In whole quanta, so that it is full for the cache-aware scheduler and PD2 too.
    let ms = 1_000_000;
    let quanta = [
        task(ms, 2 * ms, 2 * ms),
        task(ms, 3 * ms, 3 * ms),
        task(ms, 6 * ms, 6 * ms),
    ];
    let mut late = quanta;
    late[2] = task(ms + 1, 6 * ms, 6 * ms);
    for name in ["WC", "PD2"] {
        assert_eq!(answer(name, &quanta, 1), Ok(true), "{name}");
        assert_eq!(answer(name, &late, 1), Ok(false), "{name}");
    }
}

#[test]
fn a_hundred_thousand_different_tasks_are_compared_within_the_limit_of_pairs() {
    let tasks: Vec<Timing> = (0..100_000_u64)
        .map(|i| {
            let period = 1_000_000_000 + 2 * i + 1;
            task(period / 1_000, period, period)
        })
        .collect();
    for name in ["BCLI", "RTA"] {
        match answer(name, &tasks, 512) {
            Err(NotApplicable::Limit(_)) | Ok(false) => {}
            other => panic!("{name}: {other:?}"),
        }
    }
    assert_eq!(
        compliant_vector::response_bounds(&tasks, 512),
        Err(NotApplicable::Limit("2,000 tasks"))
    );
    assert!(
        devi_anderson::tardiness_bounds(&tasks, 512)
            .unwrap()
            .is_some()
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    /// Times of any size, from one nanosecond to the longest that can be written.
    #[test]
    fn no_times_make_a_test_panic(
        raw in prop::collection::vec((0_u32..64, 0_u32..64, 0_u32..64, any::<[u64; 3]>()), 1..6),
        m in 1_u32..9,
        alike in any::<bool>(),
    ) {
        let tasks: Vec<Timing> = raw
            .iter()
            .map(|(a, b, c, [x, y, z])| {
                // Of similar size, so that they interfere, or of any.
                let (a, b, c) = if alike { (4, 2, 3) } else { (*a, *b, *c) };
                let mut t = [(x >> a).max(1), (y >> b).max(1), (z >> c).max(1)];
                t.sort_unstable();
                // Mostly e ≤ D ≤ p.
                let (wcet, deadline, period) = if x % 16 == 0 {
                    (t[2], t[0], t[1])
                } else {
                    (t[0], t[1], t[2])
                };
                task(wcet, period, deadline)
            })
            .collect();
        // Slow convergence ends in a limit; a few sets are enough to wait for.
        for name in [
            "GFB",
            "BAK",
            "BCL",
            "LOAD",
            "FFDBF",
            "GDM-DENSITY",
            "DA",
            "WC",
            "PD2",
            "EDF-FM",
            "NPS-F",
            "C-NPS-F",
        ] {
            let _ = answer(name, &tasks, m);
        }
        let _ = devi_anderson::tardiness_bounds(&tasks, m);
        let _ = window_constrained::tardiness_bounds(&tasks, m, &[]);
        let _ = cache_aware::tardiness_bounds(&tasks, m, Duration::from_nanos(1));
        let _ = compliant_vector::response_bounds(&tasks, m);
    }
}
