//! A set of up to 16 ways.

use super::{Entry, KEY, VALID, key, print, tree};
use model::strategy::Replacement;

/// A one in each byte, and the highest bit of each byte.
const BYTES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
/// A one in each digit, and the highest bit of each digit.
const DIGITS: u64 = 0x1111_1111_1111_1111;
const TOP_DIGITS: u64 = 0x8888_8888_8888_8888;

/// One set: `W` ways in `P` words of hashes, eight a word. Ways beyond those of the cache stay
/// empty.
#[derive(Clone, Copy)]
pub(super) struct Set<const W: usize, const P: usize> {
    prints: [u64; P],
    /// The order of use, the latest in the lowest digit, empty ways in the highest of the ways of
    /// the cache; for tree-PLRU the tree.
    order: u64,
    entries: [Entry; W],
}

impl<const W: usize, const P: usize> Set<W, P> {
    pub(super) fn new(replacement: Replacement) -> Self {
        Set {
            prints: [0; P],
            order: match replacement {
                Replacement::Plru => 0,
                _ => 0xfedc_ba98_7654_3210,
            },
            entries: [0; W],
        }
    }

    /// The way of a line.
    #[inline]
    pub(super) fn find(&self, line: u64) -> Option<usize> {
        let wanted = key(line);
        let pattern = print(line) * BYTES;
        for (word, prints) in self.prints.iter().enumerate() {
            let differ = prints ^ pattern;
            // The lowest bit marks a byte without difference; higher ones may be wrong, so that
            // each is looked up.
            let mut alike = differ.wrapping_sub(BYTES) & !differ & TOPS;
            while alike != 0 {
                let way = (8 * word + alike.trailing_zeros() as usize / 8) & (W - 1);
                if self.entries[way] & KEY == wanted {
                    return Some(way);
                }
                alike &= alike - 1;
            }
        }
        None
    }

    pub(super) fn entry(&self, way: usize) -> Entry {
        self.entries[way]
    }

    pub(super) fn entry_mut(&mut self, way: usize) -> &mut Entry {
        &mut self.entries[way]
    }

    #[inline]
    pub(super) fn use_line(
        &mut self,
        line: u64,
        replacement: Replacement,
        ways: usize,
    ) -> Option<&mut Entry> {
        let way = self.find(line)?;
        match replacement {
            Replacement::Lru => self.bring_forward(way),
            Replacement::Plru => self.order = tree::used(self.order, way, ways),
            Replacement::Fifo | Replacement::Random => {}
        }
        Some(&mut self.entries[way & (W - 1)])
    }

    #[inline]
    pub(super) fn put(
        &mut self,
        line: u64,
        flags: Entry,
        replacement: Replacement,
        ways: usize,
        random: usize,
    ) -> Entry {
        let way = match replacement {
            Replacement::Lru | Replacement::Fifo => {
                let way = (self.order >> (4 * (ways - 1)) & 15) as usize;
                self.bring_forward(way);
                way
            }
            Replacement::Plru => {
                let way = self.empty(ways);
                let way = way.unwrap_or_else(|| tree::points_to(self.order, ways));
                self.order = tree::used(self.order, way, ways);
                way
            }
            Replacement::Random => self.empty(ways).unwrap_or(random),
        };
        self.mark(way, print(line));
        std::mem::replace(&mut self.entries[way & (W - 1)], key(line) | flags)
    }

    pub(super) fn remove(&mut self, way: usize, replacement: Replacement, ways: usize) -> Entry {
        // The others look for empty ways.
        if matches!(replacement, Replacement::Lru | Replacement::Fifo) {
            self.send_back(way, ways);
        }
        self.mark(way, 0);
        std::mem::take(&mut self.entries[way])
    }

    fn empty(&self, ways: usize) -> Option<usize> {
        self.entries[..ways].iter().position(|e| e & VALID == 0)
    }

    /// Writes down the hash of a way.
    #[inline]
    fn mark(&mut self, way: usize, print: u64) {
        let shift = 8 * (way % 8);
        let word = &mut self.prints[(way / 8) & (P - 1)];
        *word = *word & !(0xff << shift) | print << shift;
    }

    /// Four times the place of a way in the order.
    #[inline]
    fn place(&self, way: usize) -> u32 {
        let differ = self.order ^ (way as u64 * DIGITS);
        let alike = differ.wrapping_sub(DIGITS) & !differ & TOP_DIGITS;
        alike.trailing_zeros() & !3 & 63
    }

    #[inline]
    fn bring_forward(&mut self, way: usize) {
        let place = self.place(way);
        let younger = self.order & ((1 << place) - 1);
        let older = self.order & !(u64::MAX >> (60 - place));
        self.order = older | younger << 4 | way as u64;
    }

    /// Puts an empty way where the next line goes.
    fn send_back(&mut self, way: usize, ways: usize) {
        let place = self.place(way);
        let last = 4 * (ways as u32 - 1);
        let younger = self.order & ((1 << place) - 1);
        let beyond = self.order & !(u64::MAX >> (60 - last));
        let all = self.order & (u64::MAX >> (60 - last));
        let older = (all >> place >> 4) << place;
        self.order = beyond | (way as u64) << last | older | younger;
    }
}
