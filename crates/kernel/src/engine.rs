//! A run from its beginning to its end: loads the program, starts the threads of all tasks,
//! releases the first jobs at one moment, takes the events, unloads.
//!
//! On every way out the program is unloaded first, so that all threads are ordinary ones again.

use crate::behind::Behind;
use crate::collect::{Collector, SETTLED};
use crate::hearing::{Hearing, while_hearing};
use crate::intf::Plan;
use crate::loaded::{EVENTS, Loaded};
use crate::outcome::{Outcome, Settings};
use crate::plan::Carried;
use crate::planner;
use crate::support;
use crate::worker::{self, Shared};
use libbpf_rs::RingBufferBuilder;
use machine::Tree;
use machine::realtime;
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Result, TaskId, TaskSet};
use std::cell::RefCell;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering};
use std::sync::{Arc, Barrier};
use std::thread::JoinHandle;
use trace::Sink;
use workload::Work;

/// The time from the moment at which all is ready to the first releases.
const BEFORE: Duration = Duration::from_millis(50);
/// The program schedules from so long before a moment of release on, and no earlier: threads that
/// wait for longer the kernel does not suffer.
const AHEAD: Duration = Duration::from_secs(3);
/// How long it is waited for threads to come in.
const TO_COME_IN: Duration = Duration::from_secs(10);
/// How often events are taken.
const EVERY: Duration = Duration::from_millis(20);
/// So many may wait to be put in order while jobs wait for the thread that does it.
const MOST_WAITING: usize = 1 << 20;

/// Carries out a plan; `works`: what the jobs of each task do. `flush` is called every second.
///
/// # Errors
/// The kernel has no sched_ext, another scheduler is loaded, no right to load one; the kernel has
/// ejected the program; a job panicked. The sink has the events up to that moment.
pub fn run<S: Sink>(
    carried: Carried,
    set: &TaskSet,
    works: Vec<Box<dyn Work>>,
    settings: &Settings,
    watch: &dyn Watch,
    sink: &mut S,
    mut flush: impl FnMut(&mut S),
) -> Result<Outcome> {
    support::check(&Tree::new("/".as_ref()))?;
    if works.len() != set.len() || works.is_empty() {
        return Err(
            Error::new(format!("{} works for {} tasks", works.len(), set.len()))
                .remedy("give one each, and one at least"),
        );
    }
    settings.triggers.fit(set)?;
    let (_kept, missing) = settings.triggers.make_without_watchdog(set)?;
    if let Some(e) = missing {
        watch.note(&format!(
            "{e}: if this run is killed, its FIFOs and sockets stay"
        ));
    }
    let Carried { plan, mut machines } = carried;
    let mut loaded = Loaded::load(settings)?;
    loaded.set_plan(&plan)?;
    let shared = Arc::new(Shared {
        tasks: plan.tasks.clone(),
        horizon: plan.horizon,
        pages: loaded.pages()?,
        surroundings: settings.surroundings.clone(),
        threads: works.iter().map(|_| AtomicI32::new(0)).collect(),
        there: Barrier::new(works.len() + 1),
        known: Barrier::new(works.len() + 1),
        origin: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        failed: AtomicBool::new(false),
        panicked: AtomicI32::new(0),
        refused: AtomicI32::new(0),
    });
    let workers = start_all(&shared, set, works)?;
    let memory = realtime::lock_memory();
    if let Err(e) = &memory {
        watch.note(&format!("{e}: jobs may wait for memory"));
    }
    shared.there.wait();
    let threads = |word: &AtomicI32| word.load(Ordering::Acquire);
    let mut plan = Plan {
        loader: rustix::thread::gettid().as_raw_nonzero().get(),
        threads: shared.threads.iter().map(threads).collect(),
        ..plan
    };
    if let Some(release) = settings.release_at {
        wait_until(release.saturating_sub(AHEAD.nanos()), watch);
    }
    let begun = begin(&mut loaded, &mut plan, settings, &shared, &workers);
    let collector = RefCell::new(Collector::new(set));
    let ended = match begun {
        Ok(()) => while_hearing(
            &loaded,
            set,
            settings,
            &shared,
            |hearing| match &mut machines {
                None => {
                    let with = (&*shared, hearing);
                    course(&loaded, &plan, watch, with, &collector, sink, &mut flush)
                }
                Some(machines) => loaded.deciding().and_then(|deciding| {
                    std::thread::scope(|scope| {
                        let planner = scope.spawn(|| {
                            // Also where the policy panics.
                            let _fails = EndsRun(&shared);
                            planner::run(&deciding, &plan, &mut **machines, &shared)
                        });
                        let with = (&*shared, hearing);
                        let ended =
                            course(&loaded, &plan, watch, with, &collector, sink, &mut flush);
                        shared.stop.store(true, Ordering::Release);
                        let decided = planner.join().unwrap_or_else(|_| {
                            Err(Error::new("the policy panicked").at("--policy"))
                        });
                        // The kernel may have taken the program away: that is said below.
                        match loaded.ending() {
                            Ok(Some(_)) => ended,
                            _ => decided.and(ended),
                        }
                    })
                }),
            },
        ),
        Err(e) => Err(e),
    };
    shared.stop.store(true, Ordering::Release);
    let let_go = loaded.end();
    let (losses, decisions) = (loaded.losses(), loaded.decisions());
    loaded.detach();
    // When it has unloaded the program, the kernel has said why it has ejected it before, if it
    // has.
    let ending = loaded.ending();
    let (latencies, stuck) = join(workers, settings.to_end);
    let ending = ending?.map(|ending| ejected(&ending.reason, &ending.message));
    let (course, triggers) = match (ended, &ending) {
        (Ok(came), _) => came,
        // What fails without the program fails for that.
        (Err(_), Some(ejected)) => return Err(ejected.clone()),
        (Err(e), None) => return Err(e),
    };
    let Course {
        end,
        interrupted,
        gone,
    } = course;
    let_go?;
    let lost = collector.into_inner().finish(end, losses?, sink);
    flush(sink);
    if let Some(ejected) = ending {
        return Err(ejected);
    }
    let panicked = shared.panicked.load(Ordering::Acquire);
    if let Some(task) = gone.filter(|_| panicked == 0) {
        return Err(left(set, task));
    }
    match panicked {
        0 => Ok(Outcome {
            end,
            interrupted,
            origin: plan.origin,
            lost,
            threads: plan.threads,
            decisions: decisions?,
            latencies,
            triggers,
            stuck,
        }),
        task => Err(Error::new("its job panicked; what it said is above")
            .at(format!("task {}", set.name(TaskId(task as u32 - 1))))
            .remedy("mend its work")),
    }
}

/// What a thread of the engine holds that no run goes on without: its end ends the run.
struct EndsRun<'a>(&'a Shared);

impl Drop for EndsRun<'_> {
    fn drop(&mut self) {
        self.0.failed.store(true, Ordering::Release);
    }
}

/// Sleeps until a reading of the clock, or until the user ends the run.
fn wait_until(at: u64, watch: &dyn Watch) {
    while !watch.stopped() {
        match at.saturating_sub(clock()) {
            0 => return,
            left => realtime::sleep(Duration::from_nanos(left.min(EVERY.nanos()))),
        }
    }
}

/// Wakes workers that sleep until something is known, or a release is near.
fn wake(workers: &[JoinHandle<Vec<u32>>]) {
    for worker in workers {
        worker.thread().unpark();
    }
}

/// Waits until the threads have come to their ends. Returns how long first instructions took, and
/// the tasks whose work does not come back.
fn join(workers: Vec<JoinHandle<Vec<u32>>>, to_end: Duration) -> (Vec<u32>, Vec<TaskId>) {
    let late = clock() + to_end.nanos();
    let (mut latencies, mut stuck) = (Vec::new(), Vec::new());
    wake(&workers);
    for (task, worker) in workers.into_iter().enumerate() {
        while !worker.is_finished() && clock() < late {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if !worker.is_finished() {
            stuck.push(TaskId(task as u32));
            continue;
        }
        // What a job panicked with went to standard error.
        latencies.extend(worker.join().unwrap_or_default());
    }
    latencies.sort_unstable();
    (latencies, stuck)
}

fn start_all(
    shared: &Arc<Shared>,
    set: &TaskSet,
    works: Vec<Box<dyn Work>>,
) -> Result<Vec<JoinHandle<Vec<u32>>>> {
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
///
/// # Errors
/// The kernel refuses it; threads do not come in; the moment of release is over.
fn begin(
    loaded: &mut Loaded,
    plan: &mut Plan,
    settings: &Settings,
    shared: &Shared,
    workers: &[JoinHandle<Vec<u32>>],
) -> Result<()> {
    let prepared = prepare(loaded, plan).and_then(|()| match &shared.surroundings {
        Some(surroundings) => surroundings.ready(&plan.threads),
        None => Ok(()),
    });
    if prepared.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    shared.known.wait();
    prepared?;
    let tasks = (0..plan.tasks.len()).map(|task| TaskId(task as u32));
    let expected = tasks.filter(|task| !shared.comes_late(*task)).count();
    let late = clock() + TO_COME_IN.nanos();
    while loaded.inside()? < expected {
        let is_ejected = loaded.ending()?.is_some();
        if is_ejected || shared.refused.load(Ordering::Acquire) > 0 || clock() > late {
            return Err(refused());
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    let soonest = clock() + BEFORE.nanos();
    plan.origin = settings.release_at.unwrap_or(soonest);
    if plan.origin < soonest {
        return Err(Error::new("all was ready only after the moment of release")
            .at("--release-at")
            .remedy("give a later moment"));
    }
    loaded.set_plan(plan)?;
    shared.origin.store(plan.origin, Ordering::Release);
    if let Some(surroundings) = &shared.surroundings {
        surroundings.begins(plan.origin);
    }
    wake(workers);
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

fn refused() -> Error {
    Error::new("a thread cannot come into the class SCHED_EXT")
        .at("--engine kernel")
        .remedy("run as root")
}

fn prepare(loaded: &mut Loaded, plan: &Plan) -> Result<()> {
    for (task, thread) in plan.threads.iter().enumerate() {
        loaded.add_member(*thread, task as u32)?;
    }
    loaded.set_plan(plan)?;
    loaded.attach()
}

/// What came of the time in which jobs run.
struct Course {
    /// When it was over.
    end: Instant,
    /// The user ended it.
    interrupted: bool,
    /// A task whose thread has left the class, which has ended it.
    gone: Option<TaskId>,
}

/// Takes events until the run is over.
fn course<S: Sink>(
    loaded: &Loaded,
    plan: &Plan,
    watch: &dyn Watch,
    (shared, hearing): (&Shared, Option<&Hearing<'_>>),
    collector: &RefCell<Collector>,
    sink: &mut S,
    flush: &mut impl FnMut(&mut S),
) -> Result<Course> {
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
    let behind = Behind::all(&plan.cpus);
    let horizon = Instant::from_nanos(plan.horizon);
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
        let wait = match started {
            true => left,
            false => (plan.origin.saturating_sub(clock())).clamp(1, EVERY.nanos()),
        };
        realtime::sleep(Duration::from_nanos(wait));
        let brief = behind.is_pressed() && collector.borrow().waiting() < MOST_WAITING;
        ring.consume().map_err(unreadable)?;
        let now = Instant::from_nanos(clock().saturating_sub(plan.origin));
        let second = now.nanos() / 1_000_000_000;
        if !brief {
            collector.borrow_mut().hand_on(now, horizon, sink);
        }
        if second > seconds && !brief {
            watch.advance(second - seconds);
            seconds = second;
            flush(sink);
        }
        if shared.refused.load(Ordering::Acquire) > 0 {
            return Err(refused());
        }
        if let Some(e) = hearing.and_then(Hearing::failure) {
            return Err(e);
        }
        let failed = shared.panicked.load(Ordering::Acquire) > 0
            || shared.failed.load(Ordering::Acquire)
            || loaded.gone()?.is_some()
            || loaded.ending()?.is_some();
        interrupted = watch.stopped();
        if interrupted || failed {
            break;
        }
        behind.rest();
    }
    drop(behind);
    // No job is released at the horizon or later, and nobody decides: it is no part of the trace.
    let end = Instant::from_nanos(clock().saturating_sub(plan.origin)).min(horizon);
    // All that was stamped before the end is in the ring by then.
    realtime::sleep(SETTLED);
    ring.consume().map_err(unreadable)?;
    Ok(Course {
        end,
        interrupted,
        // From now on threads may leave.
        gone: loaded.gone()?,
    })
}

fn left(set: &TaskSet, task: TaskId) -> Error {
    Error::new(
        "its thread has left the scheduling class SCHED_EXT during the run, which has ended there",
    )
    .at(format!("task {}", set.name(task)))
    .remedy("leave the classes of threads as they are during a run (chrt, sched_setscheduler)")
}

fn ejected(reason: &str, message: &str) -> Error {
    let more = match message {
        "" => String::new(),
        message => format!(" ({message})"),
    };
    let remedy = match reason {
        _ if reason.contains("stall") => {
            "run a set that needs less than its processors have, or run it from user space"
        }
        _ if message.contains("affinity") => {
            "leave the affinities of threads as they are during the run (taskset, cpusets)"
        }
        _ if message.contains("hotplug") || message.contains("cpu") => {
            "leave all processors online, or as they are, during the run"
        }
        _ => "run it again, or run it from user space",
    };
    Error::new(format!(
        "the kernel has ejected the scheduler: {reason}{more}; all tasks are of the fair class again"
    ))
    .at("--engine kernel")
    .remedy(remedy)
}

/// `CLOCK_MONOTONIC`, in nanoseconds.
pub(crate) fn clock() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}
