//! Times in the units in which tests write them down.

use model::{Duration, Instant};

/// So many nanoseconds.
pub const fn ns(ns: u64) -> Duration {
    Duration::from_nanos(ns)
}

/// So many microseconds.
pub const fn us(us: u64) -> Duration {
    Duration::from_micros(us)
}

/// So many milliseconds.
pub const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// The moment so many milliseconds after the start.
pub const fn at_ms(ms: u64) -> Instant {
    Instant::from_nanos(ms * 1_000_000)
}
