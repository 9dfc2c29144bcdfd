//! The engine in real time: drives any policy on stock Linux, from user space.

pub mod clock;
pub mod gate;
pub mod kernel;
pub mod watchdog;
