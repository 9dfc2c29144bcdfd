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

/// Draws one line a cache; `width`: accesses of a window, of all processors together. `None` where
/// there is no access.
///
/// # Errors
/// As [`Sketch::draw`].
pub fn figure(id: &str, title: &str, width: u64, series: &[Series]) -> Result<Option<Figure>> {
    let windows = series.iter().map(|s| s.misses.len()).max().unwrap_or(0);
    if windows == 0 {
        return Ok(None);
    }
    let width = width as f64;
    let rate = |misses: u64| 1000.0 * misses as f64 / width;
    let highest = series.iter().flat_map(|s| &s.misses).max().copied();
    let layers = series.iter().enumerate().map(|(place, one)| Layer::Curve {
        look: Look::nth(place),
        points: (0..)
            .zip(&one.misses)
            .map(|(window, misses)| ((f64::from(window) + 0.5) * width, rate(*misses)))
            .collect(),
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
            "Windows of {} accesses of all processors; the last one may have fewer.",
            words::plain(width)
        ),
        remark: String::new(),
        columns: 1,
        panel: (720.0, 360.0),
        legend: names.collect(),
        panels: vec![Panel {
            title: String::new(),
            description: describe(width, series),
            x: Axis::linear("accesses", 0.0..windows as f64 * width, count),
            y: Axis::linear(
                "misses of 1000 accesses",
                0.0..rate(highest.unwrap_or(0)).max(1.0) * 1.08,
                words::plain,
            ),
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
        let svg = figure("misses", "Misses", 100, &all)
            .unwrap()
            .unwrap()
            .to_svg();
        assert!(
            svg.contains("L1d of 0: 52 misses, most of them (40) behind access 200."),
            "{svg}"
        );
        assert!(svg.contains("L2 of 0-1: no misses."));
        assert!(figure("misses", "Misses", 1, &[]).unwrap().is_none());
    }
}
