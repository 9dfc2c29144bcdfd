//! When a processor stands still: a thread above all dispatchers on each of them, which notes when
//! it was not run though it was due.
//!
//! It sleeps for a while ([`crate::Settings::watch_every`]), again and again. Where it wakes up much later, nothing that is
//! scheduled could have run meanwhile: firmware or a hypervisor had the processor, or the kernel
//! did not let go of it. What a trace says of that time is no fault of the policy; the checker
//! measures its windows without it ([`trace::EventKind::Standstill`]).

use crate::clock::{Monotonic, Timestamps};
use crate::kernel::{self, Thread};
use crate::remedies::MORE_THREADS;
use crate::threads::host::ThreadTeam;
use machine::realtime::WATCHDOG;
use model::{CpuId, Duration, Error, Instant, Result};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, PoisonError};
use std::thread::JoinHandle;
use trace::Event;
use trace::recorder::Producer;

/// What is noted: more than it takes to wake up.
const LEAST: Duration = Duration::from_micros(200);

/// Starts the one of a processor, which looks every so often and notes up to the horizon.
///
/// # Errors
/// No thread can be had.
pub(crate) fn start(
    team: &Arc<ThreadTeam>,
    cpu: CpuId,
    producer: Producer,
    every: Duration,
    horizon: Instant,
) -> Result<JoinHandle<()>> {
    let team = Arc::clone(team);
    std::thread::Builder::new()
        .name(format!("standstill {cpu}").chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || note(&team, cpu, producer, every, horizon))
        .map_err(|e| cannot(cpu, &e).remedy(MORE_THREADS))
}

fn cannot(cpu: CpuId, e: &std::io::Error) -> Error {
    Error::new(format!(
        "cannot watch for standstills of processor {cpu}: {e}"
    ))
}

/// Is it a standstill, and did it begin within the run? One that lasts beyond the horizon counts:
/// dispatchers learn late that the run is over then. It may have begun up to `every` earlier than is
/// known.
fn is_of_the_run(now: Instant, late: Duration, every: Duration, horizon: Instant) -> bool {
    let known_from = now.nanos().checked_sub(late.nanos());
    let end = horizon.nanos().saturating_add(every.nanos());
    late >= LEAST && known_from.is_some_and(|from| from < end)
}

fn note(team: &ThreadTeam, cpu: CpuId, mut producer: Producer, every: Duration, horizon: Instant) {
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread.pin(cpu).and_then(|()| thread.raise(WATCHDOG.get())) {
        team.fail(
            cannot(cpu, &e).remedy("run as root, on processors that are in this process's cpuset"),
        );
        return;
    }
    kernel::without_timer_slack();
    team.host
        .watches
        .lock()
        .unwrap_or_else(PoisonError::into_inner)
        .push((cpu, thread.0));
    // Nobody wakes it.
    let word = AtomicU32::new(0);
    while !team.ending.load(Ordering::Acquire) {
        let due = kernel::monotonic() + every.nanos();
        while kernel::monotonic() < due {
            kernel::futex_wait(&word, 0, Some(due));
        }
        let Some(timeline) = team.timeline() else {
            continue;
        };
        let late = Duration::from_nanos(Monotonic.read().saturating_sub(due));
        let now = timeline.now();
        if is_of_the_run(now, late, every, horizon) && !team.ending.load(Ordering::Acquire) {
            producer.push(Event::standstill(now, cpu, late));
        }
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_standstill_across_the_horizon_is_of_the_run_and_a_later_one_is_not() {
        let (ms, horizon) = (Duration::from_millis, Instant::from_nanos(1_000_000_000));
        let is_of_the_run = |now, late| super::is_of_the_run(now, late, ms(1), horizon);
        let at = |millis: u64| Instant::from_nanos(millis * 1_000_000);
        assert!(is_of_the_run(at(500), ms(2)));
        assert!(is_of_the_run(at(1042), ms(43)));
        // It was due at 1000.5 ms: processor time was taken away at the horizon or before.
        assert!(is_of_the_run(at(1042), Duration::from_micros(41_500)));
        assert!(!is_of_the_run(at(1042), ms(41)));
        assert!(!is_of_the_run(at(500), Duration::from_micros(199)));
        // It began before all tasks were released.
        assert!(!is_of_the_run(at(1), ms(2)));
    }
}
