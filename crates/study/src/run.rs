//! Running a study: parts judged by an executor, each set drawn once and judged at every point of
//! the axis by every policy.
//!
//! The counts do not depend on the number of threads or on the order of the parts: every set has a
//! stream of random numbers of its own, and counts are sums.
//!
//! Where every job pays D, a set with U′ above the number of processors, or a task with e′ > p, can
//! be shown schedulable by no sound test, hard or soft, and both only grow with D: the points of a
//! scene beyond the last one without such an overload are not asked. Below it a monotone judge is
//! asked by bisection, any other at every point. D ascends along a scene, as delays read from a
//! profile never fall with the working set size.

use crate::definition::Study;
use crate::grid::Cap;
use crate::judge::Asked;
use crate::part::{Counts, Part, Share, Work};
use crate::prepared::{Point, Prepared, Scene};
use crate::results::Results;
use crate::tally::Tally;
use analyze::clustered::Scratch;
use analyze::overheads::one_delay;
use generate::Random;
use model::watch::Watch;
use model::{Error, Ratio, Result, Timing, exact};
use std::cmp::Reverse;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many sets were accepted at one cap: by policy, then by point of the axis.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Shard {
    /// The cap.
    pub cap: Cap,
    /// How many sets were judged.
    pub sets: u32,
    /// Accepted sets.
    pub accepted: Vec<Vec<u32>>,
    /// The parts that these are the sums of, for pairs of policies; empty where they are not known.
    pub parts: Vec<Arc<Counts>>,
}

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
            // The heaviest parts come last, and are begun with: no thread is left alone with one.
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
    // Only a stop can leave parts out.
    Results::of(&work).map_err(|e| {
        e.remedy("nothing of it is kept: with `-o DIR` all parts are, and the same command goes on there")
    })
}

/// Judges what is missing of a share, and hands the counts of each part to `keep` when they are
/// there; stage by stage where it depends on counts which parts are needed.
pub(crate) fn advance(
    work: &mut Work<'_>,
    executor: &dyn Executor,
    share: Share,
    watch: &dyn Watch,
    keep: &(dyn Fn(&Counts) -> Result<()> + Sync),
) -> Result<()> {
    let tally = Mutex::new(Tally::of(work));
    loop {
        let mut missing = work.missing(share);
        // All caps go on side by side, the heaviest last: so what is seen so far is of all caps, the
        // time left is that of all, and no thread is left alone with a heavy part.
        missing.sort_by_key(|part| (Reverse(part.first), part.cap));
        // What is there already is no part of the stage: it would make the time left look short.
        let stage = match work.prepared.stages.len() {
            1 => work.study.name.clone(),
            _ => format!("{}, more sets", work.study.name),
        };
        watch.begin(
            &stage,
            missing.iter().map(|part| u64::from(part.sets)).sum(),
        );
        let made = Mutex::new(Vec::new());
        let ended = executor.run(
            work,
            &missing,
            &|counts| {
                keep(&counts)?;
                let mut tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
                tally.add(&counts);
                watch.so_far(&|columns| tally.lines(columns));
                drop(tally);
                made.lock()
                    .unwrap_or_else(PoisonError::into_inner)
                    .push(counts);
                Ok(())
            },
            watch,
        );
        let made = made.into_inner().unwrap_or_else(PoisonError::into_inner);
        let count = made.len();
        made.into_iter().try_for_each(|counts| work.put(counts))?;
        ended?;
        if count < missing.len() || work.missing(share).is_empty() {
            return Ok(());
        }
    }
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
    /// Draws the set of this number at the cap of this place, and sets this bit where a policy accepts
    /// it: in a row for each policy, a word for each point. Scenes that ask about the same sets share the one that is drawn.
    pub(crate) fn judge(
        &mut self,
        cap: usize,
        index: u32,
        seed: u64,
        prepared: &Prepared,
        rows: &mut [Vec<u16>],
        bit: u16,
    ) -> Result<()> {
        let mut drawn = None;
        for scene in &prepared.scenes {
            if drawn != Some(scene.sets) {
                let draw = &prepared.sets[scene.sets][cap];
                let number = Study::set_number(draw.cap, index);
                let mut random = Random::new(seed, number);
                draw.generator.draw_into(&mut random, &mut self.tasks)?;
                for task in &mut self.tasks {
                    *task = task.inflated(prepared.overhead);
                }
                drawn = Some(scene.sets);
            }
            self.judge_in(scene, rows, bit)?;
        }
        Ok(())
    }

    /// Sets the bit where a policy accepts the set that was drawn, at the points of a scene.
    fn judge_in(&mut self, scene: &Scene, rows: &mut [Vec<u16>], bit: u16) -> Result<()> {
        let mut possible = None;
        let marked = |yes: bool| if yes { bit } else { 0 };
        for (policy, row) in scene.policies.iter().zip(rows) {
            let row = &mut row[scene.place..][..scene.points.len()];
            let judge = policy.judge();
            let said = judge.accepts_each(&self.tasks, &scene.points);
            if let Some(each) = said.map_err(|e| e.at(format!("policies: `{}`", policy.name())))? {
                let both = row.iter_mut().zip(each);
                both.for_each(|(word, yes)| *word |= marked(yes));
                continue;
            }
            let possible = match possible {
                Some(known) => known,
                None => *possible.insert(self.possible(scene)?),
            };
            let mut accepts = |at: usize| {
                let (set, scratch) = self.charged(scene.points[at]);
                let said = judge.accepts(&set, scratch);
                said.map_err(|e| e.at(format!("policies: `{}`", policy.name())))
            };
            let asked = match judge.charges_every_job() {
                true => possible,
                false => row.len(),
            };
            if judge.is_monotone() {
                let end = first_false(asked, &mut accepts)?;
                row[..end].iter_mut().for_each(|word| *word |= bit);
            } else {
                for (at, word) in row[..asked].iter_mut().enumerate() {
                    *word |= marked(accepts(at)?);
                }
            }
        }
        Ok(())
    }

    /// At how many points of a scene, from its first on, the set is not over-utilized with D.
    fn possible(&mut self, scene: &Scene) -> Result<usize> {
        let m = Ratio::whole(u64::from(scene.processors));
        first_false(scene.points.len(), |at| {
            let set = self.charged(scene.points[at]).0;
            Ok(set.inflated.iter().all(|t| t.wcet <= t.period)
                && exact::cmp_sum(set.inflated.iter().map(Timing::utilization), m).is_le())
        })
    }

    /// The set at this point.
    fn charged(&mut self, point: Point) -> (Asked<'_>, &mut Scratch) {
        one_delay::inflate_into(&self.tasks, point.delay, &mut self.inflated);
        let set = Asked {
            drawn: &self.tasks,
            delay: point.delay,
            wss: point.wss,
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
