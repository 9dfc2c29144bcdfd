//! One connection to the memory server: what is asked over it, and answered.

use super::Core;
use super::connections::{Open, PATIENCE};
use crate::colors::Color;
use crate::ledger::{Access, ClientId, Holder, Peer, TileId};
use crate::protocol::{self, Answer, Request, TILES_AT_ONCE};
use crate::selection::Selection;
use crate::socket::{Lines, send};
use crate::tile::TILE;
use model::{Error, Result};
use rustix::fs::fcntl_get_seals;
use std::fs::File;
use std::io::ErrorKind;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

/// How long a client may leave an answer unread before it is cut off.
const UNREAD: Duration = Duration::from_secs(5);

impl Core {
    /// One connection, to its end.
    pub(super) fn attend(&self, open: &Open, peer: Peer) {
        let stream = Arc::clone(&open.stream);
        let ready = stream
            .set_nonblocking(false)
            .and_then(|()| stream.set_read_timeout(Some(PATIENCE)))
            .and_then(|()| stream.set_write_timeout(Some(UNREAD)));
        if ready.is_ok() {
            let client = self.books().ledger.connect(peer);
            open.speaks_as(client);
            self.converse(
                client,
                peer,
                &mut Lines::with_at_most(1, stream).within(PATIENCE),
                open,
            );
            let held = {
                let mut books = self.books();
                let held = books.ledger.held_by(client);
                books.ledger.disconnect(client);
                held
            };
            self.take_in(&held);
        }
        self.connections.closed(open);
    }

    fn converse(&self, client: ClientId, peer: Peer, lines: &mut Lines, open: &Open) {
        while !self.relay.stopped() {
            let cut_off = |why: String| {
                // Where the next line begins is unknown.
                let _ = send(&open.stream, &protocol::line(&Answer::Refused { why }), &[]);
            };
            let line = match lines.next_line() {
                Ok(Some(line)) => line,
                // What a line lacks is asked for again, for as long as it may take.
                Err(e) if matches!(e.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                    continue;
                }
                Err(e) if e.kind() == ErrorKind::InvalidData => return cut_off(e.to_string()),
                Ok(None) | Err(_) => return,
            };
            open.heard();
            // What a client sends along is the contents of pages to read.
            let contents = lines.files().into_iter().next().map(File::from);
            let answered = {
                // One request of a user at a time: many connections of one are not ahead of one of
                // another.
                let _turn = open.turn.lock().unwrap_or_else(PoisonError::into_inner);
                protocol::parse(&line).and_then(|request| self.act(client, peer, request, contents))
            };
            let sent = match answered {
                Ok(Reply::Line(answer)) => send(lines.stream(), &protocol::line(&answer), &[]),
                Ok(Reply::Tiles(out)) => self.hand_out(lines.stream(), &out),
                Ok(Reply::Nothing) => Ok(()),
                Err(e) => {
                    let why = e.to_string();
                    send(
                        lines.stream(),
                        &protocol::line(&Answer::Refused { why }),
                        &[],
                    )
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
            Request::Take {
                color,
                pages,
                access,
            } => {
                drop(books);
                self.take(client, color, pages, access, contents)
            }
            Request::Wrote { color } => {
                if books.ledger.may_only_read(client, color) {
                    books.ledger.wrote(client, color);
                }
                Ok(Reply::Nothing)
            }
            Request::GiveBack { tiles } => {
                books.ledger.give_back(client, &tiles)?;
                drop(books);
                self.take_in(&tiles);
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
                self.take_back(&holder, &colors, access)
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

    /// Takes colors from a holder, once the tiles that nobody has any more are taken in: the ledger
    /// keeps colors that have returning tiles.
    fn take_back(&self, holder: &Holder, colors: &Selection, access: Access) -> Result<Reply> {
        let returning = self.books().ledger.returning();
        self.take_in(&returning);
        let mut books = self.books();
        let colors = books.ledger.select(colors)?;
        books.ledger.take_back(holder, &colors, access)?;
        drop(books);
        self.write_rights()?;
        Ok(Reply::Line(Answer::Done))
    }

    /// Hands tiles out, filled with these contents if they can only be read.
    fn take(
        &self,
        client: ClientId,
        color: Color,
        pages: u64,
        access: Access,
        contents: Option<File>,
    ) -> Result<Reply> {
        let mut books = self.books();
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
                let returning = self.books().ledger.returning_of(color);
                self.take_in(&returning[..returning.len().min(TILES_AT_ONCE)]);
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

    /// Fills tiles with what a client sent, as far as it goes.
    fn fill(&self, tiles: &[TileId], file: &File) -> Result<()> {
        let unreadable = |e: &std::io::Error| {
            Error::new(format!(
                "what was sent to fill the pages cannot be read: {e}"
            ))
            .remedy("send a file in memory (memfd_create) that is open to be read")
        };
        // Only files in memory have seals. Any other may keep its reader waiting for as long as its
        // owner likes, already when it is asked for its size.
        if fcntl_get_seals(file).is_err() {
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

    /// Sends tiles, some at a time. A client that does not get all of them is cut off, and they
    /// return.
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
