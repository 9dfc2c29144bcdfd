//! The catalog of policies is complete: every row has what the workspace reads of it, and the
//! documents show it.

use analyze::policies::{self, Accounting, Costs, suggested, table};
use analyze::{Guarantee, registry};
use model::watch::Silent;
use model::{Delay, Duration, Platform, Profile, Resumption, TaskSet, Timing};
use policy::Spec;
use policy::catalog::{self, Tests};
use testing::random::Random;
use testing::sets::task_ms;

#[test]
fn every_test_that_a_row_names_is_registered_with_its_guarantee() {
    for info in catalog::all() {
        if let Tests::Named(name) = info.hard {
            let test = registry::find(name).unwrap();
            assert_eq!(
                (test.name, test.guarantee),
                (name, Guarantee::Hard),
                "{}",
                info.name
            );
        }
        if let Tests::Named(name) = info.soft {
            assert_eq!(registry::find(name).unwrap().name, name, "{}", info.name);
        }
    }
}

#[test]
fn every_policy_that_tests_are_registered_for_is_in_the_catalog() {
    for test in registry::ALL {
        assert!(
            test.policy.parse::<Spec>().is_ok(),
            "{}: {}",
            test.name,
            test.policy
        );
    }
}

#[test]
fn the_checker_has_a_rule_for_every_policy() {
    for info in catalog::all() {
        assert!(
            trace::check::has_rule(info.name),
            "{}: no rule in check/policies.rs",
            info.name
        );
    }
}

#[test]
fn every_word_of_a_row_is_one_of_its_policy() {
    for info in catalog::all() {
        assert!(
            !info.summary.is_empty() && !info.tried.is_empty(),
            "{}",
            info.name
        );
        for word in info.tried.iter().chain([&info.live_word()]) {
            let spec: Spec = word.parse().unwrap();
            assert_eq!(spec.info(), *info);
            assert!(
                spec.needs().is_ok() && spec.order().is_ok() && spec.canonical().is_ok(),
                "{word}"
            );
        }
        for word in info.unjudged {
            assert!(info.keys.contains(word), "{}: {word}", info.name);
        }
        for word in info.suggested {
            let spec: Spec = word.replace('#', "2").parse().unwrap();
            assert_eq!(spec.canonical().unwrap(), spec, "{word}");
        }
    }
}

/// A row that names tests is judged by them: no policy falls through.
#[test]
fn every_policy_with_tests_is_judged() {
    let task = |e, p| Timing::implicit(Duration::from_millis(e), Duration::from_millis(p));
    let set = TaskSet::from_timings(vec![task(1, 10), task(2, 20), task(3, 30)]).unwrap();
    let platform = Platform::symmetric(2);
    for word in catalog::tried() {
        let spec: Spec = word.parse().unwrap();
        if spec.unjudged().is_some() {
            continue;
        }
        let rows = [
            (Guarantee::Hard, spec.info().hard),
            (Guarantee::Soft, spec.info().soft),
        ];
        for (guarantee, tests) in rows {
            let only = std::slice::from_ref(&spec);
            let judged =
                policies::judge(&set, &platform, only, guarantee, &Costs::NONE, &Silent).unwrap();
            let verdict = &judged.policies[0];
            assert_eq!(
                verdict.schedulable,
                tests != Tests::None,
                "{word} {guarantee}: {}",
                verdict.reason
            );
            let decided =
                policies::decide(&set, &platform, &spec, guarantee, &Costs::NONE).unwrap();
            assert_eq!(
                decided,
                (tests != Tests::None).then_some(true),
                "{word} {guarantee}"
            );
        }
    }
}

/// Each way of accounting is the same code with other prices: where nothing costs anything all say
/// the same.
#[test]
fn without_costs_every_accounting_gives_the_same_verdict() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let platform = Platform::symmetric(2);
    let mut held = [0, 0];
    for _ in 0..20 {
        let count = 1 + random.below(6);
        let tasks = (0..count).map(|_| {
            let period = 10 * (1 + random.below(6));
            let wcet = 1 + random.below(period * 6 / 10);
            let deadline = if random.below(2) == 0 {
                period
            } else {
                wcet + random.below(period - wcet + 1)
            };
            task_ms(wcet, period, deadline)
        });
        let set = TaskSet::from_timings(tasks.collect()).unwrap();
        for guarantee in [Guarantee::Hard, Guarantee::Soft] {
            for spec in suggested(&platform, guarantee).unwrap() {
                let verdict = |accounting| {
                    let costs = Costs {
                        accounting,
                        ..Costs::NONE
                    };
                    let only = std::slice::from_ref(&spec);
                    let judged =
                        policies::judge(&set, &platform, only, guarantee, &costs, &Silent).unwrap();
                    let v = judged.policies.into_iter().next().unwrap();
                    (v.schedulable, v.decided_by, v.assignment)
                };
                let usual = verdict(None);
                held[usize::from(usual.0)] += 1;
                for accounting in Accounting::ALL {
                    assert_eq!(
                        verdict(Some(accounting)),
                        usual,
                        "{spec} {guarantee} {accounting}: {set:?}"
                    );
                }
            }
        }
    }
    assert!(held.iter().all(|count| *count > 30), "{held:?}");
}

/// A partitioned task never migrates: whatever migrations cost, it is charged the same.
#[test]
fn who_never_migrates_never_pays_a_migration() {
    let task = |e, p| Timing::implicit(Duration::from_millis(e), Duration::from_millis(p));
    let details = |name: &str| model::Details {
        wss: Some(model::Bytes::from_kib(64)),
        ..model::Details::named(name.to_owned())
    };
    let tasks = vec![
        (task(2, 10), details("a")),
        (task(3, 20), details("b")),
        (task(4, 40), details("c")),
    ];
    let set = TaskSet::new(tasks).unwrap();
    let platform = Platform::builtin("xeon-l7455").unwrap();
    let charged = |times: i64, accounting| {
        let mut profile = Profile::builtin("xeon-l7455").unwrap();
        let migrations = profile
            .cpmd
            .iter_mut()
            .filter(|c| c.resumption != Resumption::Preemption);
        for point in migrations.flat_map(|curve| &mut curve.points) {
            let longer = |delay: Delay| Delay::from_nanos(delay.nanos() * times);
            (point.average, point.maximum) = (point.average.map(longer), point.maximum.map(longer));
        }
        let costs = Costs {
            profile: Some(&profile),
            accounting: Some(accounting),
            ..Costs::NONE
        };
        let only = ["p-edf".parse().unwrap()];
        let judged =
            policies::judge(&set, &platform, &only, Guarantee::Hard, &costs, &Silent).unwrap();
        judged.policies[0].inflated_utilization
    };
    for accounting in Accounting::ALL {
        assert_eq!(
            charged(1, accounting),
            charged(20, accounting),
            "{accounting}"
        );
    }
}

#[test]
fn the_guide_has_the_table_of_the_catalog() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/policies.md");
    let guide = std::fs::read_to_string(path).unwrap();
    let (begin, end) = (
        "<!-- catalog: made by `WARMSET_WRITE=1 cargo test -p warmset-analyze --test all \
         catalog::` -->\n",
        "<!-- end -->",
    );
    let (before, rest) = guide
        .split_once(begin)
        .expect("the table has a mark where it begins");
    let (shown, after) = rest.split_once(end).expect("and one where it ends");
    let table = table::markdown();
    if shown != table && std::env::var_os("WARMSET_WRITE").is_some() {
        std::fs::write(path, format!("{before}{begin}{table}{end}{after}")).unwrap();
        return;
    }
    assert_eq!(
        shown, table,
        "docs/policies.md is not of this catalog: write it anew with WARMSET_WRITE=1"
    );
}
