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
    18 jobs in 24ms: 0 deadlines missed, 4 preemptions, 2 migrations

    task       jobs  missed    mean  median  99 %  max response  max tardiness  preempted  memory-migration
    T1            8       0     2ms     2ms   2ms           2ms              0          0                 0
    T2            3       0     6ms     6ms   7ms           7ms              0          4                 2
    T3            4       0     1ms     1ms   1ms           1ms              0          0                 0
    T4 (soft)   3+1       0  5.67ms     6ms   6ms           6ms              0          0                 0
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
    assert_eq!(document["tasks"][3]["task"], "T4");
    assert_eq!(document["ended_by"], "horizon");
    assert_eq!(document["horizon_ns"], 168_000_000);
}

/// Everything that `simulate` says in numbers, `trace stats` says of its trace.
#[test]
fn the_statistics_of_a_trace_are_those_of_its_simulation() {
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
        "999ms",
        "--releases",
        "sporadic:exponential:0.5",
        "--execution",
        "gumbel:0.7,0.1@0.2-1.1",
        "--enforcement",
        "exact",
        "--trace",
        "run.wtrace",
        "--format",
        "json",
    ];
    let json = |assert: assert_cmd::assert::Assert| -> serde_json::Value {
        let output = assert.get_output();
        serde_json::from_slice(&output.stdout).unwrap_or_else(|e| panic!("{e}: {output:?}"))
    };
    let simulated = json(warmset(dir.path(), &args));
    warmset(dir.path(), &["trace", "check", "run.wtrace"]).success();
    let added_up = json(
        warmset(
            dir.path(),
            &["trace", "stats", "run.wtrace", "--format", "json"],
        )
        .success(),
    );
    let in_numbers = |of: &serde_json::Value, keys: &serde_json::Value| {
        let keys = keys.as_object().unwrap().keys();
        keys.map(|key| of[key].clone()).collect::<Vec<_>>()
    };
    for key in [
        "horizon_ns",
        "jobs",
        "misses",
        "preemptions",
        "migrations",
        "lost_to_no_task_ns",
    ] {
        assert_eq!(simulated[key], added_up[key], "{key}");
    }
    for task in 0..4 {
        let (one, other) = (&simulated["tasks"][task], &added_up["tasks"][task]);
        assert_eq!(
            in_numbers(one, one),
            in_numbers(other, one),
            "{one:#}\n{other:#}"
        );
        assert!(
            one["lost_ns"]["cpmd"].as_u64().is_some() || one["preemptions"] == 0,
            "{one:#}"
        );
    }
    // And so do the tables.
    let table = |args: &[&str]| text(&warmset(dir.path(), args).get_output().stdout);
    let of_trace = table(&["trace", "stats", "run.wtrace"]);
    let of_run = table(&args[..args.len() - 4]);
    let tables = of_run.split_once("\n\n").unwrap().1;
    assert!(of_trace.contains(tables.trim_end()), "{of_run}\n{of_trace}");
}

#[test]
fn execution_times_come_from_distributions_and_samples() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("times.txt"),
        "1ms*9 2ms\n3ms # the second task\n500us*3 1ms\n5ms 4ms*2\n",
    )
    .unwrap();
    for (how, largest) in [
        ("normal:0.5,0.2", 2_000_000),
        ("weibull:2,0.4@0.1-0.9", 1_800_000),
        ("exponential:0.3", 2_000_000),
        ("discrete:0.25=9,0.75=1", 1_500_000),
        ("sample:times.txt", 2_000_000),
    ] {
        let args = [
            "simulate",
            "tasks.toml",
            "-m",
            "4",
            "--execution",
            how,
            "--for",
            "3s",
            "--format",
            "json",
        ];
        let assert = warmset(dir.path(), &args).success();
        let document: serde_json::Value =
            serde_json::from_slice(&assert.get_output().stdout).unwrap();
        // On a processor of its own the first task's response times are its execution times.
        let response = &document["tasks"][0]["response"];
        let longest = response["max_ns"].as_u64().unwrap();
        assert!(
            (largest * 3 / 4..=largest).contains(&longest),
            "{how}: {response}"
        );
        assert!(
            response["mean_ns"].as_u64() < response["max_ns"].as_u64(),
            "{how}: {response}"
        );
        let again = warmset(dir.path(), &args).success();
        assert_eq!(
            again.get_output().stdout,
            assert.get_output().stdout,
            "{how}"
        );
    }
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
            r#"{"schema_version":1,"id":7,"response_ns":[[4000],[9000]],"misses":0,"preemptions":0,"migrations":0}"#,
            "\n",
            r#"{"schema_version":1,"id":8,"response_ns":[[4000],[null]],"misses":0,"preemptions":0,"migrations":0}"#,
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
            "-m: 0 processors",
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
            &[
                "simulate",
                "tasks.toml",
                "-m",
                "2",
                "--execution",
                "norml:0.5,0.1",
            ],
            "--execution: there is no distribution `norml`; did you mean `normal`?",
        ),
        (
            &[
                "simulate",
                "tasks.toml",
                "-m",
                "2",
                "--execution",
                "discrete:0.5",
            ],
            "`0.5` is not PART=WEIGHT",
        ),
        (
            &[
                "simulate",
                "tasks.toml",
                "-m",
                "2",
                "--execution",
                "discrete:0.5=0",
            ],
            "the weights add up to nothing",
        ),
        (
            &[
                "simulate",
                "tasks.toml",
                "-m",
                "2",
                "--releases",
                "sporadic:exponential:0",
            ],
            "the mean is 0",
        ),
        (
            &[
                "simulate",
                "tasks.toml",
                "-m",
                "2",
                "--releases",
                "nowhere.txt",
            ],
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

/// The prices of `core-i7` are 4, 15 and 82 ns; a walk of 4 KiB is 64 accesses.
#[test]
fn what_computing_takes_beside_the_caches_can_be_given() {
    let dir = tempfile::tempdir().unwrap();
    let set = |wcet: &str| {
        format!(
            "[[task]]\nname = \"walk\"\nwcet = \"{wcet}\"\nperiod = \"10ms\"\nwss = \"4KiB\"\n\
             workload = {{ kind = \"walk\" }}\n\
             [[task]]\nname = \"spin\"\nwcet = \"1ms\"\nperiod = \"10ms\"\n"
        )
    };
    let run = |wcet: &str, horizon: &str, more: &[&str]| {
        std::fs::write(dir.path().join("walk.toml"), set(wcet)).unwrap();
        let how = "simulate walk.toml --platform core-i7 --cache --passes 1 --format json --for";
        let words: Vec<&str> = how.split(' ').collect();
        let args = [&words, &[horizon][..], more].concat();
        warmset(dir.path(), &args).get_output().clone()
    };
    let longest = |output: &std::process::Output, task: usize| -> u64 {
        let document: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        document["caches"][task]["max_ns"].as_u64().unwrap()
    };
    let access = ["--access", "10ns"];
    // The first job misses all caches, whatever its WCET.
    for wcet in ["1ms", "100ns"] {
        let output = run(wcet, "5ms", &access);
        assert_eq!(longest(&output, 0), 64 * (10 + 82), "{wcet}");
        assert_eq!(longest(&output, 1), 1_000_000, "no accesses: its WCET");
    }
    // Otherwise what is left of the WCET is computing, and there has to be some.
    assert_eq!(longest(&run("1ms", "5ms", &[]), 0), 1_000_000);
    let refused = run("100ns", "5ms", &[]);
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("longer than its WCET"));
    let beyond = run("1ms", "5ms", &["--access", "1000000000s"]);
    assert_eq!(beyond.status.code(), Some(2));
    assert!(
        text(&beyond.stderr).contains("beyond 2^64 ns"),
        "{:?}",
        beyond.stderr
    );
}
