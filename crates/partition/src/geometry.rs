//! What a cache's geometry says about its colors.
//!
//! 001 §3.1: a cache whose way holds several pages has as many colors as a way holds pages. Assumes
//! physical indexing by the bits above the offset in a line; what a machine hashes is found by
//! timing ([`crate::finder`]).

use model::{Bytes, Cache, CpuId, CpuSet, Error, Platform, Result};
use serde::Serialize;

/// Bytes of a page: what a color is given out in.
pub const PAGE: usize = 4096;

/// A cache as coloring sees it.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Geometry {
    /// Its level.
    pub level: u8,
    /// Its size.
    pub size: Bytes,
    /// Associativity.
    pub ways: u32,
    /// How many pages a way holds: the number of colors, if all bits of the index are used as they
    /// are.
    pub colors: u16,
    /// Is the number of sets a power of two? Where it is not, the index is hashed over slices.
    pub sliced: bool,
    /// The processors that share it.
    pub shared_by: CpuSet,
}

impl Geometry {
    /// Of the data cache of a level that serves a processor.
    ///
    /// # Errors
    /// There is none, or the machine does not tell its size or associativity, or it has more colors
    /// than can be.
    pub fn of(platform: &Platform, level: u8, cpu: CpuId) -> Result<Self> {
        let cache = platform.data_cache(level, cpu).ok_or_else(|| {
            Error::new(format!("processor {cpu} has no level-{level} data cache")).remedy(format!(
                "levels of this machine: {:?}",
                platform.data_levels()
            ))
        })?;
        Self::of_cache(cache)
    }

    /// Of a cache.
    ///
    /// # Errors
    /// As [`Geometry::of`].
    pub fn of_cache(cache: &Cache) -> Result<Self> {
        let (Some(size), Some(ways)) = (cache.size, cache.ways) else {
            return Err(Error::new(format!(
                "the machine does not tell size and associativity of its {}",
                cache.label()
            ))
            .remedy("colors of this cache cannot be found; look at another level"));
        };
        let way = size.get() / u64::from(ways.max(1));
        let pages = way / PAGE as u64;
        let colors = u16::try_from(pages.max(1)).map_err(|_| {
            Error::new(format!(
                "a way of the {} holds {pages} pages: more colors than there can be",
                cache.label()
            ))
        })?;
        let line = u64::from(cache.line.unwrap_or(64).max(1));
        let sets = cache.sets.map_or(way / line, u64::from);
        Ok(Geometry {
            level: cache.level,
            size,
            ways,
            colors,
            sliced: !sets.is_power_of_two(),
            shared_by: cache.shared_by.clone(),
        })
    }

    /// How much of the cache one color is.
    pub fn of_one_color(&self) -> Bytes {
        Bytes::new(self.size.get() / u64::from(self.colors.max(1)))
    }

    /// Its short name.
    pub fn name(&self) -> String {
        format!("L{}", self.level)
    }
}

/// Is the system's page the one that is colored here?
///
/// # Errors
/// Pages are larger or smaller.
pub fn check_page_size() -> Result<()> {
    let page = rustix::param::page_size();
    if page == PAGE {
        return Ok(());
    }
    Err(Error::new(format!(
        "pages of {page} bytes cannot be colored: {PAGE} are expected"
    ))
    .remedy("use a kernel with pages of 4 KiB"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::CacheKind;

    fn cache(level: u8, kib: u64, ways: u32) -> Cache {
        Cache {
            level,
            kind: CacheKind::Unified,
            size: Some(Bytes::from_kib(kib)),
            ways: Some(ways),
            line: Some(64),
            sets: None,
            shared_by: CpuSet::first(1),
            strategy: model::Strategy::default(),
        }
    }

    /// 004 §II-A: 8 MiB, 16 ways: page 128 has the color of page 0.
    #[test]
    fn the_shared_cache_of_004_has_128_colors() {
        assert_eq!(Geometry::of_cache(&cache(3, 8192, 16)).unwrap().colors, 128);
    }

    /// 001 Table 1: 256 KiB, direct mapped: 64 colors; 4-way: 16 colors; first levels have one.
    #[test]
    fn the_caches_of_001_have_the_colors_of_its_table() {
        assert_eq!(Geometry::of_cache(&cache(2, 256, 1)).unwrap().colors, 64);
        assert_eq!(Geometry::of_cache(&cache(2, 256, 4)).unwrap().colors, 16);
        assert_eq!(Geometry::of_cache(&cache(1, 16, 4)).unwrap().colors, 1);
    }

    #[test]
    fn a_cache_in_slices_is_told_by_its_sets() {
        let g = Geometry::of_cache(&cache(3, 266_240, 20)).unwrap();
        assert!(g.sliced, "{g:?}");
        assert!(!Geometry::of_cache(&cache(2, 2048, 16)).unwrap().sliced);
    }

    #[test]
    fn what_the_machine_does_not_tell_is_refused() {
        let mut unknown = cache(2, 256, 4);
        unknown.ways = None;
        let e = Geometry::of_cache(&unknown).unwrap_err().to_string();
        assert!(e.contains("associativity"), "{e}");
    }
}
