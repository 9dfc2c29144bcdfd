//! Other programs that may disturb a run.

use super::*;

/// What `/proc` says of a thread: its name, flags, priority and class.
fn stat(name: &str, flags: u64, priority: u32, class: u32) -> String {
    let zeros = |n: usize| vec!["0"; n].join(" ");
    format!(
        "71 ({name}) S 1 1 1 0 -1 {flags} {} {priority} {class} {}",
        zeros(30),
        zeros(11)
    )
}

/// As [`stat`], of a process that another one started.
fn child(parent: u32, name: &str, priority: u32) -> String {
    stat(name, 0, priority, 1).replace(" S 1 1 1 ", &format!(" S {parent} 1 1 "))
}

#[test]
fn another_run_is_known_by_its_dispatchers_and_its_watchdog() {
    let name = "other Warmset runs";
    let (dispatcher, worker) = (stat("dispatcher 1", 0, 97, 1), stat("control", 0, 40, 1));
    let (dog, program) = (child(71, "warmset-dog", 98), child(71, "camera", 40));
    let on = |list: &str| format!("Name:\tx\nCpus_allowed_list:\t{list}\n");
    let (here, there) = (on("1"), on("4-5"));
    let files = |cpus| {
        [
            ("proc/71/task/71/stat", ""),
            ("proc/71/task/72/stat", dispatcher.as_str()),
            ("proc/71/task/72/status", cpus),
            ("proc/71/task/73/stat", worker.as_str()),
            ("proc/80/task/80/stat", dog.as_str()),
            ("proc/81/task/81/stat", program.as_str()),
        ]
    };
    let (level, seen, remedy) = only(&files(&here), name);
    assert_eq!(level, Level::Warn);
    assert!(
        seen.starts_with("process 71 is another Warmset run on processors 1: "),
        "{seen}"
    );
    assert!(remedy.contains("--cpus"), "{remedy}");
    // Its watchdog and its programs are not told a second time.
    let (level, ..) = only(&files(&here), "other real-time programs");
    assert_eq!(level, Level::Fine);
    // Elsewhere it disturbs nobody.
    let (level, seen, _) = only(&files(&there), name);
    assert_eq!(level, Level::Fine);
    assert!(seen.contains("processors 4-5"), "{seen}");
    // At its beginning it has no dispatchers yet.
    let (level, seen, _) = only(&[("proc/80/task/80/stat", dog.as_str())], name);
    assert_eq!(level, Level::Warn);
    assert!(
        seen.starts_with("process 71 is another Warmset run: "),
        "{seen}"
    );
    // A name alone makes no run.
    let low = stat("dispatcher 1", 0, 50, 1);
    let found = Made::of(&[("proc/71/task/72/stat", &low)]).look();
    assert!(of(&found, name).is_empty());
    assert_eq!(of(&found, "other real-time programs")[0].0, Level::Warn);
}

#[test]
fn other_real_time_programs_are_named_with_their_process() {
    let name = "other real-time programs";
    let (jack, low, migration) = (
        stat("jackd", 0, 70, 1),
        stat("low", 0, 10, 2),
        stat("migration/0", 0x20_0000, 99, 1),
    );
    let (level, seen, _) = only(
        &[
            ("proc/5/task/5/stat", &migration),
            ("proc/6/task/6/stat", &low),
        ],
        name,
    );
    assert_eq!(
        (level, seen.as_str()),
        (
            Level::Fine,
            "no other program has real-time threads at priority 38 or above"
        )
    );
    let (level, seen, remedy) = only(
        &[
            ("proc/71/task/71/stat", &stat("jackd", 0, 0, 0)),
            ("proc/71/task/72/stat", &jack),
            ("proc/71/task/73/stat", &stat("jackd", 0, 60, 1)),
        ],
        name,
    );
    assert_eq!(level, Level::Warn);
    assert_eq!(
        seen,
        "process 71 has `jackd` (thread 72) as SCHED_FIFO at 70, the highest of 2 threads: it may take time from jobs"
    );
    assert!(remedy.starts_with("end it (`kill 71`)"), "{remedy}");
    // Above everything, but elsewhere.
    let (dl, there) = (stat("dl", 0, 0, 6), "Cpus_allowed_list:\t4-7");
    let elsewhere = [
        ("proc/8/task/8/stat", dl.as_str()),
        ("proc/8/task/8/status", there),
    ];
    assert_eq!(only(&elsewhere, name).0, Level::Fine);
    let (_, seen, _) = only(&elsewhere[..1], name);
    assert!(
        seen.contains("as SCHED_DEADLINE: it may keep dispatchers waiting"),
        "{seen}"
    );
    // Each program on its own.
    let many: Vec<(String, String)> = (100..112)
        .map(|p| (format!("proc/{p}/task/{p}/stat"), stat("x", 0, 50, 1)))
        .collect();
    let files: Vec<(&str, &str)> = many.iter().map(|(p, s)| (p.as_str(), s.as_str())).collect();
    let found = Made::of(&files).look();
    let told: Vec<&Finding> = found.iter().filter(|f| f.name == name).collect();
    assert_eq!(told.len(), 9);
    assert_eq!(told[8].seen, "and 4 more");
}
