//! A window of a schedule in the papers' notation (002 Figs. 2.2, 2.6, 2.7; 003 Fig. 2).
//!
//! Up arrows are releases, down arrows deadlines, T-shaped marks completions, lightning bolts
//! missed deadlines, dark wedged boxes overheads. One row a processor, with the job named in its
//! piece; or one row a task, with the processor told by the look of the piece. Looks differ in
//! hatching as well as in color, so that the figure reads in grayscale.

use crate::sheet::{Side, text_width, wrapped};
use crate::style::{Ink, SMALL, TEXT};
use crate::svg::Figure;
use crate::words;
use model::{CpuId, Duration, Instant, TaskId};
use trace::View;
use trace::view::MarkKind;

mod legend;
mod room;

pub use room::end as readable_until;

mod fills;
pub use fills::LOOKS;
use fills::{Fill, nth_fill};

mod drawing;
use drawing::Drawing;

/// What the rows are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Rows {
    /// One row a processor.
    Processors,
    /// One row a task.
    Tasks,
}

const ROW: f64 = 58.0;
/// How high the box of a piece stands on the line of its row.
const BOX: f64 = 22.0;
/// How high an arrow stands.
const ARROW: f64 = 36.0;
const TOP: f64 = 44.0;
const RIGHT: f64 = 18.0;
/// The widest label of a row.
const LABEL: f64 = 160.0;
/// Height of a line of the remark.
const LINE: f64 = 16.0;

/// The figure of a window. `width` is that of the whole figure, in pixels; `remark` is a sentence
/// that stands below it, or empty.
pub fn figure(id: &str, title: &str, view: &View, rows: Rows, width: f64, remark: &str) -> Figure {
    let canvas = Canvas::new(view, rows, width);
    let remark = words::spaced(remark, ' ');
    let remark_lines = wrapped(&remark.replace('`', ""), SMALL, width - 16.0);
    let legend = TOP + ROW * canvas.count as f64 + 34.0;
    let below = legend + legend::height(&canvas) + 6.0;
    let height = below + LINE * remark_lines.len() as f64;
    let mut drawing = Drawing {
        canvas,
        shapes: Vec::new(),
        height,
    };
    drawing.draw(title);
    legend::draw(&mut drawing, legend);
    for (line, text) in remark_lines.iter().enumerate() {
        let at = (8.0, below + LINE * line as f64 + 7.0);
        drawing.text(text, at, Side::Start, Ink::Gray, SMALL, false);
    }
    Figure {
        id: id.to_owned(),
        title: title.to_owned(),
        description: describe(view),
        caption: [caption(view), remark].join(" ").trim_end().to_owned(),
        width,
        height,
        shapes: drawing.shapes,
    }
}

fn count(view: &View, kind: MarkKind) -> usize {
    view.marks.iter().filter(|m| m.kind == kind).count()
}

fn describe(view: &View) -> String {
    let misses: Vec<String> = view
        .marks
        .iter()
        .filter(|m| m.kind == MarkKind::Miss)
        .take(12)
        .map(|m| {
            format!(
                "{} at {}",
                view.names[m.task.index()],
                words::moment(m.time)
            )
        })
        .collect();
    let missed = match misses.len() {
        0 => "no deadline is missed".to_owned(),
        _ => format!("deadlines missed: {}", misses.join(", ")),
    };
    let about = view.moment_within();
    format!(
        "From {} to {}: {} releases, {} completions; {missed}.{}",
        words::moment(view.from),
        words::moment(view.to),
        count(view, MarkKind::Release),
        count(view, MarkKind::Completion),
        about.map_or(String::new(), |m| format!(
            " Marked: {} at {}.",
            m.name,
            words::moment(m.time)
        ))
    )
}

fn caption(view: &View) -> String {
    let mut text = String::from("Up arrows: releases. Down arrows: deadlines. T: completions.");
    if count(view, MarkKind::Miss) > 0 {
        text += " Lightning: missed deadlines.";
    }
    if view.pieces.iter().any(|p| p.overhead.is_some()) {
        text += " Wedges: overheads, which delay the processor that they stand on.";
    }
    if let Some(moment) = view.moment_within() {
        let at = words::moment(moment.time);
        text += &format!(" The dashed line: {} at {at}.", moment.name);
    }
    if view.cut {
        text += " There is more in this window than is drawn.";
    }
    text
}

/// Where things lie.
struct Canvas<'v> {
    view: &'v View,
    rows: Rows,
    width: f64,
    left: f64,
    count: usize,
    /// For rows of tasks: the tasks that have anything to show, in order.
    tasks: Vec<TaskId>,
}

impl<'v> Canvas<'v> {
    fn new(view: &'v View, rows: Rows, width: f64) -> Self {
        let mut tasks: Vec<TaskId> = view
            .pieces
            .iter()
            .filter_map(|p| p.job.map(|(task, _)| task))
            .chain(view.marks.iter().map(|m| m.task))
            .collect();
        tasks.sort_unstable();
        tasks.dedup();
        let labels: Vec<String> = match rows {
            Rows::Processors => view.processors.iter().map(|c| format!("P{c}")).collect(),
            Rows::Tasks => tasks
                .iter()
                .map(|t| view.names[t.index()].clone())
                .collect(),
        };
        let widest = labels
            .iter()
            .map(|l| text_width(l, TEXT))
            .fold(0.0, f64::max);
        Canvas {
            view,
            rows,
            width,
            left: 22.0 + widest.min(LABEL),
            count: labels.len().max(1),
            tasks,
        }
    }

    fn x(&self, time: Instant) -> f64 {
        let length = self.view.to.since(self.view.from).nanos().max(1) as f64;
        let part = time.since(self.view.from).nanos() as f64 / length;
        self.left + part * (self.width - RIGHT - self.left)
    }

    /// The line on which a row stands.
    fn base(&self, row: usize) -> f64 {
        TOP + ROW * (row as f64 + 1.0) - 10.0
    }

    fn row_of(&self, cpu: CpuId, task: Option<TaskId>) -> Option<usize> {
        match self.rows {
            Rows::Processors => self.view.processors.iter().position(|c| *c == cpu),
            Rows::Tasks => self.tasks.binary_search(&task?).ok(),
        }
    }

    /// The fill of a piece: by task on rows of processors, by processor on rows of tasks.
    fn fill_of(&self, cpu: CpuId, task: TaskId) -> Fill {
        let place = match self.rows {
            Rows::Processors => self.tasks.binary_search(&task).unwrap_or(0),
            Rows::Tasks => self
                .view
                .processors
                .iter()
                .position(|c| *c == cpu)
                .unwrap_or(0),
        };
        nth_fill(place)
    }

    fn row_label(&self, row: usize) -> String {
        match self.rows {
            Rows::Processors => self.view.processors.get(row).map(|c| format!("P{c}")),
            Rows::Tasks => self
                .tasks
                .get(row)
                .map(|t| self.view.names[t.index()].clone()),
        }
        .unwrap_or_default()
    }
}

/// The window around a moment that shows what led to it: two of the shortest periods to either
/// side.
pub fn around(moment: Instant, shortest_period: Duration) -> (Instant, Instant) {
    let reach = Duration::from_nanos(shortest_period.nanos().saturating_mul(2));
    let from = Instant::from_nanos(moment.nanos().saturating_sub(reach.nanos()));
    (from, moment.checked_add(reach).unwrap_or(moment))
}

#[cfg(test)]
mod tests;
