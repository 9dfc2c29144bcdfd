//! Who may use which colors, and who holds which tile: the memory server's books, without any
//! system call.
//!
//! 001 §5.1: the operator grants colors to tasks or groups of tasks, for exclusive use; an
//! application uses what was granted to it. A tile is free, held by one client, or *returning*: its
//! client let go of it or died, but nobody has made sure yet that it is not mapped any more. Only
//! free tiles are handed out, so that no tile is ever held twice.
//!
//! A tile counts against the grant that it was taken under until it is free again, also while it is
//! returning: a client may give it back and go on using it. A tile whose frames its holder has
//! exchanged counts for as long as the grant lasts.

use crate::colors::{Color, Colors};
pub use crate::holder::{Access, Holder};
use crate::tile::TILE_PAGES;
use model::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};

mod said;
mod told;

mod granted;

mod clients;

/// A tile by its number.
pub type TileId = u32;
/// A connection of a client.
pub type ClientId = u64;

/// The most attempts to write that are remembered, by process and color.
const MOST_VIOLATIONS: usize = 256;
/// The most names of super colors.
const MOST_NAMES: usize = 1024;

pub use said::{Client, Grant, Pages, Peer, Rights, Spoiled, Summary, Violation};

/// What a tile that is not free counts against.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Charge {
    /// The holder of the grant; `None`: a tile of a server before, whose grant is gone.
    holder: Option<Holder>,
    access: Access,
}

impl Charge {
    fn is_under(&self, grant: &Grant) -> bool {
        self.access == grant.access && self.holder.as_ref() == Some(&grant.holder)
    }
}

/// Did the last holder of a tile make it useless?
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Blame {
    /// Nothing says so.
    None,
    /// It may have been the system: that counts from more than one tile in [`SELDOM`] on.
    Likely,
    /// Nobody else could.
    Certain,
}

/// Of so many tiles that come back the system may spoil one.
const SELDOM: u64 = 256;

/// What came back under a grant, in tiles.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Record {
    whole: u64,
    likely: u64,
    certain: u64,
}

impl Record {
    /// The tiles that count against the grant.
    fn spoiled(self) -> u64 {
        self.certain + self.likely.saturating_sub(self.whole / SELDOM)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum State {
    Free,
    Held(ClientId, Charge),
    Returning(Charge),
}

/// The books.
#[derive(Debug)]
pub struct Ledger {
    colors: u16,
    tiles: BTreeMap<TileId, (Color, State)>,
    free: Vec<Vec<TileId>>,
    grants: BTreeMap<(Holder, Access), Grant>,
    groups: BTreeMap<u32, BTreeSet<String>>,
    /// When the processes began that grants and groups name.
    began: BTreeMap<u32, u64>,
    names: BTreeMap<String, Colors>,
    clients: BTreeMap<ClientId, Peer>,
    violations: Vec<Violation>,
    /// Clients of a server before that hold tiles, and have not come back or never will.
    absent: BTreeSet<ClientId>,
    /// Tiles that have lost their color while somebody holds them.
    untrue: BTreeSet<TileId>,
    /// How many tiles of each color were struck off.
    struck: Vec<u64>,
    /// What came back under each grant.
    records: BTreeMap<(Holder, Access), Record>,
    next: ClientId,
}

impl Ledger {
    /// Over these tiles, all free.
    pub fn new(colors: u16, tiles: impl IntoIterator<Item = (TileId, Color)>) -> Self {
        let mut ledger = Ledger {
            colors,
            tiles: BTreeMap::new(),
            free: vec![Vec::new(); usize::from(colors)],
            grants: BTreeMap::new(),
            groups: BTreeMap::new(),
            began: BTreeMap::new(),
            names: BTreeMap::new(),
            clients: BTreeMap::new(),
            violations: Vec::new(),
            absent: BTreeSet::new(),
            untrue: BTreeSet::new(),
            struck: vec![0; usize::from(colors)],
            records: BTreeMap::new(),
            next: 0,
        };
        for (id, color) in tiles {
            if let Some(free) = ledger.free.get_mut(color.index()) {
                ledger.tiles.insert(id, (color, State::Free));
                free.push(id);
            }
        }
        ledger
    }

    /// Enters a tile that a process holds from a server before.
    pub fn enter_held(&mut self, id: TileId, color: Color, peer: Peer, access: Access) {
        if color.index() >= self.free.len() {
            return;
        }
        let known = self
            .absent
            .iter()
            .find(|c| self.clients.get(c) == Some(&peer))
            .copied();
        let client = known.unwrap_or_else(|| self.connect(peer));
        self.absent.insert(client);
        let grant = self.grant_for(client, color, access);
        let charge = Charge {
            holder: grant.map(|grant| grant.holder.clone()),
            access,
        };
        self.tiles.insert(id, (color, State::Held(client, charge)));
    }

    /// Who holds a tile.
    pub fn holder_of(&self, id: TileId) -> Option<Peer> {
        match self.tiles.get(&id)? {
            (_, State::Held(client, _)) => self.clients.get(client).copied(),
            _ => None,
        }
    }

    /// Enters the color that a tile was found to have instead of its own.
    pub fn recolor(&mut self, id: TileId, new: Color) {
        if let Some((color, state)) = self.tiles.get_mut(&id)
            && new.index() < self.free.len()
        {
            if *state == State::Free {
                self.free[color.index()].retain(|free| *free != id);
                self.free[new.index()].push(id);
            } else {
                self.untrue.insert(id);
            }
            *color = new;
        }
    }

    /// A tile that is held has lost its color.
    pub fn mark_untrue(&mut self, id: TileId) {
        self.untrue.insert(id);
    }

    /// A tile no longer has its frames or its color: it is struck off, unless somebody holds it.
    /// Where its last holder is to blame, it goes on counting against that grant.
    pub fn strike(&mut self, id: TileId, blame: Blame) {
        let Some((color, state)) = self.tiles.get(&id) else {
            return;
        };
        match state {
            State::Held(..) => return,
            State::Returning(charge) => {
                let record = record_of(&mut self.records, charge);
                match (record, blame) {
                    (Some(record), Blame::Certain) => record.certain += 1,
                    (Some(record), Blame::Likely) => record.likely += 1,
                    _ => {}
                }
            }
            State::Free => {}
        }
        self.struck[color.index()] += 1;
        self.free[color.index()].retain(|free| *free != id);
        self.tiles.remove(&id);
        self.untrue.remove(&id);
    }

    /// Pages that count against a grant.
    fn pages_under(&self, grant: &Grant) -> u64 {
        let counts = |(_, state): &&(Color, State)| match state {
            State::Held(_, charge) | State::Returning(charge) => charge.is_under(grant),
            State::Free => false,
        };
        let record = self.records.get(&(grant.holder.clone(), grant.access));
        let spoiled = record.map_or(0, |record| record.spoiled());
        (self.tiles.values().filter(counts).count() as u64 + spoiled) * TILE_PAGES as u64
    }

    /// Gives a client at least so many pages of a color, in whole tiles: to use, or only to read.
    ///
    /// # Errors
    /// The color is not the client's, or only to read; the quota is used up; there is not as much.
    pub fn take(
        &mut self,
        client: ClientId,
        color: Color,
        pages: u64,
        access: Access,
    ) -> Result<Vec<TileId>> {
        Colors::from_iter([color]).check(self.colors)?;
        let Some(grant) = self.grant_for(client, color, access) else {
            if access == Access::Full && self.may_only_read(client, color) {
                return Err(Error::new(format!(
                    "color {color} belongs to {}: this process may only read it",
                    self.owner_of(color)
                        .map_or_else(|| "nobody".to_owned(), ToString::to_string)
                ))
                .remedy("ask for it read-only, or ask the operator for other colors"));
            }
            return Err(Error::new(format!(
                "color {color} is not granted to this process{}",
                access.suffix()
            ))
            .remedy(format!(
                "it may use {}",
                shown(&self.colors_of(client, access))
            )));
        };
        let tiles = pages.div_ceil(TILE_PAGES as u64);
        let wanted = tiles.saturating_mul(TILE_PAGES as u64);
        let held = self.pages_under(grant);
        if grant
            .pages
            .is_some_and(|most| held.saturating_add(wanted) > most)
        {
            return Err(Error::new(format!(
                "{wanted} pages more than the {held} held would exceed the quota of {} of {}",
                grant.pages.unwrap_or(0),
                grant.holder
            ))
            .remedy(
                "give memory back and unmap it everywhere, or ask the operator for a larger quota",
            ));
        }
        let charge = Charge {
            holder: Some(grant.holder.clone()),
            access,
        };
        let free = &mut self.free[color.index()];
        let Some(rest) = usize::try_from(tiles)
            .ok()
            .and_then(|n| free.len().checked_sub(n))
        else {
            return Err(Error::new(format!(
                "{wanted} pages of color {color} are wanted, {} are free{}",
                free.len() * TILE_PAGES,
                self.elsewhere(color)
            ))
            .remedy("take less, or start the server with more memory"));
        };
        let taken = free.split_off(rest);
        for id in &taken {
            if let Some((_, state)) = self.tiles.get_mut(id) {
                *state = State::Held(client, charge.clone());
            }
        }
        Ok(taken)
    }

    /// A client wrote, or wanted to, where it may only read. Kept after its end, for the operator.
    pub fn wrote(&mut self, client: ClientId, color: Color) {
        let Some(peer) = self.clients.get(&client).copied() else {
            return;
        };
        let known = |v: &&mut Violation| v.peer == peer && v.color == color;
        if let Some(violation) = self.violations.iter_mut().find(known) {
            violation.count += 1;
            return;
        }
        if self.violations.len() == MOST_VIOLATIONS {
            // Of the user with the most: one user's processes do not push out what others did.
            let mut by_user: BTreeMap<u32, usize> = BTreeMap::new();
            for violation in &self.violations {
                *by_user.entry(violation.peer.uid).or_default() += 1;
            }
            let most = by_user
                .into_iter()
                .max_by_key(|(_, n)| *n)
                .map(|(uid, _)| uid);
            if let Some(oldest) = self
                .violations
                .iter()
                .position(|v| Some(v.peer.uid) == most)
            {
                self.violations.remove(oldest);
            }
        }
        self.violations.push(Violation {
            peer,
            color,
            owner: self.owner_of(color).cloned(),
            count: 1,
        });
    }

    /// Is the holder of a tile this client: by this connection, or by one to a server before?
    fn is_same(&self, holder: ClientId, client: ClientId) -> bool {
        holder == client
            || self.absent.contains(&holder)
                && self
                    .clients
                    .get(&holder)
                    .is_some_and(|peer| peer.began != 0)
                && self.clients.get(&holder) == self.clients.get(&client)
    }

    /// A client gives tiles back; they are returning from now on.
    ///
    /// # Errors
    /// One of them is not the client's; nothing is given back then.
    pub fn give_back(&mut self, client: ClientId, tiles: &[TileId]) -> Result<()> {
        for id in tiles {
            let is_held = match self.tiles.get(id) {
                Some((_, State::Held(holder, _))) => self.is_same(*holder, client),
                _ => false,
            };
            if !is_held {
                return Err(Error::new(format!("tile {id} is not held by this process"))
                    .remedy("give back what was taken over this connection"));
            }
        }
        for id in tiles {
            if let Some((_, state)) = self.tiles.get_mut(id)
                && let State::Held(_, charge) = state
            {
                *state = State::Returning(charge.clone());
            }
        }
        Ok(())
    }

    /// The tiles that are returning.
    pub fn returning(&self) -> Vec<TileId> {
        self.tiles
            .iter()
            .filter(|(_, (_, state))| matches!(state, State::Returning(_)))
            .map(|(id, _)| *id)
            .collect()
    }

    /// Is this tile returning?
    pub fn is_returning(&self, id: TileId) -> bool {
        matches!(self.tiles.get(&id), Some((_, State::Returning(_))))
    }

    /// The returning tiles of a color.
    pub fn returning_of(&self, color: Color) -> Vec<TileId> {
        let of = |t: &(Color, State)| t.0 == color && matches!(t.1, State::Returning(_));
        let tiles = self.tiles.iter().filter(|(_, t)| of(t));
        tiles.map(|(id, _)| *id).collect()
    }

    /// The tiles that a client holds.
    pub fn held_by(&self, client: ClientId) -> Vec<TileId> {
        let held = |t: &(Color, State)| matches!(t.1, State::Held(holder, _) if holder == client);
        let tiles = self.tiles.iter().filter(|(_, t)| held(t));
        tiles.map(|(id, _)| *id).collect()
    }

    /// The clients that hold tiles.
    pub fn holders(&self) -> BTreeSet<ClientId> {
        let held = |t: &(Color, State)| match t.1 {
            State::Held(client, _) => Some(client),
            State::Free | State::Returning(_) => None,
        };
        self.tiles.values().filter_map(held).collect()
    }

    /// Against whose grant a tile counts.
    pub fn charged_to(&self, id: TileId) -> Option<Holder> {
        match &self.tiles.get(&id)?.1 {
            State::Held(_, charge) | State::Returning(charge) => charge.holder.clone(),
            State::Free => None,
        }
    }

    /// A returning tile is nobody's and zero: it is free again.
    pub fn returned(&mut self, id: TileId) {
        if let Some((color, state)) = self.tiles.get_mut(&id)
            && let State::Returning(charge) = state
        {
            if let Some(record) = record_of(&mut self.records, charge) {
                record.whole += 1;
            }
            self.untrue.remove(&id);
            *state = State::Free;
            self.free[color.index()].push(id);
        }
    }

    /// A returning tile was never this server's: its memory is the system's again.
    pub fn lost(&mut self, id: TileId) {
        if self.is_returning(id) {
            self.untrue.remove(&id);
            self.tiles.remove(&id);
        }
    }
}

/// What came back under the grant that a tile counts against.
fn record_of<'a>(
    records: &'a mut BTreeMap<(Holder, Access), Record>,
    charge: &Charge,
) -> Option<&'a mut Record> {
    let holder = charge.holder.clone()?;
    Some(records.entry((holder, charge.access)).or_default())
}

fn shown(colors: &Colors) -> String {
    if colors.is_empty() {
        "no colors".to_owned()
    } else {
        format!("colors {colors}")
    }
}

#[cfg(test)]
mod tests;
