//! What needs more of this machine than most tests: caches with colors, several processors, rt-app.

use model::CpuId;
use partition::selftest::ACTS;
use std::path::Path;
use std::process::{Command, Output};
use testing::{NotRun, Outcome};

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

/// Why a level of cache has no colors, or none that can be told apart. Any other reason is a
/// defect.
const NO_COLORS: [&str; 6] = [
    "has one color",
    "is hashed over slices",
    "is too large to be searched",
    "does not tell size and associativity",
    "cannot be told apart: reading one takes",
    "its pages have no color",
];

/// What came of testing a level.
enum Level {
    Acts,
    /// It has no colors, or they cannot be told apart while others use the machine.
    CannotTell(String),
    DoesNotAct(String),
}

fn level(seen: &serde_json::Value) -> Level {
    let reason = || seen["reason"].as_str().unwrap().to_owned();
    match seen["result"].as_str().unwrap() {
        "no-colors" => {
            let why = reason();
            assert!(NO_COLORS.iter().any(|known| why.contains(known)), "{why}");
            Level::CannotTell(why)
        }
        "unsure" => {
            assert!(reason().contains("could not be told apart for sure"), "{seen}");
            Level::CannotTell(reason())
        }
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
            match within {
                _ if acts => Level::Acts,
                Some(ratio) if ratio >= ACTS => Level::CannotTell(format!(
                    "others use the cache: {} pages of one color drive each other out of {ways} ways",
                    ways / 2
                )),
                _ => Level::DoesNotAct(seen.to_string()),
            }
        }
        other => panic!("{other}"),
    }
}

fn colors_act_on_every_level_that_has_some() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let mut why = String::new();
    // Several times: what else runs on the machine may pass.
    for attempt in 1..=4 {
        let out = warmset(
            dir.path(),
            &["color", "selftest", "--repeats", "3", "--format", "json"],
        );
        let status = out.status.code().unwrap();
        assert!(status < 2, "{}", String::from_utf8_lossy(&out.stderr));
        let seen: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
        let levels: Vec<Level> = seen["levels"].as_array().unwrap().iter().map(level).collect();
        assert!(!levels.is_empty());
        let acts = levels.iter().any(|l| matches!(l, Level::Acts));
        let told: Vec<&serde_json::Value> = seen["levels"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|l| l["result"] != "no-colors")
            .collect();
        let all = !told.is_empty() && told.iter().all(|l| l["acts"] == true);
        assert_eq!(status == 0, all, "the status is the answer");
        if all {
            assert!(acts);
            return Ok(());
        }
        why.clear();
        for level in levels {
            match level {
                Level::Acts => {}
                Level::CannotTell(reason) => why = format!("{why}{reason}; "),
                Level::DoesNotAct(seen) => assert!(attempt < 4, "colors do not act: {seen}"),
            }
        }
        if told.is_empty() {
            break;
        }
    }
    Err(NotRun::because(why.trim_end_matches("; ")))
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
    assert!(e.contains(&format!("processor {last} is not permitted")), "{e}");
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
    let told = String::from_utf8_lossy(&ran.stdout).into_owned() + &String::from_utf8_lossy(&ran.stderr);
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

/// Starts the command, sends the signal when a line on standard error begins so, or as soon as the
/// command handles signals; gives its end and what it said.
fn interrupted(dir: &Path, args: &[&str], signal: i32, when: Option<&str>) -> (Option<i32>, String) {
    use std::io::{BufRead, BufReader, Read};
    let mut child = Command::new(assert_cmd::cargo::cargo_bin("warmset"))
        .current_dir(dir)
        .args(args)
        .stdin(std::process::Stdio::null())
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut stderr = BufReader::new(child.stderr.take().unwrap());
    let mut said = String::new();
    match when {
        Some(begin) => {
            let mut line = String::new();
            while stderr.read_line(&mut line).unwrap() > 0 && !line.starts_with(begin) {
                said += &std::mem::take(&mut line);
            }
            said += &line;
        }
        None => {
            let status = format!("/proc/{}/status", child.id());
            let caught = |text: String| {
                let mask = text
                    .lines()
                    .find_map(|l| l.strip_prefix("SigCgt:"))?
                    .trim()
                    .to_owned();
                Some(u64::from_str_radix(&mask, 16).ok()? & 1 << (signal - 1) != 0)
            };
            while !std::fs::read_to_string(&status)
                .ok()
                .and_then(caught)
                .unwrap_or(true)
            {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
        }
    }
    // SAFETY: the child is not waited for yet, so its number is its own.
    unsafe { libc::kill(child.id() as i32, signal) };
    stderr.read_to_string(&mut said).unwrap();
    (child.wait().unwrap().code(), said)
}

/// To end it is what a server is told; to break off its preparation is another thing.
fn a_memory_server_that_served_ends_well_and_one_that_did_not_says_so() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let serve = |size| ["color", "serve", "--socket", "s", "--size", size];
    for (signal, status) in [(libc::SIGINT, 130), (libc::SIGTERM, 143)] {
        let (code, said) = interrupted(dir.path(), &serve("512MiB"), signal, None);
        assert_eq!(code, Some(status), "{said}");
        assert!(
            said.lines().last().is_some_and(|l| l.starts_with("warmset: ")),
            "{said}"
        );
        assert!(!dir.path().join("s").exists(), "its socket is gone");
        let (code, said) = interrupted(dir.path(), &serve("16MiB"), signal, Some("serving"));
        if !said.contains("serving") {
            assert_eq!(code, Some(2), "{said}");
            return Err(NotRun::because(format!("it cannot serve here: {said}")));
        }
        assert_eq!(code, Some(0), "{said}");
        assert!(!dir.path().join("s").exists(), "its socket is gone");
        assert!(
            dir.path().join("s.state").exists(),
            "what the next server should know stays"
        );
    }
    Ok(())
}

fn a_search_that_is_stopped_says_so() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    for args in [
        &["color", "find", "--sort", "512MiB"][..],
        &["color", "selftest", "--repeats", "1000"],
        &["color", "experiment", "filter", "--runs", "1000"],
    ] {
        let (code, said) = interrupted(dir.path(), args, libc::SIGINT, None);
        assert_eq!(code, Some(130), "{args:?}: {said}");
        assert!(
            said.lines().last().is_some_and(|l| l.starts_with("warmset: ")),
            "{said}"
        );
    }
    Ok(())
}

testing::tests!(alone:
    a_memory_server_that_served_ends_well_and_one_that_did_not_says_so,
    a_search_that_is_stopped_says_so,
    colors_act_on_every_level_that_has_some,
    a_first_level_has_one_color,
    a_processor_outside_of_the_affinity_is_refused,
    the_real_rt_app_accepts_what_is_written,
);
