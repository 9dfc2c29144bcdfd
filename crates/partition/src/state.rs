//! What a memory server leaves to the one after it: rights, and which file in memory is which tile.
//!
//! Clients keep their mappings when the server ends, so that tiles are still out then. Who has
//! which, the system says: the mappings of a process name the file behind each (proc(5),
//! `/proc/PID/maps`), and whoever may (CAP_CHECKPOINT_RESTORE) opens it again
//! (`/proc/PID/map_files`). Nothing has to be written while tiles come and go.

use crate::colors::Color;
use crate::holder::Access;
use crate::ledger::{Peer, Rights, TileId};
use crate::palette::{How, Palette};
use crate::process::Process;
use crate::tile::Tile;
use model::watch::Watch;
use model::{CpuSet, Error, Result, files};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;

/// The name that the files of tiles have in the mappings of a process.
pub(crate) const NAME: &std::ffi::CStr = c"warmset-color";

/// A tile by its file.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Known {
    /// Its number.
    pub id: TileId,
    /// Its color.
    pub color: Color,
    /// Its file's number.
    pub inode: u64,
}

/// What a server leaves.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct State {
    /// Which start of the machine it is of: numbers of processes and files mean nothing after
    /// another.
    pub boot: String,
    /// The cache that the colors are of.
    pub cache: String,
    /// How many colors there are.
    pub colors: u16,
    /// Grants and groups.
    pub rights: Rights,
    /// When the processes among them began.
    pub began: BTreeMap<u32, u64>,
    /// The tiles.
    pub tiles: Vec<Known>,
}

/// A tile that a process has mapped.
#[derive(Debug)]
pub struct Out {
    /// Which.
    pub tile: Known,
    /// Who.
    pub peer: Peer,
    /// To write or to read.
    pub access: Access,
    /// Its file, where we may open it.
    pub file: Option<File>,
}

/// Which start of the machine this is.
pub fn boot() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id")
        .map_or_else(|_| String::new(), |t| t.trim().to_owned())
}

impl State {
    /// Reads what was left; `None` where nothing was.
    ///
    /// # Errors
    /// The file cannot be read, or is none of a server.
    pub fn read(path: &Path) -> Result<Option<Self>> {
        let text = match std::fs::read_to_string(path) {
            Ok(text) => text,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(e) => return Err(Error::io(path, "read what the server before left", &e)),
        };
        serde_json::from_str(&text).map(Some).map_err(|e| {
            Error::new(format!("this is not what a memory server leaves: {e}"))
                .at(path.display())
                .remedy("remove it to begin without grants, or name another file with `--state`")
        })
    }

    /// Leaves it: whole or not at all, and for our own eyes.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(&self, path: &Path) -> Result<()> {
        let text = serde_json::to_string(self)
            .map_err(|e| Error::new(format!("cannot be written: {e}")))?;
        files::write(path, text)?;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))
            .map_err(|e| Error::io(path, "keep the state from others", &e))
    }

    /// Tiles that processes still have mapped; each once.
    pub fn out(&self) -> Vec<Out> {
        if self.boot != boot() {
            return Vec::new();
        }
        let mut wanted: BTreeMap<u64, Known> = self.tiles.iter().map(|t| (t.inode, *t)).collect();
        let mut out = Vec::new();
        let own = std::process::id();
        let processes = std::fs::read_dir("/proc").into_iter().flatten().flatten();
        for entry in processes {
            let Some(pid) = entry
                .file_name()
                .to_str()
                .and_then(|n| n.parse::<u32>().ok())
            else {
                continue;
            };
            let (Ok(maps), Ok(about)) = (
                std::fs::read_to_string(format!("/proc/{pid}/maps")),
                std::fs::metadata(format!("/proc/{pid}")),
            ) else {
                continue;
            };
            if pid == own {
                continue;
            }
            for (range, writable, inode) in maps.lines().filter_map(mapping) {
                let Some(tile) = wanted.remove(&inode) else {
                    continue;
                };
                let file = OpenOptions::new()
                    .read(true)
                    .write(true)
                    .open(format!("/proc/{pid}/map_files/{range}"))
                    .ok();
                out.push(Out {
                    tile,
                    peer: Peer {
                        pid,
                        uid: about.uid(),
                        began: Process::open(pid).map_or(0, |process| process.began()),
                    },
                    access: if writable {
                        Access::Full
                    } else {
                        Access::ReadOnly
                    },
                    file,
                });
            }
        }
        out
    }
}

/// Of a line of `/proc/PID/maps` about a tile: the range, whether it may be written, the file's
/// number.
fn mapping(line: &str) -> Option<(&str, bool, u64)> {
    let mut words = line.split_ascii_whitespace();
    let (range, rights, _, _, inode, name) = (
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
        words.next()?,
    );
    let name = name.strip_prefix("/memfd:")?;
    (name == NAME.to_str().ok()?).then_some(())?;
    Some((
        range,
        rights.as_bytes().get(1) == Some(&b'w'),
        inode.parse().ok()?,
    ))
}

/// Gives the colors of a palette the numbers that they had, by tiles that are still out. Says
/// whether they have them: also where nothing is out, and where frame numbers say it.
///
/// # Errors
/// Pages cannot be sorted; the user stopped it.
pub fn rename_colors(
    palette: &mut Palette,
    out: &[Out],
    on: &CpuSet,
    watch: &dyn Watch,
) -> Result<bool> {
    /// Tiles of each color that are asked.
    const WITNESSES: usize = 3;
    if out.is_empty() || palette.how == How::FrameNumbers {
        return Ok(true);
    }
    let mut asked: BTreeMap<Color, usize> = BTreeMap::new();
    let mut seen = Vec::new();
    for one in out {
        let number = asked.entry(one.tile.color).or_default();
        let Some(file) = one.file.as_ref().filter(|_| *number < WITNESSES) else {
            continue;
        };
        let Ok(tile) = file
            .try_clone()
            .map_err(|e| Error::new(e.to_string()))
            .and_then(|f| Tile::adopt(one.tile.color, f))
        else {
            continue;
        };
        *number += 1;
        let now = palette.sort(&tile.pages(), on, watch)?;
        seen.extend(now.into_iter().flatten().map(|now| (one.tile.color, now)));
    }
    let known = asked.values().all(|number| *number > 0);
    palette.renumber(&numbers(seen, palette.colors()));
    Ok(known)
}

/// New numbers for colors that were found anew: `new[c]` is what color `c` was called before, by
/// pages whose color was known. Colors of which no page was known get the numbers that are left.
pub fn numbers(seen: impl IntoIterator<Item = (Color, Color)>, colors: u16) -> Vec<Color> {
    let mut votes: BTreeMap<(Color, Color), usize> = BTreeMap::new();
    for (before, now) in seen {
        *votes.entry((before, now)).or_default() += 1;
    }
    let mut votes: Vec<((Color, Color), usize)> = votes.into_iter().collect();
    votes.sort_by_key(|(pair, count)| (usize::MAX - count, *pair));
    let mut new: Vec<Option<Color>> = vec![None; usize::from(colors)];
    let mut free: Vec<bool> = vec![true; usize::from(colors)];
    for ((before, now), _) in votes {
        if let (Some(place @ None), Some(free @ true)) =
            (new.get_mut(now.index()), free.get_mut(before.index()))
        {
            *place = Some(before);
            *free = false;
        }
    }
    let mut left = (0..colors).map(Color).filter(|c| free[c.index()]);
    new.iter()
        .map(|known| known.or_else(|| left.next()).unwrap_or(Color(0)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mapping_of_a_tile_is_told_from_others() {
        let line = "7f5e3a000000-7f5e3a010000 rw-s 00000000 00:01 4711       /memfd:warmset-color (deleted)";
        assert_eq!(
            mapping(line),
            Some(("7f5e3a000000-7f5e3a010000", true, 4711))
        );
        let line = "7f5e3a000000-7f5e3a010000 r--s 00000000 00:01 4711       /memfd:warmset-color (deleted)";
        assert_eq!(
            mapping(line),
            Some(("7f5e3a000000-7f5e3a010000", false, 4711))
        );
        for other in [
            "7f5e3a000000-7f5e3a010000 rw-p 00000000 00:00 0 ",
            "7f5e3a000000-7f5e3a010000 rw-s 00000000 00:01 7 /memfd:warmset-contents (deleted)",
            "",
        ] {
            assert_eq!(mapping(other), None);
        }
    }

    #[test]
    fn colors_keep_their_numbers_by_the_pages_that_were_known() {
        let seen = [(3, 0), (3, 0), (3, 1), (0, 2), (1, 1)].map(|(a, b)| (Color(a), Color(b)));
        assert_eq!(numbers(seen, 4), [3, 1, 0, 2].map(Color));
        assert_eq!(numbers([], 3), [0, 1, 2].map(Color));
        // Every number is given once, whatever was seen.
        let mut all = numbers(
            [
                (Color(2), Color(0)),
                (Color(2), Color(1)),
                (Color(9), Color(9)),
            ],
            3,
        );
        all.sort();
        assert_eq!(all, [0, 1, 2].map(Color));
    }

    #[test]
    fn what_is_left_reads_back_and_what_is_of_another_start_names_no_process() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("state");
        assert_eq!(State::read(&path).unwrap(), None);
        let state = State {
            boot: "another".to_owned(),
            cache: "L2".to_owned(),
            colors: 16,
            rights: Rights::default(),
            began: BTreeMap::from([(1, 2)]),
            tiles: vec![Known {
                id: 1,
                color: Color(3),
                inode: 5,
            }],
        };
        state.write(&path).unwrap();
        assert_eq!(State::read(&path).unwrap().unwrap(), state);
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(state.out().is_empty());
        std::fs::write(&path, "{}").unwrap();
        assert!(
            State::read(&path)
                .unwrap_err()
                .to_string()
                .contains("not what a memory server leaves")
        );
    }
}
