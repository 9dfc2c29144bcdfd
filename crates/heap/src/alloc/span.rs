//! A span: the blocks of one size class in one slot, or one large block in several; its description
//! lies at its beginning, in the color of its blocks. Beside it, the spans that one thread has.

use super::class::{CLASSES, HEADER, SIZES, SLOT};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// A free block: the next one, and a mark that tells it from one in use.
#[repr(C)]
pub struct Block {
    pub next: *mut Block,
    pub mark: usize,
}

/// In the second word of a block that is free. Blocks in use have it by chance only; then the lists
/// are searched.
pub const FREE_MARK: usize = 0x7a5e_c010_ed4e_a9f3;

/// The span that blocks are taken from.
pub const CURRENT: u8 = 1;
/// A span with free blocks, on the list of its class.
pub const PARTIAL: u8 = 2;
/// A span without free blocks, on no list.
pub const FULL: u8 = 3;
/// A single block of whole slots.
pub const LARGE: u8 = 4;

/// In the place of the first block that another thread freed: the owner has this span on no list.
pub const UNLISTED: *mut Block = core::ptr::without_provenance_mut(1);

/// The description of a span, at the beginning of its slot. What is not atomic is its owner's
/// alone.
#[repr(C, align(128))]
pub struct Span {
    /// Blocks that can be handed out.
    pub free: *mut Block,
    /// Blocks handed out and not known to be back.
    pub used: u32,
    /// Bytes of a block.
    pub block: u32,
    /// ⌈2³² / block⌉: divides offsets below 2¹⁶ by multiplication.
    pub inverse: u32,
    /// One of the states above.
    pub state: AtomicU8,
    /// Its size class.
    pub class: u8,
    /// Were some blocks handed out from within, for their alignment?
    pub aligned: AtomicBool,
    /// Blocks never handed out yet begin here, in bytes from the first.
    pub fresh: u32,
    /// Slots, of a large one.
    pub slots: u32,
    /// Of a large one: where its bytes begin, from its description.
    pub offset: u32,
    /// The heap that it belongs to.
    pub heap: u16,
    /// Blocks that other threads freed.
    pub remote: AtomicPtr<Block>,
    /// Who hands out its blocks.
    pub owner: AtomicPtr<Local>,
    /// The list it is on.
    pub next: *mut Span,
    pub previous: *mut Span,
    /// The list of spans that other threads gave back to their owner.
    pub returned: *mut Span,
}

const _: () = assert!(size_of::<Span>() <= HEADER);

/// A thread's part of a heap. Lies in memory of the heap.
#[repr(C)]
pub struct Local {
    pub current: [*mut Span; CLASSES],
    pub partial: [*mut Span; CLASSES],
    pub heap: usize,
    /// Spans that were full, and of which other threads freed blocks; under the lock of the heap.
    pub returned: *mut Span,
    pub has_returned: AtomicBool,
    /// Who took up its spans: its full ones return to that one. Under the lock.
    pub heir: *mut Local,
    /// The next orphan, or the next that can be used anew.
    pub next: *mut Local,
}

/// Is an offset from the first block the beginning of one?
#[inline(always)]
pub fn is_beginning(offset: usize, block: u32, inverse: u32) -> bool {
    let which = (offset as u64 * u64::from(inverse)) >> 32;
    which * u64::from(block) == offset as u64
}

impl Span {
    /// Bytes that blocks take in a slot.
    pub const ROOM: usize = SLOT - HEADER;

    /// The first block.
    pub fn first(this: *mut Span) -> *mut u8 {
        // Within the slot, which is larger than the description.
        this.cast::<u8>().wrapping_add(HEADER)
    }

    /// Describes a slot anew, as the current span of a class.
    ///
    /// # Safety
    /// The slot is mapped and the caller's.
    pub unsafe fn begin(this: *mut Span, class: usize, heap: u16, owner: *mut Local) {
        let block = SIZES[class];
        // SAFETY: the caller's.
        unsafe {
            this.write(Span {
                free: null_mut(),
                used: 0,
                block,
                inverse: ((1_u64 << 32).div_ceil(u64::from(block))) as u32,
                state: AtomicU8::new(CURRENT),
                class: class as u8,
                aligned: AtomicBool::new(false),
                fresh: 0,
                slots: 1,
                offset: HEADER as u32,
                heap,
                remote: AtomicPtr::new(null_mut()),
                owner: AtomicPtr::new(owner),
                next: null_mut(),
                previous: null_mut(),
                returned: null_mut(),
            });
        }
    }

    /// Takes in what other threads freed; says whether there was something.
    ///
    /// # Safety
    /// The span is the caller's.
    pub unsafe fn collect(this: *mut Span) -> bool {
        // SAFETY: the caller's; blocks on the list are free and belong to this span.
        unsafe {
            let first = (*this).remote.swap(null_mut(), Ordering::Acquire);
            if first.is_null() || first == UNLISTED {
                return false;
            }
            let mut last = first;
            let mut number = 1;
            while !(*last).next.is_null() {
                last = (*last).next;
                number += 1;
            }
            (*last).next = (*this).free;
            (*this).free = first;
            (*this).used -= number;
        }
        true
    }

    /// Puts blocks that were never handed out on the free list, a page of them at most; says
    /// whether there were some.
    ///
    /// # Safety
    /// The span is the caller's.
    pub unsafe fn extend(this: *mut Span) -> bool {
        // SAFETY: the caller's; the blocks lie within the slot.
        unsafe {
            let block = (*this).block as usize;
            let from = (*this).fresh as usize;
            let room = (Self::ROOM - from) / block;
            let number = room.min((4096 / block).max(1));
            if number == 0 {
                return false;
            }
            let first = Self::first(this).add(from);
            let mut next = (*this).free;
            for i in (0..number).rev() {
                let it = first.add(i * block).cast::<Block>();
                it.write(Block {
                    next,
                    mark: FREE_MARK,
                });
                next = it;
            }
            (*this).free = next;
            (*this).fresh += (number * block) as u32;
        }
        true
    }
}

#[cfg(all(test, not(warmset_preload)))]
mod tests {
    use super::*;

    #[test]
    fn offsets_are_divided_exactly() {
        for block in SIZES {
            let inverse = ((1_u64 << 32).div_ceil(u64::from(block))) as u32;
            for offset in 0..Span::ROOM {
                assert_eq!(
                    is_beginning(offset, block, inverse),
                    offset % block as usize == 0
                );
            }
        }
    }
}
