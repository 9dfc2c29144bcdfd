//! One summary: what the engines count without events is what the statistics add up from the trace
//! of the same run.

use crate::support::{Instance, POLICIES, Random, UNIT, instance, units};
use model::watch::Silent;
use model::{Enforcement, Ratio};
use policy::{Setup, Spec};
use simulate::{Costs, Distributions, Execution, Releases, Scenario, Traced};
use trace::{Sink, Statistics, VecSink};

/// Counted by the engine; with events, and the events too.
fn counted(
    of: &Instance,
    scenario: &Scenario,
    costs: Option<&Costs>,
    events: bool,
) -> (trace::Summary, VecSink) {
    let (set, platform) = (of.set(), of.platform());
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: of.assignment.as_ref(),
        quantum: units(1),
    };
    let plan = of.policy.parse::<Spec>().unwrap().plan(&setup).unwrap();
    let distributions = Distributions::new(&set);
    if events {
        let observer = (distributions, Traced(VecSink::default()));
        let (summary, (distributions, Traced(sink))) =
            simulate::simulate(plan, &set, &platform, scenario, costs, &Silent, observer).unwrap();
        (summary.added_up(&set, &distributions), sink)
    } else {
        let (summary, distributions) = simulate::simulate(
            plan,
            &set,
            &platform,
            scenario,
            costs,
            &Silent,
            distributions,
        )
        .unwrap();
        (summary.added_up(&set, &distributions), VecSink::default())
    }
}

/// Added up from the events, without what only events tell.
fn read(of: &Instance, scenario: &Scenario, events: &VecSink) -> trace::Summary {
    let header = of.header(scenario);
    let mut statistics = Statistics::new(&header, true);
    for event in &events.events {
        statistics.record(*event);
    }
    let mut summary = statistics.summary();
    let recorded = summary.recorded.take().unwrap();
    assert_eq!((recorded.lost_events, recorded.senseless_events), (0, 0));
    summary.thrashed = None;
    for task in &mut summary.tasks {
        task.recorded = None;
    }
    summary
}

fn costs(random: &mut Random, of: &Instance) -> Costs {
    let mut some = || random.below(UNIT / 4);
    let kinds = of.platform().resumptions().len();
    Costs {
        release: some(),
        scheduling: some(),
        context_switch: some(),
        ipi_latency: some(),
        timer_transfer: some(),
        tick: some(),
        cpmd: (0..of.tasks.len())
            .map(|_| (0..kinds).map(|_| some()).collect())
            .collect(),
        ..Costs::default()
    }
}

/// Shows only the lines that differ.
fn assert_same(one: &trace::Summary, other: &trace::Summary, told: &dyn Fn() -> String) {
    if one != other {
        let (one, other) = (format!("{one:#?}"), format!("{other:#?}"));
        let differ = one.lines().zip(other.lines()).filter(|(a, b)| a != b);
        let lines: Vec<String> = differ.map(|(a, b)| format!("{a} / {b}\n")).collect();
        panic!("{}{}", lines.concat(), told());
    }
}

#[test]
fn a_simulation_and_the_statistics_of_its_trace_say_the_same() {
    let mut random = Random::new(0x00dd_ba11_5eed_0004);
    for round in 0..40 * POLICIES.len() {
        let of = instance(&mut random, POLICIES[round % POLICIES.len()]);
        let quantum_driven = of.policy.starts_with("pd2") || of.policy.starts_with("ca-edf");
        let scenario = Scenario {
            releases: match random.below(2) {
                0 => Releases::Periodic,
                _ => Releases::Sporadic(Ratio::ONE),
            },
            execution: match random.below(2) {
                _ if quantum_driven => Execution::default(),
                0 => Execution::default(),
                _ => Execution::Uniform(Ratio::new(1, 2).unwrap(), Ratio::new(5, 4).unwrap()),
            },
            enforcement: match random.below(3) {
                _ if quantum_driven => Enforcement::Off,
                0 => Enforcement::Off,
                1 => Enforcement::PerQuantum,
                _ => Enforcement::Exact,
            },
            // In the midst of whatever goes on.
            horizon: units(of.horizon)
                .saturating_add(model::Duration::from_nanos(random.below(UNIT))),
            stop_at_miss: random.below(4) == 0,
            ..of.scenario()
        };
        let charged = costs(&mut random, &of);
        for costs in [None, Some(&charged)] {
            let (with_events, events) = counted(&of, &scenario, costs, true);
            let told = || format!("round {round}: {costs:?} {scenario:?}\n{of:#?}");
            assert_same(&read(&of, &scenario, &events), &with_events, &told);
            let (without, _) = counted(&of, &scenario, costs, false);
            assert_same(&without, &with_events, &told);
        }
    }
}
