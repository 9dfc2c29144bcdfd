//! Blocking and release jitter against a slow simulator of its own, tick by tick: no yes is
//! disproved, no bound exceeded.
//!
//!     WARMSET_RANDOM_SETS=100000 \
//!         cargo test --release -p warmset-analyze --test all delayed::
//!
//! tries that many sets a test.

#[path = "delayed/simulator.rs"]
mod simulator;

use analyze::carries::Carries;
use analyze::uniprocessor::fixed_priority::{Priority, Response};
use analyze::uniprocessor::{Work, delayed};
use analyze::{Guarantee, NotApplicable, registry};
use model::{Duration, Extras, Timing};
use simulator::{Pattern, Rule, Task, simulate};
use testing::random::Random;

/// One tick in nanoseconds.
const TICK: u64 = 1_000;

fn count() -> u64 {
    let wanted = std::env::var("WARMSET_RANDOM_SETS").ok();
    wanted.and_then(|n| n.parse().ok()).unwrap_or(1_000)
}

fn ticks(n: u64) -> Duration {
    Duration::from_nanos(n * TICK)
}

fn timings(tasks: &[Task]) -> Vec<Timing> {
    let timing = |t: &Task| Timing {
        wcet: ticks(t.wcet),
        period: ticks(t.period),
        deadline: ticks(t.deadline),
    };
    tasks.iter().map(timing).collect()
}

fn extras(tasks: &[Task], blocking: &[u64]) -> Vec<Extras> {
    let of = |(t, b): (&Task, &u64)| Extras {
        blocking: ticks(*b),
        jitter: ticks(t.jitter),
    };
    tasks.iter().zip(blocking).map(of).collect()
}

/// The longest section of a less urgent job, less the tick in which it must have begun before.
fn blocking(tasks: &[Task], rule: Rule) -> Vec<u64> {
    let of = |i: usize| {
        let less_urgent = |j: &usize| match rule {
            _ if i == *j => false,
            Rule::Edf => tasks[*j].deadline > tasks[i].deadline - tasks[i].jitter,
            Rule::Fixed => *j > i,
            Rule::Monotonic => (tasks[*j].deadline, *j) > (tasks[i].deadline, i),
        };
        let sections = (0..tasks.len())
            .filter(less_urgent)
            .map(|j| tasks[j].section);
        sections.max().unwrap_or(0).saturating_sub(1)
    };
    (0..tasks.len()).map(of).collect()
}

fn random_set(random: &mut Random, m: u64, with_sections: bool, constrained: bool) -> Vec<Task> {
    let n = 2 + m - 1 + random.among(0, 2);
    let task = |random: &mut Random| {
        let period = 3 + random.among(0, 17);
        // Tests for several processors take light sets with late deadlines only.
        let wcet = 1 + random.among(0, (period / n).max(1)).min(period - 1);
        let longest = if constrained { period } else { 2 * period };
        let most_early = (longest - wcet) / m;
        let deadline = longest - random.among(0, most_early);
        let jitter = random.among(0, deadline - wcet) * random.among(0, 1);
        let section = if with_sections {
            random.among(0, wcet)
        } else {
            0
        };
        Task {
            wcet,
            period,
            deadline,
            jitter,
            before: random.among(0, wcet - section),
            section,
        }
    };
    (0..n).map(|_| task(random)).collect()
}

/// Makes WCETs longer, tick by tick, as long as `accepts` says yes.
fn grown(mut tasks: Vec<Task>, accepts: impl Fn(&[Task]) -> bool) -> Option<Vec<Task>> {
    if !accepts(&tasks) {
        return None;
    }
    for at in 0..tasks.len() {
        loop {
            tasks[at].wcet += 1;
            let fits = tasks[at].wcet + tasks[at].jitter <= tasks[at].deadline;
            if !fits || !accepts(&tasks) {
                tasks[at].wcet -= 1;
                break;
            }
        }
    }
    Some(tasks)
}

fn patterns(seed: u64) -> [Pattern; 7] {
    [
        Pattern::Dense,
        Pattern::Random(seed),
        Pattern::Random(seed + 1),
        Pattern::Random(seed + 2),
        Pattern::Extreme(seed + 3),
        Pattern::Extreme(seed + 4),
        Pattern::Extreme(seed + 5),
    ]
}

#[test]
fn one_processor_keeps_what_is_accepted_under_edf() {
    let accepts = |tasks: &[Task]| {
        let extras = extras(tasks, &blocking(tasks, Rule::Edf));
        delayed::decide_edf(&timings(tasks), &extras, &mut Work::new()) == Ok(true)
    };
    let (mut accepted, mut late_without) = (0, 0);
    for seed in 0..count() {
        let mut random = Random::new(seed);
        let with_sections = random.one_in(2);
        let set = random_set(&mut random, 1, with_sections, false);
        let plain = analyze::uniprocessor::edf::decide(&timings(&set)) == Ok(true);
        let Some(set) = grown(set.clone(), accepts) else {
            if plain
                && patterns(seed)
                    .iter()
                    .any(|p| simulate(&set, 1, Rule::Edf, *p).missed)
            {
                late_without += 1;
            }
            continue;
        };
        let extras = extras(&set, &blocking(&set, Rule::Edf));
        let bounds = delayed::edf_response_times(&timings(&set), &extras, &mut Work::new());
        let is_full = timings(&set)
            .iter()
            .map(|t| t.utilization().to_f64())
            .sum::<f64>()
            > 0.999_999;
        assert!(bounds.is_some() || is_full, "{seed} {set:?}");
        let bounds = bounds.unwrap_or_else(|| set.iter().map(|t| ticks(t.deadline)).collect());
        assert!(
            bounds
                .iter()
                .zip(&set)
                .all(|(r, t)| *r <= ticks(t.deadline)),
            "{seed} {set:?} {bounds:?}"
        );
        for pattern in patterns(seed) {
            let outcome = simulate(&set, 1, Rule::Edf, pattern);
            assert!(!outcome.missed, "{seed} {set:?} {pattern:?}");
            for (simulated, bound) in outcome.responses.iter().zip(&bounds) {
                assert!(
                    ticks(*simulated) <= *bound,
                    "{seed} {set:?} {pattern:?} {bounds:?}"
                );
            }
        }
        accepted += 1;
    }
    assert!(accepted > count() / 5, "{accepted}");
    // The simulator can disprove: sets that pass without regard to jitter and blocking miss with
    // them.
    assert!(late_without > count() / 100, "{late_without}");
}

/// Without blocking a no is exact: the dense pattern misses, and under fixed priorities it reaches
/// every response time.
#[test]
fn one_processor_is_exact_without_blocking() {
    let (mut refused, mut reached) = (0, 0);
    for seed in 0..count() {
        let mut random = Random::new(seed ^ 0xabcd);
        let set = random_set(&mut random, 1, false, false);
        let none = extras(&set, &vec![0; set.len()]);
        let timings = timings(&set);
        let load: f64 = timings.iter().map(|t| t.utilization().to_f64()).sum();
        // Near a full load the worst job may come later than is simulated.
        if load > 0.95 {
            continue;
        }
        if delayed::decide_edf(&timings, &none, &mut Work::new()) == Ok(false) {
            assert!(
                simulate(&set, 1, Rule::Edf, Pattern::Dense).missed,
                "{seed} {set:?}"
            );
            refused += 1;
        }
        let bounds = delayed::fixed_response_times(&timings, &none);
        let outcome = simulate(&set, 1, Rule::Fixed, Pattern::Dense);
        for (bound, simulated) in bounds.iter().zip(&outcome.responses) {
            match bound {
                Response::Within(time) => assert_eq!(*time, ticks(*simulated), "{seed} {set:?}"),
                _ => assert!(outcome.missed, "{seed} {set:?}"),
            }
            reached += 1;
        }
    }
    assert!(
        refused > count() / 50 && reached > count() / 2,
        "{refused} {reached}"
    );
}

#[test]
fn one_processor_keeps_its_response_times_under_fixed_priorities() {
    let accepts = |tasks: &[Task]| {
        let extras = extras(tasks, &blocking(tasks, Rule::Fixed));
        delayed::decide_fixed(&timings(tasks), &extras, &mut Work::new()) == Ok(true)
    };
    let mut accepted = 0;
    for seed in 0..count() {
        let mut random = Random::new(seed ^ 0x1234);
        let Some(set) = grown(random_set(&mut random, 1, true, false), accepts) else {
            continue;
        };
        let extras = extras(&set, &blocking(&set, Rule::Fixed));
        let bounds = delayed::fixed_response_times(&timings(&set), &extras);
        for pattern in patterns(seed) {
            let outcome = simulate(&set, 1, Rule::Fixed, pattern);
            assert!(!outcome.missed, "{seed} {set:?} {pattern:?}");
            for (simulated, bound) in outcome.responses.iter().zip(&bounds) {
                let Response::Within(bound) = bound else {
                    panic!("accepted: {bounds:?}")
                };
                assert!(
                    ticks(*simulated) <= *bound,
                    "{seed} {set:?} {pattern:?} {bounds:?}"
                );
            }
        }
        accepted += 1;
    }
    assert!(accepted > count() / 10, "{accepted}");
}

/// Every test for several processors that carries jitter, grown to its edge; LOAD with deadlines
/// beyond periods, too, of which more than a period is left after the latest release.
#[test]
fn several_processors_keep_what_is_accepted_with_jitter() {
    let mut tried = 0;
    for test in registry::ALL {
        let rule = match test.policy {
            "g-edf" if test.guarantee == Guarantee::Hard => Rule::Edf,
            "g-fp" => Rule::Fixed,
            "g-fp:dm" => Rule::Monotonic,
            _ => continue,
        };
        assert!(
            !matches!(test.carries, Carries::Nothing | Carries::Blocking),
            "{}",
            test.name
        );
        let accepts = |tasks: &[Task]| {
            let extras = extras(tasks, &vec![0; tasks.len()]);
            test.decide_with(&timings(tasks), &extras, 2) == Ok(true)
        };
        let takes_late = test.name == "LOAD";
        let (mut accepted, mut late) = (0, 0);
        for seed in 0..count() / 5 {
            let mut random = Random::new(seed ^ 0x77);
            let constrained = !takes_late || seed % 2 == 0;
            let Some(set) = grown(random_set(&mut random, 2, false, constrained), accepts) else {
                continue;
            };
            let is_late = |t: &Task| t.jitter > 0 && t.deadline - t.jitter > t.period;
            late += u64::from(set.iter().any(is_late));
            for pattern in patterns(seed) {
                let outcome = simulate(&set, 2, rule, pattern);
                assert!(!outcome.missed, "{} {seed} {set:?} {pattern:?}", test.name);
            }
            accepted += 1;
        }
        assert!(accepted > count() / 100, "{}: {accepted}", test.name);
        assert_eq!(late > count() / 200, takes_late, "{}: {late}", test.name);
        tried += 1;
    }
    assert!(tried > 10, "{tried}");
}

/// Blocking as it occurs in a schedule with sections that nobody preempts: what passes with that
/// much does not miss there.
#[test]
fn several_processors_keep_what_is_accepted_with_the_blocking_that_occurs() {
    let (mut accepted, mut blocked) = (0, 0);
    for seed in 0..count() {
        let mut random = Random::new(seed ^ 0x5151);
        let set = random_set(&mut random, 2, true, true);
        for (policy, rule) in [
            ("g-edf", Rule::Edf),
            ("g-fp", Rule::Fixed),
            ("g-fp:dm", Rule::Monotonic),
        ] {
            for pattern in patterns(seed) {
                let outcome = simulate(&set, 2, rule, pattern);
                let extras = extras(&set, &outcome.blocked);
                let says = |t: &&&registry::TestInfo| {
                    t.decide_with(&timings(&set), &extras, 2) == Ok(true)
                };
                let tests = registry::ALL.iter();
                let hard: Vec<_> = tests
                    .filter(|t| t.policy == policy && t.guarantee == Guarantee::Hard)
                    .collect();
                if let Some(test) = hard.iter().find(says) {
                    assert!(!outcome.missed, "{} {seed} {set:?} {pattern:?}", test.name);
                    accepted += 1;
                    blocked += u64::from(outcome.blocked.iter().any(|b| *b > 0));
                }
            }
        }
    }
    assert!(
        accepted > count() && blocked > count() / 10,
        "{accepted} {blocked}"
    );
}

/// What a test does not take it refuses by name; without any it says what it says.
#[test]
fn every_test_carries_or_refuses() {
    let set = [Timing::implicit(ticks(1), ticks(10)); 3];
    let with = |blocking: u64, jitter: u64| {
        [Extras {
            blocking: ticks(blocking),
            jitter: ticks(jitter),
        }; 3]
    };
    for test in registry::ALL {
        let plain = test.decide_inflated(&set, 2);
        assert_eq!(
            test.decide_with(&set, &with(0, 0), 2),
            plain,
            "{}",
            test.name
        );
        assert_eq!(test.decide_with(&set, &[], 2), plain, "{}", test.name);
        let jitter = test.decide_with(&set, &with(0, 1), 2);
        let blocking = test.decide_with(&set, &with(1, 0), 2);
        let refused = |what| Err(NotApplicable::NotTaken(what));
        match test.carries {
            Carries::Nothing => {
                assert_eq!(jitter, refused("release jitter"), "{}", test.name);
                assert_eq!(blocking, refused("blocking"), "{}", test.name);
            }
            Carries::Blocking => {
                assert_eq!(jitter, refused("release jitter"), "{}", test.name);
                assert_eq!(blocking, Ok(true), "{}", test.name);
            }
            _ => {
                assert_eq!((jitter, blocking), (Ok(true), Ok(true)), "{}", test.name);
                // As much as there is time for, and one tick more.
                for (b, j) in [(0, 10), (10, 0), (5, 5)] {
                    assert_ne!(
                        test.decide_with(&set, &with(b, j), 2),
                        Ok(true),
                        "{} {b} {j}",
                        test.name
                    );
                }
            }
        }
    }
    assert_eq!(
        NotApplicable::NotTaken("release jitter").to_string(),
        "does not take release jitter"
    );
    assert_eq!(Priority::Given.order(&set), [0, 1, 2]);
}
