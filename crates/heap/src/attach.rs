//! A process attaches to the memory server: whose colors become its heaps, and who chooses among
//! them.

use crate::alloc::arena::{ARENA, MOST_COLORS, MOST_HEAPS, Source};
use crate::alloc::class::SLOT;
use crate::alloc::{fork, sys, thread};
use crate::global::outside;
use model::{Error, Result};
use partition::Colors;
use partition::client::Connection;
use partition::tile::TILE;
use std::collections::BTreeMap;
use std::os::fd::AsRawFd;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

const _: () = assert!(TILE == SLOT);

/// Who chooses the color of memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Choice {
    /// The caller names it; color 0 where none is named (004 §III-D, user-centric).
    #[default]
    ByCaller,
    /// The task has it: its number modulo the number of colors (004 §III-E, OS-centric). Named
    /// colors are ignored. A thread's number is the order in which it first asked for memory, or
    /// what it set with [`crate::set_task`].
    ByTask,
}

/// What a process wants of the memory server.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Options {
    /// The server's socket; `None`: the usual one.
    pub socket: Option<PathBuf>,
    /// The page colors to use, among those granted; `None`: all of them.
    pub colors: Option<Colors>,
    /// How many heap colors to make of them; `None`: one of each page color.
    pub heaps: Option<u16>,
    /// Who chooses.
    pub choice: Choice,
}

/// The variable that says who chooses colors.
pub const COLOR_BY: &str = "WARMSET_COLOR_BY";
/// Its value where nobody does: a program in C or C++ runs without colors then.
pub const NOBODY: &str = "none";

impl Options {
    /// From the environment: `WARMSET_COLOR_SOCKET`, `WARMSET_COLORS` (page colors, such as `0-3`),
    /// `WARMSET_HEAPS` (how many heap colors), `WARMSET_COLOR_BY` (`caller` or `task`); each may be
    /// missing.
    ///
    /// # Errors
    /// One of them cannot be read.
    pub fn from_env() -> Result<Self> {
        let text = |name: &str| std::env::var(name).ok().filter(|v| !v.is_empty());
        let colors = text("WARMSET_COLORS")
            .map(|v| v.parse().map_err(|e: Error| e.at("WARMSET_COLORS")))
            .transpose()?;
        let heaps = text("WARMSET_HEAPS")
            .map(|v| {
                v.parse().map_err(|_| {
                    Error::new(format!("`{v}` is no number of colors"))
                        .at("WARMSET_HEAPS")
                        .remedy("write a number, such as 4")
                })
            })
            .transpose()?;
        let choice = match text(COLOR_BY).as_deref() {
            None | Some("caller") => Choice::ByCaller,
            Some("task") => Choice::ByTask,
            Some(NOBODY) => {
                return Err(Error::new("this program cannot run without colors")
                    .at(COLOR_BY)
                    .remedy("write `caller` or `task`; `none` is for programs in C and C++"));
            }
            Some(other) => {
                return Err(Error::new(format!("`{other}` cannot choose colors"))
                    .at(COLOR_BY)
                    .remedy("write `caller` or `task`"));
            }
        };
        Ok(Options {
            socket: std::env::var_os("WARMSET_COLOR_SOCKET").map(PathBuf::from),
            colors,
            heaps,
            choice,
        })
    }
}

/// What a process has after it attached.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Attached {
    /// The page colors of its heaps.
    pub colors: Colors,
    /// How many heap colors there are.
    pub heaps: u16,
}

/// The connection, and the process that opened it: a forked child opens its own.
struct Server {
    socket: PathBuf,
    open: Option<(u32, Connection)>,
}

static SERVER: Mutex<Option<Server>> = Mutex::new(None);
static SAID: AtomicBool = AtomicBool::new(false);

impl Server {
    fn connection(&mut self) -> Result<&mut Connection> {
        let me = std::process::id();
        if self.open.as_ref().is_none_or(|(pid, _)| *pid != me) {
            self.open = Some((me, Connection::open_trusted(&self.socket)?));
        }
        match &mut self.open {
            Some((_, connection)) => Ok(connection),
            None => Err(Error::new("not connected to the memory server")),
        }
    }
}

/// Attaches this process to the memory server, once: from now on its heaps have colored memory.
///
/// # Errors
/// Nobody serves; no colors are granted, or not those; it was done before; no room in the address
/// space.
pub fn attach(options: &Options) -> Result<Attached> {
    // What this needs for itself comes from the system.
    outside(|| {
        let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        if ARENA.is_open() {
            return Err(
                Error::new("this process is attached to the memory server already")
                    .remedy("attach once, at the beginning"),
            );
        }
        let mut new = Server {
            socket: options
                .socket
                .clone()
                .unwrap_or_else(partition::client::usual_socket),
            open: None,
        };
        let (granted, _) = new.connection()?.colors()?;
        let colors = options.colors.clone().unwrap_or_else(|| granted.clone());
        let missing = colors.difference(&granted);
        if colors.is_empty() || !missing.is_empty() {
            let why = if colors.is_empty() {
                "no colors are granted to this process".to_owned()
            } else {
                format!("colors {missing} are not granted to this process")
            };
            return Err(Error::new(why).remedy("the operator grants them: `warmset color grant`"));
        }
        let most = colors.len().min(MOST_HEAPS).min(MOST_COLORS);
        let heaps = options.heaps.map_or(most, usize::from);
        if heaps == 0 || heaps > most {
            return Err(Error::new(format!(
                "{heaps} heap colors cannot be made of {} page colors",
                colors.len()
            ))
            .remedy(format!("ask for 1 to {most}")));
        }
        let source = Source {
            fetch,
            give_back,
            ordinary: false,
        };
        let numbers: Vec<u16> = colors.iter().map(|c| c.0).collect();
        thread::BY_TASK.store(options.choice == Choice::ByTask, Ordering::Relaxed);
        *server = Some(new);
        if !ARENA.open(&numbers, heaps, source) {
            *server = None;
            return Err(Error::new("no room in the address space for colored heaps")
                .remedy("raise the limit on virtual memory: `ulimit -v`"));
        }
        if !fork::watch(None) {
            return Err(Error::new("the C library does not tell about forks"));
        }
        Ok(Attached {
            colors,
            heaps: heaps as u16,
        })
    })
}

/// Gives memory that no heap uses back to the server; says how many bytes.
pub fn trim() -> usize {
    outside(|| ARENA.trim() * SLOT)
}

fn fetch(at: *mut u8, colors: &[u16], tiles: &mut [u32]) -> usize {
    outside(|| match fetched(at, colors, tiles) {
        Ok(()) => colors.len(),
        Err(e) => {
            if !SAID.swap(true, Ordering::Relaxed) {
                eprintln!("warmset: no more colored memory: {e}");
            }
            0
        }
    })
}

fn fetched(at: *mut u8, colors: &[u16], tiles: &mut [u32]) -> Result<()> {
    let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(server) = server.as_mut() else {
        return Err(Error::new("not attached to the memory server"));
    };
    let connection = server.connection()?;
    let mut places: BTreeMap<u16, Vec<usize>> = BTreeMap::new();
    for (place, color) in colors.iter().enumerate() {
        places.entry(*color).or_default().push(place);
    }
    let mut taken = Vec::new();
    let mut failed = None;
    for (color, places) in places {
        match connection.take_tiles(partition::Color(color), places.len()) {
            Ok(got) => taken.extend(places.into_iter().zip(got)),
            Err(e) => {
                failed = Some(e);
                break;
            }
        }
    }
    for (place, (tile, file)) in &taken {
        let file = file.as_raw_fd();
        // SAFETY: the allocator asked for memory at these addresses, which are its own and unused.
        if failed.is_none() && !unsafe { sys::file_at(at.add(place * SLOT), SLOT, file) } {
            failed = Some(
                Error::new(format!(
                    "cannot map colored memory: {}",
                    std::io::Error::last_os_error()
                ))
                .remedy(
                    "raise the number of mappings: `sysctl vm.max_map_count`, 1 for each 64 KiB",
                ),
            );
        }
        tiles[*place] = *tile;
    }
    let Some(failed) = failed else { return Ok(()) };
    // All or nothing.
    // SAFETY: as above.
    unsafe { sys::plain_at(at, colors.len() * SLOT, 0) };
    let numbers: Vec<u32> = taken.iter().map(|(_, (tile, _))| *tile).collect();
    drop(taken);
    connection.return_tiles(&numbers)?;
    Err(failed)
}

fn give_back(tiles: &[u32]) {
    outside(|| {
        let mut server = SERVER.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(server) = server.as_mut() else {
            return;
        };
        let given = server.connection().and_then(|c| c.return_tiles(tiles));
        if let Err(e) = given {
            // They return when this process ends.
            eprintln!("warmset: colored memory was not given back: {e}");
        }
    });
}
