//! What scheduling costs on this machine: generated sets run on the engine, and what engine and
//! kernel took meanwhile (002 §5.1).
//!
//! [`sets`] draws them as the paper does; [`run`] runs one of them and cuts what was recorded into
//! samples ([`measure::overheads`]).

mod run;
pub mod sets;

pub use run::{Looks, Seen, calibrate_walk, run};
