//! Where a file is to stand: its directory, opened, and its name there.
//!
//! A path is walked name by name from directories that are open, so that nobody who may write to
//! one of them can lead the walk elsewhere between two steps. A link is followed if it belongs to
//! this user or to root. A link of anybody else, such as one planted in `/tmp`, is refused.

use crate::error::{Error, Result};
use rustix::fs::{AtFlags, CWD, FileType, Mode, OFlags, Stat};
use rustix::io::Errno;
use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::path::{Component, Path, PathBuf};

/// As many links as the system follows on one path.
const MOST_LINKS: u32 = 40;

/// A name in an open directory.
pub(super) struct Place {
    /// The directory, opened as a place (`O_PATH`): it need not be readable.
    pub dir: OwnedFd,
    /// A name without `/`.
    pub name: OsString,
    /// What stands there; `None`: nothing.
    pub found: Option<Stat>,
}

impl Place {
    /// The place of a file. Directories on the way are made if `make` says so; links are followed,
    /// the last one too.
    ///
    /// A link of procfs to an open file, such as `/proc/self/fd/1`, is a place of its own: it says
    /// no path.
    ///
    /// # Errors
    /// A directory is missing or may not be entered; a link of another user.
    pub fn of(path: &Path, make: bool, doing: &str) -> Result<Self> {
        Walk::from(path, make)
            .into_place()
            .map_err(|e| e.about(path, doing))
    }

    /// Does nothing but a procfs link to an open file have this place?
    pub fn is_open_file(&self) -> bool {
        self.found.as_ref().is_some_and(is_link)
    }

    /// Does what is found there belong to this user or to root?
    pub fn is_trusted(&self) -> bool {
        self.found.as_ref().is_none_or(is_trusted)
    }
}

/// Makes a directory and those above it, by the same rules.
///
/// # Errors
/// It cannot be made; a link of another user; a name on the way is a file.
pub(super) fn make_dir(dir: &Path) -> Result<()> {
    let walked = Walk::from(dir, true).into_dir();
    walked
        .map(drop)
        .map_err(|e| e.about(dir, "make the directory"))
}

/// The type of what a status describes.
pub(super) fn kind(stat: &Stat) -> FileType {
    FileType::from_raw_mode(stat.st_mode)
}

fn is_link(stat: &Stat) -> bool {
    kind(stat) == FileType::Symlink
}

fn is_trusted(stat: &Stat) -> bool {
    stat.st_uid == 0 || stat.st_uid == rustix::process::geteuid().as_raw()
}

/// Why a walk ends before its end.
enum Stop {
    System(Errno),
    /// This link belongs to another user.
    Foreign(OsString),
}

impl From<Errno> for Stop {
    fn from(e: Errno) -> Self {
        Stop::System(e)
    }
}

impl Stop {
    fn about(self, path: &Path, doing: &str) -> Error {
        match self {
            Stop::System(e) => Error::io(path, doing, &e.into()),
            Stop::Foreign(name) => Error::new(format!(
                "the link `{}` belongs to another user and is not followed",
                name.display()
            ))
            .at(path.display())
            .remedy("give the path that it leads to, or choose another one"),
        }
    }
}

/// A path that is being walked.
struct Walk {
    todo: VecDeque<OsString>,
    from_root: bool,
    make: bool,
    links: u32,
}

impl Walk {
    fn from(path: &Path, make: bool) -> Self {
        let mut walk = Walk {
            todo: VecDeque::new(),
            from_root: false,
            make,
            links: 0,
        };
        walk.put_before(path);
        walk
    }

    /// Puts the names of a path before those that are left.
    fn put_before(&mut self, path: &Path) {
        self.from_root = path.is_absolute();
        let names = path.components().filter_map(|c| match c {
            Component::Normal(name) => Some(name.to_owned()),
            Component::ParentDir => Some(OsString::from("..")),
            Component::RootDir | Component::CurDir | Component::Prefix(_) => None,
        });
        let names: Vec<OsString> = names.collect();
        for name in names.into_iter().rev() {
            self.todo.push_front(name);
        }
    }

    fn begin(&self) -> std::result::Result<OwnedFd, Errno> {
        let start = if self.from_root { "/" } else { "." };
        rustix::fs::openat(CWD, start, directory(), Mode::empty())
    }

    fn into_dir(mut self) -> std::result::Result<OwnedFd, Stop> {
        let mut dir = self.begin()?;
        while let Some(name) = self.todo.pop_front() {
            dir = self.enter(dir, &name)?;
        }
        Ok(dir)
    }

    fn into_place(mut self) -> std::result::Result<Place, Stop> {
        let mut dir = self.begin()?;
        loop {
            // A path that ends in its start or in `..` names a directory.
            let name = self.todo.pop_front().unwrap_or_else(|| ".".into());
            if !self.todo.is_empty() {
                dir = self.enter(dir, &name)?;
                continue;
            }
            let found = status(&dir, &name)?;
            match &found {
                Some(stat) if is_link(stat) && !is_procfs(&dir) => {
                    dir = self.follow(dir, &name, stat)?
                }
                _ => return Ok(Place { dir, name, found }),
            }
        }
    }

    /// The directory of this name, which is made if it is missing; or where a link of this name
    /// goes on.
    fn enter(&mut self, dir: OwnedFd, name: &OsStr) -> std::result::Result<OwnedFd, Stop> {
        if self.make && status(&dir, name)?.is_none() {
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                // Somebody else made it meanwhile.
                Ok(()) | Err(Errno::EXIST) => {}
                Err(e) => return Err(e.into()),
            }
        }
        match status(&dir, name)? {
            // The links of procfs belong to the system, and some of them say no path.
            Some(stat) if is_link(&stat) && is_procfs(&dir) => {
                Ok(rustix::fs::openat(&dir, name, directory(), Mode::empty())?)
            }
            Some(stat) if is_link(&stat) => self.follow(dir, name, &stat),
            _ => {
                let flags = directory() | OFlags::NOFOLLOW;
                Ok(rustix::fs::openat(&dir, name, flags, Mode::empty())?)
            }
        }
    }

    /// Puts the path that a link holds before what is left; the directory from which that path
    /// counts.
    fn follow(
        &mut self,
        dir: OwnedFd,
        name: &OsStr,
        link: &Stat,
    ) -> std::result::Result<OwnedFd, Stop> {
        if !is_trusted(link) {
            return Err(Stop::Foreign(name.to_owned()));
        }
        self.links += 1;
        if self.links > MOST_LINKS {
            return Err(Errno::LOOP.into());
        }
        let target = rustix::fs::readlinkat(&dir, name, Vec::new())?;
        self.put_before(&PathBuf::from(OsString::from_vec(target.into_bytes())));
        if self.from_root {
            Ok(self.begin()?)
        } else {
            Ok(dir)
        }
    }
}

/// How directories are opened as places.
fn directory() -> OFlags {
    OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC
}

/// What has this name, a link itself and not what it leads to; `None`: nothing.
pub(super) fn status(dir: impl AsFd, name: &OsStr) -> std::result::Result<Option<Stat>, Errno> {
    match rustix::fs::statat(dir, name, AtFlags::SYMLINK_NOFOLLOW) {
        Ok(stat) => Ok(Some(stat)),
        Err(Errno::NOENT) => Ok(None),
        Err(e) => Err(e),
    }
}

fn is_procfs(dir: &OwnedFd) -> bool {
    rustix::fs::fstatfs(dir).is_ok_and(|found| found.f_type == rustix::fs::PROC_SUPER_MAGIC)
}

/// The directory, opened so that it can be listed and synced; `None` if it may not be read.
pub(super) fn readable(dir: &OwnedFd) -> std::result::Result<Option<OwnedFd>, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    match rustix::fs::openat(dir, ".", flags, Mode::empty()) {
        Ok(open) => Ok(Some(open)),
        Err(Errno::ACCESS) => Ok(None),
        Err(e) => Err(e),
    }
}

/// Are these one and the same file?
pub(super) fn is_same(a: &Stat, b: &Stat) -> bool {
    (a.st_dev, a.st_ino) == (b.st_dev, b.st_ino)
}
