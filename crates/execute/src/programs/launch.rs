//! Starting a program as a task: held before its first instruction, marked, without rights.

use crate::kernel;
use crate::programs::joining::JoinSocket;
use crate::programs::marks::MARK;
use crate::programs::pages::{Pages, SentinelBells};
use crate::programs::program::{Kind, Program};
use crate::programs::rights::{Before, Limit, Rights};
use crate::remedies::MORE_THREADS;
use machine::group::Group;
use machine::procfs;
use model::{Beyond, Error, Result};
use rustix::io::FdFlags;
use rustix::process::{Pid, WaitOptions, WaitStatus, waitpid};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::process::CommandExt;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, mpsc};
use std::time::Duration;
use warmset_task::DESCRIPTORS;
use workload::Work;

/// How long a program may be on its way from its fork to its exec, where nothing is done that
/// lasts. Who is stopped there, by whomever, would keep the run waiting for good.
const TO_EXEC: Duration = Duration::from_secs(5);

/// Who does the jobs of a task.
pub enum Performer {
    /// A thread of this process.
    Work(Box<dyn Work>),
    /// A program.
    Program(Launch),
    /// A program that somebody else starts, and that joins through this socket.
    Outside(Arc<JoinSocket>),
}

impl Performer {
    pub(crate) fn is_program(&self) -> bool {
        !matches!(self, Performer::Work(_))
    }
    /// Is it counted how often its jobs miss the shared cache?
    pub(crate) fn counts_misses(&self) -> bool {
        matches!(self, Performer::Work(work) if work.counts_misses())
    }
    /// Where it is waited for, if somebody else starts it.
    pub(crate) fn join_socket(&self) -> Option<&JoinSocket> {
        match self {
            Performer::Outside(socket) => Some(socket),
            _ => None,
        }
    }
    /// Is it stopped when its budget is used up?
    pub(crate) fn stops_beyond_budget(&self) -> bool {
        !matches!(self, Performer::Program(l) if l.manner == Manner::Unmodified(Beyond::BestEffort))
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
    /// Where it writes to instead of this process's standard error, which has both of its outputs
    /// otherwise.
    pub output: Option<File>,
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

/// Starts a program and holds it before its first instruction.
///
/// The caller has to stay: the program ends with the thread that started it.
pub(crate) fn launch(
    launch: Launch,
    by: &Marked<'_>,
    bells: &SentinelBells,
) -> Result<(i32, Program)> {
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
        None => (to_standard_error(), Ok(Stdio::inherit())),
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
        Kind::Written(pages) => pages.numbers(bells).to_vec(),
    };
    if !inherited.is_empty() {
        let numbers: Vec<String> = inherited.iter().map(ToString::to_string).collect();
        command.env(DESCRIPTORS, numbers.join(","));
    }
    before.apply(&mut command, move || {
        for fd in &inherited {
            // SAFETY: the pages that the numbers are of outlive the command, and are open in the
            // process that was forked.
            let fd = unsafe { BorrowedFd::borrow_raw(*fd) };
            rustix::io::fcntl_setfd(fd, FdFlags::empty())?;
        }
        sys::process::trace_me()
    });
    let process = spawn_held(&mut command, words)?;
    let program = Program::new(process, kind).inspect_err(|_| give_up(process))?;
    Ok((process, program))
}

/// Starts a program, which between fork and exec has called [`sys::process::trace_me`], and holds
/// it before its first instruction. Its number.
///
/// The calling thread has to be the one that waits for it.
///
/// # Errors
/// It cannot be started, is not executed in time, or ends at once.
pub(crate) fn spawn_held(command: &mut Command, words: &[String]) -> Result<i32> {
    let process = spawn_within(TO_EXEC, command, words)?.id() as i32;
    let broken = |e: &io::Error| {
        give_up(process);
        failed("hold", words, e)
    };
    // It is traced for as long as the exec takes: it stops in front of its first instruction, and
    // goes on being stopped.
    let stopped = |options| {
        let status = waited_for(process, options).map_err(|e| broken(&e))?;
        // Else it was waited for, and its number is another's soon.
        match status.stopped() {
            true => Ok(()),
            false => Err(failed("hold", words, &io::Error::other("it ended at once"))),
        }
    };
    stopped(WaitOptions::empty())?;
    sys::process::leave_stopped(process).map_err(|e| broken(&e))?;
    stopped(WaitOptions::UNTRACED)?;
    Ok(process)
}

/// Ends a child that nobody has waited for, as it was not found to have ended.
pub(crate) fn give_up(process: i32) {
    kernel::kill(process, libc::SIGKILL);
    // It is gone, or will be soon; its status says nothing more.
    let _ = waited_for(process, WaitOptions::empty());
}

/// Starts a program, or ends it where it has not reached its exec in time.
fn spawn_within(time: Duration, command: &mut Command, words: &[String]) -> Result<Child> {
    let (process, thread) = (
        std::process::id() as i32,
        rustix::thread::gettid().as_raw_pid(),
    );
    let children = move || {
        let mut found = Vec::new();
        procfs::children(process, thread, |child| found.push(child));
        found
    };
    let before = children();
    let (begun, waits) = mpsc::channel::<()>();
    let ends_it = move || {
        let late = waits.recv_timeout(time) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            // Nobody else waits for children of this thread, which itself waits in `spawn`.
            for child in children().into_iter().filter(|c| !before.contains(c)) {
                kernel::kill(child, libc::SIGKILL);
            }
        }
        late
    };
    let (child, late) = std::thread::scope(|scope| {
        let watch = std::thread::Builder::new()
            .name("launch".to_owned())
            .stack_size(256 << 10)
            .spawn_scoped(scope, ends_it)
            .map_err(|e| failed("watch the start of", words, &e).remedy(MORE_THREADS))?;
        let child = command.spawn();
        drop(begun);
        let late = watch.join().unwrap_or(true);
        Ok((child, late))
    })?;
    let child = child.map_err(|e| failed("start", words, &e))?;
    if late {
        let why = format!("it was not executed within {time:?}, and was ended");
        // It may have come through in the meantime.
        give_up(child.id() as i32);
        return Err(failed("start", words, &io::Error::other(why))
            .remedy("do not stop processes that are being started"));
    }
    Ok(child)
}

/// What a program could not be done to, and why.
pub(crate) fn failed(what: &str, command: &[String], e: &io::Error) -> Error {
    let program = command.first().map_or("", String::as_str);
    Error::new(format!("cannot {what} `{program}`: {e}")).remedy(remedy(e))
}

fn remedy(e: &io::Error) -> &'static str {
    match e.raw_os_error() {
        Some(libc::ENOENT) => {
            "write its path, from the directory in which the run is started, or a name in PATH"
        }
        Some(libc::EPERM) => {
            "the system forbids to trace it, by which it is held until the run begins (see \
             `sysctl kernel.yama.ptrace_scope`), or to give it the rights of its user"
        }
        Some(libc::EACCES) => "make it executable for the user that it runs as",
        Some(libc::EAGAIN) => {
            "there are too many processes: see `ulimit -u` of this user, and `pids.max` of the \
             control group"
        }
        Some(libc::EMFILE | libc::ENFILE) => "too many files are open: see `ulimit -n`",
        Some(libc::ENOMEM) => "there is no memory left for it",
        _ => "start it by hand once, in the same place",
    }
}

/// Where a program's output goes that is for standard error.
pub(crate) fn to_standard_error() -> io::Result<Stdio> {
    io::stderr().as_fd().try_clone_to_owned().map(Stdio::from)
}

fn waited_for(child: i32, options: WaitOptions) -> io::Result<WaitStatus> {
    let found = rustix::io::retry_on_intr(|| waitpid(Pid::from_raw(child), options))?;
    // There is an answer where it has waited for one.
    found
        .map(|(_, status)| status)
        .ok_or_else(|| io::ErrorKind::NotFound.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// It would keep the run waiting for its first word, before there is a watchdog that sees it.
    #[test]
    fn a_program_that_is_stopped_before_its_exec_is_ended() {
        let words = ["/bin/true".to_owned()];
        let mut command = Command::new(&words[0]);
        let this = Before::new(
            &Rights::Kept,
            Limit::new(model::Duration::from_millis(1), 0, 0),
            None,
        )
        .unwrap();
        this.apply(&mut command, || {
            kernel::kill(std::process::id() as i32, libc::SIGSTOP);
            Ok(())
        });
        let e = spawn_within(Duration::from_millis(200), &mut command, &words);
        let e = e.unwrap_err().to_string();
        assert!(
            e.contains("cannot start `/bin/true`: it was not executed within"),
            "{e}"
        );
        let mut children = Vec::new();
        let thread = rustix::thread::gettid().as_raw_pid();
        procfs::children(std::process::id() as i32, thread, |child| {
            children.push(child)
        });
        assert!(children.is_empty(), "{children:?}");
    }
}
