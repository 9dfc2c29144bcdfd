//! Brute force (002 §6.3) is an upper bound: it keeps whatever a hard test accepts, and more.

use analyze::partition::Fit;
use analyze::{Guarantee, assign};
use model::watch::Silent;
use model::{Assignment, Duration, Platform, Profile, TaskSet, Timing};
use policy::catalog::Needs;
use policy::{Setup, Spec};
use simulate::{Costs, Ending, Scenario};
use study::brute_force::{BruteForce, HORIZON};
use study::{Charged, Judge, Point, Study, file, presets, run};
use testing::platforms::pairs;
use testing::random::Random;

fn small(policies: &str) -> Study {
    let text = format!(
        "based_on = \"bastoni11-fig6.2b\"\nname = \"small\"\nplatform = \"symmetric:m=4\"\npolicies = [{policies}]\n\
         caps = {{ from = 2, to = 3.5, step = 0.5 }}\ndelays = {{ from = \"0us\", to = \"2ms\", step = \"2ms\" }}\nsets = 6\n"
    );
    file::from_toml(&text, Platform::find, Profile::find).unwrap()
}

#[test]
fn what_a_hard_test_accepts_survives_sixty_seconds() {
    let study =
        small("\"g-edf\", \"brute-force:g-edf\", \"c-edf:size=2\", \"brute-force:c-edf:size=2\"");
    let results = run(&study, &Silent).unwrap();
    assert_eq!(
        results.policies,
        ["G-EDF", "G-EDF-BF", "C-EDF-SIZE-2", "C-EDF-SIZE-2-BF"]
    );
    assert_eq!(results.axis.texts(), ["0ms", "2ms"]);
    let (mut shown, mut survived) = (0, 0);
    for shard in &results.shards {
        for pair in shard.accepted.chunks(2) {
            for (by_test, by_force) in pair[0].iter().zip(&pair[1]) {
                assert!(
                    by_test <= by_force,
                    "cap {}: {:?}",
                    shard.cap,
                    shard.accepted
                );
                shown += by_test;
                survived += by_force;
            }
        }
    }
    assert!(
        shown > 0 && survived > shown,
        "{shown} shown, {survived} survived"
    );
}

#[test]
fn the_curves_of_the_hard_figures_are_there_on_a_coarse_grid() {
    for figure in ["6.2a", "6.2b", "6.2c", "6.3a", "6.3b", "6.3c"] {
        let study = presets::find(&format!("bastoni11-fig{figure}-bf")).unwrap();
        assert_eq!(
            study.policies,
            [
                "p-edf",
                "brute-force:g-edf",
                "brute-force:c-edf:l2",
                "brute-force:c-edf:l3"
            ]
        );
        assert_eq!(
            (
                study.caps.values().len(),
                study.axis.numbers().len(),
                study.sets
            ),
            (24, 5, 10)
        );
    }
    let e = file::from_toml(
        "based_on = \"bastoni11-fig6.2b\"\nname = \"bad\"\npolicies = [\"brute-force:edf-wm\"]\n",
        Platform::find,
        Profile::find,
    )
    .and_then(|study| run(&study, &Silent))
    .unwrap_err()
    .to_string();
    assert!(
        e.contains("brute force does not know how to split tasks"),
        "{e}"
    );
}

/// What the engine that knows every cost says of a set, where going on costs this.
fn survives(tasks: &[Timing], platform: &Platform, spec: &Spec, delay: Duration) -> bool {
    let set = TaskSet::from_timings(tasks.to_vec()).unwrap();
    let assignment = match spec.needs().unwrap() {
        Needs::Clusters(clusters) => {
            let clusters = platform.clusters(clusters).unwrap();
            match assign::into_clusters(tasks, &clusters, Fit::default(), None) {
                Ok(made) => Some(made),
                Err(_) => return false,
            }
        }
        _ => None,
    };
    let scenario = Scenario {
        horizon: HORIZON,
        stop_at_miss: true,
        ..Scenario::default()
    };
    let setup = Setup {
        set: &set,
        platform,
        assignment: assignment.as_ref(),
        quantum: scenario.quantum,
    };
    let costs = Costs {
        cpmd: vec![vec![delay.nanos(); platform.resumptions().len()]; set.len()],
        ..Costs::default()
    };
    let plan = spec.plan(&setup).unwrap();
    let (summary, ()) =
        simulate::simulate(plan, &set, platform, &scenario, Some(&costs), &Silent, ()).unwrap();
    assert!(!matches!(assignment, Some(Assignment::Turns(_))));
    summary.ending != Ending::Miss && summary.misses() == 0
}

/// Tasks of whole milliseconds, whose jobs come and are due at the same instants, or of any
/// nanoseconds; now and then with deadlines before their periods.
fn draw(random: &mut Random, m: u64) -> Vec<Timing> {
    let percent = random.among(50, 100);
    let (whole, constrained) = (random.one_in(2), random.one_in(4));
    let (mut tasks, mut total) = (Vec::new(), 0);
    loop {
        let share = random.among(5, 70);
        total += share;
        if total > m * percent && !tasks.is_empty() {
            return tasks;
        }
        let unit = if whole { 1_000_000 } else { 1 };
        let period = random.among(8_000_000, 60_000_000) / unit * unit;
        let wcet = (period * share / 100 / unit * unit).max(unit);
        let [wcet, period] = [wcet, period].map(Duration::from_nanos);
        let mut task = Timing::implicit(wcet, period);
        if constrained && random.one_in(3) {
            let room = period.saturating_sub(wcet).nanos() / unit + 1;
            task.deadline = period.saturating_sub(Duration::from_nanos(random.below(room) * unit));
        }
        tasks.push(task);
    }
}

/// Verdicts without a simulation, and those of the engine for one delay, are those of the engine
/// that knows every cost.
#[test]
fn quick_verdicts_are_those_of_the_whole_engine() {
    let platform = pairs(4, 4, None);
    let mut random = Random::new(7);
    let mut verdicts = [0; 2];
    for round in 0..150 {
        let name = ["g-edf", "c-edf:size=2", "c-edf:size=4", "p-edf"][round % 4];
        let spec: Spec = name.parse().unwrap();
        let tasks = draw(&mut random, 4);
        let judge = BruteForce::new(name, &platform, Guarantee::Hard, &Charged::default()).unwrap();
        let mut delays: Vec<u64> = (0..3).map(|_| random.below(6_000_000)).collect();
        // At the same instants as others.
        delays.extend([0, 1_000_000 * random.among(1, 4)]);
        let point = |delay: &u64| Point {
            delay: Duration::from_nanos(*delay),
            wss: None,
        };
        let points: Vec<Point> = delays.iter().map(point).collect();
        let says = judge.accepts_each(&tasks, &points).unwrap().unwrap();
        for (point, says) in points.iter().zip(says) {
            let expected = survives(&tasks, &platform, &spec, point.delay);
            assert_eq!(says, expected, "{name} {}: {tasks:?}", point.delay);
            verdicts[usize::from(says)] += 1;
        }
    }
    assert!(verdicts.iter().all(|count| *count > 150), "{verdicts:?}");
}

/// What is kept without a simulation by a test, and refused by the simulation at no delay, is so in
/// the engine that knows every cost, at every delay.
#[test]
fn a_set_that_misses_without_delays_misses_with_any() {
    let platform = pairs(4, 4, None);
    let mut random = Random::new(11);
    let spec: Spec = "g-edf".parse().unwrap();
    let mut missing = 0;
    while missing < 40 {
        let tasks = draw(&mut random, 4);
        if survives(&tasks, &platform, &spec, Duration::ZERO) {
            continue;
        }
        missing += 1;
        for micros in [1, 40, 700, 3_000] {
            let delay = Duration::from_micros(micros);
            assert!(
                !survives(&tasks, &platform, &spec, delay),
                "{delay}: {tasks:?}"
            );
        }
    }
}
