//! Does a cost rise with the number of tasks? 002 §5.1 takes a constant where the measurements
//! reveal no conclusive trend, and does not say how it decides.
//!
//! Here the test of Mann (1945) and Kendall decides, which asks for no shape of the curve and no
//! distribution: S counts the pairs in which the larger set costs more, less those in which it
//! costs less. Without a trend S has mean 0 and a known variance (with ties: Kendall, "Rank
//! correlation methods", 4th edition, §4.9), and is nearly normal from ten values on. A rise is
//! conclusive where S is so large in at most 5 % of all cases without one.

use serde::Serialize;

/// S so many deviations above its mean: 5 % of a normal distribution lie beyond.
pub const CONCLUSIVE: f64 = 1.645;
/// The normal distribution is no approximation for fewer values.
pub const LEAST_VALUES: usize = 10;

/// What the test found.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Trend {
    /// Kendall's S over its standard deviation, with his correction for continuity; above
    /// [`CONCLUSIVE`]: it rises. Zero where nothing varies.
    pub z: f64,
    /// How many values there were.
    pub values: usize,
    /// Is a rise conclusive?
    pub rises: bool,
}

impl Trend {
    /// Of values (number of tasks, cost in nanoseconds), in any order; several may have the same
    /// number of tasks.
    pub fn of(values: &[(u32, u64)]) -> Trend {
        let (s, variance) = score(values);
        let z = match variance > 0.0 {
            true => (s - s.signum()) as f64 / variance.sqrt(),
            false => 0.0,
        };
        Trend {
            z,
            values: values.len(),
            rises: values.len() >= LEAST_VALUES && z > CONCLUSIVE,
        }
    }
}

/// Kendall's S, and its variance without a trend.
pub fn score(values: &[(u32, u64)]) -> (i64, f64) {
    let mut s = 0_i64;
    for (at, (tasks, cost)) in values.iter().enumerate() {
        for (other_tasks, other) in &values[..at] {
            s += tasks.cmp(other_tasks) as i64 * cost.cmp(other) as i64;
        }
    }
    (s, variance(values))
}

/// The variance of S without a trend, with ties on both sides.
fn variance(values: &[(u32, u64)]) -> f64 {
    let n = values.len() as f64;
    let tasks = ties(values.iter().map(|v| u64::from(v.0)));
    let costs = ties(values.iter().map(|v| v.1));
    let total = |of: fn(f64) -> f64, ties: &[f64]| ties.iter().map(|t| of(*t)).sum::<f64>();
    let first = |t: f64| t * (t - 1.0) * (2.0 * t + 5.0);
    let second = |t: f64| t * (t - 1.0) * (t - 2.0);
    let third = |t: f64| t * (t - 1.0);
    let mut variance = (first(n) - total(first, &tasks) - total(first, &costs)) / 18.0;
    if n > 2.0 {
        variance += total(second, &tasks) * total(second, &costs) / (9.0 * second(n));
        variance += total(third, &tasks) * total(third, &costs) / (2.0 * third(n));
    }
    variance
}

/// How many values each group of equal ones has.
fn ties(values: impl Iterator<Item = u64>) -> Vec<f64> {
    let mut sorted: Vec<u64> = values.collect();
    sorted.sort_unstable();
    sorted
        .chunk_by(|a, b| a == b)
        .map(|group| group.len() as f64)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_rise_and_a_fall_are_told_apart() {
        let rising: Vec<(u32, u64)> = (1..=10).map(|n| (n, u64::from(n) * 7)).collect();
        let falling: Vec<(u32, u64)> = (1..=10).map(|n| (n, 1000 - u64::from(n))).collect();
        // S = 45, variance 10 · 9 · 25 / 18 = 125.
        let trend = Trend::of(&rising);
        assert!((trend.z - 44.0 / 125_f64.sqrt()).abs() < 1e-12);
        assert!(trend.rises);
        assert!(!Trend::of(&falling).rises);
    }

    #[test]
    fn equal_costs_and_few_values_rise_not() {
        let equal: Vec<(u32, u64)> = (1..=20).map(|n| (n, 5)).collect();
        assert_eq!(Trend::of(&equal).z, 0.0);
        let few: Vec<(u32, u64)> = (1..=9).map(|n| (n, u64::from(n))).collect();
        assert!(!Trend::of(&few).rises);
        assert!(!Trend::of(&[]).rises);
    }

    /// All orders of eight costs with ties over eight sizes with ties: mean and variance of S are
    /// what the formula says.
    #[test]
    fn the_variance_is_that_of_all_orders() {
        let tasks = [1, 1, 2, 2, 2, 3, 4];
        let costs = [5, 5, 5, 6, 7, 7, 9];
        let mut order: Vec<usize> = (0..tasks.len()).collect();
        let (mut sum, mut squares, mut count) = (0.0, 0.0, 0.0);
        every_order(&mut order, 0, &mut |order| {
            let mut s = 0_i64;
            for a in 0..tasks.len() {
                for b in 0..a {
                    let by_cost = i64::from(costs[order[a]] > costs[order[b]])
                        - i64::from(costs[order[a]] < costs[order[b]]);
                    s += i64::from(tasks[a] > tasks[b]) * by_cost;
                }
            }
            sum += s as f64;
            squares += (s * s) as f64;
            count += 1.0;
        });
        let values: Vec<(u32, u64)> = tasks.into_iter().zip(costs).collect();
        assert_eq!(sum, 0.0);
        assert!((variance(&values) - squares / count).abs() < 1e-9);
    }

    fn every_order(order: &mut Vec<usize>, from: usize, each: &mut impl FnMut(&[usize])) {
        if from == order.len() {
            each(order);
        }
        for at in from..order.len() {
            order.swap(from, at);
            every_order(order, from + 1, each);
            order.swap(from, at);
        }
    }

    proptest! {
        #[test]
        fn the_order_of_values_does_not_matter(
            mut values in prop::collection::vec((1u32..20, 0u64..50), 0..40)
        ) {
            let trend = Trend::of(&values);
            values.reverse();
            prop_assert_eq!(trend, Trend::of(&values));
        }
    }
}
