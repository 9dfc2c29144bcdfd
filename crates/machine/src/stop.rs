//! The wish to stop: Ctrl-C (SIGINT) and SIGTERM.
//!
//! The first signal asks the work to stop and to keep what it has. The second one ends the process
//! at once, for work that does not listen.

use crate::bequest;
use model::{Error, Result};
use rustix::time::{ClockId, Timespec, clock_gettime};
use signal_hook::consts::{SIGINT, SIGTERM};
use std::sync::atomic::{AtomicI32, AtomicU64, Ordering};
use std::time::Duration;

/// Signals that come within this time of the first are the same wish. `timeout` sends SIGTERM to
/// its command and once more to the whole group, and what a terminal sends to a group `sudo` passes
/// on as well: within microseconds, or milliseconds where processors are busy. People take longer.
const ONE_WISH: Duration = Duration::from_millis(200);

/// When the first signal came, in nanoseconds of the monotonic clock; 0: none has.
static FIRST: AtomicU64 = AtomicU64::new(0);
/// The last signal; 0: none.
static LAST: AtomicI32 = AtomicI32::new(0);

/// Has SIGINT and SIGTERM ask this process to stop, from now on and for good.
///
/// # Errors
/// The signals cannot be handled.
pub fn take_over() -> Result<()> {
    [SIGINT, SIGTERM].into_iter().try_for_each(|signal| {
        // SAFETY: `came` does only what signal-safety(7) allows: it reads a clock and changes
        // atomic words, and may remove a file and end the process.
        unsafe { signal_hook::low_level::register(signal, move || came(signal)) }
            .map(drop)
            .map_err(|e| Error::new(format!("cannot handle signal {signal}: {e}")))
    })
}

/// The last signal that asked this process to stop, if one has.
pub fn signal() -> Option<i32> {
    Some(LAST.load(Ordering::Relaxed)).filter(|signal| *signal != 0)
}

fn came(signal: i32) {
    let Timespec { tv_sec, tv_nsec } = clock_gettime(ClockId::Monotonic);
    let now = (tv_sec as u64 * 1_000_000_000 + tv_nsec as u64).max(1);
    LAST.store(signal, Ordering::Relaxed);
    let first = FIRST.compare_exchange(0, now, Ordering::Relaxed, Ordering::Relaxed);
    if first.is_err_and(|first| is_another_wish(first, now)) {
        bequest::execute();
        sys::process::exit(128 + signal);
    }
}

/// Is a signal at `now` more than an echo of the first? Both in nanoseconds.
fn is_another_wish(first: u64, now: u64) -> bool {
    u128::from(now.saturating_sub(first)) >= ONE_WISH.as_nanos()
}
