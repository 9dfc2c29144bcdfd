//! Distributions of execution times and gaps, as parts of a WCET or a period, cut off at both ends.
//!
//! What the field draws them from: uniform; normal, for execution times about their average;
//! exponential, for gaps of a Poisson stream; Weibull and Gumbel, the shapes of measured execution
//! times and of their extremes (probabilistic WCETs). What lies beyond the ends is drawn anew: the
//! distribution under the condition that it lies between them.
//!
//! A draw depends on its 64 random bits alone, through IEEE arithmetic and `libm`, so that it is
//! the same on every machine.

use crate::random::Sequence;
use model::error::nearest;
use model::{Error, Result};
use std::fmt;
use std::str::FromStr;

/// A shape, before it is cut.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    /// Everything between the ends is as likely.
    Uniform,
    /// Normal.
    Normal {
        /// Mean.
        mean: f64,
        /// Standard deviation.
        deviation: f64,
    },
    /// Exponential.
    Exponential {
        /// Mean.
        mean: f64,
    },
    /// Weibull: 1 − exp(−(x / scale)^shape).
    Weibull {
        /// Shape; 1 is an exponential distribution.
        shape: f64,
        /// Scale.
        scale: f64,
    },
    /// Gumbel, of largest values: exp(−exp(−(x − location) / scale)).
    Gumbel {
        /// Location, which is the mode.
        location: f64,
        /// Scale.
        scale: f64,
    },
}

impl Shape {
    /// How much of the distribution lies up to `x`.
    fn up_to(self, x: f64) -> f64 {
        match self {
            Shape::Uniform => x.clamp(0.0, 1.0),
            Shape::Normal { mean, deviation } => {
                0.5 * libm::erfc((mean - x) / (deviation * std::f64::consts::SQRT_2))
            }
            Shape::Exponential { mean } => -libm::expm1(-x.max(0.0) / mean),
            Shape::Weibull { shape, scale } => -libm::expm1(-libm::pow(x.max(0.0) / scale, shape)),
            Shape::Gumbel { location, scale } => libm::exp(-libm::exp((location - x) / scale)),
        }
    }
}

/// A distribution of parts.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Chance {
    shape: Shape,
    low: f64,
    high: f64,
    /// How much of the shape lies below the lower end, and up to the higher one.
    below: f64,
    within: f64,
}

/// The names, with the parameters of each.
const NAMES: [(&str, &str); 5] = [
    ("uniform", "LOW-HIGH"),
    ("normal", "MEAN,DEVIATION"),
    ("exponential", "MEAN"),
    ("weibull", "SHAPE,SCALE"),
    ("gumbel", "LOCATION,SCALE"),
];

/// The longest part: nothing lasts a thousand times as long as it should.
pub const MOST: f64 = 1000.0;

impl Chance {
    /// This shape between `low` and `high`.
    ///
    /// # Errors
    /// A parameter that is not finite or not positive, an empty range, or one that holds less than
    /// a hundredth of the shape.
    pub fn new(shape: Shape, low: f64, high: f64) -> Result<Self> {
        let positive: &[(&str, f64)] = match &shape {
            Shape::Uniform => &[],
            Shape::Normal { deviation, .. } => &[("the deviation", *deviation)],
            Shape::Exponential { mean } => &[("the mean", *mean)],
            Shape::Weibull { shape, scale } => &[("the shape", *shape), ("the scale", *scale)],
            Shape::Gumbel { scale, .. } => &[("the scale", *scale)],
        };
        for (what, value) in positive {
            if !(value.is_finite() && *value > 0.0) {
                return Err(
                    Error::new(format!("{what} is {value}")).remedy("give a positive number")
                );
            }
        }
        if let Shape::Normal { mean, .. } | Shape::Gumbel { location: mean, .. } = shape
            && !mean.is_finite()
        {
            return Err(
                Error::new(format!("{mean} is no part")).remedy("give a number such as `0.8`")
            );
        }
        if !(0.0..=MOST).contains(&low) || !(low..=MOST).contains(&high) || high == 0.0 {
            return Err(
                Error::new(format!("parts from {low} to {high} are no range"))
                    .remedy(format!("give 0 <= LOW <= HIGH <= {MOST}, HIGH positive")),
            );
        }
        let (below, within) = match shape {
            Shape::Uniform => (0.0, 1.0),
            _ => (shape.up_to(low), shape.up_to(high) - shape.up_to(low)),
        };
        // A range far out in a tail would be drawn for long, and says something else than was
        // meant.
        if within.is_nan() || within < 0.01 {
            return Err(Error::new(format!(
                "less than a hundredth of the distribution lies from {low} to {high}"
            ))
            .remedy("widen the range behind `@`, or move the distribution"));
        }
        Ok(Chance {
            shape,
            low,
            high,
            below,
            within,
        })
    }

    /// The largest part that can be drawn.
    pub const fn high(&self) -> f64 {
        self.high
    }

    /// How much of it lies up to `part`.
    pub fn up_to(&self, part: f64) -> f64 {
        if part >= self.high {
            return 1.0;
        }
        match self.shape {
            Shape::Uniform => ((part - self.low) / (self.high - self.low)).max(0.0),
            shape => ((shape.up_to(part) - self.below) / self.within).max(0.0),
        }
    }

    /// The part that these random bits stand for.
    pub fn draw(&self, bits: u64) -> f64 {
        let mut sequence = Sequence::new(bits);
        let drawn = match self.shape {
            Shape::Uniform => self.low + (self.high - self.low) * sequence.unit(),
            Shape::Normal { mean, deviation } => loop {
                // Box and Muller; what lies outside is drawn anew, at most a hundred times on
                // average.
                let radius = libm::sqrt(-2.0 * libm::log(1.0 - sequence.unit()));
                let angle = std::f64::consts::TAU * sequence.unit();
                let x = mean + deviation * radius * libm::cos(angle);
                if (self.low..=self.high).contains(&x) {
                    break x;
                }
            },
            // The others by their inverses, within what lies between the ends.
            Shape::Exponential { mean } => -mean * libm::log1p(-self.level(&mut sequence)),
            Shape::Weibull { shape, scale } => {
                scale * libm::pow(-libm::log1p(-self.level(&mut sequence)), 1.0 / shape)
            }
            Shape::Gumbel { location, scale } => {
                location - scale * libm::log(-libm::log(self.level(&mut sequence)))
            }
        };
        // Not a number cannot be: levels lie strictly between 0 and 1. Rounding may step over an
        // end.
        drawn.max(self.low).min(self.high)
    }

    /// A level of the shape's distribution function, uniform between those of the ends, never 0 or
    /// 1.
    fn level(&self, sequence: &mut Sequence) -> f64 {
        let level = self.below + self.within * sequence.unit();
        level.clamp(f64::MIN_POSITIVE, 1.0 - f64::EPSILON / 2.0)
    }

    /// Reads `NAME:PARAMETERS`, with `@LOW-HIGH` behind it for the ends; without it they are 0 and
    /// `high`.
    ///
    /// # Errors
    /// No such distribution (suggests the nearest), parameters that are none, see [`Chance::new`].
    pub fn parse(text: &str, high: f64) -> Result<Self> {
        let (name, parameters) = text.split_once(':').unwrap_or((text, ""));
        let Some((_, form)) = NAMES.iter().find(|(known, _)| *known == name) else {
            let error = Error::new(format!("there is no distribution `{name}`"));
            return Err(
                error.remedy(match nearest(name, NAMES.iter().map(|(n, _)| *n)) {
                    Some(near) => format!("did you mean `{near}`?"),
                    None => {
                        "write `uniform`, `normal`, `exponential`, `weibull` or `gumbel`".to_owned()
                    }
                }),
            );
        };
        let bad = || {
            Error::new(format!("`{text}` is not `{name}:{form}`")).remedy(match name {
                "uniform" => "give parts, such as `uniform:0.5-1.2`",
                _ => "give numbers, and the ends behind `@` if they are not 0 and the default: `normal:0.7,0.1@0.2-1`",
            })
        };
        let (numbers, range) = match parameters.split_once('@') {
            Some((numbers, range)) => (numbers, Some(range)),
            None => (parameters, None),
        };
        let range_of = |text: &str| -> Result<(f64, f64)> {
            let (low, high) = text.split_once('-').ok_or_else(bad)?;
            Ok((
                low.trim().parse().map_err(|_| bad())?,
                high.trim().parse().map_err(|_| bad())?,
            ))
        };
        let (low, high) = match (name, range) {
            ("uniform", None) => range_of(numbers)?,
            ("uniform", Some(_)) => return Err(bad()),
            (_, Some(range)) => range_of(range)?,
            (_, None) => (0.0, high),
        };
        let given: Vec<f64> = match name {
            "uniform" => Vec::new(),
            _ => {
                let parse = |n: &str| n.trim().parse().map_err(|_| bad());
                numbers.split(',').map(parse).collect::<Result<_>>()?
            }
        };
        let shape = match (name, given.as_slice()) {
            ("uniform", []) => Shape::Uniform,
            ("normal", &[mean, deviation]) => Shape::Normal { mean, deviation },
            ("exponential", &[mean]) => Shape::Exponential { mean },
            ("weibull", &[shape, scale]) => Shape::Weibull { shape, scale },
            ("gumbel", &[location, scale]) => Shape::Gumbel { location, scale },
            _ => return Err(bad()),
        };
        Chance::new(shape, low, high).map_err(|e| e.at(format!("`{text}`")))
    }

    /// Does this text name a distribution, if a mistaken one?
    pub fn is_meant(text: &str) -> bool {
        let name = text.split(':').next().unwrap_or(text);
        text.contains(':') && nearest(name, NAMES.iter().map(|(n, _)| *n)).is_some()
    }
}

impl FromStr for Chance {
    type Err = Error;
    /// Of parts of a WCET: the ends are 0 and 1 if nothing else is said.
    fn from_str(text: &str) -> Result<Self> {
        Chance::parse(text, 1.0)
    }
}

impl fmt::Display for Chance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (low, high) = (self.low, self.high);
        match self.shape {
            Shape::Uniform => return write!(f, "uniform:{low}-{high}"),
            Shape::Normal { mean, deviation } => write!(f, "normal:{mean},{deviation}")?,
            Shape::Exponential { mean } => write!(f, "exponential:{mean}")?,
            Shape::Weibull { shape, scale } => write!(f, "weibull:{shape},{scale}")?,
            Shape::Gumbel { location, scale } => write!(f, "gumbel:{location},{scale}")?,
        }
        write!(f, "@{low}-{high}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::{Stream, draw};
    use model::TaskId;

    const SAMPLES: u64 = 40_000;

    fn drawn(text: &str) -> (Chance, Vec<f64>) {
        let chance: Chance = text.parse().unwrap();
        let bits = |job| draw(7, Stream::Execution, TaskId(0), job);
        let mut parts: Vec<f64> = (0..SAMPLES).map(|job| chance.draw(bits(job))).collect();
        parts.sort_by(f64::total_cmp);
        (chance, parts)
    }

    /// Mean and deviation by adding up the density, which is not how draws are made.
    fn moments(density: impl Fn(f64) -> f64, low: f64, high: f64) -> (f64, f64) {
        const STEPS: u32 = 100_000;
        let width = (high - low) / f64::from(STEPS);
        let (mut mass, mut first, mut second) = (0.0, 0.0, 0.0);
        for step in 0..STEPS {
            let x = low + (f64::from(step) + 0.5) * width;
            let d = density(x);
            mass += d;
            first += d * x;
            second += d * x * x;
        }
        let mean = first / mass;
        (mean, (second / mass - mean * mean).sqrt())
    }

    fn assert_moments(text: &str, density: impl Fn(f64) -> f64, low: f64, high: f64) {
        let (chance, parts) = drawn(text);
        let (mean, deviation) = moments(density, low, high);
        let n = SAMPLES as f64;
        let average = parts.iter().sum::<f64>() / n;
        let spread = (parts.iter().map(|x| (x - average).powi(2)).sum::<f64>() / n).sqrt();
        // Five standard errors.
        assert!(
            (average - mean).abs() < 5.0 * deviation / n.sqrt(),
            "{text}: mean {average}, not {mean}"
        );
        assert!(
            (spread / deviation - 1.0).abs() < 0.03,
            "{text}: deviation {spread}, not {deviation}"
        );
        assert!(parts[0] >= low && parts[parts.len() - 1] <= high, "{text}");
        // Kolmogorov and Smirnov: far beyond what chance explains at 2 / sqrt(n).
        let apart = parts
            .iter()
            .enumerate()
            .map(|(i, x)| (chance.up_to(*x) - (i as f64 + 0.5) / n).abs());
        let apart = apart.fold(0.0, f64::max);
        assert!(apart < 2.0 / n.sqrt(), "{text}: {apart}");
    }

    #[test]
    fn draws_have_the_moments_of_their_distributions() {
        assert_moments("uniform:0.5-1.2", |_| 1.0, 0.5, 1.2);
        let normal = |mean: f64, d: f64| move |x: f64| (-((x - mean) / d).powi(2) / 2.0).exp();
        assert_moments("normal:0.7,0.1", normal(0.7, 0.1), 0.0, 1.0);
        assert_moments("normal:0.9,0.3@0.5-1", normal(0.9, 0.3), 0.5, 1.0);
        assert_moments("exponential:0.3", |x| (-x / 0.3_f64).exp(), 0.0, 1.0);
        assert_moments("exponential:0.5@0-20", |x| (-x / 0.5_f64).exp(), 0.0, 20.0);
        let weibull =
            |k: f64, s: f64| move |x: f64| (x / s).powf(k - 1.0) * (-(x / s).powf(k)).exp();
        assert_moments("weibull:2,0.5", weibull(2.0, 0.5), 0.0, 1.0);
        assert_moments("weibull:1.5,0.4@0.2-0.8", weibull(1.5, 0.4), 0.2, 0.8);
        let gumbel = |m: f64, s: f64| move |x: f64| (-(x - m) / s - (-(x - m) / s).exp()).exp();
        assert_moments("gumbel:0.6,0.08", gumbel(0.6, 0.08), 0.0, 1.0);
        assert_moments("gumbel:0.9,0.1@0.8-1.3", gumbel(0.9, 0.1), 0.8, 1.3);
    }

    /// The same on every machine and in every version: files name a seed and rely on it.
    #[test]
    fn draws_stay_what_they_are() {
        let of = |text: &str| {
            let chance: Chance = text.parse().unwrap();
            let nanos =
                |job| (chance.draw(draw(1, Stream::Execution, TaskId(0), job)) * 1e9) as u64;
            (0..3).map(nanos).collect::<Vec<u64>>()
        };
        insta::assert_debug_snapshot!([
            of("uniform:0-1"),
            of("normal:0.7,0.1"),
            of("exponential:0.3"),
            of("weibull:2,0.5"),
            of("gumbel:0.6,0.08"),
        ]);
    }

    #[test]
    fn what_is_written_is_read_again() {
        for text in [
            "uniform:0.5-1.2",
            "normal:0.7,0.1@0-1",
            "weibull:2,0.5@0.1-0.9",
            "gumbel:0.6,0.08@0-1",
        ] {
            assert_eq!(text.parse::<Chance>().unwrap().to_string(), text);
        }
        for (text, message) in [
            ("norml:0.7,0.1", "did you mean `normal`?"),
            ("normal:0.7", "is not `normal:MEAN,DEVIATION`"),
            ("normal:0.7,0", "the deviation is 0"),
            ("normal:NaN,0.1", "NaN is no part"),
            ("normal:0.7,0.1@1-0.5", "are no range"),
            ("normal:7,0.1", "less than a hundredth"),
            ("uniform:0.5", "is not `uniform:LOW-HIGH`"),
            ("uniform:0.5-1@0-1", "is not `uniform:LOW-HIGH`"),
            ("exponential:-1", "the mean is -1"),
            ("gumbel:0.5,inf", "the scale is inf"),
            ("weibull:1,1@0-2000", "are no range"),
        ] {
            let e = text.parse::<Chance>().unwrap_err().to_string();
            assert!(e.contains(message), "{text}: {e}");
        }
    }
}
