//! What the books tell: to the operator, and to who gets less than was asked for.

use super::{Access, Client, ClientId, Ledger, Pages, Spoiled, State, Summary, TileId};
use crate::colors::Color;
use crate::tile::TILE_PAGES;

impl Ledger {
    /// Where the pages of a color are that are not free.
    pub(super) fn elsewhere(&self, color: Color) -> String {
        let of_all = self.pages();
        let Pages {
            held, returning, ..
        } = of_all.get(color.index()).copied().unwrap_or_default();
        let struck = self.struck.get(color.index()).copied().unwrap_or(0) * TILE_PAGES as u64;
        let mut text = String::new();
        for (pages, state) in [
            (held, "held"),
            (returning, "given back but still mapped"),
            (struck, "struck off, for their frames had changed"),
        ] {
            if pages > 0 {
                text += &format!(", {pages} {state}");
            }
        }
        text
    }

    /// The pages of each color.
    fn pages(&self) -> Vec<Pages> {
        let mut pages = vec![Pages::default(); usize::from(self.colors)];
        for (color, state) in self.tiles.values() {
            let row = &mut pages[color.index()];
            match state {
                State::Free => row.free += TILE_PAGES as u64,
                State::Held(..) => row.held += TILE_PAGES as u64,
                State::Returning(_) => row.returning += TILE_PAGES as u64,
            }
        }
        pages
    }

    /// Pages of tiles that a client holds and that have lost their color.
    fn untrue_of(&self, client: ClientId) -> u64 {
        let held = |id: &&TileId| match self.tiles.get(id) {
            Some((_, State::Held(c, _))) => *c == client,
            _ => false,
        };
        self.untrue.iter().filter(held).count() as u64 * TILE_PAGES as u64
    }

    /// What the books say.
    pub fn summary(&self) -> Summary {
        Summary {
            colors: self.colors,
            grants: self.grants.values().cloned().collect(),
            names: self.names.clone(),
            clients: self
                .clients
                .iter()
                .map(|(id, peer)| Client {
                    peer: *peer,
                    colors: self.colors_of(*id, Access::Full),
                    read_only: self.colors_of(*id, Access::ReadOnly),
                    pages: self
                        .tiles
                        .values()
                        .filter(|t| matches!(t.1, State::Held(holder, _) if holder == *id))
                        .count() as u64
                        * TILE_PAGES as u64,
                    untrue: self.untrue_of(*id),
                })
                .collect(),
            pages: self.pages(),
            struck: self.struck.iter().map(|n| n * TILE_PAGES as u64).collect(),
            spoiled: self
                .records
                .iter()
                .filter(|(_, record)| record.spoiled() > 0)
                .map(|((holder, access), record)| Spoiled {
                    holder: holder.clone(),
                    access: *access,
                    pages: record.spoiled() * TILE_PAGES as u64,
                })
                .collect(),
            violations: self.violations.clone(),
        }
    }
}
