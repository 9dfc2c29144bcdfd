//! How long each overhead took, one by one (002 §5.1): what lies between its beginning and its end
//! on one processor, without others within it.
//!
//! A sample during which the machine stood still says nothing about the engine. It is discarded,
//! and counted.

use crate::event::{Event, EventKind};
use crate::header::Header;
use crate::sink::Sink;
use crate::state::{Observer, State, Took};
use model::{CpuId, Duration, Instant, Overhead};
use std::collections::VecDeque;
use std::vec::Drain;

/// So many of the latest samples of a processor may still be found to be disturbed: a standstill is
/// noted when it is over, sometimes after the overhead that it was in.
const RECENT: usize = 256;

/// Takes overheads as they end, and standstills as they are noted; gives away those overheads that
/// no standstill disturbed. Its memory does not grow with the run, if what is settled is taken.
#[derive(Clone, Debug, Default)]
pub struct Undisturbed {
    processors: Vec<Latest>,
    settled: Vec<Took>,
    /// By the number of the overhead.
    disturbed: [u64; Overhead::ALL.len()],
}

/// Of one processor.
#[derive(Clone, Debug, Default)]
struct Latest {
    /// In the order of their ends.
    samples: VecDeque<Took>,
    /// The latest standstill, from when to when.
    still: Option<(Instant, Instant)>,
}

impl Undisturbed {
    /// An overhead has ended.
    pub fn add(&mut self, took: Took) {
        let latest = at(&mut self.processors, took.cpu);
        if latest.still.is_some_and(|still| overlap(&took, still)) {
            self.disturbed[took.overhead as usize] += 1;
            return;
        }
        latest.samples.push_back(took);
        if latest.samples.len() > RECENT {
            self.settled.extend(latest.samples.pop_front());
        }
    }

    /// The machine stood still on this processor for so long, up to `until`.
    pub fn stood_still(&mut self, cpu: CpuId, until: Instant, length: Duration) {
        let from = Instant::from_nanos(until.nanos().saturating_sub(length.nanos()));
        let latest = at(&mut self.processors, cpu);
        latest.still = Some((from, until));
        latest.samples.retain(|took| {
            let disturbed = overlap(took, (from, until));
            self.disturbed[took.overhead as usize] += u64::from(disturbed);
            !disturbed
        });
    }

    /// Takes those that are certain by now.
    pub fn drain_settled(&mut self) -> Drain<'_, Took> {
        self.settled.drain(..)
    }

    /// Takes all: nothing comes any more.
    pub fn drain(&mut self) -> Drain<'_, Took> {
        for latest in &mut self.processors {
            self.settled.extend(latest.samples.drain(..));
        }
        self.drain_settled()
    }

    /// Those that are not settled yet.
    pub fn unsettled(&self) -> impl Iterator<Item = &Took> {
        self.processors.iter().flat_map(|latest| &latest.samples)
    }

    /// How many were discarded.
    pub fn disturbed(&self, overhead: Overhead) -> u64 {
        self.disturbed[overhead as usize]
    }
}

fn at(processors: &mut Vec<Latest>, cpu: CpuId) -> &mut Latest {
    if processors.len() <= cpu.index() {
        processors.resize_with(cpu.index() + 1, Latest::default);
    }
    &mut processors[cpu.index()]
}

fn overlap(took: &Took, (from, until): (Instant, Instant)) -> bool {
    from < took.ended && took.begun < until
}

impl Observer for Undisturbed {
    fn took(&mut self, took: Took) {
        self.add(took);
    }
}

/// Takes the events of a run, and from them its overheads.
pub struct Overheads {
    state: State,
    found: Undisturbed,
    senseless: u64,
}

impl Overheads {
    /// Of a run with this header.
    pub fn new(header: &Header) -> Self {
        Overheads {
            // Whether jobs keep rules is not asked here.
            state: State::new(header, Duration::MAX),
            found: Undisturbed::default(),
            senseless: 0,
        }
    }

    /// The overheads, undisturbed ones and the number of others.
    pub fn found(&mut self) -> &mut Undisturbed {
        &mut self.found
    }

    /// How many events no schedule can have. Where there are any, samples may be wrong.
    pub fn senseless(&self) -> u64 {
        self.senseless
    }
}

impl Sink for Overheads {
    fn record(&mut self, event: Event) {
        if let (EventKind::Standstill, Some(cpu)) = (event.kind, event.cpu()) {
            self.found.stood_still(cpu, event.time, event.length());
        }
        let applied = self.state.apply(&event, &mut self.found);
        self.senseless += u64::from(applied.is_err());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use Overhead::{Release, Scheduling};

    const HERE: CpuId = CpuId(1);
    const THERE: CpuId = CpuId(0);

    fn took(cpu: CpuId, begun: u64, ended: u64) -> Took {
        Took {
            overhead: Release,
            cpu,
            begun: Instant::from_nanos(begun),
            ended: Instant::from_nanos(ended),
            length: Duration::from_nanos(ended - begun),
        }
    }
    fn still(found: &mut Undisturbed, cpu: CpuId, until: u64, length: u64) {
        found.stood_still(
            cpu,
            Instant::from_nanos(until),
            Duration::from_nanos(length),
        );
    }

    #[test]
    fn overheads_in_which_the_machine_stood_still_are_discarded() {
        let mut found = Undisturbed::default();
        found.add(took(HERE, 100, 200));
        found.add(took(HERE, 300, 400));
        found.add(took(THERE, 500, 600));
        // From 390 to 900: one that ended before it was noted, and one that ends after.
        still(&mut found, HERE, 900, 510);
        found.add(took(HERE, 380, 901));
        found.add(took(HERE, 900, 950));
        let mut begun: Vec<_> = found.drain().map(|t| t.begun.nanos()).collect();
        begun.sort_unstable();
        assert_eq!(begun, [100, 500, 900]);
        assert_eq!(found.disturbed(Release), 2);
        assert_eq!(found.disturbed(Scheduling), 0);
    }

    #[test]
    fn memory_does_not_grow_with_the_run() {
        let mut found = Undisturbed::default();
        let mut taken = 0;
        for n in 0..10_000 {
            found.add(took(HERE, n * 10, n * 10 + 5));
            taken += found.drain_settled().len();
        }
        assert_eq!(found.unsettled().count(), RECENT);
        assert_eq!(taken + found.drain().len(), 10_000);
    }
}
