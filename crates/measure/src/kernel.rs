//! What the kernel did on each processor while something ran, from its own record: which thread had
//! the processor, which interrupts took it away, which timers came late.
//!
//! The record is made in the kernel's buffers and read when all is over, so that nothing runs for
//! it meanwhile ([`Recording::begin_to_read_afterwards`]). What it costs is in each tracepoint: the
//! overheads of a profile are measured with such a record, too
//! ([`overheads::marks`](crate::overheads::marks)).
//!
//! [`points`] says what is recorded, [`pieces`] cuts it into pieces without a gap, [`window`] adds
//! up those of a stretch of time.

pub mod pieces;
pub mod points;
pub mod window;

use machine::tracefs::{Recording, Tracepoint};
use model::{CpuId, Duration, Result};

/// What a busy processor fills in a second.
const KIB_A_SECOND: u64 = 2 << 10;
/// The buffer of a processor takes at least so much, for what comes before and after a run, and at
/// most so much.
const KIB: (u64, u64) = (4 << 10, 32 << 10);

/// Begins to record what happens on these processors for about so long.
///
/// # Errors
/// As [`Recording::begin_to_read_afterwards`].
pub fn begin(cpus: &[CpuId], length: Duration) -> Result<Recording> {
    begin_these(&points::known(), cpus, length)
}

/// The same with these tracepoints.
///
/// # Errors
/// As [`begin`].
pub fn begin_these(points: &[Tracepoint], cpus: &[CpuId], length: Duration) -> Result<Recording> {
    let seconds = length.nanos().div_ceil(1_000_000_000);
    let kib = KIB_A_SECOND.saturating_mul(seconds) + KIB.0;
    let kib = u32::try_from(kib.min(KIB.1)).unwrap_or(u32::MAX);
    Recording::begin_to_read_afterwards(points, cpus, kib)
}
