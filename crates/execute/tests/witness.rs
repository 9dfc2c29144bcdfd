//! A witness of its own: what the trace says happened is what the kernel's scheduler did
//! (tracepoint `sched_switch`).
//!
//! Ignored where tracefs cannot be had.

mod support;

use execute::witness::{self, Told};
use libtest_mimic::Completion;
use machine::tracefs::{Recording, SWITCHES, Switches};
use model::Duration;
use support::{Live, TOLERANCE, Test, ms, set_of};
use trace::Sink;

fn threads_ran_when_and_where_the_trace_says(live: &Live) -> Completion {
    let set = set_of(&[(6, 20), (9, 30), (5, 15), (16, 60)]);
    for policy in ["g-edf", "p-edf", "nps-f", "pd2"] {
        // What stood still was not on a processor either, whatever the trace says. What the engine
        // tells wrong it tells wrong again.
        let mut wrong = Vec::new();
        loop {
            match of_one_run(live, &set, policy) {
                Ok(Ok(())) => break,
                Ok(Err(why)) => wrong.push(why),
                Err(e) => return Completion::ignored_with(e.to_string()),
            }
            assert!(wrong.len() < 3, "{policy}: {}", wrong.join("\n"));
        }
    }
    Completion::Completed
}

/// Runs a set with a witness: where the two disagree.
///
/// # Errors
/// There is no witness here.
fn of_one_run(
    live: &Live,
    set: &model::TaskSet,
    policy: &str,
) -> model::Result<Result<(), String>> {
    let recording = Recording::begin(&[SWITCHES])?;
    let assignment = live.assign(&policy.parse().unwrap(), set);
    let ran = live.run_set(policy, set, assignment, ms(1000), 70);
    let switches = Switches::from(recording.end().unwrap());
    ran.is_sound();
    let mut told = Told::new(set.len());
    for event in &ran.events {
        told.record(*event);
    }
    let run = witness::Run {
        threads: &ran.outcome.threads,
        origin: ran.outcome.origin,
        end: ran.outcome.end,
        // Less than most jobs take.
        allowed: TOLERANCE.saturating_add(Duration::from_nanos(2 * ran.outcome.latest.nanos())),
    };
    let testimony = witness::compare(&switches, &told, &run);
    assert_eq!((testimony.lost, testimony.until), (0, None));
    if !testimony.first.is_empty() {
        return Ok(Err(format!("{testimony:?}")));
    }
    let jobs: u64 = ran.statistics.tasks.iter().map(|t| t.jobs).sum();
    assert!(
        testimony.seen as u64 >= jobs && testimony.told as u64 >= jobs,
        "{policy}: {testimony:?}"
    );
    assert_eq!(testimony.not_compared, []);
    println!(
        "{policy}: {} times on a processor, of which the trace does not know {} at the median and {} at 99.9 %",
        testimony.seen,
        Duration::from_nanos(testimony.median_ns),
        Duration::from_nanos(testimony.p999_ns)
    );
    // A trace that lies is found out: here one that leaves a task out.
    let mut lies = Told::new(set.len());
    for event in ran.events.iter().filter(|e| e.task.0 != 0) {
        lies.record(*event);
    }
    // Shorter than a quantum.
    let strictly = witness::Run {
        allowed: Duration::from_micros(500),
        ..run
    };
    let denied = witness::compare(&switches, &lies, &strictly).disagreements;
    let honest = witness::compare(&switches, &told, &strictly).disagreements;
    assert!(denied > honest + 10, "{policy}: {denied} and {honest}");
    Ok(Ok(()))
}

fn main() -> std::process::ExitCode {
    // Where it cannot be mounted, the test says so.
    let _ = testing::tracefs::mounted();
    let test: Test = threads_ran_when_and_where_the_trace_says;
    support::main([("threads_ran_when_and_where_the_trace_says".to_owned(), test)])
}
