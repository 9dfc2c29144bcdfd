//! Slots of the arena and the books of a heap over them: which tile is where, and what is free.

use super::super::lock::Lock;
use super::super::span::Local;
use core::cell::UnsafeCell;

/// What a slot is used for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub enum Use {
    /// No memory is there.
    Nothing = 0,
    /// Memory that is free.
    Idle = 1,
    /// A span of small blocks, or the books of threads.
    Span = 2,
    /// Part of a large block.
    Large = 3,
    /// What the program mapped.
    Mapping = 4,
    /// Something that the program put there itself. The slot is never used again.
    Foreign = 5,
}

/// A slot in the books.
#[derive(Clone, Copy, Debug)]
pub struct Slot {
    /// The tile that is mapped there; [`NO_TILE`] or [`INHERITED`] for ordinary memory.
    pub tile: u32,
    pub usage: Use,
    /// Is it all zero?
    pub zero: bool,
    /// Pages that a mapping still has.
    pub pages: u16,
    /// Did the program change what may be done with some of them?
    pub restricted: bool,
}

/// Ordinary memory, because tiles had run out.
pub const NO_TILE: u32 = u32::MAX;

/// Ordinary memory of a forked child, in the place of its parent's tile.
pub const INHERITED: u32 = u32::MAX - 1;

/// After a request that tiles were wanting for, so many slots get ordinary memory before the source
/// is asked again. The number doubles from the first to the last with each request in vain: a
/// request takes a connection to another process.
const PAUSES: (usize, usize) = (16, 4096);

/// The books of a region. Whoever touches them has the lock of the region.
pub struct Books {
    pub(super) slots: *mut Slot,
    /// Slots from here on were never used.
    pub high: usize,
    /// No slot before this one is free.
    pub(super) hint: usize,
    /// Heaps of threads that ended.
    pub orphans: *mut Local,
    /// Parts of heaps that have no spans.
    pub spare: *mut Local,
    /// Room for the books of threads.
    pub(super) meta: *mut u8,
    pub(super) meta_left: usize,
    /// So many slots get ordinary memory before tiles are asked for again; see [`PAUSES`].
    pub(super) wait: usize,
    /// What `wait` was after the last request.
    pub(super) pause: usize,
}

/// A region: a lock and what it guards.
pub struct Region {
    pub lock: Lock,
    pub(super) books: UnsafeCell<Books>,
}

/// Is this a tile of the server, and not ordinary memory?
pub fn is_tile(tile: u32) -> bool {
    tile < INHERITED
}

impl Slot {
    /// Does its memory go back to the system when it becomes free?
    pub(super) fn drops(&self) -> bool {
        !is_tile(self.tile) && matches!(self.usage, Use::Large | Use::Mapping)
    }
}

impl Books {
    /// A thread's part becomes an orphan.
    ///
    /// # Safety
    /// It is of this heap, and its thread does not use it any more.
    pub unsafe fn orphan(&mut self, local: *mut Local) {
        // SAFETY: the caller's; whoever has the books has the lock.
        unsafe { (*local).next = self.orphans };
        self.orphans = local;
    }

    /// Takes note that so many tiles were wanting, and whether the request had brought some.
    pub(super) fn note_lack(&mut self, lacking: usize, some: bool) {
        if lacking == 0 {
            (self.wait, self.pause) = (0, 0);
        } else if self.wait > 0 {
            self.wait = self.wait.saturating_sub(lacking);
        } else {
            let (least, most) = PAUSES;
            self.pause = if some {
                least
            } else {
                (self.pause * 2).clamp(least, most)
            };
            self.wait = self.pause;
        }
    }

    /// A slot of the region.
    pub fn slot(&mut self, slot: usize) -> &mut Slot {
        // SAFETY: slots of the region are counted by [`Arena::slots`]; callers stay below. All zero
        // is a valid one.
        unsafe { &mut *self.slots.add(slot) }
    }
    pub(super) fn is_free(&mut self, slot: usize) -> bool {
        matches!(self.slot(slot).usage, Use::Nothing | Use::Idle)
    }
}
