//! Samples against preemption length: Fig. 3 of 000.
//!
//! One panel for each kind of resumption, a dot a sample, and a running median over all of them.
//! Dots are thinned evenly along the lengths so that a page stays small; the median, the counts and
//! the caption speak of every sample.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::{Ink, Look, Marker};
use crate::svg::Figure;
use crate::words;
use model::{Bytes, Delay, Duration, Load, Result, Resumption};

mod points;
use points::{Bounds, points, quantile, running_median, thinned};

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
    /// Cache line transfer times of the blocks of the samples kept, one for each sample.
    pub lines: Vec<Duration>,
    /// The samples that were discarded.
    pub discarded: Vec<Discarded>,
}

/// A sample that was discarded.
#[derive(Clone, PartialEq, Debug)]
pub struct Discarded {
    /// Preemption length.
    pub length: Duration,
    /// Delay.
    pub delay: Delay,
    /// The cause, as the end of a sentence after "because".
    pub because: &'static str,
    /// Whether the cause is the placement of the virtual machine, which discards whole blocks.
    pub placement: bool,
    /// Cache line transfer time of its block.
    pub line: Duration,
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

/// A cell and its points by ascending length: kept, discarded.
type Cell<'a> = (&'a Samples, Vec<Point>, Vec<Point>);

/// Draws one panel for each cell that has samples, two side by side; `None` when none has.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(id: &str, cells: &[Samples]) -> Result<Option<Figure>> {
    sketch(id, cells).map(|s| s.draw()).transpose()
}

/// The panel of one cell, with this running median.
fn panel_of(
    cell: &Samples,
    points: &[Point],
    discarded: &[Point],
    median: Vec<Point>,
    letter: char,
    bounds: &Bounds,
) -> Panel {
    let inside = |p: &&Point| bounds.holds(p);
    let visible: Vec<Point> = points.iter().filter(inside).copied().collect();
    let crosses: Vec<Point> = discarded.iter().filter(inside).copied().collect();
    Panel {
        title: format!(
            "({letter}) {}, {}",
            words::capital(&crate::cpmd::name(cell.resumption)),
            match cell.load {
                Load::Idle => "idle system",
                Load::Load => "under load",
            }
        ),
        description: describe(cell.resumption, points, bounds.longest),
        x: Axis::times("preemption length", 0.0..bounds.longest),
        y: Axis::times("cache-related delay", bounds.lowest..bounds.tallest),
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
}

/// The figure as data.
pub fn sketch(id: &str, cells: &[Samples]) -> Option<Sketch> {
    let cells: Vec<Cell> = cells
        .iter()
        .filter(|c| !c.kept.is_empty())
        .map(|c| {
            let discarded = c.discarded.iter().map(|d| (d.length, d.delay));
            (c, points(c.kept.iter().copied()), points(discarded))
        })
        .collect();
    let first = cells.first()?.0;
    let kept = || cells.iter().flat_map(|c| c.1.iter());
    let bounds = Bounds::of(&cells);
    let inside = |p: &&Point| bounds.holds(p);
    let outside = kept().filter(|p| !inside(p)).count();
    let largest = kept().map(|p| p.1).fold(f64::MIN, f64::max);
    let thinnest = cells
        .iter()
        .map(|c| c.1.len().div_ceil(MOST))
        .max()
        .unwrap_or(1);
    let mut medians = false;

    let panels: Vec<Panel> = cells
        .iter()
        .zip('a'..)
        .map(|((cell, points, discarded), letter)| {
            let median = running_median(points);
            medians |= !median.is_empty();
            panel_of(cell, points, discarded, median, letter, &bounds)
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
        caption += " Line: running median of the samples that were kept, drawn or not; those that \
         were discarded do \
                    not count.";
    }
    if outside > 0 {
        caption += &format!(
            " {} outside of the axes (the largest delay is {}).",
            words::count(outside as u64, "sample") + if outside == 1 { " lies" } else { " lie" },
            words::time_f64(largest)
        );
    }
    caption += &crosses(&cells, &bounds);
    Some(Sketch {
        id: id.to_owned(),
        title: format!(
            "Cache-related delay by preemption length, working set {}",
            words::size(first.wss)
        ),
        description: String::new(),
        caption,
        remark: String::new(),
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

/// Says what the crosses are, on which side of the dots most of them lie, and why, as far as the
/// samples tell.
fn crosses(cells: &[Cell], bounds: &Bounds) -> String {
    let all = || cells.iter().flat_map(|c| &c.0.discarded);
    let total = all().count();
    if total == 0 {
        return String::new();
    }
    let mut causes: Vec<(&str, u64)> = Vec::new();
    for d in all() {
        match causes.iter_mut().find(|c| c.0 == d.because) {
            Some(cause) => cause.1 += 1,
            None => causes.push((d.because, 1)),
        }
    }
    causes.sort_by_key(|c| std::cmp::Reverse(c.1));
    let causes: Vec<String> = causes
        .iter()
        .map(|(because, n)| format!("{} because {because}", words::grouped(*n)))
        .collect();
    // How many lie below the median of the dots of their panel; of all, and of those by placement.
    let (mut below, mut placed, mut placed_below) = (0_u64, 0_u64, 0_u64);
    for (cell, kept, _) in cells {
        let median = quantile(kept.iter().map(|p| p.1), 0.5).unwrap_or(0.0);
        for d in &cell.discarded {
            let low = u64::from((d.delay.nanos() as f64) < median);
            below += low;
            placed += u64::from(d.placement);
            placed_below += low * u64::from(d.placement);
        }
    }
    let drawn = cells
        .iter()
        .flat_map(|c| &c.2)
        .filter(|p| bounds.holds(p))
        .count();
    let mut text = format!(
        " Crosses: {} discarded, {}. Of these {} below the median of the dots{}.",
        words::count(total as u64, "sample") + if total == 1 { " was" } else { " were" },
        words::list(&causes),
        words::grouped(below) + if below == 1 { " lies" } else { " lie" },
        match total - drawn {
            0 => String::new(),
            n => format!(" and {} outside of the axes", words::grouped(n as u64)),
        }
    );
    if (placed as usize) < total {
        text += " A disturbance of the walk before the preemption makes the delay smaller, one of \
         the walk after it \
                 larger.";
    }
    if placed > 0 {
        text += &placement(cells, (placed, placed_below));
    }
    text
}

/// Says by what samples were discarded for the placement of the virtual machine: `placed` of them,
/// of which `below` lie below the dots.
fn placement(cells: &[Cell], (placed, below): (u64, u64)) -> String {
    let of_placed = cells
        .iter()
        .flat_map(|c| &c.0.discarded)
        .filter(|d| d.placement);
    let there = quantile(of_placed.map(|d| d.line.nanos() as f64), 0.5);
    let here = quantile(
        cells
            .iter()
            .flat_map(|c| &c.0.lines)
            .map(|l| l.nanos() as f64),
        0.5,
    );
    let (Some(there), Some(here)) = (there, here) else {
        return String::new();
    };
    let mut text = format!(
        " The placement of the virtual machine is judged by the time that a cache line takes from \
         processor to processor \
         (median {} for the crosses, {} for the dots), never by the delay, and whole blocks of \
         samples are discarded.",
        words::time_f64(there),
        words::time_f64(here)
    );
    // Only what the samples show is said.
    if 2 * below > placed && there < here {
        text += " Where the processors lie nearer to each other, delays are shorter: those \
         crosses lie low because of \
                 that, and not because low delays were discarded.";
    } else if 2 * below < placed && there > here {
        text += " Where the processors lie farther from each other, delays are longer: those \
         crosses lie high because of \
                 that, and not because high delays were discarded.";
    }
    text
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
        let pair = |(length, delay)| (Duration::from_micros(length), Delay::from_nanos(delay));
        let lines = vec![Duration::from_nanos(190); kept.len()];
        Samples {
            resumption: Resumption::Preemption,
            load: Load::Load,
            wss: Bytes::from_kib(64),
            kept: kept.into_iter().map(pair).collect(),
            lines,
            discarded: discarded
                .into_iter()
                .map(pair)
                .map(|(length, delay)| Discarded {
                    length,
                    delay,
                    because: "an interrupt took its time",
                    placement: false,
                    line: Duration::from_nanos(45),
                })
                .collect(),
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

    /// The rule for dark screens is found by this class. Crosses are dots as well.
    #[test]
    fn dots_carry_the_class_by_which_dark_screens_show_them() {
        let kept = (0..50).map(|n| (n, 50_000)).collect();
        let cells = [cell(kept, vec![(5, 40_000), (6, 41_000)])];
        let svg = figure("f", &cells).unwrap().unwrap().to_svg();
        let clouds: Vec<&str> = svg.lines().filter(|l| l.starts_with("<path ")).collect();
        for mark in ["h0", "m0-"] {
            assert!(clouds.iter().any(|cloud| cloud.contains(mark)), "{svg}");
        }
        for cloud in clouds {
            assert!(cloud.contains(" class=\"dots "), "{cloud}");
        }
        assert!(svg.contains(".dots{opacity:"), "{svg}");
    }

    #[test]
    fn the_caption_counts_what_is_not_drawn() {
        let mut kept: Vec<(u64, i64)> = (0..2_000).map(|n| (n, 50_000)).collect();
        kept.push((10, 9_000_000));
        let sketch = sketch("f", &[cell(kept, vec![(5, 40_000)])]).unwrap();
        assert_eq!(
            sketch.caption,
            "2,001 samples with a working set of 64 KiB. Dots are thinned to at most 1,500 a panel. Line: running \
             median of the samples that were kept, drawn or not; those that were discarded do not \
             count. 1 sample lies \
             outside of the axes (the largest delay is 9.00 ms). Crosses: 1 sample was discarded, \
             1 because an \
             interrupt took its time. Of these 1 lies below the median of the dots. A disturbance \
             of the walk before \
             the preemption makes the delay smaller, one of the walk after it larger."
        );
    }

    /// A reader who sees most crosses below the dots suspects that low delays were thrown away.
    #[test]
    fn the_caption_says_why_crosses_lie_low_only_where_the_samples_show_it() {
        let kept: Vec<(u64, i64)> = (0..100).map(|n| (n, 50_000)).collect();
        let said = |delay: i64, line: u64| {
            let mut cell = cell(kept.clone(), vec![(5, delay), (6, delay), (7, delay)]);
            for d in &mut cell.discarded {
                d.because = "the virtual machine was placed otherwise";
                d.placement = true;
                d.line = Duration::from_nanos(line);
            }
            sketch("f", &[cell]).unwrap().caption
        };
        let near = said(20_000, 45);
        for part in [
            "3 because the virtual machine was placed otherwise. Of these 3 lie below",
            "(median 45 ns for the crosses, 190 ns for the dots), never by the delay",
            "not because low delays were discarded",
        ] {
            assert!(near.contains(part), "{part}: {near}");
        }
        assert!(!near.contains("A disturbance"), "{near}");
        assert!(said(49_999, 400).contains("never by the delay"));
        assert!(!said(49_999, 400).contains("because of that"));
        assert!(said(50_001, 400).contains("not because high delays were discarded"));
        assert!(!said(50_001, 45).contains("because of that"));
    }

    #[test]
    fn the_axes_end_where_the_data_do() {
        let mut kept: Vec<(u64, i64)> = (0..2_000).map(|n| (n, 10_000 + (n % 50) as i64)).collect();
        // Kept stragglers, and a discarded sample far to the right, which would lie on the edge.
        kept.extend([(9_000, 10_000), (20, 90_000)]);
        let sketch = sketch("f", &[cell(kept, vec![(50_000, 10_000), (30, 10_001)])]).unwrap();
        let panel = &sketch.panels[0];
        assert!(
            (1_999e3..2_050e3).contains(&panel.x.high),
            "{}",
            panel.x.high
        );
        assert!(
            (10_049.0..10_500.0).contains(&panel.y.high),
            "{}",
            panel.y.high
        );
        assert!(
            sketch.caption.contains("2 samples lie outside of the axes"),
            "{}",
            sketch.caption
        );
        assert!(
            sketch.caption.contains("and 1 outside of the axes"),
            "{}",
            sketch.caption
        );
        let crosses = panel.layers.iter().find_map(|l| match l {
            Layer::Cloud {
                crosses: true,
                points,
                ..
            } => Some(points.clone()),
            _ => None,
        });
        assert_eq!(crosses, Some(vec![(30e3, 10_001.0)]));
    }

    #[test]
    fn no_samples_make_no_figure_and_one_makes_one() {
        assert!(
            figure("f", &[cell(vec![], vec![(1, 1)])])
                .unwrap()
                .is_none()
        );
        assert!(
            figure("f", &[cell(vec![(0, 0)], vec![])])
                .unwrap()
                .is_some()
        );
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
