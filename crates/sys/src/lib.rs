//! System calls that neither the standard library nor `rustix` has in a safe form.
//!
//! The one room for them. Each is a plain function with its errors, and each `unsafe` block says by
//! which invariant it is sound. What `rustix` has safely is called there and not wrapped here.
//! Three functions stay `unsafe` because only their callers can keep the contract:
//! [`process::fork`], [`process::close_range`] and [`signal::handle`].
//!
//! Nothing here takes memory or locks, except for [`user`] and the errors of [`memory`]: the rest
//! may be called between fork and exec and from signal handlers.
//!
//! Assumes Linux 5.10 or later and a C library that is glibc or behaves like it.

pub mod clock;
pub mod counter;
pub mod file;
pub mod memory;
pub mod probe;
pub mod process;
pub mod scheduling;
pub mod seccomp;
pub mod signal;
pub mod socket;
pub mod thread;
pub mod user;

use std::io;

/// The error of the last call if `failed`.
fn check(failed: bool) -> io::Result<()> {
    match failed {
        true => Err(io::Error::last_os_error()),
        false => Ok(()),
    }
}
