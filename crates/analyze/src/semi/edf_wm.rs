//! EDF-WM: hard real time; a task that no processor takes is cut into slices, each with a window of its own.
//!
//! 002 §4.2; Kato, Yamasaki, Ishikawa 2009. Sporadic tasks with arbitrary deadlines. Tasks are packed by any heuristic with
//! exact EDF per processor. A task that fits nowhere is split over the fewest processors m′ ≥ 2: every slice gets the window
//! ⌊D / m′⌋, released when the window before ends, and the longest execution that the demand bound of its processor
//! admits; the m′ longest are taken, longest first, and the last is cut to what is missing. All jobs of a processor, whole
//! or slices, run by EDF.
//!
//! Exact integers: the longest slice is found by bisection over the exact test, which is monotone. A processor on which
//! that hits its limit of work admits nothing.

use crate::partition::{EXACT_PLACEMENTS, Fit, Order, TOO_MANY_PLACEMENTS};
use crate::registry::TestInfo;
use crate::uniprocessor::edf;
use crate::verdict::{Exactness, Guarantee};
use model::assignment::{Slice, Slices};
use model::{CpuId, Duration, Ratio, Timing, exact};

/// What may be chosen.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Settings {
    /// In which order tasks are placed.
    pub order: Order,
    /// Which processor takes a task that several could.
    pub fit: Fit,
    /// No slice is shorter.
    pub shortest: Duration,
}

impl Default for Settings {
    fn default() -> Self {
        Settings {
            order: Order::DecreasingUtilization,
            fit: Fit::First,
            shortest: super::SHORTEST,
        }
    }
}

const ONE: u128 = 1 << 64;

/// A task or slice with its utilization in units of 2^-64, rounded down and up. The WCET is within deadline and period.
#[derive(Clone, Copy, Debug)]
struct Item {
    timing: Timing,
    low: u128,
    high: u128,
}

impl Item {
    fn new(timing: Timing) -> Option<Self> {
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
struct Processor {
    /// Whole tasks, and slices with their window as the deadline.
    tasks: Vec<Timing>,
    /// Sums of the items' utilizations.
    low: u128,
    high: u128,
    /// Is some deadline shorter than its period?
    constrained: bool,
}

impl Processor {
    /// Would EDF hold this one, too? Exact; a limit counts as no.
    fn accepts(&mut self, item: &Item) -> bool {
        if self.low + item.low > ONE {
            return false;
        }
        let surely_fits = self.high + item.high <= ONE;
        let constrained = self.constrained || item.timing.deadline < item.timing.period;
        if surely_fits && !constrained {
            return true;
        }
        self.tasks.push(item.timing);
        let fits =
            surely_fits || exact::cmp_sum(self.tasks.iter().map(Timing::utilization), Ratio::ONE).is_le();
        let accepted = fits && (!constrained || edf::decide_by_demand(&self.tasks) == Ok(true));
        self.tasks.pop();
        accepted
    }

    fn add(&mut self, item: &Item) {
        self.low += item.low;
        self.high += item.high;
        self.constrained |= item.timing.deadline < item.timing.period;
        self.tasks.push(item.timing);
    }

    /// The longest execution in this window that fits, at most `most`.
    fn longest_slice(&mut self, window: Duration, period: Duration, most: Duration) -> Duration {
        // What utilization leaves, rounded up: 63 bits times 64 bits.
        let left = ONE.saturating_sub(self.low).div_ceil(2);
        let by_utilization = (left * u128::from(period.nanos())).div_ceil(1 << 63);
        let mut high = most
            .min(window)
            .nanos()
            .min(u64::try_from(by_utilization).unwrap_or(u64::MAX));
        let mut low = 0;
        while low < high {
            let middle = low + (high - low).div_ceil(2);
            let slice = Item::new(Timing {
                wcet: Duration::from_nanos(middle),
                period,
                deadline: window,
            });
            if slice.is_some_and(|s| self.accepts(&s)) {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Duration::from_nanos(low)
    }
}

/// The slices of every task, in the order of the set.
///
/// # Errors
/// The index of the first task, in the order of placement, that can be neither placed nor split.
pub fn assign(tasks: &[Timing], cpus: &[CpuId], settings: &Settings) -> Result<Slices, u32> {
    let mut order = Vec::new();
    settings.order.sort(tasks, &mut order);
    let mut processors = vec![Processor::default(); cpus.len()];
    let mut slices: Vec<Vec<Slice>> = vec![Vec::new(); tasks.len()];
    let mut from = 0;
    for index in order {
        let t = tasks[index as usize];
        let item = Item::new(t).ok_or(index)?;
        if let Some(p) = choose(&mut processors, &item, settings.fit, from) {
            processors[p].add(&item);
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
        let parts = split(&mut processors, &t, settings.shortest).ok_or(index)?;
        let window = t.deadline.nanos() / parts.len() as u64;
        for (p, budget) in parts {
            let slice = Slice {
                cpu: cpus[p],
                budget,
                window: Duration::from_nanos(window),
            };
            let part = Item::new(Timing {
                wcet: budget,
                period: t.period,
                deadline: slice.window,
            });
            processors[p].add(&part.ok_or(index)?);
            slices[index as usize].push(slice);
        }
    }
    Ok(Slices {
        cpus: cpus.to_vec(),
        tasks: slices,
    })
}

fn choose(processors: &mut [Processor], item: &Item, fit: Fit, from: usize) -> Option<usize> {
    let count = processors.len();
    match fit {
        Fit::First => (0..count).find(|p| processors[*p].accepts(item)),
        Fit::Next => (from..count).find(|p| processors[*p].accepts(item)),
        Fit::Worst | Fit::Best => {
            let mut ranked: Vec<usize> = (0..count).collect();
            // Stable: equal loads stay in the order of their numbers.
            if fit == Fit::Worst {
                ranked.sort_by_key(|p| processors[*p].low);
            } else {
                ranked.sort_by_key(|p| std::cmp::Reverse(processors[*p].low));
            }
            ranked.into_iter().find(|p| processors[*p].accepts(item))
        }
    }
}

/// Processors and budgets of the fewest slices that hold the task.
fn split(processors: &mut [Processor], t: &Timing, shortest: Duration) -> Option<Vec<(usize, Duration)>> {
    for count in 2..=processors.len() {
        let window = Duration::from_nanos(t.deadline.nanos() / count as u64);
        if window < shortest || window.is_zero() {
            return None;
        }
        let mut parts: Vec<(usize, Duration)> = processors
            .iter_mut()
            .enumerate()
            .map(|(p, processor)| (p, processor.longest_slice(window, t.period, t.wcet)))
            .filter(|(_, slice)| *slice >= shortest && !slice.is_zero())
            .collect();
        parts.sort_by_key(|(_, slice)| std::cmp::Reverse(*slice));
        parts.truncate(count);
        let together: u128 = parts.iter().map(|(_, s)| u128::from(s.nanos())).sum();
        if parts.len() == count && together >= u128::from(t.wcet.nanos()) {
            return cut(parts, t.wcet, shortest);
        }
    }
    None
}

/// Cuts the last slice to what is missing. If that is below the shortest, it is lengthened, and the first gives what it can
/// spare, so that no more than needed is reserved.
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
            fewest processors, in equal windows, with the longest slices that the demand bound admits, none below 50 us.",
    run: |tasks, m| {
        // Whole tasks with implicit deadlines are placed by their utilization.
        if tasks.len() > EXACT_PLACEMENTS && !tasks.iter().all(Timing::has_implicit_deadline) {
            return Err(TOO_MANY_PLACEMENTS);
        }
        Ok(assign(tasks, &super::processors(m), &Settings::default()).is_ok())
    },
    run_inflated: None,
};
