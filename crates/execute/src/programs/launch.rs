//! Starting a program as a task: held before its first instruction, marked, without rights.

use crate::programs::joining::JoinSocket;
use crate::programs::marks::MARK;
use crate::programs::pages::{Pages, SentinelBells};
use crate::programs::program::{Kind, Program};
use crate::programs::rights::{Before, Limit, Rights};
use machine::group::Group;
use model::{Beyond, Error, Result};
use std::fs::File;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::{Command, Stdio};
use std::sync::Arc;
use warmset_task::DESCRIPTORS;
use workload::Work;

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
pub(crate) fn launch(launch: Launch, by: &Marked<'_>, bells: &SentinelBells) -> Result<(i32, Program)> {
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
        Kind::Written(pages) => pages.numbers(bells).to_vec(),
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
    // It is traced for as long as the exec takes: it stops in front of its first instruction, and
    // goes on being stopped.
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

pub(crate) fn duplicate(fd: i32) -> io::Result<Stdio> {
    use std::os::fd::BorrowedFd;
    // SAFETY: a standard descriptor, which is open for as long as the process lives; it is only
    // duplicated.
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
