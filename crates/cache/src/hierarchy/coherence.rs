//! MESI between caches that do not lie behind one another.
//!
//! A line is *changed* (M) where its entry has `DIRTY`, *exclusive* (E) where it has `SOLE` alone,
//! else *shared* (S). A cache shared by several processors has its state towards other caches of
//! its kind; the caches before it have theirs among one another, too. Invariant: a changed line is
//! in no cache off the way from its processors to memory.

use super::Hierarchy;
use crate::array::{DIRTY, SOLE};
use crate::counts::Counts;

/// What others held of a line.
#[derive(Clone, Copy, Default)]
pub(super) struct Others {
    /// At least one held it.
    pub(super) any: bool,
    /// One had changed it; it is written back now.
    pub(super) was_dirty: bool,
}

impl Hierarchy {
    /// A line that is read meets those that others hold before the cache at `depth` (beyond the
    /// last: anywhere): they are shared from now on, and what was changed is written to that cache,
    /// or to memory.
    pub(super) fn share(&mut self, path: usize, depth: usize, line: u64) -> Others {
        let mut others = Others::default();
        if self.ignores_others || self.paths[path].alone {
            return others;
        }
        for place in 0..self.paths[path].peers[depth].len() {
            let index = self.paths[path].peers[depth][place];
            if !self.nodes[index].used {
                continue;
            }
            let set = self.set(index, line);
            let Some((way, entry)) = self.arrays.find(index, set, line) else {
                continue;
            };
            *self.arrays.entry(index, set, way) &= !(DIRTY | SOLE);
            others.any = true;
            if entry & DIRTY != 0 {
                self.intervened(path, index, &mut others);
            }
        }
        if others.was_dirty {
            self.write_back(path, depth, line);
        }
        others
    }

    /// Takes a line away from all caches off the way, so that it may be changed.
    pub(super) fn claim(&mut self, path: usize, line: u64) {
        let ways = self.paths[path].caches.len();
        if self.paths[path].alone {
            // Every line was fetched as one that nobody else holds.
            return;
        }
        // The cache that tells that nobody off its way has it; without one, everybody is asked.
        let mut held = false;
        let mut until = ways;
        for depth in 0..ways {
            let (index, own) = self.paths[path].caches[depth];
            let set = self.set(index, line);
            let Some((_, entry)) = self.arrays.find(index, set, line) else {
                continue;
            };
            if entry & SOLE != 0 {
                until = depth;
                break;
            }
            if !held {
                held = true;
                self.nodes[index].counts[own].upgrades += 1;
            }
        }
        for depth in 0..=until {
            let mut others = Others::default();
            for place in 0..self.paths[path].peers[depth].len() {
                let index = self.paths[path].peers[depth][place];
                let Some(entry) = self.take(index, line) else {
                    continue;
                };
                others.any = true;
                self.counted_at(index, path).invalidations += 1;
                if entry & DIRTY != 0 {
                    self.intervened(path, index, &mut others);
                }
            }
            if others.was_dirty {
                self.write_back(path, depth, line);
            }
        }
        for depth in 0..ways {
            let (index, _) = self.paths[path].caches[depth];
            self.mark(index, line, SOLE);
        }
    }

    /// A cache holds its first line. Finds the ways off which no cache has held one.
    #[cold]
    pub(super) fn first_use(&mut self, index: usize) {
        self.nodes[index].used = true;
        for path in &mut self.paths {
            let mut peers = path.peers.iter().flatten();
            path.alone = !peers.any(|index| self.nodes[*index].used);
            path.is_short = path.plain && (path.alone || self.reads_only);
        }
    }

    /// A changed line was asked for. Caches behind the one that changed it may hold older versions
    /// of it that count as changed, too: the first one that is found is the nearest to a processor,
    /// and gives it.
    fn intervened(&mut self, path: usize, index: usize, others: &mut Others) {
        if !others.was_dirty {
            self.counted_at(index, path).interventions += 1;
        }
        others.was_dirty = true;
        self.reached.given = true;
    }

    /// Where to count what happens to a cache: with the processor of the path if it is one of its
    /// own, else with the first of its own that has used it.
    pub(super) fn counted_at(&mut self, index: usize, path: usize) -> &mut Counts {
        let cpu = self.paths[path].cpu;
        let own = self.nodes[index].part.cpus.iter().position(|c| *c == cpu);
        let user = || self.counts(index).iter().position(|c| c.accesses() > 0);
        let place = own.or_else(user).unwrap_or(0);
        &mut self.nodes[index].counts[place]
    }
}
