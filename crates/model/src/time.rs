//! Time in integer nanoseconds: durations, instants, and delays that may be negative.
//!
//! Read and written as people write them (`4ms`, `250us`, `1.5s`). No floating point on the way in:
//! `0.1us` is exactly 100 ns, and a value finer than a nanosecond is refused.

use crate::error::Result;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::ops::{Add, AddAssign, Sub};

mod text;

/// A length of time in nanoseconds, never negative.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Duration(u64);

/// A point in time, in nanoseconds since the start of a schedule or a run.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

/// A measured difference of two durations in nanoseconds: negative when the second was shorter (000
/// §4.2, Obs. 1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Delay(i64);

impl Duration {
    /// No time.
    pub const ZERO: Duration = Duration(0);
    /// The longest duration that can be written: about 584 years.
    pub const MAX: Duration = Duration(u64::MAX);

    /// From nanoseconds.
    pub const fn from_nanos(ns: u64) -> Self {
        Duration(ns)
    }
    /// From microseconds; saturates at [`Duration::MAX`].
    pub const fn from_micros(us: u64) -> Self {
        Duration(us.saturating_mul(1_000))
    }
    /// From milliseconds; saturates at [`Duration::MAX`].
    pub const fn from_millis(ms: u64) -> Self {
        Duration(ms.saturating_mul(1_000_000))
    }
    /// From seconds; saturates at [`Duration::MAX`].
    pub const fn from_secs(s: u64) -> Self {
        Duration(s.saturating_mul(1_000_000_000))
    }
    /// In nanoseconds.
    pub const fn nanos(self) -> u64 {
        self.0
    }
    /// In microseconds, for people and plots; not for decisions.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// In milliseconds, for people and plots; not for decisions.
    pub fn as_millis_f64(self) -> f64 {
        self.0 as f64 / 1e6
    }
    /// In seconds, for people and plots; not for decisions.
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 / 1e9
    }
    /// For people: the nearest number with at most three decimals in the largest unit that it
    /// fills, such as `184.445ms`.
    pub fn rounded(self) -> String {
        let unit = match self.0 {
            0..1_000 => 1,
            1_000..1_000_000 => 1_000,
            1_000_000..1_000_000_000 => 1_000_000,
            _ => 1_000_000_000,
        };
        let step = (unit / 1_000).max(1);
        let down = self.0 - self.0 % step;
        let up = if self.0 % step >= step.div_ceil(2) && step > 1 {
            step
        } else {
            0
        };
        // A rounded time is a whole number of steps, which are written in full.
        let rounded = down.saturating_add(up);
        let (name, whole) = match unit {
            _ if rounded == 0 => return "0ms".to_owned(),
            1 => ("ns", rounded),
            1_000 => ("us", rounded / unit),
            1_000_000 => ("ms", rounded / unit),
            _ => ("s", rounded / unit),
        };
        match rounded % unit {
            0 => format!("{whole}{name}"),
            rest => {
                let decimals = format!("{:03}", rest / step);
                format!("{whole}.{}{name}", decimals.trim_end_matches('0'))
            }
        }
    }
    /// Is it no time at all?
    pub const fn is_zero(self) -> bool {
        self.0 == 0
    }
    /// The sum, or `None` where it does not fit.
    pub fn checked_add(self, other: Duration) -> Option<Duration> {
        self.0.checked_add(other.0).map(Duration)
    }
    /// The sum, at most [`Duration::MAX`].
    pub const fn saturating_add(self, other: Duration) -> Duration {
        Duration(self.0.saturating_add(other.0))
    }
    /// The difference, at least zero.
    pub const fn saturating_sub(self, other: Duration) -> Duration {
        Duration(self.0.saturating_sub(other.0))
    }
    /// This duration lengthened by a delay that may be negative; at least zero, at most
    /// [`Duration::MAX`].
    pub const fn saturating_add_delay(self, delay: Delay) -> Duration {
        Duration(self.0.saturating_add_signed(delay.0))
    }
}

impl Instant {
    /// The start of the schedule.
    pub const ZERO: Instant = Instant(0);

    /// From nanoseconds after the start.
    pub const fn from_nanos(ns: u64) -> Self {
        Instant(ns)
    }
    /// In nanoseconds after the start.
    pub const fn nanos(self) -> u64 {
        self.0
    }
    /// How long after `earlier` this is; zero if it is not after it.
    pub const fn since(self, earlier: Instant) -> Duration {
        Duration(self.0.saturating_sub(earlier.0))
    }
    /// The instant `d` later, or `None` where it does not fit.
    pub fn checked_add(self, d: Duration) -> Option<Instant> {
        self.0.checked_add(d.0).map(Instant)
    }
}

impl Delay {
    /// No delay.
    pub const ZERO: Delay = Delay(0);

    /// From nanoseconds.
    pub const fn from_nanos(ns: i64) -> Self {
        Delay(ns)
    }
    /// In nanoseconds.
    pub const fn nanos(self) -> i64 {
        self.0
    }
    /// In microseconds, for people and plots.
    pub fn as_micros_f64(self) -> f64 {
        self.0 as f64 / 1e3
    }
    /// What of it is a cost: the delay as a duration, zero where it is negative.
    pub const fn cost(self) -> Duration {
        if self.0 > 0 {
            Duration(self.0 as u64)
        } else {
            Duration::ZERO
        }
    }
    /// Rounded from a number of nanoseconds, to the nearest; saturates. For measured means.
    pub fn from_nanos_f64(ns: f64) -> Self {
        Delay(ns.round() as i64)
    }
}

impl From<Duration> for Delay {
    /// Saturates at about 292 years.
    fn from(d: Duration) -> Self {
        Delay(i64::try_from(d.0).unwrap_or(i64::MAX))
    }
}

/// Panics on overflow, in every build: a wrapped time would be a wrong verdict.
impl Add for Duration {
    type Output = Duration;
    fn add(self, other: Duration) -> Duration {
        self.checked_add(other)
            .expect("a sum of durations exceeds 584 years")
    }
}
impl AddAssign for Duration {
    fn add_assign(&mut self, other: Duration) {
        *self = *self + other;
    }
}
/// Panics when the result would be negative; use [`Duration::saturating_sub`] where that can
/// happen.
impl Sub for Duration {
    type Output = Duration;
    fn sub(self, other: Duration) -> Duration {
        Duration(
            self.0
                .checked_sub(other.0)
                .expect("a difference of durations is negative"),
        )
    }
}
impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, d: Duration) -> Instant {
        self.checked_add(d).expect("an instant beyond 584 years")
    }
}
impl std::iter::Sum for Duration {
    fn sum<I: Iterator<Item = Duration>>(iter: I) -> Duration {
        iter.fold(Duration::ZERO, Add::add)
    }
}

/// Serializes as text (`"4ms"`) and reads the same: in TOML and JSON documents for people.
macro_rules! serde_as_text {
    ($($t:ty),*) => {$(
        impl Serialize for $t {
            fn serialize<S: Serializer>(&self, s: S) -> Result<S::Ok, S::Error> {
                s.collect_str(self)
            }
        }
        impl<'de> Deserialize<'de> for $t {
            fn deserialize<D: Deserializer<'de>>(d: D) -> Result<Self, D::Error> {
                let text = std::borrow::Cow::<'de, str>::deserialize(d)?;
                text.parse().map_err(serde::de::Error::custom)
            }
        }
    )*};
}
pub(crate) use serde_as_text;
serde_as_text!(Duration, Delay);

/// Times in JSON documents: integers of nanoseconds, in fields whose names end in `_ns`.
///
/// For `#[serde(rename = "wcet_ns", with = "model::time::ns")]`, or with `serialize_with` where the
/// document is never read back.
pub mod ns {
    use super::{Delay, Duration};
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    /// A time, or several, that can be written as integers of nanoseconds.
    pub trait Nanos {
        /// The same as plain integers.
        type Plain: Serialize;
        /// Converts to plain integers.
        fn plain(&self) -> Self::Plain;
    }

    impl Nanos for Duration {
        type Plain = u64;
        fn plain(&self) -> u64 {
            self.nanos()
        }
    }
    impl Nanos for Delay {
        type Plain = i64;
        fn plain(&self) -> i64 {
            self.nanos()
        }
    }
    impl<T: Nanos> Nanos for Option<T> {
        type Plain = Option<T::Plain>;
        fn plain(&self) -> Self::Plain {
            self.as_ref().map(Nanos::plain)
        }
    }
    impl<T: Nanos> Nanos for Vec<T> {
        type Plain = Vec<T::Plain>;
        fn plain(&self) -> Self::Plain {
            self.iter().map(Nanos::plain).collect()
        }
    }
    /// The two ends of an interval.
    impl<T: Nanos> Nanos for (T, T) {
        type Plain = (T::Plain, T::Plain);
        fn plain(&self) -> Self::Plain {
            (self.0.plain(), self.1.plain())
        }
    }
    /// A percentage and its percentile.
    impl Nanos for (f64, Delay) {
        type Plain = (f64, i64);
        fn plain(&self) -> Self::Plain {
            (self.0, self.1.nanos())
        }
    }

    /// Writes integers of nanoseconds.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn serialize<T: Nanos, S: Serializer>(time: &T, s: S) -> Result<S::Ok, S::Error> {
        time.plain().serialize(s)
    }

    /// Writes nanoseconds that were computed, such as a mean, rounded to an integer; `null` for what
    /// is no number.
    ///
    /// # Errors
    /// Those of the serializer.
    pub fn whole<S: Serializer>(ns: &f64, s: S) -> Result<S::Ok, S::Error> {
        match ns.is_finite() {
            // Saturates beyond three centuries.
            true => s.serialize_i64(ns.round() as i64),
            false => s.serialize_none(),
        }
    }

    /// A time, or several, that can be read from integers of nanoseconds.
    pub trait OfNanos: Nanos {
        /// The same from plain integers.
        fn of(plain: Self::Plain) -> Self;
    }

    impl OfNanos for Duration {
        fn of(plain: u64) -> Self {
            Duration::from_nanos(plain)
        }
    }
    impl<T: OfNanos> OfNanos for Vec<T> {
        fn of(plain: Self::Plain) -> Self {
            plain.into_iter().map(T::of).collect()
        }
    }

    /// Reads what [`serialize`] wrote.
    ///
    /// # Errors
    /// Not integers of at least zero.
    pub fn deserialize<'de, T, D>(d: D) -> Result<T, D::Error>
    where
        T: OfNanos,
        T::Plain: Deserialize<'de>,
        D: Deserializer<'de>,
    {
        T::Plain::deserialize(d).map(T::of)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_read_exactly() {
        for (text, ns) in [
            ("4ms", 4_000_000),
            ("250us", 250_000),
            ("0.1us", 100),
            ("1.5s", 1_500_000_000),
            ("17ns", 17),
            (" 2 min", 120_000_000_000),
            ("1.5h", 5_400_000_000_000),
        ] {
            assert_eq!(text.parse::<Duration>().unwrap().nanos(), ns, "{text}");
        }
    }

    #[test]
    fn times_for_people_are_rounded_to_three_decimals() {
        for (ns, text) in [
            (0, "0ms"),
            (17, "17ns"),
            (1_234, "1.234us"),
            (3_333_333, "3.333ms"),
            (184_445_500, "184.446ms"),
            (999_999_999, "1000ms"),
            (1_500_000_000, "1.5s"),
            (60_000_000_000, "60s"),
            (u64::MAX, "18446744073.709s"),
        ] {
            assert_eq!(Duration::from_nanos(ns).rounded(), text);
        }
    }

    #[test]
    fn times_that_cannot_be_are_refused_with_the_cause() {
        for (text, cause) in [
            ("4", "has no unit"),
            ("-4ms", "is negative"),
            ("0.0001us", "finer than a nanosecond"),
            ("600000000000s", "too long"),
            ("99999999999999999999999999999999999999999s", "too long"),
            ("ms", "is not a time"),
            ("1.2.3ms", "is not a time"),
            ("4 parsecs", "is not a time"),
            ("", "is not a time"),
        ] {
            let e = text.parse::<Duration>().unwrap_err().to_string();
            assert!(e.contains(cause), "{text}: {e}");
        }
    }

    #[test]
    fn what_is_written_reads_back() {
        for ns in [
            0,
            1,
            999,
            1_000,
            1_001,
            1_234_567,
            4_000_000,
            1_500_000_000,
            u64::MAX,
        ] {
            let d = Duration::from_nanos(ns);
            assert_eq!(d.to_string().parse::<Duration>().unwrap(), d, "{d}");
        }
        let negative = Delay::from_nanos(-170);
        assert_eq!(negative.to_string(), "-170ns");
        assert_eq!("-0.17us".parse::<Delay>().unwrap(), negative);
    }
}
