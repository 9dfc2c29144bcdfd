//! Puts what the program in the kernel tells into the order of a trace.
//!
//! Each processor stamps its events and puts them into one ring. Between its stamp and the ring
//! another processor may have put in a later one: events come nearly in the order of time, and are
//! handed on when they are older than [`SETTLED`].

use model::{CpuId, Duration, Instant, TaskId, TaskSet};
use std::collections::VecDeque;
use trace::{Event, EventKind, Sink};

/// No event comes into the ring so long after its stamp.
pub const SETTLED: Duration = Duration::from_millis(50);

/// A job that is released and not complete.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    deadline: Instant,
}

/// Takes events as they come, and hands them on in the order of time.
#[derive(Debug)]
pub struct Collector {
    /// Not handed on yet, in the order of time; those of one moment in the order of the ring.
    waiting: VecDeque<Event>,
    /// The latest that has come.
    latest: Instant,
    /// No event is handed on that is later.
    horizon: Instant,
    pending: Vec<VecDeque<Pending>>,
    last: Instant,
    lost: u64,
    /// Of those, how many the program in the kernel has told of.
    told: u64,
}

impl Collector {
    /// For the tasks of this set, up to the end of a run.
    pub fn new(set: &TaskSet, horizon: Instant) -> Self {
        Collector {
            waiting: VecDeque::new(),
            latest: Instant::ZERO,
            horizon,
            pending: vec![VecDeque::new(); set.len()],
            last: Instant::ZERO,
            lost: 0,
            told: 0,
        }
    }

    /// Takes an event, in the order in which they came into the ring.
    pub fn take(&mut self, event: Event) {
        self.latest = self.latest.max(event.time);
        let later = |before: &&Event| before.time > event.time;
        let later = self.waiting.iter().rev().take_while(later).count();
        self.waiting.insert(self.waiting.len() - later, event);
    }

    /// Hands on what is so much older than the latest that nothing can come before it any more, and
    /// no more events than that. Returns how many.
    pub fn hand_on(&mut self, most: usize, sink: &mut impl Sink) -> usize {
        let settled = self.latest.nanos().checked_sub(SETTLED.nanos());
        let Some(settled) = settled.map(Instant::from_nanos) else {
            return 0;
        };
        self.hand_on_until(settled.min(self.horizon), most, sink)
    }

    fn hand_on_until(&mut self, until: Instant, most: usize, sink: &mut impl Sink) -> usize {
        for count in 0..most {
            let Some(event) = self.waiting.front().filter(|event| event.time <= until) else {
                return count;
            };
            let event = *event;
            self.waiting.pop_front();
            if event.time < self.last {
                self.lost += 1;
                let cpu = event.cpu().unwrap_or_default();
                sink.record(Event::lost(self.last, cpu, 1));
                continue;
            }
            self.last = event.time;
            self.note(&event);
            sink.record(event);
        }
        most
    }

    fn note(&mut self, event: &Event) {
        let pending = |pending: &mut Vec<VecDeque<Pending>>| {
            pending.get_mut(event.task.0 as usize).map(std::mem::take)
        };
        match event.kind {
            EventKind::Lost => {
                self.lost = self.lost.saturating_add(event.argument);
                self.told = self.told.saturating_add(event.argument);
            }
            EventKind::Release | EventKind::Completion => {
                let Some(mut jobs) = pending(&mut self.pending) else {
                    return;
                };
                match event.kind {
                    EventKind::Release => jobs.push_back(Pending {
                        number: event.job,
                        deadline: event.deadline(),
                    }),
                    _ => jobs.retain(|job| job.number != event.job),
                }
                self.pending[event.task.index()] = jobs;
            }
            _ => {}
        }
    }

    /// Hands on what is left up to the end, with the misses of jobs that are not complete by then.
    /// `losses`: how many events have been lost before they came here; those of which the program
    /// in the kernel could not tell, or only behind the end, are told here. Returns how many events
    /// were lost.
    pub fn finish(mut self, end: Instant, losses: u64, sink: &mut impl Sink) -> u64 {
        self.hand_on_until(end, usize::MAX, sink);
        let end = end.max(self.last);
        let untold = losses.saturating_sub(self.told);
        if untold > 0 {
            self.lost += untold;
            sink.record(Event::lost(end, CpuId::default(), untold));
        }
        for (task, jobs) in self.pending.iter().enumerate() {
            for job in jobs.iter().filter(|job| job.deadline <= end) {
                let task = TaskId(task as u32);
                sink.record(Event::deadline_miss(
                    end,
                    None,
                    task,
                    job.number,
                    job.deadline,
                ));
            }
        }
        sink.record(Event::end(end));
        self.lost
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Timing;
    use trace::VecSink;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    fn collector(horizon: u64) -> Collector {
        let timing = Timing::implicit(Duration::from_nanos(1), Duration::from_nanos(10));
        Collector::new(&TaskSet::from_timings(vec![timing]).unwrap(), at(horizon))
    }

    #[test]
    fn events_come_in_order_and_misses_are_said() {
        let mut collector = collector(30);
        let (task, cpu) = (TaskId(0), CpuId(2));
        let mut sink = VecSink::default();
        for event in [
            Event::release(at(0), cpu, task, 0, at(10)),
            Event::start(at(6), cpu, task, 0),
            Event::idle(at(5), CpuId(1)),
            Event::idle(at(6), CpuId(3)),
            Event::completion(at(8), cpu, task, 0, Duration::from_nanos(2)),
            Event::release(at(10), cpu, task, 1, at(20)),
        ] {
            collector.take(event);
        }
        // Anything may still come before them.
        assert_eq!(collector.hand_on(9, &mut sink), 0);
        collector.take(Event::idle(at(SETTLED.nanos() + 9), CpuId(1)));
        assert_eq!(collector.hand_on(3, &mut sink), 3);
        let times = |sink: &VecSink| {
            sink.events
                .iter()
                .map(|e| e.time.nanos())
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&sink), [0, 5, 6]);
        assert_eq!(collector.hand_on(3, &mut sink), 2);
        assert_eq!(times(&sink), [0, 5, 6, 6, 8]);
        assert_eq!(sink.events[3], Event::idle(at(6), CpuId(3)));
        // What is behind the end is no part of the trace, however late one looks.
        collector.take(Event::idle(at(4 * SETTLED.nanos()), CpuId(1)));
        assert_eq!(collector.hand_on(9, &mut sink), 1);
        assert_eq!(collector.finish(at(30), 0, &mut sink), 0);
        assert_eq!(
            sink.events[5..],
            [
                Event::release(at(10), cpu, task, 1, at(20)),
                Event::deadline_miss(at(30), None, task, 1, at(20)),
                Event::end(at(30)),
            ]
        );
    }

    #[test]
    fn what_is_lost_is_counted() {
        let mut collector = collector(9);
        let mut sink = VecSink::default();
        collector.take(Event::lost(at(4), CpuId(0), 5));
        collector.take(Event::lost(at(12), CpuId(0), 3));
        collector.take(Event::idle(at(9), CpuId(0)));
        collector.take(Event::idle(at(SETTLED.nanos() + 9), CpuId(0)));
        assert_eq!(collector.hand_on(9, &mut sink), 2);
        collector.take(Event::idle(at(3), CpuId(1)));
        // Of ten that have been lost the program has told of five before the end.
        assert_eq!(collector.finish(at(9), 10, &mut sink), 11);
        assert_eq!(
            sink.events,
            [
                Event::lost(at(4), CpuId(0), 5),
                Event::idle(at(9), CpuId(0)),
                Event::lost(at(9), CpuId(1), 1),
                Event::lost(at(9), CpuId(0), 5),
                Event::end(at(9)),
            ]
        );
    }
}
