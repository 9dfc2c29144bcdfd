//! What a study found: schedulability S(U, D) and weighted schedulability W(D) (000 §5; 002
//! §6.2.2).
//!
//! ```text
//! W(D) = Σ_{U ∈ Q} U · S(U, D) / Σ_{U ∈ Q} U
//! ```
//!
//! Counts are integers, so W is an exact ratio; floating point is for the plots only.

use crate::charged::Told;
use crate::definition::{Prepared, Study};
use crate::run::{Shard, Shards};
use model::{Duration, Error, Provenance, Ratio, Result, document};
use serde::Serialize;
use std::fmt::Write;

/// A line of a chart: one policy, ascending in x, shares in [0, 1] as y.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Curve {
    /// The policy as it is named in figures.
    pub policy: String,
    /// x and y: delay in nanoseconds or utilization, and share.
    pub points: Vec<(f64, f64)>,
    /// x and the ends of the 95 % confidence interval of the share, one for each point.
    pub band: Vec<(f64, f64, f64)>,
}

/// The 95 % quantile of the normal distribution, both sides: what the Wilson score interval needs.
const Z: f64 = 1.959_963_984_540_054;

/// The 95 % confidence interval of a share of which `accepted` of `sets` were counted: Wilson's
/// score interval (1927), which stays within [0, 1] and has a width also where all or none passed.
pub fn wilson(accepted: u32, sets: u32) -> (f64, f64) {
    if sets == 0 {
        return (0.0, 1.0);
    }
    let (n, p) = (f64::from(sets), f64::from(accepted) / f64::from(sets));
    let middle = p + Z * Z / (2.0 * n);
    let reach = Z * (p * (1.0 - p) / n + Z * Z / (4.0 * n * n)).sqrt();
    let whole = 1.0 + Z * Z / n;
    // Rounding must not push an end past the share.
    (
        ((middle - reach) / whole).clamp(0.0, p),
        ((middle + reach) / whole).clamp(p, 1.0),
    )
}

/// The counts of a whole study.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// The name of the study.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// What one must know to trust it, in sentences: delays that are not charged, overheads that
    /// are left out.
    pub notes: Vec<String>,
    /// Where it comes from.
    pub provenance: Provenance,
    /// By what it was charged.
    pub charged: Told,
    /// Sets for each cap.
    pub sets: u32,
    /// Number of processors.
    pub processors: u32,
    /// The policies, as named in figures.
    pub policies: Vec<String>,
    /// The delays.
    pub delays: Vec<Duration>,
    /// The counts, by cap.
    pub shards: Vec<Shard>,
}

impl Results {
    pub(crate) fn of(study: &Study, prepared: &Prepared, shards: Shards) -> Result<Self> {
        let total = shards.len();
        let shards: Vec<Shard> = shards.into_iter().flatten().collect();
        if shards.len() < total {
            return Err(Error::new(format!(
                "stopped after {} of {total} caps of the study `{}`",
                shards.len(),
                study.name
            ))
            .remedy("run it again: what was counted is kept, and not counted again"));
        }
        Ok(Results {
            name: study.name.clone(),
            title: study.title.clone(),
            notes: study.notes(prepared),
            provenance: study.provenance(),
            charged: study.charged.told(study.guarantee),
            sets: study.sets,
            processors: prepared.processors,
            policies: prepared
                .policies
                .iter()
                .map(|p| p.label().to_owned())
                .collect(),
            delays: prepared.delays.clone(),
            shards,
        })
    }

    /// The place of a policy, by its name in figures, in any case.
    pub fn policy(&self, label: &str) -> Option<usize> {
        self.policies
            .iter()
            .position(|p| p.eq_ignore_ascii_case(label))
    }

    /// W(D) of a policy at a delay, both by their place.
    pub fn weighted_at(&self, policy: usize, delay: usize) -> Ratio {
        let (mut num, mut den) = (0, 0);
        for shard in &self.shards {
            let u = u64::from(shard.cap.thousandths());
            num += u * u64::from(shard.accepted[policy][delay]);
            den += u;
        }
        Ratio::new(num, den * u64::from(self.sets)).unwrap_or(Ratio::ZERO)
    }

    /// The 95 % confidence interval of W(D) of a policy at a delay, both by their place.
    ///
    /// The sets of different caps are drawn independently, so that W is a weighted sum of
    /// independent shares. Its limits are made of theirs by the method of Zou, Huang and Zhang
    /// (Computational Statistics & Data Analysis 53, 2009): each end lies as far off as the root of
    /// the sum of the squared weighted distances of the Wilson limits.
    pub fn weighted_interval(&self, policy: usize, delay: usize) -> (f64, f64) {
        let caps: f64 = self.shards.iter().map(|s| s.cap.to_f64()).sum();
        let (mut below, mut above) = (0.0, 0.0);
        for shard in &self.shards {
            let accepted = shard.accepted[policy][delay];
            let share = f64::from(accepted) / f64::from(self.sets.max(1));
            let (low, high) = wilson(accepted, self.sets);
            let weight = shard.cap.to_f64() / caps;
            below += (weight * (share - low)).powi(2);
            above += (weight * (high - share)).powi(2);
        }
        let value = self.weighted_at(policy, delay).to_f64();
        (
            (value - below.sqrt()).max(0.0),
            (value + above.sqrt()).min(1.0),
        )
    }

    /// W(D) of every policy; x in nanoseconds.
    pub fn weighted(&self) -> Vec<Curve> {
        self.curves(|policy| {
            let at = |d: usize, delay: &Duration| {
                let (low, high) = self.weighted_interval(policy, d);
                let value = self.weighted_at(policy, d).to_f64();
                (delay.nanos() as f64, value, (low, high))
            };
            let places = self.delays.iter().enumerate();
            places.map(|(d, delay)| at(d, delay)).collect()
        })
    }

    /// S(U) of every policy at a delay, by its place.
    pub fn by_utilization(&self, delay: usize) -> Vec<Curve> {
        self.curves(|policy| {
            self.shards
                .iter()
                .map(|s| {
                    let share = f64::from(s.accepted[policy][delay]) / f64::from(self.sets);
                    let interval = wilson(s.accepted[policy][delay], self.sets);
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

    /// The largest delay of the grid at which `falling` keeps at least what `reference` reaches at
    /// the first delay; `None` if at none. Decided exactly. Policies by their place.
    pub fn keeps_up(&self, falling: usize, reference: usize) -> Option<Duration> {
        let level = self.weighted_at(reference, 0);
        (0..self.delays.len())
            .rev()
            .find(|d| self.weighted_at(falling, *d) >= level)
            .map(|d| self.delays[d])
    }

    /// As one JSON document.
    ///
    /// # Errors
    /// None in practice: there is nothing in it that JSON cannot hold.
    pub fn to_json(&self) -> Result<String> {
        #[derive(Serialize)]
        struct PolicyOut<'a> {
            policy: &'a str,
            /// W(D), one for each delay.
            weighted: Vec<f64>,
            /// Accepted sets, one row for each cap, one column for each delay.
            accepted: Vec<&'a [u32]>,
        }
        #[derive(Serialize)]
        struct Out<'a> {
            study: &'a str,
            title: &'a str,
            notes: &'a [String],
            provenance: &'a Provenance,
            #[serde(flatten)]
            charged: &'a Told,
            processors: u32,
            sets: u32,
            caps: Vec<f64>,
            delays_ns: Vec<u64>,
            policies: Vec<PolicyOut<'a>>,
        }
        let policies = self
            .policies
            .iter()
            .enumerate()
            .map(|(at, policy)| PolicyOut {
                policy,
                weighted: (0..self.delays.len())
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
            notes: &self.notes,
            provenance: &self.provenance,
            charged: &self.charged,
            processors: self.processors,
            sets: self.sets,
            caps: self.shards.iter().map(|s| s.cap.to_f64()).collect(),
            delays_ns: self.delays.iter().map(|d| d.nanos()).collect(),
            policies: policies.collect(),
        };
        document::compact(&out)
    }

    /// S(U, D) as a table of comma-separated values, one row for each policy, cap and delay.
    ///
    /// The header is the first line; where the numbers come from stands in the JSON document.
    pub fn to_csv(&self) -> String {
        let mut text =
            "policy,cap,delay_us,sets,accepted,schedulability,accounting,profile\n".to_owned();
        let charged = self.charged.columns();
        for (at, policy) in self.policies.iter().enumerate() {
            for shard in &self.shards {
                for (delay, accepted) in self.delays.iter().zip(&shard.accepted[at]) {
                    let share = f64::from(*accepted) / f64::from(self.sets);
                    // Writing to a String cannot fail.
                    let _ = writeln!(
                        text,
                        "{policy},{},{},{},{accepted},{share},{charged}",
                        shard.cap,
                        delay.as_micros_f64(),
                        self.sets
                    );
                }
            }
        }
        text
    }

    /// W(D) as a table of comma-separated values, one row for each delay.
    pub fn to_weighted_csv(&self) -> String {
        let mut text = format!("delay_us,{},accounting,profile\n", self.policies.join(","));
        let charged = self.charged.columns();
        for (d, delay) in self.delays.iter().enumerate() {
            let _ = write!(text, "{}", delay.as_micros_f64());
            for policy in 0..self.policies.len() {
                let _ = write!(text, ",{:.6}", self.weighted_at(policy, d).to_f64());
            }
            let _ = writeln!(text, ",{charged}");
        }
        text
    }
}
