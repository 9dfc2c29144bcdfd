//! What needs more of this machine than most tests: caches with colors, several processors, rt-app.

use model::CpuId;
use partition::selftest::ACTS;
use partition::{Geometry, finder};
use rustix::process::{Pid, Signal, kill_process};
use std::cell::RefCell;
use std::path::Path;
use std::process::{Command, Output};
use testing::{NotRun, Outcome, schemas};

fn warmset(dir: &Path, args: &[&str]) -> Output {
    Command::new(assert_cmd::cargo::cargo_bin("warmset"))
        .current_dir(dir)
        .args(args)
        .output()
        .unwrap()
}

/// Standard error of a call that could not be done.
fn refusal(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(2), "{text}");
    assert!(output.stdout.is_empty(), "a refusal prints no result");
    text
}

/// Why a level of cache has no colors by its geometry,
const NO_COLORS: [&str; 4] = [
    "has one color",
    "is hashed over slices",
    "is too large to be searched",
    "does not tell size and associativity",
];
/// and why none are told apart. Any other reason is a defect.
const CANNOT_TELL: [&str; 3] = [
    "could not be told apart for sure",
    "cannot be told apart: reading one takes",
    "its pages have no color",
];

/// Do colors act on a level, by what `color selftest` says of it? If not, why.
fn acts(seen: &serde_json::Value) -> Result<(), String> {
    let reason = || {
        let why = seen["reason"].as_str().unwrap();
        let mut known = NO_COLORS.iter().chain(&CANNOT_TELL);
        assert!(known.any(|known| why.contains(known)), "{why}");
        Err(why.to_owned())
    };
    match seen["result"].as_str().unwrap() {
        "no-colors" | "unsure" => reason(),
        "tested" => {
            let ways = seen["cache"]["ways"].as_u64().unwrap();
            let points = seen["points"].as_array().unwrap();
            assert!(points.len() as u64 > ways, "{seen}");
            let at = |pages: u64| {
                let point = points.iter().find(|p| p["pages"] == pages);
                point.map(|p| p["ratio"].as_f64().unwrap())
            };
            let (beyond, within) = (at(ways + 1).unwrap(), at(ways / 2));
            // The answer is what the points say.
            let acts = beyond >= ACTS && within.is_none_or(|ratio| ratio < ACTS);
            assert_eq!(seen["acts"], acts, "{seen}");
            acts.then_some(()).ok_or_else(|| {
                format!(
                    "{} pages of one color take {beyond:.2} times as long as of all, {} {within:?}",
                    ways + 1,
                    ways / 2
                )
            })
        }
        other => panic!("{other}"),
    }
}

/// The ways of a level of cache and how many pages each holds, where that makes colors.
fn colored(level: u64) -> Option<(CpuId, usize, usize)> {
    let platform = machine::this_machine().unwrap().platform;
    let cpu = platform.usable().lowest().unwrap();
    let geometry = Geometry::of(&platform, u8::try_from(level).unwrap(), cpu).ok()?;
    finder::colorable(&geometry).ok()?;
    Some((cpu, geometry.ways as usize, usize::from(geometry.colors)))
}

/// Do colors show at a level without anybody who looks for them?
fn shows(level: u64) -> bool {
    colored(level).is_some_and(|(cpu, ways, colors)| {
        testing::colors::look(ways, colors, cpu, 200).shows_colors()
    })
}

fn colors_act_on_every_level_that_has_some() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let levels = machine::this_machine().unwrap().platform.data_levels();
    let levels: Vec<u64> = levels.into_iter().map(u64::from).collect();
    if levels.iter().all(|level| colored(*level).is_none()) {
        return Err(NotRun::because("no cache of this machine has colors"));
    }
    let showing = RefCell::new(Vec::new());
    testing::colors::works(
        || {
            let now = levels.iter().copied().filter(|level| shows(*level));
            showing.replace(now.collect());
            !showing.borrow().is_empty()
        },
        || {
            let out = warmset(
                dir.path(),
                &["color", "selftest", "--repeats", "3", "--format", "json"],
            );
            let status = out.status.code().unwrap();
            assert!(status < 2, "{}", String::from_utf8_lossy(&out.stderr));
            let seen: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
            schemas::hold("color-selftest", &seen);
            let seen = seen["levels"].as_array().unwrap();
            assert_eq!(seen.len(), levels.len());
            let told: Vec<_> = seen.iter().filter(|l| l["result"] != "no-colors").collect();
            let all = !told.is_empty() && told.iter().all(|l| l["acts"] == true);
            assert_eq!(status == 0, all, "the status is the answer");
            let mut acting = 0;
            let mut failed = String::new();
            // In the order of the platform.
            for (level, seen) in levels.iter().zip(seen) {
                let known = colored(*level).is_some();
                match acts(seen) {
                    Ok(()) if known => acting += 1,
                    Ok(()) => panic!("level {level} has no colors by its geometry"),
                    Err(why) if showing.borrow().contains(level) => failed = why,
                    Err(why) => {
                        let by_geometry = NO_COLORS.iter().any(|known| why.contains(known));
                        assert_eq!(by_geometry, !known, "level {level}: {why}");
                    }
                }
            }
            match failed.is_empty() && acting > 0 {
                true => Ok(()),
                false if failed.is_empty() => Err("colors act on no level".to_owned()),
                false => Err(failed),
            }
        },
    )
}

fn a_first_level_has_one_color() -> Outcome {
    let machine = machine::this_machine().unwrap();
    let cpu = machine.platform.usable().lowest().unwrap();
    let cache = machine.platform.data_cache(1, cpu);
    let Some((size, ways)) = cache.and_then(|c| Some((c.size?, c.ways?))) else {
        return Err(NotRun::because(
            "this machine does not tell what its first-level cache is like",
        ));
    };
    if size.get() / u64::from(ways) > 4096 {
        return Err(NotRun::because(
            "the first-level cache of this machine has colors",
        ));
    }
    let dir = tempfile::tempdir().unwrap();
    let e = refusal(&warmset(dir.path(), &["color", "find", "--level", "1"]));
    assert!(e.contains("one color"), "{e}");
    Ok(())
}

fn a_processor_outside_of_the_affinity_is_refused() -> Outcome {
    let cpus: Vec<CpuId> = machine::realtime::affinity().unwrap().iter().collect();
    let [first, .., last] = cpus[..] else {
        return Err(NotRun::because("this process may use one processor only"));
    };
    let output = std::thread::spawn(move || {
        let dir = tempfile::tempdir().unwrap();
        machine::realtime::pin_to(first).unwrap();
        let last = last.to_string();
        warmset(
            dir.path(),
            &["measure", "cpmd", "--cpus", &last, "-o", "measured"],
        )
    })
    .join()
    .unwrap();
    let e = refusal(&output);
    assert!(
        e.contains(&format!("processor {last} is not permitted")),
        "{e}"
    );
    Ok(())
}

const TASKS: &str = r#"
[[task]]
name = "camera"
wcet = "2ms"
period = "20ms"
deadline = "15ms"
[[task]]
name = "control"
wcet = "300us"
period = "5ms"
phase = "1ms"
wss = "64KiB"
"#;

/// rt-app itself reads what is written and runs it.
fn the_real_rt_app_accepts_what_is_written() -> Outcome {
    if let Err(e) = Command::new("rt-app").arg("--help").output() {
        return Err(NotRun::because(format!("rt-app cannot be started: {e}")));
    }
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tasks.toml"), TASKS).unwrap();
    let made = warmset(
        dir.path(),
        &["convert", "tasks.toml", "-o", "work.json", "--for", "1s"],
    );
    assert!(made.status.success(), "{made:?}");
    let ran = Command::new("rt-app")
        .arg("work.json")
        .current_dir(dir.path())
        .output()
        .unwrap();
    let told =
        String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
    if told.contains("ermission") || told.contains("not permitted") {
        return Err(NotRun::because("rt-app has no right to SCHED_DEADLINE"));
    }
    assert!(ran.status.success(), "{told}");
    // One log a thread, with a line for every job: 50 and 200 in a second, fewer on a machine that
    // is late.
    let logs: Vec<String> = std::fs::read_dir(dir.path())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|e| e == "log"))
        .map(|path| std::fs::read_to_string(path).unwrap())
        .collect();
    assert_eq!(logs.len(), 2, "{told}");
    assert!(
        logs.iter()
            .all(|log| log.lines().filter(|l| !l.starts_with('#')).count() > 1),
        "{logs:?}"
    );
    Ok(())
}

/// What became of a command that was sent a signal.
struct Interrupted {
    status: Option<i32>,
    /// What it said on standard error.
    said: String,
    /// What it showed on standard output.
    shown: String,
}

/// Starts the command and sends it the signal when `begun` says so of its process, or when it has
/// ended: then nothing is sent.
fn interrupted(
    dir: &Path,
    args: &[&str],
    signal: Signal,
    begun: impl Fn(&str) -> bool,
) -> Interrupted {
    let file = |name: &str| std::fs::File::create(dir.join(name)).unwrap();
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("warmset"))
        .current_dir(dir)
        .args(args)
        .stdin(std::process::Stdio::null())
        .stdout(file("shown"))
        .stderr(file("said"))
        .spawn()
        .unwrap();
    let process = format!("/proc/{}", child.id());
    while child.try_wait().unwrap().is_none() && !begun(&process) {
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    if child.try_wait().unwrap().is_none() {
        kill_process(Pid::from_child(&child), signal).unwrap();
    }
    let status = child.wait().unwrap().code();
    let text = |name: &str| std::fs::read_to_string(dir.join(name)).unwrap();
    Interrupted {
        status,
        said: text("said"),
        shown: text("shown"),
    }
}

/// A line of what the kernel says of a process, by the word before it.
fn status_of(process: &str, word: &str) -> Option<String> {
    let text = std::fs::read_to_string(format!("{process}/status")).ok()?;
    let line = text.lines().find_map(|line| line.strip_prefix(word))?;
    Some(line.trim().to_owned())
}

/// Does the process handle this signal by now?
fn handles(process: &str, signal: Signal) -> bool {
    status_of(process, "SigCgt:")
        .and_then(|mask| u64::from_str_radix(&mask, 16).ok())
        .is_some_and(|mask| mask & 1 << (signal.as_raw() - 1) != 0)
}

/// To end it is what a server is told; to break off its preparation is another thing.
fn a_memory_server_that_served_ends_well_and_one_that_did_not_says_so() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let serve = |size| ["color", "serve", "--socket", "s", "--size", size];
    for (signal, status) in [(Signal::INT, 130), (Signal::TERM, 143)] {
        let ended = interrupted(dir.path(), &serve("512MiB"), signal, |process| {
            handles(process, signal)
        });
        assert_eq!(ended.status, Some(status), "{}", ended.said);
        ends_with_a_sentence(&ended);
        assert!(!dir.path().join("s").exists(), "its socket is gone");
        let serves = || {
            let said = std::fs::read_to_string(dir.path().join("said")).unwrap();
            said.lines().any(|line| line.starts_with("serving"))
        };
        let ended = interrupted(dir.path(), &serve("16MiB"), signal, |_| {
            let serves = serves();
            if serves {
                lists(dir.path());
            }
            serves
        });
        if !serves() {
            assert_eq!(ended.status, Some(2), "{}", ended.said);
            return Err(NotRun::because(format!(
                "it cannot serve here: {}",
                ended.said
            )));
        }
        assert_eq!(ended.status, Some(0), "{}", ended.said);
        assert!(!dir.path().join("s").exists(), "its socket is gone");
        assert!(
            dir.path().join("s.state").exists(),
            "what the next server should know stays"
        );
    }
    Ok(())
}

/// A server that serves says what it has.
fn lists(dir: &Path) {
    let args = ["color", "list", "--socket", "s", "--format", "json"];
    let out = warmset(dir, &args);
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(0), "{said}");
    let list: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    schemas::hold("color-list", &list);
    let pages = list["pages"].as_array().unwrap();
    let free: u64 = pages.iter().map(|p| p["free"].as_u64().unwrap()).sum();
    assert!(free > 0, "{list}");
}

fn ends_with_a_sentence(ended: &Interrupted) {
    let last = ended.said.lines().last().unwrap_or_default();
    assert!(last.starts_with("warmset: "), "{}", ended.said);
}

fn a_search_that_is_stopped_says_so() {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["color", "find", "--sort", "512MiB"][..],
        &["color", "selftest", "--repeats", "1000"],
        &["color", "experiment", "filter", "--runs", "1000"],
    ] {
        let ended = interrupted(dir.path(), args, Signal::INT, |process| {
            handles(process, Signal::INT)
        });
        assert_eq!(ended.status, Some(130), "{args:?}: {}", ended.said);
        ends_with_a_sentence(&ended);
    }
}

/// Its colors were lost when it was stopped later, while it sorted memory.
fn a_search_that_is_stopped_while_it_sorts_shows_the_colors_that_it_has_found() -> Outcome {
    const SORTED_KIB: u64 = 256 << 10;
    let dir = tempfile::tempdir().unwrap();
    let args = ["color", "find", "--sort", "256MiB", "--format", "json"];
    // All that is sorted is mapped before, when the search is over.
    let sorts = |process: &str| {
        let size = status_of(process, "VmRSS:");
        let kib = size.and_then(|size| size.split(' ').next()?.parse::<u64>().ok());
        kib.is_some_and(|kib| kib >= SORTED_KIB)
    };
    let ended = interrupted(dir.path(), &args, Signal::INT, sorts);
    if ended.status == Some(2) {
        return Err(NotRun::because(format!(
            "no memory is sorted here: {}",
            ended.said
        )));
    }
    assert_eq!(ended.status, Some(130), "{}", ended.said);
    ends_with_a_sentence(&ended);
    let found: serde_json::Value = serde_json::from_str(&ended.shown).unwrap();
    schemas::hold("color-find", &found);
    assert!(found["colors"].as_u64().unwrap() > 1, "{found}");
    assert!(found.get("sorted").is_none(), "{found}");
    Ok(())
}

/// What the processes of a program took of their colors stands in the document of `--output`.
fn a_program_in_colors_is_told_as_its_schema_says() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let args = [
        "color",
        "exec",
        "--colors",
        "0",
        "--memory",
        "8MiB",
        "-o",
        "exec.json",
        "--",
        "true",
    ];
    let out = warmset(dir.path(), &args);
    if out.status.code() == Some(2) {
        return Err(NotRun::because(refusal(&out).trim_end()));
    }
    assert_eq!(out.status.code(), Some(0));
    let text = std::fs::read_to_string(dir.path().join("exec.json")).unwrap();
    let told: serde_json::Value = serde_json::from_str(&text).unwrap();
    schemas::hold("color-exec", &told);
    assert_eq!(told["processes"][0]["name"], "true", "{told}");
    Ok(())
}

/// Runs in two numbers of colors, larger than what the fewer ones have room for: the table of WCETs
/// that comes of them is one that a task set takes.
fn a_program_is_timed_in_colors_and_a_task_takes_what_is_told() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let args =
        "measure task --colors 2,1 --runs 2 --every 1ms --memory 8MiB --format json -- sh -c";
    let mut args: Vec<&str> = args.split(' ').collect();
    args.push("i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; echo much");
    let out = warmset(dir.path(), &args);
    if out.status.code() == Some(2) {
        return Err(NotRun::because(refusal(&out).trim_end()));
    }
    let told: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    schemas::hold("measure-task", &told);
    let rows = told["rows"].as_array().unwrap();
    let kinds = rows.len() / 3;
    assert!(kinds == 2 || kinds == 4, "{told}");
    for (place, colors) in [None, Some(1), Some(2)].into_iter().enumerate() {
        for row in &rows[place * kinds..(place + 1) * kinds] {
            assert_eq!(row["colors"].as_u64(), colors, "{row}");
            assert!(row["min_ns"].as_u64().unwrap() > 100_000, "{row}");
        }
    }
    // Colors that make it slower are left out.
    let wcets = told["wcet"].as_array().unwrap();
    assert!(wcets[0]["colors"].is_null(), "{told}");
    let times: Vec<u64> = wcets
        .iter()
        .map(|w| w["wcet_ns"].as_u64().unwrap())
        .collect();
    assert!(times.is_sorted_by(|fewer, more| fewer >= more), "{told}");
    assert!(told["start_ns"].as_u64().unwrap() > 0, "{told}");
    // As people see it; the set is taken with a number of colors.
    let shown = warmset(
        dir.path(),
        &[
            "measure", "task", "--colors", "1", "--runs", "1", "--memory", "8MiB", "--", "true",
        ],
    );
    let shown = String::from_utf8(shown.stdout).unwrap();
    let key = shown
        .lines()
        .find(|line| line.starts_with("wcet = "))
        .unwrap();
    let set = format!("[[task]]\nname = \"a\"\n{key}\nperiod = \"10s\"\n");
    std::fs::write(dir.path().join("set.toml"), set).unwrap();
    let judged = warmset(
        dir.path(),
        &["check", "set.toml", "-m", "1", "--policy", "p-edf"],
    );
    assert_eq!(judged.status.code(), Some(0), "{key}");
    Ok(())
}

testing::tests!(alone:
    a_program_is_timed_in_colors_and_a_task_takes_what_is_told,
    a_memory_server_that_served_ends_well_and_one_that_did_not_says_so,
    a_search_that_is_stopped_says_so,
    a_search_that_is_stopped_while_it_sorts_shows_the_colors_that_it_has_found,
    colors_act_on_every_level_that_has_some,
    a_first_level_has_one_color,
    a_processor_outside_of_the_affinity_is_refused,
    a_program_in_colors_is_told_as_its_schema_says,
    the_real_rt_app_accepts_what_is_written,
);
