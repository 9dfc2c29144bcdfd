//! The short way of accesses to one line: those that the first cache serves, and those that pass
//! through caches without particular strategies while nobody else uses any.
//!
//! What it does is what [`lines`](super::lines) does, sooner; the tests hold both against the same
//! reference.

use super::{Hierarchy, Node, Outcome, Path, Port};
use crate::access::Kind;
use crate::array::{Arrays, DIRTY, EARLY, Entry, SOLE, Wanted};
use model::Result;
use model::strategy::{Inclusion, Writing};

/// The last access, if its first cache has its line, and nothing else is to be done for one more
/// like it: the line is already the last that was used.
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// By the address of the program.
    line: u64,
    /// Twice the port, and one more where it was a write that the cache keeps.
    by: usize,
}

impl Last {
    pub(super) const NONE: Last = Last {
        line: 0,
        by: usize::MAX,
    };

    #[inline(always)]
    const fn new(port: usize, line: u64, writes: bool) -> Self {
        Last {
            line,
            by: 2 * port + writes as usize,
        }
    }

    /// Is nothing else to be done for an access than to count it?
    #[inline(always)]
    pub(super) const fn serves(self, port: usize, line: u64, writes: bool) -> bool {
        self.line == line && self.by.wrapping_sub(2 * port) < 2 && (!writes || self.by & 1 == 1)
    }
}

/// What remains to be done of an access that no cache up to a depth served.
struct Rest {
    /// The line was put into the cache at this depth and those behind it.
    depth: usize,
    /// What left that cache for it: a changed line, or nothing.
    left: Entry,
}

/// With what a line is put into a cache of a short path: nobody else holds it.
#[inline(always)]
const fn flags_at(depth: usize, writes: bool) -> Entry {
    match depth == 0 && writes {
        true => SOLE | DIRTY,
        false => SOLE,
    }
}

impl Path {
    /// An access to one line through caches of a short path: what [`Hierarchy::walk`] does, without
    /// what no cache of the path asks for. How many caches missed, and what remains to be done.
    #[inline(always)]
    fn pass(
        &mut self,
        arrays: &mut Arrays,
        column: usize,
        writes: bool,
        wanted: Wanted,
    ) -> (usize, Option<Rest>) {
        let Some((first, outer)) = self.places.split_first() else {
            return (0, None);
        };
        let near = first.of(wanted);
        if let Some(entry) = arrays.lru_use(near, wanted) {
            if writes {
                *entry |= DIRTY;
            }
            self.served[0][column] += 1;
            return (0, None);
        }
        let mut further = 0;
        for place in outer {
            if arrays.lru_use(place.of(wanted), wanted).is_some() {
                break;
            }
            further += 1;
        }
        let missed = 1 + further;
        self.served[missed][column] += 1;
        if !self.warm {
            return (
                missed,
                Some(Rest {
                    depth: missed,
                    left: 0,
                }),
            );
        }
        for depth in (1..missed).rev() {
            let place = outer[depth - 1];
            let left = arrays.lru_put(place, place.of(wanted), wanted, SOLE);
            if left & DIRTY != 0 {
                return (missed, Some(Rest { depth, left }));
            }
        }
        let left = arrays.lru_put(*first, near, wanted, flags_at(0, writes));
        let rest = (left & DIRTY != 0).then_some(Rest { depth: 0, left });
        (missed, rest)
    }
}

impl Hierarchy {
    /// An access to one line, by the shortest way that does all that is to be done.
    pub(super) fn one_line(&mut self, port: Port, kind: Kind, address: u64) -> Result<Outcome> {
        let line = self.pages.physical(address)? >> self.bits;
        let of_program = address >> self.bits;
        if self.paths[port.0].is_short {
            let missed = self.pass(port.0, kind, line);
            self.last = Last::new(port.0, of_program, kind.writes());
            return Ok(self.outcome(port, missed));
        }
        if self.ignores_others
            && let Some(ahead) = self.paths[port.0].ahead
        {
            let missed = self.read_ahead(port.0, ahead, kind.column(), line);
            self.last = Last::new(port.0, of_program, false);
            return Ok(self.outcome(port, missed));
        }
        if self.first_serves(port.0, kind, line) {
            self.paths[port.0].served[0][kind.column()] += 1;
            self.last = Last::new(port.0, of_program, kind.writes());
            return Ok(Outcome::SERVED);
        }
        self.last = Last::NONE;
        self.walk(port, kind, address, address)
    }

    /// What an access through a short path came to.
    #[inline(always)]
    pub(super) fn outcome(&self, port: Port, missed: usize) -> Outcome {
        Outcome {
            reached: self.paths[port.0].caches.len().min(missed + 1) as u32,
            misses: (1 << missed) - 1,
            fetched: missed as u32,
            given: false,
        }
    }

    /// Does the first cache serve an access without anything else to do? If not, at most the line's
    /// place in the order of use has changed: used once more by the longer way, that is the same.
    #[inline]
    fn first_serves(&mut self, path: usize, kind: Kind, line: u64) -> bool {
        let Some((index, _)) = self.paths[path].caches.first().copied() else {
            return false;
        };
        let node = &self.nodes[index];
        let Some(mask) = node.mask.filter(|_| !node.by_program) else {
            return false;
        };
        let Some(entry) = self.arrays.use_line(index, (line & mask) as usize, line) else {
            return false;
        };
        if *entry & EARLY != 0 || node.streams.is_some() {
            return false;
        }
        if kind.writes() {
            if *entry & SOLE == 0 || node.part.write == Writing::Through {
                return false;
            }
            *entry |= DIRTY;
        }
        true
    }

    /// An access to one line through caches of a short path. How many caches missed.
    #[inline(never)]
    pub(super) fn pass(&mut self, port: usize, kind: Kind, line: u64) -> usize {
        let writes = kind.writes();
        self.last = Last::new(port, line, writes);
        let wanted = Wanted::new(line);
        let path = &mut self.paths[port];
        let (missed, rest) = path.pass(&mut self.arrays, kind.column(), writes, wanted);
        if let Some(rest) = rest {
            self.put_rest(port, wanted, writes, rest);
        }
        missed
    }

    /// What remains of an access through a short path.
    #[inline(never)]
    fn put_rest(&mut self, port: usize, wanted: Wanted, writes: bool, rest: Rest) {
        self.warm_up(port);
        if rest.left & DIRTY != 0 {
            let own = self.paths[port].caches[rest.depth].1;
            self.left(port, rest.depth, own, rest.left);
        }
        for depth in (0..rest.depth).rev() {
            let place = self.paths[port].places[depth];
            let flags = flags_at(depth, writes);
            let left = self.arrays.lru_put(place, place.of(wanted), wanted, flags);
            if left & DIRTY != 0 {
                let own = self.paths[port].caches[depth].1;
                self.left(port, depth, own, left);
            }
        }
    }

    /// Tells that an access to this address comes soon: nothing changes, but what it takes to find
    /// its line may be there sooner in the caches of the machine that computes.
    #[inline]
    pub fn expect(&self, port: Port, address: u64) {
        if self.as_traced {
            // All of the sets, but in the first cache, which is small.
            let wanted = Wanted::new(address >> self.bits);
            for place in self.paths[port.0].places.iter().skip(1) {
                self.arrays.prefetch_whole(place.of(wanted));
            }
        }
    }

    /// Reads a byte at each address: as many accesses, in less time.
    ///
    /// # Errors
    /// There is no frame for a page.
    pub fn load(&mut self, port: Port, addresses: &[u64]) -> Result<()> {
        if !self.as_traced || !self.paths[port.0].is_short || self.wrote {
            for address in addresses {
                self.access(port, Kind::Read, *address, 1)?;
            }
            return Ok(());
        }
        if !addresses.is_empty() {
            self.warm_up(port.0);
            self.last = Last::NONE;
        }
        self.load_by_levels(port.0, addresses);
        Ok(())
    }

    /// The same through a short path while no line is changed: what a cache does depends only on
    /// the lines that those before it miss, in their order, so that each has its turn at many.
    fn load_by_levels(&mut self, port: usize, addresses: &[u64]) {
        const PART: usize = 64;
        let path = &mut self.paths[port];
        let mut lines = [0; PART];
        let mut last = u64::MAX;
        // Those of the part before that missed two caches.
        let mut far = 0;
        for part in addresses.chunks(PART) {
            let mut count = 0;
            for address in part {
                let line = address >> self.bits;
                if line != last {
                    lines[count % PART] = line;
                    count += 1;
                    last = line;
                }
            }
            path.served[0][1] += (part.len() - count) as u64;
            // Where many go far, their sets are seldom in the caches of the machine that computes:
            // it fetches them while it computes others.
            let fetches = far > PART / 8;
            for (depth, place) in path.places.iter().enumerate() {
                let missed = self.arrays.lru_pass(*place, &mut lines[..count], SOLE);
                path.served[depth][1] += (count - missed) as u64;
                count = missed;
                if depth == 0 && fetches {
                    for line in &lines[..count] {
                        for outer in &path.places[1..] {
                            self.arrays.prefetch(outer.of(Wanted::new(*line)));
                        }
                    }
                }
                if depth == 1 {
                    far = count;
                }
            }
            path.served[path.places.len()][1] += count as u64;
        }
    }

    pub(super) fn warm_up(&mut self, port: usize) {
        if self.paths[port].warm {
            return;
        }
        for depth in 0..self.paths[port].caches.len() {
            let index = self.paths[port].caches[depth].0;
            if !self.nodes[index].used {
                self.first_use(index);
            }
        }
        self.paths[port].warm = true;
    }
}

/// Has a cache no strategy but to write back and to allocate, and perhaps a prefetcher?
pub(super) fn is_plain(node: &Node) -> bool {
    let part = &node.part;
    part.write == Writing::Back
        && part.allocate
        && part.inclusion == Inclusion::Neither
        && node.mask.is_some()
        && !node.by_program
}
