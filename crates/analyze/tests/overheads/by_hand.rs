//! The formulas by hand, and what the paper says about packing.

use super::{delays_of, each_alone, task, us};
use analyze::Guarantee;
use analyze::overheads::{
    CacheCharge, CacheDelays, Kind, Overheads, Packed, System, account, holds, pack,
};
use analyze::partition::{Fit, Order};
use analyze::semi::processors;
use model::assignment::{Clustered, Serve, Slice, Slices, Slots, Timetable, Turn, Turns};
use model::profile::{Code, Intervals, OverheadCurve, OverheadKind, OverheadPoint, Statistic};
use model::{Assignment, CpuId, CpuSet, Duration, Platform, Profile, Provenance};

fn one_cluster(m: u32, tasks: usize) -> Assignment {
    Assignment::Clustered(Clustered {
        clusters: vec![CpuSet::first(m)],
        cluster_of: vec![0; tasks],
    })
}

const SOME: Overheads = Overheads {
    scheduling: Duration::from_micros(3),
    context_switch: Duration::from_micros(2),
    ipi_latency: Duration::from_micros(7),
    tick: Duration::from_micros(10),
    release: Duration::from_micros(5),
    ..Overheads::NONE
};

/// 002 §6.1 by hand: e + 2 (scheduling + context switch) + the own cache delay + that of the other
/// task, and the tick and two releases taken off the time.
#[test]
fn a_job_pays_what_the_formula_says() {
    let set = [task(1_000, 10_000), task(2_000, 20_000)];
    let on = |m: u32, guarantee| {
        let platform = Platform::symmetric(m);
        let delays = CacheDelays::any_way(&platform, &[us(50), us(100)]);
        let system = System {
            platform: &platform,
            overheads: &SOME,
            delays: &delays,
            guarantee,
            charge: CacheCharge::Twice,
        };
        account(&set, &one_cluster(m, 2), &system)
    };
    // w = (c + 10 + 2·5) / (1 − 10/1000 − 5/10000 − 5/20000) with c = 1000 + 10 + 150: 1180 /
    // 0.98925 = 1192.822845….
    let one = on(1, Guarantee::Soft);
    assert_eq!(one.inflated[0].wcet.nanos(), 1_192_823);
    // c = 2000 + 10 + 150: 2180 / 0.98925 = 2203.689663….
    assert_eq!(one.inflated[1].wcet.nanos(), 2_203_690);
    // An IPI where the cluster is wider: 1187 / 0.98925 = 1199.898913….
    assert_eq!(on(2, Guarantee::Soft).inflated[0].wcet.nanos(), 1_199_899);
    // Hard: one more section of the kernel, of 5: 1185 / 0.98925 = 1197.877180….
    assert_eq!(on(1, Guarantee::Hard).inflated[0].wcet.nanos(), 1_197_878);
    // Hard, on two processors: 6 · 3 + 5 · 2 + 2 · 7 instead of 2 · 3 + 2 · 2: 1212 / 0.98925 =
    // 1225.170584….
    assert_eq!(on(2, Guarantee::Hard).inflated[0].wcet.nanos(), 1_225_171);
    // What of the first figure is for what: 10/1000 of 1192.823 and 10 for ticks, the rest for
    // releases.
    let parts = one.parts[0];
    assert_eq!(parts[Kind::Scheduling], us(6));
    assert_eq!(parts[Kind::ContextSwitch], us(4));
    assert_eq!(parts[Kind::Cpmd], us(150));
    assert_eq!(parts[Kind::Tick].nanos(), 10_000 + 11_928);
    assert_eq!(parts[Kind::Release].nanos(), 10_000 + 895);
    assert_eq!(parts[Kind::IpiLatency], Duration::ZERO);
}

/// 000 §2 charges one delay a job, 002 §6.1 two: where all tasks have the same and nothing else
/// costs, they differ by exactly one.
#[test]
fn the_rules_of_the_two_papers_differ_by_one_delay() {
    let set = [task(1_000, 10_000), task(500, 20_000)];
    let platform = Platform::symmetric(1);
    let delays = CacheDelays::any_way(&platform, &[us(80), us(80)]);
    let system = System {
        platform: &platform,
        overheads: &Overheads::NONE,
        delays: &delays,
        guarantee: Guarantee::Hard,
        charge: CacheCharge::Twice,
    };
    let two = account(&set, &one_cluster(1, 2), &system);
    for (inflated, t) in two.inflated.iter().zip(&set) {
        assert_eq!(*inflated, t.inflated(us(80)).inflated(us(80)));
    }
}

/// 002 §6.1: ignoring overheads while packing over-utilizes; with them the placement is rolled back
/// and the next bin tried.
#[test]
fn packing_rolls_back_a_placement_that_overheads_forbid() {
    let set = [task(500, 1_000), task(480, 1_000)];
    let with = |release| {
        let overheads = Overheads {
            release,
            ..Overheads::NONE
        };
        let platform = Platform::symmetric(2);
        let system = System {
            platform: &platform,
            overheads: &overheads,
            delays: &CacheDelays::none(2),
            guarantee: Guarantee::Hard,
            charge: CacheCharge::Twice,
        };
        pack(
            &set,
            &each_alone(2),
            &system,
            Order::DecreasingUtilization,
            Fit::First,
        )
        .map(|p: Packed| p.assignment.cluster_of)
    };
    assert_eq!(with(Duration::ZERO), Ok(vec![0, 0]));
    assert_eq!(with(us(10)), Ok(vec![0, 1]));
    assert!(with(us(400)).is_err());
}

/// Packing is a heuristic, and with overheads too it has anomalies: here first fit finds nothing at
/// 10 us a release and something at 11 us.
///
/// Two long tasks just fill a processor at 10 us, so that the four short ones have to share the
/// other and cost each other too much; at 11 us the long ones no longer fit together. What holds at
/// 11 us holds at 10 us: an assignment is a proof for all that costs less, and only a refusal is no
/// proof.
#[test]
fn packing_may_find_with_more_overhead_what_it_misses_with_less() {
    let long = task(49_969, 100_000);
    let short = task(203, 1_000);
    let set = [long, long, short, short, short, short];
    let platform = Platform::symmetric(2);
    let delays = CacheDelays::none(set.len());
    let costs = [us(10), us(11)].map(|release| Overheads {
        release,
        ..Overheads::NONE
    });
    let [less, more] = [0, 1].map(|at: usize| System {
        platform: &platform,
        overheads: &costs[at],
        delays: &delays,
        guarantee: Guarantee::Hard,
        charge: CacheCharge::Twice,
    });
    let first_fit = |system: &System<'_>| {
        pack(
            &set,
            &each_alone(2),
            system,
            Order::DecreasingUtilization,
            Fit::First,
        )
    };
    assert_eq!(first_fit(&less), Err(5));
    let packed = first_fit(&more).unwrap();
    assert_eq!(packed.assignment.cluster_of, [0, 1, 0, 0, 1, 1]);
    let assignment = Assignment::Clustered(packed.assignment);
    assert!(holds(&set, &assignment, &more));
    assert!(holds(&set, &assignment, &less));
}

/// EDF-fm, T3 of Example 4.1.1 in ms: on its first processor it brings two ninths of its releases
/// and timer transfers, and begins after a migration; so do the tasks that stay pay for it.
#[test]
fn a_task_that_takes_turns_pays_on_both_processors() {
    let set = [
        task(9_000, 20_000),
        task(9_000, 20_000),
        task(9_000, 20_000),
    ];
    let turns = Turns {
        cpus: processors(2),
        tasks: vec![
            Turn::fixed(CpuId(0)),
            Turn::fixed(CpuId(0)),
            Turn {
                first: CpuId(0),
                second: CpuId(1),
                part: 2,
                whole: 9,
            },
        ],
    };
    let overheads = Overheads {
        timer_transfer: us(6),
        release: us(9),
        ..SOME
    };
    let platform = Platform::symmetric(2);
    let delays = delays_of(&platform, 3, &[(10, 90), (20, 80), (30, 70)]);
    let system = System {
        platform: &platform,
        overheads: &overheads,
        delays: &delays,
        guarantee: Guarantee::Soft,
        charge: CacheCharge::Twice,
    };
    let accounted = account(&set, &Assignment::Turns(turns), &system);
    let of = |task: u32, place: u32| {
        let piece = accounted
            .pieces
            .iter()
            .find(|p| p.task.0 == task && p.place == place);
        piece.unwrap().timing.wcet.nanos()
    };
    // P0, once: a tick 10; releases 9 + 9 + 9 (2/9 + 1) = 29; timers 6 (2/9 (p/p + 1) + 1) = 8 2/3.
    // Rate: 10/1000 + (9 + 9 + 2 + 4/3) / 20000. T1: c = 9000 + 2·3 + 2·2 + 10 + 30 + those = 9097
    // 2/3.
    assert_eq!(of(0, 0), 9_199_475);
    // T3 begins after a migration, 100, may be handed over by a call, 7, and disturbs at most 20: c
    // = 9000 + 10 + 127 + those = 9184 2/3.
    assert_eq!(of(2, 0), 9_287_449);
    // P1, where it is alone: releases 9 (7/9 + 1) = 16, timers 6 (14/9 + 1) = 15 1/3, rate
    // 10/1000 + (7 + 14/3) / 20000, and it disturbs nobody: c = 9000 + 10 + 107 + 10 + 31 1/3,
    // where each once is rounded up to a nanosecond.
    assert_eq!(of(2, 1), 9_256_297);
}

/// EDF-WM: a slice begins after the migration from the slice before, its processor programs a timer
/// for it, and a slice that is used up at the end of its window calls the next one.
#[test]
fn slices_pay_for_migrations_timers_and_calls() {
    let set = [task(800, 2_000)];
    let slice = |cpu, budget| Slice {
        cpu: CpuId(cpu),
        budget: us(budget),
        window: us(1_000),
    };
    let slices = Slices {
        cpus: processors(2),
        tasks: vec![vec![slice(1, 500), slice(0, 300)]],
    };
    let overheads = Overheads {
        timer_transfer: us(4),
        tick: Duration::ZERO,
        ..SOME
    };
    let platform = Platform::symmetric(2);
    let delays = delays_of(&platform, 1, &[(10, 40)]);
    let system = System {
        platform: &platform,
        overheads: &overheads,
        delays: &delays,
        guarantee: Guarantee::Soft,
        charge: CacheCharge::Twice,
    };
    let accounted = account(&set, &Assignment::Slices(slices), &system);
    let of = |place: u32| accounted.pieces.iter().find(|p| p.place == place).unwrap();
    // Second slice: 300 + 2 (3 + 2) + 50 + an IPI 7, once a release 5 and timers 4 (1000/2000 + 1)
    // = 6: 378 / (1 − 9/2000).
    assert_eq!(of(0).timing.wcet.nanos(), 379_709);
    assert_eq!(of(0).parts[Kind::IpiLatency], us(7));
    // First slice: 500 + 10 + 50, once 5 and timers 4 (2000/2000 + 1) = 8: 573 / (1 − 9/2000).
    assert_eq!(of(1).timing.wcet.nanos(), 575_591);
    assert_eq!(of(1).parts[Kind::IpiLatency], Duration::ZERO);
    assert_eq!(
        accounted.inflated[0].wcet,
        of(0).timing.wcet + of(1).timing.wcet
    );
}

/// NPS-F: a server that is split pays a migration and an IPI in each of its turns, one that is not
/// a preemption; releases of others interrupt it only on the processors that it shares.
#[test]
fn servers_pay_for_switches_by_how_they_are_mapped() {
    let set = [
        task(4_000, 10_000),
        task(4_000, 10_000),
        task(2_000, 10_000),
    ];
    let serve = |start, end, server| Serve {
        start: us(start),
        end: us(end),
        server,
    };
    let slots = Slots {
        slot: us(10_000),
        server_of: vec![0, 1, 2],
        timetables: vec![
            Timetable {
                cpu: CpuId(0),
                turns: vec![serve(0, 6_000, 0), serve(6_000, 10_000, 1)],
            },
            Timetable {
                cpu: CpuId(1),
                turns: vec![serve(0, 3_000, 1), serve(3_000, 8_000, 2)],
            },
        ],
    };
    let platform = Platform::symmetric(2);
    let delays = delays_of(&platform, 3, &[(10, 40), (10, 40), (10, 40)]);
    let overheads = Overheads {
        tick: Duration::ZERO,
        ..SOME
    };
    let system = System {
        platform: &platform,
        overheads: &overheads,
        delays: &delays,
        guarantee: Guarantee::Soft,
        charge: CacheCharge::Twice,
    };
    let accounted = account(&set, &Assignment::Slots(slots), &system);
    // Two decisions, two switches, the own release, a delay; the split one's is a migration, and it
    // is called.
    let inflations: Vec<u64> = accounted.parts.iter().map(|p| p.total().nanos()).collect();
    assert_eq!(inflations, [25_000, 72_000, 25_000]);
    // P0: a part of 10 ms: T1 and 4/7 of T2 pay for themselves; two switches of 5, a delay of 10
    // and one of 50 with a call of 7; of the releases of others, at once and then every period:
    // 2·5 + 5 for the first server (own and T2's, and T2's again), and 4/7 of 3·5 + 2·5 for the
    // second.
    let p0 = &accounted.places[0].lost;
    let ms10 = |us: f64| us / 10_000.0;
    assert!((p0[Kind::IpiLatency] - ms10(7.0 * 4.0 / 7.0 + 7.0)).abs() < 1e-12);
    assert!((p0[Kind::Cpmd] - ms10(10.0 + 50.0 * 4.0 / 7.0 + 10.0 + 50.0)).abs() < 1e-12);
    assert!((p0[Kind::Release] - ms10(5.0 + 15.0 + (5.0 + 25.0) * 4.0 / 7.0)).abs() < 1e-12);
    assert_eq!(p0[Kind::TimerTransfer], 0.0);
}

#[test]
fn curves_are_read_by_policy_and_gaps_are_told() {
    let mut profile = Profile::new("test", Provenance::default());
    let curve = |policy: &str, average: u64| OverheadCurve {
        kind: OverheadKind::Scheduling,
        policy: policy.to_owned(),
        code: None,
        points: [10, 20]
            .map(|tasks| OverheadPoint {
                tasks,
                samples: 1,
                average: Some(us(average * u64::from(tasks))),
                maximum: Some(us(100 * u64::from(tasks))),
                untrimmed: None,
                intervals: Intervals::default(),
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
    assert_eq!(gaps.own_only, []);
    profile.overheads[0].code = Some(Code::Own);
    let (_, gaps) = Overheads::read(&profile, "p-edf", 15, Statistic::Average);
    assert_eq!(gaps.own_only, [OverheadKind::Scheduling]);
}

/// Setting a timer is a part of the overhead that ends with it: a profile that tells it apart
/// charges no more, and one without it lacks nothing.
#[test]
fn timer_rearming_is_charged_to_nobody() {
    let curve = |kind| OverheadCurve {
        kind,
        policy: String::new(),
        code: Some(Code::Both),
        points: vec![OverheadPoint {
            tasks: 4,
            samples: 1,
            average: Some(us(3)),
            maximum: Some(us(7)),
            untrimmed: None,
            intervals: Intervals::default(),
        }],
    };
    let (whole, apart): (Vec<_>, Vec<_>) = OverheadKind::ALL
        .into_iter()
        .partition(|kind| kind.is_charged());
    assert_eq!(apart, [OverheadKind::TimerRearming]);
    let mut profile = Profile::new("test", Provenance::default());
    profile.overheads = whole.into_iter().map(curve).collect();
    let read = |profile: &Profile| Overheads::read(profile, "nps-f", 4, Statistic::Maximum);
    let without = read(&profile);
    assert_eq!(without.1.missing, []);
    profile.overheads.extend(apart.into_iter().map(curve));
    assert_eq!(read(&profile), without);
}
