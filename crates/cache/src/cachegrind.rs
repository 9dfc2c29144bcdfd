//! The rules of Cachegrind (valgrind 3.19), so that its counts come out: two levels, LRU, one
//! processor, no write-backs.
//!
//! An access to two lines touches both in the first level, and misses once if either was not there;
//! the last level is then asked for both. An access is taken for at most one line long. An
//! instruction that reads and writes the same bytes counts as a read. Of a platform with more
//! levels the first and the last are simulated, as that tool does.

use crate::access::Kind;
use crate::array::Arrays;
use crate::counts::Counts;
use crate::hierarchy::Outcome;
use crate::shape::Shape;
use model::{CpuId, Error, Result};

/// Caches as Cachegrind has them: for instructions, for data, and the last level.
#[derive(Clone)]
pub struct Cachegrind {
    cpu: CpuId,
    arrays: Arrays,
    caches: [One; 3],
    bits: u32,
}

#[derive(Clone)]
struct One {
    /// Its place in the shape.
    part: usize,
    sets: u64,
    counts: Counts,
}

/// The last of the three.
const LAST: usize = 2;

impl Cachegrind {
    /// The caches of the first processor of a platform.
    ///
    /// # Errors
    /// It has no two levels of caches, for instructions and for data.
    pub fn new(shape: &Shape, seed: u64) -> Result<Self> {
        let cpu = shape.cpus[0];
        let instructions = shape.path(cpu, true);
        let data = shape.path(cpu, false);
        let (Some(first), Some(other), Some(last)) =
            (instructions.first(), data.first(), data.last())
        else {
            return Err(levels());
        };
        if data.len() < 2 || instructions.last() != Some(last) {
            return Err(levels());
        }
        let mut arrays = Arrays::default();
        let mut one = |part: &usize| {
            let described = &shape.parts[*part];
            let seed = seed.wrapping_add(*part as u64);
            arrays.add(described.sets, described.ways, described.replacement, seed);
            One {
                part: *part,
                sets: described.sets as u64,
                counts: Counts::default(),
            }
        };
        Ok(Cachegrind {
            cpu,
            caches: [one(first), one(other), one(last)],
            arrays,
            bits: shape.line.trailing_zeros(),
        })
    }

    /// One access.
    ///
    /// # Errors
    /// It is another processor's.
    pub fn access(&mut self, cpu: CpuId, kind: Kind, address: u64, size: u32) -> Result<Outcome> {
        if cpu != self.cpu {
            return Err(only_one(cpu));
        }
        let size = size.min(1 << self.bits);
        let lines = [address, address + u64::from(size - 1)].map(|a| a >> self.bits);
        let first = usize::from(kind != Kind::Instruction);
        let column = kind.column();
        let mut outcome = Outcome {
            reached: 1,
            misses: 0,
            fetched: 0,
            given: false,
        };
        if self.misses(first, lines, column) {
            let last = u32::from(self.misses(LAST, lines, column));
            outcome = Outcome {
                reached: 2,
                misses: 1 | last << 1,
                fetched: 1 + last,
                given: false,
            };
        }
        Ok(outcome)
    }

    /// What was counted of a cache of the shape; `None`: it is not simulated.
    pub fn counts(&self, part: usize) -> Option<Counts> {
        let found = self.caches.iter().find(|one| one.part == part)?;
        // A unified first level is one cache here, too; Cachegrind has two.
        let mut counts = found.counts;
        if self.caches[0].part == self.caches[1].part && part == self.caches[0].part {
            counts.add(&self.caches[1].counts);
        }
        Some(counts)
    }

    /// The processor whose accesses are counted.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    /// Does an access from one line to another miss either in one of the three?
    fn misses(&mut self, cache: usize, lines: [u64; 2], column: usize) -> bool {
        let mut missed = self.misses_line(cache, lines[0]);
        if lines[0] != lines[1] {
            missed |= self.misses_line(cache, lines[1]);
        }
        let counts = &mut self.caches[cache].counts;
        counts.accesses[column] += 1;
        counts.misses[column] += u64::from(missed);
        missed
    }

    fn misses_line(&mut self, cache: usize, line: u64) -> bool {
        let set = (line % self.caches[cache].sets) as usize;
        let missed = self.arrays.use_line(cache, set, line).is_none();
        if missed {
            self.arrays.put(cache, set, line, 0);
        }
        missed
    }
}

fn levels() -> Error {
    Error::new("Cachegrind simulates a first level for instructions and data, and a last one")
        .at("--rules cachegrind")
        .remedy("choose a platform with two levels of caches")
}

fn only_one(cpu: CpuId) -> Error {
    Error::new(format!(
        "processor {cpu}: Cachegrind simulates one processor"
    ))
    .at("--rules cachegrind")
    .remedy("give a trace of the platform's first processor, or take the rules `lines`")
}
