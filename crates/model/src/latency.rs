//! Latencies that cyclictest and `rtla timerlat hist` measured: from the instant for which a timer
//! is set until the thread runs that waits for it.
//!
//! Formats: cyclictest of rt-tests 2 (`-q`: a line `T: …` for each thread; `-h` and `-H`: a
//! histogram with a footer), rtla of Linux 6 (columns `Thr-CPU`, a summary below). Both print whole
//! microseconds and cut off what is finer (rtla with `--nano` nanoseconds), so each value may be
//! longer by almost one unit, and is taken as one unit longer: a cost is never understated.
//!
//! In a profile they become the overhead `release`: what lies between the instant of a release and
//! its service. They hold more than 002 §2.4 calls by this name: the time in which the kernel keeps
//! interrupts out, and choosing the thread and switching to it. Where a profile has curves for the
//! latter, too, they are charged twice, which is on the safe side.

use crate::error::{Error, Result};
use crate::profile::{Intervals, OverheadCurve, OverheadKind, OverheadPoint, Profile};
use crate::time::Duration;

mod cyclictest;
mod rtla;

/// What a tool measured, over all its threads.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Latencies {
    /// Which tool.
    pub tool: &'static str,
    /// How many threads measured.
    pub threads: u32,
    /// How many latencies there are.
    pub samples: u64,
    /// Their mean, rounded up.
    pub average: Duration,
    /// The longest.
    pub maximum: Duration,
}

/// What one thread measured, in units of the tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Thread {
    samples: u64,
    /// At least the sum of all.
    sum: u128,
    maximum: u64,
}

/// Reads the output of either tool; `None`: it is of neither.
///
/// # Errors
/// A line that does not read, with its number; nothing was measured.
pub fn read(text: &str) -> Result<Option<Latencies>> {
    let (tool, unit, threads) = if rtla::is_meant(text) {
        let (unit, threads) = rtla::read(text)?;
        ("rtla timerlat", unit, threads)
    } else if cyclictest::is_meant(text) {
        (
            "cyclictest",
            Duration::from_micros(1),
            cyclictest::read(text)?,
        )
    } else {
        return Ok(None);
    };
    let samples = threads
        .iter()
        .fold(0_u64, |sum, t| sum.saturating_add(t.samples));
    if samples == 0 {
        return Err(Error::new("nothing was measured")
            .remedy(format!("let {tool} run until it prints its summary")));
    }
    let sum = threads
        .iter()
        .fold(0_u128, |sum, t| sum.saturating_add(t.sum));
    let maximum = threads.iter().map(|t| t.maximum).max().unwrap_or(0);
    let unit_ns = u128::from(unit.nanos());
    // Each sample may be longer by a unit.
    let average = sum
        .saturating_add(u128::from(samples))
        .saturating_mul(unit_ns)
        .div_ceil(u128::from(samples));
    let maximum = (u128::from(maximum) + 1) * unit_ns;
    let time = |ns: u128| {
        u64::try_from(ns).map(Duration::from_nanos).map_err(|_| {
            Error::new("a latency is longer than any time here").remedy("check the file")
        })
    };
    Ok(Some(Latencies {
        tool,
        threads: u32::try_from(threads.len()).unwrap_or(u32::MAX),
        samples,
        average: time(average)?.min(time(maximum)?),
        maximum: time(maximum)?,
    }))
}

/// What a profile warns of that holds such latencies.
pub const WARNING: &str = "the overhead `release` is the whole latency from a timer to its thread: choosing that thread and switching to it are part of it";

/// The profile with these latencies as its overhead `release` under a policy (empty: any), with as
/// many tasks as threads measured.
///
/// # Errors
/// The profile has this point already.
pub fn add(profile: &Profile, latencies: &Latencies, policy: &str) -> Result<Profile> {
    let mut out = profile.clone();
    let is_it = |c: &OverheadCurve| {
        c.kind == OverheadKind::Release && c.policy == policy && c.code.is_none()
    };
    let index = out.overheads.iter().position(is_it).unwrap_or_else(|| {
        out.overheads.push(OverheadCurve {
            kind: OverheadKind::Release,
            policy: policy.to_owned(),
            code: None,
            points: Vec::new(),
        });
        out.overheads.len() - 1
    });
    let points = &mut out.overheads[index].points;
    let at = points.partition_point(|p| p.tasks < latencies.threads);
    if points.get(at).is_some_and(|p| p.tasks == latencies.threads) {
        return Err(Error::new(format!(
            "the profile has the overhead `release` of {} tasks already",
            latencies.threads
        ))
        .remedy("import into another profile, or say another --policy"));
    }
    points.insert(
        at,
        OverheadPoint {
            tasks: latencies.threads,
            samples: latencies.samples,
            average: Some(latencies.average),
            maximum: Some(latencies.maximum),
            untrimmed: None,
            intervals: Intervals::default(),
        },
    );
    if !out.provenance.warnings.iter().any(|w| w == WARNING) {
        out.provenance.warnings.push(WARNING.to_owned());
    }
    Ok(out)
}

/// The numbers behind the first word of a line.
fn numbers<'t>(line: usize, words: impl Iterator<Item = &'t str>, what: &str) -> Result<Vec<u64>> {
    let number = |word: &str| {
        word.parse().map_err(|_| {
            Error::new(format!("`{word}` is no number of `{what}`"))
                .at(format!("line {line}"))
                .remedy("give what the tool printed, unchanged")
        })
    };
    words.map(number).collect()
}

#[cfg(test)]
mod tests;
