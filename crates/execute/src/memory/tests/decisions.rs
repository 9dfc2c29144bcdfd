//! What the engine decides is what virtual time says, decision by decision and to the nanosecond.

use super::*;
use model::watch::Silent;
use simulate::{Execution as Simulated, Scenario, Traced};
use trace::VecSink;

/// What was decided, each moment in the order of names: the order within a moment is nobody's.
fn decisions(events: &[Event], until: Instant) -> Vec<(u64, String)> {
    use EventKind::{Completion, DeadlineMiss, Migration, Preemption, Release, Resumption, Start};
    let told = [
        Release,
        Start,
        Preemption,
        Resumption,
        Migration,
        Completion,
        DeadlineMiss,
    ];
    let mut all: Vec<(u64, String)> = events
        .iter()
        .filter(|e| told.contains(&e.kind) && e.time < until)
        .map(|e| {
            let job = format!("T{} job {}", e.task.0 + 1, e.job);
            // Where a release is shown, no paper says.
            let cpu = e.cpu().filter(|_| e.kind != Release);
            (e.time.nanos(), format!("{} {cpu:?} {job}", e.kind))
        })
        .collect();
    all.sort();
    all
}

/// A generator of numbers (splitmix64): the same sets everywhere.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn between(&mut self, low: u64, high: u64) -> u64 {
        low + self.next() % (high - low + 1)
    }
}

/// Tasks for four processors, eight light ones or six heavy ones by turns, at any nanosecond, so
/// that nothing falls together; jobs take a half of their WCETs up to all.
pub(super) fn random(seed: u64, quanta: bool) -> (TaskSet, Vec<Vec<u64>>) {
    let numbers = &mut Numbers(seed);
    // A quantum-driven policy wants WCETs, periods and phases of whole quanta.
    let unit = if quanta { 1_000_000 } else { 1 };
    let (count, least, most) = [(8, 15, 55), (6, 50, 68)][seed as usize % 2];
    let tasks: Vec<(u64, u64, u64)> = (0..count)
        .map(|_| {
            let period = numbers.between(7_000_000, 40_000_000) / unit * unit;
            let wcet = (period * numbers.between(least, most) / 100 / unit).max(1) * unit;
            let phase = numbers.between(0, 9_000_000) / unit * unit;
            (wcet, period, phase)
        })
        .collect();
    let times = tasks
        .iter()
        .map(|(wcet, ..)| (0..50).map(|_| numbers.between(wcet / 2, *wcet)).collect())
        .collect();
    (set_of(&tasks), times)
}

fn simulated(case: &Case, times: &[Vec<u64>], horizon: Duration) -> Vec<Event> {
    let scenario = Scenario {
        execution: Simulated::Given(times.to_vec()),
        horizon,
        ..Scenario::default()
    };
    let sink = Traced(VecSink::default());
    let (plan, platform) = (case.plan(), &case.platform);
    let done = simulate::simulate(plan, &case.set, platform, &scenario, None, &Silent, sink);
    done.unwrap().1.0.events
}

/// The engine in memory and the simulator, side by side. False: the policy cannot have the set.
fn decides_as_the_simulator(policy: &str, seed: u64) -> bool {
    let (set, times) = random(seed, policy.contains("quantum"));
    let Ok(case) = Case::new(policy, set) else {
        return false;
    };
    let horizon = ms(600);
    let ran = case.run(given(times.clone()), Settings::of(horizon));
    is_sound(&ran);
    is_clean(&case.check(&ran));
    let until = Instant::ZERO + horizon;
    let decided = decisions(&ran.events, until);
    let expected = decisions(&simulated(&case, &times, horizon), until);
    let first = decided.iter().zip(&expected).position(|(d, e)| d != e);
    if let Some(first) = first {
        let from = first.saturating_sub(6);
        panic!(
            "{policy}, set {seed}, decision {first}: {:#?} instead of {:#?}",
            &decided[from..decided.len().min(first + 6)],
            &expected[from..expected.len().min(first + 6)]
        );
    }
    assert_eq!(decided.len(), expected.len(), "{policy}, set {seed}");
    true
}

#[test]
fn under_every_policy_it_decides_as_the_simulator() {
    for policy in policies() {
        let policy = policy.as_str();
        let compared = (0..16)
            .filter(|seed| decides_as_the_simulator(policy, *seed))
            .count();
        assert!(compared >= 4, "{policy}: only {compared} sets fit");
    }
}
