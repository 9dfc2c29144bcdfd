//! The engine in real time decides as the engine in virtual time does, where the order of events is certain.

mod support;

use libtest_mimic::Completion;
use model::watch::Silent;
use model::{Duration, TaskSet};
use simulate::{Execution, Scenario, Traced};
use support::{Live, ms, phased};
use trace::{Event, EventKind, VecSink};

/// What was decided, and when: who did what, and where. Not that processors are idle at the very start, where nothing orders them.
fn decisions(events: &[Event]) -> Vec<(String, u64)> {
    use EventKind::{Completion, Idle, Migration, Preemption, Resumption, Start};
    let told = [Start, Preemption, Resumption, Migration, Completion, Idle];
    let idle_at_first = |e: &Event| e.kind == Idle && e.time.nanos() < 2_000_000;
    events
        .iter()
        .filter(|e| told.contains(&e.kind) && !idle_at_first(e))
        .map(|e| {
            let who = format!(
                "{} {:?} T{} job {}",
                e.kind,
                e.cpu(),
                e.task.0.wrapping_add(1),
                e.job
            );
            (who, e.time.nanos())
        })
        .take(100)
        .collect()
}

/// What virtual time says, and the least time between two moments at which anything happens.
fn simulated(live: &Live, policy: &str, set: &TaskSet, length: Duration) -> (Vec<Event>, Duration) {
    let spec: policy::Spec = policy.parse().unwrap();
    let assignment = live.assign(&spec, set);
    let plan = spec
        .plan(&policy::Setup {
            set,
            platform: &live.platform,
            assignment: assignment.as_ref(),
            quantum: ms(1),
        })
        .unwrap();
    let scenario = Scenario {
        execution: Execution::default(),
        horizon: length,
        ..Scenario::default()
    };
    let sink = Traced(VecSink::default());
    let (_, Traced(sink)) =
        simulate::simulate(plan, set, &live.platform, &scenario, None, &Silent, sink).unwrap();
    let mut times: Vec<u64> = sink.events.iter().map(|e| e.time.nanos()).collect();
    times.dedup();
    let apart = times.windows(2).map(|w| w[1] - w[0]).min().unwrap();
    (sink.events, Duration::from_nanos(apart))
}

fn decides_as_the_simulator(live: &Live, policy: &str) -> Completion {
    // T3 preempts T2 where both processors are taken, and finds an idle one the next time.
    let set = phased(&[(27, 50, 0), (20, 50, 4), (6, 25, 10)]);
    let length = ms(900);
    let (expected, apart) = simulated(live, policy, &set, length);
    assert!(apart >= ms(1), "{apart} is too close to be certain of the order");
    let expected = decisions(&expected);
    assert_eq!(expected.len(), 100);
    for _ in 0..10 {
        let assignment = live.assign(&policy.parse().unwrap(), &set);
        let run = live.run_set(policy, &set, assignment, length, 100);
        let decided = decisions(&run.events);
        let pairs = || decided.iter().zip(&expected);
        if decided.len() == expected.len() && pairs().all(|(d, e)| d.0 == e.0) {
            return Completion::Completed;
        }
        // The order is certain while all comes within half of what events are apart. A machine that was slower than that
        // says nothing about the engine.
        let late = |d: &u64, e: &u64| d.abs_diff(*e) * 2 > apart.nanos();
        let first = pairs()
            .position(|(d, e)| d.0 != e.0)
            .unwrap_or(decided.len().min(99));
        let disturbed = pairs().take(first + 1).any(|(d, e)| late(&d.1, &e.1));
        assert!(
            disturbed,
            "at {first}: {:?} instead of {:?}",
            decided.get(first),
            expected[first]
        );
    }
    Completion::ignored_with("this machine is too slow today to be certain of the order")
}

/// The first hundred decisions are those of the simulator: a test for each policy.
fn main() -> std::process::ExitCode {
    macro_rules! tests {
        ($($policy:literal),+) => {
            [$((
                format!("first_hundred_decisions::{}", $policy),
                (|live| decides_as_the_simulator(live, $policy)) as support::Test,
            )),+]
        };
    }
    support::main(tests!(
        "p-edf", "g-edf", "c-edf:l3", "p-rm", "g-fp:rm", "edf-fm", "edf-wm"
    ))
}
