//! How much colored memory a program is known to need before it begins: for its code and data, by
//! what its loader would map, and for the stack of its first thread. What it will allocate is not
//! known.

use super::loadable::{LOADER, MAPPED, loaded, parts};
use super::{Part, Plan, check};
use model::{Bytes, Result};
use partition::geometry::PAGE;
use partition::tile::TILE;
use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Memory of its colors in which all of a program's code and data, as far as the plan colors them,
/// and its first stack find room.
///
/// # Errors
/// No library can be loaded into the program.
pub fn known_need(program: &Path, plan: &Plan) -> Result<Bytes> {
    let file = loaded(&check(program)?, 0)?;
    let mut need = 0;
    if plan.parts.contains(&Part::Segments) {
        let libraries = libraries(&file).unwrap_or_default();
        let all = std::iter::once(&file).chain(&libraries);
        let size: u64 = all.filter_map(|file| mapped(file)).sum();
        // They get half of what is free.
        need += 2 * size.min(plan.segments.get());
    }
    if plan.parts.contains(&Part::Stacks) {
        need += plan.stack.get();
    }
    Ok(Bytes::new(need))
}

fn beginning(file: &Path) -> Option<(File, Vec<u8>)> {
    let file = File::open(file).ok()?;
    let mut bytes = Vec::new();
    Read::take(&file, 1 << 16).read_to_end(&mut bytes).ok()?;
    Some((file, bytes))
}

/// Bytes of the tiles that the mapped parts of a file take.
fn mapped(file: &Path) -> Option<u64> {
    let (_, bytes) = beginning(file)?;
    let parts = parts(&bytes)?;
    let mapped = parts.iter().filter(|part| part.kind == MAPPED);
    let tiles = mapped.map(|part| {
        let before = part.address % PAGE as u64;
        part.size.saturating_add(before).div_ceil(TILE as u64)
    });
    Some(tiles.sum::<u64>().saturating_mul(TILE as u64))
}

/// The libraries that a program is linked with, as its own loader finds them. The loader lists
/// them and does not begin the program (`ld.so --list`, also that of musl).
fn libraries(program: &Path) -> Option<Vec<PathBuf>> {
    let (file, bytes) = beginning(program)?;
    let named = parts(&bytes)?
        .into_iter()
        .find(|part| part.kind == LOADER)?;
    let mut name = vec![
        0;
        usize::try_from(named.in_file)
            .ok()
            .filter(|size| *size < 4096)?
    ];
    file.read_exact_at(&mut name, named.offset).ok()?;
    let name = name.split(|b| *b == 0).next()?;
    let listed = Command::new(OsStr::from_bytes(name))
        .arg("--list")
        .arg(program)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    Some(
        listed
            .stdout
            .split(|b| *b == b'\n')
            .filter_map(path_of)
            .collect(),
    )
}

/// The path in a line such as `libc.so.6 => /lib/libc.so.6 (0x00007f0000000000)`.
fn path_of(line: &[u8]) -> Option<PathBuf> {
    let text = std::str::from_utf8(line).ok()?.trim();
    let path = text.rsplit_once("=> ").map_or(text, |(_, path)| path);
    let path = path.rsplit_once(" (0x").map_or(path, |(path, _)| path);
    path.starts_with('/').then(|| PathBuf::from(path))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_loaders_name_libraries() {
        let path = |line: &str| path_of(line.as_bytes());
        let libc = Some(PathBuf::from("/lib/libc.so.6"));
        assert_eq!(
            path("\tlibc.so.6 => /lib/libc.so.6 (0x00007f0000000000)"),
            libc
        );
        assert_eq!(path("\t/lib/libc.so.6 (0x00007f0000000000)"), libc);
        assert_eq!(path("\tlinux-vdso.so.1 (0x00007f0000000000)"), None);
        assert_eq!(path("\tlibgone.so => not found"), None);
    }

    #[test]
    fn code_and_data_of_a_program_and_its_libraries_are_known() {
        let plan = |parts: &[Part]| Plan {
            colors: partition::Colors::first(1),
            by_task: false,
            parts: parts.to_vec(),
            stack: Bytes::from_kib(256),
            segments: Bytes::from_mib(64),
            strict: false,
        };
        let need = |parts: &[Part]| known_need(Path::new("sh"), &plan(parts)).unwrap();
        assert_eq!(need(&[Part::Heap]), Bytes::new(0));
        assert_eq!(need(&[Part::Stacks]), Bytes::from_kib(256));
        let program = mapped(&check(Path::new("sh")).unwrap()).unwrap();
        // The C library is larger than the shell.
        assert!(need(&[Part::Segments]).get() > 2 * program);
        let small = Plan {
            segments: Bytes::from_kib(64),
            ..plan(&[Part::Segments])
        };
        assert_eq!(
            known_need(Path::new("sh"), &small).unwrap(),
            Bytes::from_kib(128)
        );
    }
}
