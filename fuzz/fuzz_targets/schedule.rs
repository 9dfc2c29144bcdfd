//! Random task sets, policies, scenarios and overheads: the checker finds no violation in the
//! trace, the same simulation gives the same trace, and not to look at events changes nothing.
#![no_main]

#[path = "../../crates/simulate/tests/support/mod.rs"]
mod support;

use model::{Enforcement, Ratio};
use simulate::{Costs, Execution, Releases, Scenario};
use support::{Choices, Instance, POLICIES, UNIT, check, instance};

/// Choices by the bytes of the fuzzer, and zeros when they are used up.
struct Bytes<'a>(&'a [u8]);

impl Choices for Bytes<'_> {
    fn below(&mut self, n: u64) -> u64 {
        let mut value = 0;
        let mut most = 1;
        while most < n {
            let Some((byte, rest)) = self.0.split_first() else {
                break;
            };
            value = value << 8 | u64::from(*byte);
            most <<= 8;
            self.0 = rest;
        }
        value % n
    }
}

fn scenario(choices: &mut Bytes<'_>, instance: &Instance) -> Scenario {
    let part = |n| Ratio::new(n, 10).expect("a ratio");
    // PD2 promises its windows to jobs that keep to their WCET.
    let longest = if instance.policy == "pd2" { 10 } else { 15 };
    Scenario {
        releases: match choices.below(3) {
            0 => Releases::Sporadic(part(choices.among(1, 20))),
            _ => Releases::Periodic,
        },
        execution: match choices.below(3) {
            0 => Execution::Uniform(part(choices.among(1, 5)), part(choices.among(5, longest))),
            1 => Execution::Fraction(part(choices.among(5, longest))),
            _ => Execution::default(),
        },
        enforcement: match choices.below(3) {
            0 => Enforcement::Exact,
            1 => Enforcement::PerQuantum,
            _ => Enforcement::Off,
        },
        seed: choices.below(4),
        ..instance.scenario()
    }
}

/// Overheads below `most`; a unit of time has 1000 nanoseconds.
fn costs(choices: &mut Bytes<'_>, instance: &Instance, most: u64) -> Costs {
    let kinds = instance.platform().resumptions().len();
    Costs {
        release: choices.below(most),
        scheduling: choices.below(most),
        context_switch: choices.below(most),
        ipi_latency: choices.below(most),
        timer_transfer: choices.below(most),
        tick: choices.below(most.min(UNIT / 4)),
        cpmd: instance
            .tasks
            .iter()
            .map(|_| (0..kinds).map(|_| choices.below(most)).collect())
            .collect(),
        tick_period: None,
        missing: Vec::new(),
    }
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let mut choices = Bytes(bytes);
    let policy = POLICIES[choices.below(POLICIES.len() as u64) as usize];
    let instance = instance(&mut choices, policy);
    let scenario = scenario(&mut choices, &instance);
    let costs = match choices.below(4) {
        0 => None,
        1 => Some(costs(&mut choices, &instance, 20)),
        2 => Some(costs(&mut choices, &instance, 250)),
        _ => Some(costs(&mut choices, &instance, 2000)),
    };
    let (summary, responses, events) = instance.simulate(&scenario, costs.as_ref());
    let verdict = check(&instance.header(&scenario), &events);
    assert!(
        verdict.is_clean(),
        "{:#?}\n{scenario:?} {costs:?} {instance:#?}",
        verdict.first.first()
    );
    assert!(
        events == instance.simulate(&scenario, costs.as_ref()).2,
        "two traces"
    );
    // Free costs would go to the engine without any, which may name another of two first misses.
    if let Some(costs) = costs.as_ref().filter(|costs| !costs.are_free()) {
        let unseen = instance.simulate_untraced(&scenario, costs);
        assert!(
            unseen == (summary, responses),
            "looking changes it\n{scenario:?} {costs:?} {instance:#?}"
        );
    }
});
