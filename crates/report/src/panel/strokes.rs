//! Lines, marks and texts of a panel.

use super::{Area, DrawError};
use crate::sheet::{TENTHS, tenths};
use crate::style::{Ink, Look, Marker};
use model::Result;
use plotters::element::{Circle, PathElement, Polygon};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, IntoFont, ShapeStyle, TextStyle};

/// Length of the line sample in a legend.
pub(super) const SAMPLE: f64 = 34.0;

/// Width of a curve's line, in pixels.
pub(super) const CURVE: f64 = 1.8;

/// Half the size of a marker, in pixels.
const MARK: f64 = 3.6;

pub(super) fn at(x: f64, y: f64) -> (i32, i32) {
    (tenths(x), tenths(y))
}

pub(super) fn stroke(ink: Ink, width: f64) -> ShapeStyle {
    ink.color().stroke_width(tenths(width) as u32)
}

pub(super) fn text(size: f64, ink: Ink, h: HPos, v: VPos) -> TextStyle<'static> {
    let mut style = TextStyle::from(("sans-serif", size * TENTHS).into_font());
    style.color = ink.color().to_backend_color();
    style.pos = Pos::new(h, v);
    style
}

pub(super) fn line(
    root: &Area,
    points: Vec<(i32, i32)>,
    ink: Ink,
    width: f64,
) -> Result<(), DrawError> {
    root.draw(&PathElement::new(points, stroke(ink, width)))
}

/// Draws a marker. Hollow ones are filled with paper, so that lines do not run through them.
pub(super) fn mark(root: &Area, (x, y): (i32, i32), look: Look) -> Result<(), DrawError> {
    let r = tenths(MARK);
    let corners = |points: &[(f64, f64)]| -> Vec<(i32, i32)> {
        points
            .iter()
            .map(|(dx, dy)| {
                (
                    x + (dx * f64::from(r)).round() as i32,
                    y + (dy * f64::from(r)).round() as i32,
                )
            })
            .collect()
    };
    let shape = |points: &[(f64, f64)], hollow: bool| -> Result<(), DrawError> {
        let inside = if hollow { Ink::Paper } else { look.ink };
        root.draw(&Polygon::new(corners(points), inside.color().filled()))?;
        let mut outline = corners(points);
        outline.extend(outline.first().copied());
        root.draw(&PathElement::new(outline, stroke(look.ink, 1.4)))
    };
    match look.marker {
        Marker::Circle => root.draw(&Circle::new((x, y), r, look.ink.color().filled())),
        Marker::Ring => {
            root.draw(&Circle::new((x, y), r, Ink::Paper.color().filled()))?;
            root.draw(&Circle::new((x, y), r, stroke(look.ink, 1.4)))
        }
        Marker::Triangle => shape(&[(0.0, -1.25), (1.15, 0.85), (-1.15, 0.85)], true),
        Marker::Square => shape(&[(-0.8, -0.8), (0.8, -0.8), (0.8, 0.8), (-0.8, 0.8)], false),
        Marker::Diamond => shape(&[(0.0, -1.3), (1.2, 0.0), (0.0, 1.3), (-1.2, 0.0)], true),
        Marker::Bare => Ok(()),
        Marker::Wedge => shape(&[(0.0, 1.25), (1.15, -0.85), (-1.15, -0.85)], false),
    }
}

/// Says that a value lies at the floor of the axis or below it.
pub(super) fn floor_mark(root: &Area, (x, y): (i32, i32), ink: Ink) -> Result<(), DrawError> {
    let r = tenths(MARK);
    let corners = vec![
        (x - r, y - 2 * r),
        (x + r, y - 2 * r),
        (x, y - 2),
        (x - r, y - 2 * r),
    ];
    root.draw(&Polygon::new(corners.clone(), Ink::Paper.color().filled()))?;
    root.draw(&PathElement::new(corners, stroke(ink, 1.2)))
}
