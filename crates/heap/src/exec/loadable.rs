//! Can the library be loaded into a program? Not where the loader ignores libraries, or where there
//! is no loader.

use model::{Error, Result};
use rustix::fs::getxattr;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Can a library be loaded into a program? Gives its path.
///
/// # Errors
/// It is not there, or is statically linked, or runs with other rights than its caller's: then the
/// loader ignores libraries.
pub fn check(program: &Path) -> Result<PathBuf> {
    let path = found(program)?;
    loaded(&path, 0)?;
    Ok(path)
}

fn found(program: &Path) -> Result<PathBuf> {
    let missing = || {
        Error::new(format!("there is no program `{}`", program.display()))
            .remedy("check its name, or give its path")
    };
    if program.components().count() > 1 {
        return program
            .is_file()
            .then(|| program.to_owned())
            .ok_or_else(missing);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
        .ok_or_else(missing)
}

/// The file that the loader loads: the program itself, or the interpreter of a script.
pub(super) fn loaded(path: &Path, depth: usize) -> Result<PathBuf> {
    let failed = |e: std::io::Error| Error::io(path, "read the program", &e);
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    // Files with capabilities of their own are treated alike by the loader (ld.so(8)).
    let has_capabilities = getxattr(path, "security.capability", &mut [0_u8; 64]).is_ok();
    if mode & 0o6000 != 0 || has_capabilities {
        return Err(Error::new(
            "the program runs with other rights than its caller's (setuid, or capabilities of its \
             file): no library is loaded into it",
        )
        .at(path.display())
        .remedy("run a copy without these rights"));
    }
    let mut bytes = Vec::new();
    Read::take(&file, 1 << 16)
        .read_to_end(&mut bytes)
        .map_err(failed)?;
    if let Some(line) = bytes.strip_prefix(b"#!")
        && depth < 4
    {
        let line = line.split(|b| *b == b'\n').next().unwrap_or_default();
        let line = String::from_utf8_lossy(line);
        return match line.split_whitespace().next() {
            Some(interpreter) => loaded(&found(Path::new(interpreter))?, depth + 1),
            None => Ok(path.to_owned()),
        };
    }
    let refused = |why: &str| {
        Err(Error::new(why.to_owned())
            .at(path.display())
            .remedy("build it as a dynamically linked program of this machine"))
    };
    let Some(parts) = parts(&bytes) else {
        return refused("this is no 64-bit program: no library can be loaded into it");
    };
    if !parts.iter().any(|part| part.kind == LOADER) {
        return refused("the program is statically linked: no library can be loaded into it");
    }
    Ok(path.to_owned())
}

/// The part of a program that names its loader.
pub(super) const LOADER: u32 = 3;
/// A part that is mapped.
pub(super) const MAPPED: u32 = 1;

/// A part of a program (elf(5), program headers).
#[derive(Clone, Copy, Debug)]
pub(super) struct ProgramPart {
    pub(super) kind: u32,
    /// Where it is in the file, and how long there.
    pub(super) offset: u64,
    pub(super) in_file: u64,
    pub(super) address: u64,
    pub(super) size: u64,
}

/// The parts of a program, by its first bytes; `None` where it is none of 64 bits.
pub(super) fn parts(bytes: &[u8]) -> Option<Vec<ProgramPart>> {
    if bytes.get(..5) != Some(b"\x7fELF\x02") {
        return None;
    }
    let half = |at: usize| {
        let two = bytes.get(at..at + 2).and_then(|b| b.try_into().ok());
        two.map_or(0, |b| usize::from(u16::from_le_bytes(b)))
    };
    let word = |at: usize| {
        let eight = bytes.get(at..at.checked_add(8)?)?.try_into().ok()?;
        Some(u64::from_le_bytes(eight))
    };
    // Where the headers are, how long each is, how many there are.
    let (first, each, number) = (word(32).unwrap_or(0) as usize, half(54), half(56));
    let part = |place: usize| {
        let at = first.checked_add(place * each)?;
        Some(ProgramPart {
            kind: word(at)? as u32,
            offset: word(at + 8)?,
            in_file: word(at + 32)?,
            address: word(at + 16)?,
            size: word(at + 40)?,
        })
    };
    Some((0..number).filter_map(part).collect())
}
