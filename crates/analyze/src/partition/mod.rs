//! Bin packing of tasks onto processors or clusters.
//!
//! 002 §2.2.2 (the heuristics), 000 §2 (clusters as bins), 002 §6.3 (worst-fit decreasing). A bin
//! is a cluster of some processors; its load is compared exactly. Conventions, so that assignments
//! are the same everywhere: equal keys keep the order of the set (stable sort), equal loads go to
//! the lowest bin.
//!
//! [`pack`] packs by utilization alone. [`accept`] packs with an exact test per processor.

pub mod accept;
pub mod affinity;
mod loads;
pub mod pack;
pub mod pedf;
pub mod pfp;

/// The most tasks for which a test decides every placement by the exact test of the whole
/// processor.
pub const EXACT_PLACEMENTS: usize = 5_000;

/// What a larger set is told.
pub const TOO_MANY_PLACEMENTS: crate::NotApplicable =
    crate::NotApplicable::Limit("5000 tasks, each placed by the exact test of a whole processor");

pub use accept::{Acceptance, decide_partition, partition};
pub use pack::Scratch;

use model::{Error, Result, Timing};
use serde::Serialize;
use std::fmt;
use std::str::FromStr;

/// In which order tasks are placed.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Largest utilization first.
    #[default]
    DecreasingUtilization,
    /// Largest density, e / min(D, p), first.
    DecreasingDensity,
    /// As in the set.
    Given,
}

/// Which of the bins that can take a task takes it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Fit {
    /// The one with most capacity left.
    #[default]
    Worst,
    /// The lowest.
    First,
    /// The one with least capacity left.
    Best,
    /// The one of the task before, or else the next one; earlier bins are never looked at again.
    Next,
}

impl Fit {
    /// All, in the order of DESIGN's test names.
    pub const ALL: [Fit; 4] = [Fit::Worst, Fit::First, Fit::Best, Fit::Next];
}

impl fmt::Display for Fit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Fit::Worst => "worst fit",
            Fit::First => "first fit",
            Fit::Best => "best fit",
            Fit::Next => "next fit",
        })
    }
}

impl FromStr for Fit {
    type Err = Error;
    /// Reads `wfd`, `ffd`, `bfd`, `nfd` and the names in full, in any case.
    fn from_str(text: &str) -> Result<Self> {
        match text.to_lowercase().as_str() {
            "wfd" | "worst" | "worst-fit" => Ok(Fit::Worst),
            "ffd" | "first" | "first-fit" => Ok(Fit::First),
            "bfd" | "best" | "best-fit" => Ok(Fit::Best),
            "nfd" | "next" | "next-fit" => Ok(Fit::Next),
            _ => Err(Error::new(format!("unknown heuristic `{text}`"))
                .remedy("write `wfd`, `ffd`, `bfd` or `nfd`")),
        }
    }
}

impl Order {
    /// The tasks' indices in the order of placement, into `order`. Stable; keys are compared
    /// exactly.
    pub fn sort(self, tasks: &[Timing], order: &mut Vec<u32>) {
        order.clear();
        order.extend(0..tasks.len() as u32);
        match self {
            Order::DecreasingUtilization => {
                order.sort_by_cached_key(|i| std::cmp::Reverse(tasks[*i as usize].utilization()));
            }
            Order::DecreasingDensity => {
                order.sort_by_cached_key(|i| std::cmp::Reverse(tasks[*i as usize].density()));
            }
            Order::Given => {}
        }
    }
}
