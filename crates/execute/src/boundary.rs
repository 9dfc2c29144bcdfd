//! What it costs on this machine to change from one job to another at a moment that is given: the
//! end of a slot, a slice or a quantum.
//!
//! The engine itself runs servers that move on to the next processor at the end of every turn (with
//! one processor: two servers in turn); their jobs read the clock all the time. What is lost at a
//! boundary is the time from the last reading before the change to the first one after it: timer,
//! decision, system calls, interrupt, switch. It is what 002 §2.4 calls release, scheduling and
//! context-switch overhead together, of a user-space dispatcher. A capacity that is to hold has to
//! leave room for it (002 §6.1: what switching between servers takes from their capacity).

use crate::engine::{self, Settings};
use crate::kernel;
use model::assignment::{Serve, Slots, Timetable};
use model::watch::Silent;
use model::{Assignment, CpuId, Duration, Error, Platform, Result, TaskSet, Timing};
use serde::Serialize;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use trace::NullSink;
use workload::Work;

/// What a boundary costs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Boundary {
    /// Half of them cost less.
    #[serde(rename = "median_ns", serialize_with = "model::time::ns::serialize")]
    pub median: Duration,
    /// All but one in a hundred cost less.
    #[serde(rename = "p99_ns", serialize_with = "model::time::ns::serialize")]
    pub p99: Duration,
    /// The dearest.
    #[serde(rename = "max_ns", serialize_with = "model::time::ns::serialize")]
    pub longest: Duration,
    /// How many were seen.
    pub count: usize,
}

/// How long it is looked at.
const LENGTH: Duration = Duration::from_millis(300);
/// From one boundary to the next.
const TURN: Duration = Duration::from_millis(2);
/// A job that does not get to read the clock for so long was off its processor, in nanoseconds.
const GAP: u64 = 3_000;
/// A timer does not fire before its time; clocks agree to that.
const BEFORE: u64 = 20_000;

/// By server: when it was off its processor, in readings of the clock.
type Gaps = Arc<Mutex<Vec<Vec<(u64, u64)>>>>;

/// Reads the clock until the end, and says when it could not.
struct Watching {
    server: usize,
    gaps: Gaps,
}

impl Work for Watching {
    fn job(&mut self, _: u64, stop: &AtomicBool) {
        let mut gaps = Vec::with_capacity(4 * (LENGTH.nanos() / TURN.nanos()) as usize);
        let mut last = kernel::monotonic();
        let end = last + LENGTH.nanos();
        while last < end && !stop.load(Ordering::Relaxed) {
            let now = kernel::monotonic();
            if now - last > GAP && gaps.len() < gaps.capacity() {
                gaps.push((last, now));
            }
            last = now;
        }
        let mut all = self.gaps.lock().unwrap_or_else(PoisonError::into_inner);
        all[self.server] = gaps;
    }
}

/// Every server moves on to the next processor at the end of a turn.
fn timetables(cpus: &[CpuId], servers: usize) -> Slots {
    let turn = |at: usize, server: usize| Serve {
        start: Duration::from_nanos(at as u64 * TURN.nanos()),
        end: Duration::from_nanos((at as u64 + 1) * TURN.nanos()),
        server: (server % servers) as u32,
    };
    Slots {
        slot: Duration::from_nanos(servers as u64 * TURN.nanos()),
        server_of: (0..servers as u32).collect(),
        timetables: cpus
            .iter()
            .enumerate()
            .map(|(place, cpu)| Timetable {
                cpu: *cpu,
                turns: (0..servers).map(|at| turn(at, place + at)).collect(),
            })
            .collect(),
    }
}

/// Measures it on the usable processors of a platform; takes all of them for a third of a second.
///
/// # Errors
/// As those of a run; no boundary was seen.
pub fn measure(platform: &Platform) -> Result<Boundary> {
    let cpus = platform.in_cache_order();
    let servers = cpus.len().max(2);
    let period = Duration::from_nanos(2 * LENGTH.nanos());
    let set = TaskSet::from_timings(vec![Timing::implicit(LENGTH, period); servers])?;
    let assignment = Assignment::Slots(timetables(&cpus, servers));
    let plan = "nps-f".parse::<policy::Spec>()?.plan(&policy::Setup {
        set: &set,
        platform,
        assignment: Some(&assignment),
        quantum: TURN,
    })?;
    let gaps: Gaps = Arc::new(Mutex::new(vec![Vec::new(); servers]));
    let works: Vec<Box<dyn Work>> = (0..servers)
        .map(|server| {
            let gaps = Arc::clone(&gaps);
            Box::new(Watching { server, gaps }) as Box<dyn Work>
        })
        .collect();
    let settings = Settings {
        horizon: LENGTH,
        events: 1 << 14,
        ..Settings::default()
    };
    let outcome = engine::run(plan, &set, works, &settings, &Silent, &mut NullSink, |_| ())?;
    let gaps = gaps.lock().unwrap_or_else(PoisonError::into_inner);
    summary(&losses(&gaps, outcome.origin, cpus.len() > 1)).ok_or_else(|| {
        Error::new("no change of jobs was seen").remedy("try again on a machine with less to do")
    })
}

/// What is lost at each boundary, of gaps by server; `moving`: every server goes on elsewhere at
/// once.
fn losses(gaps: &[Vec<(u64, u64)>], origin: u64, moving: bool) -> Vec<u64> {
    let near = |reading: u64, boundary: u64| {
        reading + BEFORE >= boundary && reading < boundary + TURN.nanos() / 2
    };
    let mut losses = Vec::new();
    for number in 1..LENGTH.nanos() / TURN.nanos() {
        let boundary = origin + number * TURN.nanos();
        if moving {
            let at = |gaps: &Vec<(u64, u64)>| {
                let first = gaps
                    .iter()
                    .find(|(from, to)| near(*from, boundary) && *to > boundary);
                first.map(|(from, to)| to - from)
            };
            losses.extend(gaps.iter().filter_map(at));
        } else {
            // One is off from here on, and another is on again.
            let left = gaps
                .iter()
                .flatten()
                .map(|g| g.0)
                .find(|from| near(*from, boundary));
            let came = gaps
                .iter()
                .flatten()
                .map(|g| g.1)
                .find(|to| near(*to, boundary));
            losses.extend(left.zip(came).map(|(left, came)| came.saturating_sub(left)));
        }
    }
    losses
}

fn summary(losses: &[u64]) -> Option<Boundary> {
    let mut sorted = losses.to_vec();
    sorted.sort_unstable();
    let at =
        |part: usize| sorted.get((sorted.len() * part / 100).min(sorted.len().saturating_sub(1)));
    Some(Boundary {
        median: Duration::from_nanos(*at(50)?),
        p99: Duration::from_nanos(*at(99)?),
        longest: Duration::from_nanos(*sorted.last()?),
        count: sorted.len(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_lost_is_from_who_leaves_to_who_comes() {
        const MS: u64 = 1_000_000;
        // A moves at 2 ms and at 4 ms, B loses a little there, and something else in between.
        let a = vec![
            (12 * MS + 10_000, 12 * MS + 60_000),
            (14 * MS + 5_000, 14 * MS + 35_000),
        ];
        let b = vec![
            (12 * MS + 12_000, 12 * MS + 42_000),
            (13 * MS + 500_000, 13 * MS + 600_000),
        ];
        assert_eq!(losses(&[a, b], 10 * MS, true), [50_000, 30_000, 30_000]);
        // One processor: A leaves at 2 ms and comes back at 4 ms, B the other way round.
        let a = vec![(12 * MS + 10_000, 14 * MS + 70_000)];
        let b = vec![
            (10 * MS, 12 * MS + 30_000),
            (14 * MS + 20_000, 16 * MS + 40_000),
        ];
        assert_eq!(losses(&[a, b], 10 * MS, false), [20_000, 50_000]);
    }

    #[test]
    fn no_server_is_at_two_places_and_none_is_left_out() {
        for count in 1..5 {
            let cpus: Vec<CpuId> = (0..count).map(CpuId).collect();
            let slots = timetables(&cpus, cpus.len().max(2));
            let turns = slots.timetables[0].turns.len();
            for at in 0..turns {
                let mut served: Vec<u32> = slots
                    .timetables
                    .iter()
                    .map(|t| t.turns[at].server)
                    .collect();
                served.sort_unstable();
                served.dedup();
                assert_eq!(served.len(), cpus.len());
            }
            assert_eq!(slots.slot.nanos(), turns as u64 * TURN.nanos());
        }
    }

    #[test]
    fn percentiles_are_of_all() {
        let b = summary(&(1..=200).collect::<Vec<u64>>()).unwrap();
        let nanos = |d: Duration| d.nanos();
        assert_eq!(
            (nanos(b.median), nanos(b.p99), nanos(b.longest), b.count),
            (101, 199, 200, 200)
        );
        assert_eq!(summary(&[]), None);
    }
}
