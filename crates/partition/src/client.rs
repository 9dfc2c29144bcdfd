//! A client of the memory server: asks for colors and maps memory of them.

use crate::colors::{Color, Colors};
use crate::frame::Page;
use crate::geometry::PAGE;
use crate::ledger::TileId;
use crate::protocol::{self, Answer, Request};
use crate::socket::{Lines, send};
use crate::tile::{TILE, TILE_PAGES};
use model::{Bytes, Error, Result};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;

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
        Ok(Connection {
            lines: Lines::new(stream),
        })
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
            Answer::Colors { colors, of } => Ok((colors, of)),
            other => Err(unexpected(&other)),
        }
    }

    fn take(&mut self, color: Color, pages: u64) -> Result<Vec<(TileId, OwnedFd)>> {
        self.send(&Request::Take { color, pages })?;
        let mut taken = Vec::new();
        loop {
            match self.receive()? {
                Answer::Tiles { tiles, more } => {
                    let files = self.lines.files();
                    if files.len() != tiles.len() {
                        return Err(
                            Error::new(format!("{} of {} files arrived", files.len(), tiles.len()))
                                .remedy("raise the number of open files: `ulimit -n`"),
                        );
                    }
                    taken.extend(tiles.into_iter().zip(files));
                    if !more {
                        return Ok(taken);
                    }
                }
                other => return Err(unexpected(&other)),
            }
        }
    }

    /// Maps zeroed memory of at least this size in these colors, one after the other by tiles of 64 KiB.
    ///
    /// # Errors
    /// The server refuses; no room in the address space.
    pub fn map(&mut self, colors: &Colors, size: Bytes) -> Result<Memory> {
        let tiles = usize::try_from(size.get()).unwrap_or(usize::MAX).div_ceil(TILE);
        if colors.is_empty() || tiles == 0 {
            return Err(Error::new("no memory or no colors are asked for").remedy("name a size and colors"));
        }
        let number = colors.len();
        let mut taken: Vec<Vec<(TileId, OwnedFd)>> = Vec::new();
        for (place, color) in colors.iter().enumerate() {
            let share = tiles / number + usize::from(place < tiles % number);
            let got = if share == 0 {
                Ok(Vec::new())
            } else {
                self.take(color, (share * TILE_PAGES) as u64)
            };
            match got {
                Ok(got) => taken.push(got.into_iter().rev().collect()),
                Err(e) => {
                    // All or nothing.
                    let tiles: Vec<TileId> = taken.iter().flatten().map(|(id, _)| *id).collect();
                    drop(taken);
                    self.return_tiles(&tiles)?;
                    return Err(e);
                }
            }
        }
        let mut in_turn = Vec::new();
        for place in 0..tiles {
            let which = place % number;
            if let (Some(tile), Some(color)) = (taken[which].pop(), colors.iter().nth(which)) {
                in_turn.push((color, tile));
            }
        }
        Memory::of(in_turn)
    }

    /// Gives memory back before the connection ends.
    ///
    /// # Errors
    /// It was mapped over another connection; the server is gone.
    pub fn give_back(&mut self, memory: Memory) -> Result<()> {
        let tiles: Vec<TileId> = memory.tiles.iter().map(|(_, id)| *id).collect();
        drop(memory);
        self.return_tiles(&tiles)
    }

    fn return_tiles(&mut self, tiles: &[TileId]) -> Result<()> {
        for part in tiles.chunks(4096) {
            match self.ask(&Request::GiveBack { tiles: part.to_vec() })? {
                Answer::Done => {}
                other => return Err(unexpected(&other)),
            }
        }
        Ok(())
    }
}

fn gone(e: &std::io::Error) -> Error {
    Error::new(format!("the memory server is gone: {e}"))
        .remedy("memory that it gave stays; connect again for more")
}

fn unexpected(answer: &Answer) -> Error {
    Error::new(format!("the memory server answered something else: {answer:?}"))
        .remedy("use the same version on both sides")
}

/// Colored memory: one range of addresses, mapped tile by tile. It stays when the server ends.
#[derive(Debug)]
pub struct Memory {
    base: *mut u8,
    tiles: Vec<(Color, TileId)>,
}

// SAFETY: the mapping is owned by this value; whoever holds it decides which thread uses it.
unsafe impl Send for Memory {}
// SAFETY: a shared one gives out addresses only; reading and writing is left to who holds the pointer.
unsafe impl Sync for Memory {}

impl Memory {
    fn of(tiles: Vec<(Color, (TileId, OwnedFd))>) -> Result<Self> {
        let size = tiles.len() * TILE;
        let failed = || {
            Error::new(format!(
                "cannot map colored memory: {}",
                std::io::Error::last_os_error()
            ))
            .remedy("raise the number of mappings: `sysctl vm.max_map_count`, 1 for each 64 KiB")
        };
        // SAFETY: a new reservation of addresses, whose result is checked.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                size,
                libc::PROT_NONE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(failed());
        }
        let memory = Memory {
            base: base.cast(),
            tiles: tiles.iter().map(|(color, (id, _))| (*color, *id)).collect(),
        };
        for (place, (_, (_, file))) in tiles.iter().enumerate() {
            // SAFETY: replaces a part of the reservation that is ours alone.
            let mapped = unsafe {
                libc::mmap(
                    memory.base.add(place * TILE).cast(),
                    TILE,
                    libc::PROT_READ | libc::PROT_WRITE,
                    libc::MAP_SHARED | libc::MAP_FIXED | libc::MAP_POPULATE,
                    file.as_raw_fd(),
                    0,
                )
            };
            if mapped == libc::MAP_FAILED {
                return Err(failed());
            }
        }
        Ok(memory)
    }

    /// The first byte.
    pub fn base(&self) -> *mut u8 {
        self.base
    }
    /// In bytes.
    pub fn size(&self) -> usize {
        self.tiles.len() * TILE
    }
    /// The color of a page.
    pub fn color_of(&self, page: usize) -> Option<Color> {
        self.tiles.get(page / TILE_PAGES).map(|(color, _)| *color)
    }
    /// Its pages.
    pub fn pages(&self) -> Vec<Page<'_>> {
        (0..self.size() / PAGE)
            // SAFETY: mapped as long as this lives.
            .map(|i| unsafe { Page::at(self.base.add(i * PAGE)) })
            .collect()
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the mapping is owned by this value.
        unsafe { libc::munmap(self.base.cast(), self.size()) };
    }
}
