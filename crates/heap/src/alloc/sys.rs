//! What the allocator needs of the system: a few calls by number, so that it can serve a program
//! whose `mmap` it replaces.

#![allow(
    dead_code,
    unused_imports,
    reason = "each of the two libraries that it is compiled into uses a part"
)]

use core::ffi::{c_int, c_long, c_void};

mod socket;
pub use socket::{connect, peer, receive, send, user};

unsafe extern "C" {
    fn syscall(number: c_long, ...) -> c_long;
    fn abort() -> !;
    fn __errno_location() -> *mut c_int;
}

/// Numbers of system calls.
#[cfg(target_arch = "x86_64")]
mod number {
    pub const READ: i64 = 0;
    pub const READ_AT: i64 = 17;
    pub const SOCKET: i64 = 41;
    pub const CONNECT: i64 = 42;
    pub const SEND: i64 = 44;
    pub const RECEIVE: i64 = 47;
    pub const OPTION: i64 = 55;
    pub const USER: i64 = 107;
    pub const OPEN: i64 = 257;
    pub const WRITE: i64 = 1;
    pub const CLOSE: i64 = 3;
    pub const MMAP: i64 = 9;
    pub const MPROTECT: i64 = 10;
    pub const MUNMAP: i64 = 11;
    pub const MREMAP: i64 = 25;
    pub const MADVISE: i64 = 28;
    pub const FUTEX: i64 = 202;
    pub const PROCESS: i64 = 39;
    pub const EXIT_GROUP: i64 = 231;
}
/// Numbers of system calls: those that all newer architectures share.
#[cfg(not(target_arch = "x86_64"))]
mod number {
    pub const READ: i64 = 63;
    pub const READ_AT: i64 = 67;
    pub const SOCKET: i64 = 198;
    pub const CONNECT: i64 = 203;
    pub const SEND: i64 = 206;
    pub const RECEIVE: i64 = 212;
    pub const OPTION: i64 = 209;
    pub const USER: i64 = 175;
    pub const OPEN: i64 = 56;
    pub const WRITE: i64 = 64;
    pub const CLOSE: i64 = 57;
    pub const MMAP: i64 = 222;
    pub const MPROTECT: i64 = 226;
    pub const MUNMAP: i64 = 215;
    pub const MREMAP: i64 = 216;
    pub const MADVISE: i64 = 233;
    pub const FUTEX: i64 = 98;
    pub const PROCESS: i64 = 172;
    pub const EXIT_GROUP: i64 = 94;
}

/// Bytes of a page.
pub const PAGE: usize = 4096;
/// May be read.
pub const READ: c_int = 1;
/// May be written.
pub const WRITE: c_int = 2;
const SHARED: c_int = 1;
const PRIVATE: c_int = 2;
const FIXED: c_int = 0x10;
const ANONYMOUS: c_int = 0x20;
const NO_RESERVE: c_int = 0x4000;
const POPULATE: c_int = 0x8000;
const MAY_MOVE_FIXED: c_int = 1 | 2;
const NO_HUGE_PAGES: c_int = 15;
const INTERRUPTED: c_int = 4;
/// There is not as much memory.
pub const ENOMEM: c_int = 12;

fn checked(answer: c_long) -> Option<*mut u8> {
    (answer != -1).then_some(answer as usize as *mut u8)
}

/// Says what went wrong to `errno`.
pub fn set_errno(value: c_int) {
    // SAFETY: the C library gives the address of this thread's own.
    unsafe { *__errno_location() = value }
}

/// What went wrong last.
pub fn errno() -> c_int {
    // SAFETY: as above.
    unsafe { *__errno_location() }
}

/// The system call of `mmap`.
///
/// # Safety
/// As for mmap(2): a fixed address replaces what is there.
pub unsafe fn mmap(
    at: *mut u8,
    size: usize,
    protection: c_int,
    flags: c_int,
    file: c_int,
    offset: i64,
) -> Option<*mut u8> {
    // SAFETY: the caller's.
    checked(unsafe {
        syscall(
            number::MMAP,
            at,
            size,
            c_long::from(protection),
            c_long::from(flags),
            c_long::from(file),
            offset,
        )
    })
}

/// Reserves addresses without memory.
pub fn reserve(size: usize) -> Option<*mut u8> {
    // SAFETY: a new mapping, away from all others.
    unsafe {
        mmap(
            core::ptr::null_mut(),
            size,
            0,
            PRIVATE | ANONYMOUS | NO_RESERVE,
            -1,
            0,
        )
    }
}

/// Ordinary zeroed memory in small pages.
pub fn plain(size: usize) -> Option<*mut u8> {
    // SAFETY: a new mapping, away from all others.
    let got = unsafe {
        mmap(
            core::ptr::null_mut(),
            size,
            READ | WRITE,
            PRIVATE | ANONYMOUS,
            -1,
            0,
        )
    }?;
    // SAFETY: advice about it; a kernel without huge pages refuses, which changes nothing.
    unsafe { syscall(number::MADVISE, got, size, c_long::from(NO_HUGE_PAGES)) };
    Some(got)
}

/// Puts ordinary memory, or a mere reservation, in the place of what is there.
///
/// # Safety
/// Nobody uses what is there any more.
pub unsafe fn plain_at(at: *mut u8, size: usize, protection: c_int) -> bool {
    // SAFETY: the caller's.
    unsafe {
        mmap(
            at,
            size,
            protection,
            PRIVATE | ANONYMOUS | FIXED | NO_RESERVE,
            -1,
            0,
        )
    }
    .is_some()
}

/// Gives the pages of private memory back, which reads as zero from then on. Says whether it was
/// done.
///
/// # Safety
/// It is private and anonymous, and nobody needs what is in it.
pub unsafe fn drop_pages(at: *mut u8, size: usize) -> bool {
    const DO_NOT_NEED: c_int = 4;
    // SAFETY: the caller's.
    unsafe { advise(at, size, DO_NOT_NEED) }
}

/// Clears shared memory that may not be written at this address: by a second mapping of its pages.
/// Says whether it was done.
///
/// # Safety
/// It is shared, whole pages of one mapping, and nobody needs what is in it.
pub unsafe fn clear_shared(at: *mut u8, size: usize) -> bool {
    const MAY_MOVE: c_int = 1;
    // mremap(2): of a shared mapping, an old size of 0 makes another mapping of the same pages.
    // SAFETY: the caller's; the second mapping is ours alone.
    unsafe {
        let Some(second) = remap(at, 0, size, MAY_MOVE, core::ptr::null_mut()) else {
            return false;
        };
        let done = protect(second, size, READ | WRITE);
        if done {
            second.write_bytes(0, size);
        }
        unmap(second, size);
        done
    }
}

/// Puts an open file of memory in the place of what is there, all of it present.
///
/// # Safety
/// Nobody uses what is there any more.
pub unsafe fn file_at(at: *mut u8, size: usize, file: c_int) -> bool {
    // SAFETY: the caller's.
    unsafe { mmap(at, size, READ | WRITE, SHARED | FIXED | POPULATE, file, 0) }.is_some()
}

/// Gives memory back.
///
/// # Safety
/// Nobody uses it any more.
pub unsafe fn unmap(at: *mut u8, size: usize) -> bool {
    // SAFETY: the caller's.
    unsafe { syscall(number::MUNMAP, at, size) == 0 }
}

/// Moves a mapping to where another is, which goes away.
///
/// # Safety
/// Nobody uses either meanwhile.
pub unsafe fn move_over(from: *mut u8, size: usize, to: *mut u8) -> bool {
    // SAFETY: the caller's.
    checked(unsafe {
        syscall(
            number::MREMAP,
            from,
            size,
            size,
            c_long::from(MAY_MOVE_FIXED),
            to,
        )
    })
    .is_some()
}

/// Changes what may be done with memory.
///
/// # Safety
/// As for mprotect(2).
pub unsafe fn protect(at: *mut u8, size: usize, protection: c_int) -> bool {
    // SAFETY: the caller's.
    unsafe { syscall(number::MPROTECT, at, size, c_long::from(protection)) == 0 }
}

/// Sleeps while a word has a value.
pub fn wait(word: &core::sync::atomic::AtomicU32, value: u32) {
    const WAIT_PRIVATE: c_long = 128;
    // SAFETY: the word lives through the call; no time-out is given.
    unsafe {
        syscall(
            number::FUTEX,
            word.as_ptr(),
            WAIT_PRIVATE,
            c_long::from(value),
            core::ptr::null::<c_void>(),
        );
    }
}

/// Wakes one who sleeps on a word.
pub fn wake(word: &core::sync::atomic::AtomicU32) {
    const WAKE_PRIVATE: c_long = 129;
    // SAFETY: the word lives through the call.
    unsafe { syscall(number::FUTEX, word.as_ptr(), WAKE_PRIVATE, 1 as c_long) };
}

/// Writes to standard error, as far as that goes: there is nobody else to tell.
pub fn say(parts: &[&[u8]]) {
    let mut line = [0_u8; 512];
    let mut length = 0;
    for byte in parts.iter().copied().flatten() {
        if length < line.len() {
            line[length] = *byte;
            length += 1;
        }
    }
    // SAFETY: the buffer lives through the call.
    unsafe { syscall(number::WRITE, 2 as c_long, line.as_ptr(), length) };
}

/// Ends the program because of a defect in it, which is said first.
pub fn end(why: &[u8]) -> ! {
    say(&[b"warmset: ", why, b"\n"]);
    // SAFETY: ends the process.
    unsafe { abort() }
}

/// The number of this process.
pub fn process() -> u32 {
    // SAFETY: a call without arguments.
    unsafe { syscall(number::PROCESS) as u32 }
}

/// Ends the process with a status, at once.
pub fn exit(status: c_int) -> ! {
    loop {
        // SAFETY: a call with a plain number, which does not return.
        unsafe { syscall(number::EXIT_GROUP, c_long::from(status)) };
    }
}

/// Closes an open file.
///
/// # Safety
/// It is the caller's own.
pub unsafe fn close(file: c_int) {
    // SAFETY: the caller's.
    unsafe { syscall(number::CLOSE, c_long::from(file)) };
}

/// Opens a file to read; below zero where it cannot be.
pub fn open(path: &core::ffi::CStr) -> c_int {
    const HERE: c_long = -100;
    const CLOSE_ON_EXEC: c_long = 0o2_000_000;
    // SAFETY: the path lives through the call.
    unsafe {
        syscall(
            number::OPEN,
            HERE,
            path.as_ptr(),
            CLOSE_ON_EXEC,
            0 as c_long,
        ) as c_int
    }
}

/// Reads from an open file; how many bytes, below zero where it cannot be read.
pub fn read(file: c_int, to: &mut [u8]) -> isize {
    // SAFETY: the buffer lives through the call.
    unsafe { syscall(number::READ, c_long::from(file), to.as_mut_ptr(), to.len()) as isize }
}

/// Reads this process's own memory, also where it may not be read; says whether all of it was.
///
/// # Safety
/// `to` has room.
pub unsafe fn read_memory(from: *const u8, to: *mut u8, size: usize) -> bool {
    let file = open(c"/proc/self/mem");
    let mut done = 0;
    while file >= 0 && done < size {
        // SAFETY: the caller's.
        let got = unsafe {
            syscall(
                number::READ_AT,
                c_long::from(file),
                to.add(done),
                size - done,
                from.wrapping_add(done),
            )
        };
        if got <= 0 {
            break;
        }
        done += got as usize;
    }
    if file >= 0 {
        // SAFETY: opened above.
        unsafe { close(file) };
    }
    done == size
}

/// Moves a mapping, or makes it another size: the system call itself.
///
/// # Safety
/// As for mremap(2).
pub unsafe fn remap(
    at: *mut u8,
    old: usize,
    new: usize,
    flags: c_int,
    to: *mut u8,
) -> Option<*mut u8> {
    // SAFETY: the caller's.
    checked(unsafe { syscall(number::MREMAP, at, old, new, c_long::from(flags), to) })
}

/// Advice about memory: the system call itself.
///
/// # Safety
/// As for madvise(2).
pub unsafe fn advise(at: *mut u8, size: usize, advice: c_int) -> bool {
    // SAFETY: the caller's.
    unsafe { syscall(number::MADVISE, at, size, c_long::from(advice)) == 0 }
}
