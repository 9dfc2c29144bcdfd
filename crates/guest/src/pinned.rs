//! Threads behind all jobs that may run on some processors only: does each of them get one of those
//! soon, as long as one has no job?

use crate::ordinary::Waits;
use crate::programs::work;
use model::{CpuId, CpuSet, Error, Result};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// `SCHED_EXT`.
const SCHED_EXT: i32 = 7;
/// How long one works, and sleeps, in turn.
const WORKS: model::Duration = model::Duration::from_micros(300);
const SLEEPS: Duration = Duration::from_millis(5);

/// Threads of the jobs' class, one for each of some sets of processors. Each begins on the first of
/// its set, and notes how long it took at most from the end of a sleep to that of its work.
pub(crate) fn waits(places: &[CpuSet]) -> Waits<CpuSet> {
    Waits::begin(places.to_vec(), longest)
}

fn longest(cpus: &CpuSet, stop: &AtomicBool) -> Result<Duration> {
    let failed = |e: std::io::Error| Error::new(format!("cannot run on processors {cpus}: {e}"));
    sys::scheduling::set(0, SCHED_EXT, 0).map_err(failed)?;
    // It waits there for as long as the first one has a job.
    stay_on(cpus.lowest()).map_err(failed)?;
    work(WORKS);
    stay_on(cpus.iter()).map_err(failed)?;
    let mut longest = Duration::ZERO;
    while !stop.load(Ordering::Relaxed) {
        let due = Instant::now() + SLEEPS;
        std::thread::sleep(SLEEPS);
        work(WORKS);
        longest = longest.max(due.elapsed());
    }
    Ok(longest)
}

fn stay_on(cpus: impl IntoIterator<Item = CpuId>) -> std::io::Result<()> {
    let mut set = rustix::thread::CpuSet::new();
    cpus.into_iter().for_each(|cpu| set.set(cpu.0 as usize));
    Ok(rustix::thread::sched_setaffinity(None, &set)?)
}
