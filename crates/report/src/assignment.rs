//! Who runs where: a bar for each cluster, a piece for each task, how much of it is overhead, and
//! which overhead.

use crate::sheet::{BOLD, Backend, Shape, Sheet, cut, tenths, text_width, wrapped};
use crate::style::{Ink, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::{Error, Overhead, Result};
use parts::{STRIP, draw_legend, draw_parts, legend_rows, shown_parts};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, TextStyle};
use std::convert::Infallible;
use std::rc::Rc;

/// A task's part of a cluster, as utilizations.
#[derive(Clone, PartialEq, Debug)]
pub struct Share {
    /// The task.
    pub name: String,
    /// Its own utilization.
    pub utilization: f64,
    /// What overheads add, and what is reserved beyond.
    pub overhead: f64,
    /// Which overheads these are, in parts of its inflated WCET; empty where it is not known.
    pub parts: Vec<(Overhead, f64)>,
}

/// A cluster with its tasks.
#[derive(Clone, PartialEq, Debug)]
pub struct Bar {
    /// Its processors, as a list: `0`, `0-3,8`.
    pub processors: String,
    /// How many they are.
    pub capacity: u32,
    /// Its tasks.
    pub shares: Vec<Share>,
}

mod parts;

/// The most bars; more do not fit on a page, and the caption says how many are missing.
const MOST: usize = 48;
const WIDTH: f64 = 560.0;
const ROW: f64 = 30.0;
/// Where bars begin, below a legend of one line.
const TOP: f64 = 58.0;
/// Height of a line of the legend.
const LEGEND: f64 = 18.0;
/// Height of a line of names below a bar.
const LINE: f64 = 14.0;
/// The widest name of a bar.
const LABEL: f64 = 200.0;

type Area = DrawingArea<Backend, Shift>;
type DrawError = DrawingAreaErrorKind<Infallible>;

/// Draws the bars, each as long as its cluster is wide, so that clusters of different sizes
/// compare.
///
/// Each piece says what it is where somebody points at it. A piece that is too narrow for its name
/// has it below the bar.
///
/// # Errors
/// plotters refuses (nothing known makes it).
pub fn figure(id: &str, title: &str, bars: &[Bar]) -> Result<Figure> {
    let shown = &bars[..bars.len().min(MOST)];
    let layout = Layout::of(shown);
    let height = layout.end() + 34.0;
    let sheet = Rc::new(Sheet::default());
    let root = Backend::new(Rc::clone(&sheet), WIDTH, height).into_drawing_area();
    draw(&root, &sheet, title, shown, &layout)
        .map_err(|e| Error::new(format!("the figure `{id}` cannot be drawn: {e}")))?;
    let mut caption = "Each bar is one cluster of processors, which schedules its tasks by itself; a full bar is all of its \
                       time. The orange end of a piece is what overheads add to the task."
        .to_owned();
    if !layout.kinds.is_empty() {
        caption += " The strip below a piece divides that among the overheads, in the order of the legend; what is \
                    reserved beyond has no part in it.";
    }
    if layout.below.iter().any(|lines| !lines.is_empty()) {
        caption += " Below a bar stand the names of pieces that are too narrow for them.";
    }
    if bars.len() > shown.len() {
        caption += &format!(
            " The first {} of {} bars are drawn.",
            shown.len(),
            bars.len()
        );
    }
    Ok(Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        description: describe(shown),
        caption,
        width: WIDTH,
        height,
        shapes: sheet.take(),
    })
}

/// Where bars lie, in pixels.
struct Layout {
    /// Where bars begin.
    left: f64,
    /// Length of a bar that is full.
    full: f64,
    /// The upper edge of each bar, and where the next one would begin.
    tops: Vec<f64>,
    /// Lines below each bar: the names that have no room in their pieces.
    below: Vec<Vec<String>>,
    /// The overheads that any piece has a part of.
    kinds: Vec<Overhead>,
}

impl Layout {
    fn of(bars: &[Bar]) -> Layout {
        let names = bars.iter().map(|b| text_width(&name(b), SMALL));
        let left = 16.0 + names.fold(0.0, f64::max).min(LABEL);
        // Bars may hold more than their processors can give: the scale makes room for the fullest.
        let fullest = bars.iter().map(load).fold(1.0, f64::max);
        let full = (WIDTH - 56.0 - left) / fullest;
        let kinds = shown_parts(bars);
        let strip = if kinds.is_empty() { 0.0 } else { STRIP };
        let mut top = TOP + LEGEND * (legend_rows(&kinds) - 1) as f64;
        let mut layout = Layout {
            left,
            full,
            tops: vec![top],
            below: Vec::new(),
            kinds,
        };
        for bar in bars {
            let narrow = bar.shares.iter().filter(|s| !layout.has_room(bar, s));
            let names: Vec<&str> = narrow.map(|s| s.name.as_str()).collect();
            let text = match names.is_empty() {
                true => String::new(),
                false => format!("narrow, from the left: {}", names.join(", ")),
            };
            let lines: Vec<String> = wrapped(&text, SMALL - 1.0, WIDTH - left - 16.0)
                .iter()
                .map(|line| cut(line, SMALL - 1.0, WIDTH - left - 16.0))
                .collect();
            top += ROW + strip + LINE * lines.len() as f64;
            layout.tops.push(top);
            layout.below.push(lines);
        }
        layout
    }

    /// Where the last bar ends.
    fn end(&self) -> f64 {
        self.tops.last().copied().unwrap_or(TOP)
    }

    /// Returns whether a piece is wide enough for its name.
    fn has_room(&self, bar: &Bar, share: &Share) -> bool {
        let own = share.utilization / f64::from(bar.capacity.max(1));
        text_width(&share.name, SMALL) + 6.0 < own * self.full
    }
}

/// What a piece says where somebody points at it.
fn tip(share: &Share) -> String {
    let mut text = format!(
        "{}: utilization {}",
        share.name,
        words::three(share.utilization)
    );
    if share.overhead > 0.0 {
        text += &format!(", and {} of overheads", words::three(share.overhead));
    }
    if !share.parts.is_empty() {
        let parts = share.parts.iter();
        let parts: Vec<String> = parts
            .map(|(kind, part)| format!("{} {}", parts::name(*kind), parts::percent(*part)))
            .collect();
        text += &format!("; of its inflated WCET {}", words::list(&parts));
    }
    text
}

fn load(bar: &Bar) -> f64 {
    bar.shares
        .iter()
        .map(|s| s.utilization + s.overhead)
        .sum::<f64>()
        / f64::from(bar.capacity.max(1))
}

fn name(bar: &Bar) -> String {
    let one = bar.capacity == 1;
    format!(
        "{} {}",
        if one { "processor" } else { "processors" },
        bar.processors.replace('-', "–")
    )
}

fn describe(bars: &[Bar]) -> String {
    let all: Vec<String> = bars
        .iter()
        .map(|bar| {
            let names: Vec<&str> = bar.shares.iter().map(|s| s.name.as_str()).collect();
            let tasks = if names.is_empty() {
                "nothing".to_owned()
            } else {
                words::list(&names)
            };
            format!(
                "{} run{} {tasks}, {} full.",
                words::capital(&name(bar)),
                if bar.capacity == 1 { "s" } else { "" },
                percent(load(bar))
            )
        })
        .collect();
    all.join(" ")
}

fn percent(share: f64) -> String {
    format!("{} %", words::plain((share * 100.0).round()))
}

fn text(size: f64, ink: Ink, h: HPos) -> TextStyle<'static> {
    let mut style = TextStyle::from(("sans-serif", size * crate::sheet::TENTHS).into_font());
    style.color = ink.color().to_backend_color();
    style.pos = Pos::new(h, VPos::Center);
    style
}

/// One bar with its name, the pieces of its tasks and, below it, the names that have no room.
fn draw_bar(
    root: &Area,
    sheet: &Sheet,
    row: usize,
    bar: &Bar,
    layout: &Layout,
) -> std::result::Result<(), DrawError> {
    let (left, full) = (layout.left, layout.full);
    let (top, bottom) = (layout.tops[row], layout.tops[row] + ROW - 8.0);
    let middle = tenths((top + bottom) / 2.0);
    root.draw_text(
        &cut(&name(bar), SMALL, LABEL),
        &text(SMALL, Ink::Black, HPos::Right),
        (tenths(left - 8.0), middle),
    )?;
    let piece = |from: f64, to: f64, style: plotters::style::RGBAColor| {
        let corners = [
            (tenths(left + from * full), tenths(top)),
            (tenths(left + to * full), tenths(bottom)),
        ];
        root.draw(&Rectangle::new(corners, style.filled()))
    };
    piece(0.0, 1.0, Ink::Wash.color().mix(1.0))?;
    let mut at = 0.0;
    for share in &bar.shares {
        let scale = f64::from(bar.capacity.max(1));
        let (own, all) = (
            share.utilization / scale,
            (share.utilization + share.overhead) / scale,
        );
        piece(at, at + own, Ink::Sky.color().mix(0.35))?;
        piece(at + own, at + all, Ink::Vermilion.color().mix(1.0))?;
        // Beside the piece, not on its end, which may be thin.
        let edge = tenths(left + (at + all) * full + 0.5);
        let rule = Ink::Paper.color().stroke_width(tenths(1.0) as u32);
        root.draw(&PathElement::new(
            vec![(edge, tenths(top)), (edge, tenths(bottom))],
            rule,
        ))?;
        if layout.has_room(bar, share) {
            let place = tenths(left + (at + own / 2.0) * full);
            root.draw_text(
                &share.name,
                &text(SMALL, Ink::Black, HPos::Center),
                (place, middle),
            )?;
        }
        let corner = |part: f64, y: f64| (tenths(left + part * full), tenths(y));
        sheet.push(Shape::Tip {
            points: vec![
                corner(at, top),
                corner(at + all, top),
                corner(at + all, bottom),
                corner(at, bottom),
            ],
            text: tip(share),
        });
        let place = (left + at * full, left + (at + all) * full);
        draw_parts(root, sheet, share, place, bottom + 1.0)?;
        at += all;
    }
    let strip = if layout.kinds.is_empty() { 0.0 } else { STRIP };
    for (line, names) in layout.below[row].iter().enumerate() {
        let y = bottom + strip + LINE * (line as f64 + 0.5) + 2.0;
        let style = text(SMALL - 1.0, Ink::Gray, HPos::Left);
        root.draw_text(names, &style, (tenths(left), tenths(y)))?;
    }
    let ink = if load(bar) > 1.0 {
        Ink::Vermilion
    } else {
        Ink::Black
    };
    root.draw_text(
        &percent(load(bar)),
        &text(SMALL, ink, HPos::Left),
        (tenths(left + at.max(1.0) * full + 6.0), middle),
    )?;
    Ok(())
}

fn draw(
    root: &Area,
    sheet: &Sheet,
    title: &str,
    bars: &[Bar],
    layout: &Layout,
) -> std::result::Result<(), DrawError> {
    root.fill(&Ink::Paper.color())?;
    let mut bold = text(TEXT, Ink::Black, HPos::Left);
    bold.font = bold.font.style(FontStyle::Bold);
    let title = cut(title, TEXT * BOLD, WIDTH - 16.0);
    root.draw_text(&title, &bold, (tenths(8.0), tenths(14.0)))?;
    draw_legend(root, &layout.kinds)?;
    for (row, bar) in bars.iter().enumerate() {
        draw_bar(root, sheet, row, bar, layout)?;
    }
    // Where a bar is full.
    let (begin, end) = (layout.tops[0], layout.end());
    sheet.dash("4 3");
    let (x, bottom) = (tenths(layout.left + layout.full), tenths(end + 6.0));
    let rule = Ink::Gray.color().stroke_width(tenths(1.0) as u32);
    root.draw(&PathElement::new(
        vec![(x, tenths(begin - 4.0)), (x, bottom)],
        rule,
    ))?;
    sheet.dash("");
    root.draw_text(
        "all of its time",
        &text(SMALL, Ink::Gray, HPos::Right),
        (x, tenths(end + 16.0)),
    )?;
    root.present()
}

#[cfg(test)]
mod tests;
