//! EDF-fm, EDF-WM and NPS-F: the worked examples of 002 chapter 4 number by number, and what must
//! hold of any assignment.

use analyze::partition::{Fit, Order};
use analyze::semi::{edf_fm, edf_wm, nps_f, processors};
use analyze::uniprocessor::{Work, edf};
use model::assignment::{Serve, Slots, Turn};
use model::{CpuId, Duration, Timing};
use num_bigint::BigInt;
use num_rational::BigRational;
use num_traits::{One, Zero};
use proptest::prelude::*;

/// One time unit of the examples: a millisecond, as in 002 §4.4.1.
const UNIT: u64 = 1_000_000;

fn units(n: u64) -> Duration {
    Duration::from_nanos(n * UNIT)
}
fn nanos(n: u64) -> Duration {
    Duration::from_nanos(n)
}

/// Example 4.1.1: T1 = T2 = T3 = (9, 20), T4 = T5 = T6 = (2, 5), T7 = (1, 3).
fn example() -> Vec<Timing> {
    [(9, 20), (9, 20), (9, 20), (2, 5), (2, 5), (2, 5), (1, 3)]
        .iter()
        .map(|(e, p)| Timing::implicit(units(*e), units(*p)))
        .collect()
}

fn migratory(first: u32, second: u32, part: u64, whole: u64) -> Turn {
    Turn {
        first: CpuId(first),
        second: CpuId(second),
        part,
        whole,
    }
}

/// Example 4.1.1 and Fig. 4.1: T3 has 2/20 on P1 and 7/20 on P2, T5 has 5/20 on P2 and 3/20 on P3;
/// of nine jobs of T3 two run on P1 and seven on P2. (P1 of the paper is processor 0.)
#[test]
fn example_4_1_1_shares_of_edf_fm() {
    let set = example();
    let turns = edf_fm::assign(&set, &processors(3), edf_fm::Fill::Full).unwrap();
    let expected = [
        Turn::fixed(CpuId(0)),
        Turn::fixed(CpuId(0)),
        migratory(0, 1, 2, 9),
        Turn::fixed(CpuId(1)),
        // Of 2/5 = 8/20, five twentieths and three.
        migratory(1, 2, 5, 8),
        Turn::fixed(CpuId(2)),
        Turn::fixed(CpuId(2)),
    ];
    assert_eq!(turns.tasks, expected);
    // Only the last processor has capacity left.
    let bounds = edf_fm::tardiness_bounds(&set, &turns);
    assert_eq!(bounds[2], Duration::ZERO);
    assert_eq!(bounds[4], Duration::ZERO);
    // P1: 9 (2/9 + 1) / (1 − 2/20) = 110/9 ms for both fixed tasks, for the processor is full.
    assert_eq!(bounds[0], nanos(12_222_223));
    assert_eq!(bounds[1], nanos(12_222_223));
    // P2: (9 (7/9 + 1) + 2 (5/8 + 1)) / (1 − 12/20) = 19.25 / 0.4.
    assert_eq!(bounds[3], nanos(48_125_000));
    // P3: S = 3/20, V = 2/5 + 1/3: (2 (3/8 + 1) − p (1 − 3/20 − 11/15)) / (17/20), p = 5 and 3.
    assert_eq!(bounds[5], nanos(2_549_020));
    assert_eq!(bounds[6], nanos(2_823_530));
}

#[test]
fn edf_fm_refuses_migratory_tasks_that_overload_a_processor() {
    // Obs. 6.4.5: sets of heavy tasks only. The second and the third task would both migrate to the
    // second processor.
    let set = [Timing::implicit(units(7), units(10)); 4];
    assert_eq!(
        edf_fm::assign(&set, &processors(3), edf_fm::Fill::Full),
        Err(edf_fm::Refusal::Migratory(1))
    );
    let too_much = [Timing::implicit(units(1), units(2)); 5];
    assert_eq!(
        edf_fm::assign(&too_much, &processors(2), edf_fm::Fill::Full),
        Err(edf_fm::Refusal::Task(4))
    );
}

/// 002 §4.1: in lightly loaded systems the strategy is altered for better load distribution.
#[test]
fn the_spread_variant_loads_processors_evenly() {
    let set = [Timing::implicit(units(1), units(4)); 4];
    let cpus = |fill| -> Vec<u32> {
        let turns = edf_fm::assign(&set, &processors(2), fill).unwrap();
        turns.tasks.iter().map(|t| t.first.0).collect()
    };
    assert_eq!(cpus(edf_fm::Fill::Full), [0, 0, 0, 0]);
    assert_eq!(cpus(edf_fm::Fill::Spread), [0, 0, 1, 1]);
}

/// Example 4.2.1 and Fig. 4.2, first fit: T7 is split into 0.5 on P3, 0.43 on P2 and 0.07 on P1,
/// windows of 1.0 each.
#[test]
fn example_4_2_1_slices_of_edf_wm() {
    let settings = edf_wm::Settings {
        order: Order::Given,
        fit: Fit::First,
        ..edf_wm::Settings::default()
    };
    let slices = edf_wm::assign(&example(), &processors(3), &settings).unwrap();
    let fixed: Vec<u32> = slices.tasks[..6].iter().map(|s| s[0].cpu.0).collect();
    assert_eq!(fixed, [0, 0, 1, 1, 2, 2]);
    let split: Vec<(u32, u64, u64)> = slices.tasks[6]
        .iter()
        .map(|s| (s.cpu.0, s.budget.nanos(), s.window.nanos()))
        .collect();
    // 0.5; 3/7 rounded down; what is missing to 1.
    assert_eq!(
        split,
        [(2, 500_000, UNIT), (1, 428_571, UNIT), (0, 71_429, UNIT)]
    );
}

#[test]
fn the_shortest_slice_is_kept() {
    let settings = edf_wm::Settings {
        order: Order::Given,
        shortest: nanos(100_000),
        ..edf_wm::Settings::default()
    };
    let slices = edf_wm::assign(&example(), &processors(3), &settings).unwrap();
    let budgets: Vec<u64> = slices.tasks[6].iter().map(|s| s.budget.nanos()).collect();
    // The last is lengthened to 100 us, the first gives what it need not.
    assert_eq!(budgets, [471_429, 428_571, 100_000]);
    let coarse = edf_wm::Settings {
        shortest: nanos(450_000),
        ..settings
    };
    assert_eq!(
        edf_wm::assign(&example(), &processors(3), &coarse),
        Err(edf_wm::Refusal::Task(6))
    );
}

fn serve(start: u64, end: u64, server: u32) -> Serve {
    Serve {
        start: nanos(start),
        end: nanos(end),
        server,
    }
}

/// Tasks that together fill all processors to the last nanosecond, with periods that share nothing:
/// slices leave a little.
#[test]
fn slices_of_a_full_machine_take_counted_work() {
    let set: Vec<Timing> = (0..40u64)
        .map(|i| {
            let period = 10_000_019 + 2_000_003 * i;
            Timing::implicit(nanos(period * (60 + i % 7) / 100), nanos(period))
        })
        .collect();
    for m in 25..=32 {
        let assign = |work| {
            edf_wm::assign(
                &set,
                &processors(m),
                &edf_wm::Settings {
                    work,
                    ..edf_wm::Settings::default()
                },
            )
        };
        let all = assign(edf_wm::Settings::default().work);
        assert_eq!(
            all,
            assign(edf_wm::Settings::default().work),
            "the same answer again"
        );
        assert!(all != Err(edf_wm::Refusal::Limit), "{m}");
        assert_eq!(assign(1_000), Err(edf_wm::Refusal::Limit), "{m}");
    }
}

/// Example 4.3.1 and Fig. 4.3: δ = 5, S = 0.6; N1 = {T1, T2}, N2 = {T3, T4}, N3 = {T5, T6}, N4 =
/// {T7}; execution requirements 0.55, 0.52, 0.50, 0.22; N2 is split between P1 and P2, N3 between
/// P2 and P3.
///
/// §4.4.1 calls the idle time after N4 0.007; 3 S − S Σ I(5, U) is 0.0062, which is what the
/// reserves leave.
#[test]
fn example_4_3_1_servers_of_nps_f() {
    let settings = nps_f::Settings {
        delta: 5,
        ..nps_f::Settings::default()
    };
    let slots = nps_f::assign(&example(), &[processors(3)], &settings).unwrap();
    assert_eq!(slots.slot, nanos(600_000));
    assert_eq!(slots.server_of, [0, 0, 1, 1, 2, 2, 3]);
    let turns: Vec<&[Serve]> = slots.timetables.iter().map(|t| &t.turns[..]).collect();
    // I(5, 0.9) S = 5.4 / 5.9 · 0.6 = 0.549153; I(5, 0.85) S = 0.523077; I(5, 0.8) S = 0.496552;
    // I(5, 1/3) S = 0.225.
    assert_eq!(turns[0], [serve(0, 549_153, 0), serve(549_153, 600_000, 1)]);
    assert_eq!(turns[1], [serve(0, 472_230, 1), serve(472_230, 600_000, 2)]);
    assert_eq!(turns[2], [serve(0, 368_782, 2), serve(368_782, 593_782, 3)]);
    assert_eq!(600_000 - 593_782, 6_218);
}

/// 1/3 + 2/3 = 1 and 3 · 1/3 = 1: no ratio of these is a binary fraction, and rounding must not
/// open a second server.
#[test]
fn nps_f_fills_a_server_to_exactly_one_and_no_further() {
    let third = Timing::implicit(units(1), units(3));
    let two_thirds = Timing::implicit(units(2), units(3));
    for run in [nps_f::INFO.run, nps_f::CLUSTERED.run] {
        assert_eq!(run(&[two_thirds, third], 1), Ok(true));
        assert_eq!(run(&[third; 3], 1), Ok(true));
        assert_eq!(run(&[two_thirds, third, two_thirds, third], 2), Ok(true));
        let above = Timing::implicit(third.wcet + Duration::from_nanos(1), third.period);
        assert_eq!(run(&[two_thirds, above], 1), Ok(false));
    }
}

#[test]
fn nps_f_needs_the_sum_of_inflated_servers() {
    // δ = 1: I(1, 2/3) = 4/5; five of them fit on four processors, exactly, six do not.
    let set = |n| vec![Timing::implicit(units(2), units(3)); n];
    let test = |n, m| (nps_f::INFO.run)(&set(n), m);
    assert_eq!(test(5, 4), Ok(true));
    assert_eq!(test(6, 4), Ok(false));
    // Clusters of two hold two each, because servers do not cross: four of them, not five.
    assert_eq!((nps_f::CLUSTERED.run)(&set(4), 4), Ok(true));
    assert_eq!((nps_f::CLUSTERED.run)(&set(5), 4), Ok(false));
    assert!(
        (nps_f::INFO.run)(
            &[Timing {
                deadline: units(1),
                ..set(1)[0]
            }],
            1
        )
        .is_err()
    );
}

fn implicit(tasks: usize) -> impl Strategy<Value = Vec<Timing>> {
    let one = (3u64..=40, 1u64..=100)
        .prop_map(|(p, share)| Timing::implicit(nanos((p * UNIT * share).div_ceil(100)), units(p)));
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
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases.max(500), failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn edf_fm_fills_no_processor_beyond_one_and_splits_at_most_m_less_one(set in implicit(12), m in 1u32..=5, spread in any::<bool>()) {
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
            Err(edf_fm::Refusal::Task(_)) => prop_assert!(spread || total > rational(u64::from(m), 1) - rational(u64::from(m), 1_000_000)),
            Err(edf_fm::Refusal::Migratory(_)) => prop_assert!(set.iter().any(|t| utilization(t) > rational(1, 2))),
        }
    }

    #[test]
    fn edf_wm_leaves_every_processor_schedulable_with_slices_as_tasks(set in implicit(10), m in 1u32..=4, squeeze in 50u64..=100) {
        let set: Vec<Timing> = set.iter().map(|t| {
            let deadline = nanos((t.period.nanos() * squeeze / 100).max(t.wcet.nanos()));
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
                    prop_assert_eq!(parts.iter().filter(|o| o.cpu == s.cpu).count(), 1, "a job never comes back");
                    on[s.cpu.index()].push(Timing { wcet: s.budget, period: t.period, deadline: s.window });
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
            wcet: nanos(*e), period: nanos(*p), deadline: nanos(*d),
        }).collect();
        while edf::decide(&tasks) != Ok(true) {
            tasks.pop();
        }
        let with = |wcet: u64| {
            let slice = Timing { wcet: nanos(wcet), period: nanos(period), deadline: nanos(window) };
            [&tasks[..], &[slice]].concat()
        };
        let most = window.min(period);
        let fits = |tasks: &[Timing]| model::exact::cmp_sum(tasks.iter().map(Timing::utilization), model::Ratio::ONE).is_le();
        let by_utilization = (0..=most).rev().find(|e| fits(&with(*e))).unwrap();
        let expected = (1..=most).rev().find(|e| edf::decide(&with(*e)) == Ok(true)).unwrap_or(0);
        let mut tasks = with(by_utilization);
        prop_assert_eq!(edf::longest_last(&mut tasks, &mut Work::new()), Ok(nanos(expected)));
    }

    #[test]
    fn edf_wm_is_never_worse_than_partitioning(set in implicit(10), m in 1u32..=4) {
        use analyze::partition::{Acceptance, partition};
        let settings = edf_wm::Settings { order: Order::Given, ..edf_wm::Settings::default() };
        if let Ok(bins) = partition(&set, m, Order::Given, Fit::First, Acceptance::Edf) {
            let slices = edf_wm::assign(&set, &processors(m), &settings).unwrap();
            prop_assert!(slices.tasks.iter().zip(&bins).all(|(s, b)| s.len() == 1 && s[0].cpu.0 == *b));
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
            delta, shortest: nanos(1), turn: nanos(1), ..nps_f::Settings::default()
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
            prop_assert!(rational(length, 1) >= need && rational(length, 1) <= need + rational(3, 1));
            inflated_total += inflated;
            if clustered {
                let at: Vec<usize> = clusters.iter().enumerate().filter(|(_, c)| {
                    slots.timetables.iter().any(|t| c.contains(&t.cpu) && t.turns.iter().any(|s| s.server == server))
                }).map(|(c, _)| c).collect();
                prop_assert_eq!(at.len(), 1, "server {} crosses clusters", server);
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
    fn a_longer_wcet_never_helps_edf_fm(set in implicit(8), m in 1u32..=4, which in 0usize..8, extra in 1u64..2_000_000) {
        let mut longer = set.clone();
        let at = which % set.len();
        longer[at] = longer[at].inflated(nanos(extra));
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

#[test]
fn hostile_sets_are_answered() {
    let p = (1u64 << 60) - 93;
    let q = (1u64 << 60) - 107;
    let max = u64::MAX;
    for set in [
        vec![
            Timing::implicit(nanos(p / 2), nanos(p)),
            Timing::implicit(nanos(q / 2 + 1), nanos(q)),
            Timing::implicit(nanos(q / 3), nanos(q)),
        ],
        vec![Timing::implicit(nanos(1), nanos(1)); 3],
        vec![Timing::implicit(nanos(max), nanos(max)); 3],
        vec![Timing::implicit(nanos(1), nanos(max)); 3],
        vec![Timing::implicit(nanos(3), nanos(2)); 3],
    ] {
        for test in [edf_fm::INFO, edf_wm::INFO, nps_f::INFO, nps_f::CLUSTERED] {
            for m in [0, 1, 2, 3] {
                let answer = (test.run)(&set, m);
                assert!(m > 0 || answer == Ok(false), "{}", test.name);
            }
        }
    }
    let many = vec![Timing::implicit(nanos(1_000), units(1)); 100_000];
    for test in [edf_fm::INFO, edf_wm::INFO, nps_f::INFO] {
        assert_eq!((test.run)(&many, 256), Ok(true), "{}", test.name);
        assert_eq!((test.run)(&many, 64), Ok(false), "{}", test.name);
    }
}

/// A job in slices ends before its successor is released: else the successor's first slice would
/// come late and leave its processor more to do at once than its demand bound says (simulated, T3
/// was 544 us later than its bound).
#[test]
fn slices_of_edf_wm_end_within_the_period_where_deadlines_are_longer() {
    let task = |e: u64, p: u64, d: u64| Timing {
        wcet: Duration::from_nanos(e),
        period: Duration::from_nanos(p),
        deadline: Duration::from_nanos(d),
    };
    let set = [
        task(2_162_400, 20_000_000, 34_000_000),
        task(8_379_300, 10_000_000, 9_400_000),
        task(6_219_603, 7_192_000, 11_291_000),
        task(1_559_631, 8_249_000, 13_528_000),
    ];
    let shorter = set.map(|t| Timing {
        wcet: Duration::from_nanos(t.wcet.nanos() * 98 / 100),
        ..t
    });
    let mut split = 0;
    for set in [set, shorter] {
        let Ok(slices) = edf_wm::assign(&set, &processors(2), &edf_wm::Settings::default()) else {
            continue;
        };
        for (t, slices) in set.iter().zip(&slices.tasks).filter(|(_, s)| s.len() > 1) {
            let windows: Duration = slices.iter().map(|s| s.window).sum();
            assert!(windows <= t.period, "{windows} of {}", t.period);
            split += 1;
        }
    }
    assert!(split > 0, "no task is split");
}
