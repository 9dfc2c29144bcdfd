//! Do colors act? Access time against the number of pages walked: of one color, and of all colors
//! in turn.
//!
//! 001 §3.1: pages of one color share `ways` places, so that one page more than that must drive
//! others out, while as many pages of different colors must not. Both walks are measured in turn,
//! in pairs, and medians are compared.

use crate::colors::Color;
use crate::frame::Page;
use crate::geometry::{Geometry, PAGE};
use crate::palette::{How, Palette};
use machine::clock::{Calibration, Clock};
use machine::memory::LINE;
use machine::with_clock;
use model::watch::Watch;
use model::{CpuSet, Duration, Error, Result};
use serde::Serialize;
use std::hint::black_box;

/// From which ratio of access times on colors act.
pub const ACTS: f64 = 1.5;

/// Access time at a number of pages, in nanoseconds for a line: medians.
#[derive(Clone, Copy, PartialEq, Debug, Serialize)]
pub struct Point {
    /// How many pages were walked.
    pub pages: u32,
    /// Of one color.
    #[serde(serialize_with = "model::time::ns::whole")]
    pub same_ns: f64,
    /// Of all colors in turn.
    #[serde(serialize_with = "model::time::ns::whole")]
    pub mixed_ns: f64,
    /// The median of the ratios of the pairs, same to mixed.
    pub ratio: f64,
}

/// What was seen of one cache.
#[derive(Clone, PartialEq, Debug, Serialize)]
pub struct Curve {
    /// The cache.
    pub cache: Geometry,
    /// How colors are known.
    pub how: How,
    /// How sure they are, from 0 to 1: see [`Palette::confidence`].
    pub confidence: f64,
    /// How many colors were found.
    pub colors: u16,
    /// How long finding them took.
    #[serde(rename = "found_in_ns", serialize_with = "model::time::ns::serialize")]
    pub found_in: Duration,
    /// The curve, by number of pages.
    pub points: Vec<Point>,
    /// The smallest number of pages from which on the ratio stays at [`ACTS`] or above.
    pub step: Option<u32>,
}

impl Curve {
    /// The ratio at a number of pages.
    pub fn ratio_at(&self, pages: u32) -> Option<f64> {
        self.points
            .iter()
            .find(|p| p.pages == pages)
            .map(|p| p.ratio)
    }
    /// Do same-colored pages drive each other out at associativity + 1, and not at half of it?
    pub fn acts(&self) -> bool {
        let ways = self.cache.ways;
        self.ratio_at(ways + 1).is_some_and(|r| r >= ACTS)
            && self.ratio_at(ways / 2).is_none_or(|r| r < ACTS)
    }
}

/// Measures the curve of a palette's cache, up to twice its associativity. Runs on the palette's
/// processor, in a thread of its own.
///
/// # Errors
/// The processor cannot be used; a color kept too few pages; the user stopped it.
pub fn curve(palette: &Palette, repeats: usize, watch: &dyn Watch) -> Result<Curve> {
    std::thread::scope(|scope| {
        let measured = scope.spawn(|| {
            machine::realtime::pin(&CpuSet::from_iter([palette.cpu]))?;
            with_clock!(clock => measure(clock, palette, repeats, watch))
        });
        measured.join().unwrap_or_else(|_| {
            Err(Error::new(
                "the self-test broke off: a defect of this program",
            ))
        })
    })
}

fn measure<C: Clock>(
    clock: C,
    palette: &Palette,
    repeats: usize,
    watch: &dyn Watch,
) -> Result<Curve> {
    let calibration = Calibration::of(clock, Duration::from_millis(20))?;
    let ways = palette.cache.ways;
    let number = palette.colors();
    let most = (0..number)
        .map(|c| palette.members(Color(c)).len())
        .min()
        .unwrap_or(0)
        .min(2 * ways as usize);
    if most <= ways as usize {
        return Err(Error::new(format!(
            "a color of the {} kept {most} pages only, which its {ways} ways all hold",
            palette.cache.name()
        ))
        .remedy("look again when the machine is idle"));
    }
    watch.begin(
        &format!("self-test of the {}", palette.cache.name()),
        (repeats * most) as u64,
    );
    let nanos = |ticks: u64, accesses: usize| {
        calibration.duration(ticks).nanos() as f64 / accesses.max(1) as f64
    };
    let mut pairs: Vec<Vec<(f64, f64)>> = vec![Vec::new(); most + 1];
    for repeat in 0..repeats {
        // Another color each time: one bad color must show.
        let color = Color((repeat * 7 % usize::from(number)) as u16);
        let same = palette.members(color);
        let mixed: Vec<Page<'_>> = (0..most)
            .filter_map(|i| {
                let color = (i + repeat) % usize::from(number);
                palette
                    .members(Color(color as u16))
                    .get(i / usize::from(number))
                    .copied()
            })
            .collect();
        for pages in 1..=most {
            if watch.stopped() {
                return Err(Error::new("stopped before the self-test was done"));
            }
            let lines = pages * PAGE / LINE;
            let a = walk(clock, &same[..pages]);
            let b = walk(clock, &mixed[..pages.min(mixed.len())]);
            pairs[pages].push((nanos(a, lines), nanos(b, lines)));
            watch.advance(1);
        }
    }
    let points: Vec<Point> = pairs
        .iter()
        .enumerate()
        .skip(1)
        .map(|(pages, pairs)| Point {
            pages: pages as u32,
            same_ns: median(pairs.iter().map(|p| p.0)),
            mixed_ns: median(pairs.iter().map(|p| p.1)),
            ratio: median(pairs.iter().map(|p| p.0 / p.1.max(f64::MIN_POSITIVE))),
        })
        .collect();
    Ok(Curve {
        cache: palette.cache.clone(),
        how: palette.how,
        confidence: palette.confidence,
        colors: number,
        found_in: palette.took,
        step: step(&points),
        points,
    })
}

/// From where on the ratio stays up.
fn step(points: &[Point]) -> Option<u32> {
    points
        .iter()
        .rev()
        .take_while(|p| p.ratio >= ACTS)
        .last()
        .map(|p| p.pages)
}

fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => f64::midpoint(values[n / 2 - 1], values[n / 2]),
    }
}

/// Ticks of a walk over all lines of the pages, each address depending on the value before: the
/// fastest of some passes, for an interruption only adds.
#[inline(never)]
fn walk<C: Clock>(clock: C, pages: &[Page<'_>]) -> u64 {
    const WARM: usize = 2;
    const PASSES: usize = 5;
    const LINES: usize = PAGE / LINE;
    let nothing = black_box(0_usize);
    let mut best = u64::MAX;
    for pass in 0..WARM + PASSES {
        let mut step = 0;
        let start = clock.stamp();
        for round in 0..LINES {
            for (place, page) in pages.iter().enumerate() {
                // Odd strides walk every line of every page once, and no prefetcher follows from
                // page to page.
                let line = (round * 37 + place * 11) % LINES;
                step = page.read(line * LINE + step) as usize & nothing;
            }
        }
        black_box(step);
        let took = clock.stamp().saturating_sub(start);
        if pass >= WARM {
            best = best.min(took);
        }
    }
    best
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(pages: u32, ratio: f64) -> Point {
        Point {
            pages,
            same_ns: ratio,
            mixed_ns: 1.0,
            ratio,
        }
    }

    #[test]
    fn the_step_is_where_the_ratio_stays_up() {
        let rising = [
            point(1, 1.0),
            point(2, 1.6),
            point(3, 1.0),
            point(4, 1.5),
            point(5, 3.0),
        ];
        assert_eq!(step(&rising), Some(4));
        assert_eq!(step(&rising[..3]), None);
    }

    #[test]
    fn colors_act_when_one_page_too_many_is_driven_out_and_not_before() {
        let curve = |at_half: f64, beyond: f64| Curve {
            cache: Geometry {
                level: 2,
                size: model::Bytes::from_mib(1),
                ways: 16,
                colors: 16,
                sliced: false,
                shared_by: CpuSet::first(1),
            },
            how: How::Timing,
            confidence: 1.0,
            colors: 16,
            found_in: Duration::from_millis(1),
            points: vec![point(8, at_half), point(17, beyond)],
            step: None,
        };
        assert!(curve(1.0, 2.0).acts());
        assert!(!curve(1.0, 1.4).acts(), "nothing is driven out");
        assert!(!curve(2.0, 2.0).acts(), "slow for another reason");
    }

    #[test]
    fn a_median_is_the_middle() {
        assert_eq!(median([3.0, 1.0, 2.0].into_iter()), 2.0);
        assert_eq!(median([4.0, 1.0, 2.0, 3.0].into_iter()), 2.5);
    }
}
