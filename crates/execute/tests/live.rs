//! Runs for real: order and invariants, never times. Without rights they are skipped, with the reason.
//!
//! One at a time, each for a second or two, with little for the processors to do.

mod support;

use support::{live, ms};

#[test]
fn partitioned_edf_keeps_its_rules_and_every_job_is_done() {
    let Some(live) = live() else { return };
    let run = live.run("p-edf", &[(4, 20), (6, 30), (3, 15), (8, 40)], ms(1500));
    run.is_sound();
    assert_eq!(run.statistics.migrations, 0);
    let released: u64 = run.statistics.tasks.iter().map(|t| t.released).sum();
    assert_eq!(released, 75 + 50 + 100 + 38);
}

#[test]
fn global_edf_keeps_its_rules() {
    let Some(live) = live() else { return };
    let run = live.run("g-edf", &[(4, 20), (6, 30), (3, 15), (8, 40), (10, 60)], ms(1500));
    run.is_sound();
    assert!(run.statistics.jobs > 200);
}
