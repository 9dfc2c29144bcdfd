//! Places of a domain: sets of them, and which are near to which by the caches that they share.

use model::{CpuId, Platform, Resumption};

/// A set of places, as bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places(Vec<u64>);

impl Places {
    /// None of `count` places.
    pub fn none(count: usize) -> Self {
        Places(vec![0; count.div_ceil(64).max(1)])
    }

    /// All of `count` places.
    pub fn all(count: usize) -> Self {
        let mut places = Self::none(count);
        for place in 0..count {
            places.insert(place as u32);
        }
        places
    }

    /// Puts a place in.
    #[inline]
    pub fn insert(&mut self, place: u32) {
        self.0[place as usize / 64] |= 1 << (place % 64);
    }

    /// Takes a place out.
    #[inline]
    pub fn remove(&mut self, place: u32) {
        self.0[place as usize / 64] &= !(1 << (place % 64));
    }

    /// Is it in?
    #[inline]
    pub fn contains(&self, place: u32) -> bool {
        self.0[place as usize / 64] & 1 << (place % 64) != 0
    }

    /// Is none in?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.0.iter().all(|word| *word == 0)
    }

    /// The lowest place.
    #[inline]
    pub fn lowest(&self) -> Option<u32> {
        lowest(self.0.iter().copied())
    }

    /// The lowest place that is in both sets.
    #[inline]
    pub fn lowest_also_in(&self, other: &Places) -> Option<u32> {
        lowest(self.0.iter().zip(&other.0).map(|(a, b)| a & b))
    }
}

#[inline]
fn lowest(words: impl Iterator<Item = u64>) -> Option<u32> {
    for (index, word) in words.enumerate() {
        if word != 0 {
            return Some(index as u32 * 64 + word.trailing_zeros());
        }
    }
    None
}

/// For each place of a domain, the places around it, nearest cache first.
#[derive(Clone, Debug)]
pub struct Nearness {
    /// Per place, sets that widen: those behind its nearest shared cache, …, behind its outermost shared cache.
    around: Vec<Vec<Places>>,
}

impl Nearness {
    /// Of the processors of one domain, in the order of their places.
    pub fn of(platform: &Platform, cpus: &[CpuId]) -> Self {
        let levels = platform.data_levels();
        let around = cpus
            .iter()
            .map(|from| {
                let mut rings: Vec<Places> = Vec::new();
                for level in &levels {
                    let mut ring = Places::none(cpus.len());
                    for (place, to) in cpus.iter().enumerate() {
                        match platform.resumption(*from, *to) {
                            Resumption::Preemption => ring.insert(place as u32),
                            Resumption::Migration(nearest) if nearest <= *level => ring.insert(place as u32),
                            _ => {}
                        }
                    }
                    if rings.last() != Some(&ring) {
                        rings.push(ring);
                    }
                }
                rings
            })
            .collect();
        Nearness { around }
    }

    /// The place of `free` that is nearest to `from`, the lowest of several; the lowest of all where `from` is
    /// [`NONE`](crate::NONE).
    #[inline]
    pub fn nearest(&self, free: &Places, from: u32) -> Option<u32> {
        if let Some(rings) = self.around.get(from as usize) {
            if free.contains(from) {
                return Some(from);
            }
            for ring in rings {
                if let Some(place) = free.lowest_also_in(ring) {
                    return Some(place);
                }
            }
        }
        free.lowest()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Bytes, Cache, CacheKind};

    #[test]
    fn the_nearest_free_place_shares_the_nearest_cache() {
        let mut platform = Platform::symmetric(130);
        platform.caches = vec![Cache {
            level: 2,
            kind: CacheKind::Unified,
            size: Some(Bytes::new(1 << 20)),
            ways: None,
            line: None,
            sets: None,
            shared_by: "100-101,129".parse().unwrap(),
        }];
        let cpus: Vec<CpuId> = (0..130).map(CpuId).collect();
        let near = Nearness::of(&platform, &cpus);
        let mut free = Places::none(130);
        for place in [3, 100, 129] {
            free.insert(place);
        }
        assert_eq!(near.nearest(&free, 129), Some(129), "where it ran");
        assert_eq!(near.nearest(&free, 101), Some(100), "behind the same cache");
        assert_eq!(near.nearest(&free, 7), Some(3), "the lowest");
        assert_eq!(near.nearest(&free, crate::NONE), Some(3), "never ran");
        free.remove(3);
        assert_eq!(free.lowest(), Some(100));
        assert_eq!(near.nearest(&Places::none(130), 1), None);
        assert!(!Places::all(130).is_empty() && Places::none(130).is_empty());
    }
}
