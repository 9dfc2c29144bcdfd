//! The malloc family of the C library, in colors.

use crate::alloc::arena::ARENA;
use crate::alloc::{heap, sys, thread};
use crate::message::HEAP;
use crate::{setup, stacks};
use core::ffi::{c_int, c_void};
use core::ptr::null_mut;
use core::sync::atomic::AtomicPtr;

unsafe extern "C" {
    // The C library's own, by names that nobody replaces: for what is allocated before the
    // environment can be read, in programs without a supervisor, and where the heap is not to be
    // colored.
    fn __libc_malloc(size: usize) -> *mut c_void;
    fn __libc_calloc(number: usize, size: usize) -> *mut c_void;
    fn __libc_realloc(at: *mut c_void, size: usize) -> *mut c_void;
    fn __libc_memalign(align: usize, size: usize) -> *mut c_void;
    fn __libc_free(at: *mut c_void);
}

const INVALID: c_int = 22;

fn had(at: *mut u8) -> *mut c_void {
    if at.is_null() {
        sys::set_errno(sys::ENOMEM);
    }
    at.cast()
}

fn colored() -> bool {
    setup::colors(HEAP)
}

/// What a heap gave, or else what the C library has: a heap may have no addresses left.
fn or_ordinary(at: *mut u8, ordinary: impl FnOnce() -> *mut c_void) -> *mut c_void {
    match at.is_null() && !setup::is_strict() {
        true => ordinary(),
        false => had(at),
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc(size: usize) -> *mut c_void {
    if !colored() {
        // SAFETY: the C library's.
        return unsafe { __libc_malloc(size) };
    }
    or_ordinary(heap::allocate(thread::default_heap(), size, 16), || {
        // SAFETY: the C library's.
        unsafe { __libc_malloc(size) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn calloc(number: usize, size: usize) -> *mut c_void {
    if !colored() {
        // SAFETY: the C library's.
        return unsafe { __libc_calloc(number, size) };
    }
    match number.checked_mul(size) {
        Some(all) => or_ordinary(heap::allocate_zeroed(thread::default_heap(), all, 16), || {
            // SAFETY: the C library's.
            unsafe { __libc_calloc(number, size) }
        }),
        None => had(null_mut()),
    }
}

/// # Safety
/// As for free(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn free(at: *mut c_void) {
    if at.is_null() {
        return;
    }
    // SAFETY: the caller's; what is no heap's is the C library's, which tells what is not.
    unsafe {
        if !heap::release(at.cast()) {
            __libc_free(at);
        }
    }
}

/// # Safety
/// As for realloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn realloc(at: *mut c_void, size: usize) -> *mut c_void {
    if at.is_null() {
        return malloc(size);
    }
    // SAFETY: the caller's.
    unsafe {
        if !ARENA.owns(at.cast()) {
            return __libc_realloc(at, size);
        }
        if size == 0 {
            free(at);
            return null_mut();
        }
        or_ordinary(heap::reallocate(at.cast(), size, 16), || {
            let new = __libc_malloc(size);
            if !new.is_null() {
                let kept = heap::usable(at.cast()).min(size);
                new.cast::<u8>().copy_from_nonoverlapping(at.cast(), kept);
                heap::release(at.cast());
            }
            new
        })
    }
}

/// # Safety
/// As for reallocarray(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn reallocarray(at: *mut c_void, number: usize, size: usize) -> *mut c_void {
    match number.checked_mul(size) {
        // SAFETY: the caller's.
        Some(size) => unsafe { realloc(at, size) },
        None => had(null_mut()),
    }
}

fn aligned(align: usize, size: usize) -> *mut c_void {
    if !colored() {
        // SAFETY: the C library's.
        return unsafe { __libc_memalign(align, size) };
    }
    or_ordinary(heap::allocate(thread::default_heap(), size, align), || {
        // SAFETY: the C library's.
        unsafe { __libc_memalign(align, size) }
    })
}

#[unsafe(no_mangle)]
pub extern "C" fn memalign(align: usize, size: usize) -> *mut c_void {
    aligned(align.max(1).next_power_of_two(), size)
}

#[unsafe(no_mangle)]
pub extern "C" fn aligned_alloc(align: usize, size: usize) -> *mut c_void {
    if !align.is_power_of_two() {
        sys::set_errno(INVALID);
        return null_mut();
    }
    aligned(align, size)
}

/// # Safety
/// As for posix_memalign(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn posix_memalign(to: *mut *mut c_void, align: usize, size: usize) -> c_int {
    if !align.is_power_of_two() || !align.is_multiple_of(size_of::<usize>()) {
        return INVALID;
    }
    let error = sys::errno();
    let got = aligned(align, size);
    sys::set_errno(error);
    if got.is_null() {
        return sys::ENOMEM;
    }
    // SAFETY: the caller's.
    unsafe { *to = got };
    0
}

#[unsafe(no_mangle)]
pub extern "C" fn valloc(size: usize) -> *mut c_void {
    aligned(sys::PAGE, size)
}

#[unsafe(no_mangle)]
pub extern "C" fn pvalloc(size: usize) -> *mut c_void {
    aligned(sys::PAGE, size.max(1).next_multiple_of(sys::PAGE))
}

/// # Safety
/// As for malloc_usable_size(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn malloc_usable_size(at: *mut c_void) -> usize {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    if !at.is_null() && ARENA.owns(at.cast()) {
        // SAFETY: the caller's.
        return unsafe { heap::usable(at.cast()) };
    }
    // The C library's answer: callers subtract what they asked for, so that 0 would not do.
    // SAFETY: the function of this name; the caller's.
    unsafe {
        let usable: unsafe extern "C" fn(*mut c_void) -> usize =
            core::mem::transmute(stacks::next(c"malloc_usable_size", &NEXT));
        usable(at)
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn malloc_trim(_: usize) -> c_int {
    c_int::from(setup::ready() && ARENA.trim() > 0)
}
