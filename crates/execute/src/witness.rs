//! A witness: what the trace says happened against what the kernel's scheduler says (its tracepoint
//! `sched_switch`).
//!
//! The engine writes its trace when it decides or learns of something; the kernel writes its own
//! when threads are switched. A thread of a task may only have been on a processor where and when
//! the trace says that its job was, and has to have been there at some time of it. Both have the
//! same clock.

use machine::tracefs::Switches;
use model::{CpuId, Duration, Instant, TaskId};
use serde::Serialize;
use std::collections::HashMap;
use trace::{Event, Sink};

/// From when to when somebody was on a processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Interval {
    /// In nanoseconds of the run.
    pub from: u64,
    /// Likewise.
    pub to: u64,
    /// Where.
    pub cpu: u32,
}

/// Collects what the trace says.
#[derive(Clone, Debug)]
pub struct Told {
    /// By task, in the order of time.
    intervals: Vec<Vec<Interval>>,
    /// By task: since when its job is on a processor, and on which.
    since: Vec<Option<(u64, u32)>>,
    /// How many intervals there are.
    count: usize,
    /// Later than this nothing was kept.
    cut: Option<u64>,
}

/// So many times on a processor are kept, which take 48 MB: as much as of the kernel's switches.
const KEPT: usize = 2_000_000;

impl Told {
    /// Of so many tasks.
    pub fn new(tasks: usize) -> Self {
        Told {
            intervals: vec![Vec::new(); tasks],
            since: vec![None; tasks],
            count: 0,
            cut: None,
        }
    }

    /// By task. `end`: of the run, for those that are on a processor then.
    fn finish(&self, end: u64) -> Vec<Vec<Interval>> {
        let mut all = self.intervals.clone();
        for (task, since) in self.since.iter().enumerate() {
            all[task].extend(since.map(|(from, cpu)| Interval { from, to: end, cpu }));
        }
        all
    }
}

impl Sink for Told {
    fn record(&mut self, event: Event) {
        if self.count == KEPT {
            self.cut.get_or_insert(event.time.nanos());
            return;
        }
        let task = event.task.index();
        if event.kind.puts_on() {
            let cpu = event.cpu().map_or(u32::MAX, |c| c.0);
            self.since[task] = Some((event.time.nanos(), cpu));
        } else if event.kind.takes_off()
            && let Some((from, cpu)) = self.since[task].take()
        {
            let to = event.time.nanos();
            self.intervals[task].push(Interval { from, to, cpu });
            self.count += 1;
        }
    }
}

/// Where the two do not agree.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Disagreement {
    /// Whose thread.
    #[serde(rename = "index")]
    pub task: TaskId,
    /// On which processor.
    pub cpu: CpuId,
    /// From when, after the release of all.
    #[serde(rename = "from_ns", serialize_with = "model::time::ns::serialize")]
    pub from: Duration,
    /// Until when.
    #[serde(rename = "to_ns", serialize_with = "model::time::ns::serialize")]
    pub to: Duration,
    /// What.
    pub text: String,
}

/// What the witness says.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Testimony {
    /// How many times a thread was on a processor in the eyes of the kernel.
    pub seen: usize,
    /// How often the trace says that a job was.
    pub told: usize,
    /// How much of one time on a processor the trace does not know of: the median, in nanoseconds.
    pub median_ns: u64,
    /// All but one in a thousand have less.
    pub p999_ns: u64,
    /// The most.
    pub max_ns: u64,
    /// What was allowed.
    pub allowed_ns: u64,
    /// Where it was more, or a thread was never where its job is said to have been: the first ones.
    pub first: Vec<Disagreement>,
    /// How many there are.
    pub disagreements: usize,
    /// Tasks whose jobs are done by programs: they are not compared.
    pub not_compared: Vec<TaskId>,
    /// How often a thread left a processor that the kernel did not record it to come to: it came
    /// from idle, at the moment that the trace says, if that is after all that was recorded there
    /// before.
    pub unrecorded: usize,
    /// Switches that the kernel's buffers had no room for: then little can be said.
    pub lost: u64,
    /// Later than this nothing was kept.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[serde(rename = "until_ns", serialize_with = "model::time::ns::serialize")]
    pub until: Option<Duration>,
}

/// So many disagreements are told.
const FIRST: usize = 20;

/// What is compared, besides what was recorded.
#[derive(Clone, Copy, Debug)]
pub struct Run<'a> {
    /// By task, the number of its thread; 0: a program does its jobs.
    pub threads: &'a [i32],
    /// `CLOCK_MONOTONIC` at time zero, in nanoseconds.
    pub origin: u64,
    /// When it ended.
    pub end: Instant,
    /// How much of one time on a processor may be unknown to the trace.
    pub allowed: Duration,
}

/// Compares both.
pub fn compare(switches: &Switches, told: &Told, run: &Run<'_>) -> Testimony {
    let mut findings = Vec::new();
    // Where the record breaks off, the run ends for it.
    let kept = switches
        .cut
        .then(|| switches.all.iter().map(|s| s.time).max().unwrap_or(0));
    let until = kept.map(|at| at.saturating_sub(run.origin));
    let until = [until, told.cut].into_iter().flatten().min();
    let end = until.unwrap_or(u64::MAX).min(run.end.nanos());
    let told = told.finish(end);
    let (seen, unrecorded) = seen(switches, run, &told, &mut findings);
    let allowed = run.allowed.nanos();
    let mut unknown = Vec::new();
    let (mut seen_count, mut told_count) = (0, 0);
    for (task, (seen, told)) in seen.iter().zip(&told).enumerate() {
        let mut find = |at: &Interval, text: String| {
            findings.push(Disagreement {
                task: TaskId(task as u32),
                cpu: CpuId(at.cpu),
                from: Duration::from_nanos(at.from),
                to: Duration::from_nanos(at.to),
                text,
            });
        };
        if run.threads[task] == 0 {
            continue;
        }
        for interval in seen.iter().filter(|i| i.to < end) {
            seen_count += 1;
            let off = interval.to - interval.from - overlap(interval, told);
            unknown.push(off);
            if off > allowed {
                let off = Duration::from_nanos(off).rounded();
                find(
                    interval,
                    format!(
                        "the kernel saw its thread there, the trace knows nothing of {off} of that"
                    ),
                );
            }
        }
        for interval in told.iter().filter(|i| i.to < end) {
            told_count += 1;
            if interval.to.saturating_sub(interval.from) > allowed && overlap(interval, seen) == 0 {
                find(
                    interval,
                    "the trace says that its job was there, the kernel never saw its thread"
                        .to_owned(),
                );
            }
        }
    }
    findings.sort_by_key(|f| (f.from, f.task));
    unknown.sort_unstable();
    let at = |part: f64| {
        let rank = (unknown.len() as f64 * part) as usize;
        unknown
            .get(rank.min(unknown.len().saturating_sub(1)))
            .copied()
            .unwrap_or(0)
    };
    Testimony {
        seen: seen_count,
        told: told_count,
        median_ns: at(0.5),
        p999_ns: at(0.999),
        max_ns: at(1.0),
        allowed_ns: allowed,
        disagreements: findings.len(),
        first: findings.into_iter().take(FIRST).collect(),
        not_compared: (0..run.threads.len())
            .filter(|task| run.threads[*task] == 0)
            .map(|task| TaskId(task as u32))
            .collect(),
        unrecorded,
        lost: switches.lost,
        until: until.map(Duration::from_nanos),
    }
}

/// By task, when and where its thread was on a processor in the eyes of the kernel; and how often a
/// thread left a processor that it was not seen to come to. Some kernels do not record who comes to
/// an idle processor (6.18 in a virtual machine: those of the first processor are there, others are
/// not). It came after whatever was recorded of that processor before, then: when the trace says
/// so, if that is in between, and at once otherwise.
fn seen(
    switches: &Switches,
    run: &Run<'_>,
    told: &[Vec<Interval>],
    findings: &mut Vec<Disagreement>,
) -> (Vec<Vec<Interval>>, usize) {
    let with_number = run
        .threads
        .iter()
        .enumerate()
        .filter(|(_, thread)| **thread != 0);
    let task_of: HashMap<i32, usize> = with_number.map(|(task, thread)| (*thread, task)).collect();
    let mut all = vec![Vec::new(); run.threads.len()];
    let mut since: Vec<Option<(u64, u32)>> = vec![None; run.threads.len()];
    let (mut last, mut unrecorded) = (HashMap::<u32, u64>::new(), 0);
    let mut sorted: Vec<_> = switches.all.iter().collect();
    // Of the same microsecond: who leaves one processor and comes to another leaves first.
    sorted.sort_by_key(|s| (s.time, task_of.contains_key(&s.next)));
    for switch in sorted {
        // What was before the run is of no interest.
        let now = switch.time.saturating_sub(run.origin);
        let mut find = |task: usize, from: u64, text: &str| {
            findings.push(Disagreement {
                task: TaskId(task as u32),
                cpu: CpuId(switch.cpu),
                from: Duration::from_nanos(from),
                to: Duration::from_nanos(now),
                text: text.to_owned(),
            });
        };
        if let Some(task) = task_of.get(&switch.prev).copied() {
            let came = since[task].take().unwrap_or_else(|| {
                unrecorded += 1;
                let before = last.get(&switch.cpu).copied().unwrap_or(0);
                (told_start(&told[task], switch.cpu, before, now), switch.cpu)
            });
            let (from, cpu) = came;
            if switch.time <= run.origin {
                unrecorded = 0;
            } else if cpu != switch.cpu && switches.lost == 0 {
                find(
                    task,
                    from,
                    "the kernel saw its thread leave a processor that it was not on",
                );
            } else {
                all[task].push(Interval { from, to: now, cpu });
            }
        }
        // Who came before the run has no job yet, and that it left again is not always recorded.
        if switch.time > run.origin
            && let Some(task) = task_of.get(&switch.next).copied()
            && let Some((from, cpu)) = since[task].replace((now, switch.cpu))
            && cpu != switch.cpu
            && switches.lost == 0
        {
            find(task, from, "the kernel saw its thread on two processors");
        }
        last.insert(switch.cpu, now);
    }
    (all, unrecorded)
}

/// When the trace says that a job came to a processor, between two moments; the first of them if it
/// does not.
fn told_start(told: &[Interval], cpu: u32, first: u64, end: u64) -> u64 {
    let before = told[..told.partition_point(|t| t.from < end)].iter().rev();
    let here = before
        .take_while(|t| t.from >= first)
        .find(|t| t.cpu == cpu);
    here.map_or(first, |t| t.from)
}

/// How much of an interval lies in others on the same processor, which are in the order of time and
/// do not overlap.
fn overlap(interval: &Interval, others: &[Interval]) -> u64 {
    let first = others.partition_point(|o| o.to <= interval.from);
    let within = others[first..].iter().take_while(|o| o.from < interval.to);
    let same = within.filter(|o| o.cpu == interval.cpu);
    same.map(|o| {
        o.to.min(interval.to)
            .saturating_sub(o.from.max(interval.from))
    })
    .sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::tracefs::Switch;

    /// A trace in which the job of T1 is on a processor from 1 to 3 and from 5 to 7 ms, and that of
    /// T2 from 3 to 5 ms.
    fn told() -> Told {
        let mut told = Told::new(3);
        let event =
            |kind: fn(Instant, CpuId, TaskId, u64) -> Event, ms: u64, cpu: u32, task: u32| {
                kind(
                    Instant::from_nanos(ms * 1_000_000),
                    CpuId(cpu),
                    TaskId(task),
                    0,
                )
            };
        let done = |ms: u64, cpu: u32, task: u32| {
            let at = Instant::from_nanos(ms * 1_000_000);
            Event::completion(at, CpuId(cpu), TaskId(task), 0, Duration::ZERO)
        };
        for e in [
            event(Event::start, 1, 0, 0),
            event(Event::preemption, 3, 0, 0),
            event(Event::start, 3, 0, 1),
            done(5, 0, 1),
            Event::resumption(
                Instant::from_nanos(5_000_000),
                CpuId(0),
                CpuId(1),
                TaskId(0),
                0,
            ),
            done(7, 1, 0),
        ] {
            told.record(e);
        }
        told
    }

    /// (microseconds of the run, processor, who leaves, who comes)
    fn testimony(switches: &[(i64, u32, i32, i32)]) -> Testimony {
        let origin = 9_000_000_000_u64;
        let all = switches.iter().map(|(us, cpu, prev, next)| Switch {
            time: origin.saturating_add_signed(us * 1_000),
            cpu: *cpu,
            prev: *prev,
            next: *next,
        });
        let switches = Switches {
            all: all.collect(),
            ..Switches::default()
        };
        let run = Run {
            threads: &[71, 72, 0],
            origin,
            end: Instant::from_nanos(10_000_000),
            allowed: Duration::from_micros(500),
        };
        compare(&switches, &told(), &run)
    }

    #[test]
    fn a_trace_that_is_true_is_confirmed() {
        let t = testimony(&[
            (1_010, 0, 0, 71),
            (2_000, 0, 71, 99),
            (2_010, 0, 99, 71),
            (3_020, 0, 71, 72),
            // Its dispatcher is in between for a moment, and it falls asleep.
            (4_990, 0, 72, 0),
            (5_050, 1, 0, 71),
            (7_030, 1, 71, 0),
            // To its gate, for a moment.
            (8_000, 1, 0, 72),
            (8_010, 1, 72, 0),
        ]);
        assert_eq!((t.disagreements, t.seen, t.told), (0, 5, 3), "{t:?}");
        assert_eq!((t.median_ns, t.max_ns), (10_000, 30_000));
        assert_eq!(t.not_compared, [TaskId(2)]);
    }

    #[test]
    fn a_thread_whose_coming_is_not_recorded_came_when_the_trace_says_if_that_may_be() {
        let whole = [(1_000, 0, 0, 71), (3_000, 0, 71, 72), (5_000, 0, 72, 0)];
        let t = testimony(&[&whole[..], &[(4_000, 1, 99, 0), (7_030, 1, 71, 0)]].concat());
        assert_eq!(
            (t.disagreements, t.unrecorded, t.max_ns),
            (0, 1, 30_000),
            "{t:?}"
        );
        // Somebody else was there until later: what the trace says cannot be.
        let t = testimony(&[&whole[..], &[(6_900, 1, 99, 0), (7_030, 1, 71, 0)]].concat());
        assert_eq!((t.unrecorded, t.max_ns), (1, 30_000), "{t:?}");
        // The trace says nothing of such a time: it may have begun when the processor became idle.
        let t = testimony(&[&whole[..], &[(7_000, 0, 99, 0), (9_000, 0, 72, 0)]].concat());
        assert_eq!((t.unrecorded, t.max_ns), (1, 2_000_000), "{t:?}");
        assert!(t.disagreements > 0);
    }

    #[test]
    fn what_was_before_the_run_is_of_no_interest() {
        // One came to a processor, was not seen to leave it, and came to another; or was not seen
        // to come again either.
        let whole = [(1_000, 0, 0, 71), (3_000, 0, 71, 72), (5_000, 0, 72, 0)];
        for before in [(-30, 1, 0, 71), (-30, 0, 0, 72), (-30, 1, 0, 72)] {
            let after = [(4_000, 1, 99, 0), (7_030, 1, 71, 0)];
            let t = testimony(&[&[before], &whole[..], &after].concat());
            assert_eq!((t.disagreements, t.max_ns), (0, 30_000), "{t:?}");
        }
    }

    #[test]
    fn what_is_not_so_is_told_with_its_moment() {
        let texts = |switches: &[(i64, u32, i32, i32)]| -> Vec<(u64, String)> {
            let t = testimony(switches);
            assert_eq!(t.disagreements, t.first.len());
            t.first
                .into_iter()
                .map(|d| (d.from.nanos() / 1_000, d.text))
                .collect()
        };
        let whole = [(1_000, 0, 0, 71), (3_000, 0, 71, 72), (5_000, 0, 72, 0)];
        // It stays for 2 ms longer than the trace says.
        let mut found = texts(&[&whole[..], &[(5_000, 1, 0, 71), (9_000, 1, 71, 0)]].concat());
        assert_eq!(found.len(), 1);
        assert_eq!(found[0].0, 5_000);
        assert!(found[0].1.contains("knows nothing of 2ms"), "{found:?}");
        // It is elsewhere than the trace says: neither where it was told to be, nor told where it
        // was.
        found = texts(&[&whole[..], &[(5_000, 0, 0, 71), (7_000, 0, 71, 0)]].concat());
        assert_eq!(found.len(), 2, "{found:?}");
        assert!(found.iter().any(|f| f.1.contains("never saw its thread")));
        // It is on two processors.
        found = texts(
            &[
                &whole[..],
                &[(5_000, 1, 0, 71), (6_000, 0, 0, 71), (7_000, 1, 71, 0)],
            ]
            .concat(),
        );
        assert!(
            found
                .iter()
                .any(|f| f.0 == 5_000 && f.1.contains("on two processors")),
            "{found:?}"
        );
    }
}
