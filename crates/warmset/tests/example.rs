//! The policy of the guide, `docs/policies.md`, goes through every verb: one file, one line, and
//! the checker's rule.

use std::path::Path;
use testing::command::Called;
use testing::warmset;
use testing::{NotRun, Outcome};

const TASKS: &str = "[[task]]\nname = \"a\"\nwcet = \"2ms\"\nperiod = \"50ms\"\n\n\
                     [[task]]\nname = \"b\"\nwcet = \"3ms\"\nperiod = \"100ms\"\n";

fn warmset(dir: &Path, args: &str) -> Called {
    std::fs::write(dir.join("tasks.toml"), TASKS).unwrap();
    Called::within(warmset!(), dir, args)
}

fn it_is_judged_by_the_tests_of_its_row() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let soft = warmset(dir.path(), "check tasks.toml -m 2 --policy g-fifo --soft").with_status(0);
    assert!(soft.contains("g-fifo holds this set"), "{soft}");
    let hard = warmset(dir.path(), "check tasks.toml -m 2 --policy g-fifo --hard").with_status(1);
    assert!(
        hard.contains("not judged") && hard.contains("bounds tardiness, but does not promise"),
        "{hard}"
    );
    let listed = warmset(dir.path(), "policies").with_status(0);
    assert!(
        listed.contains("g-fifo: global first in, first out"),
        "{listed}"
    );
    assert!(
        warmset(dir.path(), "simulate --help")
            .with_status(0)
            .contains("g-fifo")
    );
    assert!(
        warmset(dir.path(), "check --help")
            .with_status(0)
            .contains("g-fifo")
    );
    Ok(())
}

fn it_is_simulated_and_its_own_rule_is_checked() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let simulate = "simulate tasks.toml -m 2 --policy g-fifo --for 1s --trace run.wtrace";
    warmset(dir.path(), simulate).with_status(0);
    let checked = warmset(dir.path(), "trace check run.wtrace").with_status(0);
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
        warmset(dir.path(), &format!("study run study.toml -o {accounting}")).with_status(0);
        let results =
            std::fs::read_to_string(dir.path().join(accounting).join("results.json")).unwrap();
        assert!(results.contains("G-FIFO"), "{results}");
        let tells = results.contains(&format!("the accounting `{accounting}`"));
        assert_eq!(tells, told, "{accounting}: {results}");
    }
    Ok(())
}

fn it_is_run_for_real() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let preflight = warmset(dir.path(), "run tasks.toml --policy g-fifo --preflight");
    if preflight.status != 0 {
        let seen = preflight
            .out
            .lines()
            .find(|line| line.contains("refused"))
            .unwrap_or_default();
        assert!(!seen.contains("policy"), "{seen}");
        return Err(NotRun::because(format!("it cannot be run here: {seen}")));
    }
    let run = "run tasks.toml --policy g-fifo --for 1s --tolerance 10s --trace run.wtrace";
    warmset(dir.path(), run).with_status(0);
    warmset(dir.path(), "trace check run.wtrace --tolerance 10s").with_status(0);
    Ok(())
}

testing::tests!(alone:
    it_is_judged_by_the_tests_of_its_row,
    it_is_run_for_real,
    it_is_simulated_and_its_own_rule_is_checked,
    it_is_swept_by_a_study,
);
