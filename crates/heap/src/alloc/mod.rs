//! The allocator behind colored heaps: spans of one size class in slots of 64 KiB, free lists by
//! thread, nothing but raw memory and system calls below it.
//!
//! It is compiled twice: as a part of this crate, and into the library that is loaded into
//! unmodified programs, where neither `std` nor another allocator is there to rely on. So it uses
//! `core` alone, and what it needs of the system is in [`sys`].
//!
//! Why our own: allocators with arenas (mimalloc, jemalloc) take them by tens of MiB and keep their
//! own books elsewhere. Colored memory comes by tiles of 64 KiB, is scarce, and books that lie in
//! other colors would be driven out of the cache.

pub mod arena;
pub mod class;
pub mod fork;
pub mod heap;
pub mod local;
pub mod lock;
pub mod span;
pub mod sys;
pub mod thread;
