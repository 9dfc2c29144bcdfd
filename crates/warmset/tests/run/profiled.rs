//! Working sets that are found while jobs run for real (003 §3.2).

use super::{text, warmset};
use serde_json::Value;
use testing::schemas;

/// Working sets of 64 KiB, 512 KiB, and the 96 KiB of three matrices; one task without memory.
const WALKS: &str = r#"
[[task]]
name = "small"
wcet = "1ms"
period = "20ms"
wss = "64KiB"
workload = { kind = "walk" }
[[task]]
name = "large"
wcet = "2ms"
period = "40ms"
wss = "512KiB"
workload = { kind = "walk", write_ratio = 0.25, pattern = "random" }
[[task]]
name = "product"
wcet = "3ms"
period = "40ms"
workload = { kind = "matrix" }
[[task]]
name = "spin"
wcet = "1ms"
period = "40ms"
"#;

const POLICY: &str = "ca-edf:cache=8MiB,wss=profiled";

/// What was found, by the name of the task.
fn found<'a>(document: &'a Value, task: &str) -> &'a Value {
    let all = document["profiled"].as_array().expect("a list");
    let of = |found: &&Value| found["tasks"] == serde_json::json!([task]);
    all.iter().find(of).expect("the task")
}

pub fn working_sets_are_found_while_jobs_run_for_real() {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "run",
        "tasks.toml",
        "--policy",
        POLICY,
        "--for",
        "1500ms",
        "--format",
        "json",
    ];
    let ran = warmset(dir.path(), WALKS, &args).get_output().clone();
    // Whether deadlines are met is the machine's affair.
    assert!(
        matches!(ran.status.code(), Some(0 | 1)),
        "{}",
        text(&ran.stderr)
    );
    let document: Value = serde_json::from_slice(&ran.stdout).unwrap();
    schemas::hold("run", &document);
    let by = document["profiled_by"].as_str().expect("a source");
    for (task, kib) in [("small", 64), ("large", 512), ("product", 96), ("spin", 0)] {
        let found = found(&document, task);
        let jobs = [&found["profiled"], &found["discarded"]].map(|n| n.as_u64().unwrap());
        assert!(jobs[0] > 2, "{task}: {found}");
        if by == "pages" {
            assert_eq!(found["wss_bytes"], kib * 1024, "{task}: {found}");
            assert_eq!(found["converged"], true, "{task}: {found}");
        }
    }
    assert!(matches!(by, "pages" | "counters"), "{by}");
}

/// Programs, and the pages of colored memory.
pub fn what_cannot_be_counted_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let program = format!(
        "{WALKS}[[task]]\nname = \"other\"\nwcet = \"1ms\"\nperiod = \"40ms\"\n\
         workload = {{ exec = [\"sleep\", \"60\"] }}\n"
    );
    let args = ["run", "tasks.toml", "--policy", POLICY, "--for", "100ms"];
    let ran = warmset(dir.path(), &program, &args).get_output().clone();
    let said = text(&ran.stderr);
    assert_eq!(ran.status.code(), Some(2), "{said}");
    assert!(
        said.contains("task other") && said.contains("how often a program misses"),
        "{said}"
    );
}
