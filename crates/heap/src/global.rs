//! A global allocator over colored heaps.

use crate::alloc::arena::ARENA;
use crate::alloc::{heap, thread};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Is this thread asking the memory server for more? What it needs for that comes from the
    /// system.
    static OUTSIDE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a body whose own memory comes from the system.
pub(crate) fn outside<T>(body: impl FnOnce() -> T) -> T {
    let before = OUTSIDE.replace(true);
    let result = body();
    OUTSIDE.set(before);
    result
}

/// The global allocator of a program:
/// `#[global_allocator] static HEAP: heap::Colored = heap::Colored;`
///
/// Until [`crate::attach`] succeeded, memory is the system's; from then on it has color 0, or the
/// color of the task ([`crate::Choice::ByTask`]). What was allocated before stays where it is.
#[derive(Clone, Copy, Debug, Default)]
pub struct Colored;

// SAFETY: blocks of heaps are disjoint, aligned and as large as asked; all others are the system's,
// told apart by address.
unsafe impl GlobalAlloc for Colored {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if OUTSIDE.get() || !ARENA.is_open() {
            // SAFETY: the caller's.
            return unsafe { System.alloc(layout) };
        }
        heap::allocate(thread::default_heap(), layout.size(), layout.align())
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if OUTSIDE.get() || !ARENA.is_open() {
            // SAFETY: the caller's.
            return unsafe { System.alloc_zeroed(layout) };
        }
        heap::allocate_zeroed(thread::default_heap(), layout.size(), layout.align())
    }

    #[inline]
    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's: it is the system's or a heap's.
        unsafe {
            if !heap::release(at) {
                System.dealloc(at, layout);
            }
        }
    }

    #[inline]
    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above.
        unsafe {
            if ARENA.owns(at) {
                heap::reallocate(at, size, layout.align())
            } else {
                System.realloc(at, layout, size)
            }
        }
    }
}
