//! Any bytes as a task set and a number of processors: every test answers or names its limit, every
//! bound is computed, and a set that a hard test for a global policy accepts misses no deadline in
//! a short simulation.
#![no_main]

use analyze::tardiness::{cache_aware, compliant_vector, devi_anderson, window_constrained};
use analyze::{Guarantee, registry};
use model::watch::Silent;
use model::{Duration, Platform, TaskSet, Timing};
use policy::{Setup, Spec};
use simulate::Scenario;

/// Seven bytes a task: a scale of 2^0 to 2^46, and e, D and p as 16-bit numbers of its units.
fn task(bytes: &[u8], scales: u8) -> Option<Timing> {
    let [scale, e0, e1, d0, d1, p0, p1] = *bytes else {
        return None;
    };
    let unit = 1_u64 << (scale.checked_rem(scales).unwrap_or(0));
    let time = |low: u8, high: u8| {
        Duration::from_nanos((u64::from(u16::from_le_bytes([low, high])) + 1) * unit)
    };
    let (wcet, deadline, period) = (time(e0, e1), time(d0, d1), time(p0, p1));
    // Half of the sets have deadlines equal to periods, most have WCETs within them.
    let deadline = if scales % 2 == 0 { period } else { deadline };
    let wcet = if e0 % 16 == 0 {
        wcet
    } else {
        wcet.min(deadline).min(period)
    };
    Some(Timing {
        wcet,
        deadline,
        period,
    })
}

fn misses(policy: &str, tasks: &[Timing], m: u32) -> Option<bool> {
    let longest = tasks.iter().map(|t| t.period.nanos()).max()?;
    let shortest = tasks.iter().map(|t| t.period.nanos()).min()?;
    if longest / shortest > 200 || longest > 1 << 50 {
        return None;
    }
    let set = TaskSet::from_timings(tasks.to_vec()).ok()?;
    let platform = Platform::builtin(&format!("symmetric:m={m}")).ok()?;
    let spec: Spec = policy.parse().ok()?;
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: None,
        quantum: Duration::from_millis(1),
    };
    let scenario = Scenario {
        horizon: Duration::from_nanos(longest * 8),
        ..Scenario::default()
    };
    let (summary, ()) = simulate::simulate(
        spec.plan(&setup).ok()?,
        &set,
        &platform,
        &scenario,
        None,
        &Silent,
        (),
    )
    .ok()?;
    Some(summary.misses() > 0)
}

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| {
    let [m, scales, bytes @ ..] = bytes else {
        return;
    };
    let (m, scales) = (u32::from(*m % 9), scales % 48);
    let tasks: Vec<Timing> = bytes
        .chunks_exact(7)
        .take(12)
        .filter_map(|b| task(b, scales))
        .collect();
    for test in registry::ALL {
        let answer = (test.run)(&tasks, m);
        let inflated = test.decide_inflated(&tasks, m);
        assert!(
            inflated != Ok(true) || answer != Ok(false),
            "{}: {tasks:?} {m}",
            test.name
        );
        let is_global = test.policy == "g-edf" || test.policy.starts_with("g-fp");
        if answer == Ok(true) && test.guarantee == Guarantee::Hard && is_global {
            assert_ne!(
                misses(test.policy, &tasks, m),
                Some(true),
                "{}: {tasks:?} {m}",
                test.name
            );
        }
    }
    let _ = devi_anderson::tardiness_bounds(&tasks, m);
    let _ = compliant_vector::response_bounds(&tasks, m);
    let _ = window_constrained::tardiness_bounds(&tasks, m, &[]);
    let _ = cache_aware::tardiness_bounds(&tasks, m, cache_aware::QUANTUM);
});
