//! Profiles: what a platform costs. The one thing that measuring hands to analysis (DESIGN, "The
//! loop").
//!
//! Cache delay (CPMD) by working set size, for every kind of resumption, idle and under load;
//! overheads by number of tasks. Curves interpolate monotone piecewise linear; outside of what was
//! measured the answer says so.

use crate::error::{Error, Result};
use crate::platform::Resumption;
use crate::provenance::Provenance;
use crate::size::Bytes;
use crate::time::{Delay, Duration};
pub use crate::words::{Code, Load, OverheadKind, Statistic};
use serde::Serialize;

/// The statistics of one cell: one working set size, one kind of resumption, one load.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct CpmdPoint {
    /// Working set size.
    pub wss: Bytes,
    /// Number of samples kept; 0 where the source does not say.
    pub samples: u64,
    /// Mean; `None` where the source gives only the maximum.
    #[serde(
        rename = "average_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub average: Option<Delay>,
    /// Standard deviation; `None` where the source gives none.
    #[serde(
        rename = "deviation_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub deviation: Option<Duration>,
    /// Largest sample, of equally many samples in every cell of a working set size (000 §3.1);
    /// `None` where the source gives only the mean.
    #[serde(
        rename = "maximum_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub maximum: Option<Delay>,
    /// Percentiles with their values, ascending, e.g. `(50.0, 3.1us)`.
    #[serde(
        rename = "percentiles_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub percentiles: Vec<(f64, Delay)>,
    /// Bootstrap interval of the mean, 95 %.
    #[serde(
        rename = "average_interval_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub average_interval: Option<(Delay, Delay)>,
    /// Interval of the maximum, 95 %: from ranks of windows of samples up to the maximum itself.
    #[serde(
        rename = "maximum_interval_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub maximum_interval: Option<(Delay, Delay)>,
}

/// CPMD as a function of working set size.
#[derive(Clone, PartialEq, Debug, Serialize)]
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

/// Cache delays by the schedule-sensitive method (000 §3.1): as seen in task sets that a policy
/// scheduled. They are kept apart from those of the synthetic method, and verdicts charge the
/// latter.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct ScheduledCurve {
    /// The policy that scheduled the sets.
    pub policy: String,
    /// How many tasks each set had.
    pub tasks: u32,
    /// The delays.
    #[serde(flatten)]
    pub curve: CpmdCurve,
}

/// A value read off a curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Reading {
    /// The value.
    pub value: Delay,
    /// Was the argument outside of what was measured? Such a value is a guess and must be shown as
    /// one.
    pub extrapolated: bool,
}

/// One point of an overhead curve.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OverheadPoint {
    /// Number of tasks.
    pub tasks: u32,
    /// Number of samples kept; 0 where the source does not say.
    pub samples: u64,
    /// Mean; `None` where the source gives only the maximum.
    #[serde(
        rename = "average_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub average: Option<Duration>,
    /// Largest sample; `None` where the source gives only the mean.
    #[serde(
        rename = "maximum_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub maximum: Option<Duration>,
    /// The same with outliers (002 §5.1); `None` where the source removes none or does not say.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrimmed: Option<Untrimmed>,
    /// Where these figures of another measurement of the same thing lie.
    #[serde(skip_serializing_if = "Intervals::are_none")]
    pub intervals: Intervals,
}

/// Intervals of 95 % of the figures of a point; none where the source gives none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Intervals {
    /// From how many groups of samples, such as task sets, they were found.
    pub groups: u32,
    /// Of the mean.
    #[serde(
        rename = "average_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub average: Option<(Duration, Duration)>,
    /// Of the largest that is no outlier.
    #[serde(
        rename = "maximum_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub maximum: Option<(Duration, Duration)>,
    /// Of the mean of all.
    #[serde(
        rename = "untrimmed_average_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub untrimmed_average: Option<(Duration, Duration)>,
    /// Of the largest of all, from ranks: its upper end is that value.
    #[serde(
        rename = "untrimmed_maximum_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub untrimmed_maximum: Option<(Duration, Duration)>,
}

impl Intervals {
    /// Is there none?
    pub fn are_none(&self) -> bool {
        *self == Intervals::default()
    }
}

/// What outliers change in a point of an overhead curve.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Untrimmed {
    /// Number of samples that were removed as outliers.
    pub outliers: u64,
    /// Mean of all samples, outliers among them.
    #[serde(rename = "average_ns", serialize_with = "crate::time::ns::serialize")]
    pub average: Duration,
    /// Largest of all samples.
    #[serde(rename = "maximum_ns", serialize_with = "crate::time::ns::serialize")]
    pub maximum: Duration,
}

/// An overhead as a function of the number of tasks, under one policy.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct OverheadCurve {
    /// Which overhead.
    pub kind: OverheadKind,
    /// Name of the policy it was measured under; empty: any.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub policy: String,
    /// Whose code it holds; `None` where the source does not say: all that there is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<Code>,
    /// Ascending by number of tasks.
    pub points: Vec<OverheadPoint>,
}

/// What a platform costs.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Profile {
    /// Version of the format; this program writes and reads [`Profile::VERSION`].
    pub version: u32,
    /// Name of the platform it was measured on.
    pub platform: String,
    /// Where the numbers come from.
    pub provenance: Provenance,
    /// The time between two ticks of the kernel; none: see [`Profile::DEFAULT_TICK_PERIOD`].
    #[serde(
        rename = "tick_period_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub tick_period: Option<Duration>,
    /// The time between two looks of the engine's watch for standstills; none: nobody watches.
    #[serde(
        rename = "watch_period_ns",
        serialize_with = "crate::time::ns::serialize",
        skip_serializing_if = "Option::is_none"
    )]
    pub watch_period: Option<Duration>,
    /// Cache delays.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpmd: Vec<CpmdCurve>,
    /// Cache delays by the schedule-sensitive method.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cpmd_scheduled: Vec<ScheduledCurve>,
    /// Scheduling overheads.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub overheads: Vec<OverheadCurve>,
}

/// Reads a monotone piecewise-linear curve through `points` (ascending in x) at `x`.
///
/// Monotone: each value is raised to the largest before it, so that a larger argument never costs
/// less (the convention of SchedCAT's overhead models; it keeps a dip in a measured curve from
/// making a set schedulable). Of several points at one x the largest counts. Beyond the last point
/// the last segment goes on; before the first the first value holds; both are flagged. Between
/// points the value is rounded up to a nanosecond: a cost is never understated by the reading.
/// `None` without points.
pub fn interpolate(points: impl Iterator<Item = (u64, i64)>, x: u64) -> Option<Reading> {
    let mut points = points.scan(i64::MIN, |top, (px, py)| {
        *top = py.max(*top);
        Some((px, *top))
    });
    let first = points.next()?;
    // The segment around x: two different points, or twice the first one.
    let (mut left, mut right) = (first, first);
    for point in points {
        if point.0 == right.0 {
            if left.0 == right.0 {
                left = point;
            }
        } else if x <= right.0 {
            break;
        } else {
            left = right;
        }
        right = point;
    }
    let value = if left.0 == right.0 {
        left.1
    } else {
        // The points ascend and the values do not fall: the factors are below 2^64, so the product
        // fits.
        let rise = u128::from(right.1.abs_diff(left.1));
        let way = u128::from(x - left.0);
        let climb = (rise * way).div_ceil(u128::from(right.0 - left.0));
        let climb = i128::try_from(climb).unwrap_or(i128::MAX);
        i64::try_from(i128::from(left.1).saturating_add(climb)).unwrap_or(i64::MAX)
    };
    Some(Reading {
        value: Delay::from_nanos(value),
        extrapolated: x < first.0 || x > right.0,
    })
}

impl CpmdPoint {
    /// One of its numbers, if the source gave it.
    pub fn value(&self, statistic: Statistic) -> Option<Delay> {
        match statistic {
            Statistic::Average => self.average,
            Statistic::Maximum | Statistic::Untrimmed => self.maximum,
        }
    }
}

impl CpmdCurve {
    /// The delay at a working set size; `None` for a curve without points that have this statistic.
    pub fn at(&self, wss: Bytes, statistic: Statistic) -> Option<Reading> {
        let known = self
            .points
            .iter()
            .filter_map(|p| Some((p.wss.get(), p.value(statistic)?.nanos())));
        interpolate(known, wss.get())
    }
}

impl OverheadPoint {
    /// One of its numbers, if the source gave it.
    pub fn value(&self, statistic: Statistic) -> Option<Duration> {
        match statistic {
            Statistic::Average => self.average,
            Statistic::Maximum => self.maximum,
            Statistic::Untrimmed => self.untrimmed.map(|all| all.maximum).or(self.maximum),
        }
    }
}

impl OverheadCurve {
    /// The overhead with this many tasks; `None` for a curve without points that have this
    /// statistic.
    pub fn at(&self, tasks: u32, statistic: Statistic) -> Option<Reading> {
        let known = self
            .points
            .iter()
            .filter_map(|p| Some((u64::from(p.tasks), Delay::from(p.value(statistic)?).nanos())));
        interpolate(known, u64::from(tasks))
    }
}

impl Profile {
    /// The version of the format that this program writes.
    pub const VERSION: u32 = 1;
    /// The write ratio that stands for a task of which none is known: the one of 000's figures.
    pub const DEFAULT_WRITE_RATIO: f64 = 0.25;
    /// The tick that verdicts assume where a profile has none: 1000 Hz, as LITMUS-RT has it (002
    /// §2.4 charges a tick for each quantum of 1 ms).
    pub const DEFAULT_TICK_PERIOD: Duration = Duration::from_millis(1);

    /// A profile without any cost yet.
    pub fn new(platform: impl Into<String>, provenance: Provenance) -> Self {
        Profile {
            version: Self::VERSION,
            platform: platform.into(),
            provenance,
            tick_period: None,
            watch_period: None,
            cpmd: Vec::new(),
            cpmd_scheduled: Vec::new(),
            overheads: Vec::new(),
        }
    }

    /// The curve for a way to resume under a load, at the write ratio nearest to the wanted one.
    pub fn cpmd_curve(
        &self,
        resumption: Resumption,
        load: Load,
        write_ratio: f64,
    ) -> Option<&CpmdCurve> {
        self.cpmd
            .iter()
            .filter(|c| c.resumption == resumption && c.load == load)
            .min_by(|a, b| {
                (a.write_ratio - write_ratio)
                    .abs()
                    .total_cmp(&(b.write_ratio - write_ratio).abs())
            })
    }

    /// The curve of an overhead that tasks are charged: the one of this policy goes before one of
    /// any policy; among those, one of all the code before one of the engine's own alone. The
    /// kernel's alone is never charged.
    pub fn overhead_curve(&self, kind: OverheadKind, policy: &str) -> Option<&OverheadCurve> {
        let of = |name: &str| {
            let curves = self.overheads.iter();
            curves
                .filter(|c| c.kind == kind && c.policy == name && c.code != Some(Code::Kernel))
                .min_by_key(|c| c.code == Some(Code::Own))
        };
        of(policy).or_else(|| of(""))
    }

    /// What the engine's watch for standstills takes from every job, as part of each tick: `None`
    /// where the profile has no such curve. `tick_period`: the time between two ticks.
    ///
    /// Of w time units the watch takes at most w / R + 1 times its cost, R its period. A tick of
    /// ⌈Q / R⌉ times that cost with the period Q takes no less.
    pub fn watch_in_tick(
        &self,
        policy: &str,
        tasks: u32,
        statistic: Statistic,
        tick_period: Duration,
    ) -> Option<Reading> {
        let period = self.watch_period?.nanos().max(1);
        let curve = self.overhead_curve(OverheadKind::Watch, policy)?;
        let each = curve.at(tasks, statistic)?;
        let times = tick_period.nanos().div_ceil(period).max(1);
        let cost = each.value.cost().nanos().saturating_mul(times);
        Some(Reading {
            value: Delay::from(Duration::from_nanos(cost)),
            extrapolated: each.extrapolated,
        })
    }

    /// The largest delay over the given ways to resume: what one preemption or migration of a job
    /// can cost (000 §2).
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
                        "the profile of `{}` has no {statistic} delay for a {r} ({load})",
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

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Points with ascending arguments, some of them equal, and any values.
    fn points() -> impl Strategy<Value = Vec<(u64, i64)>> {
        let near = prop::collection::vec((0..200u64, -1_000..1_000i64), 1..20);
        let any = prop::collection::vec((any::<u64>(), any::<i64>()), 1..20);
        prop_oneof![near, any].prop_map(|mut points| {
            points.sort_unstable();
            points
        })
    }
    /// The largest value of the points up to `x`.
    fn running_maximum(points: &[(u64, i64)], x: u64) -> Option<i64> {
        points.iter().filter(|p| p.0 <= x).map(|p| p.1).max()
    }
    fn read(points: &[(u64, i64)], x: u64) -> Reading {
        interpolate(points.iter().copied(), x).unwrap()
    }

    proptest! {
        #[test]
        fn a_larger_argument_never_costs_less(
            points in points(),
            a: u64,
            b: u64,
            near in 0..220u64,
            step in 0..30u64,
        ) {
            let (a, b) = (a.min(b), a.max(b));
            prop_assert!(read(&points, a).value <= read(&points, b).value);
            prop_assert!(read(&points, near).value <= read(&points, near + step).value);
        }

        #[test]
        fn every_point_is_hit_after_the_running_maximum(points in points()) {
            for (x, _) in &points {
                let reading = read(&points, *x);
                prop_assert_eq!(Some(reading.value.nanos()), running_maximum(&points, *x));
                prop_assert!(!reading.extrapolated);
            }
        }

        #[test]
        fn what_lies_outside_is_flagged_and_nothing_else(
            points in points(),
            far: u64,
            near in 0..220u64,
        ) {
            for x in [far, near, 0, u64::MAX] {
                let inside = points[0].0 <= x && x <= points[points.len() - 1].0;
                prop_assert_eq!(read(&points, x).extrapolated, !inside);
            }
        }

        #[test]
        fn between_two_points_the_value_is_the_line_rounded_up(
            left in 0..1_000_000u64,
            run in 1..1_000_000u64,
            at in 0.0..1.0f64,
            low: i32,
            rise in 0..1_000_000i64,
        ) {
            let x = left + (at * run as f64) as u64;
            let value = read(
                &[(left, i64::from(low)), (left + run, i64::from(low) + rise)],
                x,
            )
            .value
            .nanos();
            // value - 1 < low + rise · (x - left) / run <= value, in integers.
            let line = i128::from(rise) * i128::from(x - left);
            let climb = i128::from(value - i64::from(low)) * i128::from(run);
            prop_assert!(line <= climb && climb - i128::from(run) < line);
        }
    }

    #[test]
    fn what_is_charged_is_a_curve_of_all_the_code_if_there_is_one() {
        let kind = OverheadKind::Release;
        let mut profile = Profile::new("x", Provenance::default());
        let mut add = |policy: &str, code| {
            profile.overheads.push(OverheadCurve {
                kind,
                policy: policy.to_owned(),
                code,
                points: Vec::new(),
            });
            let curve = profile.overhead_curve(kind, "g-edf");
            curve.map(|c| (c.policy.clone(), c.code))
        };
        let (any, named) = (String::new, || "g-edf".to_owned());
        assert_eq!(add("", Some(Code::Kernel)), None);
        assert_eq!(add("", Some(Code::Own)), Some((any(), Some(Code::Own))));
        assert_eq!(add("", None), Some((any(), None)));
        // Of this policy goes first, whatever it holds.
        let own = Some((named(), Some(Code::Own)));
        assert_eq!(add("g-edf", Some(Code::Own)), own);
        assert_eq!(add("g-edf", Some(Code::Kernel)), own);
        let both = Some((named(), Some(Code::Both)));
        assert_eq!(add("g-edf", Some(Code::Both)), both);
        assert_eq!(add("p-edf", None), both);
    }

    #[test]
    fn the_watch_is_charged_as_often_as_it_looks_within_a_tick() {
        let ms = Duration::from_millis;
        let mut profile = Profile::new("x", Provenance::default());
        let read = |profile: &Profile, statistic, tick| {
            let reading = profile.watch_in_tick("g-edf", 4, statistic, tick);
            reading.map(|reading| reading.value.nanos())
        };
        profile.overheads.push(OverheadCurve {
            kind: OverheadKind::Watch,
            policy: String::new(),
            code: Some(Code::Both),
            points: vec![OverheadPoint {
                tasks: 4,
                samples: 100,
                average: Some(Duration::from_micros(10)),
                maximum: Some(Duration::from_micros(20)),
                untrimmed: Some(Untrimmed {
                    outliers: 3,
                    average: Duration::from_micros(11),
                    maximum: Duration::from_micros(70),
                }),
                intervals: Intervals::default(),
            }],
        });
        // Nobody watches where no period is told.
        assert_eq!(read(&profile, Statistic::Maximum, ms(4)), None);
        profile.watch_period = Some(ms(2));
        assert_eq!(read(&profile, Statistic::Average, ms(4)), Some(20_000));
        assert_eq!(read(&profile, Statistic::Maximum, ms(4)), Some(40_000));
        assert_eq!(read(&profile, Statistic::Untrimmed, ms(4)), Some(140_000));
        assert_eq!(read(&profile, Statistic::Maximum, ms(5)), Some(60_000));
        assert_eq!(read(&profile, Statistic::Maximum, ms(1)), Some(20_000));
    }

    #[test]
    fn beyond_the_last_point_the_last_segment_goes_on() {
        let curve = [(10, 100), (20, 200), (30, 150), (40, 400)];
        let values: Vec<(i64, bool)> = [0, 10, 15, 25, 35, 40, 50]
            .map(|x| (read(&curve, x).value.nanos(), read(&curve, x).extrapolated))
            .to_vec();
        assert_eq!(
            values,
            [
                (100, true),
                (100, false),
                (150, false),
                (200, false),
                (300, false),
                (400, false),
                (600, true)
            ]
        );
        assert!(interpolate(std::iter::empty(), 3).is_none());
    }

    #[test]
    fn the_largest_numbers_saturate_instead_of_overflowing() {
        let steep = [(0, i64::MIN), (1, i64::MAX)];
        assert_eq!(read(&steep, u64::MAX).value.nanos(), i64::MAX);
        let wide = [(0, i64::MIN), (u64::MAX, i64::MAX)];
        assert_eq!(read(&wide, u64::MAX).value.nanos(), i64::MAX);
        assert_eq!(read(&wide, 1 << 63).value.nanos(), 0);
    }
}
