//! Platforms on which it matters between which processors a job migrates.

use model::{Bytes, Cache, CacheKind, CpuId, Platform};

/// `m` processors: pairs of neighbors share an L2 cache, and if there are more than two processors,
/// the first `of_l3` of them share an L3 cache.
pub fn pairs(m: u32, of_l3: u32, size: Option<Bytes>) -> Platform {
    let cache = |level: u8, cpus: std::ops::Range<u32>| Cache {
        level,
        kind: CacheKind::Unified,
        size,
        ways: None,
        line: None,
        sets: None,
        shared_by: cpus.filter(|cpu| *cpu < m).map(CpuId).collect(),
        strategy: model::Strategy::default(),
    };
    let mut platform = Platform::symmetric(m);
    for first in (0..m).step_by(2) {
        platform.caches.push(cache(2, first..first + 2));
    }
    if m > 2 {
        platform.caches.push(cache(3, 0..of_l3));
    }
    platform
}
