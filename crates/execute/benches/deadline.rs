//! Next to the kernel's own SCHED_DEADLINE, on the same task set and the same processors, in pairs:
//! misses, response times, preemptions, time lost.
//!
//! Ours is global EDF from user space; the peer is the kernel's (global EDF with a
//! constant-bandwidth server a task; Linux 3.14 and later). Both run the same jobs, which spin for
//! a given processor time. Responses are from nominal release to the end of the job, as the job
//! itself reads the clock; preemptions are the kernel's count of involuntary switches of the tasks'
//! threads. What is lost is the time of the processors that went neither into jobs nor into
//! ordinary threads that take what is left: interrupts, switches, dispatchers. Other programs and
//! the hypervisor take time as well: a round without tasks, next to the others, says how much, and
//! that is what the rest has to be compared with.

use execute::Settings;
use execute::kernel;
use model::watch::Silent;
use model::{CpuId, Duration, Error, Platform, Result, TaskSet, Timing};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace::NullSink;
use workload::Work;

const ROUNDS: usize = 5;
const LENGTH: Duration = Duration::from_millis(2_000);
/// The WCETs, in per cent of those below: two loads.
const LOADS: [u64; 2] = [100, 180];
/// WCET and period in milliseconds; jobs take 80 % of the WCET.
const TASKS: [(u64, u64); 8] = [
    (1, 10),
    (2, 15),
    (3, 20),
    (3, 30),
    (5, 40),
    (6, 50),
    (8, 60),
    (10, 100),
];

const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The WCET of a task under a load.
fn wcet(ms: u64, load: u64) -> Duration {
    Duration::from_micros(ms * load * 10)
}

fn execution(wcet: Duration) -> u64 {
    wcet.nanos() * 8 / 10
}

/// Involuntary switches of the calling thread so far.
fn preemptions() -> u64 {
    // SAFETY: an all-zero `rusage` is valid; the kernel fills it in.
    unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_THREAD, &mut usage);
        usage.ru_nivcsw as u64
    }
}

/// Spins for a processor time.
fn spin(ns: u64, stop: &AtomicBool) {
    let end = machine::clock::thread_time().nanos() + ns;
    while machine::clock::thread_time().nanos() < end && !stop.load(Ordering::Relaxed) {}
}

/// What the jobs of a task say: when each ended, and how often their thread was preempted.
#[derive(Clone, Default)]
struct Said {
    ends: Vec<u64>,
    preempted: u64,
    executed: u64,
}
type Book = Arc<Mutex<Said>>;

fn note(book: &Book, first: (u64, u64)) {
    let mut said = book.lock().unwrap_or_else(PoisonError::into_inner);
    said.ends.push(kernel::monotonic());
    said.preempted += preemptions().saturating_sub(first.0);
    said.executed += machine::clock::thread_time()
        .nanos()
        .saturating_sub(first.1);
}

struct Job {
    length: u64,
    book: Book,
}

impl Work for Job {
    fn job(&mut self, _: u64, stop: &AtomicBool) {
        let first = (preemptions(), machine::clock::thread_time().nanos());
        spin(self.length, stop);
        if !stop.load(Ordering::Relaxed) {
            note(&self.book, first);
        }
    }
}

/// Ordinary threads that take what is left of each processor; what they got is told at the end.
struct Rest {
    stop: Arc<AtomicBool>,
    got: Arc<AtomicU64>,
    threads: Vec<std::thread::JoinHandle<()>>,
}

impl Rest {
    fn start(cpus: &[CpuId]) -> Self {
        let (stop, got) = (
            Arc::new(AtomicBool::new(false)),
            Arc::new(AtomicU64::new(0)),
        );
        let of = |cpu: &CpuId| {
            let (cpu, stop, got) = (*cpu, Arc::clone(&stop), Arc::clone(&got));
            std::thread::spawn(move || {
                // It fails only for processors that are not there.
                let _ = kernel::Thread::current().pin(cpu);
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
                got.fetch_add(machine::clock::thread_time().nanos(), Ordering::Relaxed);
            })
        };
        let threads = cpus.iter().map(of).collect();
        Rest { stop, got, threads }
    }

    fn end(self) -> u64 {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads {
            let _ = thread.join();
        }
        self.got.load(Ordering::Relaxed)
    }
}

/// What came of a run: misses, jobs, median and 99th percentile of responses as parts of the
/// periods, preemptions, part lost.
#[derive(Clone, Copy, Debug)]
struct Figures {
    misses: f64,
    jobs: f64,
    median: f64,
    p99: f64,
    preempted: f64,
    lost: f64,
}

fn figures(books: &[Book], origin: u64, began: u64, cpus: usize, rest: u64) -> Figures {
    let elapsed = kernel::monotonic().saturating_sub(began) * cpus as u64;
    let (mut parts, mut misses, mut preempted, mut executed) = (Vec::new(), 0u32, 0, 0);
    for ((_, period), book) in TASKS.iter().zip(books) {
        let said = book.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let period = ms(*period).nanos();
        for (number, end) in said.ends.iter().enumerate() {
            let response = end.saturating_sub(origin + number as u64 * period);
            misses += u32::from(response > period);
            parts.push(response as f64 / period as f64);
        }
        preempted += said.preempted;
        executed += said.executed;
    }
    parts.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| {
        parts
            .get((parts.len() as f64 * part) as usize)
            .copied()
            .unwrap_or(f64::NAN)
    };
    Figures {
        misses: f64::from(misses),
        jobs: parts.len() as f64,
        median: 100.0 * at(0.5),
        p99: 100.0 * at(0.99),
        preempted: preempted as f64,
        lost: 100.0 * elapsed.saturating_sub(executed + rest) as f64 / elapsed.max(1) as f64,
    }
}

/// Only the ordinary threads.
fn nothing(cpus: &[CpuId]) -> Figures {
    let (rest, began) = (Rest::start(cpus), kernel::monotonic());
    std::thread::sleep(std::time::Duration::from_nanos(LENGTH.nanos()));
    let rest = rest.end();
    figures(&[], began, began, cpus.len(), rest)
}

fn ours(platform: &Platform, cpus: &[CpuId], load: u64) -> Result<Figures> {
    let timings = TASKS
        .iter()
        .map(|(e, p)| Timing::implicit(wcet(*e, load), ms(*p)));
    let set = TaskSet::from_timings(timings.collect())?;
    let spec: policy::Spec = "g-edf".parse()?;
    let plan = spec.plan(&policy::Setup {
        set: &set,
        platform,
        assignment: None,
        quantum: ms(1),
    })?;
    let books: Vec<Book> = TASKS.iter().map(|_| Book::default()).collect();
    let work = |((e, _), book): (&(u64, u64), &Book)| {
        let (length, book) = (execution(wcet(*e, load)), Arc::clone(book));
        Box::new(Job { length, book }) as Box<dyn Work>
    };
    let works: Vec<Box<dyn Work>> = TASKS.iter().zip(&books).map(work).collect();
    let settings = Settings {
        horizon: LENGTH,
        ..Settings::default()
    };
    let (rest, began) = (Rest::start(cpus), kernel::monotonic());
    let outcome = execute::run(plan, &set, works, &settings, &Silent, &mut NullSink, |_| ());
    let rest = rest.end();
    Ok(figures(&books, outcome?.origin, began, cpus.len(), rest))
}

fn theirs(cpus: &[CpuId], load: u64) -> Result<Figures> {
    let books: Vec<Book> = TASKS.iter().map(|_| Book::default()).collect();
    let (rest, began) = (Rest::start(cpus), kernel::monotonic());
    let origin = kernel::monotonic() + 50_000_000;
    let refused: Mutex<Option<std::io::Error>> = Mutex::new(None);
    std::thread::scope(|scope| {
        for ((e, p), book) in TASKS.iter().zip(&books) {
            let refused = &refused;
            scope.spawn(move || {
                let runtime = wcet(*e, load).nanos();
                if let Err(e) = sys::scheduling::set_deadline(runtime, ms(*p).nanos()) {
                    *refused.lock().unwrap_or_else(PoisonError::into_inner) = Some(e);
                    return;
                }
                let (word, never) = (std::sync::atomic::AtomicU32::new(0), AtomicBool::new(false));
                for number in 0..LENGTH.nanos() / ms(*p).nanos() {
                    kernel::futex_wait(&word, 0, Some(origin + number * ms(*p).nanos()));
                    let first = (preemptions(), machine::clock::thread_time().nanos());
                    spin(execution(wcet(*e, load)), &never);
                    note(book, first);
                }
            });
        }
    });
    let rest = rest.end();
    match refused.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(e) => Err(Error::new(format!("SCHED_DEADLINE is refused: {e}"))
            .remedy("run as root, on processors that no cpuset cuts off")),
        None => Ok(figures(&books, origin, began, cpus.len(), rest)),
    }
}

fn median(rounds: &[Figures], of: impl Fn(&Figures) -> f64) -> f64 {
    let mut values: Vec<f64> = rounds.iter().map(of).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn told(what: &str, rounds: &[Figures]) {
    println!(
        "  {what:16} {:6.0} of {:4.0} missed   response {:5.1} % of the period, {:5.1} % at 99 %   {:6.0} preemptions   {:5.2} % lost",
        median(rounds, |f| f.misses),
        median(rounds, |f| f.jobs),
        median(rounds, |f| f.median),
        median(rounds, |f| f.p99),
        median(rounds, |f| f.preempted),
        median(rounds, |f| f.lost),
    );
}

fn bench() -> Result<()> {
    let platform = machine::this_machine()?.platform;
    let cpus = platform.in_cache_order();
    println!("medians of {ROUNDS} rounds of {LENGTH} each");
    for load in LOADS {
        let used: f64 = TASKS
            .iter()
            .map(|(e, p)| execution(wcet(*e, load)) as f64 / ms(*p).nanos() as f64)
            .sum();
        let (mut empty, mut here, mut there) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..ROUNDS {
            empty.push(nothing(&cpus));
            here.push(ours(&platform, &cpus, load)?);
            there.push(theirs(&cpus, load)?);
        }
        println!(
            "{} tasks that take {:.0} % of {} processors; without any, {:.2} % are lost",
            TASKS.len(),
            100.0 * used / cpus.len() as f64,
            cpus.len(),
            median(&empty, |f| f.lost)
        );
        told("g-edf, ours", &here);
        told("SCHED_DEADLINE", &there);
    }
    Ok(())
}

fn main() {
    // `cargo test --benches` only wants to know that it can be built and started.
    if std::env::args().any(|a| a == "--test") {
        return;
    }
    if let Err(e) = bench() {
        println!("skipped: {e}");
    }
}
