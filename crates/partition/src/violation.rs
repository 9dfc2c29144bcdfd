//! Writes to pages of others' colors, reported: single-writer partitioning (001 §5.3) is enforced
//! by the mapping, which ends the writer with SIGSEGV; here it is said first whose page it was, to
//! its user and to the memory server.
//!
//! The handler runs wherever the program was, perhaps within its allocator: it uses nothing but a
//! table that was filled before, memory on its stack, and write(2).

use crate::client::Memory;
use crate::colors::Color;
use crate::geometry::PAGE;
use crate::holder::Holder;
use crate::protocol::{self, Request};
use crate::tile::TILE_PAGES;
use model::{Error, Result};
use rustix::net::SendFlags;
use std::collections::BTreeMap;
use std::os::fd::{BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::ptr::null_mut;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, AtomicPtr, Ordering};
use sys::signal::Disposition;

/// The most areas that are watched at once; writes to others end the program without a word.
const MOST_AREAS: usize = 64;

/// An area that may only be read.
struct Area {
    from: usize,
    to: usize,
    /// What to say of each tile, in their order: to the user, and to the server.
    tiles: Vec<(String, Vec<u8>)>,
    /// The connection that it came over, kept open; -1 when it is gone.
    server: AtomicI32,
}

static AREAS: [AtomicPtr<Area>; MOST_AREAS] = [const { AtomicPtr::new(null_mut()) }; MOST_AREAS];
static BEFORE: OnceLock<Disposition> = OnceLock::new();

/// From now on, a write to a page that may only be read says which color it has and whose it is,
/// before SIGSEGV does what it did before: mostly, end the program.
///
/// # Errors
/// The system does not let signals be handled.
pub fn report() -> Result<()> {
    if BEFORE.get().is_some() {
        return Ok(());
    }
    // Known before the handler may run, which restores it.
    let Ok(before) = Disposition::of(libc::SIGSEGV) else {
        return Ok(());
    };
    if BEFORE.set(before).is_err() {
        return Ok(());
    }
    // SAFETY: the handler reads a table that was filled before, makes system calls, and neither
    // takes memory nor unwinds; no call of it sets `errno`.
    unsafe { sys::signal::handle_fault(libc::SIGSEGV, on_fault) }.map_err(|e| {
        Error::new(format!(
            "cannot handle writes to pages that may only be read: {e}"
        ))
    })
}

extern "C" fn on_fault(_: libc::c_int, info: *mut libc::siginfo_t, _: *mut libc::c_void) {
    // SAFETY: what the kernel has passed to this handler of `SIGSEGV`.
    let address = unsafe { sys::signal::fault_address(info) };
    for area in &AREAS {
        // SAFETY: null, or an area that was leaked: entries are taken out of the table and never
        // freed.
        let Some(area) = (unsafe { area.load(Ordering::Acquire).as_ref() }) else {
            continue;
        };
        if !(area.from..area.to).contains(&address) {
            continue;
        }
        if let Some((text, line)) = area.tiles.get((address - area.from) / (TILE_PAGES * PAGE)) {
            // That it is said may fail, and changes nothing.
            let _ = rustix::io::write(std::io::stderr(), text.as_bytes());
            let server = area.server.load(Ordering::Acquire);
            if server >= 0 {
                // SAFETY: opened by `watch`, and closed only when the memory is unmapped, to which
                // the thread that is here has an address.
                let server = unsafe { BorrowedFd::borrow_raw(server) };
                let _ = rustix::net::send(server, line, SendFlags::NOSIGNAL | SendFlags::DONTWAIT);
            }
        }
    }
    // The access is tried again, and meets what was there before.
    if let Some(before) = BEFORE.get() {
        // It fails for no signal that can be handled.
        let _ = before.restore(libc::SIGSEGV);
    }
}

/// Keeps in mind whose pages these are.
pub(crate) fn watch(memory: &Memory, owners: BTreeMap<Color, Holder>, server: &UnixStream) {
    let tiles = (0..memory.size() / PAGE)
        .step_by(TILE_PAGES)
        .filter_map(|page| memory.color_of(page))
        .map(|color| {
            let owner = owners
                .get(&color)
                .map_or_else(|| "nobody".to_owned(), ToString::to_string);
            let text = format!(
                "warmset: a write to a page of color {color}, which belongs to {owner}: this process may only read it\n"
            );
            (text, protocol::line(&Request::Wrote { color }))
        })
        .collect();
    let area = Box::new(Area {
        from: memory.base() as usize,
        to: memory.base() as usize + memory.size(),
        tiles,
        server: AtomicI32::new(server.try_clone().map_or(-1, IntoRawFd::into_raw_fd)),
    });
    let area = Box::into_raw(area);
    let free = AREAS.iter().find(|place| {
        place
            .compare_exchange(null_mut(), area, Ordering::AcqRel, Ordering::Relaxed)
            .is_ok()
    });
    if free.is_none() {
        // SAFETY: made above, and in no table.
        drop(unsafe { Box::from_raw(area) });
    }
}

/// The area is about to be unmapped. Its entry is leaked but for its connection: a handler in
/// another thread may be reading it.
pub(crate) fn forget(memory: &Memory) {
    for place in &AREAS {
        let area = place.load(Ordering::Acquire);
        // SAFETY: as in the handler.
        let Some(known) = (unsafe { area.as_ref() }) else {
            continue;
        };
        if known.from != memory.base() as usize {
            continue;
        }
        place.store(null_mut(), Ordering::Release);
        let server = known.server.swap(-1, Ordering::AcqRel);
        if server >= 0 {
            // SAFETY: opened by `watch`, and closed once.
            drop(unsafe { OwnedFd::from_raw_fd(server) });
        }
    }
}
