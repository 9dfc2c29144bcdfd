//! Ctrl-C ends long work with status 130, after a sentence that says what is kept.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    // Each set has a hyperperiod of hours: a simulation of them does not end by itself.
    let set = "[[task]]\nwcet = \"300us\"\nperiod = \"997us\"\n[[task]]\nwcet = \"300us\"\nperiod = \"991us\"\n";
    std::fs::write(dir.path().join("tasks.toml"), set).expect("written");
    // Searching how far these may grow takes minutes.
    let many: String = (0..400)
        .map(|n| {
            format!(
                "[[task]]\nwcet = \"{}us\"\nperiod = \"{}us\"\n",
                900 + n,
                10_007 + 13 * n
            )
        })
        .collect();
    std::fs::write(dir.path().join("many.toml"), many).expect("written");
    dir
}

/// Starts the command, sends SIGINT when `begun` says so, and waits for its end.
fn interrupted(dir: &Path, args: &str, begun: impl Fn() -> bool) -> Output {
    let child = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir)
        .args(args.split_whitespace())
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let pid = i32::try_from(child.id()).expect("a number of a process");
    let patience = Instant::now();
    while !begun() || !handles_interrupt(pid) {
        assert!(
            patience.elapsed() < Duration::from_secs(120),
            "{args} does not begin"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
    tell(&child, libc::SIGINT);
    child.wait_with_output().expect("ended")
}

/// Sends a signal to a child that nobody has waited for yet.
fn tell(child: &Child, signal: i32) {
    let pid = i32::try_from(child.id()).expect("a number of a process");
    // SAFETY: the child is not waited for yet, so its number is its own.
    assert_eq!(unsafe { libc::kill(pid, signal) }, 0);
}

/// Starts a check of sets from standard input and waits until it handles SIGINT.
fn batch(dir: &Path) -> (Child, ChildStdin) {
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir)
        .args(["check", "--batch", "-", "-o", "out.jsonl"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let stdin = child.stdin.take().expect("a pipe");
    wait_for_handler(&child);
    (child, stdin)
}

fn wait_for_handler(child: &Child) {
    let pid = i32::try_from(child.id()).expect("a number of a process");
    let patience = Instant::now();
    while !handles_interrupt(pid) {
        assert!(
            patience.elapsed() < Duration::from_secs(120),
            "the command does not begin"
        );
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Does the process catch SIGINT by now? By what the kernel says of it.
fn handles_interrupt(pid: i32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"));
    let mask = caught
        .and_then(|m| u64::from_str_radix(m.trim(), 16).ok())
        .unwrap_or(0);
    mask & 1 << (libc::SIGINT - 1) != 0
}

/// Status 130, and the last line on standard error is one sentence that says these words.
fn says(out: &Output, words: &[&str]) {
    let said = String::from_utf8_lossy(&out.stderr);
    assert_eq!(out.status.code(), Some(130), "{said}");
    let last = said.lines().last().unwrap_or_default();
    assert!(last.starts_with("warmset: "), "{said}");
    for word in words {
        assert!(last.contains(word), "no {word:?} in: {said}");
    }
}

#[test]
fn a_study_without_a_directory_says_that_nothing_is_kept() {
    let dir = directory();
    let out = interrupted(dir.path(), "study run ospert10-fig5 --sets 1000000", || {
        true
    });
    says(&out, &["stopped after", "nothing of it is kept", "-o DIR"]);
    assert!(out.stdout.is_empty());
}

#[test]
fn a_study_in_a_directory_says_that_caps_are_kept() {
    let dir = directory();
    let there = dir.path().join("out/study.toml");
    let out = interrupted(
        dir.path(),
        "study run ospert10-fig5 --sets 1000000 -o out",
        || there.exists(),
    );
    says(
        &out,
        &[
            "stopped after",
            "what was counted is kept, and not counted again",
        ],
    );
}

/// Which study of a family was stopped is said, and the studies before it stay.
#[test]
fn a_family_in_a_directory_says_which_study_was_stopped() {
    let dir = directory();
    let study = "bastoni11-6.3-soft-uniform-heavy-short";
    let there = dir.path().join("out").join(study).join("study.toml");
    let out = interrupted(
        dir.path(),
        "study run bastoni11-6.3-soft-uniform-heavy --sets 1000000 -o out",
        || there.exists(),
    );
    says(&out, &[study, "stopped after", "what was counted is kept"]);
    assert!(
        !dir.path()
            .join("out/bastoni11-6.3-soft-uniform-heavy-long")
            .exists()
    );
}

#[test]
fn a_simulation_shows_what_is_true_by_then_and_keeps_no_half_of_a_trace() {
    let dir = directory();
    let out = interrupted(dir.path(), "simulate tasks.toml -m 2 --for 10h", || true);
    says(&out, &["the simulation was interrupted after"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("interrupted after"));
}

#[test]
fn a_check_says_that_it_was_stopped() {
    let dir = directory();
    let out = interrupted(dir.path(), "check many.toml -m 64", || true);
    says(&out, &["stopped"]);
    assert!(out.stdout.is_empty());
}

#[test]
fn advice_is_the_best_until_then() {
    let dir = directory();
    let out = interrupted(dir.path(), "advise many.toml -m 64", || true);
    says(&out, &["the search was stopped before all was tried"]);
    assert!(String::from_utf8_lossy(&out.stdout).contains("The search was stopped. Not tried:"));
}

/// `timeout` sends its signal twice, and Ctrl-C at a terminal comes to `sudo` and its command: that
/// is no wish to end at once.
#[test]
fn a_batch_keeps_no_file_that_is_not_whole() {
    let dir = directory();
    let (child, mut stdin) = batch(dir.path());
    let line =
        "{\"id\": 1, \"m\": 2, \"tasks\": [{\"wcet\": 1, \"period\": 5, \"deadline\": 5}]}\n";
    stdin.write_all(line.as_bytes()).expect("written");
    tell(&child, libc::SIGINT);
    tell(&child, libc::SIGINT);
    // The next lines find that it was told to stop; the pipe may be closed by then.
    for _ in 0..100 {
        if stdin.write_all(line.as_bytes()).is_err() {
            break;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    drop(stdin);
    let out = child.wait_with_output().expect("ended");
    says(&out, &["stopped after", "nothing is kept"]);
    assert!(!dir.path().join("out.jsonl").exists());
}

#[test]
fn caches_show_what_accesses_did_by_then() {
    let dir = directory();
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir.path())
        .args(["cache", "-", "--platform", "i486", "--format", "json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    let mut stdin = child.stdin.take().expect("a pipe");
    wait_for_handler(&child);
    stdin.write_all(b" L 0,4\n").expect("written");
    tell(&child, libc::SIGINT);
    // An endless trace: the pipe closes when the command has seen that it was told to stop.
    let lines = b" L 40,4\n".repeat(4096);
    while stdin.write_all(&lines).is_ok() {}
    let out = child.wait_with_output().expect("ended");
    says(
        &out,
        &["interrupted after", "what is shown is true of these"],
    );
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(document["interrupted"], true);
    assert!(document["accesses"].as_u64() > Some(0));
}

#[test]
fn sets_in_caches_are_kept_and_go_on_from_there() {
    let dir = directory();
    let args = "cache sets --platform core-i7 --distributions heavy --pattern random --for 1s \
                --journal sets.jsonl --format json";
    let journal = dir.path().join("sets.jsonl");
    let rows = || std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count());
    let out = interrupted(dir.path(), &format!("{args} --sets 100000"), || rows() > 2);
    says(
        &out,
        &["stopped before all sets were run", "with `--journal`"],
    );
    let document: serde_json::Value = serde_json::from_slice(&out.stdout).expect("JSON");
    assert_eq!(document["interrupted"], true);
    // A simulation that was under way is not among them, and nothing is cut off.
    let kept = std::fs::read_to_string(&journal).expect("a journal");
    assert!(kept.lines().count() > 2 && kept.ends_with('\n'));
    for line in kept.lines() {
        let row: serde_json::Value = serde_json::from_str(line).expect("JSON");
        assert!(row.is_object());
    }
}

#[test]
fn a_simulation_of_caches_ends_soon() {
    let dir = directory();
    let set = "[[task]]\nwcet = \"500ms\"\nperiod = \"1s\"\nwss = \"6MiB\"\nworkload = { kind = \"walk\" }\n";
    std::fs::write(dir.path().join("walk.toml"), set).expect("written");
    let args = "simulate walk.toml --platform core-i7 --cache --for 1000000s --policy g-edf";
    let out = interrupted(dir.path(), args, || true);
    says(&out, &["the simulation was interrupted after"]);
}

/// It waits for a line that does not come, and finds nothing out.
///
/// Signals within 200 ms of the first that was handled are the same wish, and the first may be
/// handled late: the second one is sent until the command has ended.
#[test]
fn the_second_ctrl_c_ends_what_does_not_listen() {
    let dir = directory();
    let (mut child, stdin) = batch(dir.path());
    tell(&child, libc::SIGINT);
    let mut tries = 0;
    while child.try_wait().expect("a state").is_none() {
        if tries == 300 {
            child.kill().expect("killed");
            panic!("the command goes on after {tries} signals");
        }
        std::thread::sleep(Duration::from_millis(400));
        tell(&child, libc::SIGINT);
        tries += 1;
    }
    let out = child.wait_with_output().expect("ended");
    drop(stdin);
    assert_eq!(out.status.code(), Some(130));
    assert_eq!(String::from_utf8_lossy(&out.stderr), "");
}

#[test]
fn a_tour_reports_on_what_is_done() {
    let dir = directory();
    let begun = dir.path().join("out/tasks/video.toml");
    let args = "tour --profile xeon-l7455 --platform xeon-l7455 --sets 1000000 -o out";
    let out = interrupted(dir.path(), args, || begun.exists());
    says(&out, &["the tour was stopped before its end"]);
    assert!(dir.path().join("out/index.html").exists());
}

#[test]
fn a_measurement_keeps_its_blocks() {
    let dir = directory();
    let begun = dir.path().join("out/measurement.part");
    let args = "measure cpmd -o out --wss 4KiB --samples 100000 --max-preemption 200us --load idle";
    // The first block has to be there: without one there is nothing to keep.
    let out = interrupted(dir.path(), args, || {
        std::fs::read_to_string(&begun).is_ok_and(|text| text.lines().count() > 2)
    });
    says(&out, &["interrupted after", "--resume"]);
}

/// SIGTERM asks for the same, and shells tell it by 143.
#[test]
fn a_termination_is_told_apart() {
    let dir = directory();
    let mut child = Command::new(env!("CARGO_BIN_EXE_warmset"))
        .current_dir(dir.path())
        .args(["simulate", "tasks.toml", "-m", "2", "--for", "10h"])
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    wait_for_handler(&child);
    tell(&child, libc::SIGTERM);
    let mut said = String::new();
    let mut stderr = child.stderr.take().expect("a pipe");
    stderr.read_to_string(&mut said).expect("text");
    assert_eq!(child.wait().expect("ended").code(), Some(143), "{said}");
    assert!(said.contains("interrupted"), "{said}");
}
