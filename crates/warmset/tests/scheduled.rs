//! `warmset measure cpmd --method schedule-sensitive` from outside: files, counts that add up, what
//! is kept, and refusals. Never a time.
//!
//! Reported as ignored, with the reason, where tasks cannot run in real time.

use std::path::Path;
use std::process::ExitCode;
use testing::command::Called;
use testing::{NotRun, Outcome, schemas, warmset};

const SMALL: &str = "measure cpmd --method schedule-sensitive --policy g-edf --tasks 6 --sets 1 \
                     --for 1500ms --wss 16KiB --load idle --write-ratio 1/4";

fn main() -> ExitCode {
    testing::run_alone(vec![
        testing::trial(
            "jobs_that_the_engine_preempts_give_samples",
            jobs_that_the_engine_preempts_give_samples,
        ),
        testing::trial("wrong_options_are_refused", wrong_options_are_refused),
        testing::trial(
            "prefetchers_that_cannot_be_turned_off_are_refused_before_anything_is_measured",
            prefetchers_that_cannot_be_turned_off_are_refused_before_anything_is_measured,
        ),
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
    let findings = found["preflight"].as_array().unwrap();
    let refused = findings.iter().find(|f| f["level"] == "refuse");
    refused.map_or(Ok(()), |finding| Err(NotRun::because(&finding["seen"])))
}

fn jobs_that_the_engine_preempts_give_samples() -> Outcome {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    permitted(dir)?;
    let measured = call(dir, &format!("{SMALL} -o out --format json"));
    assert_eq!(measured.status, 0, "{}", measured.err);
    let found = measured.json();
    schemas::hold("measure-scheduled", &found);
    let number = |name: &str| found[name].as_u64().unwrap();
    let total = |name: &str| {
        let counts = found[name].as_object().unwrap().values();
        counts.map(|n| n.as_u64().unwrap()).sum::<u64>()
    };
    // Every job is a sample that counts, one that does not, or none, and says why.
    assert_eq!(
        number("jobs"),
        number("samples") + total("others") + total("discards")
    );
    // In 1.5 s six tasks have a hundred jobs, of which some wait to be preempted and are.
    let taken = number("samples") + total("discards");
    let unconfirmed = found["others"]["unconfirmed"].as_u64().unwrap_or(0);
    assert!(taken > unconfirmed, "{found}");
    let moved = |cause: &str| found["discards"][cause].as_u64().unwrap_or(0);
    if moved("moved") + moved("apart") == taken {
        return Err(NotRun::because(
            "the virtual machine moved while samples were taken: none counts",
        ));
    }
    assert!(number("samples") > 0, "{found}");
    assert_eq!(found["observations"].as_array().map(Vec::len), Some(5));
    let text = std::fs::read_to_string(dir.join("out/profile.toml")).unwrap();
    let profile = model::profilefile::from_toml(&text).unwrap();
    assert!(profile.cpmd.is_empty(), "methods are kept apart");
    let curves = &profile.cpmd_scheduled;
    assert!(curves.iter().all(|c| c.policy == "g-edf" && c.tasks == 6));
    assert!(dir.join("out/scheduled.parquet").exists());
    assert!(!dir.join("out/scheduled.part").exists());
    let again = call(dir, &format!("{SMALL} -o out")).refusal();
    assert!(again.contains("finished measurement"), "{again}");
    Ok(())
}

fn wrong_options_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for (options, said) in [
        ("--policy g-edf", "option of the other method"),
        (
            "--method schedule-sensitive --cpus 0",
            "option of the synthetic method",
        ),
        ("--method schedule-sensitive --policy nonsense", "nonsense"),
        (
            "--method schedule-sensitive --wss 100B",
            "multiples of 4KiB",
        ),
        (
            "--method schedule-sensitive --resume",
            "no interrupted measurement",
        ),
    ] {
        let refused = call(dir, &format!("measure cpmd -o out {options}")).refusal();
        assert!(refused.contains(said), "{options}: {refused}");
    }
}

/// Virtual machines have no such devices, and many kernels load the module only when asked.
fn prefetchers_that_cannot_be_turned_off_are_refused_before_anything_is_measured() -> Outcome {
    if Path::new("/dev/cpu/0/msr").exists() {
        return Err(NotRun::because("here they would be turned off"));
    }
    for method in ["synthetic", "schedule-sensitive"] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        let command = format!("measure cpmd -o out --quick --prefetchers off --method {method}");
        let said = call(dir, &command).refusal();
        assert!(said.contains("prefetchers"), "{said}");
        let remedied = said.contains("modprobe msr") || said.contains("firmware");
        assert!(remedied, "{said}");
        let left = std::fs::read_dir(dir.join("out"));
        assert_eq!(left.map_or(0, Iterator::count), 0, "{method}");
    }
    Ok(())
}
