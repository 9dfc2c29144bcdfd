//! `warmset measure overheads` from outside: files, invariants of what is in them, what is kept of
//! an interrupted measurement, and refusals. Never a time.
//!
//! Reported as ignored, with the reason, where tasks cannot run in real time.

use model::{Code, Profile};
use serde_json::Value;
use std::path::Path;
use std::process::ExitCode;
use testing::command::Called;
use testing::{NotRun, Outcome, schemas, tracefs, warmset};

/// Two policies with two sizes, one of them scaled; a set each.
const SMALL: &str = "measure overheads --policy p-edf,g-edf --tasks 12,60 --sets 1 --for 1500ms";

fn main() -> ExitCode {
    // Before any thread is started; what is missing is part of what is measured.
    let traced = tracefs::mounted().is_ok();
    testing::run_alone(vec![
        testing::trial("a_measurement_writes_what_it_found", move || {
            a_measurement_writes_what_it_found(traced)
        }),
        testing::trial(
            "what_was_measured_is_kept_and_gone_on_with",
            what_was_measured_is_kept_and_gone_on_with,
        ),
        testing::trial("wrong_options_are_refused", wrong_options_are_refused),
    ])
}

fn call(dir: &Path, arguments: &str) -> Called {
    Called::within(warmset!(), dir, arguments)
}

/// Can anything be run for real here?
fn permitted(dir: &Path) -> Outcome {
    let task = "[[task]]\nwcet = \"1ms\"\nperiod = \"9ms\"\n";
    std::fs::write(dir.join("one.toml"), task).unwrap();
    let found = call(dir, "run one.toml --preflight --format json").json();
    schemas::hold("preflight", &found);
    let findings = found["preflight"].as_array().unwrap();
    let refused = findings.iter().find(|f| f["level"] == "refuse");
    refused.map_or(Ok(()), |finding| Err(NotRun::because(&finding["seen"])))
}

fn profile(dir: &Path) -> Profile {
    let text = std::fs::read_to_string(dir.join("out/profile.toml")).unwrap();
    model::profilefile::from_toml(&text).unwrap()
}

fn files(dir: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(dir.join("out")).unwrap();
    let mut names: Vec<String> = entries
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort_unstable();
    names
}

fn a_measurement_writes_what_it_found(traced: bool) -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    permitted(dir)?;
    let measured = call(dir, &format!("{SMALL} -o out --format json"));
    assert_eq!(measured.status, 0, "{}", measured.err);
    let found = measured.json();
    schemas::hold("measure-overheads", &found);
    assert_eq!(
        files(dir),
        [
            "overheads-average.svg",
            "overheads-maximum.svg",
            "overheads.json",
            "overheads.parquet",
            "profile.toml"
        ]
    );
    assert_eq!(found["runs"], 4, "{found}");
    assert_eq!(
        found["apart"].as_array().map(Vec::len),
        Some(0),
        "{}",
        found["apart"]
    );
    assert_eq!(found["blind"].is_null(), traced, "{}", found["blind"]);

    // Releases of both policies, at both sizes; those of few tasks as they were drawn.
    let curves = found["curves"].as_array().unwrap();
    let code = if traced { "both" } else { "own" };
    for (policy, scaled, tasks) in [
        ("p-edf", false, 12),
        ("p-edf", true, 60),
        ("g-edf", false, 12),
        ("g-edf", true, 60),
    ] {
        let of = |c: &&Value| {
            c["policy"] == policy
                && c["scaled"] == scaled
                && c["cost"] == "release"
                && c["code"] == code
        };
        let curve = curves.iter().find(of).expect("a curve");
        let points = curve["curve"]["points"].as_array().unwrap();
        assert_eq!(points.len(), 1, "{curve}");
        let number = |name: &str| points[0][name].as_u64().unwrap();
        assert_eq!(number("tasks"), tasks);
        assert!(number("samples") >= 100);
        assert!(0 < number("average_ns") && number("average_ns") <= number("maximum_ns"));
        assert!(number("maximum_ns") <= number("untrimmed_maximum_ns"));
        assert!(number("untrimmed_maximum_ns") <= curve["max_ns"].as_u64().unwrap());
    }
    assert_eq!(found["statements"].as_array().map(Vec::len), Some(7));

    // What is charged is the whole where the kernel is seen.
    let profile = profile(dir);
    let release = profile
        .overhead_curve(model::OverheadKind::Release, "p-edf")
        .unwrap();
    assert_eq!(
        release.code,
        Some(if traced { Code::Both } else { Code::Own })
    );
    assert!(
        profile
            .overhead_curve(model::OverheadKind::Release, "pd2")
            .is_some()
    );
    if traced {
        assert!(profile.tick_period.is_some());
        assert!(
            profile
                .overhead_curve(model::OverheadKind::Tick, "p-edf")
                .is_some()
        );
    }

    // A verdict takes it, and says what it charged.
    let checked = call(
        dir,
        "check one.toml --profile out/profile.toml --cpmd 5us --format json",
    )
    .json();
    assert_eq!(checked["accounting"], "warmset", "{checked}");

    // The samples that are kept say the same again; what is not among them is counted.
    let again = call(
        dir,
        "measure overheads --samples out/overheads.parquet --format json",
    )
    .json();
    schemas::hold("measure-overheads-samples", &again);
    assert_eq!(again["curves"], found["curves"]);
    assert_eq!(
        (&again["runs"], &again["left_out"]),
        (&found["runs"], &found["left_out"])
    );
    assert_eq!(found["probe"].is_object(), traced, "{}", found["probe"]);
    for curve in curves
        .iter()
        .filter(|c| c["code"] == "both" && c["cost"] != "ipi-latency")
    {
        let added = &curve["added"];
        let (part, is_off) = (added["part"].as_f64().unwrap(), &added["subtracted"]);
        assert_eq!(*is_off, part >= 0.05, "{curve}");
    }
    // A measurement agrees with itself.
    let compared = call(dir, "profile compare out out/profile.toml --format json");
    assert_eq!(compared.status, 0, "{}", compared.err);
    let compared = compared.json();
    schemas::hold("profile-compare", &compared);
    assert!(
        compared["agree"] == true && compared["apart"] == 0,
        "{compared}"
    );
    let all = compared["quantities"].as_array().unwrap();
    assert!(all.len() > 20, "{}", all.len());

    // What is finished is not written over.
    let again = call(dir, &format!("{SMALL} -o out")).refusal();
    assert!(again.contains("finished measurement"), "{again}");
    Ok(())
}

fn what_was_measured_is_kept_and_gone_on_with() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    permitted(dir)?;
    let mut command = warmset!();
    command
        .current_dir(dir)
        .args(SMALL.split_whitespace())
        .args(["-o", "out"]);
    command
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::piped());
    let mut child = command.spawn().unwrap();
    // The first run is in the journal when it has a second line.
    let journal = dir.join("out/overheads.part");
    while std::fs::read_to_string(&journal).map_or(0, |text| text.lines().count()) < 2 {
        assert!(child.try_wait().unwrap().is_none(), "it ended");
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    let pid = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let said = child.wait_with_output().unwrap();
    assert_eq!(
        said.status.code(),
        Some(130),
        "{}",
        String::from_utf8_lossy(&said.stderr)
    );
    assert!(journal.exists());
    assert!(dir.join("out/profile.toml").exists());

    let other = call(dir, &format!("{SMALL} -o out --resume --seed 9")).refusal();
    assert!(other.contains("another seed"), "{other}");
    let anew = call(dir, &format!("{SMALL} -o out")).refusal();
    assert!(anew.contains("--resume"), "{anew}");
    let rest = call(dir, &format!("{SMALL} -o out --resume --format json"));
    assert_eq!(rest.status, 0, "{}", rest.err);
    let found = rest.json();
    schemas::hold("measure-overheads", &found);
    assert_eq!(found["runs"], 4);
    assert!(found["interrupted"].is_null());
    assert!(!journal.exists());
    Ok(())
}

fn wrong_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let none = call(dir, "measure overheads --samples none.parquet").refusal();
    assert!(none.contains("none.parquet"), "{none}");
    let both = call(dir, "measure overheads --samples none.parquet -o out");
    assert_eq!(both.status, 2, "{}", both.err);
    for (options, said) in [
        ("--policy nonsense", "nonsense"),
        ("--policy p-edf,p-edf", "named twice"),
        ("--tasks 0", "0 is not in 1..=5000"),
        ("--for 1ms", "runs of 1ms cannot be measured"),
        ("--resume", "no interrupted measurement"),
    ] {
        let refused = call(dir, &format!("measure overheads -o out {options}")).refusal();
        assert!(refused.contains(said), "{options}: {refused}");
    }
    // Refused wherever it is asked: first for what this build and this kernel lack, if they do.
    let refused = call(
        dir,
        "measure overheads -o kernel --engine kernel --policy pd2",
    )
    .refusal();
    let reasons = [
        "built without the engine in the kernel",
        "this kernel has no sched_ext",
        "is loaded, and the kernel has one at a time",
        "BPF: ",
        "`pd2` decides at quanta",
    ];
    assert!(reasons.iter().any(|why| refused.contains(why)), "{refused}");
    assert!(!dir.join("kernel").exists());
    std::fs::create_dir_all(dir.join("out")).unwrap();
    let foreign = model::profilefile::to_toml(&Profile::builtin("xeon-l7455").unwrap());
    std::fs::write(dir.join("out/profile.toml"), foreign).unwrap();
    let refused = call(dir, "measure overheads -o out --quick").refusal();
    assert!(refused.contains("another machine"), "{refused}");
    assert!(!dir.join("out/overheads.part").exists());
}
