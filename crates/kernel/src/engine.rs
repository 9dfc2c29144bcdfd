//! A run from its beginning to its end: loads the program, starts the threads of all tasks,
//! releases the first jobs at one moment, takes the events, unloads.
//!
//! On every way out the program is unloaded first, so that all threads are ordinary ones again.

use crate::collect::Collector;
use crate::company::{self, Company, Works};
use crate::course::{self, AT_ONCE, Course, EVERY, Going};
use crate::hearing::while_hearing;
use crate::intf::{Plan, TaskPlan};
use crate::loaded::{Loaded, Place};
use crate::outcome::{Outcome, Settings};
use crate::plan::Carried;
use crate::planner;
use crate::quanta::Machines;
use crate::support;
use crate::telling::while_telling;
use crate::worker::{self, Shared, Worker};
use crate::writer::{Taken, Writer, Written};
use execute::{Asking, Performer, Triggered};
use machine::Tree;
use machine::realtime::{self, LockedMemory};
use model::watch::Watch;
use model::{CpuId, Duration, Error, Instant, Result, TaskId, TaskSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering};
use trace::Sink;
use workload::Work;

/// The time from the moment at which all is ready to the first releases.
const BEFORE: Duration = Duration::from_millis(50);
/// The program schedules from so long before a moment of release on, and no earlier: threads that
/// wait for longer the kernel does not suffer.
const AHEAD: Duration = Duration::from_secs(3);
/// How long it is waited for threads to come in.
const TO_COME_IN: Duration = Duration::from_secs(10);

/// Carries out a plan; `performers`: who does the jobs of each task. `flush` is called every
/// second; a thread of its own calls it and the sink.
///
/// # Errors
/// The kernel has no sched_ext, another scheduler is loaded, no right to load one; the kernel has
/// ejected the program; a job panicked, or a task's program failed; a program asks for its jobs
/// under a policy that decides at quanta. The sink has the events up to that moment.
pub fn run<S: Sink + Send>(
    mut carried: Carried,
    set: &TaskSet,
    performers: Vec<impl Into<Performer>>,
    settings: &Settings,
    watch: &dyn Watch,
    sink: &mut S,
    flush: impl FnMut(&mut S) + Send,
) -> Result<Outcome> {
    support::check(&Tree::new("/".as_ref()))?;
    if performers.len() != set.len() || performers.is_empty() {
        let (given, tasks) = (performers.len(), set.len());
        return Err(Error::new(format!("{given} works for {tasks} tasks"))
            .remedy("give one each, and one at least"));
    }
    settings.triggers.fit(set)?;
    let performers = performers.into_iter().map(Into::into).collect();
    let (works, cast) = company::split(performers, set, &settings.best_effort);
    let counts = cast.tasks() == 0 && works.iter().all(|(_, work)| work.counts_misses());
    if let Some(e) = carried.uncounted.take_if(|_| !counts) {
        return Err(e);
    }
    company::give(&cast, &mut carried, set)?;
    let horizon = Duration::from_nanos(carried.plan.horizon);
    // Before any thread is started.
    let mut company = Company::start(set, cast, horizon, watch)?;
    let _kept = company.make(settings, set, watch)?;
    company.gather(watch)?;
    let given = Given {
        set,
        settings,
        watch,
    };
    let mut place = Place::uninit();
    let mut scene = Scene::set(given, &mut place, carried, works, company)?;
    let written = Written {
        collector: Collector::new(set, Instant::from_nanos(horizon.nanos())),
        sink,
        flush,
    };
    let room = settings.waiting.max(2 * AT_ONCE);
    std::thread::scope(|scope| {
        let (writer, taken) = Writer::start(scope, room, watch, written)?;
        let ended = scene.play(&writer, taken);
        scene.end(ended, writer)
    })
}

/// What a run is told.
#[derive(Clone, Copy)]
struct Given<'a> {
    set: &'a TaskSet,
    settings: &'a Settings,
    watch: &'a dyn Watch,
}

/// A run whose program is loaded and whose threads have been started. What is dropped first stands
/// first: the program goes before those who look after its threads.
struct Scene<'a> {
    given: Given<'a>,
    _memory: Result<LockedMemory>,
    plan: Plan,
    machines: Option<Box<dyn Machines>>,
    asking: Option<Asking>,
    workers: Vec<Worker>,
    shared: Arc<Shared>,
    loaded: Loaded<'a>,
    company: Company,
}

/// How the time in which jobs run has ended, and what came of the triggers.
type Ended = Result<(Course, Vec<Triggered>)>;

impl<'a> Scene<'a> {
    /// Loads the program and starts all threads, none of which is of its class yet.
    ///
    /// # Errors
    /// The kernel refuses the program, or a thread.
    fn set(
        given: Given<'a>,
        place: &'a mut Place,
        carried: Carried,
        works: Works,
        mut company: Company,
    ) -> Result<Self> {
        let Given {
            set,
            settings,
            watch,
        } = given;
        let asking = company.asking();
        let (plan, machines) = (carried.plan, carried.machines);
        let loaded = Loaded::load(place, settings)?;
        loaded.set_plan(&plan)?;
        let shared = Arc::new(Shared::new(&plan, loaded.pages()?, settings, works.len()));
        // Before the workers, which wait for each other, and for good where this fails.
        company.start_efforts(&shared, &settings.best_effort, &plan.cpus)?;
        let workers = start_all(&shared, set, works)?;
        // After the last fork, which has every page written to anew: that is done here.
        let memory = realtime::lock_memory();
        if let Err(e) = &memory {
            watch.note(&format!("{e}: jobs may wait for memory"));
        }
        company.enter(&shared);
        shared.there.wait();
        let threads = |word: &AtomicI32| word.load(Ordering::Acquire);
        let plan = Plan {
            loader: rustix::thread::gettid().as_raw_nonzero().get(),
            threads: shared.threads.iter().map(threads).collect(),
            replies: replies(set, asking.as_ref()),
            ..plan
        };
        Ok(Scene {
            given,
            _memory: memory,
            plan,
            machines,
            asking,
            workers,
            shared,
            loaded,
            company,
        })
    }

    /// From the moment at which the program begins to schedule to the last job.
    ///
    /// # Errors
    /// A thread cannot come in, the moment of release is over; as [`Going::on`].
    fn play<S, F>(&mut self, writer: &Writer<'_, '_, S, F>, taken: Taken) -> Ended {
        let Given {
            set,
            settings,
            watch,
        } = self.given;
        if let Some(release) = settings.release_at {
            wait_until(release.saturating_sub(AHEAD.nanos()), watch);
        }
        gather(&mut self.loaded, &self.plan, &self.shared, &self.company)?;
        let (loaded, shared, company) = (&self.loaded, &self.shared, &mut self.company);
        let (plan, workers, machines) = (&mut self.plan, &self.workers, &mut self.machines);
        // Those who hear and tell are there before anything is released.
        while_hearing(loaded, set, settings, shared, |hearing| {
            while_telling(loaded, shared, self.asking.take(), || {
                release(loaded, plan, settings, shared, workers, company)?;
                let going = Going {
                    loaded,
                    plan,
                    watch,
                    shared,
                };
                let course = || going.on(hearing, company, writer, taken);
                match machines {
                    None => course(),
                    Some(machines) => while_deciding(&going, machines, course),
                }
            })
        })
    }

    /// Unloads the program, ends all threads, and tells what came of the run.
    ///
    /// # Errors
    /// Why the run has ended, unless it had come to its end; a job panicked, a program failed.
    fn end<'s, 'b: 's, S, F>(self, ended: Ended, writer: Writer<'s, 'b, S, F>) -> Result<Outcome>
    where
        S: Sink + Send,
        F: FnMut(&mut S) + Send + 's,
    {
        let Given { set, settings, .. } = self.given;
        let (mut loaded, shared, mut company) = (self.loaded, self.shared, self.company);
        let let_go = let_go(&loaded, &shared);
        let (losses, decisions) = (loaded.losses(), loaded.decisions());
        loaded.detach();
        // When it has unloaded the program, the kernel has said why it has ejected it before, if it
        // has.
        let ejection = loaded.ending();
        let (latencies, stuck) = join(self.workers, settings.to_end);
        let ejected = ejection?.map(|ending| ejected(&ending.reason, &ending.message));
        // They are ordinary ones by now, and can end.
        let best_effort = company.end_efforts();
        let programs = company.end();
        let (course, triggers) = match (ended, &ejected) {
            (Ok(came), _) => came,
            // What fails without the program fails for that.
            (Err(_), Some(ejected)) => return Err(ejected.clone()),
            (Err(e), None) => return Err(e),
        };
        let Course {
            end,
            ending,
            gone,
            unreadable,
        } = course;
        let_go?;
        let Written {
            collector,
            sink,
            mut flush,
        } = writer.end();
        let lost = collector.finish(end, losses? + unreadable, sink);
        flush(sink);
        if let Some(ejected) = ejected {
            return Err(ejected);
        }
        let panicked = shared.panicked.load(Ordering::Acquire);
        if panicked > 0 {
            let task = TaskId(panicked as u32 - 1);
            return Err(Error::new("its job panicked; what it said is above")
                .at(format!("task {}", set.name(task)))
                .remedy("mend its work"));
        }
        if let Some(task) = gone {
            return Err(course::left(set, task));
        }
        let profiled = |machines: Box<dyn Machines>| machines.profiled();
        Ok(Outcome {
            end,
            ending,
            origin: self.plan.origin,
            lost,
            programs,
            threads: numbers(&self.plan),
            decisions: decisions?,
            latencies,
            triggers,
            stuck,
            best_effort: best_effort?,
            profiled: self.machines.map_or_else(Vec::new, profiled),
        })
    }
}

/// By task, where its program says how many jobs it has done.
fn replies(set: &TaskSet, asking: Option<&Asking>) -> Vec<u64> {
    let place = |task| asking.map_or(0, |asking| asking.place(task));
    set.ids().map(place).collect()
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
fn wake(workers: &[Worker]) {
    for (_, worker) in workers {
        worker.thread().unpark();
    }
}

/// Waits until the threads have come to their ends. Returns how long first instructions took, and
/// the tasks whose work does not come back.
fn join(workers: Vec<Worker>, to_end: Duration) -> (Vec<u32>, Vec<TaskId>) {
    let late = clock() + to_end.nanos();
    let (mut latencies, mut stuck) = (Vec::new(), Vec::new());
    wake(&workers);
    for (task, worker) in workers {
        while !worker.is_finished() && clock() < late {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        if !worker.is_finished() {
            stuck.push(task);
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
    works: Vec<(TaskId, Box<dyn Work>)>,
) -> Result<Vec<Worker>> {
    let mut workers = Vec::with_capacity(works.len());
    for (task, work) in works {
        let worker = worker::start(shared, task, &set.name(task), work);
        let worker = worker.map_err(|e| {
            // Those that are there wait for the others for good; the process is about to end.
            Error::new(format!("cannot start a thread: {e}"))
                .at(format!("task {}", set.name(task)))
                .remedy("run fewer tasks, or raise `ulimit -u`")
        })?;
        workers.push((task, worker));
    }
    Ok(workers)
}

/// Lets the program schedule, and the threads come in.
///
/// # Errors
/// The kernel refuses it; threads do not come in.
fn gather(loaded: &mut Loaded<'_>, plan: &Plan, shared: &Shared, company: &Company) -> Result<()> {
    let prepared = prepare(loaded, plan, company).and_then(|()| match &shared.surroundings {
        Some(surroundings) => surroundings.ready(&numbers(plan)),
        None => Ok(()),
    });
    if prepared.is_err() {
        shared.stop.store(true, Ordering::Release);
    }
    shared.known.wait();
    prepared?;
    company.come_in(|task, thread| loaded.add_member(thread, task.0))?;
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
    Ok(())
}

/// Says when the first jobs are released, and lets the domains begin.
///
/// # Errors
/// The kernel refuses it; the moment of release is over.
fn release(
    loaded: &Loaded<'_>,
    plan: &mut Plan,
    settings: &Settings,
    shared: &Shared,
    workers: &[Worker],
    company: &mut Company,
) -> Result<()> {
    let soonest = clock() + BEFORE.nanos();
    plan.origin = settings.release_at.unwrap_or(soonest);
    if plan.origin < soonest {
        return Err(Error::new("all was ready only after the moment of release")
            .at("--release-at")
            .remedy("give a later moment"));
    }
    loaded.set_plan(plan)?;
    shared.origin.store(plan.origin, Ordering::Release);
    company.begins(plan.origin);
    company.look_after()?;
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

pub(crate) fn refused() -> Error {
    Error::new("a thread cannot come into the class SCHED_EXT")
        .at("--engine kernel")
        .remedy("run as root")
}

/// By task, its thread; 0 where a program does its jobs.
fn numbers(plan: &Plan) -> Vec<i32> {
    let number = |(task, thread): (&TaskPlan, &i32)| if task.many { 0 } else { *thread };
    plan.tasks.iter().zip(&plan.threads).map(number).collect()
}

/// Does `course` while the state machines of a policy decide at quanta.
///
/// # Errors
/// They panic, or the program cannot be asked; as `course`.
fn while_deciding<T>(
    going: &Going<'_>,
    machines: &mut Box<dyn Machines>,
    course: impl FnOnce() -> Result<T>,
) -> Result<T> {
    let (shared, deciding) = (going.shared, going.loaded.deciding()?);
    std::thread::scope(|scope| {
        let planner = scope.spawn(|| {
            // Also where the policy panics.
            let _fails = EndsRun(shared);
            planner::run(&deciding, going.plan, &mut **machines, shared)
        });
        let ended = course();
        let let_go = let_go(going.loaded, shared);
        let decided = planner
            .join()
            .unwrap_or_else(|_| Err(Error::new("the policy panicked").at("--policy")));
        // The kernel may have taken the program away: that is said by whoever calls this.
        match going.loaded.ending() {
            Ok(Some(_)) => ended,
            _ => decided.and(let_go).and(ended),
        }
    })
}

/// Ends the jobs. In this order: a worker that ends while others are held back may be held back
/// within the kernel, with the lock of the process's memory that all its threads need to end.
fn let_go(loaded: &Loaded<'_>, shared: &Shared) -> Result<()> {
    let let_go = loaded.end();
    shared.stop.store(true, Ordering::Release);
    let_go
}

/// What a thread of the engine holds that no run goes on without: its end ends the run.
struct EndsRun<'a>(&'a Shared);

impl Drop for EndsRun<'_> {
    fn drop(&mut self) {
        self.0.failed.store(true, Ordering::Release);
    }
}

fn prepare(loaded: &mut Loaded<'_>, plan: &Plan, company: &Company) -> Result<()> {
    for (task, thread) in plan.threads.iter().enumerate() {
        loaded.add_member(*thread, task as u32)?;
    }
    for (task, thread) in company.threads() {
        loaded.add_member(thread, task.0)?;
    }
    loaded.set_plan(plan)?;
    loaded.attach()
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
