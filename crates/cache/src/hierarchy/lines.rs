//! What becomes of a line that is read, written or replaced.

use super::Hierarchy;
use crate::array::{DIRTY, EARLY, Entry, SOLE, VALID, line_of};
use model::strategy::{Inclusion, Writing};

/// A line on its way to the cache that asked for it.
#[derive(Clone, Copy)]
pub(super) struct Fetched {
    /// No cache off the way holds it.
    pub(super) sole: bool,
    /// It was changed, and the cache that it comes from holds it no longer.
    pub(super) dirty: bool,
}

impl Hierarchy {
    /// Reads a line.
    pub(super) fn read(&mut self, path: usize, line: u64) {
        if self.paths[path].caches.is_empty() {
            self.memory.lines_read += 1;
            return;
        }
        let found = self.lookup(path, 0, line);
        if found.is_none() {
            self.fill(path, 0, line, 0);
        }
        self.prefetch_after(path, 0, line, found);
    }

    /// Writes to a line.
    pub(super) fn write(&mut self, path: usize, line: u64) {
        self.claim(path, line);
        self.store(path, 0, line);
    }

    /// Looks a line up as an access does: it counts, and is a use of the line. The entry.
    fn lookup(&mut self, path: usize, depth: usize, line: u64) -> Option<Entry> {
        let (index, own) = self.paths[path].caches[depth];
        self.reached.asked |= 1 << depth;
        let set = self.set(index, line);
        let silent = self.silent;
        let node = &mut self.nodes[index];
        match self.arrays.use_line(index, set, line) {
            Some(entry) => {
                let was = *entry;
                if was & EARLY != 0 && !silent {
                    *entry &= !EARLY;
                    node.counts[own].useful_prefetches += 1;
                }
                Some(was)
            }
            None => {
                self.reached.missed |= 1 << depth;
                None
            }
        }
    }

    /// Gets a line that the cache at `depth` has not, and puts it there.
    pub(super) fn fill(&mut self, path: usize, depth: usize, line: u64, flags: Entry) -> Fetched {
        let got = self.fetch(path, depth + 1, line);
        let mut flags = flags;
        flags |= if got.sole { SOLE } else { 0 };
        flags |= if got.dirty { DIRTY } else { 0 };
        self.insert(path, depth, line, flags);
        got
    }

    /// Asks the cache at `depth`, or memory, for a line on behalf of the cache before it.
    pub(super) fn fetch(&mut self, path: usize, depth: usize, line: u64) -> Fetched {
        self.reached.fetched = self.reached.fetched.max(depth as u32);
        let Some((index, _)) = self.paths[path].caches.get(depth).copied() else {
            let others = self.share(path, depth, line);
            if !others.was_dirty {
                self.memory.lines_read += 1;
            }
            return Fetched {
                sole: !others.any,
                dirty: false,
            };
        };
        let found = self.lookup(path, depth, line);
        self.prefetch_after(path, depth, line, found);
        let others = self.share(path, depth, line);
        let exclusive = self.nodes[index].is(Inclusion::Exclusive);
        if let Some(entry) = found {
            if exclusive && !others.any {
                return self.move_out(index, line);
            }
            return Fetched {
                sole: entry & SOLE != 0 && !others.any,
                dirty: false,
            };
        }
        if others.was_dirty {
            // The other cache's line came back here, or went further where this one keeps none.
            return Fetched {
                sole: false,
                dirty: false,
            };
        }
        let got = match exclusive {
            true => self.fetch(path, depth + 1, line),
            false => self.fill(path, depth, line, 0),
        };
        Fetched {
            sole: got.sole && !others.any,
            // A cache on the way keeps what was changed.
            dirty: got.dirty && exclusive,
        }
    }

    /// Takes a line out of an exclusive cache for the one before it.
    fn move_out(&mut self, index: usize, line: u64) -> Fetched {
        let set = self.set(index, line);
        let entry = match self.arrays.find(index, set, line) {
            Some((way, _)) => self.arrays.remove(index, set, way),
            None => 0,
        };
        Fetched {
            sole: entry & SOLE != 0,
            dirty: entry & DIRTY != 0,
        }
    }

    /// Writes to a line that no cache off the way holds, at the cache at `depth` or in memory.
    fn store(&mut self, path: usize, depth: usize, line: u64) {
        let Some((index, own)) = self.paths[path].caches.get(depth).copied() else {
            self.memory.written_through += 1;
            return;
        };
        let found = self.lookup(path, depth, line);
        self.prefetch_after(path, depth, line, found);
        let found = found.is_some();
        let part = &self.nodes[index].part;
        let (write, allocate) = (part.write, part.allocate);
        if !found && allocate {
            self.fill(path, depth, line, 0);
        }
        if write == Writing::Back && (found || allocate) {
            self.mark(index, line, DIRTY | SOLE);
        } else {
            if found || allocate {
                self.mark(index, line, SOLE);
            }
            self.nodes[index].counts[own].written_through += 1;
            self.owe(self.nodes[index].part.strategy.word);
            self.store(path, depth + 1, line);
        }
    }

    /// Adds flags to a line that is there. Where it has left since, for a line that its own fill
    /// brought about, nothing.
    pub(super) fn mark(&mut self, index: usize, line: u64, flags: Entry) {
        let set = self.set(index, line);
        if let Some((way, _)) = self.arrays.find(index, set, line) {
            *self.arrays.entry(index, set, way) |= flags;
        }
    }

    /// Puts a line that is not there into the cache at `depth`.
    pub(super) fn insert(&mut self, path: usize, depth: usize, line: u64, flags: Entry) {
        let (index, own) = self.paths[path].caches[depth];
        let set = self.set(index, line);
        if !self.nodes[index].used {
            self.first_use(index);
        }
        let old = self.arrays.put(index, set, line, flags);
        // Clean lines matter to caches that include or exclude others, and there only.
        if old & VALID != 0 && (old & DIRTY != 0 || !self.paths[path].plain) {
            self.left(path, depth, own, old);
        }
    }

    /// A line has left the cache at `depth` for another one.
    pub(super) fn left(&mut self, path: usize, depth: usize, own: usize, entry: Entry) {
        let (index, _) = self.paths[path].caches[depth];
        let line = line_of(entry);
        let mut flags = entry & (DIRTY | SOLE);
        if self.nodes[index].is(Inclusion::Inclusive) {
            for place in 0..self.nodes[index].inner.len() {
                let before = self.nodes[index].inner[place];
                if let Some(gone) = self.take(before, line) {
                    flags |= gone & DIRTY;
                    self.counted_at(before, path).invalidations += 1;
                }
            }
        }
        if flags & DIRTY != 0 {
            self.nodes[index].counts[own].writebacks += 1;
            self.owe(self.nodes[index].part.strategy.write_back);
            self.write_back(path, depth + 1, line);
        } else if let Some((behind, _)) = self.paths[path].caches.get(depth + 1).copied()
            && self.nodes[behind].is(Inclusion::Exclusive)
        {
            let set = self.set(behind, line);
            if self.arrays.find(behind, set, line).is_none() {
                self.insert(path, depth + 1, line, flags);
            }
        }
    }

    /// Takes a line out of a cache, if it is there. Its entry.
    pub(super) fn take(&mut self, index: usize, line: u64) -> Option<Entry> {
        if !self.nodes[index].used {
            return None;
        }
        let set = self.set(index, line);
        let (way, _) = self.arrays.find(index, set, line)?;
        Some(self.arrays.remove(index, set, way))
    }

    /// The next level, or memory, gets a line that was changed.
    pub(super) fn write_back(&mut self, path: usize, depth: usize, line: u64) {
        let Some((index, _)) = self.paths[path].caches.get(depth).copied() else {
            self.memory.lines_written += 1;
            return;
        };
        let set = self.set(index, line);
        let node = &mut self.nodes[index];
        let keeps = node.part.write == Writing::Back;
        match self.arrays.find(index, set, line) {
            Some((way, _)) => {
                let flags = if keeps { DIRTY | SOLE } else { 0 };
                *self.arrays.entry(index, set, way) |= flags;
            }
            None if keeps && (node.part.allocate || node.is(Inclusion::Exclusive)) => {
                self.insert(path, depth, line, DIRTY | SOLE);
                return;
            }
            None => {
                self.write_back(path, depth + 1, line);
                return;
            }
        }
        if !keeps {
            self.write_back(path, depth + 1, line);
        }
    }
}
