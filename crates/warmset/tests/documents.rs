//! What all JSON documents and CSV files of the command line have in common, verb by verb.

use assert_cmd::Command;
use serde_json::Value;
use std::path::Path;
use testing::command::Called;
use testing::warmset;

const TASKS: &str = "
[[task]]
name = \"fast\"
wcet = \"2ms\"
period = \"5ms\"
wss = \"16KiB\"
[[task]]
name = \"slow\"
wcet = \"3ms\"
period = \"8ms\"
wss = \"64KiB\"
";

/// Standard output of a verb that does not fail: its answer may be yes or no.
fn output(dir: &Path, args: &str) -> String {
    Called::within(warmset!(), dir, args).answer()
}

fn document(dir: &Path, args: &str) -> Value {
    Called::within(warmset!(), dir, &format!("{args} --format json")).json()
}

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tasks.toml"), TASKS).expect("written");
    output(
        dir.path(),
        "simulate tasks.toml -m 2 --policy edf-wm --profile xeon-l7455 --for 40ms --trace run.wtrace",
    );
    std::fs::write(dir.path().join("accesses.trace"), " L 40,4\n S 4040,8\n").expect("written");
    output(dir.path(), "study run ospert10-fig5 --sets 1 -o fig5");
    dir
}

/// Is it a time as people write it, such as `4ms`?
fn is_time(text: &str) -> bool {
    let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-');
    unit.len() < text.len() && ["ns", "us", "ms", "s", "min", "h"].contains(&unit)
}

fn is_whole(value: &Value) -> bool {
    match value {
        Value::Number(n) => n.is_i64() || n.is_u64(),
        Value::Null => true,
        Value::Array(all) => all.iter().all(is_whole),
        _ => false,
    }
}

/// Looks at every field: no time as text, and only integers (lists and tables of them) under
/// `…_ns`.
fn look(value: &Value, place: &str) {
    match value {
        Value::String(text) => assert!(!is_time(text), "{place} is the text {text:?}"),
        Value::Array(all) => all.iter().for_each(|v| look(v, place)),
        Value::Object(fields) => {
            for (key, v) in fields {
                let place = format!("{place}.{key}");
                if key.ends_with("_ns") && !key.starts_with("percentiles") {
                    let whole = match v {
                        Value::Object(all) => all.values().all(is_whole),
                        v => is_whole(v),
                    };
                    assert!(whole, "{place} is {v}");
                }
                look(v, &place);
            }
        }
        _ => {}
    }
}

#[test]
fn every_document_has_a_version_and_times_in_nanoseconds() {
    let dir = directory();
    for args in [
        "platform",
        "platform --platform xeon-l7455",
        "platform --platform list",
        "profile show xeon-l7455",
        "profile show xeon-l7455 --wss 256KiB",
        "check tasks.toml --platform symmetric:m=2",
        "check tasks.toml --platform xeon-l7455 --profile xeon-l7455",
        "check tasks.toml --platform xeon-l7455 --profile xeon-l7455 --soft",
        "simulate tasks.toml --platform symmetric:m=2",
        "simulate tasks.toml --platform xeon-l7455 --profile xeon-l7455 --for 40ms",
        "platform --platform pentium-90",
        "cache accesses.trace --platform pentium-90 --tlb 64:4",
        "trace check run.wtrace",
        "trace stats run.wtrace",
        "study list",
        "reproduce list",
        "reproduce 002-fig2.2",
        "study run ospert10-fig5 --sets 1",
        "tour --platform xeon-l7455 --profile xeon-l7455 --sets 1 -o toured",
        "report toured",
    ] {
        let document = document(dir.path(), args);
        assert_eq!(document["schema_version"], 1, "{args}");
        look(&document, args);
    }
    let sets = dir.path().join("sets.jsonl");
    let set = r#"{"id":1,"m":1,"tasks":[{"wcet":1,"period":5},{"wcet":2,"period":7}]}"#;
    std::fs::write(sets, format!("{set}\n{set}\n")).expect("written");
    for args in [
        "check --batch sets.jsonl --grid 1us",
        "simulate --batch sets.jsonl --policy g-edf",
    ] {
        for line in output(dir.path(), args).lines() {
            assert!(line.starts_with("{\"schema_version\":1,"), "{line}");
            look(&serde_json::from_str(line).expect("JSON"), args);
        }
    }
    let file = "fig5/results.json";
    let text = std::fs::read_to_string(dir.path().join(file)).expect("there");
    let document: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(document["schema_version"], 1, "{file}");
    look(&document, file);
}

#[test]
fn the_same_thing_has_the_same_name_in_every_verb() {
    let dir = directory();
    let simulated = document(dir.path(), "simulate tasks.toml -m 2 --for 40ms");
    let stats = document(dir.path(), "trace stats run.wtrace");
    let checked = document(dir.path(), "trace check run.wtrace");
    for (verb, document) in [("simulate", &simulated), ("trace stats", &stats)] {
        for key in ["jobs", "misses", "preemptions", "migrations", "horizon_ns"] {
            assert!(document[key].is_u64(), "{verb}: {key}");
        }
        assert_eq!(document["tasks"][0]["task"], "fast", "{verb}");
        assert!(document["tasks"][0]["misses"].is_u64(), "{verb}");
    }
    let judged = document(dir.path(), "check tasks.toml --platform symmetric:m=2");
    assert_eq!(judged["platform"], simulated["platform"]);
    for (verb, document) in [
        ("simulate", &simulated),
        ("trace stats", &stats),
        ("trace check", &checked),
        ("check", &judged["policies"][0]),
    ] {
        assert!(document["policy"].is_string(), "{verb}");
    }
    let bound = &judged["policies"][0]["tasks"][0];
    assert_eq!(
        (&bound["task"], &bound["index"]),
        (&"fast".into(), &0.into())
    );
    let placed = &judged["policies"][0]["clusters"][0]["tasks"][0];
    assert!(
        placed["task"].is_string() && placed["index"].is_u64(),
        "{placed}"
    );
}

/// What `check` says of who runs where is a file for `--assignment`.
#[test]
fn an_assignment_of_a_document_can_be_given_back() {
    let dir = directory();
    let judged = document(
        dir.path(),
        "check tasks.toml --platform symmetric:m=2 --policy nps-f",
    );
    let assignment = &judged["policies"][0]["assignment"];
    assert!(assignment["slot_ns"].is_u64(), "{assignment}");
    std::fs::write(dir.path().join("who.json"), assignment.to_string()).expect("written");
    let run = "simulate tasks.toml -m 2 --policy nps-f --assignment who.json --for 40ms";
    assert_eq!(document(dir.path(), run)["misses"], 0);
    let old = assignment.to_string().replace("slot_ns", "slot");
    std::fs::write(dir.path().join("old.json"), old).expect("written");
    let refused = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir.path())
        .args(run.replace("who", "old").split_whitespace())
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&refused.stderr).into_owned();
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains("missing field `slot_ns`"), "{said}");
}

/// As a strict reader does: the first line names the columns, every other line has as many fields,
/// no line is a comment.
fn rows(text: &str) -> (Vec<&str>, Vec<Vec<&str>>) {
    let mut lines = text.lines().map(|l| l.split(',').collect::<Vec<_>>());
    let head = lines.next().expect("a header");
    for name in &head {
        assert!(
            name.chars()
                .all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-')
                && !name.is_empty(),
            "{name:?} is no name of a column"
        );
    }
    let rows: Vec<_> = lines.collect();
    assert!(!rows.is_empty());
    assert!(rows.iter().all(|row| row.len() == head.len()), "{text}");
    (head, rows)
}

#[test]
fn tables_are_read_by_a_strict_reader() {
    let dir = directory();
    output(dir.path(), "trace export run.wtrace --to csv -o events.csv");
    output(dir.path(), "trace stats run.wtrace --jobs jobs.csv");
    output(
        dir.path(),
        "profile export xeon-l7455 --statistic average -o delays.csv",
    );
    for (file, first, number) in [
        ("fig5/results.csv", "policy", "cap"),
        ("fig5/weighted.csv", "value", "value"),
        ("events.csv", "time_ns", "time_ns"),
        ("jobs.csv", "task", "release_ns"),
        ("delays.csv", "WSS", "WSS"),
    ] {
        let text = std::fs::read_to_string(dir.path().join(file)).expect("there");
        let (head, rows) = rows(&text);
        assert_eq!(head[0], first, "{file}");
        let column = head
            .iter()
            .position(|c| *c == number)
            .unwrap_or_else(|| panic!("{file}: {head:?}"));
        for row in rows {
            assert!(row[column].trim().parse::<f64>().is_ok(), "{file}: {row:?}");
        }
    }
    let results = std::fs::read_to_string(dir.path().join("fig5/results.json")).expect("there");
    let results: Value = serde_json::from_str(&results).expect("JSON");
    assert!(
        results["provenance"]["command"]
            .as_str()
            .is_some_and(|c| c.contains("study run")),
        "provenance stands beside the tables: {results}"
    );
}
