//! Samples against preemption length: Fig. 3 of 000.
//!
//! One panel for each kind of resumption, a dot a sample, and a running median over all of them. Dots are thinned evenly
//! along the lengths so that a page stays small; the median, the counts and the caption speak of every sample.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::{Ink, Look, Marker};
use crate::svg::Figure;
use crate::words;
use model::{Bytes, Delay, Duration, Load, Result, Resumption};

/// The samples of one cell.
#[derive(Clone, PartialEq, Debug)]
pub struct Samples {
    /// How the job resumed.
    pub resumption: Resumption,
    /// What else ran.
    pub load: Load,
    /// The working set size.
    pub wss: Bytes,
    /// Preemption length and delay of every sample kept.
    pub kept: Vec<(Duration, Delay)>,
    /// The same of those that were discarded as disturbed.
    pub discarded: Vec<(Duration, Delay)>,
}

/// The most dots in a panel.
const MOST: usize = 1_500;
/// The most crosses for discarded samples in a panel.
const MOST_CROSSES: usize = 200;
/// How the running median looks.
const MEDIAN: Look = Look {
    ink: Ink::Black,
    dash: "",
    marker: Marker::Bare,
};

type Point = (f64, f64);

fn points(samples: &[(Duration, Delay)]) -> Vec<Point> {
    let mut points: Vec<Point> = samples
        .iter()
        .map(|(length, delay)| (length.nanos() as f64, delay.nanos() as f64))
        .collect();
    points.sort_by(|a, b| a.0.total_cmp(&b.0));
    points
}

/// At most `most` of the points, evenly along the x axis: every point stands for as many neighbors.
fn thinned(points: &[Point], most: usize) -> Vec<Point> {
    let every = points.len().div_ceil(most).max(1);
    points.iter().step_by(every).copied().collect()
}

/// The value below which a share of the values lies.
fn quantile(values: impl Iterator<Item = f64>, share: f64) -> Option<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_by(f64::total_cmp);
    let index = (share * (values.len().checked_sub(1)?) as f64).round() as usize;
    values.get(index).copied()
}

/// Medians of the delay over windows of neighbors in length, each half over the one before. `points` ascend.
fn running_median(points: &[Point]) -> Vec<Point> {
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

/// Draws one panel for each cell that has samples, two side by side; `None` when none has.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(id: &str, cells: &[Samples]) -> Result<Option<Figure>> {
    sketch(id, cells).map(|s| s.draw()).transpose()
}

/// The figure as data.
pub fn sketch(id: &str, cells: &[Samples]) -> Option<Sketch> {
    let cells: Vec<(&Samples, Vec<Point>, Vec<Point>)> = cells
        .iter()
        .filter(|c| !c.kept.is_empty())
        .map(|c| (c, points(&c.kept), points(&c.discarded)))
        .collect();
    let first = cells.first()?.0;
    let kept = || cells.iter().flat_map(|c| c.1.iter());
    let longest = kept().map(|p| p.0).fold(1_000.0, f64::max);
    // A few stragglers must not press all others to the bottom: they are counted in the caption instead.
    let tallest = cells
        .iter()
        .filter_map(|c| quantile(c.1.iter().map(|p| p.1), 0.995))
        .fold(100.0, f64::max)
        * 1.15;
    let lowest = cells
        .iter()
        .filter_map(|c| quantile(c.1.iter().map(|p| p.1), 0.005))
        .fold(0.0, f64::min)
        * 1.15;
    let inside = |p: &&Point| (lowest..=tallest).contains(&p.1);
    let outside = kept().filter(|p| !inside(p)).count();
    let largest = kept().map(|p| p.1).fold(f64::MIN, f64::max);
    let thinnest = cells.iter().map(|c| c.1.len().div_ceil(MOST)).max().unwrap_or(1);
    let discarded: usize = cells.iter().map(|c| c.2.len()).sum();
    let mut medians = false;

    let y = {
        let (scale, unit) = if tallest >= 2e6 {
            (1e6, "ms")
        } else if tallest >= 2e3 {
            (1e3, "µs")
        } else {
            (1.0, "ns")
        };
        Axis::linear("cache-related delay", lowest..tallest, move |at| {
            if at == 0.0 {
                "0".to_owned()
            } else {
                format!("{} {unit}", words::plain(at / scale))
            }
        })
    };
    let panels: Vec<Panel> = cells
        .iter()
        .zip('a'..)
        .map(|((cell, points, discarded), letter)| {
            let visible: Vec<Point> = points.iter().filter(inside).copied().collect();
            let crosses: Vec<Point> = discarded.iter().filter(inside).copied().collect();
            let median = running_median(points);
            medians |= !median.is_empty();
            Panel {
                title: format!(
                    "({letter}) {}, {}",
                    words::capital(&crate::cpmd::name(cell.resumption)),
                    match cell.load {
                        Load::Idle => "idle system",
                        Load::Load => "under load",
                    }
                ),
                description: describe(cell.resumption, points, longest),
                x: Axis::times("preemption length", longest),
                y: y.clone(),
                layers: vec![
                    Layer::Cloud {
                        ink: Ink::Vermilion,
                        points: thinned(&crosses, MOST_CROSSES),
                        crosses: true,
                    },
                    Layer::Cloud {
                        ink: Ink::Sky,
                        points: thinned(&visible, MOST),
                        crosses: false,
                    },
                    Layer::Curve {
                        look: MEDIAN,
                        points: median,
                        shift: 0.0,
                    },
                ],
            }
        })
        .collect();

    let total = words::count(kept().count() as u64, "sample");
    let mut caption = format!("{total} with a working set of {}.", words::size(first.wss));
    if thinnest > 1 {
        caption += &format!(
            " Dots are thinned to at most {} a panel.",
            words::grouped(MOST as u64)
        );
    }
    if medians {
        caption += " Line: running median of all samples.";
    }
    if discarded > 0 {
        caption += &format!(
            " Crosses: {} as disturbed.",
            words::count(discarded as u64, "sample") + " discarded"
        );
    }
    if outside > 0 {
        caption += &format!(
            " {} outside of the axis (the largest delay is {}).",
            words::count(outside as u64, "sample") + if outside == 1 { " lies" } else { " lie" },
            words::time_f64(largest)
        );
    }
    Some(Sketch {
        id: id.to_owned(),
        title: format!(
            "Cache-related delay by preemption length, working set {}",
            words::size(first.wss)
        ),
        description: String::new(),
        caption,
        columns: 2,
        panel: (470.0, 300.0),
        legend: if medians {
            vec![Entry {
                look: MEDIAN,
                name: "running median".to_owned(),
            }]
        } else {
            Vec::new()
        },
        panels,
    })
}

/// What one sees in a panel: the typical delay after short and after long preemptions.
fn describe(resumption: Resumption, points: &[Point], longest: f64) -> String {
    let half = |long: bool| {
        let part = points
            .iter()
            .filter(move |p| (p.0 > longest / 2.0) == long)
            .map(|p| p.1);
        quantile(part, 0.5).map(words::time_f64)
    };
    let (Some(short), Some(long)) = (half(false), half(true)) else {
        return String::new();
    };
    format!(
        "{}: the median delay is {short} in the shorter half of the preemption lengths and {long} in the longer half.",
        words::capital(&crate::cpmd::name(resumption))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(kept: Vec<(u64, i64)>, discarded: Vec<(u64, i64)>) -> Samples {
        let make = |all: Vec<(u64, i64)>| {
            all.into_iter()
                .map(|(length, delay)| (Duration::from_micros(length), Delay::from_nanos(delay)))
                .collect()
        };
        Samples {
            resumption: Resumption::Preemption,
            load: Load::Load,
            wss: Bytes::from_kib(64),
            kept: make(kept),
            discarded: make(discarded),
        }
    }

    #[test]
    fn a_page_stays_small_however_many_samples_there_are() {
        let many: Vec<(u64, i64)> = (0..200_000u64)
            .map(|n| (n * 7919 % 50_000, (n * 104_729 % 70_000) as i64))
            .collect();
        let cells: Vec<Samples> = (0..4).map(|_| cell(many.clone(), many.clone())).collect();
        let svg = figure("f", &cells).unwrap().unwrap().to_svg();
        assert!(svg.len() < 300_000, "{} bytes", svg.len());
    }

    #[test]
    fn the_caption_counts_what_is_not_drawn() {
        let mut kept: Vec<(u64, i64)> = (0..2_000).map(|n| (n, 50_000)).collect();
        kept.push((10, 9_000_000));
        let sketch = sketch("f", &[cell(kept, vec![(5, 40_000)])]).unwrap();
        assert_eq!(
            sketch.caption,
            "2,001 samples with a working set of 64 KiB. Dots are thinned to at most 1,500 a panel. Line: running \
             median of all samples. Crosses: 1 sample discarded as disturbed. 1 sample lies outside of the axis (the \
             largest delay is 9.00 ms)."
        );
    }

    #[test]
    fn no_samples_make_no_figure_and_one_makes_one() {
        assert!(figure("f", &[cell(vec![], vec![(1, 1)])]).unwrap().is_none());
        assert!(figure("f", &[cell(vec![(0, 0)], vec![])]).unwrap().is_some());
    }

    #[test]
    fn the_running_median_follows_the_samples_and_not_the_stragglers() {
        let points: Vec<Point> = (0..1000)
            .map(|n| (n as f64, if n % 10 == 0 { 1e9 } else { n as f64 }))
            .collect();
        for (x, y) in running_median(&points) {
            assert!((y - x).abs() < 60.0, "{x} {y}");
        }
    }
}
