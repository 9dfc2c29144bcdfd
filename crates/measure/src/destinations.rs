//! Where the measuring thread goes next: probabilities that give every kind of resumption equally
//! many samples.
//!
//! 000 §3.2: destinations are random, with probabilities such that preemptions and each kind of
//! migration happen with the same frequency. From each processor a kind is drawn by its weight,
//! then a processor of that kind uniformly. Where every processor reaches every kind, equal weights
//! do. Elsewhere (a core that shares its L2 with nobody) the weights are found by iteration on the
//! flow of the Markov chain, until every kind has the same share.

use model::{CpuId, CpuSet, Platform, Resumption};
use rand::{Rng, RngExt};

/// Transition probabilities between the processors of a measurement.
#[derive(Clone, Debug)]
pub struct Destinations {
    cpus: Vec<CpuId>,
    kinds: Vec<Resumption>,
    /// For each processor and each kind, the processors that it reaches in that way.
    reach: Vec<Vec<Vec<usize>>>,
    /// For each kind its weight.
    weights: Vec<f64>,
}

impl Destinations {
    /// The probabilities among these processors of a platform.
    pub fn among(platform: &Platform, cpus: &CpuSet) -> Self {
        let cpus: Vec<CpuId> = cpus.iter().collect();
        let mut kinds: Vec<Resumption> = cpus
            .iter()
            .flat_map(|a| cpus.iter().map(|b| platform.resumption(*a, *b)))
            .collect();
        kinds.sort_unstable();
        kinds.dedup();
        let reach = cpus
            .iter()
            .map(|from| {
                kinds
                    .iter()
                    .map(|kind| {
                        (0..cpus.len())
                            .filter(|to| platform.resumption(*from, cpus[*to]) == *kind)
                            .collect()
                    })
                    .collect()
            })
            .collect();
        let mut destinations = Destinations {
            weights: vec![1.0; kinds.len()],
            cpus,
            kinds,
            reach,
        };
        destinations.balance();
        destinations
    }

    /// The kinds of resumption that happen, in order.
    pub fn kinds(&self) -> &[Resumption] {
        &self.kinds
    }

    /// The share of each kind in a long run, in the order of [`Destinations::kinds`].
    pub fn shares(&self) -> Vec<f64> {
        let stay = self.stationary();
        (0..self.kinds.len())
            .map(|kind| {
                (0..self.cpus.len())
                    .map(|from| stay[from] * self.probability_of_kind(from, kind))
                    .sum()
            })
            .collect()
    }

    fn probability_of_kind(&self, from: usize, kind: usize) -> f64 {
        let reach = &self.reach[from];
        if reach[kind].is_empty() {
            return 0.0;
        }
        let total: f64 = (0..self.kinds.len())
            .filter(|k| !reach[*k].is_empty())
            .map(|k| self.weights[k])
            .sum();
        self.weights[kind] / total
    }

    /// How much of the time the thread is on each processor in a long run.
    fn stationary(&self) -> Vec<f64> {
        let n = self.cpus.len();
        let mut stay = vec![1.0 / n as f64; n];
        for _ in 0..300 {
            let mut next = vec![0.0; n];
            for (from, here) in stay.iter().enumerate() {
                for (kind, targets) in self.reach[from].iter().enumerate() {
                    let part =
                        here * self.probability_of_kind(from, kind) / targets.len().max(1) as f64;
                    for to in targets {
                        next[*to] += part;
                    }
                }
            }
            stay = next;
        }
        stay
    }

    /// Moves the weights until every kind has its share. Where the shape of the machine forbids it,
    /// as near as it gets.
    fn balance(&mut self) {
        let everywhere = self
            .reach
            .iter()
            .all(|kinds| kinds.iter().all(|c| !c.is_empty()));
        if everywhere {
            return;
        }
        let target = 1.0 / self.kinds.len() as f64;
        for _ in 0..200 {
            let shares = self.shares();
            if shares
                .iter()
                .all(|share| (share / target - 1.0).abs() < 1e-3)
            {
                return;
            }
            for (weight, share) in self.weights.iter_mut().zip(shares) {
                *weight = (*weight * (target / share.max(1e-9)).sqrt()).clamp(1e-6, 1e6);
            }
        }
    }

    /// A processor to start from.
    pub fn start<R: Rng>(&self, rng: &mut R) -> CpuId {
        self.cpus[rng.random_range(0..self.cpus.len())]
    }

    /// The next processor after `from`.
    pub fn next<R: Rng>(&self, from: CpuId, rng: &mut R) -> CpuId {
        let index = self.cpus.iter().position(|c| *c == from).unwrap_or(0);
        let mut at: f64 = rng.random();
        for (kind, targets) in self.reach[index].iter().enumerate() {
            let probability = self.probability_of_kind(index, kind);
            if at < probability && !targets.is_empty() {
                return self.cpus[targets[rng.random_range(0..targets.len())]];
            }
            at -= probability;
        }
        // Only rounding leads here: staying is always possible.
        from
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, Cache, CacheKind};
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    fn with_caches(m: u32, caches: &[(u8, &str)]) -> Platform {
        let mut platform = Platform::symmetric(m);
        platform.caches = caches
            .iter()
            .map(|(level, cpus)| Cache {
                level: *level,
                kind: CacheKind::Unified,
                size: Some(Bytes::from_mib(1)),
                ways: None,
                line: Some(64),
                sets: None,
                shared_by: cpus.parse().unwrap(),
                strategy: model::Strategy::default(),
            })
            .collect();
        platform
    }

    fn assert_equal_shares(platform: &Platform, kinds: usize) {
        let destinations = Destinations::among(platform, &platform.usable());
        assert_eq!(destinations.kinds().len(), kinds);
        for share in destinations.shares() {
            assert!(
                (share * kinds as f64 - 1.0).abs() < 0.01,
                "{:?}",
                destinations.shares()
            );
        }
    }

    #[test]
    fn every_kind_has_the_same_share_on_machines_of_different_shapes() {
        assert_equal_shares(&with_caches(1, &[]), 1);
        assert_equal_shares(&with_caches(2, &[(3, "0-1")]), 2);
        assert_equal_shares(&Platform::builtin("xeon-l7455").unwrap(), 4);
        // One core without a neighbor in its L2.
        assert_equal_shares(&with_caches(3, &[(2, "0-1"), (2, "2"), (3, "0-2")]), 3);
        // A big cluster and a small one, and nothing shared between.
        assert_equal_shares(&with_caches(6, &[(2, "0-3"), (2, "4-5")]), 3);
    }

    #[test]
    fn what_is_drawn_has_the_shares() {
        let platform = Platform::builtin("xeon-l7455").unwrap();
        let destinations = Destinations::among(&platform, &platform.usable());
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut counts = vec![0u32; destinations.kinds().len()];
        let mut from = destinations.start(&mut rng);
        for _ in 0..40_000 {
            let to = destinations.next(from, &mut rng);
            let kind = platform.resumption(from, to);
            counts[destinations
                .kinds()
                .iter()
                .position(|k| *k == kind)
                .unwrap()] += 1;
            from = to;
        }
        for count in &counts {
            assert!(count.abs_diff(10_000) < 500, "{counts:?}");
        }
    }
}
