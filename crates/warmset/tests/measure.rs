//! `warmset measure cpmd` from outside: files, invariants of what is in them, and refusals. Never a
//! time.

use assert_cmd::Command;
use measure::samples::{self, Sample};
use model::{Load, Resumption};
use std::collections::BTreeSet;
use std::path::Path;
use std::process::Stdio;
use std::time::Instant;
use testing::schemas;

/// The smallest measurement that has everything: both loads, two working sets, two write ratios.
const SMALL: [&str; 12] = [
    "measure",
    "cpmd",
    "--wss",
    "4KiB,64KiB",
    "--write-ratio",
    "0,1/4",
    "--samples",
    "6",
    "--max-preemption",
    "500us",
    "--seed",
    "7",
];

fn warmset(dir: &Path, more: &[&str]) -> Command {
    let mut command = Command::cargo_bin("warmset").unwrap();
    command.args(SMALL).arg("-o").arg(dir).args(more);
    command
}

fn standard_error(output: &std::process::Output) -> String {
    String::from_utf8(output.stderr.clone()).unwrap()
}

/// The last line of standard error of what is refused.
fn refusal(output: &std::process::Output) -> String {
    last_line(output, 2)
}

/// The last line of standard error, which must be the error: this status, nothing else behind it.
fn last_line(output: &std::process::Output, status: i32) -> String {
    let text = standard_error(output);
    assert_eq!(output.status.code(), Some(status), "{text}");
    let last = text.lines().last().unwrap_or_default().to_owned();
    assert!(last.starts_with("warmset: "), "{text}");
    last
}

fn files(dir: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(dir)
        .map(|entries| {
            entries
                .map(|e| e.unwrap().file_name().into_string().unwrap())
                .collect()
        })
        .unwrap_or_default();
    names.sort_unstable();
    names
}

/// The drawn part of every sample: what the seed decides.
fn drawn(samples: &[Sample]) -> Vec<(u32, u32, u32, u64)> {
    samples
        .iter()
        .map(|s| (s.block, s.from.0, s.to.0, s.asked.nanos()))
        .collect()
}

#[test]
fn a_measurement_writes_a_profile_and_consistent_samples() {
    let dir = tempfile::tempdir().unwrap();
    let output = warmset(dir.path(), &["--format", "json"]).output().unwrap();
    assert!(output.status.success(), "{}", standard_error(&output));
    assert_eq!(files(dir.path()), ["profile.toml", "samples.parquet"]);

    let platform = machine::this_machine().unwrap().platform;
    let kinds: BTreeSet<Resumption> = platform.resumptions().into_iter().collect();
    let samples = samples::read(&dir.path().join("samples.parquet")).unwrap();
    // Two sizes, two ratios, two loads; every cell in one block of six samples a kind.
    assert_eq!(samples.len(), 8 * 6 * kinds.len());
    for s in &samples {
        assert_eq!(s.resumption, platform.resumption(s.from, s.to));
        assert!(s.asked <= model::Duration::from_micros(500));
        assert!(s.preempted >= s.asked);
        assert_eq!(
            s.delay.nanos(),
            s.post.nanos() as i64 - s.warm.nanos() as i64,
            "(t5 − t4) − (t2 − t1)"
        );
    }
    for pair in samples.windows(2).filter(|p| p[0].block == p[1].block) {
        assert_eq!(
            pair[0].to, pair[1].from,
            "the thread stays where it resumed"
        );
    }
    let seen: BTreeSet<Resumption> = samples.iter().map(|s| s.resumption).collect();
    assert_eq!(seen, kinds);

    let text = std::fs::read_to_string(dir.path().join("profile.toml")).unwrap();
    let profile = model::profilefile::from_toml(&text).unwrap();
    assert_eq!(profile.provenance.seed, Some(7));
    assert!(
        profile
            .provenance
            .command
            .starts_with("warmset measure cpmd --wss 4KiB,64KiB")
    );
    assert!(!profile.provenance.kernel.is_empty());
    for curve in &profile.cpmd {
        for point in &curve.points {
            let kept: Vec<&Sample> = samples
                .iter()
                .filter(|s| {
                    s.discarded.is_none()
                        && (s.resumption, s.load, s.wss)
                            == (curve.resumption, curve.load, point.wss)
                        && s.write_ratio == curve.write_ratio
                })
                .collect();
            assert!(point.samples > 0 && point.samples <= kept.len() as u64);
            let largest = kept.iter().map(|s| s.delay).max();
            assert!(point.maximum.is_none_or(|m| Some(m) <= largest));
        }
    }

    // One JSON document on standard output that says the same.
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    schemas::hold("measure-cpmd", &json);
    assert_eq!(json["samples"], samples.len() as u64);
    let discarded = samples.iter().filter(|s| s.discarded.is_some()).count() as u64;
    let counted: u64 = json["discards"]
        .as_object()
        .unwrap()
        .values()
        .map(|n| n.as_u64().unwrap())
        .sum();
    assert_eq!(counted, discarded);
    assert!(json["interrupted"].is_null());
    let rights = machine::realtime::raise(machine::realtime::WATCHDOG).is_ok();
    let warned = profile
        .provenance
        .warnings
        .iter()
        .any(|w| w.contains("without real-time priority"));
    assert_eq!(
        warned, !rights,
        "without the right it says so, and only then"
    );
}

#[test]
fn the_same_seed_draws_the_same_and_another_draws_otherwise() {
    let run = |seed: &str| {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::cargo_bin("warmset").unwrap();
        command.args([
            "measure",
            "cpmd",
            "--wss",
            "4KiB",
            "--samples",
            "10",
            "--load",
            "idle",
        ]);
        command.args(["--max-preemption", "100us", "--seed", seed, "-o"]);
        command.arg(dir.path()).assert().success();
        drawn(&samples::read(&dir.path().join("samples.parquet")).unwrap())
    };
    let first = run("3");
    assert_eq!(first, run("3"));
    assert_ne!(first, run("4"));
}

/// Starts a measurement of many short blocks.
fn start(dir: &Path) -> std::process::Child {
    std::process::Command::new(assert_cmd::cargo::cargo_bin("warmset"))
        .args(LONG)
        .arg("-o")
        .arg(dir)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

/// Waits until some blocks are in the journal; says how many lines it has, one of which is the
/// plan.
fn wait_for_blocks(dir: &Path) -> usize {
    let journal = dir.join("measurement.part");
    let begun = Instant::now();
    loop {
        let lines = std::fs::read_to_string(&journal)
            .map(|text| text.lines().count())
            .unwrap_or(0);
        // The measurement ends by itself, so that a test that gives up leaves nothing running.
        if lines > 3 || begun.elapsed().as_secs() > 60 {
            return lines;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

const LONG: [&str; 10] = [
    "measure",
    "cpmd",
    "--wss",
    "4KiB,8KiB",
    "--samples",
    "1000",
    "--load",
    "idle",
    "--max-preemption",
    "100us",
];

#[test]
fn killed_midway_it_leaves_a_journal_that_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let mut child = start(dir.path());
    wait_for_blocks(dir.path());
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(
        files(dir.path()),
        ["measurement.part"],
        "nothing half-written"
    );

    let again = |more: &[&str]| {
        let mut command = Command::cargo_bin("warmset").unwrap();
        command.args(LONG).arg("-o").arg(dir.path()).args(more);
        command
    };
    // Not silently over what was measured, and not with another plan.
    let e = refusal(&again(&[]).output().unwrap());
    assert!(
        e.contains("an interrupted measurement is in this directory") && e.contains("--resume"),
        "{e}"
    );
    let e = refusal(&again(&["--resume", "--seed", "9"]).output().unwrap());
    assert!(e.contains("another seed"), "{e}");
    assert_eq!(files(dir.path()), ["measurement.part"]);

    again(&["--resume"]).assert().success();
    assert_eq!(files(dir.path()), ["profile.toml", "samples.parquet"]);
    let samples = samples::read(&dir.path().join("samples.parquet")).unwrap();
    // As it would have been: the draws of all blocks are those of the plan.
    let platform = machine::this_machine().unwrap().platform;
    let options = measure::plan::Options {
        wss: vec![model::Bytes::from_kib(4), model::Bytes::from_kib(8)],
        samples: Some(1000),
        loads: vec![Load::Idle],
        max_preemption: Some(model::Duration::from_micros(100)),
        seed: 1,
        ..Default::default()
    };
    let plan = measure::plan::Plan::of(&options, &platform).unwrap();
    let destinations = measure::destinations::Destinations::among(&platform, &plan.cpus);
    let planned: Vec<(u32, u32, u64)> = plan
        .blocks()
        .iter()
        .flat_map(|b| {
            let (_, draws) = plan.draws(b, &destinations);
            draws
                .into_iter()
                .skip(1)
                .map(|d| (b.number, d.to.0, d.length.nanos()))
                .collect::<Vec<_>>()
        })
        .collect();
    let measured: Vec<(u32, u32, u64)> = drawn(&samples)
        .into_iter()
        .map(|(b, _, to, ns)| (b, to, ns))
        .collect();
    assert_eq!(measured, planned);
}

#[test]
fn interrupted_it_keeps_what_was_measured() {
    let dir = tempfile::tempdir().unwrap();
    let child = start(dir.path());
    let lines = wait_for_blocks(dir.path());
    let pid = child.id().to_string();
    assert!(
        std::process::Command::new("kill")
            .args(["-INT", &pid])
            .status()
            .unwrap()
            .success()
    );
    let output = child.wait_with_output().unwrap();
    let e = last_line(&output, 130);
    assert!(
        e.contains("interrupted after") && e.contains("--resume"),
        "{e}"
    );
    assert_eq!(
        files(dir.path()),
        ["measurement.part", "profile.toml", "samples.parquet"]
    );
    let samples = samples::read(&dir.path().join("samples.parquet")).unwrap();
    assert!(
        samples.len() >= (lines - 1) * 25,
        "every finished block is there"
    );
    let profile = model::profilefile::from_toml(
        &std::fs::read_to_string(dir.path().join("profile.toml")).unwrap(),
    )
    .unwrap();
    assert!(
        profile
            .provenance
            .warnings
            .iter()
            .any(|w| w.contains("interrupted after"))
    );
}

#[test]
fn a_disk_that_is_full_loses_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let inside = dir.path().join("full");
    std::fs::create_dir(&inside).unwrap();
    let warmset = assert_cmd::cargo::cargo_bin("warmset");
    // A file may have 16 blocks of 512 or 1024 bytes: the journal's plan fits, its blocks of
    // samples do not for long.
    let script = "ulimit -f 16; trap '' XFSZ; exec \"$0\" \"$@\"";
    let output = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(&warmset)
        .args(LONG)
        .arg("-o")
        .arg(&inside)
        .output()
        .unwrap();
    let e = refusal(&output);
    assert!(
        e.contains("measurement.part") && e.contains("--resume"),
        "{e}"
    );
    assert_eq!(files(&inside), ["measurement.part"]);
    let journal = std::fs::read_to_string(inside.join("measurement.part")).unwrap();
    assert!(journal.ends_with('\n'), "the last line is whole");
    assert!(journal.lines().count() > 1, "what was measured is kept");
}

#[test]
fn what_cannot_be_done_is_said_in_one_sentence_before_anything_is_measured() {
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("out");
    let cases: [(&[&str], &str); 9] = [
        (&["--cpus", "4096"], "processor 4096 does not exist"),
        (&["--cpus", "x"], "not a list of processors"),
        (&["--wss", "0KiB"], "a working set of 0B cannot be measured"),
        (&["--wss", "5000B"], "multiples of 4KiB"),
        (&["--wss", "64TiB"], "not a size"),
        (&["--wss", "65536GiB"], "does not fit into half of"),
        (
            &["--write-ratio", "1/3"],
            "no write ratio that can be measured",
        ),
        (&["--samples", "0"], "no samples"),
        (&["--max-preemption", "11s"], "longer than this measures"),
    ];
    for (options, cause) in cases {
        let output = Command::cargo_bin("warmset")
            .unwrap()
            .args(["measure", "cpmd", "-o"])
            .arg(&out)
            .args(options)
            .output()
            .unwrap();
        let e = refusal(&output);
        assert!(e.contains(cause), "{options:?}: {e}");
        assert!(!out.exists(), "{options:?} left something behind");
    }
    let e = refusal(&warmset(&out, &["--resume"]).output().unwrap());
    assert!(e.contains("no interrupted measurement"), "{e}");
    let file = dir.path().join("file");
    std::fs::write(&file, "").unwrap();
    let e = refusal(&warmset(&file, &[]).output().unwrap());
    assert!(e.contains("make the directory"), "{e}");
}

#[test]
fn a_directory_that_cannot_be_written_is_refused_at_once() {
    // The root of proc takes no new files from anyone, root included.
    let output = warmset(Path::new("/proc/self"), &[]).output().unwrap();
    let e = refusal(&output);
    assert!(e.contains("/proc/self/measurement.part"), "{e}");
}

/// A program whose runs mean nothing is no measurement.
#[test]
fn programs_that_cannot_be_timed_are_refused_in_one_sentence() {
    for (arguments, cause) in [
        (
            &["--runs", "0", "--", "true"][..],
            "no runs measure nothing",
        ),
        (&["--every", "0ms", "--", "true"], "moving takes time"),
        (
            &["--", "false"],
            "the program ended with status 1 in turn 1",
        ),
        (&["--", "/there/is/no/such"], "no such file"),
        (&["--", "sh", "-c", "kill -9 $$"], "was ended by signal 9"),
    ] {
        let mut command = Command::cargo_bin("warmset").unwrap();
        let output = command.args(["measure", "task"]).args(arguments).output();
        let said = refusal(&output.unwrap());
        assert!(said.contains(cause), "{said}");
    }
}
