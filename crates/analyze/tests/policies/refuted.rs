//! When a no is proven, and when nothing is shown.

use super::*;
use analyze::policies::read_list;

/// Is the guarantee shown, and is it refuted?
fn of(
    set: &TaskSet,
    policy: &str,
    processors: u32,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> (bool, bool) {
    let platform = Platform::symmetric(processors);
    let policies = read_list(policy).unwrap();
    let verdict = &judge(set, &platform, &policies, guarantee, costs)
        .unwrap()
        .policies[0];
    (verdict.schedulable, verdict.refuted)
}

fn timing(wcet: Duration, period: Duration, deadline: Duration) -> Timing {
    Timing {
        deadline,
        ..Timing::implicit(wcet, period)
    }
}

const SHOWN: (bool, bool) = (true, false);
const NOT_SHOWN: (bool, bool) = (false, false);
const REFUTED: (bool, bool) = (false, true);

#[test]
fn more_work_than_time_is_refuted_under_every_policy() {
    let three = set(&[(9, 10), (9, 10), (9, 10)]);
    // Within its deadline alone, but more than a processor.
    let long = TaskSet::from_timings(vec![timing(ms(11), ms(10), ms(30))]).unwrap();
    for policy in ["g-edf", "p-edf", "p-fp", "g-fp", "edf-wm", "nps-f", "pd2"] {
        assert_eq!(
            of(&three, policy, 2, Guarantee::Hard, &Costs::NONE),
            REFUTED,
            "{policy}"
        );
    }
    // The others want deadlines equal to periods, or within them.
    for policy in ["g-edf", "p-edf", "p-fp", "edf-wm"] {
        assert_eq!(
            of(&long, policy, 2, Guarantee::Hard, &Costs::NONE),
            REFUTED,
            "{policy}"
        );
    }
    for policy in ["g-edf", "p-edf", "edf-fm"] {
        assert_eq!(
            of(&three, policy, 2, Guarantee::Soft, &Costs::NONE),
            REFUTED,
            "{policy}"
        );
    }
    for policy in ["g-edf", "p-edf"] {
        assert_eq!(
            of(&long, policy, 2, Guarantee::Soft, &Costs::NONE),
            REFUTED,
            "{policy}"
        );
    }
}

/// A job that needs more than its deadline is late under every policy; its tardiness may be
/// bounded.
#[test]
fn a_wcet_beyond_its_deadline_is_refuted_for_hard_guarantees_alone() {
    let set = TaskSet::to_judge(vec![timing(ms(5), ms(10), ms(4))]).unwrap();
    let hard = of(&set, "g-edf", 2, Guarantee::Hard, &Costs::NONE);
    assert_eq!(hard, REFUTED);
    assert!(!of(&set, "g-edf", 2, Guarantee::Soft, &Costs::NONE).1);
}

/// Released together one of them is late; the second one never is released with the first.
#[test]
fn phases_that_keep_releases_apart_are_no_proof_against_the_set() {
    let pair = [timing(ms(3), ms(10), ms(3)), timing(ms(3), ms(10), ms(3))];
    let with = |phase: u64| {
        let details = [("a", 0), ("b", phase)].map(|(name, phase)| Details {
            phase: ms(phase),
            ..Details::named(name)
        });
        TaskSet::new(pair.into_iter().zip(details).collect()).unwrap()
    };
    assert_eq!(
        of(&with(0), "p-edf", 1, Guarantee::Hard, &Costs::NONE),
        REFUTED
    );
    assert_eq!(
        of(&with(5), "p-edf", 1, Guarantee::Hard, &Costs::NONE),
        NOT_SHOWN
    );
}

/// Sufficient tests and packings refuse these, and their tests say nothing else.
#[test]
fn what_a_sufficient_test_or_a_packing_refuses_is_not_refuted() {
    // Dhall's effect: long work beside short tasks, of utilization 1.2 on two processors.
    let dhall = set(&[(1, 10), (1, 10), (10, 10)]);
    assert_eq!(
        of(&dhall, "g-edf", 2, Guarantee::Hard, &Costs::NONE),
        NOT_SHOWN
    );
    // Three tasks of 2/3 on two processors: none goes whole to either.
    let thirds = set(&[(2, 3), (2, 3), (2, 3)]);
    for policy in ["p-edf", "p-fp", "g-edf"] {
        assert_eq!(
            of(&thirds, policy, 2, Guarantee::Hard, &Costs::NONE),
            NOT_SHOWN,
            "{policy}"
        );
    }
}

/// On one processor the tests are exact; a charge is an upper bound, and proves nothing.
#[test]
fn on_one_processor_a_refusal_is_a_proof_if_no_overhead_made_it() {
    let pair = TaskSet::from_timings(vec![
        timing(ms(3), ms(10), ms(4)),
        timing(ms(3), ms(10), ms(5)),
    ])
    .unwrap();
    for policy in ["p-edf", "g-edf", "p-fp:dm"] {
        assert_eq!(
            of(&pair, policy, 1, Guarantee::Hard, &Costs::NONE),
            REFUTED,
            "{policy}"
        );
    }
    // 1/2 + 2/5 under rate-monotonic priorities: 002 §2.2.1.
    let rates = set(&[(2, 4), (5, 10)]);
    assert_eq!(of(&rates, "p-edf", 1, Guarantee::Hard, &Costs::NONE), SHOWN);
    let full = set(&[(5, 10), (7, 15)]);
    assert_eq!(of(&full, "p-fp", 1, Guarantee::Hard, &Costs::NONE), REFUTED);
    assert_eq!(of(&full, "p-edf", 1, Guarantee::Hard, &Costs::NONE), SHOWN);
    assert_eq!(
        of(&full, "p-edf", 1, Guarantee::Hard, &fixed(ms(2))),
        NOT_SHOWN
    );
}
