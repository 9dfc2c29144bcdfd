//! What had the processors of a job in a stretch of time: threads by name, interrupts by source,
//! timers that came late.

use super::pieces::{NOBODY, Piece, Processor};
use super::points::Source;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a thread is to a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// It does the jobs of a task.
    Task,
    /// It does the scheduler's work.
    Dispatcher,
    /// It watches for standstills.
    Watch,
    /// The processor is idle.
    Nobody,
    /// It has no part in it.
    Other,
}

/// A thread, named.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Named {
    /// What people call it.
    pub name: String,
    /// What it is to the run.
    pub part: Part,
}

/// How long a thread had a processor.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Ran {
    /// Its name: the task's, or what the kernel calls it.
    pub name: String,
    /// What it is to the run.
    pub part: Part,
    /// How long it had the processor, without interrupts.
    pub total_ns: u64,
    /// How often it came.
    pub times: u64,
}

/// How long interrupts of a source took.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Interrupted {
    /// What it is called.
    pub name: String,
    /// Is it among what tasks are charged?
    pub charged: bool,
    /// All of them together.
    pub total_ns: u64,
    /// How many.
    pub times: u64,
    /// The longest of them.
    pub max_ns: u64,
}

/// What a processor did.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Did {
    /// The processor.
    pub cpu: u32,
    /// Threads, the longest first.
    pub ran: Vec<Ran>,
    /// Interrupts, the longest first.
    pub interrupts: Vec<Interrupted>,
    /// Timers that were due while the processor was not idle, and fired 50 µs late or later.
    pub late_timers: u64,
    /// The latest of them, by how much.
    pub latest_ns: u64,
}

/// What happened in a stretch of time on the processors on which a thread was.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Window {
    /// Processor by processor: those that the thread had in that time; all where it had none.
    pub processors: Vec<Did>,
    /// How long the thread had a processor, interrupts within that time included.
    pub had_ns: u64,
    /// Interrupts within that time.
    pub interrupted_ns: u64,
    /// Does the record reach to the end of it?
    pub whole: bool,
}

impl Window {
    /// What no task is charged for, on all of its processors together: threads that have no part in
    /// the run, and interrupts of devices and soft ones.
    pub fn not_charged_ns(&self) -> u64 {
        let threads = self.processors.iter().flat_map(|did| &did.ran);
        let others = threads.filter(|ran| ran.part == Part::Other);
        let interrupts = self.processors.iter().flat_map(|did| &did.interrupts);
        let soft = interrupts.filter(|interrupted| !interrupted.charged);
        others.map(|ran| ran.total_ns).sum::<u64>() + soft.map(|one| one.total_ns).sum::<u64>()
    }

    /// For how much longer the thread had a processor than `executed`, what its own clock counted,
    /// and interrupts say: what the hypervisor took, at least. Where the kernel's clocks of threads
    /// count interrupts it is less than that, never more, but for the ways into the kernel and out.
    pub fn unaccounted_ns(&self, executed: u64) -> u64 {
        self.had_ns
            .saturating_sub(self.interrupted_ns)
            .saturating_sub(executed)
    }
}

/// What was on the processors of a thread in a stretch of time, in nanoseconds of
/// `CLOCK_MONOTONIC`. `name` says what a thread is.
pub fn window(
    processors: &BTreeMap<u32, Processor>,
    thread: i32,
    (from, to): (u64, u64),
    name: impl Fn(i32) -> Named,
) -> Window {
    let within = |processor: &Processor| -> Vec<Piece> {
        let first = processor.pieces.partition_point(|piece| piece.to <= from);
        let pieces = processor.pieces[first..].iter();
        pieces
            .take_while(|piece| piece.from < to)
            .map(|piece| Piece {
                from: piece.from.max(from),
                to: piece.to.min(to),
                ..*piece
            })
            .collect()
    };
    let of: Vec<(u32, &Processor, Vec<Piece>)> = processors
        .iter()
        .map(|(cpu, processor)| (*cpu, processor, within(processor)))
        .collect();
    let has = |pieces: &[Piece]| pieces.iter().any(|piece| piece.thread == thread);
    let is_anywhere = of.iter().any(|(_, _, pieces)| has(pieces));
    let mut seen = Window {
        processors: Vec::new(),
        had_ns: 0,
        interrupted_ns: 0,
        whole: true,
    };
    for (cpu, processor, pieces) in &of {
        if is_anywhere && !has(pieces) {
            continue;
        }
        for piece in pieces.iter().filter(|piece| piece.thread == thread) {
            let length = piece.to - piece.from;
            seen.had_ns += length;
            seen.interrupted_ns += if piece.interrupt.is_some() { length } else { 0 };
        }
        let late = processor.late.iter();
        let late = late.filter(|late| (from..to).contains(&late.due));
        seen.whole &= processor.complete >= to;
        seen.processors.push(Did {
            cpu: *cpu,
            ran: ran(pieces, &name),
            interrupts: interrupts(pieces),
            late_timers: late.clone().count() as u64,
            latest_ns: late.map(|late| late.by).max().unwrap_or(0),
        });
    }
    seen
}

fn ran(pieces: &[Piece], name: impl Fn(i32) -> Named) -> Vec<Ran> {
    let mut by_thread: BTreeMap<i32, (u64, u64)> = BTreeMap::new();
    let mut before = None;
    for piece in pieces {
        let (ns, times) = by_thread.entry(piece.thread).or_default();
        if piece.interrupt.is_none() {
            *ns += piece.to - piece.from;
        }
        *times += u64::from(before.replace(piece.thread) != Some(piece.thread));
    }
    let mut ran: Vec<Ran> = by_thread
        .into_iter()
        .map(|(thread, (ns, times))| {
            let Named { name, part } = match thread {
                NOBODY => Named {
                    name: "idle".to_owned(),
                    part: Part::Nobody,
                },
                other => name(other),
            };
            Ran {
                name,
                part,
                total_ns: ns,
                times,
            }
        })
        .collect();
    ran.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
    ran
}

fn interrupts(pieces: &[Piece]) -> Vec<Interrupted> {
    let mut by_source: BTreeMap<Source, Interrupted> = BTreeMap::new();
    // An interrupt within another one cuts it in two: the pieces of both lie side by side.
    let mut open: Vec<(Source, u64)> = Vec::new();
    let mut close = |(source, ns): (Source, u64)| {
        let one = by_source.entry(source).or_insert_with(|| Interrupted {
            name: source.name(),
            charged: source.is_charged(),
            total_ns: 0,
            times: 0,
            max_ns: 0,
        });
        one.total_ns += ns;
        one.times += 1;
        one.max_ns = one.max_ns.max(ns);
    };
    for piece in pieces {
        let length = piece.to - piece.from;
        let Some(source) = piece.interrupt else {
            open.drain(..).for_each(&mut close);
            continue;
        };
        match open.iter().rposition(|(of, _)| *of == source) {
            Some(place) => {
                open.drain(place + 1..).for_each(&mut close);
                open[place].1 += length;
            }
            None => open.push((source, length)),
        }
    }
    open.drain(..).for_each(&mut close);
    let mut all: Vec<Interrupted> = by_source.into_values().collect();
    all.sort_by(|a, b| (b.total_ns, &a.name).cmp(&(a.total_ns, &b.name)));
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kernel::pieces::tests::cut_of;

    fn name(thread: i32) -> Named {
        Named {
            name: format!("thread {thread}"),
            part: if thread < 10 { Part::Task } else { Part::Other },
        }
    }

    #[test]
    fn a_window_has_the_processors_on_which_the_thread_was() {
        let cut = cut_of(&[
            (0, 0, "sched_switch", [1, 7]),
            (0, 1, "sched_switch", [1, 8]),
            (0, 2, "sched_switch", [1, 9]),
            (10, 0, "local_timer_entry", [236, 0]),
            (13, 0, "local_timer_exit", [236, 0]),
            (20, 0, "sched_switch", [7, 70]),
            (26, 0, "sched_switch", [70, 8]),
            (30, 1, "sched_switch", [8, 7]),
            (40, 1, "irq_handler_entry", [36, 0]),
            (42, 1, "softirq_entry", [1, 0]),
            (47, 1, "softirq_exit", [1, 0]),
            (48, 1, "irq_handler_exit", [36, 0]),
            (60, 1, "sched_switch", [7, 0]),
        ]);
        let seen = window(&cut, 7, (5, 55), name);
        let cpus: Vec<u32> = seen.processors.iter().map(|did| did.cpu).collect();
        assert_eq!(cpus, [0, 1]);
        assert_eq!((seen.had_ns, seen.interrupted_ns), (15 + 25, 3 + 8));
        assert!(seen.whole);
        let first: Vec<_> = seen.processors[0]
            .ran
            .iter()
            .map(|r| (r.name.as_str(), r.total_ns, r.times))
            .collect();
        assert_eq!(
            first,
            [
                ("thread 8", 29, 1),
                ("thread 7", 12, 1),
                ("thread 70", 6, 1)
            ]
        );
        let second: Vec<_> = seen.processors[1]
            .interrupts
            .iter()
            .map(|i| (i.name.as_str(), i.total_ns, i.times, i.charged))
            .collect();
        assert_eq!(
            second,
            [
                ("softirq TIMER", 5, 1, false),
                ("interrupt 36", 3, 1, false)
            ]
        );
        // Thread 70, the device and the softirq.
        assert_eq!(seen.not_charged_ns(), 6 + 8);
        assert_eq!(seen.unaccounted_ns(20), 9);
        assert_eq!(seen.unaccounted_ns(500), 0);
        // One that had no processor waited for all of them.
        assert_eq!(window(&cut, 77, (5, 55), name).processors.len(), 3);
    }

    #[test]
    fn a_window_beyond_the_record_is_not_whole() {
        let cut = cut_of(&[
            (0, 0, "sched_switch", [1, 7]),
            (50, 0, "sched_switch", [7, 0]),
        ]);
        assert!(window(&cut, 7, (0, 50), name).whole);
        let beyond = window(&cut, 7, (10, 60), name);
        assert!(!beyond.whole);
        assert_eq!(beyond.had_ns, 40);
        let json = serde_json::to_string(&beyond).unwrap();
        assert_eq!(serde_json::from_str::<Window>(&json).unwrap(), beyond);
    }
}
