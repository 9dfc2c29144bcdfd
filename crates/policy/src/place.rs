//! Places of a domain: sets of them, and which are near to which by the caches that they share.

use crate::ids::Place;
use model::{CpuId, Platform, Resumption};
use std::hint::select_unpredictable;

/// A set of places, as bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Places {
    /// The first 64 places, and that is all on most machines.
    first: u64,
    /// The others.
    more: Vec<u64>,
}

impl Places {
    /// None of `count` places.
    pub fn none(count: usize) -> Self {
        Places {
            first: 0,
            more: vec![0; count.div_ceil(64).saturating_sub(1)],
        }
    }

    /// All of `count` places.
    pub fn all(count: usize) -> Self {
        let mut places = Self::none(count);
        for place in Place::all(count) {
            places.insert(place);
        }
        places
    }

    #[inline(always)]
    fn word(&mut self, place: Place) -> &mut u64 {
        match place.0 / 64 {
            0 => &mut self.first,
            word => &mut self.more[word as usize - 1],
        }
    }

    /// Puts a place in.
    #[inline(always)]
    pub fn insert(&mut self, place: Place) {
        *self.word(place) |= 1 << (place.0 % 64);
    }

    /// Takes a place out.
    #[inline(always)]
    pub fn remove(&mut self, place: Place) {
        *self.word(place) &= !(1 << (place.0 % 64));
    }

    /// Takes a place out, if it is in; [`Place::NONE`] never is. Was it in?
    #[inline(always)]
    pub fn take(&mut self, place: Place) -> bool {
        if self.more.is_empty() {
            let bit = u64::from(place.0 < 64) << (place.0 % 64);
            let was = self.first & bit != 0;
            self.first &= !bit;
            return was;
        }
        let is_in = place != Place::NONE && self.contains(place);
        if is_in {
            self.remove(place);
        }
        is_in
    }

    /// Is it in?
    #[inline(always)]
    pub fn contains(&self, place: Place) -> bool {
        let word = match place.0 / 64 {
            0 => self.first,
            word => self.more[word as usize - 1],
        };
        word & 1 << (place.0 % 64) != 0
    }

    /// Is none in?
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.first == 0 && self.more.iter().all(|word| *word == 0)
    }

    /// The places, ascending.
    #[inline]
    pub fn iter(&self) -> impl Iterator<Item = Place> {
        let words = std::iter::once(self.first).chain(self.more.iter().copied());
        words.zip((0u32..).step_by(64)).flat_map(|(word, base)| {
            let some = |word: u64| (word != 0).then_some(word);
            let words = std::iter::successors(some(word), move |word| some(word & (word - 1)));
            words.map(move |word| Place(base + word.trailing_zeros()))
        })
    }

    /// The lowest place.
    #[inline(always)]
    pub fn lowest(&self) -> Option<Place> {
        self.lowest_from(Place(0))
    }

    /// The lowest place from this one on.
    #[inline(always)]
    pub fn lowest_from(&self, from: Place) -> Option<Place> {
        let not_before = |word: u64, base: u32| match from.0.saturating_sub(base) {
            skipped @ 0..64 => word >> skipped << skipped,
            _ => 0,
        };
        match not_before(self.first, 0) {
            0 if self.more.is_empty() => None,
            0 => {
                let more = self.more.iter().zip((64u32..).step_by(64));
                lowest(std::iter::once(0).chain(more.map(|(word, base)| not_before(*word, base))))
            }
            first => Some(Place(first.trailing_zeros())),
        }
    }

    /// The lowest place that is in both sets.
    #[inline]
    pub fn lowest_also_in(&self, other: &Places) -> Option<Place> {
        let more = self.more.iter().zip(&other.more).map(|(a, b)| a & b);
        lowest(std::iter::once(self.first & other.first).chain(more))
    }
}

#[inline]
fn lowest(words: impl Iterator<Item = u64>) -> Option<Place> {
    for (index, word) in words.enumerate() {
        if word != 0 {
            return Some(Place(index as u32 * 64 + word.trailing_zeros()));
        }
    }
    None
}

/// For each place of a domain, the places around it, nearest cache first.
#[derive(Clone, Debug)]
pub struct Nearness {
    /// Per place, sets that widen: those behind its nearest shared cache, …, behind its outermost
    /// shared cache.
    around: Vec<Vec<Places>>,
    /// The same for domains of at most 64 places: per place a row of `levels` words that widen,
    /// from the place itself to all; behind the last place a row of all for [`Place::NONE`].
    /// Empty for larger domains.
    words: Vec<u64>,
    levels: usize,
}

impl Nearness {
    /// Of the processors of one domain, in the order of their places.
    pub fn of(platform: &Platform, cpus: &[CpuId]) -> Self {
        let levels = platform.data_levels();
        let around: Vec<Vec<Places>> = cpus
            .iter()
            .map(|from| {
                let mut rings: Vec<Places> = Vec::new();
                for level in &levels {
                    let mut ring = Places::none(cpus.len());
                    for (place, to) in Place::all(cpus.len()).zip(cpus) {
                        match platform.resumption(*from, *to) {
                            Resumption::Preemption => ring.insert(place),
                            Resumption::Migration(nearest) if nearest <= *level => {
                                ring.insert(place)
                            }
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
        let levels = around.iter().map(Vec::len).max().unwrap_or(0) + 2;
        let words = if cpus.len() <= 64 {
            let row = |place: usize| {
                let rings = around[place].iter().map(|ring| ring.first);
                let all = std::iter::repeat(u64::MAX);
                std::iter::once(1 << place)
                    .chain(rings)
                    .chain(all)
                    .take(levels)
            };
            let rows = (0..cpus.len()).flat_map(row);
            rows.chain(std::iter::repeat_n(u64::MAX, levels)).collect()
        } else {
            Vec::new()
        };
        Nearness {
            around,
            words,
            levels,
        }
    }

    /// The place of `free` that is nearest to `from`, the lowest of several; the lowest of all
    /// where `from` is [`Place::NONE`].
    #[inline(always)]
    pub fn nearest(&self, free: &Places, from: Place) -> Option<Place> {
        if self.words.is_empty() {
            return self.nearest_of_many(free, from);
        }
        let row = from.index().min(self.around.len()) * self.levels;
        let mut nearest = 0;
        // The widest first, and the nearest that has one wins: no branch that depends on where jobs
        // ran.
        for ring in self.words[row..row + self.levels].iter().rev() {
            let here = free.first & ring;
            nearest = select_unpredictable(here != 0, here, nearest);
        }
        (nearest != 0).then(|| Place(nearest.trailing_zeros()))
    }

    #[cold]
    fn nearest_of_many(&self, free: &Places, from: Place) -> Option<Place> {
        if let Some(rings) = self.around.get(from.index()) {
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
    use crate::ids::Place;
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
            strategy: model::Strategy::default(),
        }];
        let cpus: Vec<CpuId> = (0..130).map(CpuId).collect();
        let near = Nearness::of(&platform, &cpus);
        let mut free = Places::none(130);
        for place in [3, 100, 129].map(Place) {
            free.insert(place);
        }
        let nearest = |from| near.nearest(&free, from).map(|place| place.0);
        assert_eq!(nearest(Place(129)), Some(129), "where it ran");
        assert_eq!(nearest(Place(101)), Some(100), "behind the same cache");
        assert_eq!(nearest(Place(7)), Some(3), "the lowest");
        assert_eq!(nearest(Place::NONE), Some(3), "never ran");
        let mut few = Places::all(8);
        for places in [&mut few, &mut free] {
            assert_eq!(
                [Place(3), Place(3), Place::NONE].map(|place| places.take(place)),
                [true, false, false]
            );
        }
        assert!(free.clone().take(Place(129)) && !free.clone().take(Place(128)));
        assert_eq!(free.lowest(), Some(Place(100)));
        let from = [0, 100, 101, 129, 130].map(|place| free.lowest_from(Place(place)));
        let lowest = [Some(100), Some(100), Some(129), Some(129), None];
        assert_eq!(from, lowest.map(|place| place.map(Place)));
        assert_eq!(Places::all(64).lowest_from(Place(63)), Some(Place(63)));
        assert_eq!(Places::all(64).lowest_from(Place(64)), None);
        assert_eq!(near.nearest(&Places::none(130), Place(1)), None);
        assert_eq!(Places::all(130).iter().count(), 130);
        assert!(!Places::all(130).is_empty() && Places::none(130).is_empty());
    }

    #[test]
    fn few_places_and_many_are_searched_alike() {
        let mut platform = Platform::symmetric(8);
        let cache = |level, shared_by: &str| Cache {
            level,
            kind: CacheKind::Unified,
            size: Some(Bytes::new(1 << 20)),
            ways: None,
            line: None,
            sets: None,
            shared_by: shared_by.parse().unwrap(),
            strategy: model::Strategy::default(),
        };
        platform.caches = vec![
            cache(2, "0-1"),
            cache(2, "2-3"),
            cache(2, "4-5"),
            cache(3, "0-3"),
            cache(3, "4-7"),
        ];
        let cpus: Vec<CpuId> = (0..8).map(CpuId).collect();
        let near = Nearness::of(&platform, &cpus);
        for bits in 0u32..256 {
            let mut free = Places::none(8);
            for place in Place::all(8).filter(|place| bits & 1 << place.0 != 0) {
                free.insert(place);
            }
            for from in Place::all(8).chain([Place::NONE]) {
                assert_eq!(
                    near.nearest(&free, from),
                    near.nearest_of_many(&free, from),
                    "{bits:b} {from:?}"
                );
            }
        }
    }
}
