//! A note on a point of a panel: where its words stand, and the words.

use super::frame::Frame;
use super::strokes::{line, stroke, text};
use super::{DrawError, Layer};
use crate::sheet::{Place, tenths, text_width, wrapped};
use crate::style::{Ink, SMALL};
use plotters::element::Circle;
use plotters::style::text_anchor::{HPos, VPos};

/// From line to line of a note.
const SPACING: f64 = SMALL + 3.0;

/// How far to the side of the point the words begin or end.
const ASIDE: f64 = 19.0;

/// How far above or below the point the nearest line may be centered: as near as there is room.
const AWAY: [f64; 4] = [20.0, 40.0, 60.0, 80.0];

/// The radius of the ring around the point.
const RING: f64 = 6.0;

/// The line from the point ends so much before the words.
const BEFORE: (f64, f64) = (3.0, 4.0);

/// What stays free around words.
const FREE: f64 = 3.0;

/// On which side of a point words stand.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Quarter {
    is_left: bool,
    is_above: bool,
}

/// Where words stand, and how far above or below the point.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Spot {
    quarter: Quarter,
    away: f64,
}

/// All spots, the best first.
fn spots() -> impl Iterator<Item = Spot> {
    AWAY.into_iter()
        .flat_map(|away| QUARTERS.map(|quarter| Spot { quarter, away }))
}

/// The quarters in the order in which they are taken. A curve that falls leaves room above to the
/// right of it, and below to the left.
const QUARTERS: [Quarter; 4] = [
    Quarter {
        is_left: false,
        is_above: true,
    },
    Quarter {
        is_left: true,
        is_above: false,
    },
    Quarter {
        is_left: true,
        is_above: true,
    },
    Quarter {
        is_left: false,
        is_above: false,
    },
];

/// A part of the sheet, in tenths of a pixel.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Part {
    left: i32,
    right: i32,
    top: i32,
    bottom: i32,
}

impl Part {
    fn is_within(self, frame: &Frame) -> bool {
        self.left > frame.left
            && self.right < frame.right
            && self.top > frame.top
            && self.bottom < frame.bottom
    }

    /// Does the line between these places lie in this part, wholly or with a piece?
    fn is_met(self, (a, b): (Place, Place)) -> bool {
        let apart = a.0.max(b.0) < self.left
            || a.0.min(b.0) > self.right
            || a.1.max(b.1) < self.top
            || a.1.min(b.1) > self.bottom;
        if apart {
            return false;
        }
        // On which side of the line each corner lies.
        let (dx, dy) = (i64::from(b.0 - a.0), i64::from(b.1 - a.1));
        let side = |(x, y): Place| (dx * i64::from(y - a.1) - dy * i64::from(x - a.0)).signum();
        let sides = [
            (self.left, self.top),
            (self.right, self.top),
            (self.left, self.bottom),
            (self.right, self.bottom),
        ]
        .map(side);
        sides.contains(&0) || sides.iter().any(|s| *s != sides[0])
    }
}

/// The words of a note, and where they stand.
pub(super) struct Words {
    lines: Vec<String>,
    start: i32,
    end: i32,
    spot: Spot,
}

impl Words {
    /// Where the longest line ends, in tenths of a pixel.
    pub(super) fn end(&self) -> i32 {
        self.end
    }

    pub(super) fn is_above(&self) -> bool {
        self.spot.quarter.is_above
    }
}

impl Frame<'_> {
    /// Where the words of a note on a point stand: in the first spot where they fit and where no
    /// curve goes through them, else in the first where they fit, else over the point, within the
    /// panel.
    pub(super) fn words(&self, (x, y): (f64, f64), lines: &[String]) -> Words {
        let room = f64::from(self.right - self.left) / f64::from(tenths(1.0)) - 4.0;
        let lines: Vec<String> = lines
            .iter()
            .flat_map(|line| wrapped(line, SMALL, room))
            .collect();
        let longest = lines
            .iter()
            .map(|l| text_width(l, SMALL))
            .fold(0.0, f64::max);
        let (x, y) = (self.x(x, 0.0), self.y(y));
        let height = SPACING * (lines.len() as f64 - 1.0);
        let taken = |Spot { quarter, away }: Spot| {
            let (start, end) = match quarter.is_left {
                false => (x + tenths(ASIDE), x + tenths(ASIDE + longest)),
                true => (x - tenths(ASIDE + longest), x - tenths(ASIDE)),
            };
            let (top, bottom) = match quarter.is_above {
                true => (y - tenths(away + height), y - tenths(away)),
                false => (y + tenths(away), y + tenths(away + height)),
            };
            let (free, half) = (tenths(FREE), tenths(SMALL / 2.0));
            Part {
                left: start - free,
                right: end + free,
                top: top - half,
                bottom: bottom + half,
            }
        };
        let fits = || spots().filter(|s| taken(*s).is_within(self));
        let clear = fits().find(|s| !self.meets_curve(taken(*s)));
        let (spot, start) = match clear.or_else(|| fits().next()) {
            Some(spot) => (spot, taken(spot).left + tenths(FREE)),
            None => {
                let last = self.right - tenths(longest + FREE);
                let spot = Spot {
                    quarter: QUARTERS[0],
                    away: AWAY[0],
                };
                (spot, (x + tenths(ASIDE)).min(last))
            }
        };
        Words {
            lines,
            start,
            end: start + tenths(longest),
            spot,
        }
    }

    fn meets_curve(&self, part: Part) -> bool {
        self.panel.layers.iter().any(|layer| match layer {
            Layer::Curve { points, shift, .. } => points.windows(2).any(|ends| {
                let at = |(x, y): (f64, f64)| (self.x(x, *shift), self.y(y));
                part.is_met((at(ends[0]), at(ends[1])))
            }),
            _ => false,
        })
    }

    /// A ring around the point, a short line from it, and the words at the end of that.
    pub(super) fn note(&self, (x, y): (f64, f64), lines: &[String]) -> Result<(), DrawError> {
        let (root, sheet) = (self.root, self.sheet);
        let words = self.words((x, y), lines);
        let (x, y) = (self.x(x, 0.0), self.y(y));
        let Spot { quarter, away } = words.spot;
        let (side, right, edge) = match quarter.is_left {
            false => (HPos::Left, 1.0, words.start),
            true => (HPos::Right, -1.0, words.end),
        };
        let (down, first) = match quarter.is_above {
            true => (-1.0, 1.0 - words.lines.len() as f64),
            false => (1.0, 0.0),
        };
        root.draw(&Circle::new((x, y), tenths(RING), stroke(Ink::Black, 1.4)))?;
        let (aside, beside) = (ASIDE - BEFORE.0, away - BEFORE.1);
        let part = |of: f64| {
            let (aside, beside) = (aside * of * right, beside * of * down);
            (x + tenths(aside), y + tenths(beside))
        };
        let ring = RING / aside.hypot(beside);
        line(root, vec![part(ring), part(1.0)], Ink::Black, 1.0)?;
        sheet.halo(true);
        for (index, words) in words.lines.iter().enumerate() {
            let place = y + tenths(away * down) + tenths((first + index as f64) * SPACING);
            let style = text(SMALL, Ink::Black, side, VPos::Center);
            root.draw_text(words, &style, (edge, place))?;
        }
        sheet.halo(false);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_meets_a_part_where_it_goes_through_it_or_lies_in_it() {
        let part = Part {
            left: 0,
            right: 100,
            top: 0,
            bottom: 50,
        };
        let met = |a, b| part.is_met((a, b)) && part.is_met((b, a));
        assert!(met((-10, 10), (110, 20)), "from side to side");
        assert!(met((10, 10), (20, 20)), "within");
        assert!(met((50, -10), (50, 10)), "from above");
        assert!(met((-10, 0), (10, 0)), "along an edge");
        assert!(met((-10, 40), (30, 80)), "through a corner");
        assert!(!part.is_met(((-10, 60), (110, 60))), "below");
        assert!(!part.is_met(((-50, 20), (20, 90))), "past a corner");
        assert!(!part.is_met(((101, 0), (101, 50))), "to the right");
    }
}
