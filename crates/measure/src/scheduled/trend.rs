//! Do delays depend on the number of tasks (000, Fig. 4 and Observation 5)?
//!
//! The test of Mann and Kendall within strata, as Hirsch and Slack ("A nonparametric trend test for
//! seasonal data with serial dependence", 1984) take it within seasons: S and its variance are added
//! up over policies, loads, write ratios, ways to resume and sizes. Each run gives one value, the
//! mean or the largest of equally many samples. Two-sided, at 5 %. A test that finds nothing says
//! something only with its power: the share of 400 orders of the same values, mixed within each
//! stratum so that no trend is left, in which it finds a rise that is put in. Assumes that runs are
//! independent.

use super::results::Cells;
use crate::overheads::trend::score;
use model::Delay;
use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;
use serde::Serialize;

/// |z| beyond which a trend is conclusive: 5 % of a normal distribution lie outside.
pub const CONCLUSIVE: f64 = 1.96;
/// A power of so much is enough.
pub const ENOUGH: f64 = 0.8;
/// Rises that are put in: parts of the typical delay, from the fewest tasks to the most.
const RISES: [f64; 6] = [0.05, 0.1, 0.2, 0.3, 0.5, 1.0];
/// How often values are mixed.
const ORDERS: usize = 400;
/// A run with fewer samples has no value.
const LEAST: usize = 5;

/// Which value a run gives.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Value {
    /// The mean of its samples.
    Average,
    /// The largest of them.
    Maximum,
}

/// What was found.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Found {
    /// Which value each run gives.
    pub value: Value,
    /// S over its standard deviation, with the correction for continuity.
    pub z: f64,
    /// Kendall's tau: S over the number of pairs of different numbers of tasks.
    pub tau: f64,
    /// How many values, in how many strata.
    pub values: usize,
    /// See `values`.
    pub strata: usize,
    /// Is a trend conclusive?
    pub depends: bool,
    /// The median over the strata of the value with most tasks over that with fewest, less one.
    pub change: Option<f64>,
    /// The power by the rise that is put in.
    pub power: Vec<(f64, f64)>,
    /// The smallest of these rises that is found with a power of [`ENOUGH`].
    pub finds: Option<f64>,
}

/// The test over all strata that have two numbers of tasks at least; `None` without values.
pub fn test(cells: &Cells, value: Value, seed: u64) -> Option<Found> {
    let strata: Vec<Vec<(u32, f64)>> = cells
        .values()
        .map(|sizes| {
            let runs = sizes.values().flat_map(|runs| runs.values());
            let enough = runs.map(Vec::len).filter(|n| *n >= LEAST);
            let count = enough.min().unwrap_or(0);
            let of = |(tasks, runs): (&u32, &super::results::Runs)| -> Vec<(u32, f64)> {
                let runs = runs.values().filter(|d| d.len() >= LEAST.max(count));
                runs.map(|d| (*tasks, of_run(&d[..count], value))).collect()
            };
            sizes.iter().flat_map(of).collect()
        })
        .filter(|values: &Vec<(u32, f64)>| values.iter().any(|v| v.0 != values[0].0))
        .collect();
    if strata.is_empty() {
        return None;
    }
    let (z, s, pairs) = together(&strata);
    let power = power(&strata, seed);
    Some(Found {
        value,
        z,
        tau: s as f64 / pairs.max(1) as f64,
        values: strata.iter().map(Vec::len).sum(),
        strata: strata.len(),
        depends: z.abs() > CONCLUSIVE,
        change: change(&strata),
        finds: power.iter().find(|p| p.1 >= ENOUGH).map(|p| p.0),
        power,
    })
}

fn of_run(delays: &[Delay], value: Value) -> f64 {
    let all = delays.iter().map(|d| d.nanos() as f64);
    match value {
        Value::Average => all.sum::<f64>() / delays.len().max(1) as f64,
        Value::Maximum => all.fold(f64::NEG_INFINITY, f64::max),
    }
}

/// z, S and the number of pairs of different numbers of tasks, over all strata.
fn together(strata: &[Vec<(u32, f64)>]) -> (f64, i64, u64) {
    let (mut s, mut variance, mut pairs) = (0, 0.0, 0);
    for values in strata {
        // Whole nanoseconds above the smallest: the test asks for their order alone.
        let least = values.iter().map(|v| v.1).fold(f64::INFINITY, f64::min);
        let whole: Vec<(u32, u64)> = values
            .iter()
            .map(|(tasks, v)| (*tasks, (v - least).round() as u64))
            .collect();
        let (of, its) = score(&whole);
        s += of;
        variance += its;
        for (at, a) in values.iter().enumerate() {
            pairs += values[..at].iter().filter(|b| b.0 != a.0).count() as u64;
        }
    }
    let z = match variance > 0.0 {
        true => (s - s.signum()) as f64 / variance.sqrt(),
        false => 0.0,
    };
    (z, s, pairs)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_unstable_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The typical size of the values of a stratum.
fn typical(values: &[(u32, f64)]) -> f64 {
    median(values.iter().map(|v| v.1.abs()).collect()).unwrap_or(0.0)
}

fn change(strata: &[Vec<(u32, f64)>]) -> Option<f64> {
    let of = |values: &Vec<(u32, f64)>| {
        let at = |tasks: u32| {
            let all: Vec<f64> = values
                .iter()
                .filter(|v| v.0 == tasks)
                .map(|v| v.1)
                .collect();
            Some(all.iter().sum::<f64>() / all.len() as f64)
        };
        let first = at(values.iter().map(|v| v.0).min()?)?;
        let last = at(values.iter().map(|v| v.0).max()?)?;
        (first > 0.0).then_some(last / first - 1.0)
    };
    median(strata.iter().filter_map(of).collect())
}

fn power(strata: &[Vec<(u32, f64)>], seed: u64) -> Vec<(f64, f64)> {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut found = [0_usize; RISES.len()];
    for _ in 0..ORDERS {
        let mixed: Vec<Vec<(u32, f64)>> = strata.iter().map(|v| mix(v, &mut rng)).collect();
        for (rise, found) in RISES.iter().zip(&mut found) {
            let risen: Vec<_> = mixed.iter().map(|v| rising(v, *rise)).collect();
            *found += usize::from(together(&risen).0 > CONCLUSIVE);
        }
    }
    let share = |n: usize| n as f64 / ORDERS as f64;
    RISES.into_iter().zip(found.map(share)).collect()
}

/// The same values at other numbers of tasks.
fn mix(values: &[(u32, f64)], rng: &mut ChaCha8Rng) -> Vec<(u32, f64)> {
    let mut all: Vec<f64> = values.iter().map(|v| v.1).collect();
    all.shuffle(rng);
    values.iter().map(|v| v.0).zip(all).collect()
}

/// Values that rise by this part of the typical one, equally much from each number of tasks to the
/// next.
fn rising(values: &[(u32, f64)], rise: f64) -> Vec<(u32, f64)> {
    let mut sizes: Vec<u32> = values.iter().map(|v| v.0).collect();
    sizes.sort_unstable();
    sizes.dedup();
    let step = rise * typical(values) / (sizes.len().max(2) - 1) as f64;
    let place = |tasks: u32| sizes.iter().position(|s| *s == tasks).unwrap_or(0);
    let up = |(tasks, v): &(u32, f64)| (*tasks, v + step * place(*tasks) as f64);
    values.iter().map(up).collect()
}

#[cfg(test)]
mod tests {
    use super::super::results::{cells, tests::taken};
    use super::*;

    /// Four runs at each of three numbers of tasks, whose means lie around 10 µs and rise so much
    /// from one number to the next.
    fn rising_by(step: i64) -> Cells {
        let mut samples = Vec::new();
        for run in 0..12_u32 {
            let place = i64::from(run % 3);
            let noise = i64::from(run * 7 % 5) * 40;
            let level = 10_000 + place * step + noise;
            samples.extend(taken("g-edf", 4 << place, run, level..level + 10));
        }
        cells(&samples)
    }

    #[test]
    fn a_rise_is_found_and_none_is_not() {
        let risen = test(&rising_by(3_000), Value::Average, 1).unwrap();
        assert!(
            risen.depends && risen.z > 0.0 && risen.tau > 0.9,
            "{risen:?}"
        );
        assert!((risen.change.unwrap() - 0.6).abs() < 0.05, "{risen:?}");
        let flat = test(&rising_by(0), Value::Average, 1).unwrap();
        assert!(!flat.depends, "{flat:?}");
        assert_eq!((flat.values, flat.strata), (12, 1));
        let fallen = test(&rising_by(-3_000), Value::Maximum, 1).unwrap();
        assert!(fallen.depends && fallen.z < 0.0);
    }

    #[test]
    fn power_grows_with_the_rise_and_is_told() {
        let flat = test(&rising_by(0), Value::Average, 1).unwrap();
        assert!(
            flat.power.is_sorted_by(|a, b| a.1 <= b.1),
            "{:?}",
            flat.power
        );
        // The noise is 160 ns of 10 µs: a rise of a tenth cannot be missed.
        assert!(flat.finds.is_some_and(|rise| rise <= 0.1), "{flat:?}");
    }

    #[test]
    fn one_number_of_tasks_tells_nothing() {
        let cells = cells(&taken("g-edf", 4, 0, 0..30));
        assert_eq!(test(&cells, Value::Average, 1), None);
    }
}
