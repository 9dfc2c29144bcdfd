//! What scheduling costs on this machine: generated sets run on the engine, and what engine and
//! kernel took meanwhile (002 §5.1).
//!
//! [`sets`] draws them as the paper does; [`run`] runs one of them and cuts what was recorded into
//! samples ([`measure::overheads`]); [`probing`] finds out what recording adds to them; [`plan`]
//! says which sets run under which policies, and [`campaign`] runs them all.

pub mod campaign;
pub mod plan;
pub mod probing;
mod run;
pub mod sets;

pub use run::{Looks, Seen, calibrate_walk, run, run_in_kernel};
