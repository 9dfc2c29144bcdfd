//! One policy takes over from another while tasks run: no job is lost, and each part of the trace keeps the rules of its policy.

mod support;

use execute::Settings;
use model::assignment::{Slice, Slices};
use model::{Assignment, Duration, TaskSet};
use support::{Live, SpinFor, ms, phased, set_of};
use trace::EventKind;
use workload::Work;

/// Half of each WCET.
fn works(set: &TaskSet) -> Vec<Box<dyn Work>> {
    let half = |t: &model::Timing| SpinFor(Duration::from_nanos(t.wcet.nanos() / 2));
    let works = set.timings().iter().map(half);
    works.map(|w| Box::new(w) as Box<dyn Work>).collect()
}

/// Global, partitioned, split by jobs, split by slots and quantum-driven: every one after every other.
fn every_policy_takes_over_from_every_other(live: &Live) {
    const POLICIES: [&str; 5] = ["g-edf", "p-edf", "edf-fm", "nps-f", "pd2"];
    // A way that goes once from each to each.
    const WAY: [usize; 21] = [0, 1, 2, 3, 4, 0, 2, 4, 1, 3, 0, 4, 3, 2, 1, 4, 2, 0, 3, 1, 0];
    let mut pairs: Vec<(usize, usize)> = WAY.windows(2).map(|w| (w[0], w[1])).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), POLICIES.len() * (POLICIES.len() - 1));
    // Long jobs, so that some are under way whenever a policy takes over.
    let set = set_of(&[(24, 40), (18, 60), (3, 15), (48, 120)]);
    let policies: Vec<(&str, Option<Assignment>)> = WAY
        .iter()
        .map(|at| (POLICIES[*at], live.assign(&POLICIES[*at].parse().unwrap(), &set)))
        .collect();
    let turn = ms(500);
    let horizon = Duration::from_nanos(turn.nanos() * WAY.len() as u64);
    let settings = Settings {
        horizon,
        ..Settings::default()
    };
    let run = live
        .run_in_turn(&policies, Some(turn), &set, works(&set), &settings)
        .unwrap();
    run.is_sound();
    let switches = run.events.iter().filter(|e| e.kind == EventKind::PolicySwitch);
    let order: Vec<u64> = switches.map(|e| e.argument).collect();
    assert_eq!(order, (1..WAY.len() as u64).collect::<Vec<u64>>());
    for (id, task) in set.ids().zip(&run.statistics.tasks) {
        let due = horizon.nanos().div_ceil(set.timings()[id.index()].period.nanos());
        assert_eq!(task.released, due, "no release is lost");
        // At the end the latest may be under way.
        assert!(
            task.jobs + 2 >= due,
            "{} of {due} jobs of {}",
            task.jobs,
            task.task
        );
    }
}

/// A job that is in its second slice goes on as a whole, and the other way round.
fn parts_of_split_jobs_are_carried_over(live: &Live) {
    let set = phased(&[(3, 20, 0), (3, 20, 0), (12, 20, 0)]);
    let cpus = live.platform.in_cache_order();
    let slice = |place: usize, budget: u64, window: u64| Slice {
        cpu: cpus[place],
        budget: ms(budget),
        window: ms(window),
    };
    let split = Assignment::Slices(Slices {
        tasks: vec![
            vec![slice(0, 3, 20)],
            vec![slice(1, 3, 20)],
            vec![slice(0, 4, 10), slice(1, 8, 10)],
        ],
        cpus: cpus.clone(),
    });
    let policies = [("edf-wm", Some(split)), ("g-edf", None)];
    let settings = Settings {
        horizon: ms(2500),
        ..Settings::default()
    };
    // In the midst of jobs, at a different point of them each time.
    let run = live
        .run_in_turn(&policies, Some(ms(507)), &set, works(&set), &settings)
        .unwrap();
    run.is_sound();
    let switches = run.events.iter().filter(|e| e.kind == EventKind::PolicySwitch);
    assert_eq!(switches.map(|e| e.argument).collect::<Vec<u64>>(), [1, 0, 1, 0]);
    for task in &run.statistics.tasks {
        assert_eq!(
            (task.released, task.jobs >= 123),
            (125, true),
            "{}",
            run.statistics
        );
    }
}

/// What cannot be is refused before anything runs.
fn turns_that_are_too_short_are_refused(live: &Live) {
    let set = set_of(&[(1, 20)]);
    let settings = Settings::default();
    let run = live.run_in_turn(&[("g-edf", None)], Some(ms(50)), &set, works(&set), &settings);
    let e = run.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(e.contains("50ms"), "{e}");
}

live_tests!(
    every_policy_takes_over_from_every_other,
    parts_of_split_jobs_are_carried_over,
    turns_that_are_too_short_are_refused
);
