//! Overheads are charged where 002 §2.4 has them; without any, the engine that charges them is the
//! ideal one.

use crate::support::{Instance, POLICIES, Random, instance, occupancy, small, units};
use model::assignment::{Slice, Slices, Turn, Turns};
use model::{Assignment, CpuId, Duration, Enforcement, Instant, Ratio, TaskId};
use simulate::{Costs, Execution, Releases, Scenario};
use trace::{Event, EventKind, Overhead};

#[test]
fn free_overheads_change_nothing() {
    for (index, policy) in POLICIES.iter().enumerate() {
        let mut random = Random::new(0x51_7cc1_b727_220a + index as u64);
        for set in 0..150 {
            let instance = instance(&mut random, policy);
            let scenario = instance.scenario();
            let (ideal, responses, events) = instance.simulate(&scenario, None);
            let (same, charged, with) = instance.simulate(&scenario, Some(&Costs::default()));
            let context = || format!("{policy}, set {set}: {instance:#?}");
            assert_eq!(responses, charged, "{}", context());
            assert_eq!(ideal.tasks, same.tasks, "{}", context());
            // Of two misses that become known at one instant, either may be the first.
            assert_eq!(
                ideal.first_miss.is_some(),
                same.first_miss.is_some(),
                "{}",
                context()
            );
            let table = |events: &[Event]| occupancy(events, instance.m, instance.horizon);
            assert_eq!(table(&events), table(&with), "{}", context());
        }
    }
}

#[test]
fn an_interrupt_reaches_another_processor_after_its_latency() {
    // Two processors under G-EDF: T1 and T2 run; T3's timer is on P0 (third in turn), but T2, on
    // P1, has to make way.
    let instance = Instance {
        m: 2,
        tasks: vec![
            small(20, 100, 30, 0),
            small(20, 100, 60, 0),
            small(5, 100, 10, 10),
        ],
        policy: "g-edf".to_owned(),
        assignment: None,
        horizon: 60,
    };
    let costs = Costs {
        ipi_latency: 700,
        cpmd: vec![vec![300, 900]; 3],
        ..Costs::default()
    };
    let (summary, _, events) = instance.simulate(&instance.scenario(), Some(&costs));
    let text: Vec<String> = events
        .iter()
        .filter(|e| e.time.nanos() >= 10_000)
        .map(Event::to_string)
        .collect();
    assert_eq!(
        text,
        [
            "10us P0 release T3^1 deadline 20us",
            "10us P1 overhead-begin ipi-latency",
            "10.7us P1 overhead-end T3^1 ipi-latency",
            "10.7us P1 preemption T2^1",
            "10.7us P1 start T3^1",
            "15.7us P1 completion T3^1 executed 5us",
            // Preempted and resumed where it was: the delay of a preemption, and 20 - 10.7 of its
            // own.
            "15.7us P1 resumption T2^1",
            "15.7us P1 overhead-begin T2^1 cpmd",
            "16us P1 overhead-end T2^1 cpmd",
            "20us P0 completion T1^1 executed 20us",
            "20us P0 idle",
            "25.3us P1 completion T2^1 executed 20us",
            "25.3us P1 idle",
            "60us end",
        ]
    );
    assert_eq!((summary.preemptions(), summary.migrations()), (1, 0));
    assert_eq!(summary.tasks[1].lost[6], Duration::from_nanos(300));
    assert_eq!(summary.tasks[2].lost[3], Duration::from_nanos(700));
}

/// The second slice of T1 begins with a migration, and is preempted in the midst of it: what it has
/// to load is still where it was, so that it resumes with the delay of the migration, not the
/// shorter one of a preemption.
#[test]
fn a_migration_that_is_preempted_before_it_has_reloaded_is_paid_again() {
    let slice = |cpu, budget, window| Slice {
        cpu: CpuId(cpu),
        budget: units(budget),
        window: units(window),
    };
    let instance = Instance {
        m: 2,
        tasks: vec![
            small(20, 100, 60, 0),
            small(2, 100, 8, 35),
            small(2, 100, 9, 50),
        ],
        policy: "edf-wm".to_owned(),
        assignment: Some(Assignment::Slices(Slices {
            cpus: (0..2).map(CpuId).collect(),
            tasks: vec![
                vec![slice(0, 10, 30), slice(1, 10, 30)],
                vec![slice(1, 2, 8)],
                vec![slice(1, 2, 9)],
            ],
        })),
        horizon: 80,
    };
    let costs = Costs {
        cpmd: vec![vec![3_000, 9_000]; 3],
        ..Costs::default()
    };
    let (summary, responses, events) = instance.simulate(&instance.scenario(), Some(&costs));
    let delays: Vec<String> = events
        .iter()
        .filter(|e| e.overhead_kind().is_some())
        .map(Event::to_string)
        .collect();
    assert_eq!(
        delays,
        [
            "30us P1 overhead-begin T1^1 cpmd",
            "35us P1 overhead-end T1^1 cpmd",
            "37us P1 overhead-begin T1^1 cpmd",
            "46us P1 overhead-end T1^1 cpmd",
            // All is there now: the next preemption costs what a preemption costs.
            "52us P1 overhead-begin T1^1 cpmd",
            "55us P1 overhead-end T1^1 cpmd",
        ]
    );
    assert_eq!(
        instance.simulate_untraced(&instance.scenario(), &costs),
        (summary, responses)
    );
}

/// What holds of every trace with overheads: times ascend, overheads pair up, every job executes
/// what it needs and no more.
fn sane(events: &[Event], context: &dyn Fn() -> String) {
    assert!(events.is_sorted_by_key(|e| e.time), "{}", context());
    for cpu in 0..8 {
        let mut open = Vec::new();
        for event in events.iter().filter(|e| e.cpu() == Some(CpuId(cpu))) {
            let Some(kind) = event.overhead_kind() else {
                // Nobody starts or completes inside of an overhead that occupies the processor.
                let inside = open
                    .iter()
                    .any(|k: &trace::Overhead| k.occupies_processor());
                let moves = event.kind.puts_on() || event.kind.takes_off();
                assert!(
                    !(inside && moves),
                    "{event} inside of {open:?}; {}",
                    context()
                );
                continue;
            };
            if event.kind == EventKind::OverheadBegin {
                open.push(kind);
            } else if kind.occupies_processor() {
                let last = open.iter().rposition(|k| k.occupies_processor());
                assert_eq!(
                    last.map(|at| open.remove(at)),
                    Some(kind),
                    "{event}; {}",
                    context()
                );
            } else {
                let at = open.iter().position(|k| *k == kind);
                assert!(
                    at.map(|at| open.remove(at)).is_some(),
                    "{event}; {}",
                    context()
                );
            }
        }
    }
    for event in events.iter().filter(|e| e.kind == EventKind::Completion) {
        assert!(event.argument > 0);
    }
}

#[test]
fn whatever_the_overheads_jobs_execute_what_they_need_and_tracing_changes_nothing() {
    for (index, policy) in POLICIES.iter().enumerate() {
        let mut random = Random::new(0x2545_f491_4f6c_dd1d + index as u64);
        for set in 0..60 {
            let instance = instance(&mut random, policy);
            let mut scenario = instance.scenario();
            let part = |n| Ratio::new(n, 10).unwrap();
            scenario.seed = set;
            match random.below(4) {
                0 => scenario.releases = Releases::Sporadic(part(5)),
                1 => scenario.execution = Execution::Uniform(part(3), part(14)),
                _ => {}
            }
            scenario.enforcement = match random.below(3) {
                0 => Enforcement::Exact,
                1 => Enforcement::PerQuantum,
                _ => Enforcement::Off,
            };
            let kinds = instance.platform().resumptions().len();
            let costs = Costs {
                release: random.below(300),
                scheduling: random.below(300),
                context_switch: random.below(300),
                ipi_latency: random.below(300),
                timer_transfer: random.below(300),
                tick: random.below(100),
                cpmd: instance
                    .tasks
                    .iter()
                    .map(|_| (0..kinds).map(|_| random.below(500)).collect())
                    .collect(),
                tick_period: [None, Some(700), Some(2_300)][random.below(3) as usize],
                missing: Vec::new(),
            };
            let context = || format!("{policy}, set {set}, {scenario:?}, {costs:?}: {instance:#?}");
            let (traced, responses, events) = instance.simulate(&scenario, Some(&costs));
            sane(&events, &context);
            let (untraced, again) = instance.simulate_untraced(&scenario, &costs);
            assert_eq!((&traced, &responses), (&untraced, &again), "{}", context());
            if scenario.execution == Execution::default() {
                let cut = |e: &Event| e.flags.has(trace::Flags::CUT);
                for event in events
                    .iter()
                    .filter(|e| e.kind == EventKind::Completion && !cut(e))
                {
                    let wcet = instance.tasks[event.task.index()].wcet * crate::support::UNIT;
                    assert_eq!(event.argument, wcet, "{event}; {}", context());
                }
            }
        }
    }
}

/// As fuzzing found: a job without budget is back from kernel work exactly at the end of a quantum,
/// when the tick comes. It is cut short behind the tick, whether somebody looks or not.
#[test]
fn a_job_that_is_back_at_the_end_of_a_quantum_is_cut_short_behind_the_tick() {
    let turn = Turn {
        first: CpuId(1),
        second: CpuId(1),
        part: 3,
        whole: 6,
    };
    let instance = Instance {
        m: 4,
        tasks: vec![small(5, 5, 5, 0), small(3, 12, 12, 0)],
        policy: "edf-fm".to_owned(),
        assignment: Some(Assignment::Turns(Turns {
            cpus: (0..4).map(CpuId).collect(),
            tasks: vec![turn, turn],
        })),
        horizon: 63,
    };
    let part = |tenths| Ratio::new(tenths, 10).unwrap();
    let scenario = Scenario {
        releases: Releases::Sporadic(part(8)),
        execution: Execution::Uniform(part(3), part(14)),
        enforcement: Enforcement::PerQuantum,
        quantum: units(1),
        horizon: units(63),
        seed: 3,
        ..Scenario::default()
    };
    let costs = Costs {
        release: 1199,
        scheduling: 1199,
        context_switch: 1199,
        ipi_latency: 1199,
        timer_transfer: 1199,
        tick: 207,
        cpmd: vec![vec![1199; 2]; 2],
        tick_period: None,
        missing: Vec::new(),
    };
    let (summary, responses, events) = instance.simulate(&scenario, Some(&costs));
    assert_eq!(
        instance.simulate_untraced(&scenario, &costs),
        (summary, responses)
    );
    let cut = events
        .iter()
        .find(|e| e.kind == EventKind::BudgetExhausted && e.task == TaskId(1));
    assert_eq!(cut.unwrap().time, Instant::from_nanos(41_000));
}

/// As fuzzing found: jobs without budget are chosen, in no time, at the end of a quantum. The
/// others of that instant are chosen and loaded before those are cut short, whether somebody looks
/// or not.
#[test]
fn jobs_without_budget_are_cut_short_when_all_of_an_instant_are_chosen() {
    let instance = Instance {
        m: 2,
        tasks: vec![
            small(2, 2, 4, 0),
            small(1, 2, 1, 0),
            small(1, 2, 4, 0),
            small(1, 2, 1, 4),
            small(1, 2, 1, 0),
            small(1, 2, 3, 0),
        ],
        policy: "g-fp:dm".to_owned(),
        assignment: None,
        horizon: 40,
    };
    let part = |tenths| Ratio::new(tenths, 10).unwrap();
    let scenario = Scenario {
        releases: Releases::Sporadic(part(11)),
        execution: Execution::Fraction(part(14)),
        enforcement: Enforcement::PerQuantum,
        quantum: units(1),
        horizon: units(40),
        seed: 3,
        ..Scenario::default()
    };
    let delays = [[237, 0], [5, 5], [5, 111], [13, 0], [0, 0], [0, 0]];
    let costs = Costs {
        release: 125,
        cpmd: delays.map(Vec::from).to_vec(),
        ..Costs::default()
    };
    let (summary, responses, _) = instance.simulate(&scenario, Some(&costs));
    assert_eq!(
        instance.simulate_untraced(&scenario, &costs),
        (summary, responses)
    );
}

/// As fuzzing found: a job is interrupted, its budget used up, and back exactly at the end of a
/// quantum, when another job is released elsewhere. It is cut short then, behind that release.
#[test]
fn a_job_without_budget_that_is_back_when_others_are_released_is_cut_short() {
    let parts = |window: u64| {
        let slice = |cpu| Slice {
            cpu: CpuId(cpu),
            budget: units(1),
            window: units(window),
        };
        [3, 0, 1, 2].map(slice).to_vec()
    };
    let instance = Instance {
        m: 4,
        tasks: vec![
            small(4, 4, 8, 0),
            small(4, 9, 4, 7),
            small(4, 4, 8, 7),
            small(4, 4, 8, 7),
        ],
        policy: "edf-wm".to_owned(),
        assignment: Some(Assignment::Slices(Slices {
            cpus: (0..4).map(CpuId).collect(),
            tasks: vec![parts(2), parts(1), parts(2), parts(2)],
        })),
        horizon: 77,
    };
    let part = |tenths| Ratio::new(tenths, 10).unwrap();
    let scenario = Scenario {
        execution: Execution::Uniform(part(4), part(13)),
        enforcement: Enforcement::PerQuantum,
        quantum: units(1),
        horizon: units(77),
        seed: 0,
        ..Scenario::default()
    };
    let costs = Costs {
        release: 74,
        scheduling: 218,
        context_switch: 243,
        ipi_latency: 107,
        timer_transfer: 74,
        cpmd: vec![vec![0; 2]; 4],
        ..Costs::default()
    };
    let (_, _, events) = instance.simulate(&scenario, Some(&costs));
    let verdict = crate::support::check(&instance.header(&scenario), &events);
    assert!(verdict.is_clean(), "{:#?}", verdict.first);
    let at = |kind| {
        events
            .iter()
            .position(|e| e.kind == kind && e.time == Instant::from_nanos(25_000))
    };
    assert!(at(EventKind::Release).unwrap() < at(EventKind::Completion).unwrap());
}

/// The tick has a period of its own: 4 ms lose a quarter of what 1 ms lose, whatever the quantum.
#[test]
fn ticks_come_as_far_apart_as_the_costs_say() {
    let instance = Instance {
        m: 1,
        tasks: vec![small(40, 100, 100, 0)],
        policy: "p-edf".to_owned(),
        assignment: Some(Assignment::Clustered(model::assignment::Clustered {
            clusters: vec![[CpuId(0)].into_iter().collect()],
            cluster_of: vec![0],
        })),
        horizon: 100,
    };
    let lost = |tick_period: Option<u64>| {
        let costs = Costs {
            tick: 100,
            tick_period,
            ..Costs::default()
        };
        let (summary, _, _) = instance.simulate(&instance.scenario(), Some(&costs));
        let (untraced, _) = instance.simulate_untraced(&instance.scenario(), &costs);
        assert_eq!(summary, untraced);
        let tick = |lost: &[Duration]| lost[Overhead::Tick as usize].nanos();
        tick(&summary.lost) + summary.tasks.iter().map(|t| tick(&t.lost)).sum::<u64>()
    };
    // Ticks at multiples of the period within 100 units, the end excepted.
    assert_eq!(lost(None), 99 * 100);
    assert_eq!(lost(Some(units(4).nanos())), 24 * 100);
}
