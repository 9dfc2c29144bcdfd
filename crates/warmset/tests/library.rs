//! What the library returns is, as JSON, what the command prints with `--format json`.

use app::{Charged, Choice, On, Tasks, check, simulate, trace};
use assert_cmd::Command;
use model::watch::Silent;
use model::{Statistic, document};
use std::path::Path;

const TASKS: &str = "
[[task]]
name = \"one\"
wcet = \"2ms\"
period = \"5ms\"
wss = \"64KiB\"
[[task]]
name = \"two\"
wcet = \"3ms\"
period = \"9ms\"
wss = \"64KiB\"
";

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    std::fs::write(dir.path().join("tasks.toml"), TASKS).expect("written");
    dir
}

/// Standard output of the command.
fn printed(dir: &Path, args: &str) -> String {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warmset"));
    let out = command
        .current_dir(dir)
        .args(args.split_whitespace())
        .args(["--format", "json"])
        .output()
        .expect("started");
    let said = String::from_utf8_lossy(&out.stderr);
    assert!(matches!(out.status.code(), Some(0 | 1)), "{args}: {said}");
    String::from_utf8(out.stdout).expect("text")
}

fn xeon() -> On {
    On::Platform(Choice::Named("xeon-l7455".to_owned()))
}

#[test]
fn check_and_simulate_say_the_same() {
    let dir = directory();
    let tasks = Tasks::read(&dir.path().join("tasks.toml")).expect("a set");
    let charged = Charged {
        profile: Some(Choice::Named("xeon-l7455".to_owned())),
        statistic: Some(Statistic::Average),
        ..Charged::default()
    };
    let with = "--platform xeon-l7455 --profile xeon-l7455 --statistic average";
    let options = check::Options {
        on: xeon(),
        charged: charged.clone(),
        ..check::Options::default()
    };
    let checked = check::check(&tasks, &options, &Silent).expect("judged");
    assert_eq!(
        document::pretty(&checked).expect("JSON"),
        printed(dir.path(), &format!("check tasks.toml {with}"))
    );
    let options = simulate::Options {
        on: xeon(),
        charged,
        ..simulate::Options::default()
    };
    let simulated = simulate::simulate(&tasks, &options, &Silent).expect("simulated");
    assert_eq!(
        document::pretty(&simulated).expect("JSON"),
        printed(dir.path(), &format!("simulate tasks.toml {with}"))
    );
}

#[test]
fn advice_is_the_same() {
    let dir = directory();
    let tasks = Tasks::read(&dir.path().join("tasks.toml")).expect("a set");
    let options = app::advise::Options {
        on: On::Identical(2),
        ..app::advise::Options::default()
    };
    let advised = app::advise::advise(&tasks, &options, &Silent).expect("an answer");
    assert!(advised.is_found());
    assert_eq!(
        document::pretty(&advised).expect("JSON"),
        printed(dir.path(), "advise tasks.toml -m 2 --budget 1h")
    );
}

#[test]
fn a_trace_of_the_library_is_checked_and_added_up_alike() {
    let dir = directory();
    let tasks = Tasks::read(&dir.path().join("tasks.toml")).expect("a set");
    let file = dir.path().join("run.wtrace");
    let options = simulate::Options {
        on: On::Identical(2),
        trace: Some(file.clone()),
        ..simulate::Options::default()
    };
    simulate::simulate(&tasks, &options, &Silent).expect("simulated");
    let checked = trace::check(&file, &trace::CheckOptions::default(), &Silent).expect("checked");
    assert!(checked.clean);
    let path = file.display();
    assert_eq!(
        document::pretty(&checked).expect("JSON"),
        printed(dir.path(), &format!("trace check {path}"))
    );
    let sums = trace::stats(&file, None, &Silent).expect("added up");
    assert_eq!(
        document::pretty(&sums).expect("JSON"),
        printed(dir.path(), &format!("trace stats {path}"))
    );
}

#[test]
fn platforms_and_studies_are_described_alike() {
    let dir = directory();
    let described = app::platform::describe(&xeon()).expect("there");
    assert_eq!(
        document::pretty(&described).expect("JSON"),
        printed(dir.path(), "platform --platform xeon-l7455")
    );
    assert_eq!(
        document::pretty(&app::platform::list()).expect("JSON"),
        printed(dir.path(), "platform --platform list")
    );
    assert_eq!(
        document::pretty(&app::study::list()).expect("JSON"),
        printed(dir.path(), "study list")
    );
    let options = app::study::Options {
        sets: Some(1),
        ..app::study::Options::default()
    };
    let results = app::study::run("ospert10-fig5", &options, &Silent).expect("run");
    assert_eq!(
        results.to_json().expect("JSON"),
        printed(dir.path(), "study run ospert10-fig5 --sets 1")
    );
}

#[test]
fn caches_do_the_same() {
    let dir = directory();
    let trace = dir.path().join("accesses.trace");
    std::fs::write(&trace, "I  400000,4\n L 7ff038,16\n S 7ff000,8\n").expect("written");
    let args = format!(
        "cache {} --platform pentium-pro --tlb 64:4",
        trace.display()
    );
    let options = app::cache::Options {
        on: On::Platform(Choice::Named("pentium-pro".to_owned())),
        tlb: Some("64:4".parse().expect("a size")),
        command: format!("warmset {args} --format json"),
        ..app::cache::Options::new(&trace.display().to_string())
    };
    let simulated = app::cache::simulate(&options, &Silent).expect("simulated");
    assert_eq!(
        document::pretty(&simulated).expect("JSON"),
        printed(dir.path(), &args)
    );
}

#[test]
fn tasks_in_the_model_do_the_same() {
    use app::cache::{combined, matrix, short};
    let dir = directory();
    let on = || On::Platform(Choice::Named("pentium-133".to_owned()));
    let args = "cache cosine --platform pentium-133 --sizes 16 --rates 12.5";
    let options = short::Options {
        task: short::Task::Cosine,
        on: on(),
        write: None,
        sizes: vec![16],
        step: short::Task::Cosine.usual_step(),
        code: 100,
        rates: vec![12.5],
    };
    let seen = short::run(&options, &format!("warmset {args} --format json")).expect("run");
    assert_eq!(
        document::pretty(&seen).expect("JSON"),
        printed(dir.path(), args)
    );
    let args = "cache matrix --platform pentium-133 --slices 2ms";
    let options = matrix::Options {
        slices: vec![model::Duration::from_millis(2)],
        ..matrix::Options::new(on())
    };
    let seen = matrix::run(&options, &format!("warmset {args} --format json")).expect("run");
    assert_eq!(
        document::pretty(&seen).expect("JSON"),
        printed(dir.path(), args)
    );
    let args = "cache combined --platform pentium-133 --rates 2000";
    let options = combined::Options {
        rates: vec![2000],
        ..combined::Options::new(on())
    };
    let seen = combined::run(&options, &format!("warmset {args} --format json")).expect("run");
    assert_eq!(
        document::pretty(&seen).expect("JSON"),
        printed(dir.path(), args)
    );
}

#[test]
fn a_schedule_of_linux_is_imported_alike() {
    let dir = directory();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/linux");
    let (sched, tasks) = (examples.join("sched.txt"), examples.join("tasks.toml"));
    let args = format!(
        "trace import {} {} -m 2 --policy g-fp -o linux.wtrace",
        sched.display(),
        tasks.display()
    );
    let text = printed(dir.path(), &args);
    let options = trace::import::Options {
        file: sched,
        on: On::Identical(2),
        scheduling: app::scheduling::Scheduling::of("g-fp").expect("a policy"),
        threads: Vec::new(),
        released: trace::import::Released::WakeUps,
        output: dir.path().join("library.wtrace"),
        command: String::new(),
    };
    let tasks = Tasks::read(&tasks).expect("a set");
    let imported = trace::import::import(&tasks, &options).expect("imported");
    let library = document::pretty(&imported).expect("JSON");
    let place = options.output.display().to_string();
    assert_eq!(library.replace(&place, "linux.wtrace"), text);
}

#[test]
fn jobs_in_caches_do_the_same() {
    let dir = directory();
    let args =
        "cache sets --platform core-i7 --sets 1 --for 60ms --distributions heavy --pattern random";
    let on = || On::Platform(Choice::Named("core-i7".to_owned()));
    let options = app::cache::sets::Options {
        sets: 1,
        horizon: model::Duration::from_millis(60),
        distributions: vec![app::cache::sets::Distribution::Heavy],
        patterns: vec![model::Pattern::Random],
        command: format!("warmset {args} --format json"),
        ..app::cache::sets::Options::new(on())
    };
    let seen = app::cache::sets::run(&options, &Silent).expect("simulated");
    assert_eq!(
        document::pretty(&seen).expect("JSON"),
        printed(dir.path(), args)
    );
    let args = "cache videos --platform core-i7 --videos 2 --for 100ms";
    let options = app::cache::videos::Options {
        on: on(),
        videos: vec![2],
        horizon: model::Duration::from_millis(100),
        command: format!("warmset {args} --format json"),
    };
    let seen = app::cache::videos::run(&options, &Silent).expect("simulated");
    assert_eq!(
        document::pretty(&seen).expect("JSON"),
        printed(dir.path(), args)
    );
}
