//! From samples to a profile: cells, curves and what was discarded.
//!
//! 000 §3.1 and 002 §5.2.1: statistics of different cells are compared over equally many samples.
//! Within a working set size every cell gives its first k_min kept samples, where k_min is the
//! number of the cell that has fewest. A cell of which nearly everything was discarded does not
//! drag the others down: it stands apart, without a maximum.

use crate::samples::{Discard, Sample};
use crate::statistics;
use model::{Bytes, CpmdCurve, CpmdPoint, Delay, Load, Resumption};
use std::collections::BTreeMap;

/// A cell with less than one in so many of the samples that another cell of its size has does not
/// count for k_min.
const FEW: usize = 10;

/// The kept delays of one cell with their blocks, in the order in which they were taken.
type Cells = BTreeMap<(u64, Load, Resumption, Bytes), Vec<(u32, Delay)>>;

fn cells(samples: &[Sample]) -> Cells {
    let mut cells = Cells::new();
    for s in samples.iter().filter(|s| s.discarded.is_none()) {
        // Ratios are powers of two: their bits order as their values do.
        cells
            .entry((s.write_ratio.to_bits(), s.load, s.resumption, s.wss))
            .or_default()
            .push((s.block, s.delay));
    }
    cells
}

/// For each working set size, the number of samples that every cell gives: k_min.
pub fn compared(samples: &[Sample]) -> BTreeMap<Bytes, usize> {
    compared_of(&cells(samples))
}

fn compared_of(cells: &Cells) -> BTreeMap<Bytes, usize> {
    let mut most: BTreeMap<Bytes, usize> = BTreeMap::new();
    for ((.., wss), delays) in cells {
        let most = most.entry(*wss).or_default();
        *most = delays.len().max(*most);
    }
    let mut least = most.clone();
    for ((.., wss), delays) in cells {
        if let (Some(most), Some(least)) = (most.get(wss), least.get_mut(wss))
            && delays.len() * FEW >= *most
        {
            *least = delays.len().min(*least);
        }
    }
    least
}

/// The curves of a profile.
pub fn curves(samples: &[Sample], seed: u64) -> Vec<CpmdCurve> {
    let cells = cells(samples);
    let least = compared_of(&cells);
    let mut curves: Vec<CpmdCurve> = Vec::new();
    // In the order of the keys: by ratio, load, resumption, then ascending in size.
    for (number, ((ratio, load, resumption, wss), delays)) in (0u64..).zip(&cells) {
        let write_ratio = f64::from_bits(*ratio);
        let k = least.get(wss).copied().unwrap_or(delays.len());
        let enough = delays.len() >= k;
        let (blocks, delays): (Vec<u32>, Vec<Delay>) = delays.iter().take(k).copied().unzip();
        let point = CpmdPoint {
            wss: *wss,
            samples: delays.len() as u64,
            average: statistics::mean(&delays),
            deviation: statistics::deviation(&delays),
            maximum: delays.iter().max().copied().filter(|_| enough),
            percentiles: statistics::percentiles(&delays),
            average_interval: statistics::mean_interval(
                &delays,
                &blocks,
                seed.wrapping_add(number),
            ),
            maximum_interval: statistics::maximum_interval(&delays, &blocks).filter(|_| enough),
        };
        match curves.last_mut() {
            Some(curve)
                if (curve.resumption, curve.load, curve.write_ratio)
                    == (*resumption, *load, write_ratio) =>
            {
                curve.points.push(point);
            }
            _ => curves.push(CpmdCurve {
                resumption: *resumption,
                load: *load,
                write_ratio,
                points: vec![point],
            }),
        }
    }
    curves
}

/// How many samples were discarded for which cause.
pub fn discards(samples: &[Sample]) -> BTreeMap<Discard, u64> {
    let mut counts = BTreeMap::new();
    for cause in samples.iter().filter_map(|s| s.discarded) {
        *counts.entry(cause).or_insert(0) += 1;
    }
    counts
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use model::{CpuId, Duration};

    /// A sample of 16 KiB, idle, with a delay.
    pub(crate) fn sample(resumption: Resumption, load: Load, delay: i64) -> Sample {
        Sample {
            block: 0,
            load,
            wss: Bytes::from_kib(16),
            write_ratio: 0.25,
            from: CpuId(0),
            to: CpuId(u32::from(resumption != Resumption::Preemption)),
            resumption,
            asked: Duration::from_millis(1),
            preempted: Duration::from_millis(1),
            cold: Duration::from_nanos(3000),
            warm: Duration::from_nanos(1000),
            post: Duration::from_nanos((1000 + delay) as u64),
            delay: Delay::from_nanos(delay),
            discarded: None,
            line_before: Duration::from_nanos(50),
            line_after: Duration::from_nanos(50),
        }
    }

    #[test]
    fn statistics_are_of_equally_many_samples() {
        // Six preemptions, the largest the last; five migrations.
        let mut samples: Vec<Sample> = [1, 2, 3, 4, 5, 99]
            .map(|d| sample(Resumption::Preemption, Load::Idle, d))
            .to_vec();
        samples
            .extend([10, 20, 30, 40, 50].map(|d| sample(Resumption::Migration(3), Load::Idle, d)));
        assert_eq!(compared(&samples), [(Bytes::from_kib(16), 5)].into());
        let curves = curves(&samples, 1);
        assert_eq!(curves.len(), 2);
        let preemption = &curves[0].points[0];
        assert_eq!(preemption.samples, 5);
        assert_eq!(preemption.average.unwrap().nanos(), 3);
        assert_eq!(preemption.maximum.unwrap().nanos(), 5, "of the first five");
        assert_eq!(curves[1].points[0].maximum.unwrap().nanos(), 50);
    }

    #[test]
    fn a_cell_with_hardly_any_samples_has_no_maximum_and_spoils_none() {
        let mut samples: Vec<Sample> = (1..=20)
            .map(|d| sample(Resumption::Preemption, Load::Idle, d))
            .collect();
        samples.push(sample(Resumption::Memory, Load::Load, 7));
        let curves = curves(&samples, 1);
        assert_eq!(curves[0].points[0].maximum.unwrap().nanos(), 20);
        assert_eq!(curves[1].points[0].maximum, None);
        assert_eq!(curves[1].points[0].average.unwrap().nanos(), 7);
    }

    #[test]
    fn what_is_discarded_is_counted_and_left_out() {
        let mut samples: Vec<Sample> = (1..=8)
            .map(|d| sample(Resumption::Preemption, Load::Load, d))
            .collect();
        samples[7].discarded = Some(Discard::Interrupted);
        samples[6].discarded = Some(Discard::Interrupted);
        samples[5].discarded = Some(Discard::Moved);
        assert_eq!(
            discards(&samples),
            [(Discard::Interrupted, 2), (Discard::Moved, 1)].into()
        );
        let point = &curves(&samples, 1)[0].points[0];
        assert_eq!((point.samples, point.maximum.unwrap().nanos()), (5, 5));
    }

    #[test]
    fn curves_ascend_by_working_set() {
        let mut samples = Vec::new();
        for kib in [64, 4, 1024, 16] {
            for ratio in [0.25, 0.0] {
                let mut s = sample(Resumption::Preemption, Load::Idle, 1);
                (s.wss, s.write_ratio) = (Bytes::from_kib(kib), ratio);
                samples.push(s);
            }
        }
        let curves = curves(&samples, 1);
        assert_eq!(curves.len(), 2);
        for curve in curves {
            assert_eq!(curve.points.len(), 4);
            assert!(curve.points.is_sorted_by_key(|p| p.wss));
        }
    }
}
