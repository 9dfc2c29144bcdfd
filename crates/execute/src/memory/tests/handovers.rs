//! Tasks that change hands: between domains of one policy by mail, and from stage to stage.

use super::*;

/// Jobs or parts of jobs go from domain to domain or from place to place, and each is done once.
#[test]
fn split_tasks_change_processors_and_no_job_is_lost() {
    for policy in ["edf-fm", "edf-wm", "nps-f", "c-nps-f"] {
        let mut moved = 0;
        for seed in 0..12 {
            let (set, times) = decisions::random(seed, false);
            let Ok(case) = Case::new(policy, set) else {
                continue;
            };
            let ran = case.run(given(times), Settings::of(ms(500)));
            is_sound(&ran);
            is_clean(&case.check(&ran));
            for task in case.set.ids() {
                let jobs = completions(&ran, task.0);
                assert!(
                    jobs.iter().copied().eq(0..jobs.len() as u64),
                    "{policy}: {jobs:?}"
                );
                let period = case.set.timings()[task.index()].period.nanos();
                assert!(
                    jobs.len() as u64 + 3 >= 500_000_000 / period,
                    "{policy}: {jobs:?}"
                );
                let on = |e: &&Event| e.task == task && e.kind.puts_on();
                let mut cpus: Vec<_> = ran
                    .events
                    .iter()
                    .filter(on)
                    .filter_map(|e| e.cpu())
                    .collect();
                cpus.sort_unstable();
                cpus.dedup();
                moved += usize::from(cpus.len() > 1);
            }
        }
        assert!(moved > 3, "{policy}: {moved} tasks change processors");
    }
}

/// Policies that take turns: released jobs, what they have executed and the next releases go from
/// one to the next.
fn take_turns(policies: &[&str], tasks: &[(u64, u64, u64)]) -> Ran {
    let cases: Vec<Case> = policies
        .iter()
        .map(|policy| Case::new(policy, set_of_ms(tasks)).unwrap())
        .collect();
    let plans: Vec<AnyPlan> = cases.iter().map(Case::plan).collect();
    let settings = Settings {
        turn: Some(ms(53)),
        ..Settings::of(ms(1_000))
    };
    let set = &cases[0].set;
    let ran = driver::run(&plans, set, at_wcet(set), settings);
    is_sound(&ran);
    let stages: Vec<Stage> = cases.iter().map(Case::stage).collect();
    // From one stage to the next the clock moves by two nanoseconds.
    let tolerance = Duration::from_nanos(2);
    is_clean(&check(&stages, &cases[0], &ran, tolerance));
    for task in set.ids() {
        let jobs = completions(&ran, task.0);
        assert!(
            jobs.iter().copied().eq(0..jobs.len() as u64),
            "{policies:?}: {jobs:?}"
        );
        let period = set.timings()[task.index()].period.nanos();
        assert!(
            jobs.len() as u64 >= 1_000_000_000 / period - 2,
            "{policies:?}: {jobs:?}"
        );
    }
    let switches = ran
        .events
        .iter()
        .filter(|e| e.kind == EventKind::PolicySwitch);
    assert_eq!(switches.count(), 18, "{policies:?}");
    ran
}

#[test]
fn policies_take_turns_and_every_job_is_done_once() {
    let tasks = [
        (5, 20, 0),
        (12, 40, 1),
        (9, 30, 2),
        (3, 10, 3),
        (15, 50, 5),
        (4, 40, 7),
    ];
    take_turns(&["g-edf", "p-edf"], &tasks);
    take_turns(&["p-edf", "g-fp:rm", "c-edf:size=2"], &tasks);
    take_turns(&["edf-fm", "g-edf"], &tasks);
    take_turns(&["p-rm", "edf-wm"], &tasks);
    take_turns(&["nps-f", "p-edf", "g-edf"], &tasks);
}

/// The same input gives the same trace, event by event.
#[test]
fn a_run_in_memory_is_deterministic() {
    let tasks = [(5, 20, 0), (12, 40, 1), (9, 30, 2), (3, 10, 3)];
    let [first, second] = [0, 1].map(|_| take_turns(&["edf-fm", "g-edf"], &tasks).events);
    assert_eq!(first, second);
}
