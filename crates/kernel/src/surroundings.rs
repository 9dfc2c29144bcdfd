//! What the threads of a run's tasks run in, such as stacks of chosen page colors (004 §IV-B).

use model::{Result, TaskId};
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
}
