//! A witness of its own: what the trace says happened is what the kernel's scheduler did
//! (tracepoint `sched_switch`).
//!
//! Ignored where tracefs is not mounted at `/sys/kernel/tracing`, or may not be written.

mod support;

use execute::witness::{self, Told};
use libtest_mimic::Completion;
use machine::tracefs::Recording;
use model::Duration;
use support::{Live, TOLERANCE, Test, ms, set_of};
use trace::Sink;

fn threads_ran_when_and_where_the_trace_says(live: &Live) -> Completion {
    let set = set_of(&[(6, 20), (9, 30), (5, 15), (16, 60)]);
    for policy in ["g-edf", "p-edf", "nps-f", "pd2"] {
        let recording = match Recording::begin() {
            Ok(recording) => recording,
            Err(e) => return Completion::ignored_with(e.to_string()),
        };
        let assignment = live.assign(&policy.parse().unwrap(), &set);
        let ran = live.run_set(policy, &set, assignment, ms(1000), 70);
        let switches = recording.end().unwrap();
        ran.is_sound();
        let mut told = Told::new(set.len());
        for event in &ran.events {
            told.record(*event);
        }
        let run = witness::Run {
            threads: &ran.outcome.threads,
            origin: ran.outcome.origin,
            end: ran.outcome.end,
            // Less than most jobs take; what stood still was not on a processor either.
            allowed: TOLERANCE.saturating_add(Duration::from_nanos(2 * ran.outcome.latest.nanos())),
        };
        let testimony = witness::compare(&switches, &told, &run);
        assert_eq!((testimony.lost, testimony.until), (0, None));
        assert_eq!(testimony.first, [], "{policy}");
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
        let denied = witness::compare(
            &switches,
            &lies,
            &witness::Run {
                allowed: ms(1),
                ..run
            },
        );
        let of_first = denied.first.iter().filter(|d| d.task.0 == 0).count();
        assert!(of_first > 10, "{policy}: {denied:?}");
    }
    Completion::Completed
}

fn main() -> std::process::ExitCode {
    let test: Test = threads_ran_when_and_where_the_trace_says;
    support::main([("threads_ran_when_and_where_the_trace_says".to_owned(), test)])
}
