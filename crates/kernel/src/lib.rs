//! The engine within the Linux kernel: plans of policies carried out by sched_ext.
//!
//! Its program for the kernel is `src/bpf/main.bpf.c`, laid out as scx lays out its schedulers; it
//! knows no policy. [`plan`] turns a policy's plan into data for it, [`collect`] puts what it tells
//! into the order of a trace. Both work on any machine. What loads and runs it (`engine`) is
//! compiled with the feature `load` alone, which needs the headers of libelf.
//!
//! Which kernels it needs and what it guarantees: `docs/kernel.md`.

#![forbid(unsafe_code)]

pub mod collect;
#[cfg(feature = "load")]
pub mod engine;
pub mod intf;
#[cfg(feature = "load")]
mod loaded;
pub mod plan;
pub mod support;
#[cfg(feature = "load")]
mod worker;

pub use plan::Given;
