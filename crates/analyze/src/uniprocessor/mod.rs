//! One processor: exact tests for EDF and for fixed priorities, and the classical utilization
//! bounds.
//!
//! Exact tests for deadlines other than the period are pseudo-polynomial: their work is counted,
//! and a set on which it exceeds [`WORK_LIMIT`] is answered with [`LIMIT`], never a guess and never
//! an endless loop.

pub mod delayed;
mod demand;
pub mod edf;
pub mod edf_response;
pub mod fixed_priority;
mod longest;

use crate::verdict::NotApplicable;
pub use longest::longest_last;

/// Why an exact test gives no answer: its work is bounded.
pub const LIMIT: NotApplicable = NotApplicable::Limit(
    "the deciding interval holds more jobs than 200 million evaluations cover",
);

/// The most evaluations of one task's demand or interference that one decision may take: some
/// seconds.
pub const WORK_LIMIT: u64 = 200_000_000;

/// Counts evaluations of one task's demand or interference, so that no decision takes longer than
/// its limit.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    left: u64,
}

impl Work {
    /// As much as [`WORK_LIMIT`].
    pub const fn new() -> Self {
        Work::of(WORK_LIMIT)
    }
    /// As much as this.
    pub const fn of(limit: u64) -> Self {
        Work { left: limit }
    }
    /// What is left.
    pub const fn left(&self) -> u64 {
        self.left
    }
    /// Lets `work` use at most `limit` of what is left here.
    pub fn lend<T>(&mut self, limit: u64, work: impl FnOnce(&mut Work) -> T) -> T {
        let mut part = Work::of(limit.min(self.left));
        let before = part.left;
        let result = work(&mut part);
        self.left -= before - part.left;
        result
    }
    /// Spends `amount`; false, and nothing is left, if that is more than there is.
    pub fn spend(&mut self, amount: u64) -> bool {
        match self.left.checked_sub(amount) {
            Some(left) => {
                self.left = left;
                true
            }
            None => {
                self.left = 0;
                false
            }
        }
    }
}

impl Default for Work {
    fn default() -> Self {
        Self::new()
    }
}

/// `a / b` in 128 bits, by the short division where both fit in 64: four times as fast.
#[inline]
pub(crate) fn div(a: u128, b: u64) -> u128 {
    match u64::try_from(a) {
        Ok(a) => u128::from(a / b),
        Err(_) => a / u128::from(b),
    }
}
