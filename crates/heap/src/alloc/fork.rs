//! Heaps across `fork`. Tiles are shared memory: without more, parent and child would write into
//! the same heap.
//!
//! Before the fork what is mapped is copied to ordinary memory; the child puts the copies in the
//! place of the tiles, the parent drops them. The parent keeps its tiles and their colors; what the
//! child inherits has no color, what it takes afterwards has. A child that only calls `exec`
//! notices nothing.

use super::arena::{ARENA, INHERITED, Use, is_tile};
use super::class::SLOT;
use super::sys;
use core::cell::UnsafeCell;
use core::ffi::c_int;
use core::ptr::null_mut;

unsafe extern "C" {
    fn pthread_atfork(
        prepare: Option<unsafe extern "C" fn()>,
        parent: Option<unsafe extern "C" fn()>,
        child: Option<unsafe extern "C" fn()>,
    ) -> c_int;
}

/// A copy of a stretch of memory.
#[derive(Clone, Copy)]
pub struct Copied {
    at: *mut u8,
    copy: *mut u8,
    size: usize,
}

/// Copies made before a fork. Under all locks.
pub struct Copies {
    list: *mut Copied,
    number: usize,
    room: usize,
}

impl Copies {
    /// None.
    pub const fn new() -> Self {
        Copies {
            list: null_mut(),
            number: 0,
            room: 0,
        }
    }

    /// Copies a stretch of memory. Where it may not be read everywhere, `readable` is false; then
    /// the copy may be.
    ///
    /// # Safety
    /// It is mapped.
    pub unsafe fn add(&mut self, at: *mut u8, size: usize, readable: bool) {
        if self.number == self.room {
            let room = (self.room * 2).max(512);
            let Some(list) = sys::plain(room * size_of::<Copied>()) else {
                sys::end(b"no memory for the copy that a fork needs");
            };
            let list = list.cast::<Copied>();
            if self.room > 0 {
                // SAFETY: both are lists, the old one with so many entries, and ours.
                unsafe {
                    list.copy_from_nonoverlapping(self.list, self.number);
                    sys::unmap(self.list.cast(), self.room * size_of::<Copied>());
                }
            }
            self.list = list;
            self.room = room;
        }
        let Some(copy) = sys::plain(size) else {
            sys::end(b"no memory for the copy that a fork needs");
        };
        // SAFETY: the caller's; the copy is as long, and the list has room.
        unsafe {
            if readable {
                copy.copy_from_nonoverlapping(at, size);
            } else if !sys::read_memory(at, copy, size) {
                sys::end(b"memory cannot be copied for a fork: /proc is not there");
            }
            self.list.add(self.number).write(Copied { at, copy, size });
        }
        self.number += 1;
    }

    /// Drops the copies: in the parent.
    pub fn drop_all(&mut self) {
        for i in 0..self.number {
            // SAFETY: an entry of the list, whose copy is ours alone.
            unsafe {
                let it = *self.list.add(i);
                sys::unmap(it.copy, it.size);
            }
        }
        self.number = 0;
    }

    /// Puts the copies in the place of what was copied: in the child.
    pub fn put(&mut self) {
        for i in 0..self.number {
            // SAFETY: as above; nobody but this thread is there, and it does not use what is
            // replaced.
            unsafe {
                let it = *self.list.add(i);
                if !sys::move_over(it.copy, it.size, it.at) {
                    sys::end(b"the copy that a fork needs cannot be put in its place");
                }
            }
        }
        self.number = 0;
    }
}

struct Held(UnsafeCell<Copies>);
// SAFETY: touched between `prepare` and `parent` or `child` only, under all locks.
unsafe impl Sync for Held {}
static COPIES: Held = Held(UnsafeCell::new(Copies::new()));

/// What else is copied: for the library that is loaded into programs.
#[derive(Clone, Copy)]
pub struct More {
    /// Adds copies, before the fork.
    pub copy: fn(&mut Copies),
    /// After the fork, in the parent (false) or the child (true), whose copies are in their places.
    pub done: fn(bool),
}

struct Also(UnsafeCell<Option<More>>);
// SAFETY: written before the first fork.
unsafe impl Sync for Also {}
static ALSO: Also = Also(UnsafeCell::new(None));

fn also() -> Option<More> {
    // SAFETY: written once, before.
    unsafe { *ALSO.0.get() }
}

/// Heaps outlive forks from now on. Says whether the C library agreed.
pub fn watch(more: Option<More>) -> bool {
    // SAFETY: no fork has come yet; the functions are there as long as the process.
    unsafe {
        *ALSO.0.get() = more;
        pthread_atfork(Some(prepare), Some(parent), Some(child)) == 0
    }
}

/// Before a fork: takes all locks and copies what is mapped.
pub unsafe extern "C" fn prepare() {
    super::thread::lock();
    for heap in 0..ARENA.heaps() {
        ARENA.region(heap).lock.take();
        // SAFETY: the lock was taken; nobody else has copies.
        let (books, copies) = unsafe { (ARENA.books(heap), &mut *COPIES.0.get()) };
        let mut slot = 0;
        while slot < books.high {
            let first = slot;
            // What is ordinary memory, fork copies by itself.
            while slot < books.high && {
                let it = books.slot(slot);
                is_tile(it.tile) && !matches!(it.usage, Use::Nothing | Use::Idle | Use::Foreign)
            } {
                slot += 1;
            }
            if slot > first {
                let size = (slot - first) * SLOT;
                let at = ARENA.address(heap, first);
                let whole = (first..slot).all(|s| !books.slot(s).restricted);
                // SAFETY: mapped.
                unsafe { copies.add(at, size, whole) };
            }
            slot += 1;
        }
    }
    if let Some(more) = also() {
        // SAFETY: all locks are ours.
        (more.copy)(unsafe { &mut *COPIES.0.get() });
    }
}

/// After a fork, in the parent.
pub unsafe extern "C" fn parent() {
    // SAFETY: all locks are ours since `prepare`.
    unsafe { (*COPIES.0.get()).drop_all() };
    if let Some(more) = also() {
        (more.done)(false);
    }
    unlock();
}

/// After a fork, in the child.
pub unsafe extern "C" fn child() {
    // SAFETY: as above.
    unsafe { (*COPIES.0.get()).put() };
    for heap in 0..ARENA.heaps() {
        // SAFETY: as above.
        let books = unsafe { ARENA.books(heap) };
        for slot in 0..books.high {
            match books.slot(slot).usage {
                Use::Nothing => {}
                // The parent's, whose child may not write to it.
                Use::Idle => {
                    // SAFETY: a slot that nobody uses.
                    unsafe { sys::plain_at(ARENA.address(heap, slot), SLOT, 0) };
                    books.slot(slot).usage = Use::Nothing;
                }
                _ => books.slot(slot).tile = INHERITED,
            }
        }
    }
    ARENA.forget_ordinary();
    if let Some(more) = also() {
        (more.done)(true);
    }
    unlock();
}

fn unlock() {
    for heap in (0..ARENA.heaps()).rev() {
        ARENA.region(heap).lock.give();
    }
    super::thread::unlock();
}
