//! `warmset simulate`, end to end.

use assert_cmd::Command;
use std::path::Path;

/// The task set of 002, Fig. 2.6, and T4 as a soft task.
const TASKS: &str = r#"
[[task]]
wcet = "2ms"
period = "3ms"
[[task]]
wcet = "3ms"
period = "8ms"
[[task]]
wcet = "1ms"
period = "7ms"
[[task]]
wcet = "5ms"
period = "7ms"
soft = true
"#;

fn warmset(dir: &Path, args: &[&str]) -> assert_cmd::assert::Assert {
    std::fs::write(dir.join("tasks.toml"), TASKS).unwrap();
    Command::cargo_bin("warmset")
        .unwrap()
        .current_dir(dir)
        .args(args)
        .assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_set_is_simulated_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let assert = warmset(
        dir.path(),
        &["simulate", "tasks.toml", "-m", "2", "--for", "24ms"],
    )
    .success();
    insta::assert_snapshot!(text(&assert.get_output().stdout), @r"
    g-edf on symmetric:m=2: 24ms simulated
    no deadline missed

    task       jobs  response max        mean  p99  tardiness  misses  preempted  memory migr.
    T1            8           2ms         2ms  2ms        0ms       0          0             0
    T2            3           7ms         6ms  7ms        0ms       0          4             2
    T3            4           1ms         1ms  1ms        0ms       0          0             0
    T4 (soft)     3           6ms  5666.666us  6ms        0ms       0          0             0
    ");
}

#[test]
fn a_missed_deadline_of_a_hard_task_is_a_no_and_of_a_soft_one_is_not() {
    let dir = tempfile::tempdir().unwrap();
    // One processor less: T4 is tardy; under fixed priorities in the order of the set only T4 is.
    let args = ["simulate", "tasks.toml", "-m", "1", "--for", "21ms"];
    warmset(dir.path(), &args).code(1);
    let args = [
        "simulate",
        "tasks.toml",
        "--policy",
        "g-fp",
        "-m",
        "2",
        "--execution",
        "0.5..1.0",
    ];
    warmset(dir.path(), &args).success();
    let args = ["simulate", "tasks.toml", "-m", "1", "--brute-force"];
    let assert = warmset(dir.path(), &args).code(1);
    let out = text(&assert.get_output().stdout);
    assert!(out.contains("stopped at the first miss"), "{out}");
}

#[test]
fn json_is_one_document() {
    let dir = tempfile::tempdir().unwrap();
    let args = ["simulate", "tasks.toml", "-m", "2", "--format", "json"];
    let assert = warmset(dir.path(), &args).success();
    let document: serde_json::Value = serde_json::from_slice(&assert.get_output().stdout).unwrap();
    assert_eq!(document["tasks"][3]["name"], "T4");
    assert_eq!(document["ended_by"], "horizon");
    assert_eq!(document["simulated"], "168ms");
}

#[test]
fn the_same_input_gives_the_same_trace_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let run = |file: &str| {
        let args = [
            "simulate",
            "tasks.toml",
            "-m",
            "2",
            "--releases",
            "sporadic:0.5",
            "--execution",
            "0.2..1.0",
            "--seed",
            "5",
            "--trace",
            file,
        ];
        warmset(dir.path(), &args).success();
        std::fs::read(dir.path().join(file)).unwrap()
    };
    let (a, b) = (run("a.wtrace"), run("b.wtrace"));
    assert!(a.len() > 4096);
    assert!(a == b, "two runs of one input differ");
}

#[test]
fn batches_answer_line_by_line() {
    let dir = tempfile::tempdir().unwrap();
    let batch = concat!(
        r#"{"id":7,"m":1,"tasks":[{"wcet":4,"period":10},{"wcet":5,"period":10}]}"#,
        "\n",
        r#"{"id":8,"m":2,"tasks":[{"wcet":4,"period":10},{"wcet":5,"period":10}],"assign":[1,1],"horizon_us":8}"#,
        "\n",
    );
    std::fs::write(dir.path().join("sets.jsonl"), batch).unwrap();
    let args = ["simulate", "--batch", "sets.jsonl", "--policy", "p-edf"];
    let assert = warmset(dir.path(), &args).success();
    assert_eq!(
        text(&assert.get_output().stdout),
        concat!(
            r#"{"id":7,"response_us":[[4],[9]],"misses":0,"preemptions":0,"migrations":0}"#,
            "\n",
            r#"{"id":8,"response_us":[[4],[null]],"misses":0,"preemptions":0,"migrations":0}"#,
            "\n",
        )
    );
}

#[test]
fn every_policy_runs_and_its_trace_keeps_the_rules() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = TASKS.replace("period =", "wss = \"64KiB\"\nperiod =");
    for policy in [
        "p-edf",
        "g-edf",
        "c-edf:size=2",
        "p-rm",
        "p-fp:dm",
        "g-fp",
        "edf-fm",
        "edf-wm",
        "nps-f:delta=1",
        "c-nps-f:size=2",
        "pd2",
        "ca-edf:cache=1MiB",
        "g-edf:quantum=1ms",
    ] {
        let args = [
            "simulate",
            "wss.toml",
            "-m",
            "4",
            "--policy",
            policy,
            "--trace",
            "run.wtrace",
        ];
        std::fs::write(dir.path().join("wss.toml"), &tasks).unwrap();
        let assert = warmset(dir.path(), &args);
        let status = assert.get_output().status.code();
        assert!(
            matches!(status, Some(0 | 1)),
            "{policy}: {:?}",
            assert.get_output()
        );
        warmset(dir.path(), &["trace", "check", "run.wtrace"]).success();
    }
}

#[test]
fn overheads_of_a_profile_are_charged_and_shown() {
    let dir = tempfile::tempdir().unwrap();
    let tasks = TASKS.replace("period =", "wss = \"64KiB\"\nperiod =");
    std::fs::write(dir.path().join("wss.toml"), tasks).unwrap();
    let args = [
        "simulate",
        "wss.toml",
        "--platform",
        "xeon-l7455",
        "--profile",
        "xeon-l7455",
        "--policy",
        "c-edf:size=2",
        "--for",
        "1s",
        "--brute-force",
    ];
    let assert = warmset(dir.path(), &args);
    let status = assert.get_output().status.code();
    assert!(matches!(status, Some(0 | 1)), "{:?}", assert.get_output());
}

#[test]
fn what_cannot_be_simulated_is_refused_in_one_sentence() {
    let dir = tempfile::tempdir().unwrap();
    for (args, message) in [
        (
            &["simulate", "tasks.toml", "-m", "0"][..],
            "`0` is no number of processors",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--policy", "g-edff"],
            "did you mean `g-edf`?",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--policy", "c-edf"],
            "does not say which clusters",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--policy", "p-edf"],
            "T2 fits on no processor",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--for", "0s"],
            "the simulation lasts no time",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--for", "99999999999s"],
            "too long",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--execution", "1.2.3"],
            "--execution",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--execution", "2..1"],
            "are no range",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--releases", "nowhere.txt"],
            "nowhere.txt",
        ),
        (
            &["simulate", "tasks.toml", "-m", "2", "--quantum", "0ms"],
            "the quantum is zero",
        ),
        (&["simulate", "missing.toml", "-m", "2"], "missing.toml"),
        (&["simulate"], "required"),
    ] {
        let assert = warmset(dir.path(), args).code(2);
        let err = text(&assert.get_output().stderr);
        assert!(err.contains(message), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
    }
}
