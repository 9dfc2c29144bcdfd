//! The heir: a process that outlives engine and watchdog, and ends what they have left.
//!
//! The watchdog sees to the programs of an engine that was killed. Where both are killed together
//! the heir does: it sleeps until the kernel says that one of the two has ended (pidfd_open(2)), so
//! that it costs a run nothing. It is of a session of its own and keeps none of the run's
//! descriptors open.
//!
//! Where all three are killed at once nobody is left but the kernel: see [`crate::programs::rights`] for what
//! it does then, and [`crate::programs::leftovers`] for what the next run does.

use crate::kernel::{self, Thread};
use crate::watchdog::Board;
use machine::group::Group;
use machine::realtime;
use model::{Error, Result};
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

const C_NAME: &std::ffi::CStr = c"warmset-heir";
/// How long an engine whose watchdog has ended may take to come to its own end.
const PATIENCE: u64 = 20_000_000_000;

/// The running process. Dropping it ends it.
pub(crate) struct Heir(libc::pid_t);

fn open(process: libc::pid_t) -> io::Result<OwnedFd> {
    let process = Pid::from_raw(process).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(rustix::process::pidfd_open(process, PidfdFlags::empty())?)
}

impl Heir {
    /// Starts it, for this process as the engine and for its watchdog.
    ///
    /// # Errors
    /// No process or no descriptor to be had.
    pub fn start(board: &Board, watchdog: libc::pid_t, group: Option<&Group>) -> Result<Self> {
        let failed = |e: io::Error| {
            Error::new(format!(
                "cannot start the process that outlives the watchdog: {e}"
            ))
            .remedy("see `ulimit -u` and `ulimit -n`, and `pids.max` of the control group")
        };
        // SAFETY: takes no argument.
        let engine = unsafe { libc::getpid() };
        let ends = [open(engine).map_err(failed)?, open(watchdog).map_err(failed)?];
        let group = group.map(|group| group.executioner().as_raw_fd());
        // SAFETY: the child does nothing but `wait`, which makes system calls on its own memory
        // only: no lock that another thread may hold at this moment is touched.
        match unsafe { libc::fork() } {
            -1 => Err(failed(io::Error::last_os_error())),
            0 => {
                wait(board, engine, &ends, group);
                // SAFETY: ends the process without running anything of the parent's.
                unsafe { libc::_exit(0) }
            }
            child => Ok(Heir(child)),
        }
    }

    /// Its process.
    pub fn process(&self) -> libc::pid_t {
        self.0
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        // SAFETY: our own child, waited for here only.
        unsafe {
            libc::kill(self.0, libc::SIGKILL);
            libc::waitpid(self.0, std::ptr::null_mut(), 0);
        }
    }
}

/// Closes everything but these descriptors.
fn close_all_but(kept: &mut [RawFd]) {
    kept.sort_unstable();
    let mut from = 0;
    for fd in kept
        .iter()
        .map(|fd| *fd as libc::c_uint)
        .chain([libc::c_uint::MAX])
    {
        if let Some(to) = fd.checked_sub(1).filter(|to| *to >= from) {
            // SAFETY: a call without pointers; nothing of this process uses what is closed.
            unsafe { libc::syscall(libc::SYS_close_range, from, to, 0) };
        }
        from = fd.saturating_add(1);
    }
}

fn ready(end: &OwnedFd) -> libc::pollfd {
    libc::pollfd {
        fd: end.as_raw_fd(),
        events: libc::POLLIN,
        revents: 0,
    }
}

/// What the process does until the run is over. Makes system calls only.
fn wait(board: &Board, engine: libc::pid_t, ends: &[OwnedFd; 2], group: Option<RawFd>) {
    // SAFETY: plain system calls on values that live through them.
    unsafe {
        let mut all: libc::sigset_t = std::mem::zeroed();
        libc::sigfillset(&mut all);
        libc::sigprocmask(libc::SIG_SETMASK, &all, std::ptr::null_mut());
        libc::setsid();
        libc::prctl(libc::PR_SET_NAME, C_NAME.as_ptr());
    }
    // The watchdog has this right, or there would be no run; where it is taken away meanwhile an
    // ordinary process does it, too.
    let _ = Thread::current().raise(realtime::WATCHDOG.get());
    let [first, second] = [ends[0].as_raw_fd(), ends[1].as_raw_fd()];
    close_all_but(&mut [first, second, group.unwrap_or(first)]);
    let mut until = None;
    loop {
        let left = until.map(|until: u64| until.saturating_sub(kernel::monotonic()));
        let mut both = [ready(&ends[0]), ready(&ends[1])];
        // An engine that is without its watchdog is what is waited for alone.
        let count = if until.is_some() { 1 } else { 2 };
        kernel::poll(&mut both[..count], left);
        if both[0].revents != 0 {
            return finish(board, group);
        }
        match until {
            // The engine has ended the watchdog itself: the run is over, and nothing is left of it.
            None if both[1].revents != 0 && board.is_over() => return,
            None if both[1].revents != 0 => until = Some(kernel::monotonic() + PATIENCE),
            Some(until) if kernel::monotonic() >= until => {
                board.lower_all();
                // SAFETY: a call without pointers; the engine is alive, as its end is not yet told.
                unsafe { libc::kill(engine, libc::SIGKILL) };
            }
            _ => {}
        }
    }
}

/// The engine has ended, and may have left programs behind.
fn finish(board: &Board, group: Option<RawFd>) {
    for _ in 0..3 {
        // Who was born to a raised thread meanwhile is found the next time.
        board.lower_programs();
        if let Some(group) = group {
            // SAFETY: one byte that lives through the call. Where the group has gone nobody is in
            // it.
            unsafe { libc::write(group, b"1".as_ptr().cast(), 1) };
        }
        pause();
    }
    board.kill_all_programs();
    board.take_away();
}

fn pause() {
    let time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 1_000_000,
    };
    // SAFETY: the time lives through the call.
    unsafe { libc::nanosleep(&time, std::ptr::null_mut()) };
}
