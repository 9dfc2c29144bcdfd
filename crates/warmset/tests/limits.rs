//! Where the system has no more to give, and where inputs are larger than any real one: one
//! sentence and status 2, never a panic, an abort or a signal.

use std::fmt::Write as _;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Command, Output, Stdio};

const TASKS: &str = "[[task]]\nname = \"a\"\nwcet = \"1ms\"\nperiod = \"4ms\"\nwss = \"64KiB\"\n\
                     [[task]]\nname = \"b\"\nwcet = \"2ms\"\nperiod = \"6ms\"\n";
const STUDY: &str = "platform = \"symmetric:m=2\"\npolicies = [\"p-edf\", \"GFB\"]\nguarantee = \"hard\"\n\
                     utilizations = \"uniform-medium\"\nperiods = \"moderate\"\nsets = 20\n";

/// Runs a script of the shell in a directory; `$W` is the program.
fn shell(dir: &Path, script: &str) -> Output {
    Command::new("/bin/sh")
        .args(["-c", script])
        .env("W", env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .expect("a shell")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// One sentence on standard error, and status 2.
fn is_refused(script: &str, output: &Output) -> String {
    let said = stderr(output);
    assert_eq!(output.status.code(), Some(2), "{script}: {said}");
    let sentences = said
        .lines()
        .filter(|line| line.starts_with("warmset: "))
        .count();
    assert_eq!(sentences, 1, "{script}: {said}");
    assert!(!said.contains("panicked"), "{script}: {said}");
    said
}

/// A directory with inputs of each kind.
fn inputs() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("set.toml"), TASKS).unwrap();
    let mut lines = String::new();
    for id in 0..20_000 {
        let task = r#"{"wcet":1000,"period":4000}"#;
        writeln!(lines, r#"{{"id":{id},"m":2,"tasks":[{task},{task}]}}"#).unwrap();
    }
    std::fs::write(dir.path().join("batch.jsonl"), lines).unwrap();
    let made = shell(
        dir.path(),
        "$W simulate set.toml --policy g-edf -m 2 --for 20s --trace run.wtrace",
    );
    assert!(made.status.success(), "{}", stderr(&made));
    dir
}

/// The signal that the kernel sends there ends a process that does not expect it.
#[test]
fn a_limit_on_the_size_of_files_is_a_sentence() {
    let dir = inputs();
    for command in [
        "generate --tasks 4 --total 1 --sets 20000 -m 2 -o out",
        "generate --tasks 4 --total 1 --sets 20000 -m 2 > out",
        "simulate set.toml --policy g-edf -m 2 --for 60s --trace out",
        "trace export run.wtrace --to csv -o out",
        "trace export run.wtrace --to csv > out",
        "trace stats run.wtrace --jobs out",
        "check --batch batch.jsonl --tests GFB -o out",
        "check --batch batch.jsonl --tests GFB > out",
        "--help > out",
    ] {
        let script = format!("ulimit -f 2; exec $W {command}");
        let said = is_refused(&script, &shell(dir.path(), &script));
        assert!(
            said.contains("raise the limit on the size of files"),
            "{command}: {said}"
        );
        if command.contains("-o") || command.contains("--jobs") {
            assert!(!dir.path().join("out").exists(), "{command}");
        }
        // A trace keeps what was written before; standard output was opened by the shell.
        let _ = std::fs::remove_file(dir.path().join("out"));
    }
}

#[test]
fn a_full_disk_is_a_sentence() {
    let dir = inputs();
    for command in [
        "generate --tasks 4 --total 1 --sets 2000 -m 2",
        "check set.toml -m 2",
        "check set.toml -m 2 --format json",
        "check --batch batch.jsonl --tests GFB",
        "simulate set.toml --policy g-edf -m 2",
        "trace export run.wtrace --to csv",
        "trace export run.wtrace --to text --to-time 20ms",
        "trace stats run.wtrace",
        "study list",
        "platform --platform xeon-l7455",
        "--help",
        "check --help",
        "--version",
    ] {
        let script = format!("exec $W {command} > /dev/full");
        let said = is_refused(&script, &shell(dir.path(), &script));
        assert!(said.contains("no space left"), "{command}: {said}");
    }
    for command in [
        "simulate set.toml --policy g-edf -m 2 --for 60s --trace /dev/full",
        "check set.toml -m 2 -o /dev/full",
        "convert set.toml -o /dev/full",
    ] {
        let script = format!("exec $W {command}");
        let said = is_refused(&script, &shell(dir.path(), &script));
        assert!(said.contains("no space left"), "{command}: {said}");
    }
}

/// A reader that went away has seen enough; what the answer is stands in the status.
#[test]
fn a_reader_that_goes_away_is_no_failure() {
    let dir = inputs();
    for command in [
        "generate --tasks 4 --total 1 --sets 20000 -m 2",
        "check --batch batch.jsonl --tests GFB",
        "trace export run.wtrace --to csv",
        "trace export run.wtrace --to perfetto",
        "check set.toml -m 2",
        "study list",
        "--help",
    ] {
        // The reader has gone when the first byte is written.
        let script = format!("exec 3>&1; {{ sleep 0.2; $W {command}; echo $? >&3; }} | true");
        let output = shell(dir.path(), &script);
        assert_eq!(stderr(&output), "", "{command}");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "0\n", "{command}");
    }
    let output = shell(dir.path(), "exec $W check set.toml -m 2 >&- 2>&-");
    assert_eq!(output.status.code(), Some(0));
}

/// From what a process needs to begin up to what it needs to end well.
#[test]
fn little_memory_is_a_sentence() {
    let dir = inputs();
    let axes = "caps = { from = 1, to = 2, step = 0.5 }\ndelays = { from = \"500us\" }\n";
    std::fs::write(dir.path().join("study.toml"), format!("{STUDY}{axes}")).unwrap();
    // With less not even this runs: the system cannot load the program.
    let runs = |kib: u32| {
        let done = shell(dir.path(), &format!("ulimit -v {kib}; exec $W --version"));
        done.status.success()
    };
    let (mut too_little, mut least) = (0, 1_000_000);
    while least - too_little > 100 {
        let middle = (too_little + least) / 2;
        *(if runs(middle) {
            &mut least
        } else {
            &mut too_little
        }) = middle;
    }
    let mut refused = 0;
    for command in [
        "check set.toml -m 2",
        "check --batch batch.jsonl --tests GFB",
        "simulate set.toml --policy g-edf -m 2",
        "simulate --batch batch.jsonl --policy g-edf",
        "generate --tasks 4 --total 1 --sets 2000 -m 2",
        "study run study.toml -o study-of-little-memory",
        "report --profile xeon-l7455 --figures figures",
        "trace check run.wtrace",
    ] {
        let mut tried = vec![
            300, 500, 1_000, 2_000, 4_000, 8_000, 20_000, 100_000, 2_000_000,
        ];
        // Around what threads need, where one of them may begin and not get on.
        if command.starts_with("generate") {
            tried.extend((1_000..7_000).step_by(50));
        }
        for more in tried {
            let kib = least + more;
            let output = shell(dir.path(), &format!("ulimit -v {kib}; exec $W {command}"));
            let said = stderr(&output);
            assert_eq!(output.status.signal(), None, "{command}, {kib} KiB: {said}");
            match output.status.code() {
                Some(0 | 1) => {}
                _ => {
                    is_refused(command, &output);
                    refused += 1;
                }
            }
            let _ = std::fs::remove_dir_all(dir.path().join("study-of-little-memory"));
        }
    }
    assert!(refused > 0, "no limit was too little");
}

/// The limits of docs/threats.md, within 2 GB of memory.
#[test]
fn inputs_that_no_one_has_are_refused_and_take_little_memory() {
    let dir = inputs();
    let path = |name: &str| dir.path().join(name);
    // What takes most memory for its size: a table for every six bytes, or for every two.
    std::fs::write(
        path("tables.toml"),
        format!("x = [{}]\n", "{a=1},".repeat(499_999)),
    )
    .unwrap();
    std::fs::write(
        path("more.toml"),
        format!("x = [{}]\n", "{a=1},".repeat(500_000)),
    )
    .unwrap();
    let dots = format!("{{{}=1}},", ["a"; 60].join("."));
    std::fs::write(path("dots.toml"), format!("x = [{}]\n", dots.repeat(8_000))).unwrap();
    std::fs::write(
        path("large.toml"),
        "[[task]]\nwcet = \"1ms\"\nperiod = \"4ms\"\n".repeat(300_000),
    )
    .unwrap();
    std::fs::write(
        path("long.toml"),
        format!("{} = 1\n", "k".repeat(8_000_000)),
    )
    .unwrap();
    let line = format!(
        r#"{{"id":[{}0],"m":2,"tasks":[]}}"#,
        r#"{"a":0},"#.repeat(1_000_000)
    );
    std::fs::write(path("id.jsonl"), line).unwrap();
    std::fs::write(path("line.jsonl"), " ".repeat((64 << 20) + 1)).unwrap();
    let axes = "caps = { from = 1, to = 2, step = 0.001 }\n\
                delays = { from = \"0us\", to = \"90ms\", step = \"1us\" }\n";
    std::fs::write(path("study.toml"), format!("{STUDY}{axes}")).unwrap();
    for (command, cause) in [
        ("check tables.toml -m 2", "unknown key `x`"),
        ("check dots.toml -m 2", "unknown key `x`"),
        (
            "check more.toml -m 2",
            "more than 500000 tables, lists and dots",
        ),
        ("check large.toml -m 2", "the text is larger than 8 MiB"),
        (
            "simulate large.toml --policy g-edf -m 2",
            "the text is larger than 8 MiB",
        ),
        (
            "check set.toml --platform large.toml",
            "the text is larger than 8 MiB",
        ),
        ("profile show large.toml", "the text is larger than 8 MiB"),
        ("study run large.toml", "the text is larger than 8 MiB"),
        ("convert large.toml", "the text is larger than 8 MiB"),
        ("check long.toml -m 2", "unknown key `kkk"),
        (
            "check --batch id.jsonl --tests GFB",
            "the `id` has more than 1000 values",
        ),
        (
            "check --batch line.jsonl --tests GFB",
            "the line is longer than 64 MiB",
        ),
        (
            "simulate --batch line.jsonl --policy g-edf",
            "the line is longer than 64 MiB",
        ),
        ("study run study.toml", "counts"),
    ] {
        let script = format!("ulimit -v 2000000; exec $W {command}");
        let said = is_refused(&script, &shell(dir.path(), &script));
        assert!(said.contains(cause), "{command}: {said}");
        assert!(said.len() < 1000, "{command}: {said}");
    }
}

/// Renaming a file into the place of the one that the shell opened would lose what is in it.
#[test]
fn dev_stdout_is_standard_output() {
    let dir = inputs();
    let script = "echo first > out; $W trace export run.wtrace --to csv --to-time 20ms -o /dev/stdout >> out; \
                  echo last >> out";
    let done = shell(dir.path(), script);
    assert!(done.status.success(), "{}", stderr(&done));
    let text = std::fs::read_to_string(dir.path().join("out")).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!((lines[0], *lines.last().unwrap()), ("first", "last"));
    assert!(
        lines[1].starts_with("time_ns,") && lines.len() > 10,
        "{text}"
    );
    // One writer goes on where the other has ended.
    let script = "$W simulate set.toml --policy g-edf -m 2 --for 40ms --trace /dev/stdout > both";
    assert!(shell(dir.path(), script).status.success());
    let both = std::fs::read(dir.path().join("both")).unwrap();
    assert!(both.starts_with(b"WARMTRC\n"));
    assert!(
        String::from_utf8_lossy(&both).contains("40ms"),
        "the answer stands behind the trace"
    );
}
