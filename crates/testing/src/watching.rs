//! Watches that stop long work where a test wants it, or keep what the work notes.

use model::watch::Watch;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Stops work once it has asked so many times whether to stop; with 0, at once.
pub struct StopAfterLooks(AtomicU64);

impl StopAfterLooks {
    /// Says yes to the question after so many noes.
    pub const fn new(looks: u64) -> Self {
        StopAfterLooks(AtomicU64::new(looks))
    }
}

impl Watch for StopAfterLooks {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        let less = |looks: u64| looks.checked_sub(1);
        let left = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        left.is_err()
    }
}

/// Stops work once so many steps of it are done.
pub struct StopAfterSteps(AtomicU64);

impl StopAfterSteps {
    /// Stops after so many steps, over all stages of the work.
    pub const fn new(steps: u64) -> Self {
        StopAfterSteps(AtomicU64::new(steps))
    }
}

impl Watch for StopAfterSteps {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, steps: u64) {
        let less = |left: u64| Some(left.saturating_sub(steps));
        let _ = self
            .0
            .fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
    }
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed) == 0
    }
}

/// Stops work when the test says so. Notes go to standard error.
#[derive(Default)]
pub struct Switch(AtomicBool);

impl Switch {
    /// From now on the work is to stop.
    pub fn stop(&self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl Watch for Switch {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, text: &str) {
        eprintln!("{text}");
    }
    fn stopped(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

/// Keeps the notes of work and never stops it.
#[derive(Default)]
pub struct Notes(Mutex<Vec<String>>);

impl Notes {
    /// What was noted, in this order.
    ///
    /// # Panics
    /// If the work panicked while it noted something.
    pub fn into_inner(self) -> Vec<String> {
        self.0.into_inner().expect("no note was cut off")
    }
}

impl Watch for Notes {
    fn begin(&self, _: &str, _: u64) {}
    fn advance(&self, _: u64) {}
    fn note(&self, text: &str) {
        self.0
            .lock()
            .expect("no note was cut off")
            .push(text.to_owned());
    }
    fn stopped(&self) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_stopped_after_so_many_looks_or_steps() {
        let looks = StopAfterLooks::new(2);
        let said: Vec<bool> = (0..4).map(|_| looks.stopped()).collect();
        assert_eq!(said, [false, false, true, true]);
        let steps = StopAfterSteps::new(3);
        let said: Vec<bool> = (0..3)
            .map(|_| {
                steps.advance(2);
                steps.stopped()
            })
            .collect();
        assert_eq!(said, [false, true, true]);
        assert!(StopAfterLooks::new(0).stopped() && StopAfterSteps::new(0).stopped());
    }
}
