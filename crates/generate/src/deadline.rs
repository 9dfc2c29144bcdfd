//! Relative deadlines: implicit, constrained or arbitrary.
//!
//! Other than implicit ones are a uniform part of the way from the WCET to the period, D = e + x (p
//! − e), in whole microseconds: x up to 1 keeps D ≤ p, more lets deadlines pass the period.

use crate::random::Random;
use crate::text::{after, unknown};
use model::{Duration, Error, Result};
use std::fmt;
use std::str::FromStr;

/// From what a task's relative deadline is drawn.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Deadlines {
    /// The period.
    Implicit,
    /// D = e + x (p − e) with x uniform in this range within [0, 1].
    Constrained {
        /// Least x.
        low: f64,
        /// Largest x.
        high: f64,
    },
    /// D = e + x (p − e) with x uniform in this range, whose upper end is above 1.
    Arbitrary {
        /// Least x.
        low: f64,
        /// Largest x.
        high: f64,
    },
}

const NAMED: [(&str, Deadlines); 3] = [
    ("implicit", Deadlines::Implicit),
    (
        "constrained",
        Deadlines::Constrained {
            low: 0.0,
            high: 1.0,
        },
    ),
    (
        "arbitrary",
        Deadlines::Arbitrary {
            low: 0.0,
            high: 2.0,
        },
    ),
];

/// The largest part of the way from the WCET to the period.
const LARGEST: f64 = 100.0;

impl Deadlines {
    /// Every name that is known.
    pub fn names() -> impl Iterator<Item = &'static str> + Clone {
        NAMED.iter().map(|(name, _)| *name)
    }

    /// Draws the deadline of a task; at least its WCET.
    pub(crate) fn draw(&self, wcet: Duration, period: Duration, random: &mut Random) -> Duration {
        let (low, high) = match *self {
            Deadlines::Implicit => return period,
            Deadlines::Constrained { low, high } | Deadlines::Arbitrary { low, high } => {
                (low, high)
            }
        };
        let way = (period.saturating_sub(wcet).nanos() / 1_000) as f64;
        let part = libm::round(random.between(low, high) * way) as u64;
        wcet.saturating_add(Duration::from_micros(part))
    }
}

impl FromStr for Deadlines {
    type Err = Error;
    fn from_str(text: &str) -> Result<Self> {
        let text = text.trim();
        if let Some((_, named)) = NAMED.iter().find(|(name, _)| *name == text) {
            return Ok(*named);
        }
        let range = |range: &str, within: &dyn Fn(f64, f64) -> bool, remedy: &str| {
            range
                .split_once('-')
                .and_then(|(low, high)| Some((low.trim().parse().ok()?, high.trim().parse().ok()?)))
                .filter(|(low, high)| *low >= 0.0 && low <= high && within(*low, *high))
                .ok_or_else(|| {
                    Error::new(format!("`{range}` is no range for deadlines")).remedy(remedy)
                })
        };
        if let Some(text) = after(text, "constrained") {
            let (low, high) = range(
                text,
                &|_, high| high <= 1.0,
                "give the part of the way from the WCET to the period, from 0 to 1, such as `constrained:0.5-1`",
            )?;
            return Ok(Deadlines::Constrained { low, high });
        }
        if let Some(text) = after(text, "arbitrary") {
            let (low, high) = range(
                text,
                &|_, high| high > 1.0 && high <= LARGEST,
                "give the part of the way from the WCET to the period, with an upper end above 1 and at most 100, such as `arbitrary:0.5-3`",
            )?;
            return Ok(Deadlines::Arbitrary { low, high });
        }
        Err(unknown(
            "kind of deadlines",
            text,
            Self::names(),
            "`constrained:0.5-1` or `arbitrary:0.5-3`",
        ))
    }
}

impl fmt::Display for Deadlines {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((name, _)) = NAMED.iter().find(|(_, named)| named == self) {
            return f.pad(name);
        }
        match self {
            Deadlines::Implicit => f.pad("implicit"),
            Deadlines::Constrained { low, high } => f.pad(&format!("constrained:{low}-{high}")),
            Deadlines::Arbitrary { low, high } => f.pad(&format!("arbitrary:{low}-{high}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_read_and_write() {
        for text in [
            "implicit",
            "constrained",
            "arbitrary",
            "constrained:0.5-1",
            "arbitrary:0.5-3",
        ] {
            assert_eq!(text.parse::<Deadlines>().unwrap().to_string(), text);
        }
        for (text, message) in [
            ("implict", "did you mean `implicit`?"),
            ("constrained:0.5-1.5", "from 0 to 1"),
            ("constrained:NaN-1", "from 0 to 1"),
            ("arbitrary:0-1", "above 1"),
            ("arbitrary:2", "above 1"),
        ] {
            let e = text.parse::<Deadlines>().unwrap_err().to_string();
            assert!(e.contains(message), "{text}: {e}");
        }
    }
}
