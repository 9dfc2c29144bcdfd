//! Anonymous private mappings of the program, in colors: slots of the heaps.
//!
//! What only reserves addresses (no rights, MAP_NORESERVE), what has a fixed place, and what is
//! backed by a file stays as it is. Colored memory is there from the beginning. Where it runs out,
//! the rest of a mapping is ordinary memory; in strict mode the mapping fails with ENOMEM.

use crate::alloc::arena::{ARENA, Use, is_tile};
use crate::alloc::class::SLOT;
use crate::alloc::sys::{self, PAGE};
use crate::alloc::thread;
use crate::message::MAPPING;
use crate::setup;
use core::ffi::{c_int, c_void};

const PRIVATE: c_int = 2;
const ANONYMOUS: c_int = 0x20;
const FIXED: c_int = 0x10;
/// Flags that do not matter to memory that is there: MAP_STACK, MAP_POPULATE, MAP_NONBLOCK,
/// MAP_LOCKED.
const HARMLESS: c_int = 0x20000 | 0x8000 | 0x10000 | 0x2000;
const READ_WRITE: c_int = sys::READ | sys::WRITE;
const FAILED: *mut c_void = usize::MAX as *mut c_void;

const DO_NOT_NEED: c_int = 4;
const FREE: c_int = 8;
const HUGE_PAGES: c_int = 14;
const NO_HUGE_PAGES: c_int = 15;

fn had(at: Option<*mut u8>) -> *mut c_void {
    at.map_or(FAILED, <*mut u8>::cast)
}

fn failed(error: c_int) -> *mut c_void {
    sys::set_errno(error);
    FAILED
}

/// # Safety
/// As for mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap(
    at: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    let anonymous = flags & ANONYMOUS != 0 && flags & 0xf == PRIVATE;
    if anonymous
        && flags & !(PRIVATE | ANONYMOUS | HARMLESS) == 0
        && protection & sys::WRITE != 0
        && size > 0
        && setup::colors(MAPPING)
    {
        return colored(size, protection);
    }
    // SAFETY: the caller's.
    unsafe {
        if flags & FIXED != 0 && ARENA.owns(at.cast()) {
            let size = size.next_multiple_of(PAGE);
            if anonymous && is_mapping(at.cast(), size) {
                // The same memory again, zero.
                sys::protect(at.cast(), size, READ_WRITE);
                clear(at.cast(), size);
                mprotect(at, size, protection);
                return at;
            }
            // Something else is there from now on, for good: these slots are not used again.
            abandon(at.cast(), size);
        }
        had(sys::mmap(at.cast(), size, protection, flags, file, offset))
    }
}

/// # Safety
/// As for mmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mmap64(
    at: *mut c_void,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> *mut c_void {
    // SAFETY: the caller's.
    unsafe { mmap(at, size, protection, flags, file, offset) }
}

fn colored(size: usize, protection: c_int) -> *mut c_void {
    let slots = size.div_ceil(SLOT);
    let Some((at, zero)) = ARENA.take(thread::default_heap(), slots, Use::Mapping) else {
        if setup::is_strict() {
            return failed(sys::ENOMEM);
        }
        // Larger than what is left of the heap's addresses.
        const NEW: c_int = PRIVATE | ANONYMOUS;
        // SAFETY: a new mapping, away from all others.
        return had(unsafe { sys::mmap(core::ptr::null_mut(), size, protection, NEW, -1, 0) });
    };
    let size = size.next_multiple_of(PAGE);
    if !zero {
        // SAFETY: slots that were just taken.
        unsafe { at.write_bytes(0, size) };
    }
    // What the last slot has beyond the mapping is not part of it.
    let (heap, first) = ARENA.place(at);
    let left = (size - (slots - 1) * SLOT) / PAGE;
    ARENA.with(heap, |books| books.slot(first + slots - 1).pages = pages(0, left));
    if protection != READ_WRITE {
        // SAFETY: as above.
        unsafe { mprotect(at.cast(), size, protection) };
    }
    at.cast()
}

/// A set of pages of a slot, from one to another.
fn pages(from: usize, to: usize) -> u16 {
    (((1_u32 << to) - 1) & !((1_u32 << from) - 1)) as u16
}

/// Goes through the slots that a range touches: which one, and which of its pages.
fn each(at: *mut u8, size: usize, mut body: impl FnMut(usize, usize, u16)) {
    let (heap, first) = ARENA.place(at);
    let begin = at as usize - ARENA.address(heap, first) as usize;
    let mut slot = first;
    while slot < ARENA.slots() && (slot - first) * SLOT < begin + size {
        let from = begin.saturating_sub((slot - first) * SLOT) / PAGE;
        let to = ((begin + size - (slot - first) * SLOT).div_ceil(PAGE)).min(SLOT / PAGE);
        body(heap, slot, pages(from, to));
        slot += 1;
    }
}

fn is_mapping(at: *mut u8, size: usize) -> bool {
    let mut all = true;
    each(at, size, |heap, slot, pages| {
        all &= ARENA.with(heap, |books| {
            let it = books.slot(slot);
            it.usage == Use::Mapping && it.pages & pages == pages
        });
    });
    all
}

fn abandon(at: *mut u8, size: usize) {
    each(at, size, |heap, slot, _| {
        ARENA.with(heap, |books| {
            let it = books.slot(slot);
            ARENA.count_out(it);
            it.usage = Use::Foreign;
        });
    });
}

/// # Safety
/// As for munmap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn munmap(at: *mut c_void, size: usize) -> c_int {
    // SAFETY: the caller's.
    unsafe {
        if !ARENA.owns(at.cast()) {
            return if sys::unmap(at.cast(), size) { 0 } else { -1 };
        }
        if !(at as usize).is_multiple_of(PAGE) || size == 0 {
            failed(22);
            return -1;
        }
        // Slots that become free are given back in one go, as far as they follow each other.
        let mut run: (*mut u8, usize) = (core::ptr::null_mut(), 0);
        each(at.cast(), size, |heap, slot, pages| {
            let address = ARENA.address(heap, slot);
            let free = ARENA.with(heap, |books| {
                let it = books.slot(slot);
                if it.usage != Use::Mapping {
                    return false;
                }
                it.pages &= !pages;
                if it.pages != 0 {
                    it.restricted = true;
                    return false;
                }
                if core::mem::replace(&mut it.restricted, false) {
                    sys::protect(address, SLOT, READ_WRITE);
                }
                true
            });
            if free {
                if run.1 > 0 && run.0.wrapping_add(run.1 * SLOT) == address {
                    run.1 += 1;
                } else {
                    if run.1 > 0 {
                        ARENA.release(run.0, run.1);
                    }
                    run = (address, 1);
                }
            } else {
                // The rest of the slot stays; these pages are not to be touched any more.
                let from = pages.trailing_zeros() as usize * PAGE;
                sys::protect(address.add(from), pages.count_ones() as usize * PAGE, 0);
            }
        });
        if run.1 > 0 {
            ARENA.release(run.0, run.1);
        }
    }
    0
}

/// Clears pages of mappings: ordinary memory goes back to the system, tiles keep their frames.
/// Pages may be protected.
///
/// # Safety
/// The range is of mappings in the heaps, and nobody needs what is in it.
unsafe fn clear(at: *mut u8, size: usize) {
    each(at, size, |heap, slot, pages| {
        let it = ARENA.with(heap, |books| *books.slot(slot));
        let from = ARENA
            .address(heap, slot)
            .wrapping_add(pages.trailing_zeros() as usize * PAGE);
        let length = pages.count_ones() as usize * PAGE;
        // SAFETY: the caller's.
        unsafe {
            if !is_tile(it.tile) {
                sys::drop_pages(from, length);
            } else if !it.restricted {
                from.write_bytes(0, length);
            } else {
                // One page at a time: their rights may differ, and so their mappings.
                for page in (0..length).step_by(PAGE) {
                    sys::clear_shared(from.wrapping_add(page), PAGE);
                }
            }
        }
    });
}

/// # Safety
/// As for mprotect(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mprotect(at: *mut c_void, size: usize, protection: c_int) -> c_int {
    if ARENA.owns(at.cast()) && size > 0 {
        each(at.cast(), size, |heap, slot, _| {
            ARENA.with(heap, |books| books.slot(slot).restricted = true);
        });
    }
    // SAFETY: the caller's.
    if unsafe { sys::protect(at.cast(), size, protection) } {
        0
    } else {
        -1
    }
}

/// # Safety
/// As for madvise(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn madvise(at: *mut c_void, size: usize, advice: c_int) -> c_int {
    if ARENA.owns(at.cast()) {
        match advice {
            // What was written goes, as it does with memory that is not shared.
            DO_NOT_NEED => {
                // SAFETY: the caller's.
                unsafe {
                    if is_mapping(at.cast(), size) {
                        clear(at.cast(), size.next_multiple_of(PAGE));
                    }
                }
                return 0;
            }
            FREE | HUGE_PAGES | NO_HUGE_PAGES => return 0,
            _ => {}
        }
    }
    // SAFETY: the caller's.
    if unsafe { sys::advise(at.cast(), size, advice) } {
        0
    } else {
        -1
    }
}

/// # Safety
/// As for mremap(2).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn mremap(
    at: *mut c_void,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut c_void,
) -> *mut c_void {
    const MAY_MOVE: c_int = 1;
    // SAFETY: the caller's.
    unsafe {
        if !ARENA.owns(at.cast()) {
            return had(sys::remap(at.cast(), old, new, flags, to.cast()));
        }
        if new == 0 || flags & !MAY_MOVE != 0 {
            // To a fixed place: colored memory stays where it is.
            return failed(22);
        }
        let (old, new) = (old.next_multiple_of(PAGE), new.next_multiple_of(PAGE));
        if new <= old {
            if new < old {
                munmap(at.cast::<u8>().add(new).cast(), old - new);
            }
            return at;
        }
        if flags & MAY_MOVE == 0 {
            return failed(sys::ENOMEM);
        }
        let moved = colored(new, READ_WRITE);
        if moved != FAILED {
            moved.cast::<u8>().copy_from_nonoverlapping(at.cast(), old);
            munmap(at, old);
        }
        moved
    }
}
