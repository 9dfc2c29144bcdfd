//! EDF-WM: hard real time; a task that no processor takes is cut into slices, each with a window of
//! its own.
//!
//! 002 §4.2; Kato, Yamasaki, Ishikawa 2009. Sporadic tasks with arbitrary deadlines. Tasks are
//! packed by any heuristic with exact EDF per processor. A task that fits nowhere is split over the
//! fewest processors m′ ≥ 2: every slice gets the window ⌊min(D, p) / m′⌋, released when the window
//! before ends, and the longest execution that the demand bound of its processor admits; the m′
//! longest are taken, longest first, and the last is cut to what is missing. All jobs of a
//! processor, whole or slices, run by EDF.
//!
//! The windows are ours where D > p: with windows of ⌊D / m′⌋ a job could end after the release of
//! its successor, whose first slice then comes late and still has to end by its window, so that its
//! processor has more to do at once than its demand bound says. 002 limits itself to D = p.
//!
//! Exact integers: the longest slice is found by cutting it where the demand bound is exceeded
//! ([`longest_last`](crate::uniprocessor::longest_last)), as far as it may be among the longest; a
//! number of slices that upper bounds do not let hold the task is given up at once. Work is counted,
//! so that the same set always gets the same answer: a slice is the longest that [`STEPS`] prove
//! (where a processor would be full to the last nanosecond, the demand of very long intervals
//! decides, and a slice that leaves it a little more is taken instead); a placement that as many do
//! not decide is refused; and the whole assignment ends with [`Refusal::Limit`] past
//! [`Settings::work`].

mod processor;

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::partition::{EXACT_PLACEMENTS, Fit, Order, TOO_MANY_PLACEMENTS};
use crate::uniprocessor::{WORK_LIMIT, Work};
use crate::verdict::{Exactness, Guarantee, NotApplicable};
use model::assignment::{Slice, Slices};
use model::{CpuId, Duration, Timing};
pub(crate) use processor::{Item, Processor};

/// What may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// In which order tasks are placed.
    pub order: Order,
    /// Which processor takes a task that several could.
    pub fit: Fit,
    /// No slice is shorter.
    pub shortest: Duration,
    /// The most evaluations of one task's demand that the whole assignment may take.
    pub work: u64,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            order: Order::DecreasingUtilization,
            fit: Fit::First,
            shortest: super::SHORTEST_SLICE,
            work: WORK_LIMIT,
        }
    }
}

/// The most times that the demand of a processor is evaluated for one placement or one slice.
pub const STEPS: u64 = 1 << 13;

/// Why there is no assignment.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The first task, in the order of placement, that can be neither placed nor split.
    Task(u32),
    /// Not decided within [`Settings::work`].
    Limit,
}

/// Beyond [`Settings::work`].
pub const LIMIT: NotApplicable = NotApplicable::Limit(
    "the demand of processors with slices takes more evaluations than are allowed",
);

/// Where a slice comes in its job.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Position {
    /// Which of the slices, from 0.
    pub at: usize,
    /// Which processor (from 0) runs the slice before, for the first one the last.
    pub before: usize,
}

/// One processor that accepts tasks and slices: as they are, or with overheads
/// ([`crate::overheads`]). Tasks are given by index.
pub(crate) trait Host {
    /// Its total utilization, in units of 2^-64, rounded down.
    fn load(&self) -> u128;
    /// How many tasks and slices it has.
    fn len(&self) -> usize;
    /// Would EDF hold this whole task, too? A limit counts as no.
    fn accepts(&mut self, task: u32, item: &Item, work: &mut Work) -> bool;
    /// Takes a whole task that it accepts.
    fn add(&mut self, task: u32, item: &Item);
    /// No slice in this window can be longer. Not below [`Host::longest_slice`].
    fn slice_at_most(&self, task: u32, slice: &Timing) -> Duration;
    /// The longest execution in this window, at most `slice.wcet`, that fits and that the work
    /// allowed proves to fit. Where that is below `least` the search may end early: the result is
    /// below `least`, too, but proves nothing.
    fn longest_slice(
        &mut self,
        task: u32,
        slice: &Timing,
        least: Duration,
        work: &mut Work,
    ) -> Duration;
    /// Takes a slice that is not longer. `None`: it cannot be one.
    fn add_slice(&mut self, task: u32, slice: Timing, position: Position) -> Option<()>;
}

/// The slices of every task, in the order of the set.
///
/// # Errors
/// The first task that can be neither placed nor split; the limit of work.
pub fn assign(tasks: &[Timing], cpus: &[CpuId], settings: &Settings) -> Result<Slices, Refusal> {
    assign_to(
        tasks,
        cpus,
        &mut vec![Processor::default(); cpus.len()],
        settings,
    )
}

/// The same, on processors that accept by their own lights; one for each of `cpus`.
pub(crate) fn assign_to<H: Host>(
    tasks: &[Timing],
    cpus: &[CpuId],
    processors: &mut [H],
    settings: &Settings,
) -> Result<Slices, Refusal> {
    let mut work = Work::of(settings.work);
    let refuse = |index: u32, work: &Work| match work.left() {
        0 => Refusal::Limit,
        _ => Refusal::Task(index),
    };
    let mut order = Vec::new();
    settings.order.sort(tasks, &mut order);
    let mut slices: Vec<Vec<Slice>> = vec![Vec::new(); tasks.len()];
    let mut from = 0;
    for index in order {
        let t = tasks[index as usize];
        let item = Item::new(t).ok_or(Refusal::Task(index))?;
        if let Some(p) = choose(processors, index, &item, settings.fit, from, &mut work) {
            processors[p].add(index, &item);
            if settings.fit == Fit::Next {
                from = p;
            }
            slices[index as usize].push(Slice {
                cpu: cpus[p],
                budget: t.wcet,
                window: t.deadline,
            });
            continue;
        }
        let parts = split(processors, index, &t, settings.shortest, &mut work)
            .ok_or_else(|| refuse(index, &work))?;
        let window = window(&t, parts.len());
        for (at, (p, budget)) in parts.iter().enumerate() {
            let part = Timing {
                wcet: *budget,
                period: t.period,
                deadline: window,
            };
            let before = parts[(at + parts.len() - 1) % parts.len()].0;
            processors[*p]
                .add_slice(index, part, Position { at, before })
                .ok_or(Refusal::Task(index))?;
            slices[index as usize].push(Slice {
                cpu: cpus[*p],
                budget: *budget,
                window,
            });
        }
    }
    Ok(Slices {
        cpus: cpus.to_vec(),
        tasks: slices,
    })
}

/// The window of each of so many slices: an equal part of the deadline or the period, whichever is
/// shorter.
///
/// A job that ends after the next release would delay the first slice of the next job, which its
/// processor does not expect.
fn window(t: &Timing, slices: usize) -> Duration {
    Duration::from_nanos(t.deadline.min(t.period).nanos() / slices as u64)
}

fn choose<H: Host>(
    processors: &mut [H],
    task: u32,
    item: &Item,
    fit: Fit,
    from: usize,
    work: &mut Work,
) -> Option<usize> {
    let count = processors.len();
    let accepts = |p: &usize| processors[*p].accepts(task, item, work);
    match fit {
        Fit::First => (0..count).find(accepts),
        Fit::Next => (from..count).find(accepts),
        Fit::Worst | Fit::Best => {
            let mut ranked: Vec<usize> = (0..count).collect();
            // Stable: equal loads stay in the order of their numbers.
            if fit == Fit::Worst {
                ranked.sort_by_key(|p| processors[*p].load());
            } else {
                ranked.sort_by_key(|p| std::cmp::Reverse(processors[*p].load()));
            }
            ranked
                .into_iter()
                .find(|p| processors[*p].accepts(task, item, work))
        }
    }
}

/// A processor by how long a slice on it may be: proven, or an upper bound. Longer ones first, then
/// lower numbers.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Offer {
    slice: Duration,
    processor: std::cmp::Reverse<usize>,
    proven: bool,
}

/// Processors and budgets of the fewest slices that hold the task.
fn split<H: Host>(
    processors: &mut [H],
    task: u32,
    t: &Timing,
    shortest: Duration,
    work: &mut Work,
) -> Option<Vec<(usize, Duration)>> {
    for count in 2..=processors.len() {
        let window = window(t, count);
        if window < shortest || window.is_zero() {
            return None;
        }
        let slice = Timing {
            wcet: t.wcet.min(window),
            period: t.period,
            deadline: window,
        };
        if let Some(parts) =
            longest_slices(processors, task, &slice, (count, t.wcet), shortest, work)
        {
            return cut(parts, t.wcet, shortest);
        }
        if work.left() == 0 {
            return None;
        }
    }
    None
}

/// The `count` longest slices in this window, longest first, if none is below `shortest` and they
/// hold `wcet` together.
///
/// Upper bounds go first: a processor's slice is computed only if it may be among the longest, and
/// only as far as together with the longest that others may have it may hold `wcet`. Bounds only
/// fall, so that where they do not suffice once, no slices do.
fn longest_slices<H: Host>(
    processors: &mut [H],
    task: u32,
    slice: &Timing,
    (count, wcet): (usize, Duration),
    shortest: Duration,
    work: &mut Work,
) -> Option<Vec<(usize, Duration)>> {
    let mut offers: Vec<Offer> = Vec::with_capacity(processors.len());
    for (p, processor) in processors.iter().enumerate() {
        work.spend(processor.len() as u64 + 1);
        offers.push(Offer {
            slice: processor.slice_at_most(task, slice),
            processor: std::cmp::Reverse(p),
            proven: false,
        });
    }
    // The best is at the end.
    offers.sort_unstable();
    let mut parts = Vec::with_capacity(count);
    let mut missing = u128::from(wcet.nanos());
    while parts.len() < count {
        let offer = offers.pop()?;
        let rest = offers.iter().rev().take(count - parts.len() - 1);
        let rest: u128 = rest.map(|o| u128::from(o.slice.nanos())).sum();
        let least = u64::try_from(missing.saturating_sub(rest)).unwrap_or(u64::MAX);
        let least = Duration::from_nanos(least.max(1)).max(shortest);
        if offer.slice < least || work.left() == 0 {
            return None;
        }
        let p = offer.processor.0;
        if offer.proven {
            parts.push((p, offer.slice));
            missing = missing.saturating_sub(u128::from(offer.slice.nanos()));
            continue;
        }
        let proven = Offer {
            slice: processors[p].longest_slice(task, slice, least, work),
            proven: true,
            ..offer
        };
        let place = offers.partition_point(|o| *o < proven);
        offers.insert(place, proven);
    }
    Some(parts)
}

/// Cuts the last slice to what is missing. If that is below the shortest, it is lengthened, and the
/// first gives what it can spare, so that no more than needed is reserved.
fn cut(
    mut parts: Vec<(usize, Duration)>,
    wcet: Duration,
    shortest: Duration,
) -> Option<Vec<(usize, Duration)>> {
    let ((_, last), before) = parts.split_last_mut()?;
    let taken = before
        .iter()
        .try_fold(Duration::ZERO, |sum, (_, s)| sum.checked_add(*s))?;
    let missing = wcet.saturating_sub(taken);
    *last = missing.max(shortest).max(Duration::from_nanos(1));
    let surplus = last.saturating_sub(missing);
    let first = &mut before.first_mut()?.1;
    *first = first.saturating_sub(surplus).max(shortest.min(*first));
    Some(parts)
}

/// The test.
pub const INFO: TestInfo = TestInfo {
    name: "EDF-WM",
    policy: "edf-wm",
    guarantee: Guarantee::Hard,
    exactness: Exactness::Sufficient,
    source: "002 §4.2; Kato, Yamasaki, Ishikawa 2009",
    preconditions: "arbitrary deadlines; implicit ones in sets of more than 5000 tasks",
    about: "First fit in decreasing utilization with exact EDF per processor; a task that fits nowhere is split over the \
            fewest processors, in equal windows within deadline and period, with the longest slices that the demand bound \
            admits, none below 50 us (002 §5.1.2).",
    run: |tasks, m| {
        // Whole tasks with implicit deadlines are placed by their utilization.
        if tasks.len() > EXACT_PLACEMENTS && !tasks.iter().all(Timing::has_implicit_deadline) {
            return Err(TOO_MANY_PLACEMENTS);
        }
        match assign(tasks, &super::processors(m), &Settings::default()) {
            Ok(_) => Ok(true),
            Err(Refusal::Task(_)) => Ok(false),
            Err(Refusal::Limit) => Err(LIMIT),
        }
    },
    run_inflated: None,
    on_grid: None,
    carries: Carries::Nothing,
};
