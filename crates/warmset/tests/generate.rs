//! `warmset generate` from outside: what it writes, that it repeats, and how it refuses.

use assert_cmd::Command;
use std::path::Path;

fn generate(arguments: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmset"));
    command.arg("generate").args(arguments.split_whitespace());
    command
}

fn stdout(arguments: &str) -> String {
    let out = generate(arguments)
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    String::from_utf8(out).expect("lines are text")
}

#[test]
fn the_same_seed_gives_the_same_lines_on_any_number_of_threads() {
    let arguments =
        "--utilization uniform-medium --periods moderate --cap 12 -m 24 --sets 300 --seed 7";
    let lines = stdout(arguments);
    assert_eq!(lines.lines().count(), 300);
    let single = generate(arguments)
        .env("RAYON_NUM_THREADS", "1")
        .assert()
        .success()
        .get_output()
        .stdout
        .clone();
    assert_eq!(lines.as_bytes(), single);
    // Set number 299 is the same, whatever was drawn before it.
    let last = stdout(&arguments.replace("300", "1 --first 299"));
    assert!(
        last.starts_with(
            lines
                .lines()
                .last()
                .expect("300 lines")
                .trim_end_matches('}')
        )
    );
    for line in lines.lines() {
        let set = model::taskfile::from_batch_line(line).expect("a batch line");
        assert_eq!(set.m, 24);
        assert!(set.set.cmp_utilization(model::Ratio::whole(12)).is_le());
    }
}

#[test]
fn the_first_line_says_where_the_sets_come_from() {
    let first = stdout("--cap 2 --utilization uniform-heavy --periods short");
    insta::assert_snapshot!(first.trim_end());
}

#[test]
fn a_task_file_reads_back() {
    let dir = tempfile::tempdir().expect("a directory");
    let path = dir.path().join("set.toml");
    generate("--tasks 5 --total 2.5 --method uunifast-discard --periods long -o")
        .arg(&path)
        .assert()
        .success()
        .stdout("");
    let text = std::fs::read_to_string(&path).expect("written");
    let set = model::taskfile::from_toml(&text).expect("a task set");
    assert_eq!(set.len(), 5);
    assert!(text.starts_with("# warmset "), "{text}");
    assert!(names_in(dir.path()) == ["set.toml"]);
}

/// 004 §IV-A: tasks until the GFB test fails; one more task of 0.7 would have passed the bound.
#[test]
fn sets_of_004_stop_where_the_test_refuses() {
    let lines = stdout("--utilization rtcsa13 --periods rtcsa13 --until GFB -m 4 --sets 10");
    for line in lines.lines() {
        let set = model::taskfile::from_batch_line(line)
            .expect("a batch line")
            .set;
        let total = set.utilization_f64();
        let largest = set
            .timings()
            .iter()
            .map(|t| t.utilization().to_f64())
            .fold(0.0, f64::max);
        assert!(total <= 4.0 - 3.0 * largest + 1e-9, "{line}");
    }
}

#[test]
fn a_reader_that_closes_the_pipe_is_no_failure() {
    let mut child = std::process::Command::new(env!("CARGO_BIN_EXE_warmset"))
        .args(["generate", "--cap", "12", "--sets", "20000"])
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("started");
    drop(child.stdout.take());
    let out = child.wait_with_output().expect("ended");
    assert!(out.status.success(), "{out:?}");
}

#[test]
fn what_cannot_be_is_refused_in_one_sentence() {
    for (arguments, message) in [
        (
            "",
            "nothing says how many tasks a set has; give `--cap U`, `--tasks N` or `--until TEST`",
        ),
        ("--cap 12 --sets 0", "--sets: no sets were asked for"),
        ("--cap 0", "a total utilization of zero"),
        ("--cap=-1", "`-1` is not a ratio"),
        ("--cap 0.2", "raise the cap to at least 0.4"),
        ("--cap 12 -m 0", "-m: 0 processors"),
        ("--cap 12 -m 99999", "give a number from 1 to 8192"),
        (
            "--cap 12 --utilization uniform-medum",
            "did you mean `uniform-medium`?",
        ),
        ("--cap 12 --periods shrt", "did you mean `short`?"),
        ("--cap 12 --periods uniform:5-20ms", "`5` has no unit"),
        ("--cap 12 --deadlines implict", "did you mean `implicit`?"),
        ("--cap 12 --fill scael", "did you mean `scale`?"),
        ("--cap 12 --tasks 3", "cannot be used with"),
        ("--tasks 3 --total 3.5 -m 4", "cannot have a total of 3.5"),
        (
            "--tasks 3 --total 1.5 --method uunifast",
            "did you mean `uunifast-discard`?",
        ),
        ("--until GFB", "give `-m M` or `--platform NAME`"),
        ("--until GBF -m 4", "did you mean `GFB`?"),
        ("--until GFB -m 4 --deadlines arbitrary", "--until: GFB"),
        ("--cap 12 --sets 2 -o set.toml", "a task file holds one set"),
        (
            "--cap 12 --sets 2 --first 18446744073709551615",
            "run beyond 2^64",
        ),
    ] {
        let out = generate(arguments)
            .assert()
            .code(2)
            .stdout("")
            .get_output()
            .stderr
            .clone();
        let text = String::from_utf8_lossy(&out).into_owned();
        assert!(text.contains(message), "`{arguments}`: {text}");
        assert_eq!(text.lines().count(), 1, "{text}");
    }
}

#[test]
fn a_file_that_cannot_be_written_leaves_nothing_behind() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("file"), "kept").expect("written");
    let out = generate("--cap 12 -o")
        .arg(dir.path().join("file/sets.jsonl"))
        .assert()
        .code(2)
        .get_output()
        .stderr
        .clone();
    let text = String::from_utf8_lossy(&out).into_owned();
    assert!(text.contains("file") && text.lines().count() == 1, "{text}");
    // Too many tasks of a microsecond: found while drawing, after the output was opened.
    let path = dir.path().join("sets.jsonl");
    generate("--tasks 100 --total 0.001 --periods short -o")
        .arg(&path)
        .assert()
        .code(2);
    assert_eq!(names_in(dir.path()), ["file"]);
}

fn names_in(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .expect("a directory")
        .map(|e| {
            e.expect("an entry")
                .file_name()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    names.sort();
    names
}

/// With a number of tasks alone, a set is for as many processors as its own total utilization
/// needs.
#[test]
fn sets_of_so_many_tasks_are_for_as_many_processors_as_each_needs() {
    let out = generate("--tasks 9 --utilization bimodal-heavy --sets 40")
        .assert()
        .success();
    let text = String::from_utf8(out.get_output().stdout.clone()).unwrap();
    let mut seen = std::collections::BTreeSet::new();
    for line in text.lines() {
        let set: serde_json::Value = serde_json::from_str(line).unwrap();
        let tasks = set["tasks"].as_array().unwrap();
        let total: f64 = tasks
            .iter()
            .map(|t| t["wcet"].as_f64().unwrap() / t["period"].as_f64().unwrap())
            .sum();
        let m = set["m"].as_u64().unwrap();
        assert!(
            total <= m as f64 + 1e-9 && total > m as f64 - 1.0 - 1e-9,
            "{line}"
        );
        seen.insert(m);
    }
    assert!(seen.len() > 1, "{seen:?}");
}
