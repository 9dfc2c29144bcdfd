//! What happens to jobs that execute for longer than they may, and how exactly that is seen to.

use model::Duration;

/// What happens to a job that has executed for its WCET and is not done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Enforcement {
    /// It goes on.
    #[default]
    Off,
    /// It is cut short at the next multiple of the quantum; the rest is done by the task's next
    /// job.
    PerQuantum,
    /// It is cut short at once; the rest is done by the task's next job.
    Exact,
}

/// A timer is not set for less, in nanoseconds: the dispatcher that it wakes would take the time
/// that is waited for.
pub(super) const SHORTEST: u64 = 100_000;
/// A slice is used up when so little is left of it, in nanoseconds; the next one takes that over.
pub(super) const NEARLY: u64 = 30_000;
/// The shortest slice, budget or turn of a server that is policed.
pub const POLICED: Duration = Duration::from_nanos(2 * SHORTEST);
