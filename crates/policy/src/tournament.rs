//! A tournament tree: which of a fixed number of entries has the smallest key, with logarithmic updates and no branches.
//!
//! Entries and keys are packed into one `u128` (key above, entry below), so that a match is one comparison and ties go to
//! the lower entry.

/// A tournament over `n` entries with 64-bit keys; [`Tournament::NEVER`] is the key of an entry that does not compete.
#[derive(Clone, Debug)]
pub struct Tournament {
    /// `nodes[1]` is the winner; the children of `i` are `2 i` and `2 i + 1`; leaves begin at `base`.
    nodes: Vec<u128>,
    base: usize,
}

impl Tournament {
    /// The key of an entry that does not compete.
    pub const NEVER: u64 = u64::MAX;

    /// Nobody competes yet.
    pub fn new(entries: usize) -> Self {
        let base = entries.next_power_of_two();
        let mut nodes = vec![u128::MAX; 2 * base];
        for (entry, node) in nodes[base..].iter_mut().enumerate() {
            *node = pack(Self::NEVER, entry);
        }
        for i in (1..base).rev() {
            nodes[i] = nodes[2 * i];
        }
        Tournament { nodes, base }
    }

    /// Gives an entry another key.
    #[inline]
    pub fn set(&mut self, entry: usize, key: u64) {
        let mut node = self.base + entry;
        let mut winner = pack(key, entry);
        self.nodes[node] = winner;
        while node > 1 {
            winner = winner.min(self.nodes[node ^ 1]);
            node >>= 1;
            self.nodes[node] = winner;
        }
    }

    /// The smallest key; [`Tournament::NEVER`] if nobody competes.
    #[inline]
    pub fn key(&self) -> u64 {
        (self.nodes[1] >> 64) as u64
    }

    /// The entry with the smallest key, the lowest of several.
    #[inline]
    pub fn entry(&self) -> usize {
        self.nodes[1] as u64 as usize
    }

    /// The key of an entry.
    #[inline]
    pub fn key_of(&self, entry: usize) -> u64 {
        (self.nodes[self.base + entry] >> 64) as u64
    }
}

#[inline]
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
}
