//! Running a study: one shard for each cap, each set drawn once and judged at every delay by every
//! policy.
//!
//! The counts do not depend on the number of threads or on the order of the shards: every set has a
//! stream of random numbers of its own, and counts are sums.
//!
//! Where every job pays D, a set with U′ above the number of processors, or a task with e′ > p, can
//! be shown schedulable by no sound test, hard or soft, and both only grow with D: the delays
//! beyond the last one without such an overload are not asked. Below it a monotone judge is asked
//! by bisection, any other at every delay.

use crate::definition::{Prepared, Study};
use crate::grid::Cap;
use crate::judge::Asked;
use crate::results::Results;
use analyze::clustered::Scratch;
use analyze::overheads::one_delay;
use generate::{Generator, Random};
use model::watch::Watch;
use model::{Duration, Error, Ratio, Result, Timing, exact};
use rayon::prelude::*;

/// How many sets were accepted at one cap: by policy, then by delay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shard {
    /// The cap.
    pub cap: Cap,
    /// Accepted sets.
    pub accepted: Vec<Vec<u32>>,
}

/// The counts of a study, some caps may be missing when it was stopped.
pub(crate) type Shards = Vec<Option<Shard>>;

/// Sets that a thread takes at a time.
const BATCH: u32 = 16;

/// Runs a study in memory.
///
/// # Errors
/// The study is not sound; a test does not apply to its sets; it was stopped.
pub fn run(study: &Study, watch: &dyn Watch) -> Result<Results> {
    let prepared = study.prepare()?;
    let shards = run_shards(study, &prepared, Vec::new(), watch, |_| Ok(()))?;
    // Only a stop can leave caps out.
    Results::of(study, &prepared, shards).map_err(|e| {
        e.remedy("nothing of it is kept: with `-o DIR` complete caps are, and the same command goes on there")
    })
}

/// Runs the shards that are not among `done`, hands each to `keep` as soon as it is complete, and
/// returns all.
pub(crate) fn run_shards(
    study: &Study,
    prepared: &Prepared,
    done: Vec<Shard>,
    watch: &dyn Watch,
    keep: impl Fn(&Shard) -> Result<()> + Sync,
) -> Result<Shards> {
    let mut shards: Shards = prepared
        .caps
        .iter()
        .map(|cap| done.iter().find(|s| s.cap == *cap).cloned())
        .collect();
    let total = prepared.caps.len() as u64 * u64::from(study.sets);
    watch.begin(&study.name, total);
    watch.advance(done.len() as u64 * u64::from(study.sets));
    // The heaviest caps first, so that no thread is left alone with one at the end.
    let mut missing: Vec<(usize, &mut Option<Shard>)> = shards
        .iter_mut()
        .enumerate()
        .filter(|(_, s)| s.is_none())
        .collect();
    missing.reverse();
    missing
        .into_par_iter()
        .with_max_len(1)
        .try_for_each(|(at, shard)| {
            if let Some(made) = run_shard(study, prepared, at, watch)? {
                keep(&made)?;
                *shard = Some(made);
            }
            Ok::<(), Error>(())
        })?;
    Ok(shards)
}

/// One cap; `None` if stopped.
fn run_shard(
    study: &Study,
    prepared: &Prepared,
    at: usize,
    watch: &dyn Watch,
) -> Result<Option<Shard>> {
    let cap = prepared.caps[at];
    let nothing = || vec![vec![0; prepared.delays.len()]; prepared.policies.len()];
    let batches = study.sets.div_ceil(BATCH);
    let accepted = (0..batches)
        .into_par_iter()
        .map_init(Worker::default, |worker, batch| {
            let mut accepted = nothing();
            if watch.stopped() {
                return Ok(accepted);
            }
            let sets = batch * BATCH
                ..study
                    .sets
                    .min(batch.saturating_add(1).saturating_mul(BATCH));
            let count = sets.len() as u64;
            for index in sets {
                let number = Study::set_number(cap, index);
                worker.judge(
                    &prepared.generators[at],
                    study.seed,
                    number,
                    prepared,
                    &mut accepted,
                )?;
            }
            watch.advance(count);
            Ok(accepted)
        })
        .try_reduce(nothing, |mut a, b| {
            for (a, b) in a.iter_mut().flatten().zip(b.iter().flatten()) {
                *a += b;
            }
            Ok(a)
        })?;
    Ok((!watch.stopped()).then_some(Shard { cap, accepted }))
}

/// What a thread keeps between sets.
#[derive(Default)]
struct Worker {
    /// As drawn, with the study's overhead.
    tasks: Vec<Timing>,
    /// With one delay more.
    inflated: Vec<Timing>,
    scratch: Scratch,
}

impl Worker {
    /// Draws one set and adds what each policy accepts, by delay.
    fn judge(
        &mut self,
        generator: &Generator,
        seed: u64,
        number: u64,
        prepared: &Prepared,
        accepted: &mut [Vec<u32>],
    ) -> Result<()> {
        generator.draw_into(&mut Random::new(seed, number), &mut self.tasks)?;
        for task in &mut self.tasks {
            *task = task.inflated(prepared.overhead);
        }
        let m = Ratio::whole(u64::from(prepared.processors));
        let possible = first_false(prepared.delays.len(), |at| {
            let set = self.charged(prepared.charged[at]).0;
            Ok(set.inflated.iter().all(|t| t.wcet <= t.period)
                && exact::cmp_sum(set.inflated.iter().map(Timing::utilization), m).is_le())
        })?;
        for (policy, accepted) in prepared.policies.iter().zip(accepted) {
            let judge = policy.judge();
            let mut accepts = |at: usize| {
                let (set, scratch) = self.charged(prepared.charged[at]);
                let said = judge.accepts(&set, scratch);
                said.map_err(|e| e.at(format!("policies: `{}`", policy.name())))
            };
            let asked = match judge.charges_every_job() {
                true => possible,
                false => accepted.len(),
            };
            if judge.is_monotone() {
                let end = first_false(asked, &mut accepts)?;
                accepted[..end].iter_mut().for_each(|count| *count += 1);
            } else {
                for (at, count) in accepted[..asked].iter_mut().enumerate() {
                    *count += u32::from(accepts(at)?);
                }
            }
        }
        Ok(())
    }

    /// The set with this delay.
    fn charged(&mut self, delay: Duration) -> (Asked<'_>, &mut Scratch) {
        one_delay::inflate_into(&self.tasks, delay, &mut self.inflated);
        let set = Asked {
            drawn: &self.tasks,
            delay,
            inflated: &self.inflated,
        };
        (set, &mut self.scratch)
    }
}

/// The first of `0..len` for which `holds` does not hold, where it holds up to some point and then
/// no more.
fn first_false(len: usize, mut holds: impl FnMut(usize) -> Result<bool>) -> Result<usize> {
    let (mut low, mut high) = (0, len);
    while low < high {
        let middle = low + (high - low) / 2;
        if holds(middle)? {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    Ok(low)
}
