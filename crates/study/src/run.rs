//! Running a study: parts judged by an executor, each set drawn once and judged at every delay by
//! every policy.
//!
//! The counts do not depend on the number of threads or on the order of the parts: every set has a
//! stream of random numbers of its own, and counts are sums.
//!
//! Where every job pays D, a set with U′ above the number of processors, or a task with e′ > p, can
//! be shown schedulable by no sound test, hard or soft, and both only grow with D: the delays
//! beyond the last one without such an overload are not asked. Below it a monotone judge is asked
//! by bisection, any other at every delay.

use crate::definition::{Prepared, Study};
use crate::grid::Cap;
use crate::judge::Asked;
use crate::part::{Counts, Part, Share, Work};
use crate::results::Results;
use analyze::clustered::Scratch;
use analyze::overheads::one_delay;
use generate::{Generator, Random};
use model::watch::Watch;
use model::{Duration, Error, Ratio, Result, Timing, exact};
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

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

/// Judges parts of a study somewhere: on threads here, or elsewhere.
pub trait Executor: Sync {
    /// Judges each of the parts and hands its counts to `keep`, in any order, until all are done or
    /// the watch stops. Each part is one step of the watch for each of its sets.
    ///
    /// # Errors
    /// A part cannot be judged; `keep` failed.
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        watch: &dyn Watch,
    ) -> Result<()>;
}

/// Threads of this process.
#[derive(Clone, Copy, Debug, Default)]
pub struct Threads {
    /// How many; `None`: those that the process shares for its work, one a processor.
    pub count: Option<NonZeroUsize>,
}

impl Executor for Threads {
    fn run(
        &self,
        work: &Work<'_>,
        parts: &[Part],
        keep: &(dyn Fn(Counts) -> Result<()> + Sync),
        watch: &dyn Watch,
    ) -> Result<()> {
        let next = AtomicUsize::new(0);
        let take = || {
            // The heaviest caps come last, and are begun with: no thread is left alone with one.
            let taken = next.fetch_add(1, Ordering::Relaxed);
            let part = parts.len().checked_sub(taken.saturating_add(1))?;
            (!watch.stopped()).then(|| parts[part])
        };
        let until_done = |_: rayon::BroadcastContext<'_>| {
            while let Some(part) = take() {
                keep(work.judge(part)?)?;
                watch.advance(u64::from(part.sets));
            }
            Ok::<(), Error>(())
        };
        let done = match self.count {
            None => rayon::broadcast(until_done),
            Some(count) => rayon::ThreadPoolBuilder::new()
                .num_threads(count.get())
                .build()
                .map_err(|e| {
                    Error::new(format!("cannot start {count} threads: {e}"))
                        .remedy("give a smaller number to `--threads`")
                })?
                .broadcast(until_done),
        };
        done.into_iter().collect()
    }
}

/// Runs a study in memory.
///
/// # Errors
/// The study is not sound; a test does not apply to its sets; it was stopped.
pub fn run(study: &Study, watch: &dyn Watch) -> Result<Results> {
    run_by(&Threads::default(), study, watch)
}

/// Runs a study in memory by an executor.
///
/// # Errors
/// As [`run`].
pub fn run_by(executor: &dyn Executor, study: &Study, watch: &dyn Watch) -> Result<Results> {
    let mut work = Work::new(study)?;
    advance(&mut work, executor, Share::WHOLE, watch, &|_| Ok(()))?;
    // Only a stop can leave caps out.
    Results::of(study, &work.prepared, work.shards()).map_err(|e| {
        e.remedy("nothing of it is kept: with `-o DIR` all parts are, and the same command goes on there")
    })
}

/// Judges what is missing of a share, and hands the counts of each part to `keep` when they are
/// there.
pub(crate) fn advance(
    work: &mut Work<'_>,
    executor: &dyn Executor,
    share: Share,
    watch: &dyn Watch,
    keep: &(dyn Fn(&Counts) -> Result<()> + Sync),
) -> Result<()> {
    let missing = work.missing(share);
    // What is there already is no part of the stage: it would make the time left look short.
    watch.begin(
        &work.study.name,
        missing.iter().map(|part| u64::from(part.sets)).sum(),
    );
    let made = Mutex::new(Vec::new());
    let ended = executor.run(
        work,
        &missing,
        &|counts| {
            keep(&counts)?;
            made.lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(counts);
            Ok(())
        },
        watch,
    );
    let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
    made.into_iter().try_for_each(|counts| work.put(counts))?;
    ended
}

/// What a thread keeps between sets.
#[derive(Default)]
pub(crate) struct Worker {
    /// As drawn, with the study's overhead.
    tasks: Vec<Timing>,
    /// With one delay more.
    inflated: Vec<Timing>,
    scratch: Scratch,
}

impl Worker {
    /// Draws one set and adds what each policy accepts, by delay.
    pub(crate) fn judge(
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
