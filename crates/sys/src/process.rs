//! Processes: fork, the end without clean-up, tracing through an exec, and what a child has used.

use crate::check;
use std::io;

/// Makes a child that is a copy of this process with the calling thread alone (fork(2)). Returns
/// its number; `None` in the child.
///
/// # Safety
/// In a process of several threads the child makes system calls on its own memory only, until it
/// ends with [`exit`]: locks that other threads held at this moment, those of the allocator among
/// them, stay locked in the child for good.
///
/// # Errors
/// No memory, or no process to be had (`EAGAIN`, `ENOMEM`).
pub unsafe fn fork() -> io::Result<Option<i32>> {
    // SAFETY: a call without pointers; what the child does is the caller's promise.
    let child = unsafe { libc::fork() };
    check(child < 0)?;
    Ok((child > 0).then_some(child))
}

/// Ends this process without running anything of it: no destructors, no flush of buffers. For
/// children of [`fork`].
pub fn exit(status: i32) -> ! {
    // SAFETY: a call without pointers, allowed in any state of the process.
    unsafe { libc::_exit(status) }
}

/// Closes all descriptors from `first` to `last`, both included (close_range(2)). A kernel before
/// 5.9 leaves them open.
///
/// # Safety
/// Nothing of this process uses any of them afterwards, not even to close it.
pub unsafe fn close_range(first: u32, last: u32) {
    // SAFETY: a call without pointers; that nobody uses what is closed is the caller's promise.
    unsafe { libc::syscall(libc::SYS_close_range, first, last, 0u32) };
}

/// Gives this thread a working directory and a mask for the permissions of new files of its own.
///
/// # Errors
/// The kernel has no memory for it.
pub fn own_mask() -> io::Result<()> {
    // SAFETY: the table of descriptors stays as it is.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::FS) }?;
    Ok(())
}

/// Gives this thread, and what it starts from now on, a view of mounts of its own. What is mounted
/// in it is seen by others as far as mounts propagate.
///
/// # Errors
/// No right to it (`CAP_SYS_ADMIN`).
pub fn own_mounts() -> io::Result<()> {
    // SAFETY: the table of descriptors stays as it is.
    unsafe { rustix::thread::unshare_unsafe(rustix::thread::UnshareFlags::NEWNS) }?;
    Ok(())
}

/// Lets the parent trace this process, which then stops in front of the first instruction after its
/// next exec (ptrace(2)).
///
/// # Errors
/// It is traced already, or the system forbids tracing (`EPERM`).
pub fn trace_me() -> io::Result<()> {
    // SAFETY: this request reads none of its pointers.
    check(unsafe { libc::ptrace(libc::PTRACE_TRACEME, 0, 0, 0) } != 0)
}

/// Ends the tracing of a child that is stopped for the calling thread, its tracer. The child goes
/// on with being stopped, by `SIGSTOP`.
///
/// # Errors
/// It is not traced by this thread, or not stopped (`ESRCH`).
pub fn leave_stopped(child: i32) -> io::Result<()> {
    // SAFETY: this request has no pointers: the last argument is the signal.
    check(unsafe { libc::ptrace(libc::PTRACE_DETACH, child, 0, libc::SIGSTOP) } != 0)
}

/// The status of a child that has ended, as waitpid(2) gives it, and the processor time that it and
/// those that it has waited for have used, in nanoseconds; it is waited for then. `None`: it runs,
/// or is no child of this process.
pub fn ended(child: i32) -> Option<(i32, u64)> {
    let mut status = 0;
    // SAFETY: all zero is a valid `rusage`; both places live through the call, which does not wait.
    let (found, usage) = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        let found = libc::wait4(child, &mut status, libc::WNOHANG, &mut usage);
        (found, usage)
    };
    (found == child && child > 0).then_some((status, used(&usage)))
}

fn used(usage: &libc::rusage) -> u64 {
    let nanos = |t: libc::timeval| t.tv_sec as u64 * 1_000_000_000 + t.tv_usec as u64 * 1_000;
    nanos(usage.ru_utime) + nanos(usage.ru_stime)
}

/// The processor time, in nanoseconds, that all children have used that were waited for, with those
/// that they have waited for, and how often they lost their processor (getrusage(2),
/// `RUSAGE_CHILDREN`).
pub fn children() -> (u64, u64) {
    // SAFETY: all zero is a valid `rusage`, a place for the answer that lives through the call.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_CHILDREN, &mut usage);
        usage
    };
    (used(&usage), usage.ru_nivcsw as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Pid, WaitOptions, waitpid};
    use std::os::fd::AsRawFd;
    use std::os::unix::process::CommandExt;
    use std::process::Command;

    #[test]
    fn a_child_closes_what_it_is_told_and_ends_with_its_status() {
        let file = std::fs::File::open("/dev/null").unwrap();
        let fd = file.as_raw_fd();
        // SAFETY: the child makes system calls only.
        let child = match unsafe { fork() }.unwrap() {
            None => {
                // SAFETY: the child uses no descriptor but by number, to see that it is closed.
                unsafe { close_range(3, u32::MAX) };
                // SAFETY: a number; a call on one that is closed fails.
                let closed = unsafe { libc::fcntl(fd, libc::F_GETFD) } == -1;
                exit(if closed { 7 } else { 8 })
            }
            Some(child) => child,
        };
        let ended = (0..10_000).find_map(|_| {
            std::thread::sleep(std::time::Duration::from_millis(1));
            ended(child)
        });
        let (status, _) = ended.unwrap();
        assert_eq!(libc::WEXITSTATUS(status), 7);
        assert_eq!(super::ended(child), None, "it was waited for");
        file.metadata().unwrap();
    }

    #[test]
    fn a_child_is_held_in_front_of_its_first_instruction() {
        let mut command = Command::new("true");
        // SAFETY: a system call between fork and exec.
        unsafe { command.pre_exec(trace_me) };
        let child = command.spawn().unwrap().id() as i32;
        let pid = Pid::from_raw(child);
        assert!(
            waitpid(pid, WaitOptions::empty())
                .unwrap()
                .unwrap()
                .1
                .stopped()
        );
        leave_stopped(child).unwrap();
        let (_, status) = waitpid(pid, WaitOptions::UNTRACED).unwrap().unwrap();
        assert_eq!(status.stopping_signal(), Some(libc::SIGSTOP));
        assert_eq!(ended(child), None);
        assert!(leave_stopped(child).is_err());
        rustix::process::kill_process(pid.unwrap(), rustix::process::Signal::CONT).unwrap();
        assert!(
            waitpid(pid, WaitOptions::empty())
                .unwrap()
                .unwrap()
                .1
                .exited()
        );
    }
}
