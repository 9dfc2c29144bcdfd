//! This machine: its platform and what it permits, clocks, real-time rights, settings that are
//! changed and restored.

pub mod allocator;
pub mod bequest;
pub mod capabilities;
pub mod cgroup;
pub mod clock;
pub mod counter;
pub mod detect;
pub mod facts;
pub mod group;
pub mod interrupts;
pub mod memory;
pub mod others;
pub mod prefetchers;
pub mod probe;
pub mod process;
pub mod procfs;
pub mod realtime;
pub mod records;
pub mod render;
pub mod settings;
pub mod stack;
pub mod stop;
pub mod threads;
pub mod throttle;
mod topology;
pub mod touched;
pub mod tracefs;
pub mod tree;
pub mod user;

pub use capabilities::{Capability, State};
pub use detect::{Machine, detect, this_machine};
pub use facts::Fact;
pub use probe::{Outcome, Probes};
pub use tree::Tree;
