//! The accounting of overheads where jobs share processors event by event: what one job of each
//! pays.
//!
//! 002 §6.1: a job pays two scheduling decisions, two context switches, two cache delays (its own
//! lack of affinity and that of the job that it preempts) and, where it is released on another
//! processor than the one that runs it, an IPI. Interrupts of ticks, releases and timer transfers
//! come at most w / T + 1 times in w time units, so that a job that executes for c takes at most w
//! = c + Σ o (w / T + 1), hence w = (c + Σ o) / (1 − Σ o / T).
//!
//! A hard guarantee also has to bear what the kernel is in the midst of and cannot be interrupted
//! in (002 §4.4): see [`sections`].
//!
//! Integers throughout: rates in units of 2^-64, rounded up, so that nothing is lost and no cost is
//! no change.

use super::kinds::{Kind, Parts};
use super::{CacheCharge, Overheads, Precedence, System};
use crate::verdict::Guarantee;
use model::{Duration, Timing};
use std::cmp::Reverse;

/// What a task, or the part of it that lives on these processors, asks of them and brings along.
#[derive(Clone, Copy, Debug)]
pub(super) struct Resident {
    /// Its execution here without overheads; its window as the deadline.
    pub timing: Timing,
    /// The cache delay with which its execution begins here.
    pub beginning: Duration,
    /// The cache delay with which it goes on here after a preemption.
    pub resuming: Duration,
    /// Which part of its jobs comes here: all of them, but under EDF-fm.
    pub jobs: (u64, u64),
    /// If timers are transferred here for it: how much their distance may differ from its period.
    pub transfers: Option<Duration>,
    /// How often a job of it waits for an inter-processor interrupt, apart from those of its
    /// cluster.
    pub calls: u64,
}

impl Resident {
    /// A whole task that stays.
    pub(super) fn whole(timing: Timing, beginning: Duration, resuming: Duration) -> Self {
        Resident {
            timing,
            beginning,
            resuming,
            jobs: (1, 1),
            transfers: None,
            calls: 0,
        }
    }
}

/// How often a job pays for scheduling, context switches and IPIs on `width` processors.
///
/// 002 §6.1 has two, two, and one IPI if there are several processors. For a hard guarantee: a
/// kernel section that has begun when a job arrives goes on (choose and switch, once more); with
/// several processors both that of the releasing processor and that of the one that is to run it.
/// And a preempted job that is to go on elsewhere waits until its old processor has switched away
/// and called (002 §4.4.2 and §6.4.3): choose, switch and IPI, and the choice is made again.
pub(super) fn sections(width: usize, guarantee: Guarantee) -> (u64, u64, u64) {
    match (guarantee, width > 1) {
        (Guarantee::Soft, false) => (2, 2, 0),
        (Guarantee::Soft, true) => (2, 2, 1),
        (Guarantee::Hard, false) => (3, 3, 0),
        (Guarantee::Hard, true) => (6, 5, 2),
    }
}

const ONE: u128 = 1 << 64;

/// The interrupts that hit whoever runs: at most `once` + `rate` w of w time units.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Interrupts {
    once: Parts,
    /// By kind, in units of 2^-64 of a processor, rounded up.
    rate: [(u128, Option<Kind>); 3],
}

impl Interrupts {
    /// The tick alone.
    pub(super) fn ticks(overheads: &Overheads) -> Self {
        let mut interrupts = Interrupts::default();
        interrupts.add(
            Kind::Tick,
            overheads.tick,
            overheads.tick_period,
            Duration::ZERO,
            (1, 1),
        );
        interrupts
    }

    /// The tick, and releases and timer transfers of these.
    pub(super) fn of<'a>(
        residents: impl Iterator<Item = &'a Resident>,
        overheads: &Overheads,
    ) -> Self {
        let mut interrupts = Interrupts::ticks(overheads);
        for r in residents {
            interrupts.add_releases(r, overheads);
        }
        interrupts
    }

    /// The releases of one more, and the timers that are transferred for it.
    pub(super) fn add_releases(&mut self, r: &Resident, overheads: &Overheads) {
        let period = r.timing.period;
        self.add(
            Kind::Release,
            overheads.release,
            period,
            Duration::ZERO,
            r.jobs,
        );
        if let Some(jitter) = r.transfers {
            self.add(
                Kind::TimerTransfer,
                overheads.timer_transfer,
                period,
                jitter,
                r.jobs,
            );
        }
    }

    /// An interrupt for `part` of `whole` jobs: of q in a row at most q part / whole + 1, or all of
    /// them.
    fn add(
        &mut self,
        kind: Kind,
        cost: Duration,
        period: Duration,
        jitter: Duration,
        (part, whole): (u64, u64),
    ) {
        if cost.is_zero() {
            return;
        }
        let (cost, period) = (u128::from(cost.nanos()), u128::from(period.nanos().max(1)));
        let (part, whole) = (u128::from(part), u128::from(whole.max(1)));
        let each = |of: u128| (of * part).div_ceil(whole);
        let rate = each((cost << 64).div_ceil(period).min(ONE));
        // (w + jitter) / period + 1 jobs.
        let early = (cost * u128::from(jitter.nanos())).div_ceil(period);
        let once =
            each(cost.saturating_add(early).min(ONE - 1)) + if part < whole { cost } else { 0 };
        self.once.add(kind, duration(once));
        let slot = match kind {
            Kind::Release => 0,
            Kind::Tick => 1,
            _ => 2,
        };
        let (sum, of) = &mut self.rate[slot];
        *sum = (*sum + rate).min(ONE);
        *of = Some(kind);
    }

    /// Their part of a processor in the long run, by kind, in units of 2^-64; each at most one.
    pub(super) fn rates(&self) -> impl Iterator<Item = (Kind, u128)> + '_ {
        self.rate
            .iter()
            .filter_map(|(rate, kind)| Some(((*kind)?, *rate)))
    }

    /// The time in which a job that executes for `own` is done, in spite of these, and what of it
    /// they take, by kind.
    pub(super) fn stretch(&self, own: Duration) -> (Duration, Parts) {
        let mut parts = self.once;
        let needed = own.saturating_add(parts.total());
        let rate: u128 = self.rate.iter().map(|(r, _)| r).sum();
        if rate == 0 {
            return (needed, parts);
        }
        if rate >= ONE || needed == Duration::MAX {
            if let Some((kind, _)) = self.rates().next() {
                parts.add(kind, Duration::MAX);
            }
            return (Duration::MAX, parts);
        }
        let time = duration((u128::from(needed.nanos()) << 64).div_ceil(ONE - rate));
        let mut rest = time.saturating_sub(needed);
        let mut first = None;
        for (kind, rate) in self.rates() {
            let part = duration((u128::from(time.nanos()) * rate) >> 64).min(rest);
            parts.add(kind, part);
            rest = rest.saturating_sub(part);
            first = first.or(Some(kind));
        }
        // What is left are fractions of a nanosecond of each.
        if let Some(kind) = first {
            parts.add(kind, rest);
        }
        (time, parts)
    }
}

impl Interrupts {
    /// The longest execution that is done within `time` in spite of these: the inverse of
    /// [`Interrupts::stretch`].
    pub(super) fn shrink(&self, time: Duration) -> Duration {
        let rate: u128 = self.rate.iter().map(|(r, _)| r).sum();
        let left = (u128::from(time.nanos()) * ONE.saturating_sub(rate).min(ONE - 1)) >> 64;
        let left = if rate == 0 { time } else { duration(left) };
        left.saturating_sub(self.once.total())
    }
}

fn duration(nanos: u128) -> Duration {
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// What a job brings about by itself, whoever interrupts it: all but interrupts.
fn own(resident: &Resident, disturbed: Duration, width: usize, system: &System<'_>) -> Parts {
    own_of(
        resident,
        disturbed,
        sections(width, system.counts()),
        system,
    )
}

/// The same, with so many scheduling decisions, context switches and IPIs.
pub(super) fn own_of(
    resident: &Resident,
    disturbed: Duration,
    (scheduling, switches, calls): (u64, u64, u64),
    system: &System<'_>,
) -> Parts {
    let o = system.overheads;
    let times = |each: Duration, times: u64| duration(u128::from(each.nanos()) * u128::from(times));
    let mut parts = Parts::default();
    parts.add(Kind::Scheduling, times(o.scheduling, scheduling));
    parts.add(Kind::ContextSwitch, times(o.context_switch, switches));
    parts.add(
        Kind::IpiLatency,
        times(o.ipi_latency, calls + resident.calls),
    );
    parts.add(Kind::Cpmd, resident.beginning);
    parts.add(Kind::Cpmd, disturbed);
    parts
}

/// The execution of each with all overheads, in order, and what of it is for which. The parts add
/// up to the difference.
///
/// Execution that no time suffices for, because interrupts take all of it, becomes
/// [`Duration::MAX`]: not schedulable by any test.
pub(super) fn inflate(
    residents: &[Resident],
    width: usize,
    system: &System<'_>,
) -> Vec<(Timing, Parts)> {
    let interrupts = Interrupts::of(residents.iter(), system.overheads);
    let disturbed = disturbed(residents, width, system);
    residents
        .iter()
        .zip(disturbed)
        .map(|(r, disturbed)| inflate_one(r, disturbed, &interrupts, width, system))
        .collect()
}

/// D* of each: the longest delay of another job that goes on where a job of this one has completed.
///
/// 002 §6.1 takes any other task of the place. By piece: on one processor only the tasks that this
/// one can preempt; with fixed priorities only lower ones; and nothing where jobs run in the order of
/// their releases, or in a cluster with no more tasks than processors, where no job ever waits.
pub(super) fn disturbed(
    residents: &[Resident],
    width: usize,
    system: &System<'_>,
) -> Vec<Duration> {
    let CacheCharge::ByPiece(precedence) = system.charge else {
        return of_any_other(residents);
    };
    if width > 1 && residents.len() <= width {
        return vec![Duration::ZERO; residents.len()];
    }
    match precedence {
        Precedence::Fixed(priority) => {
            let timings: Vec<Timing> = residents.iter().map(|r| r.timing).collect();
            let mut longest = Duration::ZERO;
            let mut disturbed = vec![Duration::ZERO; residents.len()];
            for index in priority.order(&timings).into_iter().rev() {
                disturbed[index] = longest;
                longest = longest.max(residents[index].resuming);
            }
            disturbed
        }
        Precedence::Releases => vec![Duration::ZERO; residents.len()],
        Precedence::Any => of_any_other(residents),
        Precedence::Edf if width > 1 => of_any_other(residents),
        Precedence::Edf => of_later_deadlines(residents),
    }
}

/// The longest delay of any other.
fn of_any_other(residents: &[Resident]) -> Vec<Duration> {
    let worst = top_two(residents);
    let other = |r: &Resident| {
        if r.resuming == worst.0 {
            worst.1
        } else {
            worst.0
        }
    };
    residents.iter().map(other).collect()
}

/// The longest delay of those that one can preempt under EDF on one processor: the job that
/// preempts was released after the other one had started, so that its relative deadline is strictly
/// shorter. A migratory task of EDF-fm preempts every fixed one, and is preempted by none.
fn of_later_deadlines(residents: &[Resident]) -> Vec<Duration> {
    let key = |r: &Resident| (r.jobs.0 == r.jobs.1, r.timing.deadline);
    let mut order: Vec<usize> = (0..residents.len()).collect();
    order.sort_by_key(|i| Reverse(key(&residents[*i])));
    let mut disturbed = vec![Duration::ZERO; residents.len()];
    let (mut longest, mut longest_here) = (Duration::ZERO, Duration::ZERO);
    let mut last = None;
    for index in order {
        let here = key(&residents[index]);
        if last != Some(here) {
            (longest, last) = (longest_here, Some(here));
        }
        disturbed[index] = longest;
        longest_here = longest_here.max(residents[index].resuming);
    }
    disturbed
}

/// One of [`inflate`], with interrupts and the longest delay of others known.
pub(super) fn inflate_one(
    resident: &Resident,
    disturbed: Duration,
    interrupts: &Interrupts,
    width: usize,
    system: &System<'_>,
) -> (Timing, Parts) {
    let mut parts = own(resident, disturbed, width, system);
    let direct = resident.timing.wcet.saturating_add(parts.total());
    let (wcet, stolen) = interrupts.stretch(direct);
    parts.add_all(&stolen);
    (
        Timing {
            wcet,
            ..resident.timing
        },
        parts,
    )
}

/// The longest and second-longest delay after a preemption (the same twice if two have it).
fn top_two(residents: &[Resident]) -> (Duration, Duration) {
    let mut top = (Duration::ZERO, Duration::ZERO);
    for r in residents {
        if r.resuming > top.0 {
            top = (r.resuming, top.0);
        } else if r.resuming > top.1 {
            top.1 = r.resuming;
        }
    }
    top
}
