//! The checker against correct traces and against the same traces corrupted in every way.

#[path = "check/mutations.rs"]
mod mutations;
mod support;

use model::{CpuId, Duration, Instant, TaskId};
use mutations::mutations;
use proptest::prelude::*;
use support::{at_wcet, check, header, ms, schedule, tasks};
use trace::{Event, EventKind, Header};

/// The traces that are corrupted: all of 002 Figs. 2.2 and 2.6, and one in clusters with idle
/// processors.
fn good() -> Vec<(Header, Vec<Event>)> {
    let fig22 = [(1, 3), (2, 5), (2, 8)];
    let fig26 = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let light = [(1, 4), (2, 6), (1, 5), (3, 9), (2, 12)];
    [
        (header(tasks(&fig22), "p-edf", &[1], &[0; 3]), 16),
        (header(tasks(&fig22), "p-rm", &[1], &[0; 3]), 16),
        (header(tasks(&fig26), "p-edf", &[1, 1], &[0, 0, 1, 1]), 24),
        (header(tasks(&fig26), "g-edf", &[2], &[0; 4]), 24),
        (
            header(tasks(&light), "c-edf:size=2", &[2, 2], &[0, 0, 1, 1, 1]),
            40,
        ),
        (header(tasks(&light), "g-fp", &[3], &[0; 5]), 40),
    ]
    .into_iter()
    .map(|(header, horizon)| {
        let events = schedule(&header, ms(horizon), at_wcet(&header));
        (header, events)
    })
    .collect()
}

#[test]
fn correct_traces_are_clean() {
    for (header, events) in good() {
        let verdict = check(&header, &events);
        assert!(
            verdict.is_clean(),
            "{}: {:?}",
            header.stages[0].policy,
            verdict.first
        );
        assert_eq!(verdict.events, events.len() as u64);
        assert_eq!(verdict.notes, Vec::<String>::new());
    }
}

#[test]
fn every_corruption_is_caught() {
    let (mut tried, mut missed) = (0, Vec::new());
    for (header, events) in good() {
        for i in 0..events.len() {
            for mutation in mutations(&header, &events, i) {
                tried += 1;
                let verdict = check(&header, &mutation.events);
                // An end that became something else is caught by a note: the trace has no end.
                if verdict.is_clean() && verdict.notes.is_empty() {
                    missed.push(format!(
                        "{}: {} of event {i}, {}\n{}",
                        header.stages[0].policy,
                        mutation.what,
                        events[i],
                        window(&mutation.events, i)
                    ));
                }
            }
        }
    }
    let first: Vec<_> = missed.iter().take(8).map(String::as_str).collect();
    assert!(
        missed.is_empty(),
        "{} of {tried} not caught:\n{}",
        missed.len(),
        first.join("\n")
    );
    assert!(tried > 10_000, "{tried}");
}

fn window(events: &[Event], i: usize) -> String {
    let range = i.saturating_sub(6)..(i + 8).min(events.len());
    range
        .map(|k| format!("{} {k}: {}\n", if k == i { ">" } else { " " }, events[k]))
        .collect()
}

#[test]
fn a_job_that_exceeds_its_budget_is_caught() {
    let header = header(tasks(&[(2, 5), (2, 8)]), "p-edf", &[1], &[0, 0]);
    let wcet = at_wcet(&header);
    let events = schedule(&header, ms(40), |task, job| {
        wcet(task, job) + u64::from(task == TaskId(1) && job == 2)
    });
    let verdict = check(&header, &events);
    assert_eq!(verdict.violations, 1);
    assert_eq!(verdict.first[0].rule, "budget");
}

#[test]
fn the_wrong_policy_is_caught() {
    // A schedule of EDF is none of RM, and the other way round (002 Fig. 2.2: T3 misses its
    // deadline under RM only).
    let fig22 = [(1, 3), (2, 5), (2, 8)];
    for (made, told, rule) in [("p-edf", "p-rm", "priority"), ("p-rm", "p-edf", "priority")] {
        let made = header(tasks(&fig22), made, &[1], &[0; 3]);
        let told = header(tasks(&fig22), told, &[1], &[0; 3]);
        let verdict = check(&told, &schedule(&made, ms(16), at_wcet(&made)));
        assert_eq!(verdict.first.first().map(|v| v.rule), Some(rule));
    }
    // A task that leaves its processor, and a processor that idles while a job of the domain waits.
    let fig26 = [(2, 3), (3, 8), (1, 7), (5, 7)];
    let global = header(tasks(&fig26), "g-edf", &[2], &[0; 4]);
    let split = header(tasks(&fig26), "p-edf", &[1, 1], &[0, 0, 1, 1]);
    let rules = |verdict: trace::Verdict| {
        let mut rules: Vec<_> = verdict.first.iter().map(|v| v.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    };
    let verdict = check(&split, &schedule(&global, ms(24), at_wcet(&global)));
    assert_eq!(rules(verdict), ["place"]);
    let verdict = check(&global, &schedule(&split, ms(24), at_wcet(&split)));
    assert_eq!(rules(verdict), ["priority", "work-conserving"]);
}

#[test]
fn a_trace_without_its_end_is_said_to_have_none() {
    let (header, mut events) = good().swap_remove(0);
    events.truncate(events.len() / 2);
    let verdict = check(&header, &events);
    assert!(verdict.is_clean());
    insta::assert_snapshot!(verdict.notes.join("\n"), @"the trace has no end: jobs that were pending at its end were not checked");
}

#[test]
fn nothing_is_said_of_what_follows_a_loss() {
    let (header, mut events) = good().swap_remove(3);
    let (i, e) = (20, events[20]);
    events[i] = Event::lost(e.time, CpuId(0), 1);
    let verdict = check(&header, &events);
    assert_eq!((verdict.violations, verdict.lost), (1, 1));
    assert_eq!(verdict.unchecked, (events.len() - i - 1) as u64);
    assert_eq!(verdict.first[0].rule, "complete");
}

#[test]
fn a_violation_comes_with_its_moment_and_the_queue_then() {
    let fig22 = [(1, 3), (2, 5), (2, 8)];
    let made = header(tasks(&fig22), "p-rm", &[1], &[0; 3]);
    let told = header(tasks(&fig22), "p-edf", &[1], &[0; 3]);
    let verdict = check(&told, &schedule(&made, ms(16), at_wcet(&made)));
    insta::assert_snapshot!(serde_json::to_string_pretty(&verdict.first[0]).unwrap());
}

#[test]
fn a_real_run_is_allowed_its_tolerance_and_no_more() {
    let header = header(tasks(&[(2, 5), (2, 8)]), "p-edf", &[1], &[0, 0]);
    let mut real = header.clone();
    real.origin = trace::Origin::Real;
    let late = |by: u64| -> Vec<Event> {
        // The first job starts late; everything after it, but for releases, is late by as much.
        let mut events: Vec<Event> = schedule(&header, ms(8), at_wcet(&header));
        for e in &mut events {
            if !matches!(e.kind, EventKind::Release | EventKind::End) {
                e.time = e.time + Duration::from_micros(by);
            }
        }
        events.retain(|e| e.time <= Instant::ZERO + ms(8));
        events.sort_by_key(|e| (e.time, e.kind == EventKind::End));
        events
    };
    let verdict = check(&real, &late(900));
    assert_eq!(verdict.first, []);
    assert!(
        (899_000..=901_000).contains(&verdict.overdue.max_ns),
        "{:?}",
        verdict.overdue
    );
    let verdict = check(&real, &late(1100));
    assert_eq!(verdict.first[0].rule, "work-conserving");
}

/// What is overdue while the processor stood still is nobody's fault; what is overdue besides is.
#[test]
fn the_time_in_which_processors_stood_still_does_not_count() {
    let on = |processors: &[u32], of_task: &[u32]| {
        let mut real = header(tasks(&[(1, 5), (1, 8)]), "p-edf", processors, of_task);
        real.origin = trace::Origin::Real;
        real
    };
    let us = |us: u64| Instant::ZERO + Duration::from_micros(us);
    // The second processor starts its job so much after the release, and stood still for so long
    // until `end`.
    let rules = |real: &Header, late: u64, stood: Option<(u32, u64, u64)>| {
        let (one, two) = (CpuId(0), CpuId(real.platform.processors.len() as u32 - 1));
        let mut events = vec![
            Event::idle(Instant::ZERO, one),
            Event::release(us(0), one, TaskId(0), 0, us(5_000)),
            Event::release(us(0), two, TaskId(1), 0, us(8_000)),
            Event::start(us(10), one, TaskId(0), 0),
            Event::completion(us(1_010), one, TaskId(0), 0, ms(1)),
            Event::start(us(late), two, TaskId(1), 0),
            Event::completion(us(late + 1_000), two, TaskId(1), 0, ms(1)),
            Event::idle(us(late + 1_000), two),
        ];
        if let Some((cpu, end, length)) = stood {
            events.push(Event::standstill(
                us(end),
                CpuId(cpu),
                Duration::from_micros(length),
            ));
        }
        events.push(Event::end(us(4_900)));
        events.sort_by_key(|e| (e.time, e.kind == EventKind::End));
        let verdict = check(real, &events);
        let count = u64::from(stood.is_some());
        assert_eq!(verdict.standstills.count, count);
        let rules: Vec<&str> = verdict.first.iter().map(|v| v.rule).collect();
        (rules, verdict.overdue.max_ns / 1000)
    };
    let two = on(&[1, 1], &[0, 1]);
    assert_eq!(rules(&two, 3_500, None).0, ["work-conserving"]);
    let (broken, overdue) = rules(&two, 3_500, Some((1, 3_400, 3_000)));
    assert!(broken.is_empty(), "{broken:?}");
    assert_eq!(overdue, 500);
    // Too short; over before; not the processor that it took.
    assert_eq!(
        rules(&two, 3_500, Some((1, 2_400, 2_000))).0,
        ["work-conserving"]
    );
    assert_eq!(
        rules(&two, 3_500, Some((0, 3_400, 3_000))).0,
        ["work-conserving"]
    );
    // The same of a release that comes too late: by its own processor.
    let released = |stood: u32| {
        let release = Event::release(us(3_500), CpuId(1), TaskId(1), 0, us(8_000));
        let mut events = vec![Event::standstill(us(3_400), CpuId(stood), ms(3)), release];
        events.extend([
            Event::start(us(3_510), CpuId(1), TaskId(1), 0),
            Event::end(us(4_000)),
        ]);
        check(&two, &events)
            .first
            .iter()
            .map(|v| v.rule)
            .collect::<Vec<_>>()
    };
    assert_eq!(released(1), Vec::<&str>::new());
    assert_eq!(released(0), ["release"]);
    // A simulation's processors are always there.
    let simulated = Header {
        origin: trace::Origin::Simulated,
        ..two
    };
    let all = rules(&simulated, 3_500, Some((1, 3_400, 3_000))).0;
    assert!(all.contains(&"standstill"), "{all:?}");
}

/// A hypervisor that takes the processor makes releases late: the checker says how late, and what
/// is allowed.
#[test]
fn a_late_release_is_told_with_its_delay_and_an_odd_deadline_with_itself() {
    let mut real = header(tasks(&[(1, 5)]), "p-edf", &[1], &[0]);
    real.origin = trace::Origin::Real;
    let told = |release: u64, deadline: u64| {
        let us = |us: u64| Instant::ZERO + Duration::from_micros(us);
        let (cpu, task) = (CpuId(0), TaskId(0));
        let events = [
            Event::idle(Instant::ZERO, cpu),
            Event::release(us(release), cpu, task, 0, us(deadline)),
        ];
        let first = check(&real, &events).first;
        first.first().map(|v| (v.rule, v.text.clone()))
    };
    assert_eq!(told(900, 5000), None);
    let late = "it is released 4.1ms late, 1ms are allowed".to_owned();
    assert_eq!(told(4100, 5000), Some(("release", late)));
    let odd = "its deadline 7ms is not 5ms after its release".to_owned();
    assert_eq!(told(0, 7000), Some(("release", odd)));
}

#[test]
fn a_relieved_policy_may_take_its_job_off_after_its_last_quantum_and_not_within_it() {
    let rules = |off: u64| -> Vec<String> {
        let mut real = header(tasks(&[(10, 10)]), "pd2", &[1], &[0]);
        real.origin = trace::Origin::Real;
        let of = |policy: &str| trace::Stage {
            policy: policy.to_owned(),
            quantum: (policy == "pd2").then_some(ms(1)),
            ..real.stages[0].clone()
        };
        real.stages = vec![of("pd2"), of("g-edf")];
        let us = |us: u64| Instant::ZERO + Duration::from_micros(us);
        let (cpu, task) = (CpuId(0), TaskId(0));
        let mut events = vec![
            Event::release(us(0), cpu, task, 0, us(10_000)),
            Event::quantum(us(5), cpu),
            Event::start(us(5), cpu, task, 0),
        ];
        events.extend([1005, 2005].map(|boundary| Event::quantum(us(boundary), cpu)));
        events.extend([
            Event::preemption(us(off), cpu, task, 0),
            Event::policy_switch(us(off + 100), 1),
            Event::resumption(us(off + 110), cpu, cpu, task, 0),
            Event::end(us(9_000)),
        ]);
        let verdict = check(&real, &events);
        verdict.first.iter().map(|v| v.rule.to_string()).collect()
    };
    assert_eq!(rules(3_050), Vec::<String>::new());
    assert_eq!(rules(2_500), ["work-conserving"]);
}

/// Where nobody has had the quanta before, a job that comes at a boundary has the quantum that
/// begins there.
#[test]
fn a_quantum_begins_at_the_release_of_a_job_on_an_idle_machine() {
    let rules = |decided: u64| -> Vec<String> {
        let mut real = header(tasks(&[(5, 20)]), "pd2", &[1], &[0]);
        real.origin = trace::Origin::Real;
        real.stages[0].quantum = Some(ms(5));
        let us = |us: u64| Instant::ZERO + Duration::from_micros(us);
        let (cpu, task) = (CpuId(0), TaskId(0));
        let events = [
            Event::release(us(0), cpu, task, 0, us(20_000)),
            Event::quantum(us(5), cpu),
            Event::start(us(5), cpu, task, 0),
            Event::completion(us(4_500), cpu, task, 0, Duration::from_micros(4_495)),
            Event::idle(us(4_500), cpu),
            Event::release(us(20_010), cpu, task, 1, us(40_000)),
            Event::quantum(us(decided), cpu),
            Event::start(us(decided), cpu, task, 1),
            Event::completion(
                us(decided + 4_000),
                cpu,
                task,
                1,
                Duration::from_micros(4_000),
            ),
            Event::idle(us(decided + 4_000), cpu),
            Event::end(us(39_000)),
        ];
        let verdict = check(&real, &events);
        verdict.first.iter().map(|v| v.rule.to_string()).collect()
    };
    assert_eq!(rules(20_015), Vec::<String>::new());
    assert_eq!(rules(25_015), ["quantum"]);
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 60,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    /// Random sets, any load, jobs shorter than their WCET: the reference's schedules are clean
    /// under every priority policy.
    #[test]
    fn schedules_of_random_sets_are_clean(
        pairs in prop::collection::vec((1_u64..6, 1_u64..12), 1..8),
        shape in 0_usize..5,
        seed in any::<u64>(),
    ) {
        let pairs: Vec<(u64, u64)> = pairs.into_iter().map(|(e, slack)| (e, e + slack)).collect();
        let (policy, clusters): (&str, &[u32]) = [
            ("g-edf", &[3][..]),
            ("p-edf", &[1, 1, 1]),
            ("c-edf:size=2", &[2, 2]),
            ("p-rm", &[1, 1]),
            ("g-fp", &[2]),
        ][shape];
        let cluster_of: Vec<u32> = (0..pairs.len())
            .map(|t| (t % clusters.len()) as u32)
            .collect();
        let header = header(tasks(&pairs), policy, clusters, &cluster_of);
        let wcet = at_wcet(&header);
        let events = schedule(&header, ms(60), |task, job| {
            let mixed = (seed ^ job.wrapping_mul(0x9e37_79b9_7f4a_7c15)).rotate_left(task.0);
            wcet(task, job) - mixed % (wcet(task, job) / 2)
        });
        let verdict = check(&header, &events);
        prop_assert!(verdict.is_clean(), "{:?}", verdict.first);
    }
}

#[test]
fn in_a_real_trace_what_a_trigger_releases_is_a_period_apart_at_least_and_the_rest_exactly() {
    let verdict_of = |triggered: bool, releases: [u64; 3]| {
        let details = model::Details {
            trigger: triggered.then_some(model::Trigger::Descriptor(3)),
            ..model::Details::named("a")
        };
        let set = tasks(&[(1, 10)]).with_details(vec![details]).unwrap();
        let header = Header {
            origin: trace::Origin::Real,
            ..header(set, "p-edf", &[1], &[0])
        };
        let (cpu, task) = (CpuId(0), TaskId(0));
        let mut events = vec![Event::idle(Instant::ZERO, cpu)];
        for (number, release) in (0..).zip(releases) {
            // 20 us late, and 50 us until it begins.
            let after = |us: u64| support::at(release) + Duration::from_micros(us);
            events.extend([
                Event::release(after(20), cpu, task, number, support::at(release + 10)),
                Event::start(after(50), cpu, task, number),
                Event::completion(after(1050), cpu, task, number, ms(1)),
                Event::idle(after(1060), cpu),
            ]);
        }
        check(&header, &events)
    };
    for (triggered, releases, clean) in [
        (false, [0, 10, 20], true),
        (false, [0, 10, 25], false),
        (true, [0, 10, 20], true),
        (true, [3, 27, 37], true),
        (true, [3, 12, 37], false),
    ] {
        let verdict = verdict_of(triggered, releases);
        let rules: Vec<_> = verdict.first.iter().map(|v| v.rule.to_string()).collect();
        assert_eq!(
            rules.is_empty(),
            clean,
            "{triggered} {releases:?}: {rules:?}"
        );
        assert!(clean || rules.contains(&"release".to_owned()), "{rules:?}");
    }
}
