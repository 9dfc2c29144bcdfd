//! The thread that decides at quanta: it asks the program in the kernel what has happened, lets the
//! policy decide, and has that carried out.
//!
//! It is above all jobs, and sleeps from quantum to quantum.

use crate::above::go_before_jobs;
use crate::engine::clock;
use crate::intf::{self, Plan};
use crate::loaded::Deciding;
use crate::quanta::{Machines, Seen};
use crate::worker::Shared;
use machine::realtime;
use model::{Duration, Instant, Result};
use std::sync::atomic::Ordering;

/// The priority of the thread where it cannot have a deadline: as that of the dispatchers of the
/// engine in user space.
const PRIORITY: i32 = 97;

/// Decides from quantum to quantum until the run is over. Without the right to a priority it decides
/// as an ordinary thread, which is above all jobs, too.
///
/// # Errors
/// The program is gone.
pub(crate) fn run(
    deciding: &Deciding<'_>,
    plan: &Plan,
    machines: &mut dyn Machines,
    shared: &Shared,
) -> Result<()> {
    let quantum = plan
        .domains
        .first()
        .map_or(0, |domain| domain.quantum)
        .max(1);
    // It needs little of a quantum.
    go_before_jobs(Duration::from_nanos(quantum), [8, 6, 4], PRIORITY);
    let mut next = 0;
    loop {
        let at = plan.origin + next;
        realtime::sleep(Duration::from_nanos(at.saturating_sub(clock())));
        if shared.stop.load(Ordering::Acquire) || next >= plan.horizon {
            return Ok(());
        }
        for domain in 0..plan.domains.len() {
            if !deciding.quantum(domain as u32)? {
                return Ok(());
            }
            let seen = seen(deciding, domain, shared);
            let choice = machines.decide(domain, &seen);
            if !deciding.choose(domain as u32, &choice)? {
                return Ok(());
            }
        }
        // A boundary that has passed meanwhile is not made up for: the next one is.
        let passed = clock().saturating_sub(plan.origin);
        next = (passed / quantum + 1) * quantum;
    }
}

fn seen(deciding: &Deciding<'_>, domain: usize, shared: &Shared) -> Seen {
    let word = |at: usize| {
        let word = deciding.seen.word(domain * intf::SEEN + 8 * at);
        word.load(Ordering::Acquire)
    };
    let ended: Vec<u64> = (0..shared.tasks.len()).map(|task| word(2 + task)).collect();
    let misses = |(task, ended): (usize, &u64)| {
        let last = ended.checked_sub(1)?;
        shared.misses[task].of(last)
    };
    Seen {
        now: Instant::from_nanos(word(0)),
        misses: ended.iter().enumerate().map(misses).collect(),
        ended,
    }
}
