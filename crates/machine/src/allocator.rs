//! The system's allocator, with an answer where it has no more memory: one sentence and exit status
//! 2.
//!
//! Without it the process would be aborted, with a message that names neither cause nor remedy.
//! Nothing is unwound: that would allocate. What a run has changed is set right by those that watch
//! over it from outside, as after a kill; the file that was left to this end is taken away
//! ([`bequest`]).

use crate::bequest;
use model::{Error, Result};
use rustix::process::Signal;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, AtomicPtr, Ordering};

/// The allocator of a program that ends with a sentence when memory runs out.
pub struct Answering;

/// Memory that is given back when there is no other: other threads, and the C library on their
/// behalf, need some of their own while one says the sentence.
const RESERVE: Layout = Layout::new::<[u64; 8192]>();
static RESERVED: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// A thread has found no memory, and ends the process.
static GIVES_UP: AtomicBool = AtomicBool::new(false);

/// Sets memory aside for the end without any. Called once, at the start of the program.
///
/// # Errors
/// The handler of `SIGABRT` cannot be installed.
pub fn provide() -> Result<()> {
    // SAFETY: the layout has a size.
    let reserve = unsafe { System.alloc(RESERVE) };
    // Two callers would lose the first one's, which does no harm.
    RESERVED.store(reserve, Ordering::Relaxed);
    let abort = Signal::ABORT.as_raw();
    // SAFETY: the handler reads an atomic and waits for signals, which is allowed anywhere; it does
    // not touch `errno` where it returns.
    unsafe { sys::signal::handle(abort, aborts) }
        .map_err(|e| Error::new(format!("cannot handle the signal of an abort: {e}")))
}

/// The C library aborts where it finds no memory for itself. When that is so because a thread of
/// ours has just found none either, that one ends the process. From any other abort the handler
/// returns, and `abort` goes on to end the process by itself.
extern "C" fn aborts(_: std::ffi::c_int) {
    while GIVES_UP.load(Ordering::Relaxed) {
        rustix::event::pause();
    }
}

// SAFETY: every call is the system allocator's, with the arguments as they came; a null pointer is
// never returned.
unsafe impl GlobalAlloc for Answering {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps the contract of `alloc`, which is the same there.
        checked(unsafe { System.alloc(layout) }, layout.size())
    }
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: as above.
        checked(unsafe { System.alloc_zeroed(layout) }, layout.size())
    }
    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: as above; `block` came from the system allocator, as all blocks do.
        checked(unsafe { System.realloc(block, layout, size) }, size)
    }
    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }
}

#[inline]
fn checked(block: *mut u8, size: usize) -> *mut u8 {
    if block.is_null() {
        give_up(size);
    }
    block
}

/// Ends the process. Nothing here may allocate.
#[cold]
fn give_up(size: usize) -> ! {
    // Another thread is about to end the process, with the sentence that there is to be.
    while GIVES_UP.swap(true, Ordering::Relaxed) {
        rustix::event::pause();
    }
    let reserve = RESERVED.swap(null_mut(), Ordering::Relaxed);
    if !reserve.is_null() {
        // SAFETY: it came from there with this layout, and the swap hands it over once.
        unsafe { System.dealloc(reserve, RESERVE) };
    }
    let mut room = [0; 200];
    let mut sentence = &mut room[..];
    // It fits.
    let _ = writeln!(
        sentence,
        "warmset: there is no memory left for {size} bytes more; free some, raise the limit on it \
         (`ulimit -v`), or give less at once"
    );
    let left = sentence.len();
    let length = room.len() - left;
    // Both allocate nothing and are allowed in any state. Where standard error is closed nobody
    // reads the sentence.
    let _ = rustix::io::write(std::io::stderr(), &room[..length]);
    bequest::execute();
    sys::process::exit(2)
}
