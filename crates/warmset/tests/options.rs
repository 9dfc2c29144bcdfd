//! Options mean the same in every verb, and are looked at before any work is done.

use std::path::Path;
use testing::command::Called;
use testing::warmset;

const TASKS: &str = "
[[task]]
name = \"one\"
wcet = \"2ms\"
period = \"5ms\"
wss = \"64KiB\"
[[task]]
name = \"two\"
wcet = \"3ms\"
period = \"9ms\"
wss = \"64KiB\"
";

const SETS: &str =
    "{\"id\": 1, \"m\": 2, \"tasks\": [{\"wcet\": 1000, \"period\": 5000, \"deadline\": 5000}]}\n";

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tasks.toml"), TASKS).expect("written");
    std::fs::write(dir.path().join("sets.jsonl"), SETS).expect("written");
    dir
}

fn answer(dir: &Path, args: &str) -> String {
    Called::within(warmset!(), dir, args).answer()
}

fn refusal(dir: &Path, args: &str) -> String {
    Called::within(warmset!(), dir, args).refusal()
}

#[test]
fn processors_and_platforms_are_given_alike() {
    let dir = directory();
    for verb in [
        "check tasks.toml --format json",
        "simulate tasks.toml --format json",
        "platform --format json",
        "generate --cap 1.5",
        "study run ospert10-fig5 --sets 1 --format json",
    ] {
        let platform = answer(dir.path(), &format!("{verb} --platform xeon-l7455"));
        assert!(!platform.is_empty(), "{verb}");
        let refused = refusal(dir.path(), &format!("{verb} -m 0"));
        assert!(
            refused.contains("-m: 0 processors; give a number from 1 to "),
            "{refused}"
        );
        let refused = refusal(dir.path(), &format!("{verb} -m 2 --platform xeon-l7455"));
        assert!(refused.contains("cannot be used with"), "{refused}");
        let refused = refusal(dir.path(), &format!("{verb} --platform xeon-l7454"));
        assert!(refused.contains("xeon-l7454"), "{refused}");
    }
    for verb in [
        "check tasks.toml",
        "simulate tasks.toml",
        "generate --cap 1.5",
        "platform",
    ] {
        let short = answer(dir.path(), &format!("{verb} -m 3"));
        assert_eq!(
            short.replace("-m 3", ""),
            answer(dir.path(), &format!("{verb} --processors 3")).replace("-m 3", "")
        );
        // The commands that an answer proposes name the processors as they were given.
        let long = answer(dir.path(), &format!("{verb} --platform symmetric:m=3"));
        let as_given = |text: &str| text.replace("--platform symmetric:m=3", "-m 3");
        assert_eq!(as_given(&short), as_given(&long), "{verb}");
    }
}

/// The caps of a study end where the platform does: nothing above can be scheduled.
#[test]
fn a_study_runs_on_another_platform() {
    let dir = directory();
    let on = |m: u32| -> serde_json::Value {
        let study = "based_on = \"ospert10-fig5\"\npolicies = [\"p-edf\", \"g-edf\"]\n";
        std::fs::write(dir.path().join("mine.toml"), study).expect("written");
        let text = answer(
            dir.path(),
            &format!("study run mine.toml --sets 1 --format json -m {m}"),
        );
        serde_json::from_str(&text).expect("one document")
    };
    let last =
        |results: &serde_json::Value| results["caps"].as_array().and_then(|c| c.last()?.as_f64());
    let small = on(4);
    assert_eq!((&small["processors"], last(&small)), (&4.into(), Some(4.0)));
    let same = on(24);
    assert_eq!(last(&same), Some(24.0));
    let none = refusal(dir.path(), "study run ospert10-fig5 --sets 0 -m 24");
    assert!(none.contains("0 sets"), "{none}");
}

#[test]
fn the_statistic_has_one_name() {
    let dir = directory();
    let simulate = |how: &str| {
        let args = "simulate tasks.toml -m 1 --profile xeon-l7455 --for 90ms --policy g-edf";
        answer(dir.path(), &format!("{args} {how} --format json"))
    };
    assert_eq!(
        simulate("--statistic average"),
        simulate("--charge average")
    );
    assert_ne!(
        simulate("--statistic average"),
        simulate("--statistic maximum")
    );
    assert_eq!(simulate(""), simulate("--statistic maximum"));
    for verb in ["check tasks.toml -m 2", "simulate tasks.toml -m 2"] {
        for option in ["--statistic average", "--load idle"] {
            let refused = refusal(dir.path(), &format!("{verb} {option}"));
            assert!(refused.contains("--profile"), "{refused}");
        }
    }
}

/// What the table of the page says of the verbs that take another default than the rest.
#[test]
fn what_is_charged_by_default_is_what_the_page_says() {
    let dir = directory();
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/command-line.md");
    let page = std::fs::read_to_string(page).expect("the page");
    let row = page
        .lines()
        .find(|line| line.starts_with("| `--statistic "))
        .expect("a row");
    for words in ["`maximum`", "`--soft` `average`", "`validate` `untrimmed`"] {
        assert!(row.contains(words), "{words}: {row}");
    }
    for verb in ["check", "advise"] {
        let charged = |how: &str| {
            let args = format!("{verb} tasks.toml -m 2 --profile xeon-l7455 --policy g-edf");
            let text = answer(dir.path(), &format!("{args} {how} --format json"));
            let told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
            let costs = told["costs"].as_str().expect("words").to_owned();
            costs.split(" cache delays").next().map(str::to_owned)
        };
        let of = |statistic: &str| Some(format!("the {statistic}"));
        assert_eq!(charged(""), of("maximum"), "{verb}");
        assert_eq!(charged("--soft"), of("average"), "{verb}");
        let asked = charged("--soft --statistic maximum");
        assert_eq!(asked, of("maximum"), "{verb}");
    }
    let help = answer(dir.path(), "validate --help");
    assert!(help.contains("[default: untrimmed]"), "{help}");
}

/// Pictures have one option everywhere; the name that it had before still works.
#[test]
fn pictures_are_drawn_by_one_option() {
    let dir = directory();
    for verb in [
        "platform --platform xeon-l7455",
        "cache coloring --platform pentium-pro",
    ] {
        answer(dir.path(), &format!("{verb} --picture picture.svg"));
        let picture = dir.path().join("picture.svg");
        let drawn = std::fs::read_to_string(&picture).expect("a picture");
        assert!(drawn.ends_with("</svg>\n"), "{verb}");
        std::fs::remove_file(picture).expect("removed");
    }
    for verb in ["platform", "color selftest", "cache", "trace check"] {
        assert!(
            about(dir.path(), verb, "--picture <FILE>").ends_with("as SVG"),
            "{verb}"
        );
    }
    let both = "platform --platform xeon-l7455 --picture a.svg -o a.toml";
    answer(dir.path(), both);
    answer(dir.path(), "platform --platform xeon-l7455 -o b.svg");
    let read = |name: &str| std::fs::read(dir.path().join(name)).expect("written");
    assert_eq!(read("a.svg"), read("b.svg"));
    assert!(read("a.toml").starts_with(b"version = 1\n"));
    for option in ["-o", "--output"] {
        let refused = refusal(
            dir.path(),
            &format!("color selftest {option} slip/colors.svg"),
        );
        assert!(
            refused.contains("there is no directory `slip`"),
            "{refused}"
        );
    }
}

#[test]
fn a_batch_is_answered_by_lines_whatever_the_format() {
    let dir = directory();
    for verb in ["check --batch sets.jsonl", "simulate --batch sets.jsonl"] {
        let lines = answer(dir.path(), verb);
        assert_eq!(lines, answer(dir.path(), &format!("{verb} --format json")));
        let refused = refusal(dir.path(), &format!("{verb} --format table"));
        assert!(
            refused.contains("--format: a batch is answered by JSON lines, not by a table"),
            "{refused}"
        );
    }
    let refused = refusal(dir.path(), "check tasks.toml --tests GFB");
    assert!(
        refused.contains("--tests: tests are chosen for a batch alone")
            && refused.contains("--batch"),
        "{refused}"
    );
}

#[test]
fn measurements_go_to_output_as_everything_does() {
    let dir = directory();
    for option in ["-o out", "--output out", "--out out"] {
        let refused = refusal(dir.path(), &format!("measure cpmd {option} --samples 0"));
        assert!(
            refused.contains("no samples are asked for"),
            "{option}: {refused}"
        );
    }
    assert!(!dir.path().join("out").exists());
}

/// What the help of a verb says of an option, in one line.
fn about(dir: &Path, verb: &str, option: &str) -> String {
    let help = answer(dir, &format!("{verb} --help"));
    let mut lines = help.lines().skip_while(|l| {
        let l = l.trim_start();
        !l.starts_with(option) && !l.split(", ").any(|o| o.starts_with(option))
    });
    assert!(lines.next().is_some(), "{verb} has no {option}");
    let said: Vec<&str> = lines
        .map(str::trim)
        .take_while(|l| !l.starts_with('-'))
        .collect();
    said.join(" ").trim().to_owned()
}

#[test]
fn shared_options_are_explained_by_the_same_words() {
    let dir = directory();
    for (option, verbs) in [
        (
            "--seed <",
            &[
                "simulate",
                "generate",
                "tour",
                "measure cpmd",
                "color experiment multicore",
            ][..],
        ),
        (
            "--processors <",
            &[
                "check",
                "simulate",
                "generate",
                "tour",
                "platform",
                "study run",
            ],
        ),
        (
            "--format <FORMAT>",
            &[
                "check",
                "simulate",
                "run",
                "tour",
                "trace check",
                "trace stats",
                "study run",
            ],
        ),
        ("--load <", &["check", "simulate"]),
        ("--statistic <", &["check", "simulate"]),
        ("--profile <", &["check", "simulate"]),
        (
            "--output <FILE>",
            &[
                "check",
                "simulate",
                "run",
                "trace check",
                "trace stats",
                "profile show",
            ],
        ),
    ] {
        let first = about(dir.path(), verbs[0], option);
        assert!(!first.is_empty(), "{option}");
        for verb in verbs {
            assert_eq!(about(dir.path(), verb, option), first, "{verb} {option}");
        }
    }
}

#[test]
fn a_slip_in_the_name_of_a_file_makes_no_directory() {
    let dir = directory();
    answer(
        dir.path(),
        "simulate tasks.toml -m 2 --for 40ms --trace run.wtrace",
    );
    for args in [
        "simulate tasks.toml -m 2 --trace slip/run.wtrace",
        "simulate tasks.toml -m 2 -o slip/answer.txt",
        "simulate --batch sets.jsonl -o slip/answer.jsonl",
        "check tasks.toml -m 2 -o slip/answer.txt",
        "check --batch sets.jsonl -o slip/answer.jsonl",
        "run tasks.toml --trace slip/run.wtrace",
        "run tasks.toml -o slip/run.json",
        "generate --cap 2 -o slip/sets.jsonl",
        "convert tasks.toml -o slip/tasks.json",
        "platform -o slip/machine.toml",
        "platform --picture slip/machine.svg",
        "profile export xeon-l7455 --statistic average -o slip/table.csv",
        "report --profile xeon-l7455 -o slip/page.html",
        "trace check run.wtrace --picture slip/picture.svg",
        "trace stats run.wtrace --jobs slip/jobs.csv",
        "trace export run.wtrace --to csv -o slip/events.csv",
        "color selftest --picture slip/colors.svg",
        "color exec --colors 0 -o slip/report.json -- true",
    ] {
        let refused = refusal(dir.path(), args);
        assert!(
            refused.contains("there is no directory `slip`; make it first, or correct the path"),
            "{args}: {refused}"
        );
        assert!(!dir.path().join("slip").exists(), "{args}");
    }
    let refused = refusal(
        dir.path(),
        "simulate tasks.toml -m 2 --trace /proc/run.wtrace",
    );
    assert!(refused.contains("cannot write the file"), "{refused}");
    // What was there stays when something else is wrong.
    std::fs::write(dir.path().join("kept"), "kept").expect("written");
    refusal(dir.path(), "simulate no-such-tasks.toml -m 2 -o kept");
    assert_eq!(
        std::fs::read_to_string(dir.path().join("kept")).expect("there"),
        "kept"
    );
}

/// Nothing is measured, and nothing is made, before the arguments are known to be right.
#[test]
fn wrong_arguments_are_refused_before_any_work() {
    let dir = directory();
    let before = std::fs::read_dir(dir.path()).expect("there").count();
    for (args, cause) in [
        ("tour --sets 0", "--sets"),
        ("tour --profile xeon-l7454", "xeon-l7454"),
        (
            "tour --platform xeon-l7455",
            "--platform: this machine cannot be measured for another platform",
        ),
        ("tour --profile xeon-l7455 --platform nowhere", "nowhere"),
        ("tour -o tasks.toml", "this is a file"),
        (
            "study run ospert10-fig5 --sets 0 -o out",
            "0 sets for each cap",
        ),
        ("study run ospert10-fig5 -o tasks.toml", "this is a file"),
        (
            "study run ospert10-fig5 --platform nowhere -o out",
            "nowhere",
        ),
        ("run tasks.toml --execution half", "--execution"),
        ("run tasks.toml --policy g-edf,p-edf", "--policy"),
        ("simulate tasks.toml -m 2 --policy no-edf", "no-edf"),
        (
            "simulate tasks.toml -m 2 --profile nowhere --trace run.wtrace",
            "nowhere",
        ),
        ("check tasks.toml -m 2 --policy no-edf", "no-edf"),
        ("measure cpmd -o tasks.toml", "this is a file"),
        (
            "color experiment multicore -o out --execution half",
            "--execution",
        ),
        ("report --profile nowhere --figures plots", "nowhere"),
        ("report --profile xeon-l7455", "nowhere to write to"),
        ("run tasks.toml --preflight --user no-such-user", "--user: "),
        (
            "profile export xeon-l7455 --statistic average --overheads --policy no-edf",
            "--policy: ",
        ),
        (
            "profile import tasks.toml --statistic average --policy no-edf -o profile.toml",
            "--policy: ",
        ),
    ] {
        let refused = refusal(dir.path(), args);
        assert!(refused.contains(cause), "{args}: {refused}");
        let now = std::fs::read_dir(dir.path()).expect("there").count();
        assert_eq!(now, before, "{args} left something behind");
    }
}

/// A delay that a study does not have is told before any chart is drawn.
#[test]
fn a_study_draws_nothing_where_a_delay_is_missing() {
    let dir = directory();
    answer(dir.path(), "study run ospert10-fig5 --sets 1 -o results");
    let refused = refusal(
        dir.path(),
        "study plot results --at 500us --at 501us -o charts",
    );
    assert!(
        refused.contains("--at: the study has no delay of 501us"),
        "{refused}"
    );
    assert!(!dir.path().join("charts").exists());
}

/// A policy of a profile is called by its name alone, as the engines look for it.
#[test]
fn a_profile_takes_policies_as_the_other_verbs_do() {
    let dir = directory();
    let table = "TASK-COUNT, RELEASE\n10, 2.5\n20, 3.5\n";
    std::fs::write(dir.path().join("table.csv"), table).expect("written");
    for policy in ["c-edf", "c-edf:l2"] {
        answer(
            dir.path(),
            &format!(
                "profile import table.csv --statistic average --policy {policy} -o profile.toml"
            ),
        );
        let written = std::fs::read_to_string(dir.path().join("profile.toml")).expect("there");
        assert!(written.contains("policy = \"c-edf\""), "{written}");
    }
}
