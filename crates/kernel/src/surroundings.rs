//! What the threads of a run's tasks run in, such as stacks of chosen page colors (004 §IV-B).

use crate::support::PLACE;
use model::{Error, Result, TaskId};
use std::fmt::Debug;

/// Prepares threads of tasks. The engine knows nothing of colors: who has them gives this.
pub trait Surroundings: Debug + Send + Sync {
    /// Calls `body` once, in the thread of a task, in what is prepared for it.
    fn within(&self, task: TaskId, body: &mut dyn FnMut());
    /// All threads are there, and nothing has begun: the kernel's numbers of them, task by task.
    ///
    /// # Errors
    /// The run must not begin.
    fn ready(&self, threads: &[i32]) -> Result<()>;
    /// The first jobs are released at this reading of `CLOCK_MONOTONIC`, in nanoseconds.
    fn begins(&self, origin: u64);
}

/// `SCHED_EXT` of the kernel.
pub(crate) const SCHED_EXT: i32 = 7;

/// The calling thread gets processors that no job needs, as long as a run is there: as an ordinary
/// one it would go before jobs. Without a run it is as good as an ordinary one.
///
/// # Errors
/// This kernel has no sched_ext, or the user no right to it.
pub fn go_behind() -> Result<()> {
    sys::scheduling::set(0, SCHED_EXT, 0).map_err(|e| {
        Error::new(format!(
            "a thread cannot come into the class SCHED_EXT: {e}"
        ))
        .at(PLACE)
        .remedy("run as root, on a kernel with sched_ext")
    })
}
