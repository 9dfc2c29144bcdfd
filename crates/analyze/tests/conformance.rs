//! Agreement with an established library, SchedCAT (revision 86211bc), on 296 task sets in integer
//! microseconds.
//!
//! `data/gedf_verdicts.jsonl` holds its verdicts and bounds; the sets were made for the purpose.

use analyze::registry;
use model::Duration;
use model::taskfile::from_batch_line;
use serde_json::Value;

const VERDICTS: &str = include_str!("data/gedf_verdicts.jsonl");

/// Every verdict of the library for a test that is registered here, and none that differs: those of
/// BCLI and RTA are for releases in whole microseconds.
#[test]
fn verdicts_agree() {
    let (mut compared, mut different) = (0, Vec::new());
    for line in VERDICTS.lines() {
        let theirs: Value = serde_json::from_str(line).unwrap();
        let set = from_batch_line(line).unwrap();
        for (name, verdict) in theirs["verdicts"].as_object().unwrap() {
            let Some(test) = registry::ALL.iter().find(|t| t.name == name) else {
                continue;
            };
            let ours = test.decide_on_grid(set.set.timings(), set.m, Duration::from_micros(1));
            compared += 1;
            if ours != Ok(verdict.as_bool().unwrap()) {
                different.push(format!(
                    "{name} of set {}: {ours:?}, SchedCAT {verdict}",
                    set.id
                ));
            }
        }
    }
    assert!(
        different.is_empty(),
        "{} differ:\n{}",
        different.len(),
        different.join("\n")
    );
    assert!(compared >= 8 * 296, "{compared}");
}

/// A yes for releases at any time is one for releases on a grid.
#[test]
fn no_test_accepts_less_on_a_grid() {
    let mut fewer = 0;
    for line in VERDICTS.lines() {
        let set = from_batch_line(line).unwrap();
        for test in registry::ALL.iter().filter(|t| t.on_grid.is_some()) {
            let anywhere = (test.run)(set.set.timings(), set.m);
            let on_grid = test.decide_on_grid(set.set.timings(), set.m, Duration::from_micros(1));
            assert!(
                anywhere != Ok(true) || on_grid == Ok(true),
                "{} of {}",
                test.name,
                set.id
            );
            fewer += u32::from(anywhere != on_grid);
        }
    }
    println!("{fewer} verdicts differ");
}

/// No hard test for global EDF accepts a set that misses a deadline in the library's simulation.
#[test]
fn no_hard_test_accepts_a_set_that_misses() {
    let mut missing = 0;
    for line in VERDICTS.lines() {
        let theirs: Value = serde_json::from_str(line).unwrap();
        if theirs["gedf_sync_sim"]["miss"] != true {
            continue;
        }
        missing += 1;
        let set = from_batch_line(line).unwrap();
        for test in registry::ALL {
            if test.policy == "g-edf" && test.guarantee == analyze::Guarantee::Hard {
                let (tasks, micro) = (set.set.timings(), Duration::from_micros(1));
                for says in [
                    (test.run)(tasks, set.m),
                    test.decide_on_grid(tasks, set.m, micro),
                ] {
                    assert_ne!(says, Ok(true), "{} of {}", test.name, set.id);
                }
            }
        }
    }
    assert!(missing > 0);
}

/// The tardiness bound of Devi and Anderson, rounded up to whole microseconds as theirs.
#[test]
fn bounds_of_devi_and_anderson_agree() {
    let mut compared = 0;
    for line in VERDICTS.lines() {
        let theirs: Value = serde_json::from_str(line).unwrap();
        let Some(theirs) = theirs["tardiness_bound_us"]["DA"].as_array() else {
            continue;
        };
        let set = from_batch_line(line).unwrap();
        let ours = analyze::tardiness::devi_anderson::tardiness_bounds(set.set.timings(), set.m)
            .unwrap()
            .unwrap();
        let ours: Vec<u64> = ours.iter().map(|t| t.nanos().div_ceil(1_000)).collect();
        let theirs: Vec<u64> = theirs.iter().map(|t| t.as_u64().unwrap()).collect();
        assert_eq!(ours, theirs, "set {}", set.id);
        compared += 1;
    }
    assert_eq!(compared, 161);
}

/// The response-time bound Y_i + e_i + x_i of compliant vectors, rounded up to whole microseconds
/// as theirs.
///
/// Where ⌈x_i⌉ is negative the library drops its sign (it reads an integer of any sign by
/// `mpz_get_ui`): its bound is then too long by 2·|⌈x_i⌉|, and the pure Python version of the same
/// library agrees with the bound here.
#[test]
fn bounds_of_compliant_vectors_agree_but_for_a_lost_sign() {
    let (mut equal, mut signs) = (0, 0);
    for line in VERDICTS.lines() {
        let theirs: Value = serde_json::from_str(line).unwrap();
        let set = from_batch_line(line).unwrap();
        let tasks = set.set.timings();
        let ours = analyze::tardiness::compliant_vector::response_bounds(tasks, set.m)
            .unwrap()
            .unwrap();
        let theirs = theirs["tardiness_bound_us"]["GEDF_EA_exact_response"]
            .as_array()
            .unwrap();
        let shortest = tasks.iter().map(|t| t.deadline).min().unwrap();
        for ((t, ours), theirs) in tasks.iter().zip(ours).zip(theirs) {
            let fixed = ((t.deadline.nanos() - shortest.nanos() + t.wcet.nanos()) / 1_000) as i64;
            let ours = ours.nanos().div_ceil(1_000) as i64 - fixed;
            let theirs = theirs.as_i64().unwrap() - fixed;
            if ours == theirs {
                equal += 1;
            } else {
                assert!(
                    ours < 0 && theirs == -ours,
                    "set {}: {ours} {theirs}",
                    set.id
                );
                signs += 1;
            }
        }
    }
    assert!(equal > 10 * signs && signs > 0, "{equal} {signs}");
}
