//! Who may use which colors, and who holds which tile: the memory server's books, without any system call.
//!
//! 001 §5.1: the operator grants colors to tasks or groups of tasks, for exclusive use; an application uses what was
//! granted to it. A tile is free, held by one client, or *returning*: its client let go of it or died, but nobody has
//! made sure yet that it is not mapped any more. Only free tiles are handed out, so that no tile is ever held twice.

use crate::colors::{Color, Colors};
pub use crate::holder::Holder;
use crate::tile::TILE_PAGES;
use model::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A tile by its number.
pub type TileId = u32;
/// A connection of a client.
pub type ClientId = u64;

/// What was granted to one holder.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Grant {
    /// Whom.
    pub holder: Holder,
    /// Which colors.
    pub colors: Colors,
    /// The most pages that its clients may hold together; `None`: as many as there are.
    pub pages: Option<u64>,
}

/// Who is at the other end of a connection, as the kernel says.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Peer {
    /// Its process.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Free,
    Held(ClientId),
    Returning,
}

/// The books.
#[derive(Debug)]
pub struct Ledger {
    colors: u16,
    tiles: BTreeMap<TileId, (Color, State)>,
    free: Vec<Vec<TileId>>,
    grants: BTreeMap<Holder, Grant>,
    groups: BTreeMap<u32, BTreeSet<String>>,
    clients: BTreeMap<ClientId, Peer>,
    next: ClientId,
}

/// What the books say, for the operator.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// How many colors there are.
    pub colors: u16,
    /// The grants.
    pub grants: Vec<Grant>,
    /// Who is connected.
    pub clients: Vec<Client>,
    /// Pages of each color: free, held, returning.
    pub pages: Vec<(u64, u64, u64)>,
}

/// A connected client.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Client {
    /// Who.
    pub peer: Peer,
    /// The colors that it may use.
    pub colors: Colors,
    /// Pages that it holds.
    pub pages: u64,
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
            clients: BTreeMap::new(),
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

    /// Grants colors, in addition to what the holder has.
    ///
    /// # Errors
    /// A color is beyond the last, or is another's.
    pub fn grant(&mut self, holder: Holder, colors: &Colors, pages: Option<u64>) -> Result<()> {
        colors.check(self.colors)?;
        if colors.is_empty() {
            return Err(Error::new("no colors are named").remedy("name some, such as `0-3`"));
        }
        for other in self.grants.values().filter(|g| g.holder != holder) {
            let both = other.colors.intersection(colors);
            if !both.is_empty() {
                return Err(
                    Error::new(format!("colors {both} are granted to {}", other.holder))
                        .remedy("take them back first, or choose others: grants are exclusive"),
                );
            }
        }
        let grant = self.grants.entry(holder.clone()).or_insert(Grant {
            holder,
            colors: Colors::new(),
            pages: None,
        });
        grant.colors = grant.colors.union(colors);
        if pages.is_some() {
            grant.pages = pages;
        }
        Ok(())
    }

    /// Takes colors back.
    ///
    /// # Errors
    /// They were not granted to the holder, or clients still hold memory of them.
    pub fn take_back(&mut self, holder: &Holder, colors: &Colors) -> Result<()> {
        let granted = self
            .grants
            .get(holder)
            .map(|g| g.colors.clone())
            .unwrap_or_default();
        let missing = colors.difference(&granted);
        if colors.is_empty() || !missing.is_empty() {
            return Err(
                Error::new(format!("colors {missing} are not granted to {holder}"))
                    .remedy(format!("it has {}", shown(&granted))),
            );
        }
        let held: BTreeSet<u32> = self
            .tiles
            .values()
            .filter_map(|(color, state)| match state {
                State::Held(client) if colors.contains(*color) => self.clients.get(client).map(|p| p.pid),
                _ => None,
            })
            .collect();
        if let Some(pid) = held.first() {
            return Err(Error::new(format!(
                "process {pid} and {} others hold memory of colors {colors}",
                held.len() - 1
            ))
            .remedy("let them give it back, or end them"));
        }
        if self
            .tiles
            .values()
            .any(|(color, state)| *state == State::Returning && colors.contains(*color))
        {
            return Err(Error::new(format!(
                "memory of colors {colors} is still mapped by a process that inherited it"
            ))
            .remedy("end the children of the client that held it"));
        }
        if let Some(grant) = self.grants.get_mut(holder) {
            grant.colors = grant.colors.difference(colors);
            if grant.colors.is_empty() {
                self.grants.remove(holder);
            }
        }
        Ok(())
    }

    /// A process joins a group.
    pub fn join(&mut self, pid: u32, group: String) {
        self.groups.entry(pid).or_default().insert(group);
    }

    /// A client connects.
    pub fn connect(&mut self, peer: Peer) -> ClientId {
        self.next += 1;
        self.clients.insert(self.next, peer);
        self.next
    }

    fn grants_of(&self, client: ClientId) -> impl Iterator<Item = &Grant> {
        let peer = self.clients.get(&client).copied();
        self.grants.values().filter(move |grant| {
            peer.is_some_and(|peer| match &grant.holder {
                Holder::Pid(pid) => *pid == peer.pid,
                Holder::Uid(uid) => *uid == peer.uid,
                Holder::Group(name) => self.groups.get(&peer.pid).is_some_and(|g| g.contains(name)),
            })
        })
    }

    /// The colors that a client may use.
    pub fn colors_of(&self, client: ClientId) -> Colors {
        self.grants_of(client)
            .fold(Colors::new(), |all, grant| all.union(&grant.colors))
    }

    /// Pages held in the colors of a grant: grants are exclusive, so that they are its holder's.
    fn pages_held(&self, grant: &Grant) -> u64 {
        let held = |(color, state): &&(Color, State)| {
            matches!(state, State::Held(_)) && grant.colors.contains(*color)
        };
        self.tiles.values().filter(held).count() as u64 * TILE_PAGES as u64
    }

    /// Gives a client at least so many pages of a color, in whole tiles.
    ///
    /// # Errors
    /// The color is not the client's, the quota is used up, or there is not as much.
    pub fn take(&mut self, client: ClientId, color: Color, pages: u64) -> Result<Vec<TileId>> {
        Colors::from_iter([color]).check(self.colors)?;
        let Some(grant) = self.grants_of(client).find(|g| g.colors.contains(color)) else {
            return Err(
                Error::new(format!("color {color} is not granted to this process"))
                    .remedy(format!("it may use {}", shown(&self.colors_of(client)))),
            );
        };
        let tiles = pages.div_ceil(TILE_PAGES as u64);
        let wanted = tiles.saturating_mul(TILE_PAGES as u64);
        let held = self.pages_held(grant);
        if grant.pages.is_some_and(|most| held.saturating_add(wanted) > most) {
            return Err(Error::new(format!(
                "{wanted} pages more than the {held} held would exceed the quota of {} of {}",
                grant.pages.unwrap_or(0),
                grant.holder
            ))
            .remedy("give memory back, or ask the operator for a larger quota"));
        }
        let free = &mut self.free[color.index()];
        let Some(rest) = usize::try_from(tiles)
            .ok()
            .and_then(|n| free.len().checked_sub(n))
        else {
            return Err(Error::new(format!(
                "{wanted} pages of color {color} are wanted, {} are free",
                free.len() * TILE_PAGES
            ))
            .remedy("take less, or start the server with more memory"));
        };
        let taken = free.split_off(rest);
        for id in &taken {
            if let Some((_, state)) = self.tiles.get_mut(id) {
                *state = State::Held(client);
            }
        }
        Ok(taken)
    }

    /// A client gives tiles back; they are returning from now on.
    ///
    /// # Errors
    /// One of them is not the client's; nothing is given back then.
    pub fn give_back(&mut self, client: ClientId, tiles: &[TileId]) -> Result<()> {
        for id in tiles {
            if self.tiles.get(id).map(|t| t.1) != Some(State::Held(client)) {
                return Err(Error::new(format!("tile {id} is not held by this process"))
                    .remedy("give back what was taken over this connection"));
            }
        }
        for id in tiles {
            if let Some((_, state)) = self.tiles.get_mut(id) {
                *state = State::Returning;
            }
        }
        Ok(())
    }

    /// A client is gone: all that it held is returning.
    pub fn disconnect(&mut self, client: ClientId) {
        if let Some(peer) = self.clients.remove(&client)
            && !self.clients.values().any(|p| p.pid == peer.pid)
        {
            // The number may be another process's next time.
            self.groups.remove(&peer.pid);
            self.grants.remove(&Holder::Pid(peer.pid));
        }
        for (_, state) in self.tiles.values_mut() {
            if *state == State::Held(client) {
                *state = State::Returning;
            }
        }
    }

    /// The tiles that are returning.
    pub fn returning(&self) -> Vec<TileId> {
        self.tiles
            .iter()
            .filter(|(_, (_, state))| *state == State::Returning)
            .map(|(id, _)| *id)
            .collect()
    }

    /// Is this tile returning?
    pub fn is_returning(&self, id: TileId) -> bool {
        self.tiles.get(&id).is_some_and(|t| t.1 == State::Returning)
    }

    /// A returning tile is nobody's and zero: it is free again.
    pub fn returned(&mut self, id: TileId) {
        if let Some((color, state)) = self.tiles.get_mut(&id)
            && *state == State::Returning
        {
            *state = State::Free;
            self.free[color.index()].push(id);
        }
    }

    /// A returning tile no longer has its frames: it is struck off.
    pub fn lost(&mut self, id: TileId) {
        if self.is_returning(id) {
            self.tiles.remove(&id);
        }
    }

    /// What the books say.
    pub fn summary(&self) -> Summary {
        let mut pages = vec![(0, 0, 0); usize::from(self.colors)];
        for (color, state) in self.tiles.values() {
            let row = &mut pages[color.index()];
            match state {
                State::Free => row.0 += TILE_PAGES as u64,
                State::Held(_) => row.1 += TILE_PAGES as u64,
                State::Returning => row.2 += TILE_PAGES as u64,
            }
        }
        Summary {
            colors: self.colors,
            grants: self.grants.values().cloned().collect(),
            clients: self
                .clients
                .iter()
                .map(|(id, peer)| Client {
                    peer: *peer,
                    colors: self.colors_of(*id),
                    pages: self.tiles.values().filter(|t| t.1 == State::Held(*id)).count() as u64
                        * TILE_PAGES as u64,
                })
                .collect(),
            pages,
        }
    }
}

fn shown(colors: &Colors) -> String {
    if colors.is_empty() {
        "no colors".to_owned()
    } else {
        format!("colors {colors}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ledger() -> Ledger {
        Ledger::new(8, (0..80).map(|id| (id, Color((id % 8) as u16))))
    }
    fn colors(text: &str) -> Colors {
        text.parse().unwrap()
    }
    const PEER: Peer = Peer { pid: 7, uid: 1000 };

    #[test]
    fn a_color_is_granted_to_one_holder_only() {
        let mut books = ledger();
        books.grant(Holder::Uid(1), &colors("0-3"), None).unwrap();
        let e = books
            .grant(Holder::Uid(2), &colors("3-4"), None)
            .unwrap_err()
            .to_string();
        assert!(e.contains("colors 3 are granted to uid:1"), "{e}");
        books.take_back(&Holder::Uid(1), &colors("3")).unwrap();
        books.grant(Holder::Uid(2), &colors("3-4"), None).unwrap();
        assert!(books.grant(Holder::Uid(2), &colors("8"), None).is_err());
    }

    #[test]
    fn a_client_takes_what_was_granted_within_its_quota() {
        let mut books = ledger();
        let client = books.connect(PEER);
        assert!(
            books
                .take(client, Color(1), 1)
                .unwrap_err()
                .to_string()
                .contains("no colors")
        );
        books.grant(Holder::Uid(1000), &colors("1"), Some(32)).unwrap();
        assert_eq!(books.take(client, Color(1), 17).unwrap().len(), 2);
        let e = books.take(client, Color(1), 1).unwrap_err().to_string();
        assert!(e.contains("quota of 32"), "{e}");
        assert!(
            books
                .take(client, Color(2), 1)
                .unwrap_err()
                .to_string()
                .contains("colors 1")
        );
        assert!(
            books
                .take(client, Color(9), 1)
                .unwrap_err()
                .to_string()
                .contains("beyond the last")
        );
    }

    #[test]
    fn colors_that_are_in_use_are_not_taken_back() {
        let mut books = ledger();
        let client = books.connect(PEER);
        books.join(7, "video".to_owned());
        let group = Holder::Group("video".to_owned());
        books.grant(group.clone(), &colors("0-1"), None).unwrap();
        let tiles = books.take(client, Color(1), 16).unwrap();
        assert!(
            books
                .take_back(&group, &colors("1"))
                .unwrap_err()
                .to_string()
                .contains("process 7")
        );
        books.give_back(client, &tiles).unwrap();
        assert!(
            books
                .take_back(&group, &colors("1"))
                .unwrap_err()
                .to_string()
                .contains("still mapped")
        );
        books.returned(tiles[0]);
        books.take_back(&group, &colors("1")).unwrap();
        assert_eq!(books.colors_of(client), colors("0"));
    }

    #[test]
    fn a_grant_to_a_process_ends_with_it() {
        let mut books = ledger();
        let client = books.connect(PEER);
        books.grant(Holder::Pid(7), &colors("2"), None).unwrap();
        books.disconnect(client);
        books.grant(Holder::Uid(5), &colors("2"), None).unwrap();
    }

    #[test]
    fn more_than_there_is_is_refused_with_what_is_free() {
        let mut books = ledger();
        let client = books.connect(PEER);
        books.grant(Holder::Uid(1000), &colors("0"), None).unwrap();
        for pages in [161, u64::MAX] {
            assert!(
                books
                    .take(client, Color(0), pages)
                    .unwrap_err()
                    .to_string()
                    .contains("160 are free")
            );
        }
        assert_eq!(books.take(client, Color(0), 160).unwrap().len(), 10);
    }

    #[derive(Clone, Debug)]
    enum Step {
        Connect,
        Take(usize, u16, u64),
        GiveBack(usize),
        Kill(usize),
        Return,
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = prop_oneof![
            Just(Step::Connect),
            (0usize..8, 0u16..9, 0u64..60).prop_map(|(c, color, n)| Step::Take(c, color, n)),
            (0usize..8).prop_map(Step::GiveBack),
            (0usize..8).prop_map(Step::Kill),
            Just(Step::Return),
        ];
        prop::collection::vec(step, 0..200)
    }

    proptest! {
        /// No tile is lost and none is held by two, whatever clients do and whenever they die.
        #[test]
        fn no_tile_is_lost_or_held_twice(steps in steps()) {
            let mut books = ledger();
            books.grant(Holder::Uid(1000), &colors("0-7"), Some(600)).unwrap();
            let mut clients: Vec<(ClientId, Vec<TileId>)> = Vec::new();
            for step in steps {
                match step {
                    Step::Connect => clients.push((books.connect(PEER), Vec::new())),
                    Step::Take(c, color, pages) => {
                        let number = clients.len().max(1);
                        if let Some((client, own)) = clients.get_mut(c % number) {
                            let before: Vec<TileId> = own.clone();
                            if let Ok(tiles) = books.take(*client, Color(color), pages) {
                                prop_assert!(tiles.iter().all(|t| !before.contains(t)));
                                own.extend(tiles);
                            }
                        }
                    }
                    Step::GiveBack(c) => {
                        let number = clients.len().max(1);
                        if let Some((client, own)) = clients.get_mut(c % number) {
                            let tiles = std::mem::take(own);
                            prop_assert!(books.give_back(*client, &tiles).is_ok());
                            prop_assert!(tiles.is_empty() || books.give_back(*client, &tiles).is_err());
                        }
                    }
                    Step::Kill(c) => {
                        if !clients.is_empty() {
                            let (client, _) = clients.remove(c % clients.len());
                            books.disconnect(client);
                        }
                    }
                    Step::Return => {
                        for id in books.returning() {
                            books.returned(id);
                        }
                    }
                }
                let mut held: Vec<TileId> = clients.iter().flat_map(|c| c.1.clone()).collect();
                let number = held.len();
                held.sort_unstable();
                held.dedup();
                prop_assert_eq!(held.len(), number, "a tile is held twice");
                let pages = books.summary().pages;
                let all: u64 = pages.iter().map(|(f, h, r)| f + h + r).sum();
                prop_assert_eq!(all, 80 * TILE_PAGES as u64, "a tile is lost");
                prop_assert_eq!(pages.iter().map(|p| p.1).sum::<u64>(), (number * TILE_PAGES) as u64);
            }
        }
    }
}
