//! Competitive ranges (000 §5): up to which cost of its own a policy is at least as good as another
//! one at its cost.
//!
//! A policy whose migrations cost x keeps W_A(x); one whose preemptions cost y keeps W_B(y). For each
//! y there is a largest x with W_A(x) ≥ W_B(y): 000 reads it off its Fig. 5 for y = 0, where G-EDF
//! keeps up with P-EDF up to 725 µs. Between points curves are straight lines, and the first x counts
//! at which A falls below: W is not monotone where packing has anomalies.

use crate::axis::Quantity;
use crate::contrast::{Gap, TAIL, Term};
use crate::observe::{Curves, Stretch};
use crate::results::Results;
use model::profile::{CpmdCurve, CpmdPoint};
use model::{Bytes, Delay, Error, Load, Profile, Result, Resumption, Statistic};
use serde::Serialize;

/// Up to where a policy keeps up, on the axis of the study.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
#[serde(rename_all = "kebab-case", tag = "reach", content = "value")]
pub enum Reach {
    /// It lies below from the start.
    Nowhere,
    /// Up to this value of the axis.
    UpTo(f64),
    /// To the end of the axis, or beyond.
    ToTheEnd,
}

/// The range of one policy against another one at one of its costs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Range {
    /// The cost of the other policy, in the unit of the axis.
    pub against: f64,
    /// The same as people write it.
    #[serde(skip)]
    pub against_text: String,
    /// What it reaches there.
    pub level: f64,
    /// Up to where the policy keeps up.
    pub up_to: Reach,
    /// The same for sure: up to where the 95 % interval of the difference lies above 0.
    pub surely: Reach,
    /// The same at most: up to where this interval does not lie below 0.
    pub at_most: Reach,
}

/// The largest working set whose cache delay lies within a range.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Sized {
    /// How a job goes on.
    pub resumption: Resumption,
    /// What else ran.
    pub load: Load,
    /// Average or maximum.
    pub statistic: Statistic,
    /// The largest measured size up to which every delay lies within; `None`: that of the smallest
    /// does not.
    pub wss: Option<Bytes>,
    /// Is it the largest size that was measured?
    pub is_largest: bool,
}

/// All ranges of a policy against another one.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Ranges {
    /// The policy.
    pub of: String,
    /// The other one.
    pub against: String,
    /// Where the policy is above at the same cost, for sure.
    pub above: Vec<Stretch>,
    /// Where it is below at the same cost, for sure.
    pub below: Vec<Stretch>,
    /// One for each cost of the other one, ascending.
    pub ranges: Vec<Range>,
}

/// A curve as (x, y).
type Points = Vec<(f64, f64)>;

impl Results {
    /// The ranges of `of` against `against`, by their names in figures.
    ///
    /// # Errors
    /// There is no such policy; the study has one value on its axis.
    pub fn ranges(&self, of: &str, against: &str) -> Result<Ranges> {
        let (a, b) = (self.named(of)?, self.named(against)?);
        if self.axis.len() < 2 {
            return Err(Error::new(format!(
                "the study `{}` has one {}: there is no range along it",
                self.name,
                self.axis.quantity.name().replace('_', " ")
            ))
            .remedy("name a study that sweeps several"));
        }
        let range = |at: usize| {
            // Set by set, as both judge the same ones: the doubt about what both share cancels out.
            let gaps: Vec<(f64, Gap)> = (0..self.axis.len())
                .map(|own| (self.axis.value(own), self.ahead((a, own), (b, at))))
                .collect();
            let by = |pick: fn(&Gap) -> f64| {
                let points: Points = gaps.iter().map(|(x, gap)| (*x, pick(gap))).collect();
                reach(&points, 0.0)
            };
            Range {
                against: self.axis.value(at),
                against_text: self.axis.text(at),
                level: self.weighted_at(b, at).to_f64(),
                up_to: by(|gap| gap.value),
                surely: by(|gap| gap.low),
                at_most: by(|gap| gap.high),
            }
        };
        let (above, below) = self.apart(a, b);
        Ok(Ranges {
            of: self.policies[a].clone(),
            against: self.policies[b].clone(),
            above,
            below,
            ranges: (0..self.axis.len()).map(range).collect(),
        })
    }

    fn named(&self, name: &str) -> Result<usize> {
        self.policy(name).ok_or_else(|| {
            Error::new(format!("the study `{}` has no policy `{name}`", self.name))
                .remedy(format!("it has {}", self.policies.join(", ")))
        })
    }

    /// W of one policy at a point minus W of another one at another point.
    fn ahead(&self, one: (usize, usize), other: (usize, usize)) -> Gap {
        let term = |(policy, point), factor| Term {
            policy,
            point,
            factor,
        };
        self.contrast(vec![vec![term(one, 1), term(other, -1)]])
            .gap(TAIL)
    }

    /// Where one is above and below the other at the same cost, for sure.
    fn apart(&self, a: usize, b: usize) -> (Vec<Stretch>, Vec<Stretch>) {
        let curves = Curves {
            results: self,
            points: (0..self.axis.len()).collect(),
        };
        let all = curves.difference(&curves.gaps(a, b));
        all.map_or_else(Default::default, |all| (all.above, all.below))
    }
}

/// Where a curve falls below a level first, on straight lines between points.
fn reach(curve: &Points, level: f64) -> Reach {
    if curve.first().is_none_or(|first| first.1 < level) {
        return Reach::Nowhere;
    }
    let falls = curve.windows(2).find(|pair| pair[1].1 < level);
    falls.map_or(Reach::ToTheEnd, |pair| {
        let ((x, y), (to, low)) = (pair[0], pair[1]);
        Reach::UpTo(x + (to - x) * (y - level) / (y - low))
    })
}

/// The largest working sets whose delays lie within a range of delays, by every curve of a profile.
pub fn working_sets(within: Reach, profile: &Profile) -> Vec<Sized> {
    let statistics = [Statistic::Average, Statistic::Maximum];
    let of = |curve: &CpmdCurve| {
        let sized = |statistic| sized(within, curve, statistic);
        statistics.into_iter().filter_map(sized).collect::<Vec<_>>()
    };
    profile.cpmd.iter().flat_map(of).collect()
}

/// `None`: the curve has no such number.
fn sized(within: Reach, curve: &CpmdCurve, statistic: Statistic) -> Option<Sized> {
    let value = |point: &CpmdPoint| match statistic {
        Statistic::Average => point.average,
        _ => point.maximum,
    };
    let delays: Vec<(Bytes, Delay)> = curve
        .points
        .iter()
        .filter_map(|point| Some((point.wss, value(point)?)))
        .collect();
    let fits = |delay: Delay| match within {
        Reach::Nowhere => false,
        Reach::UpTo(nanos) => delay.nanos() as f64 <= nanos,
        Reach::ToTheEnd => true,
    };
    let largest = delays.last()?.0;
    let inside = delays.iter().take_while(|(_, delay)| fits(*delay));
    let wss = inside.last().map(|(wss, _)| *wss);
    Some(Sized {
        resumption: curve.resumption,
        load: curve.load,
        statistic,
        wss,
        is_largest: wss == Some(largest),
    })
}

impl Ranges {
    /// The range against the first cost of the other policy: what 000 §5 reads off.
    pub fn first(&self) -> Option<&Range> {
        self.ranges.first()
    }
}

/// Does a range on this axis compare with the cache delays of a profile?
pub fn is_of_delays(results: &Results) -> bool {
    results.axis.quantity == Quantity::Delay
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reach_ends_where_a_curve_falls_below() {
        let curve = vec![(0.0, 1.0), (100.0, 0.8), (200.0, 0.4), (300.0, 0.6)];
        assert_eq!(reach(&curve, 0.6), Reach::UpTo(150.0));
        assert_eq!(reach(&curve, 0.4), Reach::ToTheEnd);
        assert_eq!(reach(&curve, 1.1), Reach::Nowhere);
        assert_eq!(reach(&Vec::new(), 0.0), Reach::Nowhere);
    }

    /// 000 §5: in an idle system delays stay below 725 µs for working sets below 1024 KB; 002,
    /// Tables A.3 and A.4.
    #[test]
    fn a_range_of_delays_is_one_of_working_sets() {
        let profile = Profile::builtin("xeon-l7455").unwrap();
        let all = working_sets(Reach::UpTo(725_000.0), &profile);
        let idle = |resumption| {
            let found = all.iter().find(|sized| {
                sized.resumption == resumption
                    && sized.load == Load::Idle
                    && sized.statistic == Statistic::Average
            });
            found.and_then(|sized| sized.wss).map(Bytes::get)
        };
        for resumption in [Resumption::Migration(3), Resumption::Memory] {
            assert!(idle(resumption) >= Some(512 * 1024), "{resumption:?}");
        }
        let none = working_sets(Reach::Nowhere, &profile);
        assert!(none.iter().all(|sized| sized.wss.is_none()));
        let every = working_sets(Reach::ToTheEnd, &profile);
        assert!(!every.is_empty() && every.iter().all(|sized| sized.is_largest));
    }
}
