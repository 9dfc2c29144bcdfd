//! What is on a figure: a list of shapes, and the drawing backend of plotters that records them.
//!
//! plotters counts in whole pixels; here one of its pixels is a tenth of one of the figure's, so
//! that lines land where they belong. Shapes name inks, not colors; `svg`, `png` and `pdf` write the
//! list.

use crate::style::Ink;
use plotters_backend::text_anchor::{HPos, VPos};
use plotters_backend::{
    BackendColor, BackendCoord, BackendStyle, BackendTextStyle, DrawingBackend, DrawingErrorKind,
    FontStyle, FontTransform,
};
use std::cell::{Cell, RefCell};
use std::convert::Infallible;
use std::rc::Rc;

/// plotters' pixels in one pixel of the figure.
pub const TENTHS: f64 = 10.0;

/// Pixels of the figure as plotters counts them.
pub fn tenths(px: f64) -> i32 {
    (px * TENTHS).round() as i32
}

/// A place on the sheet, in tenths of a pixel from the upper left corner.
pub type Place = (i32, i32);

/// On which side of its place a text stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It begins there.
    Start,
    /// It is centered there.
    Middle,
    /// It ends there.
    End,
}

/// How a shape is painted.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Paint {
    /// The color.
    pub ink: Ink,
    /// From 0, invisible, to 1.
    pub opacity: f64,
}

/// One shape. Lengths are tenths of a pixel.
#[derive(Clone, PartialEq, Debug)]
pub enum Shape {
    /// Lines from point to point.
    Line {
        /// The points.
        points: Vec<Place>,
        /// The ink.
        paint: Paint,
        /// How thick.
        width: u32,
        /// SVG `stroke-dasharray` in pixels; empty: solid.
        dash: &'static str,
    },
    /// A filled polygon.
    Polygon {
        /// Its corners.
        points: Vec<Place>,
        /// The ink.
        paint: Paint,
    },
    /// A circle, filled or as a line of this width.
    Circle {
        /// The center.
        center: Place,
        /// The radius.
        radius: u32,
        /// The ink.
        paint: Paint,
        /// `None`: filled.
        outline: Option<u32>,
    },
    /// Many small round dots, or crosses in thin lines.
    Dots {
        /// Crosses?
        crosses: bool,
        /// Their centers.
        points: Vec<Place>,
        /// Their radius.
        radius: u32,
        /// The ink. Dots of one shape that lie upon each other do not grow darker.
        paint: Paint,
    },
    /// Says what a part of the figure is where somebody points at it; it is not seen.
    Tip {
        /// The corners of the part.
        points: Vec<Place>,
        /// What it is.
        text: String,
    },
    /// A line of text.
    Text {
        /// What it says.
        text: String,
        /// Where its base line begins, centers or ends; turned text turns about it.
        at: Place,
        /// Which of the three.
        side: Side,
        /// Height of the font in pixels.
        size: f64,
        /// The ink.
        ink: Ink,
        /// Bold?
        bold: bool,
        /// Turned to read upwards?
        upwards: bool,
        /// Surrounded with paper, to be read over lines?
        halo: bool,
    },
}

/// The sheet, shared by the backend and who draws.
#[derive(Default)]
pub struct Sheet {
    shapes: RefCell<Vec<Shape>>,
    dash: Cell<&'static str>,
    halo: Cell<bool>,
}

impl Sheet {
    /// Draws lines with these dashes from now on; empty: solid.
    pub fn dash(&self, dash: &'static str) {
        self.dash.set(dash);
    }
    /// Surrounds text with paper from now on, or no longer.
    pub fn halo(&self, on: bool) {
        self.halo.set(on);
    }
    /// Takes what was drawn.
    pub fn take(&self) -> Vec<Shape> {
        self.shapes.take()
    }
    /// Adds a shape that plotters does not know.
    pub fn push(&self, shape: Shape) {
        self.shapes.borrow_mut().push(shape);
    }
}

/// The backend: plotters draws, shapes are recorded.
pub struct Backend {
    sheet: Rc<Sheet>,
    size: (u32, u32),
}

impl Backend {
    /// A sheet of `width` by `height` pixels of the figure.
    pub fn new(sheet: Rc<Sheet>, width: f64, height: f64) -> Self {
        Backend {
            sheet,
            size: (tenths(width) as u32, tenths(height) as u32),
        }
    }
}

/// Figures draw with the colors of inks only; another color counts as black.
fn paint(color: BackendColor) -> Paint {
    Paint {
        ink: Ink::of(color.rgb).unwrap_or(Ink::Black),
        opacity: color.alpha,
    }
}

/// About how wide a text is, in pixels: good enough to place legends and to keep labels apart.
pub fn text_width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '.' | ',' | ':' | ';' | '|' | '\'' | '!' | ' ' => 0.32,
            'f' | 't' | 'r' | '(' | ')' | '-' | '[' | ']' | '/' => 0.42,
            'm' | 'w' | 'M' | 'W' | '%' => 0.95,
            c if c.is_uppercase() => 0.70,
            _ => 0.62,
        })
        .sum();
    em * size
}

/// Bold letters are about so much wider than those that [`text_width`] knows.
pub const BOLD: f64 = 1.12;

/// The text, or as much of it as has room in `width` pixels, with three dots.
pub fn cut(text: &str, size: f64, width: f64) -> String {
    if text_width(text, size) <= width {
        return text.to_owned();
    }
    let mut short = text.to_owned();
    while !short.is_empty() && text_width(&short, size) + size > width {
        short.pop();
    }
    short.trim_end().to_owned() + "..."
}

/// The text in lines that are no wider than `width` pixels; a longer word has a line of its own.
pub fn wrapped(text: &str, size: f64, width: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if text_width(&format!("{line} {word}"), size) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

type Drawn = Result<(), DrawingErrorKind<Infallible>>;

impl DrawingBackend for Backend {
    type ErrorType = Infallible;

    fn get_size(&self) -> (u32, u32) {
        self.size
    }
    fn ensure_prepared(&mut self) -> Drawn {
        Ok(())
    }
    fn present(&mut self) -> Drawn {
        Ok(())
    }
    fn draw_pixel(&mut self, point: BackendCoord, color: BackendColor) -> Drawn {
        self.draw_rect(point, (point.0 + 1, point.1 + 1), &color, true)
    }
    fn draw_line<S: BackendStyle>(
        &mut self,
        from: BackendCoord,
        to: BackendCoord,
        style: &S,
    ) -> Drawn {
        self.draw_path([from, to], style)
    }
    fn draw_rect<S: BackendStyle>(
        &mut self,
        (left, top): BackendCoord,
        (right, bottom): BackendCoord,
        style: &S,
        fill: bool,
    ) -> Drawn {
        let mut corners = vec![(left, top), (right, top), (right, bottom), (left, bottom)];
        if fill {
            return self.fill_polygon(corners, style);
        }
        corners.push((left, top));
        self.draw_path(corners, style)
    }
    fn draw_path<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        path: I,
        style: &S,
    ) -> Drawn {
        let points: Vec<Place> = path.into_iter().collect();
        if points.len() > 1 {
            self.sheet.push(Shape::Line {
                points,
                paint: paint(style.color()),
                width: style.stroke_width(),
                dash: self.sheet.dash.get(),
            });
        }
        Ok(())
    }
    fn draw_circle<S: BackendStyle>(
        &mut self,
        center: BackendCoord,
        radius: u32,
        style: &S,
        fill: bool,
    ) -> Drawn {
        self.sheet.push(Shape::Circle {
            center,
            radius,
            paint: paint(style.color()),
            outline: (!fill).then(|| style.stroke_width()),
        });
        Ok(())
    }
    fn fill_polygon<S: BackendStyle, I: IntoIterator<Item = BackendCoord>>(
        &mut self,
        vert: I,
        style: &S,
    ) -> Drawn {
        self.sheet.push(Shape::Polygon {
            points: vert.into_iter().collect(),
            paint: paint(style.color()),
        });
        Ok(())
    }
    fn draw_text<T: BackendTextStyle>(
        &mut self,
        text: &str,
        style: &T,
        pos: BackendCoord,
    ) -> Drawn {
        let size = style.size() / TENTHS;
        let anchor = style.anchor();
        // From where the text is anchored down to its base line; the same in every renderer, unlike
        // SVG's `dominant-baseline`.
        let drop = tenths(
            size * match anchor.v_pos {
                VPos::Top => 0.76,
                VPos::Center => 0.35,
                VPos::Bottom => -0.22,
            },
        );
        let upwards = matches!(style.transform(), FontTransform::Rotate270);
        self.sheet.push(Shape::Text {
            text: text.to_owned(),
            at: if upwards {
                (pos.0 + drop, pos.1)
            } else {
                (pos.0, pos.1 + drop)
            },
            side: match anchor.h_pos {
                HPos::Left => Side::Start,
                HPos::Center => Side::Middle,
                HPos::Right => Side::End,
            },
            size,
            ink: paint(style.color()).ink,
            bold: matches!(style.style(), FontStyle::Bold),
            upwards,
            halo: self.sheet.halo.get(),
        });
        Ok(())
    }
    fn estimate_text_size<T: BackendTextStyle>(
        &self,
        text: &str,
        style: &T,
    ) -> Result<(u32, u32), DrawingErrorKind<Infallible>> {
        let width = text_width(text, style.size());
        Ok((width.round() as u32, style.size().round() as u32))
    }
}
