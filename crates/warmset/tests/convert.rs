//! `warmset convert`, end to end; with the real rt-app in `permitted.rs`.

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
    let there = convert(
        dir.path(),
        &["tasks.toml", "-o", "work.json", "--for", "1500ms"],
    )
    .success();
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
        told.contains(
            "some.json: line 1, column 94: thread `wakes` is left out: it has no event `timer`"
        ),
        "{told}"
    );
    assert!(text(&some.get_output().stdout).contains("name = \"tick\""));
    let none = convert(dir.path(), &["none.json", "-o", "none.toml"]).code(2);
    let told = text(&none.get_output().stderr);
    assert!(
        told.contains("none.json: no thread is periodic: line 1, column 28: thread `wakes`"),
        "{told}"
    );
    assert!(!dir.path().join("none.toml").exists());
}
