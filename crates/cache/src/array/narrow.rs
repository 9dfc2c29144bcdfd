//! Sets of up to 16 ways.

use super::{Entry, KEY, VALID, bytes, key, tree};
use model::strategy::Replacement;

/// A one in each digit, and the highest bit of each digit.
const DIGITS: u64 = 0x1111_1111_1111_1111;
const TOP_DIGITS: u64 = 0x8888_8888_8888_8888;

/// The sets of caches of up to 16 ways, one cache after the other.
#[derive(Clone, Default)]
pub(super) struct Narrow {
    sets: Vec<Set>,
}

/// A set. All that a search reads, and the first ways, which are filled first, lie in one line of
/// most machines.
#[derive(Clone)]
#[repr(C, align(64))]
struct Set {
    /// A byte of each line's hash; of empty ways, any.
    prints: [u8; 16],
    /// The order of use, the latest in the lowest digit, empty ways in the highest of the ways of
    /// the cache, and beyond those anything; for tree-PLRU the tree.
    order: u64,
    /// Those beyond the ways of the cache stay empty.
    entries: [Entry; 16],
}

/// Where the sets of one cache are.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    first: usize,
    /// One less than the number of sets: with it, that is a power of two.
    mask: usize,
    /// Where the last digit of the order is.
    last: u32,
}

/// A line that is looked for or put.
#[derive(Clone, Copy)]
pub(crate) struct Wanted {
    line: u64,
    pub(super) print: u8,
}

/// A set of a cache, by which it is found again.
#[derive(Clone, Copy)]
pub(crate) struct Found(usize);

impl Wanted {
    #[inline(always)]
    pub(crate) fn new(line: u64) -> Self {
        Wanted {
            line,
            print: (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) as u8,
        }
    }
}

impl Place {
    fn ways(self) -> usize {
        self.last as usize / 4 + 1
    }

    /// The set of a line, where the number of sets is a power of two.
    #[inline(always)]
    pub(crate) fn of(self, wanted: Wanted) -> Found {
        Found(self.first + (wanted.line as usize & self.mask))
    }

    #[inline(always)]
    pub(super) fn nth(self, set: usize) -> Found {
        Found(self.first + set)
    }
}

impl Narrow {
    /// One more cache.
    pub(super) fn add(&mut self, sets: usize, ways: usize, replacement: Replacement) -> Place {
        let last = 4 * (ways as u32 - 1);
        let first = self.sets.len();
        let set = Set {
            prints: [0; 16],
            order: match replacement {
                Replacement::Plru => 0,
                // The first way is the last in the order.
                _ => 0x0123_4567_89ab_cdef >> (60 - last),
            },
            entries: [0; 16],
        };
        self.sets.resize(first + sets, set);
        Place {
            first,
            mask: sets - 1,
            last,
        }
    }

    /// Fetches what a search reads of a set, and its first ways, into the caches of the machine
    /// that computes. All of it for many sets at a time would drive out what was fetched first.
    #[inline(always)]
    pub(super) fn prefetch(&self, set: Found) {
        bytes::prefetch(&self.sets[set.0]);
    }

    /// Fetches all of a set likewise.
    #[inline(always)]
    pub(super) fn prefetch_whole(&self, set: Found) {
        let set = &self.sets[set.0];
        bytes::prefetch(set);
        // Where the other two lines of 64 bytes begin.
        for way in [5, 13] {
            bytes::prefetch(&set.entries[way]);
        }
    }

    /// The way of a line.
    #[inline(always)]
    pub(super) fn find(&self, set: Found, wanted: Wanted) -> Option<usize> {
        self.sets[set.0].find(wanted)
    }

    #[inline(always)]
    pub(super) fn entry(&mut self, set: Found, way: usize) -> &mut Entry {
        &mut self.sets[set.0].entries[way & 15]
    }

    /// Looks a line up and makes it the latest. Its entry.
    #[inline(always)]
    pub(super) fn lru_use(&mut self, set: Found, wanted: Wanted) -> Option<&mut Entry> {
        let set = &mut self.sets[set.0];
        let way = set.find(wanted)?;
        set.bring_forward(way);
        Some(&mut set.entries[way & 15])
    }

    /// The same with another replacement.
    #[inline]
    pub(super) fn use_line(
        &mut self,
        place: Place,
        set: Found,
        wanted: Wanted,
        replacement: Replacement,
    ) -> Option<&mut Entry> {
        let set = &mut self.sets[set.0];
        let way = set.find(wanted)?;
        match replacement {
            Replacement::Lru => set.bring_forward(way),
            Replacement::Plru => set.order = tree::used(set.order, way, place.ways()),
            Replacement::Fifo | Replacement::Random => {}
        }
        Some(&mut set.entries[way & 15])
    }

    /// Puts a line in the place of the last in the order, and makes it the latest. What was there.
    #[inline(always)]
    pub(super) fn lru_put(
        &mut self,
        place: Place,
        set: Found,
        wanted: Wanted,
        flags: Entry,
    ) -> Entry {
        self.sets[set.0].put_last(place, wanted, flags)
    }

    /// Uses each of some lines in turn, or puts it there where it is not, and keeps those that were
    /// not there at the beginning of `lines`. Returns how many. None of the lines is changed.
    #[inline(always)]
    pub(super) fn lru_pass(&mut self, place: Place, lines: &mut [u64], flags: Entry) -> usize {
        let mut missed = 0;
        for at in 0..lines.len() {
            let line = lines[at];
            let wanted = Wanted::new(line);
            let set = &mut self.sets[place.of(wanted).0];
            match set.find(wanted) {
                Some(way) => set.bring_forward(way),
                None => {
                    set.put_last(place, wanted, flags);
                    lines[missed] = line;
                    missed += 1;
                }
            }
        }
        missed
    }

    /// The same with another replacement.
    pub(super) fn put(
        &mut self,
        place: Place,
        set: Found,
        wanted: Wanted,
        flags: Entry,
        (replacement, random): (Replacement, usize),
    ) -> Entry {
        let ways = place.ways();
        match replacement {
            Replacement::Lru | Replacement::Fifo => self.lru_put(place, set, wanted, flags),
            Replacement::Plru => {
                let set = &mut self.sets[set.0];
                let empty = set.empty(ways);
                let way = empty.unwrap_or_else(|| tree::points_to(set.order, ways));
                set.order = tree::used(set.order, way, ways);
                set.replace(way, wanted, flags)
            }
            Replacement::Random => {
                let set = &mut self.sets[set.0];
                set.replace(set.empty(ways).unwrap_or(random), wanted, flags)
            }
        }
    }

    /// Takes a line out. Its entry.
    pub(super) fn remove(
        &mut self,
        place: Place,
        set: Found,
        way: usize,
        replacement: Replacement,
    ) -> Entry {
        let set = &mut self.sets[set.0];
        // The others look for empty ways.
        if matches!(replacement, Replacement::Lru | Replacement::Fifo) {
            set.send_back(way, place.last);
        }
        std::mem::take(&mut set.entries[way & 15])
    }
}

impl Set {
    #[inline(always)]
    fn find(&self, wanted: Wanted) -> Option<usize> {
        let mut alike = bytes::equal(&self.prints, wanted.print);
        // Lines with equal hashes are rare, so that the first one mostly is the line.
        while alike != 0 {
            let way = alike.trailing_zeros() as usize;
            if self.entries[way & 15] & KEY == key(wanted.line) {
                return Some(way);
            }
            alike &= alike - 1;
        }
        None
    }

    /// Puts a line in the place of the last in the order, and makes it the latest. What was there.
    #[inline(always)]
    fn put_last(&mut self, place: Place, wanted: Wanted, flags: Entry) -> Entry {
        let way = self.order >> place.last & 15;
        self.order = self.order << 4 | way;
        self.replace(way as usize, wanted, flags)
    }

    #[inline(always)]
    fn replace(&mut self, way: usize, wanted: Wanted, flags: Entry) -> Entry {
        self.prints[way & 15] = wanted.print;
        std::mem::replace(&mut self.entries[way & 15], key(wanted.line) | flags)
    }

    fn empty(&self, ways: usize) -> Option<usize> {
        self.entries[..ways].iter().position(|e| e & VALID == 0)
    }

    /// All bits up to those of the digit of a way in the order.
    #[inline(always)]
    fn up_to(&self, way: usize) -> u64 {
        let differ = self.order ^ (way as u64 * DIGITS);
        // The lowest bit marks a digit without difference; higher ones may be wrong.
        let alike = differ.wrapping_sub(DIGITS) & !differ & TOP_DIGITS;
        alike ^ alike.wrapping_sub(1)
    }

    /// Makes a way the latest.
    #[inline(always)]
    fn bring_forward(&mut self, way: usize) {
        let moved = self.order << 4 | way as u64;
        self.order ^= (self.order ^ moved) & self.up_to(way);
    }

    /// Puts an empty way where the next line goes: at `last`, four times its place in the order.
    fn send_back(&mut self, way: usize, last: u32) {
        let all = self.order & (u64::MAX >> (60 - last));
        let up_to = self.up_to(way);
        let younger = all & up_to >> 4;
        let older = (all & !up_to) >> 4;
        self.order = (way as u64) << last | older | younger;
    }
}
