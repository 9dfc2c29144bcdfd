//! Code and data of the program and its libraries, in colors: copied to tiles, which are put in
//! their place, before the program's own function begins.
//!
//! Left as they are: this library, and what the C library and the loader may write, which `fork`
//! uses in the child before anything can be put right; and data altogether where threads run
//! already.

use crate::alloc::class::SLOT;
use crate::alloc::sys::{self, PAGE};
use crate::message::{MOST_TILES, SEGMENT, TAKE_SEGMENT};
use crate::ranges::{self, Range};
use crate::{setup, stacks};
use core::ffi::c_int;
use core::sync::atomic::Ordering;

const ROOM: usize = 1 << 20;
const EXECUTE: c_int = 4;

/// A line of `/proc/self/maps`.
struct Line<'a> {
    start: usize,
    end: usize,
    protection: c_int,
    path: &'a [u8],
}

fn hexadecimal(text: &[u8]) -> Option<usize> {
    usize::from_str_radix(core::str::from_utf8(text).ok()?, 16).ok()
}

fn parse(line: &[u8]) -> Option<Line<'_>> {
    let mut fields = line.splitn(6, |b| *b == b' ');
    let mut range = fields.next()?.split(|b| *b == b'-');
    let rights = fields.next()?;
    let path = fields.nth(3).map_or(&[][..], <[u8]>::trim_ascii);
    let right = |place: usize, letter: u8, bit: c_int| {
        if rights.get(place) == Some(&letter) {
            bit
        } else {
            0
        }
    };
    // What is shared with other processes is not ours to move.
    (rights.get(3) == Some(&b'p')).then_some(())?;
    Some(Line {
        start: hexadecimal(range.next()?)?,
        end: hexadecimal(range.next()?)?,
        protection: right(0, b'r', sys::READ)
            | right(1, b'w', sys::WRITE)
            | right(2, b'x', EXECUTE),
        path,
    })
}

/// Colors what may be colored, as far as there are tiles for it.
pub fn color() {
    if !setup::colors(SEGMENT) {
        return;
    }
    let Some(room) = sys::plain(ROOM) else { return };
    // SAFETY: the room that was just mapped.
    let text = unsafe { core::slice::from_raw_parts_mut(room, ROOM) };
    let file = sys::open(c"/proc/self/maps");
    let mut length = 0;
    while file >= 0 && length < ROOM {
        match usize::try_from(sys::read(file, &mut text[length..])) {
            Ok(0) | Err(_) => break,
            Ok(got) => length += got,
        }
    }
    if file >= 0 {
        // SAFETY: opened above.
        unsafe { sys::close(file) };
    }
    let own = color as *const () as usize;
    let text = &text[..length];
    let lines = || text.split(|b| *b == b'\n').filter_map(parse);
    let ours = lines()
        .find(|l| (l.start..l.end).contains(&own))
        .map_or(&[][..], |l| l.path);
    let mut object: &[u8] = &[];
    let mut end = 0;
    for line in lines() {
        // Zeroed data follows its file without a name.
        let belongs = line.path.starts_with(b"/") || (line.path.is_empty() && line.start == end);
        if line.path.starts_with(b"/") {
            object = line.path;
        }
        end = if belongs { line.end } else { 0 };
        if !belongs || object == ours || line.protection & sys::READ == 0 {
            continue;
        }
        let library = object.rsplit(|b| *b == b'/').next().unwrap_or_default();
        let needed = [
            &b"libc.so"[..],
            b"libc-",
            b"ld-linux",
            b"ld-2",
            b"ld.so",
            b"libpthread",
        ]
        .iter()
        .any(|n| library.starts_with(n));
        let code = line.protection & EXECUTE != 0;
        if !code && (needed || stacks::STARTED.load(Ordering::Relaxed) > 0) {
            continue;
        }
        if !is_loaded(object) {
            continue;
        }
        replace(&line);
    }
    // SAFETY: the room that was mapped above.
    unsafe { sys::unmap(room, ROOM) };
}

/// Only programs and libraries: files of data that are mapped stay what they are.
fn is_loaded(path: &[u8]) -> bool {
    let is_library = path.windows(3).any(|w| w == b".so");
    is_library || {
        let mut buffer = [0_u8; 4096];
        is_program(path, &mut buffer)
    }
}

fn is_program(path: &[u8], buffer: &mut [u8]) -> bool {
    use core::ffi::c_char;
    unsafe extern "C" {
        fn readlink(path: *const c_char, to: *mut c_char, size: usize) -> isize;
    }
    // SAFETY: the buffer lives through the call.
    let length = unsafe {
        readlink(
            c"/proc/self/exe".as_ptr(),
            buffer.as_mut_ptr().cast(),
            buffer.len(),
        )
    };
    usize::try_from(length).is_ok_and(|length| buffer[..length] == *path)
}

/// Copies a range to tiles and puts them in its place.
fn replace(line: &Line<'_>) {
    let size = line.end - line.start;
    let tiles = size.div_ceil(SLOT);
    let Some(aside) = sys::reserve(tiles * SLOT) else {
        return;
    };
    let mut done = 0;
    while done < tiles {
        let number = (tiles - done).min(MOST_TILES);
        let mut numbers = [0; MOST_TILES];
        let at = aside.wrapping_add(done * SLOT);
        let got = setup::fetch_range(TAKE_SEGMENT, 0, at, &mut numbers[..number]);
        done += got;
        if got < number {
            break;
        }
    }
    let fetched = (done * SLOT).min(size);
    let range = Range {
        start: line.start,
        size: fetched,
        kind: SEGMENT,
        writable: line.protection & sys::WRITE != 0,
        tiles: [0; ranges::MOST_TILES],
    };
    // SAFETY: the tiles are as long; what is replaced has the same contents before and after, and
    // nobody else writes it.
    unsafe {
        if fetched > 0 && ranges::add(range).is_some() {
            aside.copy_from_nonoverlapping(line.start as *const u8, fetched);
            for tile in 0..done {
                let part = SLOT.min(fetched.saturating_sub(tile * SLOT));
                if part == 0 {
                    break;
                }
                let from = aside.add(tile * SLOT);
                if sys::protect(from, SLOT, line.protection) {
                    sys::move_over(from, part, (line.start + tile * SLOT) as *mut u8);
                }
            }
        }
        sys::unmap(aside, tiles * SLOT);
    }
}

const _: () = assert!(SLOT.is_multiple_of(PAGE));
