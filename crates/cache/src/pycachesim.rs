//! The rules of pycachesim 0.3.1, so that its counts come out.
//!
//! Where they differ from those of this model: hits and misses are counted by line and loads and
//! stores by access; a store that finds its line counts no hit and is no use of it; a line that is
//! written back to a level that has it not is fetched there first, which counts as a load and a
//! miss; what leaves a level for the next one, lines written back and accesses written through, is
//! an eviction; with `allocate = false` a level that writes back takes a stored line without a
//! fetch; a store across two lines that is written through asks the next level for the first line
//! with the second, and for the second once more. There is no coherence.

use crate::access::Kind;
use crate::array::{Arrays, DIRTY, Entry, VALID, line_of};
use crate::counts::Counts;
use crate::hierarchy::Outcome;
use crate::shape::Shape;
use model::strategy::{Inclusion, Writing};
use model::{CpuId, Error, Result};
use std::ops::RangeInclusive;

/// The caches of one processor.
#[derive(Clone)]
pub struct Pycachesim {
    cpu: CpuId,
    /// In the order of the shape.
    caches: Vec<One>,
    arrays: Arrays,
    /// The first cache of data, and of instructions.
    first: [usize; 2],
    bits: u32,
    outcome: Outcome,
}

#[derive(Clone)]
struct One {
    sets: u64,
    back: bool,
    allocate: bool,
    next: Option<usize>,
    counts: Counts,
}

impl Pycachesim {
    /// The caches of the first processor of a platform.
    ///
    /// # Errors
    /// It has none; one is inclusive or exclusive, or prefetches.
    pub fn new(shape: &Shape, seed: u64) -> Result<Self> {
        let cpu = shape.cpus[0];
        let [data, instructions] = [false, true].map(|i| shape.path(cpu, i));
        let (Some(first), Some(other)) = (data.first(), instructions.first()) else {
            return Err(Error::new("the first processor has no caches")
                .at("--rules pycachesim")
                .remedy("choose another platform"));
        };
        for at in data.iter().chain(&instructions) {
            let part = &shape.parts[*at];
            if part.inclusion != Inclusion::Neither || part.prefetch.is_some() {
                return Err(Error::new(format!(
                    "the {} includes or excludes others, or prefetches",
                    part.name
                ))
                .at("--rules pycachesim")
                .remedy(
                    "take the rules `lines`, or a platform without `inclusion` and `prefetch`",
                ));
            }
        }
        let mut arrays = Arrays::default();
        for (index, part) in shape.parts.iter().enumerate() {
            let seed = seed.wrapping_add(index as u64);
            arrays.add(part.sets, part.ways, part.replacement, seed);
        }
        let one = |part: &crate::shape::Part| One {
            sets: part.sets as u64,
            back: part.write == Writing::Back,
            allocate: part.allocate,
            next: part.next,
            counts: Counts {
                hits_by_line: Some(0),
                ..Counts::default()
            },
        };
        Ok(Pycachesim {
            cpu,
            first: [*first, *other],
            caches: shape.parts.iter().map(one).collect(),
            arrays,
            bits: shape.line.trailing_zeros(),
            outcome: Outcome::default(),
        })
    }

    /// One access.
    ///
    /// # Errors
    /// It is another processor's.
    pub fn access(&mut self, cpu: CpuId, kind: Kind, address: u64, size: u32) -> Result<Outcome> {
        if cpu != self.cpu {
            return Err(
                Error::new(format!("processor {cpu}: pycachesim simulates one"))
                    .at("--rules pycachesim")
                    .remedy(
                        "give a trace of the platform's first processor, or take the rules `lines`",
                    ),
            );
        }
        let first = self.first[usize::from(kind == Kind::Instruction)];
        let size = u64::from(size);
        let lines = address >> self.bits..=(address + (size - 1)) >> self.bits;
        self.outcome = Outcome::default();
        if kind != Kind::Write {
            self.load(first, lines, 1);
        }
        if kind.writes() {
            self.store(first, address, size, 1);
        }
        Ok(self.outcome)
    }

    /// What was counted of a cache of the shape; `None`: it is not the first processor's.
    pub fn counts(&self, part: usize) -> Option<Counts> {
        let mine = |first: &usize| {
            std::iter::successors(Some(*first), |at| self.caches[*at].next).any(|at| at == part)
        };
        let is_mine = self.first.iter().any(mine);
        is_mine.then(|| self.caches[part].counts)
    }

    /// The processor whose accesses are counted.
    pub fn cpu(&self) -> CpuId {
        self.cpu
    }

    fn load(&mut self, at: usize, lines: RangeInclusive<u64>, depth: u32) {
        self.outcome.reached = self.outcome.reached.max(depth);
        self.caches[at].counts.accesses[1] += 1;
        for line in lines {
            let one = &mut self.caches[at];
            let set = (line % one.sets) as usize;
            if self.arrays.use_line(at, set, line).is_some() {
                one.counts.hits_by_line = one.counts.hits_by_line.map(|hits| hits + 1);
                continue;
            }
            one.counts.misses[1] += 1;
            self.outcome.misses |= 1 << (depth - 1);
            self.outcome.fetched = self.outcome.fetched.max(depth);
            if let Some(next) = one.next {
                self.load(next, line..=line, depth + 1);
            }
            self.inject(at, line, 0, depth);
        }
    }

    /// Puts a line into a cache. What was changed and leaves for it is stored in the next.
    fn inject(&mut self, at: usize, line: u64, flags: Entry, depth: u32) {
        let one = &mut self.caches[at];
        let set = (line % one.sets) as usize;
        let old = self.arrays.put(at, set, line, flags);
        if old & VALID != 0 && old & DIRTY != 0 && one.back {
            one.counts.writebacks += 1;
            if let Some(next) = one.next {
                let gone = line_of(old) << self.bits;
                self.store(next, gone, 1 << self.bits, depth + 1);
            }
        }
    }

    /// Stores `size` bytes, of which there is one at least.
    fn store(&mut self, at: usize, address: u64, size: u64, depth: u32) {
        self.outcome.reached = self.outcome.reached.max(depth);
        self.caches[at].counts.accesses[2] += 1;
        let last = address + (size - 1);
        for line in address >> self.bits..=last >> self.bits {
            let one = &mut self.caches[at];
            let set = (line % one.sets) as usize;
            let (back, next) = (one.back, one.next);
            let is_there = self.arrays.find(at, set, line).is_some();
            match (is_there, one.allocate) {
                (true, _) => {}
                (false, true) => self.load(at, line..=line, depth),
                (false, false) if back => self.inject(at, line, DIRTY, depth),
                (false, false) => {}
            }
            let one = &mut self.caches[at];
            match (back, next) {
                (true, _) => {
                    if let Some((way, _)) = self.arrays.find(at, set, line) {
                        *self.arrays.entry(at, set, way) |= DIRTY;
                    }
                }
                (false, Some(next)) => {
                    one.counts.writebacks += 1;
                    // What of the store lies behind the beginning of this line, but at most as many
                    // bytes as a line has.
                    let from = address.max(line << self.bits);
                    let rest = (last - from + 1).min(1 << self.bits);
                    self.store(next, from, rest, depth + 1);
                }
                (false, None) => {}
            }
        }
    }
}
