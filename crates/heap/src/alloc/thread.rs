//! What the allocator knows of the calling thread.

use super::arena::{ARENA, MOST_HEAPS};
use super::lock::Lock;
use super::span::Local;
use super::sys;
use core::ffi::{c_int, c_uint, c_void};
use core::ptr::null_mut;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicUsize, Ordering};

/// A thread: its part of each heap.
pub struct Thread {
    pub locals: [*mut Local; MOST_HEAPS],
    /// Its number as a task: by default the order in which threads first asked for memory.
    pub task: usize,
    /// The next one that is nobody's.
    next: *mut Thread,
}

unsafe extern "C" {
    fn pthread_key_create(
        key: *mut c_uint,
        end: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> c_int;
    fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
}

/// Does the color follow from the task (004 §III-E), or from what the caller names (§III-D)?
pub static BY_TASK: AtomicBool = AtomicBool::new(false);

static KEY: AtomicU32 = AtomicU32::new(0);
static TASKS: AtomicUsize = AtomicUsize::new(0);
static UNUSED: AtomicPtr<Thread> = AtomicPtr::new(null_mut());
static LOCK: Lock = Lock::new();

#[cfg(not(warmset_preload))]
mod pointer {
    use super::Thread;
    use core::cell::Cell;
    use core::ptr::null_mut;
    std::thread_local! {
        static THREAD: Cell<*mut Thread> = const { Cell::new(null_mut()) };
    }
    #[inline(always)]
    pub fn get() -> *mut Thread {
        THREAD.get()
    }
    pub fn set(thread: *mut Thread) {
        THREAD.set(thread);
    }
}

/// Initial-exec: one instruction, and no allocation that would call us again. The stable language
/// has no word for it without `std`.
#[cfg(all(warmset_preload, target_arch = "x86_64"))]
mod pointer {
    use super::Thread;
    core::arch::global_asm!(
        ".section .tbss,\"awT\",@nobits",
        ".balign 8",
        ".type warmset_thread,@object",
        ".size warmset_thread,8",
        ".globl warmset_thread",
        ".hidden warmset_thread",
        "warmset_thread:",
        ".zero 8",
        ".text",
    );
    #[inline(always)]
    fn at() -> *mut *mut Thread {
        let at;
        // SAFETY: computes the address of this thread's word.
        unsafe {
            core::arch::asm!(
                "mov {0}, qword ptr [rip + warmset_thread@GOTTPOFF]",
                "add {0}, qword ptr fs:[0]",
                out(reg) at,
                options(nostack, readonly),
            );
        }
        at
    }
    #[inline(always)]
    pub fn get() -> *mut Thread {
        // SAFETY: this thread's own word.
        unsafe { *at() }
    }
    pub fn set(thread: *mut Thread) {
        // SAFETY: as above.
        unsafe { *at() = thread }
    }
}

#[cfg(all(warmset_preload, not(target_arch = "x86_64")))]
mod pointer {
    use super::{KEY, Ordering, Thread, pthread_setspecific};
    use core::ffi::{c_uint, c_void};
    unsafe extern "C" {
        fn pthread_getspecific(key: c_uint) -> *mut c_void;
    }
    pub fn get() -> *mut Thread {
        // SAFETY: the key was made before the first thread was known; before, none has a value.
        match KEY.load(Ordering::Relaxed) {
            0 => core::ptr::null_mut(),
            key => unsafe { pthread_getspecific(key - 1) }.cast(),
        }
    }
    pub fn set(thread: *mut Thread) {
        // SAFETY: as above.
        unsafe { pthread_setspecific(KEY.load(Ordering::Relaxed).wrapping_sub(1), thread.cast()) };
    }
}

/// The calling thread; null if it has not asked for memory yet.
#[inline(always)]
pub fn known() -> *mut Thread {
    pointer::get()
}

/// The calling thread; null if there is no memory to know it by.
#[inline(always)]
pub fn current() -> *mut Thread {
    let thread = pointer::get();
    if thread.is_null() { begin() } else { thread }
}

#[cold]
fn begin() -> *mut Thread {
    let thread = LOCK.with(|| {
        if KEY.load(Ordering::Relaxed) == 0 {
            let mut key = 0;
            // SAFETY: `key` lives through the call.
            if unsafe { pthread_key_create(&mut key, Some(end)) } == 0 {
                KEY.store(key + 1, Ordering::Relaxed);
            }
        }
        let unused = UNUSED.load(Ordering::Relaxed);
        if unused.is_null() {
            return sys::plain(size_of::<Thread>()).map_or(null_mut(), <*mut u8>::cast);
        }
        // SAFETY: threads on the list are nobody's.
        UNUSED.store(unsafe { (*unused).next }, Ordering::Relaxed);
        unused
    });
    if thread.is_null() {
        return thread;
    }
    // SAFETY: it is this thread's now.
    unsafe { (*thread).task = TASKS.fetch_add(1, Ordering::Relaxed) };
    pointer::set(thread);
    // The value is what makes `end` be called.
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key was made above.
        unsafe { pthread_setspecific(key, thread.cast()) };
    }
    thread
}

/// A thread ends: what it has of the heaps is for others to take up.
unsafe extern "C" fn end(thread: *mut c_void) {
    let thread: *mut Thread = thread.cast();
    pointer::set(null_mut());
    for heap in 0..ARENA.heaps() {
        // SAFETY: the thread's own, which ends.
        unsafe {
            let local = core::mem::replace(&mut (*thread).locals[heap], null_mut());
            if !local.is_null() {
                ARENA.with(heap, |books| books.orphan(local));
            }
        }
    }
    LOCK.with(|| {
        // SAFETY: as above.
        unsafe { (*thread).next = UNUSED.load(Ordering::Relaxed) };
        UNUSED.store(thread, Ordering::Relaxed);
    });
}

/// Which heap is the calling thread's: the first one, or by its task.
#[inline(always)]
pub fn default_heap() -> usize {
    if BY_TASK.load(Ordering::Relaxed) {
        by_task()
    } else {
        0
    }
}

fn by_task() -> usize {
    let thread = current();
    if thread.is_null() {
        return 0;
    }
    // SAFETY: the calling thread's own.
    unsafe { (*thread).task % ARENA.heaps().max(1) }
}

/// The calling thread is this task from now on. Says whether it is known.
pub fn set_task(task: usize) -> bool {
    let thread = current();
    if thread.is_null() {
        return false;
    }
    // SAFETY: the calling thread's own.
    unsafe { (*thread).task = task };
    true
}

/// For `fork`: nobody else is here meanwhile.
pub fn lock() {
    LOCK.take();
}
/// After `fork`.
pub fn unlock() {
    LOCK.give();
}
