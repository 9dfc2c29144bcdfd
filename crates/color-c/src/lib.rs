//! Colored heaps for C and C++: the functions of `include/warmset_color.h` (004 §III-D and §III-E,
//! Fig. 8).
//!
//! The first call attaches the process to the memory server, as its environment says
//! (`heap::Options::from_env`), unless `warmset_color_attach` did before. What fails says why on
//! standard error, gives null and sets `errno`.

use heap::raw;
use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_uint, c_void};
use std::path::PathBuf;
use std::ptr::null_mut;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Once, OnceLock};

const ENOMEM: c_int = 12;
const EINVAL: c_int = 22;

unsafe extern "C" {
    fn __errno_location() -> *mut c_int;
    fn abort() -> !;
    fn malloc(size: usize) -> *mut c_void;
    fn calloc(number: usize, size: usize) -> *mut c_void;
    fn aligned_alloc(align: usize, size: usize) -> *mut c_void;
    fn realloc(at: *mut c_void, size: usize) -> *mut c_void;
    fn free(at: *mut c_void);
    fn malloc_usable_size(at: *mut c_void) -> usize;
}

thread_local! {
    static WHY: RefCell<CString> = RefCell::default();
}

/// Do tasks choose colors, and not the caller?
static BY_TASK: AtomicBool = AtomicBool::new(false);

/// Does the program run without colors (`WARMSET_COLOR_BY=none`)? Its memory is then that of the C
/// library.
fn is_uncolored() -> bool {
    static IS: OnceLock<bool> = OnceLock::new();
    *IS.get_or_init(|| std::env::var_os(heap::COLOR_BY).is_some_and(|by| by == heap::NOBODY))
}

/// Says once that a color which the program names is not acted on. Color 0 is the default, as if
/// none were named.
fn ignored(color: c_uint, by: &str) {
    static SAID: Once = Once::new();
    if color != 0 {
        SAID.call_once(|| {
            eprintln!(
                "warmset: colors that the program names are ignored: {}={by}",
                heap::COLOR_BY
            );
        });
    }
}

fn failed(error: c_int, why: &str) {
    eprintln!("warmset: {why}");
    WHY.set(CString::new(why).unwrap_or_default());
    // SAFETY: this thread's own.
    unsafe { *__errno_location() = error };
}

/// Attaches the process to the memory server behind a socket; null: the usual one. 0, or -1 and
/// `errno`.
///
/// # Safety
/// `socket` is null or a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_color_attach(socket: *const c_char) -> c_int {
    if is_uncolored() {
        return 0;
    }
    let socket = (!socket.is_null()).then(|| {
        // SAFETY: the caller's.
        let text = unsafe { CStr::from_ptr(socket) };
        PathBuf::from(text.to_string_lossy().into_owned())
    });
    let attached = heap::Options::from_env().and_then(|options| {
        let socket = socket.or_else(|| options.socket.clone());
        BY_TASK.store(options.choice == heap::Choice::ByTask, Ordering::Relaxed);
        heap::attach(&heap::Options { socket, ..options })
    });
    match attached {
        Ok(_) => 0,
        Err(e) => {
            failed(EINVAL, &e.to_string());
            -1
        }
    }
}

/// How many colors there are; 0 where the process cannot be attached, 1 where it runs without.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_colors() -> c_uint {
    static FIRST: Once = Once::new();
    if is_uncolored() {
        return 1;
    }
    if heap::colors() == 0 {
        FIRST.call_once(|| {
            // SAFETY: null is allowed.
            unsafe { warmset_color_attach(std::ptr::null()) };
        });
    }
    heap::colors() as c_uint
}

/// Where memory is taken from.
enum Source {
    /// The heap of this number.
    Heap(usize),
    /// The C library: the program runs without colors.
    Ordinary,
}

/// Where memory of a color is taken from; none, with a message, where it is beyond the last one.
fn source_of(color: c_uint) -> Option<Source> {
    if is_uncolored() {
        ignored(color, "none");
        return Some(Source::Ordinary);
    }
    let colors = heap::colors() as c_uint;
    let colors = if colors == 0 {
        warmset_colors()
    } else {
        colors
    };
    if colors == 0 {
        // Why was said when it was tried.
        // SAFETY: this thread's own.
        unsafe { *__errno_location() = ENOMEM };
        return None;
    }
    if color >= colors {
        failed(
            EINVAL,
            &format!("color {color} is beyond the last one: there are {colors} colors"),
        );
        return None;
    }
    if BY_TASK.load(Ordering::Relaxed) {
        ignored(color, "task");
    }
    Some(Source::Heap(heap::chosen(color as u16)))
}

fn had(at: *mut u8) -> *mut c_void {
    if at.is_null() {
        // SAFETY: this thread's own.
        unsafe { *__errno_location() = ENOMEM };
    }
    at.cast()
}

/// As malloc(3), in a color.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_malloc(size: usize, color: c_uint) -> *mut c_void {
    match source_of(color) {
        None => null_mut(),
        Some(Source::Heap(heap)) => had(raw::allocate(heap, size, 16)),
        // SAFETY: any size may be asked for.
        Some(Source::Ordinary) => unsafe { malloc(size) },
    }
}

/// As calloc(3), in a color.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_calloc(number: usize, size: usize, color: c_uint) -> *mut c_void {
    match (number.checked_mul(size), source_of(color)) {
        (_, None) => null_mut(),
        (None, _) => had(null_mut()),
        (Some(size), Some(Source::Heap(heap))) => had(raw::allocate_zeroed(heap, size, 16)),
        // SAFETY: any numbers may be asked for.
        (_, Some(Source::Ordinary)) => unsafe { calloc(number, size) },
    }
}

/// As aligned_alloc(3), in a color.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_aligned_alloc(align: usize, size: usize, color: c_uint) -> *mut c_void {
    if !align.is_power_of_two() {
        failed(
            EINVAL,
            &format!("an alignment of {align} bytes is no power of two"),
        );
        return null_mut();
    }
    match source_of(color) {
        None => null_mut(),
        Some(Source::Heap(heap)) => had(raw::allocate(heap, size, align)),
        // SAFETY: the alignment is a power of two.
        Some(Source::Ordinary) => unsafe { aligned_alloc(align, size) },
    }
}

fn known(at: *mut c_void) -> *mut u8 {
    if !raw::owns(at.cast()) {
        failed(
            EINVAL,
            &format!(
                "{at:p} was given back to a colored heap, and is from none: the program is ended"
            ),
        );
        // SAFETY: ends the process.
        unsafe { abort() };
    }
    at.cast()
}

/// As realloc(3): memory keeps its color; `color` is that of new memory, where `at` is null. Ends
/// the program where `at` is no colored memory.
///
/// # Safety
/// As for realloc(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_realloc(
    at: *mut c_void,
    size: usize,
    color: c_uint,
) -> *mut c_void {
    if at.is_null() {
        return warmset_malloc(size, color);
    }
    // SAFETY: the caller's: without colors it is from the C library.
    unsafe {
        match is_uncolored() {
            true => realloc(at, size),
            false => had(raw::reallocate(known(at), size, 16)),
        }
    }
}

/// As free(3). Ends the program, with a message, where `at` is no colored memory, or was given back
/// before.
///
/// # Safety
/// As for free(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_free(at: *mut c_void) {
    if at.is_null() {
        return;
    }
    // SAFETY: the caller's: without colors it is from the C library.
    unsafe {
        match is_uncolored() {
            true => free(at),
            false => {
                raw::release(known(at));
            }
        }
    }
}

/// As malloc_usable_size(3); 0 for null.
///
/// # Safety
/// As for malloc_usable_size(3).
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_malloc_usable_size(at: *mut c_void) -> usize {
    if at.is_null() {
        return 0;
    }
    // SAFETY: the caller's: without colors it is from the C library.
    unsafe {
        match is_uncolored() {
            true => malloc_usable_size(at),
            false => raw::usable(known(at)),
        }
    }
}

/// The color of colored memory; -1 for any other.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_color_of(at: *const c_void) -> c_int {
    if raw::owns(at.cast()) {
        raw::heap_of(at.cast()) as c_int
    } else {
        -1
    }
}

/// The calling thread is the task of this number: where tasks choose colors
/// (`WARMSET_COLOR_BY=task`), its memory has color number modulo colors. 0, or -1 and `errno`.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_color_set_task(number: usize) -> c_int {
    match heap::set_task(number) {
        Ok(()) => 0,
        Err(e) => {
            failed(ENOMEM, &e.to_string());
            -1
        }
    }
}

/// Gives memory that is not used back to the server; bytes.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_color_trim() -> usize {
    heap::trim()
}

/// Why the last call of this thread failed; valid until its next one fails.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_color_error() -> *const c_char {
    WHY.with_borrow(|why| why.as_ptr())
}
