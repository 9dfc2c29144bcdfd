//! A run from its beginning to its end: loads the program, starts the threads of all tasks, releases
//! the first jobs at one moment, takes the events, unloads.
//!
//! On every way out the program is unloaded first, so that all threads are ordinary ones again.

use crate::collect::{Collector, SETTLED};
use crate::intf::Plan;
use crate::loaded::{EVENTS, Loaded};
use crate::support::{self, Support};
use crate::worker::{self, Shared};
use libbpf_rs::RingBufferBuilder;
use machine::Tree;
use machine::realtime;
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Result, TaskSet};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use trace::Sink;
use workload::Work;

/// The time from the moment at which all is ready to the first releases.
const BEFORE: Duration = Duration::from_millis(50);
/// How long it is waited for threads to come in.
const TO_COME_IN: Duration = Duration::from_secs(10);
/// How often events are taken. The thread that does it is an ordinary one, and those go before all
/// jobs of this class.
const EVERY: Duration = Duration::from_millis(200);

/// What came of a run besides its trace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Outcome {
    /// When it ended.
    pub end: Instant,
    /// The user ended it.
    pub interrupted: bool,
    /// What `CLOCK_MONOTONIC` was at time zero, in nanoseconds.
    pub origin: u64,
    /// Events that were lost.
    pub lost: u64,
    /// By task, its thread.
    pub threads: Vec<i32>,
}

/// Carries out a plan; `works`: what the jobs of each task do. `flush` is called every second.
///
/// # Errors
/// The kernel has no sched_ext, another scheduler is loaded, no right to load one; the kernel has
/// ejected the program; a job panicked. The sink has the events up to that moment.
pub fn run<S: Sink>(
    plan: &Plan,
    set: &TaskSet,
    works: Vec<Box<dyn Work>>,
    watch: &dyn Watch,
    sink: &mut S,
    mut flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    check()?;
    let mut loaded = Loaded::load()?;
    loaded.set_plan(plan)?;
    let shared = Arc::new(Shared {
        pages: loaded.pages()?,
        threads: works.iter().map(|_| AtomicI32::new(0)).collect(),
        there: Barrier::new(works.len() + 1),
        known: Barrier::new(works.len() + 1),
        stop: AtomicBool::new(false),
        panicked: AtomicI32::new(0),
        refused: AtomicI32::new(0),
    });
    let workers = start_all(&shared, set, works)?;
    shared.there.wait();
    let threads = |word: &AtomicI32| word.load(Ordering::Acquire);
    let mut plan = Plan {
        loader: rustix::thread::gettid().as_raw_nonzero().get(),
        threads: shared.threads.iter().map(threads).collect(),
        ..plan.clone()
    };
    let begun = begin(&mut loaded, &mut plan, &shared);
    let collector = RefCell::new(Collector::new(set));
    let ended = match begun {
        Ok(()) => course(&loaded, &plan, watch, &shared, &collector, sink, &mut flush),
        Err(e) => Err(e),
    };
    shared.stop.store(true, Ordering::Release);
    let let_go = loaded.end();
    let lost = loaded.lost();
    let ending = loaded.ending();
    loaded.detach();
    for worker in workers {
        // What a job panicked with went to standard error.
        let _ = worker.join();
    }
    let (end, interrupted) = ended?;
    let_go?;
    let mut collector = collector.into_inner();
    for (slot, count) in lost?.into_iter().enumerate() {
        if let Some(cpu) = plan.cpus.get(slot) {
            collector.lose(end, CpuId(*cpu), count);
        }
    }
    let lost = collector.finish(end, sink);
    flush(sink);
    if let Some(ending) = ending? {
        return Err(ejected(&ending.reason, &ending.message));
    }
    match shared.panicked.load(Ordering::Acquire) {
        0 => Ok(Outcome {
            end,
            interrupted,
            origin: plan.origin,
            lost,
            threads: plan.threads,
        }),
        task => Err(Error::new("its job panicked; what it said is above")
            .at(format!("task {}", set.name(model::TaskId(task as u32 - 1))))
            .remedy("mend its work")),
    }
}

/// # Errors
/// This kernel cannot, or another scheduler is there.
fn check() -> Result<()> {
    match support::look(&Tree::new("/".as_ref())) {
        Support::There => Ok(()),
        Support::Missing => Err(Error::new("this kernel has no sched_ext")
            .at("--engine kernel")
            .remedy(support::REMEDY)),
        Support::Taken(name) => Err(Error::new(format!(
            "the scheduler `{name}` is loaded, and the kernel has one at a time"
        ))
        .at("--engine kernel")
        .remedy("end the program that has loaded it")),
    }
}

fn start_all(
    shared: &Arc<Shared>,
    set: &TaskSet,
    works: Vec<Box<dyn Work>>,
) -> Result<Vec<JoinHandle<()>>> {
    let mut workers = Vec::with_capacity(works.len());
    for (task, work) in set.ids().zip(works) {
        let worker = worker::start(shared, task, &set.name(task), work);
        workers.push(worker.map_err(|e| {
            // Those that are there wait for the others for good; the process is about to end.
            Error::new(format!("cannot start a thread: {e}"))
                .at(format!("task {}", set.name(task)))
                .remedy("run fewer tasks, or raise `ulimit -u`")
        })?);
    }
    Ok(workers)
}

/// Lets the program schedule, the threads come in, and the domains begin.
fn begin(loaded: &mut Loaded, plan: &mut Plan, shared: &Shared) -> Result<()> {
    let prepared = prepare(loaded, plan);
    if prepared.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    shared.known.wait();
    prepared?;
    let all = plan.tasks.len();
    let late = clock() + TO_COME_IN.nanos();
    while loaded.inside()? < all {
        if shared.refused.load(Ordering::Acquire) > 0 || clock() > late {
            return Err(Error::new("a thread cannot come into the class SCHED_EXT")
                .at("--engine kernel")
                .remedy("run as root"));
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    plan.origin = clock() + BEFORE.nanos();
    loaded.set_plan(plan)?;
    let before = realtime::affinity()?;
    for (domain, part) in plan.domains.iter().enumerate() {
        let slot = part.cpus.trailing_zeros() as usize;
        let cpu = plan.cpus.get(slot).copied().unwrap_or(0);
        let pinned = realtime::pin_to(CpuId(cpu));
        pinned.map_err(|e| {
            Error::new(format!("cannot run on processor {cpu}: {e}"))
                .at("--engine kernel")
                .remedy("bring it online, or leave it out by `--cpus`")
        })?;
        loaded.start(domain as u32)?;
    }
    realtime::pin(&before)
}

fn prepare(loaded: &mut Loaded, plan: &Plan) -> Result<()> {
    for (task, thread) in plan.threads.iter().enumerate() {
        loaded.add_member(*thread, task as u32)?;
    }
    loaded.set_plan(plan)?;
    loaded.attach()
}

/// Takes events until the run is over. Returns when that is, and whether the user ended it.
fn course<S: Sink>(
    loaded: &Loaded,
    plan: &Plan,
    watch: &dyn Watch,
    shared: &Shared,
    collector: &RefCell<Collector>,
    sink: &mut S,
    flush: &mut impl FnMut(&mut S),
) -> Result<(Instant, bool)> {
    let events = loaded.map(EVENTS)?;
    let mut ring = RingBufferBuilder::new();
    let unreadable = |e: libbpf_rs::Error| {
        Error::new(format!("cannot read the events of the program: {e}"))
            .at("--engine kernel")
            .remedy("run it from user space")
    };
    ring.add(&events, |record| {
        collector.borrow_mut().take(record);
        0
    })
    .map_err(unreadable)?;
    let ring = ring.build().map_err(unreadable)?;
    let horizon = Duration::from_nanos(plan.horizon);
    watch.begin("running", plan.horizon / 1_000_000_000);
    let mut seconds = 0;
    let mut interrupted = false;
    loop {
        let passed = clock().saturating_sub(plan.origin);
        let left = plan.horizon.saturating_sub(passed).min(EVERY.nanos());
        let started = clock() >= plan.origin;
        if started && left == 0 {
            break;
        }
        realtime::sleep(Duration::from_nanos(left.max(1)));
        ring.consume().map_err(unreadable)?;
        let now = Instant::from_nanos(clock().saturating_sub(plan.origin));
        collector.borrow_mut().hand_on(now, sink);
        let second = now.nanos() / 1_000_000_000;
        if second > seconds {
            watch.advance(second - seconds);
            seconds = second;
            flush(sink);
        }
        let failed = shared.panicked.load(Ordering::Acquire) > 0 || loaded.ending()?.is_some();
        interrupted = watch.stopped();
        if interrupted || failed {
            break;
        }
    }
    let now = Instant::from_nanos(clock().saturating_sub(plan.origin));
    let end = match interrupted {
        true => now,
        false => now.max(Instant::ZERO + horizon),
    };
    // All that was stamped before the end is in the ring by then.
    realtime::sleep(SETTLED);
    ring.consume().map_err(unreadable)?;
    Ok((end, interrupted))
}

fn ejected(reason: &str, message: &str) -> Error {
    let more = match message {
        "" => String::new(),
        message => format!(" ({message})"),
    };
    Error::new(format!(
        "the kernel has ejected the scheduler: {reason}{more}; all tasks are of the fair class again"
    ))
    .at("--engine kernel")
    .remedy("run a set that needs less than its processors have, or run it from user space")
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
fn clock() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
