//! The loads of bins: sums of utilizations in fixed point, with exact addition where it decides.
//!
//! Kept is what a bin has left, in units of 2^-64 of a processor; utilizations are rounded down, so
//! it is above the true value by less than one unit a task. Whether a task fits is exact: sums
//! within that error of the capacity are added as ratios. Which bin has more left is a choice, not
//! a verdict: bins within that error of each other count as equal, so that true ties always do.

use model::{Ratio, Timing, exact};
use std::cmp::Ordering;

/// A utilization in units of 2^-64, rounded down.
pub(super) fn scaled(t: &Timing) -> u128 {
    (u128::from(t.wcet.nanos()) << 64) / u128::from(t.period.nanos().max(1))
}

/// What bins of given capacities have left.
///
/// Invariant: `left[b]` is at least the true value, and above it by less than `count[b]` units, or
/// zero once a bin is known to be full.
#[derive(Clone, Debug, Default)]
pub(super) struct Loads {
    size: Vec<u32>,
    left: Vec<u128>,
    count: Vec<u32>,
    most: u32,
}

impl Loads {
    /// Empty bins of so many processors each.
    pub(super) fn reset(&mut self, sizes: &[u32]) {
        self.size.clear();
        self.size.extend_from_slice(sizes);
        self.left.clear();
        self.left.extend(sizes.iter().map(|s| u128::from(*s) << 64));
        self.count.clear();
        self.count.resize(sizes.len(), 0);
        self.most = 0;
    }

    /// Puts a task that fits, of `scaled` size, into a bin.
    pub(super) fn add(&mut self, bin: usize, scaled: u128) {
        // A bin that was found full is at zero already.
        self.left[bin] = self.left[bin].saturating_sub(scaled);
        self.count[bin] += 1;
        self.most = self.most.max(self.count[bin]);
    }

    /// Does the bin hold the task, too? Exact. `members` yields the tasks in the bin, for the exact
    /// sum.
    pub(super) fn fits<I>(
        &mut self,
        bin: usize,
        task: &Timing,
        scaled: u128,
        members: impl FnOnce() -> I,
    ) -> bool
    where
        I: Iterator<Item = Ratio> + Clone,
    {
        let left = self.left[bin];
        if scaled > left || left == 0 {
            return false;
        }
        if scaled + u128::from(self.count[bin]) < left {
            return true;
        }
        let all = members().chain(std::iter::once(task.utilization()));
        match exact::cmp_sum(all, Ratio::whole(u64::from(self.size[bin]))) {
            Ordering::Less => true,
            Ordering::Equal => {
                self.left[bin] = 0; // The caller places what fits; nothing fits after it.
                true
            }
            Ordering::Greater => false,
        }
    }

    /// Has bin a more left than bin b, by more than rounding?
    pub(super) fn has_more_left(&self, a: usize, b: usize) -> bool {
        self.left[a] > self.left[b] + u128::from(self.count[a].max(self.count[b]))
    }

    /// The lowest bin from `from` on that may hold a task of this size.
    pub(super) fn first(&self, from: usize, scaled: u128) -> Option<usize> {
        let bins = self.left.get(from..)?;
        let enough = scaled.max(1);
        bins.iter()
            .position(|left| *left >= enough)
            .map(|at| from + at)
    }

    /// The lowest of the bins with most left, if it may hold a task of this size, not counting
    /// `except`.
    pub(super) fn emptiest(&self, scaled: u128, except: &[usize]) -> Option<usize> {
        let most = if except.is_empty() {
            self.left.iter().max().copied()?
        } else {
            self.bins_without(except).map(|b| self.left[b]).max()?
        };
        let enough = most
            .saturating_sub(u128::from(self.most))
            .max(scaled)
            .max(1);
        if except.is_empty() {
            self.left.iter().position(|left| *left >= enough)
        } else {
            self.bins_without(except).find(|b| self.left[*b] >= enough)
        }
    }

    /// The lowest of the bins with least left that may hold a task of this size, not counting
    /// `except`.
    pub(super) fn fullest(&self, scaled: u128, except: &[usize]) -> Option<usize> {
        let enough = scaled.max(1);
        let least = if except.is_empty() {
            self.left
                .iter()
                .filter(|left| **left >= enough)
                .min()
                .copied()?
        } else {
            self.bins_without(except)
                .map(|b| self.left[b])
                .filter(|left| *left >= enough)
                .min()?
        };
        let tie = least.saturating_add(u128::from(self.most));
        self.bins_without(except)
            .find(|b| (enough..=tie).contains(&self.left[*b]))
    }

    fn bins_without<'a>(&'a self, except: &'a [usize]) -> impl Iterator<Item = usize> + 'a {
        (0..self.left.len()).filter(move |b| !except.contains(b))
    }
}
