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

use model::{Duration, Timing};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The releases of a cluster's tasks in their order, made as far as they were needed: all delays
/// share them.
pub(crate) struct Cluster {
    tasks: Vec<Task>,
    processors: usize,
    horizon: u64,
    /// (When, which task), ascending.
    releases: Vec<(u64, u32)>,
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
    /// Its place among jobs of one deadline.
    tie: u32,
}

/// A job by its rank: deadline, tie, task. The smaller runs first.
type Rank = (u64, u32, u32);

/// A job on a processor.
#[derive(Clone, Copy)]
struct Running {
    rank: Rank,
    /// When it is done if nobody preempts it.
    done: u64,
    /// From when on it executes: it reloads before.
    from: u64,
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
    /// The tasks of a set that live in a cluster, in the order of the set; `ties` has the place of
    /// each among jobs of one deadline.
    ///
    /// `None`: a deadline is beyond its period.
    pub(crate) fn new(
        tasks: impl Iterator<Item = (Timing, u32)>,
        processors: usize,
        horizon: Duration,
    ) -> Option<Self> {
        let mut made = Vec::new();
        for (timing, tie) in tasks {
            if timing.deadline > timing.period {
                return None;
            }
            made.push(Task {
                wcet: timing.wcet.nanos(),
                period: timing.period.nanos().max(1),
                deadline: timing.deadline.nanos(),
                tie,
            });
        }
        Some(Cluster {
            next: vec![0; made.len()],
            tasks: made,
            processors,
            horizon: horizon.nanos(),
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
                    self.releases.push((*next, index as u32));
                    *next = next.saturating_add(task.period);
                }
            }
            self.releases[before..].sort_unstable();
        }
        self.releases.len() > before
    }

    /// Is a deadline missed before or at the horizon where each time that a job goes on costs this?
    pub(crate) fn misses(&mut self, delay: Duration) -> bool {
        let mut run = Run {
            delay: delay.nanos(),
            running: Vec::with_capacity(self.processors),
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
            let release = self.releases.get(at).map_or(u64::MAX, |(when, _)| *when);
            let now = release.min(run.soonest);
            if now > self.horizon {
                // Who runs was found to be in time when it was put on.
                return run
                    .waiting
                    .iter()
                    .any(|Reverse(rank)| rank.0 <= self.horizon);
            }
            if run.soonest == now {
                run.complete(now);
            }
            while let Some((when, task)) = self.releases.get(at).copied()
                && when == now
            {
                at += 1;
                if run.release(&self.tasks[task as usize], task, now) {
                    return true;
                }
                if at == self.releases.len() {
                    self.learn();
                }
            }
            if run.choose(self.processors, self.horizon, now) {
                return true;
            }
        }
    }
}

/// A schedule.
struct Run {
    delay: u64,
    /// In the order of ranks.
    running: Vec<Running>,
    /// When the first of these is done.
    soonest: u64,
    /// Jobs that come at this instant.
    fresh: Vec<Rank>,
    waiting: BinaryHeap<Reverse<Rank>>,
    jobs: Vec<Job>,
}

impl Run {
    fn complete(&mut self, now: u64) {
        let jobs = &mut self.jobs;
        let mut soonest = u64::MAX;
        self.running.retain(|running| {
            let ends = running.done == now;
            if ends {
                jobs[running.rank.2 as usize].active = false;
            } else {
                soonest = soonest.min(running.done);
            }
            !ends
        });
        self.soonest = soonest;
    }

    /// A job comes; has the one before missed?
    fn release(&mut self, task: &Task, index: u32, now: u64) -> bool {
        let job = &mut self.jobs[index as usize];
        if job.active {
            return true;
        }
        *job = Job {
            left: task.wcet,
            started: false,
            active: true,
        };
        let rank = (now.saturating_add(task.deadline), task.tie, index);
        self.fresh.push(rank);
        false
    }

    /// Lets the first of all jobs run; does one of them miss for certain?
    fn choose(&mut self, processors: usize, horizon: u64, now: u64) -> bool {
        if let [only] = self.fresh[..]
            && (self.waiting.is_empty() || self.running.len() == processors)
        {
            // Nobody else has to be looked at.
            self.fresh.clear();
            if self.running.len() == processors {
                match self.running.last() {
                    Some(worst) if only < worst.rank => self.preempt(now),
                    _ => {
                        self.waiting.push(Reverse(only));
                        return false;
                    }
                }
            }
            return self.start(only, horizon, now);
        }
        self.waiting.extend(self.fresh.drain(..).map(Reverse));
        while let Some(Reverse(best)) = self.waiting.peek().copied() {
            if self.running.len() == processors {
                match self.running.last() {
                    Some(worst) if best < worst.rank => self.preempt(now),
                    _ => break,
                }
            }
            // The one that was preempted is behind it.
            self.waiting.pop();
            if self.start(best, horizon, now) {
                return true;
            }
        }
        false
    }

    /// The last job that runs waits.
    fn preempt(&mut self, now: u64) {
        let Some(worst) = self.running.pop() else {
            return;
        };
        self.jobs[worst.rank.2 as usize].left = worst.done - now.max(worst.from);
        self.waiting.push(Reverse(worst.rank));
        if worst.done == self.soonest {
            let done = self.running.iter().map(|running| running.done);
            self.soonest = done.min().unwrap_or(u64::MAX);
        }
    }

    /// A job is put on; does it miss for certain, also if nobody preempts it?
    fn start(&mut self, rank: Rank, horizon: u64, now: u64) -> bool {
        let job = &mut self.jobs[rank.2 as usize];
        let reload = if job.started { self.delay } else { 0 };
        job.started = true;
        let from = now.saturating_add(reload);
        let done = from.saturating_add(job.left);
        if done > rank.0 && rank.0 <= horizon {
            return true;
        }
        self.soonest = self.soonest.min(done);
        let place = self.running.partition_point(|running| running.rank < rank);
        self.running.insert(place, Running { rank, done, from });
        false
    }
}
