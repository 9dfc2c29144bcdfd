//! The complete example of `docs/policies.md`, compiled and run as it stands there.
//!
//! Inside room `policy` it names its neighbors by `crate::`; the same names are brought here.

#[path = "example/g_fifo.rs"]
#[allow(dead_code, reason = "the registry's line is not in the example")]
mod g_fifo;

use model::watch::Silent;
use model::{Details, Duration, Instant, Platform, TaskId, TaskSet, Timing};
use policy::{Job, Policy, Setup, cluster, plan, queue, registry, spec};
use simulate::{Responses, Scenario};

#[test]
fn the_example_of_the_guide_is_what_is_compiled_here() {
    let guide = include_str!("../../../docs/policies.md");
    let example = include_str!("example/g_fifo.rs");
    assert!(
        guide.contains(&format!("```rust\n{example}```\n")),
        "docs/policies.md and crates/simulate/tests/example/g_fifo.rs differ"
    );
}

#[test]
fn the_example_runs_first_in_first_out() {
    let ms = Duration::from_millis;
    // Released at 0, 1 and 2, with deadlines the other way round: on one processor each waits for those before.
    let task = |phase: u64, wcet: u64, deadline: u64| {
        let timing = Timing {
            wcet: ms(wcet),
            period: ms(100),
            deadline: ms(deadline),
        };
        let details = Details {
            phase: ms(phase),
            ..Details::named(format!("from {phase}"))
        };
        (timing, details)
    };
    let set = TaskSet::new(vec![task(0, 10, 90), task(1, 20, 50), task(2, 5, 10)]).unwrap();
    let platform = Platform::symmetric(1);
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: None,
        quantum: ms(1),
    };
    let any: spec::Spec = "g-edf".parse().unwrap();
    assert_eq!(g_fifo::INFO.name, "g-fifo");
    let plan: plan::Plan<cluster::Cluster<g_fifo::Fifo>> = g_fifo::plan(&any, &setup).unwrap();
    let scenario = Scenario {
        horizon: ms(100),
        ..Scenario::default()
    };
    let responses = Responses::new(3);
    let (summary, responses) =
        simulate::ideal::run(plan, &set, &platform, &scenario, &Silent, responses).unwrap();
    let millis: Vec<u64> = responses.of.iter().map(|of| of[0] / 1_000_000).collect();
    assert_eq!(millis, [10, 29, 33]);
    assert_eq!((summary.preemptions(), summary.misses()), (0, 1));
}

/// Who runs where, as it was told.
#[derive(Default)]
struct Told(Vec<(u32, u32)>);

impl policy::Decisions for Told {
    fn run(&mut self, place: u32, task: TaskId) {
        self.0.push((place, task.0));
    }
    fn idle(&mut self, _: u32) {}
    fn wake(&mut self, _: Instant) {}
    fn push(&mut self, _: TaskId, _: u32, _: Instant, _: u32) {}
}

/// Of jobs that were released at once, the one of the highest task makes way, whichever was told of first.
#[test]
fn the_worst_of_equal_releases_makes_way() {
    let timing = Timing::implicit(Duration::from_millis(10), Duration::from_millis(100));
    let set = TaskSet::from_timings(vec![timing; 4]).unwrap();
    let platform = Platform::symmetric(2);
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: None,
        quantum: Duration::from_millis(1),
    };
    let mut plan = g_fifo::plan(&"g-edf".parse().unwrap(), &setup).unwrap();
    let mut decide = |ready: &[u32]| {
        let (fifo, now) = (&mut plan.domains[0].policy, Instant::ZERO);
        for task in ready {
            let job = Job {
                task: TaskId(*task),
                number: 0,
                release: now,
                deadline: now + Duration::from_millis(100),
                part: 0,
            };
            fifo.happen(policy::Event::Ready(job), now);
        }
        let mut told = Told::default();
        fifo.decide(now, &mut told);
        told.0
    };
    assert_eq!(decide(&[3, 0]), [(0, 0), (1, 3)]);
    assert_eq!(decide(&[2]), [(1, 2)]);
    assert_eq!(decide(&[1]), [(1, 1)]);
}
