//! The library that `warmset color exec` loads into unmodified programs (LD_PRELOAD): their heap,
//! anonymous mappings, thread stacks and segments come to lie in granted colors (001 §3:
//! partitioning is transparent to programs).
//!
//! It is built by the crate's build script with the compiler alone, from `core` and the allocator
//! of this crate, and carried inside the binary: programs get no other library by it. It asks the
//! supervisor, `warmset color exec`, for tiles, over a socket whose name comes in the environment.

#![no_std]
#![allow(
    missing_docs,
    unreachable_pub,
    dead_code,
    reason = "its interface is that of the C library"
)]

#[path = "../src/alloc/mod.rs"]
mod alloc;
#[path = "../src/message.rs"]
mod message;

mod malloc;
mod mappings;
mod ranges;
mod segments;
mod setup;
mod stacks;

#[link(name = "c")]
unsafe extern "C" {}

#[panic_handler]
fn panicked(_: &core::panic::PanicInfo<'_>) -> ! {
    alloc::sys::end(b"the library of colored memory broke off: a defect of this program")
}

extern "C" fn begin() {
    setup::ready();
}

extern "C" fn end() {
    ranges::report();
}

/// Programs that end without the C library's doings (shells do) are looked at, too.
#[unsafe(no_mangle)]
pub extern "C" fn _exit(status: core::ffi::c_int) -> ! {
    if ranges::is_quiet() {
        ranges::report();
    }
    alloc::sys::exit(status)
}

#[unsafe(no_mangle)]
pub extern "C" fn _Exit(status: core::ffi::c_int) -> ! {
    _exit(status)
}

#[used]
#[unsafe(link_section = ".init_array")]
static BEGIN: extern "C" fn() = begin;

#[used]
#[unsafe(link_section = ".fini_array")]
static END: extern "C" fn() = end;
