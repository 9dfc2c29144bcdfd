//! A set as columns of floating-point numbers, for the inner loops of the tests.
//!
//! The columns are padded to whole lanes with tasks that never execute. Within
//! [`Columns::are_exact`] all that the tests compute from them (products of a job count with a WCET
//! or a period, sums over tasks) is integral and below 2^53 (in single precision 2^24), so it is
//! exact; elsewhere the tests bound the error and decide the close cases in integers. Narrow
//! numbers are the fast ones: twice as many fit into a register.

use crate::verdict::NotApplicable;
use model::Timing;
use std::cell::RefCell;
use std::ops::{Add, AddAssign, Mul, Sub};
use std::thread::LocalKey;

/// How many tasks the inner loops take at once.
pub(crate) const LANES: usize = 4;
/// As [`LANES`] where numbers may be narrow. The columns are padded to a multiple of it.
pub(crate) const WIDE_LANES: usize = 2 * LANES;

/// A floating-point number that columns may be made of.
pub(crate) trait Float:
    Copy
    + Default
    + PartialOrd
    + Add<Output = Self>
    + AddAssign
    + Sub<Output = Self>
    + Mul<Output = Self>
    + Into<f64>
    + 'static
{
    /// Adding it leaves no place after the binary point: 1.5 · 2^52 in double precision.
    const SHIFT: Self;
    /// 1/2.
    const HALF: Self;
    /// 1.
    const ONE: Self;
    /// A whole number, rounded if it is too large.
    fn of(whole: u64) -> Self;
    /// 1 / `whole`, rounded.
    fn inverse(whole: u64) -> Self;
    /// Of a whole number that is not negative.
    fn whole(self) -> u64;
    #[doc(hidden)]
    fn scratch() -> &'static LocalKey<RefCell<Columns<Self>>>;
}

macro_rules! float {
    ($float:ident, $shift:literal, $scratch:ident) => {
        thread_local! {
            static $scratch: RefCell<Columns<$float>> = RefCell::default();
        }
        impl Float for $float {
            const SHIFT: Self = $shift;
            const HALF: Self = 0.5;
            const ONE: Self = 1.0;
            #[inline(always)]
            fn of(whole: u64) -> Self {
                whole as $float
            }
            #[inline(always)]
            fn inverse(whole: u64) -> Self {
                1.0 / whole as $float
            }
            #[inline(always)]
            fn whole(self) -> u64 {
                self as u64
            }
            fn scratch() -> &'static LocalKey<RefCell<Columns<Self>>> {
                &$scratch
            }
        }
    };
}
float!(f32, 12_582_912.0, SINGLE);
float!(f64, 6_755_399_441_055_744.0, DOUBLE);

/// The columns of a set, in whole time units (see [`unit`]).
#[derive(Default)]
pub(crate) struct Columns<F = f64> {
    /// Number of tasks, without the padding.
    pub n: usize,
    /// e; 0 in the padding.
    pub wcet: Vec<F>,
    /// p; 1 in the padding.
    pub period: Vec<F>,
    /// D; 1 in the padding.
    pub deadline: Vec<F>,
    /// 1 / p, rounded.
    pub inverse_period: Vec<F>,
    /// A column of the test's own.
    pub extra: Vec<F>,
    /// Is every count, product and sum of the tests exact?
    pub are_exact: bool,
}

impl<F: Float> Columns<F> {
    /// Runs `work` on the columns of `tasks`, whose times are divided by `unit` nanoseconds.
    pub fn with<T>(tasks: &[Timing], unit: u64, work: impl FnOnce(&mut Columns<F>) -> T) -> T {
        F::scratch().with(|scratch| match scratch.try_borrow_mut() {
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
            column.reserve(tasks.len() + WIDE_LANES);
        }
        let unit = unit.max(1);
        let mut all = 0_u64;
        for t in tasks {
            let (mut wcet, mut period, mut deadline) =
                (t.wcet.nanos(), t.period.nanos(), t.deadline.nanos());
            if unit == MICROSECOND {
                // A constant divisor is a multiplication.
                (wcet, period, deadline) = (
                    wcet / MICROSECOND,
                    period / MICROSECOND,
                    deadline / MICROSECOND,
                );
            } else if unit > 1 {
                (wcet, period, deadline) = (wcet / unit, period / unit, deadline / unit);
            }
            all |= period | deadline;
            self.wcet.push(F::of(wcet));
            self.period.push(F::of(period));
            self.deadline.push(F::of(deadline));
            self.inverse_period.push(F::inverse(period));
        }
        for _ in 0..tasks.len().wrapping_neg() % WIDE_LANES {
            self.wcet.push(F::default());
            self.period.push(F::ONE);
            self.deadline.push(F::ONE);
            self.inverse_period.push(F::ONE);
        }
        self.are_exact = Width::of_times(all, tasks.len()) <= Width::of_float::<F>();
    }
}

/// Which numbers the times of a set need for the tests to be exact.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Width {
    /// `f32`: times below 2^20, and each of the lanes sums to less than 2^23, so that halves are
    /// exact. A window is at most two times long, and a job count errs by less than 2^-22 of it in
    /// floating point, so that only a count that is whole may come out one less.
    Single,
    /// `f64`: times and a sum of as many below 2^50.
    Double,
    /// Integers.
    Wide,
}

impl Width {
    /// For tasks with D ≤ p, in units of `unit` nanoseconds.
    pub fn of(tasks: &[Timing], unit: u64) -> Self {
        let longest = tasks.iter().map(|t| t.period.nanos()).max().unwrap_or(0);
        Width::of_times(longest / unit.max(1), tasks.len())
    }

    /// By the highest bit, which stands for the longest time within a factor of two.
    fn of_times(times: u64, count: usize) -> Self {
        let bits = |n: u64| u64::BITS - n.leading_zeros();
        let (times, count) = (bits(times), count as u64);
        if times <= 20 && times + bits(count.div_ceil(WIDE_LANES as u64)) <= 23 {
            Width::Single
        } else if times + bits(count) <= 50 {
            Width::Double
        } else {
            Width::Wide
        }
    }

    fn of_float<F: Float>() -> Self {
        if size_of::<F>() == size_of::<f32>() {
            Width::Single
        } else {
            Width::Double
        }
    }
}

const MICROSECOND: u64 = 1_000;

/// The time unit of a set, in nanoseconds: a microsecond if all its times are whole microseconds,
/// else a nanosecond.
///
/// Tests that round bounds to whole units are safe in either; what they accept differs by less than
/// a unit. Counting in microseconds keeps numbers narrow.
pub(crate) fn unit(tasks: &[Timing]) -> u64 {
    let whole = |t: &Timing| {
        [t.wcet, t.period, t.deadline]
            .iter()
            .all(|d| d.nanos().is_multiple_of(MICROSECOND))
    };
    if tasks.iter().all(whole) {
        MICROSECOND
    } else {
        1
    }
}

/// The larger, without the care for NaN that costs `f64::max` its speed.
#[inline(always)]
pub(crate) fn max<F: PartialOrd>(a: F, b: F) -> F {
    if a > b { a } else { b }
}

/// The smaller, as [`max`].
#[inline(always)]
pub(crate) fn min<F: PartialOrd>(a: F, b: F) -> F {
    if a < b { a } else { b }
}

/// The nearest whole number of a value of at most 2^51 in size (2^22 in single precision); ties to
/// even. Beyond, a number within one part in 2^51.
///
/// `round(x - 0.5)` is the floor of `x`, but one less where `x` is whole and odd: for functions of
/// a job count that are continuous where the count steps.
#[inline(always)]
pub(crate) fn round<F: Float>(x: F) -> F {
    (x + F::SHIFT) - F::SHIFT
}

/// The sum of a padded column of whole numbers, each lane of which is exact; so is the whole in
/// double precision.
#[inline]
pub(crate) fn sum<F: Float>(column: &[F]) -> f64 {
    // Two halves, each added lane by lane: so it becomes vector instructions.
    let (mut low, mut high) = ([F::default(); LANES], [F::default(); LANES]);
    for lanes in column.as_chunks::<WIDE_LANES>().0 {
        for lane in 0..LANES {
            low[lane] += lanes[lane];
        }
        for lane in 0..LANES {
            high[lane] += lanes[LANES + lane];
        }
    }
    let mut total = 0.0;
    for lane in 0..LANES {
        total += low[lane].into() + high[lane].into();
    }
    total
}

/// What a test may spend on comparing each task with each, so that a hostile set cannot keep it for
/// hours.
pub(crate) struct Budget(u64);

impl Budget {
    /// For `tasks` tasks: 2^24 comparisons, which take some hundredths of a second, and four for
    /// each pair of tasks, but at most 2^28.
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
pub(crate) mod tests {
    use super::*;
    use model::Duration;

    /// A set of up to 36 tasks with times of up to 2^20 − 1 ns, some of them powers of two and
    /// equal, neither light nor hopeless, and a number of processors.
    pub(crate) fn random_set(seed: u64) -> (Vec<Timing>, u32) {
        let mut state = seed;
        let mut below = |n: u64| {
            // SplitMix64
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut z = state;
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z ^ (z >> 31)) % n
        };
        let m = 2 + below(7) as u32;
        let n = 3 + below(4 * u64::from(m) + 2);
        let largest = 1 + below(90);
        let shortest = [100, 30_000, 900_000][below(3) as usize];
        let mut tasks: Vec<Timing> = Vec::new();
        for _ in 0..n {
            let period = match below(4) {
                0 => (1 << 20) - 1 - below(3),
                1 => 1 << (10 + below(10)),
                _ => shortest + below((1 << 20) - shortest),
            };
            let deadline = if below(3) == 0 {
                period - below(period / 2)
            } else {
                period
            };
            let wcet = (deadline * (1 + below(largest)) / 100).max(1);
            let [wcet, period, deadline] = [wcet, period, deadline].map(Duration::from_nanos);
            let new = Timing {
                wcet,
                period,
                deadline,
            };
            tasks.push(if below(8) == 0 {
                *tasks.last().unwrap_or(&new)
            } else {
                new
            });
        }
        (tasks, m)
    }

    #[test]
    fn rounding_is_the_floor_but_for_whole_numbers() {
        for (x, floor) in [(0.25, 0.0), (2.999, 2.0), (-0.5, -1.0), (7.5, 7.0)] {
            assert_eq!(round(x - 0.5), floor, "{x}");
        }
        assert_eq!((round(4.0 - 0.5), round(5.0 - 0.5)), (4.0, 4.0));
    }
}
