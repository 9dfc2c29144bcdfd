//! A thread's part of a heap: spans by size class, and the ways in and out of them.
//!
//! Blocks are handed out and taken back without a lock or an atomic instruction by the thread that
//! has the span. Another thread that frees a block puts it on the span's own list; where the span
//! was full, it also tells the owner, under the lock of the heap. When a thread ends, its part is
//! orphaned as it is, and the next one that needs a span takes it up.

use super::arena::{ARENA, Books, Use};
use super::class::{CLASSES, SLOT};
use super::span::{Block, CURRENT, FREE_MARK, FULL, Local, PARTIAL, Span, UNLISTED};
use super::thread::{self, Thread};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU8, Ordering};

/// In the place of a current span where there is none: it has no blocks.
struct Nothing(Span);
// SAFETY: nobody writes to it: it has nothing to hand out and no block of it can be freed.
unsafe impl Sync for Nothing {}
static NOTHING: Nothing = Nothing(Span {
    free: null_mut(),
    used: 0,
    block: 0,
    inverse: 0,
    state: AtomicU8::new(CURRENT),
    class: 0,
    aligned: AtomicBool::new(false),
    fresh: SLOT as u32,
    slots: 0,
    offset: 0,
    heap: 0,
    remote: AtomicPtr::new(null_mut()),
    owner: AtomicPtr::new(null_mut()),
    next: null_mut(),
    previous: null_mut(),
    returned: null_mut(),
});

fn nothing() -> *mut Span {
    (&raw const NOTHING.0).cast_mut()
}

/// The calling thread's part of a heap; null where there is no memory for it.
#[inline(always)]
pub fn of(heap: usize) -> *mut Local {
    let thread = thread::current();
    if thread.is_null() {
        return null_mut();
    }
    // SAFETY: the calling thread's own.
    let local = unsafe { (*thread).locals[heap] };
    if local.is_null() {
        join(heap, thread)
    } else {
        local
    }
}

#[cold]
fn join(heap: usize, thread: *mut Thread) -> *mut Local {
    let mut local = pop(heap, |books| &mut books.orphans);
    if local.is_null() {
        local = pop(heap, |books| &mut books.spare);
    }
    if local.is_null() {
        let Some(room) = ARENA.room(heap, size_of::<Local>()) else {
            return null_mut();
        };
        local = room.cast();
        // SAFETY: room for it, aligned to cache lines.
        unsafe {
            local.write(Local {
                current: [nothing(); CLASSES],
                partial: [null_mut(); CLASSES],
                heap,
                returned: null_mut(),
                has_returned: AtomicBool::new(false),
                heir: null_mut(),
                next: null_mut(),
            });
        }
    }
    // SAFETY: the thread is the calling one.
    unsafe { (*thread).locals[heap] = local };
    local
}

/// Takes the first of a list, which has no heir from now on.
fn pop(heap: usize, list: impl FnOnce(&mut Books) -> &mut *mut Local) -> *mut Local {
    ARENA.with(heap, |books| {
        let list = list(books);
        let first = *list;
        if !first.is_null() {
            // SAFETY: what is on a list is alive and nobody's; the lists are under the lock.
            unsafe {
                *list = (*first).next;
                (*first).heir = null_mut();
            }
        }
        first
    })
}

/// A small block; null where no more can be had.
///
/// # Safety
/// The local is the calling thread's.
#[inline(always)]
pub unsafe fn take(local: *mut Local, class: usize) -> *mut u8 {
    // SAFETY: the caller's, as in all of this file: whoever has a local has its spans.
    unsafe {
        let span = (*local).current[class];
        let block = (*span).free;
        if block.is_null() {
            return slow(local, class);
        }
        (*span).free = (*block).next;
        (*span).used += 1;
        (*block).mark = 0;
        block.cast()
    }
}

#[cold]
#[inline(never)]
// SAFETY: callers give their own thread's slots, and a class that there is.
unsafe fn slow(local: *mut Local, class: usize) -> *mut u8 {
    // SAFETY: the caller's.
    unsafe {
        loop {
            let span = (*local).current[class];
            if span != nothing() {
                if !(*span).free.is_null() || Span::collect(span) || Span::extend(span) {
                    // It has blocks: this does not come back here.
                    return take(local, class);
                }
                (*span).state.store(FULL, Ordering::Relaxed);
                (*local).current[class] = nothing();
                if (*span)
                    .remote
                    .compare_exchange(null_mut(), UNLISTED, Ordering::AcqRel, Ordering::Acquire)
                    .is_err()
                {
                    // A block came back just now.
                    (*span).state.store(CURRENT, Ordering::Relaxed);
                    (*local).current[class] = span;
                    continue;
                }
            }
            take_returned(local);
            let span = (*local).partial[class];
            if !span.is_null() {
                unlist(local, span);
                (*span).state.store(CURRENT, Ordering::Relaxed);
                (*local).current[class] = span;
                continue;
            }
            if take_up(local) {
                continue;
            }
            let Some((at, _)) = ARENA.take((*local).heap, 1, Use::Span) else {
                return null_mut();
            };
            let span = at.cast::<Span>();
            Span::begin(span, class, (*local).heap as u16, local);
            (*local).current[class] = span;
        }
    }
}

/// Puts a span with free blocks on the list of its class.
// SAFETY: callers give their own thread's slots, and a span of theirs that is on no list.
unsafe fn list(local: *mut Local, span: *mut Span) {
    // SAFETY: the caller's.
    unsafe {
        let class = usize::from((*span).class);
        let first = (*local).partial[class];
        (*span).state.store(PARTIAL, Ordering::Relaxed);
        (*span).previous = null_mut();
        (*span).next = first;
        if !first.is_null() {
            (*first).previous = span;
        }
        (*local).partial[class] = span;
    }
}

// SAFETY: callers give their own thread's slots, and a span that is on their list.
unsafe fn unlist(local: *mut Local, span: *mut Span) {
    // SAFETY: the caller's; the span is on the list of its class.
    unsafe {
        let (next, previous) = ((*span).next, (*span).previous);
        if previous.is_null() {
            (*local).partial[usize::from((*span).class)] = next;
        } else {
            (*previous).next = next;
        }
        if !next.is_null() {
            (*next).previous = previous;
        }
    }
}

/// Takes in full spans of which other threads freed blocks.
// SAFETY: callers give their own thread's part.
unsafe fn take_returned(local: *mut Local) {
    // SAFETY: the caller's; the list is under the lock.
    unsafe {
        if (*local).has_returned.load(Ordering::Relaxed) {
            let first = ARENA.with((*local).heap, |_| {
                (*local).has_returned.store(false, Ordering::Relaxed);
                core::mem::replace(&mut (*local).returned, null_mut())
            });
            settle_returned(local, first);
        }
    }
}

// SAFETY: callers give their own thread's part, and returned spans that nobody else has.
unsafe fn settle_returned(local: *mut Local, mut span: *mut Span) {
    // SAFETY: the caller's.
    unsafe {
        while !span.is_null() {
            let next = (*span).returned;
            settle(local, span);
            span = next;
        }
    }
}

/// A span that is on no list comes onto that of its class, or is free when all its blocks are.
// SAFETY: callers give their own thread's part, and a span of nobody else that is on no list.
unsafe fn settle(local: *mut Local, span: *mut Span) {
    // SAFETY: the caller's.
    unsafe {
        (*span).owner.store(local, Ordering::Relaxed);
        Span::collect(span);
        if (*span).used == 0 {
            end(span);
        } else {
            list(local, span);
        }
    }
}

/// A span of which all blocks are free is a free slot again.
// SAFETY: callers give a span of theirs that is on no list, and all of whose blocks are free.
unsafe fn end(span: *mut Span) {
    // SAFETY: the caller's.
    unsafe {
        (*span).state.store(0, Ordering::Relaxed);
        (*span).owner.store(null_mut(), Ordering::Relaxed);
    }
    ARENA.release(span.cast(), 1);
}

/// Takes up the spans of an orphan; says whether there was one.
// SAFETY: callers give their own thread's part.
unsafe fn take_up(local: *mut Local) -> bool {
    // SAFETY: the caller's; orphans are under the lock, and this one nobody else's afterwards.
    unsafe {
        let heap = (*local).heap;
        let (orphan, returned) = ARENA.with(heap, |books| {
            let orphan = books.orphans;
            if orphan.is_null() {
                return (orphan, null_mut());
            }
            books.orphans = (*orphan).next;
            (*orphan).heir = local;
            (*orphan).has_returned.store(false, Ordering::Relaxed);
            (
                orphan,
                core::mem::replace(&mut (*orphan).returned, null_mut()),
            )
        });
        if orphan.is_null() {
            return false;
        }
        settle_returned(local, returned);
        for class in 0..CLASSES {
            let current = core::mem::replace(&mut (*orphan).current[class], nothing());
            if current != nothing() {
                settle(local, current);
            }
            let mut span = core::mem::replace(&mut (*orphan).partial[class], null_mut());
            while !span.is_null() {
                let next = (*span).next;
                settle(local, span);
                span = next;
            }
        }
        // Whoever uses it anew owns the full spans that still name it.
        ARENA.with(heap, |books| {
            (*orphan).next = books.spare;
            books.spare = orphan;
        });
        true
    }
}

/// A block comes back.
///
/// # Safety
/// The block is of this span, and nobody uses it any more.
#[inline(always)]
pub unsafe fn give(span: *mut Span, block: *mut Block) {
    // SAFETY: the caller's.
    unsafe {
        let thread = thread::known();
        let local = (*span).owner.load(Ordering::Relaxed);
        if thread.is_null() || (*thread).locals[usize::from((*span).heap)] != local {
            return give_to_owner(span, block);
        }
        (*block).next = (*span).free;
        (*block).mark = FREE_MARK;
        (*span).free = block;
        (*span).used -= 1;
        if (*span).state.load(Ordering::Relaxed) != CURRENT {
            given(local, span);
        }
    }
}

/// The owner gave a block of a span that is not the current one.
#[inline(never)]
// SAFETY: callers give their own thread's part, and a span of it that is not the current one.
unsafe fn given(local: *mut Local, span: *mut Span) {
    // SAFETY: the caller's.
    unsafe {
        if (*span).state.load(Ordering::Relaxed) == PARTIAL {
            if (*span).used == 0 {
                unlist(local, span);
                end(span);
            }
        } else if (*span)
            .remote
            .compare_exchange(UNLISTED, null_mut(), Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
        {
            settle(local, span);
        }
        // Otherwise another thread is about to return it, and then it is settled.
    }
}

#[cold]
#[inline(never)]
// SAFETY: callers give a block of this span that nobody uses any more.
unsafe fn give_to_owner(span: *mut Span, block: *mut Block) {
    // SAFETY: the caller's; a full span stays until it was returned, any other is not touched after
    // the exchange.
    unsafe {
        let heap = usize::from((*span).heap);
        (*block).mark = FREE_MARK;
        let mut before = (*span).remote.load(Ordering::Relaxed);
        loop {
            (*block).next = if before == UNLISTED {
                null_mut()
            } else {
                before
            };
            match (*span).remote.compare_exchange_weak(
                before,
                block,
                Ordering::AcqRel,
                Ordering::Relaxed,
            ) {
                Ok(_) => break,
                Err(now) => before = now,
            }
        }
        if before == UNLISTED {
            ARENA.with(heap, |_| {
                let mut owner = (*span).owner.load(Ordering::Relaxed);
                while !(*owner).heir.is_null() {
                    owner = (*owner).heir;
                }
                (*span).returned = (*owner).returned;
                (*owner).returned = span;
                (*owner).has_returned.store(true, Ordering::Relaxed);
            });
        }
    }
}
