//! Misses of caches by time: how many of a thousand accesses missed, window by window.

use crate::axis::Axis;
use crate::panel::{Entry, Layer, Panel, Sketch};
use crate::style::Look;
use crate::svg::Figure;
use crate::words;
use model::Result;

/// The misses of one cache.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Series {
    /// Its name: `L1d of 0`.
    pub name: String,
    /// Misses in each window.
    pub misses: Vec<u64>,
}

/// Accesses of all processors together, in windows of equally many; the last one has the rest.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Span {
    /// All accesses.
    pub accesses: u64,
    /// Accesses of a window.
    pub width: u64,
}

impl Span {
    /// The middle of each window, and how many of a thousand accesses missed in it. A last window
    /// of less than half the width is drawn as one with the window before: its few accesses say
    /// nothing alone.
    fn points(self, misses: &[u64]) -> Vec<(f64, f64)> {
        let width = self.width.max(1);
        let rest = self.accesses % width;
        let joins = self.accesses > width && rest > 0 && rest * 2 < width;
        let windows = self.accesses.div_ceil(width) - u64::from(joins);
        let window = |number: u64| {
            let begin = number * width;
            let end = match number + 1 == windows {
                true => self.accesses,
                false => begin + width,
            };
            let first = number as usize;
            let last = (first + 1 + usize::from(joins && number + 1 == windows)).min(misses.len());
            let missed: u64 = misses.get(first..last).unwrap_or_default().iter().sum();
            let length = (end - begin) as f64;
            (begin as f64 + length / 2.0, 1000.0 * missed as f64 / length)
        };
        (0..windows).map(window).collect()
    }
}

/// Draws one line a cache. `None` where there is no access.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(id: &str, title: &str, span: Span, series: &[Series]) -> Result<Option<Figure>> {
    if span.accesses == 0 || series.iter().all(|s| s.misses.is_empty()) {
        return Ok(None);
    }
    let width = span.width as f64;
    let points: Vec<Vec<(f64, f64)>> = series.iter().map(|s| span.points(&s.misses)).collect();
    let highest = points.iter().flatten().map(|p| p.1).fold(1.0, f64::max);
    let layers = (0..).zip(points).map(|(place, points)| Layer::Curve {
        look: Look::nth(place),
        points,
        shift: 0.0,
    });
    let names = series.iter().enumerate().map(|(place, one)| Entry {
        look: Look::nth(place),
        name: one.name.clone(),
    });
    Sketch {
        id: id.to_owned(),
        title: title.to_owned(),
        description: String::new(),
        caption: format!(
            "Windows of {} accesses of all processors; the last one has up to half more or fewer.",
            words::plain(width)
        ),
        remark: String::new(),
        columns: 1,
        panel: (720.0, 360.0),
        legend: names.collect(),
        panels: vec![Panel {
            title: String::new(),
            description: describe(width, series),
            x: Axis::linear("accesses", 0.0..span.accesses as f64, count),
            y: Axis::linear("misses of 1000 accesses", 0.0..highest * 1.08, words::plain),
            layers: layers.collect(),
        }],
    }
    .draw()
    .map(Some)
}

/// What one sees, in words.
fn describe(width: f64, series: &[Series]) -> String {
    let all = series.iter().map(|one| {
        let misses: u64 = one.misses.iter().sum();
        let worst = (0_u32..)
            .zip(&one.misses)
            .max_by_key(|(_, misses)| **misses);
        match worst {
            Some((window, most)) if *most > 0 => format!(
                "{}: {misses} misses, most of them ({most}) behind access {}.",
                one.name,
                words::plain(f64::from(window) * width)
            ),
            _ => format!("{}: no misses.", one.name),
        }
    });
    all.collect::<Vec<_>>().join(" ")
}

/// A number of accesses for an axis.
fn count(value: f64) -> String {
    match value {
        v if v >= 1e9 => format!("{} G", words::plain(v / 1e9)),
        v if v >= 1e6 => format!("{} M", words::plain(v / 1e6)),
        v if v >= 1e3 => format!("{} k", words::plain(v / 1e3)),
        v => words::plain(v),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cache_is_a_line_and_said_in_words() {
        let series = |name: &str, misses: &[u64]| Series {
            name: name.to_owned(),
            misses: misses.to_vec(),
        };
        let all = [
            series("L1d of 0", &[9, 3, 40]),
            series("L2 of 0-1", &[0, 0, 0]),
        ];
        let span = Span {
            accesses: 300,
            width: 100,
        };
        let svg = figure("misses", "Misses", span, &all)
            .unwrap()
            .unwrap()
            .to_svg();
        assert!(
            svg.contains("L1d of 0: 52 misses, most of them (40) behind access 200."),
            "{svg}"
        );
        assert!(svg.contains("L2 of 0-1: no misses."));
        assert!(figure("misses", "Misses", span, &[]).unwrap().is_none());
    }

    /// Every access misses: the rate is the same in all windows, whatever the last one has.
    #[test]
    fn the_last_window_is_measured_by_its_own_accesses() {
        for (accesses, points) in [(40, 1), (100, 1), (149, 1), (150, 2), (320, 3), (400, 4)] {
            let span = Span {
                accesses,
                width: 100,
            };
            let misses: Vec<u64> = (0..accesses.div_ceil(100))
                .map(|window| (accesses - 100 * window).min(100))
                .collect();
            let drawn = span.points(&misses);
            assert_eq!(drawn.len(), points, "{accesses}");
            assert!(drawn.iter().all(|(_, rate)| *rate == 1000.0), "{drawn:?}");
            assert!(
                drawn.iter().all(|(at, _)| *at < accesses as f64),
                "{drawn:?}"
            );
        }
        // 100 accesses of which 10 miss, then 120 of which 30 do.
        let span = Span {
            accesses: 220,
            width: 100,
        };
        assert_eq!(span.points(&[10, 25, 5]), [(50.0, 100.0), (160.0, 250.0)]);
    }
}
