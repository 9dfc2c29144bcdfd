//! What the watchdog makes of the board: each look is compared with those before it.
//!
//! Takes no memory and makes no system call.

use super::board::{Board, MAX_BEATS};
use super::{Patience, STEP, Trip};
use std::sync::atomic::Ordering;

/// Slack is told this often, in nanoseconds, where a processor has some.
pub(crate) const TELL: u64 = 20_000_000;
/// Of so many times that slack could be told within a window, one is enough.
const ONE_OF: u64 = 100;

/// A word that has to change, and in how many looks it has not.
#[derive(Clone, Copy)]
struct Still {
    seen: u64,
    looks: u64,
}

impl Still {
    const NEW: Self = Still { seen: 0, looks: 0 };

    /// Looks at the word, which has to change where it `counts`. Has it been the same for longer
    /// than `most` nanoseconds?
    fn for_longer(&mut self, word: u64, counts: bool, most: u64) -> bool {
        self.looks = match counts && word == self.seen {
            true => self.looks + 1,
            false => 0,
        };
        self.seen = word;
        self.looks * STEP > most
    }
}

/// What was seen so far.
pub(super) struct Looks {
    beats: [Still; MAX_BEATS],
    dues: [Still; MAX_BEATS],
    ordinary: Still,
    /// When the window of slack began; none: it begins with the next look.
    window: Option<u64>,
    /// What had been told at its beginning.
    slack: [u64; MAX_BEATS],
}

impl Looks {
    pub(super) fn new() -> Self {
        Looks {
            beats: [Still::NEW; MAX_BEATS],
            dues: [Still::NEW; MAX_BEATS],
            ordinary: Still::NEW,
            window: None,
            slack: [0; MAX_BEATS],
        }
    }

    /// The watchdog itself was kept from looking: whoever gave no sign meanwhile is not blamed.
    pub(super) fn start_afresh(&mut self) {
        for still in self.beats.iter_mut().chain(&mut self.dues) {
            still.looks = 0;
        }
        self.ordinary.looks = 0;
        self.window = None;
    }

    /// Looks at the reading `now` of the clock. Why the run is to be ended, if so.
    pub(super) fn look(&mut self, board: &Board, patience: Patience, now: u64) -> Option<Trip> {
        let is_ending = board.ending.load(Ordering::Acquire) != 0;
        let mut trip = None;
        for (place, beat) in board.beats().iter().enumerate() {
            let count = beat.count.load(Ordering::Relaxed);
            if self.beats[place].for_longer(count, count != 0, patience.dispatcher.nanos()) {
                trip = Some(Trip::Dispatcher(place as u32));
            }
            let due = beat.due.load(Ordering::Relaxed);
            let is_past = !is_ending && due != 0 && due < now;
            if self.dues[place].for_longer(due, is_past, patience.ordinary.nanos()) {
                trip = trip.or(Some(Trip::Overdue(place as u32)));
            }
        }
        let supervised = board.supervised.load(Ordering::Relaxed) != 0;
        let ordinary = board.ordinary.load(Ordering::Relaxed);
        if self
            .ordinary
            .for_longer(ordinary, supervised, patience.ordinary.nanos())
        {
            trip = Some(Trip::Ordinary);
        }
        if is_ending {
            self.window = None;
        } else if self.lacks_slack(board, now) {
            trip = trip.or(Some(Trip::Slackless));
        }
        let latest = board.latest.load(Ordering::Acquire);
        if latest != 0 && latest < now {
            trip = trip.or(Some(Trip::Late));
        }
        trip
    }

    /// Has a window ended in which no place told slack as often as it has to?
    fn lacks_slack(&mut self, board: &Board, now: u64) -> bool {
        let places = (board.slack_places.load(Ordering::Acquire) as usize).min(MAX_BEATS);
        let window = board.slack_window.load(Ordering::Relaxed);
        if places == 0 {
            return false;
        }
        let begun = *self.window.get_or_insert(now);
        // At its beginning what was told before is noted.
        if begun != now && now - begun < window {
            return false;
        }
        let least = (window / TELL / ONE_OF).max(1);
        let mut most = 0;
        for (before, beat) in self.slack[..places].iter_mut().zip(board.beats()) {
            let told = beat.slack.load(Ordering::Relaxed);
            most = most.max(told.wrapping_sub(std::mem::replace(before, told)));
        }
        self.window = Some(now);
        begun != now && most < least
    }
}
