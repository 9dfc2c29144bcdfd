//! What threads do besides running and waiting for a timer: they sleep, lock, wake others up.

use super::*;

#[test]
fn threads_that_sleep_are_tasks_where_that_is_asked_for() {
    // 2 ms and 8 ms make 10 ms, 1 ms and 5 ms make 6 ms: no two jobs are nearer than that.
    let phases = r#""phases": {"a": {"run": 2000, "sleep": 8000}, "b": {"loop": 3, "run": 500, "run1": 500, "sleep": 5000}}"#;
    let text = |keys: &str| format!(r#"{{"tasks": {{"t": {{{keys}}}}}}}"#);
    assert!(read(&text(phases)).is_err());
    let imported = sleeping(&text(phases)).unwrap();
    assert_eq!(timings(&imported), [("t".to_owned(), 2000, 6000, 6000)]);
    assert_eq!(imported.notes.len(), 1);
    assert!(
        imported.notes[0].contains("its period is taken as 6ms, its run and its sleep"),
        "{:?}",
        imported.notes
    );
    for (keys, times) in [
        // What runs before the first wait of a round belongs to the last of the one before.
        (
            r#""phases": {"a": {"run": 1, "sleep": 9}, "b": {"loop": 3, "run": 2}}"#,
            Some((7, 16)),
        ),
        // A sleep in front of nothing.
        (r#""sleep": 100, "run": 1, "sleep1": 9"#, Some((1, 10))),
        (r#""run": 7, "sleep": 1"#, Some((7, 8))),
        // No job is longer than the shortest time between jobs.
        (
            r#""phases": {"a": {"run": 90, "sleep": 10}, "b": {"run": 1, "sleep": 9}}"#,
            None,
        ),
        (r#""sleep": 100"#, None),
        (
            r#""phases": {"a": {"loop": -1, "run": 1}, "b": {"sleep": 9}}"#,
            None,
        ),
        (
            r#""phases": {"a": {"loop": 1e300, "run": 1}, "b": {"sleep": 9}}"#,
            None,
        ),
    ] {
        let found = sleeping(&text(keys)).ok().map(|i| timings(&i)[0].clone());
        assert_eq!(
            found.map(|(_, wcet, period, _)| (wcet, period)),
            times,
            "{keys}"
        );
    }
}

#[test]
fn threads_of_the_format_before_1_0_are_jobs_in_periods() {
    let text = r#"{"tasks": {"t": {"exec": 500, "period": 5000, "deadline": 4000,
        "lock_order": ["m0"], "resources": {"m0": {"duration": 100}}}}}"#;
    let imported = read(text).unwrap();
    assert_eq!(timings(&imported), [("t".to_owned(), 500, 5000, 4000)]);
    assert_eq!(imported.notes.len(), 2, "{:?}", imported.notes);
    assert!(imported.notes[0].contains("(`lock_order`), which are not modeled"));
}

#[test]
fn a_sleep_in_front_of_a_job_is_no_part_of_it() {
    let thread = |first: &str| {
        format!(
            r#"{{"tasks": {{"t": {{"phases": {{"p0": {{{first}}},
            "p1": {{"loop": 8, "run": 120, "timer": {{"ref": "tick", "period": 2000}}}}}}}}}}}}"#
        )
    };
    let imported = read(&thread(r#""sleep": 10000"#)).unwrap();
    assert_eq!(timings(&imported), [("t".to_owned(), 120, 2000, 2000)]);
    for first in [
        r#""run": 1, "sleep": 10000"#,
        r#""sleep": 10000, "run": 1, "sleep1": 5"#,
    ] {
        let e = read(&thread(first)).unwrap_err().to_string();
        assert!(e.contains("it both sleeps and waits for a timer"), "{e}");
    }
}

#[test]
fn what_runs_in_one_phase_and_waits_in_another_is_one_job() {
    let text = r#"{"tasks": {"t": {"phases": {
        "sleeping": {"loop": 1, "timer": {"ref": "tick", "period": 1200000}},
        "running": {"loop": 2, "run": 400000}}}}}"#;
    let imported = read(text).unwrap();
    assert_eq!(
        timings(&imported),
        [("t".to_owned(), 800_000, 1_200_000, 1_200_000)]
    );
}

#[test]
fn resources_are_named_as_not_modeled_and_keys_need_no_value() {
    let text = r#"{"tasks": {
    "hwc": {"resume": "sync", "lock": "m", "run": 115, "unlock": "m", "lock1": "m",
      "timer": {"ref": "a", "period": 16667}, "taskgroup": "/tg1"},
    "other": {"suspend", "run": 1500, "timer": {"ref": "b", "period": 16667}}}}"#;
    let imported = read(text).unwrap();
    assert_eq!(imported.set.len(), 1);
    insta::assert_snapshot!(imported.notes.join("\n"), @r"
    line 2, column 13: thread `hwc` wakes up what waits for `sync`, which is not modeled
    line 2, column 31: thread `hwc` locks `m`, which is not modeled: give the longest time that others hold it as `blocking`
    line 3, column 47: thread `hwc` is in task group `/tg1`, which is not modeled
    line 4, column 15: thread `other` is left out: event `suspend` is no part of a sporadic task
    ");
}

#[test]
fn the_policy_of_all_threads_ranks_those_that_name_none() {
    let text = r#"{"global": {"default_policy": "SCHED_FIFO"}, "tasks": {
        "a": {"run": 1, "timer": {"ref": "x", "period": 9}},
        "b": {"priority": 20, "run": 1, "timer": {"ref": "x", "period": 9}},
        "c": {"policy": "SCHED_OTHER", "run": 1, "timer": {"ref": "x", "period": 9}},
        "d": {"phases": {"p": {"priority": 3, "run": 1, "timer": {"ref": "x", "period": 9}}}}}}"#;
    let imported = read(text).unwrap();
    let priorities = imported.set.ids();
    let priorities: Vec<_> = priorities
        .map(|id| imported.set.details(id).unwrap().priority)
        .collect();
    assert_eq!(priorities, [Some(10), Some(20), None, Some(10)]);
    assert!(
        imported.notes[0].ends_with("here a task has one, that of the thread"),
        "{:?}",
        imported.notes
    );
}

/// Linux runs threads of SCHED_DEADLINE before all others, and fixed priorities have no place for
/// them.
#[test]
fn a_thread_by_deadlines_beside_priorities_is_named() {
    let thread = |name: &str, policy: &str| {
        format!(
            r#""{name}": {{"policy": "{policy}", "run": 1, "timer": {{"ref": "x", "period": 9}}}}"#
        )
    };
    let with = |first: &str| {
        let threads = [thread("a", first), thread("b", "SCHED_DEADLINE")].join(",\n");
        read(&format!(r#"{{"tasks": {{{threads}}}}}"#)).unwrap()
    };
    let mixed = with("SCHED_FIFO");
    assert_eq!(mixed.set.len(), 2);
    insta::assert_snapshot!(mixed.notes.join("\n"), @"line 2, column 1: thread `b` is of SCHED_DEADLINE, which Linux runs before all priorities; here it has no priority, and fixed priorities put it behind tasks that have one");
    assert!(with("SCHED_DEADLINE").notes.is_empty());
}
