//! The frame of a panel: where values stand in the picture, and the layers between its axes.

use super::strokes::{CURVE, floor_mark, line, mark, text};
use super::{Area, DrawError, Layer, Panel};
use crate::sheet::{Paint, Shape, Sheet, tenths, text_width};
use crate::style::{Ink, Look, SMALL};
use model::Result;
use plotters::element::Polygon;
use plotters::style::Color;
use plotters::style::text_anchor::{HPos, VPos};

/// Opacity of a band: two of them that overlap still show what lies below.
const BAND: f64 = 0.16;

/// In how many layers the dots of a cloud are drawn.
const CLOUD_LAYERS: usize = 6;

/// A cloud of fewer dots than these is thin.
const FEW: usize = 800;

/// Where a panel's data lies on the sheet, in tenths of a pixel.
pub(super) struct Frame<'a> {
    pub(super) root: &'a Area,
    pub(super) sheet: &'a Sheet,
    pub(super) left: i32,
    pub(super) right: i32,
    pub(super) top: i32,
    pub(super) bottom: i32,
    pub(super) panel: &'a Panel,
}

impl Frame<'_> {
    pub(super) fn x(&self, value: f64, shift: f64) -> i32 {
        let width = f64::from(self.right - self.left);
        self.left + (self.panel.x.position(value) * width).round() as i32 + tenths(shift)
    }
    pub(super) fn y(&self, value: f64) -> i32 {
        let height = f64::from(self.bottom - self.top);
        self.bottom - (self.panel.y.position(value) * height).round() as i32
    }

    pub(super) fn layer(&self, layer: &Layer) -> Result<(), DrawError> {
        let (root, sheet) = (self.root, self.sheet);
        match layer {
            Layer::Curve {
                look,
                points,
                shift,
            } => {
                sheet.dash(look.dash);
                let path = points
                    .iter()
                    .map(|(x, y)| (self.x(*x, *shift), self.y(*y)))
                    .collect();
                line(root, path, look.ink, CURVE)?;
                sheet.dash("");
                Ok(())
            }
            Layer::Band { look, ends } => self.band(*look, ends),
            Layer::Marks {
                look,
                points,
                shift,
            } => points.iter().try_for_each(|(x, y)| {
                let place = (self.x(*x, *shift), self.y(*y));
                if *y <= self.panel.y.low && self.panel.y.scale == crate::axis::Scale::Logarithmic {
                    floor_mark(root, place, look.ink)
                } else {
                    mark(root, place, *look)
                }
            }),
            Layer::Whiskers { look, bars, shift } => bars.iter().try_for_each(|(x, low, high)| {
                self.whisker(*look, self.x(*x, *shift), *low, *high)
            }),
            Layer::Cloud {
                ink,
                points,
                crosses,
            } => {
                self.cloud(*ink, points, *crosses);
                Ok(())
            }
            Layer::Upright { at, label } => self.upright(*at, label),
            Layer::Level { at, label, ink } => self.level(*at, label, *ink),
            Layer::Label { at, text } => self.label(*at, text),
            Layer::Note { at, lines } => self.note(*at, lines),
        }
    }

    /// The area between the low and the high ends.
    fn band(&self, look: Look, ends: &[(f64, f64, f64)]) -> Result<(), DrawError> {
        let root = self.root;
        let low = ends
            .iter()
            .map(|(x, low, _)| (self.x(*x, 0.0), self.y(*low)));
        let high = ends
            .iter()
            .map(|(x, _, high)| (self.x(*x, 0.0), self.y(*high)));
        let corners: Vec<_> = low.chain(high.rev()).collect();
        if corners.len() > 2 {
            root.draw(&Polygon::new(corners, look.ink.color().mix(BAND).filled()))?;
        }
        Ok(())
    }

    /// A bar at `x` on the sheet. An end that the panel cuts off has no cap.
    fn whisker(&self, look: Look, x: i32, low: f64, high: f64) -> Result<(), DrawError> {
        let (root, cap) = (self.root, tenths(2.5));
        let (bottom, top) = (self.y(low), self.y(high));
        if bottom == top {
            return Ok(());
        }
        line(root, vec![(x, bottom), (x, top)], look.ink, 0.9)?;
        for (end, inside) in [
            (bottom, low > self.panel.y.low),
            (top, high < self.panel.y.high),
        ] {
            if inside {
                line(root, vec![(x - cap, end), (x + cap, end)], look.ink, 0.9)?;
            }
        }
        Ok(())
    }

    fn cloud(&self, ink: Ink, points: &[(f64, f64)], crosses: bool) {
        let places: Vec<_> = points
            .iter()
            .map(|(x, y)| (self.x(*x, 0.0), self.y(*y)))
            .collect();
        // Dots in several layers, so that where many lie it grows darker.
        let layers = if crosses { 1 } else { CLOUD_LAYERS };
        // Few dots are drawn larger, so that they can be found.
        let (radius, opacity) = match (crosses, places.len() < FEW) {
            (true, _) => (2.2, 1.0),
            (false, true) => (1.7, 0.65),
            (false, false) => (1.2, 0.5),
        };
        for layer in 0..layers.min(places.len()) {
            self.sheet.push(Shape::Dots {
                crosses,
                points: places.iter().skip(layer).step_by(layers).copied().collect(),
                radius: tenths(radius) as u32,
                paint: Paint { ink, opacity },
            });
        }
    }

    /// A dotted line from bottom to top, with its label at the top.
    fn upright(&self, at: f64, label: &str) -> Result<(), DrawError> {
        let (root, sheet) = (self.root, self.sheet);
        let x = self.x(at, 0.0);
        sheet.dash("1.5 3");
        line(root, vec![(x, self.top), (x, self.bottom)], Ink::Gray, 1.0)?;
        sheet.dash("");
        sheet.halo(true);
        let style = text(SMALL - 1.0, Ink::Gray, HPos::Center, VPos::Top);
        root.draw_text(label, &style, (x, self.top + tenths(3.0)))?;
        sheet.halo(false);
        Ok(())
    }

    /// A dashed line from left to right, with its label above its right end.
    fn level(&self, at: f64, label: &str, ink: Ink) -> Result<(), DrawError> {
        let (root, sheet) = (self.root, self.sheet);
        let y = self.y(at);
        sheet.dash("5 4");
        line(root, vec![(self.left, y), (self.right, y)], ink, 1.0)?;
        sheet.dash("");
        // A note on the line may stand above it, too: then the label goes below.
        let start = self.right - tenths(4.0 + text_width(label, SMALL));
        if start < self.left {
            // The legend and a note name it, too.
            return Ok(());
        }
        let is_taken = |layer: &Layer| match layer {
            Layer::Note { at, lines } if self.y(at.1) == y => {
                let note = self.words(*at, lines);
                note.is_above() && note.end() + tenths(4.0) > start
            }
            _ => false,
        };
        let (v, down) = match self.panel.layers.iter().any(is_taken) {
            true => (VPos::Top, 3.0),
            false => (VPos::Bottom, -3.0),
        };
        sheet.halo(true);
        let style = text(SMALL, ink, HPos::Right, v);
        root.draw_text(label, &style, (self.right - tenths(4.0), y + tenths(down)))?;
        sheet.halo(false);
        Ok(())
    }

    /// A word beside a point, as high as it.
    fn label(&self, (x, y): (f64, f64), label: &str) -> Result<(), DrawError> {
        let place = (self.x(x, 0.0) + tenths(9.0), self.y(y));
        let style = text(SMALL, Ink::Black, HPos::Left, VPos::Center);
        self.sheet.halo(true);
        self.root.draw_text(label, &style, place)?;
        self.sheet.halo(false);
        Ok(())
    }
}
