//! Counters of one thread: how often it missed the shared cache, or caused a page fault
//! (perf_event_open(2)).

use model::{Error, Result};

/// What is counted, in user mode.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// Misses of the last cache (`PERF_COUNT_HW_CACHE_MISSES`): what 003 §3.2 counts. What a
    /// prefetcher fetches is not among them on most processors.
    CacheMisses,
    /// Page faults (`PERF_COUNT_SW_PAGE_FAULTS`): every kernel has these.
    PageFaults,
}

impl Event {
    /// `PERF_TYPE_…` and `PERF_COUNT_…` (linux/perf_event.h).
    const fn numbers(self) -> (u32, u64) {
        match self {
            Event::CacheMisses => (0, 3),
            Event::PageFaults => (1, 2),
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Event::CacheMisses => "misses of the last cache",
            Event::PageFaults => "page faults",
        }
    }
}

/// A counter of the thread that has made it.
#[derive(Debug)]
pub struct Counter {
    event: Event,
    counter: sys::counter::Counter,
}

impl Counter {
    /// Counts from now on.
    ///
    /// # Errors
    /// The machine has no such counter, or does not permit it.
    pub fn start(event: Event) -> Result<Self> {
        let (kind, config) = event.numbers();
        match sys::counter::Counter::start(kind, config) {
            Ok(counter) => Ok(Counter { event, counter }),
            Err(e) => Err(refused(event, "count", &e).remedy(
                "look under counters in `warmset platform`; many virtual machines have none",
            )),
        }
    }

    /// What it has counted since it was made; `None`: it had to share its place, and missed some.
    ///
    /// # Errors
    /// The kernel refuses.
    pub fn read(&self) -> Result<Option<u64>> {
        self.counter
            .read()
            .map_err(|e| refused(self.event, "read the number of", &e))
    }
}

fn refused(event: Event, what: &str, error: &std::io::Error) -> Error {
    Error::new(format!("cannot {what} {}: {error}", event.name()))
}
