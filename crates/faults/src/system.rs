//! System calls for which the standard library and `rustix` have no safe form, and the start of a
//! command between fork and exec.

use crate::fault::Limit;
use crate::filter::Filter;
use rustix::process::{Resource, Rlimit};
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Above the watchdog of a run: the harness is punctual, and what waits for its answers does not
/// stand still.
const PRIORITY: i32 = 99;

/// Raises this thread above all others, or lets it be an ordinary one. What it starts begins as an
/// ordinary process.
///
/// # Errors
/// The right to it is missing (`CAP_SYS_NICE`).
pub fn rise(above_all: bool) -> io::Result<()> {
    let (class, priority) = match above_all {
        true => (libc::SCHED_FIFO, PRIORITY),
        false => (libc::SCHED_OTHER, 0),
    };
    let how = libc::sched_param {
        sched_priority: priority,
    };
    let class = class | libc::SCHED_RESET_ON_FORK;
    // SAFETY: the parameter lives through the call.
    match unsafe { libc::sched_setscheduler(0, class, &raw const how) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The class of a process and its priority there.
pub fn class_of(pid: i32) -> Option<(i32, i32)> {
    let mut how = libc::sched_param { sched_priority: 0 };
    // SAFETY: the parameter lives through the calls.
    let (class, got) = unsafe {
        (
            libc::sched_getscheduler(pid),
            libc::sched_getparam(pid, &raw mut how),
        )
    };
    (class >= 0 && got == 0).then_some((class & !libc::SCHED_RESET_ON_FORK, how.sched_priority))
}

/// Sends any signal to a process, or to a group where the number is negative. Whether it was there.
pub fn send(pid: i32, signal: i32) -> bool {
    // SAFETY: a call without pointers; the callers name processes that descend from this one.
    unsafe { libc::kill(pid, signal) == 0 }
}

/// No signal is blocked or ignored, whatever the one that started this process has left so (a
/// shell lets its children in the background ignore those of the terminal).
fn take_all_signals() {
    // SAFETY: a set that is emptied before it is read; numbers and the default are fit for the
    // calls, which change nothing but this process. Some signals cannot be changed.
    unsafe {
        let mut none: libc::sigset_t = std::mem::zeroed();
        libc::sigemptyset(&raw mut none);
        libc::sigprocmask(libc::SIG_SETMASK, &raw const none, std::ptr::null_mut());
        for number in 1..=64 {
            libc::signal(number, libc::SIG_DFL);
        }
    }
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
        take_all_signals();
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
