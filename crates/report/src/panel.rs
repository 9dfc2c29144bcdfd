//! Panels: axes, series and notes as plain data, and how they become a figure.
//!
//! plotters gives coordinates, grid, axes and their labels; marks, error bars and legends are drawn
//! with its drawing area, where we can say exactly where they lie. The legend stands above the
//! data, never on it.

use crate::axis::Axis;
use crate::sheet::{BOLD, Backend, Sheet, tenths, text_width, wrapped};
use crate::style::{Ink, Look, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::{Error, Result};
use plotters::chart::ChartBuilder;
use plotters::coord::Shift;
use plotters::drawing::{DrawingArea, DrawingAreaErrorKind, IntoDrawingArea};
use plotters::style::text_anchor::{HPos, VPos};
use plotters::style::{Color, FontStyle};
use std::convert::Infallible;
use std::rc::Rc;

mod strokes;
use strokes::{CURVE, SAMPLE, at, line, mark, stroke, text};

mod frame;
mod note;
use frame::Frame;

/// One thing in a panel, in the units of its axes. Drawn in order.
#[derive(Clone, PartialEq, Debug)]
pub enum Layer {
    /// A line from point to point.
    Curve {
        /// How the series looks.
        look: Look,
        /// The points, ascending.
        points: Vec<(f64, f64)>,
        /// Pixels to the right, to keep series that lie upon each other apart.
        shift: f64,
    },
    /// A light area between a low and a high end, such as an interval of confidence.
    Band {
        /// How the series looks.
        look: Look,
        /// Position, low end and high end, ascending by position.
        ends: Vec<(f64, f64, f64)>,
    },
    /// A marker on each point. What lies at or below the floor of a logarithmic axis gets a hollow
    /// tip-down triangle.
    Marks {
        /// How the series looks.
        look: Look,
        /// The points.
        points: Vec<(f64, f64)>,
        /// Pixels to the right.
        shift: f64,
    },
    /// Error bars: position, low end, high end. An end outside of the axis has no cap.
    Whiskers {
        /// How the series looks.
        look: Look,
        /// The bars.
        bars: Vec<(f64, f64, f64)>,
        /// Pixels to the right.
        shift: f64,
    },
    /// Small dots, or small crosses for what was discarded.
    Cloud {
        /// Their color.
        ink: Ink,
        /// Where they lie.
        points: Vec<(f64, f64)>,
        /// Crosses instead of dots.
        crosses: bool,
    },
    /// A line across the panel at a value of the x axis, named at its top.
    Upright {
        /// Where.
        at: f64,
        /// What it means.
        label: String,
    },
    /// A dashed line across the panel at a value of the y axis, named above its right end.
    Level {
        /// Where.
        at: f64,
        /// What it means.
        label: String,
        /// In which ink.
        ink: Ink,
    },
    /// A word to the right of a point.
    Label {
        /// The point.
        at: (f64, f64),
        /// What to say.
        text: String,
    },
    /// A ring around a point with a note beside it.
    Note {
        /// The point.
        at: (f64, f64),
        /// What to say, line by line.
        lines: Vec<String>,
    },
}

/// A legend's entry.
#[derive(Clone, PartialEq, Debug)]
pub struct Entry {
    /// How the series looks.
    pub look: Look,
    /// What it is.
    pub name: String,
}

/// One pair of axes with what lies between them.
#[derive(Clone, PartialEq, Debug)]
pub struct Panel {
    /// Stands above it; may be empty.
    pub title: String,
    /// What one sees in it, in a sentence, for those who cannot; may be empty.
    pub description: String,
    /// The x axis.
    pub x: Axis,
    /// The y axis.
    pub y: Axis,
    /// What lies between.
    pub layers: Vec<Layer>,
}

/// Panels that make one figure, side by side and beneath each other, with one legend.
#[derive(Clone, PartialEq, Debug)]
pub struct Sketch {
    /// See [`Figure::id`].
    pub id: String,
    /// See [`Figure::title`].
    pub title: String,
    /// What all panels show; [`Figure::description`] is this and what each panel says.
    pub description: String,
    /// See [`Figure::caption`].
    pub caption: String,
    /// The panels, row by row.
    pub panels: Vec<Panel>,
    /// How many stand side by side.
    pub columns: usize,
    /// Width and height of one panel in pixels, its title and axis labels included.
    pub panel: (f64, f64),
    /// The legend of all panels.
    pub legend: Vec<Entry>,
    /// What must be known to read the figure, for files that are shown without their caption. It
    /// stands below the panels; it may be empty.
    pub remark: String,
}

type Area = DrawingArea<Backend, Shift>;
type DrawError = DrawingAreaErrorKind<Infallible>;
/// Height of a row of the legend.
const ROW: f64 = 20.0;
/// Room at the edges of the figure.
const EDGE: f64 = 8.0;
/// Height of a line of text below the panels, and of a title above one.
pub(crate) const LINE: f64 = 16.0;

fn draw_remark(root: &Area, lines: &[String], top: f64) -> Result<(), DrawError> {
    let style = text(SMALL, Ink::Gray, HPos::Left, VPos::Center);
    lines.iter().zip(0..).try_for_each(|(line, index)| {
        root.draw_text(
            line,
            &style,
            at(EDGE, top + (f64::from(index) + 0.5) * LINE),
        )
    })
}

impl Sketch {
    /// Draws it.
    ///
    /// # Errors
    /// plotters refuses (nothing known makes it).
    pub fn draw(&self) -> Result<Figure> {
        let columns = self.columns.clamp(1, self.panels.len().max(1));
        let rows = self.panels.len().div_ceil(columns);
        let width = self.panel.0 * columns as f64;
        let legend = legend_rows(&self.legend, width - 2.0 * EDGE);
        let top = match legend.len() {
            0 => EDGE / 2.0,
            n => EDGE + n as f64 * ROW,
        };
        let remark = wrapped(&words::spaced(&self.remark, ' '), SMALL, width - 2.0 * EDGE);
        let below = top + self.panel.1 * rows as f64;
        let height = match remark.len() {
            0 => below,
            n => below + n as f64 * LINE + EDGE,
        };
        let sheet = Rc::new(Sheet::default());
        let root = Backend::new(Rc::clone(&sheet), width, height).into_drawing_area();
        self.draw_on(&root, &sheet, &legend, top, columns)
            .and_then(|()| draw_remark(&root, &remark, below))
            .map_err(|e| Error::new(format!("the figure `{}` cannot be drawn: {e}", self.id)))?;
        Ok(Figure {
            id: self.id.clone(),
            title: self.title.clone(),
            description: [&self.description]
                .into_iter()
                .chain(self.panels.iter().map(|p| &p.description))
                .filter(|d| !d.is_empty())
                .cloned()
                .collect::<Vec<_>>()
                .join(" "),
            caption: self.caption.clone(),
            width,
            height,
            shapes: sheet.take(),
        })
    }

    /// The same panels as figures of their own, on the same axes, for pages that arrange them by
    /// the room they have. The caption of the first stands for all.
    pub fn apart(&self) -> Vec<Sketch> {
        self.panels
            .iter()
            .zip('a'..)
            .map(|(panel, letter)| Sketch {
                id: format!("{}-{letter}", self.id),
                title: format!("{}: {}", self.title, panel.title),
                panels: vec![panel.clone()],
                columns: 1,
                ..self.clone()
            })
            .collect()
    }

    fn draw_on(
        &self,
        root: &Area,
        sheet: &Sheet,
        legend: &[Vec<&Entry>],
        top: f64,
        columns: usize,
    ) -> Result<(), DrawError> {
        root.fill(&Ink::Paper.color())?;
        for (row, entries) in legend.iter().enumerate() {
            let mut x = EDGE;
            let y = EDGE / 2.0 + (row as f64 + 0.5) * ROW;
            for entry in entries {
                let look = entry.look;
                sheet.dash(look.dash);
                line(root, vec![at(x, y), at(x + SAMPLE, y)], look.ink, CURVE)?;
                sheet.dash("");
                mark(root, at(x + SAMPLE / 2.0, y), look)?;
                let place = at(x + SAMPLE + 6.0, y);
                root.draw_text(
                    &entry.name,
                    &text(SMALL, Ink::Black, HPos::Left, VPos::Center),
                    place,
                )?;
                x += entry_width(entry);
            }
        }
        for (index, panel) in self.panels.iter().enumerate() {
            let left = self.panel.0 * (index % columns) as f64;
            let upper = top + self.panel.1 * (index / columns) as f64;
            panel.draw(root, sheet, (left, upper), self.panel)?;
        }
        root.present()
    }
}

fn entry_width(entry: &Entry) -> f64 {
    SAMPLE + 6.0 + text_width(&entry.name, SMALL) + 16.0
}

/// Entries in rows that are no wider than the figure.
fn legend_rows(entries: &[Entry], width: f64) -> Vec<Vec<&Entry>> {
    let mut rows: Vec<Vec<&Entry>> = Vec::new();
    let mut used = f64::INFINITY;
    for entry in entries {
        let needed = entry_width(entry);
        match rows.last_mut().filter(|_| used + needed <= width) {
            Some(row) => row.push(entry),
            None => {
                rows.push(vec![entry]);
                used = 0.0;
            }
        }
        used += needed;
    }
    rows
}

impl Panel {
    /// Room to the right of the axes, in pixels, so that the label of the last tick, which is
    /// centered below it, is not cut. `width` is that of axes and room together.
    fn room_for_ticks(&self, width: f64) -> f64 {
        const LEAST: f64 = 22.0;
        let beyond = |(at, name): &(f64, String)| {
            let share = self.x.position(*at);
            // share · (width − room) + half ≤ width, solved for the room; a little air besides.
            let half = text_width(name, SMALL) / 2.0 + 4.0;
            (half - width * (1.0 - share)) / share.max(0.5)
        };
        self.x.ticks.iter().map(beyond).fold(LEAST, f64::max)
    }

    /// The x axis without ticks whose labels would lie upon each other: every second one, or fewer.
    fn with_fewer_ticks(&self, width: f64) -> Axis {
        let ticks = &self.x.ticks;
        let ends = |(at, name): &(f64, String)| {
            let (middle, half) = (self.x.position(*at) * width, text_width(name, SMALL) / 2.0);
            (middle - half, middle + half)
        };
        let every = |step: usize| ticks.iter().step_by(step);
        let are_apart = |step: &usize| {
            let next = every(*step).skip(1);
            every(*step)
                .zip(next)
                .all(|(a, b)| ends(a).1 + 4.0 < ends(b).0)
        };
        let step = (1..=ticks.len()).find(are_apart).unwrap_or(1);
        Axis {
            ticks: every(step).cloned().collect(),
            ..self.x.clone()
        }
    }

    fn draw(
        &self,
        root: &Area,
        sheet: &Sheet,
        (left, top): (f64, f64),
        (width, height): (f64, f64),
    ) -> Result<(), DrawError> {
        let area = root
            .clone()
            .shrink(at(left, top), (tenths(width) as u32, tenths(height) as u32));
        let title = wrapped(
            &words::spaced(&self.title, ' '),
            TEXT * BOLD,
            width - 2.0 * EDGE,
        );
        let widest = self
            .y
            .ticks
            .iter()
            .map(|(_, name)| text_width(name, SMALL))
            .fold(0.0, f64::max);
        let right = self.room_for_ticks(width - widest - 30.0 - EDGE);
        let x = self.with_fewer_ticks(width - widest - 30.0 - EDGE - right);
        let mut chart = ChartBuilder::on(&area)
            .margin_top(tenths(if title.is_empty() {
                10.0
            } else {
                12.0 + LINE * title.len() as f64
            }))
            .margin_right(tenths(right))
            .margin_left(tenths(EDGE))
            .margin_bottom(tenths(6.0))
            .x_label_area_size(tenths(42.0))
            .y_label_area_size(tenths(widest + 30.0))
            .build_cartesian_2d(x, self.y.clone())?;
        chart
            .configure_mesh()
            .light_line_style(Ink::Paper.color().mix(0.0))
            .max_light_lines(0)
            .bold_line_style(stroke(Ink::Grid, 1.0))
            .axis_style(stroke(Ink::Gray, 1.0))
            .label_style(text(SMALL, Ink::Black, HPos::Left, VPos::Top))
            .axis_desc_style(text(TEXT, Ink::Black, HPos::Left, VPos::Top))
            .set_all_tick_mark_size(tenths(4.0))
            .x_desc(&self.x.label)
            .y_desc(&self.y.label)
            .draw()?;
        let mut style = text(TEXT, Ink::Black, HPos::Left, VPos::Top);
        style.font = style.font.style(FontStyle::Bold);
        for (line, index) in title.iter().zip(0..) {
            let down = top + 8.0 + LINE * f64::from(index);
            root.draw_text(line, &style, at(left + EDGE, down))?;
        }
        let plot = chart.plotting_area();
        let (xs, ys) = (plot.get_x_axis_pixel_range(), plot.get_y_axis_pixel_range());
        let frame = Frame {
            root,
            sheet,
            left: xs.start,
            right: xs.end,
            top: ys.start.min(ys.end),
            bottom: ys.end.max(ys.start),
            panel: self,
        };
        for layer in &self.layers {
            frame.layer(layer)?;
        }
        sheet.dash("");
        sheet.halo(false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_title_that_is_too_long_is_broken_between_words() {
        assert_eq!(wrapped("", TEXT * BOLD, 100.0), [""; 0]);
        assert_eq!(wrapped("Short", TEXT * BOLD, 100.0), ["Short"]);
        let title =
            "Hard, uniform light, moderate periods, no kernel overheads, brute force, at D = 500us";
        let lines = wrapped(title, TEXT * BOLD, 454.0);
        assert!(lines.len() == 2, "{lines:?}");
        assert!(lines.iter().all(|l| text_width(l, TEXT) * BOLD <= 454.0));
        assert_eq!(lines.join(" "), title);
    }
}
