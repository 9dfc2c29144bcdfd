//! Sets of more than 16 ways: searched one by one, the order of use kept by place.

use super::{Entry, KEY, VALID, key, tree};
use model::strategy::Replacement;

/// All sets. For LRU and FIFO a set's entries stand in the order of use, the latest first, and
/// empty ones last; otherwise each stays in its way.
#[derive(Clone)]
pub(super) struct Wide {
    entries: Vec<Entry>,
    trees: Vec<u64>,
    ways: usize,
}

impl Wide {
    pub(super) fn new(sets: usize, ways: usize) -> Self {
        Wide {
            entries: vec![0; sets * ways],
            trees: vec![0; sets],
            ways,
        }
    }

    fn set(&mut self, set: usize) -> &mut [Entry] {
        &mut self.entries[set * self.ways..(set + 1) * self.ways]
    }

    pub(super) fn find(&mut self, set: usize, line: u64) -> Option<usize> {
        let wanted = key(line);
        self.set(set).iter().position(|e| e & KEY == wanted)
    }

    pub(super) fn entry(&mut self, set: usize, way: usize) -> &mut Entry {
        &mut self.set(set)[way]
    }

    pub(super) fn use_line(
        &mut self,
        set: usize,
        line: u64,
        replacement: Replacement,
    ) -> Option<&mut Entry> {
        let way = self.find(set, line)?;
        match replacement {
            Replacement::Lru => {
                let entries = self.set(set);
                entries[..=way].rotate_right(1);
                return Some(&mut entries[0]);
            }
            Replacement::Plru => {
                self.trees[set] = tree::used(self.trees[set], way, self.ways);
            }
            Replacement::Fifo | Replacement::Random => {}
        }
        Some(&mut self.set(set)[way])
    }

    pub(super) fn put(
        &mut self,
        set: usize,
        line: u64,
        flags: Entry,
        (replacement, random): (Replacement, usize),
    ) -> Entry {
        let ways = self.ways;
        let tree = self.trees[set];
        let entries = self.set(set);
        let empty = entries.iter().position(|e| e & VALID == 0);
        let new = key(line) | flags;
        match replacement {
            Replacement::Lru | Replacement::Fifo => {
                entries[..=empty.unwrap_or(ways - 1)].rotate_right(1);
                std::mem::replace(&mut entries[0], new)
            }
            Replacement::Plru => {
                let way = empty.unwrap_or_else(|| tree::points_to(tree, ways));
                let old = std::mem::replace(&mut entries[way], new);
                self.trees[set] = tree::used(tree, way, ways);
                old
            }
            Replacement::Random => std::mem::replace(&mut entries[empty.unwrap_or(random)], new),
        }
    }

    pub(super) fn remove(&mut self, set: usize, way: usize) -> Entry {
        std::mem::take(&mut self.set(set)[way])
    }
}
