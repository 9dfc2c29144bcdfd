//! The memory server: hands out tiles over a Unix socket, within what the operator granted (001
//! §5.1).
//!
//! One thread a connection; the books and the tiles are behind one lock, which is held for a few
//! system calls and never while something is sent. A tile that was given back, or whose client
//! died, is handed out again only when nobody has it open or mapped, and with other frames or with
//! frames that nobody else refers to (`tile::renew`). The server never touches what clients map:
//! when it ends, their memory stays as it is and goes back to the system with them.
//!
//! No user can keep others from being served: what one may occupy is limited (`connections`),
//! requests of one user are handled one at a time, and nothing that a client can delay is waited
//! for under a lock.

mod attend;
mod connections;
mod returns;

pub use connections::{MOST_CLIENTS, MOST_OF_USER};

use crate::client::Connection;
use crate::frame::FrameNumbers;
use crate::ledger::{Ledger, TileId};
use crate::process::Process;
use crate::protocol::{self, Answer};
use crate::socket::{peer, send, user};
use crate::state::{self, Known, Out, State};
use crate::tile::Tile;
use crate::upkeep::{Found, Upkeep};
use connections::Connections;
use machine::threads::within;
use model::watch::Watch;
use model::{Error, Result};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, Instant};

/// How often it is asked whether to end, and whether something has come back.
const TICK: Duration = Duration::from_millis(25);
/// How long connections may take to end after the server was told to.
const GOODBYE: Duration = Duration::from_secs(1);
/// The stack of a thread that attends to a connection.
const STACK: usize = 512 << 10;
/// The most remarks that wait for somebody to read them.
const MOST_NOTES: usize = 256;

/// A memory server over some tiles.
#[derive(Debug)]
pub struct Server {
    core: Arc<Core>,
}

/// What the threads of a server share. Those of connections may outlive it: a client can keep the
/// kernel busy with a file that it passed.
#[derive(Debug)]
pub(crate) struct Core {
    books: Mutex<Books>,
    pub(crate) numbers: Option<FrameNumbers>,
    pub(crate) colors: u16,
    upkeep: OnceLock<Upkeep>,
    /// Where rights and tiles are written for the server after this one, and of which cache.
    kept: OnceLock<(PathBuf, String)>,
    /// Who may act as the operator, beside root.
    operator: u32,
    connections: Connections,
    relay: Relay,
}

#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) ledger: Ledger,
    pub(crate) tiles: BTreeMap<TileId, Tile>,
    /// Returning tiles that a thread is busy with: they are not among the tiles meanwhile.
    busy: BTreeSet<TileId>,
    /// Returning tiles whose color has to be asked by time, and how often it was in vain.
    unproven: BTreeMap<TileId, u32>,
    /// The processes that grants and groups name.
    processes: BTreeMap<u32, Process>,
}

impl Books {
    /// Keeps in mind which process has this number.
    fn know(&mut self, pid: u32) -> Result<()> {
        let process = Process::open(pid).ok_or_else(|| {
            Error::new(format!("there is no process {pid}"))
                .remedy("start it first, or name its user or a group")
        })?;
        self.ledger.identify(pid, process.began());
        self.processes.insert(pid, process);
        Ok(())
    }
}

/// Remarks of threads that do not know who listens, and whether they are to end.
#[derive(Debug, Default)]
pub(crate) struct Relay {
    notes: Mutex<VecDeque<String>>,
    stopped: AtomicBool,
}

impl Relay {
    fn note(&self, text: String) {
        let mut notes = self.notes.lock().unwrap_or_else(PoisonError::into_inner);
        if notes.len() == MOST_NOTES {
            notes.pop_front();
        }
        notes.push_back(text);
    }

    fn stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    fn pass_on(&self, watch: &dyn Watch) {
        let notes = std::mem::take(&mut *self.notes.lock().unwrap_or_else(PoisonError::into_inner));
        notes.iter().for_each(|text| watch.note(text));
    }
}

impl Server {
    /// Over these tiles, none of which anybody else has.
    pub fn new(colors: u16, tiles: Vec<Tile>) -> Self {
        // Who opens a file while we ask for a lease on it has this signal sent to us; it would end
        // the process.
        sys::signal::ignore(libc::SIGIO);
        let tiles: BTreeMap<TileId, Tile> = (0..).zip(tiles).collect();
        let core = Core {
            books: Mutex::new(Books {
                ledger: Ledger::new(colors, tiles.iter().map(|(id, tile)| (*id, tile.color))),
                tiles,
                busy: BTreeSet::new(),
                unproven: BTreeMap::new(),
                processes: BTreeMap::new(),
            }),
            numbers: FrameNumbers::of_this_process(),
            colors,
            upkeep: OnceLock::new(),
            kept: OnceLock::new(),
            operator: rustix::process::geteuid().as_raw(),
            connections: Connections::default(),
            relay: Relay::default(),
        };
        Server {
            core: Arc::new(core),
        }
    }

    /// Takes over from a server before: its rights, and what is out. Colors have the numbers that
    /// they had then.
    ///
    /// # Errors
    /// The rights name colors that are not there now.
    pub fn succeed(&mut self, before: &State, out: Vec<Out>) -> Result<()> {
        let mut guard = self.core.books();
        let books = &mut *guard;
        books.ledger.restore(&before.rights)?;
        // Numbers of tiles that clients know stay theirs.
        let after = before.tiles.iter().map(|t| t.id + 1).max().unwrap_or(0);
        let own = std::mem::take(&mut books.tiles);
        let mut ledger = Ledger::new(
            self.core.colors,
            own.iter().map(|(id, tile)| (id + after, tile.color)),
        );
        std::mem::swap(&mut ledger, &mut books.ledger);
        books.ledger.restore(&ledger.rights())?;
        books.tiles = own
            .into_iter()
            .map(|(id, tile)| (id + after, tile))
            .collect();
        for (pid, began) in &before.began {
            books.ledger.identify(*pid, *began);
            if let Some(process) = Process::open(*pid).filter(|p| p.began() == *began) {
                books.processes.insert(*pid, process);
            }
        }
        for Out {
            tile,
            peer,
            access,
            file,
        } in out
        {
            if let Some(process) = Process::open(peer.pid).filter(|p| p.began() == peer.began) {
                books.ledger.identify(peer.pid, peer.began);
                books.processes.insert(peer.pid, process);
            }
            books.ledger.enter_held(tile.id, tile.color, peer, access);
            if let Some(file) = file {
                // Where it cannot be had, its memory goes back to the system with its holder.
                if let Ok(own) = Tile::adopt(tile.color, file) {
                    books.tiles.insert(tile.id, own);
                }
            }
        }
        Ok(())
    }

    /// Asks again and again, while it serves, whether what it knows is still true; and, where
    /// frames have no numbers, which colors have the frames of tiles that came back. Without it
    /// they are taken to be those of before. Once for a server.
    pub fn keep_true(&mut self, upkeep: Upkeep) {
        // One that is there already stays.
        let _ = self.core.upkeep.set(upkeep);
    }

    /// Keeps rights in a file, for the server after this one. Once for a server.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_rights(&mut self, path: PathBuf, cache: String) -> Result<()> {
        // One that is there already stays.
        let _ = self.core.kept.set((path, cache));
        self.core.write_rights()
    }

    /// The frames behind all tiles, where the system tells them.
    pub fn frames(&self) -> Option<Vec<u64>> {
        let numbers = self.core.numbers.as_ref()?;
        let books = self.core.books();
        books
            .tiles
            .values()
            .flat_map(|tile| numbers.of(&tile.pages()))
            .collect()
    }

    /// How many connections are attended to. That of a client who has died is counted until what he
    /// had asked for is done and what he held was taken in.
    pub fn connections(&self) -> usize {
        self.core.connections.count()
    }

    /// Looks once whether what is known is still true, and mends what is not. `next`: the tile that
    /// is asked by time next.
    ///
    /// # Errors
    /// Colors that had to be found anew are not found; a processor cannot be used.
    pub fn look_again(
        &self,
        upkeep: &Upkeep,
        next: &mut TileId,
        watch: &dyn Watch,
    ) -> Result<Found> {
        self.core.look_again(upkeep, next, watch)
    }

    /// A connection of this process to itself: for who holds memory of his own.
    ///
    /// # Errors
    /// The system has no more sockets or threads.
    pub fn attach(self: &Arc<Self>) -> Result<Connection> {
        let failed =
            |e: std::io::Error| Error::new(format!("cannot reach the memory server within: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let open = self.core.connections.open_own(Arc::new(theirs));
        // The server lives as long as somebody may ask it.
        let server = Arc::clone(self);
        std::thread::Builder::new()
            .name("colors".to_owned())
            .spawn(move || {
                if let Ok(peer) = peer(&open.stream) {
                    server.core.attend(&open, peer);
                }
            })
            .map_err(failed)?;
        Ok(Connection::over(ours))
    }

    /// Serves until the watch says stop.
    ///
    /// # Errors
    /// The socket cannot be waited for; no thread is to be had.
    pub fn serve(&self, listener: &UnixListener, watch: &dyn Watch) -> Result<()> {
        listener
            .set_nonblocking(true)
            .map_err(|e| Error::new(format!("cannot wait at the socket: {e}")))?;
        let core = &self.core;
        std::thread::scope(|scope| {
            // It begins when the other one is there, or ends where that is not to be had.
            let (begin, begins) = mpsc::channel();
            if let Some(upkeep) = core.upkeep.get() {
                within(scope, "upkeep", move || {
                    if begins.recv().is_ok() {
                        core.stay_true(upkeep, watch);
                    }
                })?;
            }
            within(scope, "housekeeping", move || core.keep_house(watch))?;
            // Nobody waits where nothing is kept true.
            let _ = begin.send(());
            while !watch.stopped() {
                core.relay.pass_on(watch);
                let mut asked = [PollFd::new(listener, PollFlags::IN)];
                let tick = Timespec {
                    tv_sec: 0,
                    tv_nsec: TICK.subsec_nanos().into(),
                };
                // Interrupted or not: who knocks is found by asking.
                let _ = poll(&mut asked, Some(&tick));
                match listener.accept() {
                    Ok((stream, _)) => core.welcome(Arc::new(stream)),
                    Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => {}
                    // No file is left for who knocks: later one may be.
                    Err(_) => std::thread::sleep(TICK),
                }
            }
            Ok(())
        })?;
        core.relay.stopped.store(true, Ordering::Relaxed);
        core.connections.close_all();
        let told = Instant::now();
        while core.connections.count() > 0 && told.elapsed() < GOODBYE {
            std::thread::sleep(TICK / 5);
        }
        core.relay.pass_on(watch);
        Ok(())
    }
}

impl Core {
    /// Gives a new connection a thread, if its user may have one more.
    fn welcome(self: &Arc<Self>, stream: Arc<UnixStream>) {
        let Ok(uid) = user(&stream) else { return };
        let holders = || self.books().ledger.holders();
        let admitted = self
            .connections
            .admit(uid, self.is_operator(uid), &stream, holders);
        let refusal = match admitted {
            Ok(open) => {
                let (core, own) = (Arc::clone(self), Arc::clone(&open));
                let attend = move || match peer(&own.stream) {
                    Ok(peer) => core.attend(&own, peer),
                    Err(_) => core.connections.closed(&own),
                };
                let begun = std::thread::Builder::new()
                    .name("colors".to_owned())
                    .stack_size(STACK)
                    .spawn(attend);
                let Err(e) = begun else { return };
                self.connections.closed(&open);
                Error::new(format!("the memory server can begin no more threads: {e}"))
                    .remedy("try again later")
            }
            Err(refusal) => refusal,
        };
        let why = refusal.to_string();
        // It is cut off in any case; who does not read is not waited for.
        let _ = stream.set_nonblocking(true);
        let _ = send(&stream, &protocol::line(&Answer::Refused { why }), &[]);
    }

    fn is_operator(&self, uid: u32) -> bool {
        uid == 0 || uid == self.operator
    }

    fn write_rights(&self) -> Result<()> {
        let Some((path, cache)) = self.kept.get() else {
            return Ok(());
        };
        let state = {
            let books = self.books();
            let known = |(id, tile): (&TileId, &Tile)| {
                Some(Known {
                    id: *id,
                    color: tile.color,
                    inode: tile.inode()?,
                })
            };
            State {
                boot: state::boot(),
                cache: cache.clone(),
                colors: self.colors,
                rights: books.ledger.rights(),
                began: books.ledger.began().clone(),
                tiles: books.tiles.iter().filter_map(known).collect(),
            }
        };
        state.write(path)
    }

    /// Writes what the server after this one should know; says so where it cannot.
    pub(crate) fn save(&self, watch: &dyn Watch) {
        if let Err(e) = self.write_rights() {
            watch.note(&format!(
                "note: a server after this one will not know the grants of now: {e}"
            ));
        }
    }

    pub(crate) fn books(&self) -> MutexGuard<'_, Books> {
        // Each change of the books is complete in itself: a thread that broke off left nothing
        // half-done.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
