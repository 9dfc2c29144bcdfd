//! What Linux itself scheduled: the text of `sched_switch`, `sched_wakeup` and `sched_waking`, as
//! `/sys/kernel/tracing/trace`, `trace-cmd report` and `perf script` print them, becomes a trace.
//!
//! Formats: `include/trace/events/sched.h` of Linux 6 (`prev_comm=… prev_pid=… ==> next_comm=…`),
//! and the short form of libtraceevent's plugin (`comm:pid [prio] state ==> comm:pid [prio]`), which
//! trace-cmd and some builds of perf print. Lines of other events are passed over.
//!
//! [`read`] makes records of the text, [`Schedule::of`] makes a schedule of the records.

use model::{CpuId, CpuSet, Error, Instant, Result};

mod finish;
mod line;
mod named;
mod nominal;
mod schedule;

pub use named::Named;
pub use schedule::Schedule;

/// A thread as an event names it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Thread<'t> {
    /// Its name, of which the kernel keeps 15 bytes.
    pub comm: &'t str,
    /// Its number; 0: the idle thread of a processor.
    pub pid: u32,
    /// Its priority as the kernel counts: -1 under SCHED_DEADLINE, 0 to 98 under SCHED_FIFO and
    /// SCHED_RR (99 less the priority), from 100 on all others.
    pub prio: i32,
}

/// Why a thread leaves its processor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Leaves {
    /// It could go on.
    Ready,
    /// It waits for something, and signals wake it up (`S`, `I`).
    Sleeps,
    /// It ends (`X`, `Z`).
    Ends,
    /// It waits and no signal wakes it up (`D`), or it was stopped (`T`, `t`).
    Blocked,
}

/// What an event says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum What<'t> {
    /// A processor goes from one thread to another.
    Switch {
        /// The thread that leaves.
        from: Thread<'t>,
        /// Why.
        leaves: Leaves,
        /// The thread that comes.
        to: Thread<'t>,
    },
    /// A thread that slept is woken up. Of one wake-up there may be several events.
    Wake {
        /// The thread.
        thread: Thread<'t>,
        /// The processor that it is meant for.
        target: CpuId,
        /// Whether the event is `sched_waking`, which comes first.
        first: bool,
    },
    /// So many events of the processor are missing before the next one.
    Lost(u64),
}

/// One event.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Record<'t> {
    /// When, by the clock of the text.
    pub time: Instant,
    /// The processor on which it happened.
    pub cpu: CpuId,
    /// Its line in the text, from 1.
    pub line: usize,
    /// What it says.
    pub what: What<'t>,
}

/// The events of a text, in the order of time.
///
/// # Errors
/// An event that does not read, with its line; no event of the scheduler.
pub fn read(text: &str) -> Result<Vec<Record<'_>>> {
    let mut records = Vec::new();
    // What is lost has no time of its own: it is that of the event before.
    let mut latest = Instant::ZERO;
    for (index, line) in text.lines().enumerate() {
        let read = line::read(line).map_err(|e| e.at(format!("line {}", index + 1)))?;
        let Some((time, cpu, what)) = read else {
            continue;
        };
        if cpu.0 > CpuSet::MAX_CPU {
            return Err(Error::new(format!("there is no processor {}", cpu.0))
                .at(format!("line {}", index + 1))
                .remedy("give the text unchanged"));
        }
        latest = time.unwrap_or(latest);
        records.push(Record {
            time: latest,
            cpu,
            line: index + 1,
            what,
        });
    }
    if !records
        .iter()
        .any(|r| matches!(r.what, What::Switch { .. }))
    {
        return Err(Error::new("there is no event `sched_switch`").remedy(
            "record sched_switch, sched_waking and sched_wakeup, and give the text of \
             /sys/kernel/tracing/trace, `trace-cmd report` or `perf script`",
        ));
    }
    // Text of several processors may be out of order by a little; what is of one instant stays.
    records.sort_by_key(|record| record.time);
    Ok(records)
}

#[cfg(test)]
mod tests;
