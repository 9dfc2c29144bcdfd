//! How much of a schedule has room in a figure: arrows and pieces must stay apart to be read.

use super::{Canvas, RIGHT, Rows};
use model::{Instant, TaskId};
use trace::View;
use trace::view::MarkKind;

/// Pixels that an arrow needs in its row, on average: its head is 6.4 wide, and a completion beside
/// it 9.
pub const ARROW: f64 = 16.0;
/// Pixels that a piece needs in its row, on average: less is a black smear of outlines.
pub const PIECE: f64 = 4.0;

/// The moment at which a figure of `width` pixels has to end so that in no row arrows (releases and
/// deadlines) or pieces come too close to be read; `None` where the whole window has room.
///
/// Arrows of one moment count once, since they lie upon each other. The answer depends only on what
/// is marked up to that moment, so that it holds of a window that was cut off later, too.
pub fn end(view: &View, rows: Rows, width: f64) -> Option<Instant> {
    let canvas = Canvas::new(view, rows, width);
    let room = (width - RIGHT - canvas.left).max(ARROW);
    let mut arrows: Vec<Vec<Instant>> = vec![Vec::new(); canvas.count];
    let mut pieces = arrows.clone();
    for mark in &view.marks {
        if let (true, Some(row)) = (
            mark.kind != MarkKind::Completion,
            canvas.row_of(mark.cpu, Some(mark.task)),
        ) {
            arrows[row].push(mark.time);
        }
    }
    for piece in view.pieces.iter().filter(|p| p.overhead.is_none()) {
        let task: Option<TaskId> = piece.job.map(|(task, _)| task);
        if let Some(row) = canvas.row_of(piece.cpu, task) {
            pieces[row].push(piece.to);
        }
    }
    let limit = |mut times: Vec<Instant>, apart: f64| {
        times.sort_unstable();
        times.dedup();
        // At least two, so that a window is never empty: the first may stand at its begin.
        let most = ((room / apart) as usize).max(2);
        times.get(most).copied()
    };
    let arrows = arrows.into_iter().filter_map(|times| limit(times, ARROW));
    let pieces = pieces.into_iter().filter_map(|times| limit(times, PIECE));
    arrows.chain(pieces).min().filter(|end| *end < view.to)
}
