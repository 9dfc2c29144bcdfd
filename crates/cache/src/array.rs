//! The lines of one cache: where a line is, and which one makes room.
//!
//! Up to 16 ways a set is three things side by side: a byte of each line's hash, by which eight
//! ways are searched at once; the order of use, a hexadecimal digit a way in one word; the lines.
//! A cache of more ways (fully associative ones, TLBs) is searched one by one.

mod narrow;
mod wide;

use model::strategy::Replacement;
use narrow::Narrow;
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

/// A byte that tells most lines of a set apart. Never 0, which stands for an empty way.
fn print(line: u64) -> u64 {
    (line.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 56) | 1
}

/// The lines of one cache, by set and way.
#[derive(Clone)]
pub(crate) struct Array {
    lines: Lines,
    ways: usize,
    replacement: Replacement,
    /// State of the generator for random replacement: xorshift64*, never 0.
    random: u64,
}

#[derive(Clone)]
enum Lines {
    Eight(Narrow<8, 1>),
    Sixteen(Narrow<16, 2>),
    Wide(Wide),
}

/// The same call on whichever lines there are.
macro_rules! on {
    ($lines:expr, $narrow:ident => $few:expr, $wide:ident => $many:expr) => {
        match $lines {
            Lines::Eight($narrow) => $few,
            Lines::Sixteen($narrow) => $few,
            Lines::Wide($wide) => $many,
        }
    };
}

impl Array {
    /// An empty cache. `ways` is 1 or more; for tree-PLRU a power of two up to 64.
    pub(crate) fn new(sets: usize, ways: usize, replacement: Replacement, seed: u64) -> Self {
        let lines = match ways {
            0..=8 => Lines::Eight(Narrow::new(sets, replacement)),
            9..=16 => Lines::Sixteen(Narrow::new(sets, replacement)),
            _ => Lines::Wide(Wide::new(sets, ways)),
        };
        Array {
            lines,
            ways,
            replacement,
            random: seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1,
        }
    }

    /// Where a line is, and what is known of it; nothing changes.
    #[inline]
    pub(crate) fn find(&mut self, set: usize, line: u64) -> Option<(usize, Entry)> {
        on!(&mut self.lines,
            narrow => narrow.find(set, line).map(|way| (way, *narrow.entry(set, way))),
            wide => wide.find(set, line).map(|way| (way, *wide.entry(set, way))))
    }

    /// A use of a line: it is looked up, and its place in the order of use changes. The entry, if
    /// it is there.
    #[inline]
    pub(crate) fn use_line(&mut self, set: usize, line: u64) -> Option<&mut Entry> {
        let replacement = self.replacement;
        let ways = self.ways;
        on!(&mut self.lines,
            narrow => narrow.use_line(set, line, replacement, ways),
            wide => wide.use_line(set, line, replacement))
    }

    /// The entry of a way that is there.
    pub(crate) fn entry(&mut self, set: usize, way: usize) -> &mut Entry {
        on!(&mut self.lines,
            narrow => narrow.entry(set, way),
            wide => wide.entry(set, way))
    }

    /// Puts a line that is not there into its set. Returns what left for it: an entry without
    /// [`VALID`] where a way was empty.
    pub(crate) fn put(&mut self, set: usize, line: u64, flags: Entry) -> Entry {
        let random = match self.replacement {
            Replacement::Random => self.draw(),
            _ => 0,
        };
        let (replacement, ways) = (self.replacement, self.ways);
        on!(&mut self.lines,
            narrow => narrow.put(set, key(line) | flags, replacement, ways, random),
            wide => wide.put(set, line, flags, replacement, random))
    }

    /// Takes a line out. Returns its entry.
    pub(crate) fn remove(&mut self, set: usize, way: usize) -> Entry {
        let (replacement, ways) = (self.replacement, self.ways);
        on!(&mut self.lines,
            narrow => narrow.remove(set, way, replacement, ways),
            wide => wide.remove(set, way))
    }

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

    /// Lines 0, 1, … of one set, as they stand in a cache of this many ways after these uses.
    fn left_after(ways: usize, replacement: Replacement, uses: &[u64]) -> Vec<u64> {
        let mut array = Array::new(1, ways, replacement, 1);
        let mut left = Vec::new();
        for line in uses {
            if array.use_line(0, *line).is_none() {
                let old = array.put(0, *line, 0);
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
                let mut array = Array::new(1, ways, *replacement, 1);
                for line in 0..ways as u64 {
                    assert_eq!(array.put(0, line, 0) & VALID, 0);
                }
                for line in [2, 0] {
                    let (way, _) = array.find(0, line).unwrap();
                    assert_eq!(line_of(array.remove(0, way)), line);
                    assert_eq!(array.find(0, line), None);
                }
                for line in [50, 51] {
                    assert_eq!(array.put(0, line, DIRTY) & VALID, 0, "{replacement:?}");
                }
                assert_eq!(array.put(0, 52, 0) & VALID, VALID);
            }
        }
    }

    /// Lines whose bytes are alike are told apart.
    #[test]
    fn a_hash_is_not_taken_for_the_line() {
        let alike: Vec<u64> = (0..).filter(|l| print(*l) == print(5)).take(9).collect();
        let mut array = Array::new(1, 8, Replacement::Lru, 1);
        for line in &alike[..8] {
            array.put(0, *line, 0);
        }
        for line in &alike[..8] {
            assert_eq!(line_of(array.find(0, *line).unwrap().1), *line);
        }
        assert_eq!(array.find(0, alike[8]), None);
    }
}
