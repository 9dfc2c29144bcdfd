//! Every trace that the engines write keeps the rules of room `trace`: those of every schedule and
//! those of its policy.

use crate::support::{Instance, POLICIES, Random, Small, instance, units};
use model::assignment::{Slice, Slices};
use model::{Assignment, CpuId, Enforcement, Ratio};
use simulate::{Costs, Execution, Releases, Scenario};
use trace::{EventKind, Flags, Header};

fn check(
    instance: &Instance,
    costs: Option<&Costs>,
    events: &[trace::Event],
    context: &dyn Fn() -> String,
) {
    let scenario = instance.scenario();
    let header = Header {
        charges: costs.map(|c| c.charges(scenario.quantum)),
        ..instance.header(&scenario)
    };
    let verdict = crate::support::check(&header, events);
    assert!(
        verdict.policies == [instance.policy.clone()],
        "{:?}",
        verdict.notes
    );
    assert!(
        verdict.is_clean(),
        "{:#?}\n{}",
        verdict.first.first(),
        context()
    );
}

/// Every policy with its place, which seeds it.
fn checkable() -> impl Iterator<Item = (usize, &'static &'static str)> {
    POLICIES.iter().enumerate()
}

#[test]
fn without_overheads_no_rule_is_broken() {
    for (index, policy) in checkable() {
        let mut random = Random::new(0x0c17_9e37_79b9 + index as u64);
        for set in 0..120 {
            let instance = instance(&mut random, policy);
            let (_, _, events) = instance.simulate(&instance.scenario(), None);
            check(&instance, None, &events, &|| {
                format!("{policy}, set {set}: {instance:#?}")
            });
        }
    }
}

/// Checks random sets under a policy with random overheads of less than `most` nanoseconds; a unit
/// of time has 1000.
fn check_with_overheads(policy: &str, seed: u64, sets: u32, most: u64) {
    let mut random = Random::new(seed);
    for set in 0..sets {
        let instance = instance(&mut random, policy);
        let kinds = instance.platform().resumptions().len();
        let costs = Costs {
            release: random.below(most),
            scheduling: random.below(most),
            context_switch: random.below(most),
            ipi_latency: random.below(most),
            timer_transfer: random.below(most),
            tick: random.below(20),
            cpmd: instance
                .tasks
                .iter()
                .map(|_| (0..kinds).map(|_| random.below(200)).collect())
                .collect(),
            tick_period: [None, Some(700), Some(2_300)][random.below(3) as usize],
            missing: Vec::new(),
        };
        let (_, _, events) = instance.simulate(&instance.scenario(), Some(&costs));
        check(&instance, Some(&costs), &events, &|| {
            format!("{policy}, set {set}: {costs:?} {instance:#?}")
        });
    }
}

#[test]
fn with_overheads_no_rule_is_broken() {
    for (index, policy) in checkable() {
        check_with_overheads(policy, 0x0c17_9e37_79ba + index as u64, 60, 60);
    }
}

/// A server may move while its old processor still chooses a job of it, or switches to it: the new
/// one waits (002 §4.4.2).
#[test]
fn a_server_that_moves_in_the_midst_of_a_switch_breaks_no_rule() {
    for policy in POLICIES.iter().filter(|p| p.contains("nps-f")) {
        check_with_overheads(policy, 0x0c17_1237_79ba, 500, 400);
    }
}

/// Decisions that take a good part of a quantum, or longer than one, are late, and still those of
/// the boundary that they were made for.
#[test]
fn quanta_that_are_shorter_than_their_decisions_break_no_rule() {
    for (index, policy) in ["pd2", "ca-edf:cache=4MiB", "g-edf:quantum=3us"]
        .iter()
        .enumerate()
    {
        for (at, most) in [200, 600, 2500].into_iter().enumerate() {
            check_with_overheads(
                policy,
                0x0c17_5151_79ba + (3 * index + at) as u64,
                150,
                most,
            );
        }
    }
}

/// A job whose budget is used up goes on to the end of the quantum. If it is preempted before and
/// comes back at the end of one, it is cut short at once: then a completion stands after the
/// releases of its instant.
#[test]
fn a_job_without_budget_that_comes_back_at_the_end_of_a_quantum_is_cut_short() {
    let task = |wcet, period| Small {
        wcet,
        period,
        deadline: period,
        phase: 0,
        wss: 1,
        group: None,
    };
    let slice = |cpu, budget, window| Slice {
        cpu: CpuId(cpu),
        budget: units(budget),
        window: units(window),
    };
    let instance = Instance {
        m: 4,
        tasks: vec![task(2, 3), task(6, 10), task(2, 10)],
        policy: "edf-wm".to_owned(),
        assignment: Some(Assignment::Slices(Slices {
            cpus: (0..4).map(CpuId).collect(),
            tasks: vec![
                vec![slice(3, 1, 1), slice(0, 1, 1)],
                vec![slice(0, 2, 3), slice(1, 2, 3), slice(2, 2, 3)],
                vec![slice(1, 1, 5), slice(2, 1, 5)],
            ],
        })),
        horizon: 98,
    };
    let scenario = Scenario {
        execution: Execution::Fraction(Ratio::new(13, 10).unwrap()),
        enforcement: Enforcement::PerQuantum,
        ..instance.scenario()
    };
    let costs = Costs {
        release: 91,
        ..Costs::default()
    };
    let (_, _, events) = instance.simulate(&scenario, Some(&costs));
    let comes_to_be_cut = |done: &&trace::Event| {
        let puts_on =
            |e: &trace::Event| e.kind.puts_on() && (e.task, e.time) == (done.task, done.time);
        done.kind == EventKind::Completion
            && done.flags.has(Flags::CUT)
            && events.iter().any(puts_on)
    };
    assert!(events.iter().any(|e| comes_to_be_cut(&e)));
    let header = Header {
        charges: Some(costs.charges(scenario.quantum)),
        ..instance.header(&scenario)
    };
    let verdict = crate::support::check(&header, &events);
    assert!(verdict.is_clean(), "{:#?}", verdict.first.first());
}

/// A job whose budget is used up may be chosen for a quantum of the cache-aware scheduler and be
/// cut short at once: then its successor is ready, and the quantum is decided once more, as if for
/// the first time.
#[test]
fn a_quantum_of_the_cache_aware_scheduler_that_is_decided_twice_counts_once() {
    let task = |wcet, period, deadline, phase, wss| Small {
        wcet,
        period,
        deadline,
        phase,
        wss,
        group: None,
    };
    let instance = Instance {
        m: 4,
        tasks: vec![
            task(2, 4, 8, 7, 1),
            task(4, 4, 8, 0, 2),
            task(4, 7, 4, 7, 1),
            task(1, 11, 1, 0, 3),
        ],
        policy: "ca-edf:cache=4MiB".to_owned(),
        assignment: None,
        horizon: 83,
    };
    let scenario = Scenario {
        releases: Releases::Sporadic(Ratio::new(16, 10).unwrap()),
        execution: Execution::Fraction(Ratio::new(15, 10).unwrap()),
        enforcement: Enforcement::PerQuantum,
        seed: 3,
        ..instance.scenario()
    };
    let costs = Costs {
        release: 975,
        ..Costs::default()
    };
    let (_, _, events) = instance.simulate(&scenario, Some(&costs));
    let verdict = crate::support::check(&instance.header(&scenario), &events);
    assert!(verdict.is_clean(), "{:#?}", verdict.first.first());
}
