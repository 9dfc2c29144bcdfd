//! The content of a page: each shape of a figure in the operators of PDF (ISO 32000-1, §8 and §9).

use super::POINTS;
use super::typeface::{Typeface, Written};
use crate::sheet::{Paint, Place, Shape, Side, TENTHS};
use crate::style::{Ink, Print};
use crate::svg::CROSS;
use model::Result;
use pdf_writer::types::{LineCapStyle, LineJoinStyle, TextRenderingMode};
use pdf_writer::{Content, Name, Str};
use std::collections::BTreeSet;

/// Width of the paper around letters with a halo, in tenths of a pixel; half of it lies beneath
/// them.
const HALO: f32 = 40.0;

/// A page that is being drawn.
pub(super) struct Drawing {
    pub content: Content,
    /// Regular and bold.
    pub typefaces: [Typeface; 2],
    /// Those that are used, in hundredths.
    pub opacities: BTreeSet<u8>,
}

/// Where and how a line of text stands.
struct Line {
    at: Place,
    side: Side,
    /// In pixels of the figure.
    size: f64,
    ink: Ink,
    bold: bool,
    upwards: bool,
    halo: bool,
}

/// The name of an opacity, in hundredths, within the page.
pub(super) fn state(hundredths: u8) -> String {
    format!("A{hundredths}")
}

impl Drawing {
    /// An empty page of this height in points.
    ///
    /// # Errors
    /// A font of this program that cannot be read.
    pub(super) fn new(print: &Print, height: f64) -> Result<Self> {
        let mut content = Content::new();
        // From tenths of a pixel downwards to points upwards.
        let scale = (print.scale * POINTS / TENTHS) as f32;
        content
            .transform([scale, 0.0, 0.0, -scale, 0.0, height as f32])
            .set_line_join(LineJoinStyle::RoundJoin);
        Ok(Drawing {
            content,
            typefaces: Typeface::both(print.family)?,
            opacities: BTreeSet::new(),
        })
    }

    pub(super) fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Line {
                points,
                paint,
                width,
                dash,
            } => self.with(*paint, |content| {
                content.set_line_width(*width as f32);
                content.set_dash_pattern(dashes(dash), 0.0);
                follow(content, points);
                content.stroke();
            }),
            Shape::Polygon { points, paint } => self.with(*paint, |content| {
                follow(content, points);
                content.close_path();
                content.fill_nonzero();
            }),
            // There is no pointer over paper.
            Shape::Tip { .. } => {}
            Shape::Circle {
                center,
                radius,
                paint,
                outline,
            } => self.with(*paint, |content| {
                circle(content, *center, *radius as f32);
                match outline {
                    None => content.fill_nonzero(),
                    Some(width) => content.set_line_width(*width as f32).stroke(),
                };
            }),
            Shape::Dots {
                crosses,
                points,
                radius,
                paint,
            } => self.with(*paint, |content| dots(content, *crosses, points, *radius)),
            Shape::Text {
                text,
                at,
                side,
                size,
                ink,
                bold,
                upwards,
                halo,
            } => {
                let line = Line {
                    at: *at,
                    side: *side,
                    size: *size,
                    ink: *ink,
                    bold: *bold,
                    upwards: *upwards,
                    halo: *halo,
                };
                self.write(text, &line);
            }
        }
    }

    /// Draws lines and areas with this ink; what is set meanwhile is set back.
    fn with(&mut self, paint: Paint, draw: impl FnOnce(&mut Content)) {
        let opacity = (paint.opacity.clamp(0.0, 1.0) * 100.0).round() as u8;
        self.opacities.insert(opacity);
        self.content.save_state();
        self.content.set_parameters(Name(state(opacity).as_bytes()));
        color(&mut self.content, paint.ink);
        draw(&mut self.content);
        self.content.restore_state();
    }

    fn write(&mut self, text: &str, line: &Line) {
        let typeface = &mut self.typefaces[usize::from(line.bold)];
        let written = typeface.write(text);
        if written.glyphs.is_empty() {
            return;
        }
        let (name, matrix) = (typeface.name(), line.matrix(&written));
        let mut show = |ink: Ink, mode: TextRenderingMode| {
            let paint = Paint { ink, opacity: 1.0 };
            self.with(paint, |content| {
                content.set_line_width(HALO);
                content.begin_text();
                content.set_font(name, 1.0);
                content.set_text_rendering_mode(mode);
                content.set_text_matrix(matrix);
                content.show(Str(&written.glyphs));
                content.end_text();
            });
        };
        if line.halo {
            show(Ink::Paper, TextRenderingMode::Stroke);
        }
        show(line.ink, TextRenderingMode::Fill);
    }
}

impl Line {
    /// From ems of the font to tenths of a pixel. Letters stand upright on a page that is turned
    /// over.
    fn matrix(&self, written: &Written) -> [f32; 6] {
        let em = (self.size * TENTHS) as f32;
        let back = em
            * match self.side {
                Side::Start => 0.0,
                Side::Middle => written.width / 2.0,
                Side::End => written.width,
            };
        let (x, y) = (self.at.0 as f32, self.at.1 as f32);
        match self.upwards {
            true => [0.0, -em, -em, 0.0, x, y + back],
            false => [em, 0.0, 0.0, -em, x - back, y],
        }
    }
}

fn color(content: &mut Content, ink: Ink) {
    let color = ink.color();
    let part = |byte: u8| f32::from(byte) / 255.0;
    let (r, g, b) = (part(color.0), part(color.1), part(color.2));
    content.set_stroke_rgb(r, g, b).set_fill_rgb(r, g, b);
}

/// An SVG `stroke-dasharray` in tenths of a pixel.
fn dashes(dash: &str) -> Vec<f32> {
    dash.split_whitespace()
        .filter_map(|length| length.parse::<f32>().ok())
        .map(|length| length * TENTHS as f32)
        .collect()
}

fn follow(content: &mut Content, points: &[Place]) {
    for (at, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        match at {
            0 => content.move_to(x, y),
            _ => content.line_to(x, y),
        };
    }
}

/// Four curves that differ from a circle by less than a thousandth of its radius.
fn circle(content: &mut Content, (x, y): Place, r: f32) {
    const K: f32 = 0.552_284_8;
    let (x, y, k) = (x as f32, y as f32, r * K);
    content.move_to(x + r, y);
    content.cubic_to(x + r, y + k, x + k, y + r, x, y + r);
    content.cubic_to(x - k, y + r, x - r, y + k, x - r, y);
    content.cubic_to(x - r, y - k, x - k, y - r, x, y - r);
    content.cubic_to(x + k, y - r, x + r, y - k, x + r, y);
    content.close_path();
}

/// All of them as one path, so that those that lie upon each other do not grow darker: dots are
/// lines of no length with round ends.
fn dots(content: &mut Content, crosses: bool, points: &[Place], radius: u32) {
    let r = radius as f32;
    for (x, y) in points {
        let (x, y) = (*x as f32, *y as f32);
        if crosses {
            for side in [r, -r] {
                content.move_to(x - side, y - r);
                content.line_to(x + side, y + r);
            }
        } else {
            content.move_to(x, y);
            content.line_to(x, y);
        }
    }
    let width = if crosses { CROSS } else { 2 * radius };
    content.set_line_cap(LineCapStyle::RoundCap);
    content.set_line_width(width as f32);
    content.stroke();
}
