//! How exactly it is seen to that jobs execute for no longer than they may.

use model::Duration;

/// A timer is not set for less: the dispatcher that it wakes would take the time that is waited
/// for.
pub(super) const SHORTEST: Duration = Duration::from_nanos(100_000);
/// A slice is used up when so little is left of it; the next one takes that over.
pub(super) const NEARLY: Duration = Duration::from_nanos(30_000);
/// The shortest slice, budget or turn of a server that is policed.
pub const POLICED: Duration = Duration::from_nanos(2 * SHORTEST.nanos());
