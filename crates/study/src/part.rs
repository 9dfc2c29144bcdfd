//! The unit of work of a study: a part, a run of sets of one cap. Plain data in and out.
//!
//! A study is cut into the same parts wherever and however often it is run: a part is named by its
//! cap and its first set, and its counts depend on nothing but the study. So parts can be judged in
//! any order, by any number of threads or machines, and twice; [`Work::put`] takes each once.

use crate::definition::{Prepared, Study};
use crate::grid::Cap;
use crate::run::{Shard, Worker};
use model::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

/// Sets of a part. A kill loses at most one part of each thread.
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
#[serde(deny_unknown_fields)]
pub struct Counts {
    /// Which part.
    pub part: Part,
    /// Accepted sets: by policy, then by delay.
    pub accepted: Vec<Vec<u32>>,
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

    /// The parts of this share, of all in their order: every `of`-th.
    fn pick(self, parts: Vec<Part>) -> Vec<Part> {
        let (first, step) = (self.number as usize - 1, self.of as usize);
        parts.into_iter().skip(first).step_by(step).collect()
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
    done: BTreeMap<Part, Vec<Vec<u32>>>,
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

    /// Sets of a part.
    fn size(&self) -> u32 {
        // A simulation of a minute takes seconds, so that a set is a part of its own.
        let simulates = |name: &String| name.trim().starts_with("brute-force:");
        match self.study.policies.iter().any(simulates) {
            true => 1,
            false => SETS,
        }
    }

    /// Every part, by cap and set.
    pub fn parts(&self) -> Vec<Part> {
        let size = self.size();
        let of_cap = |cap: &Cap| {
            let cap = cap.thousandths();
            (0..self.study.sets)
                .step_by(size as usize)
                .map(move |first| Part {
                    cap,
                    first,
                    sets: size.min(self.study.sets - first),
                })
        };
        self.prepared.caps.iter().flat_map(of_cap).collect()
    }

    /// The parts of a share that are not counted yet.
    pub fn missing(&self, share: Share) -> Vec<Part> {
        let mut parts = share.pick(self.parts());
        parts.retain(|part| !self.done.contains_key(part));
        parts
    }

    /// Every part that is counted, by cap and set.
    pub fn done(&self) -> impl Iterator<Item = Counts> + '_ {
        self.done.iter().map(|(part, accepted)| Counts {
            part: *part,
            accepted: accepted.clone(),
        })
    }

    /// Takes the counts of a part. A second time they change nothing.
    ///
    /// # Errors
    /// The counts are not those of a part of this study, or differ from those taken before.
    pub fn put(&mut self, counts: Counts) -> Result<()> {
        let Counts { part, accepted } = counts;
        let (policies, delays) = (self.prepared.policies.len(), self.prepared.delays.len());
        let is_sound = self.is_part(part)
            && accepted.len() == policies
            && accepted
                .iter()
                .all(|row| row.len() == delays && row.iter().all(|n| *n <= part.sets));
        if !is_sound {
            return Err(Error::new("the counts are not those of this study")
                .remedy("remove the file and run the study again"));
        }
        match self.done.get(&part) {
            Some(before) if *before != accepted => Err(Error::new(format!(
                "two counts of the sets from {} of the cap {} differ",
                part.first,
                Cap::from_thousandths(part.cap)
            ))
            .remedy("one was made by another version or is damaged: run it again")),
            _ => {
                self.done.insert(part, accepted);
                Ok(())
            }
        }
    }

    fn is_part(&self, part: Part) -> bool {
        let cap = Cap::from_thousandths(part.cap);
        let size = self.size();
        self.prepared.caps.binary_search(&cap).is_ok()
            && part.first.is_multiple_of(size)
            && part.first < self.study.sets
            && part.sets == size.min(self.study.sets - part.first)
    }

    /// Draws and judges the sets of a part.
    ///
    /// # Errors
    /// It is no part of the study; a test does not apply to a set.
    pub fn judge(&self, part: Part) -> Result<Counts> {
        let cap = Cap::from_thousandths(part.cap);
        let at = self.prepared.caps.binary_search(&cap).map_err(|_| {
            Error::new(format!("the study has no cap {cap}")).remedy("ask for one of its parts")
        })?;
        let (policies, delays) = (self.prepared.policies.len(), self.prepared.delays.len());
        let mut accepted = vec![vec![0; delays]; policies];
        let mut worker = Worker::default();
        for index in part.first..part.first.saturating_add(part.sets) {
            worker.judge(
                &self.prepared.generators[at],
                self.study.seed,
                Study::set_number(cap, index),
                &self.prepared,
                &mut accepted,
            )?;
        }
        Ok(Counts { part, accepted })
    }

    /// The sums of the caps of which every part is counted.
    pub(crate) fn shards(&self) -> Vec<Option<Shard>> {
        let empty = || vec![vec![0; self.prepared.delays.len()]; self.prepared.policies.len()];
        let sum = |cap: &Cap| {
            let (mut sets, mut accepted) = (0, empty());
            for (part, counts) in self.of_cap(cap.thousandths()) {
                sets += part.sets;
                let both = accepted.iter_mut().flatten().zip(counts.iter().flatten());
                both.for_each(|(sum, more)| *sum += more);
            }
            (sets == self.study.sets).then_some(Shard {
                cap: *cap,
                accepted,
            })
        };
        self.prepared.caps.iter().map(sum).collect()
    }

    fn of_cap(&self, cap: u32) -> impl Iterator<Item = (&Part, &Vec<Vec<u32>>)> {
        let end = |first, sets| Part { cap, first, sets };
        self.done.range(end(0, 0)..=end(u32::MAX, u32::MAX))
    }
}
