//! EDF-fm: soft real time; at most m − 1 tasks migrate, between two processors each, at job
//! boundaries.
//!
//! 002 §4.1; Anderson, Bud, Devi 2005 and 2008. Implicit deadlines. Tasks are placed by sequential
//! next fit; one that does not fit becomes migratory and takes what is left and the rest from the
//! next processor. Where that fails in the order of the set, small tasks are left to be split
//! (`next_fit`). Migratory jobs go first, EDF within each class. The utilizations of the
//! migratory tasks of a processor sum to at most one, so that they never miss; fixed tasks are
//! tardy by a bounded time.
//!
//! Shares are whole nanoseconds a period, rounded down on the first processor: less than one
//! nanosecond a period is given away.
//!
//! The bound on tardiness (derived in `docs/tardiness.md`, in the form of the 2008 paper, with the
//! slack of a processor that is not full) has a precondition: of any q consecutive jobs of a
//! migratory task at most q f + 1 run on a processor that has the part f of them, on both of its
//! processors. The policy deals its jobs out so (`policy::plan::Turns`). In t time units the task
//! then takes at most s t + e (f + 1) here. A job of T with period p is then late by at most (Σ e
//! (f + 1) − p (1 − S − V)) / (1 − S), where S is the sum of the migratory shares and V that of the
//! fixed utilizations.

use crate::carries::Carries;
use crate::info::TestInfo;
use crate::semi::next_fit::{Filling, Order};
use crate::verdict::{self, Decision, Exactness, Guarantee};
use model::assignment::{Turn, Turns};
use model::{CpuId, Duration, Ratio, Timing, exact};
use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, ToPrimitive, Zero};
use std::cmp::Ordering;
use std::collections::BTreeMap;

/// How much of a processor is filled before the next one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Fill {
    /// All of it: only the last one has capacity left.
    #[default]
    Full,
    /// As little as spreads the set evenly: the larger of U / m and the largest utilization (002
    /// §4.1, light systems).
    Spread,
}

/// Why there is no assignment. Indices of tasks and processors are from 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// This task needs more than a processor, or does not fit any more.
    Task(usize),
    /// The migratory tasks of this processor have a total utilization above one.
    Migratory(usize),
}

/// The processors of every task, and which part of the jobs of a migratory one runs on which.
///
/// The share of a processor in task T is u `part` / `whole`, a whole number of nanoseconds a
/// period.
///
/// # Errors
/// The task or the processor that breaks what EDF-fm needs. Deadlines are not looked at.
pub fn assign(tasks: &[Timing], cpus: &[CpuId], fill: Fill) -> Result<Turns, Refusal> {
    first_that_holds(tasks, cpus, fill, |order, usual| {
        assign_up_to(tasks, cpus, fill, order, usual)
    })
}

fn assign_up_to(
    tasks: &[Timing],
    cpus: &[CpuId],
    fill: Fill,
    order: Order,
    usual: Ratio,
) -> Result<Vec<Turn>, Refusal> {
    let mut filling = Sequence {
        tasks,
        cpus,
        fill,
        usual,
        turns: vec![Turn::fixed(CpuId(0)); tasks.len()],
        current: 0,
        inside: Inside::default(),
        migratory: None,
    };
    order.place(tasks, &mut filling)?;
    Ok(filling.turns)
}

/// Processors that are filled without overheads.
struct Sequence<'a> {
    tasks: &'a [Timing],
    cpus: &'a [CpuId],
    fill: Fill,
    usual: Ratio,
    turns: Vec<Turn>,
    current: usize,
    /// What is on the current processor, as time a period.
    inside: Inside,
    /// The utilization of the task of which some jobs come here from the processor before.
    migratory: Option<Ratio>,
}

impl Sequence<'_> {
    fn cpu(&self, task: usize) -> Result<CpuId, Refusal> {
        let cpu = self.cpus.get(self.current);
        cpu.copied().ok_or(Refusal::Task(task))
    }

    fn cap(&self) -> Ratio {
        cap_of(self.current, self.cpus.len(), self.usual)
    }
}

impl Filling for Sequence<'_> {
    type End = Refusal;

    fn take(&mut self, tasks: &[usize]) -> Result<usize, Refusal> {
        for (count, &task) in tasks.iter().enumerate() {
            let cpu = self.cpu(task)?;
            if !self.fits(task)? {
                return Ok(count);
            }
            self.inside.push(self.tasks[task].utilization());
            self.turns[task] = Turn::fixed(cpu);
        }
        Ok(tasks.len())
    }

    fn fits(&mut self, task: usize) -> Result<bool, Refusal> {
        let own = self.tasks[task].utilization();
        Ok(self.inside.takes(own, self.cap()))
    }

    fn split(&mut self, task: usize) -> Result<bool, Refusal> {
        let t = self.tasks[task];
        let cpu = self.cpu(task)?;
        let left = time_left(&self.inside.shares, self.cap(), t.period);
        let before = self.migratory.take();
        self.current += 1;
        self.inside = Inside::default();
        if left.is_zero() || is_sliver(left, &t, self.fill) {
            return Ok(false);
        }
        let next = self.cpu(task)?;
        let own = t.utilization();
        if exact::cmp_sum(before.into_iter().chain([own]), Ratio::ONE) == Ordering::Greater {
            return Err(Refusal::Migratory(self.current - 1));
        }
        self.migratory = Some(own);
        let rest = t.wcet.saturating_sub(left);
        if let Some(share) = Ratio::new(rest.nanos(), t.period.nanos()) {
            self.inside.push(share);
        }
        self.turns[task] = turn(cpu, next, left, t.wcet);
        Ok(true)
    }
}

/// How far this processor of so many is filled: the last one takes what roundings and whole tasks
/// have left to it.
pub(crate) fn cap_of(place: usize, cpus: usize, usual: Ratio) -> Ratio {
    if place + 1 == cpus { Ratio::ONE } else { usual }
}

/// Spreading evenly is no reason to split off a sliver.
pub(crate) fn is_sliver(part: Duration, task: &Timing, fill: Fill) -> bool {
    fill == Fill::Spread && part.nanos() < task.wcet.nanos() / SLIVER
}

/// The shares of a processor, with their sum in floating point, so that most tasks are decided
/// without adding all of them.
#[derive(Default)]
struct Inside {
    shares: Vec<Ratio>,
    about: f64,
}

impl Inside {
    fn push(&mut self, share: Ratio) {
        self.about += share.to_f64();
        self.shares.push(share);
    }

    /// Is the sum with this one at most `cap`? Exactly.
    fn takes(&self, own: Ratio, cap: Ratio) -> bool {
        let about = self.about + own.to_f64();
        // Each share is off by at most three units of the last place, each addition by one.
        let error = (about + 1.0) * (self.shares.len() as f64 + 16.0) * f64::EPSILON;
        if about + error < cap.to_f64() {
            return true;
        }
        if about - error > cap.to_f64() {
            return false;
        }
        let with = self.shares.iter().copied().chain(std::iter::once(own));
        exact::cmp_sum_exactly(with, cap).is_le()
    }
}

/// Less than this part of a task is not split off to spread the load.
pub(crate) const SLIVER: u64 = 100;

pub(crate) fn turn(first: CpuId, second: CpuId, time: Duration, wcet: Duration) -> Turn {
    let common = time.nanos().gcd(&wcet.nanos()).max(1);
    Turn {
        first,
        second,
        part: time.nanos() / common,
        whole: wcet.nanos() / common,
    }
}

/// The largest whole time a period that `inside` leaves of `cap`; shorter than the WCET, since the
/// task did not fit.
fn time_left(inside: &[Ratio], cap: Ratio, period: Duration) -> Duration {
    // In units of 2^-64, at least and at most; mostly both give the same whole time.
    let scale = |r: &Ratio| (u128::from(r.num()) << 64) / u128::from(r.den());
    let used: u128 = inside.iter().map(scale).sum();
    if let Some(high) = (scale(&cap) + 1).checked_sub(used)
        && let Some(low) = high.checked_sub(inside.len() as u128 + 1)
        && high < 1 << 64
    {
        let time = |left: u128| (left * u128::from(period.nanos())) >> 64;
        if time(low) == time(high) {
            return Duration::from_nanos(time(low) as u64);
        }
    }
    let left = cap.to_big() - exact::sum(inside.iter().copied());
    let time = left * BigRational::from_integer(BigInt::from(period.nanos()));
    Duration::from_nanos(time.floor().to_integer().to_u64().unwrap_or(0))
}

/// How many levels between an even share and a full processor are tried.
const SPREADS: u64 = 8;

/// How far processors are filled, in the order in which it is tried. With overheads everybody needs
/// more than an even share of the executions, and even without them a higher level may split tasks
/// that overload no processor.
pub(crate) fn levels(tasks: &[Timing], m: usize, fill: Fill) -> impl Iterator<Item = Ratio> {
    let even = capacity(tasks, m, fill);
    let steps = if fill == Fill::Spread { SPREADS } else { 0 };
    (0..=steps).map(move |step| {
        // Below 2^36: an even share is a whole number of 2^-32, at most one.
        let (num, den) = (even.num() * SPREADS, even.den() * SPREADS);
        Ratio::new(num + (even.den() - even.num()) * step, den).unwrap_or(Ratio::ONE)
    })
}

/// Everything that is tried, in this order: the order of the set at each level, then the other.
pub(crate) fn attempts(
    tasks: &[Timing],
    m: usize,
    fill: Fill,
) -> impl Iterator<Item = (Order, Ratio)> {
    let with = move |order| levels(tasks, m, fill).map(move |level| (order, level));
    Order::ALL.into_iter().flat_map(with)
}

/// The first assignment that there is.
///
/// # Errors
/// There is none; what breaks the first that was tried.
pub(crate) fn first_that_holds(
    tasks: &[Timing],
    cpus: &[CpuId],
    fill: Fill,
    assign_up_to: impl Fn(Order, Ratio) -> Result<Vec<Turn>, Refusal>,
) -> Result<Turns, Refusal> {
    if let Some(heavy) = tasks.iter().position(|t| t.wcet > t.period) {
        return Err(Refusal::Task(heavy));
    }
    let mut first = None;
    for (order, level) in attempts(tasks, cpus.len(), fill) {
        match assign_up_to(order, level) {
            Ok(turns) => {
                return Ok(Turns {
                    cpus: cpus.to_vec(),
                    tasks: turns,
                });
            }
            Err(why) => _ = first.get_or_insert(why),
        }
    }
    Err(first.unwrap_or(Refusal::Task(0)))
}

fn capacity(tasks: &[Timing], m: usize, fill: Fill) -> Ratio {
    if fill == Fill::Full || m == 0 {
        return Ratio::ONE;
    }
    // In units of 2^-32.
    const UNIT: u64 = 1 << 32;
    let scaled = |t: &Timing| {
        (u128::from(t.wcet.nanos()) << 32).div_ceil(u128::from(t.period.nanos().max(1)))
    };
    let even = tasks.iter().map(scaled).sum::<u128>().div_ceil(m as u128);
    let largest = tasks.iter().map(scaled).max().unwrap_or(0);
    let cap = u64::try_from(even.max(largest)).unwrap_or(UNIT).min(UNIT);
    Ratio::new(cap, UNIT).unwrap_or(Ratio::ONE)
}

/// A bound on the tardiness of every task, in the order of the set, rounded up; zero for migratory
/// tasks.
pub fn tardiness_bounds(tasks: &[Timing], turns: &Turns) -> Vec<Duration> {
    tardiness_with(tasks, turns, |task, _| tasks[task].wcet)
}

/// The same, where a task (by index) executes for so long on a processor.
pub(crate) fn tardiness_with(
    tasks: &[Timing],
    turns: &Turns,
    execution: impl Fn(usize, CpuId) -> Duration,
) -> Vec<Duration> {
    let big = |d: Duration| BigRational::from_integer(BigInt::from(d.nanos()));
    let mut bounds = vec![Duration::ZERO; tasks.len()];
    // The fixed tasks of a processor, and the sum of migratory shares and Σ e (f + 1).
    let mut fixed: BTreeMap<CpuId, Vec<usize>> = BTreeMap::new();
    let mut migratory: BTreeMap<CpuId, (BigRational, BigRational)> = BTreeMap::new();
    for (index, (t, turn)) in tasks.iter().zip(&turns.tasks).enumerate() {
        if !turn.is_migratory() {
            fixed.entry(turn.first).or_default().push(index);
            continue;
        }
        let part = BigRational::new(BigInt::from(turn.part), BigInt::from(turn.whole.max(1)));
        let rest = BigRational::one() - &part;
        for (cpu, part) in [(turn.first, part), (turn.second, rest)] {
            let (share, burst) = migratory
                .entry(cpu)
                .or_insert_with(|| (BigRational::zero(), BigRational::zero()));
            let wcet = execution(index, cpu);
            *share += Timing { wcet, ..*t }.utilization().to_big() * &part;
            *burst += big(wcet) * (part + BigRational::one());
        }
    }
    for (cpu, fixed) in fixed {
        let Some((share, burst)) = migratory.get(&cpu) else {
            continue;
        };
        // Positive where the assignment holds: a fixed task has a positive share of the rest.
        let left = BigRational::one() - share;
        if left <= BigRational::zero() {
            fixed.iter().for_each(|i| bounds[*i] = Duration::MAX);
            continue;
        }
        let slack = &left
            - exact::sum(fixed.iter().map(|i| {
                let wcet = execution(*i, cpu);
                Timing { wcet, ..tasks[*i] }.utilization()
            }));
        for index in fixed {
            let late = (burst - big(tasks[index].period) * &slack) / &left;
            if late > BigRational::zero() {
                let late = late.ceil().to_integer().to_u64().unwrap_or(u64::MAX);
                bounds[index] = Duration::from_nanos(late);
            }
        }
    }
    bounds
}

/// The test.
pub const INFO: TestInfo = TestInfo {
    name: "EDF-FM",
    policy: "edf-fm",
    guarantee: Guarantee::Soft,
    exactness: Exactness::Sufficient,
    source: "002 §4.1; Anderson, Bud, Devi 2008",
    preconditions: "implicit deadlines",
    about: "Sequential next fit; tasks that do not fit migrate between two processors at job boundaries. The order of the set \
            first, else small tasks are split; full processors first, else spread evenly. Tardiness is bounded if the migratory tasks of no processor exceed it.",
    run: decide,
    run_inflated: None,
    on_grid: None,
    carries: Carries::Nothing,
};

fn decide(tasks: &[Timing], m: u32) -> Decision {
    verdict::implicit_deadlines(tasks)?;
    let cpus = super::processors(m);
    Ok([Fill::Full, Fill::Spread]
        .iter()
        .any(|fill| assign(tasks, &cpus, *fill).is_ok()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use testing::sets::implicit_ms;

    /// From an even share in eighths of the rest up to all of a processor, also where the share is
    /// a simple fraction.
    #[test]
    fn levels_rise_to_a_full_processor() {
        let half = [implicit_ms(5, 10), implicit_ms(5, 10)];
        let sixteenths = levels(&half, 2, Fill::Spread).map(|level| level.num() * 16 / level.den());
        assert!(sixteenths.eq(8..=16));
        assert!(levels(&half, 2, Fill::Full).eq([Ratio::ONE]));
    }

    /// At the even share two tasks that migrate may meet on one processor and ask for more than it
    /// has; higher up they need not.
    #[test]
    fn a_higher_level_is_tried_without_overheads_as_well() {
        let cpus = crate::semi::processors(3);
        let mut found = 0;
        for a in 1..=9 {
            for b in 1..=9 {
                for c in 1..=9 {
                    for d in 1..=9 {
                        let set = [a, b, c, d].map(|e| implicit_ms(e, 10));
                        let even = capacity(&set, 3, Fill::Spread);
                        let at_even = assign_up_to(&set, &cpus, Fill::Spread, Order::Given, even);
                        let spread = assign(&set, &cpus, Fill::Spread);
                        if let (Err(Refusal::Migratory(_)), Ok(_)) = (at_even, spread) {
                            found += 1;
                        }
                    }
                }
            }
        }
        assert!(found > 0);
    }
}
