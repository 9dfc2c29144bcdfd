//! `warmset plan export` as its users call it: scripts give threads what the plan says, units are
//! accepted by systemd, and what Linux cannot carry is refused.
//!
//! Reported as ignored, with the reason, where tools or rights are missing.

use model::rtapp;
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use testing::command::Called;
use testing::{NotRun, Outcome, warmset};

fn main() -> ExitCode {
    testing::run_alone(vec![
        testing::trial(
            "a_script_gives_threads_the_priorities_of_the_plan",
            a_script_gives_threads_the_priorities_of_the_plan,
        ),
        testing::trial(
            "a_script_starts_the_programs_of_the_plan",
            a_script_starts_the_programs_of_the_plan,
        ),
        testing::trial(
            "a_script_gives_threads_their_budgets",
            a_script_gives_threads_their_budgets,
        ),
        testing::trial("systemd_accepts_the_units", systemd_accepts_the_units),
        testing::trial(
            "a_plan_goes_to_rt_app_and_comes_back",
            a_plan_goes_to_rt_app_and_comes_back,
        ),
        testing::trial(
            "a_dossier_holds_the_evidence_for_a_plan",
            a_dossier_holds_the_evidence_for_a_plan,
        ),
        testing::trial(
            "what_cannot_be_exported_is_refused",
            what_cannot_be_exported_is_refused,
        ),
    ])
}

const TASKS: &str = "
[[task]]
name = \"camera\"
wcet = \"2ms\"
period = \"33ms\"
[[task]]
name = \"control unit\"
wcet = \"1ms\"
period = \"10ms\"
";

const PROGRAMS: &str = "
[[task]]
name = \"camera\"
wcet = \"2ms\"
period = \"33ms\"
workload = { exec = [\"sh\", \"-c\", \"chrt -p $$ >'camera file'; taskset -pc $$ >>'camera file'\"] }
[[task]]
name = \"control unit\"
wcet = \"1ms\"
period = \"10ms\"
";

fn directory() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tasks.toml"), TASKS).unwrap();
    std::fs::write(dir.path().join("programs.toml"), PROGRAMS).unwrap();
    dir
}

fn call(dir: &Path, args: &str) -> Called {
    Called::within(warmset!(), dir, args)
}

/// A process that does nothing until it is dropped.
struct Idle(Child);

impl Idle {
    fn begin() -> Self {
        Idle(Command::new("sleep").arg("600").spawn().unwrap())
    }

    fn id(&self) -> String {
        self.0.id().to_string()
    }
}

impl Drop for Idle {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What a tool says; `Err`: it cannot be started.
fn said(tool: &str, args: &[&str]) -> Result<Called, NotRun> {
    let output = Command::new(tool).args(args).output();
    let output = output.map_err(|e| NotRun::because(format!("{tool} cannot be started: {e}")))?;
    Ok(Called::from(output))
}

/// May this process make real-time threads?
fn permitted() -> Outcome {
    let idle = Idle::begin();
    let tried = said("chrt", &["-f", "-p", "1", &idle.id()])?;
    match tried.status {
        0 => said("taskset", &["-p", &idle.id()]).map(|_| ()),
        _ => Err(NotRun::because(tried.err.trim())),
    }
}

/// Runs the script with these arguments.
fn script(dir: &Path, args: &[&str]) -> Called {
    Called::of(
        Command::new("sh")
            .current_dir(dir)
            .arg("plan.sh")
            .args(args),
    )
}

fn a_script_gives_threads_the_priorities_of_the_plan() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    call(dir, "advise tasks.toml -m 1 --policy p-rm -o plan.json").with_status(0);
    let export = call(dir, "plan export tasks.toml plan.json --to chrt -o plan.sh");
    assert!(
        export.err.contains("Linux makes the decisions"),
        "{}",
        export.err
    );
    export.with_status(0);
    // Asked for nothing, or for another task, it does nothing.
    assert_eq!(script(dir, &[]).status, 2);
    let other = script(dir, &["video=1"]);
    assert_eq!(other.status, 2);
    assert!(other.err.contains("no task video"), "{}", other.err);
    permitted()?;
    let (camera, control) = (Idle::begin(), Idle::begin());
    let placed = script(
        dir,
        &[
            &format!("camera={}", camera.id()),
            &format!("control unit={}", control.id()),
        ],
    );
    assert_eq!(placed.status, 0, "{}", placed.err);
    for (idle, priority) in [(&camera, 89), (&control, 90)] {
        let found = said("chrt", &["-p", &idle.id()])?.out;
        assert!(found.contains("SCHED_FIFO"), "{found}");
        assert!(found.contains(&format!("priority: {priority}")), "{found}");
        let found = said("taskset", &["-pc", &idle.id()])?.out;
        assert!(found.trim_end().ends_with(": 0"), "{found}");
    }
    Ok(())
}

fn a_script_starts_the_programs_of_the_plan() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    call(
        dir,
        "advise programs.toml -m 1 --policy p-fp:dm -o plan.json",
    )
    .with_status(0);
    let export = call(
        dir,
        "plan export programs.toml plan.json --to chrt -o plan.sh",
    );
    assert!(
        export.err.contains("no program is known for control unit"),
        "{}",
        export.err
    );
    export.with_status(0);
    permitted()?;
    let started = script(dir, &["start"]);
    assert_eq!(started.status, 0, "{}", started.err);
    let found = std::fs::read_to_string(dir.join("camera file")).unwrap();
    assert!(
        found.contains("SCHED_FIFO") && found.contains("priority: 89"),
        "{found}"
    );
    assert!(found.trim_end().ends_with(": 0"), "{found}");
    Ok(())
}

fn a_script_gives_threads_their_budgets() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    // On all processors of this machine: no cpuset has to be made.
    call(dir, "advise programs.toml --policy g-edf -o plan.json").with_status(0);
    let export = "plan export programs.toml plan.json --to sched-deadline --reserve 10 -o plan.sh";
    call(dir, export).with_status(0);
    permitted()?;
    let text = std::fs::read_to_string(dir.join("plan.sh")).unwrap();
    let online = std::fs::read_to_string("/sys/devices/system/cpu/online").unwrap();
    if !text.contains(&format!("/online)\" = {} ]", online.trim())) {
        return Err(NotRun::because("not all processors can be used here"));
    }
    let control = Idle::begin();
    let placed = script(dir, &[&format!("control unit={}", control.id()), "start"]);
    if placed.err.contains("Device or resource busy") {
        return Err(NotRun::because(
            "others have the bandwidth of SCHED_DEADLINE",
        ));
    }
    assert_eq!(placed.status, 0, "{}", placed.err);
    let found = said("chrt", &["-p", &control.id()])?.out;
    assert!(found.contains("SCHED_DEADLINE"), "{found}");
    // 1 ms and a tenth, within 10 ms, each 10 ms.
    assert!(found.contains("1100000/10000000/10000000"), "{found}");
    let found = std::fs::read_to_string(dir.join("camera file")).unwrap();
    assert!(found.contains("SCHED_DEADLINE"), "{found}");
    assert!(found.contains("2200000/33000000/33000000"), "{found}");
    Ok(())
}

fn systemd_accepts_the_units() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    call(dir, "advise programs.toml -m 1 --policy p-rm -o plan.json").with_status(0);
    let export = "plan export programs.toml plan.json --to systemd";
    assert!(call(dir, export).refusal().contains("several files"));
    call(dir, &format!("{export} -o units")).with_status(0);
    let units = dir.join("units");
    let drop_in = "control\\x20unit.service.d/50-warmset-plan.conf";
    let found = std::fs::read_to_string(units.join(drop_in)).unwrap();
    assert!(found.contains("CPUSchedulingPriority=90"), "{found}");
    let unit = units.join("camera.service").display().to_string();
    let target = units.join("warmset-plan.target").display().to_string();
    let verified = said("systemd-analyze", &["verify", "--man=no", &unit, &target])?;
    // What it complains about is said with the name of the file.
    let complaints: Vec<&str> = verified
        .err
        .lines()
        .filter(|line| line.contains("camera") || line.contains("warmset-plan"))
        .collect();
    assert!(complaints.is_empty(), "{}", verified.err);
    // It does complain about what is wrong.
    let text = std::fs::read_to_string(&unit).unwrap();
    std::fs::write(&unit, text.replace("=fifo", "=lilo")).unwrap();
    let verified = said("systemd-analyze", &["verify", "--man=no", &unit])?;
    if !verified.err.contains("lilo") {
        return Err(NotRun::because(format!(
            "systemd-analyze cannot verify here: {}",
            verified.err.trim()
        )));
    }
    Ok(())
}

fn a_plan_goes_to_rt_app_and_comes_back() {
    let dir = directory();
    let dir = dir.path();
    call(dir, "advise tasks.toml -m 1 --policy p-rm -o plan.json").with_status(0);
    let export = "plan export tasks.toml plan.json --to rt-app --for 3s -o work.json";
    call(dir, export).with_status(0);
    let text = std::fs::read_to_string(dir.join("work.json")).unwrap();
    let back = rtapp::from_rt_app(&text, rtapp::Reading::default()).unwrap();
    assert!(back.notes.is_empty(), "{:?}", back.notes);
    // The same tasks by `convert`, judged under the priorities of the plan.
    call(dir, "convert work.json -o back.toml").with_status(0);
    let judged = "check back.toml -m 1 --policy p-fp --format json";
    let judged = call(dir, judged).json();
    let planned = call(dir, "check tasks.toml -m 1 --plan plan.json --format json").json();
    for field in ["tasks", "charged_ns"] {
        assert_eq!(
            judged["policies"][0][field], planned["policies"][0][field],
            "{field}"
        );
    }
    assert_eq!(judged["policies"][0]["schedulable"], true);
}

/// An auditor's way: the certificate by both verifiers, and the verdict by `check`, from the files
/// of the directory alone.
fn a_dossier_holds_the_evidence_for_a_plan() -> Outcome {
    let dir = directory();
    let dir = dir.path();
    let binary = Path::new(env!("CARGO_BIN_EXE_warmset"));
    if !binary.with_file_name("warmset-verify").exists() {
        return Err(NotRun::because("warmset-verify is not built"));
    }
    let tasks = TASKS.replace("period", "wss = \"64KiB\"\nperiod");
    std::fs::write(dir.join("tasks.toml"), tasks).unwrap();
    let charged = "--platform xeon-l7455 --profile xeon-l7455 --statistic average";
    let advise = format!("advise tasks.toml {charged} --policy p-edf,p-rm --dossier evidence");
    call(dir, &advise).with_status(0);
    let evidence = dir.join("evidence");
    let read = |name: &str| std::fs::read_to_string(evidence.join(name)).unwrap();
    let page = read("dossier.md");
    for part in [
        "ended with status 0: every claim is verified",
        "p-edf: yes, the guarantee is kept: verified",
        "| camera | 2ms | 33ms | 33ms |",
        "--profile profile.toml --statistic average --hard --plan plan.json",
        "The WCET of camera alone",
    ] {
        assert!(page.contains(part), "{part}\n{page}");
    }
    // Every file that it names is there.
    let named = page.split('`').filter(|word| {
        let (stem, ending) = word.rsplit_once('.').unwrap_or(("", ""));
        !stem.contains(' ') && ["toml", "json", "html", "txt", "py"].contains(&ending)
    });
    let named: Vec<&str> = named.collect();
    assert!(named.len() >= 8, "{named:?}");
    for name in named {
        assert!(evidence.join(name).exists(), "{name}");
    }
    // The commands that it names say what it says.
    let command = page
        .lines()
        .find_map(|line| line.strip_prefix("    warmset check "));
    let again = call(&evidence, &format!("check {}", command.expect("a command")));
    again.with_status(0);
    assert_eq!(read("again.json"), read("certificate.json"));
    let verified = Command::new(binary.with_file_name("warmset-verify"))
        .arg(evidence.join("certificate.json"))
        .output()
        .unwrap();
    assert_eq!(
        String::from_utf8(verified.stdout).unwrap(),
        read("verified.txt")
    );
    let python = Command::new("python3")
        .args(["verify.py", "certificate.json"])
        .current_dir(&evidence)
        .output();
    if let Ok(python) = python {
        assert!(python.status.success(), "{python:?}");
    }
    // A second plan does not go into the same directory.
    let refused = call(dir, &advise).refusal();
    assert!(
        refused.contains("there are files in this directory"),
        "{refused}"
    );
    // Servers are verified with all of their overheads.
    let served = format!("advise tasks.toml {charged} --policy nps-f --dossier served");
    call(dir, &served).with_status(0);
    let said = std::fs::read_to_string(dir.join("served/verified.txt")).unwrap();
    assert!(said.contains("verified") && !said.contains("NOT"), "{said}");
    // A policy that has no certificate is said to have none.
    let without = format!("advise tasks.toml {charged} --policy ca-edf --soft --dossier without");
    call(dir, &without).with_status(0);
    let page = std::fs::read_to_string(dir.join("without/dossier.md")).unwrap();
    assert!(
        page.contains("There is no certificate for this plan"),
        "{page}"
    );
    assert!(!dir.join("without/certificate.json").exists());
    // Nothing that holds, nothing that is written.
    let full = TASKS
        .replace("\"1ms\"", "\"10ms\"")
        .replace("\"2ms\"", "\"33ms\"");
    std::fs::write(dir.join("full.toml"), full).unwrap();
    let none = call(dir, "advise full.toml -m 1 --policy p-edf --dossier none");
    assert!(none.err.contains("no plan was found"), "{}", none.err);
    none.with_status(1);
    assert!(!dir.join("none").exists());
    Ok(())
}

fn what_cannot_be_exported_is_refused() {
    let dir = directory();
    let dir = dir.path();
    for (policy, file) in [
        ("p-edf", "p-edf.json"),
        ("p-rm", "p-rm.json"),
        ("nps-f", "nps-f.json"),
    ] {
        let advise = format!("advise tasks.toml -m 2 --policy {policy} -o {file}");
        call(dir, &advise).with_status(0);
    }
    std::fs::write(dir.join("file"), "").unwrap();
    for (args, cause) in [
        (
            "plan export tasks.toml nps-f.json --to chrt",
            "no such timetable",
        ),
        (
            "plan export tasks.toml nps-f.json --to sched-deadline",
            "no such timetable",
        ),
        (
            "plan export tasks.toml p-edf.json --to chrt",
            "by deadlines",
        ),
        (
            "plan export tasks.toml p-edf.json --to systemd -o units",
            "by deadlines",
        ),
        (
            "plan export tasks.toml p-edf.json --to rt-app",
            "makes no cpusets",
        ),
        (
            "plan export tasks.toml p-rm.json --to sched-deadline",
            "has fixed priorities",
        ),
        ("plan export programs.toml none.json --to chrt", "none.json"),
        (
            "plan export tasks.toml tasks.toml --to chrt",
            "no assignment",
        ),
        ("plan export tasks.toml p-rm.json --to cron", "cron"),
        ("plan export tasks.toml p-rm.json", "--to"),
        (
            "plan export tasks.toml p-rm.json --to systemd -o file",
            "is a file",
        ),
        (
            "plan export tasks.toml p-rm.json --to chrt -o none/plan.sh",
            "none",
        ),
    ] {
        let refused = call(dir, args).refusal();
        assert!(refused.contains(cause), "{args}: {refused}");
    }
    assert!(!dir.join("units").exists());
}
