//! One processor: exact tests for EDF and for fixed priorities, and the classical utilization bounds.
//!
//! Exact tests for deadlines other than the period are pseudo-polynomial: their work is counted, and a set on which it
//! exceeds [`WORK_LIMIT`] is answered with [`LIMIT`], never a guess and never an endless loop.

pub mod edf;
pub mod fixed_priority;

use crate::verdict::NotApplicable;

/// Why an exact test gives no answer: its work is bounded.
pub const LIMIT: NotApplicable =
    NotApplicable::Limit("the deciding interval holds more jobs than 200 million evaluations cover");

/// The most evaluations of one task's demand or interference that one decision may take: some seconds.
pub const WORK_LIMIT: u64 = 200_000_000;

/// Counts work against [`WORK_LIMIT`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct Work {
    left: u64,
}

impl Work {
    pub(crate) const fn new() -> Self {
        Work { left: WORK_LIMIT }
    }
    /// Spends `amount`; false once nothing is left.
    pub(crate) fn spend(&mut self, amount: u64) -> bool {
        match self.left.checked_sub(amount) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
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
