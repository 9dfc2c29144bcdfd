//! When processors stood still ([`EventKind::Standstill`](crate::EventKind::Standstill)).
//!
//! What is overdue because a processor was taken away is no fault of whoever schedules it: windows
//! are measured in the time in which the processors that the decision needed were there.

use model::{CpuId, CpuSet, Duration, Instant};

/// So many are kept of each processor, an hour and more where it stands still ten times a second:
/// windows do not reach back so far.
const KEPT: usize = 1 << 16;

/// When each processor stood still.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stood {
    /// By processor, from when to when, in the order of time.
    by_cpu: Vec<Vec<(Instant, Instant)>>,
}

impl Stood {
    /// Of so many processors, none of which has stood still.
    pub(super) fn new(processors: usize) -> Self {
        Stood {
            by_cpu: vec![Vec::new(); processors],
        }
    }

    /// A processor stood still for `length` until `end`.
    pub(crate) fn add(&mut self, cpu: CpuId, end: Instant, length: Duration) {
        let start = Instant::from_nanos(end.nanos().saturating_sub(length.nanos()));
        if let Some(known) = self.by_cpu.get_mut(cpu.index())
            && known.last().is_none_or(|last| last.1 <= end)
        {
            if known.len() == KEPT {
                known.drain(..KEPT / 2);
            }
            known.push((start, end));
        }
    }

    /// For how long of the time from `from` to `to` any of these processors stood still; `None`:
    /// any at all.
    pub(super) fn within(&self, from: Instant, to: Instant, cpus: Option<&CpuSet>) -> Duration {
        if from >= to || self.by_cpu.iter().all(Vec::is_empty) {
            return Duration::ZERO;
        }
        let counts = |cpu: &usize| cpus.is_none_or(|cpus| cpus.contains(CpuId(*cpu as u32)));
        let mut pieces: Vec<(Instant, Instant)> = Vec::new();
        for cpu in (0..self.by_cpu.len()).filter(counts) {
            let known = &self.by_cpu[cpu];
            let first = known.partition_point(|(_, end)| *end <= from);
            let within = known[first..].iter().take_while(|(start, _)| *start < to);
            pieces.extend(within.map(|(start, end)| (*start.max(&from), *end.min(&to))));
        }
        pieces.sort_unstable();
        let (mut sum, mut covered) = (Duration::ZERO, from);
        for (start, end) in pieces {
            sum = sum.saturating_add(end.since(start.max(covered)));
            covered = covered.max(end);
        }
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ns: u64) -> Instant {
        Instant::from_nanos(ns)
    }

    #[test]
    fn time_in_which_several_stood_still_counts_once() {
        let mut stood = Stood::new(3);
        for (cpu, end, length) in [(0, 20, 10), (0, 50, 5), (1, 25, 10), (2, 100, 100)] {
            stood.add(CpuId(cpu), at(end), Duration::from_nanos(length));
        }
        let within = |from, to, cpus: &[u32]| {
            let cpus = CpuSet::from_iter(cpus.iter().copied().map(CpuId));
            stood.within(at(from), at(to), Some(&cpus)).nanos()
        };
        assert_eq!(within(0, 100, &[0]), 15);
        assert_eq!(within(0, 100, &[0, 1]), 20);
        assert_eq!(within(12, 22, &[0, 1]), 10);
        assert_eq!(within(12, 18, &[1]), 3);
        assert_eq!(within(30, 40, &[0, 1]), 0);
        assert_eq!(within(40, 30, &[2]), 0);
        assert_eq!(stood.within(at(0), at(200), None).nanos(), 100);
    }

    #[test]
    fn however_long_it_lasts_only_so_much_is_kept() {
        let mut stood = Stood::new(1);
        for n in 1..=3 * KEPT as u64 {
            stood.add(CpuId(0), at(10 * n), Duration::from_nanos(1));
        }
        assert!(stood.by_cpu[0].len() <= KEPT);
        let end = 30 * KEPT as u64;
        assert_eq!(stood.within(at(end - 1000), at(end), None).nanos(), 100);
    }
}
