//! What must hold of all accounting: zero changes nothing, the parts add up, more never helps, what
//! is assigned holds.

use super::reference;
use super::{delays_of, each_alone, task, us};
use analyze::Guarantee;
use analyze::clustered::clustered_edf;
use analyze::global::gfb;
use analyze::overheads::{
    self, Accounted, CacheCharge, CacheDelays, Overheads, System, account, holds, pack, pack_with,
    quanta,
};
use analyze::partition::{Fit, Order};
use analyze::pd2;
use analyze::semi::{edf_fm, edf_wm, nps_f, processors};
use model::assignment::Clustered;
use model::{Assignment, ClusterSpec, CpuSet, Platform, Timing};
use proptest::prelude::*;

fn sets() -> impl Strategy<Value = Vec<Timing>> {
    let one =
        (5u64..=40, 1u64..=60).prop_map(|(p, share)| task((p * 10 * share).max(1), p * 1_000));
    prop::collection::vec(one, 1..=8)
}
fn some_overheads() -> impl Strategy<Value = Overheads> {
    (0u64..60, 0u64..60, 0u64..60, 0u64..60, 0u64..60, 0u64..60).prop_map(|(r, s, c, i, tt, t)| {
        Overheads {
            release: us(r),
            scheduling: us(s),
            context_switch: us(c),
            ipi_latency: us(i),
            timer_transfer: us(tt),
            tick: us(t),
            ..Overheads::NONE
        }
    })
}
/// Delays by task, for a preemption and what a migration costs more.
fn some_delays() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0u64..80, 0u64..80), 8)
}
fn sum(a: &Overheads, b: &Overheads) -> Overheads {
    Overheads {
        release: a.release + b.release,
        scheduling: a.scheduling + b.scheduling,
        context_switch: a.context_switch + b.context_switch,
        ipi_latency: a.ipi_latency + b.ipi_latency,
        timer_transfer: a.timer_transfer + b.timer_transfer,
        tick: a.tick + b.tick,
        ..*a
    }
}

/// What each family assigns without overheads, if it does.
fn assignments(set: &[Timing], platform: &Platform) -> Vec<Assignment> {
    let m = platform.usable().len() as u32;
    let cpus = processors(m);
    let mut all = Vec::new();
    let pairs: Vec<CpuSet> = cpus
        .chunks(2)
        .map(|c| c.iter().copied().collect())
        .collect();
    for clusters in [each_alone(m), pairs] {
        let sizes: Vec<u32> = clusters.iter().map(|c| c.len() as u32).collect();
        let verdict = clustered_edf(
            set,
            &sizes,
            Order::DecreasingUtilization,
            Fit::Worst,
            Guarantee::Soft,
        );
        if let Some(cluster_of) = verdict.cluster_of {
            all.push(Assignment::Clustered(Clustered {
                clusters,
                cluster_of,
            }));
        }
    }
    if let Ok(turns) = edf_fm::assign(set, &cpus, edf_fm::Fill::Full) {
        all.push(Assignment::Turns(turns));
    }
    if let Ok(slices) = edf_wm::assign(set, &cpus, &edf_wm::Settings::default()) {
        all.push(Assignment::Slices(slices));
    }
    let pairs: Vec<_> = cpus.chunks(2).map(<[_]>::to_vec).collect();
    for clusters in [vec![cpus.clone()], pairs] {
        if let Ok(slots) = nps_f::assign(set, &clusters, &nps_f::Settings::default()) {
            all.push(Assignment::Slots(slots));
        }
    }
    all
}

/// Zero, small, around powers of two, up to 2^62.
fn extreme() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0u64),
        0u64..100_000,
        (0u32..=62, -1i64..=1).prop_map(|(bits, by)| (1u64 << bits).saturating_add_signed(by))
    ]
}

/// Sets that fill several processors, so that tasks are split.
fn crowded() -> impl Strategy<Value = Vec<Timing>> {
    let one = (5u64..=40, 5u64..=70).prop_map(|(p, share)| task(p * 10 * share, p * 1_000));
    prop::collection::vec(one, 2..=8)
}
fn small_overheads() -> impl Strategy<Value = Overheads> {
    (0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12, 0u64..12).prop_map(|(r, s, c, i, tt, t)| {
        Overheads {
            release: us(r),
            scheduling: us(s),
            context_switch: us(c),
            ipi_latency: us(i),
            timer_transfer: us(tt),
            tick: us(t),
            ..Overheads::NONE
        }
    })
}

/// What each semi-partitioned algorithm assigns with overheads, if it does.
fn assignments_with(set: &[Timing], m: u32, delta: u32, system: &System<'_>) -> Vec<Assignment> {
    let cpus = processors(m);
    let mut all = Vec::new();
    for fill in [edf_fm::Fill::Full, edf_fm::Fill::Spread] {
        all.extend(overheads::edf_fm::assign(set, &cpus, fill, system).map(Assignment::Turns));
    }
    for fit in [Fit::First, Fit::Worst] {
        let settings = edf_wm::Settings {
            fit,
            ..edf_wm::Settings::default()
        };
        all.extend(
            overheads::edf_wm::assign(set, &cpus, &settings, system).map(Assignment::Slices),
        );
    }
    let pairs: Vec<_> = cpus.chunks(2).map(<[_]>::to_vec).collect();
    for clusters in [vec![cpus], pairs] {
        let settings = nps_f::Settings {
            delta,
            ..nps_f::Settings::default()
        };
        all.extend(
            overheads::nps_f::assign(set, &clusters, &settings, system).map(Assignment::Slots),
        );
    }
    all
}

fn adds_up(set: &[Timing], accounted: &Accounted) {
    for ((t, with), parts) in set.iter().zip(&accounted.inflated).zip(&accounted.parts) {
        assert_eq!(with.wcet, t.wcet.saturating_add(parts.total()));
    }
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 150,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn zero_overhead_changes_nothing(set in sets(), m in 1u32..=4, hard in any::<bool>()) {
        let platform = Platform::symmetric(m);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let system = System {
            platform: &platform,
            overheads: &Overheads::NONE,
            delays: &CacheDelays::none(set.len()),
            guarantee,
            charge: CacheCharge::Twice,
        };
        for assignment in assignments(&set, &platform) {
            let accounted = account(&set, &assignment, &system);
            prop_assert_eq!(&accounted.inflated, &set);
            prop_assert_eq!(accounted.lost().total(), 0.0);
            if !matches!(assignment, Assignment::Clustered(_)) {
                prop_assert!(holds(&set, &assignment, &system), "{:?}", assignment);
            }
        }
        let packed = pack(
            &set,
            &each_alone(m),
            &system,
            Order::DecreasingUtilization,
            Fit::Worst,
        );
        let plain = clustered_edf(
            &set,
            &vec![1; m as usize],
            Order::DecreasingUtilization,
            Fit::Worst,
            guarantee,
        );
        prop_assert_eq!(
            packed.ok().map(|p| p.assignment.cluster_of),
            plain.cluster_of
        );
    }

    /// The sum of the parts is the inflation, to the nanosecond; and what places lose is what their
    /// tasks pay.
    #[test]
    fn the_parts_add_up(
        set in sets(),
        m in 1u32..=4,
        overheads in some_overheads(),
        by_task in some_delays(),
        hard in any::<bool>(),
    ) {
        let platform = Platform::symmetric(m);
        let delays = delays_of(&platform, set.len(), &by_task);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let system = System {
            platform: &platform,
            overheads: &overheads,
            delays: &delays,
            guarantee,
            charge: CacheCharge::Twice,
        };
        for assignment in assignments(&set, &platform) {
            let accounted = account(&set, &assignment, &system);
            adds_up(&set, &accounted);
            let own: f64 = set.iter().map(|t| t.utilization().to_f64()).sum();
            let placed: f64 = accounted.places.iter().map(|p| p.own).sum();
            if !matches!(assignment, Assignment::Slices(_)) {
                prop_assert!((own - placed).abs() < 1e-9);
            }
            let paid: f64 = accounted
                .pieces
                .iter()
                .map(|p| {
                    p.parts.total().nanos() as f64 / p.timing.period.nanos() as f64
                        * p.jobs.0 as f64
                        / p.jobs.1 as f64
                })
                .sum();
            // Servers lose more than their tasks pay: switches and releases of others.
            match assignment {
                Assignment::Slots(_) => prop_assert!(accounted.lost().total() > paid - 1e-9),
                _ => prop_assert!((accounted.lost().total() - paid).abs() < 1e-9),
            }
        }
    }

    /// An assignment that holds with more overhead of any kind holds with less.
    #[test]
    fn more_overhead_never_makes_an_assignment_hold(
        set in sets(),
        less in some_overheads(),
        more in some_overheads(),
        by_task in some_delays(),
        extra in 0u64..50,
        m in 1u32..=4,
        hard in any::<bool>(),
        scale in 0u64..4,
    ) {
        let platform = Platform::symmetric(m);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let reduced = |o: &Overheads| Overheads {
            release: us(o.release.nanos() / 1_000 * scale / 4),
            scheduling: us(o.scheduling.nanos() / 1_000 * scale / 4),
            context_switch: us(o.context_switch.nanos() / 1_000 * scale / 4),
            ..*o
        };
        let (less, more) = (reduced(&less), reduced(&more));
        let larger = sum(&less, &more);
        let low = delays_of(&platform, set.len(), &by_task);
        let longer: Vec<_> = by_task
            .iter()
            .map(|(a, b)| (a + extra, b + extra))
            .collect();
        let high = delays_of(&platform, set.len(), &longer);
        let free = CacheDelays::none(set.len());
        for assignment in assignments(&set, &platform) {
            let with = |overheads, delays| {
                let system = System {
                    platform: &platform,
                    overheads,
                    delays,
                    guarantee,
                    charge: CacheCharge::Twice,
                };
                (
                    holds(&set, &assignment, &system),
                    account(&set, &assignment, &system),
                )
            };
            let levels = [
                with(&Overheads::NONE, &free),
                with(&less, &free),
                with(&less, &low),
                with(&larger, &low),
                with(&larger, &high),
            ];
            for pair in levels.windows(2) {
                prop_assert!(pair[0].0 || !pair[1].0, "{:?}", assignment);
                for (a, b) in pair[0].1.inflated.iter().zip(&pair[1].1.inflated) {
                    prop_assert!(a.wcet <= b.wcet);
                }
            }
        }
    }

    #[test]
    fn every_cluster_of_a_packed_set_holds_with_its_overheads(
        set in sets(),
        overheads in some_overheads(),
        by_task in some_delays(),
        m in 1u32..=4,
    ) {
        let platform = Platform::symmetric(m);
        let delays = delays_of(&platform, set.len(), &by_task);
        let system = System {
            platform: &platform,
            overheads: &overheads,
            delays: &delays,
            guarantee: Guarantee::Hard,
            charge: CacheCharge::Twice,
        };
        let alone = platform.clusters(ClusterSpec::Partitioned).unwrap();
        for fit in Fit::ALL {
            if let Ok(packed) = pack(&set, &alone, &system, Order::DecreasingUtilization, fit) {
                prop_assert!(holds(
                    &set,
                    &Assignment::Clustered(packed.assignment),
                    &system
                ));
            }
        }
        let pairs: Vec<CpuSet> = processors(m)
            .chunks(2)
            .map(|c| c.iter().copied().collect())
            .collect();
        let by_gfb = |inside: &[Timing], size: u32| (gfb::INFO.run)(inside, size) == Ok(true);
        if let Ok(packed) = pack_with(
            &set,
            &pairs,
            &system,
            Order::DecreasingUtilization,
            Fit::Worst,
            by_gfb,
        ) {
            let cluster_of = &packed.assignment.cluster_of;
            for (cluster, cpus) in pairs.iter().enumerate() {
                let inside: Vec<Timing> = packed
                    .accounted
                    .inflated
                    .iter()
                    .zip(cluster_of)
                    .filter(|(_, c)| **c as usize == cluster)
                    .map(|(t, _)| *t)
                    .collect();
                prop_assert!(by_gfb(&inside, cpus.len() as u32));
            }
        }
    }

    /// With nothing to pay for, every algorithm assigns what it assigns without accounting,
    /// refusals included.
    #[test]
    fn zero_overhead_gives_the_same_assignments(
        set in crowded(),
        m in 1u32..=4,
        sorted in any::<bool>(),
        delta in 1u32..=3,
    ) {
        let platform = Platform::symmetric(m);
        let system = System {
            platform: &platform,
            overheads: &Overheads::NONE,
            delays: &CacheDelays::none(set.len()),
            guarantee: Guarantee::Hard,
            charge: CacheCharge::Twice,
        };
        let cpus = processors(m);
        let order = if sorted {
            Order::DecreasingUtilization
        } else {
            Order::Given
        };
        for fill in [edf_fm::Fill::Full, edf_fm::Fill::Spread] {
            prop_assert_eq!(
                overheads::edf_fm::assign(&set, &cpus, fill, &system),
                edf_fm::assign(&set, &cpus, fill)
            );
        }
        for fit in Fit::ALL {
            let settings = edf_wm::Settings {
                order,
                fit,
                ..edf_wm::Settings::default()
            };
            prop_assert_eq!(
                overheads::edf_wm::assign(&set, &cpus, &settings, &system),
                edf_wm::assign(&set, &cpus, &settings)
            );
        }
        let pairs: Vec<_> = cpus.chunks(2).map(<[_]>::to_vec).collect();
        for clusters in [vec![cpus], pairs] {
            let settings = nps_f::Settings {
                order,
                delta,
                ..nps_f::Settings::default()
            };
            prop_assert_eq!(
                overheads::nps_f::assign(&set, &clusters, &settings, &system),
                nps_f::assign(&set, &clusters, &settings)
            );
        }
        let quantized = quanta::account(&set, &CpuSet::first(m), pd2::QUANTUM, &system);
        prop_assert_eq!(&quantized.inflated, &set);
    }

    /// What is assigned with overheads holds with them, and with less.
    #[test]
    fn what_is_assigned_with_overheads_holds_with_them(
        set in crowded(),
        overheads in small_overheads(),
        by_task in some_delays(),
        m in 1u32..=4,
        hard in any::<bool>(),
        delta in 1u32..=2,
    ) {
        let platform = Platform::symmetric(m);
        let delays = delays_of(&platform, set.len(), &by_task);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let system = System {
            platform: &platform,
            overheads: &overheads,
            delays: &delays,
            guarantee,
            charge: CacheCharge::Twice,
        };
        let free = System {
            overheads: &Overheads::NONE,
            ..system
        };
        for assignment in assignments_with(&set, m, delta, &system) {
            prop_assert!(holds(&set, &assignment, &system), "{:?}", assignment);
            prop_assert!(holds(&set, &assignment, &free), "{:?}", assignment);
            adds_up(&set, &account(&set, &assignment, &system));
            if let Assignment::Slots(slots) = &assignment {
                prop_assert!(reference::servers_are_supplied(
                    &set, slots, &overheads, &by_task, guarantee
                ));
            }
        }
    }

    /// Quanta: the parts add up, more costs more, and the rounded WCET leaves the execution enough
    /// of its quanta.
    #[test]
    fn quanta_are_charged_as_they_are_lost(
        set in sets(),
        less in small_overheads(),
        more in small_overheads(),
        by_task in some_delays(),
        m in 1u32..=4,
        hard in any::<bool>(),
    ) {
        let platform = Platform::symmetric(m);
        let delays = delays_of(&platform, set.len(), &by_task);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let with = |overheads: &Overheads| {
            let system = System {
                platform: &platform,
                overheads,
                delays: &delays,
                guarantee,
                charge: CacheCharge::Twice,
            };
            quanta::account(&set, &CpuSet::first(m), pd2::QUANTUM, &system)
        };
        let (low, high) = (with(&less), with(&sum(&less, &more)));
        adds_up(&set, &low);
        adds_up(&set, &high);
        for (a, b) in low.inflated.iter().zip(&high.inflated) {
            prop_assert!(a.wcet <= b.wcet);
        }
        prop_assert!(
            pd2::is_schedulable(&low.inflated, m) == Ok(true)
                || pd2::is_schedulable(&high.inflated, m) != Ok(true)
        );
    }

    /// The same as straight from the formulas in rational arithmetic: never less, and more by
    /// roundings only.
    #[test]
    fn accounting_agrees_with_the_reference(
        set in sets(),
        overheads in some_overheads(),
        by_task in some_delays(),
        m in 1u32..=4,
        hard in any::<bool>(),
    ) {
        let platform = Platform::symmetric(m);
        let delays = delays_of(&platform, set.len(), &by_task);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let system = System {
            platform: &platform,
            overheads: &overheads,
            delays: &delays,
            guarantee,
            charge: CacheCharge::Twice,
        };
        for assignment in assignments(&set, &platform) {
            reference::agrees(
                &set,
                &assignment,
                &overheads,
                &by_task,
                guarantee,
                &account(&set, &assignment, &system),
            );
            if let Assignment::Slots(slots) = &assignment {
                let slow =
                    reference::servers_are_supplied(&set, slots, &overheads, &by_task, guarantee);
                prop_assert_eq!(holds(&set, &assignment, &system), slow);
            }
        }
    }

    /// Times up to the longest and overheads beyond any sense: an answer, whatever it is, and never
    /// a smaller WCET.
    #[test]
    fn nothing_overflows(
        times in prop::collection::vec((extreme(), extreme()), 1..6),
        costs in prop::collection::vec(extreme(), 8),
        m in 1u32..=3,
        hard in any::<bool>(),
    ) {
        let ns = model::Duration::from_nanos;
        let set: Vec<Timing> = times
            .iter()
            .map(|(e, p)| Timing::implicit(ns((*e).min(*p)), ns((*p).max(1))))
            .collect();
        let overheads = Overheads {
            release: ns(costs[0]),
            scheduling: ns(costs[1]),
            context_switch: ns(costs[2]),
            ipi_latency: ns(costs[3]),
            timer_transfer: ns(costs[4]),
            tick: ns(costs[5]),
            tick_period: ns(costs[6]),
        };
        let platform = Platform::symmetric(m);
        let delays = CacheDelays::any_way(&platform, &vec![ns(costs[7]); set.len()]);
        let guarantee = if hard {
            Guarantee::Hard
        } else {
            Guarantee::Soft
        };
        let system = System {
            platform: &platform,
            overheads: &overheads,
            delays: &delays,
            guarantee,
            charge: CacheCharge::Twice,
        };
        let mut all = assignments(&set, &platform);
        all.extend(assignments_with(&set, m, 1, &system));
        for assignment in all {
            let accounted = account(&set, &assignment, &system);
            adds_up(&set, &accounted);
            for (t, with) in set.iter().zip(&accounted.inflated) {
                prop_assert!(t.wcet <= with.wcet);
            }
            if let Assignment::Turns(turns) = &assignment {
                prop_assert_eq!(
                    overheads::edf_fm::tardiness_bounds(&set, turns, &system).len(),
                    set.len()
                );
            }
            if !matches!(assignment, Assignment::Clustered(_)) {
                let _ = holds(&set, &assignment, &system);
            }
        }
        let quantum = ns(costs[6]);
        adds_up(
            &set,
            &quanta::account(&set, &CpuSet::first(m), quantum, &system),
        );
    }
}
