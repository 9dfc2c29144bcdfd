//! When a processor stands still: a thread above all dispatchers on each of them, which notes when it was not run though it was due.
//!
//! It sleeps for [`EVERY`], again and again. Where it wakes up much later, nothing that is scheduled could have run meanwhile:
//! firmware or a hypervisor had the processor, or the kernel did not let go of it. What a trace says of that time is no fault of
//! the policy; the checker measures its windows without it ([`trace::EventKind::Standstill`]).

use crate::clock::{Monotonic, Timestamps};
use crate::kernel::{self, Thread};
use crate::team::Team;
use machine::realtime::WATCHDOG;
use model::{CpuId, Duration, Error, Instant, Result};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;
use trace::Event;
use trace::recorder::Producer;

/// How often it looks.
const EVERY: Duration = Duration::from_millis(1);
/// What is noted: more than it takes to wake up.
const LEAST: Duration = Duration::from_micros(200);

/// Starts the one of a processor, which notes up to the horizon.
///
/// # Errors
/// No thread can be had.
pub(crate) fn start(
    team: &Arc<Team>,
    cpu: CpuId,
    producer: Producer,
    horizon: Instant,
) -> Result<JoinHandle<()>> {
    let team = Arc::clone(team);
    std::thread::Builder::new()
        .name(format!("standstill {cpu}").chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || note(&team, cpu, producer, horizon))
        .map_err(|e| cannot(cpu, &e))
}

fn cannot(cpu: CpuId, e: &std::io::Error) -> Error {
    Error::new(format!("cannot watch for standstills of processor {cpu}: {e}"))
}

fn note(team: &Team, cpu: CpuId, mut producer: Producer, horizon: Instant) {
    let Ok(_entry) = team.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread.pin(cpu).and_then(|()| thread.raise(WATCHDOG.get())) {
        team.fail(cannot(cpu, &e).remedy("run as root, on processors that are in this process's cpuset"));
        return;
    }
    kernel::without_timer_slack();
    // Nobody wakes it.
    let word = AtomicU32::new(0);
    while !team.ending.load(Ordering::Acquire) {
        let due = kernel::monotonic() + EVERY.nanos();
        while kernel::monotonic() < due {
            kernel::futex_wait(&word, 0, Some(due));
        }
        let Some(timeline) = team.timeline() else { continue };
        let late = Duration::from_nanos(Monotonic.read().saturating_sub(due));
        let now = timeline.now();
        // Where the run had ended before, this is not part of it.
        let counts = now < horizon && late.nanos() <= now.nanos() && !team.ending.load(Ordering::Acquire);
        if late >= LEAST && counts {
            producer.push(Event::standstill(now, cpu, late));
        }
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}
