//! Can the library be loaded into a program? Not where the loader ignores libraries, or where there
//! is no loader.

use model::{Error, Result};
use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

/// Can a library be loaded into a program? Gives its path.
///
/// # Errors
/// It is not there, or is statically linked, or runs with other rights than its caller's: then the loader ignores libraries.
pub fn check(program: &Path) -> Result<PathBuf> {
    let path = found(program)?;
    checked(&path, 0)?;
    Ok(path)
}

fn found(program: &Path) -> Result<PathBuf> {
    let missing = || {
        Error::new(format!("there is no program `{}`", program.display()))
            .remedy("check its name, or give its path")
    };
    if program.components().count() > 1 {
        return program.is_file().then(|| program.to_owned()).ok_or_else(missing);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .map(|dir| dir.join(program))
        .find(|p| p.is_file())
        .ok_or_else(missing)
}

fn checked(path: &Path, depth: usize) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let failed = |e: std::io::Error| Error::io(path, "read the program", &e);
    let file = File::open(path).map_err(failed)?;
    let mode = file.metadata().map_err(failed)?.permissions().mode();
    if mode & 0o6000 != 0 {
        return Err(
            Error::new("the program runs with the rights of another user or group (setuid): no library is loaded into it")
                .at(path.display())
                .remedy("run a copy without these rights"),
        );
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
            Some(interpreter) => checked(&found(Path::new(interpreter))?, depth + 1),
            None => Ok(()),
        };
    }
    let refused = |why: &str| {
        Err(Error::new(why.to_owned())
            .at(path.display())
            .remedy("build it as a dynamically linked program of this machine"))
    };
    let half = |at: usize| {
        bytes
            .get(at..at + 2)
            .map_or(0, |b| usize::from(u16::from_le_bytes([b[0], b[1]])))
    };
    let word = |at: usize| {
        let eight = bytes.get(at..at + 8).and_then(|b| b.try_into().ok());
        eight.map_or(0, u64::from_le_bytes) as usize
    };
    if bytes.get(..5) != Some(b"\x7fELF\x02") {
        return refused("this is no 64-bit program: no library can be loaded into it");
    }
    // elf(5): where the program headers are, how long each is, how many there are; 3: the loader's name.
    let (at, each, number) = (word(32), half(54), half(56));
    let dynamic = (0..number).any(|i| bytes.get(at + i * each..at + i * each + 4) == Some(&[3, 0, 0, 0]));
    if !dynamic {
        return refused("the program is statically linked: no library can be loaded into it");
    }
    Ok(())
}
