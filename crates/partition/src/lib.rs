//! Page colors: finding them, proving that they isolate, giving memory out by color.
//!
//! A color is a set of page frames that compete for the same sets of a cache (001 §3.1, 004 §II-A).
//! A task that owns a color owns that part of the cache.

pub mod client;
pub mod evict;
pub mod finder;
pub mod frame;
pub mod geometry;
pub mod holder;
pub mod large;
pub mod ledger;
pub mod listen;
pub mod memory;
pub mod palette;
pub mod plan;
pub mod pool;
pub mod probe;
pub mod process;
pub mod protocol;
pub mod recolor;
pub mod resctrl;
pub mod selection;
pub mod selftest;
pub mod server;
pub mod socket;
pub mod sort;
pub mod state;
pub mod tile;
pub mod upkeep;
pub mod violation;

pub use finder::find;
pub use geometry::Geometry;
pub use large::{Large, LargeWindow};
pub use model::colors::{self, Color, Colors};
pub use palette::{How, Palette};
pub use pool::{Pool, View};
pub use selection::Selection;
