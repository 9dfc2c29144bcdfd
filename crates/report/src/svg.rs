//! Figures, and how they are written as SVG.
//!
//! Every element carries a plain color, for programs that know no style sheets, and the class of
//! its ink, for those that do: that is how one figure is light on paper and dark on a dark screen.

use crate::sheet::{Paint, Place, Shape, Side};
use crate::style::{Ink, Print, dark_rules};
use std::fmt::Write;

/// A finished figure: what to say about it, and what is on it.
#[derive(Clone, PartialEq, Debug)]
pub struct Figure {
    /// Names it in a file and in a page; letters, digits and `-`.
    pub id: String,
    /// What it shows, as a short title.
    pub title: String,
    /// What one sees in it, for those who cannot.
    pub description: String,
    /// What one must know to read it: stands beneath it.
    pub caption: String,
    /// Width in pixels.
    pub width: f64,
    /// Height in pixels.
    pub height: f64,
    /// The shapes, from the back to the front.
    pub shapes: Vec<Shape>,
}

impl Figure {
    /// The SVG as a file of its own, light on paper and dark on a dark screen.
    pub fn to_svg(&self) -> String {
        self.to_svg_as(&Print::default())
    }

    /// The same in another size and family of fonts.
    pub fn to_svg_as(&self, print: &Print) -> String {
        self.write(&format!("<style>{}</style>\n", dark_rules()), print)
    }

    /// The SVG to stand within a page that has [`dark_rules`] in its own style sheet.
    pub fn to_inline_svg(&self) -> String {
        self.write("", &Print::default())
    }

    fn write(&self, style: &str, print: &Print) -> String {
        let (id, w, h) = (escape(&self.id), self.width, self.height);
        let size = |pixels: f64| (pixels * print.scale * 1000.0).round() / 1000.0;
        let (wide, high, fonts) = (size(w), size(h), print.family.fonts());
        let mut svg = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {w} {h}\" width=\"{wide}\" height=\"{high}\" role=\"img\" \
             aria-labelledby=\"{id}-title {id}-desc\" font-family=\"{fonts}\" class=\"figure\">\n\
             <title id=\"{id}-title\">{}</title>\n<desc id=\"{id}-desc\">{}</desc>\n{style}",
            escape(&self.title),
            escape(&self.description)
        );
        for shape in &self.shapes {
            write_shape(&mut svg, shape);
        }
        svg + "</svg>\n"
    }
}

/// Line width of the crosses in a cloud, in tenths of a pixel.
pub const CROSS: u32 = 8;

/// A coordinate as short as can be: at most one decimal.
fn px(tenths: i32) -> String {
    let sign = if tenths < 0 { "-" } else { "" };
    match (tenths.unsigned_abs() / 10, tenths.unsigned_abs() % 10) {
        (whole, 0) => format!("{sign}{whole}"),
        (whole, tenth) => format!("{sign}{whole}.{tenth}"),
    }
}

fn places(points: &[Place]) -> String {
    let all: Vec<String> = points
        .iter()
        .map(|(x, y)| format!("{},{}", px(*x), px(*y)))
        .collect();
    all.join(" ")
}

fn hex(ink: Ink) -> String {
    let c = ink.color();
    format!("#{:02x}{:02x}{:02x}", c.0, c.1, c.2)
}

fn filled(p: Paint) -> String {
    format!(
        "class=\"{}f\" fill=\"{}\"{}",
        p.ink.class(),
        hex(p.ink),
        opacity(p)
    )
}

fn stroked(p: Paint, width: u32) -> String {
    format!(
        "class=\"{}s\" fill=\"none\" stroke=\"{}\" stroke-width=\"{}\"{}",
        p.ink.class(),
        hex(p.ink),
        px(width as i32),
        opacity(p)
    )
}

fn opacity(p: Paint) -> String {
    if p.opacity < 1.0 {
        format!(" opacity=\"{}\"", (p.opacity * 100.0).round() / 100.0)
    } else {
        String::new()
    }
}

/// Writing to a string cannot fail.
fn write_shape(svg: &mut String, shape: &Shape) {
    let _ = match shape {
        Shape::Line {
            points,
            paint,
            width,
            dash,
        } => {
            let dash = if dash.is_empty() {
                String::new()
            } else {
                format!(" stroke-dasharray=\"{dash}\"")
            };
            let (points, paint) = (places(points), stroked(*paint, *width));
            writeln!(
                svg,
                "<polyline points=\"{points}\" {paint}{dash} stroke-linejoin=\"round\"/>"
            )
        }
        Shape::Polygon { points, paint } => {
            writeln!(
                svg,
                "<polygon points=\"{}\" {}/>",
                places(points),
                filled(*paint)
            )
        }
        Shape::Tip { points, text } => writeln!(
            svg,
            "<polygon points=\"{}\" fill=\"#fff\" fill-opacity=\"0\"><title>{}</title></polygon>",
            places(points),
            escape(text)
        ),
        Shape::Circle {
            center,
            radius,
            paint,
            outline,
        } => {
            let paint = match outline {
                None => filled(*paint),
                Some(width) => stroked(*paint, *width),
            };
            let (x, y, r) = (px(center.0), px(center.1), px(*radius as i32));
            writeln!(svg, "<circle cx=\"{x}\" cy=\"{y}\" r=\"{r}\" {paint}/>")
        }
        Shape::Dots {
            crosses,
            points,
            radius,
            paint,
        } => write_dots(svg, *crosses, points, *radius, *paint),
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
            let place = text_attributes(*at, *side, *bold, *upwards);
            let text = escape(text);
            if *halo {
                let _ = write_halo(svg, &place, *size, &text);
            }
            writeln!(
                svg,
                "<text {place} font-size=\"{size}\" class=\"{}f\" fill=\"{}\">{text}</text>",
                ink.class(),
                hex(*ink)
            )
        }
    };
}

/// Writes all dots of a cloud as one path: dots are lines of no length with round ends, a fifth of
/// the bytes of circles.
fn write_dots(
    svg: &mut String,
    crosses: bool,
    points: &[Place],
    radius: u32,
    paint: Paint,
) -> std::fmt::Result {
    let (r, d) = (radius as i32, px(2 * radius as i32));
    let path: String = if crosses {
        points
            .iter()
            .map(|(x, y)| format!("M{} {}l{d} {d}m0-{d}l-{d} {d}", px(x - r), px(y - r)))
            .collect()
    } else {
        points
            .iter()
            .map(|(x, y)| format!("M{} {}h0", px(*x), px(*y)))
            .collect()
    };
    let width = if crosses { CROSS } else { 2 * radius };
    // A class of their own: thin dots need more of their ink on dark paper.
    let paint = stroked(paint, width).replacen("class=\"", "class=\"dots ", 1);
    writeln!(svg, "<path d=\"{path}\" {paint} stroke-linecap=\"round\"/>")
}

/// The attributes of a text that say where it stands, and whether it is bold.
fn text_attributes(at: Place, side: Side, bold: bool, upwards: bool) -> String {
    let mut place = if upwards {
        format!(
            "transform=\"translate({} {}) rotate(-90)\"",
            px(at.0),
            px(at.1)
        )
    } else {
        format!("x=\"{}\" y=\"{}\"", px(at.0), px(at.1))
    };
    place += match side {
        Side::Start => "",
        Side::Middle => " text-anchor=\"middle\"",
        Side::End => " text-anchor=\"end\"",
    };
    if bold {
        place += " font-weight=\"600\"";
    }
    place
}

/// Writes a copy of a text in paper, to lie beneath it; `paint-order` is not known to every
/// program.
fn write_halo(svg: &mut String, place: &str, size: f64, text: &str) -> std::fmt::Result {
    let paper = Ink::Paper;
    writeln!(
        svg,
        "<text aria-hidden=\"true\" {place} font-size=\"{size}\" class=\"{c}f {c}s\" fill=\"{p}\" \
         stroke=\"{p}\" stroke-width=\"4\" stroke-linejoin=\"round\">{text}</text>",
        c = paper.class(),
        p = hex(paper)
    )
}

/// Text with what XML reserves replaced. Line ends are spaces; other characters that would not be
/// seen, or that XML has no place for, are shown escaped.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c if model::shown::is_hidden(c) => out.extend(c.escape_default()),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coordinates_are_short_and_exact() {
        let all: Vec<String> = [0, 5, 10, 123, -5, -120].map(px).to_vec();
        assert_eq!(all, ["0", "0.5", "1", "12.3", "-0.5", "-12"]);
    }

    #[test]
    fn names_from_outside_cannot_break_out_of_the_markup() {
        assert_eq!(
            escape("a<b> & \"c\"\u{1}\u{1b}[2J\u{202e}\n"),
            "a&lt;b&gt; &amp; &quot;c&quot;\\u{1}\\u{1b}[2J\\u{202e} "
        );
    }
}
