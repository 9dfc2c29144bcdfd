//! How far something can be stretched: a bar for each thing that may grow.

use crate::sheet::{BOLD, Backend, Shape, Sheet, cut, tenths, text_width};
use crate::style::{Ink, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::{Error, Result};
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::element::{PathElement, Rectangle};
use plotters::style::text_anchor::{HPos, Pos, VPos};
use plotters::style::{Color, FontStyle, IntoFont, TextStyle};
use std::convert::Infallible;
use std::rc::Rc;

/// Something that may grow.
#[derive(Clone, PartialEq, Debug)]
pub struct Room {
    /// What it is.
    pub name: String,
    /// By so many percent; below zero: it has to shrink.
    pub percent: f64,
    /// Is more possible?
    pub at_least: bool,
    /// In words, for those who point at the bar: from where to where.
    pub tip: String,
    /// Is it what the picture is about?
    pub is_first: bool,
}

const WIDTH: f64 = 560.0;
const ROW: f64 = 24.0;
const TOP: f64 = 34.0;
/// The widest name of a bar.
const LABEL: f64 = 190.0;
/// Room for the number behind a bar.
const NUMBER: f64 = 84.0;
/// The most bars; the caption says how many are missing.
const MOST: usize = 40;
/// Bars end here, and their numbers say how far they would go.
const LONGEST: f64 = 200.0;
/// A picture shows at least so much, so that what has no room looks like it.
const SHORTEST: f64 = 10.0;

type Area = DrawingArea<Backend, Shift>;
type DrawError = DrawingAreaErrorKind<Infallible>;

/// Draws the bars, one below the other, in percent.
///
/// # Errors
/// plotters refuses (nothing known makes it).
pub fn figure(id: &str, title: &str, caption: &str, rooms: &[Room]) -> Result<Figure> {
    let shown = &rooms[..rooms.len().min(MOST)];
    let height = TOP + ROW * shown.len() as f64 + 34.0;
    let sheet = Rc::new(Sheet::default());
    let root = Backend::new(Rc::clone(&sheet), WIDTH, height).into_drawing_area();
    let layout = Layout::of(shown);
    draw(&root, &sheet, title, shown, &layout)
        .map_err(|e| Error::new(format!("the figure `{id}` cannot be drawn: {e}")))?;
    let mut caption = caption.to_owned();
    if shown.iter().any(|room| room.percent > layout.end) {
        caption += &format!(
            " Bars with an open end go on beyond {} %.",
            words::plain(layout.end)
        );
    }
    if rooms.len() > shown.len() {
        caption += &format!(" The first {} of {} are drawn.", shown.len(), rooms.len());
    }
    let told: Vec<String> = shown
        .iter()
        .map(|room| format!("{}: {}.", words::capital(&room.name), number(room)))
        .collect();
    Ok(Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        description: told.join(" "),
        caption,
        width: WIDTH,
        height,
        shapes: sheet.take(),
    })
}

/// `+20.2 %`, with a mark where more is possible.
fn number(room: &Room) -> String {
    let sign = if room.percent < 0.0 { "−" } else { "+" };
    let least = if room.at_least { "≥ " } else { "" };
    let size = room.percent.abs();
    let size = match size < 1_000.0 {
        true => format!("{size:.1}"),
        false => words::grouped(size.round() as u64),
    };
    format!("{least}{sign}{size} %")
}

/// Where bars lie, in pixels.
struct Layout {
    left: f64,
    /// The percent at the right end.
    end: f64,
    /// Pixels a percent.
    scale: f64,
}

impl Layout {
    fn of(rooms: &[Room]) -> Layout {
        let names = rooms.iter().map(|room| text_width(&room.name, SMALL));
        let left = 16.0 + names.fold(0.0, f64::max).min(LABEL);
        let most = rooms.iter().map(|room| room.percent).fold(0.0, f64::max);
        let steps = [SHORTEST, 20.0, 50.0, 100.0, LONGEST];
        let end = steps
            .into_iter()
            .find(|step| *step >= most)
            .unwrap_or(LONGEST);
        Layout {
            left,
            end,
            scale: (WIDTH - NUMBER - left) / end,
        }
    }

    fn x(&self, percent: f64) -> f64 {
        self.left + percent.clamp(0.0, self.end) * self.scale
    }
}

fn text(size: f64, ink: Ink, h: HPos) -> TextStyle<'static> {
    let mut style = TextStyle::from(("sans-serif", size * crate::sheet::TENTHS).into_font());
    style.color = ink.color().to_backend_color();
    style.pos = Pos::new(h, VPos::Center);
    style
}

fn draw(
    root: &Area,
    sheet: &Sheet,
    title: &str,
    rooms: &[Room],
    layout: &Layout,
) -> std::result::Result<(), DrawError> {
    root.fill(&Ink::Paper.color())?;
    let mut bold = text(TEXT, Ink::Black, HPos::Left);
    bold.font = bold.font.style(FontStyle::Bold);
    let title = cut(title, TEXT * BOLD, WIDTH - 16.0);
    root.draw_text(&title, &bold, (tenths(8.0), tenths(14.0)))?;
    let bottom = TOP + ROW * rooms.len() as f64;
    for tick in 0..=4 {
        let percent = layout.end * f64::from(tick) / 4.0;
        let x = tenths(layout.x(percent));
        let ink = if tick == 0 { Ink::Gray } else { Ink::Wash };
        let rule = ink.color().stroke_width(tenths(1.0) as u32);
        root.draw(&PathElement::new(
            vec![(x, tenths(TOP - 4.0)), (x, tenths(bottom + 4.0))],
            rule,
        ))?;
        root.draw_text(
            &format!("{} %", words::plain(percent)),
            &text(SMALL, Ink::Gray, HPos::Center),
            (x, tenths(bottom + 16.0)),
        )?;
    }
    for (place, room) in rooms.iter().enumerate() {
        draw_room(root, sheet, place, room, layout)?;
    }
    root.present()
}

fn draw_room(
    root: &Area,
    sheet: &Sheet,
    place: usize,
    room: &Room,
    layout: &Layout,
) -> std::result::Result<(), DrawError> {
    let top = TOP + ROW * place as f64 + 4.0;
    let (bottom, middle) = (top + ROW - 8.0, top + (ROW - 8.0) / 2.0);
    root.draw_text(
        &cut(&room.name, SMALL, LABEL),
        &text(SMALL, Ink::Black, HPos::Right),
        (tenths(layout.left - 8.0), tenths(middle)),
    )?;
    let (from, to) = (layout.x(0.0), layout.x(room.percent));
    let (ink, opacity) = match room.is_first {
        true => (Ink::Blue, 0.95),
        false => (Ink::Sky, 0.6),
    };
    let corners = [(tenths(from), tenths(top)), (tenths(to), tenths(bottom))];
    root.draw(&Rectangle::new(corners, ink.color().mix(opacity).filled()))?;
    if room.percent > layout.end {
        // Its end is open: two gaps near it.
        for gap in [10.0, 16.0] {
            let corners = [
                (tenths(to - gap), tenths(top)),
                (tenths(to - gap + 3.0), tenths(bottom)),
            ];
            root.draw(&Rectangle::new(corners, Ink::Paper.color().filled()))?;
        }
    }
    root.draw_text(
        &number(room),
        &text(SMALL, Ink::Black, HPos::Left),
        (tenths(to + 6.0), tenths(middle)),
    )?;
    sheet.push(Shape::Tip {
        points: vec![
            (tenths(from), tenths(top)),
            (tenths(to.max(from + 4.0)), tenths(top)),
            (tenths(to.max(from + 4.0)), tenths(bottom)),
            (tenths(from), tenths(bottom)),
        ],
        text: room.tip.clone(),
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn room(name: &str, percent: f64) -> Room {
        Room {
            name: name.to_owned(),
            percent,
            at_least: false,
            tip: format!("{name} may grow"),
            is_first: name == "all",
        }
    }

    #[test]
    fn the_description_tells_every_number() {
        let more = Room {
            at_least: true,
            ..room("costs", 9_900.0)
        };
        let rooms = [
            room("all", 20.2),
            room("camera", 0.0),
            more,
            room("shorter", -3.0),
        ];
        let figure = figure("r", "Room", "How far.", &rooms).unwrap();
        assert_eq!(
            figure.description,
            "All: +20.2 %. Camera: +0.0 %. Costs: ≥ +9,900 %. Shorter: −3.0 %."
        );
        assert!(
            figure.caption.contains("beyond 200 %"),
            "{}",
            figure.caption
        );
        let svg = figure.to_svg();
        for told in ["≥ +9,900 %", "<title>camera may grow</title>", ">200 %<"] {
            assert!(svg.contains(told), "{told}");
        }
    }

    #[test]
    fn bars_are_as_long_as_their_numbers() {
        let layout = Layout::of(&[room("all", 30.0), room("camera", 12.0)]);
        assert_eq!(layout.end, 50.0);
        let long = |percent| layout.x(percent) - layout.x(0.0);
        assert!((long(30.0) / long(12.0) - 2.5).abs() < 1e-9);
        assert_eq!(long(-4.0), 0.0);
        // Where there is no room at all, a bar of a tenth does not fill the picture.
        assert_eq!(Layout::of(&[room("all", 0.1)]).end, SHORTEST);
        let many: Vec<Room> = (0..50).map(|n| room(&n.to_string(), 1.0)).collect();
        let figure = figure("r", "Room", "", &many).unwrap();
        assert!(
            figure.caption.contains("The first 40 of 50"),
            "{}",
            figure.caption
        );
    }
}
