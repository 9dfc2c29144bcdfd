//! The lines of one cache: where a line is, and which one makes room.
//!
//! Up to 16 ways a set has a byte of each line's hash, by which all ways are searched at once
//! ([`bytes`]); the order of use, a hexadecimal digit a way in one word; and the lines. A cache of
//! more ways (fully associative ones, TLBs) is searched one by one.

#[allow(unsafe_code)]
mod bytes;
mod narrow;
mod wide;

use model::strategy::Replacement;
use narrow::Narrow;
pub(crate) use narrow::{Found, Place, Wanted};
use wide::Wide;

/// A line number with what is known of the line, in one word. Line numbers are below 2^60: a line
/// has 16 bytes at least.
pub(crate) type Entry = u64;

/// There is a line.
pub(crate) const VALID: Entry = 1;
/// It was changed, and the next level does not know.
pub(crate) const DIRTY: Entry = 2;
/// No cache but those between it and its processors, or behind it, holds it: E and M of MESI.
pub(crate) const SOLE: Entry = 4;
/// It was fetched before it was asked for, and not used since.
pub(crate) const EARLY: Entry = 8;

/// What of an entry is not the line.
const FLAGS: u32 = 4;

/// The line of an entry.
pub(crate) const fn line_of(entry: Entry) -> u64 {
    entry >> FLAGS
}

/// A line that is there, and nothing more.
const fn key(line: u64) -> Entry {
    line << FLAGS | VALID
}

/// What of an entry tells which line it is, and that it is there.
const KEY: Entry = !(DIRTY | SOLE | EARLY);

/// The lines of some caches, by cache, set and way.
#[derive(Clone, Default)]
pub(crate) struct Arrays {
    narrow: Narrow,
    caches: Vec<One>,
}

/// One of them.
#[derive(Clone)]
struct One {
    lines: Lines,
    ways: usize,
    replacement: Replacement,
    /// State of the generator for random replacement: xorshift64*, never 0.
    random: u64,
}

#[derive(Clone)]
enum Lines {
    Narrow(Place),
    Wide(Wide),
}

impl Arrays {
    /// One more cache, empty: its number is that of those before it. `ways` is 1 or more; for
    /// tree-PLRU a power of two up to 64.
    pub(crate) fn add(&mut self, sets: usize, ways: usize, replacement: Replacement, seed: u64) {
        let lines = match ways {
            0..=16 => Lines::Narrow(self.narrow.add(sets, ways, replacement)),
            _ => Lines::Wide(Wide::new(sets, ways)),
        };
        self.caches.push(One {
            lines,
            ways,
            replacement,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        });
    }

    /// Where a line is, and what is known of it; nothing changes.
    #[inline]
    pub(crate) fn find(&mut self, cache: usize, set: usize, line: u64) -> Option<(usize, Entry)> {
        match &mut self.caches[cache].lines {
            Lines::Narrow(place) => {
                let set = place.nth(set);
                let way = self.narrow.find(set, Wanted::new(line))?;
                Some((way, *self.narrow.entry(set, way)))
            }
            Lines::Wide(wide) => wide.find(set, line).map(|way| (way, *wide.entry(set, way))),
        }
    }

    /// A use of a line: it is looked up, and its place in the order of use changes. The entry, if
    /// it is there.
    #[inline]
    pub(crate) fn use_line(&mut self, cache: usize, set: usize, line: u64) -> Option<&mut Entry> {
        let one = &mut self.caches[cache];
        let replacement = one.replacement;
        match &mut one.lines {
            Lines::Narrow(place) => {
                let (set, wanted) = (place.nth(set), Wanted::new(line));
                self.narrow.use_line(*place, set, wanted, replacement)
            }
            Lines::Wide(wide) => wide.use_line(set, line, replacement),
        }
    }

    /// The entry of a way that is there.
    #[inline]
    pub(crate) fn entry(&mut self, cache: usize, set: usize, way: usize) -> &mut Entry {
        match &mut self.caches[cache].lines {
            Lines::Narrow(place) => self.narrow.entry(place.nth(set), way),
            Lines::Wide(wide) => wide.entry(set, way),
        }
    }

    /// Puts a line that is not there into its set. Returns what left for it: an entry without
    /// [`VALID`] where a way was empty.
    #[inline]
    pub(crate) fn put(&mut self, cache: usize, set: usize, line: u64, flags: Entry) -> Entry {
        let one = &mut self.caches[cache];
        let random = match one.replacement {
            Replacement::Random => one.draw(),
            _ => 0,
        };
        let how = (one.replacement, random);
        match &mut one.lines {
            Lines::Narrow(place) => {
                let set = place.nth(set);
                self.narrow.put(*place, set, Wanted::new(line), flags, how)
            }
            Lines::Wide(wide) => wide.put(set, line, flags, how),
        }
    }

    /// Takes a line out. Returns its entry.
    pub(crate) fn remove(&mut self, cache: usize, set: usize, way: usize) -> Entry {
        let one = &mut self.caches[cache];
        match &mut one.lines {
            Lines::Narrow(place) => {
                let set = place.nth(set);
                self.narrow.remove(*place, set, way, one.replacement)
            }
            Lines::Wide(wide) => wide.remove(set, way),
        }
    }

    /// Where the lines of a cache are that has at most 16 ways and replaces by LRU: for
    /// [`lru_use`](Self::lru_use) and [`lru_put`](Self::lru_put), if its number of sets is a power
    /// of two.
    pub(crate) fn lru_place(&self, cache: usize) -> Option<Place> {
        let one = &self.caches[cache];
        match &one.lines {
            Lines::Narrow(place) if one.replacement == Replacement::Lru => Some(*place),
            _ => None,
        }
    }

    /// [`use_line`](Self::use_line), with all that was found out before.
    #[inline(always)]
    pub(crate) fn lru_use(&mut self, set: Found, wanted: Wanted) -> Option<&mut Entry> {
        self.narrow.lru_use(set, wanted)
    }

    /// Fetches the beginning of a set into the caches of the machine that computes.
    #[inline(always)]
    pub(crate) fn prefetch(&self, set: Found) {
        self.narrow.prefetch(set);
    }

    /// Fetches all of a set likewise.
    #[inline(always)]
    pub(crate) fn prefetch_whole(&self, set: Found) {
        self.narrow.prefetch_whole(set);
    }

    /// Is a line there, likewise? Nothing changes.
    #[inline(always)]
    pub(crate) fn has(&self, set: Found, wanted: Wanted) -> bool {
        self.narrow.find(set, wanted).is_some()
    }

    /// Uses each of some lines in turn, or puts it there where it is not, likewise. Those that were
    /// not there are at the beginning of `lines` afterwards; returns how many. No line may be
    /// changed: what leaves is forgotten.
    #[inline(always)]
    pub(crate) fn lru_pass(&mut self, place: Place, lines: &mut [u64], flags: Entry) -> usize {
        self.narrow.lru_pass(place, lines, flags)
    }

    /// [`put`](Self::put), likewise.
    #[inline(always)]
    pub(crate) fn lru_put(
        &mut self,
        place: Place,
        set: Found,
        wanted: Wanted,
        flags: Entry,
    ) -> Entry {
        self.narrow.lru_put(place, set, wanted, flags)
    }
}

impl One {
    /// A way, each with equal chance.
    fn draw(&mut self) -> usize {
        let mut x = self.random;
        x ^= x >> 12;
        x ^= x << 25;
        x ^= x >> 27;
        self.random = x;
        let high = x.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 32;
        ((high * self.ways as u64) >> 32) as usize
    }
}

/// The tree of tree-PLRU: node k has its children at 2k and 2k + 1, the root is node 1, and bit k
/// says that the right half is to make room. A use makes every node on the way to it point away.
pub(super) mod tree {
    /// The tree after a use of a way.
    pub(crate) fn used(mut tree: u64, way: usize, ways: usize) -> u64 {
        let mut node = 1;
        let mut half = ways / 2;
        while half > 0 {
            let right = way & half != 0;
            tree = tree & !(1 << node) | u64::from(!right) << node;
            node = 2 * node + usize::from(right);
            half /= 2;
        }
        tree
    }

    /// The way that it points to.
    pub(crate) fn points_to(tree: u64, ways: usize) -> usize {
        let mut node = 1;
        while node < ways {
            node = 2 * node + (tree >> node & 1) as usize;
        }
        node - ways
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cache of one set.
    fn one(ways: usize, replacement: Replacement) -> Arrays {
        let mut arrays = Arrays::default();
        arrays.add(1, ways, replacement, 1);
        arrays
    }

    /// Lines 0, 1, … of one set, as they stand in a cache of this many ways after these uses.
    fn left_after(ways: usize, replacement: Replacement, uses: &[u64]) -> Vec<u64> {
        let mut array = one(ways, replacement);
        let mut left = Vec::new();
        for line in uses {
            if array.use_line(0, 0, *line).is_none() {
                let old = array.put(0, 0, *line, 0);
                left.extend((old & VALID != 0).then(|| line_of(old)));
            }
        }
        left
    }

    #[test]
    fn the_least_recently_used_line_makes_room_whatever_the_number_of_ways() {
        for ways in [1, 2, 3, 8, 9, 12, 16, 17, 40] {
            let mut uses: Vec<u64> = (0..ways as u64).collect();
            uses.push(0);
            uses.extend([100, 101]);
            // Line 0 was used again, so it is younger than all but what came after it.
            let expected = match ways {
                1 => vec![0, 100],
                2 => vec![1, 0],
                _ => vec![1, 2],
            };
            assert_eq!(left_after(ways, Replacement::Lru, &uses)[..2], expected);
        }
    }

    #[test]
    fn first_in_first_out_does_not_heed_uses() {
        for ways in [2, 8, 16, 20] {
            let mut uses: Vec<u64> = (0..ways as u64).collect();
            uses.extend([0, 0, 100, 0]);
            assert_eq!(left_after(ways, Replacement::Fifo, &uses), [0, 1]);
        }
    }

    /// Four ways: after 0, 1, 2, 3 the tree points to 0; a use of 0 makes it point to the other
    /// half, whose last use was 3.
    #[test]
    fn a_tree_points_away_from_uses() {
        let uses = [0, 1, 2, 3, 0, 4, 5];
        assert_eq!(left_after(4, Replacement::Plru, &uses), [2, 1]);
        let uses: Vec<u64> = (0..32).chain([0, 100]).collect();
        assert_eq!(left_after(32, Replacement::Plru, &uses), [16]);
    }

    #[test]
    fn random_replacement_takes_every_way_and_is_the_same_each_time() {
        for ways in [3, 16, 24] {
            let uses: Vec<u64> = (0..2000).collect();
            let left = left_after(ways, Replacement::Random, &uses);
            assert_eq!(left, left_after(ways, Replacement::Random, &uses));
            let ages: std::collections::BTreeSet<u64> = left
                .iter()
                .zip(ways as u64..)
                .map(|(line, now)| now - line)
                .collect();
            assert!(ages.len() > ways, "{ways}: {ages:?}");
        }
    }

    #[test]
    fn an_empty_way_is_filled_before_any_line_leaves() {
        for replacement in Replacement::ALL {
            for ways in [4, 16, 32] {
                let mut array = one(ways, *replacement);
                for line in 0..ways as u64 {
                    assert_eq!(array.put(0, 0, line, 0) & VALID, 0);
                }
                for line in [2, 0] {
                    let (way, _) = array.find(0, 0, line).unwrap();
                    assert_eq!(line_of(array.remove(0, 0, way)), line);
                    assert_eq!(array.find(0, 0, line), None);
                }
                for line in [50, 51] {
                    assert_eq!(array.put(0, 0, line, DIRTY) & VALID, 0, "{replacement:?}");
                }
                assert_eq!(array.put(0, 0, 52, 0) & VALID, VALID);
            }
        }
    }

    /// Lines whose bytes are alike are told apart.
    #[test]
    fn a_hash_is_not_taken_for_the_line() {
        let hash = |line: u64| Wanted::new(line).print;
        let alike: Vec<u64> = (0..).filter(|l| hash(*l) == hash(5)).take(9).collect();
        let mut array = one(8, Replacement::Lru);
        for line in &alike[..8] {
            array.put(0, 0, *line, 0);
        }
        for line in &alike[..8] {
            assert_eq!(line_of(array.find(0, 0, *line).unwrap().1), *line);
        }
        assert_eq!(array.find(0, 0, alike[8]), None);
    }
}
