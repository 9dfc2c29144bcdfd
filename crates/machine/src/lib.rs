//! This machine: its platform and what it permits, clocks, real-time rights, settings that are changed and restored.

pub mod clock;
pub mod interrupts;
pub mod realtime;
pub mod settings;
