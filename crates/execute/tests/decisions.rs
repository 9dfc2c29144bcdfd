//! The engine in real time decides as the engine in virtual time does, where the order of events is certain.

mod support;

use model::watch::Silent;
use model::{Duration, TaskSet};
use simulate::{Execution, Scenario, Traced};
use support::{Live, live, ms, phased};
use trace::{Event, EventKind, VecSink};

/// What was decided: who did what, and where.
fn decisions(events: &[Event]) -> Vec<String> {
    use EventKind::{Completion, Idle, Migration, Preemption, Resumption, Start};
    let told = [Start, Preemption, Resumption, Migration, Completion, Idle];
    events
        .iter()
        .filter(|e| told.contains(&e.kind))
        .map(|e| {
            format!(
                "{} {:?} T{} job {}",
                e.kind,
                e.cpu(),
                e.task.0.wrapping_add(1),
                e.job
            )
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

#[test]
fn the_first_hundred_decisions_are_those_of_the_simulator() {
    let Some(live) = live() else { return };
    // T3 preempts T2 where both processors are taken, and finds an idle one the next time.
    let set = phased(&[(27, 50, 0), (20, 50, 4), (6, 25, 10)]);
    let length = ms(900);
    for policy in [
        "p-edf", "g-edf", "c-edf:l3", "p-rm", "g-fp:rm", "edf-fm", "edf-wm",
    ] {
        let (expected, apart) = simulated(&live, policy, &set, length);
        assert!(
            apart >= ms(1),
            "{policy}: {apart} is too close to be certain of the order"
        );
        let expected = decisions(&expected);
        assert_eq!(expected.len(), 100, "{policy}");
        // A machine that stood still for longer than events are apart says nothing about the engine.
        for attempt in 1.. {
            let assignment = live.assign(&policy.parse().unwrap(), &set);
            let run = live.run_set(policy, &set, assignment, length, 100);
            let decided = decisions(&run.events);
            let disturbed = run.outcome.latest.nanos() * 2 > apart.nanos();
            if decided == expected || !disturbed || attempt == 10 {
                assert_eq!(decided, expected, "{policy}, attempt {attempt}");
                break;
            }
        }
    }
}
