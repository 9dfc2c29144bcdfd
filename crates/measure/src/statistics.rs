//! Statistics of the samples of a cell: mean, deviation, percentiles, bootstrap interval of the
//! mean.
//!
//! Bootstrap: percentile interval of resampled means (Efron, "Bootstrap methods: another look at
//! the jackknife", 1979).

use crate::interval;
use model::{Delay, Duration};
use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// Resamples of the bootstrap.
const RESAMPLES: usize = 1000;
/// A percentile is told when at least this many samples lie beyond it.
const BEYOND: f64 = 5.0;

/// The mean, rounded to the nearest nanosecond; `None` without samples.
pub fn mean(samples: &[Delay]) -> Option<Delay> {
    let n = i128::try_from(samples.len()).ok().filter(|n| *n > 0)?;
    let sum: i128 = samples.iter().map(|d| i128::from(d.nanos())).sum();
    Some(Delay::from_nanos(round_to_i64(sum as f64 / n as f64)))
}

/// The standard deviation with n − 1; `None` for fewer than two samples.
pub fn deviation(samples: &[Delay]) -> Option<Duration> {
    let n = samples.len();
    if n < 2 {
        return None;
    }
    let mean = samples.iter().map(|d| d.nanos() as f64).sum::<f64>() / n as f64;
    let squares: f64 = samples
        .iter()
        .map(|d| (d.nanos() as f64 - mean).powi(2))
        .sum();
    Some(Duration::from_nanos(
        (squares / (n - 1) as f64).sqrt().round() as u64,
    ))
}

/// The 50th, 90th, 99th and 99.9th percentile by nearest rank, those that enough samples lie
/// beyond. The median always.
pub fn percentiles(samples: &[Delay]) -> Vec<(f64, Delay)> {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable();
    let n = sorted.len();
    [50.0, 90.0, 99.0, 99.9]
        .into_iter()
        .filter(|p| n > 0 && (*p == 50.0 || n as f64 * (100.0 - p) / 100.0 >= BEYOND - 1e-9))
        .map(|p| {
            // Nearest rank; the small subtraction keeps 0.999 × 5000 from rounding up to the next
            // rank.
            let rank = (n as f64 * p / 100.0 - 1e-9).ceil() as usize;
            (p, sorted[rank.clamp(1, n) - 1])
        })
        .collect()
}

/// The 95 % bootstrap interval of the mean; `None` for fewer than two samples. The same seed gives
/// the same interval.
///
/// Samples of one block share a placement in memory and its luck, so they are drawn in two stages:
/// blocks, then samples of each block drawn. `blocks` names the block of every sample; the samples
/// of a block stand together.
pub fn mean_interval(samples: &[Delay], blocks: &[u32], seed: u64) -> Option<(Delay, Delay)> {
    if samples.len() < 2 || samples.len() != blocks.len() {
        return None;
    }
    let groups = grouped(samples, blocks);
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut means: Vec<f64> = (0..RESAMPLES)
        .map(|_| {
            let (mut sum, mut count) = (0_i128, 0_usize);
            for _ in 0..groups.len() {
                let group = groups[rng.random_range(0..groups.len())];
                count += group.len();
                sum += (0..group.len())
                    .map(|_| i128::from(group[rng.random_range(0..group.len())].nanos()))
                    .sum::<i128>();
            }
            sum as f64 / count as f64
        })
        .collect();
    means.sort_unstable_by(f64::total_cmp);
    let at = |part: f64| {
        let index = (RESAMPLES as f64 * part) as usize;
        Delay::from_nanos(round_to_i64(means[index.min(RESAMPLES - 1)]))
    };
    Some((at(0.025), at(0.975)))
}

/// The samples of each block.
fn grouped<'a>(samples: &'a [Delay], blocks: &[u32]) -> Vec<&'a [Delay]> {
    let mut rest = samples;
    blocks
        .chunk_by(|a, b| a == b)
        .map(|block| {
            let (group, others) = rest.split_at(block.len());
            rest = others;
            group
        })
        .collect()
}

/// The 95 % interval of the largest sample, by ranks of windows within the blocks
/// ([`interval::largest`]); `blocks` as in [`mean_interval`]. `None` for few samples.
pub fn maximum_interval(samples: &[Delay], blocks: &[u32]) -> Option<(Delay, Delay)> {
    match samples.len() == blocks.len() {
        true => interval::largest(&grouped(samples, blocks)),
        false => None,
    }
}

fn round_to_i64(value: f64) -> i64 {
    value.round() as i64
}

/// The quantile `q` in [0, 1] of unsorted numbers, by nearest rank; zero without numbers.
pub fn quantile(values: &mut [u64], q: f64) -> u64 {
    if values.is_empty() {
        return 0;
    }
    let rank = ((values.len() as f64 * q).ceil() as usize).clamp(1, values.len()) - 1;
    *values.select_nth_unstable(rank).1
}

/// The median of unsorted numbers; zero without numbers.
pub fn median(values: &mut [u64]) -> u64 {
    quantile(values, 0.5)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn delays(ns: &[i64]) -> Vec<Delay> {
        ns.iter().copied().map(Delay::from_nanos).collect()
    }

    #[test]
    fn known_data_has_known_statistics() {
        // Mean 5, sum of squares 32, n − 1 = 7: deviation 2.138 (rounded 2).
        let d = delays(&[2, 4, 4, 4, 5, 5, 7, 9]);
        assert_eq!(mean(&d).unwrap().nanos(), 5);
        assert_eq!(deviation(&d).unwrap().nanos(), 2);
        let large: Vec<Delay> = d
            .iter()
            .map(|x| Delay::from_nanos(x.nanos() * 1000))
            .collect();
        assert_eq!(deviation(&large).unwrap().nanos(), 2138);
        assert_eq!(
            mean(&delays(&[-3, -4])).unwrap().nanos(),
            -4,
            "−3.5 rounds away from zero"
        );
        assert!(
            mean(&[]).is_none()
                && deviation(&d[..1]).is_none()
                && mean_interval(&d[..1], &[0], 1).is_none()
        );
    }

    #[test]
    fn percentiles_are_told_only_where_samples_support_them() {
        let d: Vec<Delay> = (1..=5000).map(Delay::from_nanos).collect();
        let told: Vec<(f64, i64)> = percentiles(&d)
            .iter()
            .map(|(p, v)| (*p, v.nanos()))
            .collect();
        assert_eq!(
            told,
            [(50.0, 2500), (90.0, 4500), (99.0, 4950), (99.9, 4995)]
        );
        let names = |n: usize| {
            percentiles(&d[..n])
                .iter()
                .map(|(p, _)| *p)
                .collect::<Vec<_>>()
        };
        assert_eq!(names(4999), [50.0, 90.0, 99.0]);
        assert_eq!(names(499), [50.0, 90.0]);
        assert_eq!(names(49), [50.0]);
        assert_eq!(names(1), [50.0]);
        assert!(names(0).is_empty());
    }

    #[test]
    fn the_interval_holds_the_mean_and_narrows_with_samples() {
        let spread =
            |n: i64| -> Vec<Delay> { (0..n).map(|i| Delay::from_nanos(i * 7919 % 1000)).collect() };
        let width = |n| {
            let d = spread(n);
            let (low, high) = mean_interval(&d, &vec![0; d.len()], 3).unwrap();
            let m = mean(&d).unwrap();
            assert!(low <= m && m <= high);
            high.nanos() - low.nanos()
        };
        // The standard error falls with the root of the number: a hundred times the samples, a
        // tenth of the width.
        let (few, many) = (width(100), width(10_000));
        assert!(many * 7 < few && few < many * 14, "{few} {many}");
        // 1.96 × 288.7 / √100 on both sides: about 113.
        assert!((90..140).contains(&few), "{few}");
    }

    #[test]
    fn the_interval_covers_what_differs_from_block_to_block() {
        // Ten blocks of fifty samples, each within 1 ns of its block's own level: only the levels
        // are uncertain.
        let levels = [100, 900, 400, 600, 200, 800, 300, 700, 500, 500];
        let d: Vec<Delay> = (0..500)
            .map(|i| Delay::from_nanos(levels[i / 50] + (i % 2) as i64))
            .collect();
        let apart: Vec<u32> = (0..500).map(|i| i / 50).collect();
        let width = |blocks: &[u32]| {
            let (low, high) = mean_interval(&d, blocks, 3).unwrap();
            high.nanos() - low.nanos()
        };
        // Standard error of ten levels with deviation 245: 77, so about 304 from end to end; as if
        // independent: 43.
        assert!((240..370).contains(&width(&apart)), "{}", width(&apart));
        assert!((30..60).contains(&width(&[0; 500])), "{}", width(&[0; 500]));
    }

    proptest! {
        #[test]
        fn statistics_stay_within_the_samples(
            ns in prop::collection::vec(-1_000_000i64..1_000_000, 2..200),
        ) {
            let d = delays(&ns);
            let (low, high) = (*d.iter().min().unwrap(), *d.iter().max().unwrap());
            let m = mean(&d).unwrap();
            prop_assert!(low <= m && m <= high);
            let told = percentiles(&d);
            prop_assert!(told.windows(2).all(|w| w[0].1 <= w[1].1));
            let blocks: Vec<u32> = (0..d.len() as u32).map(|i| i / 7).collect();
            let (a, b) = mean_interval(&d, &blocks, 5).unwrap();
            prop_assert!(low <= a && a <= b && b <= high);
            prop_assert_eq!(mean_interval(&d, &blocks, 5), Some((a, b)));
        }
    }
}
