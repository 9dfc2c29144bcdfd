//! Response times job by job of an established tool, for 35 sets under G-EDF and P-EDF
//! (`data/edf_schedules.jsonl`).

use model::assignment::Clustered;
use model::watch::Silent;
use model::{Assignment, CpuId, Duration, Platform, taskfile};
use policy::{Setup, Spec};
use serde_json::Value;
use simulate::{Responses, Scenario, Summary};

const SCHEDULES: &str = include_str!("data/edf_schedules.jsonl");

fn simulate(line: &str, policy: &str, assign: Option<&Value>) -> (Summary, Responses) {
    let batch = taskfile::from_batch_line(line).unwrap();
    let platform = Platform::symmetric(batch.m);
    let assignment = assign.map(|assign| {
        Assignment::Clustered(Clustered {
            clusters: (0..batch.m)
                .map(|c| [CpuId(c)].into_iter().collect())
                .collect(),
            cluster_of: assign
                .as_array()
                .unwrap()
                .iter()
                .map(|p| p.as_u64().unwrap() as u32)
                .collect(),
        })
    });
    let setup = Setup {
        set: &batch.set,
        platform: &platform,
        assignment: assignment.as_ref(),
        quantum: Duration::from_millis(1),
    };
    let plan = policy.parse::<Spec>().unwrap().plan(&setup).unwrap();
    let scenario = Scenario {
        horizon: batch.horizon.unwrap(),
        ..Scenario::default()
    };
    let observer = Responses::new(batch.set.len());
    simulate::simulate(
        plan, &batch.set, &platform, &scenario, None, &Silent, observer,
    )
    .unwrap()
}

/// Compares with the expected answer of a set; says how many response times agreed.
fn agrees(expected: &Value, summary: &Summary, responses: &Responses, set: &Value) -> usize {
    let (mut jobs, mut late, mut overdue) = (0, 0, 0);
    for (task, expected) in expected["response_us"]
        .as_array()
        .unwrap()
        .iter()
        .enumerate()
    {
        let time = |key: &str| set["tasks"][task][key].as_u64().unwrap();
        let expected = expected.as_array().unwrap();
        let complete: Vec<u64> = expected
            .iter()
            .filter_map(|r| Some(r.as_u64()? * 1000))
            .collect();
        assert_eq!(
            responses.of[task], complete,
            "set {}, task {task}",
            set["id"]
        );
        assert_eq!(summary.tasks[task].released, expected.len() as u64);
        late += complete
            .iter()
            .filter(|r| **r > time("deadline") * 1000)
            .count() as u64;
        // The tool counts late completions; a job that is incomplete at its deadline is a miss as
        // well.
        let horizon = set["horizon_us"].as_u64().unwrap();
        overdue += (complete.len()..expected.len())
            .filter(|job| *job as u64 * time("period") + time("deadline") <= horizon)
            .count() as u64;
        jobs += complete.len();
    }
    assert_eq!(expected["misses"], late, "set {}", set["id"]);
    assert_eq!(summary.misses(), late + overdue, "set {}", set["id"]);
    jobs
}

#[test]
fn every_response_time_under_global_edf() {
    let mut jobs = 0;
    for line in SCHEDULES.lines() {
        let set: Value = serde_json::from_str(line).unwrap();
        let (summary, responses) = simulate(line, "g-edf", None);
        jobs += agrees(&set["gedf"], &summary, &responses, &set);
    }
    assert!(jobs > 10_000, "{jobs}");
}

#[test]
fn every_response_time_under_partitioned_edf() {
    let mut jobs = 0;
    for line in SCHEDULES.lines() {
        let set: Value = serde_json::from_str(line).unwrap();
        if set["pedf"].is_null() {
            continue;
        }
        let (summary, responses) = simulate(line, "p-edf", Some(&set["pedf"]["assign"]));
        jobs += agrees(&set["pedf"], &summary, &responses, &set);
    }
    assert!(jobs > 10_000, "{jobs}");
}
