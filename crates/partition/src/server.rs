//! The memory server: hands out tiles over a Unix socket, within what the operator granted (001 §5.1).
//!
//! One thread a connection; the books and the tiles are behind one lock, which is held for as long as a tile takes and
//! never while something is sent. A tile that was given back, or whose client died, is handed out again only when nobody
//! has it open or mapped, when its frames are still those that were sorted, and when it was cleared. The server never
//! touches what clients map: when it ends, their memory stays as it is and goes back to the system with them.

use crate::client::Connection;
use crate::frame::FrameNumbers;
use crate::ledger::{Access, ClientId, Holder, Ledger, Peer, TileId};
use crate::process;
use crate::protocol::{self, Answer, Request, TILES_AT_ONCE};
use crate::socket::{Lines, peer, send};
use crate::state::{self, Known, Out, State};
use crate::tile::{TILE, Tile};
use crate::upkeep::Upkeep;
use model::watch::Watch;
use model::{Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The most connections at once.
pub const MOST_CLIENTS: usize = 1024;
/// How often a waiting thread looks whether it should end.
const TICK: Duration = Duration::from_millis(100);
/// How long a client may leave an answer unread before it is cut off.
const UNREAD: Duration = Duration::from_secs(5);

/// A memory server over some tiles.
#[derive(Debug)]
pub struct Server {
    books: Mutex<Books>,
    pub(crate) numbers: Option<FrameNumbers>,
    pub(crate) colors: u16,
    upkeep: Option<Upkeep>,
    /// Where rights and tiles are written for the server after this one, and of which cache.
    kept: Option<(PathBuf, String)>,
    /// Who may act as the operator, beside root.
    operator: u32,
    connected: AtomicUsize,
}

#[derive(Debug)]
pub(crate) struct Books {
    pub(crate) ledger: Ledger,
    pub(crate) tiles: BTreeMap<TileId, Tile>,
    /// Processes in the ledger, and when they began: a number may be given to another process later.
    began: BTreeMap<u32, u64>,
}

impl Books {
    /// Keeps in mind which process has this number.
    fn know(&mut self, pid: u32) -> Result<()> {
        let began = process::began(pid).ok_or_else(|| {
            Error::new(format!("there is no process {pid}"))
                .remedy("start it first, or name its user or a group")
        })?;
        if self
            .began
            .insert(pid, began)
            .is_some_and(|before| before != began)
        {
            self.ledger.ended(pid);
        }
        Ok(())
    }
}

impl Server {
    /// Over these tiles, none of which anybody else has.
    pub fn new(colors: u16, tiles: Vec<Tile>) -> Self {
        // Who opens a file while we ask for a lease on it has this signal sent to us; it would end the process.
        // SAFETY: sets a disposition without a handler.
        unsafe { libc::signal(libc::SIGIO, libc::SIG_IGN) };
        let tiles: BTreeMap<TileId, Tile> = (0..).zip(tiles).collect();
        Server {
            books: Mutex::new(Books {
                ledger: Ledger::new(colors, tiles.iter().map(|(id, tile)| (*id, tile.color))),
                tiles,
                began: BTreeMap::new(),
            }),
            numbers: FrameNumbers::of_this_process(),
            colors,
            upkeep: None,
            kept: None,
            // SAFETY: a call without arguments that cannot fail.
            operator: unsafe { libc::geteuid() },
            connected: AtomicUsize::new(0),
        }
    }

    /// Takes over from a server before: its rights, and what is out. Colors have the numbers that they had then.
    ///
    /// # Errors
    /// The rights name colors that are not there now.
    pub fn succeed(&mut self, before: &State, out: Vec<Out>) -> Result<()> {
        let books = self.books.get_mut().unwrap_or_else(PoisonError::into_inner);
        books.ledger.restore(&before.rights)?;
        books.began = before.began.clone();
        // Numbers of tiles that clients know stay theirs.
        let after = before.tiles.iter().map(|t| t.id + 1).max().unwrap_or(0);
        let own = std::mem::take(&mut books.tiles);
        let mut ledger = Ledger::new(self.colors, own.iter().map(|(id, tile)| (id + after, tile.color)));
        std::mem::swap(&mut ledger, &mut books.ledger);
        books.ledger.restore(&ledger.rights())?;
        books.tiles = own.into_iter().map(|(id, tile)| (id + after, tile)).collect();
        for Out {
            tile,
            peer,
            access,
            file,
        } in out
        {
            if let Some(began) = process::began(peer.pid) {
                books.began.insert(peer.pid, began);
            }
            books.ledger.is_out(tile.id, tile.color, peer, access);
            if let Some(file) = file {
                // Where it cannot be had, its memory goes back to the system with its holder.
                if let Ok(own) = Tile::adopt(tile.color, file) {
                    books.tiles.insert(tile.id, own);
                }
            }
        }
        Ok(())
    }

    /// Asks again and again, while it serves, whether what it knows is still true.
    pub fn keep_true(&mut self, upkeep: Upkeep) {
        self.upkeep = Some(upkeep);
    }

    /// Keeps rights in a file, for the server after this one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep_rights(&mut self, path: PathBuf, cache: String) -> Result<()> {
        self.kept = Some((path, cache));
        self.write_rights()
    }

    /// The frames behind all tiles, where the system tells them.
    pub fn frames(&self) -> Option<Vec<u64>> {
        let numbers = self.numbers.as_ref()?;
        let books = self.books();
        books
            .tiles
            .values()
            .flat_map(|tile| numbers.of(&tile.pages()))
            .collect()
    }

    fn write_rights(&self) -> Result<()> {
        let Some((path, cache)) = &self.kept else {
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
                began: books.began.clone(),
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
        // Each change of the books is complete in itself: a thread that broke off left nothing half-done.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A connection of this process to itself: for who holds memory of his own.
    ///
    /// # Errors
    /// The system has no more sockets or threads.
    pub fn attach(self: &Arc<Self>) -> Result<Connection> {
        let failed = |e: std::io::Error| Error::new(format!("cannot reach the memory server within: {e}"));
        let (ours, theirs) = UnixStream::pair().map_err(failed)?;
        let server = Arc::clone(self);
        std::thread::Builder::new()
            .name("colors".to_owned())
            .spawn(move || server.attend(theirs, &model::watch::Silent))
            .map_err(failed)?;
        Ok(Connection::over(ours))
    }

    /// Serves until the watch says stop.
    ///
    /// # Errors
    /// The socket cannot be waited for.
    pub fn serve(&self, listener: &UnixListener, watch: &dyn Watch) -> Result<()> {
        listener
            .set_nonblocking(true)
            .map_err(|e| Error::new(format!("cannot wait at the socket: {e}")))?;
        std::thread::scope(|scope| {
            if let Some(upkeep) = &self.upkeep {
                scope.spawn(move || self.stay_true(upkeep, watch));
            }
            while !watch.stopped() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        scope.spawn(move || self.attend(stream, watch));
                    }
                    Err(_) => {
                        // Nobody knocks, or no file is left for who does.
                        std::thread::sleep(TICK / 4);
                        self.forget_ended(watch);
                        self.take_in(watch);
                    }
                }
            }
        });
        Ok(())
    }

    /// One connection, to its end.
    fn attend(&self, stream: UnixStream, watch: &dyn Watch) {
        let before = self.connected.fetch_add(1, Ordering::Relaxed);
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(TICK)))
            .and_then(|()| stream.set_write_timeout(Some(UNREAD)));
        let peer = peer(&stream);
        let mut lines = Lines::new(stream);
        match (ready, peer) {
            _ if before >= MOST_CLIENTS => {
                let why = format!("{MOST_CLIENTS} clients are connected: try again later");
                // It is cut off in any case.
                let _ = send(lines.stream(), &protocol::line(&Answer::Refused { why }), &[]);
            }
            (Ok(()), Ok(peer)) => {
                let client = self.books().ledger.connect(peer);
                self.converse(client, peer, &mut lines, watch);
                self.books().ledger.disconnect(client);
                self.take_in(watch);
            }
            _ => {}
        }
        self.connected.fetch_sub(1, Ordering::Relaxed);
    }

    fn converse(&self, client: ClientId, peer: Peer, lines: &mut Lines, watch: &dyn Watch) {
        while !watch.stopped() {
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => continue,
                Err(e) if e.kind() == ErrorKind::InvalidData => {
                    let why = protocol::too_long().to_string();
                    // It is cut off: where the next line begins is unknown.
                    let _ = send(lines.stream(), &protocol::line(&Answer::Refused { why }), &[]);
                    return;
                }
                Ok(None) | Err(_) => return,
            };
            // What a client sends along is the contents of pages to read; more is not wanted.
            let contents = lines.files().into_iter().next().map(File::from);
            let answered =
                protocol::parse(&line).and_then(|request| self.act(client, peer, request, contents, watch));
            let sent = match answered {
                Ok(Reply::Line(answer)) => send(lines.stream(), &protocol::line(&answer), &[]),
                Ok(Reply::Tiles(out)) => self.hand_out(lines.stream(), &out),
                Ok(Reply::Nothing) => Ok(()),
                Err(e) => {
                    let why = e.to_string();
                    send(lines.stream(), &protocol::line(&Answer::Refused { why }), &[])
                }
            };
            if sent.is_err() {
                return;
            }
        }
    }

    fn act(
        &self,
        client: ClientId,
        peer: Peer,
        request: Request,
        contents: Option<File>,
        watch: &dyn Watch,
    ) -> Result<Reply> {
        if request.is_operators() && peer.uid != 0 && peer.uid != self.operator {
            return Err(Error::new(format!("user {} is not the operator", peer.uid))
                .remedy("ask as root or as the user that runs the server"));
        }
        let mut books = self.books();
        match request {
            Request::Colors {} => Ok(Reply::Line(Answer::Colors {
                colors: books.ledger.colors_of(client, Access::Full),
                of: self.colors,
                read_only: books.ledger.colors_of(client, Access::ReadOnly),
            })),
            Request::Take { color, pages, access } => {
                let owner = books.ledger.owner_of(color).cloned();
                if access == Access::Full && books.ledger.may_only_read(client, color) {
                    books.ledger.wrote(client, color);
                }
                let taken = books.ledger.take(client, color, pages, access);
                drop(books);
                let tiles = match taken {
                    Ok(tiles) => tiles,
                    Err(_) => {
                        // What was given back a moment ago may do.
                        self.take_in(watch);
                        self.books().ledger.take(client, color, pages, access)?
                    }
                };
                if let (Some(file), Access::ReadOnly) = (contents, access) {
                    self.fill(&tiles, &file)
                        .inspect_err(|_| drop(self.books().ledger.give_back(client, &tiles)))?;
                }
                Ok(Reply::Tiles(Handed {
                    tiles,
                    access,
                    owner: owner.filter(|_| access == Access::ReadOnly),
                }))
            }
            Request::Wrote { color } => {
                books.ledger.wrote(client, color);
                Ok(Reply::Nothing)
            }
            Request::GiveBack { tiles } => {
                books.ledger.give_back(client, &tiles)?;
                drop(books);
                self.take_in(watch);
                Ok(Reply::Line(Answer::Done))
            }
            Request::Grant {
                holder,
                colors,
                pages,
                access,
            } => {
                if let Holder::Pid(pid) = holder {
                    books.know(pid)?;
                }
                let colors = books.ledger.select(&colors)?;
                books.ledger.grant(holder, &colors, pages, access)?;
                drop(books);
                self.write_rights()?;
                Ok(Reply::Line(Answer::Done))
            }
            Request::TakeBack {
                holder,
                colors,
                access,
            } => {
                drop(books);
                self.take_in(watch);
                let mut books = self.books();
                let colors = books.ledger.select(&colors)?;
                books.ledger.take_back(&holder, &colors, access)?;
                drop(books);
                self.write_rights()?;
                Ok(Reply::Line(Answer::Done))
            }
            Request::Join { pid, group } => {
                books.know(pid)?;
                books.ledger.join(pid, group);
                drop(books);
                self.write_rights()?;
                Ok(Reply::Line(Answer::Done))
            }
            Request::Name { name, colors } => {
                let colors = colors.map(|c| books.ledger.select(&c)).transpose()?;
                books.ledger.name(name, colors)?;
                drop(books);
                self.write_rights()?;
                Ok(Reply::Line(Answer::Done))
            }
            Request::List {} => Ok(Reply::Line(Answer::List {
                summary: books.ledger.summary(),
            })),
        }
    }

    /// Fills tiles with what a client sent, as far as it goes. The books are free meanwhile: a file may be slow.
    fn fill(&self, tiles: &[TileId], file: &File) -> Result<()> {
        let unreadable = |e: &std::io::Error| {
            Error::new(format!("what was sent to fill the pages cannot be read: {e}"))
                .remedy("send an ordinary file that is open to be read")
        };
        if !file.metadata().is_ok_and(|m| m.is_file()) {
            return Err(unreadable(&std::io::Error::from(ErrorKind::InvalidInput)));
        }
        let mut bytes = vec![0; TILE];
        for (place, id) in tiles.iter().enumerate() {
            let mut length = 0;
            while length < TILE {
                match file.read_at(&mut bytes[length..], (place * TILE + length) as u64) {
                    Ok(0) => break,
                    Ok(some) => length += some,
                    Err(e) if e.kind() == ErrorKind::Interrupted => {}
                    Err(e) => return Err(unreadable(&e)),
                }
            }
            if let Some(tile) = self.books().tiles.get_mut(id) {
                tile.fill(&bytes[..length]);
            }
        }
        Ok(())
    }

    /// Sends tiles, some at a time. A client that does not get all of them is cut off, and they return.
    fn hand_out(&self, stream: &UnixStream, out: &Handed) -> std::io::Result<()> {
        let answer = |tiles: &[TileId], more| {
            protocol::line(&Answer::Tiles {
                tiles: tiles.to_vec(),
                more,
                owner: out.owner.clone(),
            })
        };
        if out.tiles.is_empty() {
            return send(stream, &answer(&[], false), &[]);
        }
        let mut rest = out.tiles.chunks(TILES_AT_ONCE).peekable();
        while let Some(part) = rest.next() {
            let files = {
                let books = self.books();
                part.iter()
                    .filter_map(|id| books.tiles.get(id))
                    .map(|tile| tile.open(out.access))
                    .collect::<Result<Vec<_>>>()
            };
            let files = match files {
                Ok(files) => files,
                Err(e) => {
                    let why = e.to_string();
                    send(stream, &protocol::line(&Answer::Refused { why }), &[])?;
                    return Err(std::io::Error::other(e));
                }
            };
            send(stream, &answer(part, rest.peek().is_some()), &files)?;
        }
        Ok(())
    }

    /// Forgets grants to processes that have ended.
    fn forget_ended(&self, watch: &dyn Watch) {
        let mut changed = false;
        let mut books = self.books();
        let Books { ledger, began, .. } = &mut *books;
        for pid in ledger.processes() {
            // One that ended before it was known when it began has ended, too.
            let now = process::began(pid);
            if now.is_none() || now != began.get(&pid).copied() {
                ledger.ended(pid);
                began.remove(&pid);
                changed = true;
            }
        }
        drop(books);
        if changed {
            self.save(watch);
        }
    }

    /// Takes in what is returning and nobody maps any more.
    fn take_in(&self, watch: &dyn Watch) {
        let returning = self.books().ledger.returning();
        for id in returning {
            let mut books = self.books();
            // It may have been taken in, and handed out again, since.
            let Books { ledger, tiles, .. } = &mut *books;
            if !ledger.is_returning(id) {
                continue;
            }
            let Some(tile) = tiles.get_mut(&id) else {
                // Of a server before, and never ours: its memory is the system's again.
                ledger.lost(id);
                continue;
            };
            if !tile.is_alone() {
                continue;
            }
            if !tile.untrue && tile.is_intact(self.numbers.as_ref()) {
                tile.zero();
                ledger.returned(id);
            } else {
                ledger.strike(id);
                tiles.remove(&id);
                watch.note(&format!(
                    "note: tile {id} came back with other frames than it went out with: it is struck off"
                ));
            }
        }
    }
}

enum Reply {
    Line(Answer),
    Tiles(Handed),
    Nothing,
}

/// Tiles on their way to a client.
struct Handed {
    tiles: Vec<TileId>,
    access: Access,
    /// Whose color it is, where it is only to be read.
    owner: Option<Holder>,
}
