//! A witness of its own: what the trace says happened is what the kernel's scheduler did (tracepoint `sched_switch`).
//!
//! Skipped where tracefs is not mounted at `/sys/kernel/tracing`, or may not be written.

mod support;

use libtest_mimic::Completion;
use model::{Details, Duration, TaskSet, Timing};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use support::{Live, Ran, TOLERANCE, Test, ms};

const TRACING: &str = "/sys/kernel/tracing";
const NAMES: [&str; 4] = ["wmset-wit-a", "wmset-wit-b", "wmset-wit-c", "wmset-wit-d"];

/// Buffers of the kernel's tracer that nobody else writes to; gone when dropped.
struct Recording(PathBuf);

impl Recording {
    fn begin() -> Result<Self, String> {
        let dir = Path::new(TRACING).join(format!("instances/warmset-{}", std::process::id()));
        let failed =
            |e: std::io::Error| format!("no tracefs ({e}): as root, `mount -t tracefs nodev {TRACING}`");
        std::fs::create_dir(&dir).map_err(failed)?;
        let recording = Recording(dir);
        for (file, text) in [
            ("trace_clock", "mono"),
            ("buffer_size_kb", "16384"),
            (
                "events/sched/sched_switch/filter",
                "prev_comm ~ \"wmset-wit-*\" || next_comm ~ \"wmset-wit-*\"",
            ),
            ("events/sched/sched_switch/enable", "1"),
        ] {
            std::fs::write(recording.0.join(file), text).map_err(failed)?;
        }
        Ok(recording)
    }

    fn end(&self) -> Result<String, String> {
        let failed = |e: std::io::Error| format!("tracefs: {e}");
        std::fs::write(self.0.join("tracing_on"), "0").map_err(failed)?;
        std::fs::read_to_string(self.0.join("trace")).map_err(failed)
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        // It fails only where somebody reads there.
        let _ = std::fs::write(self.0.join("events/sched/sched_switch/enable"), "0");
        let _ = std::fs::remove_dir(&self.0);
    }
}

/// From when to when, in nanoseconds of the run, and on which processor.
type Interval = (u64, u64, u32);

/// By task, when its thread was on a processor in the eyes of the kernel. `origin`: its clock at time zero.
fn seen_by_kernel(text: &str, origin: u64) -> Vec<Vec<Interval>> {
    let mut all = vec![Vec::new(); NAMES.len()];
    let mut since: BTreeMap<usize, (u64, u32)> = BTreeMap::new();
    for line in text.lines() {
        let Some((head, what)) = line.split_once(" sched_switch: ") else {
            continue;
        };
        let mut head = head.split_whitespace().rev();
        let time = head.next().and_then(|t| t.trim_end_matches(':').split_once('.'));
        let cpu = line
            .split('[')
            .nth(1)
            .and_then(|t| t.split(']').next()?.parse::<u32>().ok());
        let (Some((s, us)), Some(cpu)) = (time, cpu) else {
            continue;
        };
        let (Ok(s), Ok(us)) = (s.parse::<u64>(), us.parse::<u64>()) else {
            continue;
        };
        let Some(now) = (s * 1_000_000_000 + us * 1_000).checked_sub(origin) else {
            continue;
        };
        let who = |key: &str| {
            let name = what.split(key).nth(1)?.split_whitespace().next()?;
            NAMES.iter().position(|n| *n == name)
        };
        if let Some(task) = who("prev_comm=")
            && let Some((from, on)) = since.remove(&task)
        {
            assert_eq!(on, cpu, "a thread leaves the processor that it is on");
            all[task].push((from, now, cpu));
        }
        if let Some(task) = who("next_comm=") {
            let before = since.insert(task, (now, cpu));
            assert_eq!(before, None, "task {task} is on two processors: {line}");
        }
    }
    all
}

/// By task, when the trace says that its job was on a processor.
fn told_by_trace(ran: &Ran) -> Vec<Vec<Interval>> {
    let mut all = vec![Vec::new(); NAMES.len()];
    let mut since: BTreeMap<usize, (u64, u32)> = BTreeMap::new();
    for event in &ran.events {
        let task = event.task.0 as usize;
        let cpu = event.cpu().map_or(u32::MAX, |c| c.0);
        if event.kind.puts_on() {
            since.insert(task, (event.time.nanos(), cpu));
        } else if event.kind.takes_off()
            && let Some((from, on)) = since.remove(&task)
        {
            all[task].push((from, event.time.nanos(), on));
        }
    }
    for (task, (from, on)) in since {
        all[task].push((from, u64::MAX, on));
    }
    all
}

/// How much earlier than told a thread came to a processor, or how much later it left, in the best of the intervals told.
fn window(seen: &Interval, told: &[Interval]) -> u64 {
    let of = |t: &&Interval| t.0.saturating_sub(seen.0).max(seen.1.saturating_sub(t.1));
    let same = told.iter().filter(|t| t.2 == seen.2);
    same.map(|t| of(&t)).min().unwrap_or(u64::MAX)
}

fn threads_ran_when_and_where_the_trace_says(live: &Live) -> Completion {
    let tasks = [(6, 20), (9, 30), (5, 15), (16, 60)];
    let named = tasks.iter().zip(NAMES).map(|((e, p), name)| {
        let timing = Timing::implicit(ms(*e), ms(*p));
        (timing, Details::named(name))
    });
    let set = TaskSet::new(named.collect()).unwrap();
    for policy in ["g-edf", "p-edf", "nps-f", "pd2"] {
        let recording = match Recording::begin() {
            Ok(recording) => recording,
            Err(why) => return Completion::ignored_with(why),
        };
        let assignment = live.assign(&policy.parse().unwrap(), &set);
        let ran = live.run_set(policy, &set, assignment, ms(1000), 70);
        let text = recording.end().unwrap();
        drop(recording);
        ran.is_sound();
        assert!(!text.contains("LOST"), "the kernel's buffers were too small");
        let (seen, told) = (seen_by_kernel(&text, ran.outcome.origin), told_by_trace(&ran));
        let mut windows = Vec::new();
        let allowed = TOLERANCE.nanos() + 2 * ran.outcome.latest.nanos();
        let end = ran.outcome.end.nanos();
        for (seen, told) in seen.iter().zip(&told) {
            assert!(
                seen.len() > 10,
                "{policy}: the kernel has seen {} intervals",
                seen.len()
            );
            for interval in seen.iter().filter(|i| i.1 < end) {
                let window = window(interval, told);
                assert!(
                    window <= allowed,
                    "{policy}: the kernel saw {interval:?}, the trace says otherwise"
                );
                windows.push(window);
            }
        }
        windows.sort_unstable();
        let at = |part: f64| {
            let rank = (windows.len() as f64 * part) as usize;
            Duration::from_nanos(windows[rank.min(windows.len() - 1)])
        };
        println!(
            "{policy}: {} intervals, windows of {} at the median and {} at 99.9 %",
            windows.len(),
            at(0.5),
            at(0.999)
        );
    }
    Completion::Completed
}

fn main() -> std::process::ExitCode {
    let test: Test = threads_ran_when_and_where_the_trace_says;
    support::main([("threads_ran_when_and_where_the_trace_says".to_owned(), test)])
}
