//! Budgets: overruns are cut short when they are to be, and what is left is done by the next jobs.

use super::*;
use model::Enforcement;
use trace::Flags;

/// Two tasks on each processor in turn; T1 overruns with its first job, by 3 ms of 4 ms.
fn overrun(policy: &str, enforcement: Enforcement) -> (Case, Ran) {
    let set = set_of_ms(&[
        (4, 20, 0),
        (5, 20, 1),
        (6, 40, 2),
        (3, 10, 3),
        (4, 20, 5),
        (4, 40, 7),
    ]);
    let case = Case::new(policy, set).unwrap();
    let mut of_first = vec![2_900_000; 20];
    of_first[0] = 7_000_000;
    let times = vec![
        of_first,
        vec![5_000_000],
        vec![6_000_000],
        vec![3_000_000],
        vec![4_000_000],
        vec![4_000_000],
    ];
    let settings = Settings {
        enforcement,
        quantum: ms(1),
        ..Settings::of(ms(200))
    };
    let ran = case.run(given(times), settings);
    is_sound(&ran);
    (case, ran)
}

fn completion_of(ran: &Ran, task: u32, job: u64) -> Event {
    let is_it =
        |e: &&Event| e.kind == EventKind::Completion && e.task == TaskId(task) && e.job == job;
    *ran.events.iter().find(is_it).unwrap()
}

#[test]
fn an_overrun_is_cut_at_its_budget_and_done_by_the_next_jobs() {
    for policy in ["p-edf", "g-edf", "c-edf:size=2", "p-rm", "g-fp:rm"] {
        let (_, ran) = overrun(policy, Enforcement::Exact);
        let first = completion_of(&ran, 0, 0);
        assert!(first.flags.has(Flags::CUT), "{policy}");
        // Three milliseconds are left over, which the second job does, and one of its own 2.9.
        let second = completion_of(&ran, 0, 1);
        assert!(second.flags.has(Flags::CUT), "{policy}: 1.9 ms are left");
        // Every job is told once, and nobody else is cut.
        for task in 0..6 {
            let jobs = completions(&ran, task);
            assert!(
                jobs.iter().copied().eq(0..jobs.len() as u64),
                "{policy}: {jobs:?}"
            );
        }
        let cut = ran.events.iter().filter(|e| e.flags.has(Flags::CUT));
        assert!(cut.clone().all(|e| e.task == TaskId(0)), "{policy}");
        assert_eq!(
            cut.filter(|e| e.kind == EventKind::Completion).count(),
            3,
            "{policy}"
        );
    }
}

#[test]
fn an_overrun_goes_on_where_nothing_is_enforced() {
    for policy in policies().filter(|p| !p.contains("quantum")) {
        let policy = policy.as_str();
        let Ok(case) = Case::new(policy, set_of_ms(&[(4, 20, 0), (5, 20, 1), (6, 40, 2)])) else {
            continue;
        };
        let settings = Settings::of(ms(100));
        let ran = case.run(
            given(vec![vec![6_000_000], vec![5_000_000], vec![6_000_000]]),
            settings,
        );
        is_sound(&ran);
        assert!(
            ran.events.iter().all(|e| !e.flags.has(Flags::CUT)),
            "{policy}"
        );
    }
}

#[test]
fn per_quantum_a_job_is_cut_at_the_end_of_the_quantum() {
    let (_, ran) = overrun("p-edf", Enforcement::PerQuantum);
    let cut = ran.events.iter().filter(|e| e.flags.has(Flags::CUT));
    let mut count = 0;
    for event in cut {
        assert_eq!(event.time.nanos() % 1_000_000, 0, "{event}");
        count += 1;
    }
    assert!(count > 0);
}

#[test]
fn triggered_jobs_are_released_as_asked_and_a_period_apart() {
    for policy in ["p-edf", "g-edf", "p-fp", "edf-fm"] {
        let set = set_of_ms(&[(2, 10, 0), (5, 20, 1), (6, 40, 2)]);
        let case = Case::new(policy, set).unwrap();
        // One before the first of which no time was asked for; three at once, two of which have to
        // wait.
        let asked = vec![
            (at(3), TaskId(0), 1),
            (at(30), TaskId(0), 3),
            (at(80), TaskId(0), 1),
        ];
        let settings = Settings {
            asked,
            ..Settings::of(ms(100))
        };
        let ran = case.run(at_wcet(&case.set), settings);
        is_sound(&ran);
        let releases: Vec<Instant> = ran
            .events
            .iter()
            .filter(|e| e.kind == EventKind::Release && e.task == TaskId(0))
            .map(|e| e.time)
            .collect();
        assert_eq!(
            releases,
            [at(3), at(30), at(40), at(50), at(80)],
            "{policy}"
        );
        let came = ran.triggered[0];
        assert_eq!(
            (came.events, came.deferred, came.left),
            (5, 2, 0),
            "{policy}"
        );
        assert_eq!(completions(&ran, 0), [0, 1, 2, 3, 4], "{policy}");
    }
}
