//! Profiles: what a platform costs. The one thing that measuring hands to analysis (DESIGN, "The loop").
//!
//! Cache delay (CPMD) by working set size, for every kind of resumption, idle and under load; overheads by number of
//! tasks. Curves interpolate monotone piecewise linear; outside of what was measured the answer says so.

use crate::error::{Error, Result};
use crate::platform::Resumption;
use crate::provenance::Provenance;
use crate::size::Bytes;
use crate::time::{Delay, Duration};
use serde::{Deserialize, Serialize};
use std::fmt;

/// What else ran while a delay was measured (000 §4.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Load {
    /// Nothing: the best case.
    Idle,
    /// A cache polluter on every processor: the worst case.
    Load,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Load::Idle => "idle",
            Load::Load => "load",
        })
    }
}

/// Which number of a sample: hard real time asks for the worst case, soft for the average (002 §6.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// Mean of the samples.
    Average,
    /// Largest sample.
    Maximum,
}

/// The statistics of one cell: one working set size, one kind of resumption, one load.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpmdPoint {
    /// Working set size.
    pub wss: Bytes,
    /// Number of samples kept.
    pub samples: u64,
    /// Mean.
    pub average: Delay,
    /// Standard deviation; `None` where the source gives none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub deviation: Option<Duration>,
    /// Largest sample. Of equally many samples in every cell of a working set size (000 §3.1).
    pub maximum: Delay,
    /// Percentiles with their values, ascending, e.g. `(50.0, 3.1us)`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub percentiles: Vec<(f64, Delay)>,
    /// Bootstrap interval of the mean, 95 %.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub average_interval: Option<(Delay, Delay)>,
}

/// CPMD as a function of working set size.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CpmdCurve {
    /// How the job resumed.
    pub resumption: Resumption,
    /// What else ran.
    pub load: Load,
    /// Part of the words that are written, in [0, 1].
    pub write_ratio: f64,
    /// Ascending by working set size.
    pub points: Vec<CpmdPoint>,
}

/// A value read off a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Reading {
    /// The value.
    pub value: Delay,
    /// Was the argument outside of what was measured? Such a value is a guess and must be shown as one.
    pub extrapolated: bool,
}

/// An overhead of the system (002 §2.4); CPMD is the seventh and has its own curves.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OverheadKind {
    /// Servicing the interrupt that releases a job.
    Release,
    /// Choosing the next job.
    Scheduling,
    /// Switching stacks and registers.
    ContextSwitch,
    /// From sending an inter-processor interrupt to its service.
    IpiLatency,
    /// Programming a timer on another processor.
    TimerTransfer,
    /// Servicing the periodic tick.
    Tick,
}

/// One point of an overhead curve.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadPoint {
    /// Number of tasks.
    pub tasks: u32,
    /// Number of samples kept.
    pub samples: u64,
    /// Mean.
    pub average: Duration,
    /// Largest sample.
    pub maximum: Duration,
}

/// An overhead as a function of the number of tasks, under one policy.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OverheadCurve {
    /// Which overhead.
    pub kind: OverheadKind,
    /// Name of the policy it was measured under; empty: any.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Ascending by number of tasks.
    pub points: Vec<OverheadPoint>,
}

/// What a platform costs.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Profile {
    /// Version of the format; this program writes and reads [`Profile::VERSION`].
    pub version: u32,
    /// Name of the platform it was measured on.
    pub platform: String,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// Cache delays.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cpmd: Vec<CpmdCurve>,
    /// Scheduling overheads.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overheads: Vec<OverheadCurve>,
}

/// Reads a monotone piecewise-linear curve through `points` (ascending in x) at `x`.
///
/// Monotone: each value is raised to the largest before it, so that a larger argument never costs less (the convention
/// of SchedCAT's overhead models; it keeps a dip in a measured curve from making a set schedulable). Beyond the last
/// point the last segment goes on; before the first the first value holds; both are flagged. `None` without points.
pub fn interpolate(points: impl Iterator<Item = (u64, i64)>, x: u64) -> Option<Reading> {
    let mut points = points.scan(i64::MIN, |top, (px, py)| {
        *top = py.max(*top);
        Some((px, *top))
    });
    let first = points.next()?;
    if x <= first.0 {
        return Some(Reading {
            value: Delay::from_nanos(first.1),
            extrapolated: x < first.0,
        });
    }
    let (mut left, mut right) = (first, first);
    for point in points {
        (left, right) = (right, point);
        if x <= right.0 {
            break;
        }
    }
    let value = if right.0 == left.0 {
        i128::from(right.1)
    } else {
        let rise = i128::from(right.1) - i128::from(left.1);
        let run = i128::from(right.0) - i128::from(left.0);
        // Rounded up: a cost is never understated by the reading.
        i128::from(left.1) + (rise * (i128::from(x) - i128::from(left.0)) + run - 1).div_euclid(run)
    };
    let value = Delay::from_nanos(i64::try_from(value).unwrap_or(i64::MAX));
    Some(Reading {
        value,
        extrapolated: x > right.0,
    })
}

impl CpmdCurve {
    /// The delay at a working set size; `None` for a curve without points.
    pub fn at(&self, wss: Bytes, statistic: Statistic) -> Option<Reading> {
        let y = |p: &CpmdPoint| match statistic {
            Statistic::Average => p.average.nanos(),
            Statistic::Maximum => p.maximum.nanos(),
        };
        interpolate(self.points.iter().map(|p| (p.wss.get(), y(p))), wss.get())
    }
}

impl Profile {
    /// The version of the format that this program writes.
    pub const VERSION: u32 = 1;
    /// The write ratio that stands for a task of which none is known: the one of 000's figures.
    pub const DEFAULT_WRITE_RATIO: f64 = 0.25;

    /// A profile without any cost yet.
    pub fn new(platform: impl Into<String>, provenance: Provenance) -> Self {
        Profile {
            version: Self::VERSION,
            platform: platform.into(),
            provenance,
            cpmd: Vec::new(),
            overheads: Vec::new(),
        }
    }

    /// The curve for a way to resume under a load, at the write ratio nearest to the wanted one.
    pub fn cpmd_curve(&self, resumption: Resumption, load: Load, write_ratio: f64) -> Option<&CpmdCurve> {
        self.cpmd
            .iter()
            .filter(|c| c.resumption == resumption && c.load == load)
            .min_by(|a, b| {
                (a.write_ratio - write_ratio)
                    .abs()
                    .total_cmp(&(b.write_ratio - write_ratio).abs())
            })
    }

    /// The largest delay over the given ways to resume: what one preemption or migration of a job can cost (000 §2).
    ///
    /// # Errors
    /// A way to resume for which the profile has no curve under this load.
    pub fn worst_cpmd(
        &self,
        resumptions: &[Resumption],
        load: Load,
        wss: Bytes,
        statistic: Statistic,
    ) -> Result<Reading> {
        let mut worst = Reading {
            value: Delay::ZERO,
            extrapolated: false,
        };
        for r in resumptions {
            let reading = self
                .cpmd_curve(*r, load, Self::DEFAULT_WRITE_RATIO)
                .and_then(|c| c.at(wss, statistic))
                .ok_or_else(|| {
                    Error::new(format!(
                        "the profile of `{}` has no delay for a {r} ({load})",
                        self.platform
                    ))
                    .remedy("measure it with `warmset measure cpmd`, or choose another profile")
                })?;
            worst.value = worst.value.max(reading.value);
            worst.extrapolated |= reading.extrapolated;
        }
        Ok(worst)
    }
}
