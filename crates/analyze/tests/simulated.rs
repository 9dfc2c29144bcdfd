//! Every test against the simulator: no set that a hard test accepts misses a deadline, no bound is
//! ever exceeded.
//!
//! Periodic with phases and sporadic, on whole quanta and off them.
//! `WARMSET_RANDOM_SETS=1000000 cargo test --release -p warmset-analyze --test all simulated::` tries a
//! million sets.

use crate::played::Case;
use analyze::global::{gfp_rta, rta};
use analyze::partition::pack::Scratch;
use analyze::partition::{Acceptance, Fit, Order, partition};
use analyze::semi::{edf_fm, edf_wm, nps_f, processors};
use analyze::tardiness::{cache_aware, compliant_vector, devi_anderson};
use analyze::uniprocessor::fixed_priority::{self, Priority, Response};
use analyze::{Guarantee, registry};
use model::{Assignment, Duration, Timing};

fn count() -> u64 {
    let wanted = std::env::var("WARMSET_RANDOM_SETS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(300)
}

fn cases() -> impl Iterator<Item = Case> {
    (0..count()).map(Case::random)
}

fn accepts(case: &Case, test: &str) -> bool {
    (registry::find(test).unwrap().run)(case.timings(), case.m) == Ok(true)
}

#[test]
fn global_tests_accept_no_set_that_misses() {
    let mut accepted = [0, 0, 0];
    for case in cases() {
        for (policy, accepted) in ["g-edf", "g-fp", "g-fp:dm"].iter().zip(&mut accepted) {
            let test = registry::ALL
                .iter()
                .filter(|t| t.policy == *policy && t.guarantee == Guarantee::Hard)
                .find(|t| accepts(&case, t.name));
            if let Some(test) = test {
                case.assert_no_miss(test.name, policy, None);
                *accepted += 1;
            }
        }
        if let Ok(Some(bounds)) = rta::response_bounds(case.timings(), case.m) {
            case.assert_responses(&case.run("g-edf", None), &bounds, "RTA");
        }
        for (policy, priority) in [
            ("g-fp", Priority::Given),
            ("g-fp:dm", Priority::DeadlineMonotonic),
        ] {
            if let Ok(Some(bounds)) = gfp_rta::response_bounds(case.timings(), case.m, priority) {
                case.assert_responses(&case.run(policy, None), &bounds, policy);
            }
        }
    }
    assert!(accepted.iter().all(|n| *n > count() / 10), "{accepted:?}");
}

#[test]
fn partitioned_edf_accepts_no_set_that_misses() {
    let mut accepted = 0;
    for case in cases() {
        for (test, fit) in [
            ("PEDF-WFD", Fit::Worst),
            ("PEDF-FFD", Fit::First),
            ("PEDF-BFD", Fit::Best),
            ("PEDF-NFD", Fit::Next),
        ] {
            if !accepts(&case, test) {
                continue;
            }
            let sizes = vec![1; case.m as usize];
            let mut scratch = Scratch::new();
            let processor_of = scratch
                .pack(case.timings(), &sizes, Order::DecreasingUtilization, fit)
                .unwrap();
            case.assert_no_miss(test, "p-edf", Some(&case.partition(processor_of)));
            accepted += 1;
        }
    }
    assert!(accepted > count() / 4, "{accepted}");
}

#[test]
fn partitioned_fixed_priorities_keep_their_response_times() {
    let mut accepted = 0;
    for case in cases() {
        for (test, policy, priority) in [
            ("PRM-FFD", "p-rm", Priority::RateMonotonic),
            ("PDM-FFD", "p-fp:dm", Priority::DeadlineMonotonic),
        ] {
            if !accepts(&case, test) {
                continue;
            }
            let acceptance = Acceptance::FixedPriority(priority);
            let processor_of = partition(
                case.timings(),
                case.m,
                Order::DecreasingUtilization,
                Fit::First,
                acceptance,
            )
            .unwrap();
            let summary = case.run(policy, Some(&case.partition(&processor_of)));
            assert_eq!(summary.misses(), 0, "{test}: {case:?} {processor_of:?}");
            case.assert_responses(&summary, &responses(&case, &processor_of, priority), test);
            accepted += 1;
        }
    }
    assert!(accepted > count() / 4, "{accepted}");
}

/// The exact response time of every task on its processor.
fn responses(case: &Case, processor_of: &[u32], priority: Priority) -> Vec<Duration> {
    let mut bounds = vec![Duration::ZERO; processor_of.len()];
    for cpu in 0..case.m {
        let ids: Vec<usize> = (0..processor_of.len())
            .filter(|i| processor_of[*i] == cpu)
            .collect();
        let members: Vec<Timing> = ids.iter().map(|i| case.timings()[*i]).collect();
        let times = fixed_priority::response_times(&members, priority);
        for (i, time) in ids.iter().zip(times) {
            let Response::Within(time) = time else {
                panic!("the processor was accepted: {case:?}");
            };
            bounds[*i] = time;
        }
    }
    bounds
}

#[test]
fn pd2_accepts_no_set_that_misses() {
    let mut accepted = 0;
    // It promises for releases at the start of a quantum.
    for case in cases().filter(|c| c.whole && accepts(c, "PD2")) {
        case.assert_no_miss("PD2", "pd2", None);
        accepted += 1;
    }
    assert!(accepted > count() / 20, "{accepted}");
}

#[test]
fn semi_partitioned_tests_accept_no_set_that_misses() {
    let (mut slices, mut slots, mut clustered) = (0, 0, 0);
    for case in cases().chain((0..count()).map(Case::heavy)) {
        let cpus = processors(case.m);
        if accepts(&case, "EDF-WM") {
            let found =
                edf_wm::assign(case.timings(), &cpus, &edf_wm::Settings::default()).unwrap();
            slices += usize::from(found.tasks.iter().any(|s| s.len() > 1));
            case.assert_no_miss("EDF-WM", "edf-wm", Some(&Assignment::Slices(found)));
        }
        if accepts(&case, "NPS-F") {
            let found = nps_f::assign(
                case.timings(),
                std::slice::from_ref(&cpus),
                &nps_f::Settings::default(),
            );
            case.assert_no_miss("NPS-F", "nps-f", Some(&Assignment::Slots(found.unwrap())));
            slots += 1;
        }
        if accepts(&case, "C-NPS-F") {
            let clusters: Vec<_> = cpus.chunks(2).map(<[_]>::to_vec).collect();
            let found = nps_f::assign(case.timings(), &clusters, &nps_f::Settings::default());
            let found = Assignment::Slots(found.unwrap());
            case.assert_no_miss("C-NPS-F", "c-nps-f:size=2", Some(&found));
            clustered += 1;
        }
    }
    assert!(
        slices > 5 && slots > 50 && clustered > 50,
        "{slices} {slots} {clustered}"
    );
}

#[test]
fn tardiness_under_global_edf_stays_within_its_bounds() {
    let (mut bounded, mut closest) = (0, 0.0_f64);
    for case in cases() {
        let bounds = [
            devi_anderson::tardiness_bounds(case.timings(), case.m)
                .ok()
                .flatten(),
            compliant_vector::tardiness_bounds(case.timings(), case.m).unwrap(),
        ];
        if bounds.iter().all(Option::is_none) {
            continue;
        }
        let summary = case.run("g-edf", None);
        for (bounds, name) in bounds.iter().zip(["DA", "compliant vectors"]) {
            if let Some(bounds) = bounds {
                closest = closest.max(case.assert_tardiness(&summary, bounds, name));
                bounded += 1;
            }
        }
    }
    assert!(
        bounded > count() / 2 && closest > 0.0,
        "{bounded} {closest}"
    );
}

#[test]
fn tardiness_of_fixed_tasks_stays_within_the_bound_of_edf_fm() {
    let (mut bounded, mut migrating, mut reordered, mut closest) = (0, 0, 0, 0.0_f64);
    for case in cases().filter(Case::is_implicit) {
        for fill in [edf_fm::Fill::Full, edf_fm::Fill::Spread] {
            let Ok(turns) = edf_fm::assign(case.timings(), &processors(case.m), fill) else {
                continue;
            };
            let bounds = edf_fm::tardiness_bounds(case.timings(), &turns);
            migrating += usize::from(turns.tasks.iter().any(|t| t.is_migratory()));
            // In the order of the set processors only follow each other.
            reordered += usize::from(!turns.tasks.is_sorted_by_key(|t| t.first));
            let summary = case.run("edf-fm", Some(&Assignment::Turns(turns)));
            closest = closest.max(case.assert_tardiness(&summary, &bounds, "EDF-FM"));
            bounded += 1;
        }
    }
    assert!(
        bounded > 100 && migrating > 20 && reordered > 2 && closest > 0.1,
        "{bounded} {migrating} {reordered} {closest}"
    );
}

#[test]
fn tardiness_under_the_cache_aware_scheduler_stays_within_its_bound() {
    let (mut bounded, mut tardy, mut closest) = (0, 0, 0.0_f64);
    for case in cases().filter(Case::is_implicit) {
        let bounds =
            cache_aware::tardiness_bounds(case.timings(), case.m, cache_aware::QUANTUM).unwrap();
        assert_eq!(bounds.is_some(), accepts(&case, "WC"));
        let Some(bounds) = bounds else { continue };
        for cache in ["256KiB", "1MiB", "64MiB"] {
            let summary = case.run(&format!("ca-edf:cache={cache}"), None);
            closest = closest.max(case.assert_tardiness(&summary, &bounds, "WC"));
            tardy += usize::from(summary.misses() > 0);
            bounded += 1;
        }
    }
    assert!(
        bounded > 100 && tardy > 20 && closest > 0.1,
        "{bounded} {tardy} {closest}"
    );
}
