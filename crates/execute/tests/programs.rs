//! Programs as tasks, for real: a budget and a period, on one processor at a time, and nothing left of them afterwards.
//!
//! The programs are shells, and this test itself, started with the name of one of its own programs.

mod support;

use execute::{Ending, How, Launch, Performer, Settings};
use libtest_mimic::Completion;
use model::{Beyond, Duration, Error, TaskId, TaskSet};
use std::path::Path;
use std::process::ExitCode;
use support::{Live, Ran, SpinFor, ms, set_of};
use trace::{EventKind, Flags};
use workload::Work;

/// A program of this file's own: threads that spin and note when they were on which processor.
mod spinners {
    use std::fs::File;
    use std::io::Write;
    use std::path::Path;

    /// From when until when it was seen on a processor, in nanoseconds, without being off for longer than [`HOLE`].
    #[derive(Clone, Copy, Debug)]
    pub struct Seen {
        pub from: u64,
        pub to: u64,
        pub cpu: u32,
    }
    const HOLE: u64 = 5_000;

    fn cpu() -> u32 {
        // SAFETY: takes no argument.
        unsafe { libc::sched_getcpu() as u32 }
    }

    fn spin(threads: usize, file: &Path, length: u64) {
        let end = execute::kernel::monotonic() + length;
        let threads: Vec<_> = (0..threads)
            .map(|_| {
                std::thread::spawn(move || {
                    let mut all: Vec<Seen> = Vec::with_capacity(1 << 16);
                    let mut rounds = 0u32;
                    loop {
                        let before = cpu();
                        let now = execute::kernel::monotonic();
                        if now > end {
                            return all;
                        }
                        // Moved in between: it is not known where it was at that moment.
                        if cpu() != before {
                            continue;
                        }
                        match all.last_mut() {
                            Some(s) if s.cpu == before && now - s.to < HOLE => s.to = now,
                            _ => all.push(Seen {
                                from: now,
                                to: now,
                                cpu: before,
                            }),
                        }
                        rounds = rounds.wrapping_add(1);
                        if rounds.is_multiple_of(2_000) {
                            std::thread::yield_now();
                        }
                    }
                })
            })
            .collect();
        let mut text = String::new();
        for (index, thread) in threads.into_iter().enumerate() {
            for s in thread.join().unwrap() {
                text += &format!("{index} {} {} {}\n", s.from, s.to, s.cpu);
            }
        }
        File::create(file).unwrap().write_all(text.as_bytes()).unwrap();
    }

    /// `spinners THREADS FILE MILLISECONDS`
    pub fn main(arguments: &[String]) {
        let [threads, file, length] = arguments else {
            panic!()
        };
        let length: u64 = length.parse().unwrap();
        spin(threads.parse().unwrap(), Path::new(file), length * 1_000_000);
    }

    /// What they noted, by thread.
    pub fn read(file: &Path) -> Vec<Vec<Seen>> {
        let mut all: Vec<Vec<Seen>> = Vec::new();
        for line in std::fs::read_to_string(file).unwrap().lines() {
            let n: Vec<u64> = line.split(' ').map(|n| n.parse().unwrap()).collect();
            let [thread, from, to, cpu] = n[..] else {
                panic!("{line}")
            };
            all.resize(all.len().max(thread as usize + 1), Vec::new());
            all[thread as usize].push(Seen {
                from,
                to,
                cpu: cpu as u32,
            });
        }
        all
    }
}

fn launch(command: &[&str]) -> Performer {
    program(command, Beyond::Hold)
}

fn program(command: &[&str], beyond: Beyond) -> Performer {
    Performer::Program(Launch {
        command: command.iter().map(|w| (*w).to_owned()).collect(),
        beyond,
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

/// No process of a run is left: none carries a mark, and this one has no child.
fn nobody_is_left() {
    for entry in std::fs::read_dir("/proc").unwrap() {
        let environ = entry.unwrap().path().join("environ");
        if let Ok(environ) = std::fs::read(&environ) {
            let mark = environ.windows(12).any(|w| w == b"WARMSET_RUN=");
            assert!(!mark, "{}", environ.escape_ascii());
        }
    }
    // SAFETY: asks for a child to be waited for; there is none left.
    let left = unsafe { libc::waitpid(-1, std::ptr::null_mut(), libc::WNOHANG) };
    assert_eq!(left, -1);
}

fn a_program_that_never_sleeps_gets_its_budget_in_every_period(live: &Live) {
    let set = set_of(&[(4, 20), (2, 20)]);
    let ran = run(live, "p-edf", &set, vec![shell(FOREVER), spin(ms(1))], ms(1000)).unwrap();
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
    let set = set_of(&[(15, 40)]);
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
    let counted = |beyond: Beyond, name: &str| {
        let path = dir.path().join(name);
        let script = format!(
            "exec 3>{}; i=0; while :; do i=$((i+1)); [ $((i % 1000)) = 0 ] && echo $i >&3; done",
            path.display()
        );
        run(
            live,
            "g-edf",
            &set,
            vec![program(&["sh", "-c", &script], beyond)],
            ms(1200),
        )
        .unwrap()
        .is_sound();
        std::fs::read_to_string(path).unwrap().lines().count()
    };
    let held = counted(Beyond::Hold, "held");
    let free = counted(Beyond::BestEffort, "free");
    // 2 of 40 ms, or as much as the machine has to give.
    assert!(held > 0 && free > 2 * held, "{held} {free}");
    nobody_is_left();
}

/// Several threads that spin, moved between processors all the time by jobs that come before them.
fn a_program_of_many_threads_is_never_on_two_processors(live: &Live) {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("seen");
    let this = std::env::current_exe().unwrap();
    // Two tasks with short periods on two processors, out of step: the program is moved to whichever is free.
    let set = set_of(&[(90, 100), (5, 13), (5, 17)]);
    let words = ["program", "spinners", "5", file.to_str().unwrap(), "2500"];
    let command: Vec<&str> = std::iter::once(this.to_str().unwrap()).chain(words).collect();
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
    nobody_is_left();
}

fn all_that_a_program_starts_is_part_of_it_and_ends_with_it(live: &Live) {
    let set = set_of(&[(10, 20), (2, 20)]);
    // A child that leaves the group and loses its parent, one that ignores to be told, and one that stays.
    let script = "setsid sh -c 'trap \"\" TERM; while :; do :; done' & (sh -c 'while :; do :; done' &) ; \
                  trap '' TERM; while :; do :; done";
    let ran = run(live, "p-edf", &set, vec![shell(script), spin(ms(1))], ms(1000)).unwrap();
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
    let ran = run(live, "g-edf", &set, vec![shell("exit 0"), spin(ms(1))], ms(500)).unwrap();
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

fn a_program_that_fails_ends_the_run_and_is_named(live: &Live) {
    let set = set_of(&[(10, 20)]);
    for (program, cause) in [
        (shell("exit 3"), "ended with status 3"),
        (shell("kill -SEGV $$"), "was ended by signal 11 (SIGSEGV"),
        (launch(&["./no-such-program"]), "cannot start `./no-such-program`"),
        (launch(&["/etc/passwd"]), "cannot start `/etc/passwd`"),
    ] {
        let e = run(live, "g-edf", &set, vec![program], ms(5000)).err().unwrap();
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

/// A run that lasts, of a program that starts another one in a session of its own: both write down who they are.
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
            "engine" => engine(Path::new(&arguments[3])),
            other => panic!("{other}"),
        }
        return ExitCode::SUCCESS;
    }
    macro_rules! tests {
        ($($name:ident),+ $(,)?) => {
            support::main([$((
                stringify!($name).to_owned(),
                (|live| {
                    $name(live);
                    Completion::Completed
                }) as support::Test,
            )),+])
        };
    }
    tests!(
        a_program_that_never_sleeps_gets_its_budget_in_every_period,
        a_program_that_sleeps_ends_its_job_by_that,
        beyond_its_budget_a_program_goes_on_as_an_ordinary_one_if_that_is_asked_for,
        a_program_of_many_threads_is_never_on_two_processors,
        all_that_a_program_starts_is_part_of_it_and_ends_with_it,
        a_program_that_ends_has_no_more_work,
        a_program_that_fails_ends_the_run_and_is_named,
        nothing_outlives_an_engine_that_is_killed,
        programs_end_with_a_run_that_fails,
    )
}
