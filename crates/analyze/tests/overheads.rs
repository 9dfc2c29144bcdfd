//! Accounting for overheads: zero changes nothing, more never helps, and packing rolls back.

use analyze::Guarantee;
use analyze::clustered::{Scratch, clustered_edf};
use analyze::overheads::{Overheads, Packed, Platform, Residents, inflate, pack};
use analyze::partition::{Fit, Order};
use model::profile::{OverheadCurve, OverheadKind, OverheadPoint, Statistic};
use model::{Duration, Profile, Provenance, Timing};
use proptest::prelude::*;

fn us(n: u64) -> Duration {
    Duration::from_micros(n)
}
fn task(e_us: u64, p_us: u64) -> Timing {
    Timing::implicit(us(e_us), us(p_us))
}

/// 002 §6.1 by hand: e + 2 (scheduling + context switch) + 2 CPMD, and the tick and two releases taken off the time.
#[test]
fn a_job_pays_what_the_formula_says() {
    let overheads = Overheads {
        scheduling: us(3),
        context_switch: us(2),
        ipi_latency: us(7),
        tick: us(10),
        release: us(5),
        ..Overheads::NONE
    };
    let set = [task(1_000, 10_000), task(2_000, 20_000)];
    let delays = [us(50), us(100)];
    let residents = |processors| Residents {
        tasks: &set,
        delays: &delays,
        processors,
    };
    // w = (c + 10 + 2·5) / (1 − 10/1000 − 5/10000 − 5/20000) with c = 1000 + 10 + 100: 1130 / 0.98925 = 1142.279505….
    let one = inflate(residents(1), &overheads);
    assert_eq!(one[0].wcet.nanos(), 1_142_280);
    // An IPI where the cluster is wider: 1137 / 0.98925 = 1149.355572….
    assert_eq!(inflate(residents(2), &overheads)[0].wcet.nanos(), 1_149_356);
    // c = 2000 + 10 + 200: 2230 / 0.98925 = 2254.233004….
    assert_eq!(one[1].wcet.nanos(), 2_254_234);
}

/// 000 §2 charges one delay a job, 002 §6.1 two: with nothing else they differ by exactly one.
#[test]
fn the_rules_of_the_two_papers_differ_by_one_delay() {
    let (t, delay) = (task(1_000, 10_000), us(80));
    let residents = Residents {
        tasks: &[t],
        delays: &[delay],
        processors: 1,
    };
    let two = inflate(residents, &Overheads::NONE)[0];
    assert_eq!(two, t.inflated(delay).inflated(delay));
}

/// 002 §6.1: ignoring overheads while packing over-utilizes; with them the placement is rolled back and the next bin tried.
#[test]
fn packing_rolls_back_a_placement_that_overheads_forbid() {
    let set = [task(500, 1_000), task(480, 1_000)];
    let with = |release| {
        let overheads = Overheads {
            release,
            ..Overheads::NONE
        };
        let platform = Platform {
            sizes: &[1, 1],
            overheads: &overheads,
            delays: &[Duration::ZERO; 2],
        };
        pack(
            &set,
            &platform,
            Order::DecreasingUtilization,
            Fit::First,
            Guarantee::Hard,
        )
        .map(|p: Packed| p.cluster_of)
    };
    assert_eq!(with(Duration::ZERO), Ok(vec![0, 0]));
    assert_eq!(with(us(10)), Ok(vec![0, 1]));
    assert!(with(us(400)).is_err());
}

#[test]
fn curves_are_read_by_policy_and_gaps_are_told() {
    let mut profile = Profile::new("test", Provenance::default());
    let curve = |policy: &str, average: u64| OverheadCurve {
        kind: OverheadKind::Scheduling,
        policy: policy.to_owned(),
        points: [10, 20]
            .map(|tasks| OverheadPoint {
                tasks,
                samples: 1,
                average: Some(us(average * u64::from(tasks))),
                maximum: Some(us(100 * u64::from(tasks))),
            })
            .to_vec(),
    };
    profile.overheads = vec![curve("", 1), curve("g-edf", 2)];
    let read = |policy, tasks| Overheads::read(&profile, policy, tasks, Statistic::Average);
    assert_eq!(read("p-edf", 15).0.scheduling, us(15));
    assert_eq!(read("g-edf", 15).0.scheduling, us(30));
    let (_, gaps) = read("g-edf", 40);
    assert_eq!(gaps.extrapolated, [OverheadKind::Scheduling]);
    assert_eq!(gaps.missing.len(), 5);
}

fn sets() -> impl Strategy<Value = Vec<Timing>> {
    let one = (5u64..=40, 1u64..=60).prop_map(|(p, share)| task((p * 10 * share).max(1), p * 1_000));
    prop::collection::vec(one, 1..=8)
}
fn some_overheads() -> impl Strategy<Value = Overheads> {
    (0u64..100, 0u64..100, 0u64..100, 0u64..100, 0u64..100).prop_map(|(r, s, c, i, t)| Overheads {
        release: us(r),
        scheduling: us(s),
        context_switch: us(c),
        ipi_latency: us(i),
        tick: us(t),
        ..Overheads::NONE
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn zero_overhead_changes_nothing(set in sets(), m in 1u32..=4) {
        let delays = vec![Duration::ZERO; set.len()];
        let residents = Residents { tasks: &set, delays: &delays, processors: m };
        prop_assert_eq!(&inflate(residents, &Overheads::NONE), &set);
        let sizes = vec![1; m as usize];
        let platform = Platform { sizes: &sizes, overheads: &Overheads::NONE, delays: &delays };
        let packed = pack(&set, &platform, Order::DecreasingUtilization, Fit::Worst, Guarantee::Soft);
        let plain = clustered_edf(&set, &sizes, Order::DecreasingUtilization, Fit::Worst, Guarantee::Soft);
        prop_assert_eq!(packed.ok().map(|p| p.cluster_of), plain.cluster_of);
    }

    /// On one cluster there is no packing: schedulable with more means schedulable with less.
    #[test]
    fn more_overhead_never_makes_a_set_schedulable(
        set in sets(),
        less in some_overheads(),
        more in some_overheads(),
        delay in 0u64..200,
        m in 1u32..=4,
        soft in any::<bool>(),
    ) {
        let sum = |a: Duration, b: Duration| a + b;
        let larger = Overheads {
            release: sum(less.release, more.release),
            scheduling: sum(less.scheduling, more.scheduling),
            context_switch: sum(less.context_switch, more.context_switch),
            ipi_latency: sum(less.ipi_latency, more.ipi_latency),
            tick: sum(less.tick, more.tick),
            ..less
        };
        let at = |overheads: &Overheads, delay: Duration| {
            let delays = vec![delay; set.len()];
            inflate(Residents { tasks: &set, delays: &delays, processors: m }, overheads)
        };
        let (low, high) = (at(&less, Duration::ZERO), at(&larger, us(delay)));
        for ((t, l), h) in set.iter().zip(&low).zip(&high) {
            prop_assert!(t.wcet <= l.wcet && l.wcet <= h.wcet);
        }
        let guarantee = if soft { Guarantee::Soft } else { Guarantee::Hard };
        let mut scratch = Scratch::new();
        let mut holds = |set: &[Timing]| scratch.is_schedulable(set, &[m], Order::Given, Fit::Worst, guarantee);
        if holds(&high) {
            prop_assert!(holds(&low));
            prop_assert!(holds(&set));
        }
    }

    #[test]
    fn every_cluster_of_a_packed_set_holds_with_its_overheads(set in sets(), overheads in some_overheads(), m in 1u32..=4) {
        let sizes = vec![1; m as usize];
        let delays = vec![us(20); set.len()];
        let platform = Platform { sizes: &sizes, overheads: &overheads, delays: &delays };
        for fit in Fit::ALL {
            if let Ok(packed) = pack(&set, &platform, Order::DecreasingUtilization, fit, Guarantee::Hard) {
                for cpu in 0..m {
                    let inside: Vec<Timing> = packed.inflated.iter().zip(&packed.cluster_of)
                        .filter(|(_, c)| **c == cpu).map(|(t, _)| *t).collect();
                    prop_assert_eq!(analyze::uniprocessor::edf::decide(&inside), Ok(true));
                }
            }
        }
    }
}
