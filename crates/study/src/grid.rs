//! The axes of a study: caps on the total utilization and cache delays, evenly spaced (000 §5).

use model::{Duration, Error, Ratio, Result};
use std::fmt;

/// A cap U on the total utilization, in thousandths.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Cap(u32);

impl Cap {
    /// From thousandths.
    pub const fn from_thousandths(thousandths: u32) -> Self {
        Cap(thousandths)
    }
    /// In thousandths.
    pub const fn thousandths(self) -> u32 {
        self.0
    }
    /// As a ratio.
    pub fn ratio(self) -> Ratio {
        Ratio::new(u64::from(self.0), 1000).unwrap_or(Ratio::ZERO)
    }
    /// For people and plots.
    pub fn to_f64(self) -> f64 {
        f64::from(self.0) / 1000.0
    }
}

impl fmt::Display for Cap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.to_f64().to_string())
    }
}

impl TryFrom<Ratio> for Cap {
    type Error = Error;
    fn try_from(ratio: Ratio) -> Result<Self> {
        let scaled = u128::from(ratio.num()) * 1000;
        let den = u128::from(ratio.den());
        match u32::try_from(scaled / den) {
            Ok(thousandths) if scaled.is_multiple_of(den) => Ok(Cap(thousandths)),
            _ => Err(
                Error::new(format!("{} is not a number of thousandths", ratio.to_f64()))
                    .remedy("caps and their step have at most three decimals"),
            ),
        }
    }
}

/// Evenly spaced values from `from` to at most `to`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Grid<T> {
    from: T,
    to: T,
    step: T,
}

/// The most values of a grid.
pub const MAX_VALUES: u64 = 100_000;

impl<T: Copy + fmt::Display> Grid<T> {
    fn of(from: T, to: T, step: T, number: impl Fn(T) -> u64) -> Result<Self> {
        let (a, b, s) = (number(from), number(to), number(step));
        let bad = |cause: &str| {
            Error::new(format!(
                "from {from} to {to} by {step} is no range: {cause}"
            ))
        };
        if a > b {
            return Err(bad("it ends before it starts").remedy("swap the ends"));
        }
        if s == 0 && a != b {
            return Err(bad("the step is zero").remedy("give a positive step"));
        }
        if s > 0 && (b - a) / s >= MAX_VALUES {
            return Err(bad("it has too many values")
                .remedy(format!("at most {MAX_VALUES}: widen the step")));
        }
        Ok(Grid { from, to, step })
    }
    fn numbers(&self, number: fn(T) -> u64) -> impl Iterator<Item = u64> + use<T> {
        let (a, b) = (number(self.from), number(self.to));
        let step = number(self.step).max(1) as usize;
        // A grid of one value may have a step of zero.
        (a..=b).step_by(step)
    }
    /// The first value.
    pub const fn from(&self) -> T {
        self.from
    }
    /// The end; a value if whole steps lead there.
    pub const fn to(&self) -> T {
        self.to
    }
    /// The distance of two values.
    pub const fn step(&self) -> T {
        self.step
    }
}

impl Grid<Cap> {
    /// Caps.
    ///
    /// # Errors
    /// Ends before it starts, a step of zero, a cap of zero, too many values.
    pub fn new(from: Cap, to: Cap, step: Cap) -> Result<Self> {
        if from.0 == 0 {
            return Err(Error::new("a cap of zero leaves no tasks").remedy("start above zero"));
        }
        Grid::of(from, to, step, |c| u64::from(c.0))
    }
    /// The same caps without those above `most`; `None` if none is left.
    pub fn up_to(&self, most: Cap) -> Option<Self> {
        (self.from <= most).then(|| Grid {
            to: self.to.min(most),
            ..*self
        })
    }
    /// Every cap, ascending.
    pub fn values(&self) -> Vec<Cap> {
        self.numbers(|c| u64::from(c.0))
            .filter_map(|n| u32::try_from(n).ok().map(Cap))
            .collect()
    }
}

impl Grid<Duration> {
    /// Delays.
    ///
    /// # Errors
    /// Ends before it starts, a step of zero, too many values.
    pub fn new(from: Duration, to: Duration, step: Duration) -> Result<Self> {
        Grid::of(from, to, step, Duration::nanos)
    }
    /// Every delay, ascending.
    pub fn values(&self) -> Vec<Duration> {
        self.numbers(Duration::nanos)
            .map(Duration::from_nanos)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cap(text: &str) -> Cap {
        text.parse::<Ratio>().unwrap().try_into().unwrap()
    }

    #[test]
    fn caps_are_exact_thousandths() {
        assert_eq!(cap("12.25").thousandths(), 12_250);
        assert_eq!(cap("12.25").to_string(), "12.25");
        assert!(Cap::try_from(Ratio::new(1, 3).unwrap()).is_err());
        assert!(Cap::try_from(Ratio::whole(u64::MAX)).is_err());
    }

    #[test]
    fn grids_have_both_ends() {
        let grid = Grid::<Cap>::new(cap("1"), cap("24"), cap("0.25")).unwrap();
        let values = grid.values();
        assert_eq!(
            (values.len(), values[0], values[92]),
            (93, cap("1"), cap("24"))
        );
        let ms = Duration::from_millis;
        assert_eq!(
            Grid::<Duration>::new(ms(0), ms(2), ms(1)).unwrap().values(),
            [ms(0), ms(1), ms(2)]
        );
        assert_eq!(
            Grid::<Duration>::new(ms(0), ms(3), ms(2)).unwrap().values(),
            [ms(0), ms(2)]
        );
        assert_eq!(
            Grid::<Duration>::new(ms(1), ms(1), ms(0)).unwrap().values(),
            [ms(1)]
        );
        assert!(Grid::<Duration>::new(ms(2), ms(1), ms(1)).is_err());
        assert!(Grid::<Duration>::new(ms(0), ms(1), ms(0)).is_err());
        assert!(Grid::<Duration>::new(ms(0), Duration::MAX, Duration::from_nanos(1)).is_err());
        assert!(Grid::<Cap>::new(cap("0"), cap("1"), cap("1")).is_err());
    }
}
