//! The unit of work of a study: a part, a run of sets of one cap. Plain data in and out.
//!
//! A study is cut into the same parts wherever and however often it is run: a part is named by its
//! cap and its first set, and its counts depend on nothing but the study. So parts can be judged in
//! any order, by any number of threads or machines, and twice; [`Work::put`] takes each once.

use crate::definition::Study;
use crate::grid::Cap;
use crate::kept::{Kept, Line};
use crate::prepared::Prepared;
use crate::run::{Shard, Worker};
use crate::stages::are_narrow;
use model::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::Arc;

/// Sets of a part, at most the bits of a word of [`Kept::Sets`]. A kill loses at most one part of
/// each thread.
const SETS: u32 = 10;

/// A run of sets of one cap.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Part {
    /// The cap, in thousandths.
    pub cap: u32,
    /// The number of the first set.
    pub first: u32,
    /// How many sets.
    pub sets: u32,
}

/// What was counted in a part.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(try_from = "Line", into = "Line")]
pub struct Counts {
    /// Which part.
    pub part: Part,
    /// What of it was kept.
    pub kept: Kept,
}

/// One of several shares of the parts of a study, such as `3/16`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Share {
    number: u32,
    of: u32,
}

impl Share {
    /// Everything.
    pub const WHOLE: Share = Share { number: 1, of: 1 };

    /// Is what has this place part of the share? Every `of`-th is.
    fn has(self, place: usize) -> bool {
        place % self.of as usize == self.number as usize - 1
    }
}

impl fmt::Display for Share {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

impl FromStr for Share {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let numbers = text.split_once('/');
        let numbers = numbers.and_then(|(n, of)| Some((n.parse().ok()?, of.parse().ok()?)));
        match numbers {
            Some((number, of)) if (1..=of).contains(&number) => Ok(Share { number, of }),
            _ => Err(Error::new(format!("`{text}` is no share of a study"))
                .remedy("write `3/16` for the third of sixteen")),
        }
    }
}

/// A study with what of it was counted.
pub struct Work<'a> {
    pub(crate) study: &'a Study,
    pub(crate) prepared: Prepared,
    done: BTreeMap<Part, Arc<Counts>>,
}

impl<'a> Work<'a> {
    /// Nothing of a study is done.
    ///
    /// # Errors
    /// The study is not sound.
    pub fn new(study: &'a Study) -> Result<Self> {
        Ok(Work {
            study,
            prepared: study.prepare()?,
            done: BTreeMap::new(),
        })
    }

    /// The study.
    pub fn study(&self) -> &'a Study {
        self.study
    }

    /// Sets of a part.
    fn size(&self) -> u32 {
        // A simulation of a minute takes seconds, so that a set is a part of its own.
        let simulates = |name: &String| name.trim().starts_with("brute-force:");
        match self.study.policies.iter().any(simulates) {
            true => 1,
            false => SETS,
        }
    }

    /// Every part, by cap and set; with `until_ci` those that are known to be needed.
    pub fn parts(&self) -> Vec<Part> {
        self.prepared
            .caps
            .iter()
            .flat_map(|cap| self.parts_of(*cap))
            .collect()
    }

    fn parts_of(&self, cap: Cap) -> impl Iterator<Item = Part> + use<> {
        let (size, sets) = (self.size(), self.counted(cap).0);
        (0..sets).step_by(size as usize).map(move |first| Part {
            cap: cap.thousandths(),
            first,
            sets: size.min(sets - first),
        })
    }

    /// The parts of a share that are not counted yet, as far as it is known that they are needed.
    ///
    /// A share has every so-manieth part; with `until_ci` every so-manieth cap, as what a cap needs
    /// depends on its counts.
    pub fn missing(&self, share: Share) -> Vec<Part> {
        let by_cap = self.prepared.stages.len() > 1;
        let caps = self.prepared.caps.iter().enumerate();
        let caps = caps.filter(|(place, _)| !by_cap || share.has(*place));
        let parts = caps.flat_map(|(_, cap)| self.parts_of(*cap)).enumerate();
        let parts = parts.filter(|(place, _)| by_cap || share.has(*place));
        let missing = parts.filter(|(_, part)| !self.done.contains_key(part));
        missing.map(|(_, part)| part).collect()
    }

    /// Every part that is counted, by cap and set.
    pub fn done(&self) -> impl Iterator<Item = Counts> + '_ {
        self.done.values().map(|counts| Counts::clone(counts))
    }

    /// Are these the counts of a part of this study?
    ///
    /// # Errors
    /// They are not.
    pub fn check(&self, counts: &Counts) -> Result<()> {
        let part = counts.part;
        let (policies, points) = self.prepared.size();
        if !self.is_part(part) || !counts.kept.fits(policies, points, part.sets) {
            return Err(Error::new("the counts are not those of this study")
                .remedy("remove the file and run the study again"));
        }
        Ok(())
    }

    /// Takes the counts of a part. A second time they change nothing; but of counts that agree those
    /// stay that say which sets were kept, not only how many.
    ///
    /// # Errors
    /// The counts are not those of a part of this study, or differ from those taken before.
    pub fn put(&mut self, counts: Counts) -> Result<()> {
        self.check(&counts)?;
        let part = counts.part;
        let known = match self.done.get(&part) {
            None => Some(true),
            Some(before) => before.kept.agreed(&counts.kept),
        };
        match known {
            Some(is_more) => {
                if is_more {
                    self.done.insert(part, Arc::new(counts));
                }
                Ok(())
            }
            None => Err(Error::new(format!(
                "two counts of the sets from {} of the cap {} differ",
                part.first,
                Cap::from_thousandths(part.cap)
            ))
            .remedy("one was made by another version or is damaged: run it again")),
        }
    }

    fn is_part(&self, part: Part) -> bool {
        let cap = Cap::from_thousandths(part.cap);
        let size = self.size();
        let most = self.prepared.stages.last().copied().unwrap_or(0);
        self.prepared.caps.binary_search(&cap).is_ok()
            && part.first.is_multiple_of(size)
            && part.first < most
            && part.sets == size.min(most - part.first)
    }

    /// Draws and judges the sets of a part.
    ///
    /// # Errors
    /// It is no part of the study; a test does not apply to a set.
    pub fn judge(&self, part: Part) -> Result<Counts> {
        judge(&self.prepared, self.study.seed, part)
    }

    /// The sums of the caps of which every part is counted.
    pub(crate) fn shards(&self) -> Vec<Option<Shard>> {
        let caps = self.prepared.caps.iter();
        caps.map(|cap| self.counted(*cap).1).collect()
    }

    /// How many sets a cap needs as far as is known, and its sum where they are counted.
    fn counted(&self, cap: Cap) -> (u32, Option<Shard>) {
        let (policies, points) = self.prepared.size();
        let mut stages = self.prepared.stages.iter().copied();
        let mut goal = stages.next().unwrap_or(0);
        let (mut sets, mut accepted) = (0, vec![vec![0; points]; policies]);
        let mut parts = Vec::new();
        for counts in self.of_cap(cap.thousandths()) {
            if counts.part.first != sets {
                break;
            }
            sets += counts.part.sets;
            let numbers = counts.kept.numbers();
            let both = accepted.iter_mut().flatten().zip(numbers.iter().flatten());
            both.for_each(|(sum, more)| *sum += more);
            parts.push(Arc::clone(counts));
            if sets < goal {
                continue;
            }
            let width = self.prepared.until_ci.unwrap_or(1.0);
            let next = stages
                .next()
                .filter(|_| !are_narrow(&accepted, sets, width));
            match next {
                Some(stage) => goal = stage,
                None => {
                    let shard = Shard {
                        cap,
                        sets,
                        accepted,
                        parts,
                    };
                    return (goal, Some(shard));
                }
            }
        }
        (goal, None)
    }

    fn of_cap(&self, cap: u32) -> impl Iterator<Item = &Arc<Counts>> {
        let end = |first, sets| Part { cap, first, sets };
        let range = self.done.range(end(0, 0)..=end(u32::MAX, u32::MAX));
        range.map(|(_, counts)| counts)
    }
}

/// Draws and judges the sets of a part of a study with this seed.
///
/// # Errors
/// It is no part of the study; a test does not apply to a set.
pub(crate) fn judge(prepared: &Prepared, seed: u64, part: Part) -> Result<Counts> {
    let cap = Cap::from_thousandths(part.cap);
    let at = prepared.caps.binary_search(&cap).map_err(|_| {
        Error::new(format!("the study has no cap {cap}")).remedy("ask for one of its parts")
    })?;
    let (policies, points) = prepared.size();
    if part.sets > SETS {
        return Err(
            Error::new(format!("a part has at most {SETS} sets, not {}", part.sets))
                .remedy("ask for one of the parts of the study"),
        );
    }
    let mut rows = vec![vec![0; points]; policies];
    let mut worker = Worker::default();
    for place in 0..part.sets {
        let (index, bit) = (part.first.saturating_add(place), 1 << place);
        worker.judge(at, index, seed, prepared, &mut rows, bit)?;
    }
    Ok(Counts {
        part,
        kept: Kept::Sets(rows),
    })
}
