//! From release to first instruction, next to `cyclictest`, in pairs on the same processor in the
//! same minute, idle and beside a compiler run; and what one decision of G-EDF with 50 tasks takes.
//!
//! The peer is `cyclictest` of the Debian package rt-tests (`-p 97 -i 1000`): a thread that sleeps
//! until an absolute time, again and again; its latency is one timer and one switch. Ours is a
//! timer, a decision of the policy, and two switches, with the trace written; once as a run is by
//! default and once with a dispatcher that is up a little before (`warmset run --early`). A plain
//! thread with a timer of our own stands beside both, and instead of `cyclictest` where that is not
//! installed. All with processors kept from sleeping, as `cyclictest` does.
//!
//! Each line has the median over the rounds of each round's figure; the ratio is the median of the
//! rounds' ratios. A round has 4000 samples, of which four lie beyond 99.9 %; all of it takes about
//! two minutes.

use execute::kernel::{self, DISPATCHER, Thread};
use execute::watchdog::{Patience, Watchdog};
use execute::{Outcome, Settings};
use model::watch::Silent;
use model::{CpuId, Duration, Platform, Result, TaskSet, Timing};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32};
use trace::NullSink;
use workload::Work;

const ROUNDS: usize = 3;
const LENGTH: Duration = Duration::from_millis(4_000);
const PERIOD: Duration = Duration::from_millis(1);
/// Longer than most wake-ups.
const EARLY: Duration = Duration::from_micros(100);

/// Does next to nothing.
struct Touch;
impl Work for Touch {
    fn job(&mut self, number: u64, _: &AtomicBool) {
        std::hint::black_box(number);
    }
}

/// Sleeps until absolute times and says how late it woke up each time.
fn plain(cpu: CpuId) -> Result<Vec<u32>> {
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
    let mut times = Vec::new();
    let mut next = kernel::monotonic() + PERIOD.nanos();
    for _ in 0..LENGTH.nanos() / PERIOD.nanos() {
        kernel::futex_wait(&word, 0, Some(next));
        times.push(u32::try_from(kernel::monotonic().saturating_sub(next)).unwrap_or(u32::MAX));
        board.beat(0);
        next += PERIOD.nanos();
    }
    board.rest(0);
    thread.lower().map_err(failed)?;
    Ok(times)
}

/// The latencies that `cyclictest` measures, to the microsecond; `None` where it is not installed.
fn cyclictest(cpu: CpuId) -> Option<Vec<u32>> {
    let loops = LENGTH.nanos() / PERIOD.nanos();
    let out = Command::new("cyclictest")
        .args(["-q", "-m", "-t1", "-p97", "-h", "5000"])
        .args([
            format!("-a{cpu}"),
            format!("-i{}", PERIOD.nanos() / 1000),
            format!("-l{loops}"),
        ])
        .stderr(Stdio::null())
        .output()
        .ok()?;
    let mut times = Vec::new();
    for line in String::from_utf8_lossy(&out.stdout).lines() {
        let mut words = line.split_whitespace();
        if let (Some(Ok(us)), Some(Ok(count)), None) = (
            words.next().map(str::parse::<u32>),
            words.next().map(str::parse::<usize>),
            words.next(),
        ) {
            times.extend(std::iter::repeat_n(us * 1000, count));
        }
    }
    (out.status.success() && !times.is_empty()).then_some(times)
}

fn engine(platform: &Platform, tasks: usize, period: Duration, early: Duration) -> Result<Outcome> {
    let timing = Timing::implicit(Duration::from_nanos(period.nanos() / 1000), period);
    let set = TaskSet::from_timings(vec![timing; tasks])?;
    let spec: policy::Spec = "g-edf".parse()?;
    let plan = spec.plan(&policy::Setup {
        set: &set,
        platform,
        assignment: None,
        quantum: PERIOD,
    })?;
    let works: Vec<Box<dyn Work>> = (0..tasks)
        .map(|_| Box::new(Touch) as Box<dyn Work>)
        .collect();
    let settings = Settings {
        horizon: LENGTH,
        early,
        ..Settings::default()
    };
    execute::run(plan, &set, works, &settings, &Silent, &mut NullSink, |_| ())
}

/// Median, 99th and 99.9th percentile, in microseconds.
fn figures(times: &[u32]) -> [f64; 3] {
    let mut times = times.to_vec();
    times.sort_unstable();
    [0.5, 0.99, 0.999].map(|part| {
        let at = (times.len() as f64 * part) as usize;
        times.get(at).map_or(f64::NAN, |t| f64::from(*t) / 1e3)
    })
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.filter(|v| v.is_finite()).collect();
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

fn told(what: &str, rounds: &[[f64; 3]], peer: Option<&[[f64; 3]]>) {
    let of = |at: usize| median(rounds.iter().map(|r| r[at]));
    print!(
        "  {what:42} {:7.1} us median {:8.1} us 99 % {:8.1} us 99.9 %",
        of(0),
        of(1),
        of(2)
    );
    if let Some(peer) = peer {
        let ratio = |at: usize| median(rounds.iter().zip(peer).map(|(a, b)| a[at] / b[at]));
        print!("   {:.2} x, {:.2} x, {:.2} x", ratio(0), ratio(1), ratio(2));
    }
    println!();
}

/// A compiler that compiles again and again, on every processor; ended when dropped.
struct Compilers(Vec<Child>, std::path::PathBuf);

impl Compilers {
    fn start(count: usize) -> Option<Self> {
        let dir = std::env::temp_dir().join(format!("warmset-bench-{}", std::process::id()));
        std::fs::create_dir_all(&dir).ok()?;
        let mut text = String::new();
        for i in 0..400 {
            text.push_str(&format!(
                "pub fn f{i}(v: &mut Vec<u64>) -> Option<String> {{ v.sort(); v.dedup(); v.iter().map(|x| x * {i}).max().map(|m| format!(\"{{m}}\")) }}\n"
            ));
        }
        std::fs::write(dir.join("lib.rs"), text).ok()?;
        let run = |at: usize| {
            let script = format!(
                "while [ -e lib.rs ]; do {} -O --crate-type lib --crate-name many --out-dir out{at} lib.rs || exit; done",
                std::env::var("RUSTC").unwrap_or_else(|_| "rustc".into())
            );
            let mut shell = Command::new("sh");
            shell.args(["-c", &script]).current_dir(&dir);
            shell
                .stdout(Stdio::null())
                .stderr(Stdio::null())
                .spawn()
                .ok()
        };
        let children = (0..count).map(run).collect::<Option<Vec<Child>>>()?;
        Some(Compilers(children, dir))
    }
}

impl Drop for Compilers {
    fn drop(&mut self) {
        // Without its source the shell comes to its end after the compilation under way.
        let _ = std::fs::remove_dir_all(&self.1);
        for child in &mut self.0 {
            let _ = child.wait();
        }
        let _ = std::fs::remove_dir_all(&self.1);
    }
}

/// On a thread of its own, which is pinned and raised for as long as it lives.
fn apart<T: Send>(work: impl FnOnce() -> Result<T> + Send) -> Result<T> {
    std::thread::scope(|scope| scope.spawn(work).join())
        .unwrap_or_else(|_| Err(model::Error::new("the thread panicked")))
}

fn bench() -> Result<()> {
    let mut platform = machine::this_machine()?.platform;
    let all = platform.in_cache_order();
    let cpu = all[all.len() - 1];
    let both = platform.clone();
    for processor in &mut platform.processors {
        processor.usable &= processor.id == cpu;
    }
    let mut awake = machine::settings::Settings::new();
    awake.keep_processors_awake()?;
    let has_peer = cyclictest(cpu).is_some();
    if !has_peer {
        println!(
            "cyclictest is not installed (`apt-get install rt-tests`): compared with a plain timer instead"
        );
    }
    println!(
        "from release to first instruction, processor {cpu}, {ROUNDS} rounds of {LENGTH}, a release every {PERIOD}"
    );
    for load in ["idle", "beside a compiler run"] {
        let compilers = match load {
            "idle" => None,
            _ => Compilers::start(all.len()),
        };
        if load != "idle" && compilers.is_none() {
            println!("{load}: skipped, there is no rustc");
            continue;
        }
        let (mut timer, mut peer, mut ours, mut early) = (vec![], vec![], vec![], vec![]);
        for _ in 0..ROUNDS {
            timer.push(figures(&apart(|| plain(cpu))?));
            if let Some(times) = has_peer.then(|| cyclictest(cpu)).flatten() {
                peer.push(figures(&times));
            }
            ours.push(figures(
                &engine(&platform, 1, PERIOD, Duration::ZERO)?.latencies,
            ));
            early.push(figures(&engine(&platform, 1, PERIOD, EARLY)?.latencies));
        }
        println!("{load}, and how many times what the first line has:");
        let first = if peer.len() == ROUNDS { &peer } else { &timer };
        if peer.len() == ROUNDS {
            told("cyclictest", &peer, None);
        }
        told("a plain timer", &timer, Some(first));
        told("release to first instruction", &ours, Some(first));
        told(
            &format!("the same, dispatcher up {EARLY} before"),
            &early,
            Some(first),
        );
    }
    let (mut steps, mut thoughts, mut calls) = (vec![], vec![], vec![]);
    for _ in 0..ROUNDS {
        let outcome = engine(&both, 50, Duration::from_millis(20), Duration::ZERO)?;
        steps.push(figures(&outcome.steps));
        thoughts.push(figures(&outcome.thoughts));
        calls.push(figures(&outcome.calls));
    }
    println!(
        "one decision of g-edf with 50 tasks on {} processors",
        all.len()
    );
    told("take note, decide, write the trace", &thoughts, None);
    told("that, and the system calls to carry it out", &steps, None);
    told("from there to a job on another processor", &calls, None);
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
