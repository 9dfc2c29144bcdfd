//! A run by the engine in the kernel, in the words of the engine in user space.

use execute::clock::{Monotonic, Timestamps};
use execute::colored::{Provider, Who, on_its_stack};
use execute::{Alongside, Beside, Efforts, Outcome};
use kernel::Surroundings;
use model::{CpuId, Duration, Result, TaskId};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// What a run by this engine has around its jobs: stacks of page colors, and best-effort work.
#[derive(Debug)]
pub(super) struct Around {
    provider: Option<Arc<dyn Provider>>,
    horizon: Duration,
    /// A reading of `CLOCK_MONOTONIC` in nanoseconds; 0: nobody knows yet.
    origin: AtomicU64,
    over: AtomicBool,
}

impl Around {
    pub(super) fn new(provider: Option<Arc<dyn Provider>>, horizon: Duration) -> Arc<Self> {
        Arc::new(Around {
            provider,
            horizon,
            origin: AtomicU64::new(0),
            over: AtomicBool::new(false),
        })
    }

    fn since_release(&self) -> Option<u64> {
        match self.origin.load(Ordering::Acquire) {
            0 => None,
            origin => Monotonic.read().checked_sub(origin),
        }
    }
}

impl Surroundings for Around {
    fn within(&self, task: TaskId, body: &mut dyn FnMut()) {
        on_its_stack(self.provider.as_ref(), Who::Worker(task), body);
    }

    fn ready(&self, threads: &[i32]) -> Result<()> {
        self.provider.as_ref().map_or(Ok(()), |p| p.ready(threads))
    }

    fn begins(&self, origin: u64) {
        self.origin.store(origin, Ordering::Release);
    }
}

impl Beside for Around {
    fn has_begun(&self) -> bool {
        self.since_release().is_some()
    }

    fn is_over(&self) -> bool {
        let is_late = |since: u64| since >= self.horizon.nanos();
        self.over.load(Ordering::Acquire) || self.since_release().is_some_and(is_late)
    }

    fn stop(&self) -> &AtomicBool {
        &self.over
    }
}

/// Does `run` with best-effort work in the time that its jobs leave.
///
/// # Errors
/// Of the run; else of the work.
pub(super) fn beside(
    around: &Arc<Around>,
    efforts: &Efforts,
    cpus: &[CpuId],
    run: impl FnOnce() -> Result<kernel::Outcome>,
) -> Result<Outcome> {
    let course: Arc<dyn Beside> = around.clone();
    let efforts = match Alongside::start(&course, efforts, cpus, kernel::go_behind) {
        Ok(efforts) => efforts,
        Err(e) => {
            around.over.store(true, Ordering::Release);
            return Err(e);
        }
    };
    let ran = run();
    around.over.store(true, Ordering::Release);
    let best_effort = efforts.end();
    let ran = ran?;
    Ok(Outcome {
        best_effort: best_effort?,
        ..outcome(ran)
    })
}

/// An outcome of the engine in the kernel, which has no dispatchers of its own.
fn outcome(of: kernel::Outcome) -> Outcome {
    Outcome {
        ending: of.ending,
        end: of.end,
        origin: of.origin,
        lost: of.lost,
        decisions: of.decisions,
        latencies: of.latencies,
        triggers: of.triggers,
        stuck: of.stuck,
        programs: of.programs,
        threads: of.threads,
        ..Outcome::default()
    }
}
