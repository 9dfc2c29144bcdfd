//! Priorities and signals of processes, and the start of a command between fork and exec.

use crate::fault::Limit;
use crate::filter::Filter;
use rustix::process::{Pid, Resource, Rlimit, Signal, kill_process, kill_process_group};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Above the watchdog of a run: the harness is punctual, and what waits for its answers does not
/// stand still.
const PRIORITY: i32 = 99;

/// Raises this thread above all others, or lets it be an ordinary one. What it starts begins as an
/// ordinary process.
///
/// Whoever buries the dead, or walks through `/proc` at leisure, is an ordinary thread: the kernel
/// waits in a loop while another process drops a file of the dead one, and a thread above all
/// others may keep that process from running for good (`shrink_dcache_parent`, seen on 6.18).
///
/// # Errors
/// The right to it is missing (`CAP_SYS_NICE`).
pub fn rise(above_all: bool) -> io::Result<()> {
    let (class, priority) = match above_all {
        true => (libc::SCHED_FIFO, PRIORITY),
        false => (libc::SCHED_OTHER, 0),
    };
    sys::scheduling::set(0, class | libc::SCHED_RESET_ON_FORK, priority)
}

/// The class of a process and its priority there.
pub fn class_of(pid: i32) -> Option<(i32, i32)> {
    let (class, priority) = sys::scheduling::get(pid).ok()?;
    Some((class & !libc::SCHED_RESET_ON_FORK, priority))
}

/// Sends any signal to a process, or to a group where the number is negative. Whether it was there.
pub fn send(pid: i32, signal: i32) -> bool {
    let Some(signal) = Signal::from_named_raw(signal) else {
        return false;
    };
    let number = Pid::from_raw(pid.saturating_abs());
    number.is_some_and(|number| match pid {
        ..0 => kill_process_group(number, signal).is_ok(),
        _ => kill_process(number, signal).is_ok(),
    })
}

/// What a command has on its way from fork to exec.
#[derive(Debug, Default)]
pub struct Start {
    /// A limit.
    pub limit: Option<(Limit, u64)>,
    /// A filter of its calls.
    pub filter: Option<Filter>,
}

/// Lets a command begin in a session of its own, with this start. It is killed when this process
/// is.
pub fn prepare(command: &mut Command, start: std::sync::Arc<Start>) {
    let begin = move || -> io::Result<()> {
        rustix::process::setsid()?;
        // Whatever the one that started this process has left blocked or ignored: a shell lets its
        // children in the background ignore the signals of the terminal.
        sys::signal::take_all();
        let signal = rustix::process::Signal::KILL;
        rustix::process::set_parent_process_death_signal(Some(signal))?;
        if let Some((limit, value)) = start.limit {
            let resource = match limit {
                Limit::Descriptors => Resource::Nofile,
                Limit::FileSize => Resource::Fsize,
                Limit::AddressSpace => Resource::As,
                Limit::Stack => Resource::Stack,
            };
            let both = Rlimit {
                current: Some(value),
                maximum: Some(value),
            };
            rustix::process::setrlimit(resource, both)?;
        }
        match &start.filter {
            Some(filter) => filter.put_on(),
            None => Ok(()),
        }
    };
    // SAFETY: between fork and exec it makes system calls only; it takes no memory and no lock.
    unsafe { command.pre_exec(begin) };
}
