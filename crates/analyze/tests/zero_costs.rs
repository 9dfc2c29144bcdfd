//! Without costs every way of accounting is the same: zero overheads change nothing, under any
//! policy.

use analyze::Guarantee;
use analyze::assign::{How, assign};
use analyze::overheads::{CacheCharge, CacheDelays, Kind, Precedence, System, account, holds};
use analyze::policies::{self, Accounting, Costs};
use model::watch::Silent;
use model::{
    Assignment, Bytes, Details, Duration, Platform, Profile, Statistic, TaskId, TaskSet, Timing,
    profilefile,
};
use policy::catalog::{self, Priority};
use policy::{Spec, catalog::Tests};
use proptest::prelude::*;

fn ms(n: u64) -> Duration {
    Duration::from_millis(n)
}

/// Up to six tasks with working sets; deadlines up to the periods, or equal to them for policies
/// that need that.
fn sets() -> impl Strategy<Value = TaskSet> {
    let task = (1u64..=6, 1u64..=60, 0u64..=100);
    (prop::collection::vec(task, 1..=6), any::<bool>()).prop_map(|(tasks, implicit)| {
        let timing = |(tens, share, late): (u64, u64, u64)| {
            let period = 10 * tens;
            let wcet = (period * share / 100).max(1);
            let deadline = match implicit {
                true => period,
                false => wcet + (period - wcet) * late / 100,
            };
            Timing {
                wcet: ms(wcet),
                period: ms(period),
                deadline: ms(deadline),
            }
        };
        let details = |at: usize| Details {
            wss: Some(Bytes::from_kib(64)),
            ..Details::named(format!("t{at}"))
        };
        let tasks = tasks.into_iter().enumerate();
        TaskSet::new(tasks.map(|(at, t)| (timing(t), details(at))).collect()).unwrap()
    })
}

/// Every judged policy of the catalog, by the words by which the suites try it.
fn specs() -> Vec<Spec> {
    let specs = catalog::tried().map(|word| word.parse::<Spec>().unwrap());
    specs.filter(|spec| spec.unjudged().is_none()).collect()
}

/// A profile in which everything costs nothing: of cache delays alone, or of all seven overheads.
fn free(platform: &Platform, all: bool) -> Profile {
    let mut text = format!("version = 1\nplatform = {:?}\n", platform.name);
    for resumption in platform.resumptions() {
        text += &format!(
            "[[cpmd]]\nresumption = \"{resumption}\"\nload = \"load\"\nwrite_ratio = 0.25\n\
             points = [{{ wss = \"64KiB\", samples = 1, average = \"0us\", maximum = \"0us\" }}]\n"
        );
    }
    for kind in Kind::ALL.iter().filter(|kind| all && **kind != Kind::Cpmd) {
        text += &format!(
            "[[overheads]]\nkind = \"{kind}\"\n\
             points = [{{ tasks = 1, samples = 1, average = \"0us\", maximum = \"0us\" }}]\n"
        );
    }
    profilefile::from_toml(&text).unwrap()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 12,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn zero_costs_change_no_verdict(set in sets(), m in 1u32..=4) {
        let platform = Platform::symmetric(m);
        let profiles = [free(&platform, false), free(&platform, true)];
        let zero = Costs {
            cpmd: Some(Duration::ZERO),
            ..Costs::NONE
        };
        let costs = [Costs::NONE, zero]
            .into_iter()
            .chain(profiles.iter().map(|p| Costs {
                profile: Some(p),
                ..Costs::NONE
            }));
        let costs: Vec<Costs<'_>> = costs.collect();
        for spec in specs() {
            for guarantee in [Guarantee::Hard, Guarantee::Soft] {
                let verdict = |costs: &Costs<'_>| {
                    let only = std::slice::from_ref(&spec);
                    let judged =
                        policies::judge(&set, &platform, only, guarantee, costs, &Silent).ok()?;
                    let decided =
                        policies::decide(&set, &platform, &spec, guarantee, costs).unwrap();
                    let v = judged.policies.into_iter().next().unwrap();
                    Some((
                        decided,
                        v.schedulable,
                        v.refuted,
                        v.decided_by,
                        v.heuristic,
                        v.assignment,
                    ))
                };
                let usual = verdict(&Costs::NONE);
                for costs in &costs {
                    for accounting in Accounting::ALL {
                        let costs = Costs {
                            accounting: Some(accounting),
                            ..*costs
                        };
                        prop_assert_eq!(
                            &verdict(&costs),
                            &usual,
                            "{} {} {} {:?}",
                            spec,
                            guarantee,
                            accounting,
                            costs
                        );
                    }
                }
            }
        }
    }

    /// The same one floor below: no assignment costs anything.
    #[test]
    fn zero_costs_inflate_nothing(set in sets(), m in 1u32..=4, hard in any::<bool>()) {
        let platform = Platform::symmetric(m);
        let delays = CacheDelays::any_way(&platform, &vec![Duration::ZERO; set.len()]);
        let any = CacheCharge::ByPiece(Precedence::Any);
        let fixed = CacheCharge::ByPiece(Precedence::Fixed(Priority::DeadlineMonotonic));
        let one_delay = CacheCharge::OneDelay(Duration::ZERO);
        for spec in specs() {
            let Ok(Ok(Some(assignment))) = assign(&spec, &set, &platform, &How::default()) else {
                continue;
            };
            for charge in [
                one_delay,
                CacheCharge::Twice,
                CacheCharge::Paper,
                any,
                fixed,
            ] {
                let system = System {
                    delays: &delays,
                    guarantee: if hard {
                        Guarantee::Hard
                    } else {
                        Guarantee::Soft
                    },
                    charge,
                    ..System::free(&platform)
                };
                prop_assert!(system.is_free());
                let accounted = account(set.timings(), &assignment, &system);
                prop_assert!(
                    accounted.parts.iter().all(|p| p.total().is_zero()),
                    "{} {:?}",
                    spec,
                    charge
                );
                prop_assert_eq!(&accounted.inflated, set.timings(), "{} {:?}", spec, charge);
                let plain = holds(
                    set.timings(),
                    &assignment,
                    &System {
                        charge: CacheCharge::Twice,
                        ..system
                    },
                );
                prop_assert_eq!(
                    holds(set.timings(), &assignment, &system),
                    plain,
                    "{} {:?}",
                    spec,
                    charge
                );
            }
        }
    }

    /// One delay a job is in the WCETs before anything is assigned: what is made and accounted for
    /// with it is what is made for longer tasks without it.
    #[test]
    fn one_delay_is_the_same_as_longer_tasks(set in sets(), m in 1u32..=4, us in 0u64..2_000) {
        let platform = Platform::symmetric(m);
        let delay = Duration::from_micros(us);
        let longer: Vec<Timing> = set.timings().iter().map(|t| t.inflated(delay)).collect();
        let longer = TaskSet::to_judge(longer).unwrap();
        let costs = Costs {
            cpmd: Some(delay),
            accounting: Some(Accounting::OneDelay),
            ..Costs::NONE
        };
        for spec in specs().iter().filter(|spec| !spec.info().quantum_driven) {
            for guarantee in [Guarantee::Hard, Guarantee::Soft] {
                let with = policies::decide(&set, &platform, spec, guarantee, &costs);
                let without = policies::decide(&longer, &platform, spec, guarantee, &Costs::NONE);
                prop_assert_eq!(with, without, "{} {}", spec, guarantee);
            }
            let Ok(Ok(Some(assignment))) = assign(spec, &longer, &platform, &How::default()) else {
                continue;
            };
            let system = System {
                charge: CacheCharge::OneDelay(delay),
                ..System::free(&platform)
            };
            let accounted = account(set.timings(), &assignment, &system);
            prop_assert_eq!(&accounted.inflated, longer.timings(), "{}", spec);
            let all_have = accounted
                .parts
                .iter()
                .all(|p| p.total() == delay && p[Kind::Cpmd] == delay);
            prop_assert!(all_have, "{}", spec);
            // Slices together pay the delay of their job.
            if let Assignment::Slices(_) = assignment {
                for id in set.ids() {
                    let mine = accounted.pieces.iter().filter(|p| p.task == id);
                    let paid: u64 = mine.map(|p| p.parts.total().nanos()).sum();
                    prop_assert_eq!(paid, delay.nanos());
                }
            }
        }
    }
}

/// The three ways differ where something costs something.
#[test]
fn the_three_ways_differ_with_costs() {
    let task = |e, p| Timing::implicit(ms(e), ms(p));
    let set = TaskSet::from_timings(vec![task(2, 10), task(3, 20), task(4, 40)]).unwrap();
    let platform = Platform::symmetric(1);
    let spec: Spec = "p-edf".parse().unwrap();
    assert_ne!(spec.info().hard, Tests::None);
    let lost = |accounting| {
        let costs = Costs {
            cpmd: Some(ms(1)),
            accounting: Some(accounting),
            statistic: Some(Statistic::Maximum),
            ..Costs::NONE
        };
        let only = std::slice::from_ref(&spec);
        let judged =
            policies::judge(&set, &platform, only, Guarantee::Hard, &costs, &Silent).unwrap();
        let first = TaskId(0).index();
        (
            judged.policies[0].inflated_utilization,
            judged.policies[0].tasks.get(first).map(|t| t.response),
        )
    };
    let [one, paper, own] = Accounting::ALL.map(lost);
    assert!(
        one != paper && paper != own && own != one,
        "{one:?} {paper:?} {own:?}"
    );
}
