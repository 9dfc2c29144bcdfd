//! Scaling factors, misses and total times (004 §IV-B and §IV-C).
//!
//! The worst-case scaling factor of a task in a scenario is its longest job there against its
//! longest job in S1, the average one likewise: x_i / WCET_i in S1, y_i / AVG_i in S1. Longest jobs
//! and averages are over all repetitions. Factors are averaged over the tasks of a set, then over
//! sets.

use super::cell;
use super::sets::Scheduler;
use super::{Group, Scenario, Sizes};
use model::Bytes;
use serde::Serialize;

/// How many scenarios there are.
pub const SCENARIOS: usize = Scenario::ALL.len();

/// All sets of a scheduler with one size of working sets. Arrays are in the order of
/// [`Scenario::ALL`].
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Row {
    /// The scheduler.
    #[serde(rename = "policy")]
    pub scheduler: Scheduler,
    /// Are sizes the paper's?
    pub sizes: Sizes,
    /// The size in the paper.
    pub wss: Bytes,
    /// The sizes that it was, from the smallest to the largest.
    pub own: (Bytes, Bytes),
    /// How many sets.
    pub sets: usize,
    /// How many tasks they have.
    pub tasks: usize,
    /// Worst-case scaling factor.
    pub worst: [f64; SCENARIOS],
    /// Average scaling factor.
    pub average: [f64; SCENARIOS],
    /// Percentage of the tasks that missed a deadline at least once.
    pub missed_percent: [f64; SCENARIOS],
    /// Total time of a set, in seconds: mean over sets and repetitions.
    #[serde(rename = "total_ns", serialize_with = "crate::whole::each_of_seconds")]
    pub total_s: [f64; SCENARIOS],
    /// Runs that were given up before all jobs were done.
    pub given_up: [usize; SCENARIOS],
}

/// A row for each scheduler, kind of sizes and size that there are groups of, in this order.
pub fn rows(groups: &[Group]) -> Vec<Row> {
    let mut rows = Vec::new();
    for sizes in Sizes::ALL {
        for scheduler in Scheduler::ALL {
            let mine = |g: &&Group| g.scheduler == scheduler && g.sizes == sizes;
            let mut all: Vec<Bytes> = groups.iter().filter(mine).map(|g| g.wss).collect();
            all.sort_unstable();
            all.dedup();
            for wss in all {
                let of: Vec<&Group> = groups
                    .iter()
                    .filter(mine)
                    .filter(|g| g.wss == wss)
                    .collect();
                rows.push(row(scheduler, sizes, wss, &of));
            }
        }
    }
    rows
}

fn row(scheduler: Scheduler, sizes: Sizes, wss: Bytes, groups: &[&Group]) -> Row {
    let own = |g: &&Group| {
        let mut sizes = g.tasks.iter().filter(|t| !t.best_effort).map(|t| t.wss);
        sizes.next().unwrap_or(wss)
    };
    let tasks: usize = groups.iter().map(|g| g.tasks.len()).sum();
    let over_sets = |of: &dyn Fn(&Group) -> f64| mean(groups.iter().map(|g| of(g)));
    Row {
        scheduler,
        sizes,
        wss,
        own: (
            groups.iter().map(own).min().unwrap_or(wss),
            groups.iter().map(own).max().unwrap_or(wss),
        ),
        sets: groups.len(),
        tasks,
        worst: Scenario::ALL.map(|s| over_sets(&|g| factor(g, s, worst))),
        average: Scenario::ALL.map(|s| over_sets(&|g| factor(g, s, average))),
        missed_percent: Scenario::ALL.map(|s| {
            let missed: usize = groups.iter().map(|g| missed(g, s)).sum();
            100.0 * missed as f64 / tasks.max(1) as f64
        }),
        total_s: Scenario::ALL
            .map(|s| over_sets(&|g| mean(runs(g, s).map(|seen| seen.total.nanos() as f64 / 1e9)))),
        given_up: Scenario::ALL.map(|s| {
            let unfinished = |g: &&Group| runs(g, s).filter(|seen| !seen.finished).count();
            groups.iter().map(unfinished).sum()
        }),
    }
}

fn runs(group: &Group, scenario: Scenario) -> impl Iterator<Item = &cell::Seen> {
    group
        .runs
        .iter()
        .filter(move |run| run.scenario == scenario)
        .map(|run| &run.seen)
}

/// The longest job of a task over all repetitions, in nanoseconds; not a number where it was not
/// run.
pub fn worst(group: &Group, scenario: Scenario, task: usize) -> f64 {
    let of = |seen: &cell::Seen| seen.tasks.get(task).map_or(0, |t| t.worst.nanos());
    runs(group, scenario)
        .map(of)
        .max()
        .map_or(f64::NAN, |ns| ns as f64)
}

/// What a job of a task takes on average over all repetitions, in nanoseconds.
pub fn average(group: &Group, scenario: Scenario, task: usize) -> f64 {
    mean(runs(group, scenario).filter_map(|seen| seen.tasks.get(task).map(cell::Task::average_ns)))
}

/// A scaling factor, averaged over the tasks of a set.
fn factor(group: &Group, scenario: Scenario, of: fn(&Group, Scenario, usize) -> f64) -> f64 {
    mean(
        (0..group.tasks.len())
            .map(|task| of(group, scenario, task) / of(group, Scenario::S1, task)),
    )
}

fn missed(group: &Group, scenario: Scenario) -> usize {
    let misses = |task: &usize| {
        runs(group, scenario).any(|seen| seen.tasks.get(*task).is_some_and(|t| t.missed > 0))
    };
    (0..group.tasks.len()).filter(misses).count()
}

/// Not a number of none.
fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, count) = values.fold((0.0, 0.0), |(sum, count), v| (sum + v, count + 1.0));
    sum / count
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::multicore::{Run, Task};
    use model::Duration;

    fn task(period: u64) -> Task {
        Task {
            period: Duration::from_millis(period),
            wcet: Duration::from_millis(10),
            wss: Bytes::from_kib(64),
            best_effort: period == 200,
            accesses: 1000,
        }
    }
    fn run(scenario: Scenario, repetition: usize, worst: [u64; 2], missed: u64, total: u64) -> Run {
        let of = |us: u64, missed| cell::Task {
            jobs: 10,
            worst: Duration::from_micros(us),
            sum: Duration::from_micros(5 * us),
            missed,
        };
        Run {
            scenario,
            repetition,
            seen: cell::Seen {
                tasks: vec![of(worst[0], missed), of(worst[1], 0)],
                total: Duration::from_millis(total),
                finished: true,
            },
        }
    }
    fn group(scheduler: Scheduler, runs: Vec<Run>) -> Group {
        Group {
            scheduler,
            set: 0,
            sizes: Sizes::Paper,
            wss: Bytes::from_kib(64),
            tasks: vec![task(25), task(200)],
            runs,
        }
    }

    /// 004 §IV-B.
    #[test]
    fn factors_compare_tasks_with_themselves_in_s1() {
        let groups = [
            group(
                Scheduler::GEdf,
                vec![
                    run(Scenario::S1, 0, [1000, 2000], 0, 2000),
                    run(Scenario::S3, 0, [1500, 2000], 1, 2100),
                    run(Scenario::S1, 1, [900, 2000], 0, 2000),
                    run(Scenario::S3, 1, [2000, 3000], 0, 2300),
                ],
            ),
            group(
                Scheduler::PEdf,
                vec![
                    run(Scenario::S1, 0, [1000, 1000], 0, 2000),
                    run(Scenario::S3, 0, [1000, 1000], 0, 2000),
                ],
            ),
        ];
        let rows = rows(&groups);
        assert_eq!(rows.len(), 2);
        let (g, p) = (&rows[0], &rows[1]);
        assert_eq!(
            (g.scheduler, p.scheduler),
            (Scheduler::GEdf, Scheduler::PEdf)
        );
        assert_eq!(g.worst[0], 1.0);
        assert_eq!(
            g.worst[2],
            (2.0 + 1.5) / 2.0,
            "the longest of both repetitions"
        );
        let expected = (1750.0 / 950.0 + 2500.0 / 2000.0) / 2.0;
        assert!((g.average[2] - expected).abs() < 1e-12, "{}", g.average[2]);
        assert_eq!(
            g.missed_percent[2], 50.0,
            "once is enough, and in one of two tasks"
        );
        assert_eq!(g.total_s[2], 2.2);
        assert_eq!(p.worst[2], 1.0);
        assert!(p.worst[1].is_nan(), "nothing is said of what was not run");
        assert_eq!((g.tasks, g.sets), (2, 1));
    }

    #[test]
    fn a_size_is_judged_over_all_sets() {
        let one = |worst| {
            group(
                Scheduler::GEdf,
                vec![
                    run(Scenario::S1, 0, [1000, 1000], 0, 2000),
                    run(Scenario::S3, 0, worst, 1, 2000),
                ],
            )
        };
        let rows = rows(&[one([1000, 1000]), one([3000, 3000])]);
        assert_eq!(rows.len(), 1);
        assert_eq!(rows[0].worst[2], 2.0);
        assert_eq!((rows[0].sets, rows[0].tasks), (2, 4));
        assert_eq!(rows[0].missed_percent[2], 50.0);
        assert_eq!(rows[0].own, (Bytes::from_kib(64), Bytes::from_kib(64)));
    }
}
