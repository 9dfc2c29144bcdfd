//! The schedules that the papers draw, event by event. Unit: 1 ms where the papers have no unit.

use crate::support::{Instance, Small, UNIT, occupancy};
use model::assignment::{Clustered, Serve, Slice, Slices, Slots, Timetable, Turn, Turns};
use model::{Assignment, CpuId, Duration, Ratio};
use simulate::{Execution, Scenario};

fn small(wcet: u64, period: u64) -> Small {
    Small {
        wcet,
        period,
        deadline: period,
        phase: 0,
        wss: 1,
        group: None,
    }
}

fn instance(
    m: u64,
    tasks: Vec<Small>,
    policy: &str,
    assignment: Option<Assignment>,
    horizon: u64,
) -> Instance {
    Instance {
        m,
        tasks,
        policy: policy.to_owned(),
        assignment,
        horizon,
    }
}

fn partition(m: u32, cluster_of: &[u32]) -> Option<Assignment> {
    Some(Assignment::Clustered(Clustered {
        clusters: (0..m).map(|c| [CpuId(c)].into_iter().collect()).collect(),
        cluster_of: cluster_of.to_vec(),
    }))
}

/// A line a processor, a column a unit of time: the task that runs, from 1, or a dot.
fn picture(of: &Instance) -> Vec<String> {
    let (_, _, events) = of.simulate(&of.scenario(), None);
    let table = occupancy(&events, of.m, of.horizon);
    (0..of.m as usize)
        .map(|cpu| {
            let cell =
                |slot: &Vec<Option<u32>>| slot[cpu].map_or(".".to_owned(), |t| (t + 1).to_string());
            table.iter().map(cell).collect()
        })
        .collect()
}

#[test]
fn figure_2_2_of_002_edf_and_rm_on_one_processor() {
    let tasks = vec![small(1, 3), small(2, 5), small(2, 8)];
    let edf = instance(1, tasks.clone(), "g-edf", None, 15);
    assert_eq!(picture(&edf), ["122133122122133"]);
    assert_eq!(edf.simulate(&edf.scenario(), None).0.misses(), 0);
    let rm = instance(1, tasks, "p-rm", partition(1, &[0, 0, 0]), 15);
    assert_eq!(picture(&rm), ["122132123122133"]);
    let (summary, ..) = rm.simulate(&rm.scenario(), None);
    // "T3 misses its deadline at time 8 under RM."
    let miss = summary.first_miss.unwrap();
    assert_eq!(
        (miss.task.0, miss.job, miss.deadline.nanos()),
        (2, 0, 8 * UNIT)
    );
}

#[test]
fn figure_2_6_of_002_partitioned_and_global_edf() {
    let tasks = vec![small(2, 3), small(3, 8), small(1, 7), small(5, 7)];
    // The partition in which T1 misses at 9 and 18 and T2 at 16, as the caption says: T4 is alone.
    let partitioned = instance(2, tasks.clone(), "p-edf", partition(2, &[0, 0, 0, 1]), 20);
    assert_eq!(
        picture(&partitioned),
        ["11311222111131122211", "44444..44444..44444."]
    );
    let (summary, responses, _) = partitioned.simulate(&partitioned.scenario(), None);
    let missed = |task: usize, period: u64| -> Vec<u64> {
        let jobs = responses.of[task].iter().enumerate();
        let late = jobs.filter(|(_, r)| **r > period * UNIT);
        late.map(|(job, _)| (job as u64 + 1) * period).collect()
    };
    assert_eq!((missed(0, 3), missed(1, 8)), (vec![9, 18], vec![16]));
    assert_eq!(summary.misses(), 3);
    let global = instance(2, tasks, "g-edf", None, 20);
    let drawn = picture(&global);
    assert_eq!(global.simulate(&global.scenario(), None).0.misses(), 0);
    // "T2's second job migrates": from one processor to the other.
    let second: Vec<usize> = (8..16)
        .flat_map(|t| (0..2).map(move |c| (t, c)))
        .filter(|(t, c)| drawn[*c].as_bytes()[*t] == b'2')
        .map(|(_, c)| c)
        .collect();
    assert!(second.contains(&0) && second.contains(&1), "{drawn:?}");
}

/// The seven tasks of Example 4.1.1 of 002, with so many units to the paper's one.
fn example_4_1_1(scale: u64) -> Vec<Small> {
    [(9, 20), (9, 20), (9, 20), (2, 5), (2, 5), (2, 5), (1, 3)]
        .map(|(e, p)| small(scale * e, scale * p))
        .to_vec()
}

#[test]
fn figure_4_1_of_002_edf_fm_deals_jobs_out_by_shares() {
    // T3: 2/20 on P1 and 7/20 on P2. T5 gets what is left there, 5/20 as the text has it, and 3/20
    // on P3.
    let fixed = |cpu: u32| Turn::fixed(CpuId(cpu));
    let turn = |first, second, part, whole| Turn {
        first: CpuId(first),
        second: CpuId(second),
        part,
        whole,
    };
    let assignment = Assignment::Turns(Turns {
        cpus: (0..3).map(CpuId).collect(),
        tasks: vec![
            fixed(0),
            fixed(0),
            turn(0, 1, 2, 9),
            fixed(1),
            turn(1, 2, 5, 8),
            fixed(2),
            fixed(2),
        ],
    });
    let of = instance(3, example_4_1_1(100), "edf-fm", Some(assignment), 9 * 2000);
    let (summary, _, events) = of.simulate(&of.scenario(), None);
    let starts = |task: u32, cpu: u32| {
        let on = |e: &&trace::Event| {
            e.kind == trace::EventKind::Start && e.task.0 == task && e.cpu() == Some(CpuId(cpu))
        };
        events.iter().filter(on).count()
    };
    assert_eq!((starts(2, 0), starts(2, 1)), (2, 7), "of nine jobs of T3");
    assert_eq!((starts(4, 1), starts(4, 2)), (23, 13), "of 36 jobs of T5");
    // "Migratory tasks cannot miss any deadlines", and no job migrates.
    assert_eq!((summary.tasks[2].misses, summary.tasks[4].misses), (0, 0));
    assert_eq!(summary.migrations(), 0);
}

#[test]
fn figure_4_2_of_002_edf_wm_runs_slices_in_windows() {
    // T7 on P3, P2 and P1 in turn, 0.5, 3/7 (0.43) and 1/14 (0.07) of a time unit in windows of
    // one, which is 700 here.
    let mut tasks = example_4_1_1(700);
    let whole = |cpu: u32, t: &Small| {
        vec![Slice {
            cpu: CpuId(cpu),
            budget: crate::support::units(t.wcet),
            window: crate::support::units(t.deadline),
        }]
    };
    let slice = |cpu, budget| Slice {
        cpu: CpuId(cpu),
        budget: crate::support::units(budget),
        window: crate::support::units(700),
    };
    // First fit of the other six: 0.45 + 0.45, 0.45 + 0.4, 0.4 + 0.4.
    let mut slices: Vec<Vec<Slice>> = [0, 0, 1, 1, 2, 2]
        .iter()
        .zip(&tasks)
        .map(|(c, t)| whole(*c, t))
        .collect();
    slices.push(vec![slice(2, 350), slice(1, 300), slice(0, 50)]);
    tasks[6].deadline = 2100;
    let assignment = Assignment::Slices(Slices {
        cpus: (0..3).map(CpuId).collect(),
        tasks: slices,
    });
    let of = instance(3, tasks, "edf-wm", Some(assignment), 60 * 700);
    let (summary, responses, events) = of.simulate(&of.scenario(), None);
    assert_eq!(summary.misses(), 0);
    let first: Vec<String> = events
        .iter()
        .filter(|e| {
            e.task.0 == 6 && e.time.nanos() < 2100 * UNIT && e.kind != trace::EventKind::Release
        })
        .map(ToString::to_string)
        .collect();
    assert_eq!(
        first,
        [
            "0ms P2 window T7^1 deadline 700us",
            "0ms P2 start T7^1",
            "350us P2 budget-exhausted T7^1 of 350us",
            "350us P2 preemption T7^1",
            "700us P1 window T7^1 deadline 1.4ms",
            "700us P1 migration T7^1 from P2",
            "1ms P1 budget-exhausted T7^1 of 650us",
            "1ms P1 preemption T7^1",
            "1.4ms P0 window T7^1 deadline 2.1ms",
            "1.4ms P0 migration T7^1 from P1",
            "1.45ms P0 completion T7^1 executed 700us",
        ]
    );
    assert!(
        responses.of[6]
            .iter()
            .all(|r| (1450 * UNIT..=2100 * UNIT).contains(r))
    );
}

#[test]
fn figure_4_3_of_002_nps_f_serves_servers_in_slots() {
    // N1 0.55, N2 0.52, N3 0.50 and N4 0.22 time units long of slots of 0.6; N2 first on P2, then
    // on P1, N3 on P3, then P2.
    let serve = |start, end, server| Serve {
        start: crate::support::units(start),
        end: crate::support::units(end),
        server,
    };
    let timetable = |cpu, turns| Timetable {
        cpu: CpuId(cpu),
        turns,
    };
    let assignment = Assignment::Slots(Slots {
        slot: crate::support::units(600),
        server_of: vec![0, 0, 1, 1, 2, 2, 3],
        timetables: vec![
            timetable(0, vec![serve(0, 550, 0), serve(550, 600, 1)]),
            timetable(1, vec![serve(0, 470, 1), serve(470, 600, 2)]),
            timetable(2, vec![serve(0, 370, 2), serve(370, 590, 3)]),
        ],
    });
    let of = instance(3, example_4_1_1(1000), "nps-f", Some(assignment), 60_000);
    let (summary, _, events) = of.simulate(&of.scenario(), None);
    assert_eq!(summary.misses(), 0);
    let first: Vec<String> = events
        .iter()
        .filter(|e| e.time.nanos() > 0 && e.time.nanos() <= 600 * UNIT)
        .map(ToString::to_string)
        .collect();
    // T4 (server N2) moves from P1 to P0, T5 (N3) from P2 to P1, and at the end of the slot back.
    for expected in [
        "470us P1 server-end N2",
        "470us P1 server-begin N3",
        "550us P0 server-begin N2",
        "550us P0 migration T4^1 from P1",
        "470us P1 migration T5^1 from P2",
        "600us P1 migration T4^1 from P0",
        "600us P2 migration T5^1 from P1",
        "590us P2 server-end N4",
    ] {
        assert!(
            first.iter().any(|e| e == expected),
            "{expected} in {first:#?}"
        );
    }
    assert!(Duration::from_nanos(summary.tasks[3].migrations[0]).nanos() > 0);
}

/// 003, Fig. 2: T (1, 2), U and V (1, 4), W and X (2, 8), one multithreaded task of two. The figure
/// itself is not in the text; the parameters follow from what the text says of every quantum, and
/// its working sets: T 768 KiB, U and V 512 KiB, W and X more than T's. Here in quarters of a MiB:
/// 3, 2, 2, 4.
fn figure_2_of_003(policy: &str) -> Instance {
    let task = |wcet, period, wss, group| Small {
        wss,
        group,
        ..small(wcet, period)
    };
    let tasks = vec![
        task(1, 2, 3, None),
        task(1, 4, 2, None),
        task(1, 4, 2, None),
        task(2, 8, 4, Some(1)),
        task(2, 8, 4, Some(1)),
    ];
    instance(2, tasks, policy, None, 16)
}

#[test]
fn figure_2_a_of_003_global_edf_thrashes_in_five_quanta_of_eight() {
    // Ties by task alone: U2, released later than X1, goes before it at time 4.
    let of = figure_2_of_003("g-edf:ties=index");
    let (summary, _, events) = of.simulate(&of.scenario(), None);
    // Quantum by quantum, the jobs that run; the second hyperperiod as the first.
    let expected: [&[&str]; 8] = [
        &["T1", "U1"],
        &["V1", "W1"],
        &["T2", "W1"],
        &["X1"],
        &["T3", "U2"],
        &["V2", "X1"],
        &["T4"],
        &[],
    ];
    let table = occupancy(&events, of.m, of.horizon);
    for (quantum, cpus) in table.iter().enumerate() {
        let name = |task: u32| {
            let number = quantum as u64 / of.tasks[task as usize].period + 1;
            // In the second hyperperiod the jobs count on.
            let first = number - (quantum as u64 / 8) * (8 / of.tasks[task as usize].period);
            format!("{}{first}", ["T", "U", "V", "W", "X"][task as usize])
        };
        let mut jobs: Vec<String> = cpus.iter().flatten().copied().map(name).collect();
        jobs.sort();
        assert_eq!(jobs, expected[quantum % 8], "quantum {quantum}");
    }
    // T 768 KiB, U and V 512 KiB, W and X together one set of more than T's, in quarters of a MiB.
    let size = |job: &str| match &job[..1] {
        "T" => 3,
        "U" | "V" => 2,
        _ => 4,
    };
    let thrashes = |jobs: &&&[&str]| jobs.iter().map(|job| size(job)).sum::<u64>() > 4;
    assert_eq!(
        expected.iter().filter(thrashes).count(),
        5,
        "62.5 % of the time"
    );
    assert_eq!(summary.misses(), 0);
    // Event by event, the first eight quanta.
    let told: Vec<String> = events
        .iter()
        .filter(|e| e.time.nanos() <= 8 * UNIT && e.kind != trace::EventKind::Release)
        .filter(|e| e.time.nanos() < 8 * UNIT || e.kind.takes_off())
        .map(|e| e.to_string())
        .collect();
    insta::assert_snapshot!(told.join("\n"), @r"
    0ms P0 start T1^1
    0ms P1 start T2^1
    1us P0 completion T1^1 executed 1us
    1us P1 completion T2^1 executed 1us
    1us P0 start T3^1
    1us P1 start T4^1
    2us P0 completion T3^1 executed 1us
    2us P0 start T1^2
    3us P0 completion T1^2 executed 1us
    3us P1 completion T4^1 executed 2us
    3us P0 start T5^1
    3us P1 idle
    4us P0 preemption T5^1
    4us P0 start T1^3
    4us P1 start T2^2
    5us P0 completion T1^3 executed 1us
    5us P1 completion T2^2 executed 1us
    5us P0 start T3^2
    5us P1 migration T5^1 from P0
    6us P0 completion T3^2 executed 1us
    6us P1 completion T5^1 executed 2us
    6us P0 start T1^4
    6us P1 idle
    7us P0 completion T1^4 executed 1us
    7us P0 idle
    ");
}

#[test]
fn figure_2_b_of_003_the_heuristic_never_thrashes() {
    let of = figure_2_of_003("ca-edf:cache=4MiB");
    // U and V; T alone, and again; W and X until they finish; U and V, by which T misses; T, tardy;
    // T.
    assert_eq!(
        picture(&of),
        ["2114421121144211", "3..553..3..553.."]
            .map(str::to_owned)
            .to_vec()
    );
    let (summary, responses, events) = of.simulate(&of.scenario(), None);
    assert_eq!(responses.of[0][2], 3 * UNIT, "T3 is one quantum late");
    assert_eq!(summary.tasks[0].misses, 2, "in both hyperperiods");
    let deliberate: Vec<u64> = events
        .iter()
        .filter(|e| e.kind == trace::EventKind::Idle && e.flags.has(trace::Flags::DELIBERATE))
        .map(|e| e.time.nanos() / UNIT)
        .collect();
    assert_eq!(
        deliberate,
        [1, 9],
        "left idle on purpose from 1 to 3 and from 9 to 11"
    );
}

/// 003 §3.2 caps working sets at the size of the cache: a task that exceeds it runs where it is
/// alone, and does not wait until it is tardy.
#[test]
fn a_working_set_beyond_the_cache_runs_where_it_is_alone() {
    let mut lone = small(2, 10);
    lone.wss = 9;
    let of = instance(4, vec![lone], "ca-edf:cache=8MiB", None, 20);
    let (summary, responses, events) = of.simulate(&of.scenario(), None);
    assert_eq!(responses.of[0], [2 * UNIT, 2 * UNIT]);
    assert_eq!(summary.misses(), 0);
    let header = of.header(&of.scenario());
    let verdict = crate::support::check(&header, &events);
    assert!(verdict.is_clean(), "{verdict:?}");
}

/// The set of docs/tardiness.md: what phantom tasks leave is what late jobs catch up in.
#[test]
fn a_reserve_lets_jobs_catch_up_under_the_cache_aware_scheduler() {
    let missed = |policy: &str| {
        let tasks = [(5, 10, 4), (9, 20, 5), (12, 30, 6), (20, 40, 3), (8, 25, 2)];
        let tasks = tasks.map(|(wcet, period, wss)| Small {
            wss,
            ..small(wcet, period)
        });
        let of = instance(4, tasks.to_vec(), policy, None, 10_000);
        let scenario = Scenario {
            execution: Execution::Discrete(vec![
                (Ratio::ONE, 95),
                (Ratio::new(21, 20).unwrap(), 5),
            ]),
            ..of.scenario()
        };
        of.simulate(&scenario, None).0.misses()
    };
    let kept = ["", ",reserve=0.02", ",reserve=0.05", ",reserve=0.1"];
    let misses = kept.map(|kept| missed(&format!("ca-edf:cache=8MiB{kept}")));
    assert!(misses.is_sorted_by(|a, b| a > b), "{misses:?}");
    assert!(misses[3] < misses[0] / 4, "{misses:?}");
    assert_eq!(missed("g-edf:quantum=1us"), 0);
}
