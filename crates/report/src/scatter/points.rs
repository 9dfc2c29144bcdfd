//! Points of samples: the bounds within which they are drawn, how they are thinned, their running
//! median.

use super::{Cell, Point};
use model::{Delay, Duration};

pub(super) fn points(samples: impl Iterator<Item = (Duration, Delay)>) -> Vec<Point> {
    let mut points: Vec<Point> = samples
        .map(|(length, delay)| (length.nanos() as f64, delay.nanos() as f64))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// Where the axes end: at the last of the data that is drawn.
pub(super) struct Bounds {
    pub(super) longest: f64,
    pub(super) lowest: f64,
    pub(super) tallest: f64,
}

impl Bounds {
    /// A few stragglers must not press all others to one side: where the last half percent of a
    /// cell lies far off, it is left out and counted in the caption.
    pub(super) fn of(cells: &[Cell]) -> Bounds {
        let ends = |of: fn(&Point) -> f64, share: f64| {
            let of_cell = move |c: &Cell| quantile(c.1.iter().map(of), share);
            cells.iter().filter_map(of_cell)
        };
        let limits = Bounds {
            longest: ends(|p| p.0, 0.995).fold(0.0, f64::max).max(1_000.0) * 1.1,
            lowest: ends(|p| p.1, 0.005).fold(0.0, f64::min) * 1.15,
            tallest: ends(|p| p.1, 0.995).fold(0.0, f64::max).max(100.0) * 1.15,
        };
        let inside = cells.iter().flat_map(|c| &c.1).filter(|p| limits.holds(p));
        let (mut longest, mut lowest, mut tallest) = (0.0, 0.0, 0.0);
        for (length, delay) in inside {
            longest = f64::max(longest, *length);
            lowest = f64::min(lowest, *delay);
            tallest = f64::max(tallest, *delay);
        }
        // A little air, so that the outermost dots are not cut.
        let air = (tallest - lowest) * 0.02;
        Bounds {
            longest: (longest * 1.01).max(1_000.0),
            lowest: if lowest < 0.0 { lowest - air } else { 0.0 },
            tallest: (tallest + air).max(100.0),
        }
    }

    pub(super) fn holds(&self, point: &Point) -> bool {
        point.0 <= self.longest && (self.lowest..=self.tallest).contains(&point.1)
    }
}

/// At most `most` of the points, evenly along the x axis: every point stands for as many neighbors.
pub(super) fn thinned(points: &[Point], most: usize) -> Vec<Point> {
    let every = points.len().div_ceil(most).max(1);
    points.iter().step_by(every).copied().collect()
}

/// The value below which a share of the values lies.
pub(super) fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let index = (share * (values.len().checked_sub(1)?) as f64).round() as usize;
    values.get(index).copied()
}

/// Medians of the delay over windows of neighbors in length, each half over the one before.
/// `points` ascend.
pub(super) fn running_median(points: &[Point]) -> Vec<Point> {
    let window = (points.len() / 20).max(15);
    if points.len() < 2 * window {
        return Vec::new();
    }
    (0..=points.len() - window)
        .step_by((window / 2).max(1))
        .filter_map(|start| {
            let part = &points[start..start + window];
            Some((
                quantile(part.iter().map(|p| p.0), 0.5)?,
                quantile(part.iter().map(|p| p.1), 0.5)?,
            ))
        })
        .collect()
}
