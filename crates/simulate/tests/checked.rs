//! Every trace that the engines write keeps the rules of room `trace`: those of every schedule and those of its policy.

mod support;

use simulate::Costs;
use support::{Instance, POLICIES, Random, instance};
use trace::Header;

fn check(instance: &Instance, costs: Option<&Costs>, events: &[trace::Event], context: &dyn Fn() -> String) {
    let scenario = instance.scenario();
    let header = Header {
        charges: costs.map(|c| c.charges(scenario.quantum)),
        ..instance.header(&scenario)
    };
    let verdict = support::check(&header, events);
    assert!(
        verdict.policies == [instance.policy.clone()],
        "{:?}",
        verdict.notes
    );
    assert!(verdict.is_clean(), "{:#?}\n{}", verdict.first.first(), context());
}

/// Every policy with its place, which seeds it.
fn checkable() -> impl Iterator<Item = (usize, &'static &'static str)> {
    POLICIES.iter().enumerate()
}

#[test]
fn without_overheads_no_rule_is_broken() {
    for (index, policy) in checkable() {
        let mut random = Random(0x0c17_9e37_79b9 + index as u64);
        for set in 0..120 {
            let instance = instance(&mut random, policy);
            let (_, _, events) = instance.simulate(&instance.scenario(), None);
            check(&instance, None, &events, &|| {
                format!("{policy}, set {set}: {instance:#?}")
            });
        }
    }
}

/// Checks random sets under a policy with random overheads of less than `most` nanoseconds; a unit of time has 1000.
fn check_with_overheads(policy: &str, seed: u64, sets: u32, most: u64) {
    let mut random = Random(seed);
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

/// A server may move while its old processor still chooses a job of it, or switches to it: the new one waits (002 §4.4.2).
#[test]
fn a_server_that_moves_in_the_midst_of_a_switch_breaks_no_rule() {
    for policy in POLICIES.iter().filter(|p| p.contains("nps-f")) {
        check_with_overheads(policy, 0x0c17_1237_79ba, 500, 400);
    }
}

/// Decisions that take a good part of a quantum, or longer than one, are late, and still those of the boundary that they were
/// made for.
#[test]
fn quanta_that_are_shorter_than_their_decisions_break_no_rule() {
    for (index, policy) in ["pd2", "ca-edf:cache=4MiB", "g-edf:quantum=3us"]
        .iter()
        .enumerate()
    {
        for (at, most) in [200, 600, 2500].into_iter().enumerate() {
            check_with_overheads(policy, 0x0c17_5151_79ba + (3 * index + at) as u64, 150, most);
        }
    }
}
