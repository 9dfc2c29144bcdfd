//! How many connections there may be: in all, and of one user.
//!
//! A connection costs a thread and a descriptor. Nobody has more than [`MOST_OF_USER`]. Where no
//! room is left, the one that was silent for longest and holds no tile makes room: of the same user
//! where he has all that he may have, of the user with the most where all are taken. The operator
//! finds room in any case.

use crate::ledger::ClientId;
use model::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// The most connections at once, without those of the operator.
pub const MOST_CLIENTS: usize = 1024;
/// The most connections of one user.
pub const MOST_OF_USER: usize = 256;
/// How long a line that has begun may take to end, and how long a connection must have been silent
/// to make room for another.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);

/// A connection.
#[derive(Debug)]
pub(super) struct Open {
    number: u64,
    uid: u32,
    pub(super) stream: Arc<UnixStream>,
    /// Held while a request of this user is handled.
    pub(super) turn: Arc<Mutex<()>>,
    began: Instant,
    /// Milliseconds from `began` to the last line.
    heard: AtomicU64,
    /// What the books call it; 0: nothing yet.
    client: AtomicU64,
}

impl Open {
    /// A line has come.
    pub(super) fn heard(&self) {
        let since = self.began.elapsed().as_millis();
        self.heard
            .store(u64::try_from(since).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    pub(super) fn speaks_as(&self, client: ClientId) {
        self.client.store(client, Ordering::Relaxed);
    }

    fn last_heard(&self) -> Instant {
        self.began + Duration::from_millis(self.heard.load(Ordering::Relaxed))
    }
}

#[derive(Debug, Default)]
struct Known {
    open: BTreeMap<u64, Arc<Open>>,
    next: u64,
}

impl Known {
    fn of(&self, uid: u32) -> impl Iterator<Item = &Arc<Open>> {
        self.open.values().filter(move |open| open.uid == uid)
    }

    /// The user with the most connections, and how many he has.
    fn largest(&self) -> Option<(u32, usize)> {
        let mut by_user: BTreeMap<u32, usize> = BTreeMap::new();
        for open in self.open.values() {
            *by_user.entry(open.uid).or_default() += 1;
        }
        by_user.into_iter().max_by_key(|(_, number)| *number)
    }

    /// Cuts off the connection of a user that has been silent for longest and holds nothing. Is
    /// there one?
    fn make_room(&mut self, uid: u32, holders: &BTreeSet<ClientId>, patience: Duration) -> bool {
        let idle = |open: &&Arc<Open>| {
            open.last_heard().elapsed() >= patience
                && !holders.contains(&open.client.load(Ordering::Relaxed))
        };
        let found = self
            .of(uid)
            .filter(idle)
            .min_by_key(|open| open.last_heard())
            .map(|open| open.number);
        let Some(open) = found.and_then(|number| self.open.remove(&number)) else {
            return false;
        };
        // Its thread ends when it reads the end of the stream. One that is closed already is as
        // well.
        let _ = open.stream.shutdown(Shutdown::Both);
        true
    }

    fn add(&mut self, uid: u32, stream: Arc<UnixStream>) -> Arc<Open> {
        self.next += 1;
        let turn = self.of(uid).next().map(|open| Arc::clone(&open.turn));
        let open = Arc::new(Open {
            number: self.next,
            uid,
            stream,
            turn: turn.unwrap_or_default(),
            began: Instant::now(),
            heard: AtomicU64::new(0),
            client: AtomicU64::new(0),
        });
        self.open.insert(self.next, Arc::clone(&open));
        open
    }
}

/// All connections.
#[derive(Debug, Default)]
pub(super) struct Connections(Mutex<Known>);

impl Connections {
    fn known(&self) -> MutexGuard<'_, Known> {
        // Each change is complete in itself.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets a user connect once more. `holders`: the clients that hold tiles, asked for where room
    /// is wanted.
    ///
    /// # Errors
    /// He has as many connections as he may have; there are as many as there may be.
    pub(super) fn admit(
        &self,
        uid: u32,
        is_operator: bool,
        stream: &Arc<UnixStream>,
        holders: impl Fn() -> BTreeSet<ClientId>,
    ) -> Result<Arc<Open>> {
        let mut known = self.known();
        let own = known.of(uid).count();
        if own >= MOST_OF_USER && !known.make_room(uid, &holders(), PATIENCE) {
            return Err(
                Error::new(format!("user {uid} has {MOST_OF_USER} connections already"))
                    .remedy("end some of these processes, or try again later"),
            );
        }
        if known.open.len() >= MOST_CLIENTS && !is_operator {
            let made = match known.largest() {
                Some((largest, number)) if number > own => {
                    known.make_room(largest, &holders(), PATIENCE)
                }
                _ => false,
            };
            if !made {
                return Err(Error::new(format!("{MOST_CLIENTS} clients are connected"))
                    .remedy("try again later"));
            }
        }
        Ok(known.add(uid, Arc::clone(stream)))
    }

    /// A connection of this process to itself, which counts for nobody.
    pub(super) fn open_own(&self, stream: Arc<UnixStream>) -> Arc<Open> {
        self.known()
            .add(rustix::process::geteuid().as_raw(), stream)
    }

    /// A connection has ended.
    pub(super) fn closed(&self, open: &Open) {
        self.known().open.remove(&open.number);
    }

    pub(super) fn count(&self) -> usize {
        self.known().open.len()
    }

    /// Ends all connections.
    pub(super) fn close_all(&self) {
        for open in self.known().open.values() {
            // One that is closed already is as well.
            let _ = open.stream.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Server;
    use super::*;
    use crate::colors::{Color, Colors};
    use crate::ledger::{Access, Holder, Pages};
    use crate::tile::{TILE_PAGES, Tile};
    use model::Bytes;

    fn stream() -> Arc<UnixStream> {
        Arc::new(UnixStream::pair().unwrap().0)
    }

    fn fill(connections: &Connections, uid: u32, number: usize) -> Vec<Arc<Open>> {
        let nobody = BTreeSet::new;
        (0..number)
            .map(|_| connections.admit(uid, false, &stream(), nobody).unwrap())
            .collect()
    }

    #[test]
    fn a_user_who_has_all_that_he_may_have_is_refused_and_others_are_not() {
        let connections = Connections::default();
        let own = fill(&connections, 1, MOST_OF_USER);
        let e = connections
            .admit(1, false, &stream(), BTreeSet::new)
            .unwrap_err();
        assert!(e.to_string().contains("user 1 has 256 connections"), "{e}");
        connections
            .admit(2, false, &stream(), BTreeSet::new)
            .unwrap();
        connections.closed(&own[0]);
        connections
            .admit(1, false, &stream(), BTreeSet::new)
            .unwrap();
        assert!(
            connections
                .admit(1, false, &stream(), BTreeSet::new)
                .is_err()
        );
    }

    #[test]
    fn the_operator_finds_room_where_users_together_have_taken_all() {
        let connections = Connections::default();
        for uid in 1..=4 {
            fill(&connections, uid, MOST_OF_USER);
        }
        let e = connections
            .admit(5, false, &stream(), BTreeSet::new)
            .unwrap_err();
        assert!(e.to_string().contains("1024 clients are connected"), "{e}");
        connections
            .admit(0, true, &stream(), BTreeSet::new)
            .unwrap();
    }

    #[test]
    fn the_longest_silent_one_that_holds_nothing_makes_room() {
        let connections = Connections::default();
        let own = fill(&connections, 1, 3);
        for (client, open) in (1..).zip(&own) {
            open.speaks_as(client);
        }
        let mut known = connections.known();
        let one_holds = BTreeSet::from([1]);
        assert!(
            !known.make_room(1, &one_holds, PATIENCE),
            "nobody was silent"
        );
        assert!(!known.make_room(2, &one_holds, Duration::ZERO));
        assert!(known.make_room(1, &one_holds, Duration::ZERO));
        let left: Vec<u64> = known.open.keys().copied().collect();
        assert_eq!(left, [own[0].number, own[2].number]);
        assert_eq!(
            std::io::Read::read(&mut &*own[1].stream, &mut [0]).unwrap(),
            0
        );
    }

    #[test]
    fn requests_of_one_user_take_turns_with_each_other_alone() {
        let connections = Connections::default();
        let (own, other) = (fill(&connections, 1, 2), fill(&connections, 2, 1));
        assert!(Arc::ptr_eq(&own[0].turn, &own[1].turn));
        assert!(!Arc::ptr_eq(&own[0].turn, &other[0].turn));
    }

    #[test]
    fn who_died_is_counted_until_what_he_had_asked_for_has_come_back() {
        let server = Arc::new(Server::new(1, vec![Tile::fresh(Color(0)).unwrap()]));
        let colors = Colors::first(1);
        let own = Holder::Uid(rustix::process::geteuid().as_raw());
        let core = &server.core;
        let granted = core.books().ledger.grant(own, &colors, None, Access::Full);
        granted.unwrap();
        let mut client = server.attach().unwrap();
        let open = core.connections.known().open.values().next().cloned();
        let open = open.unwrap();
        let waits = open.turn.lock().unwrap();
        let never = u64::MAX;
        open.heard.store(never, Ordering::Relaxed);
        let asks = std::thread::spawn(move || client.map(&colors, Bytes::from_kib(64)));
        while open.heard.load(Ordering::Relaxed) == never {
            std::thread::sleep(Duration::from_millis(1));
        }
        // The client's end is cut off, as by a kill.
        core.connections.close_all();
        assert!(asks.join().unwrap().is_err());
        let free = || {
            let pages: Pages = core.books().ledger.summary().pages.into_iter().sum();
            pages.free
        };
        assert_eq!(free(), TILE_PAGES as u64, "nothing was handed out yet");
        assert_eq!(server.connections(), 1, "but it is still to be done");
        drop(waits);
        while server.connections() > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
        let books = core.books();
        let summary = books.ledger.summary();
        let pages: Pages = summary.pages.into_iter().sum();
        let struck: u64 = summary.struck.iter().sum();
        assert_eq!(pages.free + struck, TILE_PAGES as u64);
        assert_eq!(pages.held + pages.returning, 0);
        assert_eq!(books.tiles.len() * TILE_PAGES, pages.free as usize);
    }
}
