//! Programs as tasks: started, held, moved and raised from outside, and taken off the machine at the end.
//!
//! A program that knows nothing of jobs gets what LITMUS^RT gives to `rt_launch` (002 §3.3): a budget, its WCET, in every
//! period. It is a polling server: its job ends when the budget is used up or when none of its threads wants the
//! processor ([`crate::sentinel`]), and its next job begins with the next release. What wakes up in between waits.
//!
//! **Held** it is by SIGSTOP to all of its processes. Freezing a control group would be the other way; it takes a group that one
//! may write to, and interrupts the same calls with `EINTR` when it ends (signal(7) names them: `epoll_wait` above all).
//!
//! **Nothing survives.** A program is a process group of its own, dies with the thread that started
//! it (`PR_SET_PDEATHSIG`), and carries the run's mark as all of its descendants do, in its
//! environment and in its limits ([`crate::rights`]), by which the engine and, when that is gone,
//! the watchdog and the heir find them. Where there is a control group for them the kernel knows
//! them all. Orphans come to the engine, which is their subreaper for as long as the run lasts.

use crate::door::Door;
use crate::family::Family;
use crate::kernel::{Processors, RUN, Thread, WAIT};
use crate::pages::{Belfry, Pages};
use crate::procfs::{self, Identity};
use crate::rights::{Before, Limit, Owner, Rights};
use machine::group::Group;
use model::{Beyond, CpuId, Error, Result};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use warmset_task::DESCRIPTORS;
use workload::Work;

/// Who does the jobs of a task.
pub enum Performer {
    /// A thread of this process.
    Work(Box<dyn Work>),
    /// A program.
    Program(Launch),
    /// A program that somebody else starts, and that comes through this door.
    Outside(Arc<Door>),
}

impl Performer {
    pub(crate) fn is_program(&self) -> bool {
        !matches!(self, Performer::Work(_))
    }
    /// Where it is waited for, if somebody else starts it.
    pub(crate) fn door(&self) -> Option<&Door> {
        match self {
            Performer::Outside(door) => Some(door),
            _ => None,
        }
    }
    /// Is it a program that knows nothing of jobs?
    pub(crate) fn is_unmodified(&self) -> bool {
        matches!(self, Performer::Program(l) if l.manner != Manner::Written)
    }
}

impl From<Box<dyn Work>> for Performer {
    fn from(work: Box<dyn Work>) -> Self {
        Performer::Work(work)
    }
}

/// What a program knows of jobs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Manner {
    /// Nothing: it has a budget, and this becomes of it beyond.
    Unmodified(Beyond),
    /// It asks for them through the task library.
    Written,
}

/// How a program is started.
#[derive(Debug)]
pub struct Launch {
    /// The program, looked for in `PATH`, and its arguments.
    pub command: Vec<String>,
    /// What it knows of jobs.
    pub manner: Manner,
    /// With which rights it runs.
    pub rights: Rights,
    /// Where it writes to instead of this process's standard error, which has both of its outputs otherwise.
    pub output: Option<File>,
}

#[derive(Debug)]
enum Kind {
    Unmodified(Beyond),
    Written(Pages),
}

/// What dispatchers do to a program.
#[derive(Debug)]
pub(crate) struct Program {
    kind: Kind,
    /// Whoever has the lock of the task's domain has this one too: nobody waits for it.
    family: Mutex<Family>,
    /// Has its first process ended?
    pub gone: AtomicBool,
    /// Somebody was born who may have missed a change.
    pub stale: AtomicBool,
    /// Processes to adopt.
    adopted: Mutex<Vec<i32>>,
    /// How many threads the dispatchers know.
    known: AtomicU32,
    /// Where it might run before it came from outside.
    home: Option<Processors>,
    /// Has it been let go, and goes on as if it had never come?
    pub free: AtomicBool,
}

impl Program {
    fn new(process: i32, kind: Kind) -> Result<Self> {
        let family = Family::of(process)?;
        Ok(Program {
            kind,
            known: AtomicU32::new(family.len() as u32),
            family: Mutex::new(family),
            gone: AtomicBool::new(false),
            stale: AtomicBool::new(false),
            adopted: Mutex::new(Vec::with_capacity(64)),
            home: None,
            free: AtomicBool::new(false),
        })
    }

    fn family(&self) -> MutexGuard<'_, Family> {
        self.family.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn change<T>(&self, change: impl FnOnce(&mut Family) -> T) -> T {
        let mut family = self.family();
        let done = change(&mut family);
        self.known.store(family.len() as u32, Ordering::Relaxed);
        done
    }

    /// Lets it run on this processor only.
    pub fn pin(&self, cpu: CpuId) -> io::Result<()> {
        self.change(|family| family.pin(cpu))
    }

    /// Gives all of its threads a priority.
    pub fn raise(&self, priority: i32) -> io::Result<()> {
        self.change(|family| family.raise(priority))
    }

    /// The processor time of all of them, in nanoseconds.
    pub fn time(&self) -> u64 {
        self.family().time()
    }

    /// Stops it where it is.
    pub fn hold(&self) {
        self.change(|family| family.signal(libc::SIGSTOP));
    }

    /// Lets it go on.
    pub fn release(&self) {
        self.change(|family| family.signal(libc::SIGCONT));
    }

    /// A process that has come from outside, with its pages.
    ///
    /// # Errors
    /// It has gone.
    pub fn guest(process: i32, pages: Pages) -> Result<Self> {
        let home = Thread(process)
            .processors()
            .map_err(|e| Error::new(format!("process {process} has gone: {e}")))?;
        Ok(Program {
            home: Some(home),
            ..Self::new(process, Kind::Written(pages))?
        })
    }

    /// Where a process from outside might run before it came.
    pub fn home(&self) -> Option<&Processors> {
        self.home.as_ref()
    }

    /// Lets a process from outside go on as it was before it came.
    fn let_go(&self) -> io::Result<()> {
        if let Some(home) = &self.home {
            self.change(|family| family.let_go(home))?;
            self.free.store(true, Ordering::Release);
        }
        Ok(())
    }

    /// Its pages, if it was written for them.
    pub fn pages(&self) -> Option<&Pages> {
        match &self.kind {
            Kind::Written(pages) => Some(pages),
            Kind::Unmodified(_) => None,
        }
    }

    /// Where none of its threads wants its processor: has it done its job?
    pub fn is_over(&self) -> bool {
        self.gone.load(Ordering::Acquire) || self.pages().is_none_or(Pages::is_done)
    }

    /// Is it stopped when its budget is used up?
    pub fn stops_beyond_budget(&self) -> bool {
        !matches!(self.kind, Kind::Unmodified(Beyond::BestEffort))
    }

    /// Its job has ended, and it is held already or not. True: it is held now.
    pub fn park(&self, held: bool) -> io::Result<bool> {
        match self.kind {
            Kind::Unmodified(Beyond::Hold) => {
                self.raise(WAIT)?;
                if !held {
                    self.hold();
                }
                Ok(true)
            }
            // It sleeps; a helper that wakes up is an ordinary thread.
            Kind::Written(_) | Kind::Unmodified(Beyond::BestEffort) => {
                self.change(Family::lower)?;
                if held {
                    self.release();
                }
                Ok(false)
            }
        }
    }

    /// Somebody was found who may have missed a change: does it again, to all. `held`: it stands still.
    pub fn tidy(&self, chosen: bool, held: bool, within_job: bool) -> io::Result<()> {
        if self.home.is_some() && self.gone.load(Ordering::Acquire) {
            // It has left, whatever it is about to do.
            return self.let_go();
        }
        let priority = match (chosen, within_job, &self.kind) {
            (true, ..) => Some(RUN),
            (false, true, _) | (.., Kind::Unmodified(Beyond::Hold)) => Some(WAIT),
            _ => None,
        };
        self.change(|family| {
            // The supervisor has it for a moment only; if it has it now, there will be another look.
            if let Ok(mut adopted) = self.adopted.try_lock() {
                for process in adopted.drain(..) {
                    family.adopt(process);
                }
            }
            family.repeat(priority)?;
            family.signal(if held { libc::SIGSTOP } else { libc::SIGCONT });
            Ok(())
        })
    }
}

/// How a program ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum How {
    /// By itself, with this status.
    Exited(i32),
    /// It had come from outside, and left.
    Left,
    /// By a signal that nobody of this run sent.
    Signal(i32),
    /// When it was told to, at the end of the run.
    Told,
    /// It did not end when it was told to (SIGTERM), and was killed.
    Forced,
}

impl std::fmt::Display for How {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            How::Exited(status) => write!(f, "ended with status {status}"),
            How::Signal(signal) => write!(f, "was ended by {}", signal_name(*signal)),
            How::Left => f.write_str("left the run"),
            How::Told => f.write_str("ended when it was told to"),
            How::Forced => f.write_str("did not end when it was told to (SIGTERM) and was killed"),
        }
    }
}

/// What became of the program of a task.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProgramEnd {
    /// Whose.
    pub task: model::TaskId,
    /// How it ended.
    pub how: How,
    /// When, by the time of the run.
    pub at: model::Instant,
}

/// The name of a signal that ends programs.
fn signal_name(signal: i32) -> String {
    let name = match signal {
        libc::SIGSEGV => "SIGSEGV, a wrong address",
        libc::SIGABRT => "SIGABRT, it gave up",
        libc::SIGKILL => "SIGKILL",
        libc::SIGTERM => "SIGTERM",
        libc::SIGBUS => "SIGBUS, a wrong address",
        libc::SIGFPE => "SIGFPE, wrong arithmetic",
        libc::SIGILL => "SIGILL, a wrong instruction",
        libc::SIGPIPE => "SIGPIPE, nobody reads what it writes",
        _ => return format!("signal {signal}"),
    };
    format!("signal {signal} ({name})")
}

/// What a program could not be done to, and why.
pub(crate) fn failed(what: &str, command: &[String], e: &io::Error) -> Error {
    let program = command.first().map_or("", String::as_str);
    let error = Error::new(format!("cannot {what} `{program}`: {e}"));
    match e.kind() {
        io::ErrorKind::NotFound => error.remedy(
            "write its path, relative to the directory that the run is started in, or a name in PATH",
        ),
        io::ErrorKind::PermissionDenied => error.remedy("make it executable for the user that it runs as"),
        _ if e.raw_os_error() == Some(libc::EAGAIN) => error.remedy(
            "there are too many processes: see `ulimit -u` of this user, and `pids.max` of the control group",
        ),
        _ if matches!(e.raw_os_error(), Some(libc::EMFILE | libc::ENFILE)) => {
            error.remedy("too many files are open: see `ulimit -n`")
        }
        _ if e.raw_os_error() == Some(libc::ENOMEM) => error.remedy("there is no memory left for it"),
        _ => error.remedy("start it by hand once, in the same place"),
    }
}

/// Starts a program and holds it before its first instruction.
///
/// The caller has to stay: the program ends with the thread that started it.
pub(crate) fn launch(launch: Launch, by: &Marked<'_>, belfry: &Belfry) -> Result<(i32, Program)> {
    let kind = match launch.manner {
        Manner::Unmodified(beyond) => Kind::Unmodified(beyond),
        Manner::Written => Kind::Written(Pages::new()?),
    };
    let before = Before::new(&launch.rights, by.limit, by.group)?;
    let words = &launch.command;
    let (first, arguments) = words
        .split_first()
        .ok_or_else(|| Error::new("no program is named"))?;
    let (out, err) = match launch.output {
        Some(file) => (file.try_clone().map(Stdio::from), Ok(Stdio::from(file))),
        None => (duplicate(libc::STDERR_FILENO), Ok(Stdio::inherit())),
    };
    let io = |e: io::Error| failed("redirect the output of", words, &e);
    let mut command = Command::new(first);
    command
        .args(arguments)
        .stdin(Stdio::null())
        .stdout(out.map_err(io)?)
        .stderr(err.map_err(io)?)
        .env(MARK, by.mark)
        .env("WARMSET_TASK", by.name)
        .process_group(0);
    let inherited = match &kind {
        Kind::Unmodified(_) => Vec::new(),
        Kind::Written(pages) => pages.numbers(belfry).to_vec(),
    };
    if !inherited.is_empty() {
        let numbers: Vec<String> = inherited.iter().map(ToString::to_string).collect();
        command.env(DESCRIPTORS, numbers.join(","));
    }
    before.apply(&mut command, move || {
        // SAFETY: between fork and exec: system calls that touch no memory but the list of
        // descriptors.
        unsafe {
            for fd in &inherited {
                libc::fcntl(*fd, libc::F_SETFD, 0);
            }
            match libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        }
    });
    let child = command.spawn().map_err(|e| failed("start", words, &e))?;
    let process = child.id() as i32;
    // It is traced for as long as the exec takes: it stops in front of its first instruction, and goes on being stopped.
    let held = waited_for(process, 0)
        .and_then(|_| {
            // SAFETY: a child of ours that is stopped for its tracer, which is this thread.
            match unsafe { libc::ptrace(libc::PTRACE_DETACH, process, 0, libc::SIGSTOP) } {
                0 => Ok(()),
                _ => Err(io::Error::last_os_error()),
            }
        })
        .and_then(|()| waited_for(process, libc::WUNTRACED));
    let done = match held {
        Ok(status) if libc::WIFSTOPPED(status) => Program::new(process, kind),
        Ok(_) => Err(failed("hold", words, &io::Error::other("it ended at once"))),
        Err(e) => Err(failed("hold", words, &e)),
    };
    done.map(|program| (process, program)).inspect_err(|_| {
        // SAFETY: a child of ours, which nobody has waited for as long as it was not found to have
        // ended.
        unsafe { libc::kill(process, libc::SIGKILL) };
        // It is gone, or will be soon; its status says nothing more.
        let _ = waited_for(process, 0);
    })
}

/// What a program is started with, by which it and all that it starts are known.
pub(crate) struct Marked<'a> {
    /// The value of `WARMSET_RUN` in its environment.
    pub mark: &'a str,
    /// The name of its task.
    pub name: &'a str,
    /// Its limits.
    pub limit: Limit,
    /// The control group of the run.
    pub group: Option<&'a Group>,
}

/// The variable by which processes of a run are known.
pub(crate) const MARK: &str = "WARMSET_RUN";

pub(crate) fn duplicate(fd: i32) -> io::Result<Stdio> {
    use std::os::fd::BorrowedFd;
    // SAFETY: a standard descriptor, which is open for as long as the process lives; it is only duplicated.
    let borrowed = unsafe { BorrowedFd::borrow_raw(fd) };
    borrowed.try_clone_to_owned().map(Stdio::from)
}

fn waited_for(process: i32, options: i32) -> io::Result<i32> {
    let mut status = 0;
    loop {
        // SAFETY: a child of ours; the status is a place for the answer.
        match unsafe { libc::waitpid(process, &mut status, options) } {
            -1 if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            -1 => return Err(io::Error::last_os_error()),
            _ => return Ok(status),
        }
    }
}

/// Has a child ended? Its status, if so; it is waited for then.
pub(crate) fn ended(process: i32) -> Option<i32> {
    let mut status = 0;
    // SAFETY: as above; it does not wait.
    let found = unsafe { libc::waitpid(process, &mut status, libc::WNOHANG) };
    (found == process && (libc::WIFEXITED(status) || libc::WIFSIGNALED(status))).then_some(status)
}

/// By what the processes of a run are known.
#[derive(Clone, Copy)]
pub(crate) struct Mark<'a> {
    /// What is in their environment.
    pub text: &'a [u8],
    /// Whose limits they have; without a number, all of that run.
    pub owner: Owner,
}

/// Whose process is it, or was it, where nobody has waited for it yet, by its limits?
pub(crate) fn owner_to_the_end(process: i32) -> Option<Owner> {
    let (soft, hard) = procfs::realtime_limit(process)?;
    Limit::owner(soft, hard)
}

/// Whose process is it, by its limits? `None` if it has ended.
pub(crate) fn owner(process: i32) -> Option<Owner> {
    let owner = owner_to_the_end(process)?;
    // One that nobody has waited for yet has its limits still.
    procfs::state(process)
        .is_some_and(|(state, _)| state != b'Z')
        .then_some(owner)
}

/// Sends a signal to every process that carries the mark, and names it. Those that carry it in
/// their environment alone are found
/// `below` a process, where all of them descend from that.
/// Takes no memory. Whoever looks into the environment of a process waits for its memory maps, which a stranger of low
/// priority may keep for long.
pub(crate) fn signal_marked(mark: Mark<'_>, below: Option<i32>, signal: i32, mut found: impl FnMut(i32)) {
    procfs::numbers(format_args!("/proc"), |process| {
        let is_owned = owner(process).is_some_and(|owner| {
            owner.run == mark.owner.run && (mark.owner.number.is_none() || owner.number == mark.owner.number)
        });
        let may_carry = || below.is_none_or(|ancestor| procfs::descends(process, ancestor));
        if is_owned || (may_carry() && procfs::has_in_environment(process, mark.text)) {
            found(process);
            // SAFETY: a call without pointers; it fails only where the process has gone.
            unsafe { libc::kill(process, signal) };
        }
    });
}

impl Program {
    /// For the supervisor: finds all processes that are alive of those that are known and their descendants, counts their threads
    /// on its own, and says so where the dispatchers know others.
    pub(crate) fn look(&self, processes: &mut Vec<Identity>) -> bool {
        let (mut count, mut at) = (0, 0);
        let mut threads = Vec::new();
        while at < processes.len() {
            let known = processes[at];
            if !known.exists() {
                processes.swap_remove(at);
                continue;
            }
            at += 1;
            threads.clear();
            procfs::threads(known.process, |tid| threads.push(tid));
            count += threads.len();
            for tid in &threads {
                procfs::children(known.process, *tid, |child| {
                    if !processes.iter().any(|p| p.process == child) {
                        processes.extend(Identity::of(child));
                    }
                });
            }
        }
        let differs = count != self.known.load(Ordering::Relaxed) as usize;
        if differs {
            self.stale.store(true, Ordering::Release);
        }
        differs
    }

    /// For the supervisor: takes in a process that has lost its parents.
    pub(crate) fn adopt(&self, process: i32) {
        self.adopted
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(process);
        self.stale.store(true, Ordering::Release);
    }

    /// After the run: makes it an ordinary program that goes on, and sends it a signal.
    pub(crate) fn dismiss(&self, signal: i32) {
        let mut family = self.family();
        // It fails only where the kernel has lost the thread.
        let _ = family.lower();
        match self.pages() {
            // It is told by the library.
            Some(pages) => pages.end(),
            None => family.signal(signal),
        }
        family.signal(libc::SIGCONT);
        drop(family);
        // Likewise.
        let _ = self.let_go();
    }
}
