//! One policy takes over from another while tasks run: no job is lost, and each part of the trace
//! keeps the rules of its policy.

mod support;

use execute::{Ending, Settings};
use model::assignment::{Slice, Slices};
use model::watch::Watch;
use model::{Assignment, Duration, TaskSet};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use support::{Live, SpinFor, ms, phased, set_of};
use trace::{EventKind, VecSink};
use workload::Work;

/// Half of each WCET.
fn works(set: &TaskSet) -> Vec<Box<dyn Work>> {
    let half = |t: &model::Timing| SpinFor(Duration::from_nanos(t.wcet.nanos() / 2));
    let works = set.timings().iter().map(half);
    works.map(|w| Box::new(w) as Box<dyn Work>).collect()
}

/// Global, partitioned, split by jobs, split by slots and quantum-driven: every one after every
/// other.
fn every_policy_takes_over_from_every_other(live: &Live) {
    const POLICIES: [&str; 5] = ["g-edf", "p-edf", "edf-fm", "nps-f", "pd2"];
    // A way that goes once from each to each.
    const WAY: [usize; 21] = [
        0, 1, 2, 3, 4, 0, 2, 4, 1, 3, 0, 4, 3, 2, 1, 4, 2, 0, 3, 1, 0,
    ];
    let mut pairs: Vec<(usize, usize)> = WAY.windows(2).map(|w| (w[0], w[1])).collect();
    pairs.sort_unstable();
    pairs.dedup();
    assert_eq!(pairs.len(), POLICIES.len() * (POLICIES.len() - 1));
    // Long jobs, so that some are under way whenever a policy takes over.
    let set = set_of(&[(24, 40), (18, 60), (3, 15), (48, 120)]);
    let policies: Vec<(&str, Option<Assignment>)> = WAY
        .iter()
        .map(|at| {
            (
                POLICIES[*at],
                live.assign(&POLICIES[*at].parse().unwrap(), &set),
            )
        })
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
    let switches = run
        .events
        .iter()
        .filter(|e| e.kind == EventKind::PolicySwitch);
    let order: Vec<u64> = switches.map(|e| e.argument).collect();
    assert_eq!(order, (1..WAY.len() as u64).collect::<Vec<u64>>());
    for (id, task) in set.ids().zip(&run.statistics.tasks) {
        let due = horizon
            .nanos()
            .div_ceil(set.timings()[id.index()].period.nanos());
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
    let switches = run
        .events
        .iter()
        .filter(|e| e.kind == EventKind::PolicySwitch);
    assert_eq!(
        switches.map(|e| e.argument).collect::<Vec<u64>>(),
        [1, 0, 1, 0]
    );
    for task in &run.statistics.tasks {
        assert_eq!(
            (task.released, task.jobs >= 123),
            (125, true),
            "{}",
            run.statistics
        );
    }
}

/// Keeps the supervisor from looking from one moment of the run to another, each in milliseconds.
struct Late {
    from: u64,
    to: u64,
    at: AtomicU64,
    began: Mutex<Option<std::time::Instant>>,
}

impl Watch for Late {
    fn begin(&self, _: &str, _: u64) {
        *self.began.lock().unwrap() = Some(std::time::Instant::now());
    }
    fn advance(&self, units: u64) {
        let at = self.at.fetch_add(units, Ordering::Relaxed) + units;
        if (self.from..self.to).contains(&at) {
            let began = self.began.lock().unwrap().unwrap();
            let until = std::time::Duration::from_millis(self.to);
            std::thread::sleep(until.saturating_sub(began.elapsed()));
        }
    }
    fn note(&self, _: &str) {}
    fn stopped(&self) -> bool {
        // A run that hangs ends here, so that a broken test does.
        let began = *self.began.lock().unwrap();
        began.is_some_and(|began| began.elapsed() > std::time::Duration::from_secs(30))
    }
}

/// The supervisor looks when two stages have passed their ends, the last one with the horizon:
/// there is nobody left who would hand over.
fn a_supervisor_that_comes_after_the_horizon_makes_no_stage(live: &Live) {
    let set = set_of(&[(4, 20), (6, 30)]);
    let watch = Late {
        from: 20,
        to: 1500,
        at: AtomicU64::new(0),
        began: Mutex::new(None),
    };
    let settings = Settings {
        horizon: ms(1200),
        ..Settings::default()
    };
    let plan = |policy: &str| {
        let spec: policy::Spec = policy.parse().unwrap();
        let assignment = live.assign(&spec, &set);
        spec.plan(&policy::Setup {
            set: &set,
            platform: &live.platform,
            assignment: assignment.as_ref(),
            quantum: ms(1),
        })
        .unwrap()
    };
    let plans = [plan("g-edf"), plan("p-edf")];
    let mut sink = VecSink::default();
    let outcome = execute::run_in_turn(
        &plans,
        Some(ms(500)),
        &set,
        works(&set),
        &settings,
        &watch,
        &mut sink,
        |_| (),
    )
    .unwrap();
    assert_eq!(outcome.ending, Ending::Horizon);
    let switches = sink
        .events
        .iter()
        .filter(|e| e.kind == EventKind::PolicySwitch);
    assert_eq!(
        switches.count(),
        0,
        "nobody was there to make a policy ready"
    );
    assert!(outcome.end >= model::Instant::ZERO + settings.horizon);
}

/// What cannot be is refused before anything runs.
fn turns_that_are_too_short_are_refused(live: &Live) {
    let set = set_of(&[(1, 20)]);
    let settings = Settings::default();
    let run = live.run_in_turn(
        &[("g-edf", None)],
        Some(ms(50)),
        &set,
        works(&set),
        &settings,
    );
    let e = run.err().map(|e| e.to_string()).unwrap_or_default();
    assert!(e.contains("50ms"), "{e}");
}

live_tests!(
    every_policy_takes_over_from_every_other,
    parts_of_split_jobs_are_carried_over,
    a_supervisor_that_comes_after_the_horizon_makes_no_stage,
    turns_that_are_too_short_are_refused
);
