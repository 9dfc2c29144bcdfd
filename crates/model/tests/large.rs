//! Sets of the largest kinds are read in a time that grows with their size, not with its square.

use model::taskfile;

#[test]
fn a_hundred_thousand_tasks_are_read() {
    let text: String = (0..100_000)
        .map(|i| {
            format!(
                "[[task]]\nname = \"t{i}\"\nwcet = \"1us\"\nperiod = \"{}ms\"\n",
                i % 100 + 1
            )
        })
        .collect();
    assert_eq!(taskfile::from_toml(&text).unwrap().len(), 100_000);
}

#[test]
fn one_task_too_many_is_refused() {
    let timing = model::Timing::implicit(
        model::Duration::from_nanos(1),
        model::Duration::from_millis(1),
    );
    let e = model::TaskSet::from_timings(vec![timing; model::TaskSet::MAX_TASKS + 1]).unwrap_err();
    assert_eq!(
        e.to_string(),
        "1000001 tasks are more than a set may have; split it: at most 1000000 tasks a set"
    );
}
