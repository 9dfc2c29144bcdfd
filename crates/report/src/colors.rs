//! Do page colors act: access time against the number of pages, of one color and of all colors in
//! turn.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::Look;
use crate::svg::Figure;
use crate::words;
use model::Result;

/// What is drawn of one cache.
#[derive(Clone, PartialEq, Debug)]
pub struct ColorCurve {
    /// Its name: `L2`.
    pub cache: String,
    /// Its associativity.
    pub ways: u32,
    /// How many colors were found, and how: `32 colors, by timing`.
    pub colors: String,
    /// Number of pages, nanoseconds a line with pages of one color, the same with pages of all
    /// colors in turn.
    pub points: Vec<(u32, f64, f64)>,
}

/// Draws a panel for each cache; `None` where there is none.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(id: &str, curves: &[ColorCurve]) -> Result<Option<Figure>> {
    if curves.iter().all(|c| c.points.is_empty()) {
        return Ok(None);
    }
    let (same, mixed) = (Look::nth(2), Look::nth(1));
    let highest = curves
        .iter()
        .flat_map(|c| &c.points)
        .map(|p| p.1.max(p.2))
        .fold(1.0, f64::max);
    let panels = curves
        .iter()
        .filter(|c| !c.points.is_empty())
        .map(|curve| {
            let last = curve.points.iter().map(|p| p.0).max().unwrap_or(1);
            let line = |of: fn(&(u32, f64, f64)) -> f64| {
                curve
                    .points
                    .iter()
                    .map(|p| (f64::from(p.0), of(p)))
                    .collect::<Vec<_>>()
            };
            let (one, all) = (line(|p| p.1), line(|p| p.2));
            Panel {
                title: format!("{}: {}", curve.cache, curve.colors),
                description: describe(curve),
                x: Axis::linear("pages walked", 0.0..f64::from(last) + 1.0, words::plain),
                y: Axis::times("time to read a line", 0.0..highest * 1.12),
                layers: vec![
                    Layer::Upright {
                        at: f64::from(curve.ways) + 0.5,
                        label: format!("{} ways", curve.ways),
                    },
                    Layer::Curve {
                        look: mixed,
                        points: all.clone(),
                        shift: 0.0,
                    },
                    Layer::Curve {
                        look: same,
                        points: one.clone(),
                        shift: 0.0,
                    },
                    Layer::Marks {
                        look: mixed,
                        points: all,
                        shift: 0.0,
                    },
                    Layer::Marks {
                        look: same,
                        points: one,
                        shift: 0.0,
                    },
                ],
            }
        })
        .collect::<Vec<_>>();
    Sketch {
        id: id.to_owned(),
        title: "Do page colors act?".to_owned(),
        description: String::new(),
        caption: "Medians of walks in pairs, each address depending on the value before. Right of the dotted line a color has more pages than the cache has ways.".to_owned(),
        remark: String::new(),
        columns: panels.len().min(2),
        panel: (560.0, 340.0),
        legend: vec![
            Entry {
                look: same,
                name: "pages of one color".to_owned(),
            },
            Entry {
                look: mixed,
                name: "pages of all colors in turn".to_owned(),
            },
        ],
        panels,
    }
    .draw()
    .map(Some)
}

/// What one sees, in a sentence.
fn describe(curve: &ColorCurve) -> String {
    let at = |pages: u32| curve.points.iter().find(|p| p.0 == pages);
    match (at(curve.ways), at(curve.ways + 1)) {
        (Some(within), Some(beyond)) => format!(
            "{}: reading a line of {} pages of one color takes {:.1} ns, of {} pages {:.1} ns; of as many pages of different colors {:.1} ns.",
            curve.cache,
            curve.ways,
            within.1,
            curve.ways + 1,
            beyond.1,
            beyond.2
        ),
        _ => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_is_drawn_with_its_step_named() {
        let curve = ColorCurve {
            cache: "L2".to_owned(),
            ways: 4,
            colors: "8 colors, by timing".to_owned(),
            points: (1..=8)
                .map(|n| (n, if n > 4 { 30.0 } else { 6.0 }, 6.0))
                .collect(),
        };
        let figure = figure("colors", std::slice::from_ref(&curve))
            .unwrap()
            .unwrap();
        let svg = figure.to_svg();
        assert!(svg.contains("4 ways") && svg.contains("pages of one color"));
        assert!(
            figure.description.contains("5 pages 30.0 ns"),
            "{}",
            figure.description
        );
    }

    #[test]
    fn nothing_measured_is_nothing_drawn() {
        assert_eq!(figure("colors", &[]).unwrap(), None);
    }
}
