//! How durations are distributed: count, mean, largest, percentiles.

use crate::summary::Spread;
use hdrhistogram::Histogram;
use model::Duration;

/// How durations are distributed. Exact for up to [`Distribution::EXACT`] of them; beyond that
/// percentiles are within 1 %, count, mean and maximum still exact, and memory bounded.
#[derive(Clone, Debug, Default)]
pub struct Distribution {
    count: u64,
    sum: u128,
    max: u64,
    exact: Vec<u64>,
    rough: Option<Histogram<u64>>,
}

impl Distribution {
    /// So many values are kept one by one.
    pub const EXACT: usize = 4096;

    /// Takes a value.
    #[inline]
    pub fn record(&mut self, value: Duration) {
        let ns = value.nanos();
        self.count += 1;
        self.sum += u128::from(ns);
        self.max = self.max.max(ns);
        if self.exact.len() < Self::EXACT && self.rough.is_none() {
            self.exact.push(ns);
        } else {
            self.record_roughly(ns);
        }
    }

    fn record_roughly(&mut self, ns: u64) {
        if self.rough.is_none() {
            // Two significant digits: 1 %. The constructor refuses only other numbers of digits.
            let Ok(mut histogram) = Histogram::new(2) else {
                return;
            };
            for old in std::mem::take(&mut self.exact) {
                take(&mut histogram, old);
            }
            self.rough = Some(histogram);
        }
        if let Some(histogram) = &mut self.rough {
            take(histogram, ns);
        }
    }

    /// How many values.
    pub fn count(&self) -> u64 {
        self.count
    }
    /// The largest; zero if there is none.
    pub fn max(&self) -> Duration {
        Duration::from_nanos(self.max)
    }
    /// All values together.
    pub fn total(&self) -> Duration {
        Duration::from_nanos(u64::try_from(self.sum).unwrap_or(u64::MAX))
    }
    /// The mean, rounded down; zero if there is none.
    pub fn mean(&self) -> Duration {
        let mean = self.sum / u128::from(self.count.max(1));
        Duration::from_nanos(u64::try_from(mean).unwrap_or(u64::MAX))
    }
    /// The values at these quantiles, each in [0, 1]: the smallest value that so large a part of
    /// all does not exceed.
    pub fn quantiles<const N: usize>(&self, quantiles: [f64; N]) -> [Duration; N] {
        let mut sorted = self.exact.clone();
        sorted.sort_unstable();
        quantiles.map(|q| {
            Duration::from_nanos(match &self.rough {
                Some(histogram) => histogram.value_at_quantile(q).min(self.max),
                None => {
                    let rank = (q * sorted.len() as f64).ceil() as usize;
                    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0)
                }
            })
        })
    }
    /// For people and JSON.
    pub fn spread(&self) -> Spread {
        let [p50, p90, p99, p999] = self.quantiles([0.5, 0.9, 0.99, 0.999]);
        Spread {
            mean_ns: self.mean().nanos(),
            p50_ns: p50.nanos(),
            p90_ns: p90.nanos(),
            p99_ns: p99.nanos(),
            p999_ns: p999.nanos(),
            max_ns: self.max,
        }
    }
}

fn take(histogram: &mut Histogram<u64>, ns: u64) {
    // It grows as needed; where it cannot, the longest that it holds stands for more.
    if histogram.record(ns).is_err() {
        histogram.saturating_record(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_values_are_told_exactly_and_many_within_a_percent() {
        let mut d = Distribution::default();
        assert_eq!(d.spread(), Spread::default());
        for ms in 1..=100_u64 {
            d.record(Duration::from_millis(ms));
        }
        let s = d.spread();
        assert_eq!(
            (s.p50_ns, s.p90_ns, s.p99_ns),
            (50_000_000, 90_000_000, 99_000_000)
        );
        assert_eq!((s.mean_ns, s.max_ns), (50_500_000, 100_000_000));
        for round in 0..1000_u64 {
            for ms in 1..=100 {
                d.record(Duration::from_nanos(ms * 1_000_000 + round));
            }
        }
        let s = d.spread();
        assert_eq!((d.count(), s.max_ns), (100_100, 100_000_999));
        assert!(s.p50_ns.abs_diff(50_000_000) < 500_000, "{}", s.p50_ns);
        assert!(s.p99_ns.abs_diff(99_000_000) < 990_000, "{}", s.p99_ns);
    }
}
