//! The socket of a memory server: where nobody else can put another one, and open to all from its
//! beginning.
//!
//! A name in a directory that others may write to, such as `/tmp`, can be taken by them first;
//! clients would talk to them. So the directory must be one's own. The mode of a socket is what the
//! mask of the thread leaves of it when it is bound: it is never changed by name afterwards.

use machine::bequest::Bequest;
use model::{Error, Result};
use rustix::fs::{AtFlags, FileType, Mode, OFlags, Stat, fstat, open, statat, unlinkat};
use std::ffi::CString;
use std::io;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::DirBuilderExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A socket in the file system, and who listens there. It is removed when this is dropped.
#[derive(Debug)]
pub struct Socket {
    listener: UnixListener,
    path: PathBuf,
    dir: OwnedFd,
    name: std::ffi::OsString,
    /// The number of its file: another one under the same name is not ours to remove.
    inode: Option<u64>,
    /// Where memory runs out, and at the second Ctrl-C, nothing is dropped.
    _bequest: Option<Bequest>,
}

impl Socket {
    /// Listens there; any user may connect: who it is decides what is given. The directory is made
    /// if only its last part is missing.
    ///
    /// # Errors
    /// The directory is one that others may write to; a server is running there; the socket cannot
    /// be made.
    pub fn bind(path: PathBuf) -> Result<Self> {
        let name = path
            .file_name()
            .ok_or_else(|| Error::new("this is no name of a socket").at(path.display()))?
            .to_owned();
        let parent = match path.parent() {
            Some(parent) if !parent.as_os_str().is_empty() => parent,
            _ => Path::new("."),
        };
        let dir = own_directory(parent)?;
        // By its descriptor: also where somebody moves the directory meanwhile, and however long
        // the path is.
        let within = Path::new("/proc/self/fd")
            .join(dir.as_raw_fd().to_string())
            .join(&name);
        if UnixStream::connect(&within).is_ok() {
            return Err(Error::new("a memory server is running there")
                .at(path.display())
                .remedy("end it, or choose another socket with `--socket`"));
        }
        // What a server that was killed left behind; nothing else is removed.
        let is_socket = || {
            statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)
                .is_ok_and(|there| FileType::from_raw_mode(there.st_mode) == FileType::Socket)
        };
        if is_socket() {
            unlinkat(&dir, &name, AtFlags::empty())
                .map_err(|e| Error::io(&path, "remove the old socket", &e.into()))?;
        }
        let listener = bind_for_all(&within).map_err(|e| {
            // It may be there with nobody who listens, unless it is somebody else's.
            if e.kind() != std::io::ErrorKind::AddrInUse && is_socket() {
                let _ = unlinkat(&dir, &name, AtFlags::empty());
            }
            Error::io(&path, "make the socket", &e)
        })?;
        let inode = statat(&dir, &name, AtFlags::SYMLINK_NOFOLLOW)
            .ok()
            .map(|made| made.st_ino);
        let bequest = inode.and_then(|inode| {
            let name = CString::new(name.as_bytes()).ok()?;
            Some(Bequest::new(dir.try_clone().ok()?, name, inode))
        });
        Ok(Socket {
            listener,
            path,
            dir,
            name,
            inode,
            _bequest: bequest,
        })
    }

    /// Who listens.
    pub fn listener(&self) -> &UnixListener {
        &self.listener
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let now = statat(&self.dir, &self.name, AtFlags::SYMLINK_NOFOLLOW);
        if now.is_ok_and(|now| Some(now.st_ino) == self.inode) {
            // Nothing more can be done about a socket that cannot be removed; the next server will.
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        }
    }
}

/// Makes a socket to which everybody may connect, whatever the mask of this process is: by a thread
/// with a mask of its own, as others may be making files.
fn bind_for_all(path: &Path) -> io::Result<UnixListener> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().spawn_scoped(scope, || {
            sys::process::own_mask()?;
            rustix::process::umask(Mode::XUSR | Mode::XGRP | Mode::XOTH);
            UnixListener::bind(path)
        })?;
        let panicked = |_| Err(io::Error::other("the thread that makes it has panicked"));
        thread.join().unwrap_or_else(panicked)
    })
}

/// Opens a directory that nobody else may write to.
fn own_directory(path: &Path) -> Result<OwnedFd> {
    let failed = |e: std::io::Error| Error::io(path, "open the directory of the socket", &e);
    match std::fs::DirBuilder::new().mode(0o755).create(path) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => return Err(failed(e)),
        _ => {}
    }
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let dir = open(path, flags, Mode::empty()).map_err(|e| failed(e.into()))?;
    let about = fstat(&dir).map_err(|e| failed(e.into()))?;
    match others_write(&about) {
        None => Ok(dir),
        Some(others) => Err(Error::new(format!(
            "{others} may write to this directory, and could put a socket of their own there"
        ))
        .at(path.display())
        .remedy("choose a directory of your own with `--socket`")),
    }
}

/// Who else may write to a directory.
fn others_write(about: &Stat) -> Option<String> {
    let mode = Mode::from_raw_mode(about.st_mode);
    let (user, group) = (rustix::process::geteuid(), rustix::process::getegid());
    if about.st_uid != user.as_raw() && about.st_uid != 0 {
        return Some(format!("user {}", about.st_uid));
    }
    if mode.contains(Mode::WOTH) {
        return Some("other users".to_owned());
    }
    // Many systems give each user a group of his own, and let it write.
    (mode.contains(Mode::WGRP) && about.st_gid != group.as_raw())
        .then(|| format!("members of group {}", about.st_gid))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};

    fn mode(path: &Path, mode: u32) {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    #[test]
    fn a_socket_is_open_to_all_from_its_beginning_and_goes_with_its_server() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("made/color.sock");
        let socket = Socket::bind(path.clone()).unwrap();
        let about = std::fs::metadata(&path).unwrap();
        assert!(about.file_type().is_socket());
        assert_eq!(about.mode() & 0o777, 0o666);
        assert_eq!(
            std::fs::metadata(dir.path().join("made")).unwrap().mode() & 0o022,
            0
        );
        let e = Socket::bind(path.clone()).unwrap_err().to_string();
        assert!(e.contains("is running there"), "{e}");
        drop(socket);
        assert!(!path.exists());
    }

    /// A file that another thread makes meanwhile is no more open than it should be.
    #[test]
    fn other_threads_keep_their_mask() {
        let dir = tempfile::tempdir().unwrap();
        let over = std::sync::atomic::AtomicBool::new(false);
        let made_as = |name: String| {
            let path = dir.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::metadata(&path).unwrap().mode() & 0o777
        };
        let as_ever = made_as("before".to_owned());
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for n in 0..100 {
                    drop(Socket::bind(dir.path().join(format!("{n}.sock"))).unwrap());
                }
                over.store(true, std::sync::atomic::Ordering::Release);
            });
            let mut made = 0;
            while !over.load(std::sync::atomic::Ordering::Acquire) {
                assert_eq!(made_as(format!("made-{made}")), as_ever);
                made += 1;
            }
            assert!(made > 0);
        });
    }

    #[test]
    fn a_directory_that_others_may_write_to_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        for bits in [0o777, 0o1777, 0o703] {
            mode(dir.path(), bits);
            let e = Socket::bind(dir.path().join("color.sock"))
                .unwrap_err()
                .to_string();
            assert!(
                e.contains("other users may write") && e.contains("--socket"),
                "{e}"
            );
        }
        mode(dir.path(), 0o755);
        Socket::bind(dir.path().join("color.sock")).unwrap();
    }

    #[test]
    fn what_a_killed_server_left_is_replaced_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("color.sock");
        drop(UnixListener::bind(&path).unwrap());
        let first = Socket::bind(path.clone()).unwrap();
        // One that somebody put there since is not removed.
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "not a socket").unwrap();
        drop(first);
        assert!(path.exists());
        assert!(Socket::bind(path.clone()).is_err());
        assert_eq!(std::fs::read(&path).unwrap(), b"not a socket");
    }
}
