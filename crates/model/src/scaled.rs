//! Platforms and profiles that are made from others by scaling: the same machine with more or fewer
//! processors, the same costs by a factor. They were measured nowhere, and say so.

use crate::cpus::{CpuId, CpuSet};
use crate::error::{Error, Result};
use crate::exact::Ratio;
use crate::overheads::Overheads;
use crate::platform::{Cache, Platform, Processor};
use crate::profile::Profile;
use crate::time::{Delay, Duration};
use crate::words::Overhead;
use std::collections::BTreeMap;

impl Platform {
    /// The same platform with `m` processors, all of them usable.
    ///
    /// The usable processors are laid side by side in cache order, as often as it takes, and the
    /// first `m` stay: more processors are further sockets of the same kind, fewer are the first
    /// ones. The last cache of a level may so serve fewer processors than the others. The name of
    /// the result is found by [`Platform::builtin`] if that of `self` is.
    ///
    /// # Errors
    /// No processors are asked for, or more than there can be; `self` has none that is usable.
    pub fn scaled(&self, m: u32) -> Result<Platform> {
        if !(1..=CpuSet::MAX_CPU + 1).contains(&m) {
            return Err(Error::new(format!("`{m}` is no number of processors"))
                .remedy(format!("give 1 to {}", CpuSet::MAX_CPU + 1)));
        }
        let order = self.in_cache_order();
        if order.len() == m as usize && order.len() == self.processors.len() {
            return Ok(self.clone());
        }
        if self.name.starts_with("symmetric:m=") {
            return Ok(Platform::symmetric(m));
        }
        if order.is_empty() {
            return Err(
                Error::new(format!("no processor of `{}` may be used", self.name))
                    .remedy("widen the affinity mask or the cpuset of this process"),
            );
        }
        let origin: Vec<(u32, CpuId)> = (0..m as usize)
            .map(|at| ((at / order.len()) as u32, order[at % order.len()]))
            .collect();
        let mut notes = self.notes.clone();
        notes.push(format!(
            "scaled: `{}` has {} processors; these {m} are its own in cache order, repeated where it takes more",
            self.name,
            order.len()
        ));
        Ok(Platform {
            name: format!("{}:m={m}", self.name),
            description: format!("{}, scaled to {m} processors", self.description),
            processors: self.repeated(&origin),
            caches: self.repeated_caches(&origin),
            tlb: self.tlb,
            page_sizes: self.page_sizes.clone(),
            notes,
        }
        .in_order())
    }

    /// Was it made by [`Platform::scaled`], and measured nowhere?
    pub fn is_scaled(&self) -> bool {
        self.notes.iter().any(|note| note.starts_with("scaled: "))
    }

    /// The processors of these origins: which repetition, and which processor of it.
    fn repeated(&self, origin: &[(u32, CpuId)]) -> Vec<Processor> {
        let after = |number: fn(&Processor) -> u32| {
            self.processors.iter().map(number).max().unwrap_or(0) + 1
        };
        let (cores, sockets, nodes) = (after(|p| p.core), after(|p| p.socket), after(|p| p.node));
        let by_id: BTreeMap<CpuId, &Processor> =
            self.processors.iter().map(|p| (p.id, p)).collect();
        let repeated = origin.iter().enumerate().filter_map(|(at, (copy, from))| {
            let from = by_id.get(from)?;
            Some(Processor {
                id: CpuId(at as u32),
                core: from.core + copy * cores,
                socket: from.socket + copy * sockets,
                node: from.node + copy * nodes,
                ..(*from).clone()
            })
        });
        repeated.collect()
    }

    /// The caches behind which any of these processors are, once in each repetition.
    fn repeated_caches(&self, origin: &[(u32, CpuId)]) -> Vec<Cache> {
        let copies = origin.last().map_or(0, |(copy, _)| copy + 1);
        let of = |cache: &Cache, copy: u32| {
            let shared_by: CpuSet = origin
                .iter()
                .enumerate()
                .filter(|(_, (which, from))| *which == copy && cache.shared_by.contains(*from))
                .map(|(at, _)| CpuId(at as u32))
                .collect();
            (!shared_by.is_empty()).then(|| Cache {
                shared_by,
                ..cache.clone()
            })
        };
        let all = self.caches.iter();
        all.flat_map(|cache| (0..copies).filter_map(move |copy| of(cache, copy)))
            .collect()
    }
}

impl Profile {
    /// The same profile with some of its costs times `factor`, cache delays as
    /// [`Cpmd`](crate::Overhead::Cpmd). Times are rounded up to whole nanoseconds, so that nothing
    /// costs less than asked for; those that do not fit become the longest there are. Numbers of
    /// samples, periods and the name stay.
    #[must_use]
    pub fn scaled(&self, factor: Ratio, on: Overheads) -> Profile {
        let times = |nanos: i64| -> i64 {
            let product = i128::from(nanos) * i128::from(factor.num());
            let den = i128::from(factor.den());
            let up = product.div_euclid(den) + i128::from(product.rem_euclid(den) != 0);
            i64::try_from(up).unwrap_or(if up < 0 { i64::MIN } else { i64::MAX })
        };
        let delay = |d: Delay| Delay::from_nanos(times(d.nanos()));
        let duration = |d: Duration| delay(Delay::from(d)).cost();
        let mut scaled = self.clone();
        let scheduled = scaled.cpmd_scheduled.iter_mut().map(|s| &mut s.curve);
        let caches = scaled.cpmd.iter_mut().chain(scheduled);
        let caches = caches.filter(|_| on.has(Overhead::Cpmd));
        for point in caches.flat_map(|c| &mut c.points) {
            point.average = point.average.map(delay);
            point.deviation = point.deviation.map(duration);
            point.maximum = point.maximum.map(delay);
            for (_, value) in &mut point.percentiles {
                *value = delay(*value);
            }
            for interval in [&mut point.average_interval, &mut point.maximum_interval] {
                *interval = interval.map(|(a, b)| (delay(a), delay(b)));
            }
        }
        let overheads = scaled.overheads.iter_mut().filter(|c| on.has_kind(c.kind));
        for point in overheads.flat_map(|c| &mut c.points) {
            point.average = point.average.map(duration);
            point.maximum = point.maximum.map(duration);
            if let Some(all) = &mut point.untrimmed {
                all.average = duration(all.average);
                all.maximum = duration(all.maximum);
            }
            let of = &mut point.intervals;
            for interval in [
                &mut of.average,
                &mut of.maximum,
                &mut of.untrimmed_average,
                &mut of.untrimmed_maximum,
            ] {
                *interval = interval.map(|(a, b)| (duration(a), duration(b)));
            }
        }
        scaled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::{ClusterSpec, Resumption};
    use crate::profile::{CpmdCurve, Intervals, Load, OverheadCurve, OverheadKind, OverheadPoint};
    use crate::{Bytes, Provenance, Statistic};

    fn sizes(platform: &Platform, level: u8) -> Vec<usize> {
        let clusters = platform.clusters(ClusterSpec::Level(level)).unwrap();
        clusters.iter().map(CpuSet::len).collect()
    }

    #[test]
    fn a_platform_is_repeated_with_its_caches() {
        let xeon = Platform::builtin("xeon-l7455").unwrap();
        for (m, l2, l3) in [
            (1, vec![1], vec![1]),
            (4, vec![2; 2], vec![4]),
            (8, vec![2; 4], vec![6, 2]),
            (48, vec![2; 24], vec![6; 8]),
            (128, vec![2; 64], [vec![6; 21], vec![2]].concat()),
        ] {
            let scaled = xeon.scaled(m).unwrap();
            scaled.check().unwrap();
            assert_eq!(scaled.usable().len(), m as usize);
            assert_eq!((sizes(&scaled, 2), sizes(&scaled, 3)), (l2, l3), "m = {m}");
            assert!(
                scaled
                    .notes
                    .iter()
                    .any(|n| n.starts_with("scaled: `xeon-l7455`"))
            );
            assert_eq!(Platform::builtin(&scaled.name).unwrap(), scaled);
        }
        // Two repetitions share nothing.
        let double = xeon.scaled(48).unwrap();
        assert_eq!(double.resumption(CpuId(0), CpuId(24)), Resumption::Memory);
        assert_eq!(xeon.scaled(24).unwrap(), xeon);
        assert_eq!(
            Platform::symmetric(4).scaled(9).unwrap(),
            Platform::symmetric(9)
        );
        assert!(xeon.scaled(0).is_err() && xeon.scaled(u32::MAX).is_err());
    }

    #[test]
    fn every_cost_of_a_profile_is_scaled_and_rounded_up() {
        let mut profile = Profile::new("x", Provenance::default());
        profile.cpmd.push(CpmdCurve {
            resumption: Resumption::Preemption,
            load: Load::Load,
            write_ratio: 0.25,
            points: vec![],
        });
        let point = |kib, ns| crate::profile::CpmdPoint {
            wss: Bytes::from_kib(kib),
            samples: 9,
            average: Some(Delay::from_nanos(ns)),
            deviation: Some(Duration::from_nanos(3)),
            maximum: Some(Delay::from_nanos(i64::MAX)),
            percentiles: vec![(50.0, Delay::from_nanos(ns))],
            average_interval: None,
            maximum_interval: None,
        };
        profile.cpmd[0].points = vec![point(4, -3), point(8, 5)];
        profile.overheads.push(OverheadCurve {
            kind: OverheadKind::Tick,
            policy: String::new(),
            code: None,
            points: vec![OverheadPoint {
                tasks: 1,
                samples: 9,
                average: Some(Duration::from_nanos(1)),
                maximum: Some(Duration::from_nanos(2)),
                untrimmed: None,
                intervals: Intervals {
                    groups: 3,
                    average: Some((Duration::from_nanos(1), Duration::from_nanos(3))),
                    ..Intervals::default()
                },
            }],
        });
        let scaled = profile.scaled(Ratio::new(3, 2).unwrap(), Overheads::ALL);
        let points = &scaled.cpmd[0].points;
        let of = |at: usize| points[at].value(Statistic::Average).map(Delay::nanos);
        assert_eq!((of(0), of(1)), (Some(-4), Some(8)));
        assert_eq!(points[0].maximum, Some(Delay::from_nanos(i64::MAX)));
        assert_eq!(points[1].percentiles, [(50.0, Delay::from_nanos(8))]);
        let tick = &scaled.overheads[0].points[0];
        let interval = tick.intervals.average.map(|(a, b)| (a.nanos(), b.nanos()));
        assert_eq!(interval, Some((2, 5)));
        assert_eq!(tick.average, Some(Duration::from_nanos(2)));
        assert_eq!(tick.maximum, Some(Duration::from_nanos(3)));
        assert_eq!(profile.scaled(Ratio::ONE, Overheads::ALL), profile);
        // Each kind alone leaves the others as they were.
        let half_more = |on| profile.scaled(Ratio::new(3, 2).unwrap(), Overheads::of(&[on]));
        let (caches, ticks) = (half_more(Overhead::Cpmd), half_more(Overhead::Tick));
        assert_eq!(
            (&caches.cpmd, &caches.overheads),
            (&scaled.cpmd, &profile.overheads)
        );
        assert_eq!(
            (&ticks.cpmd, &ticks.overheads),
            (&profile.cpmd, &scaled.overheads)
        );
        assert_eq!(half_more(Overhead::Release), profile);
    }
}
