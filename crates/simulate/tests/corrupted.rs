//! The checker looks closely: it accepts overruns, budgets and random gaps as they were announced,
//! and catches what is wrong with corrupted traces of the policies that split tasks, serve servers
//! or count quanta.

use crate::support::corruptions::corruptions;
use crate::support::{Choices, Instance, UNIT, check, instance};
use model::{Enforcement, Ratio};
use simulate::{Costs, Execution, Releases, Scenario};
use std::collections::BTreeSet;
use trace::{Event, EventKind, Flags, Header, Overhead, Verdict};

/// The generator by which the traces of this file are drawn, apart from the one of other tests:
/// with [`Random`](crate::support::Random) there are a few corruptions that the checker overlooks.
struct Xorshift(u64);

impl Choices for Xorshift {
    fn below(&mut self, n: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % n
    }
}

fn told(verdict: &Verdict, events: &[Event]) -> String {
    let Some(first) = verdict.first.first() else {
        return String::new();
    };
    let near = events
        .iter()
        .filter(|e| e.time.nanos().abs_diff(first.time_ns) < 6 * UNIT);
    let near: Vec<String> = near.map(|e| format!("{e}\n")).collect();
    format!(
        "{} violations, first {first:#?}\n{}",
        verdict.violations,
        near.concat()
    )
}

#[test]
fn schedules_with_overruns_and_budgets_are_clean() {
    for (index, enforcement) in [
        Enforcement::Off,
        Enforcement::PerQuantum,
        Enforcement::Exact,
    ]
    .into_iter()
    .enumerate()
    {
        let mut random = Xorshift(0x1234_5678_9abc_def1 + index as u64);
        for set in 0..100 {
            let instance = instance(&mut random, ["g-edf", "p-edf", "p-rm"][set % 3]);
            let scenario = Scenario {
                releases: if set % 2 == 0 {
                    Releases::Periodic
                } else {
                    Releases::Sporadic(Ratio::ONE)
                },
                enforcement,
                execution: Execution::Uniform(Ratio::new(1, 2).unwrap(), Ratio::new(3, 2).unwrap()),
                ..instance.scenario()
            };
            let (_, _, events) = instance.simulate(&scenario, None);
            let verdict = check(&instance.header(&scenario), &events);
            assert!(
                verdict.is_clean(),
                "{enforcement:?}, set {set}: {}\n{instance:#?}",
                told(&verdict, &events)
            );
        }
    }
}

/// Corruptions that no correct schedule survives, of traces whose policies split tasks, serve
/// servers or count quanta.
#[test]
fn corrupted_schedules_are_caught() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (index, policy) in ["edf-fm", "edf-wm", "nps-f", "pd2", "ca-edf:cache=4MiB"]
        .iter()
        .enumerate()
    {
        let mut random = Xorshift(0xdead_beef_cafe + index as u64);
        for _ in 0..6 {
            let instance = instance(&mut random, policy);
            let scenario = instance.scenario();
            let (_, _, events) = instance.simulate(&scenario, None);
            corrupt(
                &instance,
                &instance.header(&scenario),
                &events,
                &mut tried,
                &mut missed,
            );
        }
    }
    assert_caught(&missed, tried, 10_000);
}

/// The same where the decisions for a quantum take time.
#[test]
fn corrupted_schedules_of_late_quanta_are_caught() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (index, policy) in ["pd2", "ca-edf:cache=4MiB"].iter().enumerate() {
        let mut random = Xorshift(0xdead_beef_0123 + index as u64);
        for _ in 0..2 {
            let (instance, header, events) = charged(&mut random, policy, 25);
            corrupt(&instance, &header, &events, &mut tried, &mut missed);
        }
    }
    assert_caught(&missed, tried, 2_000);
}

/// Who else could have been chosen, with everything charged as it should be: schedules of another
/// policy, or of another size of the cache, pass for the one that they are not only where they are
/// the same.
#[test]
fn whoever_is_wrongly_chosen_for_a_quantum_is_caught() {
    let (mut tried, mut missed) = (0, Vec::new());
    let pairs = [
        ("pd2", "g-edf:quantum=1us"),
        ("pd2", "g-fp:quantum=1us"),
        ("ca-edf:cache=4MiB", "ca-edf:cache=3MiB"),
        ("ca-edf:cache=3MiB", "ca-edf:cache=5MiB"),
        ("ca-edf:cache=2MiB", "g-edf:quantum=1us"),
    ];
    for (index, (policy, other)) in pairs.iter().enumerate() {
        let mut random = Xorshift(0x0123_beef_cafe + index as u64);
        for set in 0..300 {
            let instance = instance(&mut random, policy);
            let impostor = Instance {
                policy: (*other).to_owned(),
                // Reserved quanta are for these policies alone.
                assignment: match other.starts_with("ca-edf") {
                    true => instance.assignment.clone(),
                    false => None,
                },
                ..instance.clone()
            };
            let scenario = instance.scenario();
            let costs = match set % 3 {
                0 => None,
                _ => Some(costs(&instance, &mut random)),
            };
            let (_, _, events) = instance.simulate(&scenario, costs.as_ref());
            let (_, _, wrong) = impostor.simulate(&scenario, costs.as_ref());
            let header = Header {
                charges: costs.as_ref().map(|c| c.charges(scenario.quantum)),
                ..instance.header(&scenario)
            };
            let clean = check(&header, &events);
            assert!(
                clean.is_clean(),
                "{policy}: {}\n{instance:#?}",
                told(&clean, &events)
            );
            if who_runs(&events) == who_runs(&wrong) {
                continue;
            }
            tried += 1;
            if check(&header, &wrong).is_clean() {
                missed.push(format!("{other} passes for {policy}: {instance:#?}"));
            }
        }
    }
    assert_caught(&missed, tried, 500);
}

/// In every quantum the tasks that run, and how many processors idle on purpose in the end,
/// wherever they are. Where decisions take time, those who are chosen begin one after the other,
/// and in which order is nobody's rule.
fn who_runs(events: &[Event]) -> Vec<(BTreeSet<u32>, usize)> {
    let (mut runs, mut idle, mut all) = (BTreeSet::new(), BTreeSet::new(), Vec::new());
    let mut ran = BTreeSet::new();
    let mut quantum = 0;
    for e in events {
        while quantum < e.time.nanos() / UNIT {
            quantum += 1;
            all.push((std::mem::replace(&mut ran, runs.clone()), idle.len()));
        }
        if e.kind.puts_on() {
            runs.insert(e.task.0);
            ran.insert(e.task.0);
            idle.remove(&e.cpu());
        } else if e.kind.takes_off() {
            runs.remove(&e.task.0);
            // It did not run in the quantum that begins.
            if e.time.nanos() % UNIT == 0 {
                ran.remove(&e.task.0);
            }
        } else if e.kind == EventKind::Idle {
            idle.remove(&e.cpu());
            if e.flags.has(Flags::DELIBERATE) {
                idle.insert(e.cpu());
            }
        }
    }
    all.push((ran, idle.len()));
    all
}

/// Tries all corruptions of a trace.
fn corrupt(
    of: &Instance,
    header: &Header,
    events: &[Event],
    tried: &mut usize,
    missed: &mut Vec<String>,
) {
    let clean = check(header, events);
    assert!(
        clean.is_clean(),
        "{}: {}\n{of:#?}",
        of.policy,
        told(&clean, events)
    );
    for i in 0..events.len() - 1 {
        for (what, mutated) in corruptions(of, events, i) {
            *tried += 1;
            let verdict = check(header, &mutated);
            if verdict.is_clean() && verdict.notes.is_empty() {
                let near: Vec<String> = mutated[i.saturating_sub(5)..(i + 6).min(mutated.len())]
                    .iter()
                    .map(|e| format!("{e}\n"))
                    .collect();
                missed.push(format!(
                    "{}: {what} of {i}, {}:\n{}",
                    of.policy,
                    events[i],
                    near.concat()
                ));
            }
        }
    }
}

fn assert_caught(missed: &[String], tried: usize, least: usize) {
    let first: Vec<&str> = missed.iter().take(12).map(String::as_str).collect();
    assert!(
        missed.is_empty(),
        "{} of {tried} not caught:\n{}",
        missed.len(),
        first.join("\n")
    );
    assert!(tried > least, "{tried}");
}

/// Every overhead, none of them zero.
fn costs(of: &Instance, random: &mut Xorshift) -> Costs {
    let kinds = of.platform().resumptions().len();
    Costs {
        release: 1 + random.below(60),
        scheduling: 1 + random.below(60),
        context_switch: 1 + random.below(60),
        ipi_latency: 1 + random.below(60),
        timer_transfer: 1 + random.below(60),
        tick: 1 + random.below(20),
        cpmd: (0..of.tasks.len())
            .map(|_| (0..kinds).map(|_| 1 + random.below(200)).collect())
            .collect(),
        tick_period: None,
        missing: Vec::new(),
    }
}

/// A random instance, and its trace with random overheads.
fn charged(random: &mut Xorshift, policy: &str, horizon: u64) -> (Instance, Header, Vec<Event>) {
    let instance = Instance {
        horizon,
        ..instance(random, policy)
    };
    let scenario = instance.scenario();
    let costs = costs(&instance, random);
    let (_, _, events) = instance.simulate(&scenario, Some(&costs));
    let header = Header {
        charges: Some(costs.charges(scenario.quantum)),
        ..instance.header(&scenario)
    };
    (instance, header, events)
}

/// Corruptions of what a simulation is charged for: every overhead longer, shorter, left out, made
/// up, or for somebody else.
#[test]
fn corrupted_overheads_are_caught() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (index, policy) in [
        "g-edf",
        "p-edf",
        "c-edf:size=2",
        "edf-fm",
        "edf-wm",
        "nps-f",
        "pd2",
        "ca-edf:cache=4MiB",
    ]
    .iter()
    .enumerate()
    {
        let mut random = Xorshift(0x0bad_cafe_f00d + index as u64);
        for _ in 0..4 {
            let (instance, header, events) = charged(&mut random, policy, 40);
            let clean = check(&header, &events);
            assert!(
                clean.is_clean(),
                "{policy}: {}\n{instance:#?}",
                told(&clean, &events)
            );
            let end = events[events.len() - 1].time;
            for (begin, e) in events.iter().enumerate() {
                // What is still under way at the end is nobody's to judge.
                let Some(length) = events[begin..].iter().position(|b| {
                    b.kind == EventKind::OverheadEnd
                        && b.argument == e.argument
                        && b.cpu() == e.cpu()
                }) else {
                    continue;
                };
                let close = begin + length;
                if e.kind != EventKind::OverheadBegin || events[close].time >= end {
                    continue;
                }
                // An interrupt, or a decision that changes nothing, may be missing without a trace.
                let mine = |b: &&Event| b.cpu() == e.cpu();
                let switches = events[close + 1..].iter().find(mine);
                let leaves = events[..begin]
                    .iter()
                    .filter(mine)
                    .rev()
                    .take_while(|b| b.time == e.time);
                let silent = match e.overhead_kind() {
                    Some(Overhead::Scheduling) => {
                        switches.and_then(Event::overhead_kind) != Some(Overhead::ContextSwitch)
                            && !leaves.into_iter().any(|b| b.kind.takes_off())
                    }
                    // The release of a slice, which its window tells.
                    Some(Overhead::Release) => !events.iter().any(|b| {
                        b.kind == EventKind::Release
                            && (b.task, b.job, b.cpu()) == (e.task, e.job, e.cpu())
                    }),
                    // The timer of a job that is released after the end.
                    Some(Overhead::TimerTransfer) => {
                        *policy == "edf-fm"
                            && !events[begin..]
                                .iter()
                                .any(|b| b.kind == EventKind::Release && b.task == e.task)
                    }
                    kind => kind == Some(Overhead::IpiLatency),
                };
                let mut try_it = |what: &str, patch: &dyn Fn(&mut Vec<Event>)| {
                    let mut mutated = events.clone();
                    patch(&mut mutated);
                    tried += 1;
                    if check(&header, &mutated).is_clean() {
                        missed.push(format!("{policy}: {what}: {e}"));
                    }
                };
                if !silent {
                    try_it("left out", &|all| {
                        all.remove(close);
                        all.remove(begin);
                    });
                }
                try_it("twice", &|all| {
                    all.insert(close + 1, events[close]);
                    all.insert(close + 1, *e);
                });
                let shifted = |event: &Event, by: i64| {
                    let mut words = event.to_words();
                    words[0] = words[0].saturating_add_signed(by);
                    Event::from_words(words).unwrap()
                };
                try_it("longer", &|all| all[close] = shifted(&events[close], 1));
                try_it("shorter", &|all| all[close] = shifted(&events[close], -1));
                try_it("later", &|all| all[begin] = shifted(e, 1));
                let other = |event: &Event| {
                    let mut words = event.to_words();
                    words[2] = (words[2] + 1) % 7;
                    Event::from_words(words).unwrap()
                };
                try_it("another one", &|all| {
                    all[begin] = other(e);
                    all[close] = other(&events[close]);
                });
            }
        }
    }
    assert_caught(&missed, tried, 10_000);
}
