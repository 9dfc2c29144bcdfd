//! A recorder without locks, for real runs: one ring a producer, merged by time.
//!
//! Each processor's dispatcher writes to a ring of its own and never waits; one collector empties
//! all rings. A full ring loses events: they are counted, and a
//! [`EventKind::Lost`](crate::EventKind::Lost) record stands where they are missing.

use crate::event::Event;
use crate::queue::{Apart, Inlet, Outlet, queue};
use crate::sink::Sink;
use model::{CpuId, Duration, Instant};
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

/// Writes the events of one processor. Can be sent to another thread, and belongs to one at a time.
pub struct Producer {
    queue: Inlet,
    cpu: CpuId,
    /// Events lost since the last record that says so. The producer adds, whoever tells of them
    /// subtracts.
    lost: Arc<Apart>,
}

impl Producer {
    /// Takes an event if there is room; otherwise it is lost and counted. Never waits, never
    /// allocates.
    #[inline]
    pub fn push(&mut self, event: Event) {
        let lost = self.lost.0.load(Ordering::Relaxed);
        // What was lost is told before anything that happened later.
        let needed = if lost > 0 { 2 } else { 1 };
        if !self.queue.has_room(needed) {
            self.lost.0.fetch_add(1, Ordering::Relaxed);
            return;
        }
        if lost > 0 {
            let told = self.lost.0.swap(0, Ordering::Relaxed);
            if told > 0 {
                self.queue.put(Event::lost(event.time, self.cpu, told));
            }
        }
        self.queue.put(event);
    }

    /// Reads the place of the next record, so that it is in the caches when there is something to
    /// write.
    #[inline]
    pub fn foresee(&self) -> u64 {
        self.queue.foresee()
    }
}

impl Sink for Producer {
    #[inline]
    fn record(&mut self, event: Event) {
        self.push(event);
    }
}

/// The end of a ring at which its events come out.
struct Ring {
    queue: Outlet,
    cpu: CpuId,
    lost: Arc<Apart>,
    /// Events that are read and not yet handed on.
    pending: VecDeque<Event>,
}

/// Empties the rings and puts their events in order.
pub struct Collector {
    rings: Vec<Ring>,
    last: Instant,
    /// When the run was over, once that is known.
    end: Option<Instant>,
    lost: u64,
}

/// Rings for these processors, each with room for so many events (at least two), and their
/// collector.
pub fn rings(cpus: impl IntoIterator<Item = CpuId>, capacity: usize) -> (Vec<Producer>, Collector) {
    let ring = |cpu: CpuId| {
        let (inlet, outlet) = queue(capacity.max(2));
        let lost = Arc::new(Apart::default());
        let producer = Producer {
            queue: inlet,
            cpu,
            lost: Arc::clone(&lost),
        };
        let outlet = Ring {
            queue: outlet,
            cpu,
            lost,
            pending: VecDeque::new(),
        };
        (producer, outlet)
    };
    let (producers, rings) = cpus.into_iter().map(ring).unzip();
    let collector = Collector {
        rings,
        last: Instant::ZERO,
        end: None,
        lost: 0,
    };
    (producers, collector)
}

impl Collector {
    /// Hands on, in the order of time, all events before `until`. The caller knows that every
    /// producer has pushed all that it has to say of the time before: it asks for the time some
    /// milliseconds ago.
    ///
    /// Events of one time go in the order of the processors; those of one producer keep their
    /// order. An event that comes too late to be put in its place is lost, and said to be.
    pub fn collect(&mut self, until: Instant, sink: &mut impl Sink) {
        for ring in &mut self.rings {
            ring.queue
                .take(u64::MAX, |event| ring.pending.push_back(event));
        }
        loop {
            let firsts = self.rings.iter().enumerate();
            let first = firsts
                .filter_map(|(place, ring)| ring.pending.front().map(|e| (e.time, place)))
                .filter(|(time, _)| *time < until)
                .min();
            let Some((_, place)) = first else { break };
            let Some(event) = self.rings[place].pending.pop_front() else {
                break;
            };
            let Some((time, event)) = self.within(event) else {
                continue;
            };
            if event.kind == crate::EventKind::Lost {
                self.lost = self.lost.saturating_add(event.argument);
            }
            if time < self.last {
                self.lost += 1;
                sink.record(Event::lost(self.last, self.rings[place].cpu, 1));
            } else {
                self.last = time;
                sink.record(event);
            }
        }
    }

    /// A standstill that lasts beyond the end counts up to it: it says nothing of the run behind
    /// that. Whatever else is later moves the end.
    fn within(&self, event: Event) -> Option<(Instant, Event)> {
        match (self.end.map(|end| end.max(self.last)), event.cpu()) {
            (Some(end), Some(cpu))
                if event.kind == crate::EventKind::Standstill && event.time > end =>
            {
                let beyond = event.time.since(end).nanos();
                let length = event.argument.checked_sub(beyond).filter(|l| *l > 0)?;
                Some((
                    end,
                    Event::standstill(end, cpu, Duration::from_nanos(length)),
                ))
            }
            _ => Some((event.time, event)),
        }
    }

    /// Hands on everything that is left, with what was lost at the end, when the producers have
    /// stopped.
    pub fn finish(mut self, end: Instant, sink: &mut impl Sink) -> u64 {
        self.end = Some(end);
        self.collect(Instant::from_nanos(u64::MAX), sink);
        let end = end.max(self.last);
        for Ring { lost, cpu, .. } in &self.rings {
            let lost = lost.0.swap(0, Ordering::Relaxed);
            if lost > 0 {
                self.lost = self.lost.saturating_add(lost);
                sink.record(Event::lost(end, *cpu, lost));
            }
        }
        sink.record(Event::end(end));
        self.lost
    }

    /// How many events were lost so far, as far as it was told.
    pub fn lost(&self) -> u64 {
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::EventKind;
    use crate::sink::VecSink;
    use model::TaskId;

    fn start(time: u64, cpu: u32, job: u64) -> Event {
        Event::start(Instant::from_nanos(time), CpuId(cpu), TaskId(cpu), job)
    }

    #[test]
    fn events_of_several_processors_are_merged_by_time() {
        let (mut producers, mut collector) = rings((0..2).map(CpuId), 8);
        for (time, cpu) in [(5, 1), (7, 1), (1, 0), (7, 0), (9, 0)] {
            producers[cpu].push(start(time, cpu as u32, 0));
        }
        let mut sink = VecSink::default();
        collector.collect(Instant::from_nanos(7), &mut sink);
        let times = |sink: &VecSink| {
            sink.events
                .iter()
                .map(|e| e.time.nanos())
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&sink), [1, 5]);
        assert_eq!(collector.finish(Instant::from_nanos(20), &mut sink), 0);
        assert_eq!(times(&sink), [1, 5, 7, 7, 9, 20]);
        assert_eq!(sink.events[2].cpu(), Some(CpuId(0)));
    }

    #[test]
    fn a_standstill_beyond_the_end_counts_up_to_it() {
        let (mut producers, collector) = rings((0..3).map(CpuId), 8);
        let stood = |time, cpu, length| {
            Event::standstill(
                Instant::from_nanos(time),
                CpuId(cpu),
                Duration::from_nanos(length),
            )
        };
        producers[0].push(stood(120, 0, 50));
        producers[1].push(stood(130, 1, 25));
        producers[2].push(stood(80, 2, 10));
        let mut sink = VecSink::default();
        assert_eq!(collector.finish(Instant::from_nanos(100), &mut sink), 0);
        let end = Event::end(Instant::from_nanos(100));
        assert_eq!(sink.events, [stood(80, 2, 10), stood(100, 0, 30), end]);
    }

    #[test]
    fn what_is_lost_is_counted_and_said_in_its_place() {
        let (mut producers, mut collector) = rings([CpuId(3)], 4);
        let mut sink = VecSink::default();
        for time in 0..7 {
            producers[0].push(start(time, 3, time));
        }
        collector.collect(Instant::from_nanos(100), &mut sink);
        producers[0].push(start(50, 3, 50));
        for time in 60..70 {
            producers[0].push(start(time, 3, time));
        }
        assert_eq!(collector.finish(Instant::from_nanos(80), &mut sink), 3 + 8);
        let kinds: Vec<(EventKind, u64)> = sink
            .events
            .iter()
            .map(|e| {
                (
                    e.kind,
                    if e.kind == EventKind::Lost {
                        e.argument
                    } else {
                        e.job
                    },
                )
            })
            .collect();
        use EventKind::{End, Lost, Start};
        let expected = [
            (Start, 0),
            (Start, 1),
            (Start, 2),
            (Start, 3),
            (Lost, 3),
            (Start, 50),
            (Start, 60),
            (Start, 61),
            (Lost, 8),
            (End, 0),
        ];
        assert_eq!(kinds, expected);
    }

    #[test]
    fn an_event_that_comes_too_late_is_said_to_be_lost() {
        let (mut producers, mut collector) = rings((0..2).map(CpuId), 8);
        let mut sink = VecSink::default();
        producers[0].push(start(10, 0, 0));
        collector.collect(Instant::from_nanos(20), &mut sink);
        producers[1].push(start(5, 1, 0));
        assert_eq!(collector.finish(Instant::from_nanos(30), &mut sink), 1);
        assert_eq!(
            sink.events[1],
            Event::lost(Instant::from_nanos(10), CpuId(1), 1)
        );
    }

    /// Two producers as fast as they can, a collector as fast as it can: every event arrives once,
    /// in order, or is counted.
    #[test]
    fn nothing_is_lost_silently_under_pressure() {
        const COUNT: u64 = 100_000;
        let (producers, mut collector) = rings((0..2).map(CpuId), 64);
        let mut sink = VecSink::default();
        std::thread::scope(|scope| {
            let threads: Vec<_> = producers
                .into_iter()
                .map(|mut producer| {
                    scope.spawn(move || {
                        let cpu = producer.cpu.0;
                        for job in 0..COUNT {
                            producer.push(start(0, cpu, job));
                            if job % 64 == 0 {
                                std::thread::yield_now();
                            }
                        }
                    })
                })
                .collect();
            while threads.iter().any(|t| !t.is_finished()) {
                collector.collect(Instant::from_nanos(1), &mut sink);
            }
        });
        let lost = collector.finish(Instant::from_nanos(2), &mut sink);
        let mut next = [0, 0];
        let mut said = 0;
        for event in &sink.events {
            let Some(cpu) = event.cpu() else { continue };
            match event.kind {
                EventKind::Lost => {
                    next[cpu.index()] += event.argument;
                    said += event.argument;
                }
                _ => {
                    assert_eq!(event.job, next[cpu.index()], "{event} out of order");
                    next[cpu.index()] += 1;
                }
            }
        }
        assert_eq!((next, said), ([COUNT, COUNT], lost));
    }
}
