//! What must hold of any assignment of EDF-fm, EDF-WM and NPS-F.

use analyze::partition::{Fit, Order};
use analyze::semi::{edf_fm, edf_wm, nps_f, processors};
use analyze::uniprocessor::{Work, edf, longest_last};
use model::assignment::{Slice, Slots};
use model::{CpuId, Duration, Timing};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};
use proptest::prelude::*;
use testing::times::{ms, ns};

/// One time unit in nanoseconds: a millisecond.
const UNIT: u64 = 1_000_000;

fn implicit(tasks: usize) -> impl Strategy<Value = Vec<Timing>> {
    let one = (3u64..=40, 1u64..=100)
        .prop_map(|(p, share)| Timing::implicit(ns((p * UNIT * share).div_ceil(100)), ms(p)));
    prop::collection::vec(one, 1..=tasks)
}
fn rational(num: u64, den: u64) -> BigRational {
    BigRational::new(BigInt::from(num), BigInt::from(den))
}
fn utilization(t: &Timing) -> BigRational {
    rational(t.wcet.nanos(), t.period.nanos())
}

/// How long a server is served in a slot, and that never twice at once.
fn served(slots: &Slots, server: u32) -> Result<u64, String> {
    let mut spans: Vec<(u64, u64)> = slots
        .timetables
        .iter()
        .flat_map(|t| &t.turns)
        .filter(|s| s.server == server)
        .map(|s| (s.start.nanos(), s.end.nanos()))
        .collect();
    spans.sort_unstable();
    if spans.windows(2).any(|w| w[1].0 < w[0].1) {
        return Err(format!(
            "server {server} on two processors at once: {spans:?}"
        ));
    }
    Ok(spans.iter().map(|(start, end)| end - start).sum())
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(500),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn edf_fm_fills_no_processor_beyond_one_and_splits_at_most_m_less_one(
        set in implicit(12),
        m in 1u32..=5,
        spread in any::<bool>(),
    ) {
        let fill = if spread { edf_fm::Fill::Spread } else { edf_fm::Fill::Full };
        let total = set.iter().fold(BigRational::zero(), |s, t| s + utilization(t));
        match edf_fm::assign(&set, &processors(m), fill) {
            Ok(turns) => {
                let mut load = vec![BigRational::zero(); m as usize];
                let mut heavy = vec![BigRational::zero(); m as usize];
                for (t, turn) in set.iter().zip(&turns.tasks) {
                    let part = rational(turn.part, turn.whole);
                    load[turn.first.index()] += utilization(t) * &part;
                    load[turn.second.index()] += utilization(t) * (BigRational::one() - part);
                    if turn.is_migratory() {
                        prop_assert_eq!(turn.second.0, turn.first.0 + 1);
                        prop_assert!(turn.part > 0 && turn.part < turn.whole);
                        heavy[turn.first.index()] += utilization(t);
                        heavy[turn.second.index()] += utilization(t);
                    }
                }
                prop_assert!(load.iter().chain(&heavy).all(|l| *l <= BigRational::one()));
                prop_assert!(turns.tasks.iter().filter(|t| t.is_migratory()).count() < m as usize);
                prop_assert_eq!(load.iter().fold(BigRational::zero(), |s, l| s + l), total);
            }
            // Less than a nanosecond a period is given away at each border.
            Err(edf_fm::Refusal::Task(_)) => {
                let given_away = rational(u64::from(m), 1_000_000);
                prop_assert!(spread || total > rational(u64::from(m), 1) - given_away);
            }
            Err(edf_fm::Refusal::Migratory(_)) => {
                prop_assert!(set.iter().any(|t| utilization(t) > rational(1, 2)));
            }
        }
    }

    #[test]
    fn edf_wm_leaves_every_processor_schedulable_with_slices_as_tasks(
        set in implicit(10),
        m in 1u32..=4,
        squeeze in 50u64..=100,
    ) {
        let set: Vec<Timing> = set.iter().map(|t| {
            let deadline = ns((t.period.nanos() * squeeze / 100).max(t.wcet.nanos()));
            Timing { deadline, ..*t }
        }).collect();
        for fit in Fit::ALL {
            let settings = edf_wm::Settings { fit, ..edf_wm::Settings::default() };
            let Ok(slices) = edf_wm::assign(&set, &processors(m), &settings) else { continue };
            let mut on: Vec<Vec<Timing>> = vec![Vec::new(); m as usize];
            for (t, parts) in set.iter().zip(&slices.tasks) {
                let budget: Duration = parts.iter().map(|s| s.budget).sum();
                let windows: Duration = parts.iter().map(|s| s.window).sum();
                prop_assert!(budget >= t.wcet && windows <= t.deadline);
                for s in parts {
                    prop_assert!(parts.len() == 1 || s.budget >= analyze::semi::SHORTEST_SLICE);
                    let visits = parts.iter().filter(|o| o.cpu == s.cpu).count();
                    prop_assert_eq!(visits, 1, "a job never comes back");
                    on[s.cpu.index()].push(Timing {
                        wcet: s.budget,
                        period: t.period,
                        deadline: s.window,
                    });
                }
            }
            for tasks in on {
                prop_assert_eq!(edf::decide(&tasks), Ok(true));
            }
        }
    }

    /// One pass of QPA that cuts the slice, and the longest that passes the exact test, found by
    /// trying them all.
    #[test]
    fn the_longest_slice_of_one_pass_is_the_longest_of_all(
        set in prop::collection::vec((1u64..=12, 2u64..=24, 1u64..=30), 0..5),
        period in 2u64..=24,
        window in 1u64..=24,
    ) {
        let mut tasks: Vec<Timing> = set.iter().map(|(e, p, d)| Timing {
            wcet: ns(*e), period: ns(*p), deadline: ns(*d),
        }).collect();
        while edf::decide(&tasks) != Ok(true) {
            tasks.pop();
        }
        let with = |wcet: u64| {
            let slice = Timing { wcet: ns(wcet), period: ns(period), deadline: ns(window) };
            [&tasks[..], &[slice]].concat()
        };
        let most = window.min(period);
        let fits = |tasks: &[Timing]| {
            let utilizations = tasks.iter().map(Timing::utilization);
            model::exact::cmp_sum(utilizations, model::Ratio::ONE).is_le()
        };
        let by_utilization = (0..=most).rev().find(|e| fits(&with(*e))).unwrap();
        let expected = (1..=most).rev().find(|e| edf::decide(&with(*e)) == Ok(true)).unwrap_or(0);
        for least in 0..=most {
            let mut tasks = with(by_utilization);
            let found = longest_last(&mut tasks, ns(least), &mut Work::new()).unwrap();
            // Below `least` it need not be exact, but never is less.
            match expected >= least {
                true => prop_assert_eq!(found, ns(expected)),
                false => prop_assert!(found < ns(least) && found >= ns(expected)),
            }
        }
    }

    #[test]
    fn edf_wm_is_never_worse_than_partitioning(set in implicit(10), m in 1u32..=4) {
        use analyze::partition::{Acceptance, partition};
        let settings = edf_wm::Settings { order: Order::Given, ..edf_wm::Settings::default() };
        if let Ok(bins) = partition(&set, m, Order::Given, Fit::First, Acceptance::Edf) {
            let slices = edf_wm::assign(&set, &processors(m), &settings).unwrap();
            let is_whole = |(s, b): (&Vec<Slice>, &u32)| s.len() == 1 && s[0].cpu.0 == *b;
            prop_assert!(slices.tasks.iter().zip(&bins).all(is_whole));
        }
    }

    /// Σ ⌈I S⌉ on paper, and the layout: enough for every server, never two processors at once,
    /// within the slot.
    #[test]
    fn nps_f_serves_every_server_enough_and_only_once_at_a_time(
        set in implicit(10),
        m in 1u32..=4,
        delta in 1u32..=6,
        clustered in any::<bool>(),
    ) {
        let clusters: Vec<Vec<CpuId>> = if clustered {
            processors(m).chunks(2).map(<[CpuId]>::to_vec).collect()
        } else {
            vec![processors(m)]
        };
        let settings = nps_f::Settings {
            delta, shortest: ns(1), turn: ns(1), ..nps_f::Settings::default()
        };
        let slots = match nps_f::assign(&set, &clusters, &settings) {
            Ok(slots) => slots,
            Err(_) => return Ok(()),
        };
        let count = slots.server_of.iter().max().unwrap() + 1;
        let mut inflated_total = BigRational::zero();
        for server in 0..count {
            let load = set.iter().zip(&slots.server_of).filter(|(_, s)| **s == server)
                .fold(BigRational::zero(), |sum, (t, _)| sum + utilization(t));
            prop_assert!(load <= BigRational::one());
            let d = rational(u64::from(delta), 1);
            let inflated = (&d + BigRational::one()) * &load / (&load + d);
            let length = served(&slots, server).map_err(TestCaseError::fail)?;
            let need = &inflated * rational(slots.slot.nanos(), 1);
            let length = rational(length, 1);
            prop_assert!(length >= need && length <= need + rational(3, 1));
            inflated_total += inflated;
            if clustered {
                let serves = |cluster: &&Vec<CpuId>| {
                    let mut here = slots.timetables.iter().filter(|t| cluster.contains(&t.cpu));
                    here.any(|t| t.turns.iter().any(|s| s.server == server))
                };
                let count = clusters.iter().filter(serves).count();
                prop_assert_eq!(count, 1, "server {} crosses clusters", server);
            }
        }
        prop_assert!(inflated_total <= rational(u64::from(m), 1));
        for t in &slots.timetables {
            prop_assert!(t.turns.windows(2).all(|w| w[0].end <= w[1].start));
            prop_assert!(t.turns.iter().all(|s| s.start < s.end && s.end <= slots.slot));
        }
    }

    /// 002 §5.1.2: no sub-task of EDF-WM below 50 us, no server of NPS-F below 150 us.
    #[test]
    fn nothing_is_shorter_than_what_the_paper_enforces(set in implicit(10), m in 1u32..=4) {
        let us = |d: Duration| d.nanos() / 1_000;
        if let Ok(slots) = nps_f::assign(&set, &[processors(m)], &nps_f::Settings::default()) {
            let turns = || slots.timetables.iter().flat_map(|t| &t.turns);
            for turn in turns() {
                let of_server = turns().filter(|t| t.server == turn.server);
                let reserve: Duration = of_server.map(|t| t.end.saturating_sub(t.start)).sum();
                prop_assert!(us(reserve) >= 150, "{:?}", turn);
                prop_assert!(us(turn.end.saturating_sub(turn.start)) >= 50, "{:?}", turn);
            }
        }
        if let Ok(slices) = edf_wm::assign(&set, &processors(m), &edf_wm::Settings::default()) {
            for parts in slices.tasks.iter().filter(|parts| parts.len() > 1) {
                prop_assert!(parts.iter().all(|s| us(s.budget) >= 50), "{:?}", parts);
            }
        }
    }

    #[test]
    fn a_longer_wcet_never_helps_edf_fm(
        set in implicit(8),
        m in 1u32..=4,
        which in 0usize..8,
        extra in 1u64..2_000_000,
    ) {
        let mut longer = set.clone();
        let at = which % set.len();
        longer[at] = longer[at].inflated(ns(extra));
        let (with, without) = ((edf_fm::INFO.run)(&longer, m), (edf_fm::INFO.run)(&set, m));
        // Next fit is not monotone: a longer task may move another one to where it migrates less.
        // What is never allowed is to accept more than there are processors.
        if with == Ok(true) {
            let total = longer.iter().fold(BigRational::zero(), |s, t| s + utilization(t));
            prop_assert!(total <= rational(u64::from(m), 1));
        }
        prop_assert!(without.is_ok());
    }
}
