//! A backend that fails: the run ends with the reason, or the books stay right.

use super::*;

/// More tasks than processors, so that jobs are preempted, moved and stopped.
fn busy(policy: &str) -> Option<Case> {
    let set = set_of_ms(&[
        (9, 20, 0),
        (24, 40, 3),
        (13, 30, 2),
        (4, 10, 3),
        (25, 50, 5),
        (14, 40, 7),
        (3, 20, 4),
    ]);
    Case::new(policy, set).ok()
}

fn run_with(case: &Case, failures: Vec<Failure>) -> Ran {
    let settings = Settings {
        failures,
        ..Settings::of(ms(400))
    };
    case.run(at_wcet(&case.set), settings)
}

/// Everything that was released and is complete was completed once, in order.
fn are_counted_once(case: &Case, ran: &Ran) {
    for task in case.set.ids() {
        let jobs = completions(ran, task.0);
        assert!(
            jobs.iter().copied().eq(0..jobs.len() as u64),
            "{}: {jobs:?}",
            case.policy
        );
    }
}

/// Whatever operation the system refuses, and when: the run ends, says why, and its trace makes
/// sense up to there.
#[test]
fn an_operation_that_is_refused_ends_the_run_with_its_reason() {
    use Operation::{LeaveIdle, Preempt, Retire, Run, Stop, Tend};
    for policy in policies() {
        let policy = policy.as_str();
        let Some(case) = busy(policy) else { continue };
        let mut refused = 0;
        for operation in [Tend, Run, Preempt, Stop, LeaveIdle, Retire] {
            for count in [0, 1, 7, 20] {
                let ran = run_with(&case, vec![Failure::Refuses(operation, count)]);
                assert_eq!(ran.lost, 0);
                are_counted_once(&case, &ran);
                case.check(&ran);
                let Some(fault) = ran.fault else {
                    // It was not asked for so often.
                    assert!(ran.tally.end >= at(400), "{policy}: {operation:?} {count}");
                    continue;
                };
                refused += 1;
                assert!(
                    fault.contains(&format!("{operation:?} was refused")),
                    "{fault}"
                );
                assert!(
                    ran.tally.end < at(400),
                    "{policy}: it went on to its horizon"
                );
            }
        }
        assert!(
            refused >= 12,
            "{policy}: only {refused} operations were refused"
        );
    }
}

/// The first of several reasons is told.
#[test]
fn the_first_of_several_errors_is_told() {
    let case = busy("g-edf").unwrap();
    let failures = vec![
        Failure::Refuses(Operation::Preempt, 0),
        Failure::Refuses(Operation::Run, 0),
    ];
    let ran = run_with(&case, failures);
    assert!(ran.fault.unwrap().contains("Run was refused"));
}

/// A job executes for a while after it was told to leave, and may be done by then: it has finished,
/// once, and was not preempted.
#[test]
fn a_job_that_finishes_while_it_is_preempted_has_finished_once() {
    for policy in policies() {
        let policy = policy.as_str();
        let Some(case) = busy(policy) else { continue };
        let mut late = 0;
        for lingers in [ms(1), ms(3), ms(100)] {
            let ran = run_with(&case, vec![Failure::Lingers(lingers)]);
            is_sound(&ran);
            are_counted_once(&case, &ran);
            case.check(&ran);
            // What lingers to its end is complete at the moment at which it was to leave: no job is
            // ever preempted then.
            let preempted = ran
                .events
                .iter()
                .filter(|e| e.kind == EventKind::Preemption);
            late += usize::from(lingers == ms(100) && preempted.count() == 0);
        }
        assert_eq!(late, 1, "{policy}");
    }
}

/// Jobs that are stopped go on where a processor is idle, and finish though they were not chosen:
/// each counts once, and the books stay right.
#[test]
fn jobs_that_do_not_stop_are_counted_once() {
    for policy in policies() {
        let policy = policy.as_str();
        let Some(case) = busy(policy) else { continue };
        let ran = run_with(&case, vec![Failure::NeverStops]);
        is_sound(&ran);
        are_counted_once(&case, &ran);
        case.check(&ran);
    }
}

/// A task that cannot be stopped when another stage takes it over ends the run.
#[test]
fn a_task_that_cannot_be_taken_over_ends_the_run() {
    let case = busy("g-edf").unwrap();
    let settings = Settings {
        turn: Some(ms(50)),
        failures: vec![Failure::Refuses(Operation::Take, 3)],
        ..Settings::of(ms(400))
    };
    let plans = [case.plan(), busy("p-edf").unwrap().plan()];
    let ran = driver::run(&plans, &case.set, at_wcet(&case.set), settings);
    assert_eq!(ran.fault.as_deref(), Some("Take was refused"));
    assert!(ran.tally.end < at(60));
}
