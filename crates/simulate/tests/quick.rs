//! The quick path through kernel work, which nobody watches, comes to the same as the plain one:
//! on random sets, under every policy, with overheads from next to nothing to several periods.
//!
//! In CI a few hundred sets a policy; the long run is
//! `WARMSET_QUICK_SETS=100000 cargo test --release -p warmset-simulate --test all quick::`.

use crate::support::{Instance, POLICIES, Random, UNIT, instance, units};
use model::{CpuId, Duration, Enforcement, Ratio};
use simulate::{Costs, Execution, Lateness, Releases, Scenario};

/// Anything but given times: all that can be drawn.
fn scenario(random: &mut Random, instance: &Instance) -> Scenario {
    let part = |tenths| Ratio::new(tenths, 10).unwrap();
    let jitter = || {
        let tasks = instance.tasks.iter().enumerate();
        let most = |(index, task): (usize, &crate::support::Small)| {
            (index as u64 * 577) % (task.period * UNIT)
        };
        tasks.map(most).collect::<Vec<u64>>()
    };
    let alternates = instance.policy.starts_with("edf-fm");
    Scenario {
        releases: match random.below(3) {
            0 => Releases::Sporadic(part(random.below(21))),
            _ => Releases::Periodic,
        },
        lateness: match random.below(4) {
            0 => Lateness::Random(jitter()),
            1 => Lateness::First(jitter()),
            _ => Lateness::None,
        },
        execution: match random.below(3) {
            0 => Execution::Uniform(part(1 + random.below(10)), part(10 + random.below(6))),
            1 => Execution::Fraction(part(3 + random.below(13))),
            _ => Execution::default(),
        },
        enforcement: match random.below(3) {
            0 => Enforcement::Exact,
            1 => Enforcement::PerQuantum,
            _ => Enforcement::Off,
        },
        // Some end in the midst of what processors do.
        horizon: units(instance.horizon)
            + Duration::from_nanos(random.below(2) * random.below(UNIT)),
        stop_at_miss: random.below(6) == 0,
        seed: random.below(1 << 40),
        release_on: match random.below(4) {
            0 if !alternates => instance
                .tasks
                .iter()
                .map(|_| (random.below(2) == 0).then(|| CpuId(random.below(instance.m) as u32)))
                .collect(),
            _ => Vec::new(),
        },
        ..instance.scenario()
    }
}

/// Overheads of less than `most` nanoseconds; a unit of time has 1000.
fn costs(random: &mut Random, instance: &Instance, most: u64) -> Costs {
    let kinds = instance.platform().resumptions().len();
    // Now and then longer than its period.
    let longest_tick = match random.below(8) {
        0 => 1500,
        _ => most.min(250),
    };
    Costs {
        release: random.below(most),
        scheduling: random.below(most),
        context_switch: random.below(most),
        ipi_latency: random.below(most),
        timer_transfer: random.below(most),
        tick: random.below(longest_tick),
        cpmd: instance
            .tasks
            .iter()
            .map(|_| (0..kinds).map(|_| random.below(most)).collect())
            .collect(),
        tick_period: [None, Some(300), Some(700), Some(2_300)][random.below(4) as usize],
        missing: Vec::new(),
    }
}

#[test]
fn the_quick_path_comes_to_the_same_as_the_plain_one() {
    let sets = std::env::var("WARMSET_QUICK_SETS").map_or(250, |sets| sets.parse().unwrap());
    for (index, policy) in POLICIES.iter().enumerate() {
        let mut random = Random::new(0x9e37_79b9_7f4a_7c15 + index as u64);
        for set in 0..sets {
            let instance = instance(&mut random, policy);
            let scenario = scenario(&mut random, &instance);
            let most = [20, 60, 250, 1000, 2500][random.below(5) as usize];
            let costs = costs(&mut random, &instance, most);
            // Without any, another engine simulates, which may name another of two first misses.
            if costs.are_free() {
                continue;
            }
            assert_eq!(
                instance.simulate_untraced(&scenario, &costs),
                instance.simulate_plainly(&scenario, &costs),
                "{policy}, set {set}, {scenario:?}, {costs:?}: {instance:#?}"
            );
        }
    }
}
