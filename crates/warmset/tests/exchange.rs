//! Files of other tools, end to end: SimSo and Cheddar (`convert`), cyclictest and rtla (`profile
//! import`), ftrace (`trace import`). rt-app is in `convert.rs`, the formats themselves in
//! `crates/model` and `crates/trace`.

use serde_json::Value;
use std::path::{Path, PathBuf};
use testing::command::Called;
use testing::warmset;

const TASKS: &str = r#"
[[task]]
name = "camera"
wcet = "2ms"
period = "20ms"
deadline = "15ms"
priority = 9
[[task]]
name = "control"
wcet = "300us"
period = "5ms"
phase = "1ms"
priority = 20
"#;

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    write(dir.path(), "tasks.toml", TASKS);
    dir
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).expect("written");
}

fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).expect("there")
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linux")
}

/// What comes of a call that ends with this status.
fn called(dir: &Path, args: &str, status: i32) -> Called {
    let called = Called::within(warmset!(), dir, args);
    assert_eq!(
        called.status, status,
        "{args}: {}{}",
        called.out, called.err
    );
    called
}

fn refusal(dir: &Path, args: &str) -> String {
    Called::within(warmset!(), dir, args).refusal()
}

fn answer(dir: &Path, args: &str) -> Value {
    Called::within(warmset!(), dir, &format!("{args} --format json")).json()
}

#[test]
fn sets_go_to_simso_and_cheddar_and_come_back() {
    let dir = directory();
    let set = |text: &str| model::taskfile::from_toml(text).expect("a set");
    for (to, unit) in [("simso", ""), ("cheddar", " --unit 100us")] {
        let args = format!("convert tasks.toml --to {to} -m 2 -o there.xml{unit}");
        called(dir.path(), &args, 0);
        let args = format!("convert there.xml -o back.toml{unit}");
        called(dir.path(), &args, 0);
        assert_eq!(set(&read(dir.path(), "back.toml")), set(TASKS), "{to}");
    }
    // From one tool to another, without a task file between.
    let args = "convert there.xml --unit 100us --to simso -o simso.xml";
    called(dir.path(), args, 0);
    assert!(read(dir.path(), "simso.xml").contains("name=\"camera\""));
    let said = refusal(dir.path(), "convert there.xml");
    assert!(said.contains("the times of Cheddar have no unit"), "{said}");
    write(dir.path(), "odd.xml", "<?xml version=\"1.0\"?>\n<svg/>");
    let said = refusal(dir.path(), "convert odd.xml");
    assert!(
        said.contains("odd.xml: this XML is of no tool that is known here"),
        "{said}"
    );
}

#[test]
fn threads_that_sleep_are_converted_where_that_is_asked_for() {
    let dir = directory();
    let text = r#"{"tasks": {"t": {"run": 20000, "sleep": 80000}}}"#;
    write(dir.path(), "work.json", text);
    let refused = refusal(dir.path(), "convert work.json");
    assert!(refused.contains("see `--sleep-as-period`"), "{refused}");
    let args = "convert work.json --sleep-as-period";
    let done = called(dir.path(), args, 0);
    assert!(done.out.contains("period = \"100ms\""), "{}", done.out);
    assert!(
        done.err.contains("its period is taken as 100ms"),
        "{}",
        done.err
    );
}

#[test]
fn latencies_become_the_overhead_of_releases() {
    let dir = directory();
    let rtla = "# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:01
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
1          1000       500      1000       500
7             0       500         0       500
over:         0         0         0         0
count:     1000      1000      1000      1000
min:          1         1         1         1
avg:          1         4         1         4
max:          1         7         1         9
";
    write(dir.path(), "rtla.txt", rtla);
    let args = "profile import rtla.txt --platform board -o profile.toml";
    let said = called(dir.path(), args, 0);
    assert!(
        said.err.contains("the whole latency from a timer"),
        "{}",
        said.err
    );
    let profile = answer(dir.path(), "profile show ./profile.toml");
    assert_eq!(profile["platform"], "board");
    let curve = &profile["overheads"][0];
    assert_eq!(curve["kind"], "release");
    assert_eq!(
        (
            &curve["points"][0]["tasks"],
            &curve["points"][0]["maximum_ns"]
        ),
        (&2.into(), &10_000.into())
    );
    assert_eq!(
        profile["provenance"]["source"],
        "rtla timerlat rtla.txt (2 threads, 2000 samples)"
    );
    // A profile that has it refuses another one.
    write(
        dir.path(),
        "cyclic.txt",
        "T: 0 ( 11) P:80 I:1000 C: 10 Min: 3 Act: 5 Avg: 4 Max: 6\n\
         T: 1 ( 12) P:80 I:1500 C: 10 Min: 3 Act: 5 Avg: 4 Max: 6\n",
    );
    let args = "profile import cyclic.txt --into ./profile.toml -o more.toml";
    let said = refusal(dir.path(), args);
    assert!(
        said.contains("has the overhead `release` of 2 tasks already"),
        "{said}"
    );
    let args = "profile import cyclic.txt --into ./profile.toml --policy g-edf -o more.toml";
    called(dir.path(), args, 0);
    let more = answer(dir.path(), "profile show ./more.toml");
    assert_eq!(more["overheads"].as_array().map(Vec::len), Some(2));
    // Without a statistic a table of SchedCAT is refused, as before.
    write(dir.path(), "table.csv", "TASK-COUNT, CXS\n 10, 5.5\n");
    let args = "profile import table.csv -o table.toml";
    let said = refusal(dir.path(), args);
    assert!(
        said.contains("does not say which number of the samples"),
        "{said}"
    );
}

/// 44 ms of three threads of SCHED_FIFO on a machine of two busy processors.
#[test]
fn a_schedule_of_linux_is_checked_and_added_up() {
    let dir = directory();
    let (sched, tasks) = (examples().join("sched.txt"), examples().join("tasks.toml"));
    let import = |more: &str| {
        format!(
            "trace import {} {} -m 2 --policy g-fp -o linux.wtrace {more}",
            sched.display(),
            tasks.display()
        )
    };
    for more in ["", "--releases periodic", "--thread log=15707"] {
        let imported = answer(dir.path(), &import(more));
        let jobs: Vec<u64> = (0..3)
            .map(|task| imported["tasks"][task]["jobs"].as_u64().expect("a count"))
            .collect();
        assert_eq!(jobs, [9, 3, 2], "{imported}");
        let checked = answer(dir.path(), "trace check linux.wtrace");
        assert_eq!(checked["clean"], true, "{more}: {checked}");
        assert_eq!(checked["origin"], "real");
        let sums = answer(dir.path(), "trace stats linux.wtrace");
        assert_eq!(sums["misses"], 0);
        // `log` began beside `camera`, and `motor` preempted it.
        assert_eq!(sums["tasks"][2]["preemptions"], 1, "{sums}");
    }
    // Held to the opposite order, it breaks the rule.
    let turned = read(&examples(), "tasks.toml")
        .replace("priority = 30", "priority = 1")
        .replace("priority = 10", "priority = 99");
    write(dir.path(), "turned.toml", &turned);
    let args = import("").replace(&tasks.display().to_string(), "turned.toml");
    answer(dir.path(), &args);
    let said = called(dir.path(), "trace check linux.wtrace", 1);
    assert!(said.out.contains("rule `priority`"), "{}", said.out);
}

/// 41 ms of the same threads under SCHED_DEADLINE.
#[test]
fn a_schedule_of_deadlines_keeps_the_rules_of_edf() {
    let dir = directory();
    let (sched, tasks) = (
        examples().join("deadline.txt"),
        examples().join("tasks.toml"),
    );
    let args = format!(
        "trace import {} {} -m 2 --policy g-edf -o linux.wtrace",
        sched.display(),
        tasks.display()
    );
    let imported = answer(dir.path(), &args);
    assert_eq!(imported["tasks"][0]["jobs"], 9, "{imported}");
    let checked = answer(dir.path(), "trace check linux.wtrace");
    assert_eq!(checked["clean"], true, "{checked}");
    assert_eq!(checked["verdict"]["policies"][0], "g-edf");
}

/// What perf could not keep up with stands between the events, where it is asked to print that; a
/// task that seems to begin twice is then no error.
#[test]
fn events_that_perf_lost_are_lost_events_of_the_trace() {
    let dir = directory();
    let text = read(&examples(), "sched.txt");
    let lines: Vec<&str> = text.lines().collect();
    let leaves = |line: &&str| line.contains("prev_comm=camera");
    let at = lines.iter().position(leaves).expect("camera leaves");
    let import = format!(
        "trace import lost.txt {} -m 2 --policy g-fp -o lost.wtrace",
        examples().join("tasks.toml").display()
    );
    for (says, lost) in [
        ("PERF_RECORD_LOST lost 13980", 13980),
        ("PERF_RECORD_LOST_SAMPLES lost 7", 7),
    ] {
        let said = format!(" lto cgu.14 14085 [000] 41654.543911: {says}");
        let cut = [&lines[..at], &[said.as_str()], &lines[at + 1..]].concat();
        write(dir.path(), "lost.txt", &cut.join("\n"));
        let imported = answer(dir.path(), &import);
        assert_eq!(imported["lost_events"], lost, "{imported}");
    }
    let silent = [&lines[..at], &lines[at + 1..]].concat().join("\n");
    write(dir.path(), "lost.txt", &silent);
    let said = refusal(dir.path(), &import);
    assert!(said.contains("perf script --show-lost-events"), "{said}");
}

#[test]
fn what_cannot_be_imported_is_refused_in_one_sentence() {
    let dir = directory();
    let (sched, tasks) = (examples().join("sched.txt"), examples().join("tasks.toml"));
    let (sched, tasks) = (sched.display().to_string(), tasks.display().to_string());
    for (args, message) in [
        (
            format!("{sched} {tasks} -m 1 --policy g-fp"),
            "sched.txt: there are events of processor 1, and the platform `symmetric:m=1` can use 0",
        ),
        (
            format!("{sched} tasks.toml -m 2 --policy g-fp"),
            "no thread has the name or number that task `control` has",
        ),
        (
            format!("{tasks} {tasks} -m 2 --policy g-fp"),
            "there is no event `sched_switch`",
        ),
        (
            format!("{sched} {tasks} -m 2 --policy g-fp --thread radar=7"),
            "--thread: the set has no task `radar`",
        ),
        (
            format!("{sched} {tasks} -m 2 --policy g-fp,g-edf"),
            "several policies",
        ),
    ] {
        let args = format!("trace import {args} -o linux.wtrace");
        let said = refusal(dir.path(), &args);
        assert!(said.contains(message), "{message}: {said}");
        assert!(!dir.path().join("linux.wtrace").exists(), "{args}");
    }
}
