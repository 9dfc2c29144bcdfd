//! What releases the jobs of sporadic tasks: descriptors that become readable, and what is known of
//! each (002 §2.1.1).
//!
//! The period of such a task is the least time between two releases. What comes earlier waits until
//! that time has passed, and is counted. How many releases one descriptor asks for depends on what
//! it is:
//!
//! - a FIFO, a pipe, a stream of a socket: one for each byte;
//! - an `eventfd`, a `timerfd`: as many as its counter says;
//! - a socket of datagrams: one for each;
//! - anything else that can be waited for (lines of a GPIO chip, an input device, a `signalfd`):
//!   one for each successful `read`.
//!
//! The thread that listens ([`ear`]) tells the engine: the one in user space the [`releaser`] of
//! the task.

pub mod ear;
pub(crate) mod releaser;

pub use releaser::Triggered;

use crate::made::{self, Made};
use crate::watchdog::BoardRef;
use model::{Error, Result, TaskId, TaskSet, Trigger};
use rustix::fs::{FileType, OFlags};
use rustix::io::{Errno, FdFlags};
use rustix::net::{RecvFlags, SocketType, sockopt};
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};

/// How many releases a descriptor asks for when it is readable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Bytes,
    Counter,
    Datagrams,
    Reads,
}

/// A descriptor that releases jobs.
#[derive(Debug)]
pub(crate) struct Source {
    /// None for what is made for the run, before it is.
    fd: OnceLock<OwnedFd>,
    kind: Kind,
    /// Where it is made.
    path: Option<PathBuf>,
}

/// What came out of a descriptor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Came {
    /// So many releases are asked for; none where somebody else was faster.
    Events(u64),
    /// Nothing will come any more.
    End,
}

/// What releases the tasks of a set, by task. Clones share it. What is made for it goes with the
/// run.
#[derive(Clone, Debug, Default)]
pub struct Triggers(Arc<Vec<Option<Source>>>);

impl Triggers {
    /// Opens what the tasks of a set name and is there: inherited descriptors, FIFOs. Others are
    /// made by the run.
    ///
    /// # Errors
    /// A descriptor that is not open, or cannot be waited for; a path that cannot be used.
    pub fn open(set: &TaskSet) -> Result<Self> {
        // What a run has left that was killed is in nobody's way.
        made::take_away_leftovers();
        let of = |task: TaskId| {
            let trigger = set.details(task).and_then(|d| d.trigger.as_ref());
            let open = |t| Source::open(t).map_err(|e| e.at(format!("task {}", set.name(task))));
            trigger.map(open).transpose()
        };
        Ok(Triggers(Arc::new(
            set.ids().map(of).collect::<Result<_>>()?,
        )))
    }

    /// Makes FIFOs and sockets where there are none.
    ///
    /// # Errors
    /// They cannot be made, or have been for another run.
    pub(crate) fn make(&self, made: &Made, set: &TaskSet) -> Result<()> {
        for (task, source) in self.sources() {
            source
                .make(made)
                .map_err(|e| e.at(format!("task {}", set.name(task))))?;
        }
        Ok(())
    }

    /// By task.
    pub(crate) fn sources(&self) -> impl Iterator<Item = (TaskId, &Source)> {
        let with_number = self.0.iter().enumerate();
        with_number.filter_map(|(task, source)| Some((TaskId(task as u32), source.as_ref()?)))
    }

    /// Is there one for each task that asks for one?
    ///
    /// # Errors
    /// There is not.
    pub fn fit(&self, set: &TaskSet) -> Result<()> {
        let asks = |task: &TaskId| set.details(*task).is_some_and(|d| d.trigger.is_some());
        let has = |task: &TaskId| self.0.get(task.index()).is_some_and(Option::is_some);
        match set.ids().find(|task| asks(task) != has(task)) {
            None => Ok(()),
            Some(task) => Err(Error::new("what releases its jobs is not open")
                .at(format!("task {}", set.name(task)))
                .remedy("open the triggers of the set that is run")),
        }
    }

    /// Makes FIFOs and sockets where there are none, for an engine that has no watchdog. What is
    /// made goes when the value does; if this process is killed, the next run takes it away.
    /// Second: why that could not be noted, if so.
    ///
    /// # Errors
    /// They cannot be made, or have been for another run.
    pub fn make_without_watchdog(&self, set: &TaskSet) -> Result<(Kept, Option<Error>)> {
        if self.is_empty() {
            return Ok((Kept { _made: None }, None));
        }
        let board = BoardRef::alone();
        let board = board.map_err(|e| Error::new(format!("no memory can be had: {e}")))?;
        let (made, missing) = Made::new(board)?;
        self.make(&made, set)?;
        Ok((Kept { _made: Some(made) }, missing))
    }
}

/// What was made for a run; taken away when dropped.
pub struct Kept {
    _made: Option<Made>,
}

fn refuse(cause: impl Into<String>, remedy: &str) -> Error {
    Error::new(cause).at("`trigger`").remedy(remedy)
}

impl Source {
    fn open(trigger: &Trigger) -> Result<Self> {
        match trigger {
            Trigger::Fifo(path) => Self::fifo(Path::new(path)),
            Trigger::Socket(path) => {
                let there = match std::fs::symlink_metadata(path) {
                    Ok(_) => Err(io::Error::from_raw_os_error(libc::EADDRINUSE)),
                    Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(()),
                    Err(e) => Err(e),
                };
                // A path that nobody could connect to is refused as well.
                there
                    .and_then(|()| SocketAddr::from_pathname(path))
                    .map_err(|e| no_socket(Path::new(path), &e))?;
                Ok(Source {
                    fd: OnceLock::new(),
                    kind: Kind::Datagrams,
                    path: Some(path.into()),
                })
            }
            Trigger::Descriptor(number) => Self::inherited(*number),
        }
    }

    fn fifo(path: &Path) -> Result<Self> {
        let (fd, path) = match std::fs::symlink_metadata(path) {
            Ok(_) => (open_fifo(path)?.into(), None),
            Err(e) if e.kind() == io::ErrorKind::NotFound => {
                (OnceLock::new(), Some(path.to_path_buf()))
            }
            Err(e) => return Err(no_fifo(path, "find", &e)),
        };
        Ok(Source {
            fd,
            kind: Kind::Bytes,
            path,
        })
    }

    /// Makes it, if it is to be made.
    fn make(&self, made: &Made) -> Result<()> {
        let Some(path) = &self.path else {
            return Ok(());
        };
        let fd = match self.kind {
            Kind::Datagrams => {
                let socket = made.make(path, |path| UnixDatagram::bind(path));
                OwnedFd::from(socket.map_err(|e| no_socket(path, &e))?)
            }
            _ => {
                made.make(path, made::fifo)
                    .map_err(|e| no_fifo(path, "make", &e))?;
                open_fifo(path)?
            }
        };
        self.fd.set(fd).map_err(|_| {
            refuse(
                "it was made for another run",
                "open the triggers of each run anew",
            )
        })
    }

    /// One that whoever started this process has left open for it.
    fn inherited(number: RawFd) -> Result<Self> {
        let missing = || {
            refuse(
                format!("descriptor {number} was not passed to this program"),
                "open it for the run, such as `warmset run … 3<> /run/fifo`, or name a FIFO: `{ fifo = \"/run/fifo\" }`",
            )
        };
        if number < 0 {
            return Err(missing());
        }
        // SAFETY: the first call fails where nothing is open under this number; from then on it is
        // open, as whoever passed it has left it to this program, where nobody else closes it.
        let passed = unsafe { BorrowedFd::borrow_raw(number) };
        let flags = rustix::io::fcntl_getfd(passed).map_err(|_| missing())?;
        let mode = rustix::fs::fcntl_getfl(passed).map_err(|_| missing())?;
        // What this program has opened for itself.
        if flags.contains(FdFlags::CLOEXEC) {
            return Err(missing());
        }
        let no_trigger = |what: &str| {
            refuse(
                format!("descriptor {number} {what}"),
                "pass a FIFO, a pipe, a socket, an eventfd, a timerfd or a device that can be waited for",
            )
        };
        if mode & OFlags::RWMODE == OFlags::WRONLY {
            return Err(no_trigger("can only be written to"));
        }
        let kind = kind_of(passed).map_err(no_trigger)?;
        let fd = rustix::io::fcntl_dupfd_cloexec(passed, 3).map_err(|_| missing())?;
        // Programs of the run do not inherit the old one.
        rustix::io::fcntl_setfd(passed, FdFlags::CLOEXEC).map_err(|_| missing())?;
        Ok(Source {
            fd: fd.into(),
            kind,
            path: None,
        })
    }

    /// Its descriptor; none before it is made.
    pub fn descriptor(&self) -> Option<BorrowedFd<'_>> {
        self.fd.get().map(AsFd::as_fd)
    }

    /// Takes out what is there, once it is readable.
    ///
    /// # Errors
    /// It cannot be read.
    pub fn take(&self) -> io::Result<Came> {
        let fd = self.descriptor().ok_or(Errno::BADF)?;
        let mut buffer = [0u8; 4096];
        let mut count = [0u8; 8];
        let came = match self.kind {
            Kind::Datagrams => datagrams(fd, &mut buffer),
            Kind::Bytes => rustix::io::read(fd, &mut buffer).map(|got| got as u64),
            Kind::Counter => rustix::io::read(fd, &mut count).map(|_| u64::from_ne_bytes(count)),
            Kind::Reads => rustix::io::read(fd, &mut buffer).map(|got| u64::from(got > 0)),
        };
        match came {
            Ok(0) if self.kind != Kind::Datagrams => Ok(Came::End),
            Ok(events) => Ok(Came::Events(events)),
            Err(Errno::AGAIN | Errno::INTR | Errno::CANCELED) => Ok(Came::Events(0)),
            Err(e) => Err(e.into()),
        }
    }
}

/// As many as are there, up to a limit: the rest is for the next time.
fn datagrams(socket: BorrowedFd<'_>, buffer: &mut [u8]) -> rustix::io::Result<u64> {
    let mut count = 0;
    while count < 256 {
        match rustix::net::recv(socket, &mut *buffer, RecvFlags::DONTWAIT | RecvFlags::TRUNC) {
            Err(e) if count == 0 => return Err(e),
            Err(_) => break,
            Ok(_) => count += 1,
        }
    }
    Ok(count)
}

fn no_socket(path: &Path, e: &io::Error) -> Error {
    refuse(
        format!("cannot make the socket {}: {e}", path.display()),
        "give a path in a directory that is there, where no file is",
    )
}

fn no_fifo(path: &Path, doing: &str, e: &io::Error) -> Error {
    refuse(
        format!("cannot {doing} the FIFO {}: {e}", path.display()),
        "make it with mkfifo(1), readable and writable for this user",
    )
}

/// Opens a FIFO to read and to write: then it never ends, whoever comes and goes.
fn open_fifo(path: &Path) -> Result<OwnedFd> {
    use std::os::unix::fs::OpenOptionsExt;
    let mut options = File::options();
    options
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK);
    // Only a FIFO is opened: to open something else may do something.
    let kind = std::fs::metadata(path)
        .map_err(|e| no_fifo(path, "find", &e))?
        .file_type();
    if !kind.is_fifo() {
        return Err(refuse(
            format!("{} is no FIFO", path.display()),
            "name a FIFO, or a path where nothing is; other things are passed by number: `{ fd = 3 }`",
        ));
    }
    let file = options.open(path).map_err(|e| no_fifo(path, "open", &e))?;
    Ok(file.into())
}

/// What a descriptor is; inside, what it is where it releases nothing.
fn kind_of(fd: BorrowedFd<'_>) -> std::result::Result<Kind, &'static str> {
    let stat = rustix::fs::fstat(fd).map_err(|_| "is not open")?;
    match FileType::from_raw_mode(stat.st_mode) {
        FileType::Fifo => Ok(Kind::Bytes),
        FileType::Socket if sockopt::socket_acceptconn(fd).unwrap_or(false) => {
            Err("listens for connections: accept one first")
        }
        FileType::Socket if sockopt::socket_type(fd) == Ok(SocketType::STREAM) => Ok(Kind::Bytes),
        FileType::Socket => Ok(Kind::Datagrams),
        FileType::RegularFile => Err("is a plain file, which is always readable"),
        FileType::Directory => Err("is a directory"),
        FileType::BlockDevice => Err("is a block device, which is always readable"),
        _ => {
            let what =
                std::fs::read_link(format!("/proc/self/fd/{}", fd.as_raw_fd())).unwrap_or_default();
            match what.to_str() {
                Some("anon_inode:[eventfd]" | "anon_inode:[timerfd]") => Ok(Kind::Counter),
                _ => Ok(Kind::Reads),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Details, Duration, Timing};
    use rustix::event::{EventfdFlags, eventfd};
    use std::io::Write;
    use std::os::fd::IntoRawFd;

    const fn ms(ms: u64) -> Duration {
        Duration::from_millis(ms)
    }

    /// A descriptor as a child inherits it.
    fn passed(fd: impl Into<OwnedFd>) -> Trigger {
        let fd: OwnedFd = fd.into();
        rustix::io::fcntl_setfd(&fd, FdFlags::empty()).unwrap();
        Trigger::Descriptor(fd.into_raw_fd())
    }

    #[test]
    fn what_is_readable_says_how_many_releases_it_asks_for() {
        let (reader, mut writer) = io::pipe().unwrap();
        let source = Source::open(&passed(OwnedFd::from(reader))).unwrap();
        writer.write_all(b"abc").unwrap();
        assert_eq!(source.take().unwrap(), Came::Events(3));
        drop(writer);
        assert_eq!(source.take().unwrap(), Came::End);

        let counter = File::from(eventfd(0, EventfdFlags::empty()).unwrap());
        let mut copy = counter.try_clone().unwrap();
        let source = Source::open(&passed(OwnedFd::from(counter))).unwrap();
        copy.write_all(&5u64.to_ne_bytes()).unwrap();
        assert_eq!(source.take().unwrap(), Came::Events(5));

        let (a, b) = UnixDatagram::pair().unwrap();
        let source = Source::open(&passed(OwnedFd::from(a))).unwrap();
        assert_eq!(source.take().unwrap(), Came::Events(0));
        b.send(b"one").unwrap();
        b.send(b"").unwrap();
        assert_eq!(source.take().unwrap(), Came::Events(2));

        let (a, mut b) = std::os::unix::net::UnixStream::pair().unwrap();
        let source = Source::open(&passed(OwnedFd::from(a))).unwrap();
        b.write_all(b"two").unwrap();
        assert_eq!(source.take().unwrap(), Came::Events(3));
    }

    #[test]
    fn fifos_and_sockets_are_made_and_taken_away_again() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
        let (made, _) = Made::new(BoardRef::alone().unwrap()).unwrap();
        let fifo = Source::open(&Trigger::Fifo(path("fifo"))).unwrap();
        // Nothing is made before there is somebody who takes it away.
        assert!(!Path::new(&path("fifo")).exists());
        fifo.make(&made).unwrap();
        std::fs::write(path("fifo"), "12").unwrap();
        assert_eq!(fifo.take().unwrap(), Came::Events(2));
        assert_eq!(fifo.take().unwrap(), Came::Events(0));
        assert!(fifo.make(&made).is_err(), "for another run");
        let socket = Source::open(&Trigger::Socket(path("socket"))).unwrap();
        socket.make(&made).unwrap();
        UnixDatagram::unbound()
            .unwrap()
            .send_to(b"now", path("socket"))
            .unwrap();
        assert_eq!(socket.take().unwrap(), Came::Events(1));
        let e = Source::open(&Trigger::Socket(path("socket"))).unwrap_err();
        assert!(e.to_string().contains("Address already in use"), "{e}");
        // It is there already: it stays.
        std::fs::rename(path("fifo"), path("other")).unwrap();
        let other = Source::open(&Trigger::Fifo(path("other"))).unwrap();
        other.make(&made).unwrap();
        drop(made);
        let there = ["fifo", "socket", "other"].map(|name| Path::new(&path(name)).exists());
        assert_eq!(there, [false, false, true]);
    }

    #[test]
    fn what_cannot_release_jobs_is_refused() {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("file");
        std::fs::write(&file, "x").unwrap();
        let plain = Trigger::Fifo(file.to_str().unwrap().to_owned());
        let (_reader, writer) = io::pipe().unwrap();
        let listener = std::os::unix::net::UnixListener::bind(dir.path().join("s")).unwrap();
        for (trigger, cause) in [
            (
                Trigger::Descriptor(987),
                "descriptor 987 was not passed to this program",
            ),
            // This program's own.
            (
                Trigger::Descriptor(listener.as_raw_fd()),
                "was not passed to this program",
            ),
            (
                passed(OwnedFd::from(File::open(&file).unwrap())),
                "is a plain file",
            ),
            (passed(OwnedFd::from(writer)), "can only be written to"),
            (
                passed(OwnedFd::from(listener.try_clone().unwrap())),
                "listens for connections",
            ),
            (plain, "is no FIFO"),
        ] {
            let details = Details {
                trigger: Some(trigger),
                ..Details::named("a")
            };
            let set = TaskSet::new(vec![(Timing::implicit(ms(1), ms(10)), details)]).unwrap();
            let e = Triggers::open(&set).unwrap_err().to_string();
            assert!(e.starts_with("task a: `trigger`: "), "{e}");
            assert!(e.contains(cause), "{e}");
            assert!(Triggers::default().fit(&set).is_err());
        }
        let nowhere = Trigger::Fifo(dir.path().join("no/fifo").to_str().unwrap().to_owned());
        let (made, _) = Made::new(BoardRef::alone().unwrap()).unwrap();
        let e = Source::open(&nowhere)
            .unwrap()
            .make(&made)
            .unwrap_err()
            .to_string();
        assert!(e.contains("cannot make the FIFO"), "{e}");
    }
}
