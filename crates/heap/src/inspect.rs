//! Which pages of a running process are colored? Its frames, as the kernel tells them
//! (`/proc/PID/pagemap`), compared with the frames of the tiles that it was given.

use crate::exec::LIBRARY_NAME;
use crate::message::{Entry, HEAP, LACK, MAPPING, STACK};
use partition::Color;
use partition::frame::FrameNumbers;
use partition::geometry::PAGE;
use partition::tile::{TILE, TILE_PAGES};
use serde::Serialize;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::os::unix::fs::FileExt;

/// A part of a process, as it is shown.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Row {
    /// What it is.
    pub part: String,
    /// Pages that are there.
    pub pages: u64,
    /// Those of them whose frames are of colors that the program was given.
    pub colored: u64,
    /// These colors.
    pub colors: BTreeSet<Color>,
}

/// What was found of a process.
#[derive(Clone, PartialEq, Eq, Debug, Serialize)]
pub struct Report {
    /// Its number.
    pub process: u32,
    /// Its name.
    pub name: String,
    /// Did the system tell frames? Where not, `colored` is what the process says of itself.
    pub checked: bool,
    /// Part by part.
    pub rows: Vec<Row>,
    /// The most pages of heap and mappings at a time that had ordinary memory because colored
    /// memory had run out, by the process's own account. The rows tell the moment of its end.
    pub lacking: u64,
}

/// The frames of a tile.
pub fn frames(tile: &File, numbers: &FrameNumbers) -> Vec<u64> {
    // SAFETY: a new mapping of a file of this size, to read, unmapped below.
    unsafe {
        let at = libc::mmap(
            std::ptr::null_mut(),
            TILE,
            libc::PROT_READ,
            libc::MAP_SHARED | libc::MAP_POPULATE,
            tile.as_raw_fd(),
            0,
        );
        if at == libc::MAP_FAILED {
            return Vec::new();
        }
        let frames = (0..TILE_PAGES)
            .filter_map(|page| numbers.of_address(at as usize + page * PAGE))
            .collect();
        libc::munmap(at, TILE);
        frames
    }
}

/// The parts in the order in which they are shown.
const PARTS: [&str; 8] = [
    "heap",
    "mappings",
    "stacks",
    "code",
    "data",
    "thread data and loader",
    "the library of colors",
    "kernel's",
];

/// The entries that a process shares, from their bytes.
fn entries_of(bytes: &[u8]) -> Vec<Entry> {
    let entry = |b: &[u8]| {
        let word = |at: usize| u64::from_ne_bytes(std::array::from_fn(|i| b[at + i]));
        Entry {
            start: word(0),
            size: word(8),
            kind: word(16) as u32,
            ordinary: (word(16) >> 32) as u32,
        }
    };
    bytes.chunks_exact(size_of::<Entry>()).map(entry).collect()
}

/// A mapping, as far as its part depends on it.
struct Place<'a> {
    rights: &'a str,
    path: &'a str,
    /// Of a file, or of the zeroed data behind one.
    object: bool,
    /// Of the library that colors this program.
    library: bool,
}

impl Place<'_> {
    /// The index in [`PARTS`] of a page of this mapping.
    fn part(&self, entry: Option<&Entry>) -> usize {
        let path = self.path;
        match entry.map(|e| e.kind) {
            Some(HEAP) => 0,
            Some(MAPPING) => 1,
            Some(STACK) => 2,
            _ if path == "[stack]" => 2,
            _ if path == "[heap]" => 0,
            _ if path.starts_with("[v") => 7,
            None if self.library => 6,
            Some(_) | None if self.object || entry.is_some() => {
                if self.rights.contains('x') || !self.rights.contains('w') {
                    3
                } else {
                    4
                }
            }
            _ if path.is_empty() => 5,
            _ => 1,
        }
    }
}

/// Looks at a process: `entries` are the ranges that it names as colored.
pub fn process(pid: u32, entries: &[u8], frames: &HashMap<u64, Color>) -> Report {
    let entries = entries_of(entries);
    let lacking = entries
        .iter()
        .find(|e| e.kind == LACK)
        .map_or(0, |e| e.size / PAGE as u64);
    let name = std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default();
    let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap_or_default();
    let pagemap = File::open(format!("/proc/{pid}/pagemap")).ok();
    let mut rows: BTreeMap<usize, Row> = BTreeMap::new();
    let mut checked = false;
    let mut object = false;
    let mut library = false;
    for line in maps.lines() {
        let Some((start, end, rights, path)) = parse(line) else {
            continue;
        };
        // Zeroed data follows its file without a name.
        object =
            path.starts_with('/') && !path.starts_with("/memfd:") || (path.is_empty() && object);
        library = path.ends_with(LIBRARY_NAME) || (path.is_empty() && library);
        if rights.starts_with("---") {
            continue;
        }
        let Some(pagemap) = &pagemap else { continue };
        let place = Place {
            rights,
            path,
            object,
            library,
        };
        for (page, frame) in pages(pagemap, start, end) {
            checked |= frame != 0;
            let entry = entries
                .iter()
                .find(|e| e.kind != LACK && page.wrapping_sub(e.start) < e.size);
            let part = place.part(entry);
            let row = rows.entry(part).or_insert_with(|| Row {
                part: PARTS[part].to_owned(),
                pages: 0,
                colored: 0,
                colors: BTreeSet::new(),
            });
            row.pages += 1;
            match frames.get(&frame) {
                Some(color) => {
                    row.colored += 1;
                    row.colors.insert(*color);
                }
                None if frame == 0 && entry.is_some_and(|e| e.ordinary == 0) => row.colored += 1,
                None => {}
            }
        }
    }
    Report {
        process: pid,
        name: name.trim().to_owned(),
        checked,
        rows: rows.into_values().collect(),
        lacking,
    }
}

/// A line of `maps`: from, to, rights, path.
fn parse(line: &str) -> Option<(u64, u64, &str, &str)> {
    let mut fields = line.splitn(6, ' ');
    let (start, end) = fields.next()?.split_once('-')?;
    let rights = fields.next()?;
    let path = fields.nth(3).unwrap_or_default().trim();
    Some((
        u64::from_str_radix(start, 16).ok()?,
        u64::from_str_radix(end, 16).ok()?,
        rights,
        path,
    ))
}

/// The pages of a range that are there: where, and the frame (0 where it is withheld). They are
/// read in parts: a range may be larger than memory.
fn pages(pagemap: &File, start: u64, end: u64) -> impl Iterator<Item = (u64, u64)> {
    const PRESENT: u64 = 1 << 63;
    const FRAME: u64 = (1 << 55) - 1;
    const AT_ONCE: u64 = 1 << 16;
    let page = PAGE as u64;
    let parts = (start / page..end / page).step_by(AT_ONCE as usize);
    parts.flat_map(move |first| {
        let number = AT_ONCE.min(end / page - first);
        let mut entries = vec![0; (number * 8) as usize];
        if pagemap.read_exact_at(&mut entries, first * 8).is_err() {
            entries.clear();
        }
        let entries: Vec<u64> = entries
            .chunks_exact(8)
            .map(|b| u64::from_ne_bytes(std::array::from_fn(|i| b[i])))
            .collect();
        let numbered = (first..)
            .zip(entries)
            .filter(|(_, entry)| entry & PRESENT != 0);
        numbered.map(move |(number, entry)| (number * page, entry & FRAME))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_maps_are_read() {
        let line = "7f00-8f00 r-xp 00000000 08:01 77                         /usr/lib/a b.so";
        assert_eq!(
            parse(line),
            Some((0x7f00, 0x8f00, "r-xp", "/usr/lib/a b.so"))
        );
        assert_eq!(
            parse("1000-2000 rw-p 0 00:00 0"),
            Some((0x1000, 0x2000, "rw-p", ""))
        );
        assert_eq!(parse("nonsense"), None);
    }

    /// A process that names nothing as colored has nothing colored.
    #[test]
    fn this_process_is_seen() {
        let report = process(std::process::id(), &[], &HashMap::new());
        assert!(report.rows.iter().any(|r| r.part == "code" && r.pages > 0));
        assert!(report.rows.iter().all(|r| r.colored == 0));
    }
}
