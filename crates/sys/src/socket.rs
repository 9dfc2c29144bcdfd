//! The process at the other end of a Unix socket (unix(7)).

use crate::check;
use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd, RawFd};

/// A process and its user, as the kernel noted them when the connection was made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Credentials {
    /// Its number; 0 where it is of a number space that this process does not see.
    pub pid: u32,
    /// Its user.
    pub uid: u32,
}

/// The process that made the connection, by number (`SO_PEERCRED`). `rustix` has no form of it that
/// holds the number 0, which processes of other number spaces have.
///
/// # Errors
/// It is no Unix socket.
pub fn credentials(socket: impl AsFd) -> io::Result<Credentials> {
    // SAFETY: three numbers, for which all zero and all that the kernel gives are valid.
    let who = unsafe { option::<libc::ucred>(socket, libc::SO_PEERCRED) }?;
    Ok(Credentials {
        pid: who.pid.unsigned_abs(),
        uid: who.uid,
    })
}

/// The process that made the connection, by a descriptor that refers to it for good
/// (`SO_PEERPIDFD`, Linux 6.5).
///
/// # Errors
/// The kernel does not know of it (`ENOPROTOOPT`), or the process has ended (`ESRCH`, `EINVAL`).
pub fn process(socket: impl AsFd) -> io::Result<OwnedFd> {
    // SAFETY: a number, for which every value is valid.
    let fd = unsafe { option::<RawFd>(socket, libc::SO_PEERPIDFD) }?;
    // SAFETY: the kernel made the descriptor in this call, so that nobody else owns it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// An option of a socket.
///
/// # Safety
/// All zero and all that the kernel gives for this option are valid values of `T`.
unsafe fn option<T>(socket: impl AsFd, name: libc::c_int) -> io::Result<T> {
    // SAFETY: all zero is valid, as the caller says.
    let mut value: T = unsafe { std::mem::zeroed() };
    let mut size = size_of::<T>() as libc::socklen_t;
    // SAFETY: both places live through the call, and the size is that of the first.
    let failed = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            name,
            (&raw mut value).cast(),
            &mut size,
        )
    };
    check(failed != 0).map(|()| value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixStream;

    #[test]
    fn the_other_end_is_this_process() {
        let (a, _b) = UnixStream::pair().unwrap();
        let who = credentials(&a).unwrap();
        assert_eq!(who.pid, std::process::id());
        assert_eq!(who.uid, rustix::process::geteuid().as_raw());
        match process(&a) {
            Ok(fd) => {
                let info = std::fs::read_to_string(format!("/proc/self/fdinfo/{}", fd.as_raw_fd()))
                    .unwrap();
                let pid = info
                    .lines()
                    .find_map(|line| line.strip_prefix("Pid:"))
                    .unwrap();
                assert_eq!(pid.trim(), who.pid.to_string());
            }
            Err(e) => assert_eq!(e.raw_os_error(), Some(libc::ENOPROTOOPT)),
        }
        assert!(credentials(std::fs::File::open("/dev/null").unwrap()).is_err());
    }
}
