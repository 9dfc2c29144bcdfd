//! Runs that are killed, stopped, or run out of memory: each in a process of its own, which is this
//! program again.
//!
//! Afterwards nobody is left of it, a shell has answered throughout, and its trace can be read up
//! to the last second.

#[path = "killed/shortage.rs"]
mod shortage;
mod support;

use execute::{Launch, Manner, Performer, Rights, Settings, Triggers};
use libtest_mimic::Completion;
use model::watch::Silent;
use model::{Beyond, Details, Duration, TaskSet, Trigger};
use shortage::{Group, POOR, few_files, few_processes};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitCode};
use std::sync::atomic::AtomicBool;
use std::time::Instant;
use support::guard::Guard;
use support::{Live, SpinFor, live, ms, set_of};
use trace::file::Reader;
use trace::{EventKind, FileSink, VecSink};
use workload::Work;

/// What the process is to do, as `WHAT TRACE`.
const SCENARIO: &str = "WARMSET_TEST_SCENARIO";

/// Takes more memory with every job, and uses it.
struct Hoards(Vec<Vec<u8>>);
impl Work for Hoards {
    fn job(&mut self, _: u64, _: &AtomicBool) {
        self.0.push(vec![1; 4 << 20]);
    }
}

fn set() -> TaskSet {
    set_of(&[(2, 20), (4, 40), (2, 20)])
}

/// A set whose first task has a FIFO, and what the program of its third one does, with a child in a
/// session of its own that has thrown its environment away; each says who it is.
fn made(path: &Path) -> (TaskSet, String) {
    let with_number = set().timings().to_vec().into_iter().enumerate();
    let tasks = with_number.map(|(index, timing)| {
        let details = Details {
            trigger: (index == 0)
                .then(|| Trigger::Fifo(beside(path, "fifo").to_str().unwrap().to_owned())),
            ..Details::named(format!("T{}", index + 1))
        };
        (timing, details)
    });
    let there = beside(path, "there");
    let there = there.display();
    let script = format!(
        "env -i setsid sh -c 'trap \"\" TERM; echo $$ >> {there}; while :; do :; done' & echo $$ >> {there}; while :; do :; done"
    );
    (TaskSet::new(tasks.collect()).unwrap(), script)
}

/// What a program does that starts others which nobody knows: of sessions of their own, without an
/// environment, each with a parent that ends at once. Some of them are born at any moment. They say
/// who they are.
fn unknown(path: &Path, doing: &str) -> String {
    let there = beside(path, "there");
    let there = there.display();
    let child = format!(
        "env -i setsid sh -c \"trap \\\"\\\" TERM; (trap \\\"\\\" TERM; read me rest < /proc/self/stat; \
         echo \\$me >> {there}; {doing}) & exit 0\""
    );
    format!("n=0; while [ $n -lt 8 ]; do n=$((n+1)); {child}; sleep 0.1; done; while :; do :; done")
}

/// A file that belongs to a trace.
fn beside(trace: &Path, extension: &str) -> std::path::PathBuf {
    trace.with_extension(extension)
}

/// The process's part: a run of a minute with its trace in a file.
fn scenario(what: &str, path: &Path) -> ExitCode {
    if what == "limited" {
        // Room for the first seconds.
        let most = libc::rlimit {
            rlim_cur: 1 << 30,
            rlim_max: 1 << 30,
        };
        // SAFETY: the limit lives through the call.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_AS, &most) }, 0);
    }
    let live = live().unwrap();
    let set = set();
    let spin = |us| Box::new(SpinFor(Duration::from_micros(us))) as Box<dyn Work>;
    let third = match what {
        "limited" | "confined" => Box::new(Hoards(Vec::new())),
        _ => spin(1000),
    };
    let set = if what == "makes" { made(path).0 } else { set };
    let plan = "g-edf"
        .parse::<policy::Spec>()
        .unwrap()
        .plan(&policy::Setup {
            set: &set,
            platform: &live.platform,
            assignment: None,
            quantum: ms(1),
        })
        .unwrap();
    let mut sink = FileSink::create(path, &live.header("g-edf", &set, None).unwrap()).unwrap();
    let scarce = what.split_once('-');
    let settings = Settings {
        horizon: match scarce {
            Some(_) => ms(300),
            None => Duration::from_secs(60),
        },
        triggers: Triggers::open(&set).unwrap(),
        ..Settings::default()
    };
    let mut works: Vec<Performer> = [spin(1000), spin(2000), third].map(Performer::Work).into();
    let script = match what {
        "makes" => Some(made(path).1),
        "multiplies" => Some(unknown(path, "while :; do :; done")),
        "dozes" => Some(unknown(path, "while :; do sleep 0.1; done")),
        _ if scarce.is_some() => Some(FORKS.to_owned()),
        _ => None,
    };
    if let Some(script) = script {
        works[2] = Performer::Program(Launch {
            command: ["sh", "-c", &script].map(str::to_owned).to_vec(),
            manner: Manner::Unmodified(Beyond::Hold),
            rights: Rights::default(),
            output: scarce.map(|_| std::fs::File::create("/dev/null").unwrap()),
        });
    }
    match scarce {
        Some(("files", more)) => few_files(more.parse().unwrap()),
        Some(("processes", most)) => few_processes(most.parse().unwrap()),
        _ => {}
    }
    match execute::run(
        plan,
        &set,
        works,
        &settings,
        &Silent,
        &mut sink,
        FileSink::flush,
    ) {
        Ok(_) => ExitCode::SUCCESS,
        Err(e) => {
            eprintln!("{e}");
            ExitCode::from(2)
        }
    }
}

/// Starts thirty processes, each of which the engine has to look after.
const FORKS: &str =
    "n=0; while [ $n -lt 30 ]; do n=$((n+1)); sleep 60 & done; while :; do sleep 0.01; done";

/// Starts the process of a scenario.
fn start(what: &str, trace: &Path) -> Child {
    Command::new(std::env::current_exe().unwrap())
        .env(SCENARIO, format!("{what} {}", trace.display()))
        .process_group(0)
        .spawn()
        .unwrap()
}

/// A run that has begun.
struct Begun {
    child: Child,
    trace: std::path::PathBuf,
    dog: i32,
    _dir: tempfile::TempDir,
    guard: Option<Guard>,
}

impl Drop for Begun {
    fn drop(&mut self) {
        // A test that has failed leaves nobody behind either: the watchdog sees to the rest.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Begun {
    /// Begins one, and comes back when its first second is in the trace.
    fn new(what: &str, confine: Option<&Path>) -> Self {
        let guard = Guard::new();
        // What is orphaned is ours to bury: the watchdog of a run that was killed.
        // SAFETY: a call without pointers.
        assert_eq!(unsafe { libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1) }, 0);
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("run.wtrace");
        let child = start(what, &trace);
        if let Some(group) = confine {
            std::fs::write(group.join("cgroup.procs"), child.id().to_string()).unwrap();
        }
        let mut begun = Begun {
            child,
            trace,
            dog: 0,
            _dir: dir,
            guard: Some(guard),
        };
        begun.wait_until(|| begun.jobs_done() > 20);
        begun.dog = begun.watchdog();
        begun
    }

    /// How many the trace holds, which may not be there yet.
    fn jobs_done(&self) -> usize {
        let mut sink = VecSink::default();
        let read = Reader::open(&self.trace).and_then(|mut reader| reader.replay(&mut sink));
        read.map_or(0, |_| {
            sink.events
                .iter()
                .filter(|e| e.kind == EventKind::Completion)
                .count()
        })
    }

    fn wait_until(&self, done: impl Fn() -> bool) {
        let until = Instant::now() + std::time::Duration::from_secs(60);
        while !done() {
            assert!(Instant::now() < until, "it takes too long");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
    }

    fn send(&self, to: i32, signal: i32) {
        // SAFETY: a process of ours that nobody has waited for.
        assert_eq!(unsafe { libc::kill(to, signal) }, 0);
    }

    fn pid(&self) -> i32 {
        self.child.id() as i32
    }

    /// Its watchdog.
    fn watchdog(&self) -> i32 {
        self.child("warmset-dog")
    }

    /// The process that outlives both.
    fn heir(&self) -> i32 {
        self.child("warmset-heir")
    }

    fn child(&self, name: &str) -> i32 {
        let pid = self.pid();
        let children = std::fs::read_to_string(format!("/proc/{pid}/task/{pid}/children")).unwrap();
        let named = |child: &&str| {
            std::fs::read_to_string(format!("/proc/{child}/comm"))
                .is_ok_and(|comm| comm.trim() == name)
        };
        let mut found = children.split_whitespace().filter(named);
        found.next().unwrap().parse().unwrap()
    }

    /// Those that have said who they are.
    fn there(&self) -> Vec<i32> {
        let text = std::fs::read_to_string(beside(&self.trace, "there")).unwrap_or_default();
        text.lines().filter_map(|line| line.parse().ok()).collect()
    }

    /// Those that are alive, a stopped one among them.
    fn alive(&self) -> Vec<i32> {
        let mut all = self.there();
        all.retain(|process| {
            Path::new("/proc")
                .join(process.to_string())
                .join("exe")
                .exists()
        });
        all
    }

    /// It has ended as it should: by a signal, or with an exit status. Nobody is left, and the
    /// trace can be read.
    fn has_ended(mut self, signal: Option<i32>, code: Option<i32>) {
        let status = self.child.wait().unwrap();
        assert_eq!((status.signal(), status.code()), (signal, code));
        let (group, dog) = (-self.pid(), self.dog);
        let guard = self.guard.take().unwrap();
        // SAFETY: buries what was orphaned, but not the guard's shell; asks whether anybody is
        // left.
        self.wait_until(|| unsafe {
            guard.others().for_each(|child| {
                libc::waitpid(child, std::ptr::null_mut(), libc::WNOHANG);
            });
            libc::kill(group, 0) != 0 && libc::kill(dog, 0) != 0
        });
        assert!(self.jobs_done() > 20, "the trace holds the first second");
        guard.all_is_quiet();
    }
}

fn a_run_that_is_killed_leaves_nobody_behind(_: &Live) -> Completion {
    let begun = Begun::new("spins", None);
    begun.send(begun.pid(), libc::SIGKILL);
    begun.has_ended(Some(libc::SIGKILL), None);
    Completion::Completed
}

/// The watchdog is not of the group that is killed: it ends the programs, one of which carries no
/// mark any more, and takes away what the run has made.
fn a_run_whose_whole_group_is_killed_leaves_nothing_behind(_: &Live) -> Completion {
    let begun = Begun::new("makes", None);
    let (fifo, there) = (beside(&begun.trace, "fifo"), beside(&begun.trace, "there"));
    let who = || std::fs::read_to_string(&there).unwrap_or_default();
    begun.wait_until(|| who().lines().count() == 2);
    assert!(fifo.exists());
    // The keeper looks fifty times a second.
    std::thread::sleep(std::time::Duration::from_millis(200));
    begun.send(-begun.pid(), libc::SIGKILL);
    let text = who();
    let gone = |pid: &str| !Path::new("/proc").join(pid).join("exe").exists();
    begun.wait_until(|| text.lines().all(gone));
    begun.has_ended(Some(libc::SIGKILL), None);
    assert!(!fifo.exists());
    Completion::Completed
}

/// Whatever was born at that moment, and whatever it has thrown away: it does not outlive engine
/// and watchdog.
fn what_runs_start_does_not_outlive_engine_and_watchdog(_: &Live) -> Completion {
    for _ in 0..3 {
        let begun = Begun::new("multiplies", None);
        begun.wait_until(|| begun.there().len() >= 3);
        assert!(!begun.alive().is_empty());
        begun.send(begun.watchdog(), libc::SIGKILL);
        begun.send(begun.pid(), libc::SIGKILL);
        begun.wait_until(|| begun.alive().is_empty());
        // One that has not yet said who it was has not got to it either.
        std::thread::sleep(std::time::Duration::from_millis(100));
        assert_eq!(begun.alive(), [0; 0]);
        begun.has_ended(Some(libc::SIGKILL), None);
    }
    Completion::Completed
}

/// Nobody of the run is left to end its programs.
fn kill_all(begun: &Begun) {
    let all = [begun.heir(), begun.watchdog(), begun.pid()];
    for process in all {
        begun.send(process, libc::SIGKILL);
    }
}

/// Engine, watchdog and heir are killed at once: what spins at real-time priority is ended by the
/// kernel.
fn what_everybody_has_left_at_real_time_priority_is_ended_by_the_kernel(_: &Live) -> Completion {
    let begun = Begun::new("multiplies", None);
    begun.wait_until(|| begun.there().len() >= 3);
    kill_all(&begun);
    assert!(!begun.alive().is_empty());
    // They stand still where their budget was used up, some of them before they have said who they
    // are.
    begun.wait_until(|| {
        let others = begun.guard.iter().flat_map(Guard::others);
        let orphans: Vec<i32> = others.filter(|process| *process != begun.pid()).collect();
        for process in &orphans {
            // SAFETY: calls without pointers that matter, to a process that was orphaned to this
            // one and that nobody has waited for.
            unsafe {
                libc::kill(*process, libc::SIGCONT);
                libc::waitpid(*process, std::ptr::null_mut(), libc::WNOHANG);
            }
        }
        begun.alive().is_empty() && orphans.is_empty()
    });
    begun.has_ended(Some(libc::SIGKILL), None);
    Completion::Completed
}

/// The same of what sleeps now and then, which the kernel lets live: the next run ends it.
fn what_everybody_has_left_is_ended_by_the_next_run(_: &Live) -> Completion {
    let begun = Begun::new("dozes", None);
    begun.wait_until(|| begun.there().len() >= 3);
    kill_all(&begun);
    assert!(!begun.alive().is_empty());
    let mut next = start("spins", &beside(&begun.trace, "next"));
    begun.wait_until(|| begun.alive().is_empty());
    next.kill().unwrap();
    next.wait().unwrap();
    begun.has_ended(Some(libc::SIGKILL), None);
    Completion::Completed
}

/// Whatever there is too little of, from the first descriptor on: one sentence, status 2, and
/// nobody is left.
fn a_run_without_descriptors_or_processes_says_so_in_a_sentence(_: &Live) -> Completion {
    let dir = tempfile::tempdir().unwrap();
    let ended = |what: &str| {
        let told = Command::new(std::env::current_exe().unwrap())
            .env(
                SCENARIO,
                format!("{what} {}", dir.path().join("run.wtrace").display()),
            )
            .output()
            .unwrap();
        let text = String::from_utf8(told.stderr).unwrap();
        match told.status.code() {
            Some(0) => assert_eq!(text, "", "{what}"),
            code => assert_eq!((code, text.lines().count()), (Some(2), 1), "{what}: {text}"),
        }
        (told.status.success(), text)
    };
    let (mut failed, mut last) = (0, false);
    for more in (0..24).chain((24..96).step_by(12)) {
        let (well, text) = ended(&format!("files-{more}"));
        failed += usize::from(!well);
        assert!(
            well || text.contains("ulimit -n") || text.contains("(os error 24)"),
            "{more}: {text}"
        );
        last = well;
    }
    assert!(failed > 20 && last, "{failed}");
    if !rustix::process::getuid().is_root() {
        return Completion::ignored_with(
            "a user who has too few processes cannot be made: run the tests as root",
        );
    }
    for most in 1..=3 {
        let (well, text) = ended(&format!("processes-{most}"));
        assert!(!well && text.contains("(os error 11)"), "{most}: {text}");
    }
    let _ = std::fs::remove_dir(format!("/tmp/warmset-{POOR}"));
    Completion::Completed
}

fn a_run_whose_heir_is_killed_ends(_: &Live) -> Completion {
    let begun = Begun::new("spins", None);
    begun.send(begun.heir(), libc::SIGKILL);
    begun.has_ended(None, Some(2));
    Completion::Completed
}

/// All of its dispatchers stand still; what is stopped does not end when it is told to.
fn a_run_that_is_stopped_is_ended_by_its_watchdog(_: &Live) -> Completion {
    let begun = Begun::new("spins", None);
    begun.send(begun.pid(), libc::SIGSTOP);
    begun.has_ended(Some(libc::SIGKILL), None);
    Completion::Completed
}

fn a_run_whose_watchdog_is_killed_ends(_: &Live) -> Completion {
    let begun = Begun::new("spins", None);
    begun.send(begun.watchdog(), libc::SIGKILL);
    begun.has_ended(None, Some(2));
    Completion::Completed
}

fn a_run_whose_watchdog_is_stopped_ends(_: &Live) -> Completion {
    let begun = Begun::new("spins", None);
    begun.send(begun.watchdog(), libc::SIGSTOP);
    begun.has_ended(None, Some(2));
    Completion::Completed
}

fn a_run_without_address_space_aborts_and_leaves_nobody_behind(_: &Live) -> Completion {
    Begun::new("limited", None).has_ended(Some(libc::SIGABRT), None);
    Completion::Completed
}

fn a_run_without_memory_is_killed_and_leaves_nobody_behind(_: &Live) -> Completion {
    let group = match Group::new(400 << 20) {
        Ok(group) => group,
        Err(why) => return Completion::ignored_with(why),
    };
    Begun::new("confined", Some(&group.0)).has_ended(Some(libc::SIGKILL), None);
    Completion::Completed
}

fn main() -> ExitCode {
    if let Ok(told) = std::env::var(SCENARIO) {
        let (what, path) = told.split_once(' ').unwrap();
        return scenario(what, Path::new(path));
    }
    macro_rules! tests {
        ($($name:ident),+ $(,)?) => {
        [$((stringify!($name).to_owned(), $name as support::Test)),+]
    };
    }
    support::main(tests!(
        a_run_that_is_killed_leaves_nobody_behind,
        a_run_whose_whole_group_is_killed_leaves_nothing_behind,
        a_run_that_is_stopped_is_ended_by_its_watchdog,
        what_runs_start_does_not_outlive_engine_and_watchdog,
        what_everybody_has_left_at_real_time_priority_is_ended_by_the_kernel,
        what_everybody_has_left_is_ended_by_the_next_run,
        a_run_whose_heir_is_killed_ends,
        a_run_without_descriptors_or_processes_says_so_in_a_sentence,
        a_run_whose_watchdog_is_killed_ends,
        a_run_whose_watchdog_is_stopped_ends,
        a_run_without_address_space_aborts_and_leaves_nobody_behind,
        a_run_without_memory_is_killed_and_leaves_nobody_behind,
    ))
}
