//! Fig. 2.7 of 002: the overheads of an EDF-fm schedule, event by event, and releases on another
//! processor than jobs run on.

use crate::support::{Instance, POLICIES, Random, instance, small};
use model::assignment::{Turn, Turns};
use model::{Assignment, CpuId};
use simulate::{Costs, Scenario};
use trace::{Event, Header, Overhead};

/// 002, Fig. 2.7, with unit 1 us: T1 takes turns on P0 and P1, T2 and T4 are on P1, T3 is on P0.
fn figure_2_7() -> Instance {
    let turn = |first, second, whole| Turn {
        first: CpuId(first),
        second: CpuId(second),
        part: 1,
        whole,
    };
    Instance {
        m: 2,
        tasks: vec![
            small(27, 70, 70, 0),
            small(50, 1000, 100, 5),
            small(60, 1000, 110, 42),
            small(30, 1000, 50, 110),
        ],
        policy: "edf-fm".to_owned(),
        assignment: Some(Assignment::Turns(Turns {
            cpus: vec![CpuId(0), CpuId(1)],
            tasks: vec![turn(0, 1, 2), turn(1, 1, 1), turn(0, 0, 1), turn(1, 1, 1)],
        })),
        horizon: 139,
    }
}

/// Its five overheads.
fn costs_of_figure_2_7() -> Costs {
    Costs {
        release: 1000,
        scheduling: 500,
        context_switch: 500,
        ipi_latency: 300,
        timer_transfer: 400,
        ..Costs::default()
    }
}

/// The end of the figure: T4 is released on P0, which sends an inter-processor interrupt to P1,
/// where it is to run.
#[test]
fn figure_2_7_of_002_has_t4_released_on_the_other_processor() {
    let (instance, costs) = (figure_2_7(), costs_of_figure_2_7());
    let scenario = Scenario {
        release_on: vec![None, None, None, Some(CpuId(0))],
        ..instance.scenario()
    };
    let (summary, _, events) = instance.simulate(&scenario, Some(&costs));
    let last = events.iter().filter(|e| e.time.nanos() >= 110_000);
    let last: Vec<String> = last.map(Event::to_string).collect();
    insta::assert_snapshot!(last.join("\n"), @r"
    110us P0 release T4^1 deadline 160us
    110us P0 overhead-begin T4^1 release
    111us P0 overhead-end T4^1 release
    111us P1 overhead-begin ipi-latency
    111.3us P1 overhead-end T4^1 ipi-latency
    111.3us P1 overhead-begin T4^1 scheduling
    111.8us P1 overhead-end T4^1 scheduling
    111.8us P1 overhead-begin T4^1 context-switch
    112.3us P1 overhead-end T4^1 context-switch
    112.3us P1 start T4^1
    139us end
    ");
    let ipi = Overhead::IpiLatency as usize;
    assert_eq!(summary.tasks[3].lost[ipi].nanos(), 300);
    // Up to then nothing is other than with all releases at home.
    let (_, _, home) = instance.simulate(&instance.scenario(), Some(&costs));
    let before = |events: &[Event]| {
        events
            .iter()
            .filter(|e| e.time.nanos() < 110_000)
            .copied()
            .collect::<Vec<_>>()
    };
    assert_eq!(before(&events), before(&home));
    // The head of the trace says so, and the checker knows it; where it does not, the release is
    // out of place.
    let header = Header {
        charges: Some(costs.charges(scenario.quantum)),
        ..instance.header(&scenario)
    };
    let verdict = crate::support::check(&header, &events);
    assert!(verdict.is_clean(), "{:#?}", verdict.first);
    let silent = Header {
        release_on: Vec::new(),
        ..header
    };
    assert_eq!(
        crate::support::check(&silent, &events).first[0].rule,
        "place"
    );
}

/// All releases on one processor, as with a master of releases: every policy's jobs still run where
/// they should.
#[test]
fn releases_on_another_processor_break_no_rule() {
    for (index, policy) in POLICIES.iter().enumerate() {
        let mut random = Random::new(0x2708_1111_79ba + index as u64);
        for _ in 0..20 {
            let instance = instance(&mut random, policy);
            let migratory = |task: usize| match &instance.assignment {
                Some(Assignment::Turns(turns)) => turns.tasks[task].is_migratory(),
                _ => false,
            };
            let on = |task| (!migratory(task)).then_some(CpuId(0));
            let scenario = Scenario {
                release_on: (0..instance.tasks.len()).map(on).collect(),
                ..instance.scenario()
            };
            let costs = costs_of_figure_2_7_over(10);
            let (summary, responses, events) = instance.simulate(&scenario, Some(&costs));
            let untraced = instance.simulate_untraced(&scenario, &costs);
            assert_eq!((summary, responses), untraced, "{policy}: {instance:#?}");
            let header = Header {
                charges: Some(costs.charges(scenario.quantum)),
                ..instance.header(&scenario)
            };
            let verdict = crate::support::check(&header, &events);
            assert!(
                verdict.is_clean(),
                "{policy}: {:#?}\n{instance:#?}",
                verdict.first
            );
        }
    }
}

/// The same, shorter.
fn costs_of_figure_2_7_over(part: u64) -> Costs {
    let whole = costs_of_figure_2_7();
    Costs {
        release: whole.release / part,
        scheduling: whole.scheduling / part,
        context_switch: whole.context_switch / part,
        ipi_latency: whole.ipi_latency / part,
        timer_transfer: whole.timer_transfer / part,
        ..whole
    }
}

#[test]
fn figure_2_7_of_002_event_by_event() {
    let costs = costs_of_figure_2_7();
    let instance = figure_2_7();
    let (summary, _, events) = instance.simulate(&instance.scenario(), Some(&costs));
    let of = |cpu: u32| -> Vec<String> {
        let events = events.iter().filter(|e| e.cpu() == Some(CpuId(cpu)));
        events.map(Event::to_string).collect()
    };
    // Release, scheduling and context switch in sequence; a completion makes the processor choose
    // again, and the other one program the timer that releases the next job of the migratory task
    // there.
    assert_eq!(
        of(0),
        [
            "0ms P0 release T1^1 deadline 70us",
            "0ms P0 overhead-begin T1^1 release",
            "1us P0 overhead-end T1^1 release",
            "1us P0 overhead-begin T1^1 scheduling",
            "1.5us P0 overhead-end T1^1 scheduling",
            "1.5us P0 overhead-begin T1^1 context-switch",
            "2us P0 overhead-end T1^1 context-switch",
            "2us P0 start T1^1",
            "29us P0 completion T1^1 executed 27us",
            "29us P0 idle",
            "29us P0 overhead-begin scheduling",
            "29.5us P0 overhead-end scheduling",
            "42us P0 release T3^1 deadline 152us",
            "42us P0 overhead-begin T3^1 release",
            "43us P0 overhead-end T3^1 release",
            "43us P0 overhead-begin T3^1 scheduling",
            "43.5us P0 overhead-end T3^1 scheduling",
            "43.5us P0 overhead-begin T3^1 context-switch",
            "44us P0 overhead-end T3^1 context-switch",
            "44us P0 start T3^1",
            // The second job of T1 completes on P1 and makes this processor program a timer for the
            // third.
            "99us P0 overhead-begin T1^3 timer-transfer",
            "99.4us P0 overhead-end T1^3 timer-transfer",
            "104.4us P0 completion T3^1 executed 60us",
            "104.4us P0 idle",
            "104.4us P0 overhead-begin scheduling",
            "104.9us P0 overhead-end scheduling",
        ]
    );
    // The other one: T2, delayed by the timer that it programs for T1 at 29; T1's second job at 70;
    // T4, released here.
    insta::assert_snapshot!(of(1).join("\n"), @r"
    5us P1 release T2^1 deadline 105us
    5us P1 overhead-begin T2^1 release
    6us P1 overhead-end T2^1 release
    6us P1 overhead-begin T2^1 scheduling
    6.5us P1 overhead-end T2^1 scheduling
    6.5us P1 overhead-begin T2^1 context-switch
    7us P1 overhead-end T2^1 context-switch
    7us P1 start T2^1
    29us P1 overhead-begin T1^2 timer-transfer
    29.4us P1 overhead-end T1^2 timer-transfer
    57.4us P1 completion T2^1 executed 50us
    57.4us P1 idle
    57.4us P1 overhead-begin scheduling
    57.9us P1 overhead-end scheduling
    70us P1 release T1^2 deadline 140us
    70us P1 overhead-begin T1^2 release
    71us P1 overhead-end T1^2 release
    71us P1 overhead-begin T1^2 scheduling
    71.5us P1 overhead-end T1^2 scheduling
    71.5us P1 overhead-begin T1^2 context-switch
    72us P1 overhead-end T1^2 context-switch
    72us P1 start T1^2
    99us P1 completion T1^2 executed 27us
    99us P1 idle
    99us P1 overhead-begin scheduling
    99.5us P1 overhead-end scheduling
    110us P1 release T4^1 deadline 160us
    110us P1 overhead-begin T4^1 release
    111us P1 overhead-end T4^1 release
    111us P1 overhead-begin T4^1 scheduling
    111.5us P1 overhead-end T4^1 scheduling
    111.5us P1 overhead-begin T4^1 context-switch
    112us P1 overhead-end T4^1 context-switch
    112us P1 start T4^1
    ");
    // T4 is due at 160, after the horizon; nobody is late.
    assert_eq!(summary.misses(), 0);
    let lost: u64 = summary.tasks.iter().map(|t| t.lost[4].nanos()).sum();
    assert_eq!(lost, 800, "two timer transfers");
}
