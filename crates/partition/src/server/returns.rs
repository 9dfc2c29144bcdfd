//! What comes back: from clients that let go of it or ended, and from processes that are no more.

use super::{Books, Core, TICK};
use crate::ledger::{Blame, TileId};
use crate::tile::{Renewed, Tile, Undisturbed};
use crate::upkeep::Upkeep;
use model::Result;
use model::watch::Watch;
use std::time::Instant;

/// How often the color of a tile is asked by time before it is given up.
const QUESTIONS: u32 = 3;
/// Tiles whose color is asked at once.
const AT_ONCE: usize = 4;

impl Core {
    /// Takes in again and again what is returning, until the watch says stop.
    pub(super) fn keep_house(&self, watch: &dyn Watch) {
        let mut pause = TICK;
        while !watch.stopped() {
            std::thread::sleep(pause);
            let began = Instant::now();
            self.forget_ended(watch);
            let returning = self.books().ledger.returning();
            self.take_in(&returning);
            // What somebody keeps mapped is asked about in vain: not more than a tenth of the time.
            pause = TICK.max(10 * began.elapsed()).min(40 * TICK);
        }
    }

    /// Forgets grants to processes that have ended.
    fn forget_ended(&self, watch: &dyn Watch) {
        let mut books = self.books();
        let mut changed = false;
        for pid in books.ledger.processes() {
            // One that ended before it was known has ended, too.
            if books.processes.get(&pid).is_none_or(|p| p.has_ended()) {
                books.ledger.ended(pid);
                books.processes.remove(&pid);
                changed = true;
            }
        }
        drop(books);
        if changed {
            self.save(watch);
        }
    }

    /// Takes in those of these tiles that are returning and that nobody has open or mapped any
    /// more. When this returns, no other thread is at one of them either: who gives back finds the
    /// pages free.
    pub(super) fn take_in(&self, ids: &[TileId]) {
        for id in ids {
            let Some(mut tile) = self.fetch(*id) else {
                continue;
            };
            let renewed = {
                let undisturbed = Undisturbed::begin();
                tile.renew(self.numbers.as_ref(), &undisturbed)
            };
            self.settle(*id, tile, renewed);
            // Nothing counts the time at the higher priority: others have waited.
            std::thread::yield_now();
        }
        let is_busy = || {
            let books = self.books();
            ids.iter().any(|id| books.busy.contains(id))
        };
        while is_busy() {
            std::thread::sleep(TICK / 25);
        }
    }

    /// Takes a tile that came back out of the books, if nobody has it any more and no other thread
    /// is at it.
    fn fetch(&self, id: TileId) -> Option<Tile> {
        let mut books = self.books();
        let Books {
            ledger,
            tiles,
            busy,
            unproven,
            ..
        } = &mut *books;
        // It may have been taken in, and handed out again, since.
        if !ledger.is_returning(id) || busy.contains(&id) || unproven.contains_key(&id) {
            return None;
        }
        let Some(tile) = tiles.get(&id) else {
            // Of a server before, and never ours: its memory is the system's again.
            ledger.lost(id);
            return None;
        };
        if !tile.is_alone() {
            return None;
        }
        busy.insert(id);
        tiles.remove(&id)
    }

    /// Puts a tile whose frames were renewed into the books again, or strikes it off.
    fn settle(&self, id: TileId, tile: Tile, renewed: Renewed) {
        let mut books = self.books();
        books.busy.remove(&id);
        let keep = match renewed {
            _ if tile.untrue => false,
            Renewed::Same => true,
            Renewed::Unknown => true,
            Renewed::Others | Renewed::Missing | Renewed::Exchanged => false,
        };
        if keep {
            books.tiles.insert(id, tile);
            if renewed == Renewed::Unknown && self.upkeep.get().is_some() {
                books.unproven.insert(id, 0);
            } else {
                books.ledger.returned(id);
            }
            return;
        }
        let blame = match renewed {
            Renewed::Exchanged => Blame::Certain,
            Renewed::Missing => Blame::Likely,
            _ => Blame::None,
        };
        let whose = books.ledger.charged_to(id);
        books.ledger.strike(id, blame);
        drop(books);
        self.relay.note(match (blame, whose) {
            (Blame::Certain, Some(holder)) => format!(
                "note: tile {id} came back without its frames, for {holder} exchanged them: it is struck off and counts against that grant"
            ),
            (Blame::Likely, Some(holder)) => format!(
                "note: tile {id} came back, but {holder} may still refer to some of its frames: it is struck off"
            ),
            _ => format!(
                "note: tile {id} came back with other frames than it went out with: it is struck off"
            ),
        });
    }

    /// Asks by time which colors have the frames of tiles that came back, where no numbers tell it.
    ///
    /// # Errors
    /// A processor cannot be used; the user stopped it.
    pub(crate) fn prove(&self, upkeep: &Upkeep, watch: &dyn Watch) -> Result<()> {
        let asked: Vec<(TileId, Tile)> = {
            let mut books = self.books();
            let ids: Vec<TileId> = books.unproven.keys().copied().take(AT_ONCE).collect();
            let taken = ids.into_iter().filter_map(|id| {
                let tile = books.tiles.remove(&id)?;
                books.busy.insert(id);
                Some((id, tile))
            });
            taken.collect()
        };
        if asked.is_empty() {
            return Ok(());
        }
        let seen = upkeep.are_true(asked.iter().map(|(_, tile)| tile), watch);
        let mut books = self.books();
        for (place, (id, tile)) in asked.into_iter().enumerate() {
            books.busy.remove(&id);
            let is_true = seen
                .as_ref()
                .is_ok_and(|seen| seen.get(place) == Some(&true));
            let questions = books.unproven.entry(id).or_default();
            *questions += u32::from(seen.is_ok());
            if !is_true && *questions < QUESTIONS {
                books.tiles.insert(id, tile);
                continue;
            }
            books.unproven.remove(&id);
            if is_true {
                books.tiles.insert(id, tile);
                books.ledger.returned(id);
            } else {
                books.ledger.strike(id, Blame::None);
                self.relay.note(format!(
                    "note: tile {id} came back and no longer has color {}: it is struck off",
                    tile.color
                ));
            }
        }
        seen.map(drop)
    }
}
