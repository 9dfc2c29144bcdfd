//! A machine under QEMU in which the engine in the kernel runs: what the machine starts with
//! ([`pack`]), what it does (`init`), what it brings out ([`archive`]), and what is made of that
//! ([`judge`]). `make test-kernel` calls all of it by way of one static program.

#![forbid(unsafe_code)]

pub mod archive;
pub mod case;
#[cfg(feature = "init")]
mod commands;
pub mod decisions;
pub mod fault;
#[cfg(feature = "init")]
pub mod init;
pub mod judge;
pub mod latency;
#[cfg(feature = "init")]
mod maps;
#[cfg(feature = "init")]
mod ordinary;
#[cfg(feature = "init")]
mod outside;
pub mod pack;
#[cfg(feature = "init")]
mod pinned;
#[cfg(feature = "init")]
pub mod programs;
pub mod quanta;
#[cfg(feature = "init")]
pub mod rounds;
#[cfg(feature = "init")]
mod triggers;
