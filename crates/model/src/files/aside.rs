//! A file that is written aside: without a name, or to a part beside it, and gets its own name when
//! it is complete.

use super::place::{self, Place, is_same, kind, status};
use crate::error::{Error, Result};
use rustix::fs::{AtFlags, CWD, FileType, FlockOperation, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::hash::{BuildHasher, Hasher};
use std::io::{self, Write};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

/// How the name of a part ends.
const PART: &str = ".part";
/// How often a part gets another name because the name is taken.
const TRIES: u32 = 100;

/// A file that appears under its name only when it is complete.
///
/// Writes go to a file without a name in the same directory (`O_TMPFILE`). [`Aside::finish`]
/// flushes it to disk, gives it its name and flushes the directory. What is there already is
/// replaced by renaming a part beside it, `NAME.HEX.part` with random digits. A file system that
/// has no files without names has such a part from the beginning. Dropped before it is finished, it
/// goes and what was there before stays.
///
/// **Whose files.** The directory is opened once (each name of the path on its own, [`super`]) and
/// everything happens relative to it. A part is made new (`O_EXCL | O_NOFOLLOW`, or a link, which
/// never replaces): a link or file that somebody planted under its name is neither followed nor
/// overwritten. A part that was exchanged meanwhile is not renamed. A file that belongs to this
/// user keeps its permissions when it is replaced; a hard link to another file is cut.
///
/// **What is left behind.** The kernel frees a file without a name, however its writer ends. A part
/// is locked while it is there. One of this user that nobody holds was left behind by a process
/// that was killed; the next one that writes the same file removes it. It is in nobody's way before
/// that either: no two parts share a name.
///
/// **What is there and no regular file.**
///
/// | the path is | what happens |
/// |---|---|
/// | a link of this user or of root | the link stays, the file that it leads to is replaced |
/// | a link of another user, anywhere on the path | refused |
/// | `/dev/stdout`, `/dev/stderr` | written to the open file: what is there already stays, output is appended |
/// | another open file, such as `/dev/fd/3` | the same, as far as the system lets it be opened again |
/// | a device, such as `/dev/null` | written to as it is: renaming would replace it |
/// | a FIFO of this user or of root | written to as it is, once there is a reader |
/// | a FIFO or socket of another user | refused: it would stop us, or read what is not meant for it |
/// | a directory | refused |
pub struct Aside {
    /// As it was given, for errors.
    path: PathBuf,
    /// `None`: written to as it is.
    part: Option<Part>,
    file: Option<File>,
}

/// What is written until the file is complete.
struct Part {
    dir: OwnedFd,
    /// Its name beside the file, while it has one.
    name: Option<OsString>,
    /// The name that it gets in the end.
    last: OsString,
}

impl Part {
    fn remove(&self) {
        if let Some(name) = &self.name {
            // Nothing more can be done about a part that cannot be removed: it stays beside, in
            // nobody's way.
            let _ = rustix::fs::unlinkat(&self.dir, name, AtFlags::empty());
        }
    }

    /// Gives it its last name, in the place of what has that by now.
    fn appear(&mut self, file: &File) -> io::Result<()> {
        if self.name.is_some() {
            return self.rename(file);
        }
        match link(file, &self.dir, &self.last) {
            Err(Errno::EXIST) => {}
            linked => return Ok(linked?),
        }
        for _ in 0..TRIES {
            let name = part_name(&self.last);
            match link(file, &self.dir, &name) {
                Err(Errno::EXIST) => continue,
                linked => linked?,
            }
            self.name = Some(name);
            return self.rename(file);
        }
        Err(no_free_name())
    }

    /// Gives the part its last name, unless it is another file by now.
    fn rename(&self, file: &File) -> io::Result<()> {
        let Some(name) = &self.name else {
            return Ok(());
        };
        let is_ours = match status(&self.dir, name)? {
            Some(found) => is_same(&found, &rustix::fs::fstat(file)?),
            None => false,
        };
        if !is_ours {
            return Err(io::Error::other(
                "another process has removed or exchanged the part beside it",
            ));
        }
        rustix::fs::renameat(&self.dir, name, &self.dir, &self.last)?;
        Ok(())
    }

    /// Flushes the directory. One that may not be read cannot be flushed, nor can one of a file
    /// system that has no such call.
    fn sync_directory(&self) -> io::Result<()> {
        if let Some(dir) = place::readable(&self.dir)? {
            match rustix::fs::fsync(&dir) {
                Ok(()) | Err(Errno::INVAL) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }
}

impl Aside {
    /// Starts a file; its directory is made if need be.
    ///
    /// # Errors
    /// The directory or the part cannot be made; the path is refused (see [`Aside`]).
    pub fn create(path: impl Into<PathBuf>) -> Result<Self> {
        let path = path.into();
        let place = Place::of(&path, true, "write the file")?;
        let failed = |e: io::Error| Error::io(&path, "write the file", &e);
        let old = match place.found {
            _ if place.is_open_file() => {
                let file = open_file(&place).map_err(failed)?;
                return Ok(Aside::as_it_is(path, file));
            }
            Some(found) => {
                match kind(&found) {
                    FileType::RegularFile => Some(found),
                    FileType::Directory => {
                        return Err(Error::new("this is a directory")
                            .at(path.display())
                            .remedy("name a file in it"));
                    }
                    FileType::Fifo | FileType::Socket if !place.is_trusted() => {
                        return Err(Error::new("this pipe or socket belongs to another user")
                        .at(path.display())
                        .remedy("print on standard output and lead that there, or choose another path"));
                    }
                    _ => {
                        let file = open_special(&place, &found).map_err(failed)?;
                        return Ok(Aside::as_it_is(path, file));
                    }
                }
            }
            None => None,
        };
        remove_left_behind(&place);
        let (part, file) = begin_part(place, old.as_ref()).map_err(failed)?;
        Ok(Aside {
            path,
            part: Some(part),
            file: Some(file),
        })
    }

    fn as_it_is(path: PathBuf, file: File) -> Self {
        Aside {
            path,
            part: None,
            file: Some(file),
        }
    }

    /// Completes the file under its name.
    ///
    /// # Errors
    /// The disk is full or failed; nothing is left behind then.
    pub fn finish(mut self) -> Result<()> {
        if let (Some(file), Some(part)) = (self.file.take(), &mut self.part) {
            let appeared = file.sync_all().and_then(|()| part.appear(&file));
            if appeared.is_err() {
                part.remove();
            }
            appeared
                .and_then(|()| part.sync_directory())
                .map_err(|e| Error::io(&self.path, "write the file", &e))?;
        }
        Ok(())
    }

    /// Shows the file under its name with what was written so far, in the place of what was there,
    /// and returns it for more: for files that are read while they grow, and after a crash.
    ///
    /// # Errors
    /// The part cannot be renamed; nothing is left behind then.
    pub fn appear(mut self) -> Result<File> {
        let failed = |e: io::Error| Error::io(&self.path, "write the file", &e);
        let file = self.file.take();
        let file = file.ok_or_else(|| failed(io::Error::other("the file is finished")))?;
        if let Some(part) = &mut self.part {
            let shown = part.appear(&file);
            if shown.is_err() {
                part.remove();
            }
            // From now on it is no part, and nobody may take it for one that is written.
            shown.and_then(|()| file.unlock()).map_err(failed)?;
        }
        Ok(file)
    }
}

impl Write for Aside {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.file {
            Some(file) => file.write(bytes),
            None => Err(io::Error::other("the file is finished")),
        }
    }
    fn flush(&mut self) -> io::Result<()> {
        self.file.as_mut().map_or(Ok(()), File::flush)
    }
}

impl Drop for Aside {
    fn drop(&mut self) {
        if let (Some(_), Some(part)) = (self.file.take(), &self.part) {
            part.remove();
        }
    }
}

/// Makes what is written for the file at a place, and locks it.
fn begin_part(place: Place, old: Option<&Stat>) -> io::Result<(Part, File)> {
    // What this user keeps from others stays so. Another user's permissions say nothing of our
    // file.
    let kept = old
        .filter(|old| old.st_uid == rustix::process::geteuid().as_raw())
        .map(|old| old.st_mode & 0o777);
    let mode = kept.unwrap_or(0o666);
    // Where files cannot be locked, nobody takes a part for left behind either.
    let prepare = |file: &File| -> io::Result<bool> {
        if let Some(mode) = kept {
            rustix::fs::fchmod(file, Mode::from_raw_mode(mode))?;
        }
        Ok(rustix::fs::flock(file, FlockOperation::NonBlockingLockExclusive).is_ok())
    };
    let mut part = Part {
        dir: place.dir,
        name: None,
        last: place.name,
    };
    if let Some(file) = create_unnamed(&part.dir, mode) {
        prepare(&file)?;
        return Ok((part, file));
    }
    for _ in 0..TRIES {
        let name = part_name(&part.last);
        let file = match create_new(&part.dir, &name, mode) {
            Err(Errno::EXIST) => continue,
            made => File::from(made?),
        };
        let locked = prepare(&file)?;
        // Between the two another process may have taken it for left behind.
        let found = status(&part.dir, &name)?;
        let ours = rustix::fs::fstat(&file)?;
        if locked && found.is_none_or(|found| !is_same(&found, &ours)) {
            continue;
        }
        part.name = Some(name);
        return Ok((part, file));
    }
    Err(no_free_name())
}

fn no_free_name() -> io::Error {
    io::Error::other("there is no free name for a part beside it")
}

/// The directory of the open files of this process, through which a file without a name gets one.
const OPEN_FILES: &str = "/proc/self/fd";

/// A new file without a name in this directory, or none where it could not be had, or could not get
/// a name later.
fn create_unnamed(dir: &OwnedFd, mode: u32) -> Option<File> {
    let flags = OFlags::WRONLY | OFlags::TMPFILE | OFlags::CLOEXEC;
    rustix::fs::stat(OPEN_FILES).ok()?;
    // What else is wrong is told where a file with a name is made.
    let file = rustix::fs::openat(dir, ".", flags, Mode::from_raw_mode(mode)).ok()?;
    Some(File::from(file))
}

/// Gives a file without a name one that nothing has.
fn link(file: &File, dir: &OwnedFd, name: &OsStr) -> Result<(), Errno> {
    let open = format!("{OPEN_FILES}/{}", file.as_raw_fd());
    rustix::fs::linkat(CWD, open, dir, name, AtFlags::SYMLINK_FOLLOW)
}

/// A new file under a name, or `EXIST`, whatever has the name: a link is not followed.
fn create_new(dir: &OwnedFd, name: &OsStr, mode: u32) -> Result<OwnedFd, Errno> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    rustix::fs::openat(dir, name, flags, Mode::from_raw_mode(mode))
}

/// A name for a part that nobody foresees: the state of this hasher is random.
fn part_name(of: &OsStr) -> OsString {
    let random = std::hash::RandomState::new().build_hasher().finish();
    let mut name = of.to_owned();
    name.push(format!(".{random:016x}{PART}"));
    name
}

/// Is this the name of a part of the file `of`?
fn is_part(name: &[u8], of: &OsStr) -> bool {
    name.strip_prefix(of.as_bytes())
        .and_then(|rest| rest.strip_prefix(b"."))
        .and_then(|rest| rest.strip_suffix(PART.as_bytes()))
        .is_some_and(|digits| {
            (1..=16).contains(&digits.len()) && digits.iter().all(u8::is_ascii_hexdigit)
        })
}

/// Removes parts of this file whose writers are gone. Whatever fails here is left as it is: it is
/// in nobody's way.
fn remove_left_behind(place: &Place) {
    let Ok(Some(dir)) = place::readable(&place.dir) else {
        return;
    };
    let Ok(entries) = rustix::fs::Dir::read_from(&dir) else {
        return;
    };
    for entry in entries.flatten() {
        let name = OsStr::from_bytes(entry.file_name().to_bytes());
        if is_part(name.as_bytes(), &place.name) && is_left_behind(&dir, name) {
            // One that cannot be removed stays beside.
            let _ = rustix::fs::unlinkat(&dir, name, AtFlags::empty());
        }
    }
}

/// Is this a file of this user that nobody has locked?
fn is_left_behind(dir: &OwnedFd, name: &OsStr) -> bool {
    // Opening must neither follow a link nor wait for the writer of a FIFO.
    let flags = OFlags::RDONLY | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let Ok(file) = rustix::fs::openat(dir, name, flags, Mode::empty()) else {
        return false;
    };
    let is_ours = rustix::fs::fstat(&file).is_ok_and(|found| {
        kind(&found) == FileType::RegularFile && found.st_uid == rustix::process::geteuid().as_raw()
    });
    is_ours && rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok()
}

/// The file behind a link of procfs. Standard output and error are shared, with their place in the
/// file; others are opened again, to append.
fn open_file(place: &Place) -> io::Result<File> {
    let own = rustix::fs::stat("/proc/self/fd")?;
    let is_own = is_same(&own, &rustix::fs::fstat(&place.dir)?);
    match place.name.as_bytes() {
        b"1" if is_own => {
            io::stdout().flush()?;
            Ok(File::from(io::stdout().as_fd().try_clone_to_owned()?))
        }
        b"2" if is_own => Ok(File::from(io::stderr().as_fd().try_clone_to_owned()?)),
        _ => {
            let flags = OFlags::WRONLY | OFlags::APPEND | OFlags::NOCTTY | OFlags::CLOEXEC;
            Ok(File::from(rustix::fs::openat(
                &place.dir,
                &place.name,
                flags,
                Mode::empty(),
            )?))
        }
    }
}

/// A device or FIFO, if it is still the one that was found.
fn open_special(place: &Place, found: &Stat) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::NOFOLLOW | OFlags::NOCTTY | OFlags::CLOEXEC;
    let file = rustix::fs::openat(&place.dir, &place.name, flags, Mode::empty())?;
    if !is_same(found, &rustix::fs::fstat(&file)?) {
        return Err(io::Error::other(
            "another process has exchanged it meanwhile",
        ));
    }
    Ok(File::from(file))
}

/// Makes sure that a path can be written to, and leaves nothing behind.
pub(super) fn try_place(path: &Path) -> Result<()> {
    let place = Place::of(path, false, "write the file")?;
    let is_special = place
        .found
        .as_ref()
        .is_some_and(|f| !matches!(kind(f), FileType::RegularFile | FileType::Directory));
    // A pipe is not opened: that would wait for its reader.
    if is_special && place.is_trusted() {
        return Ok(());
    }
    Aside::create(path).map(drop)
}

#[cfg(test)]
mod tests;
