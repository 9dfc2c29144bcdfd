//! How the thread of a task is named.

use super::Thread;

/// How a thread is told from others.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Named {
    /// By its name, of which the kernel keeps 15 bytes.
    Comm(String),
    /// By its number.
    Pid(u32),
}

/// As many bytes of a name the kernel keeps.
const COMM: usize = 15;

impl Named {
    /// By a name, cut off as the kernel does.
    pub fn comm(name: &str) -> Self {
        let mut end = name.len().min(COMM);
        while !name.is_char_boundary(end) {
            end -= 1;
        }
        Named::Comm(name[..end].to_owned())
    }

    pub(super) fn is(&self, thread: &Thread<'_>) -> bool {
        match self {
            Named::Comm(comm) => comm == thread.comm,
            Named::Pid(pid) => *pid == thread.pid,
        }
    }
}
