//! Tournament trees: which of many entries has the smallest key, with logarithmic updates and no branch that depends on keys.
//!
//! A processor guesses branches ahead, and in a schedule it guesses wrong every other time: a wrong guess costs more than
//! all matches of an update.

use std::hint::select_unpredictable;

/// A tree of matches over entries with `u128` keys; [`Tree::NEVER`] is the key of an entry that does not compete.
#[derive(Clone, Debug)]
pub struct Tree {
    /// `matches[i]` are the keys that meet in node `i`: the winners of the nodes `2 i` and `2 i + 1`. Node 1 is the final;
    /// the nodes from `width` on are entries. `matches[0]` is not used.
    matches: Vec<[u128; 2]>,
    /// How many entries there is room for: a power of two, at least 2.
    width: usize,
    best: u128,
}

impl Tree {
    /// The key of an entry that does not compete.
    pub const NEVER: u128 = u128::MAX;

    /// Nobody competes yet.
    pub fn new(entries: usize) -> Self {
        Self::with_room(entries, entries)
    }

    /// As [`Tree::new`], and it can [grow](Tree::double) up to `most` entries without allocating.
    pub fn with_room(entries: usize, most: usize) -> Self {
        let width = entries.next_power_of_two().max(2);
        let mut matches = Vec::with_capacity(most.next_power_of_two().max(width));
        matches.resize(width, [Self::NEVER; 2]);
        Tree {
            matches,
            width,
            best: Self::NEVER,
        }
    }

    /// How many entries there is room for.
    #[inline]
    pub fn width(&self) -> usize {
        self.width
    }

    /// The smallest key; [`Tree::NEVER`] if nobody competes.
    #[inline(always)]
    pub fn best(&self) -> u128 {
        self.best
    }

    /// The key of an entry.
    #[inline]
    pub fn key_of(&self, entry: usize) -> u128 {
        let node = self.width + entry;
        self.matches[node >> 1][node & 1]
    }

    /// Gives an entry another key.
    ///
    /// Step by step and not as a loop, in which the compiler turns the choice of a winner into a branch.
    #[inline(always)]
    pub fn set(&mut self, entry: usize, key: u128) {
        let (mut node, mut winner) = (self.width + entry, key);
        macro_rules! step {
            () => {
                winner = self.meet(node, winner);
                node >>= 1;
                if node <= 1 {
                    self.best = winner;
                    return;
                }
            };
        }
        step!();
        step!();
        step!();
        step!();
        step!();
        step!();
        self.climb_on(node, winner);
    }

    /// The rest of a tall tree.
    #[inline(never)]
    fn climb_on(&mut self, mut node: usize, mut winner: u128) {
        while node > 1 {
            winner = self.meet(node, winner);
            node >>= 1;
        }
        self.best = winner;
    }

    /// Enters the winner of a node into its match; gives the winner of that.
    #[inline(always)]
    fn meet(&mut self, node: usize, winner: u128) -> u128 {
        let here = &mut self.matches[node >> 1];
        here[node & 1] = winner;
        let other = here[node & 1 ^ 1];
        select_key(other < winner, other, winner)
    }

    /// Makes room for twice as many entries.
    #[cold]
    pub fn double(&mut self) {
        let width = self.width;
        self.width = 2 * width;
        self.matches.resize(self.width, [Self::NEVER; 2]);
        self.matches.copy_within(width / 2..width, width);
        self.play_all();
    }

    /// Gives all entries other keys, by what they are now.
    #[inline]
    fn change_all(&mut self, change: impl Fn(usize, u128) -> u128) {
        let first = self.width / 2;
        for (pair, keys) in self.matches[first..].iter_mut().enumerate() {
            for (side, key) in keys.iter_mut().enumerate() {
                *key = change(2 * pair + side, *key);
            }
        }
        self.play_all();
    }

    #[inline]
    fn play_all(&mut self) {
        for node in (2..self.width).rev() {
            let [left, right] = self.matches[node];
            self.matches[node >> 1][node & 1] = select_key(left < right, left, right);
        }
        let [left, right] = self.matches[1];
        self.best = select_key(left < right, left, right);
    }
}

/// `a` if it is first, else `b`; without a branch.
///
/// By halves: the compiler forgets for the whole that this must not become a branch.
#[inline(always)]
pub(crate) fn select_key(first: bool, a: u128, b: u128) -> u128 {
    let above = select_unpredictable(first, (a >> 64) as u64, (b >> 64) as u64);
    let below = select_unpredictable(first, a as u64, b as u64);
    u128::from(above) << 64 | u128::from(below)
}

/// A tournament over `n` entries with 64-bit keys; ties go to the lower entry.
///
/// Entries and keys are packed into one `u128` (key above, entry below), so that a match is one comparison.
#[derive(Clone, Debug)]
pub struct Tournament(Tree);

impl Tournament {
    /// The key of an entry that does not compete.
    pub const NEVER: u64 = u64::MAX;

    /// Nobody competes yet.
    pub fn new(entries: usize) -> Self {
        let mut tree = Tree::new(entries);
        for entry in 0..entries {
            tree.set(entry, pack(Self::NEVER, entry));
        }
        Tournament(tree)
    }

    /// Gives an entry another key.
    #[inline(always)]
    pub fn set(&mut self, entry: usize, key: u64) {
        self.0.set(entry, pack(key, entry));
    }

    /// The smallest key; [`Tournament::NEVER`] if nobody competes.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        (self.0.best() >> 64) as u64
    }

    /// The entry with the smallest key, the lowest of several.
    #[inline(always)]
    pub fn entry(&self) -> usize {
        self.0.best() as u64 as usize
    }

    /// Adds to the keys of those entries that compete and are chosen.
    #[inline]
    pub fn delay(&mut self, by: u64, chosen: impl Fn(usize) -> bool) {
        self.0.change_all(|entry, key| {
            let time = (key >> 64) as u64;
            let moves = (time != Self::NEVER) & chosen(entry);
            pack(time + select_unpredictable(moves, by, 0), entry)
        });
    }

    /// The key of an entry.
    #[inline]
    pub fn key_of(&self, entry: usize) -> u64 {
        (self.0.key_of(entry) >> 64) as u64
    }
}

#[inline(always)]
const fn pack(key: u64, entry: usize) -> u128 {
    (key as u128) << 64 | entry as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_smallest_key_wins_and_ties_go_to_the_lower_entry(
            n in 1usize..40,
            steps in prop::collection::vec((0usize..40, prop_oneof![0u64..8, Just(Tournament::NEVER)]), 1..60),
        ) {
            let mut tree = Tournament::new(n);
            let mut keys = vec![Tournament::NEVER; n];
            for (entry, key) in steps {
                let entry = entry % n;
                tree.set(entry, key);
                keys[entry] = key;
                let (best, least) = keys.iter().enumerate().min_by_key(|(i, k)| (**k, *i)).unwrap();
                prop_assert_eq!((tree.entry(), tree.key()), (best, *least));
                prop_assert_eq!(tree.key_of(entry), key);
            }
        }
    }

    #[test]
    fn a_tree_that_doubles_keeps_its_keys() {
        let mut tree = Tree::with_room(2, 8);
        for entry in 0..8 {
            if entry == tree.width() {
                tree.double();
            }
            tree.set(entry, 100 - entry as u128);
            assert_eq!(tree.best(), 100 - entry as u128);
        }
        assert_eq!((tree.width(), tree.key_of(0), tree.key_of(7)), (8, 100, 93));
    }
}
