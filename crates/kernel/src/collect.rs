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

/// So many events have room from the beginning: while jobs wait for the thread that takes them, it
/// asks for no memory.
const ROOM: usize = 1 << 16;

/// A job that is released and not complete.
#[derive(Clone, Copy, Debug)]
struct Pending {
    number: u64,
    deadline: Instant,
}

/// Takes events as they come, and hands them on in the order of time.
#[derive(Debug)]
pub struct Collector {
    waiting: Vec<Event>,
    /// Taken out of `waiting` in the order of time, and not handed on yet.
    settled: VecDeque<Event>,
    pending: Vec<VecDeque<Pending>>,
    last: Instant,
    lost: u64,
    /// Of those, how many the program in the kernel has told of.
    told: u64,
}

impl Collector {
    /// For the tasks of this set.
    pub fn new(set: &TaskSet) -> Self {
        Collector {
            waiting: Vec::with_capacity(ROOM),
            settled: VecDeque::with_capacity(ROOM),
            pending: vec![VecDeque::new(); set.len()],
            last: Instant::ZERO,
            lost: 0,
            told: 0,
        }
    }

    /// Takes a record as it stands in the ring. One that is no event counts as lost: the program
    /// does not write such.
    pub fn take(&mut self, record: &[u8]) {
        let bytes = record.first_chunk::<{ Event::SIZE }>();
        match bytes.and_then(Event::from_bytes) {
            Some(event) => self.waiting.push(event),
            None => self.lost += 1,
        }
    }

    /// How many are not handed on yet.
    pub fn waiting(&self) -> usize {
        self.waiting.len() + self.settled.len()
    }

    /// Puts in order what is settled at this time, and is no later than the last moment of the run.
    pub fn settle(&mut self, now: Instant, last: Instant) {
        let until = Instant::from_nanos(now.nanos().saturating_sub(SETTLED.nanos()));
        self.settle_until(until.min(last));
    }

    fn settle_until(&mut self, until: Instant) {
        // Stable: events of one moment stay in the order of the ring.
        self.waiting.sort_by_key(|event| event.time);
        let settled = self.waiting.partition_point(|event| event.time <= until);
        self.settled.extend(self.waiting.drain(..settled));
    }

    /// Hands on what is settled, no more events than that. Is more left?
    pub fn hand_on(&mut self, most: usize, sink: &mut impl Sink) -> bool {
        for _ in 0..most {
            let Some(event) = self.settled.pop_front() else {
                break;
            };
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
        !self.settled.is_empty()
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
    /// `losses`: how many events the program in the kernel has lost; those that it could not tell
    /// of any more, or only behind the end, are told here. Returns how many events were lost.
    pub fn finish(mut self, end: Instant, losses: u64, sink: &mut impl Sink) -> u64 {
        self.settle_until(end);
        self.hand_on(usize::MAX, sink);
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

    fn collector() -> Collector {
        let timing = Timing::implicit(Duration::from_nanos(1), Duration::from_nanos(10));
        Collector::new(&TaskSet::from_timings(vec![timing]).unwrap())
    }

    #[test]
    fn events_come_in_order_and_misses_are_said() {
        let mut collector = collector();
        let (task, cpu) = (TaskId(0), CpuId(2));
        let later = 2 * SETTLED.nanos();
        for event in [
            Event::release(at(0), cpu, task, 0, at(10)),
            Event::start(at(6), cpu, task, 0),
            Event::idle(at(5), CpuId(1)),
            Event::completion(at(8), cpu, task, 0, Duration::from_nanos(2)),
            Event::release(at(10), cpu, task, 1, at(20)),
            Event::idle(at(later), CpuId(1)),
        ] {
            collector.take(&event.to_bytes());
        }
        let mut sink = VecSink::default();
        collector.settle(at(SETTLED.nanos() + 9), at(30));
        assert!(collector.hand_on(3, &mut sink) && collector.waiting() == 3);
        let times = |sink: &VecSink| {
            sink.events
                .iter()
                .map(|e| e.time.nanos())
                .collect::<Vec<_>>()
        };
        assert_eq!(times(&sink), [0, 5, 6]);
        assert!(!collector.hand_on(3, &mut sink));
        assert_eq!(times(&sink), [0, 5, 6, 8]);
        // What is behind the end is no part of the trace, however late one looks.
        collector.settle(at(4 * SETTLED.nanos()), at(30));
        assert_eq!(collector.finish(at(30), 0, &mut sink), 0);
        assert_eq!(
            sink.events[4..],
            [
                Event::release(at(10), cpu, task, 1, at(20)),
                Event::deadline_miss(at(30), None, task, 1, at(20)),
                Event::end(at(30)),
            ]
        );
    }

    #[test]
    fn what_is_lost_is_counted() {
        let mut collector = collector();
        let mut sink = VecSink::default();
        collector.take(&[0; Event::SIZE]);
        collector.take(&[1, 2, 3]);
        collector.take(&Event::lost(at(4), CpuId(0), 5).to_bytes());
        collector.take(&Event::lost(at(12), CpuId(0), 3).to_bytes());
        collector.take(&Event::idle(at(9), CpuId(0)).to_bytes());
        collector.settle(at(SETTLED.nanos() + 9), at(9));
        collector.take(&Event::idle(at(3), CpuId(1)).to_bytes());
        // Of ten that the program has lost it has told of five before the end.
        assert_eq!(collector.finish(at(9), 10, &mut sink), 13);
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
