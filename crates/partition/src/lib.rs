//! Page colors: finding them, proving that they isolate, giving memory out by color.
//!
//! A color is a set of page frames that compete for the same sets of a cache (001 §3.1, 004 §II-A). A task that owns a
//! color owns that part of the cache.

pub mod client;
pub mod colors;
pub mod evict;
pub mod finder;
pub mod frame;
pub mod geometry;
pub mod holder;
pub mod isolation;
pub mod ledger;
pub mod palette;
pub mod probe;
pub mod process;
pub mod protocol;
pub mod selftest;
pub mod server;
pub mod socket;
pub mod sort;
pub mod tile;
pub mod violation;

pub use colors::{Color, Colors};
pub use finder::find;
pub use geometry::Geometry;
pub use palette::{How, Palette};
