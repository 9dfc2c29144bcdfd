//! Working set sizes found while jobs run: the profiler of the cache-aware scheduler (003 §3.2).
//!
//! A multithreaded task (MTT) is profiled as one: the sum of the shared cache's misses over the
//! jobs of the same number of all its tasks, times the line, is an estimate of its working set, at
//! most the size of the cache. An estimate is discarded if one of these jobs was preempted, or ran
//! in a quantum whose working sets, as estimated then, exceeded the cache.
//!
//! At first the working set is zero, then the latest estimate. Once two estimates in a row differ
//! by less than a sixteenth of the larger, neither of them at the size of the cache, they have
//! converged: from then on the working set is the average of these two and all that follow. (The
//! paper names no threshold, and its example of §3.2 has the first two in the average.)
//!
//! Assumes: jobs of one number share their data with each other and with no other job; jobs of a
//! task complete in order.

use model::{Bytes, TaskId};
use std::collections::VecDeque;

/// Two estimates that differ by less than one part in so many have converged.
const CLOSE: u64 = 16;

/// A job may be so many numbers ahead of the oldest incomplete one of its MTT. Of one that is
/// further ahead, the oldest are discarded, so that a backlog takes no memory.
const MOST_AHEAD: usize = 64;

/// What is known of an MTT.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Estimate {
    /// The working set size that counts now.
    pub wss: Bytes,
    /// Have two estimates in a row agreed?
    pub converged: bool,
    /// Jobs of the MTT that were profiled.
    pub profiled: u64,
    /// Jobs of the MTT that were discarded.
    pub discarded: u64,
}

/// Profiles the multithreaded tasks of a set.
#[derive(Clone, Debug)]
pub struct Profiler {
    cache: u64,
    line: u64,
    mtts: Vec<Mtt>,
    mtt_of: Vec<u32>,
}

#[derive(Clone, Debug, Default)]
struct Mtt {
    tasks: u32,
    told: Estimate,
    /// The latest estimate, unless that was at the size of the cache.
    latest: Option<u64>,
    /// Once converged: the sum of estimates and their number.
    sum: u128,
    count: u64,
    /// The number of the first job in `open`.
    first: u64,
    /// Jobs of the MTT that are not complete.
    open: VecDeque<Open>,
}

/// A job of an MTT that is not complete.
#[derive(Clone, Copy, Debug, Default)]
struct Open {
    completed: u32,
    misses: u64,
    spoiled: bool,
}

impl Profiler {
    /// `mtt_of`: by task its MTT, numbered from 0. `line`: bytes of a line of the shared cache.
    pub fn new(mtt_of: &[u32], cache: Bytes, line: Bytes) -> Self {
        let count = mtt_of.iter().max().map_or(0, |last| last + 1);
        let mut mtts: Vec<Mtt> = (0..count)
            .map(|_| Mtt {
                open: VecDeque::with_capacity(MOST_AHEAD),
                ..Mtt::default()
            })
            .collect();
        for mtt in mtt_of {
            mtts[*mtt as usize].tasks += 1;
        }
        Profiler {
            cache: cache.get(),
            line: line.get(),
            mtts,
            mtt_of: mtt_of.to_vec(),
        }
    }

    /// Bytes of a line of the shared cache: what one miss stands for.
    pub fn line(&self) -> Bytes {
        Bytes::new(self.line)
    }

    /// The working set size that counts now, in bytes.
    #[inline]
    pub fn wss(&self, mtt: u32) -> u64 {
        self.mtts[mtt as usize].told.wss.get()
    }

    /// What is known of each task's MTT.
    pub fn estimates(&self) -> impl Iterator<Item = (u32, Estimate)> {
        let of = |mtt: &u32| (*mtt, self.mtts[*mtt as usize].told);
        self.mtt_of.iter().map(of)
    }

    /// Job `number` of this task was preempted, or ran where the cache thrashes: nothing is learned
    /// of its MTT's job of this number.
    pub fn spoil(&mut self, task: TaskId, number: u64) {
        if let Some(open) = self.open(task, number) {
            open.spoiled = true;
        }
    }

    /// Job `number` of this task is complete, with so many misses of the shared cache; `None`: they
    /// are not known. Returns the MTT if its estimate is new.
    pub fn complete(&mut self, task: TaskId, number: u64, misses: Option<u64>) -> Option<u32> {
        let mtt = self.mtt_of[task.index()];
        if let Some(open) = self.open(task, number) {
            open.completed += 1;
            open.misses = open.misses.saturating_add(misses.unwrap_or(0));
            open.spoiled |= misses.is_none();
        }
        let (line, cache) = (self.line, self.cache);
        let of = &mut self.mtts[mtt as usize];
        let mut learned = false;
        // In order: a job of a lower number may still be under way in another task.
        while let Some(open) = of.open.front().filter(|open| open.completed >= of.tasks) {
            let (misses, spoiled) = (open.misses, open.spoiled);
            of.open.pop_front();
            of.first += 1;
            if spoiled {
                of.told.discarded += 1;
            } else {
                of.learn(misses.saturating_mul(line).min(cache), cache);
                learned = true;
            }
        }
        learned.then_some(mtt)
    }

    /// The job of this number; `None`: it was discarded.
    fn open(&mut self, task: TaskId, number: u64) -> Option<&mut Open> {
        let mtt = &mut self.mtts[self.mtt_of[task.index()] as usize];
        let oldest = (number + 1).saturating_sub(MOST_AHEAD as u64);
        while mtt.first < oldest {
            mtt.open.pop_front();
            mtt.first += 1;
            mtt.told.discarded += 1;
        }
        let place = usize::try_from(number.checked_sub(mtt.first)?).ok()?;
        while mtt.open.len() <= place {
            mtt.open.push_back(Open::default());
        }
        mtt.open.get_mut(place)
    }
}

impl Mtt {
    fn learn(&mut self, estimate: u64, cache: u64) {
        self.told.profiled += 1;
        if self.told.converged {
            self.sum += u128::from(estimate);
            self.count += 1;
            // The average of sizes is one.
            let average = self.sum / u128::from(self.count);
            self.told.wss = Bytes::new(u64::try_from(average).unwrap_or(u64::MAX));
            return;
        }
        let now = (estimate < cache).then_some(estimate);
        self.told.wss = Bytes::new(estimate);
        if let (Some(before), Some(now)) = (self.latest, now)
            && before.abs_diff(now).saturating_mul(CLOSE) < before.max(now).max(1)
        {
            self.told.converged = true;
            self.sum = u128::from(before) + u128::from(now);
            self.count = 2;
            self.told.wss = Bytes::new((self.sum / 2) as u64);
        }
        self.latest = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: Bytes = Bytes::new(64);
    const A: TaskId = TaskId(0);
    const B: TaskId = TaskId(1);

    fn estimate(profiler: &Profiler) -> Estimate {
        profiler.estimates().next().unwrap().1
    }

    /// 003 §3.2: misses 997 + 1242, job 2 discarded, 1072 + 1203: 144,448 bytes.
    #[test]
    fn the_example_of_two_tasks_that_decode_video() {
        let mut profiler = Profiler::new(&[0, 0], Bytes::from_mib(8), LINE);
        assert_eq!(profiler.wss(0), 0);
        assert_eq!(profiler.complete(A, 0, Some(997)), None);
        assert_eq!(profiler.wss(0), 0, "one task of two");
        assert_eq!(profiler.complete(B, 0, Some(1242)), Some(0));
        assert_eq!(profiler.wss(0), 2239 * 64);
        profiler.spoil(B, 1);
        profiler.complete(A, 1, Some(90_000));
        assert_eq!(profiler.complete(B, 1, Some(90_000)), None);
        assert_eq!(profiler.wss(0), 2239 * 64);
        profiler.complete(B, 2, Some(1203));
        profiler.complete(A, 2, Some(1072));
        let told = estimate(&profiler);
        assert_eq!(told.wss, Bytes::new(144_448));
        assert_eq!((told.profiled, told.discarded), (2, 1));
        assert!(told.converged);
    }

    #[test]
    fn estimates_at_the_size_of_the_cache_never_converge() {
        let mut profiler = Profiler::new(&[0], Bytes::from_mib(1), LINE);
        let lines = 1 << 14;
        let learned = [
            (lines, lines, false),
            (9 * lines, lines, false),
            (lines / 2, lines / 2, false),
            // Capped once more: the two on both sides of it are not consecutive.
            (lines, lines, false),
            (lines / 2, lines / 2, false),
            (lines / 4, lines / 4, false),
            (lines / 4 + 2, lines / 4 + 1, true),
            // From here on averages: (2 · 4097 + 10,000) / 3, of which two thirds are as above.
            (10_000, 6064, true),
        ];
        for (number, (misses, wanted, converged)) in (0..).zip(learned) {
            profiler.complete(A, number, Some(misses));
            let told = estimate(&profiler);
            assert_eq!(told.wss.get() / 64, wanted, "after job {number}");
            assert_eq!(told.converged, converged, "after job {number}");
        }
    }

    #[test]
    fn a_backlog_is_discarded_and_takes_no_memory() {
        let mut profiler = Profiler::new(&[0, 0], Bytes::from_mib(1), LINE);
        // One task runs far ahead of the other.
        for number in 0..1000 {
            profiler.complete(A, number, Some(100));
        }
        assert!(profiler.mtts[0].open.len() <= MOST_AHEAD);
        let discarded = 1000 - MOST_AHEAD as u64;
        assert_eq!(estimate(&profiler).discarded, discarded);
        for number in 0..1000 {
            profiler.complete(B, number, Some(28));
        }
        let told = estimate(&profiler);
        assert_eq!((told.profiled, told.discarded), (64, discarded));
        assert_eq!(told.wss, Bytes::new(128 * 64));
        assert!(profiler.mtts[0].open.is_empty());
        // Misses that nobody counted are no misses of zero.
        profiler.complete(A, 1000, None);
        profiler.complete(B, 1000, Some(1));
        assert_eq!(estimate(&profiler).discarded, discarded + 1);
    }
}
