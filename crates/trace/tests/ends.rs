//! What is checked at the end of a trace: misses at the horizon, jobs beyond their budget, releases
//! that never came.

mod support;

use model::{Instant, TaskId};
use support::{at_wcet, check, header, ms, real, schedule, tasks};
use trace::{Event, EventKind};

/// The job that is unfinished at the horizon, and whose deadline is the horizon, has missed it.
#[test]
fn a_miss_whose_deadline_is_the_horizon_is_missed_when_it_is_taken_away() {
    let header = header(tasks(&[(3, 4), (3, 6)]), "p-edf", &[1], &[0, 0]);
    let mut events = schedule(&header, ms(12), at_wcet(&header));
    let real = real(&header);
    let last =
        |e: &Event| e.kind == EventKind::DeadlineMiss && e.deadline() == Instant::ZERO + ms(12);
    assert!(events.iter().any(last), "{events:?}");
    assert!(check(&header, &events).is_clean() && check(&real, &events).is_clean());
    events.retain(|e| !last(e));
    for header in [&header, &real] {
        let verdict = check(header, &events);
        assert_eq!(verdict.first.first().map(|v| v.rule), Some("misses"));
    }
}

/// A job that has executed its WCET is done: one whose completion at the end was taken away, too.
#[test]
fn a_job_that_goes_on_beyond_its_budget_until_the_end_is_caught() {
    let header = header(tasks(&[(2, 5), (2, 50)]), "p-edf", &[1], &[0, 0]);
    for horizon in [4, 5] {
        let mut events = schedule(&header, ms(horizon), at_wcet(&header));
        events.retain(|e| e.task != TaskId(1) || e.kind != EventKind::Completion);
        events.retain(|e| e.kind != EventKind::Idle);
        let rules: Vec<_> = check(&header, &events)
            .first
            .iter()
            .map(|v| v.rule)
            .collect();
        assert_eq!(rules, ["budget"], "{horizon}");
    }
}

#[test]
fn in_a_real_run_a_task_that_is_released_no_more_is_caught() {
    let real = real(&header(tasks(&[(2, 5), (2, 8)]), "p-edf", &[1], &[0, 0]));
    let events = schedule(&real, ms(40), at_wcet(&real));
    assert_eq!(check(&real, &events).first, []);
    for from in [0, 4] {
        let ends = |e: &&Event| e.task != TaskId(1) || e.job < from;
        let fewer: Vec<Event> = events.iter().filter(ends).copied().collect();
        let rules: Vec<_> = check(&real, &fewer).first.iter().map(|v| v.rule).collect();
        assert_eq!(rules, ["release"], "{from}");
    }
}
