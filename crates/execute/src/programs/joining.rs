//! Where programs come in that somebody else has started: a socket in the file system.
//!
//! Whoever comes in gets real-time priority from the run. So the socket is for its owner alone,
//! whatever the umask is, and the kernel says which user a caller belongs to. Nothing here waits: a
//! caller that says nothing delays nobody.

use crate::made::{self, Made};
use machine::user::User;
use model::{Error, Result};
use rustix::fs::{AtFlags, CWD, Mode};
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::io::{self, ErrorKind, Read};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

/// How long a caller may take to say which task it is.
const PATIENCE: Duration = Duration::from_secs(1);
/// The most callers that are listened to at once; others wait in the kernel's queue.
const MOST: usize = 64;
/// More than the name of any task has.
const LINE: usize = 4096;

/// Where programs come in that somebody else has started: a socket, gone when this is, or with the
/// run that has made it.
#[derive(Debug)]
pub struct JoinSocket {
    /// None before the run has made it.
    listener: OnceLock<UnixListener>,
    path: PathBuf,
    /// Who owns the socket, if not this process's user.
    owner: Option<User>,
    /// Is it taken away with this, and not by the run?
    goes_with_this: bool,
}

impl JoinSocket {
    /// Opens it at a path where nothing is, for programs of this process's user and of root, before
    /// there is a run that takes it away if this process is killed.
    ///
    /// # Errors
    /// Something is there, or nothing can be.
    pub fn open(path: impl Into<PathBuf>) -> Result<Self> {
        Self::open_for(path, None)
    }

    /// As [`JoinSocket::open`], for programs of this user as well; the socket belongs to that user
    /// then.
    ///
    /// # Errors
    /// As [`JoinSocket::open`]; no right to give the socket away.
    pub fn open_for(path: impl Into<PathBuf>, user: Option<&User>) -> Result<Self> {
        let mut socket = Self::at(path, user)?;
        let listener = socket
            .bind(&socket.path)
            .map_err(|e| socket.cannot_listen(&e))?;
        socket.goes_with_this = true;
        socket.keep(listener);
        Ok(socket)
    }

    /// One that its run opens, at a path where nothing is.
    ///
    /// # Errors
    /// Something is there, or nothing can be.
    pub fn at(path: impl Into<PathBuf>, user: Option<&User>) -> Result<Self> {
        // What a run has left that was killed is in nobody's way.
        made::take_away_leftovers();
        let socket = JoinSocket {
            listener: OnceLock::new(),
            path: path.into(),
            owner: user.cloned(),
            goes_with_this: false,
        };
        let there = match std::fs::symlink_metadata(&socket.path) {
            Ok(_) => Err(io::Error::from(ErrorKind::AddrInUse)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
            Err(e) => Err(e),
        };
        // A path that nobody could connect to is refused as well.
        let can_be = there.and_then(|()| Ok(SocketAddrUnix::new(&socket.path)?));
        match can_be {
            Ok(_) => Ok(socket),
            Err(e) => Err(socket.cannot_listen(&e)),
        }
    }

    /// Listens at a path.
    fn bind(&self, path: &Path) -> io::Result<UnixListener> {
        let address = SocketAddrUnix::new(path)?;
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
        // The file that `bind` makes has this mode: at no moment has it another one.
        rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
        rustix::net::bind(&socket, &address)?;
        let rest = self
            .give_away(path)
            .and_then(|()| Ok(rustix::net::listen(&socket, 128)?));
        if rest.is_err() {
            // It may be gone already.
            let _ = std::fs::remove_file(path);
        }
        rest.map(|()| UnixListener::from(socket))
    }

    fn give_away(&self, path: &Path) -> io::Result<()> {
        let Some(user) = &self.owner else {
            return Ok(());
        };
        let owner = Some(rustix::fs::Uid::from_raw(user.uid));
        rustix::fs::chownat(CWD, path, owner, None, AtFlags::SYMLINK_NOFOLLOW).map_err(|e| {
            io::Error::other(format!("the socket cannot be given to {}: {e}", user.name))
        })
    }

    fn keep(&self, listener: UnixListener) {
        // Nobody else opens it: a run has one thread that does.
        let _ = self.listener.set(listener);
    }

    /// Opens it if it is not open; the run takes it away from now on.
    ///
    /// # Errors
    /// Something is there, or nothing can be.
    pub(crate) fn make(&self, made: &Made) -> Result<()> {
        if self.listener.get().is_some() {
            return made
                .has_made(&self.path)
                .map_err(|e| self.cannot_listen(&e));
        }
        let listener = made
            .make(&self.path, |path| self.bind(path))
            .map_err(|e| self.cannot_listen(&e))?;
        self.keep(listener);
        Ok(())
    }

    fn cannot_listen(&self, e: &io::Error) -> Error {
        Error::new(format!("cannot listen: {e}"))
            .at(self.path.display())
            .remedy("give a path in a directory that is there, where no file is")
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The process at the other end, if its user may come in and this process can see it.
    fn admits(&self, stream: &UnixStream) -> Option<i32> {
        let peer = sys::socket::credentials(stream).ok()?;
        // A process of another namespace has the number 0, which means "this thread" to most calls.
        let is_other = peer.pid > 0 && peer.pid != std::process::id();
        let user = rustix::process::geteuid().as_raw();
        let may = [
            Some(0),
            Some(user),
            self.owner.as_ref().map(|owner| owner.uid),
        ];
        (is_other && may.contains(&Some(peer.uid))).then_some(peer.pid as i32)
    }
}

impl Drop for JoinSocket {
    fn drop(&mut self) {
        if self.goes_with_this {
            // It may be gone already.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// A program that has said which task it is.
#[derive(Debug)]
pub(crate) struct Caller {
    /// The task that it names.
    pub name: String,
    /// Its process.
    pub process: i32,
    pub stream: UnixStream,
}

#[derive(Debug)]
struct Silent {
    stream: UnixStream,
    process: i32,
    said: Vec<u8>,
    since: Instant,
}

/// Programs that have connected to a socket and have not yet said which task they are.
#[derive(Debug, Default)]
pub(crate) struct Callers(Vec<Silent>);

impl Callers {
    /// Takes in every program that has connected, and returns those who have said their names. Does
    /// not wait. Whoever may not come in, or takes too long, sees its connection closed.
    ///
    /// # Errors
    /// Connections cannot be accepted.
    pub fn listen(&mut self, socket: &JoinSocket) -> Result<Vec<Caller>> {
        let Some(listener) = socket.listener.get() else {
            return Ok(Vec::new());
        };
        while self.0.len() < MOST {
            match listener.accept() {
                Ok((stream, _)) => {
                    let Some(process) = socket.admits(&stream) else {
                        continue;
                    };
                    stream
                        .set_nonblocking(true)
                        .map_err(|e| refused(&e, socket))?;
                    self.0.push(Silent {
                        stream,
                        process,
                        said: Vec::new(),
                        since: Instant::now(),
                    });
                }
                Err(e) if e.kind() == ErrorKind::WouldBlock => break,
                Err(e)
                    if matches!(
                        e.kind(),
                        ErrorKind::Interrupted | ErrorKind::ConnectionAborted
                    ) => {}
                Err(e) => return Err(refused(&e, socket)),
            }
        }
        let mut heard = Vec::new();
        for mut caller in std::mem::take(&mut self.0) {
            match caller.hear() {
                Said::Name(name) => heard.push(Caller {
                    name,
                    process: caller.process,
                    stream: caller.stream,
                }),
                Said::Nothing if caller.since.elapsed() < PATIENCE => self.0.push(caller),
                Said::Nothing | Said::Nonsense => {}
            }
        }
        Ok(heard)
    }
}

fn refused(e: &io::Error, socket: &JoinSocket) -> Error {
    Error::new(format!("cannot let a program in: {e}"))
        .at(socket.path.display())
        .remedy("see `ulimit -n` where too many files are open")
}

enum Said {
    Name(String),
    Nothing,
    Nonsense,
}

impl Silent {
    /// Reads what there is, up to the end of a line.
    fn hear(&mut self) -> Said {
        let mut byte = [0u8];
        while self.said.len() < LINE {
            match self.stream.read(&mut byte) {
                Ok(1) if byte[0] == b'\n' => {
                    let name = String::from_utf8(std::mem::take(&mut self.said));
                    return name.map_or(Said::Nonsense, Said::Name);
                }
                Ok(1) => self.said.push(byte[0]),
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Said::Nothing,
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                _ => return Said::Nonsense,
            }
        }
        Said::Nonsense
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn the_socket_is_for_its_owner_alone_and_gone_with_its_door() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("door");
        let door = JoinSocket::open(&path).unwrap();
        let there = std::fs::metadata(&path).unwrap();
        assert_eq!(there.permissions().mode() & 0o777, 0o600);
        assert_eq!(there.uid(), rustix::process::geteuid().as_raw());
        let e = JoinSocket::open(&path).unwrap_err().to_string();
        assert!(e.contains("cannot listen") && e.contains("door"), "{e}");
        drop(door);
        assert!(!path.exists());
    }

    /// This process itself is never let in: it would be raised and stopped as a task.
    #[test]
    fn this_process_is_not_let_in() {
        let dir = tempfile::tempdir().unwrap();
        let door = JoinSocket::open(dir.path().join("door")).unwrap();
        let mut stream = UnixStream::connect(door.path()).unwrap();
        stream.write_all(b"T1\n").unwrap();
        let mut callers = Callers::default();
        assert!(callers.listen(&door).unwrap().is_empty());
        assert!(callers.0.is_empty());
    }

    /// Whoever says nothing, or only a part of a name, does not keep the next one from being heard.
    #[test]
    fn nobody_waits_for_a_caller_that_is_silent() {
        let dir = tempfile::tempdir().unwrap();
        let door = JoinSocket::open(dir.path().join("door")).unwrap();
        let mut callers = Callers::default();
        let caller = || {
            let (ours, theirs) = UnixStream::pair().unwrap();
            ours.set_nonblocking(true).unwrap();
            let silent = Silent {
                stream: ours,
                process: 1,
                said: Vec::new(),
                since: Instant::now() + Duration::from_secs(600),
            };
            (silent, theirs)
        };
        let ((one, mut slow), (two, mut quick)) = (caller(), caller());
        callers.0.extend([one, two]);
        slow.write_all(b"sl").unwrap();
        quick.write_all(b"quick\n").unwrap();
        let names = |heard: Vec<Caller>| heard.into_iter().map(|c| c.name).collect::<Vec<_>>();
        assert_eq!(names(callers.listen(&door).unwrap()), ["quick"]);
        slow.write_all(b"ow\n").unwrap();
        assert_eq!(names(callers.listen(&door).unwrap()), ["slow"]);
        // No end of a line, and no end of it.
        let (one, mut endless) = caller();
        callers.0.push(one);
        endless.write_all(&[b'x'; LINE]).unwrap();
        assert!(callers.listen(&door).unwrap().is_empty() && callers.0.is_empty());
    }
}
