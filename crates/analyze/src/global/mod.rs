//! Hard real-time tests for global EDF: one file a test.

pub mod bak;
pub mod bcl;
pub mod bcli;
pub mod gfb;
