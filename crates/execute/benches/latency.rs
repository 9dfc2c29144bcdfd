//! From release to first instruction, next to what `cyclictest` does, in pairs on the same processor in the same minute.
//!
//! The peer is the plainest real-time program: a thread that sleeps until an absolute time, again and again (rt-tests,
//! `cyclictest -p 97 -i 4000`); its latency is one timer and one switch. Ours is a timer, a decision of the policy, and two switches.
//! Also printed: what a dispatcher takes to note, decide and carry out (G-EDF with 50 tasks).

use execute::kernel::{self, DISPATCHER, Thread};
use execute::watchdog::{Patience, Watchdog};
use execute::{Outcome, Settings};
use model::watch::Silent;
use model::{CpuId, Duration, Platform, Result, TaskSet, Timing};
use std::sync::atomic::{AtomicBool, AtomicU32};
use trace::NullSink;
use workload::Work;

const ROUNDS: usize = 4;
const LENGTH: Duration = Duration::from_secs(1);
const PERIOD: Duration = Duration::from_millis(4);

/// Does next to nothing.
struct Touch;
impl Work for Touch {
    fn job(&mut self, number: u64, _: &AtomicBool) {
        std::hint::black_box(number);
    }
}

/// Sleeps until absolute times and says how late it woke up each time.
fn cyclic(cpu: CpuId, times: &mut Vec<u32>) -> Result<()> {
    let watchdog = Watchdog::start(Patience::default())?;
    let board = watchdog.board();
    let _entry = board.enter()?;
    let thread = Thread::current();
    let failed = |e: std::io::Error| model::Error::new(format!("cannot be raised: {e}"));
    thread
        .pin(cpu)
        .and_then(|()| thread.raise(DISPATCHER.get()))
        .map_err(failed)?;
    kernel::without_timer_slack();
    let word = AtomicU32::new(0);
    let mut next = kernel::monotonic() + PERIOD.nanos();
    for _ in 0..LENGTH.nanos() / PERIOD.nanos() {
        kernel::futex_wait(&word, 0, Some(next));
        times.push(u32::try_from(kernel::monotonic().saturating_sub(next)).unwrap_or(u32::MAX));
        board.beat(0);
        next += PERIOD.nanos();
    }
    board.rest(0);
    thread.lower().map_err(failed)
}

fn engine(platform: &Platform, tasks: usize, period: Duration) -> Result<Outcome> {
    let timing = Timing::implicit(Duration::from_nanos(period.nanos() / 1000), period);
    let set = TaskSet::from_timings(vec![timing; tasks])?;
    let spec: policy::Spec = "g-edf".parse()?;
    let plan = spec.plan(&policy::Setup {
        set: &set,
        platform,
        assignment: None,
        quantum: PERIOD,
    })?;
    let works = (0..tasks).map(|_| Box::new(Touch) as Box<dyn Work>).collect();
    let settings = Settings {
        horizon: LENGTH,
        ..Settings::default()
    };
    execute::run(plan, &set, works, &settings, &Silent, &mut NullSink, |_| ())
}

fn told(what: &str, times: &mut [u32]) -> f64 {
    times.sort_unstable();
    let at = |part: f64| {
        times
            .get((times.len() as f64 * part) as usize)
            .map_or(f64::NAN, |t| f64::from(*t) / 1e3)
    };
    println!(
        "{what:34} {:6.1} us median  {:6.1} us 99 %  {:7.1} us 99.9 %   ({})",
        at(0.5),
        at(0.99),
        at(0.999),
        times.len()
    );
    at(0.5)
}

fn bench() -> Result<()> {
    let mut platform = machine::this_machine()?.platform;
    let all = platform.in_cache_order();
    let cpu = all[all.len() - 1];
    let (mut cyclictest, mut ours, mut steps) = (Vec::new(), Vec::new(), Vec::new());
    let both = platform.clone();
    for processor in &mut platform.processors {
        processor.usable &= processor.id == cpu;
    }
    for _ in 0..ROUNDS {
        std::thread::scope(|scope| scope.spawn(|| cyclic(cpu, &mut cyclictest)).join()).unwrap_or(Ok(()))?;
        ours.extend(engine(&platform, 1, PERIOD)?.latencies);
        steps.extend(engine(&both, 50, Duration::from_millis(100))?.steps);
    }
    let peer = told("a thread and a timer (cyclictest)", &mut cyclictest);
    let median = told("release to first instruction", &mut ours);
    told("a step of g-edf with 50 tasks", &mut steps);
    println!("the median is {:.2} times the peer's", median / peer);
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
