//! From samples in schedules to curves: equal counts over the numbers of tasks (000 §3.1).
//!
//! Within a policy, a load, a write ratio, a way to resume and a working set size, each number of
//! tasks gives k_min samples, where k_min is the number of the size that has fewest; they are taken
//! from its runs in turn. A size with fewer than [`LEAST`] samples, or with less than a tenth of
//! another's, does not lower k_min: it has no point and is named.

use super::file::Scheduled;
use crate::statistics;
use model::{Bytes, CpmdCurve, CpmdPoint, Delay, Load, Resumption, ScheduledCurve};
use serde::Serialize;
use std::collections::BTreeMap;

/// Fewer samples make no point.
pub const LEAST: usize = 20;
/// A size with less than one in so many of the samples of another does not lower k_min.
const FEW: usize = 10;

/// What samples are compared within: all but the number of tasks.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Stratum {
    /// The policy.
    pub policy: String,
    /// What else ran.
    pub load: Load,
    /// The bits of the write ratio; as ratios are powers of two, they order as their values do.
    ratio: u64,
    /// How jobs resumed.
    pub resumption: Resumption,
    /// Working set size.
    pub wss: Bytes,
}

impl Stratum {
    /// Part of the words that are written.
    pub fn write_ratio(&self) -> f64 {
        f64::from_bits(self.ratio)
    }

    /// The same under another policy.
    pub fn under(&self, policy: &str) -> Self {
        Stratum {
            policy: policy.to_owned(),
            ..self.clone()
        }
    }
}

/// The delays of each run of a cell, in the order in which they were taken.
pub type Runs = BTreeMap<u32, Vec<Delay>>;
/// By stratum and number of tasks.
pub type Cells = BTreeMap<Stratum, BTreeMap<u32, Runs>>;

/// All samples that count.
pub fn cells(samples: &[Scheduled]) -> Cells {
    let mut cells = Cells::new();
    for s in samples.iter().filter(|s| s.sample.discarded.is_none()) {
        let stratum = Stratum {
            policy: s.policy.clone(),
            load: s.sample.load,
            ratio: s.sample.write_ratio.to_bits(),
            resumption: s.sample.resumption,
            wss: s.sample.wss,
        };
        let runs = cells.entry(stratum).or_default().entry(s.tasks);
        let of_run = runs.or_default().entry(s.sample.block).or_default();
        of_run.push(s.sample.delay);
    }
    cells
}

/// A size that has too few samples for a point.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Dropped {
    /// The policy.
    pub policy: String,
    /// How many tasks.
    pub tasks: u32,
    /// What else ran.
    pub load: Load,
    /// Part of the words that are written.
    pub write_ratio: f64,
    /// How jobs resumed.
    pub resumption: Resumption,
    /// Working set size.
    pub wss: Bytes,
    /// How many samples it has.
    pub samples: usize,
}

/// One number of tasks of a stratum, with as many samples as the others.
#[derive(Clone, PartialEq, Debug)]
pub struct Compared {
    /// How many tasks.
    pub tasks: u32,
    /// The run and the delay of each sample, those of a run together.
    pub samples: Vec<(u32, Delay)>,
}

/// Equal counts for each stratum, and what has too few.
pub fn compared(cells: &Cells) -> (BTreeMap<Stratum, Vec<Compared>>, Vec<Dropped>) {
    let (mut all, mut dropped) = (BTreeMap::new(), Vec::new());
    for (stratum, sizes) in cells {
        let count = |runs: &Runs| runs.values().map(Vec::len).sum::<usize>();
        let most = sizes.values().map(count).max().unwrap_or(0);
        let is_enough = |n: usize| n >= LEAST && n * FEW >= most;
        let counts = sizes.values().map(count).filter(|n| is_enough(*n));
        let least = counts.min().unwrap_or(0);
        let mut kept = Vec::new();
        for (tasks, runs) in sizes {
            match is_enough(count(runs)) {
                true => kept.push(Compared {
                    tasks: *tasks,
                    samples: in_turn(runs, least),
                }),
                false => dropped.push(Dropped {
                    policy: stratum.policy.clone(),
                    tasks: *tasks,
                    load: stratum.load,
                    write_ratio: stratum.write_ratio(),
                    resumption: stratum.resumption,
                    wss: stratum.wss,
                    samples: count(runs),
                }),
            }
        }
        if !kept.is_empty() {
            all.insert(stratum.clone(), kept);
        }
    }
    (all, dropped)
}

/// So many samples, the first ones of each run, from all runs in turn.
fn in_turn(runs: &Runs, count: usize) -> Vec<(u32, Delay)> {
    let longest = runs.values().map(Vec::len).max().unwrap_or(0);
    let mut taken: Vec<(u32, Delay)> = (0..longest)
        .flat_map(|at| {
            runs.iter()
                .filter_map(move |(run, d)| Some((*run, *d.get(at)?)))
        })
        .take(count)
        .collect();
    taken.sort_by_key(|(run, _)| *run);
    taken
}

/// The curves of a profile.
pub fn curves(compared: &BTreeMap<Stratum, Vec<Compared>>, seed: u64) -> Vec<ScheduledCurve> {
    let mut curves: BTreeMap<_, ScheduledCurve> = BTreeMap::new();
    for (number, (stratum, sizes)) in (0..).zip(compared) {
        for of in sizes {
            let s = stratum;
            let key = (s.policy.clone(), of.tasks, s.load, s.ratio, s.resumption);
            let curve = curves.entry(key).or_insert_with(|| ScheduledCurve {
                policy: s.policy.clone(),
                tasks: of.tasks,
                curve: CpmdCurve {
                    resumption: s.resumption,
                    load: s.load,
                    write_ratio: s.write_ratio(),
                    points: Vec::new(),
                },
            });
            // Strata ascend by size.
            curve
                .curve
                .points
                .push(point(s.wss, &of.samples, seed.wrapping_add(number)));
        }
    }
    curves.into_values().collect()
}

/// The statistics of samples, those of a run together.
pub fn point(wss: Bytes, samples: &[(u32, Delay)], seed: u64) -> CpmdPoint {
    let (runs, delays): (Vec<u32>, Vec<Delay>) = samples.iter().copied().unzip();
    CpmdPoint {
        wss,
        samples: delays.len() as u64,
        average: statistics::mean(&delays),
        deviation: statistics::deviation(&delays),
        maximum: delays.iter().max().copied(),
        percentiles: statistics::percentiles(&delays),
        average_interval: statistics::mean_interval(&delays, &runs, seed),
        maximum_interval: statistics::maximum_interval(&delays, &runs),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::results::tests::sample;

    /// Samples of a policy with so many tasks, one run each.
    pub(crate) fn taken(
        policy: &str,
        tasks: u32,
        run: u32,
        delays: impl IntoIterator<Item = i64>,
    ) -> Vec<Scheduled> {
        let of = |delay| Scheduled {
            policy: policy.to_owned(),
            tasks,
            set: run,
            sample: crate::samples::Sample {
                block: run,
                ..sample(Resumption::Preemption, Load::Load, delay)
            },
        };
        delays.into_iter().map(of).collect()
    }

    #[test]
    fn sizes_are_compared_by_equally_many_and_those_with_fewer_are_named() {
        let mut samples = taken("p-edf", 4, 0, 0..30);
        samples.extend(taken("p-edf", 4, 1, 100..130));
        samples.extend(taken("p-edf", 8, 2, 0..24));
        samples.extend(taken("p-edf", 16, 3, 0..19));
        let (compared, dropped) = compared(&cells(&samples));
        let sizes = compared.values().next().unwrap();
        let counts: Vec<_> = sizes.iter().map(|c| (c.tasks, c.samples.len())).collect();
        assert_eq!(counts, [(4, 24), (8, 24)]);
        // The first twelve of each run, those of a run together.
        let runs: Vec<u32> = sizes[0].samples.iter().map(|s| s.0).collect();
        assert_eq!(runs, [[0; 12], [1; 12]].concat());
        assert_eq!(sizes[0].samples[12].1.nanos(), 100);
        assert_eq!((dropped[0].tasks, dropped[0].samples), (16, 19));
        let curves = curves(&compared, 1);
        assert_eq!(curves.len(), 2);
        assert_eq!(curves[0].curve.points[0].maximum.unwrap().nanos(), 111);
    }

    #[test]
    fn what_does_not_count_makes_no_point() {
        let mut samples = taken("p-edf", 4, 0, 0..30);
        for s in &mut samples {
            s.sample.discarded = Some(crate::samples::Discard::Gap);
        }
        assert!(compared(&cells(&samples)).0.is_empty());
    }
}
