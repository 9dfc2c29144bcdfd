//! Programs that are written for the engine: they ask for their jobs.

use super::*;

fn written(command: &[&str]) -> Performer {
    Performer::Program(Launch {
        command: command.iter().map(|w| (*w).to_owned()).collect(),
        manner: Manner::Written,
        rights: Rights::default(),
        output: None,
    })
}

/// What a program noted, against what the trace says of its task.
fn noted_what_happened(ran: &Ran, notes: &[Vec<u64>], period: u64) {
    let of = |kind: EventKind| {
        let events = ran.events.iter();
        events.filter(move |e| e.kind == kind && e.task == TaskId(0))
    };
    let done = of(EventKind::Completion).count();
    // The last one may have been done after the end.
    assert!(
        notes.len() == done || notes.len() == done + 1,
        "{} {done}",
        notes.len()
    );
    for (index, note) in notes.iter().enumerate() {
        let [number, release, deadline, began, ..] = note[..] else {
            panic!()
        };
        assert_eq!(number, index as u64 + 1);
        assert_eq!(deadline - release, period);
        assert_eq!(release - notes[0][1], index as u64 * period);
        assert!(began >= release);
    }
    // A job that is found done when it leaves, or that finds another one done in its place, is
    // shown to resume for no time.
    let passing = |at: Instant| {
        let mut others = of(EventKind::Completion).chain(of(EventKind::Preemption));
        others.any(|e| e.time == at)
    };
    let went_on = |kind| of(kind).filter(|e| !passing(e.time)).count() as u64;
    let seen = (
        went_on(EventKind::Resumption),
        went_on(EventKind::Migration),
    );
    let last = &notes[notes.len() - 1];
    // The last job may have gone on after it was noted.
    let missing = last[4].abs_diff(seen.0) + last[5].abs_diff(seen.1);
    assert!(missing <= 1, "{last:?} {seen:?}");
}

/// A program that is written for it, under these policies in turn, beside two tasks that preempt it
/// in every job.
fn preempted_and_noted(live: &Live, policies: &[&str], turn: Option<Duration>) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("notes");
    let this = std::env::current_exe().unwrap();
    let command = [
        this.to_str().unwrap(),
        "program",
        "noter",
        file.to_str().unwrap(),
    ];
    // The others leave it 2.2 ms at a time, and it takes 3 ms.
    let set = set_of(&[(8, 25), (1, 3), (1, 3)]);
    let other = || spin(Duration::from_micros(800));
    let works = vec![written(&command), other(), other()];
    let plans: Vec<_> = policies
        .iter()
        .map(|p| (*p, live.assign(&p.parse().unwrap(), &set)))
        .collect();
    let settings = Settings {
        horizon: ms(1500),
        ..Settings::default()
    };
    let ran = live
        .run_in_turn(&plans, turn, &set, works, &settings)
        .unwrap();
    ran.is_sound();
    let notes = noter::read(&file);
    assert!(notes.len() >= 55, "{}", notes.len());
    noted_what_happened(&ran, &notes, 25_000_000);
    // It was preempted by the others, and saw for how long.
    assert!(notes.last().unwrap()[4] > 20 && notes.iter().any(|n| n[6] > 100_000));
    let switches = ran
        .events
        .iter()
        .filter(|e| e.kind == EventKind::PolicySwitch);
    assert_eq!(switches.count(), turn.map_or(0, |_| 2));
    assert_eq!(ran.outcome.programs[0].how, How::Told);
    nobody_is_left();
}

pub fn a_program_that_is_written_for_it_knows_its_jobs(live: &Live) {
    preempted_and_noted(live, &["g-edf"], None);
}

pub fn a_program_that_is_written_for_it_knows_its_jobs_across_policies(live: &Live) {
    preempted_and_noted(live, &["g-edf", "p-edf"], Some(ms(500)));
}

pub fn a_program_joins_from_outside(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let (file, socket) = (dir.path().join("notes"), dir.path().join("door"));
    let door = Arc::new(JoinSocket::open(&socket).unwrap());
    let this = std::env::current_exe().unwrap();
    let join = |name: &str| {
        std::process::Command::new(&this)
            .args([
                "program",
                "noter",
                file.to_str().unwrap(),
                socket.to_str().unwrap(),
                name,
            ])
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap()
    };
    let mut stranger = join("T9");
    let mut guest = join("T1");
    let set = set_of(&[(5, 25), (2, 20)]);
    let works = vec![Performer::Outside(door), spin(ms(1))];
    let ran = run(live, "g-edf", &set, works, ms(500)).unwrap();
    ran.is_sound();
    assert!(
        !stranger.wait().unwrap().success(),
        "no task of that name is waited for"
    );
    assert!(guest.wait().unwrap().success());
    noted_what_happened(&ran, &noter::read(&file), 25_000_000);
    assert!(!socket.exists());
    nobody_is_left();
}

/// The example in C, compiled by the C compiler against the library that was built with this test.
pub fn the_example_in_c_runs(live: &Live) -> Completion {
    let dir = tempfile::tempdir().unwrap();
    let program = dir.path().join("counter");
    let libraries = std::env::current_exe().unwrap();
    let library = libraries.parent().unwrap().join("libwarmset_task.a");
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let compiled = std::process::Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O2", "-o"])
        .arg(&program)
        .arg(root.join("examples/counter.c"))
        .arg("-I")
        .arg(root.join("crates/task/include"))
        .arg(&library)
        .args(["-lpthread", "-ldl", "-lm"])
        .status();
    match compiled {
        Err(e) => return Completion::ignored_with(format!("no C compiler `cc`: {e}")),
        Ok(status) => assert!(status.success(), "{}", library.display()),
    }
    let log = dir.path().join("log");
    let set = set_of(&[(5, 5)]);
    let launch = Launch {
        command: vec![program.to_str().unwrap().to_owned()],
        manner: Manner::Written,
        rights: Rights::default(),
        output: Some(std::fs::File::create(&log).unwrap()),
    };
    let ran = run(
        live,
        "g-edf",
        &set,
        vec![Performer::Program(launch)],
        ms(1200),
    )
    .unwrap();
    ran.is_sound();
    let text = std::fs::read_to_string(&log).unwrap();
    assert!(
        text.contains("job 200: on processor") && text.contains("the run is over"),
        "{text}"
    );
    assert_eq!(ran.outcome.programs[0].how, How::Told);
    // Alone it says that it cannot join.
    let alone = std::process::Command::new(&program).output().unwrap();
    assert_eq!(alone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&alone.stderr).contains("cannot join"));
    Completion::Completed
}

pub fn a_program_that_never_asks_for_a_job_is_refused(live: &Live) {
    let set = set_of(&[(5, 25)]);
    let e = run(live, "g-edf", &set, vec![written(&["true"])], ms(500))
        .err()
        .unwrap();
    assert!(
        e.to_string()
            .contains("ended before it asked for its first job"),
        "{e}"
    );
    nobody_is_left();
}
