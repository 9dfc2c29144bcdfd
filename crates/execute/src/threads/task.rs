//! What the thread backend knows of one task.

use crate::ids::{Place, PostId};
use model::{CpuId, Instant};

/// What is known of the thread or program of a task. It moves with the task.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ThreadTask {
    /// Does this domain own the task? The other fields mean nothing otherwise.
    pub owned: bool,
    /// The processor that it may run on; none at first.
    pub affinity: Option<CpuId>,
    /// Where it runs, as far as is decided.
    pub place: Option<Place>,
    /// Has it the priority of a chosen job?
    pub raised: bool,
    /// The post of the processor that it was told to leave while it may have been running there.
    pub left: Option<PostId>,
    /// Is its gate closed?
    pub gated: bool,
    /// Is it within a piece of work?
    pub working: bool,
    /// How many pieces of work of its worker were told of; wraps.
    pub done: u32,
    /// When it was told to begin from another processor, and has not been told of.
    pub called: Option<Instant>,
}
