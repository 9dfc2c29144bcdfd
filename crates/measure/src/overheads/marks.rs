//! The kernel's part of the marks that [`tiles`](super::tiles) are cut from: which of its
//! tracepoints say what.
//!
//! The tracepoints of x86-64's timer interrupt are read; other architectures have other ones, and
//! the kernel's part is not known there.

use super::tiles::Mark;
use machine::tracefs::{Record, Recording, Tracepoint};
use model::CpuId;
use std::collections::{BTreeMap, BTreeSet};

/// What is recorded, in the order of [`Point`].
pub const TRACEPOINTS: [Tracepoint; 8] = [
    all("irq_vectors/local_timer_entry", &["vector"]),
    all("irq_vectors/local_timer_exit", &["vector"]),
    all("timer/hrtimer_expire_entry", &["function"]),
    all("timer/hrtimer_start", &["common_pid"]),
    real_time(
        "sched/sched_switch",
        "prev_prio < 100 || next_prio < 100",
        &["prev_pid", "next_pid", "prev_prio", "next_prio"],
    ),
    real_time("sched/sched_waking", "prio < 100", &["pid"]),
    all("syscalls/sys_enter_futex", &["common_pid"]),
    all("syscalls/sys_exit_futex", &["common_pid"]),
];

/// The places of [`TRACEPOINTS`].
#[derive(Clone, Copy)]
enum Point {
    TimerEntry,
    TimerExit,
    Expires,
    Arms,
    Switch,
    Waking,
    Sleeps,
    Wakes,
}

impl Point {
    const ALL: [Point; TRACEPOINTS.len()] = [
        Point::TimerEntry,
        Point::TimerExit,
        Point::Expires,
        Point::Arms,
        Point::Switch,
        Point::Waking,
        Point::Sleeps,
        Point::Wakes,
    ];
}

const fn all(name: &'static str, fields: &'static [&'static str]) -> Tracepoint {
    Tracepoint {
        name,
        filter: None,
        fields,
    }
}

/// The kernel counts priorities from above, ordinary threads from 100 on.
const fn real_time(
    name: &'static str,
    filter: &'static str,
    fields: &'static [&'static str],
) -> Tracepoint {
    Tracepoint {
        name,
        filter: Some(filter),
        fields,
    }
}

/// The first tracepoint that this kernel lacks, or that may not be seen.
pub fn missing() -> Option<&'static str> {
    let lacks = |point: &&Tracepoint| !Recording::knows(point);
    TRACEPOINTS.iter().find(lacks).map(|point| point.name)
}

/// The function that does the tick, as kernels since 2.6.16 have called it.
const TICKS: [&str; 3] = [
    "tick_nohz_handler",
    "tick_sched_timer",
    "tick_nohz_highres_handler",
];

/// The address of the kernel's tick, from its list of symbols (`/proc/kallsyms`); `None` where
/// addresses are hidden from this process.
pub fn tick_of(symbols: &str) -> Option<i64> {
    symbols.lines().find_map(|line| {
        let mut words = line.split_ascii_whitespace();
        let (address, _, name) = (words.next()?, words.next()?, words.next()?);
        let address = u64::from_str_radix(address, 16).ok()?;
        (TICKS.contains(&name) && address != 0).then_some(address as i64)
    })
}

/// The threads of a run.
#[derive(Clone, Debug, Default)]
pub struct Threads {
    /// The dispatcher of each processor, as the kernel numbers threads.
    pub dispatchers: BTreeMap<CpuId, i32>,
    /// The watch for standstills of each processor.
    pub watches: BTreeMap<CpuId, i32>,
    /// Those that do jobs.
    pub workers: BTreeSet<i32>,
}

/// What an event of the kernel says of processors with dispatchers, if it does; `tick` is the
/// address of the kernel's tick.
pub fn mark(record: &Record, threads: &Threads, tick: Option<i64>) -> Option<(CpuId, Mark)> {
    let here = CpuId(record.cpu);
    let dispatcher = *threads.dispatchers.get(&here)?;
    let [first, second, third, fourth] = record.values;
    let thread = i32::try_from(first).unwrap_or(0);
    let is_dispatcher = thread == dispatcher;
    let is_watch = threads.watches.get(&here) == Some(&thread);
    let mark = match Point::ALL.get(record.point)? {
        Point::TimerEntry => Mark::TimerEntry,
        Point::TimerExit => Mark::TimerExit,
        Point::Expires if tick == Some(first) => Mark::Tick,
        Point::Arms if is_dispatcher => Mark::Arms,
        // The kernel counts priorities from above.
        Point::Switch if is_dispatcher && fourth < third => Mark::Preempted,
        Point::Switch if is_dispatcher => Mark::Leaves(i32::try_from(second).unwrap_or(0)),
        // Where the watch leaves to a dispatcher, that this one comes says it.
        Point::Switch if second == i64::from(dispatcher) => Mark::Comes,
        Point::Switch if is_watch => Mark::WatchLeaves,
        Point::Waking if is_watch => Mark::WatchWakes,
        Point::Waking if is_dispatcher => Mark::Wakes,
        Point::Waking => {
            let mut others = threads.dispatchers.iter();
            let (there, _) = others.find(|(_, other)| **other == thread)?;
            return Some((*there, Mark::WokenFromAfar));
        }
        Point::Sleeps if is_dispatcher => Mark::Sleeps,
        Point::Wakes if threads.workers.contains(&thread) => Mark::Begins(thread),
        _ => return None,
    };
    Some((here, mark))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads() -> Threads {
        Threads {
            dispatchers: [(CpuId(0), 50), (CpuId(1), 51)].into(),
            watches: [(CpuId(0), 90)].into(),
            workers: [70].into(),
        }
    }
    fn of(cpu: u32, point: Point, values: [i64; 2]) -> Option<(CpuId, Mark)> {
        let record = Record {
            time: 0,
            cpu,
            point: point as usize,
            values: [values[0], values[1], 20, 20],
        };
        mark(&record, &threads(), Some(-1_000))
    }

    #[test]
    fn points_stand_in_the_order_of_the_tracepoints() {
        for (index, point) in Point::ALL.into_iter().enumerate() {
            assert_eq!(point as usize, index);
        }
        assert_eq!(
            TRACEPOINTS[Point::Waking as usize].name,
            "sched/sched_waking"
        );
        assert_eq!(
            TRACEPOINTS[Point::Sleeps as usize].name,
            "syscalls/sys_enter_futex"
        );
    }

    #[test]
    fn dispatchers_are_told_from_workers_and_strangers() {
        let (here, there) = (CpuId(0), CpuId(1));
        assert_eq!(of(0, Point::Switch, [70, 50]), Some((here, Mark::Comes)));
        assert_eq!(
            of(0, Point::Switch, [50, 70]),
            Some((here, Mark::Leaves(70)))
        );
        assert_eq!(of(0, Point::Switch, [70, 71]), None);
        let higher = Record {
            time: 0,
            cpu: 0,
            point: Point::Switch as usize,
            values: [50, 90, 20, 1],
        };
        let taken = mark(&higher, &threads(), None);
        assert_eq!(taken, Some((here, Mark::Preempted)));
        assert_eq!(of(0, Point::Waking, [50, 0]), Some((here, Mark::Wakes)));
        assert_eq!(
            of(0, Point::Waking, [90, 0]),
            Some((here, Mark::WatchWakes))
        );
        let left = of(0, Point::Switch, [90, 70]);
        assert_eq!(left, Some((here, Mark::WatchLeaves)));
        let afar = of(0, Point::Waking, [51, 0]);
        assert_eq!(afar, Some((there, Mark::WokenFromAfar)));
        assert_eq!(of(0, Point::Waking, [70, 0]), None);
        assert_eq!(of(1, Point::Sleeps, [51, 0]), Some((there, Mark::Sleeps)));
        assert_eq!(of(1, Point::Sleeps, [70, 0]), None);
        assert_eq!(
            of(1, Point::Wakes, [70, 0]),
            Some((there, Mark::Begins(70)))
        );
        assert_eq!(of(1, Point::Wakes, [51, 0]), None);
        assert_eq!(of(1, Point::Arms, [51, 0]), Some((there, Mark::Arms)));
        // A processor of no domain.
        assert_eq!(of(2, Point::TimerEntry, [0, 0]), None);
    }

    #[test]
    fn the_tick_is_known_by_its_address() {
        assert_eq!(
            of(0, Point::Expires, [-1_000, 0]),
            Some((CpuId(0), Mark::Tick))
        );
        assert_eq!(of(0, Point::Expires, [-1_001, 0]), None);
        let symbols = "ffffffff814204b0 t hrtimer_wakeup\nffffffff814352e0 t tick_nohz_handler\n";
        assert_eq!(tick_of(symbols), Some(0xffff_ffff_8143_52e0_u64 as i64));
        assert_eq!(tick_of("0000000000000000 t tick_nohz_handler"), None);
        assert_eq!(tick_of("nonsense\n"), None);
    }
}
