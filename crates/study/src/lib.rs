//! Experiments over many task sets: schedulability and weighted schedulability (000 §5; 002
//! §6.2–6.3).
//!
//! A [`Study`] says which sets, platform, policies and grid; [`run`] judges it in memory,
//! [`run_in`] in a directory that keeps what was done; [`Results`] hold counts, curves and
//! crossings. [`presets`] are the studies of the papers, [`families`] those of 002, chapter 6, in one;
//! [`observe`] holds its observations against results, [`ranges`] compares two policies.
//!
//! ```
//! let mut study = study::presets::find("ospert10-fig5")?;
//! study.sets = 2;
//! let results = study::run(&study, &model::watch::Silent)?;
//! let (p_edf, g_edf) = (0, 1);
//! assert!(results.weighted_at(g_edf, 0) > results.weighted_at(p_edf, 0));
//! # Ok::<(), model::Error>(())
//! ```

#![forbid(unsafe_code)]

mod axis;
pub mod brute_force;
pub mod chapter6;
mod charged;
mod contrast;
mod definition;
mod elsewhere;
pub mod families;
mod figures;
pub mod file;
mod grid;
mod judge;
mod judges;
mod kept;
mod misses;
mod notes;
pub mod observe;
mod part;
mod points;
mod prepared;
pub mod presets;
pub mod ranges;
mod results;
mod run;
pub mod schema;
mod stages;
mod store;
mod tally;

pub use analyze::policies::Accounting;
pub use axis::{Axis, Quantity, Swept};
pub use charged::{Caches, Charged, Judging, Told};
pub use contrast::{Contrast, Gap, Term};
pub use definition::{Cache, MAX_COUNTS, MAX_SETS, Study};
pub use elsewhere::{Arrivals, PartJudge, Texts};
pub use grid::{Cap, Factor, Grid, Value};
pub use judge::{Asked, Candidate, Judge};
pub use judges::MAJOR_TESTS;
pub use kept::Kept;
pub use part::{Counts, Part, Share, Work};
pub use prepared::Point;
pub use results::{Curve, Results, wilson};
pub use run::{Executor, Shard, Threads, run, run_by};
pub use stages::enough_for;
pub use store::{fits_in, load, load_whole, merge, run_in, run_share_in};
