//! Who watches a simulation: nobody, a trace, the response times of all jobs, how they are
//! distributed.

use model::{Duration, TaskId, TaskSet};
use trace::distribution::Distribution;
use trace::summary::Spread;
use trace::{Event, Sink};

/// Watches a simulation. An engine is compiled for each kind of observer, so that what is not
/// watched costs nothing.
pub trait Observer {
    /// Does it look at events? If not, the engine makes none.
    const EVENTS: bool;
    /// Something happened.
    #[inline(always)]
    fn event(&mut self, _event: Event) {}
    /// Job `number` of a task completed, `response` nanoseconds after its release. Jobs of a task
    /// come in order.
    #[inline(always)]
    fn completed(&mut self, _task: TaskId, _number: u64, _response: u64) {}
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
    fn completed(&mut self, task: TaskId, number: u64, response: u64) {
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
    fn completed(&mut self, task: TaskId, number: u64, response: u64) {
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
    fn completed(&mut self, task: TaskId, _number: u64, response: u64) {
        self.of[task.index()].push(response);
    }
}

/// How response times and tardiness are distributed, task by task: as statistics of a trace have
/// it.
#[derive(Clone, Debug)]
pub struct Distributions {
    /// By task: relative deadline in nanoseconds, response times, tardiness.
    of: Vec<(u64, Distribution, Distribution)>,
}

impl Distributions {
    /// For the jobs of this set.
    pub fn new(set: &TaskSet) -> Self {
        let deadlines = set.timings().iter().map(|t| t.deadline.nanos());
        Distributions {
            of: deadlines
                .map(|d| (d, Distribution::default(), Distribution::default()))
                .collect(),
        }
    }

    /// Response times and tardiness of the completed jobs of a task.
    pub fn spreads(&self, task: usize) -> (Spread, Spread) {
        let (_, response, tardiness) = &self.of[task];
        (response.spread(), tardiness.spread())
    }
}

impl Observer for Distributions {
    const EVENTS: bool = false;
    #[inline]
    fn completed(&mut self, task: TaskId, _number: u64, response: u64) {
        let (deadline, responses, tardiness) = &mut self.of[task.index()];
        responses.record(Duration::from_nanos(response));
        tardiness.record(Duration::from_nanos(response.saturating_sub(*deadline)));
    }
}
