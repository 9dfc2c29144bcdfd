//! Stacks in colors: the upper part of each thread's, in its place, and forks from there.
//!
//! A thread begins on the stack that it has. Before the program's own function is called, tiles are
//! mapped over the part below what is in use, and that function begins within them. So addresses
//! stay what everybody takes them for; the first pages of a stack, with the thread's own data, keep
//! their frames.

use crate::alloc::class::SLOT;
use crate::alloc::sys::{self, PAGE};
use crate::alloc::thread;
use crate::message::{STACK, TAKE_STACK};
use crate::ranges::{self, MOST_TILES, Range};
use crate::{malloc, segments, setup};
use core::ffi::{c_char, c_int, c_uint, c_void};
use core::hint::black_box;
use core::mem::MaybeUninit;
use core::ptr::null_mut;
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicUsize, Ordering};

type Routine = extern "C" fn(*mut c_void) -> *mut c_void;
type Main = extern "C" fn(c_int, *mut *mut c_char, *mut *mut c_char) -> c_int;

unsafe extern "C" {
    fn dlsym(handle: *mut c_void, name: *const c_char) -> *mut c_void;
    fn pthread_self() -> usize;
    fn pthread_attr_setstack(attributes: *mut c_void, at: *mut c_void, size: usize) -> c_int;
    fn pthread_attr_getstack(
        attributes: *const c_void,
        at: *mut *mut c_void,
        size: *mut usize,
    ) -> c_int;
    fn pthread_attr_destroy(attributes: *mut c_void) -> c_int;
    fn pthread_key_create(key: *mut c_uint, end: Option<unsafe extern "C" fn(*mut c_void)>) -> c_int;
    fn pthread_setspecific(key: c_uint, value: *const c_void) -> c_int;
    fn getrlimit(what: c_int, to: *mut [usize; 2]) -> c_int;
}

/// What a thread needs until its function begins: left as it is.
const LEAD: usize = 32 * 1024;
/// How deep the function begins: below `LEAD`, whatever lies between.
const PAD: usize = LEAD + 2 * PAGE;

/// How many threads the program started.
pub static STARTED: AtomicUsize = AtomicUsize::new(0);

/// The next function of a name after ours.
pub fn next(name: &core::ffi::CStr, known: &AtomicPtr<c_void>) -> *mut c_void {
    let before = known.load(Ordering::Relaxed);
    if !before.is_null() {
        return before;
    }
    // SAFETY: the name is a C string; -1 asks for the next one.
    let found = unsafe { dlsym(usize::MAX as *mut c_void, name.as_ptr()) };
    if found.is_null() {
        sys::end(b"the C library lacks a function that it must have");
    }
    known.store(found, Ordering::Relaxed);
    found
}

/// Maps tiles below what is in use of the calling thread's stack, down to a limit at most; gives
/// the range.
fn color(limit: usize) -> Option<usize> {
    let here = 0_u8;
    let top = ((&raw const here) as usize - LEAD) & !(PAGE - 1);
    let room = top.checked_sub(limit)?;
    let tiles = (setup::stack().min(room) / SLOT).min(MOST_TILES);
    if tiles == 0 || !setup::colors(STACK) {
        return None;
    }
    let start = top - tiles * SLOT;
    let mut range = Range {
        start,
        size: tiles * SLOT,
        kind: STACK,
        writable: true,
        tiles: [0; MOST_TILES],
    };
    let heap = thread::default_heap();
    let got = setup::fetch_range(TAKE_STACK, heap, start as *mut u8, &mut range.tiles[..tiles]);
    if got < tiles {
        restore(&range, got);
        return None;
    }
    let place = ranges::add(range);
    if place.is_none() {
        restore(&range, tiles);
    }
    place
}

/// Ordinary memory in the place of a colored stack, of which nothing is in use.
fn restore(range: &Range, tiles: usize) {
    if tiles == 0 {
        return;
    }
    // SAFETY: below what is in use of this thread's stack.
    unsafe { sys::plain_at(range.start as *mut u8, range.size, sys::READ | sys::WRITE) };
    setup::give_back(&range.tiles[..tiles]);
}

/// The lowest address of the calling thread's stack that may be used.
fn lowest() -> Option<usize> {
    let mut attributes = [0_u64; 16];
    let mut at = null_mut();
    let mut size = 0;
    // SAFETY: there is room for the attributes of every C library known (56 to 64 bytes).
    unsafe {
        if pthread_getattr_np(pthread_self(), attributes.as_mut_ptr().cast()) != 0 {
            return None;
        }
        let got = pthread_attr_getstack(attributes.as_ptr().cast(), &mut at, &mut size);
        pthread_attr_destroy(attributes.as_mut_ptr().cast());
        // Guard pages may lie within.
        (got == 0).then(|| at as usize + 4 * PAGE)
    }
}

struct Start {
    routine: Routine,
    argument: *mut c_void,
}

static KEY: AtomicU32 = AtomicU32::new(0);

/// A thread ends, however it does: its stack becomes what it was. Runs at the upper end of the
/// stack.
unsafe extern "C" fn ended(place: *mut c_void) {
    let range = ranges::remove(place as usize - 1);
    if range.start != 0 {
        let tiles = range.size / SLOT;
        restore(&range, tiles);
    }
}

extern "C" fn begin(start: *mut c_void) -> *mut c_void {
    // SAFETY: made by `pthread_create` below, for this thread.
    let Start { routine, argument } = unsafe {
        let taken = start.cast::<Start>().read();
        malloc::free(start);
        taken
    };
    let Some(place) = lowest().and_then(color) else {
        // Perhaps the stack is small: nothing more of it is taken.
        return routine(argument);
    };
    if let Some(key) = KEY.load(Ordering::Relaxed).checked_sub(1) {
        // SAFETY: the key was made before this thread.
        unsafe { pthread_setspecific(key, (place + 1) as *const c_void) };
    }
    deep(routine, argument)
}

#[inline(never)]
fn deep(routine: Routine, argument: *mut c_void) -> *mut c_void {
    let mut pad = MaybeUninit::<[u8; PAD]>::uninit();
    black_box(&mut pad);
    let result = routine(argument);
    black_box(&mut pad);
    result
}

/// # Safety
/// As for pthread_create(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_create(
    to: *mut usize,
    attributes: *const c_void,
    routine: Routine,
    argument: *mut c_void,
) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: the function of this name.
    let create: unsafe extern "C" fn(*mut usize, *const c_void, Routine, *mut c_void) -> c_int =
        unsafe { core::mem::transmute(next(c"pthread_create", &NEXT)) };
    STARTED.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's.
    unsafe {
        if !setup::colors(STACK) {
            return create(to, attributes, routine, argument);
        }
        if KEY.load(Ordering::Relaxed) == 0 {
            let mut key = 0;
            if pthread_key_create(&mut key, Some(ended)) == 0 {
                KEY.store(key + 1, Ordering::Relaxed);
            }
        }
        let start = malloc::malloc(size_of::<Start>()).cast::<Start>();
        if start.is_null() {
            return sys::ENOMEM;
        }
        start.write(Start { routine, argument });
        let made = create(to, attributes, begin, start.cast());
        if made != 0 {
            malloc::free(start.cast());
        }
        made
    }
}

static MAIN: AtomicPtr<c_void> = AtomicPtr::new(null_mut());

extern "C" fn main(number: c_int, arguments: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    segments::color();
    match color_main() {
        true => deep_main(number, arguments, environment),
        false => call_main(number, arguments, environment),
    }
}

fn call_main(number: c_int, arguments: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    // SAFETY: what the program's start gave us.
    let main: Main = unsafe { core::mem::transmute(MAIN.load(Ordering::Relaxed)) };
    main(number, arguments, environment)
}

/// The first thread's stack grows by itself; tiles end that, so what it may use in all is mapped
/// below them. Says whether it is colored.
fn color_main() -> bool {
    const STACK_LIMIT: c_int = 3;
    const MOST_BELOW: usize = 64 << 20;
    let mut limit = [0; 2];
    // SAFETY: `limit` lives through the call.
    if unsafe { getrlimit(STACK_LIMIT, &mut limit) } != 0 {
        return false;
    }
    let here = (&raw const limit) as usize;
    let below = limit[0].min(MOST_BELOW);
    let Some(lowest) = here.checked_sub(below).map(|l| (l + 256 * 1024) & !(PAGE - 1)) else {
        return false;
    };
    let Some(place) = color(lowest) else {
        return false;
    };
    let range = ranges::peek(place);
    // SAFETY: a call without arguments.
    FIRST.0.store(unsafe { pthread_self() }, Ordering::Relaxed);
    FIRST.1.store(lowest, Ordering::Relaxed);
    if range.start > lowest {
        // SAFETY: the system keeps these addresses free for this stack, and nothing of it is in use
        // so far down.
        unsafe { sys::plain_at(lowest as *mut u8, range.start - lowest, sys::READ | sys::WRITE) };
    }
    true
}

/// The first thread, where its stack is colored, and the lowest address of that stack.
static FIRST: (AtomicUsize, AtomicUsize) = (AtomicUsize::new(0), AtomicUsize::new(0));

/// The C library finds the first thread's stack by the mapping that its upper end lies in. Tiles
/// are mappings of their own: it would take the stack for a few pages, and programs that ask
/// whether an address lies in their stack would get a wrong answer.
///
/// # Safety
/// As for pthread_getattr_np(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn pthread_getattr_np(thread: usize, attributes: *mut c_void) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: the function of this name; the caller's.
    unsafe {
        let get: unsafe extern "C" fn(usize, *mut c_void) -> c_int =
            core::mem::transmute(next(c"pthread_getattr_np", &NEXT));
        let got = get(thread, attributes);
        let (first, lowest) = (FIRST.0.load(Ordering::Relaxed), FIRST.1.load(Ordering::Relaxed));
        let (mut at, mut size) = (null_mut(), 0);
        if got == 0
            && first != 0
            && thread == first
            && pthread_attr_getstack(attributes, &mut at, &mut size) == 0
        {
            pthread_attr_setstack(attributes, lowest as *mut c_void, at as usize + size - lowest);
        }
        got
    }
}

#[inline(never)]
fn deep_main(number: c_int, arguments: *mut *mut c_char, environment: *mut *mut c_char) -> c_int {
    let mut pad = MaybeUninit::<[u8; PAD]>::uninit();
    black_box(&mut pad);
    let result = call_main(number, arguments, environment);
    black_box(&mut pad);
    result
}

/// # Safety
/// Called by the program's start only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn __libc_start_main(
    program: Main,
    number: c_int,
    arguments: *mut *mut c_char,
    init: *mut c_void,
    fini: *mut c_void,
    loader_fini: *mut c_void,
    stack_end: *mut c_void,
) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    type Begin = unsafe extern "C" fn(
        Main,
        c_int,
        *mut *mut c_char,
        *mut c_void,
        *mut c_void,
        *mut c_void,
        *mut c_void,
    ) -> c_int;
    // SAFETY: the function of this name.
    let begin: Begin = unsafe { core::mem::transmute(next(c"__libc_start_main", &NEXT)) };
    let program = if setup::ready() {
        MAIN.store(program as *mut c_void, Ordering::Relaxed);
        main
    } else {
        program
    };
    // SAFETY: the caller's.
    unsafe { begin(program, number, arguments, init, fini, loader_fini, stack_end) }
}

/// A call that is made on another stack: arguments and result.
struct Elsewhere {
    function: *mut c_void,
    arguments: [usize; 4],
    result: c_int,
}

extern "C" fn call(it: *mut Elsewhere) {
    // SAFETY: the C library's functions take up to four words here, and more do no harm.
    unsafe {
        let function: unsafe extern "C" fn(usize, usize, usize, usize) -> c_int =
            core::mem::transmute((*it).function);
        let [a, b, c, d] = (*it).arguments;
        (*it).result = function(a, b, c, d);
    }
}

/// Calls a function that forks. From a colored stack, which parent and child would share until it
/// is copied, the call is made on an ordinary one; both return to their own.
// SAFETY: callers hand over a function that takes these arguments, which live through the call.
unsafe fn forking(function: *mut c_void, arguments: [usize; 4]) -> c_int {
    const SCRATCH: usize = 256 * 1024;
    let here = 0_u8;
    let mut it = Elsewhere {
        function,
        arguments,
        result: -1,
    };
    if !ranges::holds((&raw const here) as usize) {
        call(&mut it);
        return it.result;
    }
    let (Some(scratch), Some(kept)) = (sys::plain(SCRATCH), sys::plain(PAGE)) else {
        sys::set_errno(sys::ENOMEM);
        return -1;
    };
    // What is called and what comes back lies in ordinary memory: the colored stack is a copy from
    // before, in the child.
    let kept: *mut Elsewhere = kept.cast();
    // SAFETY: a stack that nobody uses; it is left when the call returns, by both.
    unsafe {
        kept.write(it);
        on(scratch.add(SCRATCH), kept);
        let result = (*kept).result;
        sys::unmap(scratch, SCRATCH);
        sys::unmap(kept.cast(), PAGE);
        result
    }
}

/// Makes a call on another stack.
#[cfg(target_arch = "x86_64")]
// SAFETY: callers give the end of a stack that nobody uses, and a call whose function and arguments
// live through it.
unsafe fn on(top: *mut u8, it: *mut Elsewhere) {
    // SAFETY: the stack pointer comes back from a register that calls keep.
    unsafe {
        core::arch::asm!(
            "mov r12, rsp",
            "mov rsp, {top}",
            "call {call}",
            "mov rsp, r12",
            top = in(reg) top,
            call = sym call,
            in("rdi") it,
            out("r12") _,
            clobber_abi("C"),
        );
    }
}

/// Makes a call on another stack.
#[cfg(target_arch = "aarch64")]
// SAFETY: callers give the end of a stack that nobody uses, and a call whose function and arguments
// live through it.
unsafe fn on(top: *mut u8, it: *mut Elsewhere) {
    // SAFETY: the stack pointer comes back from a register that calls keep.
    unsafe {
        core::arch::asm!(
            "mov x20, sp",
            "mov sp, {top}",
            "bl {call}",
            "mov sp, x20",
            top = in(reg) top,
            call = sym call,
            in("x0") it,
            out("x20") _,
            clobber_abi("C"),
        );
    }
}

#[unsafe(no_mangle)]
pub extern "C" fn fork() -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: the function of this name, which takes nothing.
    unsafe { forking(next(c"fork", &NEXT), [0; 4]) }
}

#[unsafe(no_mangle)]
pub extern "C" fn daemon(stay: c_int, keep: c_int) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    // SAFETY: the function of this name, which takes two numbers.
    unsafe { forking(next(c"daemon", &NEXT), [stay as usize, keep as usize, 0, 0]) }
}

/// # Safety
/// As for forkpty(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn forkpty(
    to: *mut c_int,
    name: *mut c_char,
    terminal: *const c_void,
    window: *const c_void,
) -> c_int {
    static NEXT: AtomicPtr<c_void> = AtomicPtr::new(null_mut());
    let arguments = [to as usize, name as usize, terminal as usize, window as usize];
    // SAFETY: the caller's.
    unsafe { forking(next(c"forkpty", &NEXT), arguments) }
}
