//! What happens at time zero and at the horizon is checked as closely as all between: a trace that
//! ends at any instant of a schedule is clean, and every corruption of an event at either end is
//! found.

use crate::support::corruptions::corruptions;
use crate::support::{Instance, POLICIES, Random, check, instance, units};
use simulate::Scenario;
use std::collections::BTreeSet;
use trace::{Event, EventKind, Header};

/// The schedule of an instance up to a horizon, with the head of its trace.
fn up_to(instance: &Instance, horizon: u64) -> (Header, Vec<Event>) {
    let scenario = Scenario {
        horizon: units(horizon),
        ..instance.scenario()
    };
    let (_, _, events) = instance.simulate(&scenario, None);
    (instance.header(&scenario), events)
}

#[test]
fn every_corruption_at_either_end_of_a_trace_is_caught() {
    let (mut tried, mut missed, mut seen) = (0, Vec::new(), BTreeSet::new());
    for (index, policy) in POLICIES.iter().enumerate() {
        let mut random = Random::new(0x00c0_ffee_1234 + index as u64);
        for _ in 0..8 {
            let instance = instance(&mut random, policy);
            for horizon in 1..=24 {
                let (header, events) = up_to(&instance, horizon);
                let clean = check(&header, &events);
                assert!(
                    clean.is_clean(),
                    "{policy}: {:?}\n{instance:#?}",
                    clean.first
                );
                let end = events[events.len() - 1].time;
                for (i, e) in events.iter().enumerate() {
                    let at_an_end = e.time == end || e.time.nanos() == 0;
                    if !at_an_end || e.kind == EventKind::End {
                        continue;
                    }
                    seen.insert((e.kind, e.time == end));
                    for (what, mutated) in corruptions(&instance, &events, i) {
                        tried += 1;
                        let verdict = check(&header, &mutated);
                        if verdict.is_clean() && verdict.notes.is_empty() {
                            let near: Vec<String> =
                                mutated.iter().map(|e| format!("{e}\n")).collect();
                            missed
                                .push(format!("{policy}: {what} of {i}, {e}:\n{}", near.concat()));
                        }
                    }
                }
            }
        }
    }
    let first: Vec<&str> = missed.iter().take(6).map(String::as_str).collect();
    assert!(
        missed.is_empty(),
        "{} of {tried} not caught:\n{}",
        missed.len(),
        first.join("\n")
    );
    assert!(tried > 10_000, "{tried}");
    // All that a simulated trace can hold at its ends was there.
    for kind in [
        EventKind::Completion,
        EventKind::DeadlineMiss,
        EventKind::BudgetExhausted,
        EventKind::Preemption,
        EventKind::Idle,
        EventKind::Window,
    ] {
        assert!(
            seen.contains(&(kind, true)),
            "no {kind} at the horizon: {seen:?}"
        );
    }
    for kind in [
        EventKind::Release,
        EventKind::Start,
        EventKind::ServerBegin,
        EventKind::Window,
    ] {
        assert!(
            seen.contains(&(kind, false)),
            "no {kind} at time zero: {seen:?}"
        );
    }
}
