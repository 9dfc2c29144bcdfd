//! Parts that are judged elsewhere, by another process or another machine: a study as plain text on
//! its way there ([`Texts`], [`PartJudge`]), and counts as lines of JSON on their way back
//! ([`Arrivals`]).
//!
//! What brings them there and back is not known here: it may lose parts, send them twice, and bring
//! their counts in any order.

use crate::definition::Study;
use crate::part::{Counts, Part, Work, judge};
use crate::prepared::Prepared;
use crate::store::definition;
use model::watch::Watch;
use model::{Error, Result, platformfile, profilefile};
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A study as the texts of its files, complete in themselves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Texts {
    /// `study.toml`, with the version that wrote it.
    pub study: String,
    /// `platform.toml`.
    pub platform: String,
    /// `profile.toml`, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub profile: Option<String>,
}

impl Texts {
    /// The texts of a study.
    pub fn of(study: &Study) -> Self {
        Texts {
            study: definition(study),
            platform: platformfile::to_toml(&study.platform),
            profile: study.charged.profile.as_ref().map(profilefile::to_toml),
        }
    }

    /// The study of these texts.
    ///
    /// # Errors
    /// They are no study, or another version wrote them, which may draw or judge otherwise.
    pub fn study(&self) -> Result<Study> {
        let platform = |_: &str| platformfile::from_toml(&self.platform);
        let profile = |_: &str| {
            let text = self.profile.as_deref();
            let text = text.ok_or_else(|| Error::new("the profile of the study did not come"))?;
            profilefile::from_toml(text)
        };
        let study = crate::file::from_toml(&self.study, platform, profile)?;
        if Texts::of(&study) != *self {
            return Err(Error::new(format!(
                "the study was written by another version of Warmset than this one, {}",
                env!("CARGO_PKG_VERSION")
            ))
            .remedy("install the same version wherever parts of it are judged"));
        }
        Ok(study)
    }
}

/// Judges parts of a study that came as texts.
pub struct PartJudge {
    seed: u64,
    prepared: Prepared,
}

impl PartJudge {
    /// # Errors
    /// The texts are no sound study of this version.
    pub fn new(texts: &Texts) -> Result<Self> {
        let study = texts.study()?;
        Ok(PartJudge {
            seed: study.seed,
            prepared: study.prepare()?,
        })
    }

    /// The counts of a part, as a line of JSON without its end.
    ///
    /// # Errors
    /// It is no part of the study; a test does not apply to a set.
    pub fn judge(&self, part: Part) -> Result<String> {
        line_of(&judge(&self.prepared, self.seed, part)?)
    }
}

/// Counts as a line of JSON, without its end.
pub(crate) fn line_of(counts: &Counts) -> Result<String> {
    serde_json::to_string(counts)
        .map_err(|e| Error::new(format!("the counts cannot be written as JSON: {e}")))
}

/// Takes the counts that come back, for an [`Executor`](crate::Executor): those of each part once.
pub struct Arrivals<'a> {
    work: &'a Work<'a>,
    keep: &'a (dyn Fn(Counts) -> Result<()> + Sync),
    watch: &'a dyn Watch,
    asked: BTreeSet<Part>,
    /// Of those that were asked for.
    awaited: Mutex<BTreeSet<Part>>,
}

impl<'a> Arrivals<'a> {
    /// Awaits these parts. `keep` and `watch` are those of the executor.
    pub fn new(
        work: &'a Work<'a>,
        parts: &[Part],
        keep: &'a (dyn Fn(Counts) -> Result<()> + Sync),
        watch: &'a dyn Watch,
    ) -> Self {
        let asked: BTreeSet<Part> = parts.iter().copied().collect();
        Arrivals {
            work,
            keep,
            watch,
            awaited: Mutex::new(asked.clone()),
            asked,
        }
    }

    /// Takes lines of counts. Those of a part that came before are left out.
    ///
    /// # Errors
    /// A line is not the counts of a part that was asked for; `keep` failed.
    pub fn take(&self, lines: &str) -> Result<()> {
        for line in lines.lines() {
            let counts: Counts = serde_json::from_str(line).map_err(|e| {
                Error::new(format!("what came back is not the counts of a part: {e}"))
            })?;
            let part = counts.part;
            self.work.check(&counts).map_err(|e| {
                e.remedy("install the same version of Warmset wherever parts are judged")
            })?;
            if !self.asked.contains(&part) {
                return Err(Error::new(
                    "counts came back of a part that nobody asked for",
                ));
            }
            let mut awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
            let is_first = awaited.remove(&part);
            drop(awaited);
            if is_first {
                (self.keep)(counts)?;
                self.watch.advance(u64::from(part.sets));
            }
        }
        Ok(())
    }

    /// How many parts have not come back yet.
    pub fn left(&self) -> usize {
        let awaited = self.awaited.lock().unwrap_or_else(PoisonError::into_inner);
        awaited.len()
    }
}
