//! How a thread of the engine goes before all jobs.
//!
//! From Linux 7.0 on the kernel lets jobs of sched_ext go before fixed priorities, for 50 ms a
//! second on each processor, when it finds that they starve; and jobs that wait for their releases
//! look like that. It does so by a deadline of its own (its server for this class), which is longer
//! than those given here: so a thread with a deadline goes first, where one of a fixed priority
//! waits.

use model::Duration;

/// `SCHED_FIFO`, with which what the thread starts is ordinary.
const FIFO: i32 = 1 | 0x4000_0000;
/// The longest period of a deadline that the kernel surely takes.
const LONGEST: u64 = 1_000_000_000;

/// Makes the calling thread go before all jobs: for so many eighths of a period, or fewer where the
/// kernel has promised the rest to others, or by a fixed priority. A warning would be of no use:
/// what is late for want of it, the trace says.
pub(crate) fn go_before_jobs(period: Duration, eighths: [u64; 3], priority: i32) {
    let period = period.nanos().clamp(8, LONGEST);
    // The kernel makes the thread wait when it has used that up, and promises no more than its
    // processors have left: the most first.
    let takes = |part: &u64| sys::scheduling::set_deadline(period / 8 * part, period).is_ok();
    if !eighths.iter().any(takes) {
        let _ = sys::scheduling::set(0, FIFO, priority);
    }
}

/// For a thread that sleeps until somebody calls it. A whole look at all tasks takes less.
pub(crate) fn listens() {
    go_before_jobs(
        Duration::from_millis(2),
        [4, 2, 1],
        execute::kernel::LISTENER,
    );
}
