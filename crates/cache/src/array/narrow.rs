//! Sets of up to 16 ways.

use super::{Entry, KEY, VALID, key, line_of, print, tree};
use model::strategy::Replacement;

/// A one in each byte, and the highest bit of each byte.
const BYTES: u64 = 0x0101_0101_0101_0101;
const TOPS: u64 = 0x8080_8080_8080_8080;
/// A one in each digit, and the highest bit of each digit.
const DIGITS: u64 = 0x1111_1111_1111_1111;
const TOP_DIGITS: u64 = 0x8888_8888_8888_8888;

/// Sets of up to `W` ways: `P` words of hashes, eight a word. What is searched lies apart from the
/// lines, so that a cache's hashes and orders stay in the caches of the machine that computes. Ways
/// beyond those of the cache stay empty.
#[derive(Clone)]
pub(super) struct Narrow<const W: usize, const P: usize> {
    heads: Vec<Head<P>>,
    entries: Vec<[Entry; W]>,
}

/// What is searched of a set.
#[derive(Clone)]
struct Head<const P: usize> {
    prints: [u64; P],
    /// The order of use, the latest in the lowest digit, empty ways in the highest of the ways of
    /// the cache; for tree-PLRU the tree.
    order: u64,
}

impl<const W: usize, const P: usize> Narrow<W, P> {
    pub(super) fn new(sets: usize, replacement: Replacement) -> Self {
        let head = Head {
            prints: [0; P],
            order: match replacement {
                Replacement::Plru => 0,
                _ => 0xfedc_ba98_7654_3210,
            },
        };
        Narrow {
            heads: vec![head; sets],
            entries: vec![[0; W]; sets],
        }
    }

    /// The way of a line.
    #[inline]
    pub(super) fn find(&self, set: usize, line: u64) -> Option<usize> {
        let wanted = key(line);
        let pattern = print(line) * BYTES;
        for (word, prints) in self.heads[set].prints.iter().enumerate() {
            let differ = prints ^ pattern;
            // The lowest bit marks a byte without difference; higher ones may be wrong, so that
            // each is looked up.
            let mut alike = differ.wrapping_sub(BYTES) & !differ & TOPS;
            while alike != 0 {
                let way = (8 * word + alike.trailing_zeros() as usize / 8) & (W - 1);
                if self.entries[set][way] & KEY == wanted {
                    return Some(way);
                }
                alike &= alike - 1;
            }
        }
        None
    }

    pub(super) fn entry(&mut self, set: usize, way: usize) -> &mut Entry {
        &mut self.entries[set][way]
    }

    #[inline]
    pub(super) fn use_line(
        &mut self,
        set: usize,
        line: u64,
        replacement: Replacement,
        ways: usize,
    ) -> Option<&mut Entry> {
        let way = self.find(set, line)?;
        let head = &mut self.heads[set];
        match replacement {
            Replacement::Lru => head.bring_forward(way),
            Replacement::Plru => head.order = tree::used(head.order, way, ways),
            Replacement::Fifo | Replacement::Random => {}
        }
        Some(&mut self.entries[set][way & (W - 1)])
    }

    #[inline]
    pub(super) fn put(
        &mut self,
        set: usize,
        entry: Entry,
        replacement: Replacement,
        ways: usize,
        random: usize,
    ) -> Entry {
        let way = match replacement {
            Replacement::Lru | Replacement::Fifo => {
                let head = &mut self.heads[set];
                let way = ((head.order >> (4 * (ways - 1))) & 15) as usize;
                head.bring_forward(way);
                way
            }
            Replacement::Plru => {
                let way = self.empty(set, ways);
                let head = &mut self.heads[set];
                let way = way.unwrap_or_else(|| tree::points_to(head.order, ways));
                head.order = tree::used(head.order, way, ways);
                way
            }
            Replacement::Random => self.empty(set, ways).unwrap_or(random),
        };
        self.heads[set].mark(way, print(line_of(entry)));
        std::mem::replace(&mut self.entries[set][way & (W - 1)], entry)
    }

    pub(super) fn remove(
        &mut self,
        set: usize,
        way: usize,
        replacement: Replacement,
        ways: usize,
    ) -> Entry {
        let head = &mut self.heads[set];
        // The others look for empty ways.
        if matches!(replacement, Replacement::Lru | Replacement::Fifo) {
            head.send_back(way, ways);
        }
        head.mark(way, 0);
        std::mem::take(&mut self.entries[set][way])
    }

    fn empty(&self, set: usize, ways: usize) -> Option<usize> {
        self.entries[set][..ways]
            .iter()
            .position(|e| e & VALID == 0)
    }
}

impl<const P: usize> Head<P> {
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
