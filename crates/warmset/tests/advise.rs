//! `warmset advise` as its users call it: the plan goes to `check`, `simulate` and back, what is
//! asked wrongly is refused, and what is stopped says so.

use serde_json::Value;
use std::path::Path;
use testing::command::Called;
use testing::warmset;

const TASKS: &str = "
[[task]]
name = \"control\"
wcet = \"2ms\"
period = \"5ms\"
[[task]]
name = \"vision\"
wcet = \"9ms\"
period = \"16ms\"
[[task]]
name = \"radio\"
wcet = \"3ms\"
period = \"10ms\"
deadline = \"8ms\"
[[task]]
name = \"log\"
wcet = \"10ms\"
period = \"50ms\"
";

/// On one processor: a deadline beyond its period, and an order of priorities that is neither that
/// of deadlines nor that of periods.
const LATE: &str = "
[[task]]
name = \"first\"
wcet = \"26ms\"
period = \"70ms\"
[[task]]
name = \"second\"
wcet = \"62ms\"
period = \"100ms\"
deadline = \"118ms\"
";

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    write("tasks.toml", TASKS);
    write("late.toml", LATE);
    write("heavy.toml", &TASKS.replace("\"9ms\"", "\"16ms\""));
    write("other.toml", &TASKS.replace("\"9ms\"", "\"8ms\""));
    dir
}

fn call(dir: &Path, args: &str) -> Called {
    Called::within(warmset!(), dir, args)
}

#[test]
fn a_plan_is_judged_and_simulated_as_it_was_recommended() {
    let dir = directory();
    let advised = call(
        dir.path(),
        "advise tasks.toml -m 2 -o plan.json --format json",
    )
    .json();
    let found = &advised["recommendation"];
    assert_eq!(advised["ended"], "complete");
    let judged = call(
        dir.path(),
        "check tasks.toml -m 2 --plan plan.json --format json",
    );
    let judged = judged.json();
    // What `check` says of the plan is what the advice says.
    assert_eq!(judged["policies"][0], found["verdict"]);
    let with_assignment = format!(
        "check tasks.toml -m 2 --policy {} --assignment plan.json --format json",
        found["policy"].as_str().expect("a policy")
    );
    assert_eq!(call(dir.path(), &with_assignment).json(), judged);
    let simulated = "simulate tasks.toml -m 2 --plan plan.json --for 2s --format json";
    let simulated = call(dir.path(), simulated);
    assert_eq!(simulated.status, 0, "{}", simulated.err);
    assert_eq!(simulated.json()["policy"], found["policy"]);
    // The whole answer is taken as well where the policy is named.
    let whole = call(dir.path(), "advise tasks.toml -m 2 --format json").answer();
    std::fs::write(dir.path().join("whole.json"), whole).expect("written");
    call(
        dir.path(),
        "simulate tasks.toml -m 2 --policy p-edf --assignment whole.json --for 1s",
    )
    .with_status(0);
}

const COLORED: &str = "
[[task]]
name = \"camera\"
wcet = { shared = \"9ms\", \"2\" = \"8ms\", \"4\" = \"4ms\" }
period = \"10ms\"
[[task]]
name = \"radio\"
wcet = { shared = \"9ms\", \"1\" = \"7ms\", \"8\" = \"5ms\" }
period = \"20ms\"
[[task]]
name = \"log\"
wcet = { \"2\" = \"3ms\" }
period = \"20ms\"
";

#[test]
fn a_plan_has_the_colors_that_make_it_hold() {
    let dir = directory();
    std::fs::write(dir.path().join("colored.toml"), COLORED).expect("written");
    let advise = "advise colored.toml -m 2 --colors 6 --policy p-edf -o plan.json";
    let text = call(dir.path(), advise).with_status(0);
    for part in [
        "Colors: 6 of 6 colors are given: each processor has its own",
        "no `shared` WCET is known for log",
    ] {
        assert!(text.contains(part), "{part}\n{text}");
    }
    let plan: Value = serde_json::from_str(
        &std::fs::read_to_string(dir.path().join("plan.json")).expect("written"),
    )
    .expect("JSON");
    // Camera alone with four colors; radio and log share the other two.
    let colors = &plan["policies"][0]["colors"];
    assert_eq!(colors[1], colors[2]);
    assert_ne!(colors[0], colors[1]);
    let wcets = |document: &Value| -> Vec<u64> {
        let tasks = document["tasks"].as_array().expect("a list").iter();
        tasks
            .map(|t| t["wcet_ns"].as_u64().expect("a time") / 1_000_000)
            .collect()
    };
    assert_eq!(wcets(&plan), [4, 7, 3]);
    // The plan is judged and simulated with the WCETs of its colors; without it those without any.
    let check = "check colored.toml -m 2 --format json";
    let planned = call(dir.path(), &format!("{check} --plan plan.json"));
    assert_eq!(planned.status, 0);
    assert_eq!(wcets(&planned.json()), [4, 7, 3]);
    let alone = call(dir.path(), &format!("{check} --policy p-edf")).json();
    assert_eq!(wcets(&alone), [9, 9, 3]);
    let simulate = "simulate colored.toml -m 2 --plan plan.json --for 1s --format json";
    let simulated = call(dir.path(), simulate).json();
    assert_eq!(simulated["misses"], 0, "{simulated}");
    // The plan is for these colors: by `--assignment` the tasks would have others.
    let refused = call(
        dir.path(),
        "check colored.toml -m 2 --policy p-edf --assignment plan.json",
    )
    .refusal();
    assert!(refused.contains("another set"), "{refused}");
    for (args, cause) in [
        (
            "advise tasks.toml -m 2 --colors 6",
            "no WCET of the set depends on colors",
        ),
        ("advise colored.toml -m 2 --colors 0", "no colors to give"),
    ] {
        let refused = call(dir.path(), args).refusal();
        assert!(refused.contains(cause), "{args}: {refused}");
    }
}

#[test]
fn a_page_shows_the_plan_its_margins_and_the_alternatives() {
    let dir = directory();
    let page = |args: &str| {
        call(dir.path(), args).answer();
        std::fs::read_to_string(dir.path().join("page.html")).expect("written")
    };
    let found = page("advise tasks.toml -m 2 --policy p-edf,g-edf,p-rm --html page.html");
    let advised = call(
        dir.path(),
        "advise tasks.toml -m 2 --policy p-edf,g-edf,p-rm --format json",
    )
    .json();
    let stretch = &advised["recommendation"]["stretch"];
    let percent = stretch["wcets"]["thousandths"].as_u64().expect("a number") - 1_000;
    for part in [
        "id=\"plan\"",
        "id=\"margins\"",
        "id=\"policies\"",
        "id=\"provenance\"",
        "control alone",
        "P-RM",
        // The margin of the answer, in the picture.
        &format!("+{}.{} %", percent / 10, percent % 10),
    ] {
        assert!(found.contains(part), "{part}");
    }
    // It fetches nothing and runs nothing.
    for foreign in ["<script", "src=", "http-equiv"] {
        assert!(!found.contains(foreign), "{foreign}");
    }
    let nothing = page("advise heavy.toml -m 1 --policy p-edf --html page.html");
    assert!(nothing.contains("id=\"changes\""), "{nothing}");
    assert!(!nothing.contains("id=\"plan\""));
}

#[test]
fn priorities_of_a_plan_are_given_to_the_tasks() {
    let dir = directory();
    let args = "advise late.toml -m 1 --format json -o plan.json";
    let advised = call(dir.path(), args).json();
    let policies = advised["policies"].as_array().expect("a list");
    let found = policies
        .iter()
        .find(|p| p["policy"] == "p-fp")
        .expect("looked at");
    assert_eq!(found["outcome"], "holds", "{found}");
    // A plan with these priorities, from the answer.
    let mut plan: Value = serde_json::from_str(
        &std::fs::read_to_string(dir.path().join("plan.json")).expect("written"),
    )
    .expect("JSON");
    plan["policies"][0]["policy"] = found["policy"].clone();
    plan["policies"][0]["assignment"] = found["assignment"].clone();
    plan["policies"][0]["priorities"] = found["priorities"].clone();
    std::fs::write(dir.path().join("p-fp.json"), plan.to_string()).expect("written");
    call(dir.path(), "check late.toml -m 1 --plan p-fp.json").with_status(0);
    call(
        dir.path(),
        "simulate late.toml -m 1 --plan p-fp.json --for 7s",
    )
    .with_status(0);
    let refused = call(
        dir.path(),
        "simulate late.toml -m 1 --policy p-fp --assignment p-fp.json",
    )
    .refusal();
    assert!(refused.contains("has priorities of its own"), "{refused}");
    assert!(refused.contains("`--plan`"), "{refused}");
}

#[test]
fn where_nothing_holds_changes_are_named_and_no_plan_is_written() {
    let dir = directory();
    let called = call(dir.path(), "advise heavy.toml -m 1 -o plan.json");
    assert!(called.err.contains("no plan was found"), "{}", called.err);
    let text = called.with_status(1);
    assert!(text.contains("No policy can hold this set"), "{text}");
    assert!(
        text.contains("With one of these changes it holds:"),
        "{text}"
    );
    assert!(!dir.path().join("plan.json").exists());
}

#[test]
fn a_budget_that_does_not_suffice_is_told() {
    let dir = directory();
    let called = call(
        dir.path(),
        "advise tasks.toml -m 2 --budget 1ns --format json",
    );
    let advised = called.json();
    assert_eq!(advised["ended"], "budget");
    assert_eq!(advised["recommendation"], Value::Null);
    assert!(!advised["not_tried"].as_array().expect("a list").is_empty());
    let text = call(dir.path(), "advise tasks.toml -m 2 --budget 1ns").with_status(1);
    assert!(
        text.contains("The budget ended the search. Not tried:"),
        "{text}"
    );
}

#[test]
fn what_is_asked_wrongly_is_refused_in_a_sentence() {
    let dir = directory();
    call(dir.path(), "advise tasks.toml -m 2 -o plan.json").with_status(0);
    std::fs::write(
        dir.path().join("one.json"),
        r#"{"kind":"clustered","clusters":["0","1"],"cluster_of":[0,1,0,1]}"#,
    )
    .expect("written");
    let several = "check tasks.toml -m 2 --policy p-edf,g-edf --format json -o several.json";
    call(dir.path(), several).with_status(0);
    for (args, cause) in [
        ("advise", "TASKS"),
        ("advise none.toml -m 2", "none.toml"),
        ("advise tasks.toml -m 0", "0 processors"),
        (
            "advise tasks.toml -m 2 --policy pedf",
            "did you mean `p-edf`?",
        ),
        ("advise tasks.toml -m 2 --budget 0s", "leaves no time"),
        ("advise tasks.toml -m 2 --budget -1s", "negative"),
        ("advise tasks.toml -m 2 -o none/plan.json", "none"),
        ("check other.toml -m 2 --plan plan.json", "another set"),
        ("simulate other.toml -m 2 --plan plan.json", "another set"),
        (
            "check tasks.toml -m 2 --plan one.json",
            "does not say for which policy",
        ),
        (
            "check tasks.toml -m 2 --plan several.json",
            "a plan is for one policy",
        ),
        ("check tasks.toml -m 2 --plan tasks.toml", "no assignment"),
        (
            "check tasks.toml -m 2 --plan plan.json --policy p-edf",
            "--plan",
        ),
        (
            "simulate tasks.toml -m 2 --plan plan.json --policy p-edf",
            "--plan",
        ),
        ("check tasks.toml -m 1 --plan plan.json", "does not fit"),
        (
            "simulate --batch sets.jsonl --plan plan.json",
            "a batch has many",
        ),
    ] {
        let refused = call(dir.path(), args).refusal();
        assert!(refused.contains(cause), "{args}: {refused}");
    }
}
