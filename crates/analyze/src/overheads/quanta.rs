//! Overheads where decisions are taken at quantum boundaries only: PD² and the quantum-driven
//! cache-aware policy.
//!
//! 002 §2.4 and §6.1; quantum-driven accounting as surveyed by Brandenburg, "Scheduling and Locking
//! in Multiprocessor Real-Time Operating Systems" (2011), chapter 3: WCETs are rounded up to quanta
//! after the overheads have shortened what of a quantum is usable. In every quantum come a tick, a
//! decision, a switch and a cache delay: any of them may be the first on its processor for the job.
//! For a hard guarantee also the section that the kernel is in at the boundary, and, with several
//! processors, the hand-over: the old processor has to choose and switch before it calls (002
//! §4.4.2).
//!
//! Releases are serviced at boundaries. Either each quantum gives one to every task of the set, or
//! a job is charged for all that come while it is active: at most p / p′ + 2 of a task of period
//! p′. The smaller charge counts.
//!
//! By piece the first quantum of a job loses nothing: its WCET contains the first loading of its
//! working set.
//!
//! A release within a quantum waits for the next boundary: with periods and phases in whole quanta
//! there are none.

use super::accounting::{Resident, own_of};
use super::kinds::{Kind, Lost, Parts};
use super::{Accounted, CacheCharge, Piece, Place, System};
use crate::verdict::Guarantee;
use model::{CpuSet, Duration, TaskId, Timing};

/// The tasks with what quanta lose; `inflated`, rounded up to quanta by the test, is what the
/// policy has to reserve.
///
/// WCETs that no number of quanta holds become [`Duration::MAX`]. A quantum of zero counts as a
/// nanosecond.
pub fn account(
    tasks: &[Timing],
    cpus: &CpuSet,
    quantum: Duration,
    system: &System<'_>,
) -> Accounted {
    let ways = system.ways(cpus.iter());
    let residents: Vec<Resident> = tasks
        .iter()
        .enumerate()
        .map(|(index, t)| {
            let delay = system.delays.longest(TaskId(index as u32), &ways);
            Resident::whole(*t, delay, delay)
        })
        .collect();
    let releases = Releases::of(tasks, system.overheads.release);
    let mut place = Place {
        processors: cpus.clone(),
        own: tasks.iter().map(|t| t.utilization().to_f64()).sum(),
        lost: Lost::default(),
    };
    let charge = |r: &Resident| {
        let each = each_quantum(r, cpus.len(), quantum, system);
        if matches!(system.charge, CacheCharge::ByPiece(_)) {
            return after_the_first(&r.timing, quantum, r.resuming);
        }
        let apart = in_quanta(&r.timing, quantum, &each, releases.within(r.timing.period));
        let mut with_releases = each;
        with_releases.add(Kind::Release, releases.at_once);
        let together = in_quanta(&r.timing, quantum, &with_releases, Duration::ZERO);
        if together.total() <= apart.total() {
            together
        } else {
            apart
        }
    };
    let parts: Vec<Parts> = residents.iter().map(charge).collect();
    let mut pieces = Vec::with_capacity(tasks.len());
    for (index, (t, parts)) in tasks.iter().zip(&parts).enumerate() {
        place.lost.add(parts, t.period, 1.0);
        pieces.push(Piece {
            task: TaskId(index as u32),
            place: 0,
            timing: t.inflated(parts.total()),
            parts: *parts,
            jobs: (1, 1),
        });
    }
    Accounted {
        inflated: pieces.iter().map(|p| p.timing).collect(),
        parts,
        pieces,
        places: vec![place],
    }
}

/// What a quantum loses, but for releases. Ticks come at multiples of their period: at most ⌈Q / T⌉
/// in a quantum.
fn each_quantum(
    resident: &Resident,
    width: usize,
    quantum: Duration,
    system: &System<'_>,
) -> Parts {
    let times = match (system.counts(), width > 1) {
        (Guarantee::Soft, _) => (1, 1, 0),
        (Guarantee::Hard, false) => (2, 1, 0),
        (Guarantee::Hard, true) => (3, 2, 1),
    };
    let mut parts = own_of(resident, Duration::ZERO, times, system);
    let period = system.overheads.tick_period.nanos().max(1);
    let ticks = quantum.nanos().max(1).div_ceil(period);
    let tick = system.overheads.tick.nanos().saturating_mul(ticks);
    parts.add(Kind::Tick, Duration::from_nanos(tick));
    parts
}

/// What a job pays that loses `each` in every quantum and `once` besides.
///
/// It takes k = ⌈(e + once) / (Q − each)⌉ quanta; e + once + k · each fills more than k − 1 of them
/// and at most k.
fn in_quanta(t: &Timing, quantum: Duration, each: &Parts, once: Duration) -> Parts {
    let mut parts = Parts::default();
    let usable = quantum.nanos().max(1).saturating_sub(each.total().nanos());
    if usable == 0 {
        parts.add(Kind::Scheduling, Duration::MAX);
        return parts;
    }
    let quanta = t.wcet.saturating_add(once).nanos().div_ceil(usable);
    for (kind, time) in each.iter() {
        parts.add(
            kind,
            Duration::from_nanos(time.nanos().saturating_mul(quanta)),
        );
    }
    parts.add(Kind::Release, once);
    parts
}

/// What a job pays that loses `delay` in every quantum but the first.
///
/// It takes k = 1 + ⌈(e − Q) / (Q − delay)⌉ quanta; e + (k − 1) delay fills more than k − 1 of them
/// and at most k.
fn after_the_first(t: &Timing, quantum: Duration, delay: Duration) -> Parts {
    let quantum = quantum.nanos().max(1);
    let rest = t.wcet.nanos().saturating_sub(quantum);
    let lost = match quantum.saturating_sub(delay.nanos()) {
        _ if rest == 0 => 0,
        0 => u64::MAX,
        usable => delay.nanos().saturating_mul(rest.div_ceil(usable)),
    };
    let mut parts = Parts::default();
    parts.add(Kind::Cpmd, Duration::from_nanos(lost));
    parts
}

/// How much time releases take.
struct Releases {
    /// One of every task.
    at_once: Duration,
    /// In the long run, in units of 2^-64, rounded up.
    rate: u128,
}

impl Releases {
    fn of(tasks: &[Timing], release: Duration) -> Self {
        let cost = u128::from(release.nanos());
        let each = |t: &Timing| (cost << 64).div_ceil(u128::from(t.period.nanos().max(1)));
        Releases {
            at_once: Duration::from_nanos(release.nanos().saturating_mul(tasks.len() as u64)),
            rate: tasks.iter().map(each).fold(0, u128::saturating_add),
        }
    }

    /// All that come in this time, however it lies; two of each at its ends.
    fn within(&self, time: Duration) -> Duration {
        if self.at_once.is_zero() {
            return Duration::ZERO;
        }
        let whole = (self.rate >> 64).saturating_mul(u128::from(time.nanos()));
        let rest = ((self.rate & ((1 << 64) - 1)) * u128::from(time.nanos())).div_ceil(1 << 64);
        let during = u64::try_from(whole.saturating_add(rest)).unwrap_or(u64::MAX);
        Duration::from_nanos(during)
            .saturating_add(self.at_once)
            .saturating_add(self.at_once)
    }
}
