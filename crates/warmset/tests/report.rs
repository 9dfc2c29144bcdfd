//! `warmset report`, end to end: the page and the figures of a profile, and what bad input does.

use assert_cmd::Command;
use std::fs;
use tempfile::tempdir;

fn warmset() -> Command {
    Command::new(assert_cmd::cargo::cargo_bin!("warmset"))
}

#[test]
fn a_builtin_profile_makes_a_page_that_fetches_and_runs_nothing() {
    let dir = tempdir().unwrap();
    let page = dir.path().join("page.html");
    warmset()
        .args(["report", "--profile", "xeon-l7455", "-o"])
        .arg(&page)
        .assert()
        .success();
    let html = fs::read_to_string(&page).unwrap();
    assert!(html.contains(
        "costs 830\u{a0}ns on average in an idle system and 249\u{a0}µs on average under load"
    ));
    let without_names = html.replace("http://www.w3.org/2000/svg", "");
    for forbidden in ["<script", "http:", "https:", "url(", "@import"] {
        assert!(!without_names.contains(forbidden), "{forbidden}");
    }
}

#[test]
fn figures_are_written_as_svg_pdf_and_png() {
    let dir = tempdir().unwrap();
    let kinds = ["--png", "--pdf", "--figures"];
    warmset()
        .args(["report", "--profile", "xeon-l7455"])
        .args(kinds)
        .arg(dir.path())
        .assert()
        .success();
    let svg = fs::read_to_string(dir.path().join("cpmd-xeon-l7455.svg")).unwrap();
    assert!(svg.contains("<title") && svg.contains("<desc") && svg.contains("viewBox"));
    let png = fs::read(dir.path().join("cpmd-xeon-l7455.png")).unwrap();
    assert!(png.starts_with(b"\x89PNG"));
    let pdf = fs::read(dir.path().join("cpmd-xeon-l7455.pdf")).unwrap();
    assert!(pdf.starts_with(b"%PDF-1.7") && pdf.ends_with(b"%%EOF"));
}

#[test]
fn the_picture_of_the_documentation_is_the_one_that_is_drawn() {
    let dir = tempdir().unwrap();
    warmset()
        .args(["report", "--profile", "xeon-l7455", "--figures"])
        .arg(dir.path())
        .assert()
        .success();
    let kept = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/img/cpmd-xeon-l7455.svg"
    );
    let drawn = dir.path().join("cpmd-xeon-l7455.svg");
    assert!(
        fs::read(kept).unwrap() == fs::read(drawn).unwrap(),
        "draw it again: warmset report --profile xeon-l7455 --figures docs/img"
    );
}

/// Observations and Fig. 1 from the results, Fig. 4 from the profile.
#[test]
fn delays_in_schedules_are_a_section_with_both_figures_and_each_observation() {
    let dir = tempdir().unwrap();
    let mut profile = model::Profile::builtin("xeon-l7455").unwrap();
    let curve = profile.cpmd[0].clone();
    for tasks in [6, 12, 24, 48, 96] {
        profile.cpmd_scheduled.push(model::ScheduledCurve {
            policy: "g-edf".to_owned(),
            tasks,
            curve: curve.clone(),
        });
    }
    let text = model::profilefile::to_toml(&profile);
    fs::write(dir.path().join("profile.toml"), text).unwrap();
    let from = serde_json::to_string(&model::Provenance::default()).unwrap();
    let results = r#"{"runs": 8, "jobs": 1200, "samples": 90, "provenance": FROM, "observations": [
        {"id": "observation-5", "says": "delays do not depend on it", "source": "000 §4.2", "rule": "no trend",
         "here": "z = 0.31", "holds": "cannot-tell"}],
        "example": {"policy": "g-edf", "tasks": 6, "load": "idle", "resumption": "preemption", "wss": "64KiB",
         "from": 0, "to": 0, "cold_ns": 9000, "warm_ns": 1000, "post_ns": 4000, "told_ns": 700000,
         "away_ns": 701000}}"#;
    let results = results.replace("FROM", &from);
    fs::write(dir.path().join("scheduled.json"), results).unwrap();
    warmset()
        .current_dir(dir.path())
        .args(["report", ".", "--figures", "plots", "-o", "index.html"])
        .assert()
        .success();
    let page = fs::read_to_string(dir.path().join("index.html")).unwrap();
    for said in [
        "Cache delays within schedules",
        "What makes a sample: a job of 6 tasks under G-EDF",
        "Largest cache delay by number of tasks",
        "Delays do not depend on it (000 §4.2)",
        "z = 0.31",
        "cannot tell here",
    ] {
        assert!(page.contains(said), "{said}");
    }
    for file in ["scheduled.svg", "scheduled-sample.svg"] {
        let svg = fs::read_to_string(dir.path().join("plots").join(file)).unwrap();
        assert!(svg.contains("prefers-color-scheme:dark"), "{file}");
    }
    fs::write(dir.path().join("scheduled.json"), "{}").unwrap();
    let text = refused(&[dir.path().to_str().unwrap()]);
    assert!(text.contains("scheduled.json"), "{text}");
}

/// Runs `warmset report` and expects one line and status 2.
fn refused(args: &[&str]) -> String {
    let output = warmset().arg("report").args(args).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{args:?}");
    let text = String::from_utf8(output.stderr).unwrap();
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn what_cannot_be_reported_is_said_in_one_line() {
    let dir = tempdir().unwrap();
    let empty = dir.path().to_str().unwrap();
    assert!(refused(&[]).contains("nothing to report on"));
    assert!(refused(&["no/such/directory"]).contains("no such directory"));
    assert!(refused(&[empty]).contains("there is no profile.toml"));
    assert!(refused(&["--profile", "xeon-l7456", "-o", "x.html"]).contains("xeon-l7455"));
    assert!(refused(&["--profile", "xeon-l7455"]).contains("nowhere to write to"));
    assert!(refused(&["--png"]).contains("--figures"));
    assert!(refused(&["--pdf"]).contains("--figures"));
    fs::write(
        dir.path().join("profile.toml"),
        "version = 1\nplatfrom = \"x\"\n",
    )
    .unwrap();
    let text = refused(&[empty]);
    assert!(
        text.contains("profile.toml") && text.contains("line 2"),
        "{text}"
    );
}

#[test]
fn a_directory_that_cannot_be_written_loses_nothing() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("taken");
    fs::write(&file, "mine").unwrap();
    let inside = file.join("page.html");
    refused(&["--profile", "xeon-l7455", "-o", inside.to_str().unwrap()]);
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}
