//! From samples to a curve over the number of tasks (002 §5.1): equal numbers of samples, outliers
//! apart, the largest and the mean of each size, and upper bounds that never fall.

use super::outliers::Fences;
use super::trend::Trend;
use crate::interval;
use model::Duration;
use model::profile::{Intervals, OverheadPoint, Untrimmed};
use serde::Serialize;

/// A size with fewer samples has no point: its largest would be compared with those of sizes that
/// had many more occasions.
pub const LEAST_SAMPLES: usize = 100;

/// Samples of one overhead at one number of tasks, in nanoseconds.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Size {
    /// How many tasks each set has.
    pub tasks: u32,
    /// By task set, in the order in which they were taken.
    pub sets: Vec<Vec<u32>>,
}

impl Size {
    /// How many samples of all sets.
    pub fn count(&self) -> usize {
        self.sets.iter().map(Vec::len).sum()
    }

    /// So many samples, as equally from all sets as they have them: the first of each, the second
    /// of each, and so on. By set.
    fn first(&self, count: usize) -> Vec<&[u32]> {
        let mut left = count.min(self.count());
        let mut taken = vec![0; self.sets.len()];
        let mut round = 0;
        while left > 0 {
            for (taken, set) in taken.iter_mut().zip(&self.sets) {
                if left > 0 && set.len() > round {
                    *taken = round + 1;
                    left -= 1;
                }
            }
            round += 1;
        }
        let sets = self.sets.iter().zip(taken);
        sets.map(|(set, taken)| &set[..taken]).collect()
    }
}

/// What was found at one number of tasks; times in nanoseconds.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
pub struct Point {
    /// How many tasks each set has.
    pub tasks: u32,
    /// How many samples were looked at, the same for all sizes of a curve.
    pub samples: u64,
    /// How many of them are outliers.
    pub outliers: u64,
    /// The mean without outliers, rounded up.
    pub average_ns: u64,
    /// The largest that is no outlier.
    pub maximum_ns: u64,
    /// The mean of all, rounded up.
    pub untrimmed_average_ns: u64,
    /// The largest of all.
    pub untrimmed_maximum_ns: u64,
    /// Where these figures of another measurement of the same thing lie.
    #[serde(flatten)]
    pub intervals: Ends,
}

/// Intervals of 95 % of the figures of a point ([`interval`]), in nanoseconds; none where there are
/// too few samples.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize)]
pub struct Ends {
    /// How many groups of samples they were found from: task sets, or parts of a single one.
    pub groups: u32,
    /// Of the mean without outliers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub average_interval_ns: Option<(u64, u64)>,
    /// Of the largest that is no outlier.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub maximum_interval_ns: Option<(u64, u64)>,
    /// Of the mean of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrimmed_average_interval_ns: Option<(u64, u64)>,
    /// Of the largest of all.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub untrimmed_maximum_interval_ns: Option<(u64, u64)>,
}

impl Ends {
    /// Wider by so much on either side.
    fn wider(self, by: u64) -> Ends {
        let wider = |ends: Option<(u64, u64)>| {
            let (low, high) = ends?;
            Some((low.saturating_sub(by), high.saturating_add(by)))
        };
        Ends {
            groups: self.groups,
            average_interval_ns: wider(self.average_interval_ns),
            maximum_interval_ns: wider(self.maximum_interval_ns),
            untrimmed_average_interval_ns: wider(self.untrimmed_average_interval_ns),
            untrimmed_maximum_interval_ns: wider(self.untrimmed_maximum_interval_ns),
        }
    }

    /// Of the samples of a point, by set.
    fn of(sets: &[&[u32]]) -> Ends {
        let mut groups: Vec<&[u32]> = sets.iter().copied().filter(|s| !s.is_empty()).collect();
        if let [one] = groups[..] {
            groups = one.chunks(one.len().div_ceil(interval::PARTS)).collect();
        }
        let all = Figures::of(&groups.concat());
        let others: Vec<Option<Figures>> = (0..groups.len())
            .map(|left_out| {
                let others = groups.iter().enumerate().filter(|(g, _)| *g != left_out);
                let others: Vec<&[u32]> = others.map(|(_, group)| *group).collect();
                Figures::of(&others.concat())
            })
            .collect();
        let (Some(all), Some(others)) = (all, others.into_iter().collect::<Option<Vec<_>>>())
        else {
            return Ends::default();
        };
        let of = |figure: fn(&Figures) -> u64| {
            interval::jackknife(figure(&all), others.len(), |group| figure(&others[group]))
        };
        let largest = interval::largest(sets);
        Ends {
            groups: others.len() as u32,
            average_interval_ns: of(|f| f.average),
            maximum_interval_ns: of(|f| f.maximum),
            untrimmed_average_interval_ns: of(|f| f.untrimmed_average),
            untrimmed_maximum_interval_ns: largest.map(|(low, high)| (low.into(), high.into())),
        }
    }
}

/// The figures of some samples, in nanoseconds.
struct Figures {
    trimmed: Vec<u32>,
    fences: Fences,
    average: u64,
    maximum: u64,
    untrimmed_average: u64,
}

impl Figures {
    /// `None` for too few samples to have quartiles.
    fn of(samples: &[u32]) -> Option<Figures> {
        let fences = Fences::of(samples)?;
        let trimmed: Vec<u32> = samples
            .iter()
            .copied()
            .filter(|s| fences.hold(*s))
            .collect();
        Some(Figures {
            average: mean(&trimmed),
            maximum: largest(&trimmed),
            untrimmed_average: mean(samples),
            fences,
            trimmed,
        })
    }
}

/// An overhead by number of tasks.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Curve {
    /// Ascending by number of tasks.
    pub points: Vec<Point>,
    /// Do means rise? By task set, outliers removed.
    pub average: Trend,
    /// Do the largest values rise? By task set, outliers removed.
    pub maximum: Trend,
    /// Sizes without a point, with the number of samples that they have.
    pub dropped: Vec<(u32, u64)>,
}

impl Curve {
    /// Of samples at different numbers of tasks, each number once, in any order. Looked at are as
    /// many samples of each size as the size has that has fewest, of those that have
    /// [`LEAST_SAMPLES`].
    pub fn of(sizes: &[Size]) -> Curve {
        let mut sizes: Vec<&Size> = sizes.iter().collect();
        sizes.sort_by_key(|size| size.tasks);
        let (kept, dropped): (Vec<&Size>, Vec<&Size>) = sizes
            .into_iter()
            .partition(|size| size.count() >= LEAST_SAMPLES);
        let count = kept.iter().map(|size| size.count()).min().unwrap_or(0);
        let (mut points, mut averages, mut maxima) = (Vec::new(), Vec::new(), Vec::new());
        for size in kept {
            let sets = size.first(count);
            let all = sets.concat();
            let Some(figures) = Figures::of(&all) else {
                continue;
            };
            for set in &sets {
                let kept = set.iter().filter(|sample| figures.fences.hold(**sample));
                let set: Vec<u32> = kept.copied().collect();
                if !set.is_empty() {
                    averages.push((size.tasks, mean(&set)));
                    maxima.push((size.tasks, largest(&set)));
                }
            }
            points.push(Point {
                tasks: size.tasks,
                samples: all.len() as u64,
                outliers: (all.len() - figures.trimmed.len()) as u64,
                average_ns: figures.average,
                maximum_ns: figures.maximum,
                untrimmed_average_ns: figures.untrimmed_average,
                untrimmed_maximum_ns: largest(&all),
                intervals: Ends::of(&sets),
            });
        }
        Curve {
            points,
            average: Trend::of(&averages),
            maximum: Trend::of(&maxima),
            dropped: dropped
                .iter()
                .map(|size| (size.tasks, size.count() as u64))
                .collect(),
        }
    }

    /// The same with intervals that are wider by so many nanoseconds on either side: its samples are
    /// all uncertain by as much.
    pub fn wider(mut self, by: u64) -> Curve {
        for point in &mut self.points {
            point.intervals = point.intervals.wider(by);
        }
        self
    }

    /// Upper bounds for a profile, which interpolates between points: where a rise is conclusive,
    /// each point as large as the largest up to it; else the largest of all everywhere. Where means
    /// do not rise and largest values do, the mean of all may exceed the largest of few tasks: no
    /// bound of the largest is below that of the mean.
    pub fn upper(&self) -> Vec<OverheadPoint> {
        let averages = bounds(&self.points, |p| p.average_ns, self.average.rises);
        let maxima = bounds(&self.points, |p| p.maximum_ns, self.maximum.rises);
        let maxima = maxima.into_iter().zip(&averages).map(|(m, a)| m.max(*a));
        let maxima: Vec<u64> = maxima.collect();
        // What bounds the figures bounds the ends of their intervals as well.
        let average_ends = ends(
            &self.points,
            |p| p.intervals.average_interval_ns,
            self.average.rises,
        );
        let maximum_ends = ends(
            &self.points,
            |p| p.intervals.maximum_interval_ns,
            self.maximum.rises,
        );
        let maximum_ends = maximum_ends.iter().zip(&average_ends).map(|(of, average)| {
            let ((low, high), least) = ((*of)?, (*average)?);
            Some((low.max(least.0), high.max(least.1)))
        });
        let maximum_ends: Vec<_> = maximum_ends.collect();
        let bounds = averages.into_iter().zip(maxima);
        let ends = average_ends.into_iter().zip(maximum_ends);
        let points = self.points.iter().zip(bounds.zip(ends));
        points
            .map(|(point, ((average, maximum), ends))| OverheadPoint {
                tasks: point.tasks,
                samples: point.samples - point.outliers,
                average: Some(Duration::from_nanos(average)),
                maximum: Some(Duration::from_nanos(maximum)),
                untrimmed: Some(Untrimmed {
                    outliers: point.outliers,
                    average: Duration::from_nanos(point.untrimmed_average_ns),
                    maximum: Duration::from_nanos(point.untrimmed_maximum_ns),
                }),
                intervals: Intervals {
                    groups: point.intervals.groups,
                    average: ends.0,
                    maximum: ends.1,
                    untrimmed_average: times(point.intervals.untrimmed_average_interval_ns),
                    untrimmed_maximum: times(point.intervals.untrimmed_maximum_interval_ns),
                },
            })
            .collect()
    }
}

fn times(ends: Option<(u64, u64)>) -> Option<(Duration, Duration)> {
    ends.map(|(low, high)| (Duration::from_nanos(low), Duration::from_nanos(high)))
}

/// The interval of each bound; none where a point has none.
fn ends(
    points: &[Point],
    of: fn(&Point) -> Option<(u64, u64)>,
    rises: bool,
) -> Vec<Option<(Duration, Duration)>> {
    if points.iter().any(|point| of(point).is_none()) {
        return vec![None; points.len()];
    }
    let low = bounds(points, |p| of(p).map_or(0, |ends| ends.0), rises);
    let high = bounds(points, |p| of(p).map_or(0, |ends| ends.1), rises);
    low.into_iter()
        .zip(high)
        .map(|ends| times(Some(ends)))
        .collect()
}

fn bounds(points: &[Point], of: impl Fn(&Point) -> u64, rises: bool) -> Vec<u64> {
    let all = points.iter().map(&of).max().unwrap_or(0);
    let mut largest = 0;
    points
        .iter()
        .map(|point| {
            largest = largest.max(of(point));
            if rises { largest } else { all }
        })
        .collect()
}

/// The mean of some samples, rounded up.
fn mean(samples: &[u32]) -> u64 {
    let sum: u64 = samples.iter().map(|s| u64::from(*s)).sum();
    sum.div_ceil((samples.len() as u64).max(1))
}

fn largest(samples: &[u32]) -> u64 {
    samples.iter().copied().max().unwrap_or(0).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn size(tasks: u32, sets: &[&[u32]]) -> Size {
        let sets = sets.iter().map(|set| set.to_vec()).collect();
        Size { tasks, sets }
    }

    /// Samples around a value, one outlier among them.
    fn around(value: u32, count: u32) -> Vec<u32> {
        let mut samples: Vec<u32> = (0..count).map(|n| value + n % 5).collect();
        samples[50] = 1_000_000;
        samples
    }

    #[test]
    fn sizes_are_compared_by_equally_many_samples() {
        let many = around(100, 1000);
        let few = around(200, 150);
        let curve = Curve::of(&[size(20, &[&few]), size(10, &[&many])]);
        let found: Vec<_> = curve
            .points
            .iter()
            .map(|p| (p.tasks, p.samples, p.outliers, p.maximum_ns))
            .collect();
        assert_eq!(found, [(10, 150, 1, 104), (20, 150, 1, 204)]);
        assert!(
            curve
                .points
                .iter()
                .all(|p| p.untrimmed_maximum_ns == 1_000_000)
        );
        // The outlier took the place of one of the least.
        assert_eq!(
            (curve.points[0].average_ns, curve.points[1].average_ns),
            (103, 203)
        );
    }

    #[test]
    fn samples_are_taken_from_all_sets_alike() {
        let sized = size(3, &[&[1, 2, 3, 4], &[5], &[6, 7, 8]]);
        assert_eq!(sized.first(6), [&[1, 2, 3][..], &[5], &[6, 7]]);
        assert_eq!(sized.first(100), [&[1, 2, 3, 4][..], &[5], &[6, 7, 8]]);
    }

    #[test]
    fn a_size_with_too_few_samples_is_named() {
        let curve = Curve::of(&[size(1, &[&[7; 99]]), size(2, &[&[7; 100]])]);
        assert_eq!(curve.dropped, [(1, 99)]);
        assert_eq!(curve.points.len(), 1);
        assert_eq!(Curve::of(&[]).upper(), []);
    }

    #[test]
    fn without_a_rise_the_bound_is_a_constant() {
        // Ten sizes, up and down.
        let sizes: Vec<Size> = (1..=10)
            .map(|n| size(n, &[&around(if n % 2 == 0 { 300 } else { 100 }, 120)]))
            .collect();
        let curve = Curve::of(&sizes);
        assert!(!curve.maximum.rises && !curve.average.rises);
        for point in curve.upper() {
            assert_eq!(point.maximum, Some(Duration::from_nanos(304)));
        }
    }

    #[test]
    fn where_it_rises_the_bound_never_falls() {
        let costs = [10, 20, 15, 30, 40, 35, 50, 60, 70, 80];
        let sizes: Vec<Size> = (1..)
            .zip(costs)
            .map(|(n, cost)| size(n, &[&around(cost, 120)]))
            .collect();
        let curve = Curve::of(&sizes);
        assert!(curve.maximum.rises && curve.average.rises);
        let upper: Vec<u64> = curve
            .upper()
            .iter()
            .map(|p| p.maximum.unwrap().nanos())
            .collect();
        assert_eq!(upper, [14, 24, 24, 34, 44, 44, 54, 64, 74, 84]);
    }

    /// Means jump up and down, largest values rise: the mean of all stays below every largest one.
    #[test]
    fn no_largest_value_is_below_the_mean() {
        let of = |n: u32| -> Vec<u32> {
            let (mean, spread) = (if n == 2 { 900 } else { 500 }, 40 * n);
            (0..960).map(|i| mean - spread / 2 + i % spread).collect()
        };
        let sizes: Vec<Size> = (1..=12).map(|n| size(n, &[&of(n)])).collect();
        let curve = Curve::of(&sizes);
        assert!(curve.maximum.rises && !curve.average.rises);
        assert!(curve.points[0].maximum_ns < curve.points[1].average_ns);
        assert!(curve.upper().iter().all(|p| p.average <= p.maximum));
        let first = &curve.upper()[0];
        let (low, high) = first.intervals.maximum.unwrap();
        assert!(low <= first.maximum.unwrap() && first.maximum.unwrap() <= high);
    }

    /// Two figures that are made of the same draws, set by set.
    #[test]
    fn intervals_come_from_how_much_sets_differ() {
        let (low, high) = (around(100, 150), around(200, 150));
        let alike = Curve::of(&[size(4, &[&low, &low, &low])]);
        let apart = Curve::of(&[size(4, &[&low, &high, &low])]);
        let width = |curve: &Curve| {
            let ends = curve.points[0].intervals;
            assert_eq!(ends.groups, 3);
            let (low, high) = ends.untrimmed_average_interval_ns.unwrap();
            high - low
        };
        assert_eq!(width(&alike), 0);
        // Means of 6768, 6868 and 6768: a standard error of 33, times 4.303, both ways.
        assert!(width(&apart).abs_diff(287) <= 4, "{}", width(&apart));
        // A single set is cut into ten parts.
        let single = Curve::of(&[size(4, &[&low])]);
        assert_eq!(single.points[0].intervals.groups, 10);
        for curve in [alike, apart, single] {
            for (point, bound) in curve.points.iter().zip(curve.upper()) {
                let (low, high) = bound.intervals.maximum.unwrap();
                assert!(low <= bound.maximum.unwrap() && bound.maximum.unwrap() <= high);
                let most = point.intervals.untrimmed_maximum_interval_ns.unwrap();
                assert_eq!(most.1, 1_000_000);
            }
        }
    }

    proptest! {
        #[test]
        fn a_bound_holds_what_was_kept_and_never_falls(
            sizes in prop::collection::vec(
                prop::collection::vec(prop::collection::vec(0u32..10_000, 0..120), 1..4),
                0..12
            )
        ) {
            let sizes: Vec<Size> = (1..)
                .zip(sizes)
                .map(|(tasks, sets)| Size { tasks, sets })
                .collect();
            let curve = Curve::of(&sizes);
            prop_assert_eq!(curve.points.len() + curve.dropped.len(), sizes.len());
            let upper = curve.upper();
            for (point, bound) in curve.points.iter().zip(&upper) {
                prop_assert!(bound.maximum.unwrap().nanos() >= point.maximum_ns);
                prop_assert!(bound.average.unwrap().nanos() >= point.average_ns);
                prop_assert!(point.maximum_ns <= point.untrimmed_maximum_ns);
                prop_assert_eq!(point.samples, curve.points[0].samples);
                prop_assert!(bound.average <= bound.maximum);
                for (value, ends) in [
                    (bound.average, bound.intervals.average),
                    (bound.maximum, bound.intervals.maximum),
                    (bound.untrimmed.map(|u| u.average), bound.intervals.untrimmed_average),
                    (bound.untrimmed.map(|u| u.maximum), bound.intervals.untrimmed_maximum),
                ] {
                    prop_assert!(ends.is_none_or(|(low, high)| Some(low) <= value && value <= Some(high)));
                }
            }
            prop_assert!(upper.is_sorted_by_key(|point| point.maximum));
            prop_assert!(upper.is_sorted_by_key(|point| point.average));
        }
    }
}
