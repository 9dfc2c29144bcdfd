//! The directory of a run: the library that is loaded into programs, and the socket at which
//! they ask for memory.
//!
//! Programs load this library with the rights of the user who runs them, also after the supervisor
//! was killed. So its path must stay this user's: every directory above it belongs to root or to
//! the user, nobody else may write to any of them, and none has a name that is given to others
//! later, as the number of a process is. Other users may read the library and nothing else: a
//! program that gives up its rights still loads it, and goes on without colors.

use model::{Error, Result};
use std::fs::{DirBuilder, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

/// The directory that runs make theirs in.
const OF_ALL_RUNS: &str = "warmset-color-exec";
/// The library's name there. Processes are known to have it loaded by this name.
pub(crate) const LIBRARY: &str = "libwarmset-preload.so";
const SOCKET: &str = "socket";
/// Locked by the supervisor as long as it lives.
const LOCK: &str = "lock";

/// A directory of this run alone. What is dropped is removed, unless a program still has the
/// library loaded; then a later run removes it.
#[derive(Debug)]
pub(super) struct Place {
    dir: PathBuf,
    _lock: Locked,
}

impl Place {
    /// Makes a directory, writes the library into it, and listens there.
    ///
    /// # Errors
    /// No directory is safe, or none can be written to; the error names each with its reason.
    pub(super) fn make(library: &[u8]) -> Result<(Place, UnixListener)> {
        Self::make_in(candidates(), library)
    }

    fn make_in(bases: Vec<PathBuf>, library: &[u8]) -> Result<(Place, UnixListener)> {
        let mut reasons = Vec::new();
        for base in bases {
            match fit(&base).and_then(|base| Self::within(&base, library)) {
                Ok(made) => return Ok(made),
                Err(why) => reasons.push(format!("{} {why}", base.display())),
            }
        }
        if reasons.is_empty() {
            reasons.push("none is named by XDG_RUNTIME_DIR or HOME".to_owned());
        }
        Err(Error::new(format!(
            "there is no directory from which a library could be loaded safely: {}",
            reasons.join("; ")
        ))
        .remedy(
            "set XDG_RUNTIME_DIR to a directory of your own, in directories that only you and root \
             may write to",
        ))
    }

    fn within(base: &Path, library: &[u8]) -> std::result::Result<(Place, UnixListener), String> {
        let parent = base.join(OF_ALL_RUNS);
        let failed = |e: std::io::Error| format!("cannot be used: {e}");
        match DirBuilder::new().mode(0o700).create(&parent) {
            Err(e) if e.kind() != ErrorKind::AlreadyExists => return Err(failed(e)),
            _ => fit(&parent)?,
        };
        // Others pass through it, and cannot open it: whoever can may hold a lock on it.
        allow(&parent, 0o711).map_err(failed)?;
        let _making = Locked::new(File::open(&parent)).map_err(failed)?;
        remove_left_over(&parent);
        let dir = own_directory(&parent).map_err(failed)?;
        Self::fill(&dir, library).map_err(|e| {
            // It holds nothing that anybody uses yet.
            let _ = std::fs::remove_dir_all(&dir);
            failed(e)
        })
    }

    /// The directory is this user's alone until all is there.
    fn fill(dir: &Path, library: &[u8]) -> std::io::Result<(Place, UnixListener)> {
        let create = |name: &str, mode: u32| {
            let mut options = OpenOptions::new();
            options.write(true).create_new(true).mode(mode);
            options.open(dir.join(name))
        };
        let lock = Locked::new(create(LOCK, 0o600))?;
        create(LIBRARY, 0o444)?.write_all(library)?;
        let socket = dir.join(SOCKET);
        let listener = UnixListener::bind(&socket)?;
        // The kernel lets no other user connect.
        allow(&socket, 0o600)?;
        allow(&dir.join(LIBRARY), 0o444)?;
        allow(dir, 0o711)?;
        let place = Place {
            dir: dir.to_owned(),
            _lock: lock,
        };
        Ok((place, listener))
    }

    pub(super) fn library(&self) -> PathBuf {
        self.dir.join(LIBRARY)
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.dir.join(SOCKET)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        // What cannot be removed stays this user's, and is in nobody's way.
        let _ = std::fs::remove_file(self.socket());
        if !is_loaded(&self.library()) {
            let _ = std::fs::remove_dir_all(&self.dir);
        }
    }
}

/// A file that is locked as long as this lives, also where a child of this process has it open by
/// a fork.
#[derive(Debug)]
struct Locked(File);

impl Locked {
    fn new(file: std::io::Result<File>) -> std::io::Result<Self> {
        let file = file?;
        file.lock()?;
        Ok(Locked(file))
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        // It is closed next, which unlocks it where no child has it.
        let _ = self.0.unlock();
    }
}

/// Sets the mode of what was made, whatever the mask of this process took from it.
fn allow(path: &Path, mode: u32) -> std::io::Result<()> {
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

fn own_directory(parent: &Path) -> std::io::Result<PathBuf> {
    let mut number = 0_u32;
    loop {
        let dir = parent.join(format!("{}-{number}", std::process::id()));
        match DirBuilder::new().mode(0o700).create(&dir) {
            // Of a run in this process, or left by a process of this number.
            Err(e) if e.kind() == ErrorKind::AlreadyExists => number += 1,
            made => return made.map(|()| dir),
        }
    }
}

/// Directories that usually belong to this user alone, the best first.
fn candidates() -> Vec<PathBuf> {
    let user = rustix::process::geteuid();
    let named = |name: &str| {
        let dir = std::env::var_os(name).filter(|dir| !dir.is_empty());
        dir.map(PathBuf::from).filter(|dir| dir.is_absolute())
    };
    let mut dirs = Vec::new();
    if user.is_root() {
        dirs.extend(["/run", "/var/cache"].map(PathBuf::from));
    }
    dirs.extend(named("XDG_RUNTIME_DIR"));
    dirs.push(PathBuf::from(format!("/run/user/{}", user.as_raw())));
    dirs.extend(named("XDG_CACHE_HOME"));
    if let Some(home) = named("HOME") {
        let cache = home.join(".cache");
        if fit(&home).is_ok() && !cache.exists() {
            // Where it cannot be made, it is named below as missing.
            let _ = DirBuilder::new().mode(0o700).create(&cache);
        }
        dirs.push(cache);
    }
    dirs
}

/// Can nobody but root and this user change what a path below this directory means, and can
/// libraries be loaded from there? Returns the directory without symbolic links, or why not.
fn fit(dir: &Path) -> std::result::Result<PathBuf, String> {
    let user = rustix::process::geteuid().as_raw();
    let path = dir
        .canonicalize()
        .map_err(|e| format!("cannot be used: {e}"))?;
    // What has a meaning in LD_PRELOAD (ld.so(8)), or in the variable that names the socket.
    if path
        .as_os_str()
        .as_bytes()
        .iter()
        .any(|b| b" :;$\n".contains(b))
    {
        return Err("has a space, `:`, `;` or `$` in its name".to_owned());
    }
    for part in path.ancestors() {
        let meta = part
            .symlink_metadata()
            .map_err(|e| format!("cannot be used: {e}"))?;
        let which = match part == path {
            true => String::new(),
            false => format!("lies in {}, which ", part.display()),
        };
        if !meta.is_dir() {
            return Err(format!("{which}is no directory"));
        }
        if meta.uid() != 0 && meta.uid() != user {
            return Err(format!("{which}belongs to user {}", meta.uid()));
        }
        // A sticky bit does not help: a name that was removed there can be taken by anybody.
        if meta.mode() & 0o022 != 0 {
            return Err(format!("{which}can be written to by others"));
        }
    }
    let mount = rustix::fs::statvfs(&path).map_err(|e| format!("cannot be used: {e}"))?;
    if mount.f_flag.contains(rustix::fs::StatVfsMountFlags::NOEXEC) {
        return Err("is mounted so that nothing can be loaded from it (noexec)".to_owned());
    }
    Ok(path)
}

/// Removes directories of supervisors that were killed, once no program has their library loaded.
/// The caller holds the lock of the parent, so that none of them is being made.
fn remove_left_over(parent: &Path) {
    let Ok(entries) = std::fs::read_dir(parent) else {
        return;
    };
    for dir in entries.flatten().map(|entry| entry.path()) {
        let is_free = match OpenOptions::new().write(true).open(dir.join(LOCK)) {
            Ok(lock) => lock.try_lock().is_ok(),
            // Its supervisor was killed before it had a lock.
            Err(e) => e.kind() == ErrorKind::NotFound,
        };
        if is_free && !is_loaded(&dir.join(LIBRARY)) {
            // What cannot be removed now is tried again by the next run.
            let _ = std::fs::remove_dir_all(&dir);
        }
    }
}

/// Does any process have this library loaded? Processes of other users, which cannot be asked,
/// find nothing in its place when they begin another program, and go on without it.
fn is_loaded(library: &Path) -> bool {
    let Ok(processes) = std::fs::read_dir("/proc") else {
        return false;
    };
    let library = library.as_os_str().as_bytes();
    let is_process = |name: &std::ffi::OsStr| name.as_bytes().iter().all(u8::is_ascii_digit);
    processes
        .flatten()
        .filter(|entry| is_process(&entry.file_name()))
        .filter_map(|entry| std::fs::read(entry.path().join("maps")).ok())
        .any(|maps| {
            maps.split(|b| *b == b'\n')
                .any(|line| line.ends_with(library))
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where runs of this user make their directories.
    fn base() -> tempfile::TempDir {
        let own = candidates().into_iter().filter(|dir| fit(dir).is_ok());
        let mut made = own.filter_map(|dir| tempfile::tempdir_in(dir).ok());
        made.next()
            .expect("a directory that only this user and root may write to")
    }

    #[test]
    fn a_place_is_removed_with_its_run() {
        let base = base();
        let (place, listener) = Place::within(base.path(), b"library").unwrap();
        let dir = place.dir.clone();
        assert_eq!(std::fs::read(place.library()).unwrap(), b"library");
        let mode = |path: &Path| path.symlink_metadata().unwrap().mode() & 0o777;
        assert_eq!(mode(&place.socket()), 0o600);
        assert_eq!(mode(&place.library()), 0o444);
        assert_eq!(mode(&dir), 0o711);
        assert_eq!(mode(dir.parent().unwrap()), 0o711);
        drop((place, listener));
        assert!(!dir.exists());
    }

    #[test]
    fn what_a_killed_supervisor_left_is_removed_by_the_next_run() {
        let base = base();
        let (one, _listening) = Place::within(base.path(), b"").unwrap();
        // As it is after a kill: the lock is free, and nothing was removed.
        let left = one.dir.join("left");
        std::fs::write(&left, "").unwrap();
        one._lock.0.unlock().unwrap();
        std::mem::forget(one);
        let (two, _listening) = Place::within(base.path(), b"").unwrap();
        assert!(!left.exists() && two.dir.exists());
        // One that is in use stays.
        let (three, _listening) = Place::within(base.path(), b"").unwrap();
        assert!(two.dir.exists() && three.dir.exists() && two.dir != three.dir);
    }

    #[test]
    fn directories_that_others_may_write_to_are_refused() {
        let base = base();
        let open = base.path().join("open");
        std::fs::create_dir(&open).unwrap();
        for mode in [0o777, 0o1777, 0o775] {
            std::fs::set_permissions(&open, Permissions::from_mode(mode)).unwrap();
            assert!(fit(&open).unwrap_err().contains("by others"));
            let below = open.join("below");
            std::fs::create_dir_all(&below).unwrap();
            assert!(fit(&below).unwrap_err().contains("open, which can be"));
            let e = Place::make_in(vec![below.clone(), base.path().join("none")], b"").unwrap_err();
            let e = e.to_string();
            assert!(
                e.contains("by others") && e.contains("none cannot be used"),
                "{e}"
            );
        }
        std::fs::set_permissions(&open, Permissions::from_mode(0o755)).unwrap();
        assert!(fit(&open).is_ok());
        let colon = base.path().join("a:b");
        std::fs::create_dir(&colon).unwrap();
        assert!(fit(&colon).unwrap_err().contains("`:`"));
        // By a symbolic link, too: what counts is where it leads.
        std::fs::set_permissions(&open, Permissions::from_mode(0o777)).unwrap();
        let link = base.path().join("link");
        std::os::unix::fs::symlink(&open, &link).unwrap();
        assert!(fit(&link).is_err());
    }
}
