//! The thread that does the jobs of one task.
//!
//! It counts a job that is done in its page, and yields: the program in the kernel takes it off its
//! processor until the next job has one.
//!
//! The kernel ejects a scheduler that lets a thread wait for a processor for 30 s. So a worker
//! whose next job is released only in a while ([`LONGEST_WAIT`]) sleeps, and is there again before
//! the release; one whose first job is, comes into the class only then.

use crate::class;
use crate::engine::clock;
use crate::intf::{PAGE, PAGE_CHOSEN, PAGE_DONE, PAGE_GIVEN, PAGE_RELEASE, Plan, TaskPlan};
use crate::outcome::Settings;
use crate::surroundings::Surroundings;
use execute::Beside;
use model::{Duration, TaskId};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use sys::memory::Mapping;
use workload::Work;

/// So long a worker may wait for a release in custody. With the longest deadline of a plan it makes
/// less than the 30 s of the kernel.
pub(crate) const LONGEST_WAIT: Duration = Duration::from_secs(5);
/// A worker that has slept is there so long before the release.
const EARLY: Duration = Duration::from_secs(1);

/// What workers and the engine share.
#[derive(Debug)]
pub(crate) struct Shared {
    /// The tasks of the plan.
    pub tasks: Vec<TaskPlan>,
    /// No job is released then or later, from time zero on.
    pub horizon: u64,
    pub pages: Mapping,
    /// What the threads run in.
    pub surroundings: Option<Arc<dyn Surroundings>>,
    /// By task, its thread, of a program its first one.
    pub threads: Vec<AtomicI32>,
    /// By task, how often its latest jobs missed the shared cache.
    pub misses: Vec<Misses>,
    /// Every thread has a number; the engine has told the kernel of them.
    pub there: Barrier,
    pub known: Barrier,
    /// What `CLOCK_MONOTONIC` reads at time zero; 0: not known yet.
    pub origin: AtomicU64,
    /// The run is over: work comes back.
    pub stop: AtomicBool,
    /// A thread of the engine that decides has come to its end.
    pub failed: AtomicBool,
    /// The first task whose job panicked, and that of the first that could not come in, counted
    /// from 1.
    pub panicked: AtomicI32,
    pub refused: AtomicI32,
}

/// So many of the latest jobs of a task are remembered: who asks for one does so at the next quantum.
const REMEMBERED: usize = 4;

/// How often the latest jobs of a task missed the shared cache. Its worker writes it.
#[derive(Debug)]
pub(crate) struct Misses([(AtomicU64, AtomicU64); REMEMBERED]);

impl Default for Misses {
    fn default() -> Self {
        // No job has this number.
        Misses(std::array::from_fn(|_| {
            (AtomicU64::new(u64::MAX), AtomicU64::new(0))
        }))
    }
}

impl Misses {
    /// Of this job, where that is known.
    pub fn of(&self, job: u64) -> Option<u64> {
        let (number, misses) = &self.0[job as usize % REMEMBERED];
        (number.load(Ordering::Acquire) == job).then(|| misses.load(Ordering::Acquire))
    }

    fn note(&self, job: u64, count: u64) {
        let (number, misses) = &self.0[job as usize % REMEMBERED];
        misses.store(count, Ordering::Release);
        number.store(job, Ordering::Release);
    }
}

/// A worker, by its task. It returns its latencies.
pub(crate) type Worker = (TaskId, JoinHandle<Vec<u32>>);

impl Shared {
    /// Of a run by a plan, before anything has begun, with so many workers.
    pub fn new(plan: &Plan, pages: Mapping, settings: &Settings, workers: usize) -> Self {
        Shared {
            tasks: plan.tasks.clone(),
            horizon: plan.horizon,
            pages,
            surroundings: settings.surroundings.clone(),
            threads: plan.tasks.iter().map(|_| AtomicI32::new(0)).collect(),
            misses: plan.tasks.iter().map(|_| Misses::default()).collect(),
            there: Barrier::new(workers + 1),
            known: Barrier::new(workers + 1),
            origin: AtomicU64::new(0),
            stop: AtomicBool::new(false),
            failed: AtomicBool::new(false),
            panicked: AtomicI32::new(0),
            refused: AtomicI32::new(0),
        }
    }

    /// A word of the page of a task.
    pub fn word(&self, task: TaskId, at: usize) -> &AtomicU64 {
        self.pages.word(task.index() * PAGE + at)
    }

    /// Does the worker of a task come into the class only when the jobs of others have begun? A
    /// program is there from the beginning; one that asks for its jobs sleeps until it has one.
    pub fn comes_late(&self, task: TaskId) -> bool {
        let plan = &self.tasks[task.index()];
        plan.asks || !plan.many && plan.phase > LONGEST_WAIT.nanos()
    }

    /// When the worker has to be there for this job, as a reading of `CLOCK_MONOTONIC`; a job at
    /// the horizon or later there is not.
    fn needed(&self, task: TaskId, number: u64) -> u64 {
        let plan = &self.tasks[task.index()];
        let release = number
            .saturating_mul(plan.period)
            .saturating_add(plan.phase);
        match release < self.horizon {
            true => (self.origin.load(Ordering::Acquire) + release).saturating_sub(EARLY.nanos()),
            false => u64::MAX,
        }
    }

    /// Sleeps until a reading of `CLOCK_MONOTONIC`, or until the run is over: then the engine wakes
    /// all workers.
    fn sleep_until(&self, at: u64) {
        while !self.stop.load(Ordering::Acquire) {
            match at.saturating_sub(clock()) {
                0 => return,
                left => std::thread::park_timeout(std::time::Duration::from_nanos(left)),
            }
        }
    }

    /// Sleeps until time zero is known, or the run is over.
    fn sleep_until_known(&self) {
        while !self.stop.load(Ordering::Acquire) && self.origin.load(Ordering::Acquire) == 0 {
            std::thread::park();
        }
    }
}

impl Beside for Shared {
    fn has_begun(&self) -> bool {
        let origin = self.origin.load(Ordering::Acquire);
        origin > 0 && clock() >= origin
    }

    fn is_over(&self) -> bool {
        let origin = self.origin.load(Ordering::Acquire);
        let is_late = origin > 0 && clock() >= origin.saturating_add(self.horizon);
        is_late || self.stop.load(Ordering::Acquire)
    }

    fn stop(&self) -> &AtomicBool {
        &self.stop
    }
}

/// So many latencies of a task are kept.
const KEPT: usize = 1 << 16;

/// Starts the worker of a task. It returns its latencies.
pub(crate) fn start(
    shared: &Arc<Shared>,
    task: TaskId,
    name: &str,
    mut work: Box<dyn Work>,
) -> std::io::Result<JoinHandle<Vec<u32>>> {
    let shared = Arc::clone(shared);
    std::thread::Builder::new()
        .name(name.chars().take(15).collect())
        .stack_size(256 << 10)
        .spawn(move || {
            let number = rustix::thread::gettid().as_raw_nonzero().get();
            shared.threads[task.index()].store(number, Ordering::Release);
            shared.there.wait();
            shared.known.wait();
            let mut latencies = Vec::with_capacity(1 << 10);
            if shared.stop.load(Ordering::Acquire) {
                return latencies;
            }
            if shared.comes_late(task) {
                shared.sleep_until_known();
                shared.sleep_until(shared.needed(task, 0));
                if shared.stop.load(Ordering::Acquire) {
                    return latencies;
                }
            }
            let life = || {
                // It is in its place before it comes into the class: no job waits for that.
                let mut body = || match class::come_in() {
                    Ok(()) => live(&shared, task, &mut *work, &mut latencies),
                    Err(_) => first(&shared.refused, task),
                };
                match &shared.surroundings {
                    Some(surroundings) => surroundings.within(task, &mut body),
                    None => body(),
                }
            };
            if catch_unwind(AssertUnwindSafe(life)).is_err() {
                first(&shared.panicked, task);
            }
            latencies
        })
}

/// Notes the first task of several.
fn first(noted: &AtomicI32, task: TaskId) {
    let number = task.0 as i32 + 1;
    // Where it fails, another one was first.
    let _ = noted.compare_exchange(0, number, Ordering::AcqRel, Ordering::Relaxed);
}

fn live(shared: &Shared, task: TaskId, work: &mut dyn Work, latencies: &mut Vec<u32>) {
    let (counted, given) = (shared.word(task, PAGE_DONE), shared.word(task, PAGE_GIVEN));
    let (chosen, release) = (
        shared.word(task, PAGE_CHOSEN),
        shared.word(task, PAGE_RELEASE),
    );
    let mut done = 0;
    loop {
        let needed = shared.needed(task, done);
        let is_known = shared.origin.load(Ordering::Acquire) > 0;
        if is_known && needed.saturating_sub(clock()) > LONGEST_WAIT.nanos() {
            shared.sleep_until(needed);
        } else {
            // From the second time on it comes back when a job has the processor, or the run is
            // over.
            std::thread::yield_now();
        }
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        if given.load(Ordering::Acquire) <= done {
            continue;
        }
        // Both words are of the job that was given last, which this one is unless it is cut short.
        if chosen.load(Ordering::Acquire) == done + 1 && latencies.len() < KEPT {
            let released = shared.origin.load(Ordering::Acquire) + release.load(Ordering::Acquire);
            let late = clock().saturating_sub(released);
            latencies.push(u32::try_from(late).unwrap_or(u32::MAX));
        }
        work.job(done, &shared.stop);
        if shared.stop.load(Ordering::Acquire) {
            return;
        }
        if let Some(count) = work.misses() {
            shared.misses[task.index()].note(done, count);
        }
        done += 1;
        counted.store(done, Ordering::Release);
    }
}
