//! Distributions of task utilizations: those of 002 §6.2.1, that of 004 §IV-A, and any like them.
//!
//! A name is written `uniform-heavy`, `bimodal-light`, `exponential-medium`, or with numbers of
//! one's own: `uniform:0.2-0.6`, `bimodal:1/9` (the part of heavy tasks), `exponential:0.3` (the
//! mean before the cut at 1).

use crate::random::Random;
use crate::text::{after, unknown};
use model::{Error, Ratio, Result};
use std::fmt;
use std::str::FromStr;

/// From what a task's utilization is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Utilizations {
    /// Uniform in a range.
    Uniform(Range),
    /// Uniform in [0.001, 0.5) or, with this probability, in [0.5, 0.9].
    Bimodal {
        /// Probability of the heavy range.
        heavy: Ratio,
    },
    /// Exponential with this mean; what exceeds 1 is drawn anew, so the mean of what is kept is
    /// lower.
    Exponential {
        /// Mean of the exponential distribution before the cut.
        mean: f64,
    },
}

/// A range of utilizations, 0 < low ≤ high ≤ 1.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Range {
    low: f64,
    high: f64,
}

impl Range {
    /// Every utilization that a task can have.
    pub const ALL: Range = Range {
        low: 0.0,
        high: 1.0,
    };
    const LIGHT_MODE: Range = Range {
        low: 0.001,
        high: 0.5,
    };
    const HEAVY_MODE: Range = Range {
        low: 0.5,
        high: 0.9,
    };

    /// A range.
    ///
    /// # Errors
    /// Not 0 ≤ low ≤ high ≤ 1, or high is 0.
    pub fn new(low: f64, high: f64) -> Result<Self> {
        if low >= 0.0 && low <= high && high > 0.0 && high <= 1.0 {
            Ok(Range { low, high })
        } else {
            Err(
                Error::new(format!("`{low}-{high}` is no range of utilizations"))
                    .remedy("give LOW-HIGH with 0 <= LOW <= HIGH <= 1, such as `0.2-0.6`"),
            )
        }
    }
    /// The lower end.
    pub const fn low(self) -> f64 {
        self.low
    }
    /// The upper end.
    pub const fn high(self) -> f64 {
        self.high
    }
}

/// The names, with what they stand for (002 §6.2.1; `rtcsa13` is 004 §IV-A).
const NAMED: [(&str, Utilizations); 10] = [
    ("uniform-light", uniform(0.001, 0.1)),
    ("uniform-medium", uniform(0.1, 0.4)),
    ("uniform-heavy", uniform(0.5, 0.9)),
    ("bimodal-light", bimodal(1)),
    ("bimodal-medium", bimodal(3)),
    ("bimodal-heavy", bimodal(5)),
    (
        "exponential-light",
        Utilizations::Exponential { mean: 0.10 },
    ),
    (
        "exponential-medium",
        Utilizations::Exponential { mean: 0.25 },
    ),
    (
        "exponential-heavy",
        Utilizations::Exponential { mean: 0.50 },
    ),
    ("rtcsa13", uniform(0.1, 0.7)),
];

const fn uniform(low: f64, high: f64) -> Utilizations {
    Utilizations::Uniform(Range { low, high })
}
const fn bimodal(ninths: u64) -> Utilizations {
    Utilizations::Bimodal {
        heavy: match Ratio::new(ninths, 9) {
            Some(ratio) => ratio,
            None => Ratio::ONE,
        },
    }
}

impl Utilizations {
    /// Every name that is known.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// The largest utilization that can be drawn.
    pub const fn largest(&self) -> f64 {
        match self {
            Utilizations::Uniform(range) => range.high,
            Utilizations::Bimodal { .. } => Range::HEAVY_MODE.high,
            Utilizations::Exponential { .. } => 1.0,
        }
    }

    /// The mean of what is drawn.
    pub fn mean(&self) -> f64 {
        let middle = |r: Range| (r.low + r.high) / 2.0;
        match *self {
            Utilizations::Uniform(range) => middle(range),
            Utilizations::Bimodal { heavy } => {
                let heavy = heavy.to_f64();
                (1.0 - heavy) * middle(Range::LIGHT_MODE) + heavy * middle(Range::HEAVY_MODE)
            }
            Utilizations::Exponential { mean } => mean - 1.0 / libm::expm1(1.0 / mean),
        }
    }

    /// Draws a utilization and the range that it came from.
    pub(crate) fn draw(&self, random: &mut Random) -> (f64, Range) {
        let range = match *self {
            Utilizations::Uniform(range) => range,
            Utilizations::Bimodal { heavy } if random.below(heavy.den()) < heavy.num() => {
                Range::HEAVY_MODE
            }
            Utilizations::Bimodal { .. } => Range::LIGHT_MODE,
            Utilizations::Exponential { mean } => loop {
                let u = -mean * libm::log(random.positive_unit());
                if u <= 1.0 {
                    return (u, Range::ALL);
                }
            },
        };
        (random.between(range.low, range.high), range)
    }
}

impl FromStr for Range {
    type Err = Error;
    /// Reads `LOW-HIGH`.
    fn from_str(text: &str) -> Result<Self> {
        let ends = text
            .split_once('-')
            .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)));
        let (low, high) = ends.ok_or_else(|| {
            Error::new(format!("`{text}` is no range of utilizations"))
                .remedy("write LOW-HIGH, such as `0.2-0.6`")
        })?;
        Range::new(low, high)
    }
}

impl FromStr for Utilizations {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some((_, named)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*named);
        }
        if let Some(range) = after(text, "uniform") {
            return range.parse().map(Utilizations::Uniform);
        }
        if let Some(part) = after(text, "bimodal") {
            let heavy: Ratio = part.parse()?;
            return if heavy <= Ratio::ONE {
                Ok(Utilizations::Bimodal { heavy })
            } else {
                Err(Error::new(format!("{part} is no probability"))
                    .remedy("give the part of heavy tasks, from 0 to 1, such as `bimodal:1/9`"))
            };
        }
        if let Some(mean) = after(text, "exponential") {
            return match mean.parse::<f64>() {
                // Far above 1 the distribution cut at 1 is uniform, and nearly all draws would be
                // thrown away.
                Ok(mean) if mean > 0.0 && mean <= 10.0 => Ok(Utilizations::Exponential { mean }),
                _ => Err(Error::new(format!("`{mean}` cannot be the mean"))
                    .remedy("give a mean above 0 and at most 10, such as `exponential:0.3`")),
            };
        }
        Err(unknown(
            "distribution of utilizations",
            text,
            Self::names(),
            "`uniform:LOW-HIGH`, `bimodal:HEAVY` or `exponential:MEAN`",
        ))
    }
}

impl fmt::Display for Utilizations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMED.iter().find(|(_, named)| named == self) {
            return f.pad(name);
        }
        f.pad(&match self {
            Utilizations::Uniform(range) => format!("uniform:{}-{}", range.low, range.high),
            Utilizations::Bimodal { heavy } => format!("bimodal:{heavy}"),
            Utilizations::Exponential { mean } => format!("exponential:{mean}"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_named_distributions_are_those_of_the_papers() {
        let range = |name: &str| match name.parse().unwrap() {
            Utilizations::Uniform(r) => (r.low, r.high),
            other => panic!("{other:?}"),
        };
        assert_eq!(range("uniform-light"), (0.001, 0.1));
        assert_eq!(range("uniform-medium"), (0.1, 0.4));
        assert_eq!(range("uniform-heavy"), (0.5, 0.9));
        assert_eq!(range("rtcsa13"), (0.1, 0.7));
        for (name, ninths) in [("light", 1), ("medium", 3), ("heavy", 5)] {
            let Utilizations::Bimodal { heavy } = format!("bimodal-{name}").parse().unwrap() else {
                panic!("{name}")
            };
            assert_eq!((heavy.num(), heavy.den()), (ninths, 9), "{name}");
        }
        for (name, wanted) in [("light", 0.10), ("medium", 0.25), ("heavy", 0.50)] {
            let Utilizations::Exponential { mean } = format!("exponential-{name}").parse().unwrap()
            else {
                panic!("{name}")
            };
            assert_eq!(mean, wanted);
        }
    }

    #[test]
    fn names_and_numbers_read_and_write() {
        for name in
            Utilizations::names().chain(["uniform:0.2-0.6", "bimodal:1/4", "exponential:0.3"])
        {
            assert_eq!(name.parse::<Utilizations>().unwrap().to_string(), name);
        }
        for (text, message) in [
            ("uniform-havy", "did you mean `uniform-heavy`?"),
            ("uniform:0.6-0.2", "0 <= LOW <= HIGH <= 1"),
            ("uniform:0.2-1.2", "0 <= LOW <= HIGH <= 1"),
            ("uniform:0.2", "write LOW-HIGH"),
            ("uniform:NaN-0.2", "0 <= LOW <= HIGH <= 1"),
            ("bimodal:1.5", "from 0 to 1"),
            ("exponential:0", "above 0"),
            ("exponential:inf", "above 0"),
            ("gaussian", "`uniform-light`"),
        ] {
            let e = text.parse::<Utilizations>().unwrap_err().to_string();
            assert!(e.contains(message), "{text}: {e}");
        }
    }
}
