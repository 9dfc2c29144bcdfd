//! Fills by which jobs of different tasks are told apart.

use crate::style::Ink;

/// How a piece is filled.
#[derive(Clone, Copy)]
pub(super) struct Fill {
    pub(super) ink: Ink,
    pub(super) opacity: f64,
    /// Lines over it: their slope, `1` rising, `-1` falling, `0` none; and how far apart.
    pub(super) hatch: (i32, f64),
}

/// Told apart by tone and by hatching.
const FILLS: [Fill; 8] = [
    fill(Ink::Blue, 0.30, 0, 0.0),
    fill(Ink::Orange, 0.30, 1, 7.0),
    fill(Ink::Green, 0.30, -1, 7.0),
    fill(Ink::Purple, 0.45, 0, 0.0),
    fill(Ink::Sky, 0.18, 1, 4.0),
    fill(Ink::Vermilion, 0.25, -1, 4.0),
    fill(Ink::Gray, 0.20, 0, 0.0),
    fill(Ink::Gray, 0.15, 1, 5.0),
];

pub(super) const fn fill(ink: Ink, opacity: f64, slope: i32, apart: f64) -> Fill {
    Fill {
        ink,
        opacity,
        hatch: (slope, apart),
    }
}

/// More ways to hatch, for the tasks that come after those of [`FILLS`].
const HATCHES: [(i32, f64); 5] = [(0, 0.0), (1, 7.0), (-1, 7.0), (1, 4.0), (-1, 4.0)];

/// How many of [`FILLS`] are hatched anew: the gray ones would look too much alike.
const COLORED: usize = 6;

/// How many looks differ in tone or hatching.
pub const LOOKS: usize = FILLS.len() + COLORED * (HATCHES.len() - 1);

/// The look of the task or processor of this index. The first [`LOOKS`] differ, then they repeat.
pub(super) fn nth_fill(index: usize) -> Fill {
    let index = index % LOOKS;
    let Some(further) = index.checked_sub(FILLS.len()) else {
        return FILLS[index];
    };
    let base = FILLS[further % COLORED];
    // The hatching of the first round comes last, so that no later round repeats it.
    let own = HATCHES.iter().position(|h| *h == base.hatch).unwrap_or(0);
    Fill {
        hatch: HATCHES[(own + 1 + further / COLORED) % HATCHES.len()],
        ..base
    }
}
