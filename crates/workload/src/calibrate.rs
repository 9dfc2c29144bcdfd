//! How long a unit of work takes here and now: the median of repeated timings, with a confidence
//! interval.
//!
//! Processor time of the thread is what is measured, so that other programs that take the processor
//! away do not count. The interval is that of the median by order statistics: of n timings, the
//! ones at ranks n/2 ± z·√n/2 hold it with the chance that belongs to z, whatever the distribution.

use crate::Units;
use machine::clock::thread_time;
use model::Duration;
use std::sync::atomic::AtomicBool;

/// How many timings are taken.
const SAMPLES: usize = 25;
/// How long one of them lasts at least.
const SAMPLE: Duration = Duration::from_millis(1);
/// 97.5 % of a normal distribution lie below so many deviations: a two-sided interval of 95 %.
const Z: f64 = 1.96;

/// How long a unit of work takes, in picoseconds.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Calibration {
    /// The median.
    pub median_ps: u64,
    /// The lower end of the 95 % confidence interval of the median.
    pub low_ps: u64,
    /// Its upper end.
    pub high_ps: u64,
}

impl Calibration {
    /// How many units last no longer than this in the median; at least one.
    pub fn units_within(&self, length: Duration) -> u64 {
        let ps = u128::from(length.nanos()) * 1000;
        let units = ps / u128::from(self.median_ps.max(1));
        u64::try_from(units).unwrap_or(u64::MAX).max(1)
    }

    /// How far the ends of the interval are from the median at most, as a part of it.
    pub fn uncertainty(&self) -> f64 {
        let off = (self.high_ps - self.median_ps).max(self.median_ps - self.low_ps);
        off as f64 / self.median_ps.max(1) as f64
    }

    /// From timings of `units` units each.
    fn of(mut timings: Vec<Duration>, units: u64) -> Self {
        timings.sort_unstable();
        let n = timings.len();
        let reach = Z * (n as f64).sqrt() / 2.0;
        let middle = (n as f64 - 1.0) / 2.0;
        let at = |rank: f64| {
            let rank = (rank.max(0.0) as usize).min(n.saturating_sub(1));
            let ns = timings.get(rank).map_or(0, |d| d.nanos());
            u64::try_from(u128::from(ns) * 1000 / u128::from(units.max(1))).unwrap_or(u64::MAX)
        };
        Calibration {
            median_ps: at(middle.floor()),
            low_ps: at((middle - reach).floor()),
            high_ps: at((middle + reach).ceil()),
        }
    }
}

/// Calibrates work: finds how many units last for about a millisecond, then times so many again and
/// again.
pub fn calibrate(work: &mut impl Units) -> Calibration {
    let stop = AtomicBool::new(false);
    let mut time = |units: u64| {
        let before = thread_time();
        work.units(units, &stop);
        thread_time().saturating_sub(before)
    };
    // A unit may be as long as a large transform.
    let mut units = 1;
    while time(units) < SAMPLE && units < 1 << 40 {
        units *= 2;
    }
    let timings = (0..SAMPLES).map(|_| time(units)).collect();
    Calibration::of(timings, units)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_interval_holds_the_middle_of_the_timings() {
        let timings = (1..=25).map(Duration::from_micros).collect();
        let c = Calibration::of(timings, 1000);
        // Ranks 12 ± 4.9 of 0..=24.
        assert_eq!((c.low_ps, c.median_ps, c.high_ps), (8_000, 13_000, 18_000));
        assert_eq!(c.units_within(Duration::from_nanos(130)), 10);
        assert_eq!(c.units_within(Duration::ZERO), 1, "a job does something");
    }

    proptest! {
        #[test]
        fn the_median_lies_within_its_interval(
            timings in prop::collection::vec(1u64..1 << 30, 1..60), units in 1u64..1 << 20,
        ) {
            let c = Calibration::of(timings.into_iter().map(Duration::from_nanos).collect(), units);
            prop_assert!(c.low_ps <= c.median_ps && c.median_ps <= c.high_ps);
            prop_assert!(c.uncertainty() >= 0.0);
        }
    }
}
