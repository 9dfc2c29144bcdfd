//! A processor of EDF-WM without overheads: exact EDF says what it accepts and how long a slice can
//! be.

use super::{Host, Position, STEPS};
use crate::uniprocessor::{Work, edf, longest_last};
use model::{Duration, Ratio, Timing, exact};

/// One, in units of 2^-64.
const ONE: u128 = 1 << 64;

/// A task or slice with its utilization in units of 2^-64, rounded down and up. The WCET is within
/// deadline and period.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Item {
    pub timing: Timing,
    low: u128,
    high: u128,
}

impl Item {
    pub(crate) fn new(timing: Timing) -> Option<Self> {
        let (e, p) = (timing.wcet, timing.period);
        if e > timing.deadline || e > p || p.is_zero() {
            return None;
        }
        let (scaled, p) = (u128::from(e.nanos()) << 64, u128::from(p.nanos()));
        let low = scaled / p;
        Some(Item {
            timing,
            low,
            high: low + u128::from(low * p != scaled),
        })
    }
}

/// One processor with what it has accepted.
#[derive(Clone, Debug, Default)]
pub(crate) struct Processor {
    /// Whole tasks, and slices with their window as the deadline.
    tasks: Vec<Timing>,
    /// Sums of the items' utilizations.
    low: u128,
    high: u128,
    /// Is some deadline shorter than its period?
    constrained: bool,
}

impl Processor {
    /// One that has accepted these, whose WCETs are within deadlines and periods; `None` if one is
    /// not.
    pub(crate) fn with(tasks: &[Timing]) -> Option<Self> {
        let mut processor = Processor::default();
        for t in tasks {
            processor.push(&Item::new(*t)?);
        }
        Some(processor)
    }

    /// Does utilization leave room, as far as is known without adding exactly?
    pub(crate) fn may_accept(&self, item: &Item) -> bool {
        self.low + item.low <= ONE
    }

    /// What it has accepted.
    pub(crate) fn timings(&self) -> &[Timing] {
        &self.tasks
    }

    fn push(&mut self, item: &Item) {
        self.low += item.low;
        self.high += item.high;
        self.constrained |= item.timing.deadline < item.timing.period;
        self.tasks.push(item.timing);
    }

    /// [`STEPS`] in evaluations of one task's demand.
    fn limit(&self) -> u64 {
        STEPS * (self.tasks.len() as u64 + 1)
    }
}

impl Host for Processor {
    fn load(&self) -> u128 {
        self.low
    }

    fn len(&self) -> usize {
        self.tasks.len()
    }

    fn accepts(&mut self, _task: u32, item: &Item, work: &mut Work) -> bool {
        if !self.may_accept(item) {
            return false;
        }
        let surely_fits = self.high + item.high <= ONE;
        let constrained = self.constrained || item.timing.deadline < item.timing.period;
        if surely_fits && !constrained {
            return true;
        }
        self.tasks.push(item.timing);
        let fits = surely_fits || !is_overutilized(&self.tasks);
        let limit = self.limit();
        let accepted = fits
            && (!constrained
                || work.lend(limit, |w| edf::decide_by_demand_within(&self.tasks, w)) == Ok(true));
        self.tasks.pop();
        accepted
    }

    fn add(&mut self, _task: u32, item: &Item) {
        self.push(item);
    }

    fn add_slice(&mut self, _task: u32, slice: Timing, _position: Position) -> Option<()> {
        self.push(&Item::new(slice)?);
        Some(())
    }

    /// By utilization and by the demand at the window's end.
    fn slice_at_most(&self, _task: u32, slice: &Timing) -> Duration {
        let window = slice.deadline;
        let demand = edf::demand(&self.tasks, u128::from(window.nanos()));
        let by_demand = u128::from(window.nanos()).saturating_sub(demand);
        let most = by_demand.min(share_of(ONE.saturating_sub(self.low), slice.period) + 1);
        slice.wcet.min(Duration::from_nanos(
            u64::try_from(most).unwrap_or(u64::MAX),
        ))
    }

    fn longest_slice(
        &mut self,
        task: u32,
        slice: &Timing,
        least: Duration,
        work: &mut Work,
    ) -> Duration {
        let mut top = self.slice_at_most(task, slice);
        self.tasks.push(Timing {
            wcet: top,
            ..*slice
        });
        let last = self.tasks.len() - 1;
        // Fixed point may have rounded up by as many nanoseconds as there are tasks.
        while !top.is_zero() && is_overutilized(&self.tasks) {
            top = top.saturating_sub(Duration::from_nanos(1));
            self.tasks[last].wcet = top;
        }
        let limit = self.limit();
        let mut idle = 1_u128 << 40;
        let longest = loop {
            if let Ok(longest) = work.lend(limit, |w| longest_last(&mut self.tasks, least, w)) {
                break longest;
            }
            // Too near to a full processor: leave it more time, at first 2^-20 of it, then ever
            // more.
            idle <<= 4;
            let left = ONE.saturating_sub(self.high).saturating_sub(idle);
            let spare = Duration::from_nanos(
                u64::try_from(share_of(left, slice.period)).unwrap_or(u64::MAX),
            );
            top = self.tasks[last].wcet.min(spare);
            if top < least || top.is_zero() || work.left() == 0 {
                break Duration::ZERO;
            }
            self.tasks[last].wcet = top;
        };
        self.tasks.pop();
        longest
    }
}

/// This share, in units of 2^-64, of a duration; rounded down.
fn share_of(share: u128, of: Duration) -> u128 {
    (share.min(ONE - 1) * u128::from(of.nanos())) >> 64
}

fn is_overutilized(tasks: &[Timing]) -> bool {
    exact::cmp_sum(tasks.iter().map(Timing::utilization), Ratio::ONE).is_gt()
}
