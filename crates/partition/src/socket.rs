//! Lines and open files over a Unix socket, and who is at its other end (unix(7), cmsg(3)).

use crate::ledger::Peer;
use crate::process::Process;
use crate::protocol::{MAX_LINE, TILES_AT_ONCE, too_long, too_many_files, unfinished};
use model::{Error, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Bytes of ancillary data for the most files of a line.
// SAFETY: a computation from a plain number.
const ANCILLARY: usize = unsafe { libc::CMSG_SPACE((TILES_AT_ONCE * size_of::<RawFd>()) as u32) } as usize;

/// Ancillary data, aligned as its head must be.
#[repr(C, align(8))]
struct Ancillary([u8; ANCILLARY]);

/// The other end of a stream: as it was when the connection was made, which nobody can forge.
///
/// # Errors
/// The kernel does not say.
pub fn peer(stream: &UnixStream) -> Result<Peer> {
    let credentials = credentials(stream)?;
    let pid = credentials.pid.unsigned_abs();
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

fn credentials(stream: &UnixStream) -> Result<libc::ucred> {
    // SAFETY: three numbers, for which all zero is valid; the kernel fills in as many bytes.
    unsafe { option::<libc::ucred>(stream, libc::SO_PEERCRED) }
        .map_err(|e| Error::new(format!("the kernel does not say who connected: {e}")))
}

/// The process that made the connection; `None` where it has ended.
fn process_of(stream: &UnixStream, pid: u32) -> Option<Process> {
    // SAFETY: a number; the kernel fills in as many bytes.
    match unsafe { option::<RawFd>(stream, libc::SO_PEERPIDFD) } {
        // SAFETY: the descriptor was made just now and belongs to nobody else.
        Ok(fd) => Process::known_by(unsafe { OwnedFd::from_raw_fd(fd) }, pid),
        // A kernel before 6.5: the process that has the number now. It may be another one than that
        // which connected only if that one has ended before the server looked.
        Err(e) if e.raw_os_error() == Some(libc::ENOPROTOOPT) => Process::open(pid),
        Err(_) => None,
    }
}

/// An option of a socket.
///
/// # Safety
/// All zero and all that the kernel gives for this option are valid values of `T`.
unsafe fn option<T>(stream: &UnixStream, name: libc::c_int) -> std::io::Result<T> {
    // SAFETY: as the caller says.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: both live through the call, and the size is that of the first.
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &mut size,
        )
    };
    match answer {
        0 => Ok(value),
        _ => Err(IoError::last_os_error()),
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
    let fds: Vec<RawFd> = files.iter().map(AsRawFd::as_raw_fd).collect();
    let mut ancillary = Ancillary([0; ANCILLARY]);
    let mut part = libc::iovec {
        iov_base: bytes.as_ptr().cast_mut().cast(),
        iov_len: bytes.len(),
    };
    // SAFETY: all zero is a valid empty message.
    let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
    message.msg_iov = &mut part;
    message.msg_iovlen = 1;
    if !fds.is_empty() {
        let length = size_of_val(&fds[..]);
        message.msg_control = (&raw mut ancillary).cast();
        // SAFETY: a computation; the space for the most files is there.
        message.msg_controllen = unsafe { libc::CMSG_SPACE(length as u32) } as _;
        // SAFETY: the head lies within `ancillary`, and the files fit behind it.
        unsafe {
            let head = libc::CMSG_FIRSTHDR(&raw const message);
            (*head).cmsg_level = libc::SOL_SOCKET;
            (*head).cmsg_type = libc::SCM_RIGHTS;
            (*head).cmsg_len = libc::CMSG_LEN(length as u32) as _;
            std::ptr::copy_nonoverlapping(fds.as_ptr().cast::<u8>(), libc::CMSG_DATA(head), length);
        }
    }
    loop {
        // SAFETY: the message and all that it points to live through the call.
        let sent = unsafe { libc::sendmsg(stream.as_raw_fd(), &raw const message, libc::MSG_NOSIGNAL) };
        match usize::try_from(sent) {
            Ok(sent) => return Ok(sent),
            Err(_) => {
                let e = IoError::last_os_error();
                if e.kind() != ErrorKind::Interrupted {
                    return Err(e);
                }
            }
        }
    }
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
        let mut ancillary = Ancillary([0; ANCILLARY]);
        let mut part = libc::iovec {
            iov_base: bytes.as_mut_ptr().cast(),
            iov_len: bytes.len(),
        };
        // SAFETY: all zero is a valid empty message.
        let mut message: libc::msghdr = unsafe { std::mem::zeroed() };
        message.msg_iov = &mut part;
        message.msg_iovlen = 1;
        // Not its aligned size, in which two descriptors would have room where one is allowed.
        let room = self.most.saturating_sub(self.files.len());
        if room > 0 {
            message.msg_control = (&raw mut ancillary).cast();
            // SAFETY: a computation from a plain number.
            message.msg_controllen = unsafe { libc::CMSG_LEN((room * size_of::<RawFd>()) as u32) } as _;
        }
        // SAFETY: the message and all that it points to live through the call.
        let received =
            unsafe { libc::recvmsg(self.stream.as_raw_fd(), &mut message, libc::MSG_CMSG_CLOEXEC) };
        let Ok(received) = usize::try_from(received) else {
            let e = IoError::last_os_error();
            return match e.kind() {
                ErrorKind::Interrupted => self.receive(),
                _ => Err(e),
            };
        };
        // SAFETY: the kernel filled in heads that lie within `ancillary`; each descriptor becomes ours once.
        unsafe {
            let mut head = libc::CMSG_FIRSTHDR(&raw const message);
            while !head.is_null() {
                if (*head).cmsg_level == libc::SOL_SOCKET && (*head).cmsg_type == libc::SCM_RIGHTS {
                    let length = (*head).cmsg_len as usize - libc::CMSG_LEN(0) as usize;
                    for place in 0..length / size_of::<RawFd>() {
                        let fd = libc::CMSG_DATA(head).cast::<RawFd>().add(place).read_unaligned();
                        self.files.push_back(OwnedFd::from_raw_fd(fd));
                    }
                }
                head = libc::CMSG_NXTHDR(&raw const message, head);
            }
        }
        // A client that may open no more files finds out by their number, and says more about it.
        if message.msg_flags & libc::MSG_CTRUNC != 0 && self.most < TILES_AT_ONCE {
            return Err(IoError::new(ErrorKind::InvalidData, too_many_files(self.most)));
        }
        self.bytes.extend(&bytes[..received]);
        Ok(received)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        // SAFETY: the child connects by a plain call on memory that was prepared, and ends.
        let child = unsafe {
            let socket = libc::socket(libc::AF_UNIX, libc::SOCK_STREAM, 0);
            let mut address: libc::sockaddr_un = std::mem::zeroed();
            address.sun_family = libc::AF_UNIX as libc::sa_family_t;
            for (to, from) in address.sun_path.iter_mut().zip(path.to_str().unwrap().bytes()) {
                *to = from as libc::c_char;
            }
            let size = size_of_val(&address) as libc::socklen_t;
            let child = libc::fork();
            if child == 0 {
                libc::_exit(libc::connect(socket, (&raw const address).cast(), size));
            }
            // This process keeps the connection open, as a child that inherited it would.
            child
        };
        let mut status = -1;
        // SAFETY: reaps the child made above.
        unsafe { libc::waitpid(child, &mut status, 0) };
        assert_eq!(status, 0);
        let (stream, _) = listener.accept().unwrap();
        let peer = peer(&stream).unwrap();
        assert_eq!((peer.pid, peer.began), (child.unsigned_abs(), 0));
    }
}
