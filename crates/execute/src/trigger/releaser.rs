//! What is known of the trigger of a task: releases that are asked for, and when they may be (002
//! §2.1.1).
//!
//! Whoever listens and the dispatcher whose duty the next release is share these words; nobody
//! waits for a lock.

use crate::ids::InboxId;
use model::{Duration, Instant, TaskId};
use policy::NONE;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};

/// So many jobs of a task may be released and not begun.
const BEHIND: u64 = 4096;

/// What listener and dispatchers know of the trigger of a task. Times in nanoseconds of the run.
#[derive(Debug)]
pub(crate) struct Releaser {
    /// Releases that are asked for and have not been.
    pending: AtomicU64,
    /// When the first of them was asked for.
    at: AtomicU64,
    /// The domain whose duty the next release is, or [`NONE`] while that goes from one to another.
    domain: AtomicU32,
    /// Asked for altogether.
    events: AtomicU64,
    /// Those that came too early.
    deferred: AtomicU64,
    ended: AtomicBool,
    /// The latest release, if there was one.
    last: AtomicU64,
    /// The number of the job that was begun last.
    begun: AtomicU64,
    /// By number, modulo its length.
    releases: Box<[AtomicU64]>,
}

/// What came of the trigger of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Triggered {
    /// Whose.
    pub task: TaskId,
    /// How many releases were asked for.
    pub events: u64,
    /// How many of them came too early, and waited until a period had passed.
    pub deferred: u64,
    /// How many still waited at the end.
    pub left: u64,
    /// Was its end reached: has everybody closed it?
    pub ended: bool,
}

const NEVER: u64 = u64::MAX;

impl Default for Releaser {
    fn default() -> Self {
        Releaser {
            pending: AtomicU64::new(0),
            at: AtomicU64::new(0),
            domain: AtomicU32::new(NONE),
            events: AtomicU64::new(0),
            deferred: AtomicU64::new(0),
            ended: AtomicBool::new(false),
            last: AtomicU64::new(NEVER),
            begun: AtomicU64::new(0),
            releases: (0..BEHIND).map(|_| AtomicU64::new(0)).collect(),
        }
    }
}

impl Releaser {
    /// The listener: so many releases are asked for now.
    pub fn ask(&self, count: u64, now: Instant) {
        self.events.fetch_add(count, Ordering::Relaxed);
        if self.pending.load(Ordering::Acquire) == 0 {
            self.at.store(now.nanos(), Ordering::Release);
        }
        // Whose duty the release is may be changing: either that sees what is asked for, or this
        // sees whom to tell.
        self.pending.fetch_add(count, Ordering::SeqCst);
    }

    /// The domain whose duty the next release is.
    pub fn domain(&self) -> Option<InboxId> {
        let domain = self.domain.load(Ordering::SeqCst);
        (domain != NONE).then_some(InboxId(domain))
    }

    /// The next release is the duty of this domain from now on, which looks then whether it is
    /// asked for.
    pub fn expect(&self, domain: InboxId) {
        self.domain.store(domain.0, Ordering::SeqCst);
    }

    /// The next release is nobody's duty until somebody expects it.
    pub fn leave(&self) {
        self.domain.store(NONE, Ordering::SeqCst);
    }

    /// The listener: nothing will come any more.
    pub fn end(&self) {
        self.ended.store(true, Ordering::Relaxed);
    }

    /// Not before this the next job may be released, in the sporadic model.
    fn soonest(&self, phase: Duration, period: Duration) -> u64 {
        match self.last.load(Ordering::Relaxed) {
            NEVER => phase.nanos(),
            last => last.saturating_add(period.nanos()),
        }
    }

    /// When the next job is to be released, if that is asked for. By whose duty it is.
    pub fn next(&self, phase: Duration, period: Duration) -> Option<Instant> {
        match self.pending.load(Ordering::SeqCst) {
            0 => None,
            _ => {
                let at = self.at.load(Ordering::Acquire);
                Some(Instant::from_nanos(at.max(self.soonest(phase, period))))
            }
        }
    }

    /// The job of this number is released. By whose duty it is, where [`Releaser::next`] said so.
    pub fn release(&self, number: u64, at: Instant, phase: Duration, period: Duration) {
        if self.soonest(phase, period) > self.at.load(Ordering::Acquire) {
            self.deferred.fetch_add(1, Ordering::Relaxed);
        }
        self.releases[(number % BEHIND) as usize].store(at.nanos(), Ordering::Release);
        self.last.store(at.nanos(), Ordering::Relaxed);
        self.pending.fetch_sub(1, Ordering::SeqCst);
    }

    /// When a job was released that was, and is not far behind.
    pub fn release_of(&self, number: u64) -> Instant {
        Instant::from_nanos(self.releases[(number % BEHIND) as usize].load(Ordering::Acquire))
    }

    /// This job is begun.
    pub fn begin(&self, number: u64) {
        self.begun.store(number, Ordering::Relaxed);
    }

    /// May the job of this number be released: are not too many released and not begun?
    pub fn has_room(&self, number: u64) -> bool {
        number - self.begun.load(Ordering::Relaxed).min(number) < BEHIND - 1
    }

    /// What came of it.
    pub fn triggered(&self, task: TaskId) -> Triggered {
        Triggered {
            task,
            events: self.events.load(Ordering::Relaxed),
            deferred: self.deferred.load(Ordering::Relaxed),
            left: self.pending.load(Ordering::Relaxed),
            ended: self.ended.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }
    fn at(ms: u64) -> Instant {
        Instant::from_nanos(ms * 1_000_000)
    }

    #[test]
    fn releases_are_a_period_apart_and_what_comes_earlier_waits() {
        let r = Releaser::default();
        let next = || r.next(ms(2), ms(10));
        assert_eq!(next(), None);
        // Before the phase: it waits for that.
        r.ask(1, at(0));
        assert_eq!(next(), Some(at(2)));
        r.release(0, at(2), ms(2), ms(10));
        assert_eq!(next(), None);
        // Three at once, 5 ms after the first: one has to wait for 5 ms, the others for a period
        // more each.
        r.ask(3, at(7));
        for (number, release) in [(1, at(12)), (2, at(22)), (3, at(32))] {
            assert_eq!(next(), Some(release));
            r.release(number, release, ms(2), ms(10));
        }
        // Long after: at once.
        r.ask(1, at(70));
        assert_eq!(next(), Some(at(70)));
        r.release(4, at(70), ms(2), ms(10));
        r.ask(2, at(71));
        let all: Vec<Instant> = (0..5).map(|n| r.release_of(n)).collect();
        assert_eq!(all, [at(2), at(12), at(22), at(32), at(70)]);
        assert_eq!(
            r.triggered(TaskId(3)),
            Triggered {
                task: TaskId(3),
                events: 7,
                deferred: 4,
                left: 2,
                ended: false
            }
        );
    }

    #[test]
    fn a_task_that_is_too_far_behind_is_known() {
        let r = Releaser::default();
        assert!(r.has_room(0) && r.has_room(BEHIND - 2));
        assert!(!r.has_room(BEHIND - 1));
        r.begin(1);
        assert!(r.has_room(BEHIND - 1));
    }
}
