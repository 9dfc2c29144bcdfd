//! Who asks the supervisor: the process at the other end of a connection, known by a descriptor
//! that never means another process, and its request, which may come in pieces.

use crate::message::{Entry, MOST_ENTRIES, SECRET};
use model::{Error, Result};
use partition::ledger::Peer;
use partition::socket;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, pidfd_open};
use std::io::{Error as IoError, ErrorKind, Read};
use std::net::Shutdown;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, OwnedFd};
use std::os::unix::net::UnixStream;

/// The longest request behind its length.
const LONGEST: usize = SECRET + 4 + MOST_ENTRIES * size_of::<Entry>();

/// A connection of which the request has not arrived yet, or not all of it.
#[derive(Debug)]
pub(super) struct Asking {
    stream: UnixStream,
    pub(super) peer: Peer,
    received: Vec<u8>,
}

impl Drop for Asking {
    /// Tells the other end, also where a child of this process has the descriptor by a fork. It
    /// may have hung up already.
    fn drop(&mut self) {
        let _ = self.stream.shutdown(Shutdown::Both);
    }
}

/// What was asked.
#[derive(Debug)]
pub(super) struct Request {
    pub(super) kind: u32,
    pub(super) body: Vec<u8>,
}

impl Asking {
    /// A connection that was accepted; `None` where it is not this user's.
    ///
    /// # Errors
    /// The kernel does not say whose it is.
    pub(super) fn of(stream: UnixStream, user: u32) -> Result<Option<Self>> {
        let peer = socket::peer(&stream)?;
        stream
            .set_nonblocking(true)
            .map_err(|e| Error::new(format!("cannot read what a program asks: {e}")))?;
        let asking = Asking {
            stream,
            peer,
            received: Vec::new(),
        };
        Ok((peer.uid == user && peer.pid != 0).then_some(asking))
    }

    pub(super) fn stream(&self) -> &UnixStream {
        &self.stream
    }

    /// Reads what has arrived; `None` as long as there is to come more.
    ///
    /// # Errors
    /// The other end hung up, or sent what is no request, or did not know the secret of this run.
    pub(super) fn receive(&mut self, secret: &[u8; SECRET]) -> std::io::Result<Option<Request>> {
        let wrong = || IoError::from(ErrorKind::InvalidData);
        loop {
            let wanted = match self.received.first_chunk::<4>() {
                None => 4,
                Some(length) => match u32::from_ne_bytes(*length) as usize {
                    length if (SECRET + 4..=LONGEST).contains(&length) => 4 + length,
                    _ => return Err(wrong()),
                },
            };
            let before = self.received.len();
            if before == wanted {
                let (known, rest) = self.received[4..].split_at(SECRET);
                let (kind, body) = rest.split_first_chunk::<4>().ok_or_else(wrong)?;
                return match known == secret {
                    true => Ok(Some(Request {
                        kind: u32::from_ne_bytes(*kind),
                        body: body.to_vec(),
                    })),
                    false => Err(wrong()),
                };
            }
            self.received.resize(wanted, 0);
            let got = self.stream.read(&mut self.received[before..]);
            self.received.truncate(before + *got.as_ref().unwrap_or(&0));
            match got {
                Ok(0) => return Err(IoError::from(ErrorKind::UnexpectedEof)),
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::Interrupted => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => return Ok(None),
                Err(e) => return Err(e),
            }
        }
    }
}

/// The process that made a connection. It has not ended when this returns, or its number is still
/// nobody else's.
///
/// # Errors
/// It has ended; the system has no more descriptors.
pub(super) fn process_of(stream: &UnixStream, peer: Peer) -> std::io::Result<OwnedFd> {
    if let Some(process) = told_by_kernel(stream) {
        return Ok(process);
    }
    // Before Linux 6.5: by its number. As long as its end of the connection is open it has not
    // ended, so that the number was still its own when it was opened.
    let process = process(peer.pid)?;
    match has_hung_up(stream.as_fd())? {
        true => Err(IoError::from(ErrorKind::ConnectionReset)),
        false => Ok(process),
    }
}

/// SO_PEERPIDFD (unix(7)); `None` where the kernel does not know it, or the process has ended.
fn told_by_kernel(stream: &UnixStream) -> Option<OwnedFd> {
    const SO_PEERPIDFD: libc::c_int = 77;
    let mut process: libc::c_int = -1;
    let mut size = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: both live through the call, and the size is that of the first.
    let answer = unsafe {
        libc::getsockopt(
            stream.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_PEERPIDFD,
            (&raw mut process).cast(),
            &mut size,
        )
    };
    // SAFETY: the kernel made this descriptor just now; it belongs to nobody else.
    (answer == 0 && process >= 0).then(|| unsafe { OwnedFd::from_raw_fd(process) })
}

/// A process by its number, which the caller knows to be nobody else's.
///
/// # Errors
/// There is none; the kernel has no such descriptors (before Linux 5.3).
pub(super) fn process(number: u32) -> std::io::Result<OwnedFd> {
    let number = i32::try_from(number).ok().and_then(Pid::from_raw);
    let number = number.ok_or_else(|| IoError::from(ErrorKind::NotFound))?;
    Ok(pidfd_open(number, PidfdFlags::empty())?)
}

/// Has a process ended? It may still wait to be reaped.
pub(super) fn has_ended(process: &OwnedFd) -> bool {
    // Whoever cannot be asked is asked again in the next round.
    events(process.as_fd(), PollFlags::IN).is_ok_and(|events| events.contains(PollFlags::IN))
}

fn has_hung_up(stream: BorrowedFd<'_>) -> std::io::Result<bool> {
    Ok(events(stream, PollFlags::empty())?.contains(PollFlags::HUP))
}

fn events(fd: BorrowedFd<'_>, which: PollFlags) -> std::io::Result<PollFlags> {
    let mut asked = [PollFd::from_borrowed_fd(fd, which)];
    poll(
        &mut asked,
        Some(&Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        }),
    )?;
    Ok(asked[0].revents())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    const KEY: [u8; SECRET] = [7; SECRET];

    fn request(key: &[u8], kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (key.len() + 4 + body.len()) as u32;
        [&length.to_ne_bytes()[..], key, &kind.to_ne_bytes(), body].concat()
    }

    fn asking() -> (UnixStream, Asking) {
        let (theirs, ours) = UnixStream::pair().unwrap();
        let user = rustix::process::geteuid().as_raw();
        (theirs, Asking::of(ours, user).unwrap().unwrap())
    }

    #[test]
    fn a_request_may_come_byte_by_byte() {
        let (mut theirs, mut asking) = asking();
        let whole = request(&KEY, 5, b"body");
        for byte in &whole {
            assert!(asking.receive(&KEY).unwrap().is_none());
            theirs.write_all(&[*byte]).unwrap();
        }
        let got = asking.receive(&KEY).unwrap().unwrap();
        assert_eq!((got.kind, &got.body[..]), (5, &b"body"[..]));
    }

    #[test]
    fn who_does_not_know_the_secret_or_sends_nonsense_is_cut_off() {
        for wrong in [
            request(&[8; SECRET], 5, b""),
            request(&[], 5, b""),
            u32::MAX.to_ne_bytes().to_vec(),
            0_u32.to_ne_bytes().to_vec(),
        ] {
            let (mut theirs, mut asking) = asking();
            theirs.write_all(&wrong).unwrap();
            assert_eq!(
                asking.receive(&KEY).unwrap_err().kind(),
                ErrorKind::InvalidData
            );
        }
        let (theirs, mut asking) = asking();
        drop(theirs);
        assert_eq!(
            asking.receive(&KEY).unwrap_err().kind(),
            ErrorKind::UnexpectedEof
        );
    }

    #[test]
    fn another_user_is_not_listened_to() {
        let (_theirs, ours) = UnixStream::pair().unwrap();
        let other = rustix::process::geteuid().as_raw() + 1;
        assert!(Asking::of(ours, other).unwrap().is_none());
    }

    #[test]
    fn the_process_of_a_connection_is_known_until_it_ends() {
        let (_theirs, ours) = UnixStream::pair().unwrap();
        let peer = socket::peer(&ours).unwrap();
        assert!(!has_ended(&process_of(&ours, peer).unwrap()));
        let mut child = std::process::Command::new("true").spawn().unwrap();
        let process = process(child.id()).unwrap();
        child.wait().unwrap();
        assert!(has_ended(&process));
    }
}
