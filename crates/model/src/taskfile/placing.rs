//! Keys of a task for its processors, its priority, blocking and release jitter.

use crate::cpus::CpuSet;
use crate::error::{Error, Result};
use crate::input::{Table, Value};
use crate::task::Extras;
use crate::time::Duration;

/// Reads `cpus`.
pub(super) fn cpus(value: &Value<'_, '_>) -> Result<CpuSet> {
    let cpus: CpuSet = value.parsed()?;
    match cpus.is_empty() {
        true => Err(value
            .error("no processors are named")
            .remedy("leave it out, or name some, such as `0-3,8`")),
        false => Ok(cpus),
    }
}

/// Reads `priority`.
pub(super) fn priority(value: &Value<'_, '_>) -> Result<u32> {
    let number = value.number()?;
    if number.fract() == 0.0 && (0.0..=f64::from(u32::MAX)).contains(&number) {
        // A whole number in the range of the type.
        return Ok(number as u32);
    }
    Err(value
        .error(format!("`{number}` is not a priority"))
        .remedy(format!(
            "give a whole number up to {}, the larger the more urgent",
            u32::MAX
        )))
}

/// Reads `blocking` and `jitter`. The WCET and the deadline of the table are checked already.
///
/// A job with more jitter than its deadline leaves room for misses it whoever schedules; that much
/// blocking is a matter for the tests.
pub(super) fn extras(table: &Table<'_, '_>, wcet: Duration) -> Result<Extras> {
    let time = |key: &str| -> Result<Duration> {
        let read = table.get(key).map(|v| v.parsed()).transpose()?;
        Ok(read.unwrap_or_default())
    };
    let extras = Extras {
        blocking: time("blocking")?,
        jitter: time("jitter")?,
    };
    let deadline = time(if table.get("deadline").is_some() {
        "deadline"
    } else {
        "period"
    })?;
    match table.get("jitter") {
        Some(value) if extras.jitter.saturating_add(wcet) > deadline => Err(value.place(
            Error::new(format!(
                "a job that is released {} after its arrival and runs for {wcet} ends after its deadline {deadline}",
                extras.jitter
            ))
            .remedy("shorten the jitter or the WCET, or lengthen the deadline"),
        )),
        _ => Ok(extras),
    }
}
