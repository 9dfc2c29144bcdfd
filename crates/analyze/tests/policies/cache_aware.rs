//! `ca-edf` judged: the bound of `WC`, what it is charged, and that it is asked for bounded
//! tardiness alone.

use super::{costly, fixed, judge, ms, set};
use analyze::Guarantee;
use analyze::policies::{Costs, read_list, suggested};
use model::{Duration, Platform, TaskSet, Timing};

/// `WC` (docs/tardiness.md): the set of 003, Fig. 2, and one whose quanta lose 100 us of cache
/// delay, by either rule.
#[test]
fn the_cache_aware_scheduler_bounds_tardiness_and_promises_no_more() {
    let policy = read_list("ca-edf").unwrap();
    let two = Platform::symmetric(2);
    // Fig. 2, each job a tenth of a quantum short of whole quanta: a delay that fills them is the
    // largest, and so is a growth to 10/9.
    let task = |us: u64, p: u64| Timing::implicit(Duration::from_micros(us), ms(p));
    let figure = [(900, 2), (900, 4), (900, 4), (1_900, 8), (1_900, 8)];
    let figure = TaskSet::from_timings(figure.map(|(e, p)| task(e, p)).to_vec()).unwrap();
    let soft = judge(&figure, &two, &policy, Guarantee::Soft, &Costs::NONE).unwrap();
    let v = &soft.policies[0];
    assert_eq!((v.schedulable, v.decided_by), (true, "WC"), "{}", v.reason);
    assert!(
        v.reason.contains("tardiness is bounded, by 10ms"),
        "{}",
        v.reason
    );
    assert!(
        v.tasks
            .iter()
            .all(|t| t.tardiness == ms(10) && t.by == "WC" && !t.exact)
    );
    let margin = v.largest_cpmd.unwrap();
    assert_eq!(
        (margin.cpmd, margin.exact),
        (Duration::from_micros(100), true)
    );
    let growth = v.growth.unwrap();
    assert_eq!((growth.thousandths, growth.exact), (1_111, true));

    let hard = judge(&figure, &two, &policy, Guarantee::Hard, &Costs::NONE).unwrap();
    let v = &hard.policies[0];
    assert_eq!((v.schedulable, v.decided_by), (false, "not judged"));
    assert!(
        v.reason
            .contains("ca-edf bounds tardiness, but does not promise"),
        "{}",
        v.reason
    );
    for (guarantee, m, asked) in [
        (Guarantee::Soft, 2, true),
        (Guarantee::Hard, 2, false),
        (Guarantee::Soft, 1, false),
    ] {
        let all = suggested(&Platform::symmetric(m), guarantee).unwrap();
        assert_eq!(all.contains(&policy[0]), asked);
    }

    // Two quanta of five become three, with a delay in each as by 002 with all of a quantum's
    // overheads: x = (3 + 6)/(2 − 3/5) = 45/7, (3 + 27/7 + 6)/2 is 7 quanta, rounded up; 3 and one
    // more. Without overheads (2 + 7/4 + 5)/2, 5 quanta, 2 and one.
    let set = set(&[(2, 5); 3]);
    let profile = costly("xeon-l7455", 5);
    let delay = fixed(Duration::from_micros(100));
    let all_overheads = Costs {
        profile: Some(&profile),
        ..delay
    };
    for (costs, bound) in [(Costs::NONE, 8), (delay, 11), (all_overheads, 11)] {
        let judged = judge(&set, &two, &policy, Guarantee::Soft, &costs).unwrap();
        let v = &judged.policies[0];
        assert!(v.schedulable && v.cpmd_covered, "{}", v.reason);
        assert!(
            v.tasks.iter().all(|t| t.tardiness == ms(bound)),
            "{:?}",
            v.tasks
        );
    }
}
