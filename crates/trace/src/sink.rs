//! Where events go: nowhere, into memory, into a file, into several places.

use crate::event::Event;

/// Takes the events of one schedule, in order.
pub trait Sink {
    /// Does anyone read what is recorded? Where not, an engine may leave out what it does for
    /// events alone.
    const ENABLED: bool = true;

    /// Takes one event. Never fails here: a sink that can fail keeps its first error for whoever
    /// finishes it.
    fn record(&mut self, event: Event);
}

/// Forgets everything, at no cost.
#[derive(Clone, Copy, Debug, Default)]
pub struct NullSink;

impl Sink for NullSink {
    const ENABLED: bool = false;
    #[inline(always)]
    fn record(&mut self, _: Event) {}
}

/// Keeps everything in memory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct VecSink {
    /// The events so far, in order.
    pub events: Vec<Event>,
}

impl Sink for VecSink {
    #[inline]
    fn record(&mut self, event: Event) {
        self.events.push(event);
    }
}

impl<S: Sink> Sink for &mut S {
    const ENABLED: bool = S::ENABLED;
    #[inline]
    fn record(&mut self, event: Event) {
        (**self).record(event);
    }
}

/// Hands every event to both.
impl<A: Sink, B: Sink> Sink for (A, B) {
    const ENABLED: bool = A::ENABLED || B::ENABLED;
    #[inline]
    fn record(&mut self, event: Event) {
        self.0.record(event);
        self.1.record(event);
    }
}

/// Hands events on where there is somebody to take them.
impl<S: Sink> Sink for Option<S> {
    const ENABLED: bool = S::ENABLED;
    #[inline]
    fn record(&mut self, event: Event) {
        if let Some(sink) = self {
            sink.record(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{CpuId, Instant};

    /// A sink as an engine knows it: by its type alone.
    fn idle_into<S: Sink>(mut sink: S) -> bool {
        sink.record(Event::idle(Instant::ZERO, CpuId(0)));
        S::ENABLED
    }

    #[test]
    fn sinks_hand_on_and_know_whether_anyone_reads() {
        let (mut a, mut b) = (VecSink::default(), VecSink::default());
        assert!(idle_into((&mut a, (NullSink, Some(&mut b)))));
        assert!(!idle_into((NullSink, Some(NullSink))));
        assert_eq!((a.events.len(), a), (1, b));
    }
}
