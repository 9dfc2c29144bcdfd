//! The engine within the Linux kernel: plans of policies carried out by sched_ext.
//!
//! Its program for the kernel is `src/bpf/main.bpf.c`, laid out as scx lays out its schedulers; it
//! knows no policy. [`plan`] turns a policy's plan into data for it, [`collect`] puts what it tells
//! into the order of a trace. Both work on any machine. What loads and runs it ([`run`]) is compiled
//! with the feature `load` alone, which needs the headers of libelf; without it [`run`] is an error
//! that says so.
//!
//! Which kernels it needs and what it guarantees: `docs/kernel.md`.

#![deny(unsafe_code)] // but in the skeleton, which is generated

#[cfg(feature = "load")]
mod above;
#[cfg(feature = "load")]
mod behind;
#[cfg(feature = "load")]
mod bpf_skel;
#[cfg(feature = "load")]
mod class;
pub mod collect;
#[cfg(feature = "load")]
mod company;
#[cfg(feature = "load")]
mod course;
#[cfg(feature = "load")]
mod engine;
#[cfg(feature = "load")]
mod hearing;
pub mod intf;
#[cfg(feature = "load")]
mod loaded;
mod outcome;
pub mod plan;
#[cfg(feature = "load")]
mod planner;
pub mod quanta;
pub mod support;
mod surroundings;
#[cfg(feature = "load")]
mod telling;
#[cfg(not(feature = "load"))]
mod without;
#[cfg(feature = "load")]
mod worker;
#[cfg(feature = "load")]
mod writer;

#[cfg(feature = "load")]
pub use engine::run;
pub use outcome::{Outcome, Settings};
pub use plan::{Carried, Given};
pub use surroundings::Surroundings;
#[cfg(not(feature = "load"))]
pub use without::run;
