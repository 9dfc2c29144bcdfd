//! Delays held against each other: between policies, the purpose of the schedule-sensitive method,
//! and between that and the synthetic method (000 §3).
//!
//! Policies are compared cell by cell (equal number of tasks, load, ratio, way to resume, size), and
//! a sign test over the cells says whether one is above the other; two-sided, at 5 %. Methods agree
//! in a cell where the 95 % intervals of their means overlap. Assumes cells of one measurement.

use super::results::{Compared, LEAST, Stratum, point};
use model::{Bytes, Delay, Load, Profile, Resumption};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet};

/// Strata with the samples that are compared.
pub type All = BTreeMap<Stratum, Vec<Compared>>;

/// Two policies.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Pair {
    /// One.
    pub a: String,
    /// The other.
    pub b: String,
    /// How many cells both have.
    pub cells: usize,
    /// In how many of them the mean of `b` is the larger one.
    pub larger: usize,
    /// The median of the mean of `b` over that of `a`; `None` where none are above zero.
    pub ratio: Option<f64>,
    /// How likely so uneven a count is where both are alike.
    pub p: f64,
}

/// All pairs of policies that have cells in common.
pub fn policies(all: &All) -> Vec<Pair> {
    let names: BTreeSet<&str> = all.keys().map(|s| s.policy.as_str()).collect();
    let names: Vec<&str> = names.into_iter().collect();
    let mut pairs = Vec::new();
    for (at, a) in names.iter().enumerate() {
        for b in &names[at + 1..] {
            let means = matched(all, a, b);
            if means.is_empty() {
                continue;
            }
            let larger = means.iter().filter(|m| m.1 > m.0).count();
            let less = means.iter().filter(|m| m.1 < m.0).count();
            let positive = means.iter().filter(|m| m.0 > 0.0 && m.1 > 0.0);
            let mut ratios: Vec<f64> = positive.map(|m| m.1 / m.0).collect();
            ratios.sort_unstable_by(f64::total_cmp);
            pairs.push(Pair {
                a: (*a).to_owned(),
                b: (*b).to_owned(),
                cells: means.len(),
                larger,
                ratio: ratios.get(ratios.len() / 2).copied(),
                p: sign(larger, less),
            });
        }
    }
    pairs
}

/// The means of the cells that both policies have, in nanoseconds.
fn matched(all: &All, a: &str, b: &str) -> Vec<(f64, f64)> {
    let mut means = Vec::new();
    for (stratum, sizes) in all.iter().filter(|(s, _)| s.policy == a) {
        let other = stratum.under(b);
        for of in sizes {
            let others = all.get(&other).into_iter().flatten();
            if let Some(with) = others.into_iter().find(|c| c.tasks == of.tasks) {
                means.push((mean(&of.samples), mean(&with.samples)));
            }
        }
    }
    means
}

fn mean(samples: &[(u32, Delay)]) -> f64 {
    let sum: f64 = samples.iter().map(|s| s.1.nanos() as f64).sum();
    sum / samples.len().max(1) as f64
}

/// The two-sided sign test: how likely is it that of so many coins so few show one side?
fn sign(larger: usize, less: usize) -> f64 {
    let n = larger + less;
    // C(n, k) / 2^n, one after the other.
    let mut part = 0.5_f64.powi(n as i32);
    let mut sum = 0.0;
    for k in 0..=larger.min(less) {
        sum += part;
        part *= (n - k) as f64 / (k + 1) as f64;
    }
    (2.0 * sum).min(1.0)
}

/// A cell that both methods have.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Methods {
    /// What else ran.
    pub load: Load,
    /// Part of the words that are written.
    pub write_ratio: f64,
    /// How jobs resumed.
    pub resumption: Resumption,
    /// Working set size.
    pub wss: Bytes,
    /// The mean by the synthetic method, and its 95 % interval.
    #[serde(rename = "synthetic_ns")]
    pub synthetic: (i64, (i64, i64)),
    /// The same by the schedule-sensitive method, over all policies and numbers of tasks.
    #[serde(rename = "scheduled_ns")]
    pub scheduled: (i64, (i64, i64)),
    /// Do the intervals overlap?
    pub agree: bool,
}

/// Both methods, where a profile has delays of the synthetic one.
pub fn methods(all: &All, profile: &Profile, seed: u64) -> Vec<Methods> {
    let mut pooled: BTreeMap<_, Vec<(u32, Delay)>> = BTreeMap::new();
    for (s, sizes) in all {
        let ratio = s.write_ratio().to_bits();
        let cell = pooled.entry((s.load, ratio, s.resumption, s.wss));
        cell.or_default()
            .extend(sizes.iter().flat_map(|c| c.samples.iter().copied()));
    }
    let of = |((load, ratio, resumption, wss), mut samples): (
        (Load, u64, Resumption, Bytes),
        Vec<_>,
    )| {
        let write_ratio = f64::from_bits(ratio);
        let curve = profile.cpmd.iter().find(|c| {
            (c.load, c.resumption) == (load, resumption) && c.write_ratio == write_ratio
        })?;
        let theirs = curve.points.iter().find(|p| p.wss == wss)?;
        samples.sort_by_key(|s: &(u32, Delay)| s.0);
        let ours = point(wss, &samples, seed);
        let told = |p: &model::CpmdPoint| {
            let (low, high) = p.average_interval?;
            Some((p.average?.nanos(), (low.nanos(), high.nanos())))
        };
        let (synthetic, scheduled) = (told(theirs)?, told(&ours)?);
        (samples.len() >= LEAST).then_some(Methods {
            load,
            write_ratio,
            resumption,
            wss,
            synthetic,
            scheduled,
            agree: synthetic.1.0 <= scheduled.1.1 && scheduled.1.0 <= synthetic.1.1,
        })
    };
    pooled.into_iter().filter_map(of).collect()
}

#[cfg(test)]
mod tests {
    use super::super::results::{cells, compared, tests::taken};
    use super::*;

    #[test]
    fn policies_are_compared_cell_by_cell() {
        let mut samples = Vec::new();
        for (run, tasks) in (0..).zip([4, 8, 16, 32, 64, 128]) {
            samples.extend(taken("p-edf", tasks, run, 1000..1030));
            samples.extend(taken("g-edf", tasks, 100 + run, 500..530));
        }
        let found = policies(&compared(&cells(&samples)).0);
        assert_eq!(found.len(), 1);
        assert_eq!(
            (found[0].a.as_str(), found[0].larger, found[0].cells),
            ("g-edf", 6, 6)
        );
        assert!((found[0].ratio.unwrap() - 1014.5 / 514.5).abs() < 1e-9);
        // Two of 2^6.
        assert!((found[0].p - 2.0 / 64.0).abs() < 1e-12);
        assert_eq!((sign(3, 3), sign(0, 0)), (1.0, 1.0));
    }

    #[test]
    fn methods_agree_where_their_intervals_overlap() {
        let all = compared(&cells(&taken("p-edf", 4, 0, 1000..1030))).0;
        let synthetic: Vec<_> = taken("", 0, 0, 1010..1040)
            .into_iter()
            .map(|s| s.sample)
            .collect();
        let mut profile = Profile::new("this", model::Provenance::default());
        profile.cpmd = crate::results::curves(&synthetic, 1);
        let near = methods(&all, &profile, 1);
        assert_eq!((near.len(), near[0].agree), (1, false), "{near:?}");
        let synthetic: Vec<_> = taken("", 0, 0, 1001..1031)
            .into_iter()
            .map(|s| s.sample)
            .collect();
        profile.cpmd = crate::results::curves(&synthetic, 1);
        assert!(methods(&all, &profile, 1)[0].agree);
    }
}
