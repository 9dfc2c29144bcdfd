//! `warmset tour`, end to end, with a built-in profile instead of a measurement, so that it is
//! quick and always the same.

use assert_cmd::Command;
use std::fs;
use std::path::Path;
use tempfile::tempdir;

fn tour(dir: &Path, platform: &str) -> Command {
    let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warmset"));
    command.args([
        "tour",
        "--profile",
        "xeon-l7455",
        "--platform",
        platform,
        "--sets",
        "2",
        "-o",
    ]);
    command.arg(dir);
    command
}

#[test]
fn the_tour_judges_studies_and_reports_and_its_page_can_be_made_again() {
    let dir = tempdir().unwrap();
    let output = tour(dir.path(), "xeon-l7455").output().unwrap();
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let said = String::from_utf8(output.stdout).unwrap();
    assert!(
        said.contains("index.html: open it in a browser") && said.contains("Try next:"),
        "{said}"
    );
    let stages = String::from_utf8(output.stderr).unwrap();
    for stage in ["1/5", "2/5", "3/5", "4/5", "5/5"] {
        assert!(stages.contains(stage), "{stage}: {stages}");
    }
    let html = fs::read_to_string(dir.path().join("index.html")).unwrap();
    for part in [
        "id=\"machine\"",
        "id=\"delays\"",
        "id=\"examples\"",
        "id=\"studies\"",
        "id=\"next\"",
        "id=\"provenance\"",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert_reads_well(&html);
    // Made again from the files it is the same.
    let page = dir.path().join("index.html");
    Command::new(assert_cmd::cargo::cargo_bin!("warmset"))
        .arg("report")
        .arg(dir.path())
        .assert()
        .success();
    assert_eq!(html, fs::read_to_string(&page).unwrap());
}

/// The answer is first, what the policies say is in tables, and units are written one way.
fn assert_reads_well(html: &str) {
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}"));
    assert!(at("<strong>Control (no deadline may be missed):</strong>") < at("<table"));
    assert!(at("<strong>Video (lateness must be bounded):</strong>") < at("<table"));
    // The numbers of each machine and the origin of each study, and no heap of them.
    assert!(
        html.matches("<details").count() <= 4,
        "{}",
        html.matches("<details").count()
    );
    assert!(html.contains("its jobs are done after") && html.contains("95 % confidence"));
    // Outside of commands no unit is joined to its number, and none is spelled `us`.
    let mut text = html.to_owned();
    for (open, close) in [
        ("<code>", "</code>"),
        ("<pre>", "</pre>"),
        ("<style", "</style>"),
    ] {
        while let Some(start) = text.find(open) {
            let end = start + text[start..].find(close).unwrap() + close.len();
            text.replace_range(start..end, " ");
        }
    }
    let mut within = false;
    let shown: String = text
        .chars()
        .map(|c| {
            within = (within || c == '<') && c != '>';
            if within || c == '>' { ' ' } else { c }
        })
        .collect();
    for word in shown.split_whitespace() {
        let word = word.trim_matches(|c: char| !c.is_alphanumeric());
        for unit in ["ns", "us", "µs", "ms", "s", "KiB", "MiB", "GiB"] {
            let number = word.strip_suffix(unit).unwrap_or_default();
            let joined =
                !number.is_empty() && number.chars().all(|c| c.is_ascii_digit() || c == '.');
            assert!(!joined, "`{word}` is written in another way than the rest");
        }
        assert!(word != "us", "microseconds are written as µs");
    }
}

#[test]
fn a_tour_with_other_parameters_is_refused_before_it_measures() {
    let dir = tempdir().unwrap();
    assert!(
        tour(dir.path(), "xeon-l7455")
            .output()
            .unwrap()
            .status
            .success()
    );
    let output = tour(dir.path(), "xeon-l7455")
        .args(["--seed", "2"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(
        said.contains("holds another study") && !said.contains("2/5"),
        "{said}"
    );
}

#[test]
fn a_long_tour_is_of_this_machine_and_its_own_profile() {
    let dir = tempdir().unwrap();
    let output = tour(dir.path(), "xeon-l7455")
        .arg("--long")
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(
        said.contains("--profile") && said.contains("measures this machine"),
        "{said}"
    );
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0);
}

/// What a validation found stands first on the page, with its picture; the overheads of an engine
/// are a table.
#[test]
fn what_was_run_for_real_is_on_the_page() {
    let dir = tempdir().unwrap();
    let mut profile = model::Profile::builtin("xeon-l7455").unwrap();
    profile.overheads = vec![model::profile::OverheadCurve {
        kind: model::OverheadKind::Release,
        policy: "g-edf".to_owned(),
        code: Some(model::Code::Both),
        points: vec![model::profile::OverheadPoint {
            tasks: 30,
            samples: 100,
            average: Some(model::Duration::from_micros(12)),
            maximum: Some(model::Duration::from_micros(40)),
            untrimmed: None,
            intervals: model::profile::Intervals::default(),
        }],
    }];
    let text = model::profilefile::to_toml(&profile);
    fs::write(dir.path().join("profile.toml"), text).unwrap();
    let sums = |sets: u64, beyond: u64| {
        serde_json::json!({
            "sets": sets, "not_run": 1, "jobs": 900, "sets_with_misses": 0, "misses": 0,
            "sets_beyond": beyond, "jobs_beyond": beyond, "jobs_excused": 2,
            "largest_excess_ns": 430_000 * beyond, "tasks_beyond_simulated": 1, "tasks": 4,
        })
    };
    let task = serde_json::json!({
        "wcet_ns": 1_000_000, "period_ns": 10_000_000, "bound_ns": 4_000_000,
        "simulated_ns": 3_000_000, "observed_ns": 3_500_000, "executed_ns": 1_000_000,
        "jobs": 200, "misses": 0, "simulated_misses": 0,
    });
    let validated = serde_json::json!({
        "schema_version": 1,
        "accepted_hard": sums(13, 1), "accepted_soft": sums(4, 0), "refused": sums(2, 0),
        "statistic": "untrimmed", "length_ns": 2_000_000_000_u64,
        "cells": [{
            "number": 0, "policy": "p-edf", "guarantee": "hard", "verdict": "accepted",
            "part": 0.98, "utilization": 1.2, "tasks": [task], "beyond": [], "standstills": 0,
            "stood_still_ns": 0, "clean": true,
        }],
        "provenance": {
            "source": "warmset", "command": "warmset validate -o v", "time": "", "machine": "",
            "kernel": "", "seed": 1, "warnings": [], "settings": {},
        },
        "results_path": "validation/validation.json",
    });
    fs::create_dir(dir.path().join("validation")).unwrap();
    let path = dir.path().join("validation/validation.json");
    fs::write(&path, validated.to_string()).unwrap();
    let report = || {
        let mut command = Command::new(assert_cmd::cargo::cargo_bin!("warmset"));
        command.arg("report").arg(dir.path());
        command
    };
    report().assert().success();
    let html = fs::read_to_string(dir.path().join("index.html")).unwrap();
    let at = |text: &str| html.find(text).unwrap_or_else(|| panic!("{text}: {html}"));
    assert!(at("1 of 13 accepted hard sets (1 of 900 jobs)") < at("id=\"observed\""));
    assert!(at("id=\"overheads\"") < at("id=\"observed\""));
    assert!(at("Overheads with 30 tasks") < at("12.0\u{a0}µs – 40.0\u{a0}µs"));
    assert!(html.contains("in 0 of 4 soft ones") && html.contains("warmset validate -o v"));
    assert!(html.contains("Predicted and observed response times"));

    fs::write(&path, "{}").unwrap();
    let refused = report().output().unwrap();
    let said = String::from_utf8(refused.stderr).unwrap();
    assert_eq!(refused.status.code(), Some(2));
    assert!(
        said.contains("validation.json") && said.contains("validate again"),
        "{said}"
    );
}

#[test]
fn a_directory_that_cannot_be_made_is_said_in_one_line() {
    let dir = tempdir().unwrap();
    let file = dir.path().join("taken");
    fs::write(&file, "mine").unwrap();
    let output = tour(&file, "xeon-l7455").output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8(output.stderr).unwrap().contains("taken"));
    assert_eq!(fs::read_to_string(&file).unwrap(), "mine");
}

/// Starts a real tour, waits until its journal is longer than `lines`, interrupts it; the length
/// then, and what it said.
fn stopped_tour(dir: &Path, lines: usize) -> (usize, String) {
    let child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("warmset"))
        .args(["tour", "-o"])
        .arg(dir)
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let journal = dir.join("measurement.part");
    let length = || fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    for _ in 0..6_000 {
        if length() > lines {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(10));
    }
    let reached = length();
    let kill = std::process::Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(kill.unwrap().success());
    let output = child.wait_with_output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(130), "{said}");
    (reached, said)
}

#[test]
fn a_tour_that_was_stopped_reports_on_what_it_has_and_goes_on() {
    let dir = tempdir().unwrap();
    // The first line is the plan.
    let (first, said) = stopped_tour(dir.path(), 1);
    assert!(
        first > 1 && said.contains("stopped before its end"),
        "{said}"
    );
    let html = fs::read_to_string(dir.path().join("index.html")).unwrap();
    assert!(
        html.contains("id=\"delays\"") && html.contains("interrupted after"),
        "{html}"
    );

    let (second, said) = stopped_tour(dir.path(), first);
    assert!(
        second > first && said.contains("stopped before its end"),
        "{said}"
    );
}
