//! What others do to the threads of a run while it runs: new nice values, affinities, classes.

use crate::init::ended;
use model::Duration;
use rustix::process::{Pid, setpriority_process};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::fs;
use std::process::{Child, ExitStatus};
use std::time::Instant;

/// The threads of a process but its first one, which loads the program and goes from processor to
/// processor to arm timers there.
pub(crate) fn threads(process: u32) -> Vec<i32> {
    let entries = fs::read_dir(format!("/proc/{process}/task"));
    let mut threads: Vec<i32> = (entries.into_iter().flatten().flatten())
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .filter(|thread| *thread != process as i32)
        .collect();
    threads.sort_unstable();
    threads
}

/// Changes nice values and affinities of all threads of a process again and again until it ends; no
/// longer than `limit`. Each affinity has all processors but the last, or all: one that does not
/// differ from the one before changes nothing. The changes are asked for on a processor of the run,
/// on another one each time: a program that takes that one for the thread's is wrong about both.
pub(crate) fn change_all(
    child: &mut Child,
    every: Duration,
    limit: Duration,
) -> Option<ExitStatus> {
    let begun = Instant::now();
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    let affinity = |count: usize| {
        let mut set = CpuSet::new();
        (0..count).for_each(|cpu| set.set(cpu));
        set
    };
    let affinities = [affinity(count), affinity(count.saturating_sub(1).max(1))];
    let here = sched_getaffinity(None).unwrap_or_else(|_| affinity(count));
    let mut status = None;
    for turn in 0.. {
        status = ended(child, every);
        if status.is_some() || begun.elapsed().as_nanos() > u128::from(limit.nanos()) {
            break;
        }
        let mut asker = CpuSet::new();
        asker.set(turn as usize % count.saturating_sub(1).max(1));
        let _ = sched_setaffinity(None, &asker);
        for thread in threads(child.id()).into_iter().filter_map(Pid::from_raw) {
            // It may have ended meanwhile.
            let _ = setpriority_process(Some(thread), turn % 2);
            let _ = sched_setaffinity(Some(thread), &affinities[turn as usize % 2]);
        }
    }
    let _ = sched_setaffinity(None, &here);
    status
}
