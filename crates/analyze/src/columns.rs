//! A set as columns of floating-point numbers, for the inner loops of the tests.
//!
//! The columns are padded to whole lanes with tasks that never execute. Within [`Columns::are_exact`] all that the tests
//! compute from them (products of a job count with a WCET or a period, sums over tasks) is integral and below 2^53, so
//! it is exact; elsewhere the tests bound the error and decide the close cases in integers.

use crate::verdict::NotApplicable;
use model::Timing;
use std::cell::RefCell;

/// How many tasks the inner loops take at once.
pub(crate) const LANES: usize = 4;

/// The columns of a set, in whole time units (see [`unit`]).
#[derive(Default)]
pub(crate) struct Columns {
    /// Number of tasks, without the padding.
    pub n: usize,
    /// e; 0 in the padding.
    pub wcet: Vec<f64>,
    /// p; 1 in the padding.
    pub period: Vec<f64>,
    /// D; 1 in the padding.
    pub deadline: Vec<f64>,
    /// 1 / p, rounded.
    pub inverse_period: Vec<f64>,
    /// A column of the test's own.
    pub extra: Vec<f64>,
    /// Is every count, product and sum of the tests below 2^53?
    pub are_exact: bool,
}

thread_local! {
    static SCRATCH: RefCell<Columns> = RefCell::default();
}

impl Columns {
    /// Runs `work` on the columns of `tasks`, whose times are divided by `unit` nanoseconds.
    pub fn with<T>(tasks: &[Timing], unit: u64, work: impl FnOnce(&mut Columns) -> T) -> T {
        SCRATCH.with(|scratch| match scratch.try_borrow_mut() {
            Ok(mut columns) => {
                columns.fill(tasks, unit);
                work(&mut columns)
            }
            Err(_) => {
                let mut columns = Columns::default();
                columns.fill(tasks, unit);
                work(&mut columns)
            }
        })
    }

    fn fill(&mut self, tasks: &[Timing], unit: u64) {
        self.n = tasks.len();
        for column in [
            &mut self.wcet,
            &mut self.period,
            &mut self.deadline,
            &mut self.inverse_period,
            &mut self.extra,
        ] {
            column.clear();
            column.reserve(tasks.len() + LANES);
        }
        let unit = unit.max(1);
        let mut all = 0_u64;
        for t in tasks {
            let (mut wcet, mut period, mut deadline) = (t.wcet.nanos(), t.period.nanos(), t.deadline.nanos());
            if unit == MICROSECOND {
                // A constant divisor is a multiplication.
                (wcet, period, deadline) = (wcet / MICROSECOND, period / MICROSECOND, deadline / MICROSECOND);
            }
            all |= period | deadline;
            self.wcet.push(wcet as f64);
            self.period.push(period as f64);
            self.deadline.push(deadline as f64);
            self.inverse_period.push(1.0 / period as f64);
        }
        for _ in 0..tasks.len().wrapping_neg() % LANES {
            self.wcet.push(0.0);
            self.period.push(1.0);
            self.deadline.push(1.0);
            self.inverse_period.push(1.0);
        }
        // The highest bit stands for the longest time, within a factor of two.
        let bits = u64::BITS - all.leading_zeros() + usize::BITS - tasks.len().leading_zeros();
        self.are_exact = bits <= 50;
    }
}

const MICROSECOND: u64 = 1_000;

/// The time unit of a set, in nanoseconds: a microsecond if all its times are whole microseconds, else a nanosecond.
///
/// Tests that reason in integer time ("an interference of at least S + 1 units") prove their bound for schedules whose
/// events fall on whole units. A coarser unit accepts more.
pub(crate) fn unit(tasks: &[Timing]) -> u64 {
    let whole = |t: &Timing| {
        [t.wcet, t.period, t.deadline]
            .iter()
            .all(|d| d.nanos().is_multiple_of(MICROSECOND))
    };
    if tasks.iter().all(whole) { MICROSECOND } else { 1 }
}

/// The larger, without the care for NaN that costs `f64::max` its speed.
#[inline(always)]
pub(crate) fn max(a: f64, b: f64) -> f64 {
    if a > b { a } else { b }
}

/// The smaller, as [`max`].
#[inline(always)]
pub(crate) fn min(a: f64, b: f64) -> f64 {
    if a < b { a } else { b }
}

/// The nearest whole number of a value of at most 2^51 in size; ties to even. Beyond, a number within one part in 2^51.
///
/// `round(x - 0.5)` is the floor of `x`, but one less where `x` is whole and odd: for functions of a job count that are
/// continuous where the count steps.
#[inline(always)]
pub(crate) fn round(x: f64) -> f64 {
    const SHIFT: f64 = 6_755_399_441_055_744.0; // 1.5 · 2^52
    (x + SHIFT) - SHIFT
}

/// What a test may spend on comparing each task with each, so that a hostile set cannot keep it for hours.
pub(crate) struct Budget(u64);

impl Budget {
    /// For `tasks` tasks: 2^24 comparisons, which take some hundredths of a second, and four for each pair of tasks, but at
    /// most 2^28.
    pub fn new(tasks: usize) -> Self {
        let pairs = (tasks as u64).saturating_mul(tasks as u64);
        Budget(pairs.saturating_mul(4).saturating_add(1 << 24).min(1 << 28))
    }
    /// Spends some, or says that the limit is reached.
    pub fn spend(&mut self, pairs: u64) -> Result<(), NotApplicable> {
        self.0 = self.0.checked_sub(pairs).ok_or(NotApplicable::Limit(
            "2^24 comparisons of two tasks, or four for each pair but at most 2^28",
        ))?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_the_floor_but_for_whole_numbers() {
        for (x, floor) in [(0.25, 0.0), (2.999, 2.0), (-0.5, -1.0), (7.5, 7.0)] {
            assert_eq!(round(x - 0.5), floor, "{x}");
        }
        assert_eq!((round(4.0 - 0.5), round(5.0 - 0.5)), (4.0, 4.0));
    }
}
