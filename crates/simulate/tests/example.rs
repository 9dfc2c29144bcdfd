//! The complete example of `docs/policies.md`: what the guide shows is the file that is compiled.

use model::watch::Silent;
use model::{Details, Duration, Instant, Platform, TaskId, TaskSet, Timing};
use policy::{DomainId, Job, Place, Plan, Policy, Setup, Spec, Visit};
use simulate::{Responses, Scenario};

#[test]
fn the_example_of_the_guide_is_what_is_compiled() {
    let guide = include_str!("../../../docs/policies.md");
    let example = include_str!("../../policy/src/catalog/g_fifo.rs");
    assert!(
        guide.contains(&format!("```rust\n{example}```\n")),
        "docs/policies.md and crates/policy/src/catalog/g_fifo.rs differ"
    );
}

#[test]
fn the_example_runs_first_in_first_out() {
    let ms = Duration::from_millis;
    // Released at 0, 1 and 2, with deadlines the other way round: on one processor each waits for
    // those before.
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
    let plan = "g-fifo".parse::<Spec>().unwrap().plan(&setup).unwrap();
    let scenario = Scenario {
        horizon: ms(100),
        ..Scenario::default()
    };
    let responses = Responses::new(3);
    let (summary, responses) =
        simulate::simulate(plan, &set, &platform, &scenario, None, &Silent, responses).unwrap();
    let millis: Vec<u64> = responses.of.iter().map(|of| of[0] / 1_000_000).collect();
    assert_eq!(millis, [10, 29, 33]);
    assert_eq!((summary.preemptions(), summary.misses()), (0, 1));
}

/// Who runs where, as it was told.
#[derive(Default)]
struct Told(Vec<(u32, u32)>);

impl policy::Decisions for Told {
    fn run(&mut self, place: Place, task: TaskId) {
        self.0.push((place.0, task.0));
    }
    fn idle(&mut self, _: Place) {}
    fn wake(&mut self, _: Instant) {}
    fn push(&mut self, _: TaskId, _: DomainId, _: Instant, _: u32) {}
}

/// Of jobs that were released at once, the one of the highest task makes way, whichever was told of
/// first.
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
    let plan = "g-fifo".parse::<Spec>().unwrap().plan(&setup).unwrap();
    assert_eq!(
        plan.visit(Decide(&[&[3, 0], &[2], &[1]])),
        [vec![(0, 0), (1, 3)], vec![(1, 2)], vec![(1, 1)]]
    );
}

/// What is decided when these tasks become ready, one group after the other, all released at once.
struct Decide<'a>(&'a [&'a [u32]]);

impl Visit for Decide<'_> {
    type Out = Vec<Vec<(u32, u32)>>;
    fn visit<P: Policy + Send + 'static>(self, mut plan: Plan<P>) -> Self::Out {
        let decide = |ready: &&[u32]| {
            let (policy, now) = (&mut plan.domains[0].policy, Instant::ZERO);
            for task in *ready {
                let job = Job {
                    task: TaskId(*task),
                    number: 0,
                    release: now,
                    deadline: now + Duration::from_millis(100),
                    part: 0,
                };
                policy.happen(policy::Event::Ready(job), now);
            }
            let mut told = Told::default();
            policy.decide(now, &mut told);
            told.0
        };
        self.0.iter().map(decide).collect()
    }
}
