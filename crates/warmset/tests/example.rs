//! The policy of the guide, `docs/policies.md`, goes through every verb: one file, one line, and the checker's rule.

use std::path::Path;
use std::process::{Command, Output};
use testing::{NotRun, Outcome};

const TASKS: &str = "[[task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"50ms\"\n\n\
                     [[task]]\nname = \"b\"\nwcet = \"3ms\"\nperiod = \"100ms\"\n";

fn warmset(dir: &Path, args: &str) -> Output {
    std::fs::write(dir.join("tasks.toml"), TASKS).unwrap();
    Command::new(assert_cmd::cargo::cargo_bin("warmset"))
        .current_dir(dir)
        .args(args.split_whitespace())
        .output()
        .unwrap()
}

/// Standard output of a call with this exit status.
fn said(output: &Output, status: i32) -> String {
    let error = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(status), "{error}");
    String::from_utf8(output.stdout.clone()).unwrap()
}

fn it_is_judged_by_the_tests_of_its_row() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let soft = said(
        &warmset(dir.path(), "check tasks.toml -m 2 --policy g-fifo --soft"),
        0,
    );
    assert!(soft.contains("g-fifo holds this set"), "{soft}");
    let hard = said(
        &warmset(dir.path(), "check tasks.toml -m 2 --policy g-fifo --hard"),
        1,
    );
    assert!(
        hard.contains("not judged") && hard.contains("bounds tardiness, but does not promise"),
        "{hard}"
    );
    let listed = said(&warmset(dir.path(), "policies"), 0);
    assert!(listed.contains("g-fifo: global first in, first out"), "{listed}");
    assert!(said(&warmset(dir.path(), "simulate --help"), 0).contains("g-fifo"));
    assert!(said(&warmset(dir.path(), "check --help"), 0).contains("g-fifo"));
    Ok(())
}

fn it_is_simulated_and_its_own_rule_is_checked() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let simulate = "simulate tasks.toml -m 2 --policy g-fifo --for 1s --trace run.wtrace";
    said(&warmset(dir.path(), simulate), 0);
    let checked = said(&warmset(dir.path(), "trace check run.wtrace"), 0);
    assert!(!checked.contains("no rules are known"), "{checked}");
    Ok(())
}

fn it_is_swept_by_a_study() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let study = "based_on = \"ospert10-fig5\"\npolicies = [\"g-fifo\", \"g-edf\"]\nguarantee = \"soft\"\n\
                 caps = { from = 6, to = 24, step = 6 }\ndelays = { from = \"0us\", to = \"500us\", step = \"250us\" }\n\
                 sets = 2\n";
    for (accounting, told) in [("one-delay", false), ("paper", true), ("warmset", true)] {
        let text = format!("{study}accounting = \"{accounting}\"\n");
        std::fs::write(dir.path().join("study.toml"), text).unwrap();
        said(
            &warmset(dir.path(), &format!("study run study.toml -o {accounting}")),
            0,
        );
        let results = std::fs::read_to_string(dir.path().join(accounting).join("results.json")).unwrap();
        assert!(results.contains("G-FIFO"), "{results}");
        let tells = results.contains(&format!("the accounting `{accounting}`"));
        assert_eq!(tells, told, "{accounting}: {results}");
    }
    Ok(())
}

fn it_is_run_for_real() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let preflight = warmset(dir.path(), "run tasks.toml --policy g-fifo --preflight");
    if preflight.status.code() != Some(0) {
        let seen = String::from_utf8_lossy(&preflight.stdout);
        let seen = seen
            .lines()
            .find(|line| line.contains("refused"))
            .unwrap_or_default();
        assert!(!seen.contains("policy"), "{seen}");
        return Err(NotRun::because(format!("it cannot be run here: {seen}")));
    }
    let run = "run tasks.toml --policy g-fifo --for 1s --tolerance 10s --trace run.wtrace";
    said(&warmset(dir.path(), run), 0);
    said(&warmset(dir.path(), "trace check run.wtrace --tolerance 10s"), 0);
    Ok(())
}

testing::tests!(alone:
    it_is_judged_by_the_tests_of_its_row,
    it_is_run_for_real,
    it_is_simulated_and_its_own_rule_is_checked,
    it_is_swept_by_a_study,
);
