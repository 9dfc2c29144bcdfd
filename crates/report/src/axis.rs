//! Axes whose ticks a person would have chosen: 4 KiB, 64 KiB, 1 MiB; 1 µs, 10 µs, 1 ms.

use crate::words;
use model::{Bytes, Delay};
use plotters::coord::ranged1d::{
    KeyPointHint, KeyPointWeight, NoDefaultFormatting, Ranged, ValueFormatter,
};
use std::ops::Range;

/// How values lie along an axis.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Scale {
    /// Evenly.
    Linear,
    /// By their logarithm; what is not above zero lies at the low end.
    Logarithmic,
}

/// One axis: what it shows, from where to where, with which ticks.
#[derive(Clone, PartialEq, Debug)]
pub struct Axis {
    /// What it shows.
    pub label: String,
    /// How values lie along it.
    pub scale: Scale,
    /// The value at its low end.
    pub low: f64,
    /// The value at its high end.
    pub high: f64,
    /// Where ticks stand, and what they say.
    pub ticks: Vec<(f64, String)>,
}

/// The most ticks along an axis of a panel.
const MOST: usize = 8;

impl Axis {
    /// Working set sizes in bytes, logarithmic, ticks at powers of two.
    pub fn sizes(label: &str, low: Bytes, high: Bytes) -> Axis {
        let low = low.get().max(1);
        let high = high.get().max(low);
        let (first, last) = (low.ilog2(), high.ilog2());
        // Aligned to 4 KiB, so that the same sizes are named in every figure.
        let ticks_every = |step: u32| (first..=last).filter(move |e| (e + 48 - 12) % step == 0);
        let step = (1..=8)
            .find(|step| ticks_every(*step).count() < MOST)
            .unwrap_or(8);
        Axis {
            label: label.to_owned(),
            scale: Scale::Logarithmic,
            low: low as f64 / 1.5,
            high: high as f64 * 1.5,
            ticks: ticks_every(step)
                .map(|e| (2f64.powi(e as i32), words::size(Bytes::new(1 << e))))
                .collect(),
        }
    }

    /// Delays in nanoseconds, logarithmic, a tick a decade (more where there are few). `low` is
    /// rounded down to a decade: that is the floor at which smaller and negative values are shown.
    pub fn delays(label: &str, low: f64, high: f64) -> Axis {
        let low = decade(low.max(1.0));
        // Some room above the data, for the names of marked sizes.
        let high = (high.max(low) * (high.max(low) / low).powf(0.09)).max(low * 10.0);
        let decades = (high / low).log10();
        let parts: &[f64] = if decades < 2.0 {
            &[1.0, 2.0, 5.0]
        } else {
            &[1.0]
        };
        let mut ticks = Vec::new();
        let mut at = low;
        while at <= high {
            ticks.extend(parts.iter().map(|p| p * at).filter(|v| *v <= high));
            at *= 10.0;
        }
        Axis {
            label: label.to_owned(),
            scale: Scale::Logarithmic,
            low,
            high,
            ticks: ticks
                .into_iter()
                .map(|t| (t, words::time_rounded(Delay::from_nanos_f64(t))))
                .collect(),
        }
    }

    /// Evenly spaced values; `name` says what a tick reads. The range is taken as it is.
    pub fn linear(label: &str, range: Range<f64>, name: impl Fn(f64) -> String) -> Axis {
        let (low, high) = (range.start, range.end.max(range.start + f64::MIN_POSITIVE));
        let step = step((high - low) / (MOST - 1) as f64);
        let first = (low / step - 1e-9).ceil() as i64;
        let last = (high / step + 1e-9).floor() as i64;
        Axis {
            label: label.to_owned(),
            scale: Scale::Linear,
            low,
            high,
            ticks: (first..=last.min(first.saturating_add(20)))
                .map(|n| n as f64 * step)
                .map(|at| (at, name(at)))
                .collect(),
        }
    }

    /// Times in nanoseconds, evenly spaced, all ticks in one unit: that of the largest.
    pub fn times(label: &str, range: Range<f64>) -> Axis {
        let mut axis = Axis::linear(label, range, |_| String::new());
        let largest = axis
            .ticks
            .iter()
            .map(|(at, _)| at.abs())
            .fold(0.0, f64::max);
        // A tick is a sum of steps in floating point and may lie a little below its unit.
        let (scale, unit) = words::time_unit(largest * (1.0 + 1e-9));
        for (at, name) in &mut axis.ticks {
            *name = match words::plain(*at / scale).replace('-', "−") {
                zero if zero == "0" => zero,
                number => format!("{number} {unit}"),
            };
        }
        axis
    }

    /// Sizes in bytes from none to `longest`, evenly spaced, ticks at powers of two and multiples of
    /// them.
    pub fn linear_sizes(label: &str, longest: f64) -> Axis {
        let longest = longest.max(1.0);
        let step = (0..63)
            .map(|power| (1u64 << power) as f64)
            .find(|step| longest / step < MOST as f64)
            .unwrap_or(longest);
        let ticks = (0..=(longest / step + 1e-9) as u64).map(|n| n as f64 * step);
        let name = |at: f64| match at {
            0.0 => "0".to_owned(),
            at => words::size(Bytes::new(at as u64)),
        };
        Axis {
            label: label.to_owned(),
            scale: Scale::Linear,
            low: 0.0,
            high: longest,
            ticks: ticks.map(|at| (at, name(at))).collect(),
        }
    }

    /// The same values by their logarithm, from `low`, which is above zero, on; ticks at 1, 2 and 5
    /// times powers of ten, fewer where there are many.
    #[must_use]
    pub fn logarithmic(self, low: f64, name: impl Fn(f64) -> String) -> Axis {
        let high = self.high.max(low * 1.001);
        let all = |parts: &[f64]| -> Vec<f64> {
            let decades = (0..40).map(|n| decade(low) * 10f64.powi(n));
            let ticks = decades.flat_map(|d| parts.iter().map(move |p| p * d));
            let inside = low * (1.0 - 1e-9)..=high * (1.0 + 1e-9);
            ticks.filter(|tick| inside.contains(tick)).collect()
        };
        let ticks = [&[1.0, 2.0, 5.0][..], &[1.0, 3.0], &[1.0]].map(all);
        let few = ticks.iter().find(|ticks| ticks.len() <= MOST);
        let ticks = few.unwrap_or(&ticks[2]);
        Axis {
            scale: Scale::Logarithmic,
            low,
            high,
            ticks: ticks.iter().map(|at| (*at, name(*at))).collect(),
            ..self
        }
    }

    /// Sizes in bytes by their logarithm, from `low`, which is above zero, on; ticks as those of
    /// [`Axis::sizes`].
    #[must_use]
    pub fn powers_of_two(self, low: f64) -> Axis {
        let high = self.high.max(low * 1.001);
        let sizes = Axis::sizes("", Bytes::new(low as u64), Bytes::new(high as u64));
        let inside = |tick: &(f64, String)| (low..=high).contains(&tick.0);
        Axis {
            scale: Scale::Logarithmic,
            low,
            high,
            ticks: sizes.ticks.into_iter().filter(inside).collect(),
            ..self
        }
    }

    /// Where a value lies, from 0 at the low end to 1 at the high one; outside values lie at the
    /// nearer end.
    pub fn position(&self, value: f64) -> f64 {
        let share = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value <= 0.0 => 0.0,
            Scale::Logarithmic => (value / self.low).ln() / (self.high / self.low).ln(),
        };
        if share.is_nan() {
            0.0
        } else {
            share.clamp(0.0, 1.0)
        }
    }

    /// What a tick reads; empty for any other value.
    fn name(&self, at: f64) -> String {
        self.ticks
            .iter()
            .find(|(tick, _)| *tick == at)
            .map_or_else(String::new, |(_, name)| name.clone())
    }
}

/// The largest power of ten that is not above a positive value.
fn decade(value: f64) -> f64 {
    10f64.powi((value.log10() + 1e-9).floor() as i32)
}

/// The smallest of 1, 2 and 5 times a power of ten that is at least `least`.
fn step(least: f64) -> f64 {
    let unit = decade(least.max(1e-12));
    [1.0, 2.0, 5.0, 10.0]
        .into_iter()
        .map(|n| n * unit)
        .find(|s| *s >= least * (1.0 - 1e-9))
        .unwrap_or(10.0 * unit)
}

impl Ranged for Axis {
    type FormatOption = NoDefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, (start, end): (i32, i32)) -> i32 {
        start + (self.position(*value) * f64::from(end - start)).round() as i32
    }
    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match hint.weight() {
            KeyPointWeight::Bold => self.ticks.iter().map(|(at, _)| *at).collect(),
            KeyPointWeight::Any => Vec::new(),
        }
    }
    fn range(&self) -> Range<f64> {
        self.low..self.high
    }
}

impl ValueFormatter<f64> for Axis {
    fn format(value: &f64) -> String {
        words::plain(*value)
    }
    fn format_ext(&self, value: &f64) -> String {
        self.name(*value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(axis: &Axis) -> Vec<&str> {
        axis.ticks.iter().map(|(_, name)| name.as_str()).collect()
    }

    #[test]
    fn ticks_are_what_a_person_would_have_chosen() {
        let sizes = Axis::sizes("", Bytes::from_kib(4), Bytes::from_mib(12));
        assert_eq!(
            names(&sizes),
            ["4 KiB", "16 KiB", "64 KiB", "256 KiB", "1 MiB", "4 MiB"]
        );
        let delays = Axis::delays("", 110.0, 39_559_550.0);
        assert_eq!(
            names(&delays),
            [
                "100 ns", "1 µs", "10 µs", "100 µs", "1 ms", "10 ms", "100 ms"
            ]
        );
        let few = Axis::delays("", 3_000.0, 20_000.0);
        assert_eq!(names(&few), ["1 µs", "2 µs", "5 µs", "10 µs", "20 µs"]);
        let load = Axis::linear("", 0.0..24.0, words::plain);
        assert_eq!(names(&load), ["0", "5", "10", "15", "20"]);
        let times = Axis::times("", 0.0..2_000_000.0);
        assert_eq!(names(&times), ["0", "0.5 ms", "1 ms", "1.5 ms", "2 ms"]);
        for (range, last) in [
            (0.0..1e6, "1 ms"),
            (0.0..9.9e5, "800 µs"),
            (-3e3..1e3, "1 µs"),
            (0.0..1.2e10, "12 s"),
            (0.0..70.0, "70 ns"),
        ] {
            let axis = Axis::times("", range.clone());
            assert_eq!(names(&axis).last(), Some(&last), "{range:?}");
        }
        assert_eq!(names(&Axis::times("", -3e3..1e3))[0], "−3 µs");
    }

    #[test]
    fn a_logarithmic_axis_has_decimal_ticks() {
        let load = Axis::linear("", 0.0..24.0, words::plain).logarithmic(1.0, words::plain);
        assert_eq!(names(&load), ["1", "2", "5", "10", "20"]);
        let wide = Axis::linear("", 0.0..1e6, words::plain).logarithmic(1.0, words::plain);
        assert_eq!(wide.ticks.len(), 7);
        assert_eq!(load.position(0.0), 0.0);
        assert!((load.position(24f64.sqrt()) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn what_has_no_place_on_a_logarithmic_axis_lies_at_its_floor() {
        let axis = Axis::delays("", 100.0, 1e6);
        for value in [-170.0, 0.0, 1.0, f64::NAN] {
            assert_eq!(axis.position(value), 0.0, "{value}");
        }
        assert_eq!(axis.position(1e12), 1.0);
    }

    proptest::proptest! {
        #[test]
        fn positions_keep_the_order_and_stay_on_the_axis(
            low in 1.0f64..1e6,
            factor in 1.0f64..1e6,
            a in -1e9f64..1e9,
            b in -1e9f64..1e9,
        ) {
            for axis in [
                Axis::delays("", low, low * factor),
                Axis::linear("", -low..low * factor, words::plain),
            ] {
                let (pa, pb) = (axis.position(a), axis.position(b));
                proptest::prop_assert!((0.0..=1.0).contains(&pa));
                proptest::prop_assert!((a <= b) == (pa <= pb) || pa == pb);
                proptest::prop_assert!(axis.ticks.len() <= 20);
                for (tick, _) in &axis.ticks {
                    proptest::prop_assert!(
                        *tick >= axis.low * (1.0 - 1e-9) - 1e-9
                            && *tick <= axis.high * (1.0 + 1e-9)
                    );
                }
            }
        }
    }
}
