//! The scheduling class of the jobs, which all threads of it that are no task's are behind.

/// `SCHED_EXT` of the kernel.
const SCHED_EXT: i32 = 7;

/// A thread comes into the class. As long as no program schedules, and behind the run, it is as good
/// as an ordinary one there.
///
/// # Errors
/// This kernel has no sched_ext, or the user no right to it.
pub(crate) fn take_in(thread: i32) -> std::io::Result<()> {
    sys::scheduling::set(thread, SCHED_EXT, 0)
}

/// The calling thread does.
///
/// # Errors
/// As [`take_in`].
pub(crate) fn come_in() -> std::io::Result<()> {
    take_in(0)
}
