//! How exactly it is seen to that jobs execute for no longer than they may.

use model::Duration;

/// A timer is not set for less, in nanoseconds: the dispatcher that it wakes would take the time
/// that is waited for.
pub(super) const SHORTEST: u64 = 100_000;
/// A slice is used up when so little is left of it, in nanoseconds; the next one takes that over.
pub(super) const NEARLY: u64 = 30_000;
/// The shortest slice, budget or turn of a server that is policed.
pub const POLICED: Duration = Duration::from_nanos(2 * SHORTEST);
