//! Which overheads the orange end of a piece is made of: the legend, and the strip below the piece.

use super::{Area, Bar, DrawError, LEGEND, Share, WIDTH, text};
use crate::sheet::{Shape, Sheet, tenths, text_width};
use crate::style::{Ink, SMALL};
use model::Overhead;
use plotters::element::Rectangle;
use plotters::style::Color;
use plotters::style::text_anchor::HPos;

/// Height of the strip and of what keeps it apart from the next bar.
pub(super) const STRIP: f64 = 8.0;
/// Height of the strip.
const HIGH: f64 = 6.0;
/// Where entries of the legend begin, and the box that shows how one looks.
const LEFT: f64 = 8.0;
const BOX: f64 = 18.0;
/// What an entry takes besides its name.
const AROUND: f64 = BOX + 6.0 + 16.0;
/// A part that is narrower is not seen; its share is told where somebody points at the piece.
const LEAST: f64 = 0.15;

/// What people call an overhead.
pub(super) const fn name(kind: Overhead) -> &'static str {
    match kind {
        Overhead::Release => "release",
        Overhead::Scheduling => "scheduling",
        Overhead::ContextSwitch => "context switch",
        Overhead::IpiLatency => "IPI latency",
        Overhead::TimerTransfer => "timer transfer",
        Overhead::Tick => "tick",
        Overhead::Cpmd => "cache delay",
    }
}

/// Neighbors in the order of [`Overhead::ALL`] differ in lightness, too.
const fn look(kind: Overhead) -> (Ink, f64) {
    match kind {
        Overhead::Release => (Ink::Orange, 0.9),
        Overhead::Scheduling => (Ink::Gray, 0.75),
        Overhead::ContextSwitch => (Ink::Black, 0.9),
        Overhead::IpiLatency => (Ink::Sky, 0.6),
        Overhead::TimerTransfer => (Ink::Purple, 0.9),
        Overhead::Tick => (Ink::Green, 0.6),
        Overhead::Cpmd => (Ink::Blue, 0.95),
    }
}

/// As `check --explain` writes it.
pub(super) fn percent(part: f64) -> String {
    format!("{:.1} %", part * 100.0)
}

/// The overheads that any piece has a part of.
pub(super) fn shown_parts(bars: &[Bar]) -> Vec<Overhead> {
    let parts = || {
        bars.iter()
            .flat_map(|bar| &bar.shares)
            .flat_map(|share| &share.parts)
    };
    let has = |kind: &Overhead| parts().any(|(of, part)| of == kind && *part > 0.0);
    Overhead::ALL.into_iter().filter(has).collect()
}

/// An entry of the legend: how it looks, its name, where it begins, and on which line.
type Entry = ((Ink, f64), &'static str, f64, usize);

fn entries(kinds: &[Overhead]) -> Vec<Entry> {
    let mut all = vec![
        ((Ink::Sky, 0.35), "a task", LEFT, 0),
        ((Ink::Vermilion, 1.0), "what overheads add to it", 0.0, 0),
    ];
    all[1].2 = LEFT + AROUND + text_width(all[0].1, SMALL);
    let (mut x, mut row) = (LEFT, 1);
    for kind in kinds {
        let wide = AROUND + text_width(name(*kind), SMALL);
        if x > LEFT && x + wide > WIDTH {
            (x, row) = (LEFT, row + 1);
        }
        all.push((look(*kind), name(*kind), x, row));
        x += wide;
    }
    all
}

/// How many lines the legend has.
pub(super) fn legend_rows(kinds: &[Overhead]) -> usize {
    entries(kinds).last().map_or(1, |entry| entry.3 + 1)
}

pub(super) fn draw_legend(root: &Area, kinds: &[Overhead]) -> Result<(), DrawError> {
    for ((ink, opacity), name, x, row) in entries(kinds) {
        let top = 28.0 + LEGEND * row as f64;
        // What is in the strip is as low as the strip.
        let (upper, lower) = match row {
            0 => (top, top + 12.0),
            _ => (top + 3.0, top + 3.0 + HIGH),
        };
        let corners = [(tenths(x), tenths(upper)), (tenths(x + BOX), tenths(lower))];
        root.draw(&Rectangle::new(corners, ink.color().mix(opacity).filled()))?;
        root.draw_text(
            name,
            &text(SMALL, Ink::Black, HPos::Left),
            (tenths(x + BOX + 6.0), tenths(top + 6.0)),
        )?;
    }
    Ok(())
}

/// The strip below a piece that reaches from one place to another; nothing where it is not known
/// what its overheads are.
pub(super) fn draw_parts(
    root: &Area,
    sheet: &Sheet,
    share: &Share,
    (from, to): (f64, f64),
    top: f64,
) -> Result<(), DrawError> {
    let total: f64 = share.parts.iter().map(|(_, part)| part).sum();
    if total <= 0.0 {
        return Ok(());
    }
    let mut x = from;
    for (kind, part) in &share.parts {
        // Between pieces a pixel stays free.
        let next = x + part / total * (to - from - 1.0).max(LEAST);
        if next - x >= LEAST {
            let corners = [(tenths(x), tenths(top)), (tenths(next), tenths(top + HIGH))];
            let (ink, opacity) = look(*kind);
            root.draw(&Rectangle::new(corners, ink.color().mix(opacity).filled()))?;
            let [(left, upper), (right, lower)] = corners;
            sheet.push(Shape::Tip {
                points: vec![(left, upper), (right, upper), (right, lower), (left, lower)],
                text: format!(
                    "{}: {} is {} of its inflated WCET",
                    share.name,
                    name(*kind),
                    percent(*part)
                ),
            });
        }
        x = next;
    }
    Ok(())
}
