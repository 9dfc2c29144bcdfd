//! What an access waits for the caches, by the prices of the platform.
//!
//! - One that misses waits the `fill` of the outermost cache that missed, one that the first cache
//!   serves its `hit`, where that has a price; a write that no cache fetches waits for no line.
//! - A line that another processor had changed, and that a common cache gave, costs the
//!   `intervention` of the first cache of the processor that asks. What came through memory waited
//!   for memory, whoever had it.
//! - A changed line that makes room costs the `write_back` of the cache that it leaves, a write that
//!   goes on to the next level the `word` of the one that it passes: [`Hierarchy::owed`] adds these
//!   up, since one access can bring several about. What a prefetcher fetches, and what makes room
//!   for it, keeps nobody waiting.
//!
//! What has no price is free. Every access waits as if it came alone: nothing overlaps.
//!
//! [`Hierarchy::owed`]: crate::Hierarchy::owed

use crate::access::Kind;
use crate::hierarchy::Outcome;
use crate::shape::{Part, Shape};
use model::strategy::{Inclusion, Price, Writing};
use model::{CpuId, Duration, Error, Result};

/// What accesses of one processor wait.
#[derive(Clone, Debug)]
pub struct Waits {
    /// By the number of caches that missed, and by [`way`].
    lines: Vec<[Price; 4]>,
}

/// Accesses that read or only write, to a line of memory's or another processor's.
const fn way(writes: bool, given: bool) -> usize {
    2 * writes as usize + given as usize
}

impl Waits {
    /// Those to data of a processor, or to instructions.
    ///
    /// # Errors
    /// A cache has no price `fill`.
    pub fn of(shape: &Shape, cpu: CpuId, instructions: bool) -> Result<Self> {
        let path = path(shape, cpu, instructions);
        let first = path.first().map(|part| part.strategy);
        let intervention = first.and_then(|strategy| strategy.intervention);
        let (mut read, mut written) = (Price::default(), Price::default());
        let mut fetches = false;
        if let Some(hit) = first.and_then(|strategy| strategy.hit) {
            (read, written) = (hit, hit);
        }
        let mut lines = Vec::new();
        for part in &path {
            // A cache of the way serves these.
            let given = intervention.unwrap_or_default();
            lines.push([read, read.and(given), written, written.and(given)]);
            let fill = part.strategy.fill.ok_or_else(|| {
                Error::new(format!("the {} has no price `fill`", part.name)).remedy(
                    "add `fill` to each cache of a platform file, or choose a built-in platform, \
                     such as `--platform core-i7`",
                )
            })?;
            fetches |= part.allocate;
            (read, written) = (fill, if fetches { fill } else { Price::default() });
        }
        lines.push([read, read, written, written]);
        Ok(Waits { lines })
    }

    /// What an access waits for its line, by what came of it; beside what is owed.
    #[inline]
    pub fn line(&self, kind: Kind, outcome: Outcome) -> Price {
        let way = way(kind == Kind::Write, outcome.given);
        self.lines[outcome.missed as usize][way]
    }

    /// What can happen in these caches and has no price, in words such as "`write_back` of L2".
    pub fn unpriced(shape: &Shape) -> Vec<String> {
        let mut all = Vec::new();
        for part in &shape.parts {
            let strategy = part.strategy;
            let is_first = part.level == shape.parts[0].level;
            let backs = part.write == Writing::Back;
            for (key, price, happens) in [
                ("write_back", strategy.write_back, backs),
                ("word", strategy.word, !backs || !part.allocate),
                (
                    "intervention",
                    strategy.intervention,
                    is_first && shape.cpus.len() > 1,
                ),
            ] {
                let told = format!("`{key}` of {}", part.name);
                if price.is_none() && happens && !all.contains(&told) {
                    all.push(told);
                }
            }
        }
        all
    }

    /// The most that an access of a processor to one line of data can wait, with all that it can
    /// owe. `writes`: does anybody write? If not, no line is ever changed.
    ///
    /// An access fetches its line into each cache at most once, or, where writes pass a cache on to
    /// the next one, once for each cache that they reach and that fetches. Each line that is put into
    /// a cache makes room by one, which may be put into the next cache; so that the *d*-th cache of
    /// the way loses at most *d* lines for a read. A search over random caches looks for accesses
    /// that wait longer (`tests/waits.rs`).
    ///
    /// # Errors
    /// As [`Waits::of`].
    pub fn most(shape: &Shape, cpu: CpuId, writes: bool) -> Result<Duration> {
        let waits = Waits::of(shape, cpu, false)?;
        let path = path(shape, cpu, false);
        let mut line = 0;
        for missed in 0..=path.len() {
            let outcome = Outcome {
                reached: path.len().min(missed + 1) as u32,
                missed: missed as u32,
                given: writes && shape.parts.len() > path.len(),
            };
            line = line.max(waits.line(Kind::Read, outcome).pessimistic.nanos());
        }
        if !writes {
            return Ok(Duration::from_nanos(line));
        }
        let (mut owed, mut lost) = (0_u64, 0_u64);
        // Does a write reach this cache, and how many behind the first may fetch for it?
        let (mut is_reached, mut fetching) = (true, 0);
        for (depth, part) in path.iter().enumerate() {
            fetching += u64::from(depth > 0 && is_reached && part.allocate);
            // A line that is read is in the first cache when it is written.
            lost += match path[0].write {
                Writing::Back => fetching.max(1),
                Writing::Through => fetching + 1,
            };
            if part.write == Writing::Back || part.inclusion == Inclusion::Inclusive {
                owed = owed.saturating_add(lost.saturating_mul(worst(part.strategy.write_back)));
            }
            let goes_on = part.write == Writing::Through || !part.allocate;
            if is_reached && goes_on {
                owed = owed.saturating_add(worst(part.strategy.word));
            }
            is_reached &= goes_on;
        }
        Ok(Duration::from_nanos(line.saturating_add(owed)))
    }
}

fn worst(price: Option<Price>) -> u64 {
    price.map_or(0, |price| price.pessimistic.nanos())
}

/// The caches of a way, outwards.
fn path(shape: &Shape, cpu: CpuId, instructions: bool) -> Vec<&Part> {
    let path = shape.path(cpu, instructions);
    path.into_iter().map(|index| &shape.parts[index]).collect()
}
