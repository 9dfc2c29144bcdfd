//! The short way of reads through caches of which one fetches ahead, while nothing is ever written.
//!
//! What it does is what [`lines`](super::lines) and [`prefetch`](super::prefetch) do, sooner; a
//! test holds one against the other.

use super::Hierarchy;
use crate::array::{EARLY, SOLE, Wanted};

impl Hierarchy {
    /// Reads a line through a path that is plain but for the prefetcher of the cache at `ahead`.
    /// How many caches missed.
    #[inline(never)]
    pub(super) fn read_ahead(
        &mut self,
        port: usize,
        ahead: usize,
        column: usize,
        line: u64,
    ) -> usize {
        self.warm_up(port);
        let wanted = Wanted::new(line);
        let path = &mut self.paths[port];
        let mut missed = 0;
        let mut found = None;
        for place in &path.places {
            found = self.arrays.lru_use(place.of(wanted), wanted);
            if found.is_some() {
                break;
            }
            missed += 1;
        }
        // What the prefetcher sees, if it sees anything.
        let mut seen = None;
        if let Some(entry) = found.filter(|_| missed == ahead) {
            seen = Some(*entry);
            *entry &= !EARLY;
        }
        path.served[missed][column] += 1;
        for place in path.places[..missed].iter().rev() {
            self.arrays.lru_put(*place, place.of(wanted), wanted, SOLE);
        }
        if missed >= ahead {
            let (index, own) = path.caches[ahead];
            let node = &mut self.nodes[index];
            if seen.is_some_and(|entry| entry & EARLY != 0) {
                node.counts[own].useful_prefetches += 1;
            }
            if let Some(next) = node.looks_ahead(line, seen) {
                self.fetch_ahead(port, ahead, next);
            }
        }
        missed
    }

    /// Puts a line that is expected into the cache at `ahead` and those behind it, unless that
    /// cache has it.
    fn fetch_ahead(&mut self, port: usize, ahead: usize, line: u64) {
        let wanted = Wanted::new(line);
        let path = &self.paths[port];
        let own = path.places[ahead];
        if self.arrays.has(own.of(wanted), wanted) {
            return;
        }
        let outer = &path.places[ahead + 1..];
        let missed = outer
            .iter()
            .take_while(|place| self.arrays.lru_use(place.of(wanted), wanted).is_none())
            .count();
        self.memory.lines_read += u64::from(missed == outer.len());
        for place in outer[..missed].iter().rev() {
            self.arrays.lru_put(*place, place.of(wanted), wanted, SOLE);
        }
        let flags = SOLE | EARLY;
        self.arrays.lru_put(own, own.of(wanted), wanted, flags);
        let (index, cpu) = path.caches[ahead];
        self.nodes[index].counts[cpu].prefetches += 1;
    }
}
