//! Work that maps and unmaps memory all the time: its thread holds the lock of the process's memory
//! for a good part of it, and is preempted with it.

use model::Duration;
use std::sync::atomic::{AtomicBool, Ordering};
use sys::memory::{Mapping, Use};
use workload::Units;

/// How much work there is between two looks at the clock: a unit may be long.
pub(crate) const LOOK: Duration = Duration::from_micros(500);
const SIZE: usize = 64 << 10;
const PAGE: usize = 4096;

/// A unit is a mapping that is made, written to and taken away.
#[derive(Debug)]
pub(crate) struct Maps;

impl Units for Maps {
    fn units(&mut self, count: u64, stop: &AtomicBool) {
        for _ in 0..count {
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let mapping = Mapping::private(SIZE, Use::Write).expect("memory for a work");
            for at in (0..SIZE).step_by(PAGE) {
                mapping.store(at, 1);
            }
        }
    }
}
