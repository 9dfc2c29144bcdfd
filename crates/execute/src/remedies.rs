//! Remedies that several errors name.

/// What to do where the system gives no thread.
pub(crate) const MORE_THREADS: &str =
    "give fewer tasks, or allow more threads and memory (`ulimit -u`, `ulimit -v`, pids.max)";
