//! The short way of accesses to one line: those that the first cache serves, and those that pass
//! through caches without particular strategies while nobody else uses any.
//!
//! What it does is what [`lines`](super::lines) does, sooner; the tests hold both against the same
//! reference.

use super::{Hierarchy, Node, Outcome, Path, Port};
use crate::access::Kind;
use crate::array::{DIRTY, EARLY, SOLE};
use model::strategy::{Inclusion, Writing};

/// The last access, if its first cache has its line, and nothing else is to be done for one more
/// like it: the line is already the last that was used.
#[derive(Clone, Copy)]
pub(super) struct Last {
    /// `usize::MAX`: there is none.
    pub(super) port: usize,
    pub(super) line: u64,
    /// It was a write that the cache keeps.
    pub(super) written: bool,
    /// The cache, and the processor's place in its counts.
    pub(super) cache: (usize, usize),
}

impl Last {
    pub(super) const NONE: Last = Last {
        port: usize::MAX,
        line: 0,
        written: false,
        cache: (0, 0),
    };
}

/// What a quick look into the first cache came to.
pub(super) enum Quick {
    /// The access is done.
    Served,
    /// The line is not there; nothing was done.
    Absent,
    /// There is more to do.
    Other,
}

impl Path {
    /// Is nothing to be done on the way but to look for lines, put them and write them back?
    #[inline]
    pub(super) fn is_plain(&self, reads_only: bool) -> bool {
        (self.alone || reads_only) && self.plain
    }
}

impl Hierarchy {
    /// An access to one line that the first cache serves without anything else to do.
    #[inline]
    pub(super) fn quick(&mut self, port: Port, kind: Kind, line: u64) -> Quick {
        let path = &self.paths[port.0];
        let Some((index, own)) = path.caches.first().copied() else {
            return Quick::Other;
        };
        let node = &mut self.nodes[index];
        let Some(mask) = node.mask else {
            return Quick::Other;
        };
        // Used once more by the longer way, the order of use is the same.
        let Some(entry) = node.array.use_line((line & mask) as usize, line) else {
            return Quick::Absent;
        };
        if *entry & EARLY != 0 || node.streams.is_some() {
            return Quick::Other;
        }
        if kind.writes() {
            if *entry & SOLE == 0 || node.part.write == Writing::Through {
                return Quick::Other;
            }
            *entry |= DIRTY;
        }
        node.counts[own].accesses[kind.column()] += 1;
        self.last = Last {
            port: port.0,
            line,
            written: kind.writes(),
            cache: (index, own),
        };
        Quick::Served
    }

    /// An access to one line that the first cache of a plain path has not: what
    /// [`Hierarchy::walk`] does, without what no cache of the path asks for.
    pub(super) fn miss(&mut self, path: usize, kind: Kind, line: u64) -> Outcome {
        let column = kind.column();
        let levels = self.paths[path].caches.len();
        let mut found = levels;
        for depth in 0..levels {
            let (index, own) = self.paths[path].caches[depth];
            let node = &mut self.nodes[index];
            node.counts[own].accesses[column] += 1;
            // The first one was looked up.
            if depth > 0 {
                let set = (line & node.mask.unwrap_or(0)) as usize;
                if node.array.use_line(set, line).is_some() {
                    found = depth;
                    break;
                }
            }
            node.counts[own].misses[column] += 1;
        }
        self.memory.lines_read += u64::from(found == levels);
        for depth in (0..found).rev() {
            let changed = depth == 0 && kind.writes();
            let flags = if changed { SOLE | DIRTY } else { SOLE };
            self.insert(path, depth, line, flags);
        }
        Outcome {
            reached: levels.min(found + 1) as u32,
            missed: found as u32,
        }
    }
}

/// Has a cache no strategy but to write back and to allocate?
pub(super) fn is_plain(node: &Node) -> bool {
    let part = &node.part;
    part.write == Writing::Back
        && part.allocate
        && part.inclusion == Inclusion::Neither
        && node.streams.is_none()
        && node.mask.is_some()
        && !node.by_program
}
