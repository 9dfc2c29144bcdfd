//! EDF-fm, EDF-WM and NPS-F: the worked examples of 002 chapter 4 number by number, and sets at the
//! limits.

use analyze::partition::{Fit, Order};
use analyze::semi::{edf_fm, edf_wm, nps_f, processors};
use model::assignment::{Serve, Turn};
use model::{CpuId, Duration, Timing};

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

/// In the order of the set the second and the third task would both migrate to the second processor,
/// and ask for more than it has. Splitting the two smallest overloads none.
#[test]
fn edf_fm_splits_small_tasks_where_large_ones_cannot_be() {
    let set = [6, 6, 6, 5, 5].map(|e| Timing::implicit(units(e), units(10)));
    let turns = edf_fm::assign(&set, &processors(3), edf_fm::Fill::Full).unwrap();
    let expected = [
        Turn::fixed(CpuId(0)),
        Turn::fixed(CpuId(1)),
        Turn::fixed(CpuId(2)),
        // 0.3 on the second processor and 0.2 on the third.
        migratory(1, 2, 3, 5),
        // 0.4 on the first and 0.1 on the second.
        migratory(0, 1, 4, 5),
    ];
    assert_eq!(turns.tasks, expected);
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
