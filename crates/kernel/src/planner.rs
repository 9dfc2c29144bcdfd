//! The thread that decides at quanta: it asks the program in the kernel what has happened, lets the
//! policy decide, and has that carried out.
//!
//! It is above all jobs, and sleeps from quantum to quantum.

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
/// The longest period of its deadline that the kernel surely takes.
const LONGEST: u64 = 1_000_000_000;
/// `SCHED_FIFO`, with which what the thread starts is ordinary.
pub(crate) const FIFO: i32 = 1 | 0x4000_0000;

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
    above_all(quantum);
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

/// Makes the thread go before all jobs. From Linux 7.0 on the kernel lets jobs of sched_ext go before
/// fixed priorities, 50 ms a second on each processor, when it finds that they starve; and jobs that
/// wait for their releases look like that. It does so by a deadline of its own, which is longer than
/// a quantum. A warning would be of no use: what is late for want of it, the trace says.
fn above_all(quantum: u64) {
    let period = quantum.min(LONGEST);
    // It needs little of that. The kernel makes it wait when it has used it up, and promises a
    // thread no more than its processors have left: the most first.
    let parts = [period, period / 4 * 3, period / 2];
    let takes = |runtime: &u64| sys::scheduling::set_deadline(*runtime, period).is_ok();
    if !parts.iter().any(takes) {
        let _ = sys::scheduling::set(0, FIFO, PRIORITY);
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
