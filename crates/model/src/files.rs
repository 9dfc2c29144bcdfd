//! Files in and out: read whole and checked, written aside and renamed, so that nothing half-written is left behind.

use crate::error::{Error, Result};
use crate::input::text_of;
use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};

/// The largest file that is read whole. Batch files are read line by line and have no such limit.
pub const MAX_FILE: u64 = 256 << 20;

/// The whole of a text file.
///
/// # Errors
/// Not there, not readable, larger than [`MAX_FILE`], empty, NUL bytes, not UTF-8 (with the line).
pub fn read_text(path: &Path) -> Result<String> {
    let io = |e: &std::io::Error| Error::io(path, "read the file", e);
    let file = File::open(path).map_err(|e| io(&e))?;
    let mut bytes = Vec::new();
    file.take(MAX_FILE + 1)
        .read_to_end(&mut bytes)
        .map_err(|e| io(&e))?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(
            Error::new(format!("the file is larger than {} MiB", MAX_FILE >> 20))
                .at(path.display())
                .remedy("split it, or give it as a batch file with one set a line"),
        );
    }
    text_of(bytes).map_err(|e| e.at(path.display()))
}

/// Finds out whether a file can be written under this name, and leaves nothing behind.
///
/// The directory must be there: [`Aside::create`] would make it, but a name that somebody typed may
/// hold a slip.
///
/// # Errors
/// There is no such directory; it cannot be written to; a directory has this name.
pub fn can_be_written(path: &Path) -> Result<()> {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty());
    if let Some(dir) = dir.filter(|d| !d.is_dir()) {
        return Err(Error::new(format!("there is no directory `{}`", dir.display()))
            .remedy("make it first, or correct the path"));
    }
    if path.is_dir() {
        return Err(Error::new("this is a directory").remedy("name a file in it"));
    }
    // A pipe is not opened: that would wait for its reader.
    match fs::metadata(path) {
        Ok(there) if !there.is_file() => Ok(()),
        _ => Aside::create(path).map(drop),
    }
}

/// How the name of a part ends.
const PART: &str = ".part";

/// Removes parts of this file whose writers are gone. Whatever fails here is left as it is: it is in nobody's way.
fn remove_left_behind(path: &Path) {
    let (Some(dir), Some(name)) = (path.parent(), path.file_name().and_then(|n| n.to_str())) else {
        return;
    };
    let dir = if dir.as_os_str().is_empty() {
        Path::new(".")
    } else {
        dir
    };
    let is_part = |other: &str| {
        other
            .strip_prefix(name)
            .and_then(|rest| rest.strip_prefix('.'))
            .and_then(|rest| rest.strip_suffix(PART))
            .is_some_and(|pid| !pid.is_empty() && pid.bytes().all(|b| b.is_ascii_digit()))
    };
    for entry in fs::read_dir(dir).into_iter().flatten().flatten() {
        if entry.file_name().to_str().is_some_and(is_part)
            && let Ok(file) = File::open(entry.path())
            && file.try_lock().is_ok()
        {
            // One that cannot be removed stays beside.
            let _ = fs::remove_file(entry.path());
        }
    }
}

/// A file that appears under its name only when it is complete.
///
/// Writes go to `NAME.PID.part` beside it; [`Aside::finish`] flushes them to disk and renames. Dropped before that, the
/// part is removed and what was there before stays. A part is locked while it is written: one that nobody holds was left
/// behind by a process that was killed, and the next one that writes the same file removes it.
///
/// What is there and no file, a device or a pipe such as `/dev/stdout`, is written to as it is: renaming would replace it. A
/// link stays, and the file that it leads to is replaced.
pub struct Aside {
    path: PathBuf,
    /// `None`: written to as it is.
    part: Option<PathBuf>,
    file: Option<File>,
}

impl Aside {
    /// Starts a file; its directory is made if need be.
    ///
    /// # Errors
    /// The directory or the part cannot be made.
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let mut path = path.into();
        if let Ok(there) = fs::metadata(&path) {
            if !there.is_file() && !there.is_dir() {
                let opened = OpenOptions::new().write(true).open(&path);
                let file = opened.map_err(|e| Error::io(&path, "write the file", &e))?;
                return Ok(Aside {
                    path,
                    part: None,
                    file: Some(file),
                });
            }
            if path.is_symlink() {
                path = fs::canonicalize(&path).map_err(|e| Error::io(&path, "write the file", &e))?;
            }
        }
        if let Some(dir) = path.parent().filter(|d| !d.as_os_str().is_empty()) {
            make_dir(dir)?;
        }
        remove_left_behind(&path);
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(format!(".{}{PART}", std::process::id()));
        let part = path.with_file_name(name);
        loop {
            let file = File::create(&part).map_err(|e| Error::io(&path, "write the file", &e))?;
            // Where files cannot be locked, nobody takes a part for left behind either.
            let locked = file.lock().is_ok();
            // Between the two another process may have taken it for left behind.
            if !locked || part.exists() {
                return Ok(Aside {
                    path,
                    part: Some(part),
                    file: Some(file),
                });
            }
        }
    }

    /// Completes the file under its name.
    ///
    /// # Errors
    /// The disk is full or failed; nothing is left behind then.
    pub fn finish(mut self) -> Result<()> {
        if let (Some(file), Some(part)) = (self.file.take(), &self.part) {
            let done = file.sync_all().and_then(|()| fs::rename(part, &self.path));
            if let Err(e) = done {
                // The error to report is the first one; a part that cannot be removed stays beside.
                let _ = fs::remove_file(part);
                return Err(Error::io(&self.path, "write the file", &e));
            }
        }
        Ok(())
    }
}

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(std::io::Error::other("the file is finished")),
        }
    }
    fn flush(&mut self) -> std::io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let (Some(_), Some(part)) = (self.file.take(), &self.part) {
            // Nothing more can be done about a part that cannot be removed.
            let _ = fs::remove_file(part);
        }
    }
}

/// Makes a directory and those above it.
///
/// # Errors
/// It cannot be made, or the path is a file.
pub fn make_dir(dir: &Path) -> Result<()> {
    fs::create_dir_all(dir).map_err(|e| Error::io(dir, "make the directory", &e))
}

/// Writes a whole file aside and renames it.
///
/// # Errors
/// The directory is not writable, the disk is full: what was there before stays.
pub fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<()> {
    let mut aside = Aside::create(path)?;
    aside
        .write_all(bytes.as_ref())
        .map_err(|e| Error::io(path, "write the file", &e))?;
    aside.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A device that were replaced by a file would be gone for the whole machine.
    #[test]
    fn devices_stay_devices_and_links_stay_links() {
        use std::os::unix::fs::FileTypeExt;
        let is_device = |path: &str| fs::metadata(path).unwrap().file_type().is_char_device();
        write(Path::new("/dev/null"), "text").unwrap();
        assert!(is_device("/dev/null"));
        if is_device("/dev/full") {
            let e = write(Path::new("/dev/full"), "text").unwrap_err().to_string();
            assert!(e.starts_with("/dev/full: cannot write the file"), "{e}");
            assert!(is_device("/dev/full"));
        }
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        fs::write(&file, "old").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        write(&link, "new").unwrap();
        assert!(link.is_symlink());
        assert_eq!(fs::read_to_string(&file).unwrap(), "new");
        assert_eq!(names(dir.path()), ["file", "link"]);
    }

    /// The names in a directory, sorted.
    fn names(dir: &Path) -> Vec<String> {
        let entries = fs::read_dir(dir).unwrap();
        let mut names: Vec<String> = entries
            .map(|e| e.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_part_that_was_left_behind_goes_and_one_that_is_written_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run.json");
        // No process has these numbers: their writers were killed. The others are no parts of this file.
        for name in [
            "run.json.4194999.part",
            "run.json.4194998.part",
            "run.json.x.part",
            "other.json.4194999.part",
        ] {
            fs::write(dir.path().join(name), "half").unwrap();
        }
        // One that another process writes at the moment, as its lock says.
        let busy = File::create(dir.path().join("run.json.4194997.part")).unwrap();
        busy.lock().unwrap();
        write(&path, "whole").unwrap();
        assert_eq!(
            names(dir.path()),
            [
                "other.json.4194999.part",
                "run.json",
                "run.json.4194997.part",
                "run.json.x.part"
            ]
        );
        drop(busy);
        write(&path, "again").unwrap();
        assert_eq!(
            names(dir.path()),
            ["other.json.4194999.part", "run.json", "run.json.x.part"]
        );
        assert_eq!(fs::read_to_string(&path).unwrap(), "again");
    }
}
