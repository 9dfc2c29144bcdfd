//! `warmset cache` from outside: traces from files and pipes, plain and compressed, what is counted,
//! what is refused, and its end at Ctrl-C.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use testing::command::Called;
use testing::warmset;

fn directory() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

fn called(dir: &Path, args: &str) -> Called {
    Called::within(warmset!(), dir, args)
}

fn write(dir: &Path, name: &str, text: &str) {
    std::fs::write(dir.join(name), text).expect("written");
}

/// The trace of a matrix product that the room's tests have.
const PRODUCT: &str = concat!(
    env!("CARGO_MANIFEST_DIR"),
    "/../cache/tests/data/product.lackey.gz"
);

/// The number of a level and a processor in a document.
fn number(document: &serde_json::Value, level: &str, cpu: u64, key: &str) -> u64 {
    let levels = document["levels"].as_array().expect("a list");
    let found = levels
        .iter()
        .find(|l| l["name"] == level && l["cpu"] == cpu)
        .expect("the level");
    found[key].as_u64().expect("a number")
}

/// Cachegrind counts 26789 instructions, 8192 reads and 256 writes, and with 32 KiB 3, 64 and 32
/// misses (`crates/cache/tests/data/cachegrind.txt`); nothing is replaced, so other rules count the
/// same.
#[test]
fn a_compressed_trace_is_counted_by_any_rules() {
    let dir = directory();
    for rules in ["lines", "cachegrind"] {
        let args = format!("cache {PRODUCT} --platform i7-2600 --rules {rules} --format json");
        let document = called(dir.path(), &args).json();
        let of = |level, key| number(&document, level, 0, key);
        assert_eq!(document["accesses"], 26789 + 8192 + 256);
        assert_eq!((of("L1i", "instructions"), of("L1i", "misses")), (26789, 3));
        assert_eq!((of("L1d", "reads"), of("L1d", "read_misses")), (8192, 64));
        assert_eq!((of("L1d", "writes"), of("L1d", "write_misses")), (256, 32));
        assert_eq!(of("L3", "accesses"), 99);
        assert_eq!(of("L3", "misses"), 99);
    }
}

#[test]
fn a_trace_comes_from_standard_input() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .args(["cache", "-", "--platform", "core-i7", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    // Processor 1 reads what processor 0 has changed.
    stdin
        .write_all(b"0 S 1000,4\n1 L 1000,4\n1 L 1004,4\n")
        .expect("written");
    drop(stdin);
    let out = child.wait_with_output().expect("ended");
    assert_eq!(out.status.code(), Some(0));
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(number(&document, "L1d", 0, "interventions"), 1);
    assert_eq!(number(&document, "L1d", 1, "accesses"), 2);
    assert_eq!(number(&document, "L1d", 1, "misses"), 1);
    assert_eq!(number(&document, "L3", 0, "misses"), 1);
    assert_eq!(document["trace"], "standard input");
}

/// 001 §4.1: a miss of the Pentium's L2 takes 200 to 336 ns, one of its L1 64 to 160.
#[test]
fn the_pentium_waits_as_long_as_the_paper_says() {
    let dir = directory();
    // The two lines share their place in the L1 (4 KiB a way) with a third, not in the L2.
    let text = " L 0,4\n L 1000,4\n L 2000,4\n L 0,4\n";
    write(dir.path(), "trace", text);
    let args = "cache trace --platform pentium-90 --format json";
    let waited = called(dir.path(), args).json()["waited"].clone();
    assert_eq!(waited["optimistic_ns"], 3 * 200 + 64);
    assert_eq!(waited["pessimistic_ns"], 3 * 336 + 160);
}

/// Buffers of translations of a platform file, with their price on top of what caches cost.
#[test]
fn a_platform_file_has_buffers_of_translations() {
    let dir = directory();
    let written = called(dir.path(), "platform --platform pentium-90 -o board.toml");
    assert_eq!(written.status, 0, "{}", written.err);
    let board = std::fs::read_to_string(dir.path().join("board.toml")).expect("written");
    let tlb = "\n[tlb]\nentries = 2\nways = 1\nmiss = [\"100ns\", \"1us\"]\n";
    write(dir.path(), "board.toml", &format!("{board}{tlb}"));
    // Pages 0, 1 and 2: the first and the last share the one place of even ones.
    write(
        dir.path(),
        "trace",
        " L 0,4\n L 1000,4\n L 2000,4\n L 0,4\n L 1000,4\n",
    );
    let document = |more: &str| {
        let args = format!("cache trace --platform board.toml --format json{more}");
        called(dir.path(), &args).json()
    };
    let priced = document("");
    let data = &priced["tlbs"][0];
    assert_eq!(
        (&data["name"], &data["misses"]),
        (&"dTLB".into(), &4.into())
    );
    write(dir.path(), "board.toml", &board);
    let plain = document(" --tlb 2:1");
    assert_eq!(plain["tlbs"], priced["tlbs"]);
    for (key, each) in [("optimistic_ns", 100), ("pessimistic_ns", 1000)] {
        let waited = |document: &serde_json::Value| document["waited"][key].as_u64();
        let extra = waited(&priced).expect("a time") - waited(&plain).expect("a time");
        assert_eq!(extra, 4 * each);
    }
    assert!(document("")["tlbs"].as_array().is_none_or(Vec::is_empty));
    // What was added is kept when the description is written again.
    write(dir.path(), "board.toml", &format!("{board}{tlb}"));
    let again = called(dir.path(), "platform --platform board.toml -o again.toml");
    assert_eq!(again.status, 0, "{}", again.err);
    let text = std::fs::read_to_string(dir.path().join("again.toml")).expect("written");
    assert!(
        text.contains("[tlb]\nentries = 2\nways = 1\nmiss = [\"100ns\", \"1us\"]"),
        "{text}"
    );
}

/// 001 §3.2: one color of 64 in 64 frames is one frame in plain coloring; in free coloring all
/// frames can have it.
#[test]
fn free_coloring_gives_any_frame_any_color() {
    let dir = directory();
    write(dir.path(), "trace", " L 0,4\n L 5000,4\n L 0,4\n");
    let run = |pages: &str| {
        let args = format!(
            "cache trace --platform pentium-133 --memory 256KiB --format json --pages {pages}"
        );
        called(dir.path(), &args)
    };
    let told = run("plain:5").refusal();
    assert!(told.contains("no frame of color 5 is left"), "{told}");
    let document = run("free:5").json();
    let colors = &document["colors"];
    assert_eq!(colors["accesses"].as_array().expect("a list").len(), 64);
    assert_eq!(colors["misses"][5], 2);
    assert_eq!(number(&document, "L2", 0, "misses"), 2);
    // With a color for each page as many misses.
    assert_eq!(run("plain:5-6").json()["levels"], document["levels"]);
}

#[test]
fn what_cannot_be_simulated_is_refused_in_one_sentence() {
    let dir = directory();
    write(dir.path(), "trace", " L 0,4\nhello\n");
    write(dir.path(), "far", "9 L 0,4\n");
    write(dir.path(), "none", "== nothing\n");
    for (args, says) in [
        (
            "cache trace --platform i486",
            "trace: line 2: `hello` is no access",
        ),
        (
            "cache far --platform i486",
            "far: line 1: the platform has no processor 9",
        ),
        ("cache none --platform i486", "the trace has no accesses"),
        ("cache gone --platform i486", "gone: cannot read the trace"),
        ("cache . --platform i486", "this is a directory"),
        (
            "cache none --platform symmetric:m=2",
            "no caches are described",
        ),
        ("cache none --pages everywhere", "does not place pages"),
        ("cache none --rules mine", "unknown rules"),
        ("cache none --tlb 24:2", "is no TLB"),
        (
            "cache trace --platform i486 --rules pycachesim --pages random",
            "these rules take addresses as they are",
        ),
    ] {
        let told = called(dir.path(), args).refusal();
        assert!(told.contains(says), "{args}: {told}");
    }
}

#[test]
fn people_read_a_table_and_see_misses_by_time() {
    let dir = directory();
    let args = format!("cache {PRODUCT} --platform pentium-pro --picture misses.svg");
    let table = called(dir.path(), &args).answer();
    let table = table.replace(PRODUCT, "product.lackey.gz");
    insta::assert_snapshot!(table);
    let picture = std::fs::read_to_string(dir.path().join("misses.svg")).expect("there");
    assert!(picture.contains("misses of 1000 accesses"), "{picture}");
}

/// 003 Fig. 2 (a): five quanta of eight; simulated, and told by the statistics of the trace.
#[test]
fn thrashing_is_told_of_simulations_and_traces() {
    let dir = directory();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/figures");
    // T misses a deadline under the heuristic.
    for (policy, wanted, status) in [("g-edf:ties=index", 5_000_000, 0), ("ca-edf", 0, 1)] {
        let args = format!(
            "simulate {root}/cache.toml --platform {root}/shared-cache.toml --for 8ms \
             --policy {policy} --trace run.wtrace --format json"
        );
        let simulated: serde_json::Value =
            serde_json::from_str(&called(dir.path(), &args).with_status(status)).expect("JSON");
        let stats = called(dir.path(), "trace stats run.wtrace --format json");
        let stats: serde_json::Value = serde_json::from_str(&stats.answer()).expect("JSON");
        for told in [&simulated, &stats] {
            assert_eq!(told["thrashing_ns"], wanted, "{policy}");
            assert_eq!(told["cache_bytes"], 1 << 20);
        }
        std::fs::remove_file(dir.path().join("run.wtrace")).expect("there");
    }
    // Where no cache is known nothing is told.
    let args = format!("simulate {root}/cache.toml -m 2 --for 8ms --format json");
    assert!(!called(dir.path(), &args).answer().contains("thrashing"));
}

/// 003 Fig. 3 in the model: every working set is found.
#[test]
fn a_profiler_finds_working_sets_in_the_model() {
    let dir = directory();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/figures");
    let args = format!(
        "simulate {root}/profiler.toml --platform {root}/shared-cache.toml --for 32ms --cache --fresh \
         --policy ca-edf:wss=profiled --format json"
    );
    // T misses deadlines, as in Fig. 2 (b).
    let told: serde_json::Value =
        serde_json::from_str(&called(dir.path(), &args).with_status(1)).expect("JSON");
    let found: Vec<(u64, bool)> = told["profiled"]
        .as_array()
        .expect("a list")
        .iter()
        .map(|found| {
            let wss = found["wss_bytes"].as_u64().expect("a size");
            (wss >> 10, found["converged"] == true)
        })
        .collect();
    assert_eq!(found, [(768, true), (512, true), (512, true), (768, true)]);
    // Every job of T misses all its lines once, and finds them in its other two passes.
    let of_t = &told["caches"][0];
    let (jobs, misses) = (
        of_t["jobs"].as_u64().unwrap(),
        of_t["misses"].as_u64().unwrap(),
    );
    assert_eq!(jobs, 16);
    assert!(
        (16 * 12288..20 * 12288 + 2 * 12288).contains(&misses),
        "{misses}"
    );
}

#[test]
fn what_caches_cannot_be_asked_with_is_refused_in_a_sentence() {
    let dir = directory();
    let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/figures");
    write(
        dir.path(),
        "periods.toml",
        &["10ms", "20ms"]
            .map(|period| {
                format!(
                    "[[task]]\nwcet = \"1ms\"\nperiod = \"{period}\"\nwss = \"64KiB\"\ngroup = \"A\"\n"
                )
            })
            .concat(),
    );
    let task = "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\nwss = \"64KiB\"\ngroup = \"A\"\n";
    write(dir.path(), "threads.toml", &task.repeat(3));
    write(
        dir.path(),
        "program.toml",
        "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\nworkload = { exec = [\"/bin/true\"] }\n",
    );
    write(
        dir.path(),
        "unpriced.toml",
        "version = 1\nname = \"unpriced\"\n[[processors]]\nid = 0\ncore = 0\nsocket = 0\n\
         [[caches]]\nlevel = 1\nkind = \"unified\"\nsize = \"8KiB\"\nways = 4\nline = 16\n\
         sets = 128\nshared_by = \"0\"\n",
    );
    let shared = format!("{root}/shared-cache.toml");
    let set = format!("{root}/profiler.toml");
    for (args, cause) in [
        (
            format!("simulate periods.toml --platform {shared} --policy ca-edf"),
            "several periods, 10ms and 20ms",
        ),
        (
            format!("simulate threads.toml --platform {shared} --policy ca-edf"),
            "group `A` has 3 tasks, more than there are processors",
        ),
        (
            format!("simulate {set} --platform {shared} --policy ca-edf:wss=profiled"),
            "use `warmset simulate --cache`",
        ),
        (
            format!("simulate {set} --platform {shared} --cache --policy edf-wm"),
            "budgets and slices",
        ),
        (
            format!("simulate {set} --platform {shared} --cache --execution 0.5"),
            "--execution: the caches decide",
        ),
        (
            format!("simulate {set} --platform unpriced.toml --cache"),
            "has no price `fill`",
        ),
        (
            format!("simulate {set} --platform {shared} --cache --passes 9"),
            "longer than its WCET",
        ),
        (
            format!("simulate {set} --platform {shared} --cache --passes 0"),
            "--passes: a job makes no pass",
        ),
        (
            format!("simulate program.toml --platform {shared} --cache"),
            "the accesses of a program are not known",
        ),
        (
            format!("simulate {set} --platform {shared} --policy ca-edf:reserve=2"),
            "is no part of a processor",
        ),
        (
            "cache sets --platform core-i7 --sets 0".to_owned(),
            "there is nothing to run",
        ),
        (
            "cache sets --platform core-i7 --distributions fat".to_owned(),
            "unknown distribution `fat`",
        ),
        (
            "cache videos --platform core-i7 --videos 0".to_owned(),
            "there is no video to decode",
        ),
    ] {
        let refused = called(dir.path(), &args).refusal();
        assert!(refused.contains(cause), "{args}: {refused}");
    }
    // No schedule of the policy has such a group, whatever is asked of it.
    for guarantee in ["--hard", "--soft"] {
        let args = format!("check periods.toml --platform {shared} --policy ca-edf {guarantee}");
        let judged = called(dir.path(), &args).with_status(1);
        let told = judged.replace(['\n', ' '], "");
        assert!(told.contains("severalperiods,10msand20ms"), "{told}");
    }
}

/// What a journal has is not run again, and a line that was cut off is.
#[test]
fn sets_go_on_where_they_were_stopped() {
    let dir = directory();
    let args = "cache sets --platform core-i7 --sets 2 --for 100ms --distributions heavy \
                --journal sets.jsonl --format json";
    let first = called(dir.path(), args).answer();
    let journal = dir.path().join("sets.jsonl");
    let kept = std::fs::read_to_string(&journal).expect("a journal");
    assert_eq!(kept.lines().count(), 5, "{kept}");
    write(dir.path(), "sets.jsonl", &kept[..kept.len() - 20]);
    assert_eq!(called(dir.path(), args).answer(), first);
    let again = std::fs::read_to_string(&journal).expect("a journal");
    assert_eq!(again.lines().count(), 5);
    // A line that somebody changed is named.
    write(
        dir.path(),
        "sets.jsonl",
        &kept.replacen(":true,", ":wrong,", 1),
    );
    let refused = called(dir.path(), args).refusal();
    let line = 1 + kept.lines().position(|l| l.contains(":true,")).unwrap();
    let place = format!("sets.jsonl: line {line}: ");
    assert!(
        refused.contains(&place) && !refused.contains("line 1"),
        "{refused}"
    );
    write(dir.path(), "sets.jsonl", &kept);
    // A journal of another length is not mixed in.
    let other = args.replace("100ms", "200ms");
    let refused = called(dir.path(), &other).refusal();
    assert!(refused.contains("is of other options"), "{refused}");
    let table = called(
        dir.path(),
        "cache videos --platform core-i7 --for 100ms --videos 1,2",
    )
    .answer();
    assert!(table.contains("ca-edf while it learns"), "{table}");
}
