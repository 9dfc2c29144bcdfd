//! Programs as tasks in a guest: this program itself, called so that it does little but take
//! processor time. What they have used is held against what the trace says that their jobs
//! executed.

use crate::case::Case;
use crate::init;
use execute::{JoinSocket, Launch, Manner, Performer, Rights};
use machine::process::of_children;
use model::{Beyond, Duration, Error, Result, TaskId, TaskSet};
use rustix::process::setpriority_process;
use rustix::thread::futex;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command};
use std::sync::Arc;
use std::sync::atomic::AtomicU32;
use std::time::Instant;
use warmset_task::Task;
use warmset_task::page::Control;
use warmset_task::shared::Shared;
use workload::Work;

/// The word by which this program becomes one.
pub const WORD: &str = "program";
/// What they do, in turn.
const KINDS: [&str; 3] = ["crowd", "naps", "ends"];
/// Those of which some thread can run at any time, once they are there: their jobs have all of
/// their budgets.
const AWAKE: [&str; 6] = ["crowd", "alone", "throng", "stirs", "lends", "swaps"];
/// Those of which several threads want a processor at once.
const MANY: [&str; 2] = ["crowd", "throng"];
/// So many threads has a throng.
const THRONG: usize = 40;
/// How long one that naps works, and sleeps.
const WORKS: Duration = Duration::from_micros(700);
const SLEEPS: std::time::Duration = std::time::Duration::from_millis(3);
/// One that stirs has threads that sleep for so many microseconds, again and again, beside one that
/// works: most of a turn of its, which ends at a tick, has passed when the last of them wakes up.
const STIRS: [u64; 4] = [1000, 1900, 2800, 3700];
/// Nice values of those that have a lock in turn, beside one of 0.
const NICE: [i32; 2] = [-10, 10];
/// `SCHED_FIFO`.
const SCHED_FIFO: i32 = 1;
/// After so much processor time one comes to its end.
const ENDS: Duration = Duration::from_millis(20);
/// After so many jobs one of those that ask for them ends.
const SOME_JOBS: u64 = 5;
/// How long one that joins waits for the door, and how long it has to go when the run is over.
const TO_JOIN: std::time::Duration = std::time::Duration::from_secs(10);
const TO_LEAVE: Duration = Duration::from_secs(2);
/// How long a watchdog has for them.
const TO_BE_KILLED: std::time::Duration = std::time::Duration::from_secs(2);
/// What they use before the run, and what clocks of hundredths of a second leave out.
const SLACK: Duration = Duration::from_millis(100);

/// The programs of a case.
#[derive(Default)]
pub(crate) struct Company {
    /// Where those come in that join from outside, and their processes.
    door: Option<Arc<JoinSocket>>,
    joining: Vec<Child>,
}

impl Company {
    /// Starts those that join from outside: every third of those that ask for their jobs.
    ///
    /// # Errors
    /// One of them cannot be started.
    pub fn begin(case: &Case, set: &TaskSet) -> Result<Self> {
        if !case.asks || case.programs < 3 {
            return Ok(Self::default());
        }
        let path = format!("/out/{}.door", case.name);
        let door = JoinSocket::at(&path, None)?;
        let mut joining = Vec::new();
        for task in set.ids().filter(|task| joins(case, *task)) {
            let (name, length) = (set.name(task), length(case, set, task));
            joining.push(start_joining(&path, &name, &length)?);
        }
        Ok(Company {
            door: Some(Arc::new(door)),
            joining,
        })
    }

    /// Who does the jobs of a task: a program, if it is one of the first so many, or this work.
    pub fn performer(
        &self,
        case: &Case,
        set: &TaskSet,
        task: TaskId,
        work: Box<dyn Work>,
    ) -> Performer {
        if task.0 >= case.programs {
            return Performer::Work(work);
        }
        if let Some(door) = self.door.as_ref().filter(|_| joins(case, task)) {
            return Performer::Outside(Arc::clone(door));
        }
        let kind = kind_of(case, task);
        let words = match case.asks {
            true if task.index() % 3 == 1 => {
                vec![
                    "asks".to_owned(),
                    length(case, set, task),
                    SOME_JOBS.to_string(),
                ]
            }
            true => vec!["asks".to_owned(), length(case, set, task)],
            false if kind == "holds" => vec![kind.to_owned(), lock_of(case)],
            false => vec![kind.to_owned()],
        };
        let command = ["/init", WORD].map(str::to_owned).into_iter();
        Performer::Program(Launch {
            command: command.chain(words).collect(),
            manner: match (case.asks, case.beyond) {
                (true, _) => Manner::Written,
                (false, true) => Manner::Unmodified(Beyond::BestEffort),
                (false, false) => Manner::Unmodified(Beyond::Hold),
            },
            rights: Rights::Kept,
            output: None,
        })
    }

    /// The run is over: those that have joined from outside go on, and come to their ends well.
    ///
    /// # Errors
    /// They do not.
    pub fn end(self) -> Result<()> {
        self.joining.into_iter().try_for_each(end_joining)
    }
}

/// Starts a program that joins a run by this door as the task of this name, for jobs of so many
/// nanoseconds.
///
/// # Errors
/// It cannot be started.
pub(crate) fn start_joining(door: &str, name: &str, length: &str) -> Result<Child> {
    let words = [WORD, "joins", door, name, length];
    let child = Command::new("/init").args(words).spawn();
    child.map_err(|e| Error::io("/init", "start it", &e))
}

/// The run is over, and a program that has joined it comes to its end well.
///
/// # Errors
/// It does not.
pub(crate) fn end_joining(mut child: Child) -> Result<()> {
    let status = init::ended(&mut child, TO_LEAVE);
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    let _ = child.kill();
    let how = status.map_or("does not end".to_owned(), |status| status.to_string());
    Err(Error::new(format!("a program that has joined: {how}")))
}

/// What a program does that does not ask for its jobs.
fn kind_of(case: &Case, task: TaskId) -> &str {
    let in_turn = KINDS[task.index() % KINDS.len()];
    case.kind.as_deref().unwrap_or(in_turn)
}

fn joins(case: &Case, task: TaskId) -> bool {
    task.0 < case.programs && task.index() % 3 == 2
}

/// How long a job of a program executes that asks for its jobs, in nanoseconds.
fn length(case: &Case, set: &TaskSet, task: TaskId) -> String {
    let (wcet, part) = (set.timings()[task.index()].wcet.nanos(), case.execution);
    (u128::from(wcet) * u128::from(part.num()) / u128::from(part.den())).to_string()
}

/// Is what this is called to be.
///
/// # Errors
/// There is no such program; it cannot join.
pub fn be(words: &[&str]) -> Result<()> {
    match words {
        // Three threads of two processes want all the time that there is.
        ["crowd"] => {
            std::thread::spawn(|| work(Duration::MAX));
            let child = Command::new("/init").args([WORD, "alone"]).spawn();
            child.map_err(|e| Error::io("/init", "start it", &e))?;
            work(Duration::MAX);
        }
        ["alone"] => work(Duration::MAX),
        // A thread that is not the first one starts another program, and has the first one's
        // number from then on.
        ["swaps"] => {
            std::thread::spawn(|| Command::new("/init").args([WORD, "alone"]).exec());
            work(Duration::MAX);
        }
        // More threads than one can run for an instant each time somebody looks.
        ["throng"] => {
            (1..THRONG).for_each(|_| drop(std::thread::spawn(|| work(Duration::MAX))));
            work(Duration::MAX);
        }
        ["naps"] => loop {
            work(WORKS);
            std::thread::sleep(SLEEPS);
        },
        ["stirs"] => {
            for sleeps in STIRS.map(std::time::Duration::from_micros) {
                std::thread::spawn(move || {
                    loop {
                        std::thread::sleep(sleeps);
                    }
                });
            }
            work(Duration::MAX);
        }
        // Threads of different nice values have one lock in turn: who waits lends its own.
        ["lends"] => {
            static LOCK: AtomicU32 = AtomicU32::new(0);
            for nice in NICE {
                std::thread::spawn(move || hold(&LOCK, nice));
            }
            hold(&LOCK, 0)?;
        }
        // One that holds what somebody outside asks for.
        ["holds", path] => {
            let page = lock_in(path)?;
            futex::lock_pi(&page.told, futex::Flags::empty(), None).map_err(no_lock)?;
            work(Duration::MAX);
        }
        ["ends"] => work(ENDS),
        ["asks", length] => serve(asks()?, length, u64::MAX)?,
        ["asks", length, jobs] => {
            let jobs = jobs.parse();
            let jobs = jobs.map_err(|e| Error::new(format!("no number of jobs: {e}")))?;
            serve(asks()?, length, jobs)?;
        }
        ["joins", door, name, length] => serve(join(door, name)?, length, u64::MAX)?,
        _ => return Err(Error::new(format!("there is no program `{words:?}`"))),
    }
    Ok(())
}

/// Joins the run that has started this program.
fn asks() -> Result<Task> {
    Task::join().map_err(|e| Error::io("the run", "join it", &e))
}

/// Joins a run that is about to make this door.
fn join(door: &str, name: &str) -> Result<Task> {
    let late = Instant::now() + TO_JOIN;
    loop {
        match Task::join_at(door, name) {
            Ok(task) => return Ok(task),
            Err(e) if Instant::now() > late => return Err(Error::io(door, "join a run", &e)),
            Err(_) => std::thread::sleep(std::time::Duration::from_millis(5)),
        }
    }
}

/// Does one job after the other, each of so many nanoseconds, and no more than so many.
fn serve(mut task: Task, length: &str, jobs: u64) -> Result<()> {
    let length = length.parse().map(Duration::from_nanos);
    let length = length.map_err(|e| Error::new(format!("no length: {e}")))?;
    for _ in 0..jobs {
        if task.wait().is_none() {
            break;
        }
        work(length);
    }
    Ok(())
}

fn no_lock(e: rustix::io::Errno) -> Error {
    Error::io("a futex", "lock or unlock it", &e.into())
}

/// Has a lock that lends priorities again and again, with work in it and none besides.
fn hold(lock: &AtomicU32, nice: i32) -> Result<()> {
    let flags = futex::Flags::PRIVATE;
    let own = Some(rustix::thread::gettid());
    setpriority_process(own, nice).map_err(no_lock)?;
    loop {
        futex::lock_pi(lock, flags, None).map_err(no_lock)?;
        work(WORKS);
        futex::unlock_pi(lock, flags).map_err(no_lock)?;
    }
}

/// The name of the file in which the lock is that the program of a case holds.
fn lock_of(case: &Case) -> String {
    format!("/out/{}.lock", case.name)
}

/// A thread of real-time priority asks for the lock that the program of a case holds, which lends
/// that its priority. The thread comes to nothing until the program ends.
///
/// # Errors
/// The memory with the lock cannot be had.
pub(crate) fn ask_for_lock(case: &Case) -> Result<()> {
    let page = lock_in(&lock_of(case))?;
    let own = |e: std::io::Error| Error::new(format!("no real-time priority: {e}"));
    std::thread::spawn(move || {
        sys::scheduling::set(0, SCHED_FIFO, 1).map_err(own)?;
        futex::lock_pi(&page.told, futex::Flags::empty(), None).map_err(no_lock)
    });
    Ok(())
}

/// The memory in which such a lock is.
fn lock_in(path: &str) -> Result<Shared<Control>> {
    let open = || {
        let mut options = fs::OpenOptions::new();
        let file = options.read(true).write(true).create(true).truncate(false);
        let file = file.open(path)?;
        file.set_len(size_of::<Control>() as u64)?;
        Shared::map(&file.into(), true)
    };
    open().map_err(|e| Error::io(path, "share it", &e))
}

/// Takes so much processor time.
pub(crate) fn work(length: Duration) {
    let end = machine::clock::thread_time().saturating_add(length);
    while machine::clock::thread_time() < end {
        (0..1000u64).for_each(|n| {
            std::hint::black_box(n);
        });
    }
}

/// The run has ended, or was killed, and its watchdog kills what is left of it: is nobody left
/// then?
///
/// # Errors
/// Somebody is.
pub(crate) fn none_left() -> Result<()> {
    let late = Instant::now() + TO_BE_KILLED;
    while let Some(path) = one_left() {
        if Instant::now() > late {
            return Err(Error::new(format!("a program is left: {}", path.display())));
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    Ok(())
}

fn one_left() -> Option<PathBuf> {
    processes().next()
}

/// The threads of all programs, by their numbers.
pub(crate) fn all() -> Vec<i32> {
    let mut threads: Vec<i32> = processes()
        .flat_map(|path| {
            fs::read_dir(path.join("task"))
                .into_iter()
                .flatten()
                .flatten()
        })
        .filter_map(|entry| entry.file_name().to_str()?.parse().ok())
        .collect();
    threads.sort_unstable();
    threads
}

/// The processes of programs, by their directories.
fn processes() -> impl Iterator<Item = PathBuf> {
    let words = format!("/init\0{WORD}\0");
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.map(|entry| entry.path()).filter(move |path| {
        fs::read(path.join("cmdline")).is_ok_and(|line| line.starts_with(words.as_bytes()))
    })
}

/// The run is over, and its programs have been waited for: they have executed what the trace says
/// of their jobs, by task, and nothing besides, but at most all that there was in the time since
/// its end. What had no job had no processor; where the case says that programs go on beyond their
/// budgets, they had at least half of the time that no job needed. Jobs of those that never sleep
/// have had all of their budgets.
///
/// # Errors
/// They have not.
pub(crate) fn agree(
    case: &Case,
    set: &TaskSet,
    (executed, least): (&[u64], &[u64]),
    since: Duration,
    cpus: u64,
) -> Result<()> {
    if case.programs == 0 {
        return Ok(());
    }
    let mut programs = set.ids().take(case.programs as usize);
    let is_short = |task: &TaskId| {
        AWAKE.contains(&kind_of(case, *task))
            && least[task.index()] < set.timings()[task.index()].wcet.nanos()
    };
    if let Some(task) = programs.find(|task| !case.asks && is_short(task)) {
        return Err(Error::new(format!(
            "a job of {}, whose program never sleeps, executed {} of its budget",
            set.name(task),
            Duration::from_nanos(least[task.index()])
        )));
    }
    // What of their last jobs is not told.
    let timings = &set.timings()[..case.programs as usize];
    let last: u64 = timings.iter().map(|timing| timing.wcet.nanos()).sum();
    let slack = SLACK.saturating_add(Duration::from_nanos(last));
    let (used, switches) = of_children();
    let told = Duration::from_nanos(executed[..case.programs as usize].iter().sum());
    println!(
        "guest: {}: programs used {used}, their jobs executed {told}, {switches} switches; \
         it ended {since} ago",
        case.name
    );
    let busy = match case.kind.as_deref() {
        Some(kind) if !MANY.contains(&kind) => cpus.min(case.programs.into()),
        _ => cpus,
    };
    let mut after = Duration::from_nanos(since.nanos() * busy).saturating_add(slack);
    let mut least = told;
    if case.beyond {
        let jobs: u64 = executed.iter().sum();
        let free = (case.horizon.nanos() * cpus).saturating_sub(jobs);
        after = after.saturating_add(Duration::from_nanos(free));
        least = told.saturating_add(Duration::from_nanos(free / 2));
    }
    if told.is_zero() || used > told.saturating_add(after) || used.saturating_add(slack) < least {
        return Err(Error::new(format!(
            "programs used {used} of processors, and their jobs executed {told}"
        )));
    }
    Ok(())
}
