//! Cache delays by the schedule-sensitive method (000 §3.1): generated sets run on the engine under
//! the policies of interest, and their jobs measure what preemptions and migrations cost them.
//!
//! [`plan`] says which sets run under which policies; [`campaign`] runs them. Assumes the right to
//! real-time priorities.

pub mod campaign;
pub mod plan;
mod run;
