//! Prefetchers: the next line after a miss, and strides.
//!
//! Both fetch again when a line that they fetched is used for the first time, so that they stay
//! ahead of a walk. None goes beyond a page: the next one lies elsewhere in memory.

use super::{Hierarchy, Node};
use crate::array::{EARLY, Entry};
use model::strategy::Prefetch;

/// How many pages a stride prefetcher watches.
const WATCHED: usize = 64;

/// What a stride prefetcher knows of pages.
#[derive(Clone)]
pub(super) struct Streams {
    /// Lines of a page.
    lines: u64,
    watched: Vec<Stream>,
}

/// What it knows of one.
#[derive(Clone, Copy)]
struct Stream {
    page: u64,
    line: u64,
    stride: i64,
    /// The stride was seen twice in a row.
    sure: bool,
}

impl Streams {
    pub(super) fn new(lines: u64) -> Self {
        let none = Stream {
            page: u64::MAX,
            line: 0,
            stride: 0,
            sure: false,
        };
        Streams {
            lines: lines.max(1),
            watched: vec![none; WATCHED],
        }
    }

    /// The line that a stride leads to from this one.
    fn after(&mut self, line: u64) -> Option<u64> {
        let page = line / self.lines;
        let stream = &mut self.watched[page as usize % WATCHED];
        if stream.page != page {
            *stream = Stream {
                page,
                line,
                stride: 0,
                sure: false,
            };
            return None;
        }
        let stride = line.wrapping_sub(stream.line) as i64;
        if stride == 0 {
            return None;
        }
        stream.sure = stride == stream.stride;
        stream.stride = stride;
        stream.line = line;
        stream.sure.then(|| line.wrapping_add_signed(stride))
    }
}

impl Node {
    /// The line that its prefetcher wants after an access to one, and what was found of that.
    #[inline]
    pub(super) fn looks_ahead(&mut self, line: u64, found: Option<Entry>) -> Option<u64> {
        let (Some(prefetch), Some(streams)) = (self.part.prefetch, self.streams.as_mut()) else {
            return None;
        };
        let wanted = match prefetch {
            Prefetch::NextLine => match found {
                Some(entry) if entry & EARLY == 0 => None,
                _ => line.checked_add(1),
            },
            Prefetch::Stride => streams.after(line),
        };
        wanted.filter(|next| next / streams.lines == line / streams.lines)
    }
}

impl Hierarchy {
    /// Lets the prefetcher of the cache at `depth` see an access to a line, and what was found of
    /// it. What it wants is fetched when the access is over.
    pub(super) fn prefetch_after(
        &mut self,
        path: usize,
        depth: usize,
        line: u64,
        found: Option<Entry>,
    ) {
        if self.silent {
            return;
        }
        let (index, _) = self.paths[path].caches[depth];
        let wanted = self.nodes[index].looks_ahead(line, found);
        self.pending.extend(wanted.map(|next| (depth, next)));
    }

    /// Fetches what the prefetchers wanted during an access.
    pub(super) fn prefetch_pending(&mut self, path: usize) {
        let before = self.reached;
        self.silent = true;
        while let Some((depth, line)) = self.pending.pop() {
            let (index, own) = self.paths[path].caches[depth];
            let set = self.set(index, line);
            if self.arrays.find(index, set, line).is_none() {
                self.fill(path, depth, line, EARLY);
                self.nodes[index].counts[own].prefetches += 1;
            }
        }
        self.silent = false;
        self.reached = before;
    }
}
