//! What a study found: schedulability S(U, D) and weighted schedulability W(D) (000 §5; 002 §6.2.2).
//!
//! ```text
//! W(D) = Σ_{U ∈ Q} U · S(U, D) / Σ_{U ∈ Q} U
//! ```
//!
//! Counts are integers, so W is an exact ratio; floating point is for the plots only.

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
}

/// The counts of a whole study.
#[derive(Clone, PartialEq, Debug)]
pub struct Results {
    /// The name of the study.
    pub name: String,
    /// What it shows.
    pub title: String,
    /// Where it comes from.
    pub provenance: Provenance,
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
            .remedy("run it again: caps that were kept are not run again"));
        }
        Ok(Results {
            name: study.name.clone(),
            title: study.title.clone(),
            provenance: study.provenance(),
            sets: study.sets,
            processors: prepared.processors,
            policies: prepared.policies.iter().map(|p| p.label().to_owned()).collect(),
            delays: prepared.delays.clone(),
            shards,
        })
    }

    /// The place of a policy, by its name in figures, in any case.
    pub fn policy(&self, label: &str) -> Option<usize> {
        self.policies.iter().position(|p| p.eq_ignore_ascii_case(label))
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

    /// W(D) of every policy; x in nanoseconds.
    pub fn weighted(&self) -> Vec<Curve> {
        self.curves(|policy| {
            self.delays
                .iter()
                .enumerate()
                .map(|(d, delay)| (delay.nanos() as f64, self.weighted_at(policy, d).to_f64()))
                .collect()
        })
    }

    /// S(U) of every policy at a delay, by its place.
    pub fn by_utilization(&self, delay: usize) -> Vec<Curve> {
        self.curves(|policy| {
            self.shards
                .iter()
                .map(|s| {
                    let share = f64::from(s.accepted[policy][delay]) / f64::from(self.sets);
                    (s.cap.to_f64(), share)
                })
                .collect()
        })
    }

    fn curves(&self, points: impl Fn(usize) -> Vec<(f64, f64)>) -> Vec<Curve> {
        self.policies
            .iter()
            .enumerate()
            .map(|(at, policy)| Curve {
                policy: policy.clone(),
                points: points(at),
            })
            .collect()
    }

    /// The largest delay of the grid at which `falling` keeps at least what `reference` reaches at the first delay; `None`
    /// if at none. Decided exactly. Policies by their place.
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
            provenance: &'a Provenance,
            processors: u32,
            sets: u32,
            caps: Vec<f64>,
            delays_ns: Vec<u64>,
            policies: Vec<PolicyOut<'a>>,
        }
        let policies = self.policies.iter().enumerate().map(|(at, policy)| PolicyOut {
            policy,
            weighted: (0..self.delays.len())
                .map(|d| self.weighted_at(at, d).to_f64())
                .collect(),
            accepted: self.shards.iter().map(|s| s.accepted[at].as_slice()).collect(),
        });
        let out = Out {
            study: &self.name,
            title: &self.title,
            provenance: &self.provenance,
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
        let mut text = "policy,cap,delay_us,sets,accepted,schedulability\n".to_owned();
        for (at, policy) in self.policies.iter().enumerate() {
            for shard in &self.shards {
                for (delay, accepted) in self.delays.iter().zip(&shard.accepted[at]) {
                    let share = f64::from(*accepted) / f64::from(self.sets);
                    // Writing to a String cannot fail.
                    let _ = writeln!(
                        text,
                        "{policy},{},{},{},{accepted},{share}",
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
        let mut text = format!("delay_us,{}\n", self.policies.join(","));
        for (d, delay) in self.delays.iter().enumerate() {
            let _ = write!(text, "{}", delay.as_micros_f64());
            for policy in 0..self.policies.len() {
                let _ = write!(text, ",{:.6}", self.weighted_at(policy, d).to_f64());
            }
            text.push('\n');
        }
        text
    }
}
