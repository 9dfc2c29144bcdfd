//! Drawing a schedule: its axis, the pieces of jobs, overheads and marks.

use super::fills::Fill;
use super::{ARROW, BOX, Canvas, LABEL, RIGHT, Rows, TOP};
use crate::sheet::{BOLD, Paint, Place, Shape, Side, cut, tenths, text_width};
use crate::style::{Ink, SMALL, TEXT};
use model::Instant;
use trace::Overhead;
use trace::view::{Mark, MarkKind, Moment, Piece};

pub(super) struct Drawing<'v> {
    pub(super) canvas: Canvas<'v>,
    pub(super) shapes: Vec<Shape>,
    pub(super) height: f64,
}

pub(super) fn place(x: f64, y: f64) -> Place {
    (tenths(x), tenths(y))
}

pub(super) fn solid(ink: Ink) -> Paint {
    Paint { ink, opacity: 1.0 }
}

impl Drawing<'_> {
    pub(super) fn line(&mut self, points: &[(f64, f64)], ink: Ink, width: f64, dash: &'static str) {
        self.shapes.push(Shape::Line {
            points: points.iter().map(|(x, y)| place(*x, *y)).collect(),
            paint: solid(ink),
            width: tenths(width) as u32,
            dash,
        });
    }

    pub(super) fn polygon(&mut self, points: &[(f64, f64)], paint: Paint) {
        self.shapes.push(Shape::Polygon {
            points: points.iter().map(|(x, y)| place(*x, *y)).collect(),
            paint,
        });
    }

    pub(super) fn text(
        &mut self,
        text: &str,
        at: (f64, f64),
        side: Side,
        ink: Ink,
        size: f64,
        bold: bool,
    ) {
        self.shapes.push(Shape::Text {
            text: text.to_owned(),
            at: place(at.0, at.1),
            side,
            size,
            ink,
            bold,
            upwards: false,
            halo: false,
        });
    }

    pub(super) fn draw(&mut self, title: &str) {
        let (width, height) = (self.canvas.width, self.height);
        self.polygon(
            &[(0.0, 0.0), (width, 0.0), (width, height), (0.0, height)],
            solid(Ink::Paper),
        );
        let title = cut(title, TEXT * BOLD, width - 16.0);
        self.text(&title, (8.0, 20.0), Side::Start, Ink::Black, TEXT, true);
        self.axis();
        for row in 0..self.canvas.count {
            let base = self.canvas.base(row);
            let label = cut(&self.canvas.row_label(row), TEXT, LABEL);
            self.text(
                &label,
                (self.canvas.left - 10.0, base - 6.0),
                Side::End,
                Ink::Black,
                TEXT,
                false,
            );
        }
        let (pieces, overheads): (Vec<Piece>, Vec<Piece>) = self
            .canvas
            .view
            .pieces
            .iter()
            .partition(|p| p.overhead.is_none());
        for piece in &pieces {
            self.piece(piece);
        }
        for piece in &overheads {
            self.overhead(piece);
        }
        if let Some(moment) = self.canvas.view.moment_within() {
            self.moment(moment);
        }
        for row in 0..self.canvas.count {
            let base = self.canvas.base(row);
            let (left, right) = (self.canvas.left, self.canvas.width - RIGHT);
            self.line(&[(left, base), (right, base)], Ink::Black, 1.0, "");
        }
        for mark in self.canvas.view.marks.clone() {
            self.mark(&mark);
        }
    }

    /// Ticks at round times, with a guide through all rows.
    pub(super) fn axis(&mut self) {
        let view = self.canvas.view;
        let length = view.to.since(view.from).nanos().max(1);
        let bottom = self.canvas.base(self.canvas.count - 1);
        let room = ((self.canvas.width - self.canvas.left) / 34.0).max(4.0) as u64;
        let step = round_step(length / room);
        let (unit, scale) = unit_of(step);
        let wide = text_width(&label_of(view.to.nanos(), scale), SMALL) + 10.0;
        let pixels = step as f64 / length as f64 * (self.canvas.width - RIGHT - self.canvas.left);
        // Every tick that has room gets a number.
        let every = [1_u32, 2, 5, 10, 20, 50]
            .into_iter()
            .find(|n| pixels * f64::from(*n) >= wide)
            .unwrap_or(100);
        let mut tick = view.from.nanos().next_multiple_of(step);
        while tick <= view.to.nanos() {
            let x = self.canvas.x(Instant::from_nanos(tick));
            self.line(&[(x, TOP - 4.0), (x, bottom)], Ink::Grid, 0.8, "");
            self.line(&[(x, bottom), (x, bottom + 4.0)], Ink::Black, 1.0, "");
            if (tick / step).is_multiple_of(u64::from(every)) {
                let label = label_of(tick, scale);
                self.text(
                    &label,
                    (x, bottom + 18.0),
                    Side::Middle,
                    Ink::Black,
                    SMALL,
                    false,
                );
            }
            match tick.checked_add(step) {
                Some(next) => tick = next,
                None => break,
            }
        }
        let right = self.canvas.width - RIGHT;
        self.text(
            &format!("time ({unit})"),
            (right, bottom + 33.0),
            Side::End,
            Ink::Gray,
            SMALL,
            false,
        );
    }

    pub(super) fn piece(&mut self, piece: &Piece) {
        let Some((task, job)) = piece.job else { return };
        let Some(row) = self.canvas.row_of(piece.cpu, Some(task)) else {
            return;
        };
        let fill = self.canvas.fill_of(piece.cpu, task);
        let (left, right) = (self.canvas.x(piece.from), self.canvas.x(piece.to));
        let (top, base) = (self.canvas.base(row) - BOX, self.canvas.base(row));
        let corners = [(left, top), (right, top), (right, base), (left, base)];
        // Paper first, so that guides do not shine through.
        self.polygon(&corners, solid(Ink::Paper));
        self.polygon(
            &corners,
            Paint {
                ink: fill.ink,
                opacity: fill.opacity,
            },
        );
        self.hatch((left, right), (top, base), fill);
        self.line(
            &[corners[0], corners[1], corners[2], corners[3], corners[0]],
            Ink::Black,
            0.9,
            "",
        );
        let number = (job + 1).to_string();
        let name = match self.canvas.rows {
            Rows::Processors => format!("{}·{number}", self.canvas.view.names[task.index()]),
            Rows::Tasks => number.clone(),
        };
        let fits = |text: &str| text_width(text, SMALL) + 4.0 <= right - left;
        let label = [name, number].into_iter().find(|t| fits(t));
        if let Some(label) = label {
            self.shapes.push(Shape::Text {
                text: label,
                at: place((left + right) / 2.0, base - BOX / 2.0 + 4.2),
                side: Side::Middle,
                size: SMALL,
                ink: Ink::Black,
                bold: false,
                upwards: false,
                halo: fill.hatch.0 != 0,
            });
        }
    }

    /// Parallel lines, cut to the box.
    pub(super) fn hatch(&mut self, (left, right): (f64, f64), (top, base): (f64, f64), fill: Fill) {
        let (slope, apart) = fill.hatch;
        if slope == 0 {
            return;
        }
        let height = base - top;
        // Anchored to the sheet, not to the box, so that neighbors match.
        let mut start = ((left - height) / apart).floor() * apart;
        while start < right {
            // The line from (start, base) up to (start + height, top), or mirrored.
            let low = left.max(start) - start;
            let high = (right.min(start + height)) - start;
            if high > low {
                let y = |d: f64| if slope > 0 { base - d } else { top + d };
                let points = [(start + low, y(low)), (start + high, y(high))];
                self.line(&points, fill.ink, 0.8, "");
            }
            start += apart;
        }
    }

    /// A wedged box: as high as a piece where it begins, falling to half of it.
    pub(super) fn overhead(&mut self, piece: &Piece) {
        let task = piece.job.map(|(task, _)| task);
        let Some(row) = self.canvas.row_of(piece.cpu, task) else {
            return;
        };
        let base = self.canvas.base(row);
        let (left, right) = (self.canvas.x(piece.from), self.canvas.x(piece.to));
        let top = base - BOX;
        match piece.overhead {
            // Under way to the processor, which goes on meanwhile: a dashed arrow above its work.
            Some(Overhead::IpiLatency) | None => {
                let y = top - 5.0;
                self.line(&[(left, y), (right, y)], Ink::Vermilion, 1.2, "3 2");
                self.polygon(
                    &[(right, y), (right - 5.0, y - 3.0), (right - 5.0, y + 3.0)],
                    solid(Ink::Vermilion),
                );
            }
            Some(overhead) => {
                let corners = [
                    (left, base),
                    (left, top),
                    (right, base - BOX * 0.45),
                    (right, base),
                ];
                let (ink, opacity) = look_of(overhead);
                self.polygon(&corners, solid(Ink::Paper));
                self.polygon(&corners, Paint { ink, opacity });
                let outline = [corners[0], corners[1], corners[2], corners[3], corners[0]];
                self.line(&outline, Ink::Black, 0.8, "");
            }
        }
    }

    pub(super) fn mark(&mut self, mark: &Mark) {
        let Some(row) = self.canvas.row_of(mark.cpu, Some(mark.task)) else {
            return;
        };
        let base = self.canvas.base(row);
        let x = self.canvas.x(mark.time);
        let tip = base - ARROW;
        match mark.kind {
            MarkKind::Release => {
                self.line(&[(x, base), (x, tip + 3.0)], Ink::Black, 1.2, "");
                let head = [(x, tip), (x - 3.2, tip + 7.0), (x + 3.2, tip + 7.0)];
                self.polygon(&head, solid(Ink::Black));
            }
            MarkKind::Deadline => {
                self.line(&[(x, tip), (x, base - 3.0)], Ink::Black, 1.2, "");
                let head = [(x, base), (x - 3.2, base - 7.0), (x + 3.2, base - 7.0)];
                self.polygon(&head, solid(Ink::Black));
            }
            MarkKind::Miss => {
                // A bolt that strikes the line, from above and from the right of any arrow of the
                // same moment.
                let up = tip - 4.0;
                let h = base - up;
                let bolt = [
                    (x + 11.0, up),
                    (x + 1.5, up + 0.50 * h),
                    (x + 5.5, up + 0.50 * h),
                    (x, base),
                    (x + 11.5, up + 0.38 * h),
                    (x + 7.0, up + 0.38 * h),
                    (x + 14.5, up),
                ];
                let mut outline = bolt.to_vec();
                outline.push(bolt[0]);
                self.line(&outline, Ink::Paper, 3.0, "");
                self.polygon(&bolt, solid(Ink::Vermilion));
            }
            MarkKind::Completion => {
                let top = base - BOX - 5.0;
                self.line(&[(x, base), (x, top)], Ink::Black, 1.4, "");
                self.line(&[(x - 4.5, top), (x + 4.5, top)], Ink::Black, 2.2, "");
            }
        }
    }

    /// A dashed line through all rows, and what it is called above them.
    pub(super) fn moment(&mut self, moment: &Moment) {
        let x = self.canvas.x(moment.time);
        let bottom = self.canvas.base(self.canvas.count - 1);
        let ends = [(x, TOP - 6.0), (x, bottom + 4.0)];
        self.line(&ends, Ink::Paper, 4.0, "");
        self.line(&ends, Ink::Vermilion, 1.8, "6 3");
        let tip = [(x, TOP), (x - 5.0, TOP - 8.0), (x + 5.0, TOP - 8.0)];
        self.polygon(&tip, solid(Ink::Vermilion));
        let name = cut(&moment.name, SMALL * BOLD, self.canvas.width - 16.0);
        let half = text_width(&name, SMALL * BOLD) / 2.0 + 4.0;
        let right = (self.canvas.width - half).max(half);
        let at = (x.clamp(half, right), TOP - 11.0);
        self.text(&name, at, Side::Middle, Ink::Vermilion, SMALL, true);
    }
}

/// Overheads, darker the nearer they are to the switch itself.
fn look_of(overhead: Overhead) -> (Ink, f64) {
    match overhead {
        Overhead::Release => (Ink::Gray, 0.45),
        Overhead::Scheduling => (Ink::Gray, 0.75),
        Overhead::ContextSwitch => (Ink::Black, 0.85),
        Overhead::IpiLatency => (Ink::Vermilion, 1.0),
        Overhead::TimerTransfer => (Ink::Purple, 0.7),
        Overhead::Tick => (Ink::Green, 0.6),
        Overhead::Cpmd => (Ink::Vermilion, 0.7),
    }
}

/// The least of 1, 2, 5 times a power of ten that is not below `least`, in nanoseconds.
pub(super) fn round_step(least: u64) -> u64 {
    let mut power = 1_u64;
    loop {
        for factor in [1, 2, 5] {
            let step = power.saturating_mul(factor);
            if step >= least {
                return step;
            }
        }
        match power.checked_mul(10) {
            Some(next) => power = next,
            None => return u64::MAX,
        }
    }
}

/// The unit in which steps of this length are told.
fn unit_of(step: u64) -> (&'static str, u64) {
    match step {
        s if s >= 1_000_000_000 => ("s", 1_000_000_000),
        s if s >= 100_000 => ("ms", 1_000_000),
        s if s >= 100 => ("µs", 1_000),
        _ => ("ns", 1),
    }
}

pub(super) fn label_of(ns: u64, scale: u64) -> String {
    let (whole, rest) = (ns / scale, ns % scale);
    if rest == 0 {
        return whole.to_string();
    }
    let width = scale.ilog10() as usize;
    let fraction = format!("{rest:0width$}");
    format!("{whole}.{}", fraction.trim_end_matches('0'))
}
