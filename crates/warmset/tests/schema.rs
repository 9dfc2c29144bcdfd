//! The schemas of `docs/schema` say what every verb answers. Answers that need the machine's rights
//! are held against them where those verbs are tested (`run`, `measure`, `overheads`, `scheduled`,
//! `validate`, `color`).

use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::Path;
use testing::command::Called;
use testing::schemas::{self, all, faults, hold};
use testing::warmset;

const TASKS: &str = "
[[task]]
name = \"fast\"
wcet = \"2ms\"
period = \"5ms\"
wss = \"16KiB\"
priority = 7
[[task]]
name = \"slow\"
wcet = \"3ms\"
period = \"8ms\"
wss = \"64KiB\"
[[task]]
name = \"long\"
wcet = \"30ms\"
period = \"80ms\"
wss = \"64KiB\"
";

fn answer(dir: &Path, args: &str) -> Value {
    // What follows `--` is a program's own.
    let asked = match args.split_once(" -- ") {
        Some((ours, program)) => format!("{ours} --format json -- {program}"),
        None => format!("{args} --format json"),
    };
    let called = Called::within(warmset!(), dir, &asked);
    assert!(matches!(called.status, 0 | 1), "{args}: {}", called.err);
    called.json()
}

const PROFILE: &str = "
version = 1
platform = \"board\"
tick_period = \"1ms\"
watch_period = \"2ms\"
[provenance]
source = \"a measurement\"
[[overheads]]
kind = \"release\"
policy = \"g-edf\"
code = \"both\"
points = [
  { tasks = 10, samples = 900, average = \"6us\", maximum = \"19us\", untrimmed = { outliers = 9, average = \"7us\", maximum = \"90us\" }, intervals = { groups = 10, average = [\"5us\", \"7us\"] } },
]
";

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    let write = |name: &str, text: &str| {
        std::fs::write(dir.path().join(name), text).expect("written");
    };
    write("tasks.toml", TASKS);
    write("soft.toml", &TASKS.replace("\"3ms\"", "\"7ms\""));
    let colored = TASKS.replace(
        "\"3ms\"",
        "{ shared = \"5ms\", \"2\" = \"4ms\", \"4\" = \"3ms\" }",
    );
    write("colored.toml", &colored);
    write("morning.toml", PROFILE);
    let later = PROFILE
        .replace("\"6us\"", "\"16us\"")
        .replace("\"5us\", \"7us\"", "\"15us\", \"17us\"");
    write("evening.toml", &later);
    write("accesses.trace", "I  400000,4\n L 40,4\n S 4040,8\n");
    dir
}

/// By name of a schema, commands whose answers are as it says.
const ANSWERS: &[(&str, &[&str])] = &[
    (
        "check",
        &[
            "check tasks.toml -m 2",
            "check tasks.toml -m 2 --explain",
            "check soft.toml -m 1",
            "check soft.toml -m 2 --soft",
            "check tasks.toml --platform xeon-l7455 --profile xeon-l7455",
            "check tasks.toml --platform xeon-l7455 --profile xeon-l7455 --soft --explain",
            "check tasks.toml -m 2 --policy edf-wm,nps-f,edf-fm,pd2,p-fp",
            "check tasks.toml --platform xeon-l7455 --policy c-nps-f,ca-edf --soft",
        ],
    ),
    (
        "advise",
        &[
            "advise tasks.toml -m 2 -o plan.json",
            "advise soft.toml -m 1",
            "advise soft.toml -m 2 --soft",
            "advise colored.toml -m 2 --colors 8 --policy p-edf,g-edf",
            "advise tasks.toml --platform xeon-l7455 --profile xeon-l7455 --policy p-edf,c-edf:l2,pd2",
        ],
    ),
    (
        "simulate",
        &[
            "simulate tasks.toml -m 2",
            "simulate soft.toml -m 1 --for 1s",
            "simulate tasks.toml --platform xeon-l7455 --profile xeon-l7455 --for 80ms",
        ],
    ),
    (
        "trace-check",
        &[
            "trace check edf-wm.wtrace",
            "trace check late.wtrace",
            "trace check nps-f.wtrace",
        ],
    ),
    (
        "trace-stats",
        &[
            "trace stats edf-wm.wtrace",
            "trace stats late.wtrace",
            "trace stats nps-f.wtrace",
        ],
    ),
    ("study-list", &["study list"]),
    (
        "study-results",
        &[
            "study run ospert10-fig5 --sets 1",
            "study run bastoni11-fig6.2a --sets 1",
            "study run bastoni11-fig6.6a --sets 1",
        ],
    ),
    (
        "platform",
        &[
            "platform",
            "platform --platform xeon-l7455",
            "platform --platform pentium-90",
            "platform --platform symmetric:m=3",
        ],
    ),
    ("platform-list", &["platform --platform list"]),
    (
        "profile",
        &["profile show xeon-l7455", "profile show ./morning.toml"],
    ),
    (
        "profile-values",
        &[
            "profile show xeon-l7455 --wss 256KiB",
            "profile show xeon-l7455 --tasks 40",
        ],
    ),
    (
        "profile-compare",
        &[
            "profile compare ./morning.toml ./morning.toml",
            "profile compare ./morning.toml ./evening.toml",
        ],
    ),
    ("policies", &["policies"]),
    ("reproduce-list", &["reproduce list"]),
    (
        "reproduce",
        &["reproduce 002-fig2.2", "reproduce 002-tabA.1"],
    ),
    (
        "cache",
        &[
            "cache accesses.trace --platform pentium-90 --tlb 64:4",
            "cache accesses.trace --platform xeon-l7455",
        ],
    ),
    ("cache-estimate", &["cache estimate --platform pentium-90"]),
    ("cache-coloring", &["cache coloring --platform pentium-90"]),
    (
        "cache-filter",
        &[
            "cache filter --platform pentium-90",
            "cache fourier --platform pentium-pro --sizes 16,64",
            "cache filter --platform pentium-90 --sizes 64,1024 --rates 12.5,5000",
        ],
    ),
    (
        "cache-matrix",
        &["cache matrix --platform pentium-133 --slices 1ms"],
    ),
    (
        "cache-combined",
        &["cache combined --platform pentium-133 --rates 2000,100000"],
    ),
    (
        "cache-multicore",
        &["cache multicore --platform i7-2600 --sets 1 --jobs 1 --hasten 50 --wss 32KiB"],
    ),
    ("measure-wss", &["measure wss --every 20ms -- sleep 0.2"]),
    ("measure-task", &["measure task --runs 2 -- ls /"]),
    (
        "measure-cpmd-model",
        &[
            "measure cpmd -o modelled --platform xeon-l7455 --model --wss 4KiB --samples 2 --max-preemption 100us",
        ],
    ),
    (
        "cache-sets",
        &["cache sets --platform core-i7 --sets 1 --for 200ms --distributions medium"],
    ),
    (
        "cache-videos",
        &["cache videos --platform core-i7 --videos 2 --for 100ms"],
    ),
    (
        "tour",
        &["tour --platform xeon-l7455 --profile xeon-l7455 --sets 1 -o toured"],
    ),
    ("report", &["report toured"]),
    (
        "trace-import",
        &["trace import sched.txt tasks.toml -m 1 --policy g-fp -o linux.wtrace"],
    ),
];

const SCHED: &str = "\
 <idle>-0 [000] d..2. 5.000000: sched_waking: comm=fast pid=7 prio=90 target_cpu=000
 <idle>-0 [000] d..2. 5.000010: sched_switch: prev_comm=swapper/0 prev_pid=0 prev_prio=120 prev_state=R ==> next_comm=fast next_pid=7 next_prio=90
 fast-7 [000] d..2. 5.001000: sched_waking: comm=slow pid=8 prio=120 target_cpu=000
 fast-7 [000] d..2. 5.001001: sched_waking: comm=long pid=9 prio=120 target_cpu=000
 fast-7 [000] d..2. 5.002000: sched_switch: prev_comm=fast prev_pid=7 prev_prio=90 prev_state=S ==> next_comm=slow next_pid=8 next_prio=120
 slow-8 [000] d..2. 5.004000: sched_switch: prev_comm=slow prev_pid=8 prev_prio=120 prev_state=S ==> next_comm=long next_pid=9 next_prio=120
 long-9 [000] d..2. 5.009000: sched_switch: prev_comm=long prev_pid=9 prev_prio=120 prev_state=S ==> next_comm=swapper/0 next_pid=0 next_prio=120
";

#[test]
fn every_answer_is_as_its_schema_says() {
    let dir = directory();
    std::fs::write(dir.path().join("sched.txt"), SCHED).expect("written");
    for (policy, file) in [("edf-wm", "edf-wm"), ("nps-f", "nps-f"), ("g-edf", "late")] {
        let (set, cpus) = match file {
            "late" => ("soft.toml", 1),
            _ => ("tasks.toml", 2),
        };
        let args =
            format!("simulate {set} -m {cpus} --policy {policy} --for 160ms --trace {file}.wtrace");
        answer(dir.path(), &args);
    }
    let mut broken = Vec::new();
    for (name, commands) in ANSWERS {
        for command in *commands {
            let document = answer(dir.path(), command);
            let found = faults(name, &document);
            broken.extend(found.iter().map(|fault| format!("{command}: {fault}")));
        }
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
    let plan = std::fs::read_to_string(dir.path().join("plan.json")).expect("written");
    hold("plan", &serde_json::from_str(&plan).expect("JSON"));
}

#[test]
fn certificates_are_as_their_schema_says() {
    let dir = directory();
    std::fs::write(dir.path().join("dhall.toml"), DHALL).expect("written");
    for args in [
        "tasks.toml -m 2",
        "tasks.toml -m 1 --policy p-fp",
        "soft.toml -m 1",
        "soft.toml -m 2 --soft",
        "tasks.toml --platform xeon-l7455 --profile xeon-l7455",
        "dhall.toml -m 2 --policy g-edf,g-fp:rm,p-edf",
        "tasks.toml -m 2 --policy nps-f,pd2",
    ] {
        let checked = answer(
            dir.path(),
            &format!("check {args} --certificate proof.json"),
        );
        hold("check", &checked);
        let text = std::fs::read_to_string(dir.path().join("proof.json")).expect("there");
        hold("certificate", &serde_json::from_str(&text).expect("JSON"));
    }
}

/// Short jobs with earlier deadlines hold up a long one, on two processors.
const DHALL: &str = "
[[task]]
name = \"short\"
wcet = \"2ms\"
period = \"10ms\"
[[task]]
name = \"brief\"
wcet = \"2ms\"
period = \"10ms\"
[[task]]
name = \"long\"
wcet = \"10ms\"
period = \"11ms\"
";

#[test]
fn what_studies_keep_and_say_is_as_its_schema_says() {
    let dir = directory();
    answer(dir.path(), "study run ospert10-fig5 --sets 2 -o fig5");
    let text = std::fs::read_to_string(dir.path().join("fig5/results.json")).expect("there");
    hold("study-results", &serde_json::from_str(&text).expect("JSON"));
    let range = "study range fig5 --of C-EDF-L3 --against P-EDF";
    hold("study-range", &answer(dir.path(), range));
    hold(
        "study-explore",
        &answer(dir.path(), "study explore fig5 -o page.html"),
    );
}

/// Sets that are accepted, that are refused, that no processor takes, and that no test is for; with
/// any `id`.
const SETS: &str = r#"
{"id":7,"m":2,"tasks":[{"wcet":4,"period":10},{"wcet":5,"period":10}]}
{"id":"late","m":2,"tasks":[{"wcet":4,"period":10,"deadline":12},{"wcet":5,"period":10}],"horizon_us":8}
{"id":[1,null],"m":1,"tasks":[{"wcet":8,"period":10},{"wcet":5,"period":10}]}
{"m":2,"tasks":[{"wcet":6,"period":10,"deadline":5}]}
"#;

#[test]
fn each_line_of_a_batch_is_as_its_schema_says() {
    let dir = directory();
    std::fs::write(dir.path().join("sets.jsonl"), SETS).expect("written");
    for (schema, command) in [
        ("check-batch", "check --batch sets.jsonl"),
        (
            "check-batch",
            "check --batch sets.jsonl --tests GFB --grid 1us",
        ),
        (
            "simulate-batch",
            "simulate --batch sets.jsonl --policy g-edf",
        ),
        (
            "simulate-batch",
            "simulate --batch sets.jsonl --policy p-edf",
        ),
    ] {
        let lines = Called::within(warmset!(), dir.path(), command).answer();
        assert_eq!(lines.lines().count(), 4, "{command}");
        for line in lines.lines() {
            assert!(line.starts_with("{\"schema_version\":1,\"id\":"), "{line}");
            hold(schema, &serde_json::from_str(line).expect("JSON"));
        }
    }
}

/// What the binary prints and writes is what stands in the directory.
#[test]
fn the_binary_has_every_schema() {
    let dir = tempfile::tempdir().expect("a directory");
    let call = |args: &str| Called::within(warmset!(), dir.path(), args);
    let listed = call("schema").answer();
    let written = call("schema -o all").answer();
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/schema");
    let mut count = 0;
    for entry in std::fs::read_dir(docs).expect("schemas") {
        let path = entry.expect("a schema").path();
        let name = path.file_stem().expect("a name").to_string_lossy();
        let text = std::fs::read_to_string(&path).expect("read");
        let title = serde_json::from_str::<Value>(&text).expect("JSON")["title"].clone();
        let title = title.as_str().expect("a title").to_owned();
        let is_listed =
            |line: &str| line.split_whitespace().next() == Some(&name) && line.ends_with(&title);
        assert!(listed.lines().any(is_listed), "{name}: {title}\n{listed}");
        assert_eq!(call(&format!("schema {name}")).answer(), text);
        let copy = dir.path().join(format!("all/{name}.json"));
        assert_eq!(std::fs::read_to_string(copy).expect("written"), text);
        count += 1;
    }
    assert_eq!(written, format!("{count} schemas in all\n"));
    assert_eq!(listed.lines().count(), count);
    assert_eq!(call("schema tour -o tour.json").answer(), "");
    assert!(dir.path().join("tour.json").is_file());
    let refused = call("schema chekc").refusal();
    assert!(refused.contains("did you mean `check`"), "{refused}");
}

/// By the first words of a command, the schema of its answer; longer ones stand first.
const VERBS: [(&str, &str); 27] = [
    ("profile show", "profile-values"),
    ("trace check", "trace-check"),
    ("trace stats", "trace-stats"),
    ("reproduce list", "reproduce-list"),
    ("reproduce", "reproduce"),
    ("study list", "study-list"),
    ("study run", "study-results"),
    ("measure cpmd", "measure-cpmd"),
    ("platform", "platform"),
    ("check", "check"),
    ("advise", "advise"),
    ("simulate", "simulate"),
    ("cache sets", "cache-sets"),
    ("cache videos", "cache-videos"),
    ("cache estimate", "cache-estimate"),
    ("cache coloring", "cache-coloring"),
    ("cache filter", "cache-filter"),
    ("cache cosine", "cache-filter"),
    ("cache fourier", "cache-filter"),
    ("cache matrix", "cache-matrix"),
    ("cache combined", "cache-combined"),
    ("cache multicore", "cache-multicore"),
    ("measure wss", "measure-wss"),
    ("measure task", "measure-task"),
    ("cache", "cache"),
    ("report", "report"),
    ("tour", "tour"),
];

/// The commands of `tests/smoke.sh` that answer yes or no and give one document.
fn smoke(dir: &str) -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let script = std::fs::read_to_string(root.join("tests/smoke.sh")).expect("the smoke run");
    let whole = script.replace("\\\n", " ");
    let answered = whole.lines().filter_map(|line| {
        let rest = line
            .strip_prefix("expect 0 ")
            .or_else(|| line.strip_prefix("expect 1 "))?;
        rest.strip_prefix("\"$warmset\" ")
    });
    let has_document = |args: &&str| {
        let has_none = ["--version", "generate", "plan export"];
        !has_none.iter().any(|verb| args.starts_with(verb)) && !args.contains("--batch")
    };
    answered
        .filter(has_document)
        .map(|args| args.replace("$dir", dir).replace('"', ""))
        .collect()
}

#[test]
fn the_smoke_run_is_answered_as_its_schemas_say() {
    let dir = tempfile::tempdir().expect("a directory");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let commands = smoke(&dir.path().display().to_string());
    assert!(commands.len() > 15, "{commands:?}");
    let mut broken = Vec::new();
    for command in commands {
        let verb = VERBS.iter().find(|(verb, _)| command.starts_with(verb));
        let (_, schema) = verb.unwrap_or_else(|| panic!("no schema is known for `{command}`"));
        // A model's answer is another one than a measurement's.
        let schema = match command.contains(" --model ") {
            true => "measure-cpmd-model",
            false => schema,
        };
        let found = faults(schema, &answer(&root, &command));
        broken.extend(found.iter().map(|fault| format!("{command}: {fault}")));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn schemas_are_valid_and_describe_every_field() {
    fn look(value: &Value, place: &str, faults: &mut Vec<String>) {
        match value {
            Value::Object(keys) => {
                if let Some(Value::Object(fields)) = keys.get("properties") {
                    for (field, about) in fields {
                        let told =
                            about.get("description").is_some() || about.get("const").is_some();
                        if !told && field != "schema_version" {
                            faults.push(format!("{place}: `{field}` has no description"));
                        }
                        let text = about.to_string();
                        let numbers =
                            text.contains("\"number\"") && !field.starts_with("percentiles");
                        if field.ends_with("_ns") && numbers {
                            faults.push(format!("{place}: `{field}` is no integer"));
                        }
                    }
                    let closed = keys.get("additionalProperties") == Some(&Value::Bool(false));
                    if !closed {
                        faults.push(format!("{place}: other fields are allowed"));
                    }
                }
                for (key, value) in keys {
                    look(value, &format!("{place}/{key}"), faults);
                }
            }
            Value::Array(all) => {
                for value in all {
                    look(value, place, faults);
                }
            }
            _ => {}
        }
    }
    let mut wrong = Vec::new();
    let mut ids = BTreeSet::new();
    for (name, schema) in all() {
        if let Err(e) = jsonschema::draft202012::meta::validate(&schema) {
            wrong.push(format!("{name}: {e}"));
        }
        let id = schema["$id"].as_str().unwrap_or_default().to_owned();
        if !id.ends_with(&format!("/docs/schema/{name}.json")) || !ids.insert(id.clone()) {
            wrong.push(format!("{name}: the $id is {id:?}"));
        }
        look(&schema, &name, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Names that other documents have another one for, and that one.
const OTHERWISE: [(&str, &str); 9] = [
    ("ns", "`total_ns`, or another name that says which time"),
    ("processor", "`cpu`"),
    ("scheduler", "`policy`"),
    ("most_ns", "`max_ns`"),
    ("largest_ns", "`max_ns`"),
    ("longest_ns", "`max_ns`"),
    ("least_ns", "`min_ns`"),
    ("smallest_ns", "`min_ns`"),
    ("shortest_ns", "`min_ns`"),
];

/// What is wrong with a field of this name, by the rules of docs/documents.md.
fn misnamed(field: &str, about: &Value) -> Option<String> {
    if let Some((_, now)) = OTHERWISE.iter().find(|(name, _)| *name == field) {
        return Some(format!("is called {now} elsewhere"));
    }
    let types = match &about["type"] {
        Value::Array(all) => all.iter().filter_map(Value::as_str).collect(),
        one => Vec::from_iter(one.as_str()),
    };
    let is = |name: &str| types.contains(&name);
    // A number of something else may be rounded up to nanoseconds.
    let description = about["description"].as_str().unwrap_or_default();
    let is_time = description
        .replace("to nanoseconds", "")
        .contains("nanoseconds");
    let has_unit = |ending: &&str| field.ends_with(ending);
    match field {
        "task" if is("integer") => Some("is no name: a place is an `index`".to_owned()),
        "index" | "cpu" if !is("integer") => Some("is no number".to_owned()),
        "wss" if !is("string") => Some("is no text: what was measured is `wss_bytes`".to_owned()),
        _ if is_time && !field.ends_with("_ns") => {
            Some("is in nanoseconds and does not end in `_ns`".to_owned())
        }
        _ if ["_us", "_ms", "_s", "_seconds"].iter().any(has_unit) => {
            Some("is a time that is not in nanoseconds".to_owned())
        }
        _ => None,
    }
}

#[test]
fn the_same_thing_has_the_same_name_in_every_schema() {
    fn look(value: &Value, place: &str, faults: &mut Vec<String>) {
        match value {
            Value::Object(keys) => {
                if let Some(Value::Object(fields)) = keys.get("properties") {
                    for (field, about) in fields {
                        let fault = misnamed(field, about);
                        faults.extend(fault.map(|fault| format!("{place}: `{field}` {fault}")));
                    }
                }
                for (key, value) in keys {
                    look(value, &format!("{place}/{key}"), faults);
                }
            }
            Value::Array(all) => all.iter().for_each(|value| look(value, place, faults)),
            _ => {}
        }
    }
    let mut wrong = Vec::new();
    for (name, schema) in all() {
        look(&schema, &name, &mut wrong);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn a_name_of_its_own_is_found() {
    let about = |kind: &str, description: &str| json!({"type": kind, "description": description});
    let integer = about("integer", "How long.");
    for (field, about) in [
        ("ns", &integer),
        ("processor", &integer),
        ("longest_ns", &integer),
        ("response_us", &integer),
        ("task", &about("integer", "Its place.")),
        ("cpu", &about("string", "Its name.")),
        ("wss", &about("integer", "Its size.")),
        ("length", &about("integer", "How long, in nanoseconds.")),
    ] {
        assert!(misnamed(field, about).is_some(), "{field}");
    }
    for (field, about) in [
        ("response_ns", &about("integer", "In nanoseconds.")),
        ("task", &about("string", "Its name.")),
        (
            "thousandths",
            &about("integer", "Rounded up to nanoseconds."),
        ),
        ("processors", &integer),
    ] {
        assert_eq!(misnamed(field, about), None, "{field}");
    }
}

#[test]
fn another_field_another_version_and_a_missing_field_are_found() {
    let dir = directory();
    let good = answer(dir.path(), "study list");
    let with = |change: &dyn Fn(&mut Value)| {
        let mut document = good.clone();
        change(&mut document);
        faults("study-list", &document).len()
    };
    assert_eq!(with(&|_| {}), 0);
    assert_eq!(with(&|d| d["schema_version"] = json!(2)), 1);
    assert_eq!(with(&|d| d["new"] = json!(1)), 1);
    assert_eq!(with(&|d| d["studies"][0]["new"] = json!(1)), 1);
    assert_eq!(with(&|d| d["studies"] = json!("none")), 1);
    assert_eq!(
        with(&|d| {
            d.as_object_mut().expect("an object").remove("studies");
        }),
        1
    );
}

#[test]
fn the_page_of_documents_names_every_schema() {
    let page = schemas::directory().join("../documents.md");
    let page = std::fs::read_to_string(page).expect("docs/documents.md");
    for (name, _) in all() {
        assert!(page.contains(&format!("schema/{name}.json")), "{name}");
    }
}
