//! Long runs and hostile sets: no overflow, no drift, no memory for a backlog.

use model::watch::Silent;
use model::{Duration, Platform, Ratio, TaskSet, Timing};
use policy::{Setup, Spec};
use simulate::{Costs, Execution, Releases, Scenario, Summary};

const DAY: Duration = Duration::from_secs(86_400);

fn run(policy: &str, timings: Vec<Timing>, scenario: &Scenario, costs: Option<&Costs>) -> Summary {
    let set = TaskSet::from_timings(timings).unwrap();
    let platform = Platform::symmetric(2);
    let setup = Setup {
        set: &set,
        platform: &platform,
        assignment: None,
        quantum: Duration::from_secs(1),
    };
    let plan = policy.parse::<Spec>().unwrap().plan(&setup).unwrap();
    simulate::simulate(plan, &set, &platform, scenario, costs, &Silent, ())
        .unwrap()
        .0
}

fn minutes(e: u64, p: u64) -> Timing {
    Timing::implicit(Duration::from_secs(60 * e), Duration::from_secs(60 * p))
}

#[test]
fn a_simulated_year_does_not_drift() {
    let year = Scenario {
        horizon: Duration::from_nanos(365 * DAY.nanos()),
        ..Scenario::default()
    };
    let costs = Costs {
        release: 2_000,
        scheduling: 1_000,
        context_switch: 1_000,
        ..Costs::default()
    };
    for policy in ["g-edf", "g-fp:rm"] {
        let timings = vec![
            minutes(3, 10),
            minutes(20, 60),
            minutes(600, 1440),
            minutes(1, 7),
        ];
        let ideal = run(policy, timings.clone(), &year, None);
        assert_eq!(ideal.tasks[0].released, 365 * 144, "{policy}");
        assert_eq!(ideal.tasks[2].completed, 365, "{policy}");
        assert_eq!(ideal.misses(), 0, "{policy}");
        let charged = run(policy, timings, &year, Some(&costs));
        assert_eq!(
            (charged.tasks[0].completed, charged.misses()),
            (365 * 144, 0),
            "{policy}"
        );
    }
}

/// After 52 weeks, of which each is one hyperperiod, everything is 52 times what it was after one.
#[test]
fn every_week_of_a_simulated_year_is_like_the_first() {
    let timings = vec![
        minutes(3, 10),
        minutes(20, 60),
        minutes(600, 1440),
        minutes(1, 7),
    ];
    let weeks = |count: u64| {
        let scenario = Scenario {
            horizon: Duration::from_nanos(count * 7 * DAY.nanos()),
            ..Scenario::default()
        };
        run("g-edf", timings.clone(), &scenario, None)
    };
    let (one, year) = (weeks(1), weeks(52));
    assert_eq!(one.misses(), 0);
    for (one, year) in one.tasks.iter().zip(&year.tasks) {
        assert_eq!(year.completed, 52 * one.completed);
        assert_eq!(year.response_sum, 52 * one.response_sum);
        assert_eq!(year.response_max, one.response_max);
        assert_eq!(year.preemptions, 52 * one.preemptions);
    }
}

#[test]
fn an_overloaded_set_leaves_a_backlog_that_takes_no_memory_and_is_counted() {
    // Three tasks of utilization one on two processors; the third starves under fixed priorities.
    let scenario = Scenario {
        horizon: Duration::from_secs(10),
        releases: Releases::Sporadic(Ratio::ONE),
        ..Scenario::default()
    };
    let full = Timing::implicit(Duration::from_micros(100), Duration::from_micros(100));
    let periodic = Scenario {
        releases: Releases::Periodic,
        ..scenario.clone()
    };
    let summary = run("g-fp", vec![full; 3], &periodic, None);
    assert_eq!(
        (summary.tasks[2].released, summary.tasks[2].completed),
        (100_000, 0)
    );
    assert_eq!(summary.tasks[2].misses, 100_000);
    assert_eq!(summary.first_miss.map(|m| (m.task.0, m.job)), Some((2, 0)));
    let sporadic = run("g-edf", vec![full; 6], &scenario, None);
    let released: u64 = sporadic.tasks.iter().map(|t| t.released).sum();
    assert!(released > sporadic.completed() && sporadic.misses() > 0);
}

#[test]
fn the_longest_times_are_simulated_and_longer_ones_refused() {
    let long = Duration::from_nanos(1 << 61);
    let timing = Timing::implicit(long, long);
    let scenario = Scenario {
        horizon: long,
        ..Scenario::default()
    };
    let summary = run("g-edf", vec![timing; 3], &scenario, None);
    assert_eq!((summary.completed(), summary.misses()), (2, 1));
    let set = TaskSet::from_timings(vec![timing]).unwrap();
    let overrun = Scenario {
        execution: Execution::Fraction(Ratio::whole(2)),
        ..scenario.clone()
    };
    assert!(
        overrun
            .check(&set)
            .unwrap_err()
            .to_string()
            .contains("too long to simulate")
    );
    let beyond = Scenario {
        horizon: Duration::MAX,
        ..scenario
    };
    assert!(beyond.check(&set).is_err());
}
