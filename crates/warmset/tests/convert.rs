//! `warmset convert`, end to end; with the real rt-app where it is installed.

use assert_cmd::Command;
use std::path::Path;

const TASKS: &str = r#"
[[task]]
name = "camera"
wcet = "2ms"
period = "20ms"
deadline = "15ms"
[[task]]
name = "control"
wcet = "300us"
period = "5ms"
phase = "1ms"
wss = "64KiB"
"#;

fn convert(dir: &Path, args: &[&str]) -> assert_cmd::assert::Assert {
    Command::cargo_bin("warmset")
        .unwrap()
        .current_dir(dir)
        .arg("convert")
        .args(args)
        .assert()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).unwrap()
}

#[test]
fn a_set_goes_to_rt_app_and_comes_back_with_its_times() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tasks.toml"), TASKS).unwrap();
    let there = convert(dir.path(), &["tasks.toml", "-o", "work.json", "--for", "1500ms"]).success();
    assert!(
        text(&there.get_output().stderr).contains("task control: `wss` is left out"),
        "what has no place is told"
    );
    let json = std::fs::read_to_string(dir.path().join("work.json")).unwrap();
    let document: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(document["global"]["duration"], 2);
    assert_eq!(document["tasks"]["camera"]["dl-deadline"], 15_000);
    let back = convert(dir.path(), &["work.json"]).success();
    let lost = TASKS.replace("wss = \"64KiB\"\n", "");
    let set = |text: &str| model::taskfile::from_toml(text).unwrap();
    assert_eq!(set(&text(&back.get_output().stdout)), set(&lost));
}

#[test]
fn what_cannot_be_imported_is_told_and_nothing_to_import_is_an_error() {
    let dir = tempfile::tempdir().unwrap();
    let periodic = r#""tick": {"run": 100, "timer": {"ref": "unique", "period": 1000}},"#;
    let other = r#""wakes": {"run": 100, "resume": "tick"}"#;
    for (name, threads) in [
        ("some.json", format!("{periodic} {other}")),
        ("none.json", other.to_owned()),
    ] {
        std::fs::write(
            dir.path().join(name),
            format!("/* a comment */ {{\"tasks\": {{{threads}}}}}"),
        )
        .unwrap();
    }
    let some = convert(dir.path(), &["some.json"]).success();
    let told = text(&some.get_output().stderr);
    assert!(
        told.contains("some.json: line 1, column 116: thread `wakes` is left out: event `resume`"),
        "{told}"
    );
    assert!(text(&some.get_output().stdout).contains("name = \"tick\""));
    let none = convert(dir.path(), &["none.json", "-o", "none.toml"]).code(2);
    let told = text(&none.get_output().stderr);
    assert!(
        told.contains("none.json: no thread is periodic: line 1, column 50: thread `wakes`"),
        "{told}"
    );
    assert!(!dir.path().join("none.toml").exists());
}

/// rt-app itself reads what is written and runs it, as far as it may: without rights it stops at SCHED_DEADLINE.
#[test]
fn the_real_rt_app_accepts_what_is_written() {
    let Ok(version) = std::process::Command::new("rt-app").arg("--help").output() else {
        eprintln!("skipped: rt-app is not installed");
        return;
    };
    drop(version);
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tasks.toml"), TASKS).unwrap();
    convert(dir.path(), &["tasks.toml", "-o", "work.json", "--for", "1s"]).success();
    let ran = std::process::Command::new("rt-app")
        .arg("work.json")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let told = text(&ran.stdout) + &text(&ran.stderr);
    let no_right = told.contains("ermission") || told.contains("not permitted");
    assert!(ran.status.success() || no_right, "{told}");
    if no_right {
        eprintln!("skipped in part: no right to SCHED_DEADLINE");
        return;
    }
    // One log a thread, with a line for every job: 50 and 200 in a second, fewer on a machine that is late.
    let logs: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(logs.len(), 2, "{told}");
    assert!(
        logs.iter()
            .all(|log| log.lines().filter(|l| !l.starts_with('#')).count() > 1),
        "{logs:?}"
    );
}
