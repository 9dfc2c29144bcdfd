//! The same for C: what `include/warmset.h` declares. One task a process.

use crate::{Job, Task};
use std::ffi::{CStr, c_char, c_int};
use std::io;
use std::sync::{Mutex, PoisonError};

static TASK: Mutex<Option<Task>> = Mutex::new(None);

fn fail(e: &io::Error) -> c_int {
    let errno = e.raw_os_error().unwrap_or(match e.kind() {
        io::ErrorKind::NotFound => libc::ENOENT,
        io::ErrorKind::InvalidData => libc::EPROTO,
        _ => libc::EIO,
    });
    sys::signal::set_errno(errno);
    -1
}

fn joined(task: io::Result<Task>) -> c_int {
    match task {
        Ok(task) => {
            *TASK.lock().unwrap_or_else(PoisonError::into_inner) = Some(task);
            0
        }
        Err(e) => fail(&e),
    }
}

/// See [`Task::join`]. 0, or -1 with `errno`.
#[unsafe(no_mangle)]
pub extern "C" fn warmset_join() -> c_int {
    joined(Task::join())
}

/// See [`Task::join_at`]. 0, or -1 with `errno`.
///
/// # Safety
/// Both are texts that end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_join_at(path: *const c_char, name: *const c_char) -> c_int {
    if path.is_null() || name.is_null() {
        return fail(&io::Error::from_raw_os_error(libc::EINVAL));
    }
    // SAFETY: as the caller promises.
    let (path, name) = unsafe { (CStr::from_ptr(path), CStr::from_ptr(name)) };
    match (path.to_str(), name.to_str()) {
        (Ok(path), Ok(name)) => joined(Task::join_at(path, name)),
        _ => fail(&io::Error::from_raw_os_error(libc::EILSEQ)),
    }
}

fn answer(job: Option<Job>, into: *mut Job) -> c_int {
    match job {
        None => 0,
        Some(job) => {
            if !into.is_null() {
                // SAFETY: as the caller promises, a place for a job.
                unsafe { into.write(job) };
            }
            1
        }
    }
}

/// See [`Task::wait`]. 1: there is a job, 0: the run is over, -1 with `errno`: this process has not
/// joined.
///
/// # Safety
/// `job` is null or a place for a job.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_wait(job: *mut Job) -> c_int {
    match &mut *TASK.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(task) => answer(task.wait(), job),
        None => fail(&io::Error::from_raw_os_error(libc::ENOTCONN)),
    }
}

/// See [`Task::look`]. 1, or -1 with `errno`: this process has not joined.
///
/// # Safety
/// As [`warmset_wait`]; by the thread that does the jobs.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn warmset_look(job: *mut Job) -> c_int {
    match &*TASK.lock().unwrap_or_else(PoisonError::into_inner) {
        Some(task) => answer(Some(task.look()), job),
        None => fail(&io::Error::from_raw_os_error(libc::ENOTCONN)),
    }
}
