//! Hard real-time tests for global EDF: one file a test.

pub mod gfb;
