//! The functions of the malloc family over heaps, for both libraries: addresses in, addresses out.

use super::arena::{ARENA, Use};
use super::class::{ALIGN, CLASSES, HEADER, LARGEST, SIZES, SLOT, class_of};
use super::local;
use super::span::{Block, FREE_MARK, LARGE, Span, is_beginning};
use super::sys;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// The largest size that can be asked for.
const MOST: usize = isize::MAX as usize - 2 * SLOT;

/// Memory of a heap; null where no more can be had. `align` is a power of two.
#[inline(always)]
pub fn allocate(heap: usize, size: usize, align: usize) -> *mut u8 {
    if size <= LARGEST && align <= ALIGN {
        small(heap, class_of(size))
    } else {
        other(heap, size, align, false)
    }
}

#[inline(always)]
fn small(heap: usize, class: usize) -> *mut u8 {
    let local = local::of(heap);
    if local.is_null() {
        return null_mut();
    }
    // SAFETY: the calling thread's own.
    unsafe { local::take(local, class) }
}

/// Memory that is all zero.
pub fn allocate_zeroed(heap: usize, size: usize, align: usize) -> *mut u8 {
    if size > LARGEST || align > ALIGN {
        return other(heap, size, align, true);
    }
    let got = small(heap, class_of(size));
    if !got.is_null() {
        // SAFETY: a block of this size.
        unsafe { got.write_bytes(0, size) };
    }
    got
}

#[inline(never)]
fn other(heap: usize, size: usize, align: usize, zeroed: bool) -> *mut u8 {
    if size > MOST || align > MOST / 4 {
        return null_mut();
    }
    if size <= LARGEST && align <= HEADER {
        let class = class_of(size.next_multiple_of(align).min(LARGEST));
        if class < CLASSES
            && SIZES[class] as usize >= size
            && (SIZES[class] as usize).is_multiple_of(align)
        {
            return cleared(small(heap, class), size, zeroed);
        }
    }
    if size + align <= LARGEST {
        let block = small(heap, class_of(size + align));
        if block.is_null() {
            return block;
        }
        let at = (block as usize).next_multiple_of(align) as *mut u8;
        if at != block {
            let span = (block as usize & !(SLOT - 1)) as *mut Span;
            // SAFETY: the span of a block that was just handed out.
            unsafe { (*span).aligned.store(true, Ordering::Relaxed) };
        }
        return cleared(at, size, zeroed);
    }
    large(heap, size, align, zeroed)
}

fn cleared(at: *mut u8, size: usize, zeroed: bool) -> *mut u8 {
    if zeroed && !at.is_null() {
        // SAFETY: a block of this size.
        unsafe { at.write_bytes(0, size) };
    }
    at
}

fn large(heap: usize, size: usize, align: usize, zeroed: bool) -> *mut u8 {
    let (slots, lead) = if align < SLOT {
        ((size + align.max(HEADER)).div_ceil(SLOT), 0)
    } else {
        // The description lies in the slot before the block.
        (size.div_ceil(SLOT).max(1) + 1, align / SLOT - 1)
    };
    let Some((at, zero)) = ARENA.take(heap, slots + lead, Use::Large) else {
        return null_mut();
    };
    let mut first = at;
    if lead > 0 {
        let block = (at as usize + SLOT).next_multiple_of(align);
        first = (block - SLOT) as *mut u8;
        let before = (first as usize - at as usize) / SLOT;
        if before > 0 {
            ARENA.release(at, before);
        }
        if before < lead {
            // Within what was taken.
            ARENA.release(first.wrapping_add(slots * SLOT), lead - before);
        }
    }
    let offset = if align < SLOT {
        align.max(HEADER)
    } else {
        SLOT
    };
    let span = first.cast::<Span>();
    // SAFETY: slots that were just taken.
    unsafe {
        span.write(Span {
            free: null_mut(),
            used: 1,
            block: 0,
            inverse: 0,
            state: AtomicU8::new(LARGE),
            class: 0,
            aligned: AtomicBool::new(false),
            fresh: 0,
            slots: slots as u32,
            offset: offset as u32,
            heap: heap as u16,
            remote: AtomicPtr::new(null_mut()),
            owner: AtomicPtr::new(null_mut()),
            next: null_mut(),
            previous: null_mut(),
            returned: null_mut(),
        });
        cleared(first.add(offset), size, zeroed && !zero)
    }
}

fn span_of(at: *mut u8) -> *mut Span {
    let within = at as usize & (SLOT - 1);
    // A block that begins with its slot is a large one, described in the slot before.
    (if within == 0 {
        at as usize - SLOT
    } else {
        at as usize - within
    }) as *mut Span
}

/// The block that an address in a span belongs to, and how far within.
///
/// Ends the program where there is none: the address was never handed out.
#[inline(always)]
// SAFETY: callers give a span that is mapped.
unsafe fn block_of(span: *mut Span, at: *mut u8) -> (*mut Block, usize) {
    // SAFETY: the caller's: a span of small blocks.
    unsafe {
        let offset = (at as usize).wrapping_sub(Span::first(span) as usize);
        if offset < Span::ROOM && is_beginning(offset, (*span).block, (*span).inverse) {
            return (at.cast(), 0);
        }
        if offset >= Span::ROOM || !(*span).aligned.load(Ordering::Relaxed) {
            wrong(at);
        }
        let within = offset % (*span).block as usize;
        (at.sub(within).cast(), within)
    }
}

#[cold]
#[inline(never)]
fn wrong(at: *mut u8) -> ! {
    end_at(b"a pointer was given back that no heap handed out: ", at)
}

#[cold]
fn end_at(why: &[u8], at: *mut u8) -> ! {
    let mut digits = [b'0'; 18];
    digits[1] = b'x';
    for (i, digit) in digits[2..].iter_mut().enumerate() {
        let nibble = (at as usize >> (60 - 4 * i) & 15) as u8;
        *digit = if nibble < 10 {
            b'0' + nibble
        } else {
            b'a' + nibble - 10
        };
    }
    sys::say(&[b"warmset: ", why, &digits, b"\n"]);
    sys::end(b"the program is ended: it would use memory that is not its own")
}

/// Gives memory back. False, and nothing happens, where the address is in no heap.
///
/// # Safety
/// Nobody uses the memory any more. What is found to be wrong ends the program with a message.
#[inline(always)]
pub unsafe fn release(at: *mut u8) -> bool {
    if !ARENA.owns(at) {
        return false;
    }
    let span = span_of(at);
    // SAFETY: what was handed out lies behind the description of its span.
    unsafe {
        if (*span).block == 0 {
            release_large(span, at);
            return true;
        }
        let (block, _) = block_of(span, at);
        if (*block).mark == FREE_MARK {
            end_at(b"memory was given back twice: ", at);
        }
        local::give(span, block);
    }
    true
}

#[inline(never)]
// SAFETY: callers give a mapped span of one large block, which nobody uses any more.
unsafe fn release_large(span: *mut Span, at: *mut u8) {
    // SAFETY: the caller's; whoever wins the exchange gives the slots back.
    unsafe {
        let found = at as usize == span as usize + (*span).offset as usize;
        if !found
            || (*span)
                .state
                .compare_exchange(LARGE, 0, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
        {
            wrong(at);
        }
        ARENA.release(span.cast(), (*span).slots as usize);
    }
}

/// The heap of an address in a heap.
pub fn heap_of(at: *const u8) -> usize {
    ARENA.place(at).0
}

/// Bytes that can be used at an address that a heap handed out.
///
/// # Safety
/// It was, and was not given back.
pub unsafe fn usable(at: *mut u8) -> usize {
    let span = span_of(at);
    // SAFETY: the caller's.
    unsafe {
        if (*span).block == 0 {
            (*span).slots as usize * SLOT - (*span).offset as usize
        } else {
            let (_, within) = block_of(span, at);
            (*span).block as usize - within
        }
    }
}

/// Another size for memory that a heap handed out, in its place if it can be; null, and nothing
/// changed, where no more can be had.
///
/// # Safety
/// As [`usable`]; the old address is given back when another comes.
pub unsafe fn reallocate(at: *mut u8, size: usize, align: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        let room = usable(at);
        if size <= room && (size >= room / 2 || room <= 64) {
            return at;
        }
        let span = span_of(at);
        if (*span).block == 0 && size > LARGEST && size <= MOST {
            let slots = (size + (*span).offset as usize).div_ceil(SLOT);
            let had = (*span).slots as usize;
            let behind = span.cast::<u8>().add(had * SLOT);
            if slots < had {
                ARENA.release(span.cast::<u8>().add(slots * SLOT), had - slots);
                (*span).slots = slots as u32;
                return at;
            }
            if slots == had
                || (ARENA.owns(behind) && ARENA.take_at(behind, slots - had, Use::Large))
            {
                (*span).slots = slots as u32;
                return at;
            }
        }
        let new = allocate(heap_of(at), size, align);
        if !new.is_null() {
            new.copy_from_nonoverlapping(at, room.min(size));
            release(at);
        }
        new
    }
}
