//! The legend of a schedule: which look is which task, or which processor.

use super::drawing::{Drawing, solid};
use super::fills::{LOOKS, nth_fill};
use super::{Canvas, Rows};
use crate::sheet::{Paint, Side, cut, text_width};
use crate::style::{Ink, SMALL};
use model::TaskId;

/// Width of the box that shows a look, in pixels.
const BOX: f64 = 22.0;
/// The least length of an axis to stand below, in pixels.
const AXIS: f64 = 300.0;
/// Height of a row of the legend, in pixels.
const ROW: f64 = 20.0;
/// The most entries, one for each look; a sentence counts the others.
const MOST: usize = LOOKS;

/// An entry and its place: what it says, and whose look it shows (none: it only says something).
struct Entry {
    name: String,
    look: Option<usize>,
    x: f64,
    row: usize,
}

fn entries(canvas: &Canvas) -> Vec<Entry> {
    let names: Vec<String> = match canvas.rows {
        // With one processor there is nothing to tell apart.
        Rows::Tasks if canvas.view.processors.len() < 2 => Vec::new(),
        Rows::Tasks => canvas
            .view
            .processors
            .iter()
            .map(|c| format!("on P{c}"))
            .collect(),
        Rows::Processors => {
            let name = |task: &TaskId| canvas.view.names[task.index()].clone();
            canvas.tasks.iter().map(name).collect()
        }
    };
    let more = names.len().saturating_sub(MOST);
    let shown = names.into_iter().take(MOST).enumerate();
    let mut all: Vec<(String, Option<usize>)> = shown.map(|(n, name)| (name, Some(n))).collect();
    if more > 0 {
        all.push((format!("and {more} more"), None));
    }
    let right = canvas.width - super::RIGHT;
    // Below the axis where that is long enough, otherwise over the whole width.
    let left = if right - canvas.left > AXIS {
        canvas.left
    } else {
        8.0
    };
    let (mut x, mut row) = (left, 0);
    let mut placed = Vec::new();
    for (name, look) in all {
        let indent = if look.is_some() { BOX + 6.0 } else { 0.0 };
        let name = cut(&name, SMALL, right - left - indent);
        let width = indent + text_width(&name, SMALL);
        if x > left && x + width > right {
            (x, row) = (left, row + 1);
        }
        placed.push(Entry { name, look, x, row });
        x += width + 18.0;
    }
    placed
}

/// How high the legend is, in pixels; zero where there is none.
pub(super) fn height(canvas: &Canvas) -> f64 {
    entries(canvas)
        .last()
        .map_or(0.0, |e| ROW * (e.row + 1) as f64 + 4.0)
}

/// Draws the legend; its upper edge lies at `top`.
pub(super) fn draw(drawing: &mut Drawing, top: f64) {
    for entry in entries(&drawing.canvas) {
        let (x, y) = (entry.x, top + ROW * entry.row as f64 + 11.0);
        let Some(look) = entry.look else {
            drawing.text(
                &entry.name,
                (x, y + 1.5),
                Side::Start,
                Ink::Gray,
                SMALL,
                false,
            );
            continue;
        };
        let fill = nth_fill(look);
        let (upper, lower) = (y - 9.0, y + 3.0);
        let corners = [(x, upper), (x + BOX, upper), (x + BOX, lower), (x, lower)];
        drawing.polygon(&corners, solid(Ink::Paper));
        let paint = Paint {
            ink: fill.ink,
            opacity: fill.opacity,
        };
        drawing.polygon(&corners, paint);
        drawing.hatch((x, x + BOX), (upper, lower), fill);
        let outline = [corners[0], corners[1], corners[2], corners[3], corners[0]];
        drawing.line(&outline, Ink::Black, 0.9, "");
        let place = (x + BOX + 6.0, y + 1.5);
        drawing.text(&entry.name, place, Side::Start, Ink::Black, SMALL, false);
    }
}
