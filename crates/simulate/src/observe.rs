//! Who watches a simulation: nobody, a trace, the response times of all jobs, their distribution.

use crate::jobs::Row;
use model::{CpuId, Duration, Instant, TaskId};
use policy::NONE;
use trace::{Event, Flags, Sink};

/// Watches a simulation. An engine is compiled for each kind of observer, so that what is not watched costs nothing.
pub trait Observer {
    /// Does it look at events? If not, the engine makes none.
    const EVENTS: bool;
    /// Something happened.
    #[inline(always)]
    fn event(&mut self, _event: Event) {}
    /// Job `number` of a task completed, `response` nanoseconds after its release. Jobs of a task come in order.
    #[inline(always)]
    fn completed(&mut self, _task: u32, _number: u64, _response: u64) {}
}

/// Nobody watches.
impl Observer for () {
    const EVENTS: bool = false;
}

/// Two watch.
impl<A: Observer, B: Observer> Observer for (A, B) {
    const EVENTS: bool = A::EVENTS || B::EVENTS;
    #[inline(always)]
    fn event(&mut self, event: Event) {
        if A::EVENTS {
            self.0.event(event);
        }
        if B::EVENTS {
            self.1.event(event);
        }
    }
    #[inline(always)]
    fn completed(&mut self, task: u32, number: u64, response: u64) {
        self.0.completed(task, number, response);
        self.1.completed(task, number, response);
    }
}

impl<O: Observer> Observer for &mut O {
    const EVENTS: bool = O::EVENTS;
    #[inline(always)]
    fn event(&mut self, event: Event) {
        (**self).event(event);
    }
    #[inline(always)]
    fn completed(&mut self, task: u32, number: u64, response: u64) {
        (**self).completed(task, number, response);
    }
}

/// Events go to a sink.
#[derive(Clone, Debug, Default)]
pub struct Traced<S>(pub S);

impl<S: Sink> Observer for Traced<S> {
    const EVENTS: bool = S::ENABLED;
    #[inline(always)]
    fn event(&mut self, event: Event) {
        self.0.record(event);
    }
}

/// Tells of the end of the current job of a task: a budget that is used up if it is cut short, a miss if it is late.
pub(crate) fn show_end(
    observer: &mut impl Observer,
    row: &Row,
    task: TaskId,
    now: u64,
    cpu: CpuId,
    cut: bool,
) {
    let deadline = row.release + row.deadline;
    let (is_late, now) = (now > deadline, Instant::from_nanos(now));
    if cut {
        let budget = Duration::from_nanos(row.wcet);
        observer.event(Event::budget_exhausted(now, cpu, task, row.number, budget));
    }
    if is_late {
        let deadline = Instant::from_nanos(deadline);
        observer.event(Event::deadline_miss(now, Some(cpu), task, row.number, deadline));
    }
    let done = Event::completion(now, cpu, task, row.number, Duration::from_nanos(row.executed));
    observer.event(if cut { done.flagged(Flags::CUT) } else { done });
}

/// Tells that a processor begins, or with `None` ceases, to serve a server.
pub(crate) fn show_server(
    observer: &mut impl Observer,
    serving: &mut u32,
    now: Instant,
    cpu: CpuId,
    server: Option<u32>,
) {
    let before = std::mem::replace(serving, server.unwrap_or(NONE));
    if before != NONE {
        observer.event(Event::server_end(now, cpu, before));
    }
    if let Some(server) = server {
        observer.event(Event::server_begin(now, cpu, server));
    }
}

/// Keeps the response time of every job, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Responses {
    /// By task, then job.
    pub of: Vec<Vec<u64>>,
}

impl Responses {
    /// For this many tasks.
    pub fn new(tasks: usize) -> Self {
        Responses {
            of: vec![Vec::new(); tasks],
        }
    }
}

impl Observer for Responses {
    const EVENTS: bool = false;
    #[inline]
    fn completed(&mut self, task: u32, _number: u64, response: u64) {
        self.of[task as usize].push(response);
    }
}

/// The distribution of response times, in bounded memory: percentiles are exact to one part in 64.
///
/// Buckets: values below 64 ns each on its own, then 64 buckets for each power of two.
#[derive(Clone, Debug)]
pub struct Distribution {
    counts: Vec<Vec<u64>>,
}

const FINE: u32 = 6;

impl Distribution {
    /// For this many tasks.
    pub fn new(tasks: usize) -> Self {
        Distribution {
            counts: vec![Vec::new(); tasks],
        }
    }

    /// The response time in nanoseconds that `percent` of the jobs of a task do not exceed, from above, by at most 1/64;
    /// `None` if no job completed.
    pub fn percentile(&self, task: usize, percent: f64) -> Option<u64> {
        let counts = &self.counts[task];
        let total: u64 = counts.iter().sum();
        if total == 0 {
            return None;
        }
        let wanted = ((percent / 100.0 * total as f64).ceil() as u64).clamp(1, total);
        let mut seen = 0;
        for (bucket, count) in counts.iter().enumerate() {
            seen += count;
            if seen >= wanted {
                return Some(highest_of(bucket));
            }
        }
        None
    }
}

fn bucket_of(value: u64) -> usize {
    let exponent = (u64::BITS - value.leading_zeros()).saturating_sub(FINE + 1);
    ((u64::from(exponent) << FINE) + (value >> exponent)) as usize
}

fn highest_of(bucket: usize) -> u64 {
    let bucket = bucket as u64;
    let exponent = (bucket >> FINE).saturating_sub(1);
    let mantissa = bucket - (exponent << FINE);
    ((u128::from(mantissa) + 1) << exponent)
        .saturating_sub(1)
        .min(u128::from(u64::MAX)) as u64
}

impl Observer for Distribution {
    const EVENTS: bool = false;
    #[inline]
    fn completed(&mut self, task: u32, _number: u64, response: u64) {
        let bucket = bucket_of(response);
        let counts = &mut self.counts[task as usize];
        if counts.len() <= bucket {
            counts.resize(bucket + 1, 0);
        }
        counts[bucket] += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_hold_their_values_to_one_part_in_64() {
        let (mut last, mut last_value) = (0, 0);
        for value in (1..3000).chain((0..60).map(|e| 3u64 << e)).chain([u64::MAX]) {
            let bucket = bucket_of(value);
            let highest = highest_of(bucket);
            assert!(
                highest >= value && highest - value <= value / 64,
                "{value}: {highest}"
            );
            if value == last_value + 1 {
                assert!(bucket == last || bucket == last + 1, "{value}");
                last = bucket;
                last_value = value;
            }
        }
    }

    #[test]
    fn percentiles_are_those_of_the_sample() {
        let mut d = Distribution::new(1);
        for value in 1..=50 {
            d.completed(0, value, value);
        }
        assert_eq!(d.percentile(0, 50.0), Some(25));
        assert_eq!(d.percentile(0, 99.0), Some(50));
        assert_eq!(d.percentile(0, 0.0), Some(1));
        assert_eq!(Distribution::new(1).percentile(0, 50.0), None);
    }
}
