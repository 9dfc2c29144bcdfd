//! The first deadline miss under earliest deadline first in one cluster, with one delay for each
//! time that a job goes on: an engine for brute force alone.
//!
//! Which of its processors a job is on does not matter where a job pays the same delay wherever it
//! goes on, and nothing else costs anything. So the schedule is that of a list of jobs by rank: the
//! first m of them run. It is the schedule of room `simulate` (`costly`), which a test holds this
//! one against: synchronous, periodic, at WCET; equal deadlines by earlier release, then by the
//! lower task; completions and releases of an instant before its decision; a job that is preempted
//! pays the whole delay when it goes on, also where it was preempted while it paid.
//!
//! Assumes: deadlines within periods, so that a task whose next job comes has missed if the job
//! before is not done.
//!
//! Fast by small words: a rank and a release are one number each, tasks are numbered by their ties,
//! and processors are slots in no order, as a look at all of them is cheaper than keeping one.

use model::{Duration, Timing};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The releases of a cluster's tasks in their order, made as far as they were needed: all delays
/// share them.
pub(crate) struct Cluster {
    /// In the order of their ties.
    tasks: Vec<Task>,
    processors: usize,
    horizon: u64,
    tagged: Tagged,
    /// Instants with the task whose job comes, ascending.
    releases: Vec<u64>,
    /// All releases before this are there.
    known: u64,
    /// By task, the next one that is not.
    next: Vec<u64>,
}

/// Times in nanoseconds.
struct Task {
    wcet: u64,
    period: u64,
    deadline: u64,
}

/// An instant and a task in one number, which is ordered by the instant, then by the task. With a
/// deadline for the instant it is the rank of a job: the smaller runs first.
#[derive(Clone, Copy)]
struct Tagged {
    /// How many bits hold the task.
    bits: u32,
}

impl Tagged {
    /// For so many tasks and instants up to the last one; `None`: they do not fit.
    fn new(tasks: usize, last: u64) -> Option<Self> {
        let bits = usize::BITS - tasks.leading_zeros();
        (last < u64::MAX >> bits).then_some(Tagged { bits })
    }

    fn of(self, instant: u64, task: usize) -> u64 {
        instant << self.bits | task as u64
    }

    fn instant(self, number: u64) -> u64 {
        number >> self.bits
    }

    fn task(self, number: u64) -> usize {
        (number & ((1 << self.bits) - 1)) as usize
    }
}

/// What is known of the current job of a task.
#[derive(Clone, Copy, Default)]
struct Job {
    /// Execution that is left when it was last preempted.
    left: u64,
    started: bool,
    active: bool,
}

/// How much time is made known at once.
const STRETCH: u64 = 500_000_000;

impl Cluster {
    /// The tasks of a set that live in a cluster; with each its place among jobs of one deadline.
    ///
    /// `None`: a deadline is beyond its period, or the times are too long for this engine.
    pub(crate) fn new(
        tasks: impl Iterator<Item = (Timing, u32)>,
        processors: usize,
        horizon: Duration,
    ) -> Option<Self> {
        let mut tasks: Vec<(Timing, u32)> = tasks.collect();
        tasks.sort_by_key(|(_, tie)| *tie);
        let mut made = Vec::with_capacity(tasks.len());
        for (timing, _) in tasks {
            if timing.deadline > timing.period {
                return None;
            }
            made.push(Task {
                wcet: timing.wcet.nanos(),
                period: timing.period.nanos().max(1),
                deadline: timing.deadline.nanos(),
            });
        }
        let horizon = horizon.nanos();
        let longest = made.iter().map(|task| task.deadline).max();
        let last = horizon.checked_add(longest.unwrap_or(0))?;
        Some(Cluster {
            tagged: Tagged::new(made.len(), last)?,
            next: vec![0; made.len()],
            tasks: made,
            processors,
            horizon,
            releases: Vec::new(),
            known: 0,
        })
    }

    /// Makes more releases known; are there any?
    fn learn(&mut self) -> bool {
        let before = self.releases.len();
        while self.releases.len() == before && self.known < self.horizon && !self.tasks.is_empty() {
            self.known = self.known.saturating_add(STRETCH).min(self.horizon);
            for (index, (task, next)) in self.tasks.iter().zip(&mut self.next).enumerate() {
                while *next < self.known {
                    self.releases.push(self.tagged.of(*next, index));
                    *next = next.saturating_add(task.period);
                }
            }
            self.releases[before..].sort_unstable();
        }
        self.releases.len() > before
    }

    /// Is a deadline missed before or at the horizon where each time that a job goes on costs this?
    pub(crate) fn misses(&mut self, delay: Duration) -> bool {
        let tagged = self.tagged;
        let mut run = Run {
            tagged,
            processors: self.processors,
            horizon: self.horizon,
            delay: delay.nanos(),
            ranks: Vec::with_capacity(self.processors),
            done: Vec::with_capacity(self.processors),
            from: Vec::with_capacity(self.processors),
            soonest: u64::MAX,
            fresh: Vec::new(),
            waiting: BinaryHeap::with_capacity(self.tasks.len()),
            jobs: vec![Job::default(); self.tasks.len()],
        };
        let mut at = 0;
        loop {
            if at == self.releases.len() {
                self.learn();
            }
            let next = self.releases.get(at).copied();
            let release = next.map_or(u64::MAX, |release| tagged.instant(release));
            let now = release.min(run.soonest);
            if now > self.horizon {
                // Who runs was found to be in time when it was put on.
                let late = |rank: &u64| tagged.instant(*rank) <= self.horizon;
                return run.waiting.iter().any(|Reverse(rank)| late(rank));
            }
            if run.soonest == now {
                run.complete(now);
            }
            while let Some(release) = self.releases.get(at).copied()
                && tagged.instant(release) == now
            {
                at += 1;
                let task = tagged.task(release);
                if run.release(&self.tasks[task], task, now) {
                    return true;
                }
                if at == self.releases.len() {
                    self.learn();
                }
            }
            if run.choose(now) {
                return true;
            }
        }
    }
}

/// A schedule.
struct Run {
    tagged: Tagged,
    processors: usize,
    horizon: u64,
    delay: u64,
    /// Of the jobs that run, in any order: their ranks,
    ranks: Vec<u64>,
    /// when each is done if nobody preempts it,
    done: Vec<u64>,
    /// and from when on it executes: it reloads before.
    from: Vec<u64>,
    /// When the first of these is done.
    soonest: u64,
    /// Jobs that come at this instant.
    fresh: Vec<u64>,
    waiting: BinaryHeap<Reverse<u64>>,
    jobs: Vec<Job>,
}

impl Run {
    fn take_off(&mut self, slot: usize) -> (u64, u64, u64) {
        let rank = self.ranks.swap_remove(slot);
        (
            rank,
            self.done.swap_remove(slot),
            self.from.swap_remove(slot),
        )
    }

    fn complete(&mut self, now: u64) {
        let mut slot = 0;
        let mut soonest = u64::MAX;
        while let Some(done) = self.done.get(slot).copied() {
            if done == now {
                let (rank, ..) = self.take_off(slot);
                self.jobs[self.tagged.task(rank)].active = false;
            } else {
                soonest = soonest.min(done);
                slot += 1;
            }
        }
        self.soonest = soonest;
    }

    /// A job comes; has the one before missed?
    fn release(&mut self, task: &Task, index: usize, now: u64) -> bool {
        let job = &mut self.jobs[index];
        if job.active {
            return true;
        }
        *job = Job {
            left: task.wcet,
            started: false,
            active: true,
        };
        self.fresh.push(self.tagged.of(now + task.deadline, index));
        false
    }

    /// Where the last of the jobs that run is, if every processor has one.
    fn last(&self) -> Option<usize> {
        if self.ranks.len() < self.processors {
            return None;
        }
        let (mut last, mut worst) = (0, 0);
        for (slot, rank) in self.ranks.iter().enumerate() {
            if *rank > worst {
                (last, worst) = (slot, *rank);
            }
        }
        Some(last)
    }

    /// Lets the first of all jobs run; does one of them miss for certain?
    fn choose(&mut self, now: u64) -> bool {
        if let [only] = self.fresh[..]
            && (self.waiting.is_empty() || self.ranks.len() == self.processors)
        {
            // Nobody else has to be looked at.
            self.fresh.clear();
            if let Some(last) = self.last() {
                if only > self.ranks[last] {
                    self.waiting.push(Reverse(only));
                    return false;
                }
                self.preempt(last, now);
            }
            return self.start(only, now);
        }
        // One by one: `extend` would rather order all of the heap anew.
        for rank in self.fresh.drain(..) {
            self.waiting.push(Reverse(rank));
        }
        while let Some(Reverse(best)) = self.waiting.peek().copied() {
            if let Some(last) = self.last() {
                if best > self.ranks[last] {
                    break;
                }
                self.preempt(last, now);
            }
            // The one that was preempted is behind it.
            self.waiting.pop();
            if self.start(best, now) {
                return true;
            }
        }
        false
    }

    /// The job in this slot waits.
    fn preempt(&mut self, slot: usize, now: u64) {
        let (rank, done, from) = self.take_off(slot);
        self.jobs[self.tagged.task(rank)].left = done - now.max(from);
        self.waiting.push(Reverse(rank));
        if done == self.soonest {
            self.soonest = self.done.iter().copied().min().unwrap_or(u64::MAX);
        }
    }

    /// A job is put on; does it miss for certain, also if nobody preempts it?
    fn start(&mut self, rank: u64, now: u64) -> bool {
        let job = &mut self.jobs[self.tagged.task(rank)];
        let reload = if job.started { self.delay } else { 0 };
        job.started = true;
        let from = now.saturating_add(reload);
        let done = from.saturating_add(job.left);
        let deadline = self.tagged.instant(rank);
        if done > deadline && deadline <= self.horizon {
            return true;
        }
        self.soonest = self.soonest.min(done);
        self.ranks.push(rank);
        self.done.push(done);
        self.from.push(from);
        false
    }
}
