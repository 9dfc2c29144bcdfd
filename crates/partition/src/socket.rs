//! Lines and open files over a Unix socket, and who is at its other end (unix(7), cmsg(3)).

use crate::ledger::Peer;
use crate::process::Process;
use crate::protocol::{MAX_LINE, TILES_AT_ONCE, too_long, too_many_files, unfinished};
use model::{Error, Result};
use rustix::io::retry_on_intr;
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, recvmsg, sendmsg,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};
use sys::socket::Credentials;

/// The head of ancillary data, up to the first file (`CMSG_LEN(0)`).
const HEAD: usize = size_of::<libc::cmsghdr>().next_multiple_of(size_of::<usize>());
/// Bytes of ancillary data for the most files of a line.
const ANCILLARY: usize = HEAD + TILES_AT_ONCE * size_of::<RawFd>();

/// Ancillary data, aligned as its head must be: then none of its bytes are skipped.
#[repr(C, align(8))]
struct Ancillary([MaybeUninit<u8>; ANCILLARY]);

/// The other end of a stream: as it was when the connection was made, which nobody can forge.
///
/// # Errors
/// The kernel does not say.
pub fn peer(stream: &UnixStream) -> Result<Peer> {
    let credentials = credentials(stream)?;
    let pid = credentials.pid;
    Ok(Peer {
        pid,
        uid: credentials.uid,
        began: process_of(stream, pid).map_or(0, |process| process.began()),
    })
}

/// The user who made the connection.
///
/// # Errors
/// The kernel does not say.
pub(crate) fn user(stream: &UnixStream) -> Result<u32> {
    credentials(stream).map(|credentials| credentials.uid)
}

fn credentials(stream: &UnixStream) -> Result<Credentials> {
    sys::socket::credentials(stream)
        .map_err(|e| Error::new(format!("the kernel does not say who connected: {e}")))
}

/// The process that made the connection; `None` where it has ended.
fn process_of(stream: &UnixStream, pid: u32) -> Option<Process> {
    match sys::socket::process(stream) {
        Ok(fd) => Process::known_by(fd, pid),
        // A kernel before 6.5: the process that has the number now. It may be another one than that
        // which connected only if that one has ended before the server looked.
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => Process::open(pid),
        Err(_) => None,
    }
}

/// Sends a line with its files, at most [`TILES_AT_ONCE`]; all of it.
///
/// # Errors
/// The other end is gone or does not read.
pub fn send(stream: &UnixStream, line: &[u8], files: &[File]) -> std::io::Result<()> {
    if files.len() > TILES_AT_ONCE {
        return Err(IoError::from(ErrorKind::InvalidInput));
    }
    let mut sent = 0;
    while sent < line.len() {
        // The files go with the first byte.
        let files = if sent == 0 { files } else { &[] };
        sent += send_some(stream, &line[sent..], files)?;
    }
    Ok(())
}

fn send_some(stream: &UnixStream, bytes: &[u8], files: &[File]) -> std::io::Result<usize> {
    let fds: Vec<BorrowedFd<'_>> = files.iter().map(AsFd::as_fd).collect();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(TILES_AT_ONCE))];
    let mut ancillary = SendAncillaryBuffer::new(&mut space);
    // There is space for the most files.
    if !fds.is_empty() && !ancillary.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(IoError::from(ErrorKind::InvalidInput));
    }
    let parts = [IoSlice::new(bytes)];
    let sent = retry_on_intr(|| sendmsg(stream, &parts, &mut ancillary, SendFlags::NOSIGNAL));
    Ok(sent?)
}

/// Receives lines, and the files that come with them.
#[derive(Debug)]
pub struct Lines {
    stream: Arc<UnixStream>,
    bytes: VecDeque<u8>,
    files: VecDeque<OwnedFd>,
    /// The most files that are kept until they are asked for.
    most: usize,
    /// How long a line may take that has begun, and when it did.
    patience: Option<Duration>,
    begun: Option<Instant>,
}

impl Lines {
    /// From this stream, each line with at most [`TILES_AT_ONCE`] files.
    pub fn new(stream: UnixStream) -> Self {
        Self::with_at_most(TILES_AT_ONCE, Arc::new(stream))
    }

    /// From this stream, each line with at most so many files: the kernel closes what is too much,
    /// and the line is refused.
    pub(crate) fn with_at_most(most: usize, stream: Arc<UnixStream>) -> Self {
        Lines {
            stream,
            bytes: VecDeque::new(),
            files: VecDeque::new(),
            most: most.min(TILES_AT_ONCE),
            patience: None,
            begun: None,
        }
    }

    /// A line that has begun must end within this time, however its bytes come.
    pub(crate) fn within(mut self, patience: Duration) -> Self {
        self.patience = Some(patience);
        self
    }

    /// The stream.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Has a line begun, or a file come, and the line has not ended?
    pub(crate) fn has_begun(&self) -> bool {
        !self.bytes.is_empty() || !self.files.is_empty()
    }

    /// The files received so far, in order; they are the caller's now.
    pub fn files(&mut self) -> Vec<OwnedFd> {
        self.files.drain(..).collect()
    }

    /// The next line without its end; `None` at the end of the stream.
    ///
    /// # Errors
    /// A line that is longer than [`MAX_LINE`], has too many files or takes too long (of kind
    /// `InvalidData`); a timeout of the stream (`WouldBlock`), after which it can be called again;
    /// the other end is gone.
    pub fn next_line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.bytes.iter().position(|b| *b == b'\n') {
                let line = self.bytes.drain(..end).collect();
                self.bytes.pop_front();
                self.begun = None;
                return Ok(Some(line));
            }
            let begun = self.has_begun().then(Instant::now);
            self.begun = self.begun.or(begun);
            if let (Some(begun), Some(patience)) = (self.begun, self.patience)
                && begun.elapsed() > patience
            {
                return Err(IoError::new(ErrorKind::InvalidData, unfinished(patience)));
            }
            if self.bytes.len() > MAX_LINE {
                return Err(IoError::new(ErrorKind::InvalidData, too_long()));
            }
            if self.receive()? == 0 {
                return Ok(None);
            }
        }
    }

    fn receive(&mut self) -> std::io::Result<usize> {
        let mut bytes = [0_u8; 8192];
        // Not its aligned size, in which two descriptors would have room where one is allowed.
        let room = self.most.saturating_sub(self.files.len());
        let space = match room {
            0 => 0,
            room => HEAD + room * size_of::<RawFd>(),
        };
        let mut ancillary = Ancillary([MaybeUninit::uninit(); ANCILLARY]);
        let mut ancillary = RecvAncillaryBuffer::new(&mut ancillary.0[..space]);
        let received = retry_on_intr(|| {
            let mut parts = [IoSliceMut::new(&mut bytes)];
            recvmsg(
                &*self.stream,
                &mut parts,
                &mut ancillary,
                RecvFlags::CMSG_CLOEXEC,
            )
        })?;
        for message in ancillary.drain() {
            if let RecvAncillaryMessage::ScmRights(files) = message {
                self.files.extend(files);
            }
        }
        // A client that may open no more files finds out by their number, and says more about it.
        if received.flags.contains(ReturnFlags::CTRUNC) && self.most < TILES_AT_ONCE {
            return Err(IoError::new(
                ErrorKind::InvalidData,
                too_many_files(self.most),
            ));
        }
        self.bytes.extend(&bytes[..received.bytes]);
        Ok(received.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType};

    #[test]
    fn a_line_arrives_with_its_files() {
        let (a, b) = UnixStream::pair().unwrap();
        let files: Vec<File> = (0..3).map(|_| File::open("/dev/null").unwrap()).collect();
        send(&a, b"one\ntwo\n", &files).unwrap();
        let mut lines = Lines::new(b);
        assert_eq!(lines.next_line().unwrap().unwrap(), b"one");
        assert_eq!(lines.files().len(), 3);
        assert_eq!(lines.next_line().unwrap().unwrap(), b"two");
        drop(a);
        assert_eq!(lines.next_line().unwrap(), None);
    }

    #[test]
    fn a_line_without_end_is_refused() {
        let (a, b) = UnixStream::pair().unwrap();
        let writer = std::thread::spawn(move || {
            // The other end hangs up in the middle.
            let _ = send(&a, &vec![b'x'; 4 * MAX_LINE], &[]);
        });
        let e = Lines::new(b).next_line().unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidData);
        writer.join().unwrap();
    }

    /// Without an end of the line, files would gather until none can be opened.
    #[test]
    fn files_beyond_the_limit_of_a_line_are_never_opened() {
        let file = || File::open("/dev/null").unwrap();
        for parts in [vec![2], vec![1, 1], vec![0, 64], vec![1, 64, 64]] {
            let (a, b) = UnixStream::pair().unwrap();
            let mut lines = Lines::with_at_most(1, Arc::new(b));
            for files in &parts {
                let files: Vec<File> = (0..*files).map(|_| file()).collect();
                send(&a, b"x", &files).unwrap();
            }
            drop(a);
            let e = lines.next_line().unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidData, "{parts:?}");
            assert!(lines.files.len() <= 1, "{parts:?}");
        }
        // One a line, line after line.
        let (a, b) = UnixStream::pair().unwrap();
        let mut lines = Lines::with_at_most(1, Arc::new(b));
        for _ in 0..3 {
            send(&a, b"x\n", &[file()]).unwrap();
            assert_eq!(lines.next_line().unwrap().unwrap(), b"x");
            assert_eq!(lines.files().len(), 1);
        }
    }

    #[test]
    fn a_line_that_comes_byte_by_byte_is_not_waited_for() {
        let (a, b) = UnixStream::pair().unwrap();
        // Who would wait for the rest all the same is told that nothing came.
        b.set_read_timeout(Some(Duration::from_millis(200)))
            .unwrap();
        let mut lines = Lines::with_at_most(1, Arc::new(b)).within(Duration::ZERO);
        send(&a, b"whole\nx", &[]).unwrap();
        assert_eq!(lines.next_line().unwrap().unwrap(), b"whole");
        send(&a, b"y", &[]).unwrap();
        let e = lines.next_line().unwrap_err();
        assert!(e.to_string().contains("not ended"), "{e}");
    }

    #[test]
    fn the_other_end_is_this_process() {
        let (a, _b) = UnixStream::pair().unwrap();
        let peer = peer(&a).unwrap();
        assert_eq!(peer.pid, std::process::id());
        assert_eq!(peer.began, Process::open(peer.pid).unwrap().began());
    }

    /// A child that inherited the connection of a process that ended has not become that process.
    #[test]
    fn a_process_that_has_ended_is_not_who_has_its_number() {
        let (a, b) = UnixStream::pair().unwrap();
        drop(b);
        drop(a);
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("socket");
        let listener = std::os::unix::net::UnixListener::bind(&path).unwrap();
        // This process keeps the connection open, as a child that inherited it would.
        let flags = rustix::net::SocketFlags::CLOEXEC;
        let socket =
            rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).unwrap();
        let address = SocketAddrUnix::new(&path).unwrap();
        // SAFETY: the child connects by a system call on memory that was prepared, and ends.
        let child = match unsafe { sys::process::fork() }.unwrap() {
            None => sys::process::exit(rustix::net::connect(&socket, &address).is_err().into()),
            Some(child) => child,
        };
        let pid = rustix::process::Pid::from_raw(child);
        let (_, status) = rustix::process::waitpid(pid, rustix::process::WaitOptions::empty())
            .unwrap()
            .unwrap();
        assert_eq!(status.exit_status(), Some(0));
        let (stream, _) = listener.accept().unwrap();
        let peer = peer(&stream).unwrap();
        assert_eq!((peer.pid, peer.began), (child.unsigned_abs(), 0));
    }
}
