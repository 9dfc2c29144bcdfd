//! What a real run shows of each job: response times, misses, and what stood still before.

use model::{Duration, Instant, TaskSet};
use std::collections::BTreeMap;
use trace::{Event, EventKind, Sink};

/// A job that is done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Job {
    /// The place of its task.
    pub task: usize,
    /// Its number.
    pub number: u64,
    /// When it was due to be released.
    pub released: Instant,
    /// When it was done.
    pub done: Instant,
    /// How long it executed.
    pub executed: Duration,
}

impl Job {
    /// From its release until it was done.
    pub fn response(&self) -> Duration {
        self.done.since(self.released)
    }
}

/// A moment at which the machine had stood still.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Standstill {
    /// When it was over.
    pub until: Instant,
    /// How long it was.
    pub length: Duration,
}

/// All jobs of a run.
#[derive(Clone, Debug)]
pub struct Observed {
    deadlines: Vec<Duration>,
    released: BTreeMap<(u32, u64), Instant>,
    /// In the order in which they were done.
    pub jobs: Vec<Job>,
    /// In the order in which they were noted.
    pub standstills: Vec<Standstill>,
    /// Deadlines that were missed, by task.
    pub missed: Vec<u64>,
}

impl Observed {
    /// Of a set that is going to run.
    pub fn of(set: &TaskSet) -> Self {
        Observed {
            deadlines: set.timings().iter().map(|t| t.deadline).collect(),
            released: BTreeMap::new(),
            jobs: Vec::new(),
            standstills: Vec::new(),
            missed: vec![0; set.len()],
        }
    }

    /// For how long some processor stood still while jobs were waiting without a pause until this
    /// one was done: so much later it may be, and not more. A stop of the whole machine, which each
    /// processor notes, counts once.
    pub fn stood_still_before(&self, job: &Job) -> Duration {
        let (since, done) = (self.busy_since(job).nanos(), job.done.nanos());
        let mut within: Vec<(u64, u64)> = self
            .standstills
            .iter()
            .map(|still| {
                let until = still.until.nanos();
                let begun = until.saturating_sub(still.length.nanos());
                (begun.max(since), until.min(done))
            })
            .filter(|(begun, until)| begun < until)
            .collect();
        within.sort_unstable();
        let (mut sum, mut counted) = (0, 0);
        for (begun, until) in within {
            sum += until.saturating_sub(begun.max(counted));
            counted = counted.max(until);
        }
        Duration::from_nanos(sum)
    }

    /// From when on a job could run: since its release, or since the job of its task before it was
    /// done.
    pub fn begun(&self, job: &Job) -> Instant {
        let before = self.jobs.iter();
        let before = before.filter(|j| j.task == job.task && j.number < job.number);
        let done = before.map(|j| j.done).max();
        done.map_or(job.released, |done| done.max(job.released))
    }

    /// Jobs that were not done when the run ended: they took at least until then. How long they
    /// executed is not known.
    pub fn unfinished(&self, end: Instant) -> Vec<Job> {
        let left = self.released.iter();
        let left = left.filter(|(_, released)| **released < end);
        left.map(|((task, number), released)| Job {
            task: *task as usize,
            number: *number,
            released: *released,
            done: end,
            executed: Duration::ZERO,
        })
        .collect()
    }

    /// From when on some job was always waiting or running until this one was done.
    fn busy_since(&self, job: &Job) -> Instant {
        let mut since = job.released;
        loop {
            let others = self
                .jobs
                .iter()
                .filter(|j| j.released < since && j.done >= since);
            match others.map(|j| j.released).min() {
                Some(earlier) => since = earlier,
                None => return since,
            }
        }
    }
}

impl Sink for Observed {
    fn record(&mut self, event: Event) {
        match event.kind {
            EventKind::Standstill => self.standstills.push(Standstill {
                until: event.time,
                length: event.length(),
            }),
            EventKind::Release => {
                if let Some(relative) = self.deadlines.get(event.task.index()) {
                    // What happened is told later than it was due.
                    let due = event.deadline().nanos().saturating_sub(relative.nanos());
                    let key = (event.task.0, event.job);
                    self.released.insert(key, Instant::from_nanos(due));
                }
            }
            EventKind::Completion => {
                if let Some(released) = self.released.remove(&(event.task.0, event.job)) {
                    self.jobs.push(Job {
                        task: event.task.index(),
                        number: event.job,
                        released,
                        done: event.time,
                        executed: Duration::from_nanos(event.argument),
                    });
                }
            }
            EventKind::DeadlineMiss => {
                if let Some(missed) = self.missed.get_mut(event.task.index()) {
                    *missed += 1;
                }
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuId, TaskId};
    use testing::sets::set_ms;

    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn responses_count_from_when_releases_were_due() {
        let mut seen = Observed::of(&set_ms(&[(2, 10), (1, 5)]));
        let (cpu, a, b) = (CpuId(0), TaskId(0), TaskId(1));
        let ms = Duration::from_millis;
        for event in [
            Event::release(at(1), cpu, a, 0, at(10)),
            Event::release(at(1), cpu, b, 0, at(5)),
            Event::completion(at(2), cpu, b, 0, ms(1)),
            Event::standstill(at(6), cpu, ms(3)),
            // The same stop of the machine, as another processor notes it.
            Event::standstill(at(6), CpuId(1), ms(2)),
            Event::completion(at(7), cpu, a, 0, ms(2)),
            Event::release(at(5), cpu, b, 1, at(10)),
            Event::completion(at(8), cpu, b, 1, ms(1)),
            Event::release(at(20), cpu, b, 4, at(25)),
            Event::completion(at(21), cpu, b, 4, ms(1)),
            Event::deadline_miss(at(30), None, a, 1, at(20)),
        ] {
            seen.record(event);
        }
        let responses: Vec<_> = seen.jobs.iter().map(Job::response).collect();
        assert_eq!(responses, [ms(2), ms(7), ms(3), ms(1)]);
        assert_eq!(seen.missed, [1, 0]);
        let still: Vec<_> = seen
            .jobs
            .iter()
            .map(|j| seen.stood_still_before(j))
            .collect();
        // Nothing stood still before the first was done; the last began anew.
        assert_eq!(still, [ms(0), ms(3), ms(3), ms(0)]);
    }

    #[test]
    fn jobs_wait_for_the_one_before_and_some_are_not_done_at_the_end() {
        let mut seen = Observed::of(&set_ms(&[(2, 10)]));
        let (cpu, a) = (CpuId(0), TaskId(0));
        let ms = Duration::from_millis;
        for event in [
            Event::release(at(0), cpu, a, 0, at(10)),
            Event::release(at(10), cpu, a, 1, at(20)),
            Event::completion(at(13), cpu, a, 0, ms(2)),
            Event::completion(at(15), cpu, a, 1, ms(2)),
            Event::release(at(20), cpu, a, 2, at(30)),
            Event::release(at(40), cpu, a, 3, at(50)),
        ] {
            seen.record(event);
        }
        let begun: Vec<_> = seen.jobs.iter().map(|j| seen.begun(j)).collect();
        assert_eq!(begun, [at(0), at(13)]);
        let left = seen.unfinished(at(40));
        assert_eq!(left.len(), 1);
        assert_eq!((left[0].number, left[0].response()), (2, ms(20)));
    }
}
