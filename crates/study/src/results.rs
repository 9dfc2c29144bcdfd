//! What a study found: schedulability S(U, x) and weighted schedulability W(x) (000 §5; 002 §6.2.2
//! and §6.4), x being what is swept: a delay D, a working set size ξ, a factor, a number of
//! processors.
//!
//! ```text
//! W(x) = Σ_{U ∈ Q} U · S(U, x) / Σ_{U ∈ Q} U
//! ```
//!
//! Where processors are swept, U is a share of them, and so are all weights: W is the same.
//!
//! Counts are integers, so W is an exact ratio; floating point is for the plots only.

use crate::axis::{Quantity, Swept};
use crate::charged::Told;
use crate::part::{Share, Work};
use crate::prepared::common;
use crate::run::Shard;
use model::{Error, Provenance, Ratio, Result, document};
use serde::Serialize;
use statrs::distribution::{ContinuousCDF, Normal};
use std::fmt::Write;

/// A line of a chart: one policy, ascending in x, shares in [0, 1] as y.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Curve {
    /// The policy as it is named in figures.
    pub policy: String,
    /// x and y: the value of the axis in its unit or the utilization, and share.
    pub points: Vec<(f64, f64)>,
    /// x and the ends of the 95 % confidence interval of the share, one for each point.
    pub band: Vec<(f64, f64, f64)>,
}

/// The 95 % quantile of the normal distribution, both sides: what the Wilson score interval needs.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % confidence interval of a share of which `accepted` of `sets` were counted: Wilson's
/// score interval (1927), which stays within [0, 1] and has a width also where all or none passed.
pub fn wilson(accepted: u32, sets: u32) -> (f64, f64) {
    wilson_by(accepted, sets, Z)
}

/// The same by another quantile of the normal distribution.
fn wilson_by(accepted: u32, sets: u32, z: f64) -> (f64, f64) {
    if sets == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (f64::from(sets), f64::from(accepted) / f64::from(sets));
    let middle = p + z * z / (2.0 * n);
    let reach = z * (p * (1.0 - p) / n + z * z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + z * z / n;
    // Rounding must not push an end past the share.
    (
        ((middle - reach) / whole).clamp(0.0, p),
        ((middle + reach) / whole).clamp(p, 1.0),
    )
}

/// The weight of each cap in W: U / Σ U.
pub(crate) fn weights(shards: &[Shard]) -> impl Iterator<Item = f64> + '_ {
    let caps: f64 = shards.iter().map(|s| s.cap.to_f64()).sum();
    shards.iter().map(move |s| s.cap.to_f64() / caps)
}

/// The counts of a whole study.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// The name of the study.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What is charged, and how, in one sentence.
    pub charges: String,
    /// What one must know to trust it, in sentences: delays that are not charged, overheads that
    /// are left out.
    pub notes: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// By what it was charged.
    pub charged: Told,
    /// Sets for each cap, of that with most.
    pub sets: u32,
    /// Number of processors.
    pub processors: u32,
    /// The policies, as named in figures.
    pub policies: Vec<String>,
    /// What is swept.
    pub axis: Swept,
    /// The counts, by cap.
    pub shards: Vec<Shard>,
}

impl Results {
    /// The results, if every part was counted.
    pub(crate) fn of(work: &Work<'_>) -> Result<Self> {
        let (study, prepared) = (work.study, &work.prepared);
        let left = work.missing(Share::WHOLE).len();
        let all = work.parts().len();
        if left > 0 {
            return Err(Error::new(format!(
                "stopped after {} of {all} parts of the study `{}`",
                all.saturating_sub(left),
                study.name
            ))
            .remedy("run it again: what was counted is kept, and not counted again"));
        }
        let shards: Vec<Shard> = work.shards().into_iter().flatten().collect();
        Ok(Results {
            name: study.name.clone(),
            title: study.headline(),
            charges: study.charges(),
            notes: study.notes(prepared),
            provenance: study.provenance(),
            charged: study.told(),
            sets: shards.iter().map(|s| s.sets).max().unwrap_or(0),
            processors: prepared.processors,
            policies: prepared
                .policies()
                .iter()
                .map(|p| p.label().to_owned())
                .collect(),
            axis: study.swept(),
            shards,
        })
    }

    /// How many sets were judged, in words: `1000 task sets for each of 93 caps`.
    pub fn sets_in_words(&self) -> String {
        let least = self.shards.iter().map(|s| s.sets).min().unwrap_or(0);
        let sets = match least == self.sets {
            true => least.to_string(),
            false => format!("{least} to {}", self.sets),
        };
        format!("{sets} task sets for each of {} caps", self.shards.len())
    }

    /// The place of a policy, by its name in figures, in any case.
    pub fn policy(&self, label: &str) -> Option<usize> {
        self.policies
            .iter()
            .position(|p| p.eq_ignore_ascii_case(label))
    }

    /// Are caps shares of the processors, as their number is swept?
    pub fn caps_are_shares(&self) -> bool {
        self.axis.quantity == Quantity::Processors
    }

    /// W of a policy at a point of the axis, both by their place.
    pub fn weighted_at(&self, policy: usize, point: usize) -> Ratio {
        // That it fits was checked before the study ran ([`Study::check_weights`]).
        let sets: Vec<u32> = self.shards.iter().map(|s| s.sets).collect();
        let common = common(&sets);
        let (mut num, mut den) = (0, 0);
        for shard in &self.shards {
            let u = u64::from(shard.cap.thousandths());
            let each = common / u64::from(shard.sets.max(1));
            num += u * each * u64::from(shard.accepted[policy][point]);
            den += u;
        }
        Ratio::new(num, den * common).unwrap_or(Ratio::ZERO)
    }

    /// The 95 % confidence interval of W of a policy at a point of the axis, both by their place.
    ///
    /// The sets of different caps are drawn independently, so that W is a weighted sum of
    /// independent shares. Its limits are made of theirs by the method of Zou, Huang and Zhang
    /// (Computational Statistics & Data Analysis 53, 2009): each end lies as far off as the root of
    /// the sum of the squared weighted distances of the Wilson limits.
    pub fn weighted_interval(&self, policy: usize, point: usize) -> (f64, f64) {
        self.interval_by(policy, point, Z)
    }

    /// The same interval with another chance on either side of it.
    pub(crate) fn interval_at(&self, policy: usize, point: usize, tail: f64) -> (f64, f64) {
        self.interval_by(policy, point, -Normal::standard().inverse_cdf(tail))
    }

    fn interval_by(&self, policy: usize, point: usize, z: f64) -> (f64, f64) {
        let (mut below, mut above) = (0.0, 0.0);
        for (shard, weight) in self.shards.iter().zip(weights(&self.shards)) {
            let accepted = shard.accepted[policy][point];
            let share = f64::from(accepted) / f64::from(shard.sets.max(1));
            let (low, high) = wilson_by(accepted, shard.sets, z);
            below += (weight * (share - low)).powi(2);
            above += (weight * (high - share)).powi(2);
        }
        let value = self.weighted_at(policy, point).to_f64();
        (
            (value - below.sqrt()).max(0.0),
            (value + above.sqrt()).min(1.0),
        )
    }

    /// W of every policy; x in the unit of the axis.
    pub fn weighted(&self) -> Vec<Curve> {
        self.curves(|policy| {
            let at = |point: usize| {
                let (low, high) = self.weighted_interval(policy, point);
                let value = self.weighted_at(policy, point).to_f64();
                (self.axis.value(point), value, (low, high))
            };
            (0..self.axis.len()).map(at).collect()
        })
    }

    /// S(U) of every policy at a point of the axis, by its place.
    pub fn by_utilization(&self, point: usize) -> Vec<Curve> {
        self.curves(|policy| {
            self.shards
                .iter()
                .map(|s| {
                    let share = f64::from(s.accepted[policy][point]) / f64::from(s.sets.max(1));
                    let interval = wilson(s.accepted[policy][point], s.sets);
                    (s.cap.to_f64(), share, interval)
                })
                .collect()
        })
    }

    /// A curve a policy; `values` are x, y and the interval of y.
    fn curves(&self, values: impl Fn(usize) -> Vec<(f64, f64, (f64, f64))>) -> Vec<Curve> {
        let curve = |(at, policy): (usize, &String)| {
            let values = values(at);
            Curve {
                policy: policy.clone(),
                points: values.iter().map(|(x, y, _)| (*x, *y)).collect(),
                band: values
                    .iter()
                    .map(|(x, _, (low, high))| (*x, *low, *high))
                    .collect(),
            }
        };
        self.policies.iter().enumerate().map(curve).collect()
    }

    /// The place of the last point of the axis at which `falling` keeps at least what `reference`
    /// reaches at the first one; `None` if at none. Decided exactly. Policies by their place.
    pub fn keeps_up(&self, falling: usize, reference: usize) -> Option<usize> {
        let level = self.weighted_at(reference, 0);
        (0..self.axis.len())
            .rev()
            .find(|at| self.weighted_at(falling, *at) >= level)
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// None in practice: there is nothing in it that JSON cannot hold.
    pub fn to_json(&self) -> Result<String> {
        #[derive(Serialize)]
        struct PolicyOut<'a> {
            policy: &'a str,
            /// W, one for each point of the axis.
            weighted: Vec<f64>,
            /// Accepted sets, one row for each cap, one column for each point of the axis.
            accepted: Vec<&'a [u32]>,
        }
        #[derive(Serialize)]
        struct Out<'a> {
            study: &'a str,
            title: &'a str,
            charges: &'a str,
            notes: &'a [String],
            provenance: &'a Provenance,
            #[serde(flatten)]
            charged: &'a Told,
            processors: u32,
            sets: u32,
            sets_by_cap: Vec<u32>,
            caps: Vec<f64>,
            caps_are: &'a str,
            axis: &'a Swept,
            policies: Vec<PolicyOut<'a>>,
        }
        let policies = self
            .policies
            .iter()
            .enumerate()
            .map(|(at, policy)| PolicyOut {
                policy,
                weighted: (0..self.axis.len())
                    .map(|d| self.weighted_at(at, d).to_f64())
                    .collect(),
                accepted: self
                    .shards
                    .iter()
                    .map(|s| s.accepted[at].as_slice())
                    .collect(),
            });
        let out = Out {
            study: &self.name,
            title: &self.title,
            charges: &self.charges,
            notes: &self.notes,
            provenance: &self.provenance,
            charged: &self.charged,
            processors: self.processors,
            sets: self.sets,
            sets_by_cap: self.shards.iter().map(|s| s.sets).collect(),
            caps: self.shards.iter().map(|s| s.cap.to_f64()).collect(),
            caps_are: match self.caps_are_shares() {
                true => "share of processors",
                false => "utilization",
            },
            axis: &self.axis,
            policies: policies.collect(),
        };
        document::compact(&out)
    }

    /// S(U, x) as a table of comma-separated values, one row for each policy, cap and point of the
    /// axis.
    ///
    /// The header is the first line; where the numbers come from stands in the JSON document.
    pub fn to_csv(&self) -> String {
        let mut text =
            "policy,cap,axis,value,unit,sets,accepted,schedulability,low,high,accounting,profile\n"
                .to_owned();
        let charged = self.charged.columns();
        let (axis, unit) = (self.axis.quantity.name(), self.axis.quantity.unit());
        for (at, policy) in self.policies.iter().enumerate() {
            for shard in &self.shards {
                for (point, accepted) in shard.accepted[at].iter().enumerate() {
                    let share = f64::from(*accepted) / f64::from(shard.sets.max(1));
                    let (low, high) = wilson(*accepted, shard.sets);
                    // Writing to a String cannot fail.
                    let _ = writeln!(
                        text,
                        "{policy},{},{axis},{},{unit},{},{accepted},{share},{low:.6},{high:.6},{charged}",
                        shard.cap,
                        self.axis.value(point),
                        shard.sets
                    );
                }
            }
        }
        text
    }

    /// W as a table of comma-separated values, one row for each point of the axis.
    pub fn to_weighted_csv(&self) -> String {
        let mut text = format!(
            "value,{},axis,unit,accounting,profile\n",
            self.policies.join(",")
        );
        let charged = self.charged.columns();
        let (axis, unit) = (self.axis.quantity.name(), self.axis.quantity.unit());
        for point in 0..self.axis.len() {
            let _ = write!(text, "{}", self.axis.value(point));
            for policy in 0..self.policies.len() {
                let _ = write!(text, ",{:.6}", self.weighted_at(policy, point).to_f64());
            }
            let _ = writeln!(text, ",{axis},{unit},{charged}");
        }
        text
    }
}
