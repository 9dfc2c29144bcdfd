//! A profile of cache delays alone: each task pays for what it causes and suffers where it is, and
//! for nothing else.

use super::{fixed, judge, ms};
use analyze::Guarantee;
use analyze::policies::{Costs, PolicyVerdict, Rule, read_list};
use analyze::uniprocessor::edf;
use model::watch::Silent;
use model::{Bytes, Delay, Details, Duration, Load, Platform, Profile, Statistic, TaskSet, Timing};
use proptest::prelude::*;
use simulate::Scenario;

fn task(name: &str, timing: Timing, wss: Bytes) -> (Timing, Details) {
    let details = Details {
        wss: Some(wss),
        ..Details::named(name)
    };
    (timing, details)
}

fn xeon() -> Profile {
    Profile::builtin("xeon-l7455").unwrap()
}

fn charge(profile: &Profile) -> Costs<'_> {
    Costs {
        profile: Some(profile),
        ..Costs::NONE
    }
}

/// The profile with every cache delay the same.
fn uniform(delay: Duration) -> Profile {
    let mut profile = xeon();
    for point in profile.cpmd.iter_mut().flat_map(|curve| &mut curve.points) {
        point.average = Some(Delay::from(delay));
        point.maximum = Some(Delay::from(delay));
        point.percentiles.clear();
        point.deviation = None;
        point.average_interval = None;
    }
    profile
}

fn only(
    set: &TaskSet,
    platform: &Platform,
    policy: &str,
    guarantee: Guarantee,
    costs: &Costs<'_>,
) -> PolicyVerdict {
    let policies = read_list(policy).unwrap();
    let judged = judge(set, platform, &policies, guarantee, costs).unwrap();
    judged.policies.into_iter().next().unwrap()
}

/// How many jobs miss, and how late one is at most, when the profile that the verdict was given is
/// simulated.
fn simulated(set: &TaskSet, platform: &Platform, statistic: Statistic) -> (u64, Duration) {
    let profile = xeon();
    let costs =
        simulate::Costs::from_profile(&profile, "p-edf", set, platform, Load::Load, statistic)
            .unwrap();
    let assignment = model::Assignment::Clustered(model::assignment::Clustered {
        clusters: vec![platform.usable()],
        cluster_of: vec![0; set.len()],
    });
    let setup = policy::Setup {
        set,
        platform,
        assignment: Some(&assignment),
        quantum: ms(1),
    };
    let plan = "p-edf"
        .parse::<policy::Spec>()
        .unwrap()
        .plan(&setup)
        .unwrap();
    let scenario = Scenario {
        horizon: ms(1_000),
        ..Scenario::default()
    };
    let (summary, ()) =
        simulate::simulate(plan, set, platform, &scenario, Some(&costs), &Silent, ()).unwrap();
    let late = summary.tasks.iter().map(|t| t.tardiness_max).max();
    (summary.misses(), late.unwrap_or_default())
}

/// One processor: a short task with a small working set preempts a long one with a large one, and
/// pays for it.
fn small_and_big(small: Duration, big: Duration) -> TaskSet {
    TaskSet::new(vec![
        task("small", Timing::implicit(small, ms(5)), Bytes::from_kib(4)),
        task(
            "big",
            Timing::implicit(big, ms(100)),
            Bytes::from_kib(1 << 10),
        ),
    ])
    .unwrap()
}

#[test]
fn a_small_task_pays_for_the_large_one_that_it_preempts() {
    let (platform, profile) = (Platform::symmetric(1), xeon());
    for (guarantee, statistic, big, seen) in [
        (Guarantee::Hard, Statistic::Maximum, ms(60), (100, ms(50))),
        (
            Guarantee::Soft,
            Statistic::Average,
            ms(76),
            (0, Duration::ZERO),
        ),
    ] {
        let set = small_and_big(ms(1), big);
        let costs = charge(&profile);
        let delay = |kib| {
            let ways = [model::Resumption::Preemption];
            let read = profile.worst_cpmd(&ways, Load::Load, Bytes::from_kib(kib), statistic);
            read.unwrap().value.cost()
        };
        // Each with its own delay the two would fit, and do not.
        let own: Vec<Timing> = set
            .timings()
            .iter()
            .zip([4, 1 << 10])
            .map(|(t, kib)| t.inflated(delay(kib)))
            .collect();
        assert_eq!(edf::decide(&own), Ok(true));
        let (misses, late) = simulated(&set, &platform, statistic);
        assert!(
            misses > seen.0 && late > seen.1,
            "{guarantee:?}: {misses} {late}"
        );
        for policy in ["p-edf", "p-rm", "p-fp:dm"] {
            let verdict = only(&set, &platform, policy, guarantee, &costs);
            assert!(
                !verdict.schedulable,
                "{policy} {guarantee:?}: {}",
                verdict.reason
            );
        }
        // Cut until it is only just accepted, it holds.
        let verdict = only(&set, &platform, "p-edf", guarantee, &costs);
        let cut = verdict.growth.unwrap().thousandths;
        let part = |d: Duration| Duration::from_nanos((d.nanos() * cut).div_ceil(1_000));
        let set = small_and_big(part(ms(1)), part(big));
        let verdict = only(&set, &platform, "p-edf", guarantee, &costs);
        assert!(
            verdict.schedulable && verdict.cpmd_covered,
            "{}",
            verdict.reason
        );
        assert_eq!(simulated(&set, &platform, statistic), (0, Duration::ZERO));
        // The small one pays for the big one, which preempts nobody.
        let paid: Vec<f64> = verdict.clusters[0]
            .tasks
            .iter()
            .map(|t| t.overhead)
            .collect();
        let expected = delay(1 << 10).as_micros_f64() / 5_000.0;
        assert!(
            (paid[0] - expected).abs() < 1e-9 && paid[1] == 0.0,
            "{paid:?}"
        );
    }
}

/// Five tasks that all find a processor of their own are not cut: none of them migrates, none is
/// ever preempted.
/// `p-edf` and `p-rm` do not look at priorities; `p-fp` puts the set in their order, and a task
/// pays for those below it.
#[test]
fn priorities_of_the_tasks_let_nobody_preempt_who_could_not_before() {
    let (platform, profile) = (Platform::symmetric(1), xeon());
    let small = |period| Timing::implicit(ms(1), ms(period));
    let of = |priorities: [Option<u32>; 3]| {
        let tasks = [
            task("large", small(1_000), Bytes::from_mib(4)),
            task("mid", small(500), Bytes::from_kib(256)),
            task("small", small(200), Bytes::from_kib(4)),
        ];
        let with = |((timing, details), priority)| {
            (
                timing,
                Details {
                    priority,
                    ..details
                },
            )
        };
        TaskSet::new(tasks.into_iter().zip(priorities).map(with).collect()).unwrap()
    };
    let charged = |set: &TaskSet, policy| {
        let verdict = only(set, &platform, policy, Guarantee::Hard, &charge(&profile));
        assert!(verdict.schedulable, "{}", verdict.reason);
        let of_cpmd = verdict.lost.iter().find(|l| l.to == "cpmd");
        (verdict.tasks, of_cpmd.map(|l| l.utilization).unwrap())
    };
    let plain = of([None; 3]);
    for policy in ["p-edf", "p-rm", "p-fp:dm"] {
        let with = charged(&of([Some(9), Some(5), Some(7)]), policy);
        assert_eq!(with, charged(&plain, policy), "{policy}");
    }
    // By rate, as the priorities say: the large one pays for nobody.
    let by_rate = of([Some(1), Some(5), Some(9)]);
    assert_eq!(charged(&by_rate, "p-fp"), charged(&plain, "p-rm"));
    // The other way round it pays for both, and nobody for it.
    let against = of([Some(9), Some(5), Some(1)]);
    assert!(charged(&against, "p-fp").1 < charged(&by_rate, "p-fp").1);
}

#[test]
fn tasks_that_do_not_migrate_pay_no_migrations() {
    let (platform, profile) = (Platform::builtin("xeon-l7455").unwrap(), xeon());
    let five = |e| {
        let one = |i| {
            task(
                &format!("t{i}"),
                Timing::implicit(ms(e), ms(10)),
                Bytes::from_kib(1 << 10),
            )
        };
        TaskSet::new((0..5).map(one).collect()).unwrap()
    };
    let cpmd = |v: &PolicyVerdict| {
        v.lost
            .iter()
            .find(|l| l.to == "cpmd")
            .map(|l| l.utilization)
    };
    for policy in ["edf-wm", "p-edf", "g-edf"] {
        let alone = only(
            &five(6),
            &platform,
            policy,
            Guarantee::Hard,
            &charge(&profile),
        );
        assert!(alone.schedulable, "{}", alone.reason);
        assert_eq!(cpmd(&alone), Some(0.0), "{policy}");
    }
    // Two on a processor only preempt, and with equal deadlines not even that.
    let two = only(
        &five(4),
        &platform,
        "edf-wm",
        Guarantee::Hard,
        &charge(&profile),
    );
    assert!(
        two.schedulable && two.clusters[0].tasks.len() == 2,
        "{}",
        two.reason
    );
    assert_eq!(cpmd(&two), Some(0.0));
    let ways = [model::Resumption::Preemption];
    let stays = profile.worst_cpmd(
        &ways,
        Load::Load,
        Bytes::from_kib(1 << 10),
        Statistic::Maximum,
    );
    assert_eq!(two.charged, stays.unwrap().value.cost());
}

const ALL: &str = "p-edf,c-edf:size=2,g-edf,p-rm,p-fp:dm,g-fp:dm,g-fp,edf-fm,edf-wm,nps-f,c-nps-f:size=2,pd2,ca-edf";

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 16,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// A profile in which no delay takes any time gives the verdicts that are given without one.
    #[test]
    fn a_profile_without_delays_changes_no_verdict(
        tasks in prop::collection::vec((1u64..=9, 10u64..=30, 50u64..=110), 1..=7),
        pairs in 1u32..=2,
        (soft, implicit) in any::<(bool, bool)>(),
    ) {
        let timing = |(e, p, d): &(u64, u64, u64)| {
            let deadline = if implicit {
                ms(*p)
            } else {
                ms((p * d / 100).max(*e))
            };
            Timing {
                deadline,
                ..Timing::implicit(ms(*e), ms(*p))
            }
        };
        let named = |(i, t): (usize, &(u64, u64, u64))| {
            task(&format!("t{i}"), timing(t), Bytes::from_kib(64))
        };
        let set = TaskSet::new(tasks.iter().enumerate().map(named).collect()).unwrap();
        let mut platform = Platform::builtin("xeon-l7455").unwrap();
        let few: Vec<_> = platform
            .in_cache_order()
            .into_iter()
            .take(2 * pairs as usize)
            .collect();
        for processor in &mut platform.processors {
            processor.usable = few.contains(&processor.id);
        }
        let guarantee = if soft {
            Guarantee::Soft
        } else {
            Guarantee::Hard
        };
        let nothing = uniform(Duration::ZERO);
        for policy in read_list(ALL).unwrap() {
            let name = policy.to_string();
            let with = only(&set, &platform, &name, guarantee, &charge(&nothing));
            let without = only(&set, &platform, &name, guarantee, &Costs::NONE);
            let of = |v: &PolicyVerdict| {
                (
                    v.schedulable,
                    v.decided_by,
                    v.heuristic.clone(),
                    v.growth,
                    v.tasks.clone(),
                    v.assignment.clone(),
                )
            };
            prop_assert_eq!(of(&with), of(&without), "{}", name);
            prop_assert_eq!(with.charged, Duration::ZERO);
        }
    }

    /// The largest delay means what the verdict means: with a profile of that delay it is yes, and
    /// with a nanosecond more no.
    #[test]
    fn the_largest_delay_by_piece_is_where_the_verdict_turns(
        tasks in prop::collection::vec((1u64..=9, 10u64..=30), 1..=6),
        soft in any::<bool>(),
    ) {
        let timing = |(e, p): &(u64, u64)| Timing::implicit(ms(*e), ms(*p));
        let named =
            |(i, t): (usize, &(u64, u64))| task(&format!("t{i}"), timing(t), Bytes::from_kib(64));
        let set = TaskSet::new(tasks.iter().enumerate().map(named).collect()).unwrap();
        let platform = Platform::symmetric(2);
        let guarantee = if soft {
            Guarantee::Soft
        } else {
            Guarantee::Hard
        };
        for name in ["p-edf", "g-edf", "p-rm", "edf-fm", "edf-wm", "nps-f", "pd2"] {
            let at = |delay: u64| {
                let profile = uniform(Duration::from_nanos(delay));
                only(&set, &platform, name, guarantee, &charge(&profile))
            };
            let verdict = at(0);
            prop_assert_eq!(
                verdict.schedulable,
                verdict.largest_cpmd.is_some(),
                "{}",
                name
            );
            if let Some(margin) = verdict.largest_cpmd {
                let largest = margin.cpmd.nanos();
                prop_assert!(at(largest).schedulable, "{} at {}", name, largest);
                prop_assert!(
                    !margin.exact || !at(largest + 1).schedulable,
                    "{} above {}",
                    name,
                    largest
                );
            }
        }
    }
}

/// 000 §2 has one bound for all jobs. By piece no task is ever charged more than that bound, on any
/// processor or cluster.
#[test]
fn with_one_delay_for_all_the_two_rules_agree_but_for_what_nobody_can_suffer() {
    let set = |wcet: Duration| {
        let one = |(i, p): (usize, u64)| {
            task(
                &format!("t{i}"),
                Timing::implicit(wcet, ms(p)),
                Bytes::from_kib(64),
            )
        };
        TaskSet::new(
            [5, 10, 10, 20, 40]
                .into_iter()
                .enumerate()
                .map(one)
                .collect(),
        )
        .unwrap()
    };
    let (platform, delay) = (Platform::symmetric(2), Duration::from_micros(300));
    let profile = uniform(delay);
    let judged = |policy: &str, costs: &Costs<'_>| {
        let verdict = only(&set(ms(1)), &platform, policy, Guarantee::Hard, costs);
        assert!(verdict.schedulable, "{policy}: {}", verdict.reason);
        verdict
    };
    for policy in ["p-edf", "g-edf", "p-fp:dm", "g-fp:dm"] {
        let (one, by_piece) = (
            judged(policy, &fixed(delay)),
            judged(policy, &charge(&profile)),
        );
        assert!(
            by_piece.inflated_utilization <= one.inflated_utilization,
            "{policy}"
        );
        assert!(
            by_piece.growth.unwrap().thousandths >= one.growth.unwrap().thousandths,
            "{policy}"
        );
    }
    let platform = Platform::symmetric(1);
    let rule = |costs: &Costs<'_>| {
        judge(
            &set(ms(1)),
            &platform,
            &[super::spec("p-edf")],
            Guarantee::Hard,
            costs,
        )
        .unwrap()
        .rule
    };
    assert_eq!(rule(&charge(&profile)), Rule::ByPiece);
    assert_eq!(rule(&fixed(delay)), Rule::OneDelay);
}
