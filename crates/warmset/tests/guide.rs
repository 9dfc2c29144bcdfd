//! The guide "From question to figure in ten minutes": its commands do what it says, and the study
//! that it shows is the one of the examples.

use assert_cmd::Command;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn guide() -> String {
    std::fs::read_to_string(root().join("docs/ten-minutes.md")).expect("the guide")
}

/// What it shows as code, a line each.
fn code(guide: &str) -> Vec<&str> {
    guide
        .lines()
        .filter_map(|line| line.strip_prefix("    "))
        .collect()
}

fn run(dir: &Path, command: &str) -> String {
    let words = command.strip_prefix("warmset ").expect("a command");
    let out = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir)
        .args(words.split_whitespace())
        .assert()
        .success();
    String::from_utf8(out.get_output().stdout.clone()).expect("text")
}

/// Every line of the study that the guide shows stands in the example.
#[test]
fn the_guide_shows_the_example() {
    let text = std::fs::read_to_string(root().join("examples/study/board.toml")).expect("a study");
    let guide = guide();
    let shown: Vec<&str> = code(&guide)
        .into_iter()
        .filter(|line| !line.starts_with("warmset "))
        .collect();
    assert!(shown.len() > 5, "{shown:?}");
    for line in shown {
        assert!(text.lines().any(|other| other == line), "{line}");
    }
}

/// The commands that run on any machine, in their order, with fewer sets; each makes what the guide
/// says.
#[test]
fn the_commands_of_the_guide_lead_to_a_figure() {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::create_dir_all(dir.path().join("examples/study")).expect("made");
    std::fs::copy(
        root().join("examples/study/board.toml"),
        dir.path().join("examples/study/board.toml"),
    )
    .expect("copied");
    let guide = guide();
    let needs_a_machine = |line: &&str| line.contains("measure") || line.contains("profile.toml");
    let commands: Vec<&str> = code(&guide)
        .into_iter()
        .filter(|line| line.starts_with("warmset ") && !needs_a_machine(line))
        .collect();
    assert_eq!(commands.len(), 4, "{commands:?}");
    for command in commands {
        let quick = match command.contains("study run") {
            true => format!("{command} --sets 4"),
            false => command.to_owned(),
        };
        let out = run(dir.path(), &quick);
        if command.contains("study range") {
            assert!(out.contains("P-EDF keeps up with G-EDF"), "{out}");
        }
    }
    for made in [
        "board/results.csv",
        "board/weighted.csv",
        "figures/weighted.svg",
        "figures/weighted.pdf",
        "figures/schedulability-0ms.svg",
        "explorer.html",
    ] {
        assert!(dir.path().join(made).exists(), "{made}");
    }
}

/// Where a profile is charged: with one of the examples in the place of a measured one.
#[test]
fn the_commands_with_a_profile_say_what_is_charged() {
    let dir = tempfile::tempdir().expect("a directory");
    let study = root().join("examples/study/board.toml");
    let profile = root().join("examples/overheads/profile.toml");
    let (study, profile) = (study.display(), profile.display());
    let out = run(
        dir.path(),
        &format!(
            "warmset study run {study} --profile {profile} --accounting paper --sets 1 -o charged"
        ),
    );
    assert!(
        out.contains("accounting paper") && out.contains("charged by the number of tasks"),
        "{out}"
    );
    let out = run(
        dir.path(),
        "warmset study range charged --of p-edf --against g-edf --profile xeon-l7455",
    );
    assert!(out.contains("cache delays of profile xeon-l7455"), "{out}");
}
