//! Colored heaps: memory whose page colors follow from what its user names, or from the task (004
//! §III-C to §III-E).
//!
//! A process attaches to the memory server ([`attach`]) and then has as many *heap colors* as it
//! asks for, counted from 0. They divide the page colors that it was granted as super colors (004
//! eq. 1): the page color at place `i` belongs to heap color `i` modulo their number. So color 0 is
//! always there, whatever page colors were granted.
//!
//! - [`Heap::color`] names a heap, for collections of their own (`Vec::new_in(heap)` of
//!   `allocator-api2`);
//! - [`Colored`] is a global allocator: color 0, or the color of the task;
//! - the C and C++ interface is in the crate `warmset-color`.
//!
//! Memory comes from the server by tiles of 64 KiB and stays with the process until [`trim`]. Every
//! thread has its own spans of each heap color, of one size class each: a thread that uses few
//! sizes takes few tiles.

// What is compiled into two libraries is public among its own parts only.
#[allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "shared with the library that is loaded into programs"
)]
mod alloc;
mod attach;
pub mod exec;
mod global;
mod handle;
pub mod inspect;
#[allow(
    unreachable_pub,
    missing_docs,
    dead_code,
    reason = "shared with the library that is loaded into programs"
)]
mod message;

pub use attach::{Attached, COLOR_BY, Choice, NOBODY, Options, attach, trim};
pub use global::Colored;
pub use handle::{Heap, chosen, colors, set_task};

/// The malloc family by heap color, for the C interface: what [`Heap`] and [`Colored`] are made of.
pub mod raw {
    pub use crate::alloc::heap::{allocate, allocate_zeroed, heap_of, reallocate, release, usable};
    pub use crate::alloc::thread::default_heap;

    /// Does an address lie in a heap?
    pub fn owns(at: *const u8) -> bool {
        crate::alloc::arena::ARENA.owns(at)
    }
}
