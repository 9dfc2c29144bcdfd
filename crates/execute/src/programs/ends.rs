//! How the programs of a run ended, for its outcome.

use rustix::process::{Pid, WaitOptions, waitpid};

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

/// Has a child ended? Its status, if so; it is waited for then.
pub(crate) fn ended(child: i32) -> Option<i32> {
    let (_, status) = waitpid(Pid::from_raw(child), WaitOptions::NOHANG).ok()??;
    (status.exited() || status.signaled()).then_some(status.as_raw())
}
