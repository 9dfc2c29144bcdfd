//! How long one task of a processor can execute so that EDF meets every deadline, exactly.
//!
//! With the jobs k(t) of the task and the demand h(t) of all others by t, its WCET C holds if and
//! only if k(t) C ≤ t − h(t) for every deadline t (Baruah, Rosier, Howell 1990), so that the longest
//! one is the least ⌊(t − h(t)) / k(t)⌋. Which deadlines are looked at, and in which order, changes
//! nothing; they end at a bound that falls with C ([`edf::violation_bound`]), or after a
//! hyperperiod. So the first ones go upwards, where most of the cutting is done and the bound falls
//! fast; what they leave goes downwards by quick processor-demand analysis (Zhang, Burns, Baruah
//! 2011, sensitivity): what was checked above t holds for every shorter WCET.

use super::demand::Columns;
use super::edf::{busy_period, demand, hyperperiod, last_deadline_before, violation_bound};
use super::{LIMIT, Work, div};
use crate::verdict::NotApplicable;
use model::{Duration, Timing};

/// The longest WCET of the last task, at most the one that it has, with which EDF meets every
/// deadline; it is left there. Where it is found to be below `least` the search ends, and the result
/// is below `least` but may be longer than the longest.
///
/// The others must be schedulable without it, U ≤ 1 with it, and its WCET within its deadline.
///
/// # Errors
/// [`LIMIT`]; the WCET that is left is then an upper bound only.
pub fn longest_last(
    tasks: &mut [Timing],
    least: Duration,
    work: &mut Work,
) -> Result<Duration, NotApplicable> {
    let Some(last) = tasks.last().copied() else {
        return Ok(Duration::ZERO);
    };
    if tasks.iter().all(|t| t.deadline >= t.period) {
        return Ok(last.wcet);
    }
    let checked = match climb(tasks, least, work)? {
        Climbed::All => return Ok(last_wcet(tasks)),
        Climbed::To(t) => t,
    };
    descend(tasks, checked, least, work)?;
    Ok(last_wcet(tasks))
}

fn last_wcet(tasks: &[Timing]) -> Duration {
    tasks.last().map_or(Duration::ZERO, |t| t.wcet)
}

/// How far the first deadlines went.
enum Climbed {
    /// No later one is missed, or the WCET is below what is wanted.
    All,
    /// All up to this time hold.
    To(u128),
}

/// At how many deadlines the way upwards ends: with few tasks one costs no more than a step
/// downwards, with many tasks a step downwards passes many of them.
const FIRST: usize = 256;
const FIRST_OF_MANY: usize = 32;
/// Fewer others than so many are few.
const FEW: usize = 8;

/// Times from here on go downwards alone, in 128 bits.
const LONG: u64 = 1 << 62;

/// Cuts the last WCET to what the first deadlines admit, upwards from its own first one: before, it
/// asks for nothing.
fn climb(tasks: &mut [Timing], least: Duration, work: &mut Work) -> Result<Climbed, NotApplicable> {
    let Some((last, others)) = tasks.split_last_mut() else {
        return Ok(Climbed::All);
    };
    let window = last.deadline.nanos();
    let bound = ClearBound::of(others, last);
    let mut end = bound.end(last.wcet);
    let mut own = window;
    let mut next: Vec<u64> = others.iter().map(|t| deadline_from(t, window)).collect();
    let mut checked = u128::from(window).saturating_sub(1);
    // The demand of the others, and the jobs of the last one.
    let (mut h, mut jobs) = (demand(others, checked), 0_u128);
    if !work.spend(next.len() as u64) {
        return Err(LIMIT);
    }
    let times = if next.len() < FEW {
        FIRST
    } else {
        FIRST_OF_MANY
    };
    for _ in 0..times {
        let t = next.iter().copied().fold(own, u64::min);
        if t >= LONG {
            break;
        }
        let mut counted = 0;
        for (at, task) in next.iter_mut().zip(&*others) {
            if *at == t {
                *at = t.saturating_add(task.period.nanos().max(1));
                h += u128::from(task.wcet.nanos());
                counted += 1;
            }
        }
        if own == t {
            own = t.saturating_add(last.period.nanos().max(1));
            jobs += 1;
            counted += 1;
        }
        if !work.spend(counted) {
            return Err(LIMIT);
        }
        checked = u128::from(t);
        if h + jobs * u128::from(last.wcet.nanos()) > checked {
            cut(last, checked.saturating_sub(h), jobs);
            if last.wcet < least || last.wcet.is_zero() {
                return Ok(Climbed::All);
            }
            end = bound.end(last.wcet);
        }
        if end.is_some_and(|end| t as f64 >= end) {
            return Ok(Climbed::All);
        }
    }
    Ok(Climbed::To(checked))
}

/// Gives so many jobs of a task no more than `left` together.
fn cut(task: &mut Timing, left: u128, jobs: u128) {
    let jobs = u64::try_from(jobs.max(1)).unwrap_or(u64::MAX);
    let admitted = u64::try_from(div(left, jobs)).unwrap_or(u64::MAX);
    task.wcet = task.wcet.min(Duration::from_nanos(admitted));
}

/// The first absolute deadline of a task at or after `from`; the end of time where it is beyond.
fn deadline_from(task: &Timing, from: u64) -> u64 {
    let (d, p) = (task.deadline.nanos(), task.period.nanos().max(1));
    let Some(later) = from.checked_sub(d) else {
        return d;
    };
    let beyond = later.div_ceil(p).checked_mul(p);
    beyond.and_then(|b| b.checked_add(d)).unwrap_or(u64::MAX)
}

/// [`violation_bound`] in floating point, for any WCET of the last task: where it is clear.
struct ClearBound {
    /// Of the others.
    utilization: f64,
    /// Of the others, Σ (pᵢ − Dᵢ) uᵢ where D is shorter.
    slack: f64,
    /// The longest D − p.
    longest: f64,
    /// Of the last: 1 / p, and (p − D) / p where D is shorter.
    own: (f64, f64),
    /// The least 1 − U that is clear.
    idle: f64,
}

impl ClearBound {
    fn of(others: &[Timing], last: &Timing) -> Self {
        let early = |t: &Timing| t.period.saturating_sub(t.deadline).nanos() as f64;
        let period = |t: &Timing| t.period.nanos().max(1) as f64;
        let share = |t: &Timing| t.wcet.nanos() as f64 / period(t);
        let late = |t: &Timing| t.deadline.saturating_sub(t.period);
        let longest = others.iter().map(late).fold(late(last), Duration::max);
        ClearBound {
            utilization: others.iter().map(share).sum(),
            slack: others.iter().map(|t| share(t) * early(t)).sum(),
            longest: longest.nanos() as f64,
            own: (1.0 / period(last), early(last) / period(last)),
            // Sums of n numbers up to 1 are off by at most n 2^-52, and so is 1 − U: of this by
            // less than a part of 2^-24.
            idle: 1e-6_f64.max(others.len() as f64 * 4e-9),
        }
    }

    /// From this time on no deadline is missed with this WCET. `None`: not clear.
    fn end(&self, wcet: Duration) -> Option<f64> {
        let wcet = wcet.nanos() as f64;
        let idle = 1.0 - self.utilization - wcet * self.own.0;
        let slack = self.slack + wcet * self.own.1;
        // Far above what rounding takes, here and where a time is compared with it.
        let end = || (slack / idle).max(self.longest) * (1.0 + 1e-6) + 1.0;
        (idle > self.idle).then(end)
    }
}

/// Cuts the last WCET to what all deadlines after `checked` admit, downwards.
fn descend(
    tasks: &mut [Timing],
    checked: u128,
    least: Duration,
    work: &mut Work,
) -> Result<(), NotApplicable> {
    let repeats = hyperperiod(tasks);
    let mut limit = match (violation_bound(tasks), repeats) {
        (Some(bound), Some(repeats)) => bound.min(repeats),
        (bound, repeats) => bound
            .or(repeats)
            .or_else(|| busy_period(tasks, work))
            .ok_or(LIMIT)?,
    };
    let mut next = last_deadline_before(tasks, limit + 1);
    let mut columns = Columns::of(tasks);
    while let Some(t) = next.filter(|t| *t > checked) {
        let cost = if t >> 64 == 0 { 1 } else { 8 };
        if !work.spend(cost * tasks.len() as u64) {
            return Err(LIMIT);
        }
        let mut h = columns.demand(tasks, t);
        if h > t {
            h = cut_at(tasks, t);
            columns.set_last(tasks);
            if tasks
                .last()
                .is_none_or(|l| l.wcet < least || l.wcet.is_zero())
            {
                return Ok(());
            }
            // Less is asked for: the first violation lies before a lower bound.
            limit = limit.min(violation_bound(tasks).unwrap_or(limit));
            if limit < t {
                next = last_deadline_before(tasks, limit + 1);
                continue;
            }
        }
        // Between h(t) and t there is no violation, because h is monotone.
        next = if h < t {
            Some(h)
        } else {
            last_deadline_before(tasks, t)
        };
    }
    Ok(())
}

/// Cuts the WCET of the last task to what the demand of the others by `t` leaves; the demand that
/// remains.
fn cut_at(tasks: &mut [Timing], t: u128) -> u128 {
    let Some((last, others)) = tasks.split_last_mut() else {
        return 0;
    };
    let others = demand(others, t);
    let Some(beyond) = t.checked_sub(u128::from(last.deadline.nanos())) else {
        return others;
    };
    let jobs = div(beyond, last.period.nanos()) + 1;
    cut(last, t.saturating_sub(others), jobs);
    others + jobs * u128::from(last.wcet.nanos())
}
