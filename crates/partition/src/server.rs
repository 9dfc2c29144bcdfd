//! The memory server: hands out tiles over a Unix socket, within what the operator granted (001 §5.1).
//!
//! One thread a connection; the books and the tiles are behind one lock, which is held for as long as a tile takes and
//! never while something is sent. A tile that was given back, or whose client died, is handed out again only when nobody
//! has it open or mapped, when its frames are still those that were sorted, and when it was cleared. The server never
//! touches what clients map: when it ends, their memory stays as it is and goes back to the system with them.

use crate::frame::FrameNumbers;
use crate::ledger::{ClientId, Ledger, Peer, TileId};
use crate::protocol::{self, Answer, Request, TILES_AT_ONCE};
use crate::socket::{Lines, peer, send};
use crate::tile::Tile;
use model::watch::Watch;
use model::{Error, Result};
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
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
    numbers: Option<FrameNumbers>,
    colors: u16,
    /// Who may act as the operator, beside root.
    operator: u32,
    connected: AtomicUsize,
}

#[derive(Debug)]
struct Books {
    ledger: Ledger,
    tiles: BTreeMap<TileId, Tile>,
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
            }),
            numbers: FrameNumbers::of_this_process(),
            colors,
            // SAFETY: a call without arguments that cannot fail.
            operator: unsafe { libc::geteuid() },
            connected: AtomicUsize::new(0),
        }
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        // Each change of the books is complete in itself: a thread that broke off left nothing half-done.
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
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
            while !watch.stopped() {
                match listener.accept() {
                    Ok((stream, _)) => {
                        scope.spawn(move || self.attend(stream, watch));
                    }
                    Err(_) => {
                        // Nobody knocks, or no file is left for who does.
                        std::thread::sleep(TICK / 4);
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
            // Files that a client sends along are not wanted.
            drop(lines.files());
            let answered = protocol::parse(&line).and_then(|request| self.act(client, peer, request));
            let sent = match answered {
                Ok(Reply::Line(answer)) => send(lines.stream(), &protocol::line(&answer), &[]),
                Ok(Reply::Tiles(tiles)) => self.hand_out(lines.stream(), &tiles),
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

    fn act(&self, client: ClientId, peer: Peer, request: Request) -> Result<Reply> {
        if request.is_operators() && peer.uid != 0 && peer.uid != self.operator {
            return Err(Error::new(format!("user {} is not the operator", peer.uid))
                .remedy("ask as root or as the user that runs the server"));
        }
        let mut books = self.books();
        match request {
            Request::Colors {} => Ok(Reply::Line(Answer::Colors {
                colors: books.ledger.colors_of(client),
                of: self.colors,
            })),
            Request::Take { color, pages } => match books.ledger.take(client, color, pages) {
                Ok(tiles) => Ok(Reply::Tiles(tiles)),
                Err(_) => {
                    // What was given back a moment ago may do.
                    drop(books);
                    self.take_in(&model::watch::Silent);
                    self.books().ledger.take(client, color, pages).map(Reply::Tiles)
                }
            },
            Request::GiveBack { tiles } => {
                books.ledger.give_back(client, &tiles)?;
                drop(books);
                self.take_in(&model::watch::Silent);
                Ok(Reply::Line(Answer::Done))
            }
            Request::Grant {
                holder,
                colors,
                pages,
            } => {
                books.ledger.grant(holder, &colors, pages)?;
                Ok(Reply::Line(Answer::Done))
            }
            Request::TakeBack { holder, colors } => {
                drop(books);
                self.take_in(&model::watch::Silent);
                self.books().ledger.take_back(&holder, &colors)?;
                Ok(Reply::Line(Answer::Done))
            }
            Request::Join { pid, group } => {
                books.ledger.join(pid, group);
                Ok(Reply::Line(Answer::Done))
            }
            Request::List {} => Ok(Reply::Line(Answer::List {
                summary: books.ledger.summary(),
            })),
        }
    }

    /// Sends tiles, some at a time. A client that does not get all of them is cut off, and they return.
    fn hand_out(&self, stream: &UnixStream, tiles: &[TileId]) -> std::io::Result<()> {
        if tiles.is_empty() {
            let none = Answer::Tiles {
                tiles: Vec::new(),
                more: false,
            };
            return send(stream, &protocol::line(&none), &[]);
        }
        let mut rest = tiles.chunks(TILES_AT_ONCE).peekable();
        while let Some(part) = rest.next() {
            let files = {
                let books = self.books();
                part.iter()
                    .filter_map(|id| books.tiles.get(id))
                    .map(|tile| tile.open(true))
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
            let answer = Answer::Tiles {
                tiles: part.to_vec(),
                more: rest.peek().is_some(),
            };
            send(stream, &protocol::line(&answer), &files)?;
        }
        Ok(())
    }

    /// Takes in what is returning and nobody maps any more.
    fn take_in(&self, watch: &dyn Watch) {
        let returning = self.books().ledger.returning();
        for id in returning {
            let mut books = self.books();
            // It may have been taken in, and handed out again, since.
            let Books { ledger, tiles } = &mut *books;
            if !ledger.is_returning(id) {
                continue;
            }
            let Some(tile) = tiles.get_mut(&id) else { continue };
            if !tile.is_alone() {
                continue;
            }
            if tile.is_intact(self.numbers.as_ref()) {
                tile.zero();
                ledger.returned(id);
            } else {
                ledger.lost(id);
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
    Tiles(Vec<TileId>),
}
