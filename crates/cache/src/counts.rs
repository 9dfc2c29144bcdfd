//! What is counted of a cache, for each processor that uses it.

use serde::Serialize;

/// Accesses that reached a cache, how many of them it did not serve, and what came of that.
///
/// An access of the program counts once at each cache that it reaches, however many lines it
/// touches, and as a miss where any of its lines was not there.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Counts {
    /// Accesses: instructions, reads, writes.
    #[serde(skip)]
    pub(crate) accesses: [u64; 3],
    /// Misses, likewise.
    #[serde(skip)]
    pub(crate) misses: [u64; 3],
    /// Hits where they are counted by line, which is with the rules of pycachesim.
    #[serde(skip)]
    pub(crate) hits_by_line: Option<u64>,
    /// Lines that were changed and went to the next level when they left, or accesses that were
    /// written through with the rules of pycachesim.
    pub writebacks: u64,
    /// Lines lost since another cache took them for writing, or since an inclusive cache behind
    /// this one replaced them.
    pub invalidations: u64,
    /// Changed lines that another processor asked for.
    pub interventions: u64,
    /// Writes to a line that others held as well.
    pub upgrades: u64,
    /// Accesses that were written through to the next level.
    pub written_through: u64,
    /// Lines fetched before they were asked for.
    pub prefetches: u64,
    /// Those of them that were used before they were replaced.
    pub useful_prefetches: u64,
}

impl Counts {
    /// All accesses.
    pub fn accesses(&self) -> u64 {
        self.accesses.iter().sum()
    }
    /// All misses.
    pub fn misses(&self) -> u64 {
        self.misses.iter().sum()
    }
    /// Accesses that were served; with the rules of pycachesim lines.
    pub fn hits(&self) -> u64 {
        let served = self.accesses() - self.misses().min(self.accesses());
        self.hits_by_line.unwrap_or(served)
    }
    /// Fetches of instructions.
    pub fn instructions(&self) -> u64 {
        self.accesses[0]
    }
    /// Reads of data.
    pub fn reads(&self) -> u64 {
        self.accesses[1]
    }
    /// Writes of data.
    pub fn writes(&self) -> u64 {
        self.accesses[2]
    }
    /// Fetches of instructions that missed.
    pub fn instruction_misses(&self) -> u64 {
        self.misses[0]
    }
    /// Reads that missed.
    pub fn read_misses(&self) -> u64 {
        self.misses[1]
    }
    /// Writes that missed.
    pub fn write_misses(&self) -> u64 {
        self.misses[2]
    }

    /// Adds those of another processor.
    pub fn add(&mut self, other: &Counts) {
        for column in 0..3 {
            self.accesses[column] += other.accesses[column];
            self.misses[column] += other.misses[column];
        }
        if let (Some(hits), Some(more)) = (self.hits_by_line, other.hits_by_line) {
            self.hits_by_line = Some(hits + more);
        }
        self.writebacks += other.writebacks;
        self.invalidations += other.invalidations;
        self.interventions += other.interventions;
        self.upgrades += other.upgrades;
        self.written_through += other.written_through;
        self.prefetches += other.prefetches;
        self.useful_prefetches += other.useful_prefetches;
    }
}

/// What reached memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct MemoryCounts {
    /// Lines read.
    pub lines_read: u64,
    /// Lines written.
    pub lines_written: u64,
    /// Accesses of the program that were written through.
    pub written_through: u64,
}
