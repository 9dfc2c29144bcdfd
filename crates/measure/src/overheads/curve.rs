//! From samples to a curve over the number of tasks (002 §5.1): equal numbers of samples, outliers
//! apart, the largest and the mean of each size, and upper bounds that never fall.

use super::outliers::Fences;
use super::trend::Trend;
use model::Duration;
use model::profile::{OverheadPoint, Untrimmed};
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
            let Some(fences) = Fences::of(&all) else {
                continue;
            };
            let within = |samples: &[u32]| -> Vec<u32> {
                let kept = samples.iter().filter(|sample| fences.hold(**sample));
                kept.copied().collect()
            };
            for set in sets {
                let set = within(set);
                if !set.is_empty() {
                    averages.push((size.tasks, mean(&set)));
                    maxima.push((size.tasks, largest(&set)));
                }
            }
            let trimmed = within(&all);
            points.push(Point {
                tasks: size.tasks,
                samples: all.len() as u64,
                outliers: (all.len() - trimmed.len()) as u64,
                average_ns: mean(&trimmed),
                maximum_ns: largest(&trimmed),
                untrimmed_average_ns: mean(&all),
                untrimmed_maximum_ns: largest(&all),
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

    /// Upper bounds for a profile, which interpolates between points: where a rise is conclusive,
    /// each point as large as the largest up to it; else the largest of all everywhere.
    pub fn upper(&self) -> Vec<OverheadPoint> {
        let averages = bounds(&self.points, |p| p.average_ns, self.average.rises);
        let maxima = bounds(&self.points, |p| p.maximum_ns, self.maximum.rises);
        let bounds = averages.into_iter().zip(maxima);
        let points = self.points.iter().zip(bounds);
        points
            .map(|(point, (average, maximum))| OverheadPoint {
                tasks: point.tasks,
                samples: point.samples - point.outliers,
                average: Some(Duration::from_nanos(average)),
                maximum: Some(Duration::from_nanos(maximum)),
                untrimmed: Some(Untrimmed {
                    outliers: point.outliers,
                    average: Duration::from_nanos(point.untrimmed_average_ns),
                    maximum: Duration::from_nanos(point.untrimmed_maximum_ns),
                }),
            })
            .collect()
    }
}

fn bounds(points: &[Point], of: fn(&Point) -> u64, rises: bool) -> Vec<u64> {
    let all = points.iter().map(of).max().unwrap_or(0);
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
            }
            prop_assert!(upper.is_sorted_by_key(|point| point.maximum));
            prop_assert!(upper.is_sorted_by_key(|point| point.average));
        }
    }
}
