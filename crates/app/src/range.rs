//! Competitive ranges (000 §5) of any two policies of a study: up to which cost of its own one is at
//! least as good as the other at its cost.

use model::{Profile, Result};
use serde::Serialize;
use std::path::PathBuf;
use study::ranges::{Ranges, Sized, is_of_delays, working_sets};

/// What is asked.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory of a complete study.
    pub dir: PathBuf,
    /// The policy, by its name in figures.
    pub of: String,
    /// The one that it is held against.
    pub against: String,
    /// Also the working sets whose cache delays lie within the range, by this profile.
    pub profile: Option<Profile>,
}

/// What was found. JSON: as `warmset study range --format json`.
#[derive(Clone, Debug, Serialize)]
pub struct Found {
    /// The study.
    pub study: String,
    /// What it shows.
    pub title: String,
    /// What one must know to trust it.
    pub notes: Vec<String>,
    /// By what was charged.
    #[serde(flatten)]
    pub charged: study::Told,
    /// What is swept.
    pub axis: study::Swept,
    /// Sets for each cap.
    pub sets: u32,
    /// The ranges.
    #[serde(flatten)]
    pub ranges: Ranges,
    /// The profile whose working sets lie within the first range.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sized_by: Option<String>,
    /// The largest of them by each of its curves.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub working_sets: Vec<Sized>,
}

/// Finds the ranges.
///
/// # Errors
/// No complete study is there; it has no such policy, or one value on its axis; working sets are
/// asked for where no delays are swept.
pub fn find(options: &Options) -> Result<Found> {
    let results = study::load(&options.dir)?;
    let ranges = results.ranges(&options.of, &options.against)?;
    let sized = match (&options.profile, ranges.first()) {
        (Some(profile), Some(first)) if is_of_delays(&results) => {
            working_sets(first.up_to, profile)
        }
        (Some(_), _) => {
            return Err(model::Error::new(format!(
                "the ranges of `{}` are not delays, which a profile has working sets for",
                results.name
            ))
            .at("--profile")
            .remedy("leave `--profile` out, or name a study that sweeps `delays`"));
        }
        (None, _) => Vec::new(),
    };
    Ok(Found {
        study: results.name,
        title: results.title,
        notes: results.notes,
        charged: results.charged,
        axis: results.axis,
        sets: results.sets,
        ranges,
        sized_by: options.profile.as_ref().map(|p| p.platform.clone()),
        working_sets: sized,
    })
}
