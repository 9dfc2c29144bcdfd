//! The loads of bins: sums of utilizations in fixed point, with exact addition where it decides.
//!
//! A load is kept in units of 2^-64 of a processor, rounded down per task, so it is below the true sum by less than one unit
//! a task. Whether a task fits is exact: sums within that error of the capacity are added as ratios. Which bin has more left
//! is a choice, not a verdict: loads within that error of each other count as equal, so that true ties always do.

use model::{Ratio, Timing, exact};
use std::cmp::Ordering;

/// One processor in fixed point.
const ONE: u128 = 1 << 64;

/// A utilization in units of 2^-64, rounded down.
pub(super) fn scaled(t: &Timing) -> u128 {
    (u128::from(t.wcet.nanos()) << 64) / u128::from(t.period.nanos().max(1))
}

/// The loads of bins of given capacities.
///
/// Invariant: `load[b]` is at most the true load of bin b, and below it by less than `count[b]` units.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    size: Vec<u32>,
    load: Vec<u128>,
    count: Vec<u32>,
    /// Known to be full to the last unit: nothing fits any more.
    full: Vec<bool>,
}

impl Loads {
    /// Empty bins of so many processors each.
    pub(super) fn reset(&mut self, sizes: &[u32]) {
        self.size.clear();
        self.size.extend_from_slice(sizes);
        self.load.clear();
        self.load.resize(sizes.len(), 0);
        self.count.clear();
        self.count.resize(sizes.len(), 0);
        self.full.clear();
        self.full.resize(sizes.len(), false);
    }

    pub(super) fn len(&self) -> usize {
        self.load.len()
    }

    pub(super) fn add(&mut self, bin: usize, task: &Timing) {
        self.load[bin] += scaled(task);
        self.count[bin] += 1;
    }

    fn capacity(&self, bin: usize) -> u128 {
        u128::from(self.size[bin]) * ONE
    }

    /// Does the bin hold the task, too? Exact. `members` yields the tasks in the bin, for the exact sum.
    pub(super) fn fits<I>(&mut self, bin: usize, task: &Timing, members: impl FnOnce() -> I) -> bool
    where
        I: Iterator<Item = Ratio> + Clone,
    {
        let low = self.load[bin] + scaled(task);
        let capacity = self.capacity(bin);
        if self.full[bin] || low > capacity {
            return false;
        }
        if low + u128::from(self.count[bin]) < capacity {
            return true;
        }
        let all = members().chain(std::iter::once(task.utilization()));
        match exact::cmp_sum(all, Ratio::whole(u64::from(self.size[bin]))) {
            Ordering::Less => true,
            Ordering::Equal => {
                self.full[bin] = true; // The caller places what fits.
                true
            }
            Ordering::Greater => false,
        }
    }

    /// Has bin a more left than bin b, by more than rounding?
    pub(super) fn has_more_left(&self, a: usize, b: usize) -> bool {
        let left = |x: usize| self.capacity(x).saturating_sub(self.load[x]);
        left(a) > left(b) + u128::from(self.count[a].max(self.count[b]))
    }
}
