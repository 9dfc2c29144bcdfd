//! Whether real-time work leaves a processor anything: a thread below all of it, and above all that
//! is ordinary, which tells the watchdog again and again that it got to run.
//!
//! A kernel may keep some time for ordinary programs (the fair server, 5 % of each second; the
//! throttling of real-time work) even where jobs never let go. Then ordinary programs stand still
//! for 0.95 s of every second, and each gap is too short to be noticed. What the kernel keeps for
//! them is not given to this thread, which has the lowest real-time priority: it runs where no
//! real-time work wants the processor, and there only.
//!
//! How much has to be left follows from the tasks ([`window`]); the watchdog ends a run that leaves
//! less on all of its processors.

use crate::kernel::{self, Thread};
use crate::remedies::MORE_THREADS;
use crate::threads::host::ThreadTeam;
use crate::watchdog::TELL;
use model::{CpuId, Duration, Error, Result, Timing};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::JoinHandle;

/// The lowest priority of `SCHED_FIFO`: below preempted jobs.
pub(crate) const PRIORITY: i32 = 1;
/// The part of a processor, in percent, that the tasks may take at most.
///
/// The kernel keeps 5 % of every processor for ordinary programs unless it was told otherwise, and
/// this engine's supervisor is one of them. One more for dispatchers.
pub const MOST_PERCENT: f64 = 94.0;
/// The part of every processor, in percent, that is left at least where nothing overruns
/// ([`MOST_PERCENT`]).
const LEFT_PERCENT: f64 = 100.0 - MOST_PERCENT;

/// Over how long slack has to be told: `least`, or longer where jobs are so long that tasks that
/// keep their WCETs and deadlines might take all processors for as long.
///
/// In an interval of length `W`, tasks of utilization `U` execute for `2 C + U W` at most, where
/// `C` is the sum of their WCETs: one job of each that was released before, and those released
/// within. All of `m` processors are taken no longer than `2 C / (m - U)`; within twice that, half
/// of what the tasks leave by their utilization is left indeed, which is 3 % at 94 %.
pub(crate) fn window(timings: &[Timing], processors: usize, least: Duration) -> Duration {
    let all: f64 = timings.iter().map(|t| t.wcet.nanos() as f64).sum();
    let utilization: f64 = timings.iter().map(|t| t.utilization().to_f64()).sum();
    let processors = processors.max(1) as f64;
    let left = (processors - utilization).max(processors * LEFT_PERCENT / 100.0);
    // A float too large for it becomes the longest time.
    least.max(Duration::from_nanos((4.0 * all / left) as u64))
}

/// Starts the thread of the processor at a place in the order of processors.
///
/// # Errors
/// No thread can be had.
pub(crate) fn start(team: &Arc<ThreadTeam>, cpu: CpuId, place: usize) -> Result<JoinHandle<()>> {
    let team = Arc::clone(team);
    std::thread::Builder::new()
        .name(format!("slack {cpu}").chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || tell(&team, cpu, place))
        .map_err(|e| cannot(cpu, &e).remedy(MORE_THREADS))
}

fn cannot(cpu: CpuId, e: &std::io::Error) -> Error {
    Error::new(format!("cannot watch what is left of processor {cpu}: {e}"))
}

fn tell(team: &ThreadTeam, cpu: CpuId, place: usize) {
    let Ok(_entry) = team.host.board.enter().map_err(|e| team.fail(e)) else {
        return;
    };
    let thread = Thread::current();
    if let Err(e) = thread.pin(cpu).and_then(|()| thread.raise(PRIORITY)) {
        team.fail(
            cannot(cpu, &e).remedy("run as root, on processors that are in this process's cpuset"),
        );
        return;
    }
    // Nobody wakes it.
    let word = AtomicU32::new(0);
    while !team.ending.load(Ordering::Acquire) {
        team.host.board.slack(place);
        kernel::futex_wait(&word, 0, Some(kernel::monotonic() + TELL));
    }
    // It fails only where the kernel has lost the thread.
    let _ = thread.lower();
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    fn window_of(tasks: &[(u64, u64)], processors: usize) -> Duration {
        let timings: Vec<Timing> = tasks
            .iter()
            .map(|(wcet, period)| Timing::implicit(ms(*wcet), ms(*period)))
            .collect();
        window(&timings, processors, ms(2000))
    }

    #[test]
    fn a_window_is_as_long_as_tasks_that_keep_their_wcets_need_it_to_be() {
        assert_eq!(window_of(&[(10, 20), (10, 20)], 2), ms(2000));
        // 94 ms and a spare of 12 % of a processor.
        let at_94 = window_of(&[(47, 50), (47, 50)], 2).nanos();
        assert!(at_94.abs_diff(ms(3133).nanos()) < ms(1).nanos(), "{at_94}");
        // More than can be had: as if 6 % of each were left.
        let over = window_of(&[(50, 50), (60, 50)], 2).nanos();
        assert!(over.abs_diff(ms(3667).nanos()) < ms(1).nanos(), "{over}");
        assert_eq!(window_of(&[], 0), ms(2000));
    }
}
