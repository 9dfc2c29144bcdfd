//! What an answer says beside yes or no: bounds, the tests that were asked, where it could not
//! judge.

use super::*;
use analyze::policies::PolicyVerdict;

/// Response times of 002 Fig. 2.2 under RM: 1, 3 and, with T3 too late, none; under EDF all meet
/// their deadlines.
#[test]
fn every_task_has_its_bound() {
    let task = |e: u64, p: u64| Timing::implicit(ms(e), ms(p));
    let set = TaskSet::from_timings(vec![task(1, 4), task(2, 6), task(2, 12)]).unwrap();
    let one = Platform::symmetric(1);
    let policies = read_list("p-rm,p-edf").unwrap();
    let judged = judge(&set, &one, &policies, Guarantee::Hard, &Costs::NONE).unwrap();
    for v in &judged.policies {
        let responses: Vec<u64> = v
            .tasks
            .iter()
            .map(|t| t.response.nanos() / 1_000_000)
            .collect();
        assert!(v.tasks.iter().all(|t| t.exact));
        // RM: 1; 2 + 1; 2 + 2 · 1 + 2 = 6. EDF may let the first two wait for one another.
        if v.policy == "p-rm" {
            assert_eq!(responses, [1, 3, 6]);
        } else {
            assert!(
                responses.iter().zip([4, 6, 12]).all(|(r, d)| *r <= d),
                "{responses:?}"
            );
        }
    }
    // Fig. 2.6 of 002 on two processors: tardy under G-EDF, by a bounded time.
    let tardy = self::set(&[(2, 3), (3, 8), (1, 7), (5, 7)]);
    let two = Platform::symmetric(2);
    let judged = judge(
        &tardy,
        &two,
        &[spec("g-edf")],
        Guarantee::Soft,
        &Costs::NONE,
    )
    .unwrap();
    let bounds = &judged.policies[0].tasks;
    assert_eq!(bounds.len(), 4);
    assert!(bounds.iter().any(|t| !t.tardiness.is_zero()));
}

/// Constrained deadlines: together they pack by utilization and miss; a test at each placement
/// keeps them apart.
#[test]
fn a_test_at_each_placement_holds_what_packing_by_utilization_does_not() {
    let task = |e: u64, p: u64, d: u64| Timing {
        deadline: ms(d),
        ..Timing::implicit(ms(e), ms(p))
    };
    let set = TaskSet::from_timings(vec![
        task(1, 10, 1),
        task(1, 10, 10),
        task(1, 10, 10),
        task(1, 10, 1),
        task(1, 10, 1),
    ])
    .unwrap();
    let platform = Platform::symmetric(3);
    let judged = judge(
        &set,
        &platform,
        &[spec("p-edf")],
        Guarantee::Hard,
        &Costs::NONE,
    )
    .unwrap();
    let v = &judged.policies[0];
    assert!(v.schedulable, "{}", v.reason);
    let by_utilization = &v.tests[0];
    assert_eq!(
        (by_utilization.test.as_str(), by_utilization.says),
        ("worst fit", Answer::No)
    );
    assert!(
        v.heuristic
            .as_deref()
            .unwrap()
            .ends_with("tested at each placement"),
        "{:?}",
        v.heuristic
    );
}

#[test]
fn every_test_of_a_policy_is_asked() {
    let set = set(&[(1, 10); 6]);
    let platform = Platform::symmetric(4);
    let policies = read_list("g-edf,g-fp:dm,c-edf:size=2").unwrap();
    let judged = judge(&set, &platform, &policies, Guarantee::Hard, &Costs::NONE).unwrap();
    for v in &judged.policies {
        assert!(v.schedulable, "{}", v.reason);
        let names: Vec<&str> = v.tests.iter().map(|t| t.test.as_str()).collect();
        match v.policy.as_str() {
            "g-edf" => assert_eq!(
                names,
                ["GFB", "BAK", "BAR", "BCL", "BCLI", "LOAD", "FFDBF", "RTA"]
            ),
            "g-fp:dm" => assert!(names.contains(&"GDM-RTA"), "{names:?}"),
            _ => assert!(
                names.contains(&"worst fit") && names.contains(&"GFB"),
                "{names:?}"
            ),
        }
    }
}

#[test]
fn whoever_watches_may_stop_it() {
    struct Impatient;
    impl model::watch::Watch for Impatient {
        fn begin(&self, _: &str, total: u64) {
            assert_eq!(total % 2, 0);
        }
        fn advance(&self, _: u64) {}
        fn note(&self, _: &str) {}
        fn stopped(&self) -> bool {
            true
        }
    }
    let policies = read_list("p-edf,g-edf").unwrap();
    let platform = Platform::symmetric(2);
    let stopped = analyze::policies::judge(
        &set(&[(1, 10)]),
        &platform,
        &policies,
        Guarantee::Hard,
        &Costs::NONE,
        &Impatient,
    );
    assert!(
        stopped
            .unwrap_err()
            .to_string()
            .starts_with("stopped before every policy was judged")
    );
}

/// The analysis of response times is for smaller clusters: here the test that accepted the cluster
/// says that deadlines are met.
#[test]
fn the_test_that_decided_stands_beside_a_bound() {
    let set = TaskSet::from_timings(vec![Timing::implicit(ms(1), ms(400)); 201]).unwrap();
    let judged = judge(
        &set,
        &Platform::symmetric(2),
        &[spec("g-edf")],
        Guarantee::Hard,
        &Costs::NONE,
    )
    .unwrap();
    let v = &judged.policies[0];
    assert_eq!((v.schedulable, v.decided_by), (true, "GFB"));
    assert!(v.tasks.iter().all(|t| t.by == "GFB"), "{:?}", v.tasks[0]);
}

/// PD² decides at multiples of a millisecond: of a period between two of them no release is at a
/// boundary for ever.
#[test]
fn pd2_is_not_judged_for_periods_that_are_no_whole_quanta() {
    let policy = read_list("pd2").unwrap();
    for (period_us, judged_at_all) in [(10_000, true), (10_500, false)] {
        let timing = Timing::implicit(ms(1), Duration::from_micros(period_us));
        let set = TaskSet::from_timings(vec![timing]).unwrap();
        let judged = judge(
            &set,
            &Platform::symmetric(1),
            &policy,
            Guarantee::Hard,
            &Costs::NONE,
        )
        .unwrap();
        let v = &judged.policies[0];
        assert_eq!(v.schedulable, judged_at_all, "{}", v.reason);
        assert!(
            judged_at_all || v.reason.contains("whole quanta of 1ms"),
            "{}",
            v.reason
        );
    }
}

/// What is said of a set on two processors without overheads.
fn on_two(set: &TaskSet, name: &str, guarantee: Guarantee) -> PolicyVerdict {
    let two = Platform::symmetric(2);
    let judged = judge(set, &two, &[spec(name)], guarantee, &Costs::NONE);
    judged.unwrap().policies.remove(0)
}

/// 002 §4.1: a light system spread evenly leaves time on every processor; filled one after the
/// other, the first has none.
#[test]
fn edf_fm_spreads_a_set_where_that_is_asked_for() {
    let set = set(&[(4, 10), (4, 10), (4, 10), (4, 10)]);
    let busiest = |name: &str| {
        let verdict = on_two(&set, name, Guarantee::Soft);
        assert!(verdict.schedulable, "{name}");
        let Some(model::Assignment::Turns(turns)) = verdict.assignment else {
            panic!("{name} has no turns");
        };
        let tenths = |cpu| -> u64 {
            let of = |t: &model::assignment::Turn| {
                let first = 4 * t.part / t.whole;
                u64::from(t.first == cpu) * first + u64::from(t.second == cpu) * (4 - first)
            };
            turns.tasks.iter().map(of).sum()
        };
        turns.cpus.iter().map(|cpu| tenths(*cpu)).max().unwrap()
    };
    assert_eq!(busiest("edf-fm"), 10);
    assert_eq!(busiest("edf-fm:fill=spread"), 8);
}

/// Two processors each have four tenths left for a task of six tenths.
#[test]
fn edf_wm_cuts_no_slice_shorter_than_it_is_told() {
    let set = set(&[(6, 10), (6, 10), (6, 10)]);
    let slices = |name: &str| -> Option<Vec<u64>> {
        let verdict = on_two(&set, name, Guarantee::Hard);
        let Some(model::Assignment::Slices(slices)) = verdict.assignment else {
            assert!(!verdict.schedulable, "{name}");
            return None;
        };
        let cut = slices.tasks.iter().find(|parts| parts.len() > 1).unwrap();
        Some(cut.iter().map(|slice| slice.budget.nanos()).collect())
    };
    let shortest = |name: &str| slices(name).map(|cut| cut.into_iter().min().unwrap());
    assert!(shortest("edf-wm").unwrap() < 3_000_000);
    assert_eq!(shortest("edf-wm:slice=3ms"), Some(3_000_000));
    assert_eq!(shortest("edf-wm:slice=4500us"), None);
}
