//! `warmset check` of one task set, end to end: what people read, what programs read, and what bad
//! input does.

use assert_cmd::Command;
use std::fmt::Write as _;
use std::path::Path;
use tempfile::TempDir;

const SET: &str = r#"
[[task]]
name = "camera"
wcet = "4ms"
period = "33ms"
wss = "256KiB"

[[task]]
name = "lidar"
wcet = "20ms"
period = "50ms"
wss = "1MiB"

[[task]]
name = "fusion"
wcet = "28ms"
period = "40ms"
wss = "512KiB"

[[task]]
name = "control"
wcet = "2ms"
period = "10ms"
deadline = "8ms"
wss = "64KiB"
"#;

struct Case {
    dir: TempDir,
}

impl Case {
    fn new(set: impl AsRef<[u8]>) -> Self {
        let dir = TempDir::new().unwrap();
        std::fs::write(dir.path().join("set.toml"), set).unwrap();
        Case { dir }
    }
    /// Status, standard output, standard error.
    fn check(&self, arguments: &[&str]) -> (i32, String, String) {
        self.check_file("set.toml", arguments)
    }
    fn check_file(&self, file: &str, arguments: &[&str]) -> (i32, String, String) {
        let output = Command::cargo_bin("warmset")
            .unwrap()
            .current_dir(self.dir.path())
            .args(["check", file])
            .args(arguments)
            .output()
            .unwrap();
        (
            output.status.code().unwrap(),
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        )
    }
    fn path(&self) -> &Path {
        self.dir.path()
    }
}

#[test]
fn people_read_which_policy_comes_first_and_why() {
    let (status, out, err) =
        Case::new(SET).check(&["--platform", "symmetric:m=2", "--cpmd", "500us"]);
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn delays_come_from_the_profile_by_working_set_and_by_what_the_policy_does() {
    let case = Case::new(SET);
    let on = [
        "--platform",
        "xeon-l7455",
        "--profile",
        "xeon-l7455",
        "--load",
        "idle",
    ];
    let (status, out, err) = case.check(&[&on[..], &["--policy", "g-edf,c-edf:l2,p-edf"]].concat());
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
}

#[test]
fn programs_read_one_json_document() {
    let case = Case::new(SET);
    let (status, out, _) = case.check(&[
        "--platform",
        "symmetric:m=2",
        "--format",
        "json",
        "--policy",
        "g-edf,p-edf",
    ]);
    assert_eq!(status, 0);
    let judgment: serde_json::Value = serde_json::from_str(&out).unwrap();
    let names: Vec<_> = judgment["policies"]
        .as_array()
        .unwrap()
        .iter()
        .map(|p| {
            (
                p["policy"].as_str().unwrap(),
                p["schedulable"].as_bool().unwrap(),
            )
        })
        .collect();
    assert_eq!(names, [("p-edf", true), ("g-edf", false)]);
    let first = &judgment["policies"][0];
    assert_eq!(first["decided_by"], "exact EDF");
    assert_eq!(first["assignment"]["kind"], "clustered");
    assert_eq!(
        first["assignment"]["cluster_of"].as_array().unwrap().len(),
        4
    );

    let (status, out, _) = case.check(&[
        "--platform",
        "symmetric:m=2",
        "--format",
        "json",
        "-o",
        "out.json",
    ]);
    assert_eq!((status, out.as_str()), (0, ""));
    let written = std::fs::read_to_string(case.path().join("out.json")).unwrap();
    assert!(serde_json::from_str::<serde_json::Value>(&written).is_ok());
}

#[test]
fn no_is_status_1_and_soft_may_still_be_yes() {
    let case = Case::new(
        "[[task]]\nwcet = \"2ms\"\nperiod = \"3ms\"\n[[task]]\nwcet = \"2ms\"\nperiod = \"3ms\"\n[[task]]\nwcet = \"2ms\"\nperiod = \"3ms\"\n",
    );
    let on = |more: &[&str]| case.check(&[&["--platform", "symmetric:m=2"], more].concat());
    // Cut into slices or quanta they fit, whole they do not.
    assert_eq!(on(&[]).0, 0);
    let (status, out, err) = on(&["--policy", "p-edf,g-edf,p-rm,nps-f"]);
    assert_eq!((status, err.as_str()), (1, ""));
    assert!(out.contains("no policy is shown to hold this set"), "{out}");
    assert_eq!(on(&["--soft", "--policy", "g-edf"]).0, 0);
    assert_eq!(on(&["--soft", "--policy", "p-edf"]).0, 1);
    assert_eq!(on(&["--soft", "--policy", "c-edf:size=2"]).0, 0);
}

/// A sufficient test that refuses proves nothing, and is not told as a no.
#[test]
fn no_is_said_of_what_is_proven_alone() {
    let task = |name: &str, wcet: &str, period: &str| {
        format!("[[task]]\nname = \"{name}\"\nwcet = \"{wcet}\"\nperiod = \"{period}\"\n")
    };
    let thirds = ["a", "b", "c"]
        .map(|name| task(name, "2ms", "3ms"))
        .concat();
    let too_much = ["a", "b", "c"]
        .map(|name| task(name, "9ms", "10ms"))
        .concat();
    for (tasks, word, refuted) in [(&thirds, "not shown", false), (&too_much, "no", true)] {
        let case = Case::new(tasks);
        let arguments = [
            "--policy",
            "p-edf,g-edf",
            "--hard",
            "--platform",
            "symmetric:m=2",
        ];
        let (status, text, _) = case.check(&arguments);
        assert_eq!(status, 1);
        for policy in ["p-edf", "g-edf"] {
            let row = text.lines().find(|line| line.starts_with(policy)).unwrap();
            assert!(
                row[policy.len()..]
                    .trim_start()
                    .starts_with(&format!("{word}  ")),
                "{row}"
            );
        }
        let (_, json, _) = case.check(&[&arguments[..], &["--format", "json"]].concat());
        let seen: serde_json::Value = serde_json::from_str(&json).unwrap();
        for verdict in seen["policies"].as_array().unwrap() {
            assert_eq!(verdict["schedulable"], false);
            assert_eq!(verdict["refuted"], refuted, "{verdict}");
        }
    }
}

#[test]
fn a_set_of_soft_tasks_is_asked_for_bounded_tardiness() {
    let task = "[[task]]\nwcet = \"2ms\"\nperiod = \"3ms\"\nsoft = true\n";
    let case = Case::new(task.repeat(3));
    let on = ["--platform", "symmetric:m=2", "--policy", "g-edf"];
    assert_eq!(case.check(&on).0, 0);
    assert_eq!(case.check(&[&on[..], &["--hard"]].concat()).0, 1);
}

/// Tasks that fill two processors: x = (2 + 2)/(2 − 2/3), (2 + 2 + 2)/2 + 2 quanta and one
/// (docs/tardiness.md).
#[test]
fn the_cache_aware_scheduler_is_asked_for_bounded_tardiness_alone() {
    let case = Case::new("[[task]]\nwcet = \"2ms\"\nperiod = \"3ms\"\n".repeat(3));
    let on = |more: &[&str]| case.check(&[&["--platform", "symmetric:m=2"], more].concat());
    let (status, out, err) = on(&["--soft", "--policy", "ca-edf"]);
    assert_eq!((status, err.as_str()), (0, ""));
    insta::assert_snapshot!(out);
    let (status, out, err) = on(&["--hard", "--policy", "ca-edf"]);
    assert_eq!((status, err.as_str()), (1, ""));
    let words = out.split_whitespace().collect::<Vec<_>>().join(" ");
    let why =
        "not judged: ca-edf bounds tardiness, but does not promise that no deadline is missed";
    assert!(words.contains(why), "{out}");
    assert!(on(&["--soft"]).1.contains("ca-edf"));
    assert!(!on(&["--hard"]).1.contains("ca-edf"));
}

#[test]
fn a_reading_beyond_the_profile_is_flagged() {
    let case =
        Case::new("[[task]]\nname = \"huge\"\nwcet = \"1ms\"\nperiod = \"10s\"\nwss = \"64MiB\"\n");
    let (status, out, _) = case.check(&[
        "--platform",
        "xeon-l7455",
        "--profile",
        "xeon-l7455",
        "--policy",
        "p-edf",
    ]);
    assert_eq!(status, 0);
    let out = out.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(
        out.contains(
            "extrapolated: the working set of `huge` (64MiB) is outside of what the profile measured"
        ),
        "{out}"
    );
    assert!(out.contains("(!)"), "{out}");
}

#[test]
fn a_task_without_working_set_is_refused_with_the_remedy() {
    let case = Case::new("[[task]]\nwcet = \"1ms\"\nperiod = \"10ms\"\n");
    let on = ["--platform", "xeon-l7455", "--profile", "xeon-l7455"];
    let (status, out, err) = case.check(&on);
    assert_eq!((status, out.as_str()), (2, ""));
    assert_eq!(
        err,
        "warmset: the working set size of `T1` is not known, so its cache delay cannot be read from the profile; \
         add `wss = \"256KiB\"` to the task, or give `--cpmd` for tasks without one\n"
    );
    assert_eq!(case.check(&[&on[..], &["--cpmd", "100us"]].concat()).0, 0);
}

#[test]
fn options_that_cannot_be_are_refused_in_one_sentence() {
    let case = Case::new(SET);
    for (arguments, message) in [
        (
            &["--policy", "g-edff"][..],
            "--policy: unknown policy `g-edff`; did you mean `g-edf`?",
        ),
        (
            &["--policy", "c-edf"],
            "--policy: policy `c-edf`: `c-edf` does not say which clusters; write `c-edf:l2`, `c-edf:l3` or `c-edf:size=4`",
        ),
        (
            &["--policy", "c-edf:size=3"],
            "policy `c-edf:size=3`: clusters of 3 do not divide 4 processors; choose a divisor of 4",
        ),
        (
            &["--policy", "c-edf:l2"],
            "policy `c-edf:l2`: processor 0 of `symmetric:m=4` has no level-2 cache; levels described: []",
        ),
    ] {
        let (status, out, err) =
            case.check(&[&["--platform", "symmetric:m=4"], arguments].concat());
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(err, format!("warmset: {message}\n"));
    }
    for arguments in [
        &["--cpmd", "5"][..],
        &["--cpmd", "-1ms"],
        &["--load", "idle"],
        &["--soft", "--hard"],
        &["--platform", "xeon"],
        &["--profile", "no-such-file.toml"],
    ] {
        let (status, out, err) = case.check(arguments);
        assert_eq!((status, out.as_str()), (2, ""), "{arguments:?}");
        assert_eq!(err.lines().count(), 1, "{err}");
    }
}

/// Bad input: one sentence with the place, status 2, nothing on standard output.
#[test]
fn bad_files_are_refused_in_one_sentence_with_the_place() {
    let good = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"5ms\"\n";
    let with = |line: &str| format!("{good}[[task]]\nname = \"b\"\n{line}\n");
    for (set, message) in [
        (
            with("wcett = \"1ms\"\nperiod = \"5ms\"").into_bytes(),
            "set.toml: line 7: unknown key `wcett`; did you mean `wcet`?",
        ),
        (
            with("wcet = \"0ms\"\nperiod = \"5ms\"").into_bytes(),
            "set.toml: line 7: wcet: the wcet is zero; give a positive wcet",
        ),
        (
            with("wcet = \"-1ms\"\nperiod = \"5ms\"").into_bytes(),
            "set.toml: line 7, `wcet`: `-1ms` is negative; give a time of at least zero",
        ),
        (
            with("wcet = \"1ms\"\nperiod = \"99999999999999s\"").into_bytes(),
            "set.toml: line 8, `period`: `99999999999999s` is too long; times must stay below 584 years (2^64 ns)",
        ),
        (
            with("wcet = \"6ms\"\nperiod = \"9ms\"\ndeadline = \"5ms\"").into_bytes(),
            "set.toml: line 7: wcet: the WCET 6ms is above the deadline 5ms; no scheduler can meet that: shorten the WCET or lengthen the deadline",
        ),
        (
            [good, good].concat().into_bytes(),
            "set.toml: line 6: the name `a` is taken by the task of line 1; give each task its own name",
        ),
        (
            Vec::new(),
            "set.toml: the file is empty; give it at least one task or entry",
        ),
        (
            b"[[task]]\nname = \"a\0\"\n".to_vec(),
            "set.toml: line 2: the file holds a NUL byte; give a text file",
        ),
        (
            b"[[task]]\n\nname = \"\xff\xfe\"\n".to_vec(),
            "set.toml: line 3: the file is not UTF-8 text; save it as UTF-8",
        ),
    ] {
        let (status, out, err) = Case::new(set).check(&["--platform", "symmetric:m=2"]);
        assert_eq!((status, out.as_str()), (2, ""));
        assert_eq!(err, format!("warmset: {message}\n"));
    }
    let case = Case::new(good);
    for (file, cause) in [(".", "directory"), ("missing.toml", "no such file")] {
        let (status, out, err) = case.check_file(file, &["--platform", "symmetric:m=2"]);
        assert_eq!((status, out.as_str()), (2, ""), "{file}");
        assert!(
            err.contains(cause) && err.contains(file) && err.lines().count() == 1,
            "{err}"
        );
    }
}

#[test]
fn a_hundred_thousand_tasks_are_judged() {
    let mut set = String::new();
    for i in 0..100_000u32 {
        writeln!(
            set,
            "[[task]]\nname = \"t{i}\"\nwcet = \"{}ns\"\nperiod = \"{}us\"",
            1 + i % 90_000,
            10_000 + i % 977
        )
        .unwrap();
    }
    let (status, out, err) = Case::new(set).check(&["--platform", "xeon-l7455"]);
    assert_eq!((status, err.as_str()), (1, ""));
    assert!(out.contains("100000 tasks"), "{out}");
    let (status, out, _) =
        Case::new("[[task]]\nwcet = \"1us\"\nperiod = \"20ms\"\n".repeat(100_000))
            .check(&["--platform", "xeon-l7455"]);
    assert_eq!(status, 0);
    assert!(out.contains("and 4156 more"), "{out}");
}

#[test]
fn an_output_that_cannot_be_written_leaves_nothing_behind() {
    let case = Case::new(SET);
    let (status, _, err) = case.check(&["--platform", "symmetric:m=2", "-o", "set.toml/out.txt"]);
    assert_eq!(status, 2);
    assert_eq!(err.lines().count(), 1, "{err}");
    assert_eq!(
        std::fs::read_to_string(case.path().join("set.toml")).unwrap(),
        SET
    );
    assert_eq!(std::fs::read_dir(case.path()).unwrap().count(), 1);
}

/// PD² holds with what it reserves: the answer goes to `simulate`, which misses no deadline with
/// it, and misses some without.
#[test]
fn an_answer_is_run_as_it_was_judged() {
    let set: String = ["a", "b", "c"]
        .iter()
        .map(|name| {
            format!("[[task]]\nname = \"{name}\"\nwcet = \"3900us\"\nperiod = \"10ms\"\nwss = \"32KiB\"\n")
        })
        .collect();
    let case = Case::new(set);
    let on = ["--platform", "symmetric:m=2", "--profile", "delays.toml"];
    let delays = "version = 1\nplatform = \"two\"\n\
        [[cpmd]]\nresumption = \"preemption\"\nload = \"load\"\nwrite_ratio = 0.0\npoints = [\n\
        { wss = \"4KiB\", samples = 9, average = \"200us\", maximum = \"300us\" },\n\
        { wss = \"64KiB\", samples = 9, average = \"200us\", maximum = \"300us\" },\n]\n\
        [[cpmd]]\nresumption = \"memory-migration\"\nload = \"load\"\nwrite_ratio = 0.0\npoints = [\n\
        { wss = \"4KiB\", samples = 9, average = \"200us\", maximum = \"300us\" },\n\
        { wss = \"64KiB\", samples = 9, average = \"200us\", maximum = \"300us\" },\n]\n";
    std::fs::write(case.path().join("delays.toml"), delays).unwrap();
    let (status, out, err) = case.check(&[&on[..], &["--policy", "pd2"]].concat());
    assert_eq!((status, err.as_str()), (0, ""), "{out}");
    let told: Vec<&str> = out
        .lines()
        .filter(|l| l.starts_with("    warmset "))
        .collect();
    assert_eq!(told.len(), 3, "{out}");
    let run = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().skip(1).collect();
        let output = Command::cargo_bin("warmset")
            .unwrap()
            .current_dir(case.path())
            .args(words)
            .output()
            .unwrap();
        let text = [output.stdout, output.stderr].concat();
        (
            output.status.code().unwrap(),
            String::from_utf8(text).unwrap(),
        )
    };
    assert_eq!(run(told[0]).0, 0);
    let (status, out) = run(&format!("{} --trace run.wtrace", told[1]));
    assert_eq!(status, 0, "{out}");
    assert!(out.contains("no deadline missed"), "{out}");
    // The checker knows the reservations from the head of the trace.
    let (status, out) = run("warmset trace check run.wtrace");
    assert_eq!(status, 0, "{out}");
    let (status, out) = run(told[1].strip_suffix(" --assignment answer.json").unwrap());
    assert_eq!(status, 1, "{out}");
    // The answer is for this policy, these tasks and this quantum alone.
    for (with, cause) in [
        (
            "--policy g-edf",
            "the answer has nothing of `g-edf`, only of pd2",
        ),
        (
            "--policy pd2:quantum=2ms",
            "the assignment reserves quanta of 1ms, and `pd2` has quanta of 2ms",
        ),
    ] {
        let (status, out) = run(&told[1].replace("--policy pd2", with));
        assert_eq!(status, 2, "{out}");
        assert!(out.contains(cause), "{out}");
    }
    let other = std::fs::read_to_string(case.path().join("set.toml")).unwrap();
    std::fs::write(
        case.path().join("set.toml"),
        other.replace("3900us", "3800us"),
    )
    .unwrap();
    let (status, out) = run(told[1]);
    assert_eq!(status, 2, "{out}");
    assert!(
        out.contains("the task a had 3.9ms every 10ms, due within 10ms, and has 3.8ms"),
        "{out}"
    );
}

/// 002 §6.1: what each overhead is charged adds up to what a job executes beyond its WCET.
#[test]
fn the_shares_of_overheads_add_up_to_the_inflation() {
    let case = Case::new(SET);
    let with = [
        "--platform",
        "symmetric:m=2",
        "--profile",
        "xeon-l7455",
        "--policy",
        "p-edf",
    ];
    let (_, json, errors) = case.check(&[&with[..], &["--format", "json"]].concat());
    let answer: serde_json::Value = serde_json::from_str(&json).expect(&errors);
    let wcets: Vec<u64> = answer["tasks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|task| task["wcet_ns"].as_u64().unwrap())
        .collect();
    let mut seen = 0;
    for cluster in answer["policies"][0]["clusters"].as_array().unwrap() {
        for task in cluster["tasks"].as_array().unwrap() {
            let charged = task["charged_ns"].as_object().unwrap();
            let sum: u64 = charged.values().map(|ns| ns.as_u64().unwrap()).sum();
            let wcet = wcets[task["index"].as_u64().unwrap() as usize];
            assert_eq!(task["inflated_ns"].as_u64(), Some(wcet + sum), "{task}");
            seen += u64::from(sum > 0);
        }
    }
    assert!(seen > 0, "{answer}");
    let (_, text, _) = case.check(&[&with[..], &["--explain"]].concat());
    assert!(text.contains("What a job is charged"), "{text}");
}

#[test]
fn an_answer_is_certified_where_it_can_be() {
    let case = Case::new(SET);
    let on = ["--platform", "symmetric:m=2", "--certificate", "proof.json"];
    let check = |more: &[&str]| case.check(&[&on, more].concat());
    let (status, _, err) = check(&[]);
    assert_eq!(status, 0, "{err}");
    let file = case.path().join("proof.json");
    let text = std::fs::read_to_string(&file).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["tasks"][3]["deadline_ns"], 8_000_000);
    let claims = document["claims"].as_array().unwrap();
    let p_edf = claims.iter().find(|c| c["policy"] == "p-edf").unwrap();
    assert_eq!(p_edf["says"], "yes");
    assert!(
        p_edf["places"]
            .as_array()
            .unwrap()
            .iter()
            .all(|p| p["proof"]["by"] == "DEMAND")
    );
    let without = document["without"].as_array().unwrap();
    assert!(without.iter().any(|w| w["policy"] == "nps-f"), "{text}");

    // A policy that was asked for by name has to have one.
    std::fs::remove_file(&file).unwrap();
    let (status, out, err) = check(&["--policy", "p-edf,nps-f"]);
    assert_eq!((status, out.as_str()), (2, ""));
    assert!(
        err.contains("`nps-f` gets no certificate") && err.contains("--policy"),
        "{err}"
    );
    assert!(!file.exists());
}
