//! Programs as tasks, for real: a budget and a period, on one processor at a time, and nothing left
//! of them afterwards.
//!
//! The programs are shells, and this test itself, started with the name of one of its own programs.

#[path = "support/noter.rs"]
mod noter;
#[path = "programs/spinners.rs"]
mod spinners;
mod support;
#[path = "programs/written.rs"]
mod written;

use execute::{Ending, How, JoinSocket, Launch, Manner, Performer, Rights, Settings};
use libtest_mimic::Completion;
use model::{Beyond, Duration, Error, Instant, TaskId, TaskSet};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use support::{Live, Ran, SpinFor, ms, set_of};
use trace::{EventKind, Flags};
use workload::Work;
use written::{
    a_program_joins_from_outside, a_program_that_is_written_for_it_knows_its_jobs,
    a_program_that_is_written_for_it_knows_its_jobs_across_policies,
    a_program_that_never_asks_for_a_job_is_refused, the_example_in_c_runs,
};

fn launch(command: &[&str]) -> Performer {
    program(command, Beyond::Hold)
}

fn program(command: &[&str], beyond: Beyond) -> Performer {
    Performer::Program(Launch {
        command: command.iter().map(|w| (*w).to_owned()).collect(),
        manner: Manner::Unmodified(beyond),
        rights: Rights::default(),
        output: None,
    })
}

fn shell(script: &str) -> Performer {
    launch(&["sh", "-c", script])
}

fn spin(time: Duration) -> Performer {
    Performer::Work(Box::new(SpinFor(time)))
}

const FOREVER: &str = "while :; do :; done";

fn run(
    live: &Live,
    policy: &str,
    set: &TaskSet,
    works: Vec<Performer>,
    horizon: Duration,
) -> Result<Ran, Error> {
    let assignment = live.assign(&policy.parse().unwrap(), set);
    let settings = Settings {
        horizon,
        ..Settings::default()
    };
    live.run_works(policy, set, assignment, works, &settings)
}

/// What all programs inherit that these tests start, so that they are told from those of other runs
/// on the machine.
const OURS: &str = "WARMSET_TESTS";

/// No process of a run is left: none carries a mark, and this one has no child.
fn nobody_is_left() {
    let ours = format!("\0{OURS}={}\0", std::process::id());
    for entry in std::fs::read_dir("/proc").unwrap() {
        let environ = entry.unwrap().path().join("environ");
        if let Ok(environ) = std::fs::read(&environ) {
            // The first variable has nothing in front of it.
            let environ = [b"\0", &environ[..]].concat();
            let has = |mark: &[u8]| environ.windows(mark.len()).any(|w| w == mark);
            let left = has(b"\0WARMSET_RUN=") && has(ours.as_bytes());
            assert!(!left, "{}", environ.escape_ascii());
        }
    }
    // SAFETY: asks for a child to be waited for; there is none left.
    let left = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(left, -1);
}

fn a_program_that_never_sleeps_gets_its_budget_in_every_period(live: &Live) {
    let set = set_of(&[(4, 20), (2, 20)]);
    let ran = run(
        live,
        "p-edf",
        &set,
        vec![shell(FOREVER), spin(ms(1))],
        ms(1000),
    )
    .unwrap();
    ran.is_sound();
    let t1 = &ran.statistics.tasks[0];
    assert_eq!(t1.jobs, 50);
    let done = |e: &&trace::Event| e.kind == EventKind::Completion && e.task == TaskId(0);
    for event in ran.events.iter().filter(done) {
        // While it starts it may wait for its file.
        let started = event.job < 3;
        let whole = event.flags.has(Flags::CUT) && event.argument >= 4_000_000;
        assert!(started || whole, "{event}");
    }
    assert_eq!(ran.outcome.programs.len(), 1);
    assert_eq!(ran.outcome.programs[0].how, How::Told);
    nobody_is_left();
}

fn a_program_that_sleeps_ends_its_job_by_that(live: &Live) {
    // It needs some 3 ms, and as long as a hypervisor takes the processor away meanwhile.
    let set = set_of(&[(30, 40)]);
    let script = "while :; do i=0; while [ $i -lt 500 ]; do i=$((i+1)); done; sleep 0.01; done";
    let ran = run(live, "g-edf", &set, vec![shell(script)], ms(2000)).unwrap();
    ran.is_sound();
    let t1 = &ran.statistics.tasks[0];
    assert_eq!((t1.jobs, t1.cut), (50, 0), "{}", ran.statistics);
    nobody_is_left();
}

fn beyond_its_budget_a_program_goes_on_as_an_ordinary_one_if_that_is_asked_for(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let set = set_of(&[(2, 40)]);
    // How often it was seen, once it had begun to count, and how often it stood still then. What it
    // gets beyond its budget is up to the machine.
    let seen = |beyond: Beyond, name: &str| {
        let path = dir.path().join(name);
        let script = format!(
            "exec 3>{}; i=0; while :; do i=$((i+1)); [ $((i % 100)) = 0 ] && echo $$ >&3; done",
            path.display()
        );
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let looks = scope.spawn(|| {
                let (mut looks, mut stopped) = (0, 0);
                while !over.load(Ordering::Relaxed) {
                    std::thread::sleep(std::time::Duration::from_millis(1));
                    let counted = std::fs::read_to_string(&path).unwrap_or_default();
                    let state = counted.lines().next().and_then(|process| {
                        let stat = std::fs::read_to_string(format!("/proc/{process}/stat"));
                        stat.ok()?.rsplit_once(") ")?.1.chars().next()
                    });
                    looks += u32::from(state.is_some());
                    stopped += u32::from(state == Some('T'));
                }
                (looks, stopped)
            });
            let alone = vec![program(&["sh", "-c", &script], beyond)];
            let ran = run(live, "g-edf", &set, alone, ms(1200));
            over.store(true, Ordering::Relaxed);
            ran.unwrap().is_sound();
            looks.join().unwrap()
        })
    };
    let (looks, stopped) = seen(Beyond::Hold, "held");
    assert!(stopped > 0, "never of {looks}");
    let (looks, stopped) = seen(Beyond::BestEffort, "free");
    assert!(looks > 0 && stopped == 0, "{stopped} of {looks}");
    nobody_is_left();
}

/// Several threads that spin, moved between processors all the time by jobs that come before them.
fn a_program_of_many_threads_is_never_on_two_processors(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seen");
    let this = std::env::current_exe().unwrap();
    // Two tasks with short periods on two processors, out of step: the program is moved to
    // whichever is free.
    let set = set_of(&[(90, 100), (5, 13), (5, 17)]);
    let words = ["program", "spinners", "5", file.to_str().unwrap(), "2500"];
    let command: Vec<&str> = std::iter::once(this.to_str().unwrap())
        .chain(words)
        .collect();
    let ran = run(
        live,
        "g-edf",
        &set,
        vec![launch(&command), spin(ms(4)), spin(ms(4))],
        ms(5000),
    )
    .unwrap();
    ran.is_sound();
    let migrations: u64 = ran.statistics.tasks[0].migrations.values().sum();
    let seen = spinners::read(&file);
    assert_eq!(seen.len(), 5);
    let mut all: Vec<_> = seen.concat();
    all.sort_by_key(|s| s.from);
    let moved = all.windows(2).filter(|w| w[0].cpu != w[1].cpu).count();
    assert!(
        migrations > 50 && moved > 50,
        "{migrations} migrations, {moved} moves"
    );
    // Whenever one was on a processor, no other was on the other one.
    let (mut last, mut worst) = ([0u64; 64], 0);
    for s in &all {
        for (cpu, end) in last.iter().enumerate() {
            if cpu as u32 != s.cpu {
                worst = worst.max(end.saturating_sub(s.from).min(s.to - s.from));
            }
        }
        let end = &mut last[s.cpu as usize];
        *end = (*end).max(s.to);
    }
    eprintln!("{migrations} migrations, {moved} moves seen; overlap at most {worst} ns");
    assert!(worst <= 2_000, "on two processors for {worst} ns");
    // It never sleeps: to be taken off its processor is no end of its job. It starts for a while,
    // and ends after 2.5 s.
    let early = |e: &&trace::Event| {
        let whole = e.kind == EventKind::Completion && !e.flags.has(Flags::CUT);
        whole && e.task == TaskId(0) && (3..20).contains(&e.job)
    };
    let early: Vec<String> = ran
        .events
        .iter()
        .filter(early)
        .map(ToString::to_string)
        .collect();
    assert!(early.is_empty(), "{early:?}");
    nobody_is_left();
}

/// Programs whose processor time no clock tells: they start one short process after the other,
/// waited for by its parent or without parents. The supervisor, an ordinary thread that finds
/// those, may run on no other processor than theirs here: whoever keeps that from it has to be
/// found all the same.
fn a_program_keeps_its_budget_whatever_it_starts(live: &Live) {
    let set = set_of(&[(10, 20), (2, 20)]);
    let cpu = live.platform.in_cache_order()[0];
    let supervisor = rustix::thread::gettid();
    let before = rustix::thread::sched_getaffinity(Some(supervisor)).unwrap();
    let spin = "sh -c 'i=0; while [ $i -lt 5000 ]; do i=$((i+1)); done'";
    for script in [
        format!("while :; do {spin}; done"),
        format!("while :; do ({spin} &); {spin}; done"),
    ] {
        let held = std::thread::spawn(move || {
            std::thread::sleep(std::time::Duration::from_millis(100));
            let mut only = rustix::thread::CpuSet::new();
            only.set(cpu.0 as usize);
            rustix::thread::sched_setaffinity(Some(supervisor), &only)
        });
        let programs = vec![shell(&script), self::spin(ms(1))];
        let ran = run(live, "p-edf", &set, programs, ms(1000));
        held.join().unwrap().unwrap();
        rustix::thread::sched_setaffinity(Some(supervisor), &before).unwrap();
        let ran = ran.unwrap();
        ran.is_sound();
        let t1 = &ran.statistics.tasks[0];
        assert!(t1.jobs == 50 && t1.cut >= 45, "{}", ran.statistics);
        // A noisy machine is late now and then.
        let of_t1 = |e: &&trace::Event| e.kind == EventKind::Completion && e.task == TaskId(0);
        let all = ran.events.iter().filter(of_t1);
        let beyond = all.filter(|e| e.argument > 12_000_000).count();
        assert!(beyond <= 5, "{beyond} {}", ran.statistics);
        nobody_is_left();
    }
}

fn all_that_a_program_starts_is_part_of_it_and_ends_with_it(live: &Live) {
    let set = set_of(&[(10, 20), (2, 20)]);
    // A child that leaves the group and loses its parent, one that ignores to be told, and one that
    // stays.
    let script = "setsid sh -c 'trap \"\" TERM; while :; do :; done' & (sh -c 'while :; do :; done' &) ; \
                  trap '' TERM; while :; do :; done";
    let ran = run(
        live,
        "p-edf",
        &set,
        vec![shell(script), spin(ms(1))],
        ms(1000),
    )
    .unwrap();
    ran.is_sound();
    let t1 = &ran.statistics.tasks[0];
    // All of them together have one budget.
    assert!(t1.jobs == 50 && t1.cut >= 47, "{}", ran.statistics);
    let executed: u64 = ran
        .events
        .iter()
        .filter(|e| e.kind == EventKind::Completion && e.task == TaskId(0))
        .map(|e| e.argument)
        .sum();
    assert!(executed >= 470_000_000, "{executed}");
    assert_eq!(ran.outcome.programs[0].how, How::Forced);
    nobody_is_left();
}

fn a_program_that_ends_has_no_more_work(live: &Live) {
    let set = set_of(&[(10, 20), (2, 20)]);
    let ran = run(
        live,
        "g-edf",
        &set,
        vec![shell("exit 0"), spin(ms(1))],
        ms(500),
    )
    .unwrap();
    ran.is_sound();
    assert_eq!(ran.outcome.programs[0].how, How::Exited(0));
    assert_eq!(ran.statistics.tasks[0].jobs, 25);
    // Where there is nothing else, the run ends with the last of them.
    let set = set_of(&[(10, 20), (10, 20)]);
    let both = vec![shell("exit 0"), shell("sleep 0.1")];
    let ran = run(live, "g-edf", &set, both, ms(20_000)).unwrap();
    assert_eq!(ran.outcome.ending, Ending::ProgramsEnded);
    nobody_is_left();
}

/// Whatever moment the last of a program's processes ends at, while the engine counts who is left,
/// it is waited for.
fn who_ends_late_is_waited_for(live: &Live) {
    let set = set_of(&[(10, 20)]);
    for round in 0..12 {
        // Twenty that end within forty milliseconds of being told, each at another moment.
        let script = format!(
            "n=0; while [ $n -lt 20 ]; do n=$((n+1)); \
             (trap 'sleep 0.0$((10 + 2 * n + {round}))1; exit 0' TERM; while :; do sleep 0.001; done) & done; \
             {FOREVER}"
        );
        let ran = run(live, "g-edf", &set, vec![shell(&script)], ms(200)).unwrap();
        assert_eq!(ran.outcome.programs.len(), 1);
        nobody_is_left();
    }
}

/// Its parent, and the mark in its environment, are gone before anybody looks: it is known by its
/// group.
fn an_orphan_without_an_environment_ends_with_the_run(live: &Live) {
    let set = set_of(&[(10, 20), (10, 20)]);
    for _ in 0..4 {
        let dir = tempfile::tempdir().unwrap();
        let there = dir.path().join("there");
        // Deaf to requests: it has to be killed.
        let script = format!(
            "exec > /dev/null 2>&1; trap '' TERM; env -i sh -c 'echo $$ > {}; while :; do sleep 0.1; done' & exit 0",
            there.display()
        );
        let programs = vec![shell(&script), spin(ms(10))];
        let ran = run(live, "g-edf", &set, programs, ms(200)).unwrap();
        assert_eq!(ran.outcome.programs.len(), 1);
        let orphan = std::fs::read_to_string(&there).unwrap();
        assert!(!Path::new("/proc").join(orphan.trim()).exists());
        nobody_is_left();
    }
}

fn a_program_that_fails_ends_the_run_and_is_named(live: &Live) {
    let set = set_of(&[(10, 20)]);
    for (program, cause) in [
        (shell("exit 3"), "ended with status 3"),
        (shell("kill -SEGV $$"), "was ended by signal 11 (SIGSEGV"),
        (
            launch(&["./no-such-program"]),
            "cannot start `./no-such-program`",
        ),
        (launch(&["/etc/passwd"]), "cannot start `/etc/passwd`"),
    ] {
        let e = run(live, "g-edf", &set, vec![program], ms(5000))
            .err()
            .unwrap();
        let text = e.to_string();
        assert!(text.contains("task T1") && text.contains(cause), "{text}");
        nobody_is_left();
    }
}

/// The engine's process is killed: what it ran is gone soon, the orphans that left their group too.
fn nothing_outlives_an_engine_that_is_killed(_: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let there = dir.path().join("there");
    let this = std::env::current_exe().unwrap();
    let mut engine = std::process::Command::new(this)
        .args(["program", "engine", there.to_str().unwrap()])
        .spawn()
        .unwrap();
    let waited = |what: &dyn Fn() -> bool| {
        let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
        while !what() && std::time::Instant::now() < end {
            std::thread::sleep(std::time::Duration::from_millis(5));
        }
        what()
    };
    assert!(waited(
        &|| std::fs::read_to_string(&there).is_ok_and(|t| t.lines().count() == 2)
    ));
    engine.kill().unwrap();
    engine.wait().unwrap();
    let gone = |pid: &str| !Path::new("/proc").join(pid).join("exe").exists();
    let text = std::fs::read_to_string(&there).unwrap();
    assert!(waited(&|| text.lines().all(gone)), "{text}");
}

/// A run that lasts, of a program that starts another one in a session of its own: both write down
/// who they are.
fn engine(there: &Path) {
    let live = support::live().unwrap();
    let path = there.display();
    let script = format!(
        "setsid sh -c 'trap \"\" TERM; echo $$ >> {path}; while :; do :; done' & echo $$ >> {path}; {FOREVER}"
    );
    let set = set_of(&[(10, 20)]);
    run(&live, "g-edf", &set, vec![shell(&script)], ms(60_000)).unwrap();
}

/// Work that panics while a program runs: the program ends with the run.
fn programs_end_with_a_run_that_fails(live: &Live) {
    struct Panics;
    impl Work for Panics {
        fn job(&mut self, number: u64, _: &std::sync::atomic::AtomicBool) {
            assert!(number < 3, "on purpose");
        }
    }
    let set = set_of(&[(5, 20), (2, 20)]);
    let works = vec![shell(FOREVER), Performer::Work(Box::new(Panics))];
    let e = run(live, "g-edf", &set, works, ms(5000)).err().unwrap();
    assert!(e.to_string().contains("task T2"), "{e}");
    nobody_is_left();
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|a| a == "program") {
        match arguments[2].as_str() {
            "spinners" => spinners::main(&arguments[3..]),
            "noter" => noter::main(&arguments[3..]),
            "engine" => engine(Path::new(&arguments[3])),
            other => panic!("{other}"),
        }
        return ExitCode::SUCCESS;
    }
    // SAFETY: no other thread has been started.
    unsafe { std::env::set_var(OURS, std::process::id().to_string()) };
    let tests = by_name!(
        a_program_that_never_sleeps_gets_its_budget_in_every_period,
        a_program_that_sleeps_ends_its_job_by_that,
        beyond_its_budget_a_program_goes_on_as_an_ordinary_one_if_that_is_asked_for,
        a_program_of_many_threads_is_never_on_two_processors,
        all_that_a_program_starts_is_part_of_it_and_ends_with_it,
        a_program_keeps_its_budget_whatever_it_starts,
        a_program_that_ends_has_no_more_work,
        who_ends_late_is_waited_for,
        an_orphan_without_an_environment_ends_with_the_run,
        a_program_that_fails_ends_the_run_and_is_named,
        nothing_outlives_an_engine_that_is_killed,
        programs_end_with_a_run_that_fails,
        a_program_that_is_written_for_it_knows_its_jobs,
        a_program_that_is_written_for_it_knows_its_jobs_across_policies,
        a_program_joins_from_outside,
        a_program_that_never_asks_for_a_job_is_refused,
    );
    let in_c: (String, support::Test) = ("the_example_in_c_runs".to_owned(), the_example_in_c_runs);
    support::main(tests.into_iter().chain([in_c]))
}
