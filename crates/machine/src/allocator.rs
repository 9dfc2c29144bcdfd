//! The system's allocator, with an answer where it has no more memory: one sentence and exit status
//! 2.
//!
//! Without it the process would be aborted, with a message that names neither cause nor remedy.
//! Nothing is unwound: that would allocate. What a run has changed is set right by those that watch
//! over it from outside, as after a kill; the file that was left to this end is taken away
//! ([`bequest`]).

use crate::bequest;
use model::{Error, Result};
use rustix::mm::{MapFlags, ProtFlags, mmap_anonymous, munmap};
use rustix::process::Signal;
use std::alloc::{GlobalAlloc, Layout, System};
use std::io::Write;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};

/// The allocator of a program that ends with a sentence when memory runs out.
pub struct Answering;

/// Memory that is given back when there is no other: other threads, and the C library on their
/// behalf, need some of their own while one says the sentence.
const RESERVE: Layout = Layout::new::<[u64; 8192]>();
static RESERVED: AtomicPtr<u8> = AtomicPtr::new(null_mut());
/// The thread that says why the process ends, and ends it; 0: none yet.
static SPEAKER: AtomicI32 = AtomicI32::new(0);

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
    if SPEAKER.load(Ordering::Relaxed) != 0 {
        speak();
        end();
    }
}

/// What a thread maps before it does anything: its stack (2 MiB, or `RUST_MIN_STACK`), the one on
/// which it answers an overflow, and what the C library keeps for it.
const THREAD: usize = (2 << 20) + (256 << 10);

/// Is there room in memory for so many more threads? Where there is room for a part of one, it
/// cannot say that it has no more: the C library and ours end the process in the middle of its
/// start. So ask before they are started.
pub fn has_room_for(threads: usize) -> bool {
    let more = std::env::var("RUST_MIN_STACK").ok();
    let stack = more.and_then(|size| size.parse().ok()).unwrap_or(0);
    let size = threads.saturating_mul(THREAD.saturating_add(stack));
    let (access, flags) = (ProtFlags::READ | ProtFlags::WRITE, MapFlags::PRIVATE);
    // SAFETY: a mapping of its own, at an address that the kernel picks; nobody uses it.
    let room = unsafe { mmap_anonymous(null_mut(), size, access, flags | MapFlags::NORESERVE) };
    // SAFETY: it was mapped with this size just now.
    room.is_ok_and(|at| unsafe { munmap(at, size) }.is_ok())
}

/// The calling thread is about to say why the program ends. Memory that runs out from here on, in
/// this thread or another, is no reason to say anything else. Does not return where another thread
/// is saying it.
pub fn conclude() {
    speak();
}

/// Makes the calling thread the one that speaks; `false`: it is already. Another thread that speaks
/// is waited for: it ends the process.
fn speak() -> bool {
    let me = rustix::thread::gettid().as_raw_pid();
    match SPEAKER.compare_exchange(0, me, Ordering::Relaxed, Ordering::Relaxed) {
        Ok(_) => true,
        Err(other) if other == me => false,
        Err(_) => loop {
            rustix::event::pause();
        },
    }
}

fn end() -> ! {
    bequest::execute();
    sys::process::exit(2)
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
    if !speak() {
        // This thread has said why, and needed memory for its end.
        end();
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
    end()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn there_is_room_for_a_thread_and_not_for_all_of_the_addresses() {
        assert!(has_room_for(1));
        assert!(!has_room_for(usize::MAX / THREAD));
    }
}
