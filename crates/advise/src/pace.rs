//! How long a search may go on: until the user stops it, or the time that it was given is over.

use model::watch::Watch;
use serde::Serialize;
use std::sync::atomic::{AtomicU8, Ordering};

/// How a search ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// All that was to be tried was tried.
    #[default]
    Complete,
    /// The time that it was given was over.
    Budget,
    /// The user stopped it.
    Stopped,
}

/// The watch over a search, and its time.
pub struct Pace<'a> {
    watch: &'a dyn Watch,
    over: &'a (dyn Fn() -> bool + Sync),
    ended: AtomicU8,
}

impl<'a> Pace<'a> {
    /// `over` says whether the time that the search was given is over. It may be asked often, and
    /// from any thread.
    pub fn new(watch: &'a dyn Watch, over: &'a (dyn Fn() -> bool + Sync)) -> Self {
        Pace {
            watch,
            over,
            ended: AtomicU8::new(0),
        }
    }

    /// May the search go on? Once it may not, it never may again.
    pub fn goes_on(&self) -> bool {
        if self.ended.load(Ordering::Relaxed) != 0 {
            return false;
        }
        let why = match (self.watch.stopped(), (self.over)()) {
            (true, _) => 2,
            (false, true) => 1,
            (false, false) => return true,
        };
        self.ended.store(why, Ordering::Relaxed);
        false
    }

    /// How it ended, as far as it was asked.
    pub fn ended(&self) -> Ended {
        match self.ended.load(Ordering::Relaxed) {
            0 => Ended::Complete,
            1 => Ended::Budget,
            _ => Ended::Stopped,
        }
    }

    /// A stage of so many steps begins.
    pub(crate) fn begin(&self, what: &str, steps: u64) {
        self.watch.begin(what, steps);
    }

    /// One step is done.
    pub(crate) fn step(&self) {
        self.watch.advance(1);
    }
}

/// A watch for work within a step: it shows nothing, and ends when the search has to.
pub(crate) struct Within<'p>(pub &'p Pace<'p>);

impl Watch for Within<'_> {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        !self.0.goes_on()
    }
}
