//! What the engine's watch for standstills takes from its processor (`execute::Settings`), from the
//! timer's interrupt that wakes it up until it has gone, and what it finds.

use super::{Cost, Disturbance, Tile, Tiler};
use model::OverheadKind;

/// So many of the latest tiles may have been taken while the machine stood still: a standstill is
/// noted when it is over.
const RECENT: usize = 256;

/// The watch for standstills is on its processor, or on its way there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Look {
    begun: u64,
    disturbed: Option<Disturbance>,
}

impl Tiler {
    pub(super) fn watch_wakes(&mut self, time: u64) {
        let interrupt = self.interrupt.as_ref();
        // What a tick takes in the same interrupt is charged as a tick.
        let is_tick = interrupt.is_some_and(|interrupt| interrupt.is_tick);
        self.watch = Some(Look {
            begun: interrupt.map_or(time, |interrupt| interrupt.since),
            disturbed: is_tick.then_some(Disturbance::Interrupt),
        });
    }

    pub(super) fn watch_leaves(&mut self, time: u64) {
        let Some(look) = self.watch.take() else {
            return;
        };
        let tile = Tile {
            cost: Cost::Overhead(OverheadKind::Watch),
            begun: look.begun,
            own: None,
            whole: time.saturating_sub(look.begun),
            disturbed: look.disturbed,
        };
        // An episode's own tiles come one after the other, and the last of them grows.
        match &mut self.episode {
            Some(episode) => {
                self.tiles.insert(episode.first, tile);
                episode.first += 1;
            }
            None => {
                self.tiles.push(tile);
                self.beginning = None;
            }
        }
    }

    pub(super) fn disturb_watch(&mut self, by: Disturbance) {
        if let Some(look) = &mut self.watch {
            look.disturbed.get_or_insert(by);
        }
    }

    /// The machine stood still since then.
    pub(super) fn stand_still(&mut self, since: u64) {
        // Tiles end in the order in which they stand, but for timers that were set within one.
        for tile in self.tiles.iter_mut().rev().take(RECENT) {
            if tile.begun + tile.whole > since {
                tile.disturbed = Some(Disturbance::Standstill);
            }
        }
        self.disturb(Disturbance::Standstill);
        self.disturb_watch(Disturbance::Standstill);
    }
}
