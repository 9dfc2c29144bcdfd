//! Lines and open files over a Unix socket, and who is at its other end (unix(7), cmsg(3)).

use crate::ledger::Peer;
use crate::protocol::{MAX_LINE, TILES_AT_ONCE, too_long};
use model::{Error, Result};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

/// Bytes of ancillary data for the most files of a line.
// SAFETY: a computation from a plain number.
const ANCILLARY: usize = unsafe { libc::CMSG_SPACE((TILES_AT_ONCE * size_of::<RawFd>()) as u32) } as usize;

/// Ancillary data, aligned as its head must be.
#[repr(C, align(8))]
struct Ancillary([u8; ANCILLARY]);

/// Who is at the other end: as it was when the connection was made, which nobody can forge.
///
/// # Errors
/// The kernel does not say.
pub fn peer(stream: &UnixStream) -> Result<Peer> {
    let mut credentials = libc::ucred {
        pid: 0,
        uid: 0,
        gid: 0,
    };
    let mut size = size_of::<libc::ucred>() as libc::socklen_t;
    // SAFETY: both live through the call, and the size is that of the first.
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut credentials).cast(),
            &mut size,
        )
    };
    if answer != 0 {
        return Err(Error::new(format!(
            "the kernel does not say who connected: {}",
            IoError::last_os_error()
        )));
    }
    Ok(Peer {
        pid: credentials.pid.unsigned_abs(),
        uid: credentials.uid,
    })
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
    stream: UnixStream,
    bytes: VecDeque<u8>,
    files: VecDeque<OwnedFd>,
}

impl Lines {
    /// From this stream.
    pub fn new(stream: UnixStream) -> Self {
        Lines {
            stream,
            bytes: VecDeque::new(),
            files: VecDeque::new(),
        }
    }

    /// The stream.
    pub fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// The files received so far, in order; they are the caller's now.
    pub fn files(&mut self) -> Vec<OwnedFd> {
        self.files.drain(..).collect()
    }

    /// The next line without its end; `None` at the end of the stream.
    ///
    /// # Errors
    /// A line longer than [`MAX_LINE`] (of kind `InvalidData`); a timeout of the stream (`WouldBlock`), after which it
    /// can be called again; the other end is gone.
    pub fn next_line(&mut self) -> std::io::Result<Option<Vec<u8>>> {
        loop {
            if let Some(end) = self.bytes.iter().position(|b| *b == b'\n') {
                let line = self.bytes.drain(..end).collect();
                self.bytes.pop_front();
                return Ok(Some(line));
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
        message.msg_control = (&raw mut ancillary).cast();
        message.msg_controllen = ANCILLARY as _;
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

    #[test]
    fn the_other_end_is_this_process() {
        let (a, _b) = UnixStream::pair().unwrap();
        assert_eq!(peer(&a).unwrap().pid, std::process::id());
    }
}
