//! One walk through a working set: every word read, some written, in blocks with a time for each.
//!
//! 000 §3, Fig. 1, and §4.1: write ratios are per word. Words are touched in ascending order, and
//! hardware prefetchers stay on (a program cannot turn them off): a delay measured here is one with
//! their help, as a real task has it. A written word is read, changed and stored, so that the same
//! lines are read whatever is written. Which words are written is a fixed pattern (every
//! `period`-th) compiled into the loop: nothing is decided or drawn on the way. Both ends of a walk
//! are read with all loads and stores done; between blocks the clock is only glanced at.

use crate::memory::{Area, LINE, WORDS_OF_LINE};
use crate::ratio::WriteRatio;
use machine::clock::{Clock, Stamp};
use machine::interrupts::Witness;
use model::{Bytes, CpuId};

/// The most blocks that a walk is timed in: one bit each in [`Trace::interrupted`].
pub const MAX_BLOCKS: usize = 64;
/// The smallest block.
const MIN_BLOCK: usize = 4096;

/// A working set and how a walk through it is divided.
#[derive(Debug)]
pub struct WorkingSet {
    area: Area,
    /// Lines of every block but the last.
    lines_per_block: usize,
    lines: usize,
}

fn lines_per_block(size: usize) -> usize {
    let pages = size / MIN_BLOCK;
    pages.div_ceil(MAX_BLOCKS).max(1) * (MIN_BLOCK / LINE)
}

impl WorkingSet {
    /// Divides an area, a multiple of 4 KiB, into at most [`MAX_BLOCKS`] blocks of at least 4 KiB.
    pub fn of(area: Area) -> Self {
        WorkingSet {
            lines_per_block: lines_per_block(area.size()),
            lines: area.size() / LINE,
            area,
        }
    }
    /// The lines of each block of a set of this size.
    pub fn lines_of_blocks(size: Bytes) -> Vec<u64> {
        let size = size.get() as usize;
        let (lines, each) = (size / LINE, lines_per_block(size));
        (0..lines)
            .step_by(each)
            .map(|first| each.min(lines - first) as u64)
            .collect()
    }
    /// The memory.
    pub fn area(&self) -> &Area {
        &self.area
    }
    /// How many blocks a walk has.
    pub fn blocks(&self) -> usize {
        self.lines.div_ceil(self.lines_per_block)
    }
    /// The lines of a block.
    pub fn lines_of(&self, block: usize) -> usize {
        self.lines_per_block
            .min(self.lines - (block * self.lines_per_block).min(self.lines))
    }
    /// Touches one word of the line of this number, counted on from the first behind the last.
    pub fn touch_line(&self, line: usize) {
        let word = line % self.lines * WORDS_OF_LINE;
        // SAFETY: the line is one of the area's, which has at least one.
        unsafe { self.area.base().add(word).read_volatile() };
    }
    /// Touches single words, spread over the whole set: what the task does until it is preempted
    /// (Fig. 1, t2 to t3).
    pub fn touch(&self, times: usize) {
        let step = (self.lines / times.max(1)).max(1);
        for line in (0..self.lines).step_by(step) {
            // SAFETY: `line` is within the area.
            unsafe { self.area.base().add(line * WORDS_OF_LINE).read_volatile() };
        }
    }
}

/// When a walk began, ended, and passed from block to block.
#[derive(Clone, Debug)]
pub struct Trace {
    /// The clock at the start, then after each block; the last is the end.
    pub stamps: [Stamp; MAX_BLOCKS + 1],
    /// Bit i: block i was interrupted.
    pub interrupted: u64,
    /// The processor at the start.
    pub start: CpuId,
    /// The processor at the end.
    pub end: CpuId,
}

impl Trace {
    /// Nothing walked yet.
    pub fn new() -> Self {
        Trace {
            stamps: [0; MAX_BLOCKS + 1],
            interrupted: 0,
            start: CpuId(0),
            end: CpuId(0),
        }
    }
}

impl Default for Trace {
    fn default() -> Self {
        Self::new()
    }
}

/// A walk compiled for one write ratio.
pub type Walk<C> = fn(&mut WorkingSet, C, Witness, &mut Trace);

/// The walk that writes one word in `ratio`'s period.
pub fn walk_of<C: Clock>(ratio: WriteRatio) -> Walk<C> {
    match ratio.period() {
        1 => walk::<C, 1>,
        2 => walk::<C, 2>,
        4 => walk::<C, 4>,
        8 => walk::<C, 8>,
        16 => walk::<C, 16>,
        32 => walk::<C, 32>,
        64 => walk::<C, 64>,
        128 => walk::<C, 128>,
        _ => walk::<C, 0>,
    }
}

#[inline(never)]
fn walk<C: Clock, const PERIOD: usize>(
    set: &mut WorkingSet,
    clock: C,
    witness: Witness,
    trace: &mut Trace,
) {
    let blocks = set.blocks();
    let mut interrupted = 0;
    let mut at = set.area.base();
    witness.arm();
    (trace.stamps[0], trace.start) = clock.stamp_on();
    for block in 0..blocks {
        let words = set.lines_of(block) * WORDS_OF_LINE;
        // SAFETY: the blocks together are the area, and `at` moves through it block by block.
        unsafe {
            walk_words::<PERIOD>(at, words);
            at = at.add(words);
        }
        if block + 1 < blocks {
            trace.stamps[block + 1] = clock.glance();
        }
        if witness.interrupted() {
            interrupted |= 1 << block;
            witness.arm();
        }
    }
    (trace.stamps[blocks], trace.end) = clock.stamp_on();
    // The last stamp belongs to the last block.
    if witness.interrupted() {
        interrupted |= 1 << (blocks - 1);
    }
    witness.disarm();
    trace.interrupted = interrupted;
}

/// Reads `words` words from `at` on and writes every `PERIOD`-th.
///
/// # Safety
/// All of them are mapped and not used by anyone else; `words` is a multiple of 512.
#[inline(always)]
unsafe fn walk_words<const PERIOD: usize>(at: *mut u64, words: usize) {
    // A chunk is a whole number of lines and of periods.
    let chunk = if PERIOD > WORDS_OF_LINE {
        PERIOD
    } else {
        WORDS_OF_LINE
    };
    let mut first = 0;
    while first < words {
        let mut word = 0;
        while word < chunk {
            // SAFETY: `first + word` is below `words`, by the caller's promise.
            unsafe {
                let place = at.add(first + word);
                let value = place.read_volatile();
                if PERIOD > 0 && word % PERIOD == 0 {
                    place.write_volatile(value.wrapping_add(1));
                }
            }
            word += 1;
        }
        first += chunk;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use machine::clock::Monotonic;

    fn walked(kib: u64, ratio: WriteRatio) -> (WorkingSet, Trace) {
        let mut set = WorkingSet::of(Area::map(Bytes::from_kib(kib)).unwrap());
        let mut trace = Trace::new();
        walk_of::<Monotonic>(ratio)(&mut set, Monotonic, Witness::blind(), &mut trace);
        (set, trace)
    }

    fn words(set: &WorkingSet) -> Vec<u64> {
        (0..set.area().size() / 8)
            // SAFETY: within the area.
            .map(|i| unsafe { set.area().base().add(i).read_volatile() })
            .collect()
    }

    #[test]
    fn a_walk_writes_the_words_that_its_ratio_says() {
        for period in WriteRatio::PERIODS {
            let ratio = WriteRatio::one_in(period).unwrap();
            for kib in [4, 48, 256, 260] {
                let (set, _) = walked(kib, ratio);
                for (index, word) in words(&set).into_iter().enumerate() {
                    // Mapping wrote 1 to the first word of every page.
                    let before = u64::from(index % 512 == 0);
                    let written = period != 0 && index % period as usize == 0;
                    assert_eq!(
                        word,
                        before + u64::from(written),
                        "{ratio}, {kib} KiB, word {index}"
                    );
                }
            }
        }
    }

    #[test]
    fn blocks_cover_the_set_once() {
        for (kib, blocks) in [
            (4, 1),
            (48, 12),
            (256, 64),
            (260, 33),
            (3072, 64),
            (4096, 64),
        ] {
            let set = WorkingSet::of(Area::map(Bytes::from_kib(kib)).unwrap());
            assert_eq!(set.blocks(), blocks, "{kib} KiB");
            let each: Vec<u64> = (0..set.blocks()).map(|b| set.lines_of(b) as u64).collect();
            assert_eq!(WorkingSet::lines_of_blocks(Bytes::from_kib(kib)), each);
            let lines: usize = (0..set.blocks()).map(|b| set.lines_of(b)).sum();
            assert_eq!(lines as u64 * 64, kib * 1024);
        }
    }

    #[test]
    fn the_times_of_a_walk_ascend() {
        let (set, trace) = walked(256, WriteRatio::DEFAULT);
        let stamps = &trace.stamps[..=set.blocks()];
        assert!(stamps.is_sorted());
        assert!(stamps[set.blocks()] > stamps[0]);
        assert_eq!(trace.interrupted, 0, "a blind witness sees nothing");
    }

    #[test]
    fn touching_stays_within_the_set() {
        for kib in [4, 12, 1024] {
            let set = WorkingSet::of(Area::map(Bytes::from_kib(kib)).unwrap());
            set.touch(64);
            set.touch(usize::MAX);
            set.touch(0);
        }
    }
}
