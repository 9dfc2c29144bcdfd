//! The order in which EDF-fm fills processors: one after the other, the last task of each split.
//!
//! 002 §4.1 assigns tasks "sequentially" and leaves their order open. The order of the set comes
//! first. It may split a task with a high utilization at the end of a processor, and two of these
//! are more than one processor bears; so tasks are placed from the largest to the smallest next,
//! and at the end of each processor the smallest that is left is split.
//!
//! What a processor has room for depends on the costs that count, so that this walk is over any
//! [`Filling`].

use model::Timing;
use std::cmp::Ordering;

/// Processors that are filled one after the other. Tasks are indices.
pub(crate) trait Filling {
    /// Why an assignment ends without success.
    type End;

    /// Takes these tasks whole, one after the other, as long as they fit: how many.
    fn take(&mut self, tasks: &[usize]) -> Result<usize, Self::End>;

    /// Would this task fit now?
    fn fits(&mut self, task: usize) -> Result<bool, Self::End>;

    /// Ends with this processor, splitting the task between it and the next one; `false`: no part
    /// of it is worth splitting off.
    fn split(&mut self, task: usize) -> Result<bool, Self::End>;
}

/// In which order tasks are placed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Order {
    /// In the order of the set; the first that does not fit is split.
    Given,
    /// From the largest utilization to the smallest, whichever fits; then the smallest is split.
    SmallestSplit,
}

impl Order {
    /// In the order in which they are tried.
    pub(crate) const ALL: [Order; 2] = [Order::Given, Order::SmallestSplit];

    /// Places all tasks.
    ///
    /// # Errors
    /// Why one of them cannot be placed.
    pub(crate) fn place<F: Filling>(self, tasks: &[Timing], filling: &mut F) -> Result<(), F::End> {
        let mut left: Vec<usize> = (0..tasks.len()).collect();
        if self == Order::SmallestSplit {
            left.sort_by(|a, b| by_utilization(&tasks[*b], &tasks[*a]));
        }
        while !left.is_empty() {
            let count = filling.take(&left)?;
            left.drain(..count);
            if self == Order::SmallestSplit {
                while let Some(first) = largest_that_fits(&left, filling)? {
                    let count = filling.take(&left[first..])?;
                    left.drain(first..first + count);
                }
            }
            let last = match self {
                Order::Given => 0,
                Order::SmallestSplit => left.len().saturating_sub(1),
            };
            let Some(&task) = left.get(last) else { break };
            if filling.split(task)? {
                left.remove(last);
            }
        }
        Ok(())
    }
}

fn by_utilization(a: &Timing, b: &Timing) -> Ordering {
    let scaled = |e: &Timing, p: &Timing| u128::from(e.wcet.nanos()) * u128::from(p.period.nanos());
    scaled(a, b).cmp(&scaled(b, a))
}

/// The place of the largest task that fits, by bisection: where overheads let a larger one fit and
/// a smaller one not, of one that fits.
fn largest_that_fits<F: Filling>(left: &[usize], filling: &mut F) -> Result<Option<usize>, F::End> {
    let (mut low, mut high) = (0, left.len());
    while low < high {
        let middle = low + (high - low) / 2;
        if filling.fits(left[middle])? {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    Ok((low < left.len()).then_some(low))
}
