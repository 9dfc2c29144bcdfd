//! How far values of W lie apart, and with which confidence.
//!
//! All policies judge the same sets. So the difference of two values of W is a mean over sets of what
//! each of them says: a set of the cap U counts U / Σ U / n times its *score*, which is 1 where only
//! the first policy keeps it, -1 where only the second does, and 0 where both agree. Sets on which
//! they agree add no doubt. A mean over the axis, or a difference of differences, is a score too.
//!
//! The interval of such a sum is conservative by construction:
//!
//! - In each cap scores are taken as deviations from their median, the nearest to 0 of several. The
//!   squares of deviations from anything but the mean exceed the variance.
//! - Deviations upwards and downwards are two sums of weighted rare events. Each has the gamma
//!   interval of Fay and Feuer (*Confidence intervals for directly standardized rates*, Statistics in
//!   Medicine 16, 1997): for events of one weight the exact one of the Poisson distribution (Garwood
//!   1936), whose variance is above that of any number of sets.
//! - Both are put together by the method of variance estimates recovery (Zou and Donner, Statistics
//!   in Medicine 27, 2008), as if they were independent: a set deviates to one side only, so that
//!   both sums hang together negatively and their difference varies less.
//!
//! `crates/study/tests/paired.rs` holds the coverage by simulation. Where results do not say which
//! sets were kept, the interval of a difference is made of those of both curves as if their sets
//! were different ones: it is wider than it need be.

use crate::results::{Results, weights};
use statrs::distribution::{ContinuousCDF, Gamma};

/// The chance on either side of an interval of 95 %.
pub(crate) const TAIL: f64 = 0.025;

/// A difference of two values of W with its confidence interval.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Gap {
    /// The estimate.
    pub value: f64,
    /// The low end.
    pub low: f64,
    /// The high end.
    pub high: f64,
}

/// A value of W with a factor: of a policy at a point, both by their places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Term {
    /// The policy.
    pub policy: usize,
    /// The point of the axis.
    pub point: usize,
    /// What W counts: 1 or -1.
    pub factor: i32,
}

/// A mean of sums of values of W.
pub struct Contrast<'a> {
    results: &'a Results,
    sums: Vec<Vec<Term>>,
    paired: Option<Deviations>,
}

impl Results {
    /// Is it known of each set who keeps it?
    pub fn has_pairs(&self) -> bool {
        let known = |counts: &std::sync::Arc<crate::Counts>| counts.kept.has_sets();
        let mut shards = self.shards.iter();
        shards.all(|shard| !shard.parts.is_empty() && shard.parts.iter().all(known))
    }

    /// The mean of these sums of values of W.
    pub fn contrast(&self, sums: Vec<Vec<Term>>) -> Contrast<'_> {
        let paired = self.has_pairs().then(|| Deviations::of(self, &sums));
        Contrast {
            results: self,
            sums,
            paired,
        }
    }
}

impl Contrast<'_> {
    /// The estimate.
    pub fn value(&self) -> f64 {
        let w = |term: &Term| {
            let w = self.results.weighted_at(term.policy, term.point).to_f64();
            f64::from(term.factor) * w
        };
        self.sums.iter().flatten().map(w).sum::<f64>() / self.sums.len().max(1) as f64
    }

    /// The estimate, and the interval that the true value lies below and above with a chance of at
    /// most `tail` each.
    pub fn gap(&self, tail: f64) -> Gap {
        let value = self.value();
        let (below, above) = match &self.paired {
            Some(paired) => paired.reach(tail),
            None => self.reach_unpaired(tail),
        };
        Gap {
            value,
            low: value - below,
            high: value + above,
        }
    }

    /// How far both ends lie off: of a sum the root of the sum of the squared distances of the ends
    /// of each term (Newcombe, Statistics in Medicine 17, 1998, method 10); of several sums the mean
    /// of that, as the points of a curve are made of the same sets and their errors do not cancel out.
    fn reach_unpaired(&self, tail: f64) -> (f64, f64) {
        let (mut below, mut above) = (0.0, 0.0);
        for sum in &self.sums {
            let (mut down, mut up) = (0.0, 0.0);
            for term in sum {
                let w = self.results.weighted_at(term.policy, term.point).to_f64();
                let ends = self.results.interval_at(term.policy, term.point, tail);
                let (to_low, to_high) = (w - ends.0, ends.1 - w);
                let (to_low, to_high) = match term.factor < 0 {
                    true => (to_high, to_low),
                    false => (to_low, to_high),
                };
                down += (f64::from(term.factor) * to_low).powi(2);
                up += (f64::from(term.factor) * to_high).powi(2);
            }
            below += down.sqrt();
            above += up.sqrt();
        }
        let count = self.sums.len().max(1) as f64;
        (below / count, above / count)
    }
}

/// The deviations of the scores of all sets from the median of their cap, weighted.
struct Deviations {
    up: Side,
    down: Side,
}

/// Deviations to one side, as weighted events.
#[derive(Default)]
struct Side {
    sum: f64,
    /// The sum of their squares.
    squares: f64,
    /// The most that one more could add.
    heaviest: f64,
}

impl Deviations {
    fn of(results: &Results, sums: &[Vec<Term>]) -> Self {
        let count = sums.len().max(1) as f64;
        let factors = || sums.iter().flatten().map(|term| term.factor);
        let greatest: i32 = factors().filter(|f| *f > 0).sum();
        let least: i32 = factors().filter(|f| *f < 0).sum();
        let (mut up, mut down) = (Side::default(), Side::default());
        for (shard, weight) in results.shards.iter().zip(weights(&results.shards)) {
            let mut scores = scores(&shard.parts, sums);
            scores.sort_unstable();
            let median = median(&scores);
            let each = weight / scores.len().max(1) as f64 / count;
            // The variance of a sample, of which the median is known from itself.
            let unbiased = match scores.len() {
                0 | 1 => 1.0,
                n => n as f64 / (n - 1) as f64,
            };
            for score in &scores {
                let deviation = f64::from(score - median);
                let side = if deviation > 0.0 { &mut up } else { &mut down };
                side.sum += each * deviation.abs();
                side.squares += unbiased * (each * deviation).powi(2);
            }
            up.heaviest = up.heaviest.max(each * f64::from(greatest - median));
            down.heaviest = down.heaviest.max(each * f64::from(median - least));
        }
        Deviations { up, down }
    }

    /// How far the ends of the interval lie below and above the estimate.
    fn reach(&self, tail: f64) -> (f64, f64) {
        let root = |a: f64, b: f64| (a * a + b * b).sqrt();
        (
            root(self.up.below(tail), self.down.above(tail)),
            root(self.up.above(tail), self.down.below(tail)),
        )
    }
}

impl Side {
    /// How far the low end lies below the sum.
    fn below(&self, tail: f64) -> f64 {
        match self.sum > 0.0 {
            true => self.sum - gamma(self.sum, self.squares, tail).unwrap_or(0.0),
            false => 0.0,
        }
    }

    /// How far the high end lies above the sum: that of one heaviest event more.
    fn above(&self, tail: f64) -> f64 {
        let (sum, squares) = (
            self.sum + self.heaviest,
            self.squares + self.heaviest.powi(2),
        );
        match sum > 0.0 {
            true => gamma(sum, squares, 1.0 - tail).unwrap_or(f64::INFINITY) - self.sum,
            false => 0.0,
        }
    }
}

/// The quantile of the gamma distribution with this mean and variance.
fn gamma(mean: f64, variance: f64, chance: f64) -> Option<f64> {
    let known = Gamma::new(mean * mean / variance, 1.0).ok()?;
    Some(known.inverse_cdf(chance) * variance / mean)
}

/// What each set of these parts says.
fn scores(parts: &[std::sync::Arc<crate::Counts>], sums: &[Vec<Term>]) -> Vec<i32> {
    let mut all = Vec::new();
    for counts in parts {
        let mut scores = [0; u16::BITS as usize];
        for term in sums.iter().flatten() {
            let mut bits = counts.kept.bits(term.policy, term.point).unwrap_or(0);
            while bits != 0 {
                scores[bits.trailing_zeros() as usize] += term.factor;
                bits &= bits - 1;
            }
        }
        all.extend_from_slice(&scores[..counts.part.sets as usize]);
    }
    all
}

/// The median of scores in their order, the nearest to 0 of several; of a single one, of which
/// nothing else is known, 0.
fn median(scores: &[i32]) -> i32 {
    match scores.len() {
        0 | 1 => 0,
        n => 0.clamp(scores[(n - 1) / 2], scores[n / 2]),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Garwood (1936): the exact limits of the mean of so many events of the Poisson distribution.
    #[test]
    fn of_events_of_one_weight_the_interval_is_the_exact_one() {
        let weight = 0.02;
        for (events, low, high) in [(0, 0.0, 3.6889), (1, 0.0253, 5.5716), (5, 1.6235, 11.6683)] {
            let side = Side {
                sum: weight * f64::from(events),
                squares: weight * weight * f64::from(events),
                heaviest: weight,
            };
            let ends = [side.sum - side.below(TAIL), side.sum + side.above(TAIL)];
            for (end, known) in ends.iter().zip([low, high]) {
                assert!((end / weight - known).abs() < 5e-5, "{events}: {end}");
            }
        }
    }

    /// Quantiles of the chi-squared distribution with ν degrees of freedom (Abramowitz and Stegun,
    /// table 26.8), which is gamma with shape ν/2 and scale 2.
    #[test]
    fn quantiles_are_those_of_the_table() {
        for (freedom, chance, known) in [
            (1.0, 0.025, 0.000_982_069),
            (1.0, 0.975, 5.023_89),
            (10.0, 0.005, 2.155_85),
            (30.0, 0.999, 59.702_5),
            (100.0, 0.975, 129.561),
        ] {
            let found = gamma(freedom, 2.0 * freedom, chance).unwrap();
            assert!((found / known - 1.0).abs() < 1e-5, "{freedom}: {found}");
        }
        // Far out, of many events: by Cornish and Fisher, z = 4.26489.
        let far = gamma(10_000.0, 10_000.0, 1.0 - 1e-5).unwrap();
        assert!((far - 10_432.23).abs() < 0.01, "{far}");
    }

    #[test]
    fn the_median_is_the_nearest_to_nothing() {
        for (scores, expected) in [
            (&[][..], 0),
            (&[1], 0),
            (&[1, 1], 1),
            (&[0, 1], 0),
            (&[-1, 1], 0),
            (&[-3, -2, -1, 0], -1),
            (&[1, 1, 1, 0], 1),
        ] {
            let mut scores = scores.to_vec();
            scores.sort_unstable();
            assert_eq!(median(&scores), expected, "{scores:?}");
        }
    }
}
