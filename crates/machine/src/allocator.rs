//! The system's allocator, with an answer where it has no more memory: one sentence and exit status
//! 2.
//!
//! Without it the process would be aborted, with a message that names neither cause nor remedy.
//! Nothing is unwound: that would allocate. What a run has changed is set right by those that watch
//! over it from outside, as after a kill; the file that was left to this end is taken away
//! ([`bequest`]).

use crate::bequest;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::sync::atomic::{AtomicBool, Ordering};

/// The allocator of a program that ends with a sentence when memory runs out.
pub struct Answering;

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
    static GIVES_UP: AtomicBool = AtomicBool::new(false);
    // Another thread is about to end the process, with the sentence that there is to be.
    while GIVES_UP.swap(true, Ordering::Relaxed) {
        rustix::event::pause();
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
