//! Tournament trees: which of many entries has the smallest key, with logarithmic updates and no
//! branch that depends on keys.
//!
//! A processor guesses branches ahead, and in a schedule it guesses wrong every other time: a wrong
//! guess costs more than all matches of an update. Four keys meet in a match: that takes half as
//! many steps as two would, and no more comparisons.

use std::hint::select_unpredictable;

/// What entries compete by: a number of 64 or 128 bits, the smaller the better.
pub trait Key: Copy + Ord + std::fmt::Debug {
    /// The key of an entry that does not compete.
    const NEVER: Self;
    /// The smaller of two; without a branch.
    fn smaller(a: Self, b: Self) -> Self;
}

impl Key for u64 {
    const NEVER: Self = u64::MAX;
    #[inline(always)]
    fn smaller(a: Self, b: Self) -> Self {
        select_unpredictable(a < b, a, b)
    }
}

impl Key for u128 {
    const NEVER: Self = u128::MAX;
    #[inline(always)]
    fn smaller(a: Self, b: Self) -> Self {
        select_key(a < b, a, b)
    }
}

/// A tree of matches over entries with keys.
#[derive(Clone, Debug)]
pub struct Tree<K = u128> {
    /// The keys that meet. Match 0 is the final; the winner of match `i` goes on to match
    /// `(i - 1) / 4`, where it takes place `(i - 1) % 4`; the matches from `first` on are those of
    /// the entries. The keys of the final stand in `last`.
    matches: Vec<[K; 4]>,
    last: [K; 4],
    /// The first match of entries: all matches of the rounds after theirs come before it.
    first: usize,
    /// How many matches of entries there may ever be.
    most: usize,
    best: K,
}

impl Tree {
    /// The key of an entry that does not compete.
    pub const NEVER: u128 = u128::MAX;
}

impl<K: Key> Tree<K> {
    /// Nobody competes yet.
    pub fn new(entries: usize) -> Self {
        Self::with_room(entries, entries)
    }

    /// As [`Tree::new`], and it can [grow](Tree::grow) up to `most` entries without allocating.
    pub fn with_room(entries: usize, most: usize) -> Self {
        let matches_of = |entries: usize| entries.div_ceil(4).max(1);
        let most = matches_of(most.max(entries));
        let (now, first) = (matches_of(entries), first_of(matches_of(entries)));
        let mut matches = Vec::with_capacity(first_of(most) + most);
        matches.resize(first + now, [K::NEVER; 4]);
        Tree {
            matches,
            last: [K::NEVER; 4],
            first,
            most,
            best: K::NEVER,
        }
    }

    /// How many entries there is room for.
    #[inline]
    pub fn width(&self) -> usize {
        4 * (self.matches.len() - self.first)
    }

    /// The smallest key; [`Key::NEVER`] if nobody competes.
    #[inline(always)]
    pub fn best(&self) -> K {
        self.best
    }

    /// The key of an entry.
    #[inline]
    pub fn key_of(&self, entry: usize) -> K {
        match self.first + entry / 4 {
            0 => self.last[entry % 4],
            at => self.matches[at][entry % 4],
        }
    }

    /// Gives an entry another key.
    ///
    /// Step by step and not as a loop, in which the compiler turns the choice of a winner into a
    /// branch.
    #[inline(always)]
    pub fn set(&mut self, entry: usize, key: K) {
        let (mut at, mut place, mut winner) = (self.first + entry / 4, entry % 4, key);
        macro_rules! step {
            () => {
                if at == 0 {
                    return self.decide(place, winner);
                }
                winner = meet(&mut self.matches[at], place, winner);
                (at, place) = ((at - 1) / 4, (at - 1) % 4);
            };
        }
        step!();
        step!();
        step!();
        self.climb_on(at, place, winner);
    }

    /// The rest of a tall tree.
    #[inline(never)]
    fn climb_on(&mut self, mut at: usize, mut place: usize, mut winner: K) {
        while at > 0 {
            winner = meet(&mut self.matches[at], place, winner);
            (at, place) = ((at - 1) / 4, (at - 1) % 4);
        }
        self.decide(place, winner);
    }

    /// Enters a key into the final.
    #[inline(always)]
    fn decide(&mut self, place: usize, key: K) {
        self.best = meet(&mut self.last, place, key);
    }

    /// Makes room for four times as many entries, or for the most that were announced. The tree is
    /// as wide as its rounds allow.
    #[cold]
    pub fn grow(&mut self) {
        let (old_first, old) = (self.first, self.matches.len() - self.first);
        self.matches[0] = self.last;
        self.first = 4 * old_first + 1;
        self.matches
            .resize(self.first + (4 * old).min(self.most), [K::NEVER; 4]);
        // All matches go one round down, the last round first, and a new final is played on top.
        let mut round = old_first;
        loop {
            let size = 3 * round + 1;
            let below = round + size;
            self.matches.copy_within(round..round + size, below);
            let rest = (below + size)..(below + 4 * size).min(self.matches.len());
            self.matches[rest].fill([K::NEVER; 4]);
            if round == 0 {
                break;
            }
            round = (round - 1) / 4;
        }
        self.last = [self.best, K::NEVER, K::NEVER, K::NEVER];
    }
}

/// Enters a key into a match; gives the winner.
///
/// The others meet first: that does not wait for the key, which comes from the match before. All
/// four at once after the key is written would be fewer instructions, but the processor would wait
/// for the write wherever the compiler reads two keys together.
#[inline(always)]
fn meet<K: Key>(keys: &mut [K; 4], place: usize, key: K) -> K {
    let other = |i: usize| keys[(place ^ i) % 4];
    let others = K::smaller(K::smaller(other(1), other(2)), other(3));
    keys[place % 4] = key;
    K::smaller(key, others)
}

/// How many matches come before those of the entries, of which there are `matches`: 0, 1, 1 + 4,
/// 1 + 4 + 16, …
fn first_of(matches: usize) -> usize {
    let (mut first, mut size) = (0, 1);
    while size < matches {
        first += size;
        size *= 4;
    }
    first
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

/// A tournament over `n` entries with times as keys; ties go to the lower entry.
///
/// Times and entries are packed into one number (time above, entry below), so that a match compares
/// once: into 64 bits where the times that matter leave room for the entries, else into 128.
#[derive(Clone, Debug)]
pub struct Tournament {
    narrow: Tree<u64>,
    wide: Tree<u128>,
    is_narrow: bool,
    /// The bits of an entry in narrow keys.
    bits: u32,
    key: u64,
    entry: usize,
}

impl Tournament {
    /// The key of an entry that does not compete.
    pub const NEVER: u64 = u64::MAX;

    /// Nobody competes yet.
    pub fn new(entries: usize) -> Self {
        Self::until(entries, Self::NEVER)
    }

    /// As [`Tournament::new`], where it does not matter how far behind `last` a key lies: some of
    /// them count as never.
    pub fn until(entries: usize, last: u64) -> Self {
        let bits = usize::BITS - entries.saturating_sub(1).leading_zeros();
        let is_narrow = bits < 32 && last < u64::MAX >> bits;
        let (narrow, wide) = if is_narrow {
            (entries, 1)
        } else {
            (1, entries)
        };
        let mut tournament = Tournament {
            narrow: Tree::new(narrow),
            wide: Tree::new(wide),
            is_narrow,
            bits,
            key: Self::NEVER,
            entry: 0,
        };
        for entry in 0..entries {
            tournament.set(entry, Self::NEVER);
        }
        tournament
    }

    /// Gives an entry another key.
    #[inline(always)]
    pub fn set(&mut self, entry: usize, key: u64) {
        if self.is_narrow {
            self.narrow.set(entry, narrowed(key, entry, self.bits));
            self.read_narrow();
        } else {
            self.set_wide(entry, key);
        }
    }

    #[inline(never)]
    fn set_wide(&mut self, entry: usize, key: u64) {
        self.wide.set(entry, widened(key, entry));
        self.read_wide();
    }

    #[inline(always)]
    fn read_narrow(&mut self) {
        let best = self.narrow.best();
        self.key = best >> self.bits;
        self.entry = (best - (self.key << self.bits)) as usize;
    }

    fn read_wide(&mut self) {
        let best = self.wide.best();
        self.key = (best >> 64) as u64;
        self.entry = best as u64 as usize;
    }

    /// The smallest key; if nobody competes, one behind the last that matters.
    #[inline(always)]
    pub fn key(&self) -> u64 {
        self.key
    }

    /// The entry with the smallest key, the lowest of several.
    #[inline(always)]
    pub fn entry(&self) -> usize {
        self.entry
    }

    /// The key of an entry.
    #[inline]
    pub fn key_of(&self, entry: usize) -> u64 {
        if self.is_narrow {
            let key = self.narrow.key_of(entry) >> self.bits;
            select_unpredictable(key == u64::MAX >> self.bits, Self::NEVER, key)
        } else {
            (self.wide.key_of(entry) >> 64) as u64
        }
    }
}

#[inline(always)]
fn narrowed(key: u64, entry: usize, bits: u32) -> u64 {
    u64::smaller(key, u64::MAX >> bits) << bits | entry as u64
}

#[inline(always)]
const fn widened(key: u64, entry: usize) -> u128 {
    (key as u128) << 64 | entry as u128
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_smallest_key_wins_and_ties_go_to_the_lower_entry(
            n in 1usize..90,
            is_narrow: bool,
            steps in prop::collection::vec(
                (0usize..90, prop_oneof![0u64..8, Just(Tournament::NEVER)]),
                1..60,
            ),
        ) {
            let last = if is_narrow { 1000 } else { Tournament::NEVER };
            let mut tree = Tournament::until(n, last);
            let mut keys = vec![Tournament::NEVER; n];
            for (entry, key) in steps {
                let entry = entry % n;
                tree.set(entry, key);
                keys[entry] = key;
                let (best, least) = keys
                    .iter()
                    .enumerate()
                    .min_by_key(|(i, k)| (**k, *i))
                    .unwrap();
                if *least == Tournament::NEVER {
                    prop_assert!(
                        tree.key() > last || !is_narrow && tree.key() == Tournament::NEVER
                    );
                } else {
                    prop_assert_eq!((tree.entry(), tree.key()), (best, *least));
                }
                for (entry, key) in keys.iter().enumerate() {
                    prop_assert_eq!(tree.key_of(entry), *key);
                }
            }
        }

        #[test]
        fn a_tree_that_grows_keeps_its_keys(keys in prop::collection::vec(0u128..9, 1..300)) {
            let mut tree = Tree::with_room(2, keys.len());
            for (entry, key) in keys.iter().enumerate() {
                if entry == tree.width() {
                    tree.grow();
                }
                tree.set(entry, *key);
                prop_assert_eq!(Some(tree.best()), keys[..=entry].iter().min().copied());
                prop_assert_eq!(tree.key_of(entry / 2), keys[entry / 2]);
            }
            prop_assert!(tree.width() >= keys.len());
            let mut left = keys.clone();
            for entry in 0..keys.len() {
                tree.set(entry, Tree::NEVER);
                left[entry] = Tree::NEVER;
                prop_assert_eq!(Some(tree.best()), left.iter().min().copied());
            }
        }
    }
}
