//! Files in and out: read whole and checked, written aside and renamed, so that nothing
//! half-written is left behind.

use crate::error::{Error, Result};
use crate::input::text_of;
use std::fs::File;
use std::io::{Read, Write};
use std::path::Path;

mod aside;
mod place;

pub use aside::Aside;

/// The largest file that is read whole: it is to leave room in memory for what is made of it. Batch
/// files are read line by line and have no such limit.
pub const MAX_FILE: u64 = 64 << 20;

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
/// There is no such directory; it cannot be written to; a directory has this name; the path is
/// refused (see [`Aside`]).
pub fn can_be_written(path: &Path) -> Result<()> {
    let dir = path.parent().filter(|d| !d.as_os_str().is_empty());
    if let Some(dir) = dir.filter(|d| !d.is_dir()) {
        return Err(
            Error::new(format!("there is no directory `{}`", dir.display()))
                .remedy("make it first, or correct the path"),
        );
    }
    if path.is_dir() {
        return Err(Error::new("this is a directory").remedy("name a file in it"));
    }
    aside::try_place(path)
}

/// Makes a directory and those above it. A link of another user on the way is refused.
///
/// # Errors
/// It cannot be made, or the path is a file.
pub fn make_dir(dir: &Path) -> Result<()> {
    place::make_dir(dir)
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

/// An empty file under this name, in the place of what was there, for output that grows.
///
/// # Errors
/// As [`Aside::create`].
pub fn begin(path: &Path) -> Result<File> {
    Aside::create(path)?.appear()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// A device that were replaced by a file would be gone for the whole machine.
    #[test]
    fn devices_stay_devices_and_links_stay_links() {
        use std::os::unix::fs::FileTypeExt;
        let is_device = |path: &str| fs::metadata(path).unwrap().file_type().is_char_device();
        write(Path::new("/dev/null"), "text").unwrap();
        assert!(is_device("/dev/null"));
        if is_device("/dev/full") {
            let e = write(Path::new("/dev/full"), "text")
                .unwrap_err()
                .to_string();
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
        // No process has these numbers: their writers were killed. The others are no parts of this
        // file.
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

    #[test]
    fn what_this_user_keeps_from_others_stays_so() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("private");
        fs::write(&path, "old").unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).unwrap();
        write(&path, "new").unwrap();
        assert_eq!(
            fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }

    /// Opening it to see whether it is left behind would wait for its writer.
    #[test]
    fn a_fifo_under_the_name_of_a_part_stops_nobody() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("out");
        let mode = rustix::fs::Mode::from_raw_mode(0o600);
        let fifo = dir.path().join("out.17.part");
        rustix::fs::mkfifoat(rustix::fs::CWD, &fifo, mode).unwrap();
        write(&path, "text").unwrap();
        assert_eq!(names(dir.path()), ["out", "out.17.part"]);
    }

    #[test]
    fn directories_and_links_that_lead_round_are_refused() {
        let dir = tempfile::tempdir().unwrap();
        for path in [
            dir.path().to_owned(),
            dir.path().join(".."),
            dir.path().join("x/.."),
        ] {
            let e = write(&path, "").unwrap_err().to_string();
            assert!(e.ends_with("this is a directory; name a file in it"), "{e}");
        }
        std::os::unix::fs::symlink("b", dir.path().join("a")).unwrap();
        std::os::unix::fs::symlink("a", dir.path().join("b")).unwrap();
        let e = write(&dir.path().join("a"), "").unwrap_err().to_string();
        assert!(e.contains("cannot write the file"), "{e}");
        let e = write(&dir.path().join("a/c"), "").unwrap_err().to_string();
        assert!(e.contains("cannot write the file"), "{e}");
    }

    #[test]
    fn directories_are_made_and_links_to_them_followed() {
        let dir = tempfile::tempdir().unwrap();
        write(&dir.path().join("a/b/../c/file"), "1").unwrap();
        assert_eq!(fs::read(dir.path().join("a/c/file")).unwrap(), b"1");
        std::os::unix::fs::symlink("a/c", dir.path().join("short")).unwrap();
        write(&dir.path().join("short/file"), "2").unwrap();
        assert_eq!(fs::read(dir.path().join("a/c/file")).unwrap(), b"2");
        // A link that leads to nothing yet.
        std::os::unix::fs::symlink("a/new", dir.path().join("ahead")).unwrap();
        write(&dir.path().join("ahead"), "3").unwrap();
        assert_eq!(fs::read(dir.path().join("a/new")).unwrap(), b"3");
        let e = make_dir(&dir.path().join("a/c/file"))
            .unwrap_err()
            .to_string();
        assert!(e.contains("cannot make the directory"), "{e}");
        assert_eq!(names(dir.path()), ["a", "ahead", "short"]);
    }

    #[test]
    fn a_file_that_grows_is_seen_from_its_beginning() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("log");
        fs::write(&path, "old").unwrap();
        let mut file = begin(&path).unwrap();
        assert_eq!(names(dir.path()), ["log"]);
        file.write_all(b"new").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"new");
    }
}
