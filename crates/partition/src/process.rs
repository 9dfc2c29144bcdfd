//! Processes that stay the same process: their numbers are given anew when they have ended.
//!
//! A descriptor of a process (pidfd_open(2)) refers to one process for good. The moment of its
//! beginning (proc(5), `/proc/PID/stat`, field 22), read while that descriptor says that the
//! process lives, tells it apart from any other that has its number before or after.

use machine::procfs::Identity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::os::fd::{AsFd, OwnedFd};

/// A process that was alive when this was made.
#[derive(Debug)]
pub struct Process {
    began: u64,
    fd: OwnedFd,
}

impl Process {
    /// The process that has this number now; `None` where there is none, or it has ended and waits
    /// to be reaped.
    pub fn open(pid: u32) -> Option<Self> {
        let number = Pid::from_raw(i32::try_from(pid).ok()?)?;
        Self::known_by(pidfd_open(number, PidfdFlags::empty()).ok()?, pid)
    }

    /// The process that this descriptor refers to, whose number is known.
    pub(crate) fn known_by(fd: OwnedFd, pid: u32) -> Option<Self> {
        let process = Process {
            began: began(pid)?,
            fd,
        };
        // The number was its own when its beginning was read if it is alive after that.
        (!process.has_ended()).then_some(process)
    }

    /// When it began, in ticks since the machine did.
    pub fn began(&self) -> u64 {
        self.began
    }

    /// Has it ended?
    pub fn has_ended(&self) -> bool {
        let mut asked = [PollFd::from_borrowed_fd(self.fd.as_fd(), PollFlags::IN)];
        // A failure says nothing of the process: it counts as alive until the next question.
        poll(&mut asked, Some(&Timespec::default())).is_ok_and(|ready| ready > 0)
    }
}

/// When a process began, in ticks since the machine did; `None` where there is none, or it has
/// ended and waits to be reaped.
fn began(pid: u32) -> Option<u64> {
    Identity::of_living(i32::try_from(pid).ok()?).map(|process| process.born)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_is_there_until_it_ends() {
        assert!(!Process::open(std::process::id()).unwrap().has_ended());
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let process = Process::open(child.id()).unwrap();
        assert_eq!(process.began(), began(child.id()).unwrap());
        child.kill().unwrap();
        // Its end is known before anybody has asked for its status.
        while began(child.id()).is_some() {
            std::thread::yield_now();
        }
        assert!(process.has_ended());
        assert!(Process::open(child.id()).is_none());
        child.wait().unwrap();
        assert!(process.has_ended());
        assert!(Process::open(0).is_none() && Process::open(u32::MAX).is_none());
    }
}
