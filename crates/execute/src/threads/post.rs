//! The words through which the dispatcher of a post is called, and what it tells of itself.

use crate::kernel::{self, Thread};
use crate::programs::watched::Watched;
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU32, AtomicU64, Ordering};

/// What is shared with the dispatcher of a post. On lines of its own: processors of different
/// domains share none.
#[derive(Debug, Default)]
#[repr(align(64))]
pub(crate) struct PostWords {
    /// Counts calls.
    calls: AtomicU32,
    /// Is its dispatcher there, on its processor and above all jobs?
    pub taken: AtomicBool,
    /// The thread that is its dispatcher, as the kernel numbers it; 0 until it has come.
    dispatcher: AtomicI32,
    /// Is its sentinel there, on its processor? Only where programs are run.
    pub guarded: AtomicBool,
    /// Does a program of this domain have a thread that may have missed a change? Of leaders only.
    untidy: AtomicBool,
    /// The program that was chosen for its processor.
    pub watched: Watched,
    /// By how much it woke up too late at most, in nanoseconds.
    latest: AtomicU64,
    /// How often by more than [`PostWords::GAP`].
    gaps: AtomicU64,
}

impl PostWords {
    /// Whoever was here has gone; another stage comes.
    pub fn clear(&self) {
        self.watched.clear();
        self.untidy.store(false, Ordering::Relaxed);
        self.guarded.store(false, Ordering::Relaxed);
        self.taken.store(false, Ordering::Release);
    }

    /// Something other than this program had the processor for so long, in nanoseconds.
    pub const GAP: u64 = 5_000_000;

    /// By how much its dispatcher woke up too late at most, in nanoseconds; how often by more than
    /// [`PostWords::GAP`].
    pub fn lateness(&self) -> (u64, u64) {
        (
            self.latest.load(Ordering::Relaxed),
            self.gaps.load(Ordering::Relaxed),
        )
    }

    /// Its dispatcher is there: this thread, on its processor and above all jobs.
    pub fn take(&self, dispatcher: Thread) {
        self.dispatcher.store(dispatcher.0, Ordering::Relaxed);
        self.taken.store(true, Ordering::Release);
    }

    /// The thread that is its dispatcher or was the last one, as the kernel numbers it.
    pub fn dispatcher(&self) -> i32 {
        self.dispatcher.load(Ordering::Relaxed)
    }

    /// How often its dispatcher was called so far.
    pub fn calls(&self) -> u32 {
        self.calls.load(Ordering::Acquire)
    }

    /// Calls it.
    pub fn call(&self) {
        self.calls.fetch_add(1, Ordering::Release);
        kernel::futex_wake(&self.calls);
    }

    /// Lets it look at the domain, if it is awake.
    pub fn nudge(&self) {
        self.calls.fetch_add(1, Ordering::Release);
    }

    /// Sleeps until a call after the `seen` ones, or a reading of the clock.
    pub fn sleep(&self, seen: u32, until: u64) {
        kernel::futex_wait(&self.calls, seen, Some(until));
        let late = kernel::monotonic().saturating_sub(until);
        if late > self.latest.load(Ordering::Relaxed) {
            self.latest.store(late, Ordering::Relaxed);
        }
        if late > Self::GAP {
            self.gaps.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// A program of its domain has to be looked after. The caller calls the dispatcher then.
    pub fn set_untidy(&self) {
        self.untidy.store(true, Ordering::Release);
    }

    /// Was [`PostWords::set_untidy`] called since this was last asked? Called under the domain's
    /// lock.
    pub fn take_untidy(&self) -> bool {
        self.untidy.load(Ordering::Relaxed) && self.untidy.swap(false, Ordering::AcqRel)
    }
}
