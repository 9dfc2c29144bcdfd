//! What an access waits for the caches, by the prices of the platform.
//!
//! - One whose line is fetched waits the `fill` of the outermost cache that it is fetched into, one
//!   that the first cache serves its `hit`, where that has a price; a write that no cache fetches
//!   waits for no line.
//! - A line that another processor had changed, and that a common cache gave, costs the
//!   `intervention` of the first cache of the processor that asks. What came through memory waited
//!   for memory, whoever had it.
//! - A changed line that makes room costs the `write_back` of the cache that it leaves, a write
//!   that goes on to the next level the `word` of the one that it passes: [`Hierarchy::owed`] adds
//!   these up, since one access can bring several about. What a prefetcher fetches, and what makes
//!   room for it, keeps nobody waiting.
//!
//! What has no price is free. Every access waits as if it came alone: nothing overlaps.
//!
//! [`Hierarchy::owed`]: crate::Hierarchy::owed

use crate::hierarchy::Outcome;
use crate::shape::{Part, Shape};
use model::strategy::{Inclusion, Price, Writing};
use model::{CacheKind, CpuId, Duration, Error, Result};

/// What accesses of one processor wait.
#[derive(Clone, Debug)]
pub struct Waits {
    /// By the number of caches that a line was fetched past, and whether another processor gave it.
    lines: Vec<[Price; 2]>,
}

impl Waits {
    /// Those to data of a processor, or to instructions.
    ///
    /// # Errors
    /// It has no cache for them; a cache has no price `fill`.
    pub fn of(shape: &Shape, cpu: CpuId, instructions: bool) -> Result<Self> {
        let path = path(shape, cpu, instructions);
        let Some(first) = path.first().map(|part| part.strategy) else {
            let what = if instructions { "instructions" } else { "data" };
            return Err(
                Error::new(format!("processor {cpu} has no cache for {what}"))
                    .remedy("describe one: what it waits for is the price of a cache"),
            );
        };
        let given = first.intervention.unwrap_or_default();
        let mut line = first.hit.unwrap_or_default();
        let mut lines = Vec::new();
        for part in path {
            // A cache of the way serves it.
            lines.push([line, line.and(given)]);
            line = part.strategy.fill.ok_or_else(|| {
                Error::new(format!("the {} has no price `fill`", part.name)).remedy(
                    "add `fill` to each cache of a platform file, or choose a built-in platform, \
                     such as `--platform core-i7`",
                )
            })?;
        }
        lines.push([line, line]);
        Ok(Waits { lines })
    }

    /// What an access waits for its line, by what came of it; beside what is owed.
    #[inline]
    pub fn line(&self, outcome: Outcome) -> Price {
        // A write that the first cache misses, and nobody fetches, is no hit there.
        match outcome.fetched == 0 && outcome.missed(0) {
            true => Price::default(),
            false => self.lines[outcome.fetched as usize][usize::from(outcome.given)],
        }
    }

    /// What can happen in these caches and has no price, in words such as "`write_back` of L2".
    pub fn unpriced(shape: &Shape) -> Vec<String> {
        let mut all = Vec::new();
        for part in shape
            .parts
            .iter()
            .filter(|part| part.kind != CacheKind::Instruction)
        {
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
    /// The line comes from one place, for one `fill`, and for one `intervention` at most, as no two
    /// processors have changed it. A write goes through each cache once, for its `word`. A line
    /// leaves a cache of the way, for its `write_back`, only if another is put there:
    ///
    /// - *The line itself*: by a read once, as caches are asked outwards, and each that lacks it
    ///   gets it once. What another processor had changed is written to the common cache first,
    ///   which then need not fetch it. A first cache that writes back keeps what is written to a
    ///   line that it has; it has one that was read, since that was put there last, and what leaves
    ///   for it makes no inclusive cache lose a line: such a cache has all that leaves those before
    ///   it.
    ///   A write that is passed on may be fetched by each cache that it reaches, into that and
    ///   those behind.
    /// - *Lines that leave the cache before it*, changed, or for an exclusive one.
    ///
    /// So a cache loses at most as many lines as the one before it, and one for each time that the
    /// line itself can be put there: for a read the *d*-th one *d* lines. A search over random
    /// caches looks for accesses that wait longer (`tests/waits.rs`).
    ///
    /// # Errors
    /// As [`Waits::of`].
    pub fn most(shape: &Shape, cpu: CpuId, writes: bool) -> Result<Duration> {
        let waits = Waits::of(shape, cpu, false)?;
        let path = path(shape, cpu, false);
        let mut line = 0;
        for [own, given] in waits.lines {
            let is_given = writes && shape.parts.len() > path.len();
            let price = if is_given { given } else { own };
            line = line.max(price.pessimistic.nanos());
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
