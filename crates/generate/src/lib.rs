//! Random task sets from the distributions of the field: 002 §6.2.1, 000 §5, 004 §IV-A and
//! fixed-sum methods.
//!
//! A set is known by a seed and a number: the same on any machine, in any order, on any number of
//! threads.
//!
//! ```
//! use generate::{Amount, Deadlines, Fill, Recipe};
//! let recipe = Recipe {
//!     amount: Amount::Cap {
//!         utilizations: "uniform-medium".parse()?,
//!         cap: model::Ratio::whole(12),
//!         fill: Fill::Drop,
//!     },
//!     periods: "moderate".parse()?,
//!     deadlines: Deadlines::Implicit,
//! };
//! let set = recipe.prepare()?.draw(1, 0)?;
//! assert!(set.utilization_f64() <= 12.0);
//! # Ok::<(), model::Error>(())
//! ```

#![forbid(unsafe_code)]

mod deadline;
pub mod fixed_sum;
mod period;
mod random;
mod recipe;
mod text;
mod utilization;

pub use deadline::Deadlines;
pub use period::{Periods, Span};
pub use random::Random;
pub use recipe::{Amount, Fill, Generator, Method, Recipe};
pub use utilization::{Range, Utilizations};
