//! The record of each processor, cut into pieces without a gap: in each the same thread has the
//! processor, or the same interrupt has taken it away.
//!
//! Interrupts come within interrupts; the innermost has the processor. Where threads are switched
//! no interrupt is open: what a kernel with threaded interrupts leaves open is closed there.
//!
//! Some kernels do not record the switch from an idle processor to a thread. A thread that leaves
//! though nothing recorded that it came has come when it was woken last, which is when it can have
//! come at the earliest.

use super::points::{Said, Source, said};
use machine::tracefs::{Recorded, Tracepoint};
use std::collections::{BTreeMap, HashMap};

/// Nobody's thread: the processor is idle.
pub const NOBODY: i32 = 0;

/// A stretch of a processor's time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Piece {
    /// When it begins, in nanoseconds of `CLOCK_MONOTONIC`.
    pub from: u64,
    /// When it ends.
    pub to: u64,
    /// The thread that has the processor.
    pub thread: i32,
    /// What has taken it from the thread for this stretch.
    pub interrupt: Option<Source>,
}

/// A timer that fired late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Late {
    /// When it was due, in nanoseconds of `CLOCK_MONOTONIC`.
    pub due: u64,
    /// By how much it was late, in nanoseconds.
    pub by: u64,
}

/// What happened on a processor.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Processor {
    /// Without a gap, in the order of time.
    pub pieces: Vec<Piece>,
    /// When timers fired, in nanoseconds of `CLOCK_MONOTONIC`.
    pub fired: Vec<u64>,
    /// Those that were late.
    pub late: Vec<Late>,
    /// Up to here everything was recorded, in nanoseconds of `CLOCK_MONOTONIC`.
    pub complete: u64,
}

/// A timer that fires so much later than it was due is late, in nanoseconds: more than interrupts
/// and the kernel's sections without interrupts take on a processor that is there.
pub const LATE: u64 = 50_000;

/// Cuts what was recorded of these tracepoints, by processor.
pub fn cut(points: &[Tracepoint], recorded: &Recorded) -> BTreeMap<u32, Processor> {
    let end = recorded.all.last().map_or(0, |record| record.time);
    let mut cutters: BTreeMap<u32, Cutter> = BTreeMap::new();
    // When each timer is due by its own clock, and when it was set.
    let mut armed: HashMap<i64, (i64, u64)> = HashMap::new();
    for record in &recorded.all {
        let Some(said) = said(points, record) else {
            continue;
        };
        if let Said::Wakes(thread, there) = said {
            let there = cutters.entry(there.0).or_default();
            there.woken.insert(thread, record.time);
            continue;
        }
        let here = cutters.entry(record.cpu).or_default();
        match said {
            Said::Arms(timer, expires) => {
                armed.insert(timer, (expires, record.time));
            }
            Said::Disarms(timer) => {
                armed.remove(&timer);
            }
            Said::Fires(timer, now) => {
                here.done.fired.push(record.time);
                // Those that softirqs serve wait where softirqs do, behind all jobs of a run.
                let is_hard = !matches!(here.open.last(), Some(Source::Soft(_)));
                let set = armed.remove(&timer).filter(|_| is_hard);
                let by = set.map_or(0, |(due, since)| {
                    // One that was set when it was due already is not late for that.
                    let by = u64::try_from(now.saturating_sub(due)).unwrap_or(0);
                    by.min(record.time.saturating_sub(since))
                });
                here.fire(record.time, by);
            }
            other => here.take(record.time, other),
        }
        here.last = record.time;
    }
    cutters
        .into_iter()
        .map(|(cpu, cutter)| {
            let is_whole = !recorded.full.contains(&cpu) && !recorded.cut;
            (cpu, cutter.end(end, is_whole))
        })
        .collect()
}

/// Cuts the record of one processor.
#[derive(Default)]
struct Cutter {
    done: Processor,
    /// Since when nothing has changed.
    since: u64,
    /// The thread that has the processor, as far as it is known.
    thread: Option<i32>,
    /// Interrupts that are open.
    open: Vec<Source>,
    /// When each thread was last woken up for this processor.
    woken: HashMap<i32, u64>,
    /// The last event here.
    last: u64,
}

impl Cutter {
    fn take(&mut self, time: u64, said: Said) {
        self.close(time);
        match said {
            Said::Switch(leaves, comes) => {
                if self.thread.is_some_and(|thread| thread != leaves) {
                    self.has_come(leaves);
                }
                self.open.clear();
                self.thread = Some(comes);
            }
            Said::Enters(source) => self.open.push(source),
            // Nothing is open where the record begins within an interrupt.
            Said::Exits => drop(self.open.pop()),
            _ => {}
        }
    }

    /// What has been since the last change, until now.
    fn close(&mut self, time: u64) {
        let since = std::mem::replace(&mut self.since, time);
        if let (Some(thread), true) = (self.thread, since < time) {
            self.done.pieces.push(Piece {
                from: since,
                to: time,
                thread,
                interrupt: self.open.last().copied(),
            });
        }
    }

    /// This thread was on the processor, and nothing recorded since when.
    fn has_come(&mut self, thread: i32) {
        let Some(before) = self.thread else { return };
        let pieces = &mut self.done.pieces;
        let begun = pieces.iter().rposition(|piece| piece.thread != before);
        let first = begun.map_or(0, |place| place + 1);
        let since = pieces.get(first).map_or(u64::MAX, |piece| piece.from);
        let woken = self.woken.get(&thread).copied();
        let came = woken.filter(|woken| *woken > since).unwrap_or(since);
        let mut at = first;
        while at < pieces.len() {
            let piece = pieces[at];
            if piece.from < came && came < piece.to {
                pieces[at].to = came;
                let rest = Piece {
                    from: came,
                    ..piece
                };
                pieces.insert(at + 1, rest);
            } else if piece.from >= came {
                pieces[at].thread = thread;
            }
            at += 1;
        }
    }

    /// A timer fires, so much later than it was due.
    fn fire(&mut self, time: u64, by: u64) {
        if by >= LATE {
            let due = time.saturating_sub(by);
            self.done.late.push(Late { due, by });
        }
    }

    fn end(mut self, end: u64, is_whole: bool) -> Processor {
        let until = if is_whole { end } else { self.last };
        self.close(until);
        self.done.complete = until;
        let pieces = &self.done.pieces;
        // A processor that sleeps takes a while to wake up: that is no standstill.
        self.done.late.retain(|late| {
            let place = pieces.partition_point(|piece| piece.to <= late.due);
            let piece = pieces.get(place).filter(|piece| piece.from <= late.due);
            piece.is_some_and(|piece| piece.thread != NOBODY)
        });
        self.done
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::kernel::points;
    use machine::tracefs::Record;

    /// A record of these events: time, processor, tracepoint, values.
    pub(in crate::kernel) fn cut_of(
        events: &[(u64, u32, &str, [i64; 2])],
    ) -> BTreeMap<u32, Processor> {
        let points = all();
        let records = events.iter().map(|(time, cpu, name, values)| Record {
            time: *time,
            cpu: *cpu,
            point: points.iter().position(|p| p.name.ends_with(name)).unwrap(),
            values: [values[0], values[1], 0, 0],
        });
        let recorded = Recorded {
            all: records.collect(),
            ..Recorded::default()
        };
        cut(&points, &recorded)
    }

    fn all() -> Vec<Tracepoint> {
        points::all()
    }

    fn told(processor: &Processor) -> Vec<(u64, u64, i32, Option<Source>)> {
        let of = |p: &Piece| (p.from, p.to, p.thread, p.interrupt);
        processor.pieces.iter().map(of).collect()
    }

    #[test]
    fn interrupts_take_the_processor_from_the_thread_that_has_it() {
        let soft = Some(Source::Soft(1));
        let cut = cut_of(&[
            (10, 0, "sched_switch", [5, 7]),
            (20, 0, "local_timer_entry", [236, 0]),
            (24, 0, "local_timer_exit", [236, 0]),
            (25, 0, "softirq_entry", [1, 0]),
            (27, 0, "irq_handler_entry", [36, 0]),
            (30, 0, "irq_handler_exit", [36, 0]),
            (32, 0, "softirq_exit", [1, 0]),
            (40, 0, "sched_switch", [7, 0]),
            (90, 1, "sched_switch", [1, 2]),
        ]);
        assert_eq!(
            told(&cut[&0]),
            [
                (10, 20, 7, None),
                (20, 24, 7, Some(Source::Timer)),
                (24, 25, 7, None),
                (25, 27, 7, soft),
                (27, 30, 7, Some(Source::Device(36))),
                (30, 32, 7, soft),
                (32, 40, 7, None),
                // Up to the end of the record, which another processor has.
                (40, 90, 0, None),
            ]
        );
        assert_eq!(cut[&0].complete, 90);
    }

    #[test]
    fn a_thread_that_came_unseen_has_come_when_it_was_woken() {
        let cut = cut_of(&[
            (10, 0, "sched_switch", [5, 0]),
            (30, 0, "local_timer_entry", [236, 0]),
            (31, 1, "sched_waking", [7, 0]),
            (34, 0, "local_timer_exit", [236, 0]),
            (50, 0, "sched_switch", [7, 5]),
            // This one was woken before the processor was idle: it has been there all the time.
            (60, 0, "sched_switch", [5, 0]),
            (80, 0, "sched_switch", [7, 0]),
        ]);
        let timer = Some(Source::Timer);
        assert_eq!(
            told(&cut[&0]),
            [
                (10, 30, 0, None),
                (30, 31, 0, timer),
                (31, 34, 7, timer),
                (34, 50, 7, None),
                (50, 60, 5, None),
                (60, 80, 7, None),
            ]
        );
    }

    #[test]
    fn timers_are_late_where_the_processor_was_not_asleep() {
        let cut = cut_of(&[
            (0, 0, "sched_switch", [5, 7]),
            (1_000, 0, "hrtimer_start", [1, 900_000]),
            (2_000, 0, "hrtimer_start", [2, 900_000]),
            (3_000, 1, "hrtimer_start", [3, 2_000_000]),
            (4_000, 0, "hrtimer_cancel", [2, 0]),
            (1_000_000, 0, "hrtimer_expire_entry", [1, 990_000]),
            // Set when it was due already.
            (1_000_100, 0, "hrtimer_start", [5, 100_000]),
            (1_000_200, 0, "hrtimer_expire_entry", [5, 1_000_200]),
            // It was taken back, and set where nothing was recorded.
            (1_000_500, 0, "hrtimer_expire_entry", [2, 1_000_000]),
            (1_200_000, 0, "hrtimer_start", [4, 1_300_000]),
            (1_400_000, 0, "softirq_entry", [8, 0]),
            (1_410_000, 0, "hrtimer_expire_entry", [4, 1_410_000]),
            (1_420_000, 0, "softirq_exit", [8, 0]),
            (1_500_000, 0, "sched_switch", [7, 0]),
            (2_100_000, 0, "hrtimer_expire_entry", [3, 2_100_000]),
            (2_200_000, 0, "sched_switch", [0, 7]),
        ]);
        let late = Late {
            due: 910_000,
            by: 90_000,
        };
        assert_eq!(
            cut[&0].fired,
            [1_000_000, 1_000_200, 1_000_500, 1_410_000, 2_100_000]
        );
        assert_eq!(cut[&0].late, [late]);
    }

    #[test]
    fn a_record_whose_buffer_was_full_ends_with_its_last_event() {
        let points = all();
        let switch = |time, cpu| Record {
            time,
            cpu,
            point: 0,
            values: [5, 7, 0, 0],
        };
        let recorded = Recorded {
            all: vec![switch(10, 0), switch(20, 0), switch(90, 1)],
            full: [0].into(),
            ..Recorded::default()
        };
        let cut = cut(&points, &recorded);
        assert_eq!((cut[&0].complete, cut[&1].complete), (20, 90));
    }
}
