//! A client of the memory server: asks for colors and maps memory of them.

use crate::colors::{Color, Colors};
use crate::geometry::PAGE;
use crate::holder::{Access, Holder};
use crate::ledger::{Peer, TileId};
use crate::memory::{Layout, Received};
use crate::protocol::{self, Answer, Request};
use crate::socket::{Lines, peer, send};
use crate::tile::{TILE, TILE_PAGES};
use crate::violation;
use model::{Bytes, Error, Result};
use std::collections::BTreeMap;
use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

pub use crate::memory::Memory;

/// Where the memory server's socket usually is: in a directory of its own in `/run`, or in
/// `XDG_RUNTIME_DIR` where that is set.
pub fn usual_socket() -> PathBuf {
    const NAME: &str = "warmset/color.sock";
    match std::env::var_os("XDG_RUNTIME_DIR") {
        Some(dir) if !dir.is_empty() => Path::new(&dir).join(NAME),
        _ => Path::new("/run").join(NAME),
    }
}

/// A connection to the memory server.
#[derive(Debug)]
pub struct Connection {
    lines: Lines,
}

impl Connection {
    /// Connects to the server behind a socket.
    ///
    /// # Errors
    /// Nobody serves there, or this user may not connect.
    pub fn open(socket: &Path) -> Result<Self> {
        let stream = UnixStream::connect(socket).map_err(|e| {
            Error::io(socket, "reach the memory server", &e)
                .remedy("start it with `warmset color serve`, or name its socket with `--socket`")
        })?;
        Ok(Self::over(stream))
    }

    /// As [`Connection::open`], to take memory: the server keeps what it hands out mapped, and can
    /// read and change it. So it has to be root's or this user's.
    ///
    /// # Errors
    /// Nobody serves there, or another user does.
    pub fn open_trusted(socket: &Path) -> Result<Self> {
        let connection = Self::open(socket)?;
        let server = connection.server()?.uid;
        let user = rustix::process::geteuid().as_raw();
        if server == 0 || server == user {
            return Ok(connection);
        }
        Err(Error::new(format!(
            "the memory server is run by user {server}, who could read and change the memory that \
             it hands out to user {user}"
        ))
        .at(socket.display())
        .remedy("use a server that root or you yourself run: name its socket, or start one"))
    }

    /// To the server at the other end of a stream.
    pub fn over(stream: UnixStream) -> Self {
        Connection {
            lines: Lines::new(stream),
        }
    }

    /// Who serves: as it was when the server began to listen, which nobody can forge.
    ///
    /// # Errors
    /// The kernel does not say.
    pub fn server(&self) -> Result<Peer> {
        peer(self.lines.stream())
    }

    fn send(&mut self, request: &Request) -> Result<()> {
        send(self.lines.stream(), &protocol::line(request), &[]).map_err(|e| gone(&e))
    }

    fn receive(&mut self) -> Result<Answer> {
        let line = self
            .lines
            .next_line()
            .map_err(|e| gone(&e))?
            .ok_or_else(|| gone(&std::io::Error::from(std::io::ErrorKind::ConnectionReset)))?;
        match serde_json::from_slice(&line) {
            Ok(Answer::Refused { why }) => Err(Error::new(why).at("memory server")),
            Ok(answer) => Ok(answer),
            Err(e) => Err(
                Error::new(format!("the memory server's answer is not understood: {e}"))
                    .remedy("use the same version on both sides"),
            ),
        }
    }

    /// Asks what has a single answer.
    ///
    /// # Errors
    /// The server refuses, with its reason; or it is gone.
    pub fn ask(&mut self, request: &Request) -> Result<Answer> {
        self.send(request)?;
        self.receive()
    }

    /// The colors that this process may use, and how many there are.
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub fn colors(&mut self) -> Result<(Colors, u16)> {
        match self.ask(&Request::Colors {})? {
            Answer::Colors { colors, of, .. } => Ok((colors, of)),
            other => Err(unexpected(&other)),
        }
    }

    /// The colors of others that this process may read pages of (001 §5.3).
    ///
    /// # Errors
    /// As [`Connection::ask`].
    pub fn read_only_colors(&mut self) -> Result<Colors> {
        match self.ask(&Request::Colors {})? {
            Answer::Colors { read_only, .. } => Ok(read_only),
            other => Err(unexpected(&other)),
        }
    }

    /// Takes whole tiles: their numbers and open files; and whose color it is, where they are only
    /// to be read. `contents` fills tiles that are to be read.
    pub(crate) fn take(
        &mut self,
        color: Color,
        tiles: usize,
        access: Access,
        contents: Option<&[u8]>,
    ) -> Result<(Vec<Received>, Option<Holder>)> {
        let request = Request::Take {
            color,
            pages: (tiles * TILE_PAGES) as u64,
            access,
        };
        let files: Vec<File> = contents.map(in_memory).transpose()?.into_iter().collect();
        send(self.lines.stream(), &protocol::line(&request), &files).map_err(|e| gone(&e))?;
        let mut taken = Vec::new();
        loop {
            match self.receive()? {
                Answer::Tiles { tiles, more, owner } => {
                    let files = self.lines.files();
                    if files.len() != tiles.len() {
                        return Err(Error::new(format!(
                            "{} of {} files arrived",
                            files.len(),
                            tiles.len()
                        ))
                        .remedy("raise the number of open files: `ulimit -n`"));
                    }
                    taken.extend(tiles.into_iter().zip(files));
                    if !more {
                        return Ok((taken, owner));
                    }
                }
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// Takes tiles of a color to use, as numbers and files: for who maps them where it needs them.
    ///
    /// # Errors
    /// The server refuses; too few files can be opened.
    pub fn take_tiles(&mut self, color: Color, tiles: usize) -> Result<Vec<(TileId, OwnedFd)>> {
        self.take(color, tiles, Access::Full, None)
            .map(|(taken, _)| taken)
    }

    /// Maps zeroed memory of at least this size in these colors, one after the other by tiles of 64
    /// KiB.
    ///
    /// # Errors
    /// The server refuses; no room in the address space.
    pub fn map(&mut self, colors: &Colors, size: Bytes) -> Result<Memory> {
        let size = Bytes::new(size.get().div_ceil(TILE as u64).saturating_mul(TILE as u64));
        self.map_as(colors, size, None, Layout::Tiles)
    }

    /// As [`Connection::map`], page by page: any part of it lies in all colors alike. Takes a
    /// mapping a page.
    ///
    /// # Errors
    /// As [`Connection::map`].
    pub fn map_pages(&mut self, colors: &Colors, size: Bytes) -> Result<Memory> {
        self.map_as(colors, size, None, Layout::Pages)
    }

    /// Maps pages of others' colors to read them: filled from `contents`, the rest zero. Whoever
    /// writes to them is ended with SIGSEGV; [`crate::violation::report`] names color and owner
    /// first.
    ///
    /// # Errors
    /// The server refuses; no room in the address space.
    pub fn map_read_only(
        &mut self,
        colors: &Colors,
        size: Bytes,
        contents: &[u8],
    ) -> Result<Memory> {
        self.map_as(colors, size, Some(contents), Layout::Tiles)
    }

    /// With contents: to read.
    fn map_as(
        &mut self,
        colors: &Colors,
        size: Bytes,
        contents: Option<&[u8]>,
        layout: Layout,
    ) -> Result<Memory> {
        let pages = usize::try_from(size.get())
            .unwrap_or(usize::MAX)
            .div_ceil(PAGE);
        if colors.is_empty() || pages == 0 {
            return Err(
                Error::new("no memory or no colors are asked for").remedy("name a size and colors")
            );
        }
        let access = match contents {
            Some(_) => Access::ReadOnly,
            None => Access::Full,
        };
        let number = colors.len();
        let mut taken: Vec<(Color, Vec<Received>)> = Vec::new();
        let mut owners = BTreeMap::new();
        let shares = Memory::tiles_of(pages, number, layout);
        for ((place, color), share) in colors.iter().enumerate().zip(shares) {
            let own: Option<Vec<u8>> = contents.map(|bytes| {
                let parts = bytes.chunks(TILE).skip(place).step_by(number);
                parts.flatten().copied().collect()
            });
            let got = if share == 0 {
                Ok((Vec::new(), None))
            } else {
                self.take(color, share, access, own.as_deref())
            };
            match got {
                Ok((got, owner)) => {
                    taken.push((color, got));
                    owners.extend(owner.map(|owner| (color, owner)));
                }
                Err(e) => {
                    // All or nothing.
                    let tiles: Vec<TileId> =
                        taken.iter().flat_map(|t| &t.1).map(|(id, _)| *id).collect();
                    drop(taken);
                    self.return_tiles(&tiles)?;
                    return Err(e);
                }
            }
        }
        let memory = Memory::of(&taken, pages, access, layout);
        if memory.is_err() {
            let tiles: Vec<TileId> = taken.iter().flat_map(|t| &t.1).map(|(id, _)| *id).collect();
            drop(taken);
            self.return_tiles(&tiles)?;
        }
        let memory = memory?;
        if access == Access::ReadOnly {
            violation::watch(&memory, owners, self.lines.stream());
        }
        Ok(memory)
    }

    /// Gives memory back before the connection ends.
    ///
    /// # Errors
    /// It was mapped over another connection; the server is gone.
    pub fn give_back(&mut self, memory: Memory) -> Result<()> {
        let tiles = memory.tiles().to_vec();
        drop(memory);
        self.return_tiles(&tiles)
    }

    /// Gives tiles back, which are not mapped any more.
    ///
    /// # Errors
    /// One of them was not taken over this connection; the server is gone.
    pub fn return_tiles(&mut self, tiles: &[TileId]) -> Result<()> {
        for part in tiles.chunks(4096) {
            match self.ask(&Request::GiveBack {
                tiles: part.to_vec(),
            })? {
                Answer::Done => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }
}

/// A file that holds these bytes.
fn in_memory(bytes: &[u8]) -> Result<File> {
    let failed = |e: std::io::Error| Error::new(format!("cannot make a file in memory: {e}"));
    let made = rustix::fs::memfd_create(c"warmset-contents", rustix::fs::MemfdFlags::CLOEXEC);
    let file = File::from(made.map_err(|e| failed(e.into()))?);
    file.write_all_at(bytes, 0).map_err(failed)?;
    Ok(file)
}

fn gone(e: &std::io::Error) -> Error {
    Error::new(format!("the memory server is gone: {e}"))
        .remedy("memory that it gave stays; connect again for more")
}

fn unexpected(answer: &Answer) -> Error {
    Error::new(format!(
        "the memory server answered something else: {answer:?}"
    ))
    .remedy("use the same version on both sides")
}
