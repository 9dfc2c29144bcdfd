//! Writes a figure as PNG: the same shapes, drawn with tiny-skia, text with two small fonts that
//! this crate carries.
//!
//! Always light, as on paper. Characters that the fonts lack are left out: names in figures should
//! be Latin.

use crate::sheet::{Paint, Place, Shape, Side, TENTHS};
use crate::style::{Family, Ink, Print};
use crate::svg::{CROSS, Figure};
use model::{Error, Result};
use tiny_skia::{
    Color, FillRule, LineCap, LineJoin, Path, PathBuilder, Pixmap, Stroke, StrokeDash, Transform,
};
use ttf_parser::{Face, OutlineBuilder};

/// Regular and bold, cut down to the characters of figures; their license lies beside them.
pub(crate) fn fonts(family: Family) -> [&'static [u8]; 2] {
    match family {
        Family::Sans => [
            include_bytes!("../fonts/DejaVuSans-subset.ttf"),
            include_bytes!("../fonts/DejaVuSans-Bold-subset.ttf"),
        ],
        Family::Serif => [
            include_bytes!("../fonts/DejaVuSerif-subset.ttf"),
            include_bytes!("../fonts/DejaVuSerif-Bold-subset.ttf"),
        ],
    }
}

/// The most pixels of a picture along one side.
const MOST: f64 = 20_000.0;

impl Figure {
    /// The figure as a PNG file, `scale` pixels for each of the figure's (2 for a screen, 4 for
    /// print).
    ///
    /// # Errors
    /// A scale that makes no picture or one too large.
    pub fn to_png(&self, scale: f64) -> Result<Vec<u8>> {
        self.to_png_as(&Print {
            scale,
            ..Print::default()
        })
    }

    /// The same in another family of fonts.
    ///
    /// # Errors
    /// As [`to_png`](Self::to_png).
    pub fn to_png_as(&self, print: &Print) -> Result<Vec<u8>> {
        let scale = print.scale;
        let (width, height) = (self.width * scale, self.height * scale);
        let bad = || {
            Error::new(format!(
                "a picture of {width:.0} by {height:.0} pixels cannot be made"
            ))
            .remedy("choose a scale between 0.1 and 10")
        };
        if !(1.0..=MOST).contains(&width) || !(1.0..=MOST).contains(&height) {
            return Err(bad());
        }
        let mut pixmap = Pixmap::new(width.ceil() as u32, height.ceil() as u32).ok_or_else(bad)?;
        pixmap.fill(Color::WHITE);
        let [regular, bold] = fonts(print.family);
        let fonts = Fonts {
            regular: face(regular)?,
            bold: face(bold)?,
        };
        // Shapes count in tenths of a pixel.
        let mut canvas = Canvas {
            pixmap,
            to_pixels: Transform::from_scale((scale / TENTHS) as f32, (scale / TENTHS) as f32),
            fonts,
        };
        for shape in &self.shapes {
            canvas.draw(shape);
        }
        canvas.pixmap.encode_png().map_err(|e| {
            Error::new(format!(
                "the figure `{}` cannot be written as PNG: {e}",
                self.id
            ))
        })
    }
}

fn face(bytes: &'static [u8]) -> Result<Face<'static>> {
    Face::parse(bytes, 0)
        .map_err(|e| Error::new(format!("the font of this program cannot be read: {e}")))
}

struct Fonts {
    regular: Face<'static>,
    bold: Face<'static>,
}

struct Canvas {
    pixmap: Pixmap,
    to_pixels: Transform,
    fonts: Fonts,
}

fn brush(p: Paint) -> tiny_skia::Paint<'static> {
    let c = p.ink.color();
    let mut paint = tiny_skia::Paint::default();
    paint.set_color_rgba8(
        c.0,
        c.1,
        c.2,
        (p.opacity.clamp(0.0, 1.0) * 255.0).round() as u8,
    );
    paint.anti_alias = true;
    paint
}

fn path(points: &[Place], closed: bool) -> Option<Path> {
    let mut builder = PathBuilder::new();
    for (index, (x, y)) in points.iter().enumerate() {
        let (x, y) = (*x as f32, *y as f32);
        if index == 0 {
            builder.move_to(x, y);
        } else {
            builder.line_to(x, y);
        }
    }
    if closed {
        builder.close();
    }
    builder.finish()
}

fn stroke(width: u32, dash: &str) -> Stroke {
    let lengths: Vec<f32> = dash
        .split_whitespace()
        .filter_map(|d| d.parse::<f32>().ok())
        .map(|d| d * TENTHS as f32)
        .collect();
    Stroke {
        width: width as f32,
        line_join: LineJoin::Round,
        dash: StrokeDash::new(lengths, 0.0),
        ..Stroke::default()
    }
}

impl Canvas {
    fn fill(&mut self, path: Option<Path>, paint: Paint) {
        if let Some(path) = path {
            self.pixmap.fill_path(
                &path,
                &brush(paint),
                FillRule::Winding,
                self.to_pixels,
                None,
            );
        }
    }
    fn line(&mut self, path: Option<Path>, paint: Paint, stroke: &Stroke) {
        if let Some(path) = path {
            self.pixmap
                .stroke_path(&path, &brush(paint), stroke, self.to_pixels, None);
        }
    }

    fn dots(&mut self, crosses: bool, points: &[Place], radius: u32, paint: Paint) {
        let mut builder = PathBuilder::new();
        let r = radius as f32;
        for (x, y) in points {
            let (x, y) = (*x as f32, *y as f32);
            if crosses {
                for side in [r, -r] {
                    builder.move_to(x - side, y - r);
                    builder.line_to(x + side, y + r);
                }
            } else {
                builder.push_circle(x, y, r);
            }
        }
        let path = builder.finish();
        if crosses {
            let round = Stroke {
                line_cap: LineCap::Round,
                ..stroke(CROSS, "")
            };
            self.line(path, paint, &round);
        } else {
            self.fill(path, paint);
        }
    }

    /// Filled letters, with paper around them where other things may be below.
    fn letters(&mut self, outline: Path, ink: Ink, halo: bool) {
        let paint = |ink: Ink| Paint { ink, opacity: 1.0 };
        if halo {
            self.line(Some(outline.clone()), paint(Ink::Paper), &stroke(40, ""));
        }
        self.fill(Some(outline), paint(ink));
    }

    fn draw(&mut self, shape: &Shape) {
        match shape {
            Shape::Line {
                points,
                paint,
                width,
                dash,
            } => self.line(path(points, false), *paint, &stroke(*width, dash)),
            Shape::Polygon { points, paint } => self.fill(path(points, true), *paint),
            // There is no pointer over a PNG.
            Shape::Tip { .. } => {}
            Shape::Circle {
                center,
                radius,
                paint,
                outline,
            } => {
                let circle =
                    PathBuilder::from_circle(center.0 as f32, center.1 as f32, *radius as f32);
                match outline {
                    None => self.fill(circle, *paint),
                    Some(width) => self.line(circle, *paint, &stroke(*width, "")),
                }
            }
            Shape::Dots {
                crosses,
                points,
                radius,
                paint,
            } => {
                self.dots(*crosses, points, *radius, *paint);
            }
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
                let face = if *bold {
                    &self.fonts.bold
                } else {
                    &self.fonts.regular
                };
                let Some(outline) = outline(face, text, size * TENTHS, *side) else {
                    return;
                };
                let turned = if *upwards {
                    Transform::from_rotate(-90.0)
                } else {
                    Transform::identity()
                };
                if let Some(outline) =
                    outline.transform(turned.post_translate(at.0 as f32, at.1 as f32))
                {
                    self.letters(outline, *ink, *halo);
                }
            }
        }
    }
}

/// The outline of a line of text on a base line through the origin.
fn outline(face: &Face<'_>, text: &str, size: f64, side: Side) -> Option<Path> {
    let scale = size / f64::from(face.units_per_em());
    let mut pen = Pen {
        builder: PathBuilder::new(),
        x: 0.0,
        scale: scale as f32,
    };
    for c in text.chars() {
        let Some(glyph) = face.glyph_index(c) else {
            continue;
        };
        face.outline_glyph(glyph, &mut pen);
        pen.x += f32::from(face.glyph_hor_advance(glyph).unwrap_or(0)) * pen.scale;
    }
    let shift = match side {
        Side::Start => 0.0,
        Side::Middle => -pen.x / 2.0,
        Side::End => -pen.x,
    };
    pen.builder
        .finish()?
        .transform(Transform::from_translate(shift, 0.0))
}

/// Draws glyphs side by side; fonts count upwards, pictures downwards.
struct Pen {
    builder: PathBuilder,
    x: f32,
    scale: f32,
}

impl Pen {
    fn at(&self, x: f32, y: f32) -> (f32, f32) {
        (self.x + x * self.scale, -y * self.scale)
    }
}

impl OutlineBuilder for Pen {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.builder.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.at(x, y);
        self.builder.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((x1, y1), (x, y)) = (self.at(x1, y1), self.at(x, y));
        self.builder.quad_to(x1, y1, x, y);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((x1, y1), (x2, y2), (x, y)) = (self.at(x1, y1), self.at(x2, y2), self.at(x, y));
        self.builder.cubic_to(x1, y1, x2, y2, x, y);
    }
    fn close(&mut self) {
        self.builder.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Profile, Resumption};

    #[test]
    fn the_picture_holds_the_inks_of_its_series() {
        let xeon = Profile::builtin("xeon-l7455").unwrap();
        let figure = crate::cpmd::figure("f", &xeon, &[], &crate::cpmd::FIG2)
            .unwrap()
            .unwrap();
        let png = figure.to_png(1.0).unwrap();
        let picture = Pixmap::decode_png(&png).unwrap();
        assert_eq!(f64::from(picture.width()), figure.width);
        for kind in [
            Resumption::Preemption,
            Resumption::Migration(3),
            Resumption::Memory,
        ] {
            let c = crate::style::Look::of_resumption(kind).ink.color();
            let hits = picture
                .pixels()
                .iter()
                .filter(|p| (p.red(), p.green(), p.blue()) == (c.0, c.1, c.2))
                .count();
            assert!(hits > 20, "{kind}: {hits} pixels");
        }
    }

    #[test]
    fn every_character_of_figures_is_in_the_fonts() {
        for bytes in [Family::Sans, Family::Serif].into_iter().flat_map(fonts) {
            let face = face(bytes).unwrap();
            for c in "aZ09 µ−–’%(),.:;/=≥≤×°ξδΣ".chars() {
                assert!(face.glyph_index(c).is_some(), "{c}");
            }
        }
    }

    #[test]
    fn scales_that_make_no_picture_are_refused() {
        let xeon = Profile::builtin("xeon-l7455").unwrap();
        let figure = crate::cpmd::figure("f", &xeon, &[], &crate::cpmd::FIG2)
            .unwrap()
            .unwrap();
        for scale in [0.0, -1.0, f64::NAN, 1e9] {
            assert!(figure.to_png(scale).is_err(), "{scale}");
        }
    }
}
