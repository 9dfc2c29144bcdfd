//! Task sets judged per second on one core, test by test, next to the best known figures of other
//! tools.
//!
//! The sets: m = 24, utilizations uniform in [0.1, 0.4], periods 10–100 ms in whole milliseconds,
//! WCETs in whole microseconds, implicit deadlines, until the cap of 12 or 18 (about 48 and 72
//! tasks); all in memory before. A figure is the median of many rounds, in time on the processor.
//! The peers' figures come from a machine like CI's: ratios count, not absolute numbers. SchedCAT
//! is exact, in C++; EVA computes in floating point, in Rust.
//!
//! `cargo bench -p warmset-analyze` runs all; `cargo bench -p warmset-analyze -- BAK BCL` only
//! these.

use analyze::registry;
use model::{Duration, Timing};
use std::hint::black_box;
use std::sync::OnceLock;
use std::time::Instant;
use testing::random::Random;

/// Test, best known sets/s at cap 12 and 18 with the tool, what bounds our figure.
const PEERS: &[(&str, &str, &str, &str)] = &[
    ("GFB", "2.46M EVA", "0.41M EVA", "one division a task"),
    (
        "BAK",
        "256k EVA",
        "460k EVA",
        "filling the columns, and three products for each pair of the first task that fails",
    ),
    (
        "BCL",
        "197k EVA",
        "163k EVA",
        "filling the columns, and a job count for each pair of the first task that fails",
    ),
    (
        "BCLI",
        "3.3k SchedCAT",
        "6.5k SchedCAT",
        "a job count a pair of tasks, in single precision, four pairs at a time; a little more than one sweep of all pairs where a set is rejected",
    ),
    (
        "BAR",
        "1.0k SchedCAT",
        "2.2k SchedCAT",
        "a scan of the tasks a window; a division a task and a sum a pair of tasks where windows are short",
    ),
    (
        "LOAD",
        "32k SchedCAT",
        "21k SchedCAT",
        "two divisions a task: with implicit deadlines the load is U",
    ),
    (
        "RTA",
        "36 SchedCAT",
        "182 SchedCAT",
        "steps of the response times, a job count a pair of tasks in each, four pairs at a time; two sweeps of a few steps where a set is rejected",
    ),
    (
        "FFDBF",
        "6.1 SchedCAT",
        "25k SchedCAT",
        "two divisions a task: with implicit deadlines only σ matters",
    ),
    (
        "PEDF-WFD",
        "none",
        "none",
        "one division a task, a sort, and a scan of the processors a task",
    ),
    (
        "EDF-WM",
        "none",
        "none",
        "a list of slices, a sort, and a scan of the processors a task; where a task is split, one pass of QPA a processor",
    ),
    (
        "NPS-F",
        "none",
        "none",
        "one division of 128 bits a task and a server, and a scan of the servers a task",
    ),
];

fn main() {
    let chosen: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| !a.starts_with('-'))
        .collect();
    let batches = [sets(12), sets(18)];
    println!(
        "{:<8} {:>10} {:>5} {:>14} {:>10} {:>5} {:>14}   bound by",
        "test", "U<=12, /s", "yes", "best known", "U<=18, /s", "yes", "best known"
    );
    for (name, peer_12, peer_18, bound) in PEERS {
        if !chosen.is_empty() && !chosen.iter().any(|c| c.eq_ignore_ascii_case(name)) {
            continue;
        }
        let Ok(test) = registry::find(name) else {
            continue;
        };
        let [a, b] = [&batches[0], &batches[1]].map(|batch| measure(batch, test.run));
        println!(
            "{name:<8} {:>10} {:>5} {peer_12:>14} {:>10} {:>5} {peer_18:>14}   {bound}",
            a.0, a.1, b.0, b.1
        );
    }
}

/// The median of many short rounds in sets per second, and how many of the sets pass.
fn measure(sets: &[Vec<Timing>], run: fn(&[Timing], u32) -> analyze::Decision) -> (String, String) {
    // A round takes some milliseconds: slow tests see a part of the sets, fast ones all of them
    // many times.
    let start = on_processor();
    let (mut accepted, mut seen) = (0, 0);
    for set in sets {
        accepted += usize::from(black_box(run(black_box(set), 24)) == Ok(true));
        seen += 1;
        if seen % 50 == 0 && on_processor() - start > 0.2 {
            break;
        }
    }
    let part = &sets[..seen];
    let once = (on_processor() - start).max(1e-6);
    let times = (0.01 / once).ceil().max(1.0) as usize;
    // Slow tests get fewer rounds.
    let count = ((1.0 / (once * times as f64)) as usize).clamp(5, 101);
    let mut rounds: Vec<f64> = (0..count)
        .map(|_| {
            let start = on_processor();
            for _ in 0..times {
                for set in part {
                    black_box(run(black_box(set), 24)).ok();
                }
            }
            (times * seen) as f64 / (on_processor() - start)
        })
        .collect();
    rounds.sort_by(f64::total_cmp);
    (
        human(rounds[count / 2]),
        format!("{:.0}%", 100.0 * accepted as f64 / seen as f64),
    )
}

/// Seconds on the processor so far, which a busy machine does not spoil; where the kernel does not
/// tell, wall time.
fn on_processor() -> f64 {
    static START: OnceLock<Instant> = OnceLock::new();
    // The kernel brings the account up to date when a thread gives way.
    std::thread::yield_now();
    let account = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    match account
        .split_whitespace()
        .next()
        .and_then(|ns| ns.parse::<f64>().ok())
    {
        Some(ns) if ns > 0.0 => ns * 1e-9,
        _ => START.get_or_init(Instant::now).elapsed().as_secs_f64(),
    }
}

fn human(rate: f64) -> String {
    match rate {
        r if r >= 1e6 => format!("{:.2}M", r / 1e6),
        r if r >= 1e4 => format!("{:.0}k", r / 1e3),
        r if r >= 1e3 => format!("{:.1}k", r / 1e3),
        r => format!("{r:.1}"),
    }
}

/// A thousand sets, the same ones on any machine.
fn sets(cap: u64) -> Vec<Vec<Timing>> {
    let mut random = Random::new(cap);
    (0..1000)
        .map(|_| {
            let (mut set, mut total) = (Vec::new(), 0.0);
            loop {
                let utilization = 0.1 + 0.3 * (random.bits() >> 11) as f64 / (1_u64 << 53) as f64;
                let period = 10 + random.bits() % 91;
                total += utilization;
                if total > cap as f64 {
                    return set;
                }
                let wcet = (utilization * period as f64 * 1e3).round() as u64;
                set.push(Timing::implicit(
                    Duration::from_micros(wcet),
                    Duration::from_millis(period),
                ));
            }
        })
        .collect()
}
