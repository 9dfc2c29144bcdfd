//! Every command that a page of the documentation shows is called as it stands there, one after
//! another in a directory of the page, which has the files that the page speaks of. What would take
//! too long is called with less to do; of what this machine may not permit, or what takes hours, the
//! words are read. Which those are, and why, stands in one table.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::Mutex;

use model::profile::{Intervals, OverheadCurve, OverheadPoint};
use model::{Delay, Duration, OverheadKind, Profile, Provenance};
use testing::{NotRun, Outcome};

/// How a command is tried that is not called as it stands.
#[derive(Clone, Copy)]
enum Tried {
    /// With the second text of each pair in the place of the first.
    With(&'static [(&'static str, &'static str)]),
    /// With these options besides.
    And(&'static str),
    /// For 300 ms where something can be run for real here; else its words are read.
    Real,
    /// Its words are read, for this reason.
    Read(&'static str),
}
use Tried::{And, Read, Real, With};

const MEASURES: &str = "it measures this machine for minutes";
const COLORS: &str = "it takes memory by physical addresses, as root";
const PROGRAM: &str = "the program is the reader's own";
const DASK: &str = "it needs a scheduler of Dask: crates/python/tests/test_dask.py";
const VALIDATES: &str = "it runs sets for real for minutes";

// A study each in the place of its family.
const SOFT: &str = "6.3-soft ";
const SOFT_ONE: &str = "6.3-soft-uniform-light-short ";
const HARD_ONE: &str = "6.3-hard-uniform-light-short ";
const SEMI_ONE: &str = "6.4-hard-uniform-light-short ";

/// By page and by what a command has in it; the first that fits counts. A row that fits no command
/// is a defect.
const OTHERWISE: &[(&str, &str, Tried)] = &[
    ("", "--dask", Read(DASK)),
    ("", "warmset measure task", Read(PROGRAM)),
    ("", "warmset measure wss", Read(PROGRAM)),
    ("", "warmset measure", Read(MEASURES)),
    ("", "warmset validate", Read(VALIDATES)),
    ("", "warmset color", Read(COLORS)),
    (
        "",
        "--engine kernel",
        Read("it needs a kernel with sched_ext: make test-kernel"),
    ),
    ("programs", "warmset run", Read(PROGRAM)),
    (
        "running",
        "--release-at 2026",
        Read("the moment has passed"),
    ),
    ("running", "--release-at @", Read("the moment has passed")),
    (
        "running",
        "--for 60s &",
        Read("it waits for what others write"),
    ),
    (
        "running",
        "--switch-every",
        With(&[("5s --for 30s", "500ms --for 1s")]),
    ),
    ("colors", "warmset run", Read(COLORS)),
    ("advising", "walks.toml --plan", Read(COLORS)),
    ("", "warmset run", Real),
    ("cache", "cache matrix", And("--slices 2ms")),
    (
        "cache",
        "cache sets --platform core-i7 --journal",
        And("--sets 1 --for 100ms"),
    ),
    (
        "cache",
        "cache sets --platform core-i7 --pattern random",
        With(&[("--sets 10", "--sets 1 --for 100ms")]),
    ),
    (
        "cache",
        "cache sets",
        With(&[("--sets 2 --for 20s", "--sets 1 --for 100ms")]),
    ),
    ("cache", "cache videos", And("--videos 1 --for 50ms")),
    (
        "cache",
        "figures/large.toml",
        With(&[("--for 20s", "--for 1s")]),
    ),
    (
        "cache",
        "cache multicore",
        With(&[("--sets 10 --jobs 20", "--sets 1 --jobs 1 --wss 32KiB")]),
    ),
    ("simulating", "--for 2000000s", With(&[("2000000s", "20s")])),
    (
        "observations",
        "--factors 0,0.02",
        With(&[("0,0.02,0.05,0.1,0.2,0.5,1,2", "0,1")]),
    ),
    (
        "observations",
        "observe DIR",
        Read("it asks for 27 studies of files that the page describes"),
    ),
    ("observations", "--factors", With(&[("0,1,2,4,8", "0,1")])),
    (
        "observations",
        "--sets 100 ",
        With(&[(SOFT, SOFT_ONE), ("--sets 100", "--sets 1")]),
    ),
    (
        "observations",
        "--sets 20 ",
        With(&[("6.3 ", HARD_ONE), ("--sets 20", "--sets 1")]),
    ),
    (
        "observations",
        "--sets 200 ",
        With(&[("6.3 ", HARD_ONE), ("--sets 200", "--sets 1")]),
    ),
    (
        "observations",
        "--sets 400 ",
        With(&[("6.4 ", SEMI_ONE), ("--sets 400", "--sets 1")]),
    ),
    (
        "studies",
        "--sets 100 ",
        With(&[(SOFT, SOFT_ONE), ("--sets 100", "--sets 1")]),
    ),
    (
        "studies",
        "bastoni11-fig6.4a",
        With(&[(
            "bastoni11-fig6.4a",
            "bastoni11-6.3-hard-uniform-light-short --sets 1",
        )]),
    ),
    ("", "warmset study run", And("--sets 2")),
    (
        "reproduced",
        "reproduce 002-fig6.4",
        Read("it takes a minute, with --full hours"),
    ),
];

/// Task sets and other files that pages speak of, in each directory.
const TASKS: &str = r#"
[[task]]
name = "camera"
wcet = "4ms"
period = "33ms"
wss = "16KiB"
priority = 80
[[task]]
name = "control"
wcet = "1ms"
period = "5ms"
wss = "4KiB"
priority = 90
"#;

const BY_COLORS: &str = r#"
[[task]]
name = "decode"
wcet = { shared = "12ms", "2" = "9ms", "4" = "6ms", "8" = "5500us" }
period = "33ms"
"#;

const ACCESSES: &str = "I  04001090,3\n S 1ffeffe7e0,8\n L 04222caf,8\n M 0421c7cc,4\n";

const TIMERLAT: &str = "# RTLA timerlat histogram
# Time unit is microseconds (us)
# Duration:   0 00:00:01
Index   IRQ-000   Thr-000   IRQ-001   Thr-001
1          1000       500      1000       500
7             0       500         0       500
over:         0         0         0         0
count:     1000      1000      1000      1000
min:          1         1         1         1
avg:          1         4         1         4
max:          1         7         1         9
";

/// What is done before the commands of a page, and before which section.
const BEFORE: &[(&str, &str, &str)] = &[
    (
        "simulating",
        "",
        "warmset generate --tasks 4 --total 1 -m 2 --sets 3 -o sets.jsonl",
    ),
    (
        "exchange",
        "Task sets",
        "warmset convert tasks.toml -o workload.json",
    ),
    (
        "exchange",
        "Task sets",
        "warmset convert tasks.toml --to simso -m 2 -o simulation.xml",
    ),
    (
        "exchange",
        "Task sets",
        "warmset convert tasks.toml --to cheddar -m 2 --unit 1ms -o project.xmlv3",
    ),
    ("running", "", "warmset convert tasks.toml -o workload.json"),
    (
        "profiles",
        "SchedCAT's tables",
        "warmset profile export xeon-l7455 --statistic maximum --load load -o pmo_stat=max.csv",
    ),
    (
        "studies",
        "On many machines",
        "for i in $(seq 16); do warmset study run study.toml --sets 2 --threads 1 --shard $i/16 \
         -o share$i || exit 3; done; rm -r share1",
    ),
    ("studies", "On many machines", "cp -r share2 share1"),
    (
        "studies",
        "Competitive ranges",
        "warmset study run ospert10-fig5 --sets 2 -o fig5",
    ),
    (
        "studies",
        "The explorer",
        "cp -r fig5 light; cp -r fig5 heavy",
    ),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The pages that show commands, by name.
fn pages() -> Vec<(String, String)> {
    let docs = std::fs::read_dir(root().join("docs")).expect("docs");
    let mut paths: Vec<PathBuf> = docs.map(|entry| entry.expect("an entry").path()).collect();
    paths.extend([root().join("README.md"), root().join("CONTRIBUTING.md")]);
    paths.retain(|path| path.extension().is_some_and(|e| e == "md"));
    paths.sort();
    let read = |path: PathBuf| {
        let name = path
            .file_stem()
            .expect("a name")
            .to_string_lossy()
            .into_owned();
        (name, std::fs::read_to_string(path).expect("a page"))
    };
    paths.into_iter().map(read).collect()
}

/// A command without what the page says beside it.
fn without_remark(line: &str) -> &str {
    let comment = line.find(" #").unwrap_or(line.len());
    let line = &line[..comment];
    // Words in columns are options; a sentence does not begin with a dash.
    let gaps = line.match_indices("   ").map(|(at, _)| at);
    let remark = gaps
        .filter(|at| !line[*at..].trim_start().starts_with('-'))
        .find(|at| !line[*at..].trim_start().is_empty());
    line[..remark.unwrap_or(line.len())].trim_end()
}

/// The commands of a page, each with the section that it stands in.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut section = String::new();
    let mut goes_on = false;
    for line in page.lines() {
        if let Some(title) = line.strip_prefix('#') {
            section = title.trim_matches(['#', ' ']).to_owned();
            continue;
        }
        let Some(code) = line.strip_prefix("    ") else {
            assert!(!goes_on, "a command ends within: {line}");
            continue;
        };
        if goes_on {
            let (_, command) = found.last_mut().expect("a command that goes on");
            command.push(' ');
            command.push_str(code.trim_end_matches('\\').trim());
            goes_on = code.ends_with('\\');
            continue;
        }
        let code = code
            .replacen("target/release/warmset ", "warmset ", 1)
            .replacen("cargo run -p warmset -- ", "warmset ", 1);
        let begins = |with: &&str| code.starts_with(*with);
        if ["warmset ", "source <(warmset ", "mkdir "]
            .iter()
            .any(begins)
        {
            goes_on = code.ends_with('\\');
            let command = without_remark(code.trim_end_matches('\\')).to_owned();
            found.push((section.clone(), command));
        }
    }
    found
}

fn written(dir: &Path, name: &str, text: impl AsRef<[u8]>) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().expect("a directory")).expect("made");
    std::fs::write(path, text).expect("written");
}

fn copied(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("made");
    for entry in std::fs::read_dir(from).expect("a directory") {
        let entry = entry.expect("an entry");
        let there = to.join(entry.file_name());
        match entry.file_type().expect("a type").is_dir() {
            true => copied(&entry.path(), &there),
            false => std::fs::copy(entry.path(), there)
                .map(drop)
                .expect("copied"),
        }
    }
}

/// A profile as this machine might have: delays that are known to 2 %, and overheads.
fn measured() -> Profile {
    let mut profile = Profile::builtin("xeon-l7455").expect("it is built in");
    profile.platform = "this-machine".to_owned();
    profile.provenance = Provenance::default();
    for point in profile.cpmd.iter_mut().flat_map(|curve| &mut curve.points) {
        let Some(average) = point.average else {
            continue;
        };
        let (ns, part) = (average.nanos(), (average.nanos() / 50).abs());
        point.average_interval = Some((Delay::from_nanos(ns - part), Delay::from_nanos(ns + part)));
    }
    let curve = |kind| OverheadCurve {
        kind,
        policy: String::new(),
        code: None,
        points: vec![OverheadPoint {
            tasks: 4,
            samples: 100,
            average: Some(Duration::from_micros(2)),
            maximum: Some(Duration::from_micros(3)),
            untrimmed: None,
            intervals: Intervals::default(),
        }],
    };
    profile.overheads = OverheadKind::ALL.into_iter().map(curve).collect();
    profile
}

/// What a section finds: the files that are not made by a command of its page.
fn given(dir: &Path, page: &str, section: &str) {
    let read = |name: &str| std::fs::read(root().join(name)).expect("a file of the repository");
    let tasks = match (page, section) {
        ("advising", "The cache in the search") => BY_COLORS.into(),
        ("exchange", "What Linux scheduled") => read("examples/linux/tasks.toml"),
        _ => TASKS.into(),
    };
    written(dir, "tasks.toml", tasks);
    written(dir, "set.toml", TASKS);
    written(dir, "ls.trace", ACCESSES);
    written(dir, "timerlat.txt", TIMERLAT);
    written(
        dir,
        "latencies.txt",
        read("crates/model/src/latency/cyclictest.txt"),
    );
    written(dir, "sched.txt", read("examples/linux/sched.txt"));
    written(dir, "study.toml", read("examples/study/board.toml"));
    let profile = model::profilefile::to_toml(&measured());
    for place in ["out", "here", "cpmd", "overheads", "warmset-report", "DIR"] {
        written(dir, &format!("{place}/profile.toml"), &profile);
    }
    for place in ["morning", "evening", "first", "second"] {
        written(dir, &format!("{place}/profile.toml"), &profile);
    }
    for name in ["profile.toml", "board-profile.toml"] {
        written(dir, name, &profile);
    }
    // A description of a board, or what it costs.
    if matches!(page, "observations" | "studies") {
        written(dir, "board.toml", &profile);
    }
}

/// A line for the shell, in the directory of a page.
fn shell(dir: &Path, line: &str) -> Output {
    let here = Path::new(env!("CARGO_BIN_EXE_warmset"))
        .parent()
        .expect("a directory");
    let path = std::env::var("PATH").expect("a path");
    Command::new("bash")
        .args(["-o", "pipefail", "-c", line])
        .current_dir(dir)
        .env("PATH", format!("{}:{path}", here.display()))
        .env("HOME", dir)
        .env_remove("WARMSET_PROFILE")
        .env("XDG_DATA_HOME", dir.join("data"))
        .env("SLURM_ARRAY_TASK_ID", "1")
        .stdin(Stdio::null())
        .output()
        .expect("bash starts")
}

fn is_there(program: &str) -> bool {
    let paths = std::env::var_os("PATH").expect("a path");
    std::env::split_paths(&paths).any(|dir| dir.join(program).exists())
}

/// Can anything be run for real here?
fn is_permitted(dir: &Path) -> bool {
    let found = shell(dir, "warmset run tasks.toml --preflight --format json");
    let processors = std::thread::available_parallelism().expect("a number of processors");
    processors.get() > 1 && !String::from_utf8_lossy(&found.stdout).contains("\"refuse\"")
}

/// With a short time in the place of the one that is given.
fn shortly(command: &str) -> String {
    let mut words: Vec<&str> = command.split_whitespace().collect();
    match words.iter().position(|word| *word == "--for") {
        Some(at) => words[at + 1] = "300ms",
        None => words.extend(["--for", "300ms"]),
    }
    words.join(" ")
}

/// Its words are understood: help that is asked for behind them is only given where they are.
fn read(dir: &Path, command: &str) -> Output {
    let mut shown = Vec::new();
    for part in command.split(" && ").flat_map(|part| part.split(" & ")) {
        let part = part.trim_end_matches('&').trim();
        // Behind a program all words are the program's.
        let program = [" -- ", " ./", " PROGRAM"].map(|mark| part.find(mark));
        let end = program.into_iter().flatten().min().unwrap_or(part.len());
        let called = shell(dir, &format!("{} --help", &part[..end]));
        if !called.status.success() || !called.stdout.windows(6).any(|w| w == b"Usage:") {
            return called;
        }
        shown.push(called);
    }
    shown.pop().expect("a command")
}

/// Rows that some command has needed.
static USED: Mutex<BTreeSet<usize>> = Mutex::new(BTreeSet::new());

fn tried(page: &str, command: &str) -> Option<Tried> {
    let fits = |(of, what, _): &(&str, &str, Tried)| {
        (of.is_empty() || *of == page) && format!("{command} ").contains(what)
    };
    let at = OTHERWISE.iter().position(fits)?;
    USED.lock().expect("no panic within").insert(at);
    Some(OTHERWISE[at].2)
}

/// Calls what a page shows; what did not end as it should is what comes back.
fn follow(page: &str, text: &str) -> Vec<String> {
    let place = tempfile::tempdir().expect("a directory");
    let dir = place.path();
    copied(&root().join("examples"), &dir.join("examples"));
    copied(&root().join("examples/figures"), &dir.join("figures"));
    let board = shell(dir, "warmset platform -o board.toml");
    assert!(board.status.success(), "{board:?}");
    let mut wrong = Vec::new();
    let mut at = None;
    let permitted = is_permitted(dir);
    for (section, command) in commands(text) {
        if at.as_ref() != Some(&section) {
            given(dir, page, &section);
            let before = BEFORE.iter().filter(|(of, title, _)| {
                *of == page && (*title == section || title.is_empty() && at.is_none())
            });
            for (_, _, line) in before {
                let done = shell(dir, line);
                assert!(done.status.success(), "{line}: {done:?}");
            }
            at = Some(section.clone());
        }
        let (called, output) = match tried(page, &command) {
            Some(Read(why)) => {
                println!("{page}: read, not called: {command}: {why}");
                (command.clone(), read(dir, &command))
            }
            Some(_) if command.starts_with("warmset run") && !permitted => {
                println!("{page}: read, not called: {command}: nothing runs for real here");
                (command.clone(), read(dir, &command))
            }
            how => {
                let mut line = match how {
                    Some(With(pairs)) => {
                        let less = |line: String, (this, that): &(&str, &str)| {
                            assert!(line.contains(this), "{page}: {line} has no {this}");
                            line.replace(this, that)
                        };
                        pairs.iter().fold(command.clone(), less)
                    }
                    Some(And(more)) => format!("{command} {more}"),
                    Some(Real) => shortly(&command),
                    _ => command.clone(),
                };
                if let Some((first, next)) = line.split_once(" | ") {
                    let program = next.split_whitespace().next().expect("a program");
                    if !is_there(program) {
                        line = first.to_owned();
                    }
                }
                let output = shell(dir, &line);
                (line, output)
            }
        };
        // The answer may be yes or no.
        if !matches!(output.status.code(), Some(0 | 1)) {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            wrong.push(format!("{called}: {}: {said}", output.status));
        }
    }
    wrong
}

fn what_a_page_shows_can_be_called() -> Outcome {
    if !is_there("bash") {
        return Err(NotRun::because("no bash: apt-get install bash"));
    }
    let mut asked = 0;
    let mut wrong = Vec::new();
    for (page, text) in pages() {
        asked += commands(&text).len();
        let of_page = follow(&page, &text);
        wrong.extend(of_page.into_iter().map(|what| format!("{page}: {what}")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(asked > 180, "only {asked} commands were found");
    let used = USED.lock().expect("no panic within");
    let unused = (0..OTHERWISE.len()).filter(|at| !used.contains(at));
    let unused: Vec<_> = unused
        .map(|at| (OTHERWISE[at].0, OTHERWISE[at].1))
        .collect();
    assert!(unused.is_empty(), "no command of a page needs {unused:?}");
    Ok(())
}

fn commands_are_told_from_what_stands_beside_them() {
    for (line, command) in [
        (
            "warmset trace check  run.wtrace",
            "warmset trace check  run.wtrace",
        ),
        ("warmset color list", "warmset color list"),
        (
            "warmset platform            # this machine",
            "warmset platform",
        ),
        (
            "warmset color exec -- PROGRAM   a program in colors",
            "warmset color exec -- PROGRAM",
        ),
        (
            "warmset x filter    -o out      a filter",
            "warmset x filter    -o out",
        ),
    ] {
        assert_eq!(without_remark(line), command);
    }
    let page =
        "# A page\n\n    warmset a \\\n        --b c\n    make x\n\n## Two\n\n    warmset d\n";
    let found = commands(page);
    let expected = [("A page", "warmset a --b c"), ("Two", "warmset d")];
    let expected = expected.map(|(section, command)| (section.into(), command.into()));
    assert_eq!(found, expected);
}

fn words_that_are_not_understood_are_noticed() {
    let dir = tempfile::tempdir().expect("a directory");
    for command in [
        "warmset measure cpmd -o out --quik",
        "warmset color experiment filtre -o out",
        "warmset measure cpmd -o out && warmset measure overheads --sets many -o out",
    ] {
        assert_eq!(
            read(dir.path(), command).status.code(),
            Some(2),
            "{command}"
        );
    }
    let right = read(dir.path(), "warmset measure cpmd -o out --quick");
    assert!(right.status.success(), "{right:?}");
}

fn main() -> ExitCode {
    // A page shows a witness. Where this fails, what it shows says so.
    let _ = testing::tracefs::mounted();
    testing::run(vec![
        testing::trial(
            "what_a_page_shows_can_be_called",
            what_a_page_shows_can_be_called,
        ),
        testing::trial(
            "commands_are_told_from_what_stands_beside_them",
            commands_are_told_from_what_stands_beside_them,
        ),
        testing::trial(
            "words_that_are_not_understood_are_noticed",
            words_that_are_not_understood_are_noticed,
        ),
    ])
}
