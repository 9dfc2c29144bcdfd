//! How long a cache line takes from one processor to another: ping-pong on one atomic word.
//!
//! Measured before and after each block of samples. A virtual machine whose processors moved
//! between cache complexes of the host shows it here (DESIGN, "Facts about these machines"): the
//! time flips by a factor, while noise only adds. Therefore the fastest of several rounds stands
//! for the pair.

use machine::realtime;
use machine::threads::within;
use model::{CpuId, CpuSet, Duration, Platform, Result};
use serde::{Deserialize, Serialize};
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};

/// The transfer time between two processors, one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Transfer {
    /// One of them.
    pub a: CpuId,
    /// The other.
    pub b: CpuId,
    /// One way.
    #[serde(rename = "time_ns", with = "model::time::ns")]
    pub time: Duration,
}

/// The most pairs that are looked at, so that large machines are not busy with it.
const MAX_PAIRS: usize = 6;
const ROUNDS: u32 = 6;
const TRIPS: u64 = 200;

/// The pairs that stand for a platform: all of a small one, else the first of each kind of
/// migration, spread.
pub fn pairs(platform: &Platform, cpus: &CpuSet) -> Vec<(CpuId, CpuId)> {
    let all: Vec<(CpuId, CpuId)> = cpus
        .iter()
        .flat_map(|a| cpus.iter().filter(move |b| a < *b).map(move |b| (a, b)))
        .collect();
    if all.len() <= MAX_PAIRS {
        return all;
    }
    let mut kinds = Vec::new();
    let mut chosen: Vec<(CpuId, CpuId)> = Vec::new();
    for (a, b) in &all {
        let kind = platform.resumption(*a, *b);
        if !kinds.contains(&kind) {
            kinds.push(kind);
            chosen.push((*a, *b));
        }
    }
    let step = all.len().div_ceil(MAX_PAIRS);
    for pair in all.into_iter().step_by(step) {
        if chosen.len() < MAX_PAIRS && !chosen.contains(&pair) {
            chosen.push(pair);
        }
    }
    chosen
}

/// Measures the pairs, one after the other. A pair whose processors cannot be had is left out.
///
/// # Errors
/// No threads are to be had.
pub fn measure(pairs: &[(CpuId, CpuId)]) -> Result<Vec<Transfer>> {
    let mut transfers = Vec::with_capacity(pairs.len());
    for (a, b) in pairs {
        if let Some(time) = between(*a, *b)? {
            transfers.push(Transfer { a: *a, b: *b, time });
        }
    }
    Ok(transfers)
}

/// A word alone on its pair of lines: adjacent-line prefetchers fetch two.
#[repr(align(128))]
struct Ball(AtomicU64);

/// Tells the other side to end.
const END: u64 = u64::MAX;

fn between(a: CpuId, b: CpuId) -> Result<Option<Duration>> {
    let ball = Ball(AtomicU64::new(0));
    // Both are in place before either gets a priority: a spinning real-time thread would keep the
    // other from coming.
    let in_place = Barrier::new(2);
    let side = |cpu: CpuId| {
        let here = realtime::pin_to(cpu).is_ok();
        in_place.wait();
        if !here {
            ball.0.store(END, Ordering::Release);
        }
        // Without the right the numbers are noisier; the profile says so already.
        (here, realtime::raise(realtime::HIGHEST))
    };
    std::thread::scope(|scope| {
        // Both on threads of their own, so that the caller's affinity stays.
        let asker = within(scope, "asking", || {
            let (here, _raised) = side(a);
            let best = if here { ask(&ball.0) } else { None };
            ball.0.store(END, Ordering::Release);
            best
        })?;
        let answerer = within(scope, "answering", || {
            let (here, _raised) = side(b);
            if here {
                answer(&ball.0);
            }
        });
        if answerer.is_err() {
            // In the place of the other side, which the asker waits for.
            ball.0.store(END, Ordering::Release);
            in_place.wait();
        }
        answerer?;
        Ok(asker.join().ok().flatten().map(Duration::from_nanos))
    })
}

/// Waits until the word passes `test`; gives up when the other side is silent for too long, so that
/// two real-time threads never hold two processors.
fn wait_until(ball: &AtomicU64, test: impl Fn(u64) -> bool) -> Option<u64> {
    for _ in 0..5_000_000u32 {
        let value = ball.load(Ordering::Acquire);
        if test(value) {
            return Some(value);
        }
        std::hint::spin_loop();
    }
    None
}

/// Sends even to odd: every round trip is two transfers. The fastest round, in nanoseconds for one
/// transfer.
fn ask(ball: &AtomicU64) -> Option<u64> {
    let mut best = None;
    let mut value = 0;
    // The first round waits for the other side to start, and is not counted.
    for round in 0..=ROUNDS {
        let start = machine::clock::monotonic_raw();
        for _ in 0..TRIPS {
            // Not over the other side's end.
            if ball
                .compare_exchange(value, value + 1, Ordering::AcqRel, Ordering::Relaxed)
                .is_err()
            {
                return None;
            }
            let answer = wait_until(ball, |v| v == value + 2 || v == END)?;
            if answer == END {
                return None;
            }
            value += 2;
        }
        let nanos = (machine::clock::monotonic_raw() - start) / (2 * TRIPS);
        if round > 0 {
            best = Some(best.map_or(nanos, |b: u64| b.min(nanos)));
        }
    }
    best
}

fn answer(ball: &AtomicU64) {
    loop {
        match wait_until(ball, |v| v % 2 == 1) {
            None | Some(END) => return,
            Some(value) => {
                // The asker may have ended meanwhile; its end must stay.
                let _ =
                    ball.compare_exchange(value, value + 1, Ordering::AcqRel, Ordering::Relaxed);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pairs_of_a_large_platform_show_every_kind_of_migration() {
        let platform = Platform::builtin("xeon-l7455").unwrap();
        let pairs = pairs(&platform, &platform.usable());
        assert_eq!(pairs.len(), MAX_PAIRS);
        for kind in platform.resumptions().into_iter().skip(1) {
            assert!(
                pairs
                    .iter()
                    .any(|(a, b)| platform.resumption(*a, *b) == kind),
                "{kind}"
            );
        }
    }

    #[test]
    fn a_processor_that_does_not_exist_is_left_out() {
        let a = realtime::affinity().unwrap().lowest().unwrap();
        assert!(measure(&[(a, CpuId(1000))]).unwrap().is_empty());
        assert!(measure(&[(CpuId(1000), a)]).unwrap().is_empty());
    }
}
