//! The values along an axis of a study: ranges and single values, ascending (000 §5; 002 §6.3 and
//! §6.4).

use model::{Bytes, Duration, Error, Ratio, Result};
use std::fmt;

/// A whole number of thousandths as it is written: at most three decimals.
fn thousandths(ratio: Ratio, what: &str) -> Result<u32> {
    let scaled = u128::from(ratio.num()) * 1000;
    let den = u128::from(ratio.den());
    match u32::try_from(scaled / den) {
        Ok(thousandths) if scaled.is_multiple_of(den) => Ok(thousandths),
        _ => Err(
            Error::new(format!("{} is not a number of thousandths", ratio.to_f64()))
                .remedy(format!("{what} have at most three decimals")),
        ),
    }
}

macro_rules! in_thousandths {
    ($name:ident, $what:literal, $doc:literal) => {
        #[doc = $doc]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
        pub struct $name(u32);

        impl $name {
            /// From thousandths.
            pub const fn from_thousandths(thousandths: u32) -> Self {
                $name(thousandths)
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

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(&self.to_f64().to_string())
            }
        }

        impl TryFrom<Ratio> for $name {
            type Error = Error;
            fn try_from(ratio: Ratio) -> Result<Self> {
                thousandths(ratio, $what).map($name)
            }
        }
    };
}

in_thousandths!(
    Cap,
    "caps and their step",
    "A cap U on the total utilization, in thousandths; where the number of processors is swept, \
     in thousandths of all processors."
);
in_thousandths!(
    Factor,
    "factors and their step",
    "A factor on all overheads of a profile, in thousandths."
);

impl Factor {
    /// Overheads as they are.
    pub const ONE: Factor = Factor(1000);
}

/// What a grid can hold: as many values as there are numbers of its kind.
pub trait Value: Copy + Ord + fmt::Display {
    /// Its number: nanoseconds, bytes, thousandths, processors.
    fn number(self) -> u64;
    /// The value of a number.
    fn of(number: u64) -> Option<Self>;
    /// As it stands in a file.
    fn written(self) -> String {
        self.to_string()
    }
    /// The least value that makes sense.
    const LEAST: u64 = 0;
    /// Why nothing smaller does.
    const TOO_SMALL: &str = "";
}

impl Value for Cap {
    fn number(self) -> u64 {
        u64::from(self.0)
    }
    fn of(number: u64) -> Option<Self> {
        u32::try_from(number).ok().map(Cap)
    }
    const LEAST: u64 = 1;
    const TOO_SMALL: &str = "a cap of zero leaves no tasks";
}

impl Value for Factor {
    fn number(self) -> u64 {
        u64::from(self.0)
    }
    fn of(number: u64) -> Option<Self> {
        u32::try_from(number).ok().map(Factor)
    }
}

impl Value for Duration {
    fn number(self) -> u64 {
        self.nanos()
    }
    fn of(number: u64) -> Option<Self> {
        Some(Duration::from_nanos(number))
    }
    fn written(self) -> String {
        format!("\"{self}\"")
    }
}

impl Value for Bytes {
    fn number(self) -> u64 {
        self.get()
    }
    fn of(number: u64) -> Option<Self> {
        Some(Bytes::new(number))
    }
    fn written(self) -> String {
        format!("\"{self}\"")
    }
}

/// Numbers of processors.
impl Value for u32 {
    fn number(self) -> u64 {
        u64::from(self)
    }
    fn of(number: u64) -> Option<Self> {
        u32::try_from(number).ok()
    }
    const LEAST: u64 = 1;
    const TOO_SMALL: &str = "nothing runs on no processors";
}

/// Evenly spaced values from `from` to at most `to`; one value where they are the same.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Span<T> {
    from: T,
    to: T,
    step: T,
}

impl<T: Value> Span<T> {
    fn numbers(&self) -> impl Iterator<Item = u64> + use<T> {
        let (a, b) = (self.from.number(), self.to.number());
        // A span of one value may have a step of zero.
        (a..=b).step_by(usize::try_from(self.step.number().max(1)).unwrap_or(usize::MAX))
    }

    fn len(&self) -> u64 {
        let steps = (self.to.number() - self.from.number()) / self.step.number().max(1);
        steps.saturating_add(1)
    }

    fn is_single(&self) -> bool {
        self.from == self.to
    }

    fn written(&self) -> String {
        format!(
            "{{ from = {}, to = {}, step = {} }}",
            self.from.written(),
            self.to.written(),
            self.step.written()
        )
    }
}

/// Ascending values: spans of evenly spaced ones, one behind the other.
///
/// Invariant: there is a value, and no span begins at or below the end of the one before.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grid<T> {
    spans: Vec<Span<T>>,
}

/// The most values of a grid.
pub const MAX_VALUES: u64 = 100_000;

impl<T: Value> Grid<T> {
    /// Evenly spaced values from `from` to at most `to`.
    ///
    /// # Errors
    /// It ends before it starts, a step of zero, a first value below the least that makes sense,
    /// too many values.
    pub fn new(from: T, to: T, step: T) -> Result<Self> {
        let bad = |cause: &str| {
            Error::new(format!(
                "from {from} to {to} by {step} is no range: {cause}"
            ))
        };
        if from.number() < T::LEAST {
            return Err(Error::new(T::TOO_SMALL).remedy("start above zero"));
        }
        if from > to {
            return Err(bad("it ends before it starts").remedy("swap the ends"));
        }
        if step.number() == 0 && from != to {
            return Err(bad("the step is zero").remedy("give a positive step"));
        }
        let span = Span { from, to, step };
        if span.len() > MAX_VALUES {
            return Err(bad("it has too many values")
                .remedy(format!("at most {MAX_VALUES}: widen the step")));
        }
        Ok(Grid { spans: vec![span] })
    }

    /// One value.
    ///
    /// # Errors
    /// It is below the least that makes sense.
    pub fn single(value: T) -> Result<Self> {
        Grid::new(value, value, value)
    }

    /// Grids one behind the other.
    ///
    /// # Errors
    /// There is none; one begins before the one before it has ended; too many values.
    pub fn joined(grids: impl IntoIterator<Item = Grid<T>>) -> Result<Self> {
        let spans: Vec<Span<T>> = grids.into_iter().flat_map(|grid| grid.spans).collect();
        if spans.is_empty() {
            return Err(Error::new("the list is empty").remedy("give at least one value"));
        }
        if let Some(pair) = spans.windows(2).find(|pair| pair[1].from <= pair[0].to) {
            return Err(Error::new(format!(
                "{} does not lie above {}",
                pair[1].from, pair[0].to
            ))
            .remedy("write each value once, in ascending order"));
        }
        let count = spans.iter().map(Span::len).fold(0, u64::saturating_add);
        match count > MAX_VALUES {
            true => Err(Error::new(format!("{count} values are too many"))
                .remedy(format!("at most {MAX_VALUES}: widen the steps"))),
            false => Ok(Grid { spans }),
        }
    }

    /// Single values.
    ///
    /// # Errors
    /// As [`Grid::joined`].
    pub fn listed(values: impl IntoIterator<Item = T>) -> Result<Self> {
        let singles = values.into_iter().map(Grid::single);
        Grid::joined(singles.collect::<Result<Vec<_>>>()?)
    }

    /// Every value, ascending.
    pub fn values(&self) -> Vec<T> {
        let numbers = self.spans.iter().flat_map(Span::numbers);
        numbers.filter_map(T::of).collect()
    }

    /// The last value.
    pub fn last(&self) -> Option<T> {
        self.values().last().copied()
    }

    /// The same with as many further values as there are steps up to `end`; a single value at the end
    /// stays alone.
    #[must_use]
    pub fn going_on_to(mut self, end: T) -> Self {
        if let Some(span) = self.spans.last_mut().filter(|span| !span.is_single()) {
            span.to = span.to.max(end);
        }
        self
    }

    /// The same without the values above `most`; `None` if none is left.
    pub fn up_to(&self, most: T) -> Option<Self> {
        let spans = self.spans.iter().filter(|span| span.from <= most);
        let spans: Vec<Span<T>> = spans
            .map(|span| Span {
                to: span.to.min(most),
                ..*span
            })
            .collect();
        (!spans.is_empty()).then_some(Grid { spans })
    }

    /// As it stands in a file: `{ from = 1, to = 24, step = 0.25 }`, or a list.
    pub fn written(&self) -> String {
        if let [span] = &self.spans[..]
            && !span.is_single()
        {
            return span.written();
        }
        let parts = self.spans.iter().map(|span| match span.is_single() {
            true => span.from.written(),
            false => span.written(),
        });
        format!("[{}]", parts.collect::<Vec<_>>().join(", "))
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
        let grid = Grid::new(cap("1"), cap("24"), cap("0.25")).unwrap();
        let values = grid.values();
        assert_eq!(
            (values.len(), values[0], values[92]),
            (93, cap("1"), cap("24"))
        );
        let ms = Duration::from_millis;
        let of = |from, to, step| Grid::new(ms(from), ms(to), ms(step)).map(|g| g.values());
        assert_eq!(of(0, 2, 1).unwrap(), [ms(0), ms(1), ms(2)]);
        assert_eq!(of(0, 3, 2).unwrap(), [ms(0), ms(2)]);
        assert_eq!(of(1, 1, 0).unwrap(), [ms(1)]);
        assert!(of(2, 1, 1).is_err() && of(0, 1, 0).is_err());
        assert!(Grid::new(ms(0), Duration::MAX, Duration::from_nanos(1)).is_err());
        assert!(Grid::new(cap("0"), cap("1"), cap("1")).is_err());
        assert!(Grid::listed([0u32, 4]).is_err());
    }

    /// 002 §6.4: ξ in steps of 16 KB to 256, of 64 to 1024, of 256 to 3072.
    #[test]
    fn grids_are_joined() {
        let kib = Bytes::from_kib;
        let part = |from, to, step| Grid::new(kib(from), kib(to), kib(step)).unwrap();
        let all = [part(0, 256, 16), part(320, 1024, 64), part(1280, 3072, 256)];
        let grid = Grid::joined(all).unwrap();
        assert_eq!(grid.values().len(), 17 + 12 + 8);
        assert_eq!(grid.up_to(kib(1024)).unwrap().values().len(), 17 + 12);
        assert_eq!(
            grid.written(),
            "[{ from = \"0B\", to = \"256KiB\", step = \"16KiB\" }, \
             { from = \"320KiB\", to = \"1MiB\", step = \"64KiB\" }, \
             { from = \"1280KiB\", to = \"3MiB\", step = \"256KiB\" }]"
        );
        assert_eq!(Grid::listed([4u32, 8, 24]).unwrap().written(), "[4, 8, 24]");
        for bad in [&[8u32, 4][..], &[4, 4], &[]] {
            assert!(Grid::listed(bad.iter().copied()).is_err(), "{bad:?}");
        }
        assert!(Grid::joined([part(0, 256, 16), part(256, 512, 64)]).is_err());
    }
}
