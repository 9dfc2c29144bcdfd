//! The heir: a process that outlives engine and watchdog, and ends what they have left.
//!
//! The watchdog sees to the programs of an engine that was killed. Where both are killed together
//! the heir does: it sleeps until the kernel says that one of the two has ended (pidfd_open(2)), so
//! that it costs a run nothing. It is of a session of its own and keeps none of the run's
//! descriptors open.
//!
//! Where all three are killed at once nobody is left but the kernel: see
//! [`crate::programs::rights`] for what it does then, and [`crate::programs::leftovers`] for what
//! the next run does.

use crate::kernel::{self, Thread};
use crate::watchdog::Board;
use machine::group::Group;
use machine::realtime;
use model::{Error, Result};
use rustix::event::{PollFd, PollFlags};
use rustix::process::{Pid, PidfdFlags};
use std::io;
use std::os::fd::{AsRawFd, BorrowedFd, OwnedFd, RawFd};

const C_NAME: &std::ffi::CStr = c"warmset-heir";
/// How long an engine whose watchdog has ended may take to come to its own end.
const PATIENCE: u64 = 20_000_000_000;

/// The running process. Dropping it ends it.
pub(crate) struct Heir(i32);

fn open(process: i32) -> io::Result<OwnedFd> {
    let process =
        Pid::from_raw(process).ok_or_else(|| io::Error::from_raw_os_error(libc::ESRCH))?;
    Ok(rustix::process::pidfd_open(process, PidfdFlags::empty())?)
}

impl Heir {
    /// Starts it, for this process as the engine and for its watchdog.
    ///
    /// # Errors
    /// No process or no descriptor to be had.
    pub fn start(board: &Board, watchdog: i32, group: Option<&Group>) -> Result<Self> {
        let failed = |e: io::Error| {
            Error::new(format!(
                "cannot start the process that outlives the watchdog: {e}"
            ))
            .remedy("see `ulimit -u` and `ulimit -n`, and `pids.max` of the control group")
        };
        let engine = std::process::id() as i32;
        let ends = [
            open(engine).map_err(failed)?,
            open(watchdog).map_err(failed)?,
        ];
        let group = group.map(|group| group.executioner().as_raw_fd());
        // SAFETY: the child does nothing but `wait`, which makes system calls on its own memory
        // only: no lock that another thread may hold at this moment is touched.
        match unsafe { sys::process::fork() }.map_err(failed)? {
            None => {
                wait(board, engine, &ends, group);
                sys::process::exit(0)
            }
            Some(child) => Ok(Heir(child)),
        }
    }

    /// Its process.
    pub fn process(&self) -> i32 {
        self.0
    }
}

impl Drop for Heir {
    fn drop(&mut self) {
        // Our own child, waited for here only.
        kernel::kill(self.0, libc::SIGKILL);
        kernel::wait_for(self.0);
    }
}

/// Closes everything but these descriptors.
fn close_all_but(kept: &mut [RawFd]) {
    kept.sort_unstable();
    let mut from = 0;
    for fd in kept.iter().map(|fd| *fd as u32).chain([u32::MAX]) {
        if let Some(to) = fd.checked_sub(1).filter(|to| *to >= from) {
            // SAFETY: the process uses nothing but what is kept until it ends, and ends without
            // running destructors.
            unsafe { sys::process::close_range(from, to) };
        }
        from = fd.saturating_add(1);
    }
}

/// What the process does until the run is over. Makes system calls only.
fn wait(board: &Board, engine: i32, ends: &[OwnedFd; 2], group: Option<RawFd>) {
    sys::signal::block_all();
    // A child that was just forked leads no group: both can be done.
    let _ = rustix::process::setsid();
    let _ = rustix::thread::set_name(C_NAME);
    // The watchdog has this right, or there would be no run; where it is taken away meanwhile an
    // ordinary process does it, too.
    let _ = Thread::current().raise(realtime::WATCHDOG.get());
    let [first, second] = [ends[0].as_raw_fd(), ends[1].as_raw_fd()];
    close_all_but(&mut [first, second, group.unwrap_or(first)]);
    let mut until = None;
    loop {
        let left = until.map(|until: u64| until.saturating_sub(kernel::monotonic()));
        let mut both = [
            PollFd::new(&ends[0], PollFlags::IN),
            PollFd::new(&ends[1], PollFlags::IN),
        ];
        // An engine that is without its watchdog is what is waited for alone.
        let count = if until.is_some() { 1 } else { 2 };
        kernel::poll(&mut both[..count], left);
        if !both[0].revents().is_empty() {
            return finish(board, group);
        }
        match until {
            // The engine has ended the watchdog itself: the run is over, and nothing is left of it.
            None if !both[1].revents().is_empty() && board.is_over() => return,
            None if !both[1].revents().is_empty() => until = Some(kernel::monotonic() + PATIENCE),
            Some(until) if kernel::monotonic() >= until => {
                board.lower_all();
                // The engine is alive, as its end is not yet told.
                kernel::kill(engine, libc::SIGKILL);
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
            // SAFETY: it was kept open in this process, until the process ends.
            let group = unsafe { BorrowedFd::borrow_raw(group) };
            // Where the group has gone nobody is in it.
            let _ = rustix::io::write(group, b"1");
        }
        kernel::sleep_until(kernel::monotonic() + 1_000_000);
    }
    board.kill_all_programs();
    super::take_away(board);
}
